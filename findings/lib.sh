# shellcheck shell=bash
# Sourced by the scripts beside it: pinned packages in a temporary folder, and the comparison of what is seen with what was seen.
# Exit codes: 0 as written, 1 the behaviour has changed, 2 a package cannot be had.
set -euo pipefail

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
