"""What installs, runs and waits: shared by the servers and the clients of the world."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

# Where pinned programs stay between runs.
CACHE = Path(os.environ.get("KUBECTL_ACME_WORLD", Path.home() / ".cache/kubectl-acme-world"))
# The zone of the world, and the address that its names lead to.
ZONE = "acme.test"
ADDRESS = "192.0.2.10"
# The address where nobody listens.
NOBODY = "192.0.2.11"
# The name that servers with a policy deny.
DENIED = f"denied.{ZONE}"
# Names of the zone that lead to the address.
NAMES = ("one", "a", "b", "c", "alpn", "after", "late", "denied", "broken", "wild", "f", "g")
# Programs of ours around libraries of others.
PROGRAMS = Path(__file__).resolve().parent / "programs"


class NotHere(Exception):
    """Why a product cannot take part on this machine."""


def read(command: list, **more) -> str:
    """Runs a command and returns what it prints, without the line end."""
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout.strip()


def install(command: list, what: str, folder: Path | None = None, **environment) -> None:
    """Runs an installer, in that folder.

    Raises NotHere with its last words if it fails.
    """
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800, cwd=folder, env={**os.environ, **environment})
    except FileNotFoundError:
        raise NotHere(f"{command[0]} is not installed") from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        words = (error.stderr or "").strip() if isinstance(error, subprocess.CalledProcessError) else "it takes more than half an hour"
        raise NotHere(f"{what} cannot be installed: {words.splitlines()[-1] if words else error}") from None


def go_install(module: str, version: str) -> None:
    """Builds a Go program into the cache, once for each version."""
    program = CACHE / "bin" / module.rsplit("/", 1)[-1]
    mark = CACHE / "bin" / f".{program.name}-{version}"
    if not (program.exists() and mark.exists()):
        install(["go", "install", f"{module}@v{version}"], program.name, GOBIN=str(CACHE / "bin"), CGO_ENABLED="0")
        mark.touch()


def build(name: str, files: dict, *commands: list) -> Path:
    """Builds what is of ours around a library of others: writes files (texts by their places) into a folder of the cache, and runs the
    commands there; once for each set of texts and commands."""
    folder = CACHE / name
    mark, wanted = folder / ".built", repr((files, commands))
    if not (mark.exists() and mark.read_text() == wanted):
        mark.unlink(missing_ok=True)
        # What compilers left stays.
        for top in {Path(place).parts[0] for place in files if "/" in place}:
            shutil.rmtree(folder / top, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        for place, text in files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(text)
        for command in commands:
            install(command, name, folder)
        mark.write_text(wanted)
    return folder


def newest_python(least: int) -> str:
    """Returns the newest interpreter of Python 3 on this machine.

    Raises NotHere if its minor version is less than that.
    """
    found = {}
    for path in [*Path.home().glob(".pyenv/versions/3.*/bin/python3"), *Path("/usr/bin").glob("python3.*"), Path("/usr/bin/python3")]:
        try:
            found[int(read([str(path), "-c", "import sys; print(sys.version_info[1])"]))] = str(path)
        except (subprocess.CalledProcessError, OSError, ValueError):
            continue
    if max(found, default=0) < least:
        raise NotHere(f"there is no Python 3.{least} or newer")
    return found[max(found)]


def pip_install(name: str, *packages: str, python: str = "python3") -> Path:
    """Installs Python packages into an environment of their own in the cache, once for each set of versions."""
    folder = CACHE / name
    mark = folder / ".packages"
    if not (mark.exists() and mark.read_text() == " ".join(packages)):
        install([python, "-m", "venv", "--clear", str(folder)], name)
        install([str(folder / "bin/pip"), "install", "--quiet", *packages], name)
        mark.write_text(" ".join(packages))
    return folder / "bin"


def npm_install(name: str, *packages: str) -> Path:
    """Installs npm packages into a folder of their own in the cache, once for each set of versions."""
    folder = CACHE / name
    mark = folder / ".packages"
    if not (mark.exists() and mark.read_text() == " ".join(packages)):
        folder.mkdir(parents=True, exist_ok=True)
        install(["npm", "install", "--silent", "--prefix", str(folder), *packages], name)
        mark.write_text(" ".join(packages))
    return folder


def debian(program: str, package: str) -> str:
    """Returns the version of a Debian package; installs it where this process may.

    Raises NotHere if it is not installed and cannot be.
    """
    there = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", package], capture_output=True, text=True)
    if there.returncode != 0 or not there.stdout:
        install(["apt-get", "install", "--yes", "--quiet", package], package, DEBIAN_FRONTEND="noninteractive")
        there = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", package], capture_output=True, text=True)
    return there.stdout.strip()


def until_open(host: str, port: int, process: subprocess.Popen, seconds: float = 60) -> None:
    """Waits until a port takes connections.

    Raises NotHere if the process ends before, or the time is over.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise NotHere(f"it ended at once with {process.returncode}")
        try:
            socket.create_connection((host, port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise NotHere(f"nobody listens on port {port} after {seconds:.0f} s")
