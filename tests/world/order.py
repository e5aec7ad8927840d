"""What a client of others is asked for: one certificate by HTTP-01, or by TLS-ALPN-01 where it knows no other."""

import os
import re
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Order:
    """What a client is to do: the CA's directory and root, the names, and an empty folder; `webroot` is served on port 80."""

    directory: str
    root: Path
    names: list
    folder: Path
    webroot: Path

    def run(self, command: list, **environment) -> subprocess.CompletedProcess:
        """Runs the client, which trusts the CA's root; 90 s at most."""
        return subprocess.run(
            command, cwd=self.folder, env=self.environment(**environment), capture_output=True, text=True, errors="replace", timeout=90)

    def environment(self, **more) -> dict:
        """The variables of a client: by them most trust the CA's root."""
        trust = {name: str(self.root) for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")}
        return {**os.environ, "HOME": str(self.folder), **trust, **more}

    @property
    def answers(self) -> Path:
        """The folder of the answers to HTTP-01."""
        return self.webroot / ".well-known/acme-challenge"

    def key_and_request(self) -> tuple:
        """Makes a key and a signing request for the names."""
        key, request = self.folder / "key.pem", self.folder / "request.csr"
        names = ",".join(f"DNS:{name}" for name in self.names)
        new = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/"]
        subprocess.run([*new, "-keyout", str(key), "-out", str(request), "-addext", f"subjectAltName={names}"], check=True, capture_output=True)
        return key, request

    def account_key(self) -> Path:
        """Makes an account key of RSA 2048."""
        key = self.folder / "account.pem"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        return key

    def script(self, name: str, text: str) -> str:
        """Writes a script that can be run."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    @property
    def words(self) -> list:
        """What each of programs/ is told."""
        return [self.directory, str(self.root), str(self.webroot), *self.names]

    def stored(self) -> bool:
        """Whether a certificate for exactly these names is in the folder."""
        for file in self.folder.rglob("*"):
            if not file.is_file() or b"BEGIN CERTIFICATE" not in file.read_bytes():
                continue
            command = ["openssl", "x509", "-in", str(file), "-noout", "-ext", "subjectAltName"]
            shown = subprocess.run(command, capture_output=True, text=True).stdout
            if set(re.findall(r"DNS:([^,\s]+)", shown)) == set(self.names):
                return True
        return False

    def serve(self, command: list, **environment) -> subprocess.CompletedProcess:
        """Runs a server that gets certificates by itself until one is stored; 60 s at most."""
        with open(self.folder / "server.log", "wb") as log:
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment(**environment), stdout=log, stderr=log)
        end = time.monotonic() + 60
        while not self.stored() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.5)
        process.terminate()
        said = (self.folder / "server.log").read_text(errors="replace")
        return subprocess.CompletedProcess(command, process.wait(20), "", said)
