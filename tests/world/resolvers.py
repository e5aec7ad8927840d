"""Resolvers of others between a CA and the zone: each keeps answers in its own way."""

import os
import subprocess
import time
from pathlib import Path

from servers import begin
from tools import CACHE, ZONE, debian, go_install, until_open

# Where each resolver listens, on port 53.
PLACE = "127.0.0.2"
# Seconds after which no resolver has the records of an order any more: CoreDNS and Knot Resolver keep what has a TTL of 0 for five.
KEPT = 6
# The server of the zone.
ZONE_SERVER = "127.0.0.1"


class CoreDns:
    """CoreDNS as kubeadm configures it, in so far as names outside the cluster are concerned."""

    version = "1.12.4"

    def install(self) -> None:
        go_install("github.com/coredns/coredns", self.version)

    def start(self, folder: Path) -> subprocess.Popen:
        (folder / "Corefile").write_text(f".:53 {{\n bind {PLACE}\n forward . {ZONE_SERVER}:53\n cache 30\n}}\n")
        return begin(folder, [str(CACHE / "bin/coredns"), "-conf", "Corefile"])


class KnotResolver:
    """Knot Resolver of Debian, which keeps every answer for five seconds at least."""

    def install(self) -> str:
        return debian("kresd", "knot-resolver")

    def start(self, folder: Path) -> subprocess.Popen:
        (folder / "kresd.conf").write_text(
            f"net.listen('{PLACE}', 53, {{ kind = 'dns' }})\ntrust_anchors.remove('.')\ncache.size = 4 * MB\n"
            f"policy.add(policy.all(policy.FORWARD('{ZONE_SERVER}')))\n")
        (folder / "cache").mkdir()
        return begin(folder, ["/usr/sbin/kresd", "-n", "-c", str(folder / "kresd.conf"), str(folder / "cache")])


class Unbound:
    """unbound of Debian."""

    def install(self) -> str:
        return debian("unbound", "unbound")

    def start(self, folder: Path) -> subprocess.Popen:
        (folder / "unbound.conf").write_text(
            f'server:\n interface: {PLACE}\n do-daemonize: no\n chroot: ""\n username: ""\n pidfile: "{folder}/pid"\n directory: "{folder}"\n'
            f' module-config: "iterator"\n local-zone: "test." nodefault\n do-not-query-localhost: no\n'
            f'forward-zone:\n name: "."\n forward-addr: {ZONE_SERVER}\nremote-control:\n control-enable: no\n')
        return begin(folder, ["/usr/sbin/unbound", "-d", "-c", str(folder / "unbound.conf")])


class Dnsmasq:
    """dnsmasq of Debian."""

    def install(self) -> str:
        return debian("dnsmasq", "dnsmasq-base")

    def start(self, folder: Path) -> subprocess.Popen:
        return begin(
            folder,
            ["/usr/sbin/dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", f"--server={ZONE_SERVER}", f"--listen-address={PLACE}",
             "--bind-interfaces", "--user=root", f"--pid-file={folder}/pid", "--conf-file=/dev/null"])


RESOLVERS = {"CoreDNS": CoreDns(), "Knot Resolver": KnotResolver(), "unbound": Unbound(), "dnsmasq": Dnsmasq()}


def behind(name: str, program: str, folder: Path, dns, times: int) -> tuple:
    """Orders a wildcard with its base name so many times, renewals after the first, behind a resolver that serves our CA and the
    program. Returns how many were issued, and the last words of one that was not."""
    folder.mkdir()
    resolver = RESOLVERS[name].start(folder)
    root = folder / "root.pem"
    command = [program, "ca", "--listen", "127.0.0.1:14000", "--root", str(root), "--dns", f"{PLACE}:53", "--reuse", "never"]
    ca = begin(folder, command)
    issued, words = 0, ""
    try:
        until_open(PLACE, 53, resolver)
        until_open("127.0.0.1", 14000, ca)
        base, common = f"wild.{ZONE}", ["--dns", f"{PLACE}:53", "--timeout", "120s"]
        order = [
            "order", "--domain", base, "--domain", f"*.{base}", "--server", "https://127.0.0.1:14000/directory", "--ca-bundle", str(root),
            "--dns01", "rfc2136", *common]
        renew = ["certificate", "renew", base.replace(".", "-"), *common]
        for number in range(times):
            if number:
                time.sleep(KEPT)
            with open(folder / f"said-{number}", "wb") as said:
                words_of_run = renew if number else order
                done = begin_and_wait([program, f"--local={folder}/state", *words_of_run], folder, dns, said)
            issued += done == 0
            if done != 0:
                errors = [line for line in (folder / f"said-{number}").read_text().splitlines() if line.startswith("error: ")]
                words = errors[-1][:300] if errors else f"exit {done}"
    finally:
        for process in (ca, resolver):
            process.kill()
            process.wait()
    return issued, words


def begin_and_wait(command: list, folder: Path, dns, said) -> int:
    """Runs a command to its end with the credentials of the zone."""
    environment = {**os.environ, "HOME": str(folder), **dns.credentials()}
    return subprocess.run(command, cwd=folder, env=environment, stdout=said, stderr=said, timeout=200).returncode
