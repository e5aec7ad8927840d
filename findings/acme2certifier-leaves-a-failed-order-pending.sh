#!/usr/bin/env bash
# acme2certifier leaves an order pending for ever whose only authorization is invalid.
#
# RFC 8555 §7.1.6: an order goes from pending to invalid when one of its authorizations fails. acme2certifier looks at once when a
# challenge is answered, and makes challenge and authorization invalid, without an error in either; the order stays pending, and
# says so as long as it is asked. A client that polls the order alone, as the RFC's example of a flow does, waits until its own time
# limit; what ends it is the authorization.
#
# Seen with acme2certifier 0.46.3 behind gunicorn 23.0.0, asked by the library acme 5.9.0, with nobody at the port of the challenge.
# shellcheck source=findings/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python_packages acme2certifier==0.46.3 gunicorn==23.0.0 acme==5.9.0

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -subj '/CN=Test' -days 2 2>/dev/null
cat >acme_srv.cfg <<CFG
[DEFAULT]
debug: False
[CAhandler]
handler_module: acme2certifier.cahandlers.openssl_ca_handler
issuing_ca_key: $work/ca.key
issuing_ca_cert: $work/ca.pem
issuing_ca_crl: $work/crl.pem
cert_save_path: $work/certs
[DBhandler]
handler: wsgi
dbfile: $work/acme.db
CFG
package=$(python3 -c 'import acme2certifier, os; print(os.path.dirname(acme2certifier.__file__))')
cp "$package/share/acme2certifier_wsgi.py" served.py
ACME_SRV_CONFIGFILE=$work/acme_srv.cfg gunicorn served:application --bind "127.0.0.1:$port" --threads 4 >server.log 2>&1 &

cat >order.py <<'PY'
import sys
import time

import josepy
from acme import challenges, client, messages
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

key = josepy.JWKRSA(key=rsa.generate_private_key(65537, 2048))
net = client.ClientNetwork(key)
for _ in range(100):
    try:
        directory = client.ClientV2.get_directory(f"http://127.0.0.1:{sys.argv[1]}/directory", net)
        break
    except Exception:
        time.sleep(0.2)
acme = client.ClientV2(directory, net)
acme.new_account(messages.NewRegistration.from_data(email="admin@example.com", terms_of_service_agreed=True))
# Nobody listens there, so that the look fails at once.
name = "localhost"
request = (
    x509.CertificateSigningRequestBuilder()
    .subject_name(x509.Name([]))
    .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
)
order = acme.new_order(request.public_bytes(serialization.Encoding.PEM))
authorization = order.authorizations[0]
http = next(c for c in authorization.body.challenges if isinstance(c.chall, challenges.HTTP01))
acme.answer_challenge(http, http.response(key))
end = time.monotonic() + 20
while time.monotonic() < end:
    read, _ = acme.poll(authorization)
    if read.body.status != messages.STATUS_PENDING:
        break
    time.sleep(0.5)
http = next(c for c in read.body.challenges if isinstance(c.chall, challenges.HTTP01))
time.sleep(10)
body = acme._post_as_get(order.uri).json()
print(read.body.status.name, http.error is None, body["status"], "error" in body)
PY
expect 'authorization, challenge without error, order ten seconds later, order with error' 'invalid True pending False' "$(python3 order.py "$port")"
finish
