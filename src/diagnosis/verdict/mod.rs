//! Verdict on how far a Certificate is from its end, by the store and by the obstacles that the controllers have met.
//!
//! Names, profiles and signing requests that a CA refuses exit with 2: the manifest has to change.

pub mod advice;
pub mod awaited;
pub mod blocker;
pub mod caa_refusal;
pub mod failed;
pub mod failure_kind;
pub mod near_issuer;
pub mod next_step;
pub mod node_state;
pub mod replacement;
pub mod waits;

use self::advice::then_again;
use self::blocker::{Blocker, of_challenges, of_order};
use self::caa_refusal::CaaRefusal;
use self::failed::{Failed, FailedOrder, denial};
use self::failure_kind::FailureKind;
use self::next_step::NextStep;
use super::case::chain::{Chain, issuer_key, key_of};
use super::words::{facts, foreign, issuer};
use crate::acme::error::{AcmeError, Retry};
use crate::controllers::ReconcileError;
use crate::controllers::obstacles::{Obstacle, Obstacles};
use crate::model::cause::{Cause, OrderWait};
use crate::model::common::{condition, is_true};
use crate::model::event::reason;
use crate::model::memory::{Holder, Memory};
use crate::model::{
    Certificate, Challenge, Condition, ConditionStatus, Issuer, Key, Kind, Order, Problem, State,
};
use crate::reconcile::certificate::issuing;
use crate::store::Change;
use crate::store::error::StoreError;
use crate::store::resources::typed;

/// Minimum number of times that a cluster must refuse a step, 7 s in all: a newly started cluster knows no Roles yet.
const MIN_REFUSALS: u32 = 4;

/// Distance of a Certificate from its end.
#[derive(Debug)]
pub enum Verdict {
    /// The Secret holds the requested certificate, and nothing temporary is left.
    Issued,
    /// Only a change helps.
    Failed(Failed),
    /// The Certificate is on its way; with the obstacle that holds it up, if any.
    Waiting(Option<Blocker>),
}

/// Reports whether a change is that of a Certificate that is not being issued any more.
pub fn may_end(change: &Change) -> bool {
    let Change::Applied(record) = change else { return false };
    record.key.kind == Kind::Certificate
        && typed::<Certificate>(record.clone())
            .is_ok_and(|certificate| !certificate.is_being_issued())
}

/// Judges a Certificate. `since` is the revision of a due Certificate when this run began. Without `since`, nothing has to
/// be issued: the status, or leftovers of an issuance, have to be put right.
pub fn verdict(chain: &Chain, obstacles: &Obstacles, since: Option<i64>) -> Verdict {
    let certificate = &chain.certificate;
    let issuing = is_true(&certificate.status.conditions, "Issuing");
    let was_issued = was_issued(certificate, since);
    if !issuing && was_issued && is_ready(certificate) {
        return if chain.is_tidy() { Verdict::Issued } else { Verdict::Waiting(None) };
    }
    if !issuing
        && was_issued
        && let Some(failed) = no_window(chain)
    {
        return Verdict::Failed(failed);
    }
    if !issuing && since.is_none() {
        return judge_obstacles(chain, obstacles).unwrap_or(Verdict::Waiting(None));
    }
    if let Some(failed) = failed_request(chain) {
        return Verdict::Failed(failed);
    }
    if let Some(why) = issuing::end(certificate) {
        let what = format!("{} was not issued: {why}", chain.key());
        let step = NextStep::ChangeCertificate(chain.key());
        return Verdict::Failed(Failed::new(FailureKind::Usage, what).helped_by(step));
    }
    if let Some(failed) = chain.order().and_then(|order| no_solver(chain, order)) {
        return Verdict::Failed(failed);
    }
    // Only a person brings the issuer back.
    let Some(issuer) = &chain.issuer else { return Verdict::Failed(no_issuer(chain)) };
    if let Some(verdict) = judge_obstacles(chain, obstacles) {
        return verdict;
    }
    if let Some(verdict) = judge_issuer(&chain.named_issuer(), issuer) {
        return verdict;
    }
    Verdict::Waiting(of_order(chain).or_else(|| of_challenges(chain)))
}

/// Judges a Certificate that this run works on: an issued Certificate is done even if a renewal has already begun, as in a
/// window that the CA has opened meanwhile.
pub fn of_run(chain: &Chain, obstacles: &Obstacles, since: Option<i64>) -> Verdict {
    let certificate = &chain.certificate;
    let is_renewing = is_true(&certificate.status.conditions, "Issuing");
    if since.is_some() && is_renewing && was_issued(certificate, since) && is_ready(certificate) {
        return Verdict::Issued;
    }
    verdict(chain, obstacles, since)
}

/// Reports whether a Certificate has been issued since a revision; true without a revision.
fn was_issued(certificate: &Certificate, since: Option<i64>) -> bool {
    since.is_none_or(|before| certificate.status.revision.unwrap_or(0) > before)
}

/// Reports whether a Certificate is ready in its current generation.
fn is_ready(certificate: &Certificate) -> bool {
    current_ready(certificate).is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Returns the condition Ready of a Certificate, if it is about the current generation.
fn current_ready(certificate: &Certificate) -> Option<&Condition> {
    condition(&certificate.status.conditions, "Ready")
        .filter(|ready| ready.observed_generation == certificate.metadata.generation)
}

/// Judges a Certificate by the first obstacle in its way.
fn judge_obstacles(chain: &Chain, obstacles: &Obstacles) -> Option<Verdict> {
    let in_the_way =
        |key: &Key| obstacles.contains_key(key) && !is_outdated(chain, key) && !is_over(chain, key);
    let key = chain.keys().into_iter().find(in_the_way)?;
    Some(of_obstacle(&key, obstacles.get(&key)?, &chain.named_issuer()))
}

/// Reports whether a Challenge has ended, so that a fault in taking its answer down holds up no certificate.
fn is_over(chain: &Chain, key: &Key) -> bool {
    let is_it = |challenge: &&Challenge| key.name == challenge.name();
    let challenge = chain.challenges.iter().find(is_it).filter(|_| key.kind == Kind::Challenge);
    challenge.is_some_and(Challenge::has_ended)
}

/// Reports whether a Challenge is about to be given up, because its issuer has another dns01 solver by now.
fn is_outdated(chain: &Chain, key: &Key) -> bool {
    let challenge = chain.challenges.iter().find(|c| {
        key.kind == Kind::Challenge && key.name == c.name() && c.spec.solver.dns01.is_some()
    });
    let acme = chain.issuer.as_ref().and_then(|issuer| issuer.spec.acme.as_ref());
    let (Some(challenge), Some(acme)) = (challenge, acme) else { return false };
    !acme.solvers.iter().any(|solver| solver.dns01 == challenge.spec.solver.dns01)
}

/// Judges an obstacle in the way of the object `key`, whose issuer is `issuer`.
pub fn of_obstacle(key: &Key, obstacle: &Obstacle, issuer: &Key) -> Verdict {
    let error = &*obstacle.error;
    let what = match error {
        ReconcileError::Acme(AcmeError::Refused { problem, .. }) => {
            format!("{key}: the CA answers {problem}")
        }
        _ => format!("{key}: {error}"),
    };
    let problem = match error {
        ReconcileError::Acme(AcmeError::Refused { problem, .. }) => Some(Problem::clone(problem)),
        _ => None,
    };
    let kind = FailureKind::of_error(error);
    let next_step = advice::for_error(error, issuer);
    // A store that cannot be used may come back, and only `run` waits for that.
    let is_store = matches!(
        error,
        ReconcileError::Store(StoreError::Unusable { .. } | StoreError::Exposed { .. })
    );
    let is_refused = obstacle.tries >= MIN_REFUSALS
        && matches!(error, ReconcileError::Store(error) if error.needs_person());
    let retry = error.retry();
    if retry == Retry::Never || is_store || is_refused {
        let failed = Failed::new(kind, what).told_by(problem);
        return Verdict::Failed(failed.helped_by(next_step));
    }
    let named_by_ca = matches!((error, retry), (ReconcileError::Acme(_), Retry::At(_)));
    Verdict::Waiting(Some(Blocker {
        kind,
        of: key.kind,
        what,
        until: Some(obstacle.next_try),
        named_by_ca,
        problem: problem.map(Box::new),
        next_step,
    }))
}

/// Builds the failure of a Certificate whose Issuer was deleted meanwhile.
fn no_issuer(chain: &Chain) -> Failed {
    let Some(issuer) = issuer_key(&chain.certificate) else {
        return foreign_issuer(&chain.certificate);
    };
    let what = format!("{} was not issued: {issuer} not found", chain.key());
    Failed::new(FailureKind::Usage, what).helped_by(NextStep::BringIssuerBack)
}

/// Builds the failure of a Certificate whose issuer is of a kind that is not ours.
pub fn foreign_issuer(certificate: &Certificate) -> Failed {
    let (key, kind) = (key_of(certificate), certificate.spec.issuer_ref.effective_kind());
    let what = format!("{key}: issuerRef.kind is {kind}, which this program does not serve");
    Failed::new(FailureKind::Usage, what).helped_by(NextStep::IssuerKind)
}

/// Returns the failure if the Certificate has recorded that its request failed.
fn failed_request(chain: &Chain) -> Option<Failed> {
    let conditions = &chain.certificate.status.conditions;
    let issuing = condition(conditions, "Issuing")?;
    if issuing.status != ConditionStatus::False
        || chain.certificate.status.last_failure_time.is_none()
    {
        return None;
    }
    if let Some(denied) = denial(chain) {
        return Some(denied);
    }
    let key = chain.key();
    let order = chain.order();
    let failed: Vec<&Challenge> =
        order.map(|order| failed_challenges(chain, order).collect()).unwrap_or_default();
    let has_reason = |c: &&&Challenge| !c.status.reason.is_empty();
    // A challenge that the CA has refused says more than a challenge that was given up with it.
    let refused = |c: &&&Challenge| has_reason(c) && c.status.state == Some(State::Invalid);
    let challenge = failed.iter().rfind(refused).or_else(|| failed.iter().rfind(has_reason));
    let challenge = challenge.copied();
    let (kind, why, problem) = match (order, challenge) {
        (Some(order), _) if !order.status.reason.is_empty() => {
            (kind_of_order(chain, order), order.status.reason.clone(), facts::problem(order))
        }
        // cert-manager leaves the CA's message with the challenge alone.
        (Some(order), Some(challenge)) => {
            let told = issuing.message.trim_end_matches([':', ' ']);
            let problem = match facts::cause(challenge) {
                Some(Cause::Refused(problem) | Cause::Validation(problem)) => Some(*problem),
                _ => None,
            };
            let why = format!("{told}: {}", challenge.status.reason);
            (kind_of_order(chain, order), why, problem)
        }
        (Some(_) | None, _) => {
            let problem = foreign::problem_in(&issuing.message);
            (FailureKind::Unexpected, issuing.message.clone(), problem)
        }
    };
    let failed_so = Failed::new(kind, format!("{key} was not issued: {why}"));
    let excluded = CaaRefusal::of(chain, &failed, &why).map(Box::new);
    // If CAA records are at fault, the CA has seen the answer of the challenge.
    let step = advice::for_order(kind, problem.as_ref(), challenge, chain);
    let failed_so = failed_so.told_by(problem).helped_by(step.filter(|_| excluded.is_none()));
    let tried = |order: &Order| FailedOrder {
        uid: order.metadata.uid.clone(),
        name: order.metadata.name.clone(),
        last_deed: chain.last_deed(order),
    };
    Some(Failed { order: order.map(tried), excluded, ..failed_so })
}

/// Returns the challenges of an order that have failed.
fn failed_challenges<'a>(
    chain: &'a Chain,
    order: &'a Order,
) -> impl DoubleEndedIterator<Item = &'a Challenge> {
    let uid = &order.metadata.uid;
    chain.challenges.iter().filter(move |challenge| {
        challenge.metadata.is_controlled_by(uid)
            && challenge.status.state.is_some_and(State::is_failure)
    })
}

/// Returns the failure if the Secret is there, and no time of renewal can be computed.
fn no_window(chain: &Chain) -> Option<Failed> {
    let ready = current_ready(&chain.certificate)?;
    if ready.reason != reason::WINDOW_ERROR {
        return None;
    }
    let name = chain.certificate.name();
    let what = format!("Certificate {name} was issued, but is not ready: {}", ready.message);
    Some(Failed::new(FailureKind::Usage, what).helped_by(NextStep::RenewalWindows))
}

/// Returns the kind of a failed order: by a refused validation, else by the CA's answer.
fn kind_of_order(chain: &Chain, order: &Order) -> FailureKind {
    let of_validation = |challenge: &Challenge| match facts::cause(challenge) {
        Some(Cause::Validation(problem)) => FailureKind::of_validation(&problem),
        _ => FailureKind::Validation,
    };
    let refused =
        failed_challenges(chain, order).filter(|c| c.status.state == Some(State::Invalid));
    // A fault that only the CA can mend counts only if there is no other fault.
    if let Some(kind) = refused.map(of_validation).min() {
        return kind;
    }
    let problem = facts::problem(order);
    if order.status.state == Some(State::Invalid) {
        return of_invalid(chain, order, problem.as_ref());
    }
    match problem {
        // The manifest is still good: the domain has to change, as after a refusal at validation.
        Some(problem) if problem.short_kind() == "caa" => FailureKind::Validation,
        Some(problem) if facts::is_refused_name(order, &problem) => FailureKind::Usage,
        Some(problem) => FailureKind::of_problem(&problem),
        None => FailureKind::Unexpected,
    }
}

/// Returns the kind of an invalid order without an invalid challenge: a name was not proven, unless the CA has failed, or
/// refuses to sign proven names.
fn of_invalid(chain: &Chain, order: &Order, problem: Option<&Problem>) -> FailureKind {
    let Some(problem) = problem else { return FailureKind::Validation };
    let uid = &order.metadata.uid;
    let own = chain.challenges.iter().filter(|c| c.metadata.is_controlled_by(uid));
    let mut own = own.map(|challenge| challenge.status.state).peekable();
    let is_proven = own.peek().is_some() && own.all(|state| state == Some(State::Valid));
    match problem.short_kind() {
        "badCSR" | "rejectedIdentifier" if is_proven => FailureKind::Usage,
        _ if FailureKind::of_problem(problem) == FailureKind::CaUnreachable => {
            FailureKind::CaUnreachable
        }
        _ => FailureKind::Validation,
    }
}

/// Returns the failure if no solver fits a name of the order, which waits for a change of its issuer.
fn no_solver(chain: &Chain, order: &Order) -> Option<Failed> {
    let issuer = chain.named_issuer();
    let step = match facts::waits_for(order)? {
        OrderWait::Solver => NextStep::Solvers(issuer),
        OrderWait::ChallengeType => NextStep::ChallengeType(issuer),
        OrderWait::Authority | OrderWait::OtherOrder | OrderWait::Turn => return None,
    };
    let what = format!("Order {}: {}", order.name(), order.status.reason);
    Some(Failed::new(FailureKind::Solver, what).helped_by(step))
}

/// Judges an issuer; `None` if the issuer is ready, or no controller has judged its current generation yet.
pub fn judge_issuer(key: &Key, issuer: &Issuer) -> Option<Verdict> {
    let ready = condition(&issuer.status.conditions, "Ready")?;
    if ready.status == ConditionStatus::True
        || ready.observed_generation != issuer.metadata.generation
    {
        return None;
    }
    let problem = facts::problem_of_issuer(issuer, &ready.message);
    let kind = match &problem {
        None if ready.reason == reason::INVALID_SOLVER => FailureKind::Solver,
        None => FailureKind::Account,
        // A 404 means a wrong URL, where there is no CA, and not a missing account.
        Some(problem) if problem.status == 404 => FailureKind::CaUnreachable,
        Some(problem) => match FailureKind::of_problem(problem) {
            // Every refusal of an account is about the account.
            FailureKind::Usage | FailureKind::Unexpected => FailureKind::Account,
            kind => kind,
        },
    };
    let next_step = if kind == FailureKind::Solver {
        then_again(NextStep::SolverSecret(key.clone()))
    } else {
        let acme = issuer.spec.acme.as_ref();
        let account_key = acme.map_or("", |acme| &acme.private_key_secret_ref.name);
        advice::for_issuer(problem.as_ref(), &ready.message, key, account_key)
    };
    let what = format!("{key} is not ready: {}", ready.message);
    let memory = Memory::read(Holder::Issuer, &issuer.metadata.annotations);
    if let Some(until) = memory.next_try {
        let until = Some(until);
        return Some(Verdict::Waiting(Some(Blocker {
            kind,
            of: key.kind,
            what,
            until,
            named_by_ca: true,
            problem: problem.map(Box::new),
            next_step: None,
        })));
    }
    let is_theirs = problem.is_none() && issuer::is_unreachable(&ready.message);
    if memory.unreachable_since.is_some() || is_theirs {
        let kind = FailureKind::CaUnreachable;
        let next_step = is_theirs.then(|| NextStep::ConnectFromCertManager(key.clone()));
        return Some(Verdict::Waiting(Some(Blocker {
            kind,
            of: key.kind,
            what,
            until: None,
            named_by_ca: false,
            problem: problem.map(Box::new),
            next_step,
        })));
    }
    Some(Verdict::Failed(Failed::new(kind, what).told_by(problem).helped_by(next_step)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Record;

    #[test]
    fn what_the_certificate_calls_an_end_is_one() {
        let of = |message: &str, generation: i64| {
            let issuing = json!({"type": "Issuing", "status": "True", "observedGeneration": 1, "message": message});
            let certificate = json!({
                "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
                "metadata": {"name": "web", "namespace": "web", "uid": "1", "generation": generation},
                "spec": {"secretName": "web-tls", "issuerRef": {"name": "acme"}},
                "status": {"conditions": [issuing]},
            });
            let chain = Chain {
                certificate: typed(Record::new(certificate).unwrap()).unwrap(),
                requests: Vec::new(),
                orders: Vec::new(),
                challenges: Vec::new(),
                issuer: Some(Issuer::default()),
                in_cluster: false,
            };
            verdict(&chain, &Obstacles::new(), Some(0))
        };
        for words in [
            "Failed to generate CSR: \" c.example.com\" is not a valid DNS name - will not retry",
            "User intervention required: no new key: none",
            "User intervention required: the private key in Secret \"web-tls\" does not fit the spec",
        ] {
            let Verdict::Failed(failed) = of(words, 1) else { panic!("{words}: it waits") };
            assert_eq!(failed.kind, FailureKind::Usage);
            assert!(failed.message.ends_with(words), "{}", failed.message);
            assert!(matches!(of(words, 2), Verdict::Waiting(_)), "{words}: another spec may do");
        }
        assert!(matches!(of("Looking again", 1), Verdict::Waiting(_)));
    }

    #[test]
    fn what_a_run_has_issued_is_done_though_its_renewal_has_begun() {
        let chain = |ready: &str, generation: i64| {
            let ready = json!({"type": "Ready", "status": ready, "observedGeneration": 1});
            let certificate = json!({
                "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
                "metadata": {"name": "web", "namespace": "web", "uid": "1", "generation": generation},
                "spec": {"secretName": "web-tls", "issuerRef": {"name": "acme"}},
                "status": {"revision": 1, "conditions": [ready, {"type": "Issuing", "status": "True"}]},
            });
            Chain {
                certificate: typed(Record::new(certificate).unwrap()).unwrap(),
                requests: Vec::new(),
                orders: Vec::new(),
                challenges: Vec::new(),
                issuer: None,
                in_cluster: false,
            }
        };
        let is_done = |chain: &Chain, since| {
            matches!(of_run(chain, &Obstacles::new(), since), Verdict::Issued)
        };
        assert!(is_done(&chain("True", 1), Some(0)));
        assert!(!is_done(&chain("True", 1), Some(1)), "it has not moved");
        assert!(!is_done(&chain("True", 1), None), "nothing had to be issued");
        assert!(!is_done(&chain("False", 1), Some(0)));
        assert!(!is_done(&chain("True", 2), Some(0)), "something else is asked for by now");
    }

    /// A Certificate whose order is invalid, as cert-manager leaves it.
    fn failed_at_cert_managers(reason: &str) -> Chain {
        let object = |kind: &str, uid: &str, owner: &str, rest: Value| {
            let group = if ["Order", "Challenge"].contains(&kind) {
                "acme.cert-manager.io"
            } else {
                "cert-manager.io"
            };
            let mut object = rest;
            object["apiVersion"] = format!("{group}/v1").into();
            object["kind"] = kind.into();
            object["metadata"] = json!({
                "name": uid, "namespace": "web", "uid": uid,
                "ownerReferences": [{"uid": owner, "name": owner, "kind": "", "apiVersion": "", "controller": true}],
            });
            Record::new(object).unwrap()
        };
        let issuer = json!({"name": "acme"});
        let told = "The certificate request has failed to complete and will be retried: Failed to wait for order resource \
                    \"order\" to become ready: order is in \"invalid\" state: ";
        let issuing = json!({"type": "Issuing", "status": "False", "message": told});
        let certificate = json!({
            "spec": {"secretName": "web-tls", "issuerRef": issuer, "dnsNames": ["www.example.com"]},
            "status": {"lastFailureTime": "2026-11-22T00:00:00Z", "conditions": [issuing]},
        });
        let order =
            json!({"spec": {"request": "", "issuerRef": issuer}, "status": {"state": "invalid"}});
        let challenge = json!({
            "spec": {
                "url": "", "authorizationURL": "", "dnsName": "www.example.com", "type": "HTTP-01", "token": "", "key": "",
                "solver": {"http01": {}}, "issuerRef": issuer,
            },
            "status": {"state": "invalid", "reason": reason},
        });
        let request = json!({"spec": {"request": "", "issuerRef": issuer}});
        Chain {
            certificate: typed(object("Certificate", "certificate", "", certificate)).unwrap(),
            requests: vec![
                typed(object("CertificateRequest", "request", "certificate", request)).unwrap(),
            ],
            orders: vec![typed(object("Order", "order", "request", order)).unwrap()],
            challenges: vec![typed(object("Challenge", "challenge", "order", challenge)).unwrap()],
            issuer: None,
            in_cluster: false,
        }
    }

    #[test]
    fn what_the_ca_has_told_cert_manager_is_found_with_the_challenge() {
        for (problem, is_excluded) in [
            ("unauthorized: 404", false),
            (
                "caa: While processing CAA for www.example.com: CAA record for example.com prevents issuance",
                true,
            ),
        ] {
            let reason = format!(
                "Error accepting authorization: acme: authorization error for www.example.com: 403 urn:ietf:params:acme:error:{problem}"
            );
            let chain = failed_at_cert_managers(&reason);
            let Verdict::Failed(failed) = verdict(&chain, &Obstacles::new(), Some(0)) else {
                panic!("it waits");
            };
            assert_eq!(failed.kind, FailureKind::Validation);
            let told = format!("order is in \"invalid\" state: {reason}");
            assert!(failed.message.ends_with(&told), "{}", failed.message);
            assert_eq!(failed.excluded.is_some(), is_excluded);
            assert_eq!(failed.next_steps.is_empty(), is_excluded, "the rest is asked of the CA");
        }
    }

    fn judge_unready_issuer(reason: &str, message: &str) -> Option<Verdict> {
        let ready =
            json!({"type": "Ready", "status": "False", "reason": reason, "message": message});
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "ca", "namespace": "default"},
            "spec": {}, "status": {"conditions": [ready]},
        });
        let issuer: Issuer = serde_json::from_value(issuer).unwrap();
        judge_issuer(&Key::new(Kind::Issuer, issuer.name()), &issuer)
    }

    #[test]
    fn a_secret_that_a_solver_lacks_is_a_matter_of_solvers() {
        let message = "failed to get secret \"tsig\": secrets \"tsig\" not found";
        let Some(Verdict::Failed(failed)) = judge_unready_issuer(reason::INVALID_SOLVER, message)
        else {
            panic!("it waits");
        };
        assert_eq!(failed.kind, FailureKind::Solver);
        let NextStep::ThenAgain(step) = &failed.next_steps[0] else { panic!("{failed:?}") };
        assert!(matches!(**step, NextStep::SolverSecret(_)), "{failed:?}");
    }

    #[test]
    fn a_ca_that_cert_manager_does_not_reach_is_waited_for() {
        let check = |message: &str, expected: Option<FailureKind>| {
            let held_up = match judge_unready_issuer("", message) {
                Some(Verdict::Waiting(Some(blocker))) => Some(blocker.kind),
                _ => None,
            };
            assert_eq!(held_up, expected, "{message}");
        };
        let refused = "Failed to register ACME account: Get \"https://ca.example/dir\": dial tcp 192.0.2.1:443: connect: \
                       connection refused";
        check(refused, Some(FailureKind::CaUnreachable));
        check("Failed to register ACME account: 400 urn:x:malformed: dial tcp", None);
        check("Failed to get ACME key: secrets \"eab\" not found", None);
    }

    #[test]
    fn an_issuer_of_a_kind_that_is_not_ours_is_not_looked_for_as_an_issuer() {
        let certificate = json!({
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {"secretName": "tls", "issuerRef": {"name": "ca", "kind": "AWSPCAIssuer"}},
        });
        let chain = Chain {
            certificate: serde_json::from_value(certificate).unwrap(),
            requests: Vec::new(),
            orders: Vec::new(),
            challenges: Vec::new(),
            issuer: None,
            in_cluster: true,
        };
        let expected = "Certificate shop/web: issuerRef.kind is AWSPCAIssuer, which this program does not serve";
        assert_eq!(no_issuer(&chain).message, expected);
        assert_eq!(chain.keys().len(), 1, "{:?}", chain.keys());
    }
}
