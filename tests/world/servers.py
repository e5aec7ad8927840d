"""ACME servers of others: how each is installed, configured for the world's names, and started."""

import os
import shutil
import subprocess
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from tools import CACHE, DENIED, NAMES, PROGRAMS, ZONE, NotHere, build, debian, go_install, newest_python, pip_install, read

HOST = f"ca.{ZONE}"


@dataclass
class Server:
    """A server that has been started: its directory URL, the root that its own certificate leads to, and its process."""

    directory: str
    root: Path
    process: subprocess.Popen = field(repr=False)


def authority(folder: Path) -> None:
    """Makes a root, an intermediate and a certificate for HOST in that folder, all with P-256 keys."""
    made = {
        "root": ("/CN=World Root", None, "basicConstraints=critical,CA:TRUE,pathlen:1\nkeyUsage=critical,keyCertSign,cRLSign\n"),
        "intermediate": (
            "/CN=World Intermediate",
            "root",
            "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign,digitalSignature\n",
        ),
        "server": ("/", "intermediate", f"subjectAltName=DNS:{HOST}\nextendedKeyUsage=serverAuth\n"),
    }
    for name, (subject, issuer, extensions) in made.items():
        files = {kind: str(folder / f"{name}.{kind}") for kind in ("key", "crt", "csr", "ext")}
        Path(files["ext"]).write_text(
            extensions + "subjectKeyIdentifier=hash\n" + ("authorityKeyIdentifier=keyid\n" if issuer else "")
        )
        new = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256"]
        subprocess.run([*new, "-subj", subject, "-keyout", files["key"], "-out", files["csr"]], check=True, capture_output=True)
        by = ["-CA", str(folder / f"{issuer}.crt"), "-CAkey", str(folder / f"{issuer}.key")] if issuer else ["-signkey", files["key"]]
        sign = ["openssl", "x509", "-req", "-in", files["csr"], "-days", "365", "-sha256", "-extfile", files["ext"]]
        serial = ["-set_serial", str(1 + len(name))]
        subprocess.run([*sign, *by, *serial, "-out", files["crt"]], check=True, capture_output=True)
    chain = (folder / "server.crt").read_text() + (folder / "intermediate.crt").read_text()
    (folder / "server-chain.crt").write_text(chain)


def begin(folder: Path, command: list, **more) -> subprocess.Popen:
    """Starts a server whose output goes to `log` in its folder."""
    environment = {**os.environ, "HOME": str(folder), **more.pop("env", {})}
    with open(folder / "log", "wb") as log:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True, **more)


class StepCa:
    """smallstep's CA, with one ACME provisioner and one name that its policy denies."""

    version = "0.30.2"

    def install(self) -> None:
        go_install("github.com/smallstep/certificates/cmd/step-ca", self.version)

    def start(self, folder: Path) -> Server:
        authority(folder)
        (folder / "ca.json").write_text(f"""{{
          "root": "root.crt", "crt": "intermediate.crt", "key": "intermediate.key",
          "address": "127.0.0.1:9000", "dnsNames": ["{HOST}"], "logger": {{"format": "text"}},
          "db": {{"type": "badgerv2", "dataSource": "db"}},
          "authority": {{
            "policy": {{"x509": {{"deny": {{"dns": ["{DENIED}"]}}}}}},
            "provisioners": [{{"type": "ACME", "name": "acme"}}]}}}}""")
        process = begin(folder, [str(CACHE / "bin/step-ca"), "ca.json"])
        return Server(f"https://{HOST}:9000/acme/acme/directory", folder / "root.crt", process)


class Caddy:
    """Caddy's acme_server, with one name that it denies."""

    version = "2.11.9"

    def install(self) -> None:
        go_install("github.com/caddyserver/caddy/v2/cmd/caddy", self.version)

    def start(self, folder: Path) -> Server:
        (folder / "Caddyfile").write_text(textwrap.dedent(f"""
            {{
                admin off
                http_port 8081
                https_port 9443
                skip_install_trust
                default_bind 127.0.0.1
                storage file_system {folder}/storage
            }}
            https://{HOST} {{
                tls internal
                acme_server {{
                    deny {{
                        domains {DENIED}
                    }}
                }}
            }}
            """))
        process = begin(folder, [str(CACHE / "bin/caddy"), "run", "--config", "Caddyfile"])
        root = folder / "storage/pki/authorities/local/root.crt"
        return Server(f"https://{HOST}:9443/acme/local/directory", root, process)


class Acme2Certifier:
    """acme2certifier by gunicorn, with its OpenSSL handler and SQLite."""

    version = "0.46.3"

    def install(self) -> None:
        pip_install("acme2certifier", f"acme2certifier=={self.version}", "gunicorn==23.0.0")

    def start(self, folder: Path) -> Server:
        authority(folder)
        (folder / "acme_srv.cfg").write_text(textwrap.dedent(f"""
            [DEFAULT]
            debug: False
            [CAhandler]
            handler_module: acme2certifier.cahandlers.openssl_ca_handler
            issuing_ca_key: {folder}/intermediate.key
            issuing_ca_cert: {folder}/intermediate.crt
            issuing_ca_crl: {folder}/crl.pem
            cert_save_path: {folder}/certs
            cert_validity_days: 30
            ca_cert_chain_list: ["{folder}/root.crt"]
            blocked_domainlist: ["{DENIED}"]
            [DBhandler]
            handler: wsgi
            dbfile: {folder}/acme.db
            [Directory]
            url_prefix:
            """).replace("url_prefix:\n", ""))
        # Its handler of revocations adds to a list that has to be there.
        (folder / "certs").mkdir()
        (folder / "index.txt").touch()
        (folder / "list.conf").write_text("[ca]\ndefault_ca=world\n[world]\ndatabase=index.txt\ndefault_md=sha256\ndefault_crl_days=30\n")
        listed = ["openssl", "ca", "-gencrl", "-config", "list.conf", "-cert", "intermediate.crt", "-keyfile", "intermediate.key", "-out", "crl.pem"]
        subprocess.run(listed, cwd=folder, check=True, capture_output=True)
        package = read([str(CACHE / "acme2certifier/bin/python3"), "-c", "import acme2certifier, os; print(os.path.dirname(acme2certifier.__file__))"])
        shutil.copy(f"{package}/share/acme2certifier_wsgi.py", folder / "served.py")
        command = [
            str(CACHE / "acme2certifier/bin/gunicorn"), "served:application", "--bind", "127.0.0.1:9001", "--threads", "8",
            "--certfile", "server-chain.crt", "--keyfile", "server.key",
        ]
        process = begin(folder, command, env={"ACME_SRV_CONFIGFILE": str(folder / "acme_srv.cfg")})
        return Server(f"https://{HOST}:9001/directory", folder / "root.crt", process)


class Serles:
    """Serles by gunicorn, with a back end of ours that signs what it is given: the one that it ships leaves out all names."""

    version = "1.3.0"

    def install(self) -> None:
        pip_install("serles", f"serles-acme=={self.version}", "gunicorn==23.0.0")

    def start(self, folder: Path) -> Server:
        authority(folder)
        (folder / "signer.py").write_text(textwrap.dedent("""
            import subprocess, tempfile

            class Backend:
                def __init__(self, config):
                    self.folder = config["world"]["folder"]

                def sign(self, csr, subject, names, email):
                    with tempfile.NamedTemporaryFile("wb", suffix=".csr") as file:
                        file.write(csr if isinstance(csr, bytes) else csr.encode())
                        file.flush()
                        made = subprocess.run(
                            ["openssl", "x509", "-req", "-in", file.name, "-days", "30", "-copy_extensions", "copyall",
                             "-CA", f"{self.folder}/intermediate.crt", "-CAkey", f"{self.folder}/intermediate.key"],
                            stdout=subprocess.PIPE, check=True)
                    chain = made.stdout + open(f"{self.folder}/intermediate.crt", "rb").read()
                    return chain.decode(), None
            """))
        (folder / "config.ini").write_text(textwrap.dedent(f"""
            [serles]
            database = sqlite:///{folder}/serles.db
            backend = signer:Backend
            subjectNameTemplate = CN={{SAN[0]}}
            allowWildcards = true
            allowIpIdentifiers = true
            [world]
            folder = {folder}
            """))
        command = [
            str(CACHE / "serles/bin/gunicorn"), "serles:create_app()", "--bind", "127.0.0.1:9002", "--threads", "8",
            "--certfile", "server-chain.crt", "--keyfile", "server.key",
        ]
        process = begin(folder, command, env={"CONFIG": str(folder / "config.ini"), "PYTHONPATH": str(folder)})
        return Server(f"https://{HOST}:9002/directory", folder / "root.crt", process)


class Acmeeh:
    """acmeeh by its development server (its workers lose the database behind gunicorn), with a PostgreSQL of Debian, behind a Caddy that speaks TLS."""

    version = "2.1.0"

    def install(self) -> None:
        debian("postgres", "postgresql")
        go_install("github.com/caddyserver/caddy/v2/cmd/caddy", Caddy.version)
        pip_install("acmeeh", f"acmeeh=={self.version}", python=newest_python(12))

    def start(self, folder: Path) -> Server:
        if os.geteuid() != 0 or subprocess.run(["setpriv", "--reuid", "postgres", "true"], capture_output=True).returncode:
            raise NotHere("PostgreSQL does not run as root, and this process may not become another user")
        authority(folder)
        (folder / "Caddyfile").write_text(textwrap.dedent(f"""
            {{
                admin off
                auto_https off
                default_bind 127.0.0.1
                storage file_system {folder}/storage
            }}
            https://{HOST}:9003 {{
                tls {folder}/server-chain.crt {folder}/server.key
                reverse_proxy 127.0.0.1:8443
            }}
            """))
        # It refuses to look at loopback addresses, and looks at records of DNS-01 only where it is told to.
        (folder / "config.yaml").write_text(textwrap.dedent(f"""
            server: {{external_url: "https://{HOST}:9003", bind: 127.0.0.1, port: 8443}}
            proxy: {{enabled: true, trusted_proxies: ["127.0.0.1/32"]}}
            database: {{host: 127.0.0.1, port: 5433, database: postgres, user: postgres, sslmode: disable, auto_setup: true}}
            ca:
              internal: {{root_cert_path: "{folder}/intermediate.crt", root_key_path: "{folder}/intermediate.key"}}
            challenges:
              enabled: [http-01, dns-01, tls-alpn-01]
              dns01: {{auto_validate: true, propagation_wait_seconds: 0}}
            security: {{identifier_policy: {{forbidden_domains: ["{DENIED}"]}}}}
            ari: {{enabled: true}}
            """))
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        data = folder / "data"
        data.mkdir()
        shutil.chown(data, "postgres")
        for above in [folder, *list(folder.parents)[:2]]:
            above.chmod(0o755)
        as_postgres = "setpriv --reuid postgres --regid postgres --clear-groups"
        (folder / "run.sh").write_text(textwrap.dedent(f"""
            set -e
            {as_postgres} {binaries}/initdb -D {data} --auth trust >/dev/null
            {as_postgres} {binaries}/postgres -D {data} -p 5433 -k {data} -h 127.0.0.1 &
            until {binaries}/pg_isready -q -h 127.0.0.1 -p 5433; do sleep 0.2; done
            {CACHE}/acmeeh/bin/acmeeh -c config.yaml serve --dev &
            until (exec 3<>/dev/tcp/127.0.0.1/8443) 2>/dev/null; do sleep 0.2; done
            exec {CACHE}/bin/caddy run --config Caddyfile
            """))
        process = begin(folder, ["bash", "run.sh"])
        return Server(f"https://{HOST}:9003/directory", folder / "root.crt", process)


class Vault:
    """Vault's core with its secrets engine pki, in a program of ours: the one that is published does not build from modules."""

    version = "1.21.4"

    def install(self) -> None:
        # The sdk of that release is published nowhere: the next one differs in a type that this release fills in.
        script = """
            sdk=$(go mod download -json github.com/hashicorp/vault/sdk@v0.21.0 | sed -n 's/.*"Dir": "\\(.*\\)",/\\1/p')
            rm -rf sdk
            cp -r "$sdk" sdk
            chmod -R u+w sdk
            sed -i '/ActivationFunc func(/s/, string)/)/' sdk/framework/backend.go
            CGO_ENABLED=0 go build -mod=mod -o vault .
            """
        module = textwrap.dedent(f"""
            module world

            go 1.26.0

            require github.com/hashicorp/vault v{self.version}

            replace github.com/99designs/keyring => github.com/Jeffail/keyring v1.2.3

            replace github.com/ma314smith/signedxml v1.1.1 => github.com/moov-io/signedxml v1.1.1

            replace github.com/hashicorp/vault/sdk => ./sdk
            """)
        build("vault", {"go.mod": module, "main.go": (PROGRAMS / "vault.go").read_text()}, ["bash", "-euo", "pipefail", "-c", script])

    def start(self, folder: Path) -> Server:
        authority(folder)
        bundle = "".join((folder / name).read_text() for name in ("intermediate.key", "intermediate.crt", "root.crt"))
        (folder / "bundle.pem").write_text(bundle)
        names = [name for name in (f"{host}.{ZONE}" for host in NAMES) if name != DENIED]
        where = ["127.0.0.1:9004", f"https://{HOST}:9004"]
        process = begin(folder, [str(CACHE / "vault/vault"), *where, "server-chain.crt", "server.key", "bundle.pem", *names])
        return Server(f"https://{HOST}:9004/v1/pki/acme/directory", folder / "root.crt", process)



class DjangoCa:
    """django-ca by gunicorn, with SQLite and without Celery: it looks at challenges while it answers.

    One request at a time: SQLite refuses a transaction that waits for another one, and the challenge then stays `processing`.
    """

    version = "3.2.0"

    def install(self) -> None:
        pip_install("django-ca", f"django-ca=={self.version}", "gunicorn==23.0.0", python=newest_python(11))

    def start(self, folder: Path) -> Server:
        authority(folder)
        (folder / "world_settings.py").write_text(textwrap.dedent(f"""
            SECRET_KEY = "world"
            ALLOWED_HOSTS = ["{HOST}"]
            INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django_ca"]
            DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "{folder}/database", "OPTIONS": {{"timeout": 20}}}}}}
            ROOT_URLCONF = "world_urls"
            USE_TZ = True
            STORAGES = {{
                "default": {{"BACKEND": "django.core.files.storage.FileSystemStorage"}},
                "staticfiles": {{"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}},
                "django-ca": {{"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {{"location": "{folder}/files"}}}},
            }}
            CA_DEFAULT_HOSTNAME = "{HOST}:9005"
            CA_DEFAULT_CA = "0D"
            CA_ENABLE_ACME = True
            CA_USE_CELERY = False
            """))
        (folder / "world_urls.py").write_text(
            'from django.urls import include, path\nurlpatterns = [path("django_ca/", include("django_ca.urls"))]\n')
        environment = {"DJANGO_SETTINGS_MODULE": "world_settings", "PYTHONPATH": str(folder)}
        tools = CACHE / "django-ca/bin"
        imported = [["root"], ["intermediate", "--acme-enable", "--acme-contact-optional"]]
        for words in (["migrate"], *(["import_ca", *more, name, f"{name}.key", f"{name}.crt"] for name, *more in imported)):
            read([str(tools / "django-admin"), *words], cwd=folder, env={**os.environ, **environment})
        command = [
            str(tools / "gunicorn"), "django.core.wsgi:get_wsgi_application()", "--bind", "127.0.0.1:9005",
            "--certfile", "server-chain.crt", "--keyfile", "server.key",
        ]
        process = begin(folder, command, env=environment)
        return Server(f"https://{HOST}:9005/django_ca/acme/directory/", folder / "root.crt", process)


class AcmeProxy:
    """acme-proxy with its own CA (`local_ca`), SQLite and one name that a rule denies; it validates in a queue of jobs."""

    version = "0.7.0"

    def install(self) -> None:
        # Its lock file names releases that were withdrawn since.
        build("acme-proxy", {}, ["cargo", "install", "acme-proxy", "--version", self.version, "--ignore-rust-version", "--root", "."])

    def start(self, folder: Path) -> Server:
        authority(folder)
        (folder / "config.toml").write_text(textwrap.dedent(f"""
            [database]
            url = "sqlite://{folder}/database"
            [server]
            bind_address = "127.0.0.1:9006"
            base_url = "https://{HOST}:9006"
            [server.tls]
            enabled = true
            cert_path = "server-chain.crt"
            key_path = "server.key"
            [audit]
            reverse_dns = false
            [signer.local_ca]
            cert_path = "intermediate.crt"
            key_path = "intermediate.key"
            crl_path = "list.crl"
            [challenge]
            enabled = ["http-01", "dns-01", "tls-alpn-01"]
            [filter]
            rules = ["names"]
            [filter.check.names]
            type = "identifiers"
            deny = ["{DENIED}"]
            allow_wildcards = true
            [filter.rule.names]
            when = "names"
            then = "allow"
            [profiles.default]
            """))
        process = begin(folder, [str(CACHE / "acme-proxy/bin/acme-proxy"), "serve"], env={"ACME_PROXY_CONFIG": str(folder / "config.toml")})
        return Server(f"https://{HOST}:9006/profile/default/directory", folder / "root.crt", process)


SERVERS = {
    "step-ca": StepCa(), "Caddy": Caddy(), "acme2certifier": Acme2Certifier(), "Serles": Serles(), "acmeeh": Acmeeh(), "Vault": Vault(),
    "django-ca": DjangoCa(), "acme-proxy": AcmeProxy(),
}
