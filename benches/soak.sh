#!/usr/bin/env bash
# `run` for a long time, with many certificates of short life and faults all along: on this machine and in a cluster, side by side.
#
#   benches/soak.sh PROGRAM MINUTES  PROGRAM is a release build of kubectl-acme; at least 10 minutes and two times RENEWAL
#
#   LOCAL=2000                       certificates in a local store; 0 leaves it out
#   CLUSTER=300                      certificates in a cluster; 0 leaves it out
#   RENEWAL=6                        minutes between two renewals of a certificate; each lives an hour
#
# Each has a CA of its own (`kubectl-acme ca`), which refuses five of a hundred good nonces and stands still for 10 s every 3 minutes.
# In the first ten minutes `run` is killed every 2 minutes and started anew; then it stays. Once a minute a line tells memory and
# certificates. It fails when
#
#   - a certificate is not valid, or its renewal is more than LATE minutes overdue;
#   - memory at the end is more than 1.15 times what it was ten minutes in: the mean of the last RENEWAL minutes against that of as
#     many after the last kill, for it goes up and down as renewals come in waves;
#   - the CA is asked more than 1.3 times what as many first orders and renewals cost in a quiet time, which is tried first.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(realpath "$1")
minutes=${2:?minutes}
local_count=${LOCAL:-2000}
cluster_count=${CLUSTER:-300}
renewal=${RENEWAL:-6}
# Renewals that are due while the CA stands still, or while nothing runs, have to catch up.
late=${LATE:-4}
folder=$(mktemp -d)
declare -A ca_pid run_pid port
cleanup() {
  trap - EXIT INT TERM
  for pid in "${ca_pid[@]}" "${run_pid[@]}" "${cluster_pid:-}"; do
    kill -CONT "$pid" 2>/dev/null && kill "$pid" 2>/dev/null
  done
  wait 2>/dev/null
  rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# Starts the CA of place $1, with more flags.
start_ca() {
  local place=$1
  shift
  rm -f "$folder/$place.root"
  "$program" ca --listen 127.0.0.1:0 --root "$folder/$place.root" --http01-resolve "*=127.0.0.1:${port[$place]}" "$@" \
    >"$folder/$place.ca" 2>&1 &
  ca_pid[$place]=$!
  until [ -s "$folder/$place.root" ] && grep -q 'directory: ' "$folder/$place.ca"; do
    kill -0 "${ca_pid[$place]}"
    sleep 0.1
  done
}

# Prints an Issuer of the CA of place $1, and $2 Certificates.
manifests() {
  local number directory
  directory=$(grep -om 1 'https://[^ ]*' "$folder/$1.ca")
  cat <<YAML
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: soak}
spec:
  acme:
    server: $directory
    caBundle: $(base64 -w 0 "$folder/$1.root")
    enableDurationFeature: true
    privateKeySecretRef: {name: soak-account}
    solvers: [{http01: {ingress: {}}}]
YAML
  for ((number = 1; number <= $2; number++)); do
    cat <<YAML
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: soak-$number}
spec:
  secretName: soak-$number-tls
  issuerRef: {name: soak}
  duration: 1h
  renewBefore: $((60 - renewal))m
  privateKey: {algorithm: ECDSA, size: 256}
  dnsNames: [n$number.$1.example.com]
YAML
  done
}

# Where the objects of place $1 are, as flags.
where() {
  case $1 in
    cluster) printf '%s\n' --kubeconfig "${kubeconfig:?}" --namespace soak ;;
    *) printf '%s\n' "--local=$folder/$1.state" ;;
  esac
}

start_run() {
  local flags
  mapfile -t flags < <(where "$1")
  [ "$1" != cluster ] || flags=(--kubeconfig "${kubeconfig:?}")
  "$program" run "${flags[@]}" --http01-listen "127.0.0.1:${port[$1]}" --http01-resolve "*=127.0.0.1:${port[$1]}" \
    >>"$folder/$1.run" 2>&1 </dev/null &
  run_pid[$1]=$!
}

apply() {
  if [ "$1" = cluster ]; then
    "$bed/kubectl" --kubeconfig "$kubeconfig" apply --server-side --namespace soak -f - >/dev/null
  else
    local flags
    mapfile -t flags < <(where "$1")
    "$program" order "${flags[@]}" -f - --http01-listen "127.0.0.1:${port[$1]}" --http01-resolve "*=127.0.0.1:${port[$1]}" \
      --timeout 30m -o name >"$folder/$1.order" 2>&1 || {
      local status=$?
      tail -n 40 "$folder/$1.order" >&2
      return "$status"
    }
  fi
}

# Ends the CA of place $1; sets `requests` to how many it was asked, and `orders` to the orders among them.
asked() {
  # No subshell may do this: it cannot wait for a process of its parent, and the CA says what it was asked when it ends.
  kill "${ca_pid[$1]}"
  wait "${ca_pid[$1]}" || true
  unset "ca_pid[$1]"
  read -r requests orders < <(grep -o '"[a-zA-Z]*": [0-9]*' "$folder/$1.ca" | awk -F '": ' '
    { sum += $2 }
    $1 == "\"newOrder" { orders = $2 }
    END { print sum, orders }')
}

# How many certificates of place $1 there are, how many are not valid, and how many are overdue.
counts() {
  local flags
  mapfile -t flags < <(where "$1")
  "$program" get certificate "${flags[@]}" -o json | jq -r --argjson late "$((late * 60))" '
    [.items[].status] | [
      length,
      (map(select((.notAfter // "1970-01-01T00:00:00Z" | fromdate) <= now)) | length),
      (map(select((.renewalTime // "1970-01-01T00:00:00Z" | fromdate) + $late <= now)) | length)
    ] | @tsv'
}

rss() { awk '$1 == "VmRSS:" { print int($2 / 1024) }' "/proc/${run_pid[$1]}/status"; }

# A free port that nobody takes meanwhile is good enough here.
port=([first]=5101 [again]=5102 [local]=5103 [cluster]=5104)
for place in first again; do
  start_ca "$place"
  manifests "$place" 200 | apply "$place"
done
asked first
first=$(awk -v r="$requests" 'BEGIN { printf "%.2f", r / 200 }')
"$program" certificate renew --all "--local=$folder/again.state" --http01-listen 127.0.0.1:5102 --http01-resolve '*=127.0.0.1:5102' \
  --timeout 30m -o name >"$folder/again.order" 2>&1
asked again
again=$(awk -v r="$requests" -v f="$first" -v o="$orders" 'BEGIN { printf "%.2f", (r - 200 * f) / (o - 200) }')
printf 'in a quiet time a first order costs %s requests, a renewal %s\n' "$first" "$again"

places=()
if [ "$local_count" -gt 0 ]; then places+=(local); fi
if [ "$cluster_count" -gt 0 ]; then
  places+=(cluster)
  bed=${KUBECTL_ACME_BED:-$("$root/tests/bed/where")}
  mkdir "$folder/cluster"
  GOGC=400 "$root/tests/bed/cluster-up" "$folder/cluster" >/dev/null 2>"$folder/cluster-up.log" &
  cluster_pid=$!
  until [ -f "$folder/cluster/ready" ]; do
    kill -0 "$cluster_pid"
    sleep 0.1
  done
  # shellcheck source=/dev/null
  source "$folder/cluster/ready"
  "$bed/kubectl" --kubeconfig "${kubeconfig:?}" create namespace soak >/dev/null
fi
for place in "${places[@]}"; do
  start_ca "$place" --refuse-nonces 5
  [ "$place" = cluster ] && start_run cluster
  count=${place}_count
  manifests "$place" "${!count}" | apply "$place"
  [ "$place" = cluster ] || start_run "$place"
done
until [ "$cluster_count" = 0 ] || [ "$(counts cluster | cut -f 2)" = 0 ]; do sleep 2; done

failed=0
declare -A early late_memory
printf '%6s' MINUTE
for place in "${places[@]}"; do printf '%18s%8s%9s%9s' "$place: MEMORY" COUNT INVALID OVERDUE; done
echo
for ((minute = 1; minute <= minutes; minute++)); do
  for place in "${places[@]}"; do
    if ((minute <= 10 && minute % 2 == 0)); then
      kill -KILL "${run_pid[$place]}"
      wait "${run_pid[$place]}" 2>/dev/null || true
      start_run "$place"
    fi
    if ((minute % 3 == 0)); then kill -STOP "${ca_pid[$place]}"; fi
  done
  sleep 10
  for place in "${places[@]}"; do kill -CONT "${ca_pid[$place]}"; done
  sleep 50
  printf '%6s' "$minute"
  for place in "${places[@]}"; do
    memory=$(rss "$place")
    ((minute <= 10 || minute > 10 + renewal)) || early[$place]=$((${early[$place]:-0} + memory))
    ((minute <= minutes - renewal)) || late_memory[$place]=$((${late_memory[$place]:-0} + memory))
    read -r all invalid overdue < <(counts "$place")
    ((invalid + overdue == 0)) || failed=1
    printf '%15s MB%8s%9s%9s' "$memory" "$all" "$invalid" "$overdue"
  done
  echo
done
for place in "${places[@]}"; do
  kill "${run_pid[$place]}"
  wait "${run_pid[$place]}" || true
  unset "run_pid[$place]"
  asked "$place"
  count=${place}_count
  if ! awk -v p="$place" -v e="${early[$place]}" -v l="${late_memory[$place]}" -v r="$requests" -v o="$orders" -v n="${!count}" \
    -v f="$first" -v a="$again" -v m="$renewal" '
    BEGIN {
      # `run` asks once for each certificate when it is to be renewed (RFC 9773), which the commands of the quiet time do not.
      quiet = n * f + (o - n) * a + o
      printf "%s: memory %.0f MB -> %.0f MB (%.2f); %d requests for %d first orders and %d renewals, %.2f times what a quiet time takes\n",
        p, e / m, l / m, l / e, r, n, o - n, r / quiet
      exit !(l / e <= 1.15 && r / quiet <= 1.3)
    }'; then
    failed=1
  fi
done
if [ "$failed" != 0 ]; then
  echo 'error: something above is not as it has to be' >&2
  exit 1
fi
