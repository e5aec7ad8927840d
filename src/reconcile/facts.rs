//! Plain facts about keys, certificates and signing requests; X.509 is taken apart elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use crate::model::certificate::{KeyAlgorithm, Names};
use crate::model::keystore::KeystoreFormat;
use crate::model::{CertificateRequest, CertificateSpec, OwnerReference};

/// A public key, DER (RFC 5280 §4.1.2.7); two keys are one when these bytes are equal.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct PublicKey(pub Vec<u8>);

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} bytes)", self.0.len())
    }
}

/// What is known of a private key; never the key itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFacts {
    /// Kind and size.
    pub algorithm: KeyAlgorithm,
    /// Its public half.
    pub public_key: PublicKey,
}

/// What is known of an issued certificate.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafFacts {
    /// Start of its life.
    pub not_before: Timestamp,
    /// End of its life.
    pub not_after: Timestamp,
    /// Its key.
    pub public_key: PublicKey,
    /// What it is called in renewal information (RFC 9773 §4.1), where it names the key of its issuer.
    pub renewal_id: Option<String>,
    /// Serial number in lower-case hexadecimal.
    pub serial: String,
    /// What it names.
    pub names: Names,
}

/// What is known of a signing request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsrFacts {
    /// Its key.
    pub public_key: PublicKey,
    /// What it names.
    pub names: Names,
}

/// What is known of the Secret that holds key and certificate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecretFacts {
    /// Whether there is anything in it.
    pub has_data: bool,
    /// `tls.key`, or why it cannot be read.
    pub key: Option<Result<KeyFacts, String>>,
    /// First certificate of `tls.crt`, or why it cannot be read.
    pub leaf: Option<Result<LeafFacts, String>>,
    /// Other forms of key and chain that are in it, true to these.
    pub formats: BTreeSet<OutputFormat>,
    /// Keystores that are in it.
    pub keystores: BTreeMap<KeystoreFormat, KeystoreFacts>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Keys of labels and annotations that somebody else wrote and that we leave alone.
    pub foreign: BTreeSet<String>,
    /// Its owners.
    pub owners: Vec<OwnerReference>,
    /// UIDs of owners whom somebody else has named.
    pub foreign_owners: BTreeSet<String>,
    /// Keys of the data that somebody else wrote.
    pub foreign_data: BTreeSet<String>,
}

/// A form in which key and chain are in a Secret once more (`spec.additionalOutputFormats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputFormat {
    /// Key and chain in one PEM text.
    CombinedPem,
    /// The key, DER.
    Der,
}

impl OutputFormat {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::CombinedPem, Self::Der];

    /// Those that a spec asks for.
    pub fn of(spec: &CertificateSpec) -> BTreeSet<Self> {
        let asked = |format: &Self| {
            let words = spec.additional_output_formats.iter();
            let mut words = words.filter_map(|entry| entry.get("type")?.as_str());
            words.any(|word| word == format.as_str())
        };
        Self::ALL.into_iter().filter(asked).collect()
    }

    /// The key of the data under which it is.
    pub fn key(self) -> &'static str {
        match self {
            Self::CombinedPem => "tls-combined.pem",
            Self::Der => "key.der",
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::CombinedPem => "CombinedPEM",
            Self::Der => "DER",
        }
    }
}

/// What is known of a keystore in a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeystoreFacts {
    /// It opens with the password, and is what is asked for.
    AsAsked,
    /// Its password, alias or profile is another one, or it lacks the certificates of CAs.
    Outdated,
    /// There is no password to open it with.
    Unknown,
    /// Nobody asks for it.
    Unasked,
}

impl SecretFacts {
    /// The key, when it can be read.
    pub fn usable_key(&self) -> Option<&KeyFacts> {
        self.key.as_ref()?.as_ref().ok()
    }

    /// Tells whether it holds a key and a certificate of this key.
    pub fn has_pair(&self) -> bool {
        let pair = self.usable_key().zip(self.usable_leaf());
        pair.is_some_and(|(key, leaf)| key.public_key == leaf.public_key)
    }

    /// Tells whether its certificate is one that no issuer has signed: a temporary one.
    pub fn is_temporary(&self) -> bool {
        let issuer = [annotation::ISSUER_NAME, annotation::ISSUER_KIND, annotation::ISSUER_GROUP];
        self.has_pair() && !issuer.iter().any(|key| self.annotations.contains_key(*key))
    }

    /// The certificate, when it can be read.
    pub fn usable_leaf(&self) -> Option<&LeafFacts> {
        self.leaf.as_ref()?.as_ref().ok()
    }
}

/// What is known of a CertificateRequest that a Certificate owns.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestFacts {
    /// The object.
    pub request: CertificateRequest,
    /// Its signing request, or why it cannot be read.
    pub csr: Result<CsrFacts, String>,
    /// First certificate of its status, or why it cannot be read; none before it is issued.
    pub leaf: Option<Result<LeafFacts, String>>,
    /// Whether there is an Order of it.
    pub has_order: bool,
}

/// Keys of annotations and labels by which the resources of one issuance find each other.
pub mod annotation {
    /// On Certificates: `true` asks for a temporary certificate.
    pub const TEMPORARY: &str = "cert-manager.io/issue-temporary-certificate";
    /// On CertificateRequests and Secrets: name of the Certificate.
    pub use crate::model::request::CERTIFICATE_NAME;
    /// On CertificateRequests: Secret of the key.
    pub const PRIVATE_KEY_SECRET_NAME: &str = "cert-manager.io/private-key-secret-name";
    /// On Secrets: name of the issuer.
    pub const ISSUER_NAME: &str = "cert-manager.io/issuer-name";
    /// On Secrets: kind of the issuer, as the request gave it.
    pub const ISSUER_KIND: &str = "cert-manager.io/issuer-kind";
    /// On Secrets: group of the issuer, as the request gave it.
    pub const ISSUER_GROUP: &str = "cert-manager.io/issuer-group";
    /// Label on temporary Secrets.
    pub const NEXT_PRIVATE_KEY: &str = "cert-manager.io/next-private-key";
    /// Label on every Secret of a Certificate.
    pub const FAO: &str = "controller.cert-manager.io/fao";
}
