# shellcheck shell=bash
# An API server that writes down what it is asked, and a Pebble beside it, for benches that source this file. They set `root` and
# `bed`, and may set `api_flags`, the API server's, before.
#
# It leaves `folder`, `audit` (the log), `kubeconfig`, `http_port`, `directory` and `dns`, and ends all with the shell, the process
# `driver_pid` too.

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
GOGC=400 API_SERVER_FLAGS="${api_flags:-} --audit-policy-file=$folder/audit.yaml --audit-log-path=$audit --audit-log-maxsize=4000" \
  "${root:?}/tests/bed/cluster-up" "$folder/cluster" >/dev/null 2>"$folder/cluster-up.log" &
cluster_pid=$!
wait_for "$folder/cluster/ready" "$cluster_pid"
# shellcheck source=/dev/null
source "$folder/cluster/ready"
HTTP_PORT=${http_port:?} RETRY_AFTER=${RETRY_AFTER:-3,5} PEBBLE_WFE_NONCEREJECT=0 "$root/tests/bed/pebble-up" "$folder/pebble" >/dev/null &
ca_pid=$!
wait_for "$folder/pebble/ready" "$ca_pid"
# shellcheck source=/dev/null
source "$folder/pebble/ready"
kubectl() { "${bed:?}/kubectl" --kubeconfig "${kubeconfig:?}" "$@"; }

# Prints an issuer of kind $1 that is called bench.
issuer() {
  cat <<YAML
apiVersion: cert-manager.io/v1
kind: $1
metadata: {name: bench}
spec:
  acme:
    server: ${directory:?}
    caBundle: $(base64 -w 0 "$folder/pebble/ca.pem")
    privateKeySecretRef: {name: bench-account}
    solvers: [{http01: {ingress: {ingressClassName: bed}}}]
YAML
}

# Counts what programs whose names begin with $2 asked of the API server since line $1 of the audit log, by verb and kind; watches and
# the Lease apart.
requests() {
  tail -n "+$(($1 + 1))" "$audit" | jq -r --arg agent "$2" '
    select(((.userAgent // "") | startswith($agent)) and .objectRef.resource != "leases" and .verb != "watch") |
      "\(.verb):\(.objectRef.resource // .requestURI)"' | sort | uniq -c | sort -rn
}
