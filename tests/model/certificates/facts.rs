//! The objects, and what the machines are told of them. A key is a number; a signing request and a certificate are that of their
//! key.

use kubectl_acme::model::certificate::{KeyAlgorithm, Names};
use kubectl_acme::model::order_ledger::Ledger;
use kubectl_acme::model::{
    Certificate, CertificateRequest, Issuer, Order, OwnerReference, State as Word,
};
use kubectl_acme::reconcile::certificate::options::Options;
use kubectl_acme::reconcile::certificate::types::{NextKey, Observed};
use kubectl_acme::reconcile::facts::{
    CsrFacts, KeyFacts, LeafFacts, PublicKey, RequestFacts, SecretFacts,
};
use kubectl_acme::reconcile::{renewal, request, secret_content};
use serde_json::json;

use super::{Below, Progress, Stored, World, moment};

const NAMES: [&str; 2] = ["a.example.com", "b.example.com"];

pub(crate) fn certificate() -> Certificate {
    let certificate = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": {"name": "web", "namespace": "shop", "uid": "certificate", "generation": 1,
                     "creationTimestamp": moment(0).to_string()},
        "spec": {"secretName": "web-tls", "issuerRef": {"name": "acme"}, "dnsNames": NAMES},
    });
    serde_json::from_value(certificate).unwrap()
}

pub(crate) fn issuer() -> Issuer {
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
        "metadata": {"name": "acme", "namespace": "shop"},
        "spec": {"acme": {"server": "https://ca.example/directory", "privateKeySecretRef": {"name": "key"}}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    serde_json::from_value(issuer).unwrap()
}

fn names() -> Names {
    Names { dns_names: NAMES.map(str::to_owned).to_vec(), ..Names::default() }
}

fn key(number: u8) -> KeyFacts {
    KeyFacts { algorithm: KeyAlgorithm::Rsa(2048), public_key: PublicKey(vec![number]) }
}

fn csr(number: u8) -> CsrFacts {
    CsrFacts { public_key: PublicKey(vec![number]), names: names() }
}

fn leaf(number: u8) -> LeafFacts {
    LeafFacts {
        not_before: moment(0),
        not_after: moment(0) + jiff::SignedDuration::from_hours(24 * 90),
        public_key: PublicKey(vec![number]),
        renewal_id: None,
        serial: "01".to_owned(),
        names: names(),
    }
}

/// The number of a temporary Secret, and its name.
pub(crate) fn slot_of(secret: &str) -> u8 {
    secret.rsplit('-').next().unwrap().parse().unwrap()
}

pub(crate) fn secret_of(slot: u8) -> String {
    format!("web-key-{slot}")
}

/// Which request it is, of those of its name.
pub(crate) fn number_of(request: &CertificateRequest) -> u8 {
    request.metadata.uid.parse().unwrap()
}

/// The key with which a request is signed.
pub(crate) fn key_of(request: &CertificateRequest) -> u8 {
    request.spec.request.0[0]
}

impl World {
    /// What the machine of the Certificate is told.
    pub(crate) fn observed(&self, view: &Stored) -> Observed {
        let certificate = self.certificates.get(view.certificate);
        let held = (0..).zip(view.keys).filter_map(|(slot, held)| Some((slot, held?)));
        let next_keys =
            held.map(|(slot, held)| NextKey { secret: secret_of(slot), key: Ok(key(held)) });
        let request = view.request.map(|id| {
            let request = (*self.requests.get(id)).clone();
            let issued = request.status.certificate.0.first().copied();
            RequestFacts {
                csr: Ok(csr(key_of(&request))),
                leaf: issued.map(|number| Ok(leaf(number))),
                has_order: view.order.is_some_and(|order| order.owner == number_of(&request)),
                request,
            }
        });
        let secret = view.secret.map(|(held, issued)| {
            let (spec, leaf) = (&certificate.spec, leaf(issued));
            let metadata = secret_content::metadata("web", spec, Some(&spec.issuer_ref), &leaf);
            SecretFacts {
                has_data: true,
                key: Some(Ok(key(held))),
                leaf: Some(Ok(leaf)),
                labels: metadata.labels,
                annotations: metadata.annotations,
                ..SecretFacts::default()
            }
        });
        Observed {
            secret,
            next_keys: next_keys.collect(),
            requests: request.into_iter().collect(),
            rivals: Vec::new(),
            windows: renewal::windows(&certificate.spec, |_| None),
            ledger: Ledger::read(&certificate.metadata.annotations),
            suggestion: None,
            options: Options::default(),
        }
    }

    /// What the machine of the request is told.
    pub(crate) fn observed_by_request(
        &self,
        request: &CertificateRequest,
        order: Option<Below>,
    ) -> request::Observed {
        let csr = csr(key_of(request));
        let leaf = order.and_then(|order| match order.state {
            Progress::Valid => Some(Ok(leaf(order.key))),
            Progress::Another(key) => Some(Ok(leaf(key))),
            Progress::UnderWay | Progress::Failed => None,
        });
        let order = order.map(|below| self.order(request, below));
        request::Observed {
            approval: request::Approval::Ours,
            csr: Ok(csr),
            issuer: Some(self.issuer.clone()),
            order,
            leaf,
            secret: None,
        }
    }

    fn order(&self, request: &CertificateRequest, below: Below) -> Order {
        let mut order = request::order_for(request, &self.issuer, &csr(below.key));
        let owner = request.owner_reference();
        order.metadata.owner_references =
            vec![OwnerReference { uid: below.owner.to_string(), ..owner }];
        order.status.state = Some(match below.state {
            Progress::UnderWay => Word::Pending,
            Progress::Valid | Progress::Another(_) => Word::Valid,
            Progress::Failed => Word::Invalid,
        });
        if let Progress::Valid = below.state {
            order.status.certificate.0 = vec![below.key];
        }
        if let Progress::Another(key) = below.state {
            order.status.certificate.0 = vec![key];
        }
        order
    }
}
