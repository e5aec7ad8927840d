"""An ACME server for the scripts beside it: no signature is looked at, and each POST is printed with its payload.

    python3 stub.py FILE ready|pending|refuse

FILE gets its port. Every name is proven, and an order is ready at once; with `pending` its authorization is pending, and offers
http-01 and dns-persist-01. Finalize answers that the order is processing, without a Location, and reading the order says so once; then
it is valid. With `refuse` no order is taken.
"""

import base64
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATHS = ("newNonce", "newAccount", "newOrder", "revokeCert", "keyChange")


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    reads = 0
    names = []

    def answer(self, status, body, **headers):
        text = json.dumps(body).encode()
        kind = "application/json" if status < 400 else "application/problem+json"
        self.send_response(status)
        for name, value in {"Replay-Nonce": "bm9uY2U", "Content-Type": kind, "Content-Length": str(len(text)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def order(self, status):
        more = {"certificate": f"{self.base}/certificate"} if status == "valid" else {}
        return {
            "status": status, "identifiers": Answers.names, "authorizations": [f"{self.base}/authorization"],
            "expires": "2100-01-01T00:00:00Z", "finalize": f"{self.base}/finalize", **more}

    def authorization(self):
        challenges = [{"type": "http-01", "url": f"{self.base}/http", "status": "valid", "token": "dG9rZW4"}]
        if "pending" in sys.argv:
            challenges[0]["status"] = "pending"
            persistent = {"type": "dns-persist-01", "url": f"{self.base}/persist", "status": "pending"}
            challenges.append({**persistent, "accounturi": f"{self.base}/account/1", "issuer-domain-names": ["ca.example"]})
        return {
            "status": challenges[0]["status"], "identifier": Answers.names[0], "expires": "2100-01-01T00:00:00Z", "challenges": challenges}

    def do_GET(self):
        self.answer(200, {**{name: f"{self.base}/{name}" for name in PATHS}, "meta": {"termsOfService": f"{self.base}/terms"}})

    do_HEAD = do_GET

    def do_POST(self):
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = base64.urlsafe_b64decode(sent["payload"] + "===")
        payload = json.loads(text) if text else None
        print(self.path, json.dumps(payload, sort_keys=True), flush=True)
        if self.path == "/newAccount":
            self.answer(201, {"status": "valid"}, Location=f"{self.base}/account/1")
        elif self.path == "/newOrder" and "refuse" not in sys.argv:
            Answers.names = payload["identifiers"]
            self.answer(201, self.order("pending" if "pending" in sys.argv else "ready"), Location=f"{self.base}/order")
        elif self.path == "/authorization":
            self.answer(200, self.authorization())
        elif self.path == "/http":
            self.answer(200, self.authorization()["challenges"][0])
        elif self.path == "/finalize" and not Answers.reads:
            Answers.reads = 1
            self.answer(200, self.order("processing"), Retry_After="1")
        elif self.path == "/order":
            Answers.reads += bool(Answers.reads)
            self.answer(200, self.order(("ready", "processing", "processing", "valid")[min(Answers.reads, 3)]))
        elif self.path == "/finalize":
            self.answer(403, {"type": "urn:ietf:params:acme:error:orderNotReady", "detail": "it is finalized already"})
        else:
            self.answer(403, {"type": "urn:ietf:params:acme:error:rejectedIdentifier", "detail": "no"})

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
with open(sys.argv[1], "w") as place:
    place.write(str(server.server_port))
server.serve_forever()
