//! One issuance in a namespace of its own, and where whoever works on it is stopped.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::fixture::{Scene, text_of};
use super::side::Side;
use crate::support::ca::is_pair;
use crate::support::cluster::Cluster;
use crate::support::cluster::api_gate::{ApiGate, Moment, Step};
use crate::support::fault::Fault;
use crate::support::pebble::Pebble;
use crate::support::proxy::Proxy;
use crate::support::traffic::Endpoint;

/// Where the work stops.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// At a write to the API server.
    AtWrite(Step, Moment),
    /// At a request to the CA, before it hears of it.
    AtCa(Endpoint),
    /// Nowhere.
    Nowhere,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtWrite(step, Moment::Before) => write!(f, "before {step}"),
            Self::AtWrite(step, Moment::After) => write!(f, "after {step}"),
            Self::AtCa(endpoint) => write!(f, "before {endpoint:?} at the CA"),
            Self::Nowhere => f.write_str("nowhere"),
        }
    }
}

/// One issuance.
pub(crate) struct Row {
    pub(crate) namespace: String,
    pub(crate) stop: Stop,
    proxy: Proxy,
    /// Whether what the CA had taken was lost when the work was stopped.
    lost_order: bool,
    /// Whether the URL of an order was written down then.
    had_order: bool,
    /// Whether the Secret held a certificate then.
    had_certificate: bool,
    /// Events until then.
    told: BTreeMap<String, u64>,
    /// Reasons of events that were told and whose deed was not written down, or was undone.
    unwritten: Vec<&'static str>,
}

impl Row {
    /// Prepares it; nothing is applied yet.
    pub(crate) fn new(namespace: String, stop: Stop, pebble: &Pebble, gate: &ApiGate) -> Self {
        let proxy = pebble.proxy();
        match &stop {
            Stop::AtWrite(write, moment) => gate.stop(&namespace, write.clone(), *moment),
            Stop::AtCa(endpoint) => proxy.inject(Fault::hold().at(*endpoint)),
            Stop::Nowhere => {}
        }
        Self {
            namespace,
            stop,
            proxy,
            lost_order: false,
            had_order: false,
            had_certificate: false,
            told: BTreeMap::new(),
            unwritten: Vec::new(),
        }
    }

    /// Namespace, Issuer and Certificate.
    pub(crate) fn manifests(&self, pebble: &Pebble) -> [Value; 3] {
        let namespace = &self.namespace;
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "pebble", "namespace": namespace},
            "spec": {"acme": {
                "server": self.proxy.directory(), "caBundle": STANDARD.encode(pebble.tls_ca_pem()),
                "privateKeySecretRef": {"name": "account"},
                "solvers": [{"http01": {"ingress": {}}}],
            }},
        });
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {
                "secretName": "web-tls", "dnsNames": [self.host()],
                "privateKey": {"algorithm": "ECDSA"}, "issuerRef": {"name": "pebble"},
            },
        });
        let place =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        [place, issuer, certificate]
    }

    fn host(&self) -> String {
        format!("{}.example.com", self.namespace)
    }

    /// Whether the work has stopped where it should.
    pub(crate) fn has_stopped(&self, gate: &ApiGate) -> bool {
        match self.stop {
            Stop::AtWrite(..) => gate.has_stopped(&self.namespace),
            Stop::AtCa(_) => self.proxy.held() > 0,
            Stop::Nowhere => false,
        }
    }

    /// Notes what was lost with the process that was killed, and lets the next one through to the CA.
    pub(crate) fn note_death(&mut self, whose: Side, scene: &Scene) {
        let is_taken = self.proxy.orders().total() > 0;
        let is_keyless = whose == Side::CertManager && scene.lacks_key(&self.namespace);
        self.had_order = scene.knows_order(&self.namespace);
        self.had_certificate = secret_of(scene, &self.namespace).is_some();
        self.lost_order = is_taken && (is_keyless || !self.had_order);
        self.told = scene.told(&self.namespace);
        if is_keyless {
            self.unwritten.extend(["Generated", "Requested", "cert-manager.io"]);
        }
        // Told before they are written: the first two by both sides, the others by cert-manager.
        let deeds = [
            ("Started", "Challenge", "processing"),
            ("Presented", "Challenge", "presented"),
            ("DomainVerified", "Challenge", "state"),
            ("Complete", "Order", "certificate"),
            ("CertificateIssued", "CertificateRequest", "certificate"),
            ("IssuerNotReady", "CertificateRequest", "conditions"),
            ("WaitingForApproval", "CertificateRequest", "conditions"),
        ];
        for (reason, kind, field) in deeds {
            let is_written = |object: &Value| match &object["status"][field] {
                Value::Bool(done) => *done,
                Value::Array(conditions) => conditions.iter().any(|c| c["type"] == "Ready"),
                Value::String(text) => field != "state" || text == "valid",
                _ => false,
            };
            if scene.all(&self.namespace, kind).any(|object| !is_written(object)) {
                self.unwritten.push(reason);
            }
        }
        self.proxy.calm_down();
    }

    /// Notes that the process lives on, and remembers the order that nobody wrote down.
    pub(crate) fn note_memory(&mut self) {
        self.lost_order = false;
    }

    /// Lets go on what is held at the CA.
    pub(crate) fn release(&self) {
        self.proxy.release();
    }

    /// Whether an exception applies: the CA took an order that nobody wrote down, or whose key was gone.
    pub(crate) fn has_lost_order(&self) -> bool {
        self.lost_order
    }

    /// Why the orders are not those that had to be. What cert-manager orders twice by itself is its own affair.
    fn fault_of_orders(&self, is_issued_again: bool) -> Option<String> {
        let orders = self.proxy.orders();
        let is_first_ours = orders.others == 0 || is_issued_again && self.had_order;
        let expected = usize::from(self.lost_order) + usize::from(is_first_ours);
        (orders.ours != expected).then(|| format!("{orders:?}, and ours should be {expected}"))
    }

    /// What is wrong with an issuance that has ended.
    pub(crate) fn faults(&self, second: Side, scene: &Scene, pebble: &Pebble) -> Vec<String> {
        // It may issue once more, should it not see the Secret yet that it has written itself.
        let is_next = |request: &Value| request["metadata"]["name"] != "web-1";
        let is_issued_again = second == Side::CertManager
            && !self.had_certificate
            && scene.all(&self.namespace, "CertificateRequest").any(is_next);
        let mut faults: Vec<String> = self.fault_of_orders(is_issued_again).into_iter().collect();
        match secret_of(scene, &self.namespace) {
            Some(secret) => faults.extend(self.fault_of(secret, pebble)),
            None => faults.push("no Secret".to_owned()),
        }
        // What cert-manager tells twice by itself is its own affair.
        let again: &[&str] = if is_issued_again { &["Issuing", "Generated"] } else { &[] };
        let doubled = scene.told(&self.namespace).into_iter().filter(|(event, count)| {
            let told = self.told.get(event);
            told.is_some_and(|told| count > told)
                && !self.unwritten.iter().chain(again).any(|r| event.contains(r))
        });
        faults.extend(doubled.map(|(event, count)| format!("told {count} times: {event}")));
        faults
    }

    fn fault_of(&self, secret: &Value, pebble: &Pebble) -> Option<String> {
        let value = |key: &str| STANDARD.decode(text_of(secret, &format!("/data/{key}"))).unwrap();
        let chain = value("tls.crt");
        if !is_pair(&chain, &value("tls.key")) {
            return Some("the Secret holds no pair".to_owned());
        }
        let all: Vec<_> =
            x509_parser::pem::Pem::iter_from_buffer(&chain).map(Result::unwrap).collect();
        let root = pebble.root_pem();
        let (_, root) = x509_parser::pem::parse_x509_pem(root.as_bytes()).unwrap();
        let certificates: Vec<_> =
            all.iter().chain([&root]).map(|pem| pem.parse_x509().unwrap()).collect();
        let is_signed = |pair: &[x509_parser::certificate::X509Certificate<'_>]| {
            pair[0].verify_signature(Some(pair[1].public_key())).is_ok()
        };
        if !certificates.windows(2).all(is_signed) {
            return Some("the chain does not lead to the CA".to_owned());
        }
        let names = certificates[0].subject_alternative_name().unwrap().unwrap();
        let names: Vec<String> =
            names.value.general_names.iter().map(ToString::to_string).collect();
        (names != [format!("DNSName({})", self.host())]).then(|| format!("it is for {names:?}"))
    }
}

/// The Secret of the certificate.
fn secret_of<'a>(scene: &'a Scene, namespace: &str) -> Option<&'a Value> {
    scene.all(namespace, "Secret").find(|secret| secret["metadata"]["name"] == "web-tls")
}

/// Applies the manifests of many rows at once.
pub(crate) fn apply(rows: &[&Row], cluster: &Cluster, pebble: &Pebble) {
    if rows.is_empty() {
        return;
    }
    let items: Vec<Value> = rows.iter().flat_map(|row| row.manifests(pebble)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    cluster.kubectl().apply(&list.to_string());
}
