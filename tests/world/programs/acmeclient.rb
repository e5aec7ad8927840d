# Orders one certificate with the gem acme-client: DIRECTORY ROOT WEBROOT NAME...
require 'acme-client'

directory, _root, webroot, *names = ARGV
limit = Time.now + 60

client = Acme::Client.new(private_key: OpenSSL::PKey::RSA.new(2048), directory: directory)
client.new_account(contact: 'mailto:admin@acme.test', terms_of_service_agreed: true)
order = client.new_order(identifiers: names)
order.authorizations.each do |authorization|
  next if authorization.status == 'valid'

  challenge = authorization.http
  File.write(File.join(webroot, challenge.filename), challenge.file_content)
  challenge.request_validation
  while challenge.status != 'valid' && Time.now < limit
    sleep 0.5
    challenge.reload
  end
end
key = OpenSSL::PKey::RSA.new(2048)
order.reload
order.finalize(csr: Acme::Client::CertificateRequest.new(private_key: key, names: names, subject: { common_name: names.first }))
while order.status == 'processing' && Time.now < limit
  sleep 0.5
  order.reload
end
File.write('certificate.pem', order.certificate)
