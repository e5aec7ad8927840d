"""Name servers of others that take no dynamic updates (RFC 2136): each refuses in its own way, before an order is spent."""

import os
import re
import subprocess
import time
from pathlib import Path

from operations import Cell
from resolvers import PLACE, RESOLVERS
from servers import begin
from tools import ZONE, debian, until_open


class Nsd:
    """NSD of Debian, primary of the zone."""

    def install(self) -> str:
        return debian("nsd", "nsd")

    def start(self, folder: Path) -> subprocess.Popen:
        (folder / "zone").write_text(f"$ORIGIN {ZONE}.\n$TTL 0\n@ IN SOA ns hostmaster 1 60 60 60 0\n@ IN NS ns\nns IN A {PLACE}\n")
        (folder / "nsd.conf").write_text(
            f'server:\n ip-address: {PLACE}\n username: ""\n pidfile: "{folder}/pid"\n zonesdir: "{folder}"\n database: ""\n'
            f' xfrdfile: "{folder}/xfrd"\n zonelistfile: "{folder}/zones"\nremote-control:\n control-enable: no\n'
            f'zone:\n name: "{ZONE}"\n zonefile: "zone"\n')
        return begin(folder, ["/usr/sbin/nsd", "-d", "-c", str(folder / "nsd.conf")])


REFUSERS = {"NSD": Nsd(), "unbound": RESOLVERS["unbound"], "dnsmasq": RESOLVERS["dnsmasq"]}


def refused(name: str, program: str, folder: Path, dns) -> Cell:
    """Orders by updates of such a server: the end has to name the server and what it answers, with exit code 9 and no newOrder."""
    folder.mkdir()
    server, root = REFUSERS[name].start(folder), folder / "root.pem"
    (folder / "ca").mkdir()
    ca = begin(folder / "ca", [program, "ca", "--listen", "127.0.0.1:14000", "--root", str(root)])
    try:
        until_open(PLACE, 53, server)
        until_open("127.0.0.1", 14000, ca)
        while not root.exists():
            time.sleep(0.05)
        host = f"wild.{ZONE}"
        command = [
            program, f"--local={folder}/state", "order", "--domain", host, "--server", "https://127.0.0.1:14000/directory", "--ca-bundle", str(root),
            "--dns01", "rfc2136", "--dns", "127.0.0.1:53", "--timeout", "60s"]
        environment = {**os.environ, "HOME": str(folder), **dns.credentials(), "RFC2136_NAMESERVER": f"{PLACE}:53"}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    finally:
        ca.terminate()
        ca.wait(10)
        server.kill()
        server.wait()
    (folder / "said").write_text(done.stdout + done.stderr)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    last = errors[-1].removeprefix("error: ") if errors else f"exit {done.returncode}"
    code = re.search(r"NOTIMP|passes updates on", last)
    is_named = any(PLACE in line for line in done.stderr.splitlines() if line.startswith("hint: "))
    has_ordered = '"newOrder"' in (folder / "ca/log").read_text()
    if done.returncode != 9 or code is None or not is_named or has_ordered:
        return Cell("fails", f"exit {done.returncode}{', an order was made' if has_ordered else ''}: {last[:200]}")
    return Cell("ok", f"exit 9, no order: {code.group()}")
