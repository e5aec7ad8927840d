//! Report on accounts and what their CAs know, for people and programs; `docs/reports.md` lists the report's fields.

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
    /// Builds the report of the given accounts.
    pub fn new(accounts: Vec<ReportedAccount>) -> Self {
        Self { api_version: "kubectl-acme/v1alpha1", kind: "AccountReport", accounts }
    }
}

/// Account, as described by its Issuer and its CA.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedAccount {
    /// Issuer that uses the account.
    pub issuer: AccountUser,
    /// URL of the CA's directory.
    pub server: String,
    /// Account URL; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `valid`, `deactivated` or `revoked`, as the CA calls it; `None` if the CA did not give a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Contact URLs that the CA keeps; `None` if the CA does not show them, as Let's Encrypt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact: Option<Vec<String>>,
    /// Account key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<ReportedKey>,
    /// Key identifier of the external account that the Issuer names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_account: Option<String>,
    /// URL of the CA's terms of service as they are now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms_of_service: Option<String>,
    /// URLs of orders, if the CA lists them (RFC 8555 §7.1.2.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orders: Option<Vec<String>>,
    /// Reason why the CA's side is not known.
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
    /// Secret that holds the key, `NAMESPACE/NAME`.
    pub secret: String,
    /// Whether another key is to replace this key and has not yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_being_changed: bool,
}
