#!/usr/bin/env bash
# @root/acme, the library of Greenlock, sends another finalize for each look at an order that is processing, and never reads the order.
#
# RFC 8555 §7.4: after finalize a client polls the order until it is valid; a server that gets a finalize for an order that is not
# ready answers orderNotReady with 403. Let's Encrypt and Pebble make certificates after they have answered, so the first answer says
# processing. The library waits and sends the same signing request again; once the certificate is made, that is refused, and the
# certificate that is there is never fetched. A server that makes certificates within finalize hides it.
#
# Seen with @root/acme 3.1.0: POSTs to finalize twice, none to the order, and "orderNotReady" in its error.
# shellcheck source=findings/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if ! npm install --silent @root/acme@3.1.0 @root/csr@0.8.1 @root/keypairs@0.10.3 @root/pem@1.0.4 >npm.log 2>&1; then
  printf 'cannot be had: @root/acme\n' >&2
  exit 2
fi

cat >order.js <<'JS'
const ACME = require('@root/acme');
const CSR = require('@root/csr');
const Keypairs = require('@root/keypairs');
const PEM = require('@root/pem');

(async () => {
  const acme = ACME.create({ maintainerEmail: 'admin@example.com', packageAgent: 'order/1', notify: () => {} });
  await acme.init(`${process.argv[2]}/directory`);
  const key = async (kty) => (await Keypairs.generate({ kty, format: 'jwk' })).private;
  const accountKey = await key('EC');
  const account = await acme.accounts.create({ subscriberEmail: 'admin@example.com', agreeToTerms: true, accountKey });
  const domains = ['www.example.com'];
  const bytes = await CSR.csr({ jwk: await key('RSA'), domains, encoding: 'der' });
  const csr = PEM.packBlock({ type: 'CERTIFICATE REQUEST', bytes });
  const challenges = { 'http-01': { init: async () => {}, set: async () => {}, get: async () => null, remove: async () => {} } };
  const skips = { skipChallengeTests: true, skipDryRun: true };
  await acme.certificates.create({ account, accountKey, csr, domains, challenges, ...skips });
})().catch((error) => console.log(error.message));
JS
acme_stub ready
timeout 120 node order.js "$server" >said 2>&1 || true

expect 'POSTs to finalize' '2' "$(grep -c '^/finalize ' posts || true)"
expect 'POSTs to the order' '0' "$(grep -c '^/order ' posts || true)"
expect 'its error names orderNotReady' '1' "$(grep -c orderNotReady said || true)"
finish
