#!/usr/bin/env bash
# Certificates in a cluster: wall time from apply to the last one Ready, requests to the API server, and peak memory: ours
# beside cert-manager's own controllers, one after the other on one API server and one Pebble.
#
#   benches/cluster.sh PROGRAM       PROGRAM is a release build of kubectl-acme
#
#   COUNTS="1 100"                   certificates of one name each, at once
#   DRIVERS="ours default lifted"    ours (`run`); cert-manager as it comes; with 50 workers and 1,000 requests a second
#   RETRY_AFTER=3,5                  seconds in Pebble's Retry-After of authorizations and orders; 0,0 sends none
#   ANSWERS=                         at-once: challenges are answered as soon as they exist, and no solver Pod runs
#   KEY=RSA                          or ECDSA: the certificates' keys
#   LIMIT=900                        seconds after which a run is given up
#   CHALLENGES=10000                 lists so many Challenges at the end, and their schedule; 0 leaves it out
#
# The Issuer is Ready before the clock starts. Challenges travel through Pod, Service and Ingress of the bed's stand-in,
# unless they are answered at once.
# The API server has no priority and fairness, else cert-manager lifts its own limits. Requests are its audit log's.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(realpath "$1")
bed=${KUBECTL_ACME_BED:-$("$root/tests/bed/where")}
limit=${LIMIT:-900}
key=${KEY:-RSA}
challenges=${CHALLENGES:-10000}
# shellcheck disable=SC2034 # read by bed.sh
api_flags=--enable-priority-and-fairness=false
# shellcheck source=benches/bed.sh
source "$root/benches/bed.sh"
server=$("$bed/kubectl" --kubeconfig "${kubeconfig:?}" config view -o 'jsonpath={.clusters[0].cluster.server}')

start_ours() {
  "$program" run --kubeconfig "$kubeconfig" --dns "${dns:?}" --http01-resolve "*=127.0.0.1:$http_port" >"$folder/driver.log" 2>&1 &
  driver_pid=$!
}
start_default() {
  HTTP_PROXY=http://127.0.0.1:$http_port "$bed/peer" controllers --kubeconfig "$kubeconfig" "$@" >"$folder/driver.log" 2>&1 &
  driver_pid=$!
}
start_lifted() { start_default --kube-api-qps 1000 --kube-api-burst 1000 --concurrent-workers 50; }

# Prints certificates 1 to $1 of namespace $2.
certificates() {
  local number
  for ((number = 1; number <= $1; number++)); do
    cat <<YAML
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: c$number}
spec:
  secretName: c$number-tls
  issuerRef: {name: bench}
  privateKey: {algorithm: $key, rotationPolicy: Always}
  dnsNames: [c$number.$2.example.com]
YAML
  done
}

# Notes in file $2 which certificates of namespace $1 are Ready. One watch, for kubectl and lists would keep half a core busy.
follow() {
  curl --silent --no-buffer --cacert "$folder/cluster/ca.pem" --cert "$folder/cluster/admin.pem" --key "$folder/cluster/admin.key" \
    "$server/apis/cert-manager.io/v1/namespaces/$1/certificates?watch=1" |
    jq --unbuffered --raw-output '.object | select(any(.status.conditions[]?; .type == "Ready" and .status == "True")).metadata.name' >"$2" &
}

# How many different names are in file $1.
ready() { sort -u "$1" | wc -l; }

# The sum of the driver's requests since line $1 of the audit log, and each kind of them.
summed() {
  requests "$1" "$agent" | awk '{ sum += $1; words = words " " $2 " " $1 } END { printf "%d%s\n", sum, words }'
}

printf 'Retry-After %s s, %s keys, challenges answered %s\n' "${RETRY_AFTER:-3,5}" "$key" "${ANSWERS:-by solver Pods}"
printf '%8s   %-9s%10s%10s%12s%10s   %s\n' COUNT DRIVER TIME RATE REQUESTS MEMORY 'OF THEM'
for driver in ${DRIVERS:-ours default lifted}; do
  agent=kubectl-acme
  [ "$driver" = ours ] || agent=cert-manager
  "start_$driver"
  for count in ${COUNTS:-1 100}; do
    namespace=$driver-$count
    kubectl create namespace "$namespace" >/dev/null
    issuer Issuer | kubectl apply -n "$namespace" -f - >/dev/null
    kubectl wait -n "$namespace" --for=condition=Ready issuer/bench --timeout=180s >/dev/null
    certificates "$count" "$namespace" >"$folder/certificates.yaml"
    from=$(wc -l <"$audit")
    follow "$namespace" "$folder/followed"
    began=$EPOCHREALTIME
    kubectl apply --server-side -n "$namespace" -f "$folder/certificates.yaml" >/dev/null
    until [ "$(ready "$folder/followed")" = "$count" ]; do
      kill -0 "$driver_pid"
      if awk -v a="$began" -v b="$EPOCHREALTIME" -v l="$limit" 'BEGIN { exit !(b - a > l) }'; then
        printf 'error: %s has %s of %s certificates after %s s\n' "$driver" "$(ready "$folder/followed")" "$count" "$limit" >&2
        exit 1
      fi
      sleep 0.2
    done
    seconds=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
    memory=$(awk '/VmHWM/ { printf "%.0f", $2 / 1024 }' "/proc/$driver_pid/status")
    until [ -z "$(kubectl get challenges,pods -n "$namespace" -o name 2>/dev/null)" ]; do sleep 0.5; done
    read -r sum words <<<"$(summed "$from")"
    rate=$(awk -v n="$count" -v s="$seconds" 'BEGIN { printf "%.1f", n / s }')
    each=$(awk -v n="$count" -v r="$sum" 'BEGIN { printf "%.0f", r / n }')
    printf '%8s   %-9s%8s s%8s/s%7s each%7s MB   %s\n' "$count" "$driver" "$seconds" "$rate" "$each" "$memory" "$words"
  done
  kill "$driver_pid"
  wait "$driver_pid" || true
  driver_pid=
done

[ "$challenges" -gt 0 ] || exit 0
kubectl create namespace many >/dev/null
for ((number = 1; number <= challenges; number++)); do
  cat <<YAML
---
apiVersion: acme.cert-manager.io/v1
kind: Challenge
metadata: {name: many-$number, namespace: many}
spec:
  authorizationURL: https://ca.example/authz/$number
  dnsName: n$number.many.example.com
  issuerRef: {name: bench}
  key: token.thumbprint
  solver: {http01: {ingress: {}}}
  token: token
  type: HTTP-01
  url: https://ca.example/challenge/$number
YAML
done >"$folder/challenges.yaml"
kubectl create -f "$folder/challenges.yaml" >/dev/null
for command in 'challenge get' schedule; do
  began=$EPOCHREALTIME
  # shellcheck disable=SC2086
  rows=$("$program" $command --kubeconfig "$kubeconfig" --namespace many --no-headers 2>/dev/null | wc -l)
  awk -v a="$began" -v b="$EPOCHREALTIME" -v c="$command" -v n="$rows" 'BEGIN { printf "%-16s%6d rows%8.2f s\n", c, n, b - a }'
done
