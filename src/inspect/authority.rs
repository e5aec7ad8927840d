//! Authorization of a challenge at the CA, read with the account's key by POST-as-GET (RFC 8555 §7.5). The request costs
//! no order and no validation, and changes nothing at the CA. If the authorization cannot be read, the reason takes its
//! place: a probe of an answer is useful without it.

use std::sync::Arc;
use std::time::Duration;

use crate::acme::{AuthorizationReply, ChallengeReply, OrderReply};
use crate::controllers::ReconcileError;
use crate::controllers::accounts::Accounts;
use crate::dns::Resolve;
use crate::engine::clients;
use crate::model::common::IssuerRef;
use crate::model::{Challenge, State};
use crate::store::Store;

/// Longest wait for an answer of the CA in a command that a person waits for.
const CA_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// State of a challenge at the CA, as far as it could be read.
#[derive(Clone, Debug, PartialEq)]
pub enum AuthorityState {
    /// Authorization in the CA's answer.
    Authorization(AuthorizationReply),
    /// Reason why the authorization could not be read.
    Unknown(String),
}

impl AuthorityState {
    /// Returns whether the authorization is valid, so that the CA need not see the answer any more.
    pub fn is_valid(&self) -> bool {
        let is_valid = |held: &AuthorizationReply| state(held) == Some(State::Valid);
        matches!(self, Self::Authorization(held) if is_valid(held))
    }

    /// Returns the authorization if it has ended without success and can never become valid (RFC 8555 §7.1.6).
    pub fn ended(&self) -> Option<&AuthorizationReply> {
        let Self::Authorization(held) = self else { return None };
        state(held).is_some_and(State::is_failure).then_some(held)
    }

    /// Returns the challenge with this URL from the CA's answer.
    pub fn challenge(&self, url: &str) -> Option<&ChallengeReply> {
        let Self::Authorization(held) = self else { return None };
        held.challenges.iter().find(|challenge| challenge.url == url)
    }
}

fn state(held: &AuthorizationReply) -> Option<State> {
    State::of_acme(&held.status)
}

/// Reads the authorization of a challenge with the account of its issuer; `namespace` has the Secrets of ClusterIssuers.
pub async fn read(
    challenge: &Challenge,
    store: &Arc<dyn Store>,
    resolver: &Arc<dyn Resolve>,
    namespace: &str,
) -> AuthorityState {
    read_with(challenge, &accounts(store, resolver, namespace)).await
}

/// Builds the sessions of accounts whose keys may be read, for any number of challenges.
pub fn accounts(store: &Arc<dyn Store>, resolver: &Arc<dyn Resolve>, namespace: &str) -> Accounts {
    Accounts::new(store, namespace, Accounts::connect_with(Arc::new(clients(resolver))))
}

/// Reads the authorization of a challenge with the given sessions.
pub async fn read_with(challenge: &Challenge, accounts: &Accounts) -> AuthorityState {
    let (spec, namespace) = (&challenge.spec, &challenge.metadata.namespace);
    let asked = ask(&spec.authorization_url, (namespace, &spec.issuer_ref), accounts);
    match tokio::time::timeout(CA_ANSWER_TIMEOUT, asked).await {
        Ok(Ok(reply)) => AuthorityState::Authorization(reply),
        Ok(Err(error)) => AuthorityState::Unknown(error.to_string()),
        Err(_) => {
            AuthorityState::Unknown(format!("no answer within {} s", CA_ANSWER_TIMEOUT.as_secs()))
        }
    }
}

/// Reads the authorization at a URL with the account of an issuer, to which an object of `namespace` refers.
///
/// # Errors
/// Fails when the issuer, its Secret or its account does not exist, and with the CA's error.
pub async fn ask(
    url: &str,
    (namespace, issuer): (&str, &IssuerRef),
    accounts: &Accounts,
) -> Result<AuthorizationReply, ReconcileError> {
    let issuer = accounts.issuer(namespace, issuer).await?;
    let session = accounts.session(&issuer).await?;
    Ok(session.authorization(url).await?)
}

/// Reads the order at a URL with the account of an issuer, to which an object of `namespace` refers.
///
/// # Errors
/// As [`ask`].
pub async fn ask_order(
    url: &str,
    (namespace, issuer): (&str, &IssuerRef),
    accounts: &Accounts,
) -> Result<OrderReply, ReconcileError> {
    let issuer = accounts.issuer(namespace, issuer).await?;
    let session = accounts.session(&issuer).await?;
    Ok(session.order(url).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(status: &str) -> AuthorityState {
        AuthorityState::Authorization(AuthorizationReply {
            status: status.to_owned(),
            challenges: vec![ChallengeReply { url: "https://ca/c/1".into(), ..Default::default() }],
            ..AuthorizationReply::default()
        })
    }

    #[test]
    fn only_what_can_become_valid_no_more_is_over() {
        for (status, is_over) in [
            ("pending", false),
            ("valid", false),
            ("invalid", true),
            ("deactivated", true),
            ("expired", true),
            ("revoked", true),
            ("a word of tomorrow", false),
        ] {
            assert_eq!(held(status).ended().is_some(), is_over, "{status}");
            assert_eq!(held(status).is_valid(), status == "valid", "{status}");
        }
    }

    #[test]
    fn what_was_not_learnt_is_neither_valid_nor_over() {
        let unknown = AuthorityState::Unknown("no answer within 10 s".into());
        assert!(!unknown.is_valid() && unknown.ended().is_none());
        assert!(unknown.challenge("https://ca/c/1").is_none());
        assert!(held("pending").challenge("https://ca/c/1").is_some());
        assert!(held("pending").challenge("https://ca/c/2").is_none());
    }
}
