"""A situation in a cluster: an API server, cert-manager's own controllers, a stand-in for a node."""

import base64
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import yaml

import names
from machine import begin_ca, certificates
from network import Network, Stage, Unmade, run, until
from look import look

BED = Path(os.environ.get("KUBECTL_ACME_BED") or subprocess.run([Path(__file__).parents[1] / "bed/where"], capture_output=True, text=True).stdout.strip())
HTTP_PORT = 18080


class Cluster:
    """An API server that all situations share, each in a namespace."""

    def __init__(self, network: Network, folder: Path):
        self.network, self.folder = network, folder
        folder.mkdir()
        with open(folder / "up.log", "wb") as log:
            self.process = subprocess.Popen(
                [Path(__file__).parents[1] / "bed/cluster-up", folder], stdout=log, stderr=log, env={**os.environ, "ANSWERS": "none", "KUBECTL_ACME_BED": str(BED)})

        def is_ready():
            if self.process.poll() is not None:
                raise SystemExit(f"cannot start a cluster: {(folder / 'up.log').read_text()}")
            return (folder / "ready").exists()
        until("the cluster", is_ready, 180)
        self.kubeconfig = str(folder / "admin.kubeconfig")
        self.wide = set(self.kubectl("api-resources", "--namespaced=false", "-o", "name").split())
        self.wide_kinds = {line.split()[-1] for line in self.kubectl("api-resources", "--namespaced=false", "--no-headers").splitlines()}

    def kubectl(self, *words: str, text: str | None = None) -> str:
        return run([BED / "kubectl", "--kubeconfig", self.kubeconfig, *words], input=text)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()


def fill(text, values: dict):
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def apply(cluster: Cluster, namespace: str, documents: list) -> None:
    for document in documents:
        at = [] if document["kind"] in cluster.wide_kinds or document["metadata"].get("namespace") else ["-n", namespace]
        text = yaml.safe_dump(document)
        if "generateName" in document["metadata"]:
            cluster.kubectl("create", *at, "-f", "-", text=text)
            continue
        cluster.kubectl("apply", "--server-side", "--force-conflicts", *at, "-f", "-", text=text)
        if document["kind"] == "CustomResourceDefinition":
            cluster.kubectl("wait", "--for=condition=Established", f"crd/{document['metadata']['name']}", "--timeout=30s")
            cluster.wide_kinds = {line.split()[-1] for line in cluster.kubectl("api-resources", "--namespaced=false", "--no-headers").splitlines()}
        if "status" in document:
            try:
                cluster.kubectl("apply", "--server-side", "--force-conflicts", "--subresource=status", *at, "-f", "-", text=text)
            except Unmade as error:
                # Kinds without that subresource have their status by now.
                if "NotFound" not in str(error) and "could not find" not in str(error):
                    raise


def wait(cluster: Cluster, namespace: str, wanted: list) -> None:
    for one in wanted or []:
        def is_there():
            place = ["-n", one.get("namespace") or namespace]
            items = json.loads(cluster.kubectl("get", one["kind"], *place, "-o", "json")).get("items") or []
            if one.get("name"):
                items = [item for item in items if item["metadata"]["name"] == one["name"]]
            return any(re.search(str(one.get("matches", "")), text) for item in items for text in texts(item, one.get("path", "").split(".")))
        until(f"{one['kind']} with {one.get('path')} {one.get('matches')}", is_there)


def texts(value, path: list) -> list:
    """All texts at a path, whose words are names of fields or numbers of items; `*` and lists on the way stand for each."""
    path = [word for part in path for word in part.replace("[", ".").replace("]", "").split(".") if word]
    if isinstance(value, list) and not (path and path[0].isdigit()):
        rest = path[1:] if path and path[0] == "*" else path
        return [text for item in value for text in texts(item, rest)]
    if not path:
        return [] if value is None else [str(value).lower() if isinstance(value, bool) else str(value)]
    if isinstance(value, list):
        return texts(value[int(path[0])], path[1:]) if int(path[0]) < len(value) else []
    return texts(value.get(path[0]), path[1:]) if isinstance(value, dict) else []


def in_cluster(cluster: Cluster, place: Path, situation: dict, program: Path) -> tuple:
    namespace = f"shop-{len(os.listdir(place.parent))}"
    situation["answers"] = [str(BED / "kubectl"), "--kubeconfig", cluster.kubeconfig, "get", "challenges", "-A", "-o", "json"]
    stage = Stage(cluster.network, place, situation)
    has_stand_in = situation.get("stand_in", True)
    if has_stand_in:
        situation.setdefault("servers", [])
        situation["servers"] = [*(situation["servers"] or []), {"at": "11.0.0.10:80", "where": "machine", "proxy": f"127.0.0.1:{HTTP_PORT}"}]
    documents, kubeconfig = [], {"KUBECONFIG": cluster.kubeconfig}
    try:
        stage.addresses()
        names.start(stage)
        values = begin_ca(stage, program)
        values |= {"CA_BUNDLE": base64.b64encode(Path(values["CA_FILE"]).read_bytes()).decode(), "NAMESPACE": namespace}
        certificates(stage)
        stage.listen()
        cluster.kubectl("create", "namespace", namespace)
        controllers = situation.get("controllers") or []
        is_driven = controllers not in ("none", ["none"])
        if has_stand_in:
            words = ["kubelet", "--kubeconfig", cluster.kubeconfig, "--listen", f"127.0.0.1:{HTTP_PORT}", "--logs", place]
            at_work(stage, "kubelet", [BED / "peer", *words])
        if is_driven:
            at_work(stage, "controllers", [BED / "peer", "controllers", "--kubeconfig", cluster.kubeconfig, "--enable-gateway-api", *controllers])
        documents = [one for one in yaml.safe_load_all(fill(situation.get("objects") or "", values)) if one]
        apply(cluster, namespace, documents)
        wait(cluster, namespace, situation.get("until"))
        subprocess.run(["sleep", str(situation.get("settle", 3))])
        if situation.get("sh"):
            cluster.kubectl("config", "set-context", "--current", f"--namespace={namespace}")
            (place / "sh").write_text(fill(situation["sh"], values))
            env = {**os.environ, **kubeconfig, **values, "HOME": str(place), "PATH": f"{BED}:{os.environ['PATH']}"}
            run(["bash", "-eu", place / "sh"], env=env, cwd=place, timeout=120)
        wait(cluster, namespace, situation.get("then"))
        words = shlex.split(fill(situation["diagnose"], values))
        if not {"-A", "--all-namespaces", "-n", "--namespace"} & set(words):
            words += ["-n", namespace]
        return look(program, place, words, situation.get("minutes") or 0, kubeconfig)
    finally:
        if os.environ.get("KUBECTL_ACME_SITUATIONS_DETAILS"):
            with open(place / "objects.yaml", "wb") as kept:
                kinds = "certificates,certificaterequests,orders,challenges,issuers,ingresses,httproutes,pods,services,events"
                subprocess.run([BED / "kubectl", "--kubeconfig", cluster.kubeconfig, "get", kinds, "-n", namespace, "-o", "yaml"], stdout=kept, stderr=kept)
        stage.leave()
        clear(cluster, namespace, documents)


def at_work(stage: Stage, name: str, command: list) -> None:
    process = stage.begin(name, command, False, NO_PROXY="*")

    def works():
        text = (stage.folder / f"{name}.log").read_text()
        if process.poll() is not None:
            raise Unmade(f"{name} ended: {text[-400:]}")
        return "at work" in text
    until(name, works)


def clear(cluster: Cluster, namespace: str, documents: list) -> None:
    """Takes everything away: what is outside of the namespace, finalizers, and the Lease of controllers that were killed."""
    for document in reversed(documents):
        other = document["metadata"].get("namespace")
        name = document["metadata"].get("name")
        if name and (document["kind"] in cluster.wide_kinds or (other and other != namespace)):
            at = [] if document["kind"] in cluster.wide_kinds else ["-n", other]
            group = document["apiVersion"].partition("/")[0] if "/" in document["apiVersion"] else ""
            kind = f"{document['kind']}.{group}" if group else document["kind"]
            quiet(cluster, "patch", kind, name, *at, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
            quiet(cluster, "delete", kind, name, *at, "--ignore-not-found", "--wait=false")
    for kind in ("certificates", "certificaterequests", "orders", "challenges"):
        for line in quiet(cluster, "get", kind, "-A", "--no-headers", "-o", "custom-columns=N:.metadata.namespace,M:.metadata.name").splitlines():
            at, name = line.split()
            quiet(cluster, "patch", kind, name, "-n", at, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
            quiet(cluster, "delete", kind, name, "-n", at, "--wait=false", "--ignore-not-found")
    quiet(cluster, "delete", "leases", "-A", "--all", "--field-selector=metadata.name=cert-manager-controller")
    quiet(cluster, "delete", "namespace", namespace, "--wait=false")


def quiet(cluster: Cluster, *words: str) -> str:
    return subprocess.run([str(BED / "kubectl"), "--kubeconfig", cluster.kubeconfig, *words], capture_output=True, text=True).stdout
