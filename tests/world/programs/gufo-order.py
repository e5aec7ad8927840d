"""Orders a certificate for one name with gufo-acme, by its webroot client: DIRECTORY ROOT WEBROOT NAME."""

import asyncio
import sys
from pathlib import Path

from gufo.acme.clients.web import WebAcmeClient
from gufo.http.async_client import HttpClient

directory, _, webroot, name = sys.argv[1:]


class Client(WebAcmeClient):
    """The client with an HTTP client that checks no certificate: the library's trusts public roots alone."""

    def _get_client(self, auth=None):
        return HttpClient(headers={"User-Agent": self._user_agent.encode()}, auth=auth, validate_cert=False)


async def main():
    key = Client.get_key()
    async with Client(directory, path=f"{webroot}/.well-known/acme-challenge", key=key) as client:
        await client.new_account("admin@acme.test")
        request = Client.get_domain_csr(name, Client.get_domain_private_key())
        Path("certificate.pem").write_bytes(await client.sign(name, request))


asyncio.run(main())
