"""Orders one certificate with certbot's library acme: DIRECTORY ROOT WEBROOT NAME..."""

import sys
from pathlib import Path

import josepy
from acme import challenges, client, crypto_util, messages
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

directory, root, webroot, *names = sys.argv[1:]
key = josepy.JWKRSA(key=rsa.generate_private_key(65537, 2048))
net = client.ClientNetwork(key, verify_ssl=root)
acme = client.ClientV2(client.ClientV2.get_directory(directory, net), net)
acme.new_account(messages.NewRegistration.from_data(email="admin@acme.test", terms_of_service_agreed=True))
private = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
order = acme.new_order(crypto_util.make_csr(private, names))
for authorization in order.authorizations:
    if authorization.body.status == messages.STATUS_VALID:
        continue
    http = next(item for item in authorization.body.challenges if isinstance(item.chall, challenges.HTTP01))
    response, answer = http.response_and_validation(key)
    (Path(webroot) / http.chall.path.lstrip("/")).write_text(answer)
    acme.answer_challenge(http, response)
Path("certificate.pem").write_text(acme.poll_and_finalize(order).fullchain_pem)
