"""The network of a situation: the machine and the world as two network namespaces, name servers, and what listens."""

import glob
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

WORLD, ROOT, TOP, RESOLVER, CA = "11.0.0.1", "11.0.0.4", "11.0.0.5", "11.0.0.53", "11.0.0.99"
# Where servers of the world ask for the answers to challenges.
ANSWERS = "11.0.0.10:8099"
PATIENCE = 60
HERE = Path(__file__).resolve().parent


class Unmade(Exception):
    """Why a situation could not be made."""


def run(command: list, **more) -> str:
    """Runs a command to its end and returns what it prints.

    Raises Unmade with its last words if it fails.
    """
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise Unmade(f"{' '.join(map(str, command[:4]))}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def until(what: str, holds, seconds: float = PATIENCE):
    """Waits until a look returns something true, and returns it.

    Raises Unmade if the time is over.
    """
    end = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > end:
            raise Unmade(f"in vain waited {seconds:.0f} s for {what}")
        time.sleep(0.2)


def processes() -> set:
    """Numbers of all processes of this runner and of what it has started."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


class Network:
    """Both namespaces. This process is in the machine's; a process that sleeps keeps the world's."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "resolv.conf").write_text(f"nameserver {RESOLVER}\n")
        (folder / "hosts").write_text("127.0.0.1 localhost\n")
        (folder / "nsswitch.conf").write_text("hosts: files dns\n")
        for name in ("resolv.conf", "hosts", "nsswitch.conf"):
            run(["mount", "--bind", folder / name, f"/etc/{name}"])
        # A directory of its own for tools that keep sockets and states there.
        self.keeper = subprocess.Popen(["unshare", "--net", "--mount", "sleep", "infinity"])
        (folder / "empty").write_text("127.0.0.1 localhost\n")
        until("the world", lambda: os.readlink(f"/proc/{self.keeper.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
        run(["ip", "link", "set", "lo", "up"])
        run(["ip", "link", "add", "machine", "type", "veth", "peer", "name", "world"])
        run(["ip", "link", "set", "world", "netns", self.keeper.pid])
        run(["ip", "link", "set", "machine", "up"])
        self.inside(["ip", "link", "set", "lo", "up"])
        self.inside(["ip", "link", "set", "world", "up"])
        self.inside(["mount", "--bind", folder / "empty", "/etc/hosts"])
        for address in ("11.0.0.10/8", "2a0e:1::10/64"):
            run(["ip", "addr", "add", address, "dev", "machine", "nodad"])
        for address in (f"{WORLD}/8", f"{ROOT}/32", f"{TOP}/32", f"{RESOLVER}/32", f"{CA}/32", "2a0e:1::1/64"):
            self.inside(["ip", "addr", "add", address, "dev", "world", "nodad"])
        run(["ip", "route", "add", "default", "via", WORLD])
        run(["ip", "-6", "route", "add", "default", "via", "2a0e:1::1"])
        self.inside(["ip", "route", "add", "default", "via", "11.0.0.10"])
        # What nobody has is dropped in silence: the router of the world answers for every neighbour.
        self.inside(["sysctl", "-qw", "net.ipv4.conf.world.proxy_arp=1", "net.ipv4.conf.all.proxy_arp=1", "net.ipv4.ip_forward=1"])
        self.inside(["ip", "route", "add", "blackhole", "11.0.0.0/16"])
        self.inside(["ip", "route", "add", "11.0.0.10/32", "dev", "world"])
        for metric in ("net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.world.rp_filter=0"):
            self.inside(["sysctl", "-qw", metric])

    def prefix(self) -> list:
        return ["nsenter", "--target", str(self.keeper.pid), "--net", "--mount", "--wd=" + os.getcwd()]

    def inside(self, command: list) -> str:
        """Runs a command in the world."""
        return run([*self.prefix(), *command])

    def address(self, address: str, is_machine: bool) -> list:
        """Adds an address; returns the command that takes it away."""
        length, device = ("128" if ":" in address else "32"), ("machine" if is_machine else "world")
        words = ["ip", "addr", "add", f"{address}/{length}", "dev", device, *(["nodad"] if ":" in address else [])]
        run(words) if is_machine else self.inside(words)
        if is_machine and ":" not in address:
            self.inside(["ip", "route", "replace", f"{address}/32", "dev", "world"])
        away = ["ip", "addr", "del", f"{address}/{length}", "dev", device]
        return away if is_machine else [*self.prefix(), *away]


class Stage:
    """What one situation has of the network; all of it goes with `leave`."""

    def __init__(self, network: Network, folder: Path, situation: dict):
        self.network, self.folder, self.situation = network, folder, situation
        self.processes, self.undo, self.before = [], [], processes()
        (network.folder / "hosts").write_text("127.0.0.1 localhost\n" + (situation.get("hosts") or ""))

    def begin(self, name: str, command: list, is_world: bool, **environment) -> subprocess.Popen:
        """Starts a process whose words go to a log."""
        words = [*(self.network.prefix() if is_world else []), *map(str, command)]
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, env={**os.environ, **environment})
        self.processes.append(process)
        return process

    def leave(self) -> None:
        for process in reversed(self.processes):
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
            process.wait()
        # Daemons that what it ran has left.
        for process in processes() - self.before:
            try:
                os.kill(process, 9)
            except ProcessLookupError:
                pass
        for command in reversed(self.undo):
            subprocess.run(command, capture_output=True)

    def addresses(self) -> None:
        wanted = {}
        situation = self.situation
        for address in situation.get("addresses") or []:
            wanted[address] = False
        for server in situation.get("servers") or []:
            if server.get("where") != "machine":
                wanted[host(server["at"])] = False
        for zone in (situation.get("dns") or {}).values():
            for address in zone.get("at") or ["11.0.1.1"]:
                wanted[address] = False
        for address in situation.get("machine_addresses") or []:
            wanted[address] = True
        for address, is_machine in wanted.items():
            if address not in (WORLD, ROOT, TOP, RESOLVER, CA, "11.0.0.10", "2a0e:1::10", "127.0.0.1", "0.0.0.0", "::", "::1"):
                self.undo.append(self.network.address(address, is_machine))

    def listen(self) -> None:
        """Starts what listens, real programs and answers of ours, and name servers that do nothing but refuse."""
        plain = {True: [], False: []}
        for number, server in enumerate(self.situation.get("servers") or []):
            is_world = server.get("where") != "machine"
            if "program" in server:
                self.program(f"server-{number}", server, is_world)
            else:
                plain[is_world].append(server)
        for is_world, servers in plain.items():
            name = "world" if is_world else "machine"
            servers = servers + ([] if is_world else [{"at": ANSWERS, "answers": self.situation["answers"]}])
            spec = self.folder / f"{name}.json"
            spec.write_text(json.dumps({"servers": servers, "answers": ANSWERS, "ready": str(self.folder / f"{name}.ready")}))
            process = self.begin(name, [sys.executable, HERE / "serve.py", spec], is_world)
            ready = self.folder / f"{name}.ready"
            until(f"the servers ({name})", lambda: ready.exists() or process.poll() is not None, 20)
            if not ready.exists():
                raise Unmade(f"servers of {name}: {(self.folder / f'{name}.log').read_text()[-400:]}")

    def program(self, name: str, server: dict, is_world: bool) -> None:
        folder = self.folder / name
        (folder / "www").mkdir(parents=True)
        os.chmod(folder, 0o755)
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "90", "-subj", "/CN=site",
             "-keyout", folder / "key.pem", "-out", folder / "cert.pem"])
        (folder / "both.pem").write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
        text = server["config"].replace("${DIR}", str(folder))
        kind, config = server["program"], folder / "config"
        if kind == "nginx":
            config.write_text(f"daemon off; user root; pid {folder}/pid; error_log {folder}/error.log; events {{}}\nhttp {{ access_log off;\n{text}\n}}\n")
            command = ["nginx", "-c", config, "-p", folder]
        elif kind == "apache2":
            modules = ("mpm_event", "authz_core", "authz_host", "rewrite", "proxy", "proxy_http", "ssl", "alias", "headers", "dir", "auth_basic", "authn_core",
                       "authn_file", "authz_user", "setenvif")
            lines = [f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in modules]
            lines += [f"ServerRoot {folder}", f"PidFile {folder}/pid", f"ErrorLog {folder}/error.log", "ServerName localhost", f"Listen {server['at']}"]
            config.write_text("\n".join(lines) + "\n" + text + "\n")
            command = ["apache2", "-X", "-f", config]
        elif kind == "haproxy":
            config.write_text(text + "\n")
            command = ["haproxy", "-db", "-f", config]
        elif kind == "caddy":
            config.write_text(text + "\n")
            command = ["caddy", "run", "--adapter", "caddyfile", "--config", config]
        else:
            raise Unmade(f"there is no program {kind}")
        process = self.begin(name, command, is_world, HOME=str(folder), XDG_DATA_HOME=str(folder))
        self.until_listening(server["at"], process, is_world, name)

    def until_listening(self, at: str, process, is_world: bool, name: str) -> None:
        port = at.rsplit(":", 1)[1]
        look = [*(self.network.prefix() if is_world else []), "ss", "-ltnH", f"sport = :{port}"]

        def listens():
            if process.poll() is not None:
                raise Unmade(f"{name} ended: {(self.folder / f'{name}.log').read_text()[-400:]}")
            wanted = (at, f"*:{port}", f"0.0.0.0:{port}", f"[::]:{port}")
            return any(word in wanted for line in run(look).splitlines() for word in line.split())
        until(f"{name} at {at}", listens, 20)


def host(at: str) -> str:
    return at.rsplit(":", 1)[0].strip("[]")


def certificate(folder: Path, name: str, names: list, days: int, signer: tuple | None) -> tuple:
    """Makes a key and a certificate for names; self-signed if nobody signs. Days below 0: expired so many days ago."""
    key, pem = folder / f"{name}.key", folder / f"{name}.pem"
    alt = ",".join(f"{'IP' if re.fullmatch('[0-9.]+', one) or ':' in one else 'DNS'}:{one}" for one in names)
    signed = ["-CA", signer[0], "-CAkey", signer[1]] if signer else []
    then = []
    if days <= 0:
        # openssl 3.0 makes none that is over: it is made 90 days before its end.
        library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)
        if library is None:
            raise Unmade("libfaketime is not installed")
        then, days = ["env", f"LD_PRELOAD={library}", f"FAKETIME=-{90 - days}d"], 90
    dates = ["-days", str(days)]
    run([*then, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", *dates, "-subj", f"/CN={names[0]}",
         "-addext", f"subjectAltName={alt}", *signed, "-keyout", key, "-out", pem])
    return pem, key
