#!/bin/sh
# Issues what is due of the manifests in a folder, in a pipeline that starts on an empty machine each time.
#
#   issue.sh [FOLDER]      the folder of manifests; without one, certificates
#
#   STATE_PASSWORD         encrypts the state between two runs: account key, certificates and keys, in state.enc
#   DNS_API_TOKEN          token of the DNS provider, given as Secret dns, key api-token
#   KUBECTL_ACME_*         every flag of `order`, such as KUBECTL_ACME_TIMEOUT
#
# Leaves out/SECRETNAME/tls.crt and tls.key, result.json (docs/reports.md), junit.xml, and state.enc for the next run, and ends
# with the exit code of `order`: 4 and 9 want a person, 5 and 6 another run.
set -eu

folder=${1:-certificates}
: "${STATE_PASSWORD:?a password that encrypts the state between two runs}"
umask 077

cipher() { openssl enc -aes-256-cbc -pbkdf2 -pass env:STATE_PASSWORD "$@"; }

# Without the account key every run would register a new account, and all that is there would be ordered anew.
if [ -s state.enc ]; then
  if ! cipher -d -in state.enc -out state.tar; then
    echo "error: state.enc cannot be decrypted: STATE_PASSWORD is another one than that of the run before" >&2
    exit 1
  fi
  tar -xf state.tar
  rm state.tar
fi

token() {
  [ -n "${DNS_API_TOKEN:-}" ] || return 0
  printf 'apiVersion: v1\nkind: Secret\nmetadata: {name: dns}\nstringData: {api-token: "%s"}\n' "$DNS_API_TOKEN"
}

manifests="-f $folder"
[ -z "${DNS_API_TOKEN:-}" ] || manifests="$manifests -f -"

code=0
# shellcheck disable=SC2086 # two flags
token | kubectl-acme order $manifests --local=state --out=out --rehearse-first -o json \
  --report=junit=junit.xml ${GITHUB_ACTIONS:+--report=github} >result.json || code=$?

# Also after a failure: the order goes on in the next run.
if [ -d state ]; then
  tar -c state | cipher -out state.enc.new
  mv state.enc.new state.enc
fi

changed=$(grep -c '"changed": true' result.json || true)
echo "certificates issued by this run: $changed"
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  echo "changed=$changed" >>"$GITHUB_OUTPUT"
fi
exit "$code"
