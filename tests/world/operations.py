"""What our program does at a server of others: operations, each with what came of it."""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from servers import Server
from tools import ADDRESS, DENIED, NOBODY, ZONE

TIMEOUT = 60


@dataclass
class Cell:
    """What came of an operation: `ok`, `told` (the server has or allows no such thing, and the program says so) or `fails`, and more."""

    word: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.word}: {self.more}" if self.more else self.word


class Visit:
    """One server, and the store that all operations there share."""

    def __init__(self, program: str, server: Server, folder: Path, dns):
        self.program, self.server, self.folder, self.dns = program, server, folder, dns

    def run(self, *words: str, timeout: int = TIMEOUT + 30, **environment) -> subprocess.CompletedProcess:
        """Runs the program on the store."""
        everything = {**os.environ, "HOME": str(self.folder), **environment}
        command = [self.program, "--local=" + str(self.folder / "state"), *words]
        try:
            return subprocess.run(command, cwd=self.folder, env=everything, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as late:
            words = (late.stderr or b"").decode(errors="replace")
            return subprocess.CompletedProcess(command, 900, "", f"error: it had to be ended after {timeout} s\n{words}")

    def order(self, *names: str, more=(), timeout: int = TIMEOUT, **environment) -> subprocess.CompletedProcess:
        """Orders one certificate for these names."""
        given = [word for name in names for word in ("--domain", name)]
        return self.run(
            "order", *given, "--server", self.server.directory, "--ca-bundle", str(self.server.root), "--email", f"admin@{ZONE}",
            "--http01-listen", f"{ADDRESS}:80", "--tls-alpn-listen", f"{ADDRESS}:443", "--out", "out", "--timeout", f"{timeout}s", *more,
            **environment)

    def stored(self, *names: str) -> str:
        """Returns the serial number of the stored certificate for exactly these names; empty if there is none that leads to a root."""
        for leaf in self.folder.glob("out/**/tls.crt"):
            shown = subprocess.run(
                ["openssl", "x509", "-in", str(leaf), "-noout", "-serial", "-ext", "subjectAltName"], capture_output=True, text=True).stdout
            # An IP address is written without a prefix by the caller.
            found = set(re.findall(r"(?:DNS|IP Address):([^,\s]+)", shown))
            if found == set(names):
                check = ["openssl", "verify", "-partial_chain", "-untrusted", str(leaf), "-CAfile", str(self.server.root), str(leaf)]
                trusted = subprocess.run(check, capture_output=True, text=True)
                return re.search(r"serial=(\w+)", shown).group(1) if trusted.returncode == 0 else ""
        return ""

    def issues(self, *names: str, more=(), **environment) -> Cell:
        """Orders, and looks at what is stored."""
        done = self.order(*names, more=more, **environment)
        if done.returncode == 0 and self.stored(*names):
            return Cell("ok")
        return fails(done)


def last_words(done: subprocess.CompletedProcess) -> str:
    """The error of a run, short enough for a cell."""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return errors[-1].removeprefix("error: ") if errors else "no error is printed"


def fails(done: subprocess.CompletedProcess) -> Cell:
    return Cell("fails", f"exit {done.returncode}: {last_words(done)}")


def told(done: subprocess.CompletedProcess, code: int, *words: str) -> Cell:
    """A refusal that is passed on as it should be: with this exit code, and with one of these words."""
    said = done.stderr.lower()
    if done.returncode == code and (not words or any(word in said for word in words)):
        return Cell("told", f"exit {code}")
    return fails(done)


def one_name(visit: Visit) -> Cell:
    return visit.issues(f"one.{ZONE}")


def same_again(visit: Visit) -> Cell:
    before = visit.stored(f"one.{ZONE}")
    done = visit.order(f"one.{ZONE}")
    return Cell("ok") if done.returncode == 0 and before and visit.stored(f"one.{ZONE}") == before else fails(done)


def three_names(visit: Visit) -> Cell:
    return visit.issues(*(f"{name}.{ZONE}" for name in ("a", "b", "c")))


def wildcard(visit: Visit) -> Cell:
    base = f"wild.{ZONE}"
    return visit.issues(base, f"*.{base}", more=("--dns01", "rfc2136"), **visit.dns.credentials())


def address(visit: Visit) -> Cell:
    done = visit.order(ADDRESS)
    if done.returncode == 0 and visit.stored(ADDRESS):
        return Cell("ok")
    return told(done, 2, "not allowed")


def tls_alpn(visit: Visit) -> Cell:
    cell = visit.issues(f"alpn.{ZONE}", more=("--challenge-type", "tls-alpn-01"))
    is_lacking = cell.more.startswith("exit 9") and "the CA offers" in cell.more
    return Cell("told", "exit 9: the server has none") if is_lacking else cell


def renewal(visit: Visit) -> Cell:
    before = visit.stored(f"one.{ZONE}")
    name = certificate(visit, f"one.{ZONE}")
    done = visit.run(
        "certificate", "renew", name, "--http01-listen", f"{ADDRESS}:80", "--out", "out", "--timeout", f"{TIMEOUT}s")
    after = visit.stored(f"one.{ZONE}")
    return Cell("ok") if done.returncode == 0 and after and after != before else fails(done)


def renewal_window(visit: Visit) -> Cell:
    done = visit.run("certificate", "check", certificate(visit, f"one.{ZONE}"), "-o", "json")
    try:
        text = json.dumps(json.loads(done.stdout))
    except ValueError:
        return fails(done)
    if re.search(r'"(start|end)": ?"2', text):
        return Cell("ok")
    return Cell("told", "the server has none") if done.returncode in (0, 10, 11) else fails(done)


def revocation(visit: Visit) -> Cell:
    name = certificate(visit, f"a.{ZONE}")
    done = visit.run("certificate", "revoke", name, "--yes")
    if done.returncode != 0:
        return told(done, 7, "not offered", "not offer", "unauthorized")
    again = visit.run("certificate", "revoke", name, "--yes")
    knows = "revoked" in visit.run("certificate", "check", name).stdout.lower()
    if again.returncode in (0, 1) and "revoked" in (again.stdout + again.stderr).lower() and knows:
        return Cell("ok")
    return fails(again)


def account(visit: Visit) -> Cell:
    issuer = issuer_of(visit, f"one.{ZONE}")
    for words in (("show", issuer), ("update", issuer, "--email", f"other@{ZONE}")):
        done = visit.run("account", *words)
        if done.returncode != 0:
            return told(done, 6 if " 500 " in last_words(done) else 7)
    return Cell("ok")


def rollover(visit: Visit) -> Cell:
    """A roll-over, whatever the server makes of it, stops no order."""
    done = visit.run("account", "rollover", issuer_of(visit, f"one.{ZONE}"))
    after = visit.issues(f"after.{ZONE}")
    if after.word != "ok":
        return Cell("fails", f"an order after it: {after.more}")
    return Cell("ok") if done.returncode == 0 else told(done, done.returncode if done.returncode in (2, 6, 7) else 7)


def failure(visit: Visit) -> Cell:
    """The CA looks where nobody listens: exit 4 with its words within 30 s; then the address is mended, and the same command issues."""
    name = f"broken.{ZONE}"
    visit.dns.address(name, NOBODY)
    done, seconds = timed(lambda: visit.order(name, more=("--http01-resolve", f"{name}={ADDRESS}:80")))
    if done.returncode != 4 or seconds > 30:
        return Cell("fails", f"exit {done.returncode} after {seconds:.0f} s: {last_words(done)}")
    visit.dns.address(name, ADDRESS)
    after = visit.issues(name, more=("--http01-resolve", f"{name}={ADDRESS}:80"))
    return Cell("ok", "exit 4, then issued") if after.word == "ok" else Cell("fails", f"once it is mended: {after.more}")


def policy(visit: Visit) -> Cell:
    done = visit.order(DENIED)
    if done.returncode == 0:
        return Cell("told", "the server has no such policy")
    return Cell("ok", f"exit {done.returncode}") if done.returncode in (2, 6) else fails(done)


def closed_account(visit: Visit) -> Cell:
    """A deactivated account is named by the next order; a CA that keeps it valid is said to."""
    done = visit.run("account", "deactivate", issuer_of(visit, f"one.{ZONE}"), "--yes")
    if done.returncode != 0:
        return told(done, 7)
    after = visit.order(f"late.{ZONE}", timeout=20)
    if after.returncode == 0:
        return Cell("told", "the server gives the same key another account")
    return Cell("ok", "the next order exits 7") if after.returncode == 7 else fails(after)


OPERATIONS = {
    "one name, http-01": one_name,
    "the same again": same_again,
    "three names": three_names,
    "wildcard and base name, dns-01": wildcard,
    "IP address": address,
    "tls-alpn-01": tls_alpn,
    "renewal": renewal,
    "renewal window (RFC 9773)": renewal_window,
    "revocation, and again": revocation,
    "account show, update": account,
    "account roll-over, then an order": rollover,
    "a failure that is mended": failure,
    "a name that policy denies": policy,
    "account deactivate, then an order": closed_account,
}


def timed(deed):
    """What a deed returns, and how many seconds it took."""
    import time

    begun = time.monotonic()
    return deed(), time.monotonic() - begun


def certificate(visit: Visit, name: str) -> str:
    """The name of the Certificate for one name."""
    return found(visit, "certificates", lambda item: name in item["spec"].get("dnsNames", []))


def issuer_of(visit: Visit, name: str) -> str:
    """The name of the Issuer of the Certificate for one name."""
    listed = json.loads(visit.run("get", "certificates", "-o", "json").stdout or '{"items": []}')
    for item in listed["items"]:
        if name in item["spec"].get("dnsNames", []):
            return item["spec"]["issuerRef"]["name"]
    return "none"


def found(visit: Visit, plural: str, fits) -> str:
    listed = json.loads(visit.run("get", plural, "-o", "json").stdout or '{"items": []}')
    return next((item["metadata"]["name"] for item in listed["items"] if fits(item)), "none")
