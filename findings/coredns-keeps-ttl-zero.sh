#!/usr/bin/env bash
# CoreDNS keeps an answer with a TTL of 0 for five seconds, and hands it out with a TTL of 5.
#
# RFC 1035 §3.2.1: a TTL of zero means that a record is not cached. The plugin cache has a least time for positive answers, five
# seconds unless it is set, also in the line `cache 30` that kubeadm writes. A program that publishes one TXT value with TTL 0, has it
# looked at and replaces it by the next one at once (the DNS-01 challenges of a wildcard and of its base name share one record) has the
# first value looked at again: an ACME CA behind such a resolver finds the wrong text, and the authorization is spent. Both values
# have to stand side by side, or five seconds have to pass.
#
# Seen with CoreDNS 1.12.4, built from its module, and dnspython 2.9.2: "1" with TTL 5, at once again "1", and "2" six seconds later.
# shellcheck source=findings/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python_packages dnspython==2.9.2
go_program github.com/coredns/coredns@v1.12.4

cat >zone.py <<'PY'
# A server that answers each question with the number of the question, and TTL 0.
import socket
import sys

import dns.flags
import dns.message
import dns.rrset

place = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
place.bind(("127.0.0.1", int(sys.argv[1])))
number = 0
while True:
    data, sender = place.recvfrom(4096)
    question = dns.message.from_wire(data)
    reply = dns.message.make_response(question)
    reply.flags |= dns.flags.AA
    asked = question.question[0]
    if asked.name.to_text() == "_acme-challenge.example.test.":
        number += 1
        reply.answer.append(dns.rrset.from_text(asked.name, 0, "IN", "TXT", f'"{number}"'))
    place.sendto(reply.to_wire(), sender)
PY
cat >ask.py <<'PY'
import sys
import time

import dns.message
import dns.query

for _ in range(50):
    try:
        answer = dns.query.udp(dns.message.make_query(sys.argv[2], "TXT"), "127.0.0.1", port=int(sys.argv[1]), timeout=2)
        break
    except (dns.exception.Timeout, OSError):
        time.sleep(0.2)
for record in answer.answer:
    print(record[0].strings[0].decode(), record.ttl)
PY
free_port() { python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
zone=$(free_port)
resolver=$(free_port)
python3 zone.py "$zone" &
printf '.:%s {\n bind 127.0.0.1\n forward . 127.0.0.1:%s\n cache 30\n}\n' "$resolver" "$zone" >Corefile
./coredns -conf Corefile >coredns.log 2>&1 &
# Another name first: both are up once it is answered.
python3 ask.py "$resolver" other.example.test.

ask() { python3 ask.py "$resolver" _acme-challenge.example.test.; }
expect 'the first answer and its TTL' '1 5' "$(ask)"
expect 'the same question at once' '1' "$(ask | cut -d ' ' -f 1)"
sleep 6
expect 'the same question six seconds later' '2' "$(ask | cut -d ' ' -f 1)"
finish
