"""Orders one certificate with acmeow: DIRECTORY ROOT WEBROOT NAME..."""

import sys
from pathlib import Path

from acmeow import AcmeClient, ChallengeType, FileHttpHandler, Identifier, KeyType

directory, root, webroot, *names = sys.argv[1:]
client = AcmeClient(server_url=directory, email="admin@acme.test", storage_path=Path("state"), verify_ssl=root)
client.create_account()
client.create_order([Identifier.dns(name) for name in names])
client.complete_challenges(FileHttpHandler(Path(webroot)), challenge_type=ChallengeType.HTTP)
client.finalize_order(KeyType.EC256)
chain, _ = client.get_certificate()
Path("certificate.pem").write_text(chain)
