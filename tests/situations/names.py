"""Name servers of a situation: a root, a server for each address that a zone names, and a resolver. All of them are BIND."""

import re
import subprocess
from pathlib import Path

from network import RESOLVER, ROOT, TOP, Stage, Unmade, until

SERVER = "11.0.1.1"


def start(stage: Stage) -> None:
    """Starts the name servers and waits until they answer."""
    zones = {name.rstrip(".").lower(): zone or {} for name, zone in (stage.situation.get("dns") or {}).items()}
    at = {}
    for name, zone in zones.items():
        for address in zone.get("at") or [SERVER]:
            at.setdefault(address, []).append(name)
    started = []
    for number, (address, names) in enumerate(at.items()):
        texts = {name: text_of(name, zones, address) for name in names}
        options = {name: zones[name].get("options") or "" for name in names}
        started.append(named(stage, f"dns-{number}", address, texts, options, "recursion no;"))
    above = parents(zones)
    # A resolver that met both at one address would take the word of the lower one, which has no addresses beside it.
    started.append(named(stage, "root", ROOT, {".": above.pop(".")}, {}, "recursion no;"))
    started.append(named(stage, "top", TOP, above, {}, "recursion no;"))
    more = stage.situation.get("resolver") or ""
    if "dnssec-validation" not in more:
        more += " dnssec-validation no;"
    if "recursion" not in more:
        more += " recursion yes; allow-query { any; };"
    started.append(named(stage, "resolver", RESOLVER, None, {}, more))
    for name, address, process in started:
        def answers():
            if process.poll() is not None:
                raise Unmade(f"{name} ended: {(stage.folder / f'{name}.log').read_text()[-500:]}")
            look = [*stage.network.prefix(), "dig", "+time=1", "+tries=1", f"@{address}", ".", "SOA"]
            return "status:" in subprocess.run(look, capture_output=True, text=True).stdout
        until(f"{name} at {address}", answers, 20)


def servers_of(name: str, zone: dict) -> list:
    """Lines that name the servers of a zone and their addresses, for the zone and for its parent."""
    lines = []
    for number, address in enumerate(zone.get("at") or [SERVER], 1):
        lines += [f"{name}. NS ns{number}.{name}.", f"ns{number}.{name}. {'AAAA' if ':' in address else 'A'} {address}"]
    return lines


def text_of(name: str, zones: dict, address: str) -> str:
    """The zone file at one of its servers."""
    zone = zones[name]
    head = [f"$ORIGIN {name}.", "$TTL 60"]
    head += [zone["apex"]] if zone.get("apex") else [f"@ SOA ns1.{name}. hostmaster.{name}. 1 3600 600 86400 30", *servers_of(name, zone)]
    lines = (zone.get("differ") or {}).get(address) or zone.get("records") or ""
    # Zones below this one are delegated here, unless it says so itself.
    for other, below in zones.items():
        if other.endswith(f".{name}") and closest(other, zones) == name and not re.search(rf"(?m)^{re.escape(other[:-len(name) - 1])}(\.{re.escape(name)}\.)?\s.*\bNS\b", lines):
            head += delegation(other, below)
    return "\n".join(head) + "\n" + lines + "\n"


def delegation(name: str, zone: dict) -> list:
    if "delegation" in zone:
        return [line.strip() for line in (zone["delegation"] or "").splitlines() if line.strip()]
    return servers_of(name, zone)


def closest(name: str, zones: dict) -> str | None:
    """The zone of the situation in which this one is delegated; `None` if that is a top-level domain of the runner's."""
    above = [other for other in zones if name != other and name.endswith(f".{other}")]
    return max(above, key=len, default=None)


def parents(zones: dict) -> dict:
    """The root zone and the top-level domains that no situation brings."""
    head = ["$TTL 60", "@ SOA a.root. hostmaster.root. 1 3600 600 86400 30", "@ NS a.root.", f"a.root. A {ROOT}"]
    texts = {".": ["$ORIGIN ."] + head}
    for top in ("com", "org", "net", "example", "test"):
        if top not in zones:
            texts[top] = None
    for name in zones:
        top = name.rsplit(".", 1)[-1]
        if top not in zones:
            texts[top] = None
    for top in [one for one in texts if one != "."]:
        texts["."] += [f"{top}. NS a.nic.{top}.", f"a.nic.{top}. A {TOP}"]
        texts[top] = [f"$ORIGIN {top}.", "$TTL 60", f"@ SOA a.nic.{top}. hostmaster.nic.{top}. 1 3600 600 86400 30", f"@ NS a.nic.{top}.", f"a.nic.{top}. A {TOP}"]
    for name, zone in zones.items():
        if closest(name, zones) is None:
            texts["." if "." not in name else name.rsplit(".", 1)[-1]] += delegation(name, zone)
    return {name: "\n".join(lines) + "\n" for name, lines in texts.items()}


def named(stage: Stage, name: str, address: str, texts: dict | None, options: dict, more: str) -> tuple:
    """Starts a BIND at an address."""
    folder: Path = stage.folder / name
    folder.mkdir()
    listen = f"listen-on {{ none; }}; listen-on-v6 {{ {address}; }}; query-source-v6 address {address};" if ":" in address else \
        f"listen-on {{ {address}; }}; listen-on-v6 {{ none; }}; query-source address {address};"
    top, zones = "", ""
    for zone, text in (texts or {}).items():
        file = folder / (f"{zone}.zone" if zone != "." else "root.zone")
        file.write_text(text)
        lines = options.get(zone) or ""
        # Keys stand outside of the zone.
        for key in re.findall(r'key\s+"?[\w.-]+"?\s*\{[^}]*\}\s*;', lines):
            if "secret" in key:
                top += key + "\n" if key not in top else ""
                lines = lines.replace(key, "")
        kind = "" if re.search(r"(?m)(^|[;{\s])type\s+[a-z-]+;", lines) else "type primary; "
        place = "" if re.search(r"(^|[;\s])file\s", lines) else f'file "{file}"; '
        zones += f'zone "{zone}" {{ {kind}{place}{lines} }};\n'
    if texts is None:
        (folder / "hints").write_text(f". 3600 NS a.root.\na.root. 3600 A {ROOT}\n")
        zones = f'zone "." {{ type hint; file "{folder}/hints"; }};\n'
    config = folder / "named.conf"
    config.write_text(
        f'options {{ directory "{folder}"; pid-file none; session-keyfile none; {listen} empty-zones-enable no; qname-minimization off; '
        f'max-cache-size 32M; notify no; check-names primary ignore; {more} }};\ncontrols {{}};\nlogging {{ category lame-servers {{ null; }}; }};\n{top}{zones}')
    process = stage.begin(name, ["named", "-g", "-n", "1", "-c", config], True)
    return name, address, process
