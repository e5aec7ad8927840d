//! What a chain waits for right now, in one line that names whose reason it is.

use super::blocker::{of_challenges, of_order};
use super::chain::{Chain, issuer_key};
use super::verdict::{Verdict, judge_issuer, waits};
use crate::model::common::is_true;
use crate::model::{Issuer, Key, Kind, State};

/// Leaves of a chain what hangs on an object of it.
pub fn narrow(chain: &mut Chain, key: &Key) {
    let name = &key.name.name;
    match key.kind {
        Kind::CertificateRequest => chain.requests.retain(|r| r.metadata.name == *name),
        Kind::Order => chain.orders.retain(|o| o.metadata.name == *name),
        Kind::Challenge => chain.challenges.retain(|c| c.metadata.name == *name),
        Kind::Certificate | Kind::Issuer | Kind::ClusterIssuer | Kind::Event | Kind::Secret => {}
    }
    if let Some(order) = chain.order().map(|order| order.metadata.uid.clone()) {
        chain.challenges.retain(|c| c.metadata.is_controlled_by(&order));
    }
}

/// What a chain waits for: its issuer, its order, the first of its challenges that waits, or its next step.
pub fn of_chain(chain: &Chain) -> Option<String> {
    let status = &chain.certificate.status;
    if !is_true(&status.conditions, "Issuing") {
        return None;
    }
    let order = chain.order();
    if order.is_some_and(|order| order.status.state.is_some_and(State::is_failure)) {
        return None;
    }
    let issuer = issuer_key(&chain.certificate);
    let of_issuer = chain.issuer.as_ref().zip(issuer.as_ref());
    let of_issuer = of_issuer.and_then(|(of, key)| judge_issuer(key, of));
    let held_up = match of_issuer {
        Some(Verdict::Failed(failed)) => return Some(failed.message),
        Some(Verdict::Waiting(Some(blocker))) => return Some(blocker.what),
        _ => of_order(chain).or_else(|| of_challenges(chain)),
    };
    if let Some(blocker) = held_up {
        return Some(blocker.what);
    }
    let step = waits::at_challenge(chain).or_else(|| waits::step(chain))?;
    let name = &chain.certificate.metadata.name;
    let is_ready = |of: &Issuer| is_true(&of.status.conditions, "Ready");
    let is_ready = order.is_none() && chain.issuer.as_ref().is_some_and(is_ready);
    // The last event may say otherwise.
    let meanwhile = issuer.filter(|_| is_ready);
    let meanwhile = meanwhile.map(|issuer| format!("{issuer} is ready, and ")).unwrap_or_default();
    Some(format!("{meanwhile}Certificate {name} waits for {}", step.waits_for))
}
