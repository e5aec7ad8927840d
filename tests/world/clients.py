"""ACME clients of others, each issuing one certificate for two names by HTTP-01 on the world's address."""

import os
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools import CACHE, debian, npm_install, pip_install


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
        trust = {name: str(self.root) for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")}
        everything = {**os.environ, "HOME": str(self.folder), **trust, **environment}
        return subprocess.run(command, cwd=self.folder, env=everything, capture_output=True, text=True, errors="replace", timeout=90)

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


class Certbot:
    """certbot of Debian, by its webroot plugin."""

    program = "/usr/bin/certbot"

    def install(self) -> str:
        return debian("certbot", "certbot")

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        names = [word for name in order.names for word in ("-d", name)]
        folders = [word for name in ("config", "work", "logs") for word in (f"--{name}-dir", str(order.folder / name))]
        return order.run(
            [self.program, "certonly", "-n", "--agree-tos", "--register-unsafely-without-email", "--server", order.directory,
             "--webroot", "-w", str(order.webroot), *folders, *names])


class CertbotOfPyPI(Certbot):
    """The newest certbot, from PyPI."""

    program = str(CACHE / "certbot/bin/certbot")
    version = "5.6.0"

    def install(self) -> str:
        pip_install("certbot", f"certbot=={self.version}")
        return self.version


class Lego:
    """lego of Debian, by a webroot."""

    def install(self) -> str:
        return debian("lego", "lego")

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        names = [f"--domains={name}" for name in order.names]
        return order.run(
            ["/usr/bin/lego", "--accept-tos", "--email=a@acme.test", f"--server={order.directory}", "--path", str(order.folder / "lego"),
             "--http", f"--http.webroot={order.webroot}", *names, "run"], LEGO_CA_CERTIFICATES=str(order.root))


class Uacme:
    """uacme of Debian, by a hook that writes files."""

    def install(self) -> str:
        return debian("uacme", "uacme")

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        hook = order.script("hook", f"""#!/bin/sh
            [ "$2" = http-01 ] || exit 1
            case $1 in begin) printf %s "$5" >"{order.answers}/$4" ;; esac
            """)
        common = ["/usr/bin/uacme", "-a", order.directory, "-c", str(order.folder / "uacme")]
        made = order.run([*common, "-y", "new"])
        return made if made.returncode else order.run([*common, "-h", hook, "issue", *order.names])


class Dehydrated:
    """dehydrated of Debian, by its well-known folder."""

    def install(self) -> str:
        return debian("dehydrated", "dehydrated")

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        (order.folder / "config").write_text(f'CA="{order.directory}"\nWELLKNOWN="{order.answers}"\nBASEDIR="{order.folder}"\n')
        common = ["/usr/bin/dehydrated", "--config", str(order.folder / "config"), "--accept-terms"]
        made = order.run([*common, "--register"])
        names = [word for name in order.names for word in ("--domain", name)]
        return made if made.returncode else order.run([*common, "--cron", "--out", str(order.folder / "certs"), *names])


class AcmeTiny:
    """acme-tiny of PyPI."""

    version = "5.0.3"

    def install(self) -> str:
        pip_install("acme-tiny", f"acme-tiny=={self.version}")
        return self.version

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        _, request = order.key_and_request()
        done = order.run(
            [str(CACHE / "acme-tiny/bin/acme-tiny"), "--account-key", str(order.account_key()), "--csr", str(request), "--acme-dir",
             str(order.answers), "--directory-url", order.directory, "--disable-check"])
        (order.folder / "certificate.pem").write_text(done.stdout)
        return done


class GufoAcme:
    """gufo-acme, a library of PyPI, by its webroot client."""

    version = "0.7.0"

    def install(self) -> str:
        pip_install("gufo-acme", f"gufo-acme=={self.version}")
        return self.version

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        # One certificate has one name here: the library asks for no more. Its HTTP client trusts public roots alone.
        program = order.script("issue.py", f"""
import asyncio
from pathlib import Path
from gufo.acme.clients.web import WebAcmeClient
from gufo.http.async_client import HttpClient

class Client(WebAcmeClient):
    def _get_client(self, auth=None):
        return HttpClient(headers={{"User-Agent": self._user_agent.encode()}}, auth=auth, validate_cert=False)

async def main():
    key = Client.get_key()
    async with Client({order.directory!r}, path={str(order.answers)!r}, key=key) as client:
        await client.new_account("a@acme.test")
        private = Client.get_domain_private_key()
        request = Client.get_domain_csr({order.names[0]!r}, private)
        Path("certificate.pem").write_bytes(await client.sign({order.names[0]!r}, request))

asyncio.run(main())
""")
        order.names = order.names[:1]
        return order.run([str(CACHE / "gufo-acme/bin/python3"), program])


class AcmeClient:
    """acme-client, a library of npm."""

    version = "5.4.0"

    def install(self) -> str:
        npm_install("acme-client", f"acme-client@{self.version}")
        return self.version

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        program = order.script("issue.js", f"""
const acme = require({str(CACHE / "acme-client/node_modules/acme-client")!r});
const fs = require('fs');
(async () => {{
  const client = new acme.Client({{ directoryUrl: {order.directory!r}, accountKey: await acme.crypto.createPrivateKey() }});
  const [, csr] = await acme.crypto.createCsr({{ altNames: {order.names!r} }});
  const certificate = await client.auto({{
    csr, email: 'a@acme.test', termsOfServiceAgreed: true, challengePriority: ['http-01'],
    challengeCreateFn: async (_, challenge, answer) => fs.writeFileSync({str(order.answers)!r} + '/' + challenge.token, answer),
    challengeRemoveFn: async () => {{}},
  }});
  fs.writeFileSync('certificate.pem', certificate);
}})().catch((error) => {{ console.error(error.message); process.exit(1); }});
""")
        return order.run(["node", program])


CLIENTS = {
    "certbot (Debian)": Certbot(),
    "certbot (PyPI)": CertbotOfPyPI(),
    "lego (Debian)": Lego(),
    "uacme (Debian)": Uacme(),
    "dehydrated (Debian)": Dehydrated(),
    "acme-tiny (PyPI)": AcmeTiny(),
    "gufo-acme (PyPI)": GufoAcme(),
    "acme-client (npm)": AcmeClient(),
}
