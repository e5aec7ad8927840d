#!/usr/bin/env bash
# dnsmasq passes a signed dynamic update (RFC 2136) on to its upstream server, and the signature of the answer no longer holds.
#
# A resolver that makes no updates answers NOTIMP, as unbound and NSD do. dnsmasq forwards the message like a question; the primary
# server makes the change and signs its answer (RFC 8945 §5.3). dnsmasq then sets RA in its header, which the signature covers. The
# sender sees a wrong signature, and takes a change that was made for a failure, or its secret for a wrong one. An unsigned update
# passes through and is answered with NOERROR, as if dnsmasq were the primary.
#
# Seen with dnsmasq 2.90 of Debian 12 before a server of dnspython 2.8.0: BadSignature, and both changes made; at the server itself
# the signed update is answered with NOERROR.
# shellcheck source=findings/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python_packages dnspython==2.8.0
if ! { apt-get download dnsmasq-base=2.90-4~deb12u2 && dpkg-deb --extract dnsmasq-base_*.deb packages && packages/usr/sbin/dnsmasq --version; } >apt.log 2>&1; then
  printf 'cannot be had: dnsmasq-base\n' >&2
  exit 2
fi

cat >primary.py <<'PY'
import socket
import sys

import dns.message
import dns.tsigkeyring

keys = dns.tsigkeyring.from_text({"key.": "c2VjcmV0"})
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
print(server.getsockname()[1], file=open(sys.argv[1], "w"))
while True:
    wire, sender = server.recvfrom(65535)
    message = dns.message.from_wire(wire, keyring=keys)
    for change in message.sections[2] if message.opcode() == 5 else []:
        print("changed", change.name, flush=True)
    server.sendto(dns.message.make_response(message).to_wire(), sender)
PY
cat >update.py <<'PY'
import sys

import dns.query
import dns.rcode
import dns.tsigkeyring
import dns.update

port, name = int(sys.argv[1]), sys.argv[2]
keys = dns.tsigkeyring.from_text({"key.": "c2VjcmV0"})
signed = {"keyring": keys, "keyname": "key."} if sys.argv[3] == "signed" else {}
update = dns.update.UpdateMessage("example.com", **signed)
update.add(name, 60, "TXT", "text")
try:
    answer = dns.query.udp(update, "127.0.0.1", port=port, timeout=5)
    print(dns.rcode.to_text(answer.rcode()))
except Exception as error:
    print(type(error).__name__)
PY
python3 primary.py port >changes &
until [ -s port ]; do sleep 0.1; done
between=$(python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
packages/usr/sbin/dnsmasq --keep-in-foreground --conf-file=/dev/null --no-hosts --no-resolv --server="127.0.0.1#$(cat port)" \
  --listen-address=127.0.0.1 --bind-interfaces --port="$between" --user="$(id -un)" --pid-file="$work/pid" >dnsmasq.log 2>&1 &
sleep 1

expect 'at the server itself' 'NOERROR' "$(python3 update.py "$(cat port)" direct signed)"
expect 'through dnsmasq' 'BadSignature' "$(python3 update.py "$between" behind signed)"
expect 'through dnsmasq, unsigned' 'NOERROR' "$(python3 update.py "$between" unsigned unsigned)"
expect 'what was changed' 'direct behind unsigned' "$(sed -n 's/changed //p' changes | sed 's/\.example\.com\.//' | paste -sd ' ')"
finish
