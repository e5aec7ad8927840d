"""Runs clients of ACME against `kubectl-acme ca --behave`, and writes what came of it; benches/conformance.sh calls it."""

import base64
import concurrent.futures
import datetime
import json
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
from pathlib import Path

import stubs

PROGRAM = os.environ["PROGRAM"]
ACMEZ = os.environ.get("ACMEZ", "")
LIMIT = int(os.environ.get("LIMIT", "60"))
SIDE_BY_SIDE = int(os.environ.get("SIDE_BY_SIDE", "4"))
ONLY = os.environ.get("ROW", "")
RESUME = os.environ.get("RESUME", "")
HERE = Path(__file__).parent
MEMORY = 1536 << 20
TOO_MUCH = "too much memory"
CLIENTS = os.environ.get("CLIENTS", "ours certbot lego acmez").split()
CRASH = re.compile(r"^panic:|^fatal error:|panicked at", re.MULTILINE)
EXCEPTION = re.compile(r"^(Traceback|(Attribute|Type|Key|Value|Index|Assertion|Unicode\w*|Recursion)Error\b)", re.MULTILINE)
SORTS = ("newAccount", "newOrder", "challenge", "finalize")
FIXED_ROWS = {"web": 53, "dns": 54}
ELSEWHERE = {
    "web:loop": "every name leads to a web server that redirects each page to itself",
    "web:endless": "every name leads to a web server that never ends a page",
    "web:silent": "every name leads to a web server that says nothing",
    "dns:nxdomain": "the name server says that no name exists",
    "dns:servfail": "the name server fails",
    "dns:loop": "every name is an alias of itself",
    "dns:silent": "the name server says nothing",
}

taken, taking = set(), threading.Lock()


def free_port():
    with taking:
        while True:
            with socket.socket() as found:
                found.bind(("127.0.0.1", 0))
                port = found.getsockname()[1]
            if port not in taken:
                taken.add(port)
                return port


class Line:
    """A line of rows.txt."""

    def __init__(self, text):
        self.text = text
        text, _, self.only_ours = text.partition(" ours:")
        self.name, self.kind, *words = text.split()
        words = dict(word.split("=") for word in words)
        self.names = ["a.example.com", "b.example.com"] if words.pop("names", "") else ["www.example.com"]
        self.limit = int(words.pop("limit", LIMIT))
        self.profile, self.chain = words.pop("profile", ""), words.pop("chain", "")
        self.behaviours = [] if ":" in self.name or self.name == "control" else self.name.split(",")
        finalize = 1 if self.kind == "issue" else 0
        self.most = {"newAccount": 1, "newOrder": 1, "challenge": len(self.names), "finalize": finalize}
        self.most.update((sort, int(most)) for sort, most in words.items())


class Bench:
    """A folder with a CA at work."""

    def __init__(self, line):
        self.line, self.folder, self.port = line, Path(tempfile.mkdtemp()), free_port()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TMPDIR": str(self.folder)}
        self.said = self.folder / "ca.said"
        command = [PROGRAM, "ca", "--listen", "127.0.0.1:0", "--root", "root.pem", "--http01-resolve", f"*=127.0.0.1:{self.port}"]
        for behaviour in line.behaviours:
            command += ["--behave", behaviour]
        with self.said.open("w") as said:
            self.ca = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=said, stderr=said)
        deadline = time.monotonic() + 120
        while "everything is kept in memory" not in self.said.read_text():
            if self.ca.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the CA did not start: {self.said.read_text()}")
            time.sleep(0.05)
        self.directory = re.search(r"directory: (\S+)", self.said.read_text()).group(1)

    def end(self):
        """Ends the CA; what it was asked, by sorts."""
        self.ca.send_signal(signal.SIGINT)
        try:
            self.ca.wait(60)
        except subprocess.TimeoutExpired:
            self.ca.kill()
        asked = re.search(r"requests: \{(.*?)\}", self.said.read_text())
        return {what: int(count) for what, count in re.findall(r'"(\w+)": (\d+)', asked.group(1))} if asked else None


def ours(bench):
    line, folder = bench.line, bench.folder
    issuer = {
        "server": bench.directory,
        "caBundle": base64.b64encode((folder / "root.pem").read_bytes()).decode(),
        "privateKeySecretRef": {"name": "acme-account"},
        "solvers": [{"http01": {"ingress": {}}}],
    }
    if line.profile:
        issuer["profile"] = line.profile
    if line.chain:
        issuer["preferredChain"] = "a root that nobody has"
    certificate = {
        "secretName": "web-tls",
        "dnsNames": line.names,
        "privateKey": {"algorithm": "ECDSA"},
        "issuerRef": {"name": "acme"},
    }
    kinds = [("Issuer", "acme", {"acme": issuer}), ("Certificate", "web", certificate)]
    objects = [
        {"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec} for kind, name, spec in kinds
    ]
    (folder / "site.yaml").write_text("\n---\n".join(map(json.dumps, objects)))
    look, _, what = line.name.partition(":")
    lead = ["--http01-resolve", f"*=127.0.0.1:{bench.port}"]
    if look == "web":
        lead = ["--http01-resolve", f"*=127.0.0.1:{stubs.web(what)}"]
    elif look == "dns":
        lead = ["--dns", f"127.0.0.1:{stubs.dns(what)}"]
    command = [PROGRAM, "order", "--local=state", "-f", "site.yaml", "--out", "out", "--timeout", f"{line.limit}s"]
    return command + ["--http01-listen", f"127.0.0.1:{bench.port}"] + lead, {}


def certbot(bench):
    command = ["certbot", "certonly", "--standalone", "--http-01-address", "127.0.0.1", "--http-01-port", str(bench.port)]
    command += ["--non-interactive", "--agree-tos", "--register-unsafely-without-email", "--key-type", "ecdsa"]
    command += ["--server", bench.directory, "--config-dir", "config", "--work-dir", "work", "--logs-dir", "logs"]
    if bench.line.chain:
        command += ["--preferred-chain", "a root that nobody has"]
    for name in bench.line.names:
        command += ["-d", name]
    return command, {"REQUESTS_CA_BUNDLE": str(bench.folder / "root.pem")}


def lego(bench):
    command = ["lego", "--server", bench.directory, "--accept-tos", "--email", "me@conformance.test", "--key-type", "ec256"]
    command += ["--path", ".", "--http", "--http.port", f"127.0.0.1:{bench.port}"]
    for name in bench.line.names:
        command += ["--domains", name]
    command += ["run"]
    if bench.line.chain:
        command += ["--preferred-chain", "a root that nobody has"]
    return command, {"LEGO_CA_CERTIFICATES": str(bench.folder / "root.pem")}


def acmez(bench):
    command = [ACMEZ, bench.directory, str(bench.port), ".", *bench.line.names]
    return command, {"SSL_CERT_FILE": str(bench.folder / "root.pem"), "PROFILE": bench.line.profile}


COMMANDS = {"ours": ours, "certbot": certbot, "lego": lego, "acmez": acmez}
# Where a certificate is stored, and its key.
STORED = {
    "ours": ("out/web-tls/tls.crt", "out/web-tls/tls.key"),
    "certbot": ("config/live/*/fullchain.pem", "config/live/*/privkey.pem"),
    "lego": ("certificates/*.com.crt", "certificates/*.com.key"),
    "acmez": ("chain.pem", "key.pem"),
}


def openssl(*words, text=None):
    return subprocess.run(["openssl", *words], input=text, capture_output=True, check=False).stdout.decode(errors="replace")


def stored_fault(client, bench):
    """None where nothing is stored, else what is wrong with it: nothing, its form, or the certificate itself."""
    chain, key = (next(iter(sorted(bench.folder.glob(path))), None) for path in STORED[client])
    if chain is None:
        return None
    chain = chain.read_bytes()
    first = re.search(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", chain, re.DOTALL)
    if not first:
        return "wrong", "stored what is no certificate"
    leaf = first.group(0).replace(b"\r\n", b"\n")
    if key is None or openssl("x509", "-pubkey", "-noout", text=leaf) != openssl("pkey", "-pubout", "-in", str(key)):
        return "wrong", "stored a certificate of another key"
    names = set(re.findall(r"DNS:([^,\s]+)", openssl("x509", "-noout", "-ext", "subjectAltName", text=leaf)))
    if not names.issuperset(bench.line.names):
        return "wrong", "stored a certificate that lacks a name"
    dates = re.findall(r"=(.*) GMT", openssl("x509", "-noout", "-dates", text=leaf))
    begin, end = (datetime.datetime.strptime(date, "%b %d %H:%M:%S %Y") for date in dates)
    skew = bench.line.name.startswith("clock-")
    if not skew and not begin <= datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) <= end:
        return "wrong", "stored a certificate that is not valid now"
    blocks = re.findall(rb"-----BEGIN CERTIFICATE-----\n.*?\n-----END CERTIFICATE-----\n", chain, re.DOTALL)
    # A blank line between certificates is no text: lego and certbot write what they got.
    if b"\r" in chain or len(set(blocks)) != len(blocks) or b"".join(blocks) != re.sub(rb"\n\n+", b"\n", chain):
        return "survives", "stored as it came"
    return "right", ""


NOISE = re.compile(
    r"^(Saving debug log|Ask for help|Account registered|Requesting a certificate|Some challenges have failed|An unexpected error"
    r"|Hint: |Please see the logfile|See the logfile|Certbot failed to authenticate|\s+Domain: |\s+Type: |!!|Your |generated|\s+Do ?not)"
)


def few_words(client, said):
    """The error, in a few words and without what differs from run to run."""
    lines = [line for line in said.splitlines() if line.strip()]
    if client == "ours":
        lines = [line for line in lines if line.startswith("error: ")][-1:] or lines[-1:]
    elif client == "certbot":
        lines = [line for line in lines if not NOISE.match(line)][:3]
    elif client == "lego":
        begins = [number for number, line in enumerate(lines) if re.match(r"\d{4}/\d\d/\d\d ", line)]
        lines = lines[begins[-1] :] if begins else lines[-2:]
    else:
        lines = [line for line in lines if line.startswith("error: ")][-1:] or lines[-1:]
    text = " ".join(" ".join(lines).split())
    text = re.sub(r"^\d{4}/\d\d/\d\d [\d:]+ ", "", text)
    text = re.sub(r"^(error|Could not obtain certificates): ?", "", text, flags=re.IGNORECASE)
    text = re.sub(r"^(error: )?one or more domains had a problem: ", "", text)
    text = re.sub(r"(127\.0\.0\.1|localhost):\d+|host='127\.0\.0\.1', port=\d+", "HOST", text)
    text = re.sub(r"(POST|GET|HEAD) :: https://HOST/\S* :: |https://HOST/acme/[\w-]+: ", "", text)
    text = text.replace("urn:ietf:params:acme:error:", "").replace("Certificate default/web was not issued: ", "")
    text = re.sub(r"^Order default/[\w-]+: ", "", text)
    text = re.sub(r"/tmp/\S+|0x[0-9a-f]+", "…", text)
    text = re.sub(r"[A-Za-z0-9_-]{20,}", "…", text)
    text = text if len(text) <= 120 else text[:118].rsplit(" ", 1)[0] + " …"
    for character, safe in (("\\", "\\\\"), ("<", "&lt;"), ("|", "\\|"), ("*", "\\*"), ("[", "\\["), ("_", "\\_"), ("`", "'")):
        text = text.replace(character, safe)
    return text


def resident(process):
    """Bytes of memory that a process has."""
    try:
        pages = Path(f"/proc/{process.pid}/statm").read_text().split()
    except OSError:
        return 0
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if len(pages) > 1 else 0


def wait(process, limit):
    """Waits for a process: its exit code, none at the limit, or that it took too much memory."""
    deadline = time.monotonic() + limit
    while process.poll() is None:
        if resident(process) > MEMORY:
            return TOO_MUCH
        if time.monotonic() > deadline:
            return None
        time.sleep(0.05)
    return process.returncode


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(line, client):
    """Runs a client against a line; its cell of the table."""
    if line.only_ours and client != "ours":
        return "", f"not tried: {line.only_ours}"
    if line.profile and client in ("certbot", "lego"):
        return "", "not tried: this version knows no profiles"
    bench = Bench(line)
    try:
        command, environment = COMMANDS[client](bench)
        said = bench.folder / "client.said"
        began = time.monotonic()
        with said.open("w") as output:
            process = subprocess.Popen(
                command,
                cwd=bench.folder,
                env=bench.environment | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            code = wait(process, line.limit + (20 if client == "ours" else 0))
            kill(process)
            process.wait()
        took = time.monotonic() - began
        asked = bench.end()
        if asked is None:
            return "", f"the CA has ended without a word: {few_words('', bench.said.read_text())}"
        text = said.read_text(errors="replace")
        verdict, end = judge(line, client, bench, (code, took, asked, text))
        if os.environ.get("TALK"):
            print(f"== {line.name} {client}: {code} {asked}\n{text}", file=sys.stderr)
        requests = sum(asked.values())
        return verdict, f"{end}; {requests} request{'s'[: requests != 1]}, {took:.0f} s"
    finally:
        bench.ca.kill()
        shutil.rmtree(bench.folder, ignore_errors=True)


def judge(line, client, bench, seen):
    """The verdict, by the rules at the head of the page, and the end in words."""
    code, took, asked, text = seen
    is_late = code is None or (client == "ours" and code != 0 and took >= line.limit - 0.5)
    stored = stored_fault(client, bench)
    if stored and stored[0] == "wrong":
        return stored
    if code == TOO_MUCH:
        return "wrong", "took more than 1.5 GiB of memory"
    if CRASH.search(text):
        return "wrong", f"crashed: {few_words(client, text)}"
    surplus = [
        f"{asked[sort]} × {sort} in place of {most or 'none'}" for sort, most in sorted(line.most.items()) if asked.get(sort, 0) > most
    ]
    is_issued = code == 0 and stored is not None
    if is_issued:
        end = "issued"
    elif is_late:
        end = "gave up at the time limit"
    elif code == 0:
        end = "ended well, with nothing stored"
    else:
        end = few_words(client, text) or f"exit code {code}"
    if stored and stored[0] == "survives":
        end += f", {stored[1]}"
    if surplus:
        end += f" ({', '.join(surplus)})"
    if sum(asked.values()) > 40 + 4 * took:
        return "wrong", f"{end}, a storm"
    wanted = {"issue": is_issued, "either": is_issued or not is_late, "stop": not is_issued and not is_late, "pause": not is_issued}
    if is_late and line.name in ("slow-bytes", "silent"):
        if asked.get("order", 0) < 2:
            return "wrong", f"{end}, with one answer awaited all the time"
        return "right", f"{end}, the answer awaited {asked['order']} times"
    if is_late and line.kind in ("issue", "stop", "either"):
        return "wrong", end
    if not is_issued and code and EXCEPTION.search(text):
        return "survives", f"an exception of its own: {end}"
    if wanted[line.kind] and code != 0 or is_issued and wanted[line.kind]:
        return ("survives" if surplus or (stored and stored[0] == "survives") else "right"), end
    return "survives", end


HEAD = """# What clients of ACME survive

What a CA or the network may do to a client, and what comes of it: `kubectl-acme ca --behave NAME` plays each behaviour for
ours and for others, one certificate each time, by HTTP-01 on loopback. `just conformance` writes this page; nobody edits it.

{versions}

Run on {date}, {side} runs side by side, each with a fresh folder, at most {limit} s (200 s where answers are slow, row 50). Times
depend on the machine, and a busy one makes them long. Requests are those that the CA counted. acmez is a library: a program of a
few lines stores the first chain that it hands over. How many requests a row allows was written for ours first.

**The rules of the verdicts.** A row is of one of these kinds, told in its second column:

- *issue*: a certificate can be had. *stop*: none can be had, and asking again does not help. *pause*: none can be had within the time
  limit, and a client may end with an error, or ask again with pauses. *either*: a certificate or an end, by what the client is able to.

- **wrong**: it stored a certificate that lacks a name of the order or is for another key, or not valid now, or none at all; it crashed,
  or took more than 1.5 GiB of memory; it sent more than 40 requests and 4 a second; it was still at it at the time limit in a row of
  another kind than *pause*; it waited for one answer until the time limit.
- **right**: none of these; the end is what the kind asks for; newAccount, newOrder and finalize were each asked once at most, a
  challenge once for each name, and no more than the row allows where a request is refused or lost (`benches/conformance/rows.txt`);
  what is stored has the leaf first, each certificate once, and nothing else.
- **survives**: the rest: an error where a certificate could be had, a certificate where the row asks to stop, more requests than it
  allows, a chain stored as it came, an exception of the program in place of the CA's error. Nothing wrong is stored, and another
  run may begin.

Before all rows each client has to be issued a certificate by the CA without any behaviour, by these same rules.
Whether an error is helpful is not judged: its first words are shown. Where no verdict stands, the client was not tried, and why.

"""


def ended():
    """Cells of a run that was broken off, by their lines and clients."""
    if not Path(RESUME).exists():
        return {}
    kept = [json.loads(cell) for cell in Path(RESUME).read_text().splitlines()]
    return {(line, client): (verdict, end) for line, client, verdict, end in kept}


def main():
    kit = json.loads(subprocess.run([PROGRAM, "ca", "--behaviours", "-o", "json"], check=True, capture_output=True).stdout)
    kit = {behaviour["name"]: behaviour for behaviour in kit["behaviours"]}
    lines = [Line(line) for line in (HERE / "rows.txt").read_text().splitlines() if line and not line.startswith("#")]
    missing = kit.keys() - {name.split("=")[0] for line in lines for name in line.behaviours}
    if missing:
        sys.exit(f"rows.txt does not have {', '.join(sorted(missing))}")
    lines = [line for line in lines if re.search(ONLY, line.name)]
    for client in CLIENTS:
        verdict, end = run(Line("control issue"), client)
        if verdict != "right":
            sys.exit(f"without any behaviour {client} should be issued a certificate: {verdict}: {end}")
    cells = ended() if RESUME else {}
    # Those that may take longest begin first.
    longest = sorted(lines, key=lambda line: (-line.limit, line.kind != "pause"))
    due = [(line, client) for line in longest for client in CLIENTS if (line.text, client) not in cells]
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        jobs = {pool.submit(run, line, client): (line, client) for line, client in due}
        for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            (line, client), cell = jobs[job], job.result()
            cells[line.text, client] = cell
            if RESUME:
                with Path(RESUME).open("a") as kept:
                    print(json.dumps([line.text, client, *cell]), file=kept)
            print(f"{done}/{len(jobs)} {line.name} {client}: {': '.join(filter(None, cell))}", file=sys.stderr, flush=True)
    versions = "\n".join(f"- {text}" for text in os.environ["VERSIONS"].splitlines())
    date = datetime.date.today().isoformat()
    out = [HEAD.format(versions=versions, date=date, side=SIDE_BY_SIDE, limit=LIMIT)]
    out.append("| | right | survives | wrong | not tried |\n| --- | --- | --- | --- | --- |\n")
    for client in CLIENTS:
        verdicts = [cells[line.text, client][0] for line in lines]
        out.append(f"| {client} | {' | '.join(str(verdicts.count(it)) for it in ('right', 'survives', 'wrong', ''))} |\n")
    out.append(f"\n| row | behaviour | server or network | the client should | {' | '.join(CLIENTS)} |\n")
    out.append("| --- " * (4 + len(CLIENTS)) + "|\n")
    for line in lines:
        names = [kit[name.split("=")[0]] for name in line.behaviours]
        row = max((it["row"] for it in names), default=0) if len(names) < 2 else names[1]["row"]
        told = " and ".join(dict.fromkeys(it["server"] for it in names)) or ELSEWHERE[line.name]
        # Where a behaviour only makes room for another one, the last says what to do.
        should = names[-1]["client"] if names else "tell what it sees, and not have the CA look"
        row = row or FIXED_ROWS[line.name.split(":")[0]]
        shown = " and ".join(f"`{name}`" for name in (line.behaviours or [line.name]))
        results = [": ".join(filter(None, (f"**{v}**" if v else "", text))) for v, text in (cells[line.text, it] for it in CLIENTS)]
        out.append(f"| {row} | {shown} ({line.kind}) | {told} | {should} | {' | '.join(results)} |\n")
    page = "".join(out)
    target = sys.argv[1] if len(sys.argv) > 1 else "-"
    if ONLY or target == "-":
        print(page)
    else:
        Path(target).write_text(page)


main()
