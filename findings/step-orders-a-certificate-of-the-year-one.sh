#!/usr/bin/env bash
# The client step asks for a certificate that is good from the year 1 until the year 1, unless the CA's URL contains "letsencrypt".
#
# RFC 8555 §7.4: notBefore and notAfter are optional members of a new order, and a server that cannot fulfil them has to refuse it.
# `step ca certificate --acme URL` without --not-before and --not-after fills in both: the structure that it borrows from the server
# marks them as "omitempty", which in Go leaves out no time. Only where the URL contains "letsencrypt" it writes another structure,
# with the identifiers alone, and as that has no tags, its member is named "Identifiers". step-ca reads the zero time as none, and a
# server in Go reads names of members in any case (Boulder does), so nobody near by sees either. A CA that takes dates at their word
# refuses every order of the first kind, and one whose JSON is case-sensitive finds no identifiers in the second.
#
# Seen with step 0.21.0, the newest that the module proxy serves: both members with 0001-01-01T00:00:00Z at /acme/directory, and
# "Identifiers" alone at /letsencrypt/directory of the same server.
# shellcheck source=findings/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
go_program github.com/smallstep/cli/cmd/step@v0.21.0

# Orders at a path of a server that takes no order, and prints what newOrder gets.
ordered() {
  acme_stub refuse
  STEPPATH=$work/step-path timeout 60 ./step ca certificate www.example.com leaf.pem leaf.key --force \
    --acme "$server/$1/directory" >step.log 2>&1 || true
  sed -n 's#^/newOrder ##p' posts
}

names='[{"type": "dns", "value": "www.example.com"}]'
expect 'an order at /acme' "{\"identifiers\": $names, \"notAfter\": \"0001-01-01T00:00:00Z\", \"notBefore\": \"0001-01-01T00:00:00Z\"}" "$(ordered acme)"
expect 'an order at /letsencrypt' "{\"Identifiers\": $names}" "$(ordered letsencrypt)"
finish
