//! Shortest way to a certificate: Issuer and Certificate from a few names, as a user would write them; or a
//! CertificateRequest from a signing request.

use serde_json::{Map, Value, json};

use super::acme_server::{AcmeServer, object_name};
use super::common::Blob;
use super::mac_key;
use super::metadata::Record;
use super::names::Identifier;
use super::quick_dns::DnsSolver;
use super::request::{CERTIFICATE_NAME, REVISION};
use super::secret::Credentials;

/// Request of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuickOrder {
    /// First name or address, which gives the Certificate its name.
    pub first: Identifier,
    /// More names and addresses.
    pub more: Vec<Identifier>,
    /// Contact of the account.
    pub email: Option<String>,
    /// The CA.
    pub server: AcmeServer,
    /// Namespace of both objects.
    pub namespace: String,
    /// Method by which names are proven.
    pub proof: Proof,
    /// The key of the certificate.
    pub key: KeyWish,
    /// Settings of the CA beside its URL.
    pub ca: CaWishes,
}

/// Settings of a CA beside its URL; an empty field is not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaWishes {
    /// Roots for the connection to the CA, PEM.
    pub bundle: Blob,
    /// Account that the CA knows already.
    pub binding: Option<Binding>,
    /// Profile to ask for.
    pub profile: Option<String>,
    /// Common name of the root of the wanted chain.
    pub preferred_chain: Option<String>,
}

/// External account binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Key identifier given by the CA.
    pub key_id: String,
    /// The HMAC key, under [`HMAC`].
    pub hmac: Credentials,
}

/// Key of the HMAC in the Secret of a binding.
const HMAC: &str = "hmac";

impl Binding {
    /// Reads the HMAC key as CAs and people give it; `None` if the text is no such key.
    pub fn new(key_id: &str, hmac: &str) -> Option<Self> {
        let hmac = mac_key::base64url(hmac)?;
        let hmac = Credentials([(HMAC.to_owned(), hmac)].into());
        Some(Self { key_id: key_id.to_owned(), hmac })
    }
}

/// Key that the certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyWish {
    /// A new key of the given type.
    Make(KeyChoice),
    /// The key that has signed the given request.
    Own(SignedRequest),
}

/// Signing request of a user, as a CertificateRequest takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRequest {
    /// PEM.
    pub pem: Blob,
    /// Usages that the request asks for, in cert-manager's words; cert-manager's webhook wants them in both places.
    pub usages: Vec<String>,
}

/// Types of keys that CAs take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyChoice {
    /// RSA of 2048 bits.
    Rsa2048,
    /// RSA of 3072 bits.
    Rsa3072,
    /// RSA of 4096 bits.
    Rsa4096,
    /// ECDSA with P-256.
    #[default]
    P256,
    /// ECDSA with P-384.
    P384,
    /// ECDSA with P-521.
    P521,
    /// Ed25519.
    Ed25519,
}

impl KeyChoice {
    /// All types.
    pub const ALL: [Self; 7] = [
        Self::Rsa2048,
        Self::Rsa3072,
        Self::Rsa4096,
        Self::P256,
        Self::P384,
        Self::P521,
        Self::Ed25519,
    ];

    /// Returns the type's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rsa2048 => "rsa2048",
            Self::Rsa3072 => "rsa3072",
            Self::Rsa4096 => "rsa4096",
            Self::P256 => "p256",
            Self::P384 => "p384",
            Self::P521 => "p521",
            Self::Ed25519 => "ed25519",
        }
    }

    /// Returns `spec.privateKey` of a Certificate.
    fn private_key(self) -> Value {
        let (algorithm, size) = match self {
            Self::Rsa2048 => ("RSA", 2048),
            Self::Rsa3072 => ("RSA", 3072),
            Self::Rsa4096 => ("RSA", 4096),
            Self::P256 => ("ECDSA", 256),
            Self::P384 => ("ECDSA", 384),
            Self::P521 => ("ECDSA", 521),
            Self::Ed25519 => return json!({"algorithm": "Ed25519"}),
        };
        json!({"algorithm": algorithm, "size": size})
    }
}

/// Methods by which names are proven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// HTTP-01.
    #[default]
    Http01,
    /// DNS-01, by records that a person makes.
    Manual,
    /// DNS-01, by a provider.
    Provider(DnsSolver),
    /// A type that needs no solver.
    Unaided,
}

impl Proof {
    /// Returns the solver, as a manifest has it; `None` if no solver is needed.
    fn solver(&self) -> Option<Value> {
        match self {
            Self::Http01 => Some(json!({"http01": {"ingress": {}}})),
            // The schema wants a provider, and has none for people.
            Self::Manual => Some(json!({
                "dns01": {"webhook": {"groupName": "kubectl-acme", "solverName": "manual"}},
            })),
            Self::Provider(answers) => Some(json!({"dns01": answers.solver})),
            Self::Unaided => None,
        }
    }
}

/// Returns the name of an issuer's Secret for the given purpose.
pub fn secret_name(server: &AcmeServer, purpose: &str) -> String {
    format!("{}-{purpose}", server.name())
}

/// Builds Secrets if there are credentials, the Issuer, and the Certificate or the first CertificateRequest, in this
/// order, with one solver for every name.
pub fn manifests(wish: &QuickOrder) -> Vec<Record> {
    let issuer = wish.server.name();
    let mut acme = json!({
        "server": wish.server.url(),
        "privateKeySecretRef": {"name": format!("{issuer}-account-key")},
    });
    if let Some(solver) = wish.proof.solver() {
        acme["solvers"] = json!([solver]);
    }
    if let Some(email) = &wish.email {
        acme["email"] = email.as_str().into();
    }
    let CaWishes { bundle, binding, profile, preferred_chain } = &wish.ca;
    if !bundle.is_empty() {
        acme["caBundle"] = json!(bundle);
    }
    let texts = [("profile", profile), ("preferredChain", preferred_chain)];
    for (field, text) in texts.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?)))
    {
        acme[field] = text.as_str().into();
    }
    let mut secrets = Vec::new();
    if let Some(binding) = binding {
        let secret = secret_name(&wish.server, "binding");
        acme["externalAccountBinding"] = json!({
            "keyID": binding.key_id,
            "keySecretRef": {"name": secret, "key": HMAC},
        });
        secrets.push((secret, &binding.hmac));
    }
    if let Proof::Provider(answers) = &wish.proof
        && !answers.credentials.0.is_empty()
    {
        let secret = secret_name(&wish.server, answers.provider.names().0);
        secrets.push((secret, &answers.credentials));
    }
    let name = certificate_name(&wish.first);
    let issuer_ref = json!({"name": issuer, "kind": "Issuer"});
    let wanted = match &wish.key {
        KeyWish::Make(key) => certificate(wish, &name, *key, &issuer_ref),
        KeyWish::Own(request) => certificate_request(wish, &name, request, &issuer_ref),
    };
    let issuer = Record::new(json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": {"name": issuer, "namespace": wish.namespace},
        "spec": {"acme": acme},
    }));
    let secrets = secrets.into_iter().map(|(name, data)| secret(&wish.namespace, &name, data));
    secrets.chain([issuer, wanted]).flatten().collect()
}

/// Returns the name of the objects for a first name or address. An address that begins or ends with two colons gets a
/// zero there, so that `::1` has another name than `1::`.
fn certificate_name(first: &Identifier) -> String {
    let text = first.to_string();
    let zero = |is_cut: bool| if is_cut { "0" } else { "" };
    object_name(&format!("{}{text}{}", zero(text.starts_with("::")), zero(text.ends_with("::"))))
}

fn certificate(
    wish: &QuickOrder,
    name: &str,
    key: KeyChoice,
    issuer_ref: &Value,
) -> Option<Record> {
    let mut spec = json!({
        "secretName": format!("{name}-tls"),
        "privateKey": key.private_key(),
        "issuerRef": issuer_ref,
    });
    let (mut names, mut addresses): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for identifier in std::iter::once(&wish.first).chain(&wish.more) {
        let list = match identifier {
            Identifier::Dns(_) => &mut names,
            Identifier::Ip(_) => &mut addresses,
        };
        let text = Value::String(identifier.to_string());
        if !list.contains(&text) {
            list.push(text);
        }
    }
    for (field, list) in [("dnsNames", names), ("ipAddresses", addresses)] {
        if !list.is_empty() {
            spec[field] = list.into();
        }
    }
    Record::new(json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": name, "namespace": wish.namespace},
        "spec": spec,
    }))
}

/// Builds a CertificateRequest, annotated as those of Certificates are, and named so that it is in the way of none of them.
fn certificate_request(
    wish: &QuickOrder,
    name: &str,
    request: &SignedRequest,
    issuer_ref: &Value,
) -> Option<Record> {
    let mut spec = json!({"request": request.pem, "issuerRef": issuer_ref});
    if !request.usages.is_empty() {
        spec["usages"] = json!(request.usages);
    }
    Record::new(json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "CertificateRequest",
        "metadata": {
            "name": request_name(name, 1),
            "namespace": wish.namespace,
            "annotations": {CERTIFICATE_NAME: name, REVISION: "1"},
        },
        "spec": spec,
    }))
}

/// Returns the name of the CertificateRequest of the given number.
pub fn request_name(name: &str, revision: i64) -> String {
    format!("{name}-csr-{revision}")
}

fn secret(namespace: &str, name: &str, credentials: &Credentials) -> Option<Record> {
    let encoded = credentials.0.iter().map(|(key, value)| {
        let value = Blob(value.as_bytes().to_vec());
        (key.clone(), json!(value))
    });
    Record::new(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": encoded.collect::<Map<_, _>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::acme_server::LETS_ENCRYPT;
    use crate::model::manifest::set::Namespaces;
    use crate::model::manifest::{Source, read};

    fn wish(names: &[&str], server: &str) -> QuickOrder {
        let mut names = names.iter().map(|name| Identifier::parse(name).unwrap());
        QuickOrder {
            first: names.next().unwrap(),
            more: names.collect(),
            email: None,
            server: AcmeServer::parse(server).unwrap(),
            namespace: "default".into(),
            proof: Proof::Http01,
            key: KeyWish::Make(KeyChoice::default()),
            ca: CaWishes::default(),
        }
    }

    /// Builds the objects, and reads them back as a user's manifest.
    fn check(wish: &QuickOrder) -> Vec<Value> {
        let records = manifests(wish);
        let sources: Vec<Source> = records
            .iter()
            .map(|record| Source { name: "quick".into(), text: record.object.to_string() })
            .collect();
        let set = read(&sources, Namespaces { given: None, default: "default" }).unwrap();
        assert_eq!(set.warnings, []);
        let read: Vec<Record> = set.documents.into_iter().map(|d| d.record).collect();
        assert_eq!(read, records);
        records.into_iter().map(|record| record.object).collect()
    }

    #[test]
    fn a_few_names_become_what_one_would_write() {
        let mut wish = wish(
            &["www.example.com", "192.0.2.1", "example.com", "WWW.example.com"],
            "letsencrypt",
        );
        wish.email = Some("me@example.com".into());
        assert_eq!(
            check(&wish),
            [
                json!({"apiVersion": "cert-manager.io/v1", "kind": "Issuer",
                "metadata": {"name": "letsencrypt", "namespace": "default"},
                "spec": {"acme": {"server": LETS_ENCRYPT, "email": "me@example.com",
                    "privateKeySecretRef": {"name": "letsencrypt-account-key"},
                    "solvers": [{"http01": {"ingress": {}}}]}}}),
                json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
                "metadata": {"name": "www-example-com", "namespace": "default"},
                "spec": {"secretName": "www-example-com-tls",
                    "dnsNames": ["www.example.com", "example.com"], "ipAddresses": ["192.0.2.1"],
                    "privateKey": {"algorithm": "ECDSA", "size": 256},
                    "issuerRef": {"name": "letsencrypt", "kind": "Issuer"}}}),
            ]
        );
    }

    #[test]
    fn a_person_can_prove_a_wildcard() {
        let mut wish = wish(&["*.example.com"], "letsencrypt");
        wish.proof = Proof::Manual;
        let solver = &check(&wish)[0]["spec"]["acme"]["solvers"][0]["dns01"];
        assert_eq!(
            *solver,
            json!({"webhook": {"groupName": "kubectl-acme", "solverName": "manual"}})
        );
    }

    #[test]
    fn a_type_that_needs_no_solver_has_none() {
        let mut wish = wish(&["example.com"], "letsencrypt");
        wish.proof = Proof::Unaided;
        assert_eq!(check(&wish)[0]["spec"]["acme"].get("solvers"), None);
    }

    #[test]
    fn everything_that_is_said_of_the_ca_stands_in_the_issuer() {
        let mut wish = wish(&["*.example.com"], "https://ca.example/dir");
        wish.key = KeyWish::Make(KeyChoice::Rsa3072);
        wish.ca = CaWishes {
            bundle: Blob(
                b"-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----\n".to_vec(),
            ),
            binding: Binding::new("kid", " YS1i_w==\n"),
            profile: Some("shortlived".into()),
            preferred_chain: Some("Root X".into()),
        };
        wish.proof = Proof::Provider(DnsSolver {
            provider: crate::model::dns_provider::DnsProvider::DigitalOcean,
            solver: json!({"digitalocean": {"tokenSecretRef": {"name": "n", "key": "k"}}}),
            credentials: Credentials([("k".to_owned(), "token".to_owned())].into()),
        });
        assert!(!format!("{wish:?}").contains("YS1i"), "{wish:?}");
        let [binding, token, issuer, certificate] = &check(&wish)[..] else { panic!() };
        let secret = |name: &str, data: Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
                "metadata": {"name": name, "namespace": "default"}})
        };
        assert_eq!(*binding, secret("ca-example-dir-binding", json!({"hmac": "WVMxaV93"})));
        assert_eq!(*token, secret("ca-example-dir-digitalocean", json!({"k": "dG9rZW4="})));
        let pem =
            "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClRVbEoKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";
        let reference = json!({"name": "ca-example-dir-binding", "key": "hmac"});
        assert_eq!(
            issuer["spec"]["acme"],
            json!({"server": "https://ca.example/dir", "caBundle": pem, "profile": "shortlived",
                "externalAccountBinding": {"keyID": "kid", "keySecretRef": reference},
                "preferredChain": "Root X",
                "privateKeySecretRef": {"name": "ca-example-dir-account-key"},
                "solvers": [{"dns01": {"digitalocean": {"tokenSecretRef": {"name": "n", "key": "k"}}}}]})
        );
        assert_eq!(certificate["spec"]["privateKey"], json!({"algorithm": "RSA", "size": 3072}));
    }

    #[test]
    fn every_type_of_key_can_be_read() {
        for key in KeyChoice::ALL {
            let mut wish = wish(&["example.com"], "letsencrypt");
            wish.key = KeyWish::Make(key);
            check(&wish);
        }
        for hmac in ["", " ", "a b", "a.b_", "\u{e4}"] {
            assert_eq!(Binding::new("kid", hmac), None);
        }
    }

    #[test]
    fn every_name_gives_an_object_name() {
        let long = format!("{0}.{0}.{0}.example.com", "a".repeat(63));
        for (name, expected) in [
            ("*.example.com", "wildcard-example-com"),
            ("_dmarc.example.com", "dmarc-example-com"),
            ("192.0.2.1", "192-0-2-1"),
            ("2001:db8::1", "2001-db8--1"),
            ("::1", "0--1"),
            (&long, &format!("{0}-{0}-{0}-example", "a".repeat(63))[..199]),
        ] {
            assert_eq!(check(&wish(&[name], "letsencrypt"))[1]["metadata"]["name"], expected);
        }
    }
}
