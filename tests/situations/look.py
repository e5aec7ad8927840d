"""The look of the program at a situation."""

import json
import os
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

from network import Unmade


def look(program: Path, place: Path, words: list, minutes: float, environment: dict) -> tuple:
    """Runs `diagnose` some minutes later than now; returns its report and its exit code."""
    moment = datetime.now(timezone.utc) + timedelta(minutes=minutes)
    more = {"KUBECTL_ACME_NOW": moment.strftime("%Y-%m-%dT%H:%M:%SZ")} if minutes else {}
    done = subprocess.run(
        [str(program), "diagnose", *words, "-o", "json"], cwd=place, env={**os.environ, "HOME": str(place), **environment, **more},
        capture_output=True, text=True, timeout=180)
    try:
        return json.loads(done.stdout), done.returncode
    except ValueError:
        raise Unmade(f"diagnose: {done.stderr.strip()[-400:]}") from None
