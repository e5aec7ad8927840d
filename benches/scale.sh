#!/usr/bin/env bash
# Certificates of one name each on one machine: wall time, processor time for each, and peak memory: how the cost of one grows with
# the number of the others.
#
#   benches/scale.sh PROGRAM         PROGRAM is a release build of kubectl-acme
#
#   COUNTS="200 1000 3000 10000"     certificates in one `order -f`, each time with a state folder of its own
#   LIMIT=3600                       seconds after which a run is given up
#
# The CA is our own (`kubectl-acme ca`), a process of its own whose time is not counted: Pebble 2.11 locks itself up when some 250
# requests for authorizations and new orders meet. ECDSA P-256 keys; 60 challenges in flight. The ratio is the processor time of
# one certificate against that of the first row.
set -euo pipefail

program=$(realpath "$1")
limit=${LIMIT:-3600}
folder=$(mktemp -d)
trap 'kill "${ca_pid:-}" 2>/dev/null && wait; rm -rf "$folder"' EXIT

http_port=5002
"$program" ca --listen 127.0.0.1:0 --root "$folder/ca.pem" --http01-resolve "*=127.0.0.1:$http_port" >"$folder/ca" 2>&1 &
ca_pid=$!
until [ -s "$folder/ca.pem" ] && grep -q https "$folder/ca"; do
  kill -0 "$ca_pid"
  sleep 0.1
done
directory=$(grep -om 1 'https://[^ ]*' "$folder/ca")

# Prints an Issuer and $1 Certificates.
manifests() {
  local number
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
  for ((number = 1; number <= $1; number++)); do
    cat <<YAML
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: bench-$number}
spec:
  secretName: bench-$number-tls
  issuerRef: {name: bench}
  privateKey: {algorithm: ECDSA, size: 256}
  dnsNames: [n$number.of-$1.example.com]
YAML
  done
}

# The peak memory of process $1 so far, in kilobytes.
peak() { awk '$1 == "VmHWM:" { print $2 }' "/proc/$1/status" 2>/dev/null || true; }

printf '%12s%12s%20s%10s%12s\n' CERTIFICATES TIME 'PROCESSOR EACH' RATIO MEMORY
first=
for count in ${COUNTS:-200 1000 3000 10000}; do
  work=$folder/$count
  mkdir "$work"
  manifests "$count" >"$work/manifests.yaml"
  began=$EPOCHREALTIME
  timeout "$limit" "$program" order --local="$work/state" -f "$work/manifests.yaml" --out "$work/out" \
    --http01-listen "127.0.0.1:$http_port" --http01-resolve "*=127.0.0.1:$http_port" --timeout "${limit}s" -o name \
    >"$work/output" 2>&1 </dev/null &
  run_pid=$!
  busy=0 most=0
  while kill -0 "$run_pid" 2>/dev/null; do
    pid=$(pgrep -P "$run_pid" || true)
    if [ -n "$pid" ]; then
      most=$(peak "$pid")
      # Fields 14 and 15: ticks in user mode and in the kernel, without the name in brackets.
      busy=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | awk '{ print $12 + $13 }' || true)
      kept_most=${most:-${kept_most:-0}} kept_busy=${busy:-${kept_busy:-0}}
    fi
    sleep 0.2
  done
  status=0
  wait "$run_pid" || status=$?
  time=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  if [ "$status" != 0 ]; then
    printf 'error: %s certificates were not issued (exit %s):\n' "$count" "$status" >&2
    tail -n 20 "$work/output" >&2
    exit 1
  fi
  each=$(awk -v ticks="${kept_busy:-0}" -v hertz="$(getconf CLK_TCK)" -v count="$count" 'BEGIN { printf "%.1f", ticks / hertz * 1000 / count }')
  first=${first:-$each}
  ratio=$(awk -v a="$each" -v b="$first" 'BEGIN { printf "%.2f", a / b }')
  printf '%12s%10s s%17s ms%10s%9s MB\n' "$count" "$time" "$each" "$ratio" "$((${kept_most:-0} / 1024))"
  rm -rf "$work"
done
