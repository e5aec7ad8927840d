# shellcheck shell=bash
# Sourced by the scripts beside it: pinned packages in a temporary folder, and the comparison of what is seen with what was seen.
# Exit codes: 0 as written, 1 the behaviour has changed, 2 a package cannot be had.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
changed=0
# shellcheck disable=SC2046
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

# Installs Python packages, NAME==VERSION each, into an environment of their own; `python3` is then its interpreter.
python_packages() {
  python3 -m venv venv
  if ! venv/bin/pip install --quiet --disable-pip-version-check "$@" >pip.log 2>&1; then
    printf 'cannot be had: %s\n' "$*" >&2
    exit 2
  fi
  PATH=$work/venv/bin:$PATH
}

# Builds a Go program, MODULE/PACKAGE@VERSION, into the temporary folder.
go_program() {
  if ! GOBIN=$work CGO_ENABLED=0 go install "$1" >go.log 2>&1; then
    printf 'cannot be had: %s\n' "$1" >&2
    exit 2
  fi
}

# Starts stub.py with these words, and sets `server` to its URL; what it is sent is in the file `posts`.
acme_stub() {
  rm -f port
  python3 "$here/stub.py" port "$@" >posts &
  until [ -s port ]; do sleep 0.1; done
  # shellcheck disable=SC2034
  server=http://127.0.0.1:$(cat port)
}

# Compares what is seen ($3) with what was seen ($2), under a title ($1).
expect() {
  if [ "$2" = "$3" ]; then
    printf 'as written  %s: %s\n' "$1" "$3"
  else
    printf 'CHANGED     %s: %s; it was: %s\n' "$1" "$3" "$2"
    changed=1
  fi
}

# Ends the script by what was compared.
finish() { exit "$changed"; }
