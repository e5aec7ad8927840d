//! Waits of a challenge, in the words that both the schedule and the progress of a run use. And waits of a Certificate
//! before it has challenges and after they have ended.

use std::fmt;

use super::advice;
use super::next_step::NextStep;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::words::facts;
use crate::model::cause::{Cause, Symptom};
use crate::model::common::is_true;
use crate::model::memory::{Holder, Memory};
use crate::model::{CertificateRequest, Challenge, Issuer, Key, Kind, State};
use crate::reconcile::request::Approval;
use crate::reconcile::schedule::Obstacle;

/// Thing that a challenge waits for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wait<'a> {
    /// In the queue.
    Queue(Obstacle),
    /// In the queue; the scheduler has given no reason yet.
    Turn,
    /// Running, with the reason in the status.
    Reason(&'a str),
    /// Running: the answer has to be put up.
    Answer,
    /// Running: the self-check has to see the answer.
    SelfCheck,
    /// Running: the CA has to validate.
    Authority,
    /// Running, and final or deleted: the answer has to be taken down.
    CleanUp,
}

impl fmt::Display for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(Obstacle::Slot { .. }) => f.write_str("a free slot"),
            Self::Queue(Obstacle::Lock { holder }) => write!(f, "challenge {holder}"),
            Self::Queue(Obstacle::Nothing) => f.write_str("nothing, it starts next"),
            Self::Turn => f.write_str("its turn"),
            Self::Reason(reason) => f.write_str(reason),
            Self::Answer => f.write_str("its answer to be put up"),
            Self::SelfCheck => f.write_str("its self-check"),
            Self::Authority => f.write_str("the CA's validation"),
            Self::CleanUp => f.write_str("its answer to be taken down"),
        }
    }
}

impl<'a> Wait<'a> {
    /// Returns the wait as a sentence: `waiting for …`, or the challenge's reason unchanged.
    pub fn sentence(&self) -> String {
        match self {
            Self::Reason(reason) => (*reason).to_owned(),
            Self::Queue(_)
            | Self::Turn
            | Self::Answer
            | Self::SelfCheck
            | Self::Authority
            | Self::CleanUp => {
                format!("waiting for {self}")
            }
        }
    }

    /// Returns the wait of a challenge by its reason; for a challenge with a slot also a wait that the reason leaves out.
    pub fn of(challenge: &'a Challenge) -> Self {
        let status = &challenge.status;
        match status.reason.as_str() {
            "" if !status.processing && !status.presented && !challenge.has_ended() => Self::Turn,
            _ => Self::of_running(challenge),
        }
    }

    /// Describes the wait of a challenge in few words, without its names, so that many waits can be summed up.
    pub fn in_short(challenge: &'a Challenge) -> String {
        let wait = Self::of(challenge);
        let Self::Reason(reason) = wait else { return wait.sentence() };
        match facts::cause(challenge) {
            Some(Cause::Seen(sighting)) => words_of(sighting.symptom).to_owned(),
            Some(Cause::Refused(problem)) => {
                format!("refused by the CA ({})", problem.short_kind())
            }
            Some(Cause::Validation(problem)) => {
                format!("not proven to the CA ({})", problem.short_kind())
            }
            Some(Cause::NoIngress) => "its Ingress is missing".to_owned(),
            Some(Cause::Denied(_)) => "the cluster refuses the solver's objects".to_owned(),
            Some(Cause::Provider(refusal)) => refusal.in_short(),
            None => reason.replace(&challenge.spec.dns_name, "…"),
        }
    }

    /// Returns the wait of a challenge that has its slot.
    pub fn of_running(challenge: &'a Challenge) -> Self {
        let status = &challenge.status;
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        if status.state.is_some_and(State::is_final) || challenge.metadata.is_deleted() {
            return Self::CleanUp;
        }
        match status.reason.as_str() {
            "" if memory.accepted_at.is_some() => Self::Authority,
            "" if status.presented => Self::SelfCheck,
            "" => Self::Answer,
            reason => Self::Reason(reason),
        }
    }
}

/// Describes the fault of an answer in few words.
fn words_of(symptom: Symptom) -> &'static str {
    match symptom {
        Symptom::RedirectNotFollowed => "a redirect that no CA follows",
        Symptom::OtherAccount => "answered for another account",
        Symptom::NoTls => "no TLS at port 443",
        Symptom::TlsPortSilent => "port 443 is silent",
        Symptom::RedirectedAway => "redirected to a server without the answer",
        Symptom::NotFound => "404",
        Symptom::Declined => "404 from another solver",
        Symptom::PathChanged => "the request arrives under another path",
        Symptom::AnswerAltered => "the answer is changed on its way",
        Symptom::TlsForwarded => "TLS arrives at the HTTP listener",
        Symptom::Forbidden => "401 or 403",
        Symptom::ServerError => "server error",
        Symptom::BadRequest => "400",
        Symptom::RequestRefused => "the request is refused",
        Symptom::WrongAnswer => "wrong answer",
        Symptom::ConnectionRefused => "connection refused",
        Symptom::NoReply => "no reply",
        Symptom::Unreachable => "unreachable",
        Symptom::NotHttp => "no HTTP",
        Symptom::HungUp => "connection closed",
        Symptom::NoAddress => "no address in DNS",
        Symptom::AliasLoop => "CNAME loop",
        Symptom::DanglingAlias => "CNAME to a name that does not exist",
        Symptom::ResolverSilent => "the resolver is silent",
        Symptom::NameServersFail => "name servers fail",
        Symptom::AliasNotFollowed => "record not where the CNAME leads",
        Symptom::NotDelegated => "zone not found",
        Symptom::LameServer => "a name server does not serve the zone",
        Symptom::ServersSilent => "name servers are silent",
        Symptom::ServerUnreadable => "a name server sends an unreadable reply",
        Symptom::NoRoute => "name servers cannot be reached",
    }
}

/// Step that a Certificate waits for.
#[derive(Clone, Debug)]
pub struct CertificateWait {
    /// Description of the step.
    pub waits_for: String,
    /// Description without the names of this Certificate, so that many can be summed up.
    pub in_short: String,
    /// Step that helps, if a person has to act.
    pub next_step: Option<NextStep>,
}

impl CertificateWait {
    fn of(waits_for: String, in_short: &str) -> Self {
        Self { waits_for, in_short: in_short.to_owned(), next_step: None }
    }
}

/// Returns the step while a challenge is open: the first open challenge, and what that challenge waits for in turn.
pub fn step_at_challenge(chain: &Chain) -> Option<CertificateWait> {
    let is_open = |challenge: &&Challenge| !challenge.has_ended();
    let challenge = chain.challenges.iter().find(is_open)?;
    let wait = Wait::of(challenge);
    let key = Key::new(Kind::Challenge, challenge.name());
    let next_step =
        (wait == Wait::SelfCheck).then(|| advice::for_answer(challenge, chain.in_cluster));
    let in_short = format!("its Challenge ({})", Wait::in_short(challenge));
    Some(CertificateWait {
        waits_for: format!("{key}, which waits for {wait}"),
        in_short,
        next_step,
    })
}

/// Returns the step before there are challenges, and after they have ended; `approval` names the approver of requests.
/// `None` while a challenge is open.
pub fn step_beside_challenges(chain: &Chain, approval: Approval) -> Option<CertificateWait> {
    let is_open = |challenge: &Challenge| !challenge.has_ended();
    if chain.challenges.iter().any(is_open) {
        return None;
    }
    let certificate = &chain.certificate;
    let conditions = &certificate.status.conditions;
    if is_true(conditions, "Ready") && !is_true(conditions, "Issuing") {
        // The certificate is there, or no controller has begun to renew it.
        return None;
    }
    let before = certificate.status.revision.unwrap_or(0);
    let is_new = |request: &&CertificateRequest| {
        let is_all = request.metadata.uid == certificate.metadata.uid;
        is_all || request.revision().is_some_and(|it| it > before)
    };
    let Some(request) = chain.request().filter(is_new) else {
        let waits_for = "its CertificateRequest";
        return Some(CertificateWait::of(waits_for.to_owned(), waits_for));
    };
    let name = &request.metadata.name;
    let is_approved = is_true(&request.status.conditions, "Approved");
    if !is_approved && approval == Approval::Ours {
        // This program approves, and has not checked the request yet.
        let waits_for = format!("CertificateRequest {name}");
        return Some(CertificateWait::of(waits_for, "its CertificateRequest"));
    }
    if !is_approved {
        let waits_for = format!("the approval of CertificateRequest {name}");
        let next_step = Some(NextStep::Approve(request.name()));
        return Some(CertificateWait {
            next_step,
            ..CertificateWait::of(waits_for, "the approval of its CertificateRequest")
        });
    }
    let is_ready = |issuer: &Issuer| is_true(&issuer.status.conditions, "Ready");
    if !chain.issuer.as_ref().is_some_and(is_ready) {
        let waits_for = format!("{} to be ready", chain.named_issuer());
        return Some(CertificateWait {
            in_short: waits_for.clone(),
            ..CertificateWait::of(waits_for, "")
        });
    }
    let Some(order) = chain.order() else {
        return Some(CertificateWait::of(
            format!("the Order of CertificateRequest {name}"),
            "its Order",
        ));
    };
    let name = &order.metadata.name;
    match order.status.state {
        None | Some(State::Pending) => {
            Some(CertificateWait::of(format!("the challenges of Order {name}"), "its challenges"))
        }
        Some(State::Ready | State::Processing) => Some(CertificateWait::of(
            format!("the CA to finish Order {name}"),
            "the CA to finish its Order",
        )),
        Some(State::Valid) => Some(CertificateWait::of(
            format!("Secret {}", certificate.spec.secret_name),
            "its Secret",
        )),
        Some(State::Errored | State::Expired | State::Invalid) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::reconcile::testing::challenge;

    #[test]
    fn a_deleted_challenge_waits_for_its_answer_to_be_taken_down() {
        let wait = |deleted: Value| {
            let challenge = json!({
                "metadata": {"name": "c", "deletionTimestamp": deleted},
                "spec": {
                    "url": "", "authorizationURL": "", "dnsName": "www.example.com", "type": "HTTP-01", "token": "",
                    "key": "", "solver": {"http01": {}}, "issuerRef": {"name": "acme"},
                },
                "status": {"processing": true, "presented": true, "reason": "no answer"},
            });
            let challenge: Challenge = serde_json::from_value(challenge).unwrap();
            Wait::of_running(&challenge).to_string()
        };
        assert_eq!(wait(Value::Null), "no answer");
        assert_eq!(wait("2026-11-22T00:00:00Z".into()), "its answer to be taken down");
    }

    /// Checks what a Certificate waits for if its Issuer, request and Order have these states.
    fn check(issuer: &Value, request: &Value, order: &Value, expected: &str) {
        check_by(Approval::Ours, (issuer, request, order), expected);
    }

    fn check_by(
        approval: Approval,
        (issuer, request, order): (&Value, &Value, &Value),
        expected: &str,
    ) {
        let owner = |uid: &str| json!([{"apiVersion": "v1", "kind": "x", "name": "x", "uid": uid, "controller": true}]);
        let spec = json!({"secretName": "web-tls", "issuerRef": {"name": "ca"}});
        let certificate = json!({"metadata": {"name": "web", "namespace": "a"}, "spec": spec});
        let issuer =
            json!({"metadata": {"name": "ca"}, "spec": {}, "status": {"conditions": issuer}});
        let annotations = json!({"cert-manager.io/certificate-revision": "1"});
        let request = json!({
            "metadata": {"name": "web-1", "uid": "r", "annotations": annotations},
            "spec": {"request": "", "issuerRef": {"name": "ca"}},
            "status": {"conditions": request},
        });
        let order = order.as_str().map(|state| {
            json!({
                "metadata": {"name": "web-1-5", "uid": "o", "ownerReferences": owner("r")},
                "spec": {"request": "", "issuerRef": {"name": "ca"}},
                "status": {"state": state},
            })
        });
        let is_there = !request["status"]["conditions"].is_null();
        let chain = Chain {
            certificate: serde_json::from_value(certificate).unwrap(),
            requests: is_there
                .then(|| serde_json::from_value(request).unwrap())
                .into_iter()
                .collect(),
            orders: order.map(|order| serde_json::from_value(order).unwrap()).into_iter().collect(),
            challenges: Vec::new(),
            issuer: serde_json::from_value(issuer).ok(),
            in_cluster: false,
        };
        let step = step_beside_challenges(&chain, approval).map(|step| step.waits_for);
        assert_eq!(step.unwrap_or_default(), expected);
    }

    #[test]
    fn a_challenge_whose_first_look_has_no_end_is_named() {
        let spec = json!({"secretName": "web-tls", "issuerRef": {"name": "ca"}});
        let certificate = json!({"metadata": {"name": "web", "namespace": "a"}, "spec": spec});
        for (change, expected, has_hint) in [
            (json!({}), "Challenge a/web, which waits for its turn", false),
            (
                json!({"processing": true}),
                "Challenge a/web, which waits for its answer to be put up",
                false,
            ),
            (
                json!({"processing": true, "presented": true}),
                "Challenge a/web, which waits for its self-check",
                true,
            ),
        ] {
            let mut challenge = challenge("www.example.com").build();
            challenge.metadata.namespace = "a".to_owned();
            challenge.metadata.name = "web".to_owned();
            challenge.status = serde_json::from_value(change).unwrap();
            let chain = Chain {
                certificate: serde_json::from_value(certificate.clone()).unwrap(),
                requests: Vec::new(),
                orders: Vec::new(),
                challenges: vec![challenge],
                issuer: None,
                in_cluster: false,
            };
            assert!(step_beside_challenges(&chain, Approval::Ours).is_none());
            let step = step_at_challenge(&chain).unwrap();
            assert_eq!((step.waits_for.as_str(), step.next_step.is_some()), (expected, has_hint));
        }
    }

    #[test]
    fn a_reason_is_not_waited_for() {
        for (wait, expected) in [
            (Wait::Authority, "waiting for the CA's validation"),
            (Wait::Reason("the hook fails: it ended"), "the hook fails: it ended"),
            (Wait::Reason("Waiting for HTTP-01 …"), "Waiting for HTTP-01 …"),
        ] {
            assert_eq!(wait.sentence(), expected);
        }
    }

    #[test]
    fn every_step_of_the_way_has_words() {
        let is = |kind: &str| json!([{"type": kind, "status": "True"}]);
        let (none, nothing) = (json!([]), Value::Null);
        check(&none, &nothing, &nothing, "its CertificateRequest");
        check(&none, &none, &nothing, "CertificateRequest web-1");
        let theirs = "the approval of CertificateRequest web-1";
        check_by(Approval::Theirs, (&none, &none, &nothing), theirs);
        check(&none, &is("Approved"), &nothing, "Issuer a/ca to be ready");
        let (ready, approved) = (is("Ready"), is("Approved"));
        check(&ready, &approved, &nothing, "the Order of CertificateRequest web-1");
        check(&ready, &approved, &json!("pending"), "the challenges of Order web-1-5");
        check(&ready, &approved, &json!("ready"), "the CA to finish Order web-1-5");
        check(&ready, &approved, &json!("valid"), "Secret web-tls");
        check(&ready, &approved, &json!("invalid"), "");
    }
}
