"""A situation on one machine: state in a folder, and `kubectl-acme order --local`."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

import names
from network import CA, Network, Stage, Unmade, certificate, until
from look import look


def begin_ca(stage: Stage, program: Path) -> dict:
    """Starts the CA of the situation; returns what scripts know of it."""
    root = stage.folder / "ca.pem"
    words = [program, "ca", "--listen", f"{CA}:14000", "--root", root, *(stage.situation.get("ca") or [])]
    process = stage.begin("ca", words, True, HOME=str(stage.folder))

    def listens():
        if process.poll() is not None:
            raise Unmade(f"ca ended: {(stage.folder / 'ca.log').read_text()[-400:]}")
        return root.exists() and "https://" in (stage.folder / "ca.log").read_text()
    until("the CA", listens, 20)
    return {"CA": f"https://{CA}:14000/directory", "CA_FILE": str(root)}


def certificates(stage: Stage) -> None:
    """Makes what the TLS servers of the situation show."""
    for number, server in enumerate(stage.situation.get("servers") or []):
        tls = server.get("tls")
        if tls:
            tls["files"] = [str(file) for file in certificate(stage.folder, f"tls-{number}", tls.get("names") or ["site"], tls.get("days", 90), None)]


def on_machine(network: Network, place: Path, situation: dict, program: Path) -> tuple:
    work = place / "work"
    work.mkdir()
    situation["answers"] = [str(program), "get", "challenges", "-A", "-o", "json", f"--local={work}/state"]
    stage = Stage(network, place, situation)
    try:
        stage.addresses()
        names.start(stage)
        environment = {**begin_ca(stage, program), "DIR": str(work)}
        certificates(stage)
        stage.listen()
        script = place / "run.sh"
        script.write_text(situation.get("run") or "")
        with open(place / "run.log", "wb") as log:
            process = subprocess.Popen(
                ["bash", "-u", script], cwd=work, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, "HOME": str(place), **environment})
        stage.processes.append(process)
        try:
            process.wait(90)
        except subprocess.TimeoutExpired:
            raise Unmade("`run` takes more than 90 s") from None
        words = situation["diagnose"]
        for name, value in environment.items():
            words = words.replace(f"${{{name}}}", value).replace(f"${name}", value)
        return look(program, work, shlex.split(words), situation.get("minutes") or 0, environment)
    finally:
        stage.leave()
