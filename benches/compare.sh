#!/usr/bin/env bash
# Start-up and tables, then the race: wall time and requests for one certificate of 1, 20 and 100 names: ours beside certbot and lego from Debian.
#
#   benches/compare.sh [PROGRAM]     PROGRAM is a release build of kubectl-acme; without it only the peers run
#
# One Pebble, no validation sleep, no refused nonces, no reused authorizations; its own Retry-After (RETRY_AFTER=3,5)
# and then none (0,0). ECDSA P-256 keys everywhere. Every run makes its own account and order. ROUNDS (default 3) runs
# each; the quickest counts. A run that takes more than 10 s is not repeated, one that takes LIMIT seconds (default 120)
# is given up: lego waits for Retry-After name by name. Requests are what Pebble logged, its refusals included.
# CLIENTS (default "ours certbot lego") names those who take part.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${1:+$(realpath "$1")}
rounds=${ROUNDS:-3}
limit=${LIMIT:-120}
folder=$(mktemp -d)
stop_pebble() {
  [ -z "${pebble_pid:-}" ] || { kill "$pebble_pid" && wait "$pebble_pid"; } 2>/dev/null || true
  pebble_pid=
}
trap 'stop_pebble; rm -rf "$folder"' EXIT

# Starts a Pebble whose Retry-After is $1; sets directory, dns and http_port.
start_pebble() {
  rm -rf "$folder/pebble"
  RETRY_AFTER=$1 PEBBLE_WFE_NONCEREJECT=0 "$root/tests/bed/pebble-up" "$folder/pebble" >/dev/null &
  pebble_pid=$!
  until [ -f "$folder/pebble/ready" ]; do
    kill -0 "$pebble_pid"
    sleep 0.1
  done
  # shellcheck source=/dev/null
  source "$folder/pebble/ready"
}

# Prints the names of a certificate of $1 names, one a line; $2 keeps the runs apart.
names() {
  local number
  for ((number = 1; number <= $1; number++)); do printf 'n%s.%s.example.com\n' "$number" "$2"; done
}

limited() { timeout "$limit" "$@"; }

run_ours() {
  cat >"$work/manifest.yaml" <<YAML
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: bench}
spec:
  acme:
    server: ${directory:?}
    caBundle: $(base64 -w 0 "$folder/pebble/ca.pem")
    privateKeySecretRef: {name: bench-account}
    solvers: [{http01: {ingress: {}}}]
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: bench}
spec:
  secretName: bench-tls
  issuerRef: {name: bench}
  privateKey: {algorithm: ECDSA, size: 256}
  dnsNames: [$(printf '%s, ' "$@")]
YAML
  limited "$program" order --local="$work/state" -f "$work/manifest.yaml" --out "$work/out" --dns "${dns:?}" \
    --http01-listen "127.0.0.1:${http_port:?}" --http01-resolve "*=127.0.0.1:$http_port"
}

run_certbot() {
  local arguments=() name
  for name in "$@"; do arguments+=(-d "$name"); done
  REQUESTS_CA_BUNDLE=$folder/pebble/ca.pem limited certbot certonly --standalone --http-01-port "$http_port" \
    --non-interactive --agree-tos --register-unsafely-without-email --key-type ecdsa --elliptic-curve secp256r1 \
    --server "$directory" --config-dir "$work/config" --work-dir "$work/work" --logs-dir "$work/logs" "${arguments[@]}"
}

run_lego() {
  local arguments=() name
  for name in "$@"; do arguments+=(--domains "$name"); done
  LEGO_CA_CERTIFICATES=$folder/pebble/ca.pem limited lego --server "$directory" --accept-tos --email me@example.com \
    --key-type ec256 --path "$work" --http --http.port "127.0.0.1:$http_port" "${arguments[@]}" run
}

logged_requests() { grep -c 'calling handler' "$folder/pebble/pebble.log" || true; }

# Says whether number $1 is less than number $2.
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

# Runs client $1 for $2 names, and prints the quickest time, how many times as long as ours that is, and its requests.
measure() {
  local client=$1 count=$2 round best=$limit requests=- began before time status list ratio=-
  for ((round = 1; round <= rounds; round++)); do
    work=$folder/work
    rm -rf "$work"
    mkdir -p "$work"
    mapfile -t list < <(names "$count" "$client-$count-$round")
    before=$(logged_requests)
    began=$EPOCHREALTIME
    status=0
    "run_$client" "${list[@]}" >"$folder/output" 2>&1 </dev/null || status=$?
    time=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
    [ "$status" != 124 ] || break
    if [ "$status" != 0 ]; then
      printf 'error: %s did not get a certificate for %s names:\n' "$client" "$count" >&2
      tail -n 20 "$folder/output" >&2
      kill -0 "$pebble_pid" 2>/dev/null || { printf 'Pebble has ended; its last words:\n' && tail -n 5 "$folder/pebble/pebble.log"; } >&2
      exit 1
    fi
    if less "$time" "$best"; then
      best=$time
      requests=$(($(logged_requests) - before))
    fi
    less "$time" 10 || break
  done
  if [ "$client" = ours ]; then ours[count]=$best; fi
  if [ -n "${ours[$count]:-}" ]; then ratio=$(awk -v a="$best" -v b="${ours[$count]}" 'BEGIN { printf "%.1f", a / b }'); fi
  if [ "$best" = "$limit" ]; then
    best="over $limit"
    [ "$ratio" = - ] || ratio="over $ratio"
  fi
  printf '%8s   %-10s%10s s%12s%10s\n' "$count" "$client" "$best" "$ratio" "$requests"
}

# Prints the quickest of $1 runs of the command that follows, and the least time it spent on a processor, in milliseconds.
quickest() {
  local runs=$1 run wall user system TIMEFORMAT='%3R %3U %3S'
  shift
  for ((run = 1; run <= runs; run++)); do
    { time "$@" >"$folder/output" 2>"$folder/errors"; } 2>"$folder/time"
    read -r wall user system <"$folder/time"
    printf '%s %s %s\n' "$wall" "$user" "$system"
  done | awk '
    NR == 1 || $1 < wall { wall = $1 }
    NR == 1 || $2 + $3 < busy { busy = $2 + $3 }
    END { printf "%7.0f ms, %4.0f ms of a processor", wall * 1000, busy * 1000 }'
}

# Copies the one Order of a state folder, as it was issued, until there are $2.
multiply_orders() {
  python3 - "$1/state.db" "$2" <<'PYTHON'
import sqlite3, sys

database = sqlite3.connect(sys.argv[1])
copies = "WITH RECURSIVE copy(number) AS (SELECT 2 UNION ALL SELECT number + 1 FROM copy WHERE number < ?)"
database.execute(
    f"{copies} INSERT INTO object(kind, namespace, name, uid, involved, body)"
    " SELECT kind, namespace, name || '-' || number, uid || '-' || number, involved,"
    " json_set(body, '$.metadata.name', name || '-' || number, '$.metadata.uid', uid || '-' || number)"
    " FROM object, copy WHERE kind = 'Order'",
    (int(sys.argv[2]),),
)
database.execute(
    "INSERT OR REPLACE INTO brief(object, body)"
    " SELECT id, json_set(body, '$.spec.request', '', '$.status.authorizations', json('[]'), '$.status.certificate', '')"
    " FROM object WHERE kind = 'Order'"
)
database.commit()
PYTHON
}

measure_tables() {
  local rows
  work=$folder/tables
  mkdir -p "$work"
  run_ours one.tables.example.com >"$folder/output" 2>&1
  multiply_orders "$work/state" 10000
  rows=$("$program" order get --local="$work/state" --no-headers | wc -l)
  printf '%-42s%s\n' 'kubectl-acme --help' "$(quickest 20 "$program" --help)"
  printf '%-42s%s\n' "kubectl-acme order get, $rows orders" "$(quickest 10 "$program" order get --local="$work/state")"
}

read -ra clients <<<"${CLIENTS-ours certbot lego}"
if [ -n "$program" ]; then
  start_pebble 0,0
  measure_tables
  stop_pebble
else
  clients=(certbot lego)
fi
for retry_after in 3,5 0,0; do
  start_pebble "$retry_after"
  printf '\nRetry-After of authorizations and orders: %s s\n' "$retry_after"
  printf '%8s   %-10s%12s%12s%10s\n' NAMES CLIENT TIME 'TO OURS' REQUESTS
  ours=()
  for count in 1 20 100; do
    for client in "${clients[@]}"; do measure "$client" "$count"; done
  done
  stop_pebble
done
