#!/usr/bin/env bash
# What clients of ACME make of everything that a CA or the network may do: ours beside certbot and lego from Debian, and acmez.
#
#   benches/conformance.sh PROGRAM   PROGRAM is a build of kubectl-acme; writes docs/conformance.md, which has the rules
#
#   LIMIT=60                         seconds that a run may take
#   SIDE_BY_SIDE=4                   runs at once: most of them wait
#   CLIENTS="ours certbot lego acmez" who takes part; a client that is not installed is left out, and that is said
#   ROW=                             only behaviours whose names match this expression: prints the page, and writes nothing
#   RESUME=                          a file that keeps what each run came to: those of it are not run again, if their line is the same
#   TALK=                            anything: what clients say is printed
#
# `apt-get install certbot lego golang openssl python3` has all but acmez, which Go fetches as a module (benches/conformance/go.sum).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PROGRAM=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Debian's clients, not what else a PATH may have.
PATH=/usr/bin:$PATH

there=()
VERSIONS="ours: $("$PROGRAM" version)"
ACMEZ=
for client in ${CLIENTS:-ours certbot lego acmez}; do
  case $client in
  ours) ;;
  acmez)
    if ! command -v go >/dev/null || ! (cd "$root/benches/conformance" && go build -o "$folder/acmez" .); then
      echo "acmez is left out: there is no Go here, or its modules cannot be had" >&2
      continue
    fi
    ACMEZ=$folder/acmez
    VERSIONS+=$'\n'"acmez: $(sed -n 's/^require \(.*acmez.*\)$/\1/p' "$root/benches/conformance/go.mod"), with $(go env GOVERSION)"
    ;;
  *)
    if ! command -v "$client" >/dev/null; then
      echo "$client is left out: apt-get install $client" >&2
      continue
    fi
    package=$(dpkg-query --show --showformat='${Version}' "$client" 2>/dev/null) || package='not of Debian'
    VERSIONS+=$'\n'"$("$client" --version), package $package"
    ;;
  esac
  there+=("$client")
done
CLIENTS="${there[*]}"
export PROGRAM ACMEZ VERSIONS CLIENTS PYTHONDONTWRITEBYTECODE=1
python3 "$root/benches/conformance/run.py" "$root/docs/conformance.md"
