//! State of each object of an issuance, in a word, and the one thing that the object waits for.

use super::awaited;
use super::waits::Wait;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::words::facts;
use crate::model::cause::Cause;
use crate::model::common::{condition, is_true};
use crate::model::{
    CertificateRequest, Challenge, Condition, ConditionStatus, Issuer, IssuerRef, Order, State,
};

/// State of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    /// State in a word or two, such as `ready` or `pending`.
    pub state: String,
    /// Thing that the object waits for, or the reason of its failure; empty if the object waits for nothing.
    pub waits_for: String,
    /// Short form of `waits_for`, if different.
    pub in_short: Option<String>,
}

/// Describes what a request without an Order waits for: its issuer, if the issuer's controller has said so.
fn before_order(request: &CertificateRequest) -> String {
    let ready = condition(&request.status.conditions, "Ready");
    let IssuerRef { name, .. } = &request.spec.issuer_ref;
    let kind = request.spec.issuer_ref.effective_kind();
    match ready.map(|ready| ready.message.as_str()).filter(|message| !message.is_empty()) {
        Some(message) => format!("{kind} {name}: {message}"),
        None => "its Order to be made".to_owned(),
    }
}

impl NodeState {
    fn new(state: &str, waits_for: impl Into<String>) -> Self {
        Self { state: state.to_owned(), waits_for: waits_for.into(), in_short: None }
    }

    /// Returns what the object waits for, in few words.
    pub fn shortly(&self) -> &str {
        self.in_short.as_deref().unwrap_or(&self.waits_for)
    }

    /// Returns the state of a Certificate, by all objects below it.
    pub fn of_certificate(chain: &Chain) -> Self {
        let status = &chain.certificate.status;
        let conditions = &status.conditions;
        if chain.certificate.metadata.is_deleted() {
            return Self::new("deleting", finalizers(&chain.certificate.metadata.finalizers));
        }
        if is_true(conditions, "Issuing") {
            // The rows below show what the request waits for.
            let before = chain.certificate.status.revision.unwrap_or(0);
            let request = chain.request().filter(|it| it.revision().is_some_and(|it| it > before));
            let waits_for = match request {
                Some(request) => format!("CertificateRequest {}", request.metadata.name),
                None => awaited::of_chain(chain).unwrap_or_default(),
            };
            return Self::new("issuing", waits_for);
        }
        if is_true(conditions, "Ready") {
            return Self::new("ready", "");
        }
        let said = |kind| condition(conditions, kind).map(|c| c.message.clone());
        match status.last_failure_time {
            Some(_) => Self::new("failed", said("Issuing").unwrap_or_default()),
            None => Self::new("not ready", said("Ready").unwrap_or_default()),
        }
    }

    /// Returns the state of a request, by its Order if there is one.
    pub fn of_request(request: &CertificateRequest, order: Option<&Order>) -> Self {
        let conditions = &request.status.conditions;
        let held = |kind| condition(conditions, kind).filter(|c| c.status == ConditionStatus::True);
        if let Some(denied) = held("Denied") {
            return Self::new("denied", denied.message.clone());
        }
        if let Some(invalid) = held("InvalidRequest") {
            return Self::new("failed", invalid.message.clone());
        }
        match condition(conditions, "Ready") {
            Some(Condition { status: ConditionStatus::True, .. }) => Self::new("ready", ""),
            Some(ready) if request.status.failure_time.is_some() => {
                Self::new("failed", ready.message.clone())
            }
            _ if held("Approved").is_none() => Self::new("pending", "its approval"),
            _ => match order {
                Some(order) => Self::new("pending", format!("Order {}", order.metadata.name)),
                None => Self::new("pending", before_order(request)),
            },
        }
    }

    /// Returns the state of an Order, by its Challenges.
    pub fn of_order(order: &Order, challenges: &[&Challenge]) -> Self {
        let status = &order.status;
        let state = status.state.map_or("new", State::as_str);
        if !status.reason.is_empty() {
            return Self::new(state, status.reason.clone());
        }
        let open = challenges.iter().filter(|challenge| !challenge.has_ended()).count();
        let waits_for = match status.state {
            Some(State::Valid) => String::new(),
            Some(State::Ready | State::Processing) => "the CA to issue".to_owned(),
            Some(state) if state.is_failure() => String::new(),
            _ if status.url.is_empty() => "the CA's order".to_owned(),
            _ => match (open, challenges.len()) {
                (0, _) => "its Challenges".to_owned(),
                (1, 1) => "its Challenge".to_owned(),
                (open, all) => format!("{open} of {all} Challenges"),
            },
        };
        Self::new(state, waits_for)
    }

    /// Returns the state of a Challenge.
    pub fn of_challenge(challenge: &Challenge) -> Self {
        let status = &challenge.status;
        let state = match status.state {
            Some(state) => state.as_str(),
            None if challenge.metadata.is_deleted() => "deleting",
            None => "new",
        };
        if status.state == Some(State::Valid) {
            return Self::new(state, "");
        }
        if challenge.has_ended() {
            return Self::new(state, status.reason.clone());
        }
        let wait = Wait::of(challenge);
        let in_short = matches!(wait, Wait::Reason(_)).then(|| Wait::in_short(challenge));
        let is_seen = matches!(facts::cause(challenge), Some(Cause::Seen(_)));
        let in_short = in_short.map(|it| if is_seen { format!("its answer: {it}") } else { it });
        Self { in_short, ..Self::new(state, wait.to_string()) }
    }

    /// Returns the state of an issuer.
    pub fn of_issuer(issuer: &Issuer) -> Self {
        match condition(&issuer.status.conditions, "Ready") {
            Some(Condition { status: ConditionStatus::True, .. }) => Self::new("ready", ""),
            Some(ready) => Self::new("not ready", ready.message.clone()),
            None => Self::new("new", "its account"),
        }
    }
}

fn finalizers(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!("{} to be taken off", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::testing::{challenge, order};

    fn state(state: &str, waits_for: &str) -> NodeState {
        NodeState::new(state, waits_for)
    }

    #[test]
    fn each_object_tells_the_one_thing_that_it_waits_for() {
        let open = challenge("www.example.com").build();
        let made = NodeState::of_challenge(&open);
        assert!(!made.waits_for.is_empty(), "{made:?}");
        let valid = challenge("a.example").change(|c| c.status.state = Some(State::Valid)).build();
        assert_eq!(NodeState::of_challenge(&valid), state("valid", ""));
        let order = order("web-1-5").change(|order| {
            order.status.state = Some(State::Pending);
            order.status.url = "https://ca/1".to_owned();
        });
        let order = order.build();
        let of = NodeState::of_order(&order, &[&open, &valid]);
        assert_eq!(of, state("pending", "1 of 2 Challenges"));
        let request = CertificateRequest::default();
        assert_eq!(NodeState::of_request(&request, None), state("pending", "its approval"));
    }
}
