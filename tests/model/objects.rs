//! The objects that a run begins with, and what the CA says of its own.

use kubectl_acme::model::challenge::ChallengeStatus;
use kubectl_acme::model::memory::{Holder, Memory};
use kubectl_acme::model::order::{Authorization, OfferedChallenge, OrderSpec};
use kubectl_acme::model::persist::Account;
use kubectl_acme::model::{
    Blob, Challenge, Issuer, IssuerRef, Kind, Metadata, Order, OrderStatus, Problem, State,
};
use kubectl_acme::reconcile::order::SeenOrder;
use kubectl_acme::reconcile::order::required::{Required, Types, required};
use serde_json::json;

use super::state::{CaOrder, CaState, NAMES, Proof, moment};

pub(crate) const ACCOUNT: Account<'static> = Account {
    url: "https://ca.example/account/1",
    thumbprint: "thumbprint",
    directory: "https://ca.example/directory",
};
/// Long after the last moment: no run may need it.
const LIFE: jiff::SignedDuration = jiff::SignedDuration::from_hours(7 * 24);

pub(crate) fn issuer() -> Issuer {
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "acme"},
        "spec": {"acme": {
            "server": ACCOUNT.directory, "privateKeySecretRef": {"name": "key"},
            "solvers": [{"http01": {"ingress": {}}}],
        }},
    });
    serde_json::from_value(issuer).unwrap()
}

pub(crate) fn order() -> Order {
    Order {
        api_version: Kind::Order.api_version().to_owned(),
        kind: Kind::Order.as_str().to_owned(),
        metadata: Metadata {
            name: "web-1".to_owned(),
            namespace: "shop".to_owned(),
            uid: "order".to_owned(),
            creation_timestamp: Some(moment(0).into()),
            ..Metadata::default()
        },
        spec: OrderSpec {
            request: Blob(b"request".to_vec()),
            issuer_ref: IssuerRef { name: "acme".to_owned(), ..IssuerRef::default() },
            dns_names: NAMES.map(str::to_owned).to_vec(),
            ..OrderSpec::default()
        },
        status: OrderStatus::default(),
    }
}

/// The Challenges that an Order calls for.
pub(crate) fn required_of(order: &Order, issuer: &Issuer) -> Vec<Required> {
    required(order, issuer, ACCOUNT, Types::All).unwrap()
}

pub(crate) fn challenge(order: &Order, required: Required, now: u8) -> Challenge {
    Challenge {
        api_version: Kind::Challenge.api_version().to_owned(),
        kind: Kind::Challenge.as_str().to_owned(),
        metadata: Metadata {
            uid: required.name.clone(),
            name: required.name,
            namespace: order.metadata.namespace.clone(),
            owner_references: vec![order.owner_reference()],
            creation_timestamp: Some(moment(now).into()),
            ..Metadata::default()
        },
        spec: required.spec,
        status: ChallengeStatus::default(),
    }
}

fn authorization_url(slot: usize) -> String {
    format!("https://ca.example/authorization/{slot}")
}

/// The place of a Challenge, by the URL of its authorization.
pub(crate) fn slot_of(url: &str) -> u8 {
    url.rsplit('/').next().unwrap().parse().unwrap()
}

/// The number of the order of an Order at the CA.
pub(crate) fn number_of(order: &Order) -> u8 {
    order.status.url.rsplit('/').next().unwrap().parse().unwrap()
}

/// What the CA says of an order.
pub(crate) fn seen(number: u8, at_ca: CaOrder) -> SeenOrder {
    let first = usize::from(number) * NAMES.len();
    let url = format!("https://ca.example/order/{number}");
    let state = match at_ca.state {
        CaState::Pending => State::Pending,
        CaState::Ready => State::Ready,
        CaState::Processing => State::Processing,
        CaState::Valid => State::Valid,
        CaState::Invalid | CaState::Dropped => State::Invalid,
    };
    let problems = if state == State::Invalid {
        vec![(NAMES[0].to_owned(), problem(403, "unauthorized"))]
    } else {
        Vec::new()
    };
    SeenOrder {
        finalize_url: format!("{url}/finalize"),
        url,
        authorizations: (first..first + NAMES.len()).map(authorization_url).collect(),
        state: Some(state),
        expires: Some(moment(0) + LIFE),
        problems,
        certificate: (state == State::Valid).then(|| b"chain".to_vec()),
        retry_after: None,
        remarks: Vec::new(),
    }
}

/// What the CA says of the authorizations of an order.
pub(crate) fn authorizations(number: u8, at_ca: CaOrder) -> Vec<Authorization> {
    let first = usize::from(number) * NAMES.len();
    let read = at_ca.authorizations.iter().enumerate().map(|(index, proof)| {
        let slot = first + index;
        let offered = OfferedChallenge {
            url: format!("https://ca.example/challenge/{slot}"),
            token: format!("token-{slot}"),
            kind: "http-01".to_owned(),
            persist: None,
        };
        Authorization {
            url: authorization_url(slot),
            identifier: NAMES[index].to_owned(),
            wildcard: Some(false),
            initial_state: Some(match proof {
                Proof::Pending => State::Pending,
                // The schema of an Order has no place for the state of a challenge.
                Proof::Looking => State::Processing,
                Proof::Valid => State::Valid,
                Proof::Invalid => State::Invalid,
            }),
            challenges: vec![offered],
            ..Authorization::default()
        }
    });
    read.collect()
}

pub(crate) fn problem(status: u16, kind: &str) -> Problem {
    let kind = format!("urn:ietf:params:acme:error:{kind}");
    Problem { kind, status, detail: "says the model".to_owned(), ..Problem::default() }
}

/// The two writes of what was recorded: memory, then status.
pub(crate) fn written<S: Clone, T: Clone + PartialEq>(
    before: &kubectl_acme::model::Resource<S, T>,
    holder: Holder,
    memory: &Memory,
    status: T,
) -> Vec<kubectl_acme::model::Resource<S, T>> {
    let mut writes = Vec::new();
    let mut current = before.clone();
    if memory.write(holder, &mut current.metadata.annotations) {
        writes.push(current.clone());
    }
    if status != before.status {
        current.status = status;
        writes.push(current);
    }
    writes
}
