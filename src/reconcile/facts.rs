//! Plain facts about keys, certificates and signing requests; X.509 is parsed elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use crate::model::certificate::{KeyAlgorithm, Names};
use crate::model::keystore::KeystoreFormat;
use crate::model::{CertificateRequest, CertificateSpec, OwnerReference};

/// Public key as DER (RFC 5280 §4.1.2.7); two keys are equal if the bytes are equal.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct PublicKey(pub Vec<u8>);

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} bytes)", self.0.len())
    }
}

/// Facts about a private key, without the key itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFacts {
    /// Algorithm and size.
    pub algorithm: KeyAlgorithm,
    /// Public half of the key.
    pub public_key: PublicKey,
}

/// Facts about an issued certificate.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafFacts {
    /// Start of the validity period.
    pub not_before: Timestamp,
    /// End of the validity period.
    pub not_after: Timestamp,
    /// Public key of the certificate.
    pub public_key: PublicKey,
    /// Identifier for renewal information (RFC 9773 §4.1); `None` if the certificate does not name its issuer's key.
    pub renewal_id: Option<String>,
    /// Serial number in lower-case hexadecimal.
    pub serial: String,
    /// Names in the certificate.
    pub names: Names,
}

/// Facts about a signing request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsrFacts {
    /// Public key of the request.
    pub public_key: PublicKey,
    /// Names in the request.
    pub names: Names,
}

/// Facts about the Secret that holds key and certificate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecretFacts {
    /// Whether the Secret holds any data.
    pub has_data: bool,
    /// `tls.key`, or why it cannot be read.
    pub key: Option<Result<KeyFacts, String>>,
    /// First certificate of `tls.crt`, or why it cannot be read.
    pub leaf: Option<Result<LeafFacts, String>>,
    /// Additional output formats in the Secret that match key and chain.
    pub formats: BTreeSet<OutputFormat>,
    /// Keystores in the Secret.
    pub keystores: BTreeMap<KeystoreFormat, KeystoreFacts>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Keys of labels and annotations that another writer set and this program leaves alone.
    pub foreign: BTreeSet<String>,
    /// Owners of the Secret.
    pub owners: Vec<OwnerReference>,
    /// UIDs of owners that another writer set.
    pub foreign_owners: BTreeSet<String>,
    /// Keys of the data that another writer set.
    pub foreign_data: BTreeSet<String>,
}

/// Additional form of key and chain in a Secret (`spec.additionalOutputFormats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputFormat {
    /// Key and chain in one PEM text.
    CombinedPem,
    /// Private key, DER.
    Der,
}

impl OutputFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::CombinedPem, Self::Der];

    /// Returns the formats that a spec asks for.
    pub fn of(spec: &CertificateSpec) -> BTreeSet<Self> {
        let asked = |format: &Self| {
            let words = spec.additional_output_formats.iter();
            let mut words = words.filter_map(|entry| entry.get("type")?.as_str());
            words.any(|word| word == format.as_str())
        };
        Self::ALL.into_iter().filter(asked).collect()
    }

    /// Returns the key in the Secret's data that holds this format.
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

/// State of a keystore in a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeystoreFacts {
    /// Keystore that opens with the password and is as the spec asks.
    AsAsked,
    /// Keystore with another password, alias or profile, or without the certificates of the CAs.
    Outdated,
    /// Keystore that cannot be opened: there is no password.
    Unknown,
    /// Keystore that the spec does not ask for.
    Unasked,
}

impl SecretFacts {
    /// Returns the facts about the key, if the key can be read.
    pub fn usable_key(&self) -> Option<&KeyFacts> {
        self.key.as_ref()?.as_ref().ok()
    }

    /// Returns whether the Secret holds a private key and a certificate of that key.
    pub fn has_pair(&self) -> bool {
        let pair = self.usable_key().zip(self.usable_leaf());
        pair.is_some_and(|(key, leaf)| key.public_key == leaf.public_key)
    }

    /// Returns whether the certificate is temporary, that is, signed by no issuer: no annotation names an issuer.
    pub fn is_temporary(&self) -> bool {
        let issuer = [annotation::ISSUER_NAME, annotation::ISSUER_KIND, annotation::ISSUER_GROUP];
        self.has_pair() && !issuer.iter().any(|key| self.annotations.contains_key(*key))
    }

    /// Returns the facts about the certificate, if the certificate can be read.
    pub fn usable_leaf(&self) -> Option<&LeafFacts> {
        self.leaf.as_ref()?.as_ref().ok()
    }
}

/// Facts about a CertificateRequest that a Certificate owns.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestFacts {
    /// The CertificateRequest.
    pub request: CertificateRequest,
    /// Signing request, or why it cannot be read.
    pub csr: Result<CsrFacts, String>,
    /// First certificate of the status, or why it cannot be read; `None` before issuance.
    pub leaf: Option<Result<LeafFacts, String>>,
    /// Whether the request has an Order.
    pub has_order: bool,
}

/// Keys of the annotations and labels that link the resources of one issuance.
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
