//! What CAs hold of accounts, as one report for people and programs; `docs/reports.md` lists its fields for those who read it.

use serde::Serialize;

/// Accounts, in the order in which their Issuers were named.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountReport {
    /// `kubectl-acme/v1alpha1`.
    pub api_version: &'static str,
    /// `AccountReport`.
    pub kind: &'static str,
    /// The accounts.
    pub accounts: Vec<ReportedAccount>,
}

impl AccountReport {
    /// Makes the report of these accounts.
    pub fn new(accounts: Vec<ReportedAccount>) -> Self {
        Self { api_version: "kubectl-acme/v1alpha1", kind: "AccountReport", accounts }
    }
}

/// An account, as its Issuer and its CA tell of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedAccount {
    /// The Issuer that uses it.
    pub issuer: AccountUser,
    /// URL of the CA's directory.
    pub server: String,
    /// Account URL; nothing where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `valid`, `deactivated` or `revoked`, in the CA's word; nothing where the CA said nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Contact URLs that the CA keeps; nothing where it does not tell, as Let's Encrypt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact: Option<Vec<String>>,
    /// The key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<ReportedKey>,
    /// Key identifier of the external account that the Issuer names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_account: Option<String>,
    /// URL of the CA's terms of service as they are now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms_of_service: Option<String>,
    /// URLs of orders, where the CA lists them (RFC 8555 §7.1.2.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orders: Option<Vec<String>>,
    /// Why the CA's side is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The Issuer that uses an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountUser {
    /// `Issuer` or `ClusterIssuer`.
    pub kind: String,
    /// Namespace of an Issuer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// An account key; the key itself is never shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedKey {
    /// Kind and size.
    pub algorithm: String,
    /// JWK thumbprint (RFC 7638), base64url.
    pub thumbprint: String,
    /// Secret that it is in, `NAMESPACE/NAME`.
    pub secret: String,
    /// Whether another key is to take its place and has not yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_being_changed: bool,
}
