#!/usr/bin/env bash
# `diagnose` in a cluster with many Certificates, some of which are stuck: wall time (median and 95th percentile), requests to the API
# server, and peak memory, for all of them (`-A`) and for one.
#
#   benches/diagnose.sh PROGRAM      PROGRAM is a release build of kubectl-acme
#
#   COUNT=1000                       Certificates in all
#   STUCK=100                        of them, those that are not issued: their answers are up, and nobody sees them
#   RUNS=20                          how often each command is run
#
# Those that are stuck were brought there by our own controllers and a Pebble, with Order and Challenge; nobody drives any more when
# it is looked. The others have the status of a Certificate that is ready. Requests are those of the API server's audit log.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(realpath "$1")
bed=${KUBECTL_ACME_BED:-$("$root/tests/bed/where")}
count=${COUNT:-1000}
stuck=${STUCK:-100}
runs=${RUNS:-20}
folder=$(mktemp -d)
stop() {
  trap - EXIT INT TERM
  kill "${driver_pid:-}" "${ca_pid:-}" "${cluster_pid:-}" 2>/dev/null || true
  wait 2>/dev/null
  rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

# Waits for file $1, which the process $2 writes.
wait_for() {
  until [ -f "$1" ]; do
    kill -0 "$2"
    sleep 0.1
  done
}

mkdir "$folder/cluster"
printf 'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n' >"$folder/audit.yaml"
audit=$folder/cluster/audit.log
API_SERVER_FLAGS="--audit-policy-file=$folder/audit.yaml --audit-log-path=$audit --audit-log-maxsize=4000" \
  "$root/tests/bed/cluster-up" "$folder/cluster" >/dev/null 2>"$folder/cluster-up.log" &
cluster_pid=$!
wait_for "$folder/cluster/ready" "$cluster_pid"
# shellcheck source=/dev/null
source "$folder/cluster/ready"
HTTP_PORT=${http_port:?} PEBBLE_WFE_NONCEREJECT=0 "$root/tests/bed/pebble-up" "$folder/pebble" >/dev/null &
ca_pid=$!
wait_for "$folder/pebble/ready" "$ca_pid"
# shellcheck source=/dev/null
source "$folder/pebble/ready"
kubectl() { "$bed/kubectl" --kubeconfig "${kubeconfig:?}" "$@"; }
# Nobody listens there.
lead=(--http01-resolve '*=127.0.0.1:1' --dns "${dns:?}")

issuer() {
  cat <<YAML
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: bench}
spec:
  acme:
    server: ${directory:?}
    caBundle: $(base64 -w 0 "$folder/pebble/ca.pem")
    privateKeySecretRef: {name: bench-account}
    solvers: [{http01: {ingress: {ingressClassName: bed}}}]
YAML
}

# Prints Certificates $2 to $3 of namespace $1.
certificates() {
  local number
  for ((number = $2; number <= $3; number++)); do
    cat <<YAML
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: c$number, namespace: $1}
spec:
  secretName: c$number-tls
  issuerRef: {name: bench, kind: ClusterIssuer}
  privateKey: {algorithm: ECDSA}
  dnsNames: [c$number.$1.example.com]
YAML
  done
}

kubectl create namespace cert-manager >/dev/null 2>&1 || true
kubectl create namespace well >/dev/null
kubectl create namespace stuck >/dev/null
issuer | kubectl apply -f - >/dev/null
certificates well 1 $((count - stuck)) | kubectl create -f - >/dev/null
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
kubectl get certificates -n well -o json | jq --arg now "$now" --arg ends "$(date -u -d '+90 days' +%Y-%m-%dT%H:%M:%SZ)" \
  --arg renewal "$(date -u -d '+60 days' +%Y-%m-%dT%H:%M:%SZ)" '
  .items[].status = {revision: 1, notBefore: $now, notAfter: $ends, renewalTime: $renewal, conditions: [
    {type: "Ready", status: "True", reason: "Ready", message: "Certificate is up to date and has not expired", lastTransitionTime: $now}]}' \
  >"$folder/well.json"
kubectl replace --subresource=status -f "$folder/well.json" >/dev/null

"$program" run --kubeconfig "$kubeconfig" "${lead[@]}" --max-concurrent-challenges "$stuck" >"$folder/driver.log" 2>&1 &
driver_pid=$!
kubectl wait --for=condition=Ready clusterissuer/bench --timeout=180s >/dev/null
certificates stuck 1 "$stuck" | kubectl create -f - >/dev/null
until [ "$(kubectl get challenges -n stuck -o json | jq '[.items[] | select(.status.presented and (.status.reason // "") != "")] | length')" = "$stuck" ]; do
  kill -0 "$driver_pid"
  sleep 1
done
kill "$driver_pid"
wait "$driver_pid" || true
driver_pid=

# Runs a command as often as is wanted, and prints its row; its title is $1.
measure() {
  local title=$1 from run pid began peak most=0 status
  shift
  : >"$folder/times"
  from=$(wc -l <"$audit")
  for ((run = 1; run <= runs; run++)); do
    began=$EPOCHREALTIME
    "$program" diagnose --kubeconfig "$kubeconfig" "${lead[@]}" "$@" >"$folder/page" 2>"$folder/said" &
    pid=$!
    while peak=$(awk '$1 == "VmHWM:" { print $2 }' "/proc/$pid/status" 2>/dev/null) && [ -n "$peak" ]; do
      [ "$peak" -le "$most" ] || most=$peak
      sleep 0.02
    done
    status=0
    wait "$pid" || status=$?
    awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", b - a }' >>"$folder/times"
    if [ "$status" != 10 ]; then
      printf 'error: diagnose %s ended with %s:\n' "$*" "$status" >&2
      tail -n 20 "$folder/said" "$folder/page" >&2
      exit 1
    fi
  done
  # The log is written a moment later.
  sleep 2
  sort -n "$folder/times" >"$folder/sorted"
  tail -n "+$((from + 1))" "$audit" | jq -r 'select((.userAgent // "") | startswith("kubectl-acme")) | "\(.verb):\(.objectRef.resource // .requestURI)"' |
    sort | uniq -c | sort -rn >"$folder/requests"
  awk -v title="$title" -v runs="$runs" -v memory="$most" -v times="$folder/sorted" '
    { sum += $1; if (NR <= 8) words = words sprintf(" %s %.1f", $2, $1 / runs) }
    END {
      while ((getline line < times) > 0) time[++n] = line
      p95 = time[int((n * 95 + 99) / 100)]; middle = time[int((n + 1) / 2)]
      printf "%-16s%9.2f s%9.2f s%10.0f%9.0f MB  %s\n", title, middle, p95, sum / runs, memory / 1024, words
    }' "$folder/requests"
}

printf '%s Certificates, %s of them stuck, %s runs each\n' "$count" "$stuck" "$runs"
printf '%-16s%11s%11s%10s%12s   %s\n' DIAGNOSE MEDIAN P95 REQUESTS MEMORY 'OF THEM, A RUN'
measure 'all (-A)' -A
measure one c1 -n stuck
