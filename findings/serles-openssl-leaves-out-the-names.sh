#!/usr/bin/env bash
# The OpenSSL back end that the ACME server Serles ships issues certificates without any name.
#
# Its sign() gets the signing request and the list of names, and hands the request alone to `openssl x509 -req`, which copies no
# extension of a request unless it is told to. So the certificate has no subjectAltName, and its subject is that of the request, which
# ACME clients leave empty (RFC 8555 §7.4 asks for the names in subjectAltName). Order, challenge and download succeed; every TLS
# client refuses the certificate afterwards. A client that compares what it gets with what it ordered sees it at once.
#
# Seen with serles-acme 1.3.0 and OpenSSL 3.0: exit 0, a certificate with an empty subject and no subjectAltName.
# shellcheck source=findings/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python_packages serles-acme==1.3.0

openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout leaf.key -subj / \
  -addext 'subjectAltName=DNS:www.example.com' -out request.pem 2>/dev/null
cat >sign.py <<'PY'
from serles.backends.openssl import Backend

backend = Backend({"openssl": {"cacert": "ca.pem", "cakey": "ca.key"}})
request = open("request.pem", "rb").read()
chain, error = backend.sign(request, "CN=www.example.com", ["www.example.com"], "admin@example.com")
print(error)
open("chain.pem", "w").write(chain)
PY
fault=$(python3 sign.py 2>log)
names() { openssl "$1" -in "$2" -noout -text | grep -c 'DNS:www.example.com' || true; }

expect 'what the back end says' 'None' "$fault"
expect 'the name in the request' '1' "$(names req request.pem)"
expect 'the name in the certificate' '0' "$(names x509 chain.pem)"
expect 'the subject of the certificate' 'subject=' "$(openssl x509 -in chain.pem -noout -subject)"
finish
