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
# shellcheck source=benches/bed.sh
source "$root/benches/bed.sh"
# Nobody listens there.
lead=(--http01-resolve '*=127.0.0.1:1' --dns "${dns:?}")

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
issuer ClusterIssuer | kubectl apply -f - >/dev/null
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

# Nobody drives any more, who would issue these again.
certificates well 1 $((count - stuck)) | kubectl create -f - >/dev/null
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
kubectl get certificates -n well -o json | jq --arg now "$now" --arg ends "$(date -u -d '+90 days' +%Y-%m-%dT%H:%M:%SZ)" \
  --arg renewal "$(date -u -d '+60 days' +%Y-%m-%dT%H:%M:%SZ)" '
  .items[].status = {revision: 1, notBefore: $now, notAfter: $ends, renewalTime: $renewal, conditions: [
    {type: "Ready", status: "True", reason: "Ready", message: "Certificate is up to date and has not expired", lastTransitionTime: $now}]}' \
  >"$folder/well.json"
kubectl replace --subresource=status -f "$folder/well.json" >/dev/null

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
  requests "$from" kubectl-acme >"$folder/requests"
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
