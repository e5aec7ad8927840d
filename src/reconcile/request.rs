//! CertificateRequest: approval, Order, and the certificate that the Order brings.

use jiff::{SignedDuration, Timestamp};

use super::facts::{CsrFacts, LeafFacts, SecretFacts};
use super::{Note, Recorded, Wake, renewal_info};
use crate::model::certificate::{Names, is_listed};
use crate::model::common::{condition, is_true, set_condition};
use crate::model::event::{reason, source};
use crate::model::memory::{self, Memory};
use crate::model::{
    Blob, CertificateRequest, CertificateRequestStatus, Condition, ConditionStatus, Issuer, Kind,
    Metadata, ObjectName, Order, OrderSpec, State, hashed_names,
};

/// Start of the message of a request whose Order failed.
const ORDER_FAILED: &str = "Failed to wait for order resource ";
/// Pause before a request checks again whether another owner's Order of its name is gone.
const FOREIGN_ORDER_PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// Approver of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// This program, for requests not denied; cert-manager's built-in approver does the same.
    Ours,
    /// Another approver: a policy, or a person.
    Theirs,
}

/// Observations of one step beside the CertificateRequest.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Approver of the request.
    pub approval: Approval,
    /// The signing request, or why it cannot be read.
    pub csr: Result<CsrFacts, String>,
    /// Issuer, if it exists.
    pub issuer: Option<Issuer>,
    /// Order of the request, or another owner's Order of the name that [`order_for`] gives.
    pub order: Option<Order>,
    /// First certificate of that Order, or why it cannot be read; `None` before there is one.
    pub leaf: Option<Result<LeafFacts, String>>,
    /// Secret of the Certificate that the request belongs to, as long as there is no Order.
    pub secret: Option<Box<SecretFacts>>,
}

/// Next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Records that the request needs approval, and waits for that.
    AwaitApproval,
    /// Records this outcome, and does nothing else.
    Conclude(Outcome),
    /// Creates this Order.
    CreateOrder(Box<Order>),
    /// Deletes the Order, whose certificate is of no use.
    DeleteOrder,
    /// Waits.
    Wait(Wake),
    /// Records that another owner has the Order of the request's name.
    YieldName,
}

/// Outcome of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Approved by us.
    Approved,
    /// Denied by an approver.
    Denied,
    /// Failed for good: event reason and message.
    Failed(&'static str, String),
    /// The certificate is there.
    Issued(Blob),
    /// The Order of this name was created.
    OrderCreated(ObjectName),
    /// The Order was deleted.
    OrderDeleted,
    /// Something is not ready yet: event reason and message.
    Pending(&'static str, String),
}

impl Outcome {
    /// Returns the controller name under which the outcome is written, from [`source`].
    pub fn writer(&self) -> &'static str {
        if matches!(self, Self::Approved) { source::APPROVER } else { source::REQUESTS_ACME }
    }
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
        return match observed.approval {
            Approval::Ours => Action::Conclude(Outcome::Approved),
            Approval::Theirs => Action::AwaitApproval,
        };
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

/// Returns whether a request failed because its Order did.
pub fn failed_by_order(request: &CertificateRequest) -> bool {
    let ready = condition(&request.status.conditions, "Ready");
    ready.is_some_and(|c| c.reason == "Failed" && c.message.starts_with(ORDER_FAILED))
}

/// Builds the Order that a request asks for.
pub fn order_for(request: &CertificateRequest, issuer: &Issuer, csr: &CsrFacts) -> Order {
    let acme = issuer.spec.acme.clone().unwrap_or_default();
    let spec = OrderSpec {
        request: request.spec.request.clone(),
        issuer_ref: request.spec.issuer_ref.clone(),
        common_name: csr.names.common_name.clone(),
        dns_names: csr.names.dns_names.clone(),
        ip_addresses: csr.names.addresses(),
        duration: request.spec.duration.filter(|_| acme.enable_duration_feature),
        profile: acme.profile,
        replaces: String::new(),
    };
    let annotations = request.metadata.annotations.iter().filter(|(key, _)| !memory::is_ours(key));
    Order {
        api_version: Kind::Order.api_version().to_owned(),
        kind: Kind::Order.as_str().to_owned(),
        metadata: Metadata {
            name: hashed_names::order_name(&request.metadata.name, &spec),
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

/// Returns whether an issuer is of a type that this program does not serve.
fn is_of_another_type(issuer: &Issuer) -> bool {
    issuer.spec.acme.is_none() && !issuer.spec.types().is_empty()
}

/// Returns whether a request is issued or failed for good; without a Certificate, a deleted failed Order is retried.
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

/// Returns the issuer, if it can sign.
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
    if let Some(message) = stray_common_name(&csr.names) {
        return Action::Conclude(Outcome::Failed(reason::INVALID_ORDER, message));
    }
    let Some(order) = &observed.order else {
        let mut order = order_for(request, issuer, csr);
        let (asked, secret) = (&request.spec.issuer_ref, observed.secret.as_deref());
        order.spec.replaces = renewal_info::predecessor(asked, issuer, csr, secret);
        return Action::CreateOrder(Box::new(order));
    };
    if !order.metadata.is_controlled_by(&request.metadata.uid) {
        // Garbage collection deletes the Order of an earlier request of this name.
        let owner = order.metadata.controller();
        let is_earlier = owner.is_some_and(|owner| owner.name == request.metadata.name);
        if is_earlier || order.metadata.is_deleted() {
            return Action::Wait(Wake::At(now + FOREIGN_ORDER_PAUSE));
        }
        return Action::YieldName;
    }
    if order.metadata.is_deleted() {
        return Action::Wait(Wake::OnChange);
    }
    follow(order, csr, observed.leaf.as_ref())
}

/// Returns the action that follows from the Order's state.
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

/// Returns the fault of a common name that is none of the names asked for, which no ACME CA would certify.
pub fn stray_common_name(names: &Names) -> Option<String> {
    let wanted = &names.common_name;
    let addresses = names.addresses();
    if is_listed(wanted, &names.dns_names, &addresses) {
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

/// Concludes with an outcome, or waits if recording it would change nothing.
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
            let message = "Certificate request has been approved by cert-manager.io";
            notes.push(waiting_for_approval());
            notes.push(Note::normal(source::APPROVER, reason::APPROVED, message));
            set(&mut status, "Approved", ConditionStatus::True, reason::APPROVED, message, now);
        }
        Outcome::Denied => {
            let message = "The CertificateRequest was denied by an approval controller";
            set(&mut status, "Ready", ConditionStatus::False, "Denied", message, now);
            status.failure_time.get_or_insert_with(|| now.into());
        }
        Outcome::Failed(event, message) => {
            notes.push(Note::warning(source::REQUESTS_ACME, event, message.clone()));
            set(&mut status, "Ready", ConditionStatus::False, "Failed", &message, now);
            status.failure_time.get_or_insert_with(|| now.into());
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

/// Builds the note that a request awaits approval.
pub fn waiting_for_approval() -> Note {
    let message = "Not signing CertificateRequest until it is Approved";
    Note::normal(source::REQUESTS_ACME, reason::WAITING_FOR_APPROVAL, message)
}

/// Sets the condition to pending; only the first of several reasons to wait becomes an event.
fn set_pending(
    status: &mut CertificateRequestStatus,
    event: &'static str,
    message: String,
    now: Timestamp,
) -> Option<Note> {
    let known = condition(&status.conditions, "Ready");
    let is_first = known.is_none_or(|ready| ready.reason != "Pending");
    set(status, "Ready", ConditionStatus::False, "Pending", &message, now);
    // The request may have failed before, with an Order that was deleted since.
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

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::OrderStatus;
    use crate::model::certificate::Names;
    use crate::reconcile::facts::{PublicKey, annotation};
    use crate::reconcile::testing::at;

    fn with(mut base: Value, change: &Value) -> Value {
        for (key, value) in change.as_object().unwrap() {
            base[key] = value.clone();
        }
        base
    }

    /// A request `web-1` for `www.example.com`, whose spec and status were changed like that.
    fn request(spec: Value, conditions: Value) -> CertificateRequest {
        let plain = json!({"request": "Q1NS", "issuerRef": {"name": "acme"}, "duration": "2160h"});
        serde_json::from_value(json!({
            "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest",
            "metadata": {
                "name": "web-1", "namespace": "web", "uid": "uid-web-1", "labels": {"team": "shop"},
                "annotations": {"cert-manager.io/certificate-name": "web", "kubectl-acme/x": "ours"},
            },
            "spec": with(plain, &spec),
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn approved() -> CertificateRequest {
        request(json!({}), json!([{"type": "Approved", "status": "True"}]))
    }

    fn issuer(acme: Value, ready: &str) -> Issuer {
        let plain =
            json!({"server": "https://ca.example/dir", "privateKeySecretRef": {"name": "k"}});
        serde_json::from_value(json!({
            "kind": "Issuer", "metadata": {"name": "acme", "namespace": "web"},
            "spec": {"acme": with(plain, &acme)},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap()
    }

    fn csr(common_name: &str) -> CsrFacts {
        let names = Names {
            common_name: common_name.into(),
            dns_names: vec!["www.example.com".into()],
            ip_addresses: vec!["192.0.2.1".parse().unwrap()],
            ..Names::default()
        };
        CsrFacts { public_key: PublicKey(vec![1]), names }
    }

    fn observed() -> Observed {
        Observed {
            approval: Approval::Ours,
            csr: Ok(csr("")),
            issuer: Some(issuer(json!({}), "True")),
            order: None,
            leaf: None,
            secret: None,
        }
    }

    /// The request's Order, as far as it got.
    fn ordered(state: Option<State>, reason: &str) -> Observed {
        let mut order = order_for(&approved(), &issuer(json!({}), "True"), &csr(""));
        order.status = OrderStatus { state, reason: reason.into(), ..OrderStatus::default() };
        Observed { order: Some(order), ..observed() }
    }

    fn with_leaf(leaf: Result<u8, &str>) -> Observed {
        let leaf = leaf.map_err(str::to_owned).map(|key| LeafFacts {
            not_before: at(0),
            not_after: at(100),
            public_key: PublicKey(vec![key]),
            renewal_id: None,
            serial: "01".to_owned(),
            names: Names::default(),
        });
        Observed { leaf: Some(leaf), ..ordered(Some(State::Valid), "") }
    }

    fn after(mut request: CertificateRequest, outcomes: &[Outcome]) -> CertificateRequest {
        for outcome in outcomes {
            request.status = record(&request, outcome.clone(), at(0)).status;
        }
        request
    }

    /// Next action for a request; of a conclusion the condition Ready and the events it leads to.
    fn check(request: &CertificateRequest, observed: &Observed, expected: &str) {
        let shown = match next_action(request, observed, at(0)) {
            Action::Conclude(outcome) => {
                let new = record(request, outcome, at(0));
                let ready = condition(&new.status.conditions, "Ready");
                let ready =
                    ready.map_or_else(String::new, |c| format!("{}: {}", c.reason, c.message));
                let events: Vec<&str> = new.notes.iter().map(|note| note.reason.as_ref()).collect();
                format!("{events:?} {ready}")
            }
            Action::AwaitApproval => "await approval".to_owned(),
            Action::CreateOrder(order) => format!("create {}", order.metadata.name),
            Action::DeleteOrder => "delete the order".to_owned(),
            Action::Wait(wake) => format!("wait {wake:?}"),
            Action::YieldName => "yield the name".to_owned(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let foreign = json!({"issuerRef": {"name": "acme", "group": "other.example"}});
        check(&request(foreign, json!([])), &observed(), "wait OnChange");
        let mut other = issuer(json!({}), "True");
        other.spec.acme = None;
        other.spec.other.insert("selfSigned".into(), json!({}));
        check(
            &request(json!({}), json!([])),
            &Observed { issuer: Some(other), ..observed() },
            "wait OnChange",
        );
    }

    #[test]
    fn a_new_request_is_approved_and_then_ordered() {
        let fresh = request(json!({}), json!([]));
        check(&fresh, &observed(), "[\"WaitingForApproval\", \"cert-manager.io\"] ");
        let approved = after(fresh, &[Outcome::Approved]);
        check(&approved, &observed(), "create web-1-2095683977");
        let made = Outcome::OrderCreated(ObjectName::new("web", "web-1-1"));
        let new = record(&approved, made, at(0));
        assert_eq!(new.notes[0].reason, "OrderCreated");
        assert_eq!(new.status.conditions[1].message, "Created Order resource web/web-1-1");
    }

    #[test]
    fn an_order_replaces_what_the_same_issuer_has_signed_for_one_of_its_names() {
        let secret = |issuer: &str, name: &str| {
            let named = [(annotation::ISSUER_NAME.to_owned(), issuer.to_owned())];
            let leaf = LeafFacts {
                not_before: at(0),
                not_after: at(100),
                public_key: PublicKey(vec![7]),
                renewal_id: Some("ca.1".to_owned()),
                serial: "01".to_owned(),
                names: Names { dns_names: vec![name.to_owned()], ..Names::default() },
            };
            SecretFacts {
                annotations: named.into(),
                leaf: Some(Ok(leaf)),
                ..SecretFacts::default()
            }
        };
        let asked = |source: &str| issuer(json!({"renewalInformationSource": source}), "True");
        for (secret, issuer, expected) in [
            (Some(secret("acme", "www.example.com")), asked("ARI"), "ca.1"),
            (Some(secret("acme", "www.example.com")), issuer(json!({}), "True"), "ca.1"),
            (Some(secret("acme", "www.example.com")), asked("None"), ""),
            (Some(secret("acme", "other.example.com")), asked("ARI"), ""),
            (Some(secret("other", "www.example.com")), asked("ARI"), ""),
            (Some(SecretFacts::default()), asked("ARI"), ""),
            (None, asked("ARI"), ""),
        ] {
            let secret = secret.map(Box::new);
            let observed = Observed { secret, issuer: Some(issuer), ..observed() };
            let Action::CreateOrder(order) = next_action(&approved(), &observed, at(0)) else {
                panic!("no order");
            };
            assert_eq!(order.spec.replaces, expected);
            // A repeat finds the first, whatever is in the Secret by then.
            assert_eq!(order.metadata.name, "web-1-2095683977");
        }
    }

    #[test]
    fn a_request_that_others_approve_waits_for_them() {
        let theirs = Observed { approval: Approval::Theirs, ..observed() };
        check(&request(json!({}), json!([])), &theirs, "await approval");
        check(&approved(), &theirs, "create web-1-2095683977");
    }

    #[test]
    fn a_denied_request_is_over_without_an_event() {
        let denied =
            request(json!({}), json!([{"type": "Denied", "status": "True", "reason": "person"}]));
        let expected = "[] Denied: The CertificateRequest was denied by an approval controller";
        check(&denied, &observed(), expected);
        let over = after(denied, &[Outcome::Denied]);
        assert_eq!(over.status.failure_time, Some(at(0).into()));
        check(&over, &observed(), "wait OnChange");
    }

    #[test]
    fn a_request_waits_for_its_issuer() {
        for (issuer, expected) in [
            (
                None,
                "[\"IssuerNotFound\"] Pending: Referenced \"Issuer\" not found: issuer.cert-manager.io \"acme\" not found",
            ),
            (
                Some(issuer(json!({}), "False")),
                "[\"IssuerNotReady\"] Pending: Referenced issuer does not have a Ready status condition",
            ),
        ] {
            check(&approved(), &Observed { issuer, ..observed() }, expected);
        }
        let waiting = Outcome::Pending(reason::ISSUER_NOT_FOUND, "not found".into());
        let waiting = after(approved(), &[waiting]);
        check(&waiting, &observed(), "create web-1-2095683977");
        check(
            &waiting,
            &Observed { issuer: Some(issuer(json!({}), "False")), ..observed() },
            "[] Pending: Referenced issuer does not have a Ready status condition",
        );
    }

    #[test]
    fn a_request_that_no_ca_would_take_fails() {
        let unreadable = Observed { csr: Err("no PEM".into()), ..observed() };
        let expected =
            "[\"RequestParsingError\"] Failed: Failed to decode CSR in spec.request: no PEM";
        check(&approved(), &unreadable, expected);
        let named = |common_name: &str| Observed { csr: Ok(csr(common_name)), ..observed() };
        check(
            &approved(),
            &named("other.example.com"),
            "[\"InvalidOrder\"] Failed: The CSR PEM requests a commonName that is not present in the list of dnsNames or \
             ipAddresses. If a commonName is set, ACME requires that the value is also present in the list of dnsNames \
             or ipAddresses: \"other.example.com\" does not exist in [www.example.com] or [192.0.2.1]",
        );
        check(&approved(), &named("192.0.2.1"), "create web-1-966404884");
    }

    #[test]
    fn a_request_follows_its_order() {
        let name = "web/web-1-2095683977";
        let follows = |observed: Observed, expected: &str| check(&approved(), &observed, expected);
        let waits = |why: &str| format!("[\"OrderPending\"] Pending: {why}");
        let for_issuance = |state: &str| {
            waits(&format!("Waiting on certificate issuance from order {name}: \"{state}\""))
        };
        follows(ordered(None, ""), &for_issuance(""));
        follows(ordered(Some(State::Ready), ""), &for_issuance("ready"));
        follows(
            ordered(Some(State::Invalid), "no answer"),
            "[\"OrderFailed\"] Failed: Failed to wait for order resource \"web-1-2095683977\" to become ready: \
             order is in \"invalid\" state: no answer",
        );
        let for_data =
            format!("Waiting for order-controller to add certificate data to Order {name}");
        follows(ordered(Some(State::Valid), ""), &waits(&for_data));
        let issued = "[\"CertificateIssued\"] Issued: Certificate fetched from issuer successfully";
        follows(with_leaf(Ok(1)), issued);
        follows(with_leaf(Ok(2)), "delete the order");
        follows(with_leaf(Err("no PEM")), "delete the order");
    }

    #[test]
    fn an_order_that_an_earlier_request_left_is_waited_for_and_anybody_elses_is_not() {
        let mut foreign = ordered(Some(State::Valid), "");
        foreign.order.as_mut().unwrap().metadata.owner_references[0].uid =
            "uid-of-an-earlier".into();
        check(&approved(), &foreign, &format!("wait {:?}", Wake::At(at(5))));
        foreign.order.as_mut().unwrap().metadata.owner_references.clear();
        check(&approved(), &foreign, "yield the name");
    }

    #[test]
    fn a_failed_order_that_was_deleted_is_made_again_unless_a_certificate_does_that() {
        let failed =
            Outcome::Failed(reason::ORDER_FAILED, format!("{ORDER_FAILED}\"web-1-1\" to …"));
        let mut failed = after(approved(), &[failed]);
        check(&failed, &ordered(Some(State::Invalid), ""), "wait OnChange");
        check(&failed, &observed(), "create web-1-2095683977");
        let again =
            after(failed.clone(), &[Outcome::OrderCreated(ObjectName::new("web", "web-1-1"))]);
        assert_eq!(again.status.failure_time, None);
        let owner = json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "name": "web", "uid": "u", "controller": true});
        failed.metadata.owner_references = vec![serde_json::from_value(owner).unwrap()];
        check(&failed, &observed(), "wait OnChange");
    }

    #[test]
    fn an_order_is_made_from_the_signing_request_and_carries_what_the_request_carries() {
        let acme = json!({"enableDurationFeature": true, "profile": "shortlived"});
        let order = order_for(&approved(), &issuer(acme, "True"), &csr("www.example.com"));
        assert_eq!(
            serde_json::to_value(&order.spec).unwrap(),
            json!({
                "request": "Q1NS", "issuerRef": {"name": "acme"}, "commonName": "www.example.com",
                "dnsNames": ["www.example.com"], "ipAddresses": ["192.0.2.1"],
                "duration": "2160h0m0s", "profile": "shortlived",
            })
        );
        assert_eq!(
            serde_json::to_value(&order.metadata).unwrap(),
            json!({
                "name": order.metadata.name, "namespace": "web", "labels": {"team": "shop"},
                "annotations": {"cert-manager.io/certificate-name": "web"},
                "ownerReferences": [{
                    "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest", "name": "web-1",
                    "uid": "uid-web-1", "controller": true, "blockOwnerDeletion": true,
                }],
            })
        );
        let plain = order_for(&approved(), &issuer(json!({}), "True"), &csr(""));
        assert_eq!((plain.spec.duration, plain.spec.profile.as_str()), (None, ""));
    }
}
