//! Issuer and ClusterIssuer: which CA, and which account there.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::common::{Blob, Condition, Other, SecretKeySelector, is_false};
use super::key::Kind;
use super::metadata::Resource;
use super::solver::ChallengeSolver;

/// `cert-manager.io/v1` Issuer or ClusterIssuer; `kind` says which.
pub type Issuer = Resource<IssuerSpec, IssuerStatus>;

impl Issuer {
    /// Tells whether it is a ClusterIssuer.
    pub fn is_cluster(&self) -> bool {
        self.kind == Kind::ClusterIssuer.as_str()
    }

    /// The namespace in which its Secrets are.
    pub fn secret_namespace<'a>(&'a self, cluster_namespace: &'a str) -> &'a str {
        if self.is_cluster() { cluster_namespace } else { &self.metadata.namespace }
    }

    /// `Kind::Issuer` or `Kind::ClusterIssuer`.
    pub fn issuer_kind(&self) -> Kind {
        if self.is_cluster() { Kind::ClusterIssuer } else { Kind::Issuer }
    }
}

/// Exactly one type of issuer; only `acme` is ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerSpec {
    /// An ACME server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acme: Option<AcmeIssuer>,
    /// Other types (`ca`, `vault`, `selfSigned`, `venafi`), left alone.
    #[serde(flatten)]
    pub other: Other,
}

/// An ACME server and our account there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcmeIssuer {
    /// Contact of the account.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// URL of the directory.
    pub server: String,
    /// Common name of the issuer of the last certificate in the wanted chain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preferred_chain: String,
    /// Roots for the connection to the CA, PEM; in place of the system's.
    #[serde(default, skip_serializing_if = "Blob::is_empty")]
    pub ca_bundle: Blob,
    /// Do not verify the CA's TLS certificate.
    #[serde(default, rename = "skipTLSVerify", skip_serializing_if = "is_false")]
    pub skip_tls_verify: bool,
    /// External account binding (RFC 8555 §7.3.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_account_binding: Option<ExternalAccountBinding>,
    /// Secret of the account key; the key in it is `tls.key` when not named.
    pub private_key_secret_ref: SecretKeySelector,
    /// How names are proven.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub solvers: Vec<ChallengeSolver>,
    /// A missing account key is an error.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_account_key_generation: bool,
    /// Send `notAfter` from the Certificate's duration.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enable_duration_feature: bool,
    /// Profile asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// Whether the CA says when to renew: `ARI`, which an empty one means, too, or `None`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub renewal_information_source: String,
    /// Fields we do not act on.
    #[serde(flatten)]
    pub other: Other,
}

impl AcmeIssuer {
    /// Whether the CA is asked when to renew: unless the manifest says `None`.
    pub fn asks_when_to_renew(&self) -> bool {
        self.renewal_information_source != "None"
    }
}

/// External account binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalAccountBinding {
    /// Key identifier given by the CA.
    #[serde(rename = "keyID")]
    pub key_id: String,
    /// Secret that holds the MAC key as base64url text.
    pub key_secret_ref: SecretKeySelector,
    /// Deprecated and ignored: always HS256.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key_algorithm: String,
}

/// How far the account got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IssuerStatus {
    /// The account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acme: Option<AcmeIssuerStatus>,
    /// `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Fields we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// The account at the CA.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AcmeIssuerStatus {
    /// Account URL.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uri: String,
    /// Contact last sent, as the spec writes it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_registered_email: String,
    /// Base64 of the SHA-256 of the account key (RSA: PKCS#1 DER).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_private_key_hash: String,
}

impl IssuerSpec {
    /// Names of the issuer types given, `acme` included.
    pub fn types(&self) -> Vec<&str> {
        let acme = self.acme.as_ref().map(|_| "acme");
        let given =
            |(name, value): &(&'static str, Option<&Value>)| value.is_some().then_some(*name);
        let others: Vec<(&'static str, Option<&Value>)> = ["ca", "vault", "selfSigned", "venafi"]
            .into_iter()
            .map(|name| (name, self.other.get(name)))
            .collect();
        acme.into_iter().chain(others.iter().filter_map(given)).collect()
    }
}
