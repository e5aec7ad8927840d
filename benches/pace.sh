#!/usr/bin/env bash
# Many certificates of one name each that are due at once: how soon the first is there, how long all take, and how hard the CA is asked.
#
#   benches/pace.sh PROGRAM          PROGRAM is a build of kubectl-acme; a debug build is enough to compare two of them
#
#   COUNT=3000                       certificates in one `order -f`
#   LIMITS=letsencrypt               the CA whose request rates are kept; empty for none
#   BEHAVE="new-nonce-ceiling=20 request-ceiling=250"   what the CA does, see `ca --behave list`
#   LIMIT=3600                       seconds after which a run is given up
#
# The CA is our own, in a process of its own. ECDSA P-256 keys; 60 challenges in flight. Requests in flight and 503 are counted in
# the program's own log of what it asked, which costs it some time.
set -euo pipefail

program=$(realpath "$1")
count=${COUNT:-3000}
limit=${LIMIT:-3600}
folder=$(mktemp -d)
trap 'kill "${ca_pid:-}" 2>/dev/null && wait; rm -rf "$folder"' EXIT

http_port=5002
behave=()
for name in ${BEHAVE-new-nonce-ceiling=20 request-ceiling=250}; do
  behave+=(--behave "$name")
done
"$program" ca --listen 127.0.0.1:0 --root "$folder/ca.pem" --http01-resolve "*=127.0.0.1:$http_port" "${behave[@]}" >"$folder/ca" 2>&1 &
ca_pid=$!
until [ -s "$folder/ca.pem" ] && grep -q https "$folder/ca"; do
  kill -0 "$ca_pid"
  sleep 0.1
done
directory=$(grep -om 1 'https://[^ ]*' "$folder/ca")
{
  cat <<YAML
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: bench}
spec:
  acme:
    server: $directory
    caBundle: $(base64 -w 0 "$folder/ca.pem")
    privateKeySecretRef: {name: bench-account}
    solvers: [{http01: {ingress: {}}}]
YAML
  for ((number = 1; number <= count; number++)); do
    cat <<YAML
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: bench-$number}
spec:
  secretName: bench-$number-tls
  issuerRef: {name: bench}
  privateKey: {algorithm: ECDSA, size: 256}
  dnsNames: [n$number.example.com]
YAML
  done
} >"$folder/manifests.yaml"
if [ -n "${LIMITS-letsencrypt}" ]; then
  export KUBECTL_ACME_LIMITS=${LIMITS-letsencrypt}
fi
status=0
timeout "$limit" "$program" order --local="$folder/state" -f "$folder/manifests.yaml" --out "$folder/out" -v --log-format json \
  --http01-listen "127.0.0.1:$http_port" --http01-resolve "*=127.0.0.1:$http_port" --timeout "${limit}s" -o name \
  >"$folder/names" 2>"$folder/log" </dev/null || status=$?
python3 - "$folder/log" "$count" "$status" <<'PYTHON'
import collections, datetime, json, re, sys

requests = []
for line in open(sys.argv[1], errors="replace"):
    if "asked the CA" not in line or not line.startswith("{"):
        continue
    entry = json.loads(line)
    fields = entry.get("fields", entry)
    end = datetime.datetime.fromisoformat(entry.get("time", entry.get("timestamp")).replace("Z", "+00:00")).timestamp()
    took = int(re.sub(r"\D", "", fields["took"])) / 1000
    requests.append((end - took, end, fields["what"], fields.get("status")))
if not requests:
    sys.exit("error: nothing was asked")
edges = sorted([(begin, 1) for begin, *_ in requests] + [(end, -1) for _, end, *_ in requests], key=lambda edge: edge)
now = most = 0
for _, step in edges:
    now += step
    most = max(most, now)
began = min(begin for begin, *_ in requests)
chains = sorted(end - began for _, end, what, status in requests if what == "certificate" and status == 200)
seconds = collections.Counter((what == "newNonce", int(begin - began)) for begin, _, what, _ in requests)
peak = lambda nonce: max([n for (of, _), n in seconds.items() if of == nonce], default=0)
busy = sum(status == 503 for *_, status in requests)
print(f"certificates {len(chains)} of {sys.argv[2]} (exit {sys.argv[3]})")
print(f"first after {chains[0]:.1f} s, last after {chains[-1]:.1f} s" if chains else "none came")
print(f"requests {len(requests)}, in flight {most} at most; newNonce {peak(True)} and others {peak(False)} in one second; 503: {busy}")
PYTHON
