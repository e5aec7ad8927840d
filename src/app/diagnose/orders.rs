//! The CA's word on orders that have not succeeded, read by POST-as-GET: the status of an object need not have it. cert-manager
//! leaves out of it what a CA has said since 1.21.2.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::investigator::{AT_ONCE, Investigator, MOST_NAMES, PROBE_TIMEOUT};
use crate::acme::OrderReply;
use crate::acme::error::AcmeError;
use crate::app::inspect::authority;
use crate::controllers::ReconcileError;
use crate::diagnosis::authority_case::HeldOrder;
use crate::diagnosis::case::{Case, CertificateCase, DirectoryAnswer, Unseen};
use crate::diagnosis::chain::issuer_key;
use crate::model::names::shown_domain;
use crate::model::{IssuerRef, Kind, Order, State};
use crate::store::Store;
use crate::store::resources::Resources;

impl Investigator {
    /// What the CA holds of the newest order of each Certificate that has to be issued, by its place; what could not be learnt is
    /// told in its place.
    pub(super) async fn held_orders(&self, case: &Case) -> Vec<(usize, Result<HeldOrder, Unseen>)> {
        let Some(store) = &self.store else { return Vec::new() };
        let (resolver, namespace) = (&self.fetcher.resolver, &self.cluster_resource_namespace);
        let accounts = &authority::accounts(store, resolver, namespace);
        let asked = case.certificates.iter().enumerate().filter_map(|(index, of)| {
            let order = of.order().filter(|order| order.status.state != Some(State::Valid))?;
            let is_asked = of.is_open() && !order.status.url.is_empty() && answers(case, of);
            is_asked.then_some((index, order))
        });
        let asked: Vec<(usize, &Order)> = asked.take(MOST_NAMES).collect();
        let asked = asked.into_iter().map(|(index, order)| async move {
            let issuer = (order.metadata.namespace.as_str(), &order.spec.issuer_ref);
            let asked = authority::ask_order(&order.status.url, issuer, accounts);
            let reply = timeout(PROBE_TIMEOUT, asked).await;
            (index, self.held(order, reply))
        });
        stream::iter(asked).buffered(AT_ONCE).collect().await
    }

    fn held(
        &self,
        order: &Order,
        reply: Result<Result<OrderReply, ReconcileError>, Elapsed>,
    ) -> Result<HeldOrder, Unseen> {
        let (status, expires, problem) = match reply {
            Ok(Ok(reply)) => (reply.status, reply.expires, reply.error),
            // That it refuses to tell is its word, too.
            Ok(Err(ReconcileError::Acme(AcmeError::Refused { problem, .. }))) => {
                (String::new(), None, Some(*problem))
            }
            other => {
                let why = match other {
                    Ok(Err(error)) => error.to_string(),
                    _ => format!("no answer within {} s", PROBE_TIMEOUT.as_secs()),
                };
                let what = format!("Order {} at the CA", order.name());
                return Err(Unseen { what, why, is_forbidden: false });
            }
        };
        Ok(HeldOrder { url: order.status.url.clone(), status, expires, problem, at: self.now })
    }
}

/// Tells whether the CA of a Certificate has answered: one that does not is not asked again.
pub(super) fn answers(case: &Case, of: &CertificateCase) -> bool {
    let issuer = issuer_key(&of.certificate);
    let directory = issuer.and_then(|key| case.issuer(&key)?.directory.as_ref());
    directory.is_some_and(|it| matches!(it.answer, DirectoryAnswer::Directory { .. }))
}

/// An authorization that the CA is asked for.
pub(super) struct AskedAuthorization {
    /// Name, a wildcard as such.
    pub(super) name: String,
    /// URL.
    pub(super) url: String,
    /// URL of the challenge that was chosen; empty where its Challenge is gone.
    pub(super) challenge_url: String,
    /// Namespace of the Order.
    pub(super) namespace: String,
    /// Issuer of the Order.
    pub(super) issuer: IssuerRef,
}

/// The authorizations of the newest order: by its Challenges, and by what the Order keeps of those that are gone. An order that is
/// valid has none to ask for.
pub(super) async fn authorizations(
    store: &Arc<dyn Store>,
    of: &CertificateCase,
) -> Vec<AskedAuthorization> {
    let Some(order) = of.order().filter(|order| order.status.state != Some(State::Valid)) else {
        return Vec::new();
    };
    let (namespace, issuer) = (&order.metadata.namespace, &order.spec.issuer_ref);
    let asked = |name: String, url: &str, challenge_url: &str| AskedAuthorization {
        name,
        url: url.to_owned(),
        challenge_url: challenge_url.to_owned(),
        namespace: namespace.clone(),
        issuer: issuer.clone(),
    };
    let challenges = of.current_challenges().map(|challenge| {
        let spec = &challenge.spec;
        asked(spec.shown_domain(), &spec.authorization_url, &spec.url)
    });
    let mut all: Vec<AskedAuthorization> = challenges.collect();
    // What was read of the chain is without the bulk.
    let whole = Resources::<Order>::new(Arc::clone(store), Kind::Order).get(&order.name()).await;
    let authorizations = whole.ok().flatten().map(|order| order.status.authorizations);
    for one in authorizations.into_iter().flatten() {
        if !one.url.is_empty() && !all.iter().any(|known| known.url == one.url) {
            let name = shown_domain(&one.identifier, one.wildcard == Some(true));
            all.push(asked(name, &one.url, ""));
        }
    }
    all
}
