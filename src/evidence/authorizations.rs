//! Authorizations at the CA of orders that have not succeeded, read by POST-as-GET: their states, and the validation
//! records that show where the CA's own validation went.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};

use super::investigator::{Investigator, MAX_CONCURRENT, MAX_NAMES};
use super::patience::no_answer;
use crate::acme::error::AcmeError;
use crate::controllers::ReconcileError;
use crate::diagnosis::case::authority::HeldCase;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::issuer::DirectoryAnswer;
use crate::diagnosis::case::{Case, CertificateCase, Unobserved};
use crate::inspect::authority;
use crate::model::common::IssuerRef;
use crate::model::names::shown_domain;
use crate::model::{Kind, Order, State};
use crate::store::Store;
use crate::store::resources::Resources;

impl Investigator {
    /// Reads the authorizations of orders that have not succeeded. This costs nothing at the CA.
    pub(super) async fn ask_authority(&self, case: &mut Case) {
        let Some(store) = &self.store else { return };
        let (resolver, namespace) = (&self.fetcher.resolver, &self.cluster_resource_namespace);
        let accounts = &authority::accounts(store, resolver, namespace);
        let mut asked = Vec::new();
        for (index, of) in case.certificates.iter().enumerate() {
            if of.is_open() && answers(case, of) {
                asked.extend(authorizations(store, of).await.into_iter().map(|one| (index, one)));
            }
        }
        let left_out = asked.len().saturating_sub(MAX_NAMES);
        asked.truncate(MAX_NAMES);
        let asked = asked.into_iter().map(|(index, one)| async move {
            let issuer = (one.namespace.as_str(), &one.issuer);
            let asked = authority::ask(&one.url, issuer, accounts);
            let held = self.outside(asked).await;
            (index, one, held)
        });
        let replies: Vec<_> = stream::iter(asked).buffered(MAX_CONCURRENT).collect().await;
        for (index, one, held) in replies {
            let name = one.name;
            let blank = HeldCase { name: name.clone(), at: self.now, ..HeldCase::default() };
            let why = match held {
                Ok(Ok(reply)) => {
                    let own = reply.challenges.iter().find(|c| c.url == one.challenge_url);
                    // An authorization that has ended lists only the challenges that were tried.
                    let tried = || reply.challenges.iter().find(|c| c.validated.is_some());
                    let looked = own.filter(|own| own.validated.is_some()).or_else(tried);
                    let problem = own.and_then(|own| own.error.clone());
                    let problem =
                        problem.or_else(|| reply.challenges.iter().find_map(|c| c.error.clone()));
                    // The maker of the order may never have read which name the authorization is for.
                    let name = if name.is_empty() {
                        shown_domain(&reply.identifier, reply.wildcard)
                    } else {
                        name
                    };
                    case.certificates[index].held.push(HeldCase {
                        name,
                        status: reply.status.clone(),
                        expires: reply.expires,
                        offered: reply.challenges.iter().map(|c| c.kind.clone()).collect(),
                        problem,
                        validated: looked.and_then(|looked| looked.validated),
                        records: looked.map(|looked| looked.records.clone()).unwrap_or_default(),
                        ..blank
                    });
                    continue;
                }
                // A refusal is evidence too: of a missing account, for example.
                Ok(Err(ReconcileError::Acme(AcmeError::Refused { problem, .. }))) => {
                    let problem = Some(*problem);
                    case.certificates[index].held.push(HeldCase { problem, ..blank });
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => no_answer(),
            };
            let what = format!("the authorization of {name} at the CA");
            case.unseen.push(Unobserved { what, why, is_forbidden: false });
        }
        if left_out > 0 {
            let what = format!("the authorizations of {left_out} more names at the CA");
            let why = format!("at most {MAX_NAMES} are read");
            case.unseen.push(Unobserved { what, why, is_forbidden: false });
        }
    }
}

/// Returns whether the CA of a Certificate has answered: a CA that does not is not asked again.
pub(super) fn answers(case: &Case, of: &CertificateCase) -> bool {
    let issuer = issuer_key(&of.certificate);
    let directory = issuer.and_then(|key| case.issuer(&key)?.directory.as_ref());
    directory.is_some_and(|it| matches!(it.answer, DirectoryAnswer::Directory { .. }))
}

/// Authorization to read at the CA.
struct AskedAuthorization {
    /// Name, with `*.` if it is a wildcard.
    name: String,
    url: String,
    /// URL of the chosen challenge; empty if its Challenge is gone.
    challenge_url: String,
    namespace: String,
    issuer: IssuerRef,
}

/// Lists the authorizations of the newest order: those of its Challenges, and those in the status of the Order whose
/// Challenges are gone. Empty if the order is valid.
async fn authorizations(store: &Arc<dyn Store>, of: &CertificateCase) -> Vec<AskedAuthorization> {
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
    // The Order in the chain was read without its large fields.
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
