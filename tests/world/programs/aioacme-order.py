"""Orders one certificate with aioacme: DIRECTORY ROOT WEBROOT NAME..."""

import asyncio
import ssl
import sys
from pathlib import Path

import aioacme
from aioacme._jwk import jwk_thumbprint, make_jwk
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

directory, root, webroot, *names = sys.argv[1:]
WAITING = {"pending", "processing"}


async def settled(read, address):
    """What is at an address, once it waits for nothing."""
    found = await read(address)
    while found.status.value in WAITING:
        await asyncio.sleep(0.5)
        found = await read(address)
    return found


async def main():
    key = ec.generate_private_key(ec.SECP256R1())
    # The library has no words for HTTP-01.
    thumbprint = jwk_thumbprint(make_jwk(key))
    trust = ssl.create_default_context(cafile=root)
    async with aioacme.Client(account_key=key, directory_url=directory, ssl=trust) as client:
        order = await client.new_order([aioacme.Identifier(name) for name in names])
        for address in order.authorizations:
            authorization = await client.get_authorization(address)
            if authorization.status is aioacme.AuthorizationStatus.valid:
                continue
            challenge = next(item for item in authorization.challenges if item.type is aioacme.ChallengeType.http01)
            answer = f"{challenge.token}.{thumbprint}"
            (Path(webroot) / ".well-known/acme-challenge" / challenge.token).write_text(answer)
            await client.answer_challenge(challenge.url)
            await settled(client.get_authorization, address)
        names_of_it = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        request = (
            x509.CertificateSigningRequestBuilder()
            .subject_name(x509.Name([]))
            .add_extension(names_of_it, critical=False)
            .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
        )
        await client.finalize_order(order.finalize, request)
        order = await settled(client.get_order, order.uri)
        Path("certificate.pem").write_bytes(await client.get_certificate(order.certificate))


asyncio.run(main())
