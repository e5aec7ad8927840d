#!/usr/bin/env bash
# aioacme cannot read an authorization that offers a challenge of a type that is newer than the library.
#
# RFC 8555 §7.5 lets a server offer challenges of any type, and the client does one that it knows. The library compares every answer
# with a JSON schema in which the types are listed, so one unknown type beside http-01 makes the whole authorization unreadable: no
# name can be proven at a CA that offers dns-persist-01 as well, whatever the client means to do.
#
# Seen with aioacme 0.6.0: SchemaValidationError for an authorization with http-01 and dns-persist-01; http-01 alone is read.
# shellcheck source=findings/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python_packages aioacme==0.6.0
cat >read.py <<'PY'
import asyncio
import sys

import aioacme
from cryptography.hazmat.primitives.asymmetric import ec


async def main():
    key = ec.generate_private_key(ec.SECP256R1())
    async with aioacme.Client(account_key=key, directory_url=f"{sys.argv[1]}/directory") as client:
        order = await client.new_order([aioacme.Identifier("www.example.com")])
        try:
            authorization = await client.get_authorization(order.authorizations[0])
            print([challenge.type.value for challenge in authorization.challenges])
        except Exception as error:
            print(type(error).__name__)


asyncio.run(main())
PY
acme_stub ready
expect 'http-01 alone' "['http-01']" "$(python3 read.py "$server")"
acme_stub pending
expect 'http-01 and dns-persist-01' 'SchemaValidationError' "$(python3 read.py "$server")"
finish
