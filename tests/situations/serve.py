"""What listens in one namespace of a situation: HTTP and TLS servers, what hangs or resets, name servers that refuse: serve.py SPEC.json."""

import json
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

RESPONSE = {"servfail": 2, "nxdomain": 3, "notimp": 4, "refused": 5}


def socket_at(at: str, kind: int) -> socket.socket:
    host, port = at.rsplit(":", 1)
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind((host, int(port)))
    return made


def ask(at: str, request: bytes) -> bytes:
    """Sends a request and returns all that comes."""
    host, port = at.rsplit(":", 1)
    with socket.create_connection((host.strip("[]"), int(port)), 10) as stream:
        stream.sendall(request)
        answer = b""
        while True:
            part = stream.recv(65536)
            if not part:
                return answer
            answer += part


def request_of(stream) -> tuple:
    """The head of a request, its path and its Host."""
    head = b""
    while b"\r\n\r\n" not in head:
        part = stream.recv(65536)
        if not part:
            break
        head += part
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    hosts = [line.split(":", 1)[1].strip() for line in lines[1:] if line.lower().startswith("host:")]
    return head, words[1] if len(words) > 1 else "/", hosts[0] if hosts else ""


def reply(status: int, body: str, headers: dict) -> bytes:
    data = body.encode()
    lines = [f"HTTP/1.1 {status} {'OK' if status < 300 else 'No'}", f"Content-Length: {len(data)}", "Connection: close"]
    names = {name.lower() for name in headers}
    if "content-type" not in names:
        lines.append("Content-Type: text/plain")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + data


def answer(server: dict, answers: str, head: bytes, path: str, host: str) -> bytes:
    """What a server says to one request."""
    matched = [prefix for prefix in server.get("paths") or {} if path.startswith(prefix)]
    if matched:
        server = {**{"status": 200}, **server["paths"][max(matched, key=len)]}
    if "proxy" in server:
        lines = head.split(b"\r\n")
        kept = [line for line in lines[1:-2] if not line.lower().startswith(b"connection:")]
        return ask(server["proxy"], b"\r\n".join([lines[0], *kept, b"X-Forwarded-For: 11.0.9.9", b"Connection: close", b"", b""]))
    if server.get("solver") and path.startswith("/.well-known/acme-challenge/"):
        token = path.rsplit("/", 1)[1]
        key = ask(answers, f"GET /{token} HTTP/1.0\r\n\r\n".encode()).decode().split("\r\n\r\n", 1)[1]
        return reply(200, key, {}) if key else reply(404, "404 page not found", {})
    if "answers" in server:
        return reply(200, key_of(server["answers"], path.strip("/")), {})
    headers = dict(server.get("headers") or {})
    if "location" in server:
        headers["Location"] = server["location"].replace("{host}", host.rsplit(":", 1)[0]).replace("{path}", path)
    return reply(server.get("status", 404 if server.get("solver") else 200), server.get("body") or "", headers)


def key_of(command: list, token: str) -> str:
    """The key authorization of a Challenge, from the situation's state or cluster."""
    said = subprocess.run(command, capture_output=True, text=True).stdout
    challenges = json.loads(said or "{}").get("items") or []
    return next((one["spec"]["key"] for one in challenges if one["spec"].get("token") == token), "")


def serve_one(server: dict, answers: str, stream, tls) -> None:
    behaviour = server.get("behaviour")
    try:
        if behaviour == "silent":
            time.sleep(600)
        if behaviour == "close":
            return stream.close()
        if behaviour == "reset":
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return stream.close()
        if "raw" in server:
            stream.settimeout(2)
            stream.sendall(server["raw"].encode("latin-1"))
            try:
                stream.recv(65536)
            except OSError:
                pass
            return stream.close()
        if tls:
            stream = tls.wrap_socket(stream, server_side=True)
        head, path, host = request_of(stream)
        time.sleep(server.get("delay") or 0)
        stream.sendall(answer(server, answers, head, path, host))
        stream.close()
    except OSError:
        stream.close()


def listen(server: dict, answers: str, made: socket.socket) -> None:
    tls = None
    if server.get("tls"):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*server["tls"]["files"])
    while True:
        stream, _ = made.accept()
        threading.Thread(target=serve_one, args=(server, answers, stream, tls), daemon=True).start()


def refuse(how: str, made: socket.socket) -> None:
    """Answers every question by UDP in one way."""
    while True:
        question, asker = made.recvfrom(4096)
        if how != "nothing" and len(question) > 12:
            end = 12
            while question[end]:
                end += question[end] + 1
            flags = struct.pack(">H", 0x8000 | (question[2] & 1) << 8 | RESPONSE[how])
            made.sendto(question[:2] + flags + b"\0\1\0\0\0\0\0\0" + question[12:end + 5], asker)


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text())
    for server in spec["servers"]:
        if "dns" in server:
            made = socket_at(server["at"], socket.SOCK_DGRAM)
            threading.Thread(target=refuse, args=(server["dns"], made), daemon=True).start()
            continue
        made = socket_at(server["at"], socket.SOCK_STREAM)
        made.listen(128)
        threading.Thread(target=listen, args=(server, spec["answers"], made), daemon=True).start()
    Path(spec["ready"]).touch()
    threading.Event().wait()


main()
