#!/usr/bin/env python3
"""Makes situations on real parts and compares what `diagnose` says with what their authors know: run.py PROGRAM [WORDS…].

WORDS choose situations by parts of their names. Needs root. Prints a line for each situation, then a table; ends with 1 if a situation
is judged otherwise than last-run.tsv says. With --write the results become last-run.tsv, and those that were never tried first-run.tsv.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIRST, LAST = HERE / "first-run.tsv", HERE / "last-run.tsv"
INSIDE = "KUBECTL_ACME_SITUATIONS"


def main() -> None:
    if INSIDE not in os.environ:
        # A network and mounts of its own, for this process and all that it starts; what it starts ends with it.
        words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", python(), __file__, *sys.argv[1:]]
        sys.exit(subprocess.run(words, env={**os.environ, INSIDE: "yes", "PYTHONDONTWRITEBYTECODE": "yes"}).returncode)
    flags = [word for word in sys.argv[1:] if word.startswith("--")]
    program, *words = [word for word in sys.argv[1:] if not word.startswith("--")]
    sys.exit(try_all(Path(program).resolve(), words, flags))


def python() -> str:
    """Returns a Python that reads YAML: this one, or one in an environment of its own in the cache of tests/world."""
    try:
        import yaml  # noqa: F401
    except ImportError:
        sys.path.append(str(HERE.parent / "world"))
        from tools import pip_install
        return str(pip_install("situations", "PyYAML==6.0.3") / "python3")
    return sys.executable


def try_all(program: Path, words: list, flags: list) -> int:
    import yaml
    from cluster import Cluster, in_cluster
    from machine import on_machine
    from network import Network, Unmade

    files = sorted(HERE.glob("machine/*.yaml")) + sorted(HERE.glob("cluster/*.yaml"))
    chosen = [file for file in files if not words or any(word in f"{file.parent.name}/{file.stem}" for word in words)]
    results, details = {}, os.environ.get("KUBECTL_ACME_SITUATIONS_DETAILS")
    with tempfile.TemporaryDirectory() as folder:
        network, cluster = Network(Path(folder)), None
        (Path(folder) / "bin").mkdir()
        (Path(folder) / "bin/kubectl-acme").symlink_to(program)
        os.environ["PATH"] = f"{folder}/bin:{os.environ['PATH']}"
        try:
            for file in chosen:
                name, begun = f"{file.parent.name}/{file.stem}", time.monotonic()
                situation = yaml.safe_load(file.read_text())
                place = Path(folder) / "situations" / name
                place.mkdir(parents=True)
                os.chdir(place)
                report, why = None, ""
                try:
                    if file.parent.name == "machine":
                        report, code = on_machine(network, place, situation, program)
                    else:
                        cluster = cluster or Cluster(network, Path(folder) / "cluster")
                        report, code = in_cluster(cluster, place, situation, program)
                    results[name], why = judge(situation, report, code)
                except Unmade as error:
                    results[name], why = "unmade", str(error)
                except (OSError, KeyError, TypeError, subprocess.SubprocessError) as error:
                    results[name], why = "unmade", f"{type(error).__name__}: {error}"
                print(f"{results[name]:10} {name}  {why}  [{time.monotonic() - begun:.0f} s]", flush=True)
                if details:
                    kept = Path(details) / f"{file.parent.name}-{file.stem}"
                    subprocess.run(["rm", "-rf", kept])
                    subprocess.run(["cp", "-r", "--", place, kept])
                    (kept / "report.json").write_text(json.dumps(report, indent=1))
        finally:
            os.chdir("/")
            if cluster:
                cluster.end()
    return tell(results, flags)


def judge(situation: dict, report: dict, code: int) -> tuple:
    """What became of a look: `right`, `beside` (the root, and other errors), `missed`, `accused`, `silent`; and the causes that were named."""
    findings = report["findings"]
    named = " ".join(f"{one['cause']}:{one['severity'][0]}{one['grade'][0]}" for one in findings) or f"nothing (exit {code})"
    errors = [one for one in findings if one["severity"] in ("error", "fatal")]
    never = [one["cause"] for one in findings if one["cause"] in (situation.get("never") or [])]
    if situation.get("healthy"):
        allowed = situation.get("beside") or []
        is_well = not errors and code == 0 and all(one["cause"] in allowed or one["severity"] == "info" for one in findings)
        return ("right" if is_well and not never else "accused"), named
    if never:
        return "accused", named
    if not errors:
        return "silent", named
    causes, words = situation.get("causes") or [], situation.get("words") or []
    is_root = lambda one: (not causes or one["cause"] in causes) and all(word.lower() in json.dumps(one, ensure_ascii=False).lower() for word in words)
    if not is_root(errors[0]):
        return ("beside" if any(map(is_root, errors)) else "missed"), named
    return ("right" if all(map(is_root, errors)) else "beside"), named


def tell(results: dict, flags: list) -> int:
    first, last = (read(file) for file in (FIRST, LAST))
    if "--write" in flags:
        first |= {name: result for name, result in results.items() if name not in first and result != "unmade"}
        last |= results
        for file, known in ((FIRST, first), (LAST, last)):
            file.write_text("".join(f"{name}\t{result}\n" for name, result in sorted(known.items())))
    print(f"\n{'':12}{'RIGHT':>7}{'BESIDE':>8}{'MISSED':>8}{'ACCUSED':>9}{'SILENT':>8}{'UNMADE':>8}")
    for title, known in (("first run", {name: first[name] for name in results if name in first}), ("this run", results)):
        count = lambda result: sum(one == result for one in known.values())
        print(f"{title:12}{count('right'):7}{count('beside'):8}{count('missed'):8}{count('accused'):9}{count('silent'):8}{count('unmade'):8}")
    other = [f"{name}: {result}, {last[name]} before" for name, result in results.items() if name in last and last[name] != result]
    print("\n".join(other))
    return 1 if other else 0


def read(file: Path) -> dict:
    return dict(line.split("\t") for line in file.read_text().splitlines()) if file.exists() else {}


if __name__ == "__main__":
    main()
