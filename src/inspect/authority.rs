//! What the CA holds of a challenge: its authorization, read with the account's key by POST-as-GET (RFC 8555 §7.5). That
//! costs no order and no validation, and changes nothing at the CA. Where it cannot be read, why not is told in its place:
//! a look at an answer is worth something without it.

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

/// How long the CA has to answer: a look by a person waits no longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of the CA's side.
#[derive(Clone, Debug, PartialEq)]
pub enum HeldByCa {
    /// The authorization, as the CA answered.
    Authorization(AuthorizationReply),
    /// Why it was not learnt.
    Unknown(String),
}

impl HeldByCa {
    /// Tells whether nothing has to be shown to the CA any more.
    pub fn is_valid(&self) -> bool {
        let is_valid = |held: &AuthorizationReply| state(held) == Some(State::Valid);
        matches!(self, Self::Authorization(held) if is_valid(held))
    }

    /// The authorization, where it has ended and can become valid no more (RFC 8555 §7.1.6).
    pub fn ended(&self) -> Option<&AuthorizationReply> {
        let Self::Authorization(held) = self else { return None };
        state(held).is_some_and(State::is_failure).then_some(held)
    }

    /// The CA's word about one of the challenges, by its URL.
    pub fn challenge(&self, url: &str) -> Option<&ChallengeReply> {
        let Self::Authorization(held) = self else { return None };
        held.challenges.iter().find(|challenge| challenge.url == url)
    }
}

fn state(held: &AuthorizationReply) -> Option<State> {
    State::of_acme(&held.status)
}

/// Reads the authorization of a challenge with the account of its Issuer; `namespace` has the Secrets of ClusterIssuers.
pub async fn read(
    challenge: &Challenge,
    store: &Arc<dyn Store>,
    resolver: &Arc<dyn Resolve>,
    namespace: &str,
) -> HeldByCa {
    read_with(challenge, &accounts(store, resolver, namespace)).await
}

/// Sessions of the accounts whose keys may be read, for any number of challenges.
pub fn accounts(store: &Arc<dyn Store>, resolver: &Arc<dyn Resolve>, namespace: &str) -> Accounts {
    Accounts::new(store, namespace, Accounts::connect_with(Arc::new(clients(resolver))))
}

/// Reads the authorization of a challenge by these sessions.
pub async fn read_with(challenge: &Challenge, accounts: &Accounts) -> HeldByCa {
    let (spec, namespace) = (&challenge.spec, &challenge.metadata.namespace);
    let asked = ask(&spec.authorization_url, (namespace, &spec.issuer_ref), accounts);
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(reply)) => HeldByCa::Authorization(reply),
        Ok(Err(error)) => HeldByCa::Unknown(error.to_string()),
        Err(_) => HeldByCa::Unknown(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

/// Reads the authorization at that URL, as the account of an issuer that an object of that namespace refers to.
///
/// # Errors
/// Fails when the issuer, its Secret or its account is not there, and with what the CA says.
pub async fn ask(
    url: &str,
    (namespace, issuer): (&str, &IssuerRef),
    accounts: &Accounts,
) -> Result<AuthorizationReply, ReconcileError> {
    let issuer = accounts.issuer(namespace, issuer).await?;
    let session = accounts.session(&issuer).await?;
    Ok(session.authorization(url).await?)
}

/// Reads the order at that URL, in the same way.
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

    fn held(status: &str) -> HeldByCa {
        HeldByCa::Authorization(AuthorizationReply {
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
        let unknown = HeldByCa::Unknown("no answer within 10 s".into());
        assert!(!unknown.is_valid() && unknown.ended().is_none());
        assert!(unknown.challenge("https://ca/c/1").is_none());
        assert!(held("pending").challenge("https://ca/c/1").is_some());
        assert!(held("pending").challenge("https://ca/c/2").is_none());
    }
}
