// Orders one certificate with @root/acme, the library of Greenlock: DIRECTORY ROOT WEBROOT NAME...
const fs = require('fs');
const ACME = require('@root/acme');
const CSR = require('@root/csr');
const Keypairs = require('@root/keypairs');
const PEM = require('@root/pem');
const webroot = require('acme-http-01-webroot');

const [directory, , folder, ...domains] = process.argv.slice(2);

(async () => {
  const acme = ACME.create({ maintainerEmail: 'admin@acme.test', packageAgent: 'world/1', notify: () => {} });
  await acme.init(directory);
  const accountKey = (await Keypairs.generate({ kty: 'EC', format: 'jwk' })).private;
  const account = await acme.accounts.create({ subscriberEmail: 'admin@acme.test', agreeToTerms: true, accountKey });
  // It cannot read each request of its own that has an EC key.
  const serverKey = (await Keypairs.generate({ kty: 'RSA', format: 'jwk' })).private;
  const request = await CSR.csr({ jwk: serverKey, domains, encoding: 'der' });
  const csr = PEM.packBlock({ type: 'CERTIFICATE REQUEST', bytes: request });
  const challenges = { 'http-01': webroot.create({ webroot: `${folder}/.well-known/acme-challenge` }) };
  const made = await acme.certificates.create({ account, accountKey, csr, domains, challenges });
  fs.writeFileSync('certificate.pem', `${made.cert}\n${made.chain}\n`);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
