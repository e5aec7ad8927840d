//! CertificateRequest: approve it, order it, and take what the Order brings.

use jiff::{SignedDuration, Timestamp};

use super::facts::{CsrFacts, LeafFacts};
use super::{Note, Recorded, Wake};
use crate::model::common::{condition, is_true, set_condition};
use crate::model::event::{reason, source};
use crate::model::memory::{self, Memory};
use crate::model::{
    Blob, CertificateRequest, CertificateRequestStatus, Condition, ConditionStatus, Issuer, Kind,
    Metadata, ObjectName, Order, OrderSpec, State, naming,
};

/// Begins the message of a request whose Order failed.
const ORDER_FAILED: &str = "Failed to wait for order resource ";
/// How often a request looks whether somebody else's Order of its name is gone.
const FOREIGN_ORDER_PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// What the machine looks at beside the CertificateRequest.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The signing request, or why it cannot be read.
    pub csr: Result<CsrFacts, String>,
    /// The issuer, if there is one.
    pub issuer: Option<Issuer>,
    /// The Order of the name that [`order_for`] gives, whoever owns it.
    pub order: Option<Order>,
    /// First certificate of that Order, or why it cannot be read; none before there is one.
    pub leaf: Option<Result<LeafFacts, String>>,
}

/// The next deed.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing to do but to record this.
    Conclude(Outcome),
    /// Make this Order.
    CreateOrder(Box<Order>),
    /// Delete the Order, whose certificate is of no use.
    DeleteOrder,
    /// Wait.
    Wait(Wake),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Approved by us.
    Approved,
    /// Denied by somebody.
    Denied,
    /// Nothing will come of it: event reason and message.
    Failed(&'static str, String),
    /// The certificate is there.
    Issued(Blob),
    /// The Order of that name was made.
    OrderCreated(ObjectName),
    /// The Order was deleted.
    OrderDeleted,
    /// Something is not there yet: event reason and message.
    Pending(&'static str, String),
}

/// Decides what to do next.
pub fn next_action(request: &CertificateRequest, observed: &Observed, now: Timestamp) -> Action {
    let ours = request.spec.issuer_ref.effective_group() == "cert-manager.io";
    let foreign = observed.issuer.as_ref().is_some_and(is_of_another_type);
    if request.metadata.is_deleted() || !ours || foreign {
        return Action::Wait(Wake::OnChange);
    }
    let conditions = &request.status.conditions;
    if is_true(conditions, "Denied") {
        return conclude_once(request, Outcome::Denied, now);
    }
    if is_true(conditions, "InvalidRequest") || is_over(request, observed) {
        return Action::Wait(Wake::OnChange);
    }
    if !is_true(conditions, "Approved") {
        return Action::Conclude(Outcome::Approved);
    }
    let issuer = match ready_issuer(request, observed) {
        Ok(issuer) => issuer,
        Err(pending) => return conclude_once(request, pending, now),
    };
    let action = sign(request, issuer, observed, now);
    if let Action::Conclude(outcome) = action {
        conclude_once(request, outcome, now)
    } else {
        action
    }
}

/// Tells whether a request failed because its Order did.
pub fn failed_by_order(request: &CertificateRequest) -> bool {
    let ready = condition(&request.status.conditions, "Ready");
    ready.is_some_and(|c| c.reason == "Failed" && c.message.starts_with(ORDER_FAILED))
}

/// The Order that a request asks for.
pub fn order_for(request: &CertificateRequest, issuer: &Issuer, csr: &CsrFacts) -> Order {
    let acme = issuer.spec.acme.clone().unwrap_or_default();
    let spec = OrderSpec {
        request: request.spec.request.clone(),
        issuer_ref: request.spec.issuer_ref.clone(),
        common_name: csr.names.common_name.clone(),
        dns_names: csr.names.dns_names.clone(),
        ip_addresses: csr.names.ip_addresses.iter().map(ToString::to_string).collect(),
        duration: request.spec.duration.filter(|_| acme.enable_duration_feature),
        profile: acme.profile,
        replaces: String::new(),
    };
    let annotations = request.metadata.annotations.iter().filter(|(key, _)| !memory::is_ours(key));
    Order {
        api_version: Kind::Order.api_version().to_owned(),
        kind: Kind::Order.as_str().to_owned(),
        metadata: Metadata {
            name: naming::order_name(&request.metadata.name, &spec),
            namespace: request.metadata.namespace.clone(),
            labels: request.metadata.labels.clone(),
            annotations: annotations.map(|(k, v)| (k.clone(), v.clone())).collect(),
            owner_references: vec![request.owner_reference()],
            ..Metadata::default()
        },
        spec,
        ..Order::default()
    }
}

/// An issuer of a type that is not ours to serve.
fn is_of_another_type(issuer: &Issuer) -> bool {
    issuer.spec.acme.is_none() && !issuer.spec.types().is_empty()
}

/// Issued or failed for good; a failed Order that a person deleted is to be tried again, unless a Certificate does that.
fn is_over(request: &CertificateRequest, observed: &Observed) -> bool {
    let ready = condition(&request.status.conditions, "Ready");
    match ready.map(|ready| ready.reason.as_str()) {
        Some("Issued") => true,
        Some("Failed") => {
            let deleted = failed_by_order(request) && observed.order.is_none();
            let owner = request.metadata.controller();
            !deleted || owner.is_some_and(|owner| owner.kind == Kind::Certificate.as_str())
        }
        Some(_) | None => false,
    }
}

/// The issuer, once it can sign.
fn ready_issuer<'a>(
    request: &CertificateRequest,
    observed: &'a Observed,
) -> Result<&'a Issuer, Outcome> {
    let issuer_ref = &request.spec.issuer_ref;
    let (kind, name) = (issuer_ref.effective_kind(), &issuer_ref.name);
    let Some(issuer) = &observed.issuer else {
        let object = format!("{}.cert-manager.io \"{name}\"", kind.to_ascii_lowercase());
        let message = format!("Referenced \"{kind}\" not found: {object} not found");
        return Err(Outcome::Pending(reason::ISSUER_NOT_FOUND, message));
    };
    if issuer.spec.acme.is_none() {
        let message =
            format!("Missing issuer type: no issuer specified for {kind} '{}'", issuer.name());
        return Err(Outcome::Pending(reason::ISSUER_TYPE_MISSING, message));
    }
    if !is_true(&issuer.status.conditions, "Ready") {
        let message = "Referenced issuer does not have a Ready status condition".to_owned();
        return Err(Outcome::Pending(reason::ISSUER_NOT_READY, message));
    }
    Ok(issuer)
}

fn sign(
    request: &CertificateRequest,
    issuer: &Issuer,
    observed: &Observed,
    now: Timestamp,
) -> Action {
    let csr = match &observed.csr {
        Ok(csr) => csr,
        Err(why) => {
            let message = format!("Failed to decode CSR in spec.request: {why}");
            return Action::Conclude(Outcome::Failed(reason::REQUEST_PARSING_ERROR, message));
        }
    };
    if let Some(message) = stray_common_name(csr) {
        return Action::Conclude(Outcome::Failed(reason::INVALID_ORDER, message));
    }
    let Some(order) = &observed.order else {
        return Action::CreateOrder(Box::new(order_for(request, issuer, csr)));
    };
    if !order.metadata.is_controlled_by(&request.metadata.uid) {
        // An earlier request of this name owned it; it goes by garbage collection.
        return Action::Wait(Wake::At(now + FOREIGN_ORDER_PAUSE));
    }
    if order.metadata.is_deleted() {
        return Action::Wait(Wake::OnChange);
    }
    follow(order, csr, observed.leaf.as_ref())
}

/// Takes over what the Order says.
fn follow(order: &Order, csr: &CsrFacts, leaf: Option<&Result<LeafFacts, String>>) -> Action {
    let (status, name) = (&order.status, order.name());
    let state = status.state.map_or("", State::as_str);
    if status.state.is_some_and(State::is_failure) {
        let message = format!(
            "{ORDER_FAILED}\"{}\" to become ready: order is in \"{state}\" state: {}",
            name.name, status.reason
        );
        return Action::Conclude(Outcome::Failed(reason::ORDER_FAILED, message));
    }
    if status.state != Some(State::Valid) {
        let message = format!("Waiting on certificate issuance from order {name}: \"{state}\"");
        return Action::Conclude(Outcome::Pending(reason::ORDER_PENDING, message));
    }
    match leaf {
        None => {
            let message =
                format!("Waiting for order-controller to add certificate data to Order {name}");
            Action::Conclude(Outcome::Pending(reason::ORDER_PENDING, message))
        }
        Some(Ok(leaf)) if leaf.public_key == csr.public_key => {
            Action::Conclude(Outcome::Issued(status.certificate.clone()))
        }
        Some(Ok(_) | Err(_)) => Action::DeleteOrder,
    }
}

/// A common name that is none of the names asked for, which no ACME CA would certify.
fn stray_common_name(csr: &CsrFacts) -> Option<String> {
    let names = &csr.names;
    let wanted = &names.common_name;
    let addresses: Vec<String> = names.ip_addresses.iter().map(ToString::to_string).collect();
    if wanted.is_empty() || names.dns_names.contains(wanted) || addresses.contains(wanted) {
        return None;
    }
    Some(format!(
        "The CSR PEM requests a commonName that is not present in the list of dnsNames or ipAddresses. If a \
         commonName is set, ACME requires that the value is also present in the list of dnsNames or ipAddresses: \
         \"{wanted}\" does not exist in [{}] or [{}]",
        names.dns_names.join(" "),
        addresses.join(" ")
    ))
}

/// Waits where recording the outcome would change nothing.
fn conclude_once(request: &CertificateRequest, outcome: Outcome, now: Timestamp) -> Action {
    if record(request, outcome.clone(), now).status == request.status {
        return Action::Wait(Wake::OnChange);
    }
    Action::Conclude(outcome)
}

/// Folds an outcome into status and notes.
pub fn record(
    request: &CertificateRequest,
    outcome: Outcome,
    now: Timestamp,
) -> Recorded<CertificateRequestStatus> {
    let mut status = request.status.clone();
    let mut notes = Vec::new();
    match outcome {
        Outcome::Approved => {
            let waiting = "Not signing CertificateRequest until it is Approved";
            let waiting =
                Note::normal(source::REQUESTS_ACME, reason::WAITING_FOR_APPROVAL, waiting);
            let message = "Certificate request has been approved by cert-manager.io";
            notes.extend([waiting, Note::normal(source::APPROVER, reason::APPROVED, message)]);
            set(&mut status, "Approved", ConditionStatus::True, reason::APPROVED, message, now);
        }
        Outcome::Denied => {
            let message = "The CertificateRequest was denied by an approval controller";
            set(&mut status, "Ready", ConditionStatus::False, "Denied", message, now);
            status.failure_time = status.failure_time.or(Some(now.into()));
        }
        Outcome::Failed(event, message) => {
            notes.push(Note::warning(source::REQUESTS_ACME, event, message.clone()));
            set(&mut status, "Ready", ConditionStatus::False, "Failed", &message, now);
            status.failure_time = status.failure_time.or(Some(now.into()));
        }
        Outcome::Issued(certificate) => {
            let message = "Certificate fetched from issuer successfully";
            notes.push(Note::normal(source::REQUESTS_ACME, reason::CERTIFICATE_ISSUED, message));
            set(&mut status, "Ready", ConditionStatus::True, "Issued", message, now);
            status.certificate = certificate;
        }
        Outcome::OrderCreated(name) => {
            let message = format!("Created Order resource {name}");
            notes.extend(set_pending(&mut status, reason::ORDER_CREATED, message, now));
        }
        Outcome::OrderDeleted => {}
        Outcome::Pending(event, message) => {
            notes.extend(set_pending(&mut status, event, message, now));
        }
    }
    Recorded { status, memory: Memory::default(), notes }
}

/// Only the first of several reasons to wait becomes an event.
fn set_pending(
    status: &mut CertificateRequestStatus,
    event: &'static str,
    message: String,
    now: Timestamp,
) -> Option<Note> {
    let known = condition(&status.conditions, "Ready");
    let is_first = known.is_none_or(|ready| ready.reason != "Pending");
    set(status, "Ready", ConditionStatus::False, "Pending", &message, now);
    // It may have failed before, with an Order that was deleted since.
    status.failure_time = None;
    is_first.then(|| Note::normal(source::REQUESTS_ACME, event, message))
}

fn set(
    status: &mut CertificateRequestStatus,
    kind: &str,
    value: ConditionStatus,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let new = Condition {
        kind: kind.to_owned(),
        status: value,
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    };
    set_condition(&mut status.conditions, new, now);
}
