//! Description of what a chain waits for right now, in one line that names the object with the reason.

use super::blocker::{of_challenges, of_order};
use super::{Verdict, judge_issuer, waits};
use crate::diagnosis::case::chain::{Chain, issuer_key};
use crate::model::common::is_true;
use crate::model::{Challenge, Issuer, Key, Kind, State};
use crate::reconcile::request::Approval;

/// Drops the Challenges of a chain that are unrelated to the object `key`. Returns whether the object belongs to the
/// running issuance or to the last one; an older object waits for nothing.
pub fn narrow(chain: &mut Chain, key: &Key) -> bool {
    let order = chain.order();
    let is_ours = |challenge: &&Challenge| {
        order.is_some_and(|order| challenge.metadata.is_controlled_by(&order.metadata.uid))
    };
    let challenges: Vec<Challenge> = chain.challenges.iter().filter(is_ours).cloned().collect();
    let name = &key.name.name;
    let is_current = match key.kind {
        Kind::CertificateRequest => chain.request().is_some_and(|r| r.metadata.name == *name),
        Kind::Order => order.is_some_and(|order| order.metadata.name == *name),
        Kind::Challenge => challenges.iter().any(|challenge| challenge.metadata.name == *name),
        _ => true,
    };
    chain.challenges = challenges;
    if key.kind == Kind::Challenge {
        chain.challenges.retain(|challenge| challenge.metadata.name == *name);
    }
    is_current
}

/// Describes what a chain waits for: its issuer, its order, the first of its challenges that waits, or its next step.
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
    let step = waits::step_at_challenge(chain)
        .or_else(|| waits::step_beside_challenges(chain, Approval::Theirs))?;
    let name = &chain.certificate.metadata.name;
    let is_ready = |of: &Issuer| is_true(&of.status.conditions, "Ready");
    let is_ready = order.is_none() && chain.issuer.as_ref().is_some_and(is_ready);
    // The last event may still say that the issuer is not ready.
    let meanwhile = issuer.filter(|_| is_ready);
    let meanwhile = meanwhile.map(|issuer| format!("{issuer} is ready, and ")).unwrap_or_default();
    Some(format!("{meanwhile}Certificate {name} waits for {}", step.waits_for))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Certificate, CertificateRequest, ObjectName};
    use crate::reconcile::testing::{challenge, order};

    /// A Certificate that is issued for the second time; the first Order has failed.
    fn chain() -> Chain {
        let mut chain = Chain {
            certificate: Certificate::default(),
            requests: Vec::new(),
            orders: Vec::new(),
            challenges: Vec::new(),
            issuer: None,
            in_cluster: false,
        };
        for name in ["web-1", "web-2"] {
            let mut request = CertificateRequest::default();
            (request.metadata.name, request.metadata.uid) = (name.to_owned(), name.to_owned());
            let owner = request.owner_reference();
            let order = order(name).change(|order| order.metadata.owner_references = vec![owner]);
            let order = order.build();
            let owner = order.owner_reference();
            let one = challenge(&format!("{name}.example.com")).named(name);
            let one = one.change(|challenge| challenge.metadata.owner_references = vec![owner]);
            chain.challenges.push(one.build());
            chain.orders.push(order);
            chain.requests.push(request);
        }
        chain
    }

    #[test]
    fn what_is_of_an_earlier_issuance_waits_for_nothing() {
        for kind in [Kind::CertificateRequest, Kind::Order, Kind::Challenge] {
            for (name, is_current) in [("web-1", false), ("web-2", true)] {
                let mut chain = chain();
                let key = Key::new(kind, ObjectName::new("default", name));
                assert_eq!(narrow(&mut chain, &key), is_current, "{key}");
                assert!(chain.challenges.iter().all(|c| c.metadata.name == "web-2"), "{key}");
            }
        }
    }
}
