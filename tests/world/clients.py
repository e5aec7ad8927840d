"""ACME clients of others, each issuing one certificate for two names by HTTP-01 on the world's address."""

import subprocess
import textwrap

from libraries import LIBRARIES
from order import Order
from servers import Caddy
from tools import ADDRESS, CACHE, debian, go_install, pip_install


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


class Acmetool:
    """acmetool of Debian, by its webroot."""

    def install(self) -> str:
        return debian("acmetool", "acmetool")

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        target = order.folder / "state/conf/target"
        target.parent.mkdir(parents=True)
        target.write_text(f"request:\n  provider: {order.directory}\n  challenge:\n    webroot-paths:\n      - {order.answers}\n")
        answers = order.folder / "answers.yaml"
        terms = order.directory.replace("/directory", "/terms")
        answers.write_text(f'"acme-enter-email": "a@acme.test"\n"acme-agreement:{terms}": true\n')
        common = ["/usr/bin/acmetool", "--state", str(order.folder / "state"), "--hooks", str(order.folder), "--batch", "--response-file", str(answers)]
        return order.run([*common, "want", *order.names])


class Lacme:
    """lacme of Debian, as root throughout, by a webroot."""

    def install(self) -> str:
        debian("lacme", "libcrypt-openssl-rsa-perl")
        return debian("lacme", "lacme")

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        key, _ = order.key_and_request()
        (order.folder / "accountd.conf").write_text(f"privkey = file:{order.account_key()}\n")
        (order.folder / "lacme.conf").write_text(textwrap.dedent(f"""
            [client]
            server = {order.directory}
            user =
            group =
            [webserver]
            listen =
            challenge-directory = {order.answers}
            user =
            group =
            [accountd]
            config = {order.folder}/accountd.conf
            """))
        (order.folder / "certs.conf").write_text(textwrap.dedent(f"""
            CAfile =
            [www]
            certificate-key = {key}
            certificate-chain = {order.folder}/chain.pem
            subject = /CN={order.names[0]}
            subjectAltName = {",".join(f"DNS:{name}" for name in order.names)}
            """))
        common = ["/usr/sbin/lacme", f"--config={order.folder}/lacme.conf"]
        made = order.run([*common, "account", "--register", "--tos-agreed", "mailto:a@acme.test"])
        return made if made.returncode else order.run([*common, "newOrder", f"--config-certs={order.folder}/certs.conf"])


class Step:
    """smallstep's client, the newest that builds from modules, by its webroot."""

    version = "0.21.0"

    def install(self) -> str:
        go_install("github.com/smallstep/cli/cmd/step", self.version)
        return self.version

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        names = [word for name in order.names for word in ("--san", name)]
        return order.run(
            [str(CACHE / "bin/step"), "ca", "certificate", order.names[0], "certificate.pem", "key.pem", "--acme", order.directory, "--root",
             str(order.root), "--webroot", str(order.webroot), "--contact", "mailto:a@acme.test", *names])


class CaddyAsClient:
    """Caddy, which gets a certificate for a site on its own."""

    listens = True

    def install(self) -> str:
        Caddy().install()
        return Caddy.version

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        order.names = order.names[:1]
        (order.folder / "Caddyfile").write_text(textwrap.dedent(f"""
            {{
                admin off
                default_bind {ADDRESS}
                storage file_system {order.folder}/storage
                email a@acme.test
                cert_issuer acme {{
                    dir {order.directory}
                    trusted_roots {order.root}
                    disable_tlsalpn_challenge
                }}
            }}
            {order.names[0]} {{
                respond ok
            }}
            """))
        return order.serve([str(CACHE / "bin/caddy"), "run", "--config", "Caddyfile"])


class ApacheMd:
    """Apache's mod_md, which gets certificates for the names of a server on its own."""

    listens = True

    def install(self) -> str:
        return debian("apache2", "apache2-bin")

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        # It works as another user, who has to reach the folder.
        for above in [order.folder, *list(order.folder.parents)[:3]]:
            above.chmod(0o755)
        modules = "\n".join(
            f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in ("mpm_event", "authz_core", "socache_shmcb", "ssl", "md"))
        (order.folder / "httpd.conf").write_text(f"""{modules}
ServerRoot {order.folder}
PidFile httpd.pid
ErrorLog error.log
LogLevel md:debug
User www-data
Listen {ADDRESS}:80
Listen {ADDRESS}:443
ServerName {order.names[0]}
MDStoreDir md
MDCertificateAuthority {order.directory}
MDCACertificateFile {order.root}
MDCertificateAgreement accepted
MDContactEmail a@acme.test
MDCAChallenges http-01
MDomain {" ".join(order.names)}
<VirtualHost {ADDRESS}:443>
ServerName {order.names[0]}
ServerAlias {order.names[1]}
SSLEngine on
</VirtualHost>
""")
        return order.serve(["/usr/sbin/apache2", "-X", "-f", str(order.folder / "httpd.conf")])



CLIENTS = {
    "certbot (Debian)": Certbot(),
    "certbot (PyPI)": CertbotOfPyPI(),
    "lego (Debian)": Lego(),
    "uacme (Debian)": Uacme(),
    "dehydrated (Debian)": Dehydrated(),
    "acme-tiny (PyPI)": AcmeTiny(),
    "acmetool (Debian)": Acmetool(),
    "lacme (Debian)": Lacme(),
    "step (Go)": Step(),
    "Caddy, its client": CaddyAsClient(),
    "Apache mod_md (Debian)": ApacheMd(),
    **LIBRARIES,
}
