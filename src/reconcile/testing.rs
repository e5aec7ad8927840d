//! Builders for the tests of the machines; they read like a sentence.

use jiff::Timestamp;

use crate::model::order::Authorization;
use crate::model::{
    Challenge, ChallengeSolver, ChallengeSpec, ChallengeStatus, ChallengeType, IssuerRef, Kind,
    Metadata, Order, OrderSpec, OrderStatus, State,
};

/// The moment `second` seconds after the epoch of a test.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// Starts a Challenge of that name.
pub(crate) fn challenge(dns_name: &str) -> ChallengeBuilder {
    let metadata = Metadata {
        name: dns_name.to_owned(),
        namespace: "default".to_owned(),
        uid: format!("uid-{dns_name}"),
        creation_timestamp: Some(at(0).into()),
        ..Metadata::default()
    };
    let spec = ChallengeSpec {
        url: format!("https://ca.example/chall/{dns_name}"),
        authorization_url: format!("https://ca.example/authz/{dns_name}"),
        dns_name: dns_name.to_owned(),
        wildcard: false,
        kind: ChallengeType::Http01,
        token: "token".to_owned(),
        key: "token.thumbprint".to_owned(),
        solver: ChallengeSolver::default(),
        issuer_ref: IssuerRef { name: "acme".to_owned(), ..IssuerRef::default() },
        account_label: String::new(),
        persist: None,
    };
    ChallengeBuilder(Challenge {
        api_version: Kind::Challenge.api_version().to_owned(),
        kind: Kind::Challenge.as_str().to_owned(),
        metadata,
        spec,
        status: ChallengeStatus::default(),
    })
}

/// A Challenge in the making.
pub(crate) struct ChallengeBuilder(Challenge);

impl ChallengeBuilder {
    pub(crate) fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.0.metadata.name);
        self
    }

    pub(crate) fn created_at(mut self, second: i64) -> Self {
        self.0.metadata.creation_timestamp = Some(at(second).into());
        self
    }

    pub(crate) fn dns01(mut self) -> Self {
        self.0.spec.kind = ChallengeType::Dns01;
        self
    }

    pub(crate) fn running(mut self, processing: bool) -> Self {
        self.0.status.processing = processing;
        self
    }

    pub(crate) fn state(mut self, state: State) -> Self {
        self.0.status.state = Some(state);
        self
    }

    pub(crate) fn change(mut self, change: impl FnOnce(&mut Challenge)) -> Self {
        change(&mut self.0);
        self
    }

    pub(crate) fn build(self) -> Challenge {
        self.0
    }
}

/// Starts an Order of that name.
pub(crate) fn order(name: &str) -> OrderBuilder {
    let metadata = Metadata {
        name: name.to_owned(),
        namespace: "default".to_owned(),
        uid: format!("uid-{name}"),
        creation_timestamp: Some(at(0).into()),
        ..Metadata::default()
    };
    OrderBuilder(Order {
        api_version: Kind::Order.api_version().to_owned(),
        kind: Kind::Order.as_str().to_owned(),
        metadata,
        spec: OrderSpec {
            issuer_ref: IssuerRef { name: "acme".to_owned(), ..IssuerRef::default() },
            dns_names: vec!["www.example.com".to_owned()],
            ..OrderSpec::default()
        },
        status: OrderStatus::default(),
    })
}

/// An Order in the making.
pub(crate) struct OrderBuilder(Order);

impl OrderBuilder {
    pub(crate) fn state(mut self, state: State) -> Self {
        self.0.status.state = Some(state);
        "https://ca.example/order/1".clone_into(&mut self.0.status.url);
        "https://ca.example/order/1/finalize".clone_into(&mut self.0.status.finalize_url);
        self
    }

    pub(crate) fn authorization(mut self, name: &str) -> Self {
        self.0.status.authorizations.push(Authorization {
            url: format!("https://ca.example/authz/{name}"),
            identifier: name.to_owned(),
            wildcard: Some(false),
            initial_state: Some(State::Pending),
            ..Authorization::default()
        });
        self
    }

    pub(crate) fn change(mut self, change: impl FnOnce(&mut Order)) -> Self {
        change(&mut self.0);
        self
    }

    pub(crate) fn build(self) -> Order {
        self.0
    }
}
