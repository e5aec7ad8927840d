#!/usr/bin/env bash
# The Python package idna cannot encode the names that DNS-01 is about, although they are plain ASCII.
#
# `_acme-challenge.example.com` (RFC 8555 §8.4) and `*.example.com` (RFC 8555 §7.1.3) hold nothing to convert, and the standard
# library's own codec of the same name returns them as they are. idna.encode() checks every label by the rules for host names, so it
# raises InvalidCodepoint for `_` and `*`. A program that sends all names through it for the sake of `münchen.example` fails at its
# first DNS-01 challenge, and at each wildcard; the label has to be taken off before, and put back behind.
#
# Seen with idna 3.20: InvalidCodepoint for both names, and for the converted one behind the label; the codec leaves ASCII alone.
# shellcheck source=findings/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python_packages idna==3.20

encoded() {
  python3 - "$1" <<'PY'
import sys
import idna
try:
    print(idna.encode(sys.argv[1]).decode())
except idna.IDNAError as error:
    print(type(error).__name__)
PY
}
codec() { python3 -c 'import sys; print(sys.argv[1].encode("idna").decode())' "$1"; }

expect 'a host name' 'xn--mnchen-3ya.example' "$(encoded münchen.example)"
expect 'the owner name of a challenge' 'InvalidCodepoint' "$(encoded _acme-challenge.example.com)"
expect 'the same below a name to convert' 'InvalidCodepoint' "$(encoded _acme-challenge.münchen.example)"
expect 'a wildcard' 'InvalidCodepoint' "$(encoded '*.example.com')"
expect 'the owner name, by the codec of the standard library' '_acme-challenge.example.com' "$(codec _acme-challenge.example.com)"
expect 'a wildcard, by the codec of the standard library' '*.example.com' "$(codec '*.example.com')"
finish
