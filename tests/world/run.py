"""Puts ACME servers and clients of others beside ours, and writes docs/compatibility.md.

    python3 tests/world/run.py [--check] PROGRAM [PRODUCT...]

PROGRAM is a build of kubectl-acme. With products, only those take part, and the page keeps what it has of the others. With --check
the page is compared and left as it is, resolvers see two orders in place of ten, and what this machine cannot do is left out.
Each product is pinned, and stays in KUBECTL_ACME_WORLD (~/.cache/kubectl-acme-world) once it is installed. Everything runs in a
network of its own (unshare), with port 53, 80 and 443 on loopback and a name server for the zone acme.test, so that nothing of the
machine is asked or changed. A cell that was better in the page before fails the run.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from clients import CLIENTS
from operations import OPERATIONS, Cell, Visit
from order import Order
from resolvers import RESOLVERS, behind
from servers import HOST, SERVERS
from tools import ADDRESS, NAMES, NOBODY, ZONE, NotHere, until_open
from updates import REFUSERS, refused

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs/compatibility.md"
PRODUCTS = {**SERVERS, **CLIENTS, **REFUSERS, **RESOLVERS}
RANKS = {"fails": 0, "told": 1, "ok": 2}
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
KEY, SECRET = "world", "c2VjcmV0IG9mIHRoZSB3b3JsZCBvZiB0ZXN0cw=="


class NameServer:
    """BIND, which has the zone of the world and takes updates of it."""

    def __init__(self, folder: Path):
        self.folder = folder
        records = "".join(f"{name} 0 IN A {ADDRESS}\n" for name in NAMES)
        (folder / "zone").write_text(
            f"$ORIGIN {ZONE}.\n$TTL 0\n@ IN SOA ns hostmaster 1 60 60 60 0\n@ IN NS ns\nns IN A 127.0.0.1\nca IN A 127.0.0.1\n{records}")
        (folder / "named.conf").write_text(
            f'options {{ directory "{folder}"; pid-file none; session-keyfile "{folder}/session.key"; listen-on {{ 127.0.0.1; }}; '
            f"listen-on-v6 {{ none; }}; recursion no; dnssec-validation no; }};\ncontrols {{ }};\n"
            f'key "{KEY}" {{ algorithm hmac-sha256; secret "{SECRET}"; }};\n'
            f'zone "{ZONE}" {{ type primary; file "zone"; allow-update {{ key "{KEY}"; }}; }};\n')
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [shutil.which("named") or "/usr/sbin/named", "-f", "-c", str(folder / "named.conf")], stdout=log, stderr=log)
        until_open("127.0.0.1", 53, self.process)

    def address(self, name: str, address: str) -> None:
        """Gives a name another address."""
        text = f"server 127.0.0.1\nupdate delete {name}. A\nupdate add {name}. 0 A {address}\nsend\n"
        subprocess.run(["nsupdate", "-y", f"hmac-sha256:{KEY}:{SECRET}"], input=text, text=True, check=True)

    @staticmethod
    def credentials() -> dict:
        """The variables by which the program reaches it."""
        return {
            "RFC2136_NAMESERVER": "127.0.0.1:53", "RFC2136_TSIG_KEY": KEY, "RFC2136_TSIG_SECRET": SECRET,
            "RFC2136_TSIG_ALGORITHM": "hmac-sha256."}


def stop(process: subprocess.Popen) -> None:
    """Ends a process and its children."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(10)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        process.kill()


def visit(name: str, program: str, folder: Path, dns: NameServer) -> dict:
    """What comes of every operation of ours at a server."""
    (folder / "server").mkdir(parents=True)
    server = SERVERS[name].start(folder / "server")
    try:
        port = int(re.search(r":(\d+)/", server.directory).group(1))
        until_open("127.0.0.1", port, server.process)
        here, cells = Visit(program, server, folder, dns), {}
        for words, operation in OPERATIONS.items():
            try:
                cells[words] = operation(here)
            except Exception as error:  # noqa: BLE001: a cell of its own, whatever it is
                traceback.print_exc()
                cells[words] = Cell("fails", f"{type(error).__name__}: {error}")
            print(f"{name}: {words}: {cells[words]}", flush=True)
        return cells
    finally:
        stop(server.process)


def serve(program: str, name: str, folder: Path) -> dict:
    """What a client makes of our CA, as it is by default and with --strict, which throws dice: thrice, and one success counts."""
    cells = {"by default": once(program, name, folder / "default", [])}
    thrice = [once(program, name, folder / f"strict-{number}", ["--strict"]) for number in range(3)]
    good = sum(cell.word == "ok" for cell in thrice)
    worst = next((cell for cell in thrice if cell.word != "ok"), thrice[0])
    cells["`--strict`"] = worst if good in (0, 3) else Cell("ok", f"{good} of 3; {worst.more}")
    for words, cell in cells.items():
        print(f"{name} at ours, {words}: {cell}", flush=True)
    return cells


def once(program: str, name: str, place: Path, flags: list) -> Cell:
    """What a client makes of a CA with these flags."""
    (place / "client").mkdir(parents=True)
    (place / "www/.well-known/acme-challenge").mkdir(parents=True)
    root = place / "root.pem"
    command = [program, "ca", "--listen", "127.0.0.1:14000", "--name", HOST, "--root", str(root), *flags]
    with open(place / "log", "wb") as log:
        ca = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    # A server that gets certificates by itself has port 80.
    web = None if getattr(CLIENTS[name], "listens", False) else ThreadingHTTPServer((ADDRESS, 80), partial(Quiet, directory=str(place / "www")))
    try:
        if web:
            threading.Thread(target=web.serve_forever, daemon=True).start()
        until_open("127.0.0.1", 14000, ca)
        while not root.exists():
            time.sleep(0.05)
        # Some libraries read the machine's bundle alone.
        subprocess.run(["mount", "--bind", str(root), BUNDLE], check=True)
        order = Order(f"https://{HOST}:14000/directory", root, [f"f.{ZONE}", f"g.{ZONE}"], place / "client", place / "www")
        return judge(CLIENTS[name], order)
    except Exception as error:  # noqa: BLE001: a cell of its own, whatever it is
        return Cell("fails", f"{type(error).__name__}: {error}".splitlines()[0][:200])
    finally:
        subprocess.run(["umount", BUNDLE], check=False)
        if web:
            web.shutdown()
            web.server_close()
        stop(ca)


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *_):
        pass


def judge(client, order: Order) -> Cell:
    """Runs a client, and looks for a certificate of ours for its names in its folder."""
    done = client.issue(order)
    if order.stored():
        return Cell("ok")
    (order.folder / "said").write_text(done.stdout + done.stderr)
    said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    # JVM, Node and Ruby say what it was before they say where.
    said += [line for line in said if re.search(r"^(Error:|Exception in)|Error\)$", line)][:1]
    return Cell("fails", f"exit {done.returncode}: {said[-1].replace(str(order.folder), '')[:160] if said else ''}")


def table(title: str, columns: list, rows: dict) -> str:
    lines = [f"| {title} | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for row, cells in rows.items():
        lines.append(f"| {row} | " + " | ".join(text(cells.get(column, "not run")) for column in columns) + " |")
    return "\n".join(lines)


def text(cell) -> str:
    return str(cell).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def known() -> dict:
    """The cells of the page as it is: by table, row and column."""
    cells, columns = {}, []
    for line in PAGE.read_text().splitlines() if PAGE.exists() else []:
        parts = [part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not parts or set(parts[0]) == {"-"}:
            continue
        if parts[0] in ("operation", "client", "resolver", "name server"):
            columns = parts[1:]
        elif columns and len(parts) == len(columns) + 1:
            for column, cell in zip(columns, parts[1:]):
                cells[(parts[0], column)] = cell
        else:
            columns = []
    return cells


def remarks() -> str:
    """What differs and what the program does about it (remarks.tsv: product, operation, words)."""
    rows = [line.split("\t") for line in (HERE / "remarks.tsv").read_text().splitlines() if line and not line.startswith("#")]
    return "\n".join(f"- **{product}**, {operation}: {words}" for product, operation, words in rows)


def main() -> int:
    words = [word for word in sys.argv[1:] if word != "--check"]
    program, wanted = str(Path(words[0]).resolve()), words[1:]
    if unknown := [name for name in wanted if name not in PRODUCTS]:
        print(f"no such product: {', '.join(unknown)}; there are {', '.join(PRODUCTS)}", file=sys.stderr)
        return 2
    if "KUBECTL_ACME_WORLD_INSIDE" not in os.environ:
        return outside(program, wanted)
    return inside(program, wanted, "--check" in sys.argv)


def outside(program: str, wanted: list) -> int:
    """Installs what takes part, and runs the rest in a network of its own."""
    there = []
    for name, product in PRODUCTS.items():
        if wanted and name not in wanted:
            continue
        try:
            there.append(f"{name}={product.install() or product.version}")
        except NotHere as why:
            print(f"{name} is left out: {why}", file=sys.stderr)
    if not there:
        return 0 if "--check" in sys.argv else 1
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    alone = ["unshare", *user, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if "--check" in sys.argv and subprocess.run([*alone, "true"], capture_output=True).returncode:
        print("this machine makes no network of its own: left to machines that do", file=sys.stderr)
        return 0
    command = [*alone, sys.executable, __file__, *sys.argv[1:]]
    done = subprocess.run(command, env={**os.environ, "KUBECTL_ACME_WORLD_INSIDE": "\n".join(there)})
    return done.returncode


def inside(program: str, wanted: list, is_check: bool) -> int:
    """Runs everything on loopback, and writes the page, or compares it."""
    there = dict(line.split("=", 1) for line in os.environ["KUBECTL_ACME_WORLD_INSIDE"].splitlines())
    folder = Path(tempfile.mkdtemp(prefix="world-"))
    for command in (["ip", "link", "set", "lo", "up"], ["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], ["ip", "address", "add", f"{NOBODY}/32", "dev", "lo"]):
        subprocess.run(command, check=True)
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    subprocess.run(["mount", "--bind", str(folder / "resolv.conf"), os.path.realpath("/etc/resolv.conf")], check=True)
    (folder / "dns").mkdir()
    dns = NameServer(folder / "dns")
    servers, clients, resolvers, refusers = {}, {}, {}, {}
    try:
        for name in [name for name in SERVERS if name in there]:
            for host in NAMES:
                dns.address(f"{host}.{ZONE}", ADDRESS)
            try:
                servers[name] = visit(name, program, folder / name, dns)
            except NotHere as why:
                print(f"{name} is left out: {why}\n{(folder / name / 'server/log').read_text()[-2000:]}", file=sys.stderr)
        for name in [name for name in CLIENTS if name in there]:
            clients[name] = serve(program, name, folder / name.replace(" ", "-"))
        for name in [name for name in RESOLVERS if name in there]:
            times = 2 if is_check else 10
            issued, words = behind(name, program, folder / name.replace(" ", "-"), dns, times)
            all_issued = f"{issued} of {times}"
            resolvers[name] = Cell("ok", all_issued) if issued == times else Cell("fails", f"{all_issued}: {words}")
            print(f"behind {name}: {resolvers[name]}", flush=True)
        for name in [name for name in REFUSERS if name in there]:
            refusers[name] = refused(name, program, folder / f"{name}-update", dns)
            print(f"an update at {name}: {refusers[name]}", flush=True)
    finally:
        dns.process.kill()
    page, worse = compared(there, servers, clients, resolvers, refusers)
    if not is_check:
        PAGE.write_text(page)
    if worse or os.environ.get("KUBECTL_ACME_WORLD_KEEP"):
        print(f"what everybody wrote is in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    for line in worse:
        print(f"worse than before: {line}", file=sys.stderr)
    return 1 if worse else 0


def compared(there: dict, servers: dict, clients: dict, resolvers: dict, refusers: dict) -> tuple:
    """Returns the page with what is new and what is known, and a list of what got worse."""
    before, worse = known(), []

    def merged(row: str, column: str, new):
        old = before.get((row, column))
        if new is None:
            return old or "not run"
        was = RANKS.get((old or "").split(":")[0], -1)
        if RANKS[new.word] < was:
            worse.append(f"{row}, {column}: {new} (it was: {old})")
        return new

    columns = {name: f"{name} {SERVERS[name].version}" for name in SERVERS}
    at_servers = {
        operation: {columns[name]: merged(operation, columns[name], servers.get(name, {}).get(operation)) for name in SERVERS}
        for operation in OPERATIONS
    }
    def named(name: str) -> str:
        return f"{name} {there[name]}" if name in there else next((row for row, _ in before if row.startswith(f"{name} ")), name)

    at_ours = {}
    for client in CLIENTS:
        at_ours[named(client)] = {
            words: merged(named(client), words, clients.get(client, {}).get(words)) for words in ("by default", "`--strict`")}
    both, update = "wildcard and base name, dns-01", "an update (RFC 2136)"
    behind_them = {named(name): {both: merged(named(name), both, resolvers.get(name))} for name in RESOLVERS}
    at_refusers = {named(name): {update: merged(named(name), update, refusers.get(name))} for name in REFUSERS}
    page = f"""# What others make of it

ACME servers and clients of others beside this program, each as it is published. `just world` installs them, runs every operation, and
writes this page; nobody edits it. A cell that gets worse fails that recipe.

*ok*: it does what it should, and the certificate leads to the server's root. *told*: the server does not have or allow it, and the
program says so with the right exit code. *fails*: anything else, with its last words.

## The program at servers of others

{table("operation", list(columns.values()), at_servers)}

"A failure that is mended" is a CA that finds nobody at the name's address: the order has to end with exit code 4 within 30 s, and the
same command has to issue once the address is right.

## Clients of others at `kubectl-acme ca`

Each orders one certificate for two names by HTTP-01. gufo-acme, autocert and Caddy know one name for a certificate; autocert and
rustls-acme prove it by TLS-ALPN-01. `--strict` throws dice over nonces and the order of challenges: each orders thrice there, and
"2 of 3" is a client that fails over one throw. A library is behind a few lines of ours (`tests/world/programs`).

{table("client", ["by default", "`--strict`"], at_ours)}

## Behind resolvers of others

A wildcard and its base name share the name of their record. They are ordered, and renewed nine times, six seconds apart, by RFC 2136
and BIND, at a `kubectl-acme ca` that asks through the resolver and keeps no authorization.

{table("resolver", [both], behind_them)}

## At name servers that take no updates

The CA sees no order: the command ends with exit code 9, and names the server and its answer.

{table("name server", [update], at_refusers)}

## What differs, and what the program does about it

{remarks()}
"""
    return page, worse


if __name__ == "__main__":
    sys.exit(main())
