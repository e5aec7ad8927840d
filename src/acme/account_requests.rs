//! Requests of an account beside those of one order: state of the account, list of its orders, key change, deactivation,
//! and revocations.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::json;

use super::authority::{Endpoint, LocatedEndpoint, protocol};
use super::jws::{Identity, json};
use super::post::{Payload, unsigned};
use super::session::Session;
use super::telling::NamedUrl;
use super::transport::JSON_LIMIT;
use super::{AccountKey, AccountReply, AcmeError, wire};

/// Largest number of orders read from a list.
const MAX_LISTED_ORDERS: usize = 200;

/// Reason of a revocation (RFC 5280 §5.3.1), of the codes that CAs take from subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RevocationReason {
    /// 0: no reason is given.
    #[default]
    Unspecified,
    /// 1: the private key may be known to others.
    KeyCompromise,
    /// 3: statements of the certificate about its subject are no longer right.
    AffiliationChanged,
    /// 4: another certificate replaces the revoked certificate.
    Superseded,
    /// 5: the names are not used any more.
    CessationOfOperation,
}

impl RevocationReason {
    /// Number of the reason (RFC 5280 §5.3.1).
    pub fn code(self) -> u8 {
        match self {
            Self::Unspecified => 0,
            Self::KeyCompromise => 1,
            Self::AffiliationChanged => 3,
            Self::Superseded => 4,
            Self::CessationOfOperation => 5,
        }
    }
}

/// Signer of a revocation (RFC 8555 §7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokedBy {
    /// The account of the session.
    Account,
    /// The certificate's own private key, which the session was made with.
    CertificateKey,
}

#[derive(Serialize)]
struct WireRevocation {
    certificate: String,
    reason: u8,
}

impl Session {
    /// Reads the state of the account at the CA: a POST-as-GET of the account URL, which is looked up by the key if it
    /// is not known (RFC 8555 §7.3.1, §7.3.2).
    ///
    /// # Errors
    /// Fails with the CA's error, also for an account that the CA has closed.
    pub async fn account_state(&self) -> Result<AccountReply, AcmeError> {
        let url = Box::pin(self.account()).await?;
        let reply = Box::pin(self.send("account", &url, Payload::Read)).await?;
        let account = wire::account(&reply.body).map_err(|why| protocol(&reply.url, why))?;
        Ok(AccountReply { url, ..account })
    }

    /// Reads the first page of the list of the account's orders (RFC 8555 §7.1.2.1): orders that are not invalid.
    ///
    /// # Errors
    /// Fails with the CA's error; many CAs keep no list of orders.
    pub async fn orders(&self, url: &str) -> Result<Vec<String>, AcmeError> {
        let reply = Box::pin(self.send("orders", url, Payload::Read)).await?;
        wire::orders(&reply.body).ok_or_else(|| protocol(&reply.url, "it is no list of orders"))
    }

    /// Deactivates the account for ever (RFC 8555 §7.3.6): certificates stay valid, and the key makes no account again.
    ///
    /// # Errors
    /// Fails with the CA's error.
    pub async fn deactivate(&self) -> Result<AccountReply, AcmeError> {
        let url = Box::pin(self.account()).await?;
        let payload = json(&json!({"status": "deactivated"}));
        let reply = Box::pin(self.send("account", &url, Payload::Send(&payload))).await?;
        let account = wire::account(&reply.body).map_err(|why| protocol(&reply.url, why))?;
        Ok(AccountReply { url, ..account })
    }

    /// Revokes a certificate, given as DER (RFC 8555 §7.6).
    ///
    /// # Errors
    /// Fails with the CA's error, and if the CA offers no revocation by ACME.
    pub async fn revoke(
        &self,
        certificate: &[u8],
        reason: RevocationReason,
        by: RevokedBy,
    ) -> Result<(), AcmeError> {
        let revoke_cert: Endpoint = |directory| directory.revoke_cert.as_deref().unwrap_or("");
        let found = self.find_offered("revokeCert", revoke_cert).await?;
        let certificate = URL_SAFE_NO_PAD.encode(certificate);
        let payload = json(&WireRevocation { certificate, reason: reason.code() });
        let account;
        let identity = match by {
            RevokedBy::CertificateKey => Identity::Key,
            RevokedBy::Account => {
                account = Box::pin(self.account()).await?;
                Identity::Account(&account)
            }
        };
        let asked = NamedUrl { what: "revokeCert", url: &found.url };
        Box::pin(self.post(identity, asked, Payload::Send(&payload), JSON_LIMIT)).await.map(drop)
    }

    /// Sends keyChange: the old key signs the object that the new key has signed.
    pub(super) async fn send_key_change(&self, new: &AccountKey) -> Result<(), AcmeError> {
        let account = Box::pin(self.account()).await?;
        let key_change: Endpoint = |directory| directory.key_change.as_deref().unwrap_or("");
        let found = self.find_offered("keyChange", key_change).await?;
        let inner = new.signer().takes_over(&account, &self.signer().jwk(), &found.url);
        let payload = json(&inner.map_err(|_| unsigned(&found.url))?);
        self.send("keyChange", &found.url, Payload::Send(&payload)).await.map(drop)
    }

    /// Finds an endpoint that a CA may leave out of its directory.
    async fn find_offered(
        &self,
        what: &'static str,
        endpoint: Endpoint,
    ) -> Result<LocatedEndpoint, AcmeError> {
        let found = self.authority().find(endpoint).await?;
        if found.url.is_empty() {
            return Err(AcmeError::NotOffered {
                server: self.authority().server.to_string(),
                what,
            });
        }
        Ok(found)
    }

    /// Reads the URLs of the orders that the CA lists for the account (RFC 8555 §7.1.2.1), first page only; empty if the CA
    /// keeps none, like Boulder.
    ///
    /// # Errors
    /// Fails if the account is unknown, or the CA gives no usable answer.
    pub async fn listed_orders(&self) -> Result<Vec<String>, AcmeError> {
        let account = self.account().await?;
        let reply = self.send("account", &account, Payload::Read).await?;
        let list = wire::account(&reply.body).ok().and_then(|account| account.orders);
        let Some(list) = list else { return Ok(Vec::new()) };
        let reply = self.send("orders", &self.absolute(&reply, &list)?, Payload::Read).await?;
        let listed = wire::orders(&reply.body).unwrap_or_default();
        listed.iter().take(MAX_LISTED_ORDERS).map(|url| self.absolute(&reply, url)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::fake::{FakeCa, FakeReply};
    use crate::acme::{Acme as _, Clients, Registration, TlsOptions};
    use crate::model::KeyAlgorithm;

    fn key() -> AccountKey {
        AccountKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap()
    }

    #[tokio::test]
    async fn what_the_directory_does_not_name_is_told_and_not_asked() {
        let ca = FakeCa::start(|_| None).await;
        let clients = Clients::new();
        let session = clients.session(&ca.url, &TlsOptions::default(), key(), None).unwrap();
        session.register(&Registration::default()).await.unwrap();
        let before = ca.log().len();
        let reason = RevocationReason::default();
        let revoked = session.revoke(b"der", reason, RevokedBy::Account).await.unwrap_err();
        let changed = session.change_key(&key()).await.unwrap_err();
        for (error, what) in [(revoked, "revokeCert"), (changed, "keyChange")] {
            assert_eq!(
                error.to_string(),
                format!("the CA at {} offers no {what}: its directory does not name it", ca.url)
            );
        }
        assert_eq!(ca.log().len(), before);
    }

    #[tokio::test]
    async fn an_account_is_ended_and_read_as_the_ca_holds_it() {
        let ca = FakeCa::start(|heard| {
            let body =
                r#"{"status":"valid","contact":["mailto:a@b.example"],"orders":"https://x/o"}"#;
            let ended = r#"{"status":"deactivated"}"#;
            (heard.what == "POST /acct/1")
                .then(|| FakeReply::new(200, if heard.payload.is_null() { body } else { ended }))
        })
        .await;
        let clients = Clients::new();
        let session = clients.session(&ca.url, &TlsOptions::default(), key(), None).unwrap();
        session.register(&Registration::default()).await.unwrap();
        let read = session.account_state().await.unwrap();
        assert_eq!((read.status.as_str(), read.orders.as_deref()), ("valid", Some("https://x/o")));
        assert_eq!(session.deactivate().await.unwrap().status, "deactivated");
        assert_eq!(ca.log().last().unwrap().payload, json!({"status": "deactivated"}));
    }
}
