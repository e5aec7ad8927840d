// Orders one certificate with acme-client: DIRECTORY ROOT WEBROOT NAME...
const acme = require('acme-client');
const fs = require('fs');

const [directoryUrl, , webroot, ...altNames] = process.argv.slice(2);

(async () => {
  const client = new acme.Client({ directoryUrl, accountKey: await acme.crypto.createPrivateKey() });
  const [, csr] = await acme.crypto.createCsr({ altNames });
  const certificate = await client.auto({
    csr,
    email: 'admin@acme.test',
    termsOfServiceAgreed: true,
    challengePriority: ['http-01'],
    challengeCreateFn: async (_, challenge, answer) =>
      fs.writeFileSync(`${webroot}/.well-known/acme-challenge/${challenge.token}`, answer),
    challengeRemoveFn: async () => {},
  });
  fs.writeFileSync('certificate.pem', certificate);
})().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
