#!/usr/bin/env bash
# One certificate with 100 wildcard names over 10 zones by DNS-01: ours beside lego from Debian. Wall time, the CA's requests, and
# what the name servers were asked.
#
#   benches/dns01.sh [PROGRAM]     PROGRAM is a release build of kubectl-acme; without it only lego runs
#
# Debian's BIND serves the zones and takes updates signed by TSIG, a second BIND resolves names for the clients and for the CA,
# and a Pebble without validation sleep and without refused nonces issues. Both servers log every question; what the CA asks
# through the resolver is counted with the rest, and is the same for both clients. lego finds name servers by the system's
# resolver only, which knows nothing of these zones; so it does not look at them before it tells the CA (--dns.disable-cp). It
# asks the resolver for names that are not there yet; so that none remembers their absence, the zones' SOA forbids it. It works on one name after the other, a second each. NAMES (100), ZONES (10), ROUNDS (3).
# Needs port 53 of 127.0.0.1: root, or sysctl net.ipv4.ip_unprivileged_port_start=53.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${1:+$(realpath "$1")}
names=${NAMES:-100}
zones=${ZONES:-10}
rounds=${ROUNDS:-3}
limit=${LIMIT:-600}
authority=127.0.0.1
resolver=127.0.0.1:5354
secret=$(head -c 32 /dev/urandom | base64 -w 0)
folder=$(mktemp -d)
pids=()
stop() {
  for pid in "${pids[@]}"; do { kill "$pid" && wait "$pid"; } 2>/dev/null || true; done
  rm -rf "$folder"
}
trap stop EXIT

# Starts a BIND called $1 on port $2 with more options $3 and the rest of its configuration $4.
start_bind() {
  local place=$folder/$1
  # The profile that some systems confine named with does not apply to a copy.
  cp "$(PATH=$PATH:/usr/sbin command -v named)" "$place/named"
  cat >"$place/named.conf" <<CONF
options {
  directory "$place"; pid-file "$place/pid"; session-keyfile "$place/session"; lock-file none;
  listen-on port $2 { 127.0.0.1; }; listen-on-v6 { none; };
  notify no; dnssec-validation no; empty-zones-enable no; querylog yes; $3
};
controls { };
$4
CONF
  "$place/named" -g -n 1 -c "$place/named.conf" >"$place/log" 2>&1 &
  pids+=($!)
  local tries
  for ((tries = 0; tries < 200; tries++)); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null; then return; fi
    sleep 0.05
  done
  printf 'error: BIND does not answer on port %s\n' "$2" >&2
  tail -n 5 "$place/log" >&2
  exit 1
}

start_servers() {
  local number zone configuration delegations=
  mkdir "$folder/authority" "$folder/resolver"
  configuration="key \"bench.\" { algorithm hmac-sha256; secret \"$secret\"; };"
  for ((number = 1; number <= zones; number++)); do
    zone=zone$number.example.
    # shellcheck disable=SC2016 # words of zone files
    printf '$ORIGIN %s\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 0\n@ NS ns\nns A %s\n' "$zone" "$authority" \
      >"$folder/authority/$zone"
    configuration+=" zone \"$zone\" { type primary; file \"$zone\"; update-policy { grant \"bench.\" zonesub TXT; }; };"
    delegations+="$zone NS ns.$zone"$'\n'"ns.$zone A $authority"$'\n'
  done
  # shellcheck disable=SC2016 # words of zone files
  printf '$ORIGIN .\n$TTL 60\n@ SOA ns. hostmaster. 1 3600 600 86400 2\n@ NS ns.\nns. A %s\n%s' "$authority" "$delegations" \
    >"$folder/resolver/root"
  start_bind authority 53 'recursion no;' "$configuration"
  start_bind resolver "${resolver#*:}" 'recursion yes; allow-recursion { any; };' 'zone "." { type primary; file "root"; };'
}

start_pebble() {
  RETRY_AFTER=0,0 DNS_SERVER=$resolver PEBBLE_WFE_NONCEREJECT=0 "$root/tests/bed/pebble-up" "$folder/pebble" >/dev/null &
  pids+=($!)
  until [ -f "$folder/pebble/ready" ]; do
    kill -0 "${pids[-1]}"
    sleep 0.1
  done
  # shellcheck source=/dev/null
  source "$folder/pebble/ready"
}

# Prints the names of the certificate, one a line; $1 keeps the runs apart.
names() {
  local number
  for ((number = 0; number < names; number++)); do
    printf '*.n%s.%s.zone%s.example\n' "$number" "$1" "$((number % zones + 1))"
  done
}

limited() { timeout "$limit" "$@"; }

run_ours() {
  cat >"$work/manifest.yaml" <<YAML
apiVersion: v1
kind: Secret
metadata: {name: tsig}
stringData: {secret: "$secret"}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: bench}
spec:
  acme:
    server: ${directory:?}
    caBundle: $(base64 -w 0 "$folder/pebble/ca.pem")
    privateKeySecretRef: {name: bench-account}
    solvers:
      - dns01:
          rfc2136:
            nameserver: "$authority"
            tsigKeyName: bench
            tsigAlgorithm: HMACSHA256
            tsigSecretSecretRef: {name: tsig, key: secret}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: bench}
spec:
  secretName: bench-tls
  issuerRef: {name: bench}
  privateKey: {algorithm: ECDSA, size: 256}
  dnsNames: [$(printf '"%s", ' "$@")]
YAML
  limited "$program" order --local="$work/state" -f "$work/manifest.yaml" --out "$work/out" --dns "$resolver"
}

run_lego() {
  local arguments=() name
  for name in "$@"; do arguments+=(--domains "$name"); done
  RFC2136_NAMESERVER=$authority:53 RFC2136_TSIG_ALGORITHM=hmac-sha256. RFC2136_TSIG_KEY=bench. \
    RFC2136_TSIG_SECRET=$secret RFC2136_TTL=1 RFC2136_POLLING_INTERVAL=1 RFC2136_SEQUENCE_INTERVAL=0 \
    LEGO_CA_CERTIFICATES=$folder/pebble/ca.pem limited lego --server "$directory" --accept-tos --email me@example.com \
    --key-type ec256 --path "$work" --dns rfc2136 --dns.resolvers "$resolver" --dns.disable-cp "${arguments[@]}" run
}

# Lines of file $1 that contain $2.
lines() { grep -c -- "$2" "$1" 2>/dev/null || true; }
questions() { lines "$folder/$1/log" ' query: '; }
# An update is logged by its deeds, "adding an RR at" and "deleting an RR at".
updates() { lines "$folder/authority/log" ' an RR at '; }
requests() { lines "$folder/pebble/pebble.log" 'calling handler'; }

# Runs client $1 and prints its quickest run.
measure() {
  local client=$1 round best=$limit began time status list before row=
  for ((round = 1; round <= rounds; round++)); do
    work=$folder/work
    rm -rf "$work"
    mkdir -p "$work"
    mapfile -t list < <(names "$client-$round")
    before=("$(questions authority)" "$(questions resolver)" "$(updates)" "$(requests)")
    began=$EPOCHREALTIME
    status=0
    "run_$client" "${list[@]}" >"$folder/output" 2>&1 </dev/null || status=$?
    time=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
    if [ "$status" != 0 ]; then
      printf 'error: %s did not get its certificate:\n' "$client" >&2
      tail -n 20 "$folder/output" >&2
      exit 1
    fi
    if awk -v a="$time" -v b="$best" 'BEGIN { exit !(a < b) }'; then
      best=$time
      row=$(printf '%12s%12s%12s%12s' "$(($(questions authority) - before[0]))" "$(($(questions resolver) - before[1]))" \
        "$(($(updates) - before[2]))" "$(($(requests) - before[3]))")
    fi
    awk -v a="$time" 'BEGIN { exit !(a < 30) }' || break
  done
  printf '%-10s%8s s%s\n' "$client" "$best" "$row"
}

start_servers
start_pebble
printf '%s wildcard names over %s zones, one certificate\n' "$names" "$zones"
printf '%-10s%10s%12s%12s%12s%12s\n' client wall authority resolver updates 'CA requests'
[ -z "$program" ] || measure ours
measure lego
