//! Certificate: issue when a policy is violated, keep the Secret good, renew when due.
//!
//! cert-manager spreads this over six controllers that communicate through the `Issuing` condition,
//! `status.nextPrivateKeySecretName`, `status.revision` and the CertificateRequest; here it is one machine, whose
//! actions come in the same order.
//!
//! A try is identified by its temporary Secret. A request that failed with the key of another Secret belongs to an
//! earlier try: moments are whole seconds, and clocks stand still or step back. A person who asks again in the second
//! of a failure waits for its end, for compatibility with cert-manager.

pub mod issuing;
pub mod options;
pub mod readiness;
pub mod trigger;
pub mod types;

use std::borrow::Cow;

use jiff::Timestamp;

use self::types::{Action, KeyOrigin, Observed, Outcome};
use super::facts::LeafFacts;
use super::policy::Violation;
use super::renewal::Life;
use super::{Note, Recorded, Wake, renewal_info};
use crate::model::certificate::ISSUING;
use crate::model::common::{condition, is_true, set_condition};
use crate::model::event::{reason, source};
use crate::model::memory::{Holder, Memory};
use crate::model::{Certificate, CertificateStatus, Condition, ConditionStatus, Severity};

/// Decides what to do next.
pub fn next_action(certificate: &Certificate, observed: &Observed, now: Timestamp) -> Action {
    if certificate.metadata.is_deleted() {
        return Action::Wait(Wake::OnChange);
    }
    if is_true(&certificate.status.conditions, ISSUING) {
        return trigger::assess(certificate, observed, now)
            .unwrap_or_else(|| issuing::next_action(certificate, observed, now));
    }
    if let Some(left) = observed.next_keys.first() {
        return Action::DeleteNextKey(left.secret.clone(), Vec::new());
    }
    if !certificate.status.next_private_key_secret_name.is_empty() {
        return Action::Conclude(Outcome::NextKeyGone);
    }
    trigger::next_action(certificate, observed, now)
}

/// Returns why a Certificate has to be issued now, regardless of recent failures; `None` if its Secret is as asked for.
pub fn due(certificate: &Certificate, observed: &Observed, now: Timestamp) -> Option<Violation> {
    trigger::due(certificate, observed, now)
}

/// Returns until when a pause after a failure lasts, if one does.
pub fn held_until(
    certificate: &Certificate,
    observed: &Observed,
    now: Timestamp,
) -> Option<Timestamp> {
    trigger::held_until(certificate, observed, now)
}

/// Returns when to ask the CA about the renewal of the certificate in the Secret, and the facts of that certificate.
pub fn question<'a>(
    certificate: &Certificate,
    observed: &'a Observed,
) -> Option<(&'a LeafFacts, Timestamp)> {
    trigger::question(certificate, observed)
}

/// Returns the life of the certificate in the Secret, if there is a usable one.
pub fn life<'a>(certificate: &Certificate, observed: &'a Observed) -> Option<Life<'a>> {
    trigger::life(certificate, observed)
}

/// Returns the other Certificate that the Secret belongs to, if it does.
pub fn rival(certificate: &Certificate, observed: &Observed) -> Option<String> {
    trigger::rival(certificate, observed)
}

/// Folds an outcome into status and notes.
pub fn record(
    certificate: &Certificate,
    outcome: Outcome,
    now: Timestamp,
) -> Recorded<CertificateStatus> {
    let mut status = certificate.status.clone();
    let mut notes = Vec::new();
    let mut memory = Memory::read(Holder::Certificate, &certificate.metadata.annotations);
    match outcome {
        Outcome::Assessed(assessment) => assessment.write(&mut status, now),
        Outcome::Deleted | Outcome::SecretRepaired => {}
        Outcome::Due { violation, window_error, is_hastened } => {
            if is_hastened {
                memory.renewal = Some(renewal_info::hastened(memory.renewal.take(), now));
            }
            if let Some(why) = window_error {
                let message =
                    format!("Renewing certificate without satisfying renewal windows due to {why}");
                notes.push(Note::warning(source::TRIGGER, reason::WINDOW_ERROR, message));
            }
            let message = violation.message.clone();
            notes.push(Note::normal(source::TRIGGER, reason::ISSUING, message));
            set_issuing(
                certificate,
                &mut status,
                ConditionStatus::True,
                violation.reason,
                violation.message,
                now,
            );
        }
        Outcome::Failed { reason, message } => {
            let message = format!(
                "The certificate request has failed to complete and will be retried: {message}"
            );
            notes.push(Note {
                severity: Severity::Warning,
                reason: Cow::Owned(reason.clone()),
                message: message.clone(),
                source: source::ISSUING,
            });
            set_issuing(certificate, &mut status, ConditionStatus::False, &reason, message, now);
            // The key identifies a try: a try that begins before this key is gone must not be taken for the failed one.
            status.next_private_key_secret_name.clear();
            status.last_failure_time = Some(now.into());
            status.failed_issuance_attempts =
                Some(status.failed_issuance_attempts.unwrap_or(0).saturating_add(1));
        }
        Outcome::Impossible { reason, message } => {
            notes.push(Note::warning(source::KEY_MANAGER, reason, message.clone()));
            keep_issuing(certificate, &mut status, message, now);
        }
        Outcome::Issued(revision) => {
            let message = "The certificate has been successfully issued";
            notes.push(Note::normal(source::ISSUING, reason::ISSUING, message));
            status.conditions.retain(|condition| condition.kind != ISSUING);
            status.revision = Some(revision);
            status.last_failure_time = None;
            status.failed_issuance_attempts = None;
            // The renewal information was about the previous certificate.
            status.acme = None;
        }
        Outcome::RenewalAsked(leaf, answer) => {
            memory.renewal = renewal_info::remember(memory.renewal.take(), &leaf, &answer, now);
            if let Some(known) = &memory.renewal {
                notes.extend(renewal_info::notes(certificate, &leaf, known, &answer));
                status.acme = Some(renewal_info::status(known, &answer, now));
            }
        }
        Outcome::RenewalNotAsked => {
            memory.renewal = None;
            status.acme = None;
        }
        Outcome::KeyImpossible(why) => {
            let message = format!("{}{why}", issuing::NO_KEY);
            let reason = reason::CANNOT_REGENERATE_KEY;
            notes.push(Note::warning(source::KEY_MANAGER, reason, message.clone()));
            keep_issuing(certificate, &mut status, message, now);
        }
        Outcome::KeyOutdated(fields) => {
            let fields = fields.join(" ");
            let message = format!("Regenerating private key due to change in fields: [{fields}]");
            notes.push(Note::normal(source::KEY_MANAGER, reason::DELETED, message));
        }
        Outcome::NextKeyFound(secret) => status.next_private_key_secret_name = secret,
        Outcome::NextKeyGone => status.next_private_key_secret_name.clear(),
        Outcome::NextKeyStored(secret, origin) => {
            notes.extend(key_notes(&certificate.spec.secret_name, &secret, origin));
            status.next_private_key_secret_name = secret;
        }
        Outcome::RequestCreated(name) => {
            let message = format!("Created new CertificateRequest resource \"{name}\"");
            notes.push(Note::normal(source::REQUEST_MANAGER, reason::REQUESTED, message));
        }
        Outcome::TemporaryStored => {
            let message = "Issued temporary certificate";
            notes.push(Note::normal(source::ISSUING, reason::ISSUING, message));
        }
        Outcome::RequestImpossible(why) => {
            let message = format!("{}{why} - will not retry", issuing::NO_REQUEST);
            let note =
                Note::warning(source::REQUEST_MANAGER, reason::REQUEST_FAILED, message.clone());
            notes.push(note);
            keep_issuing(certificate, &mut status, message, now);
        }
    }
    Recorded { status, memory, notes }
}

fn set_issuing(
    certificate: &Certificate,
    status: &mut CertificateStatus,
    value: ConditionStatus,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let new = Condition {
        kind: ISSUING.to_owned(),
        status: value,
        reason: reason.to_owned(),
        message,
        last_transition_time: None,
        observed_generation: certificate.metadata.generation,
    };
    set_condition(&mut status.conditions, new, now);
}

/// Changes the message of the condition and leaves the condition True.
fn keep_issuing(
    certificate: &Certificate,
    status: &mut CertificateStatus,
    message: String,
    now: Timestamp,
) {
    let known = condition(&status.conditions, ISSUING).map(|issuing| issuing.reason.clone());
    let reason = known.unwrap_or_default();
    set_issuing(certificate, status, ConditionStatus::True, &reason, message, now);
}

fn key_notes(secret: &str, next_key: &str, origin: KeyOrigin) -> Vec<Note> {
    let stored = || {
        let message = format!("Stored new private key in temporary Secret resource \"{next_key}\"");
        Note::normal(source::KEY_MANAGER, reason::GENERATED, message)
    };
    match origin {
        KeyOrigin::Generated => vec![stored()],
        KeyOrigin::Reused => {
            let message =
                format!("Reusing private key stored in existing Secret resource \"{secret}\"");
            vec![Note::normal(source::KEY_MANAGER, reason::REUSED, message)]
        }
        KeyOrigin::Replacement => {
            let message = format!(
                "Failed to decode private key stored in Secret \"{secret}\" - generating new key"
            );
            vec![Note::warning(source::KEY_MANAGER, reason::DECODE_FAILED, message), stored()]
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::CertificateRequest;
    use crate::model::certificate::Names;
    use crate::model::keystore::{KeystoreFormat, Keystores};
    use crate::model::order_ledger::Ledger;
    use crate::model::renewal_info::RenewalInfo;
    use crate::reconcile::certificate::options::{Backoff, CopiedAnnotations, Options};
    use crate::reconcile::certificate::types::{NextKey, Rival};
    use crate::reconcile::facts::{
        CsrFacts, KeyFacts, KeystoreFacts, LeafFacts, OutputFormat, PublicKey, RequestFacts,
        SecretFacts, annotation,
    };
    use crate::reconcile::renewal_info::{Answer, Interval, Suggestion};
    use crate::reconcile::testing::at;
    use crate::reconcile::{differences, renewal, secret_content};

    fn as_asked(keystores: &Keystores) -> impl Iterator<Item = (KeystoreFormat, KeystoreFacts)> {
        keystores.wanted().map(|format| (format, KeystoreFacts::AsAsked))
    }

    /// A Certificate and its neighbours, in which every deed succeeds at once.
    struct World {
        certificate: Certificate,
        observed: Observed,
        now: Timestamp,
        keys_made: u8,
    }

    /// A Certificate `web` for `www.example.com`, whose spec was changed like that.
    fn world(change: &Value) -> World {
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1,
                         "creationTimestamp": at(0).to_string(), "labels": {"team": "shop"},
                         "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "kept"}},
            "spec": {"secretName": "web-tls", "issuerRef": {"name": "acme"}, "dnsNames": ["www.example.com"]},
        });
        let mut world = World {
            certificate: serde_json::from_value(certificate).unwrap(),
            observed: Observed {
                secret: None,
                next_keys: Vec::new(),
                requests: Vec::new(),
                rivals: Vec::new(),
                windows: Ok(Vec::new()),
                ledger: Ledger::default(),
                suggestion: None,
                options: Options::default(),
            },
            now: at(0),
            keys_made: 0,
        };
        world.change_spec(change);
        world
    }

    impl World {
        fn change_spec(&mut self, change: &Value) {
            let mut spec = serde_json::to_value(&self.certificate.spec).unwrap();
            for (key, value) in change.as_object().unwrap() {
                spec[key] = value.clone();
            }
            self.certificate.spec = serde_json::from_value(spec).unwrap();
            self.certificate.metadata.generation =
                self.certificate.metadata.generation.map(|g| g + 1);
            self.observed.windows = renewal::windows(&self.certificate.spec, |_| None);
        }

        /// Takes steps until there is nothing to do, and lists them, each with the reasons of its events.
        fn run(&mut self) -> Vec<String> {
            let mut steps = Vec::new();
            loop {
                assert!(steps.len() < 30, "never done: {steps:?}");
                self.observed.suggestion = self.suggestion();
                let action = next_action(&self.certificate, &self.observed, self.now);
                if let Action::Wait(wake) = action {
                    steps.push(match wake {
                        Wake::At(when) => format!("wait {:#}", when.duration_since(self.now)),
                        Wake::Now | Wake::OnChange => "wait".to_owned(),
                    });
                    return steps;
                }
                let (step, outcome) = self.perform(action);
                let new = record(&self.certificate, outcome, self.now);
                new.memory.write(Holder::Certificate, &mut self.certificate.metadata.annotations);
                self.certificate.status = new.status;
                let events: String =
                    new.notes.iter().flat_map(|note| [" [", note.reason.as_ref(), "]"]).collect();
                steps.push(format!("{step}{events}"));
            }
        }

        fn perform(&mut self, action: Action) -> (String, Outcome) {
            match action {
                Action::Conclude(outcome) => (shown(&outcome), outcome),
                Action::CreateRequest(request, key) => {
                    let name = request.metadata.name.clone();
                    self.take_request(*request, &key);
                    (format!("create {name}"), Outcome::RequestCreated(name))
                }
                Action::DeleteNextKey(secret, fields) => {
                    self.observed.next_keys.retain(|held| held.secret != secret);
                    let outcome = if fields.is_empty() {
                        Outcome::Deleted
                    } else {
                        Outcome::KeyOutdated(fields)
                    };
                    (format!("delete key {secret}"), outcome)
                }
                Action::DeleteRequest(request) => {
                    let is_that = |facts: &RequestFacts| facts.request == *request;
                    assert!(self.observed.requests.iter().any(is_that), "another of its name");
                    let name = request.metadata.name;
                    self.observed.requests.retain(|facts| facts.request.metadata.name != name);
                    (format!("delete {name}"), Outcome::Deleted)
                }
                Action::RepairSecret(metadata) => {
                    let secret = self.observed.secret.as_mut().unwrap();
                    (secret.labels, secret.annotations) = (metadata.labels, metadata.annotations);
                    let owner = self.certificate.owner_reference();
                    let is_owned = self.observed.options.owns_secret;
                    secret.owners = is_owned.then_some(owner).into_iter().collect();
                    secret.formats = OutputFormat::of(&self.certificate.spec);
                    secret.keystores =
                        self.certificate.spec.keystores.iter().flat_map(as_asked).collect();
                    ("repair".to_owned(), Outcome::SecretRepaired)
                }
                Action::StoreNextKey(name, origin) => {
                    let secret = name.unwrap_or_else(|| "web-next".to_owned());
                    let key = if origin == KeyOrigin::Reused {
                        self.secret_key()
                    } else {
                        self.fresh_key()
                    };
                    self.observed.next_keys.push(NextKey { secret: secret.clone(), key: Ok(key) });
                    (format!("store key {secret}"), Outcome::NextKeyStored(secret, origin))
                }
                Action::StoreSecret(delivery) => {
                    let request = self.request(&delivery.request).clone();
                    self.observed.secret = Some(SecretFacts {
                        has_data: true,
                        key: Some(self.observed.next_keys[0].key.clone()),
                        leaf: request.leaf,
                        labels: delivery.metadata.labels,
                        annotations: delivery.metadata.annotations,
                        formats: OutputFormat::of(&self.certificate.spec),
                        keystores: self
                            .certificate
                            .spec
                            .keystores
                            .iter()
                            .flat_map(as_asked)
                            .collect(),
                        ..SecretFacts::default()
                    });
                    (format!("store {}", delivery.request), Outcome::Issued(delivery.revision))
                }
                Action::StoreTemporary(_) => {
                    let leaf = LeafFacts {
                        not_before: self.now,
                        not_after: self.now + SignedDuration::from_hours(24 * 90),
                        public_key: self.observed.next_keys[0].key.clone().unwrap().public_key,
                        renewal_id: None,
                        serial: "01".to_owned(),
                        names: Names {
                            dns_names: self.certificate.spec.dns_names.clone(),
                            ..Names::default()
                        },
                    };
                    let made = secret_content::metadata("web", &self.certificate.spec, None, &leaf);
                    self.observed.secret = Some(SecretFacts {
                        has_data: true,
                        key: Some(self.observed.next_keys[0].key.clone()),
                        leaf: Some(Ok(leaf)),
                        labels: made.labels,
                        annotations: made.annotations,
                        ..SecretFacts::default()
                    });
                    ("store temporary".to_owned(), Outcome::TemporaryStored)
                }
                Action::Wait(_) => unreachable!("run ends before"),
            }
        }

        fn suggestion(&self) -> Option<Suggestion> {
            let annotations = &self.certificate.metadata.annotations;
            let memory = Memory::read(Holder::Certificate, annotations).renewal;
            let leaf = self.observed.secret.as_ref()?.usable_leaf()?;
            renewal_info::suggestion(leaf, memory.as_ref())
        }

        /// The CA is asked and wants a window that begins and ends in so many hours; the events of that.
        fn asks(&mut self, start: i64, end: i64) -> Vec<String> {
            let (leaf, _) = question(&self.certificate, &self.observed).unwrap();
            let at = |hour| self.now + SignedDuration::from_hours(hour);
            let info = RenewalInfo { start: at(start), end: at(end), explanation: String::new() };
            let answer = Answer { said: Ok(info), pause: None, interval: Interval::default() };
            let outcome = Outcome::RenewalAsked(Box::new(leaf.clone()), answer);
            let new = record(&self.certificate, outcome, self.now);
            new.memory.write(Holder::Certificate, &mut self.certificate.metadata.annotations);
            self.certificate.status = new.status;
            new.notes.iter().map(|note| note.reason.to_string()).collect()
        }

        fn fresh_key(&mut self) -> KeyFacts {
            self.keys_made += 1;
            let wanted = self.certificate.spec.private_key.as_ref();
            let algorithm = differences::wanted_key(wanted).unwrap();
            KeyFacts { algorithm, public_key: PublicKey(vec![self.keys_made]) }
        }

        fn secret_key(&self) -> KeyFacts {
            self.observed.secret.as_ref().unwrap().usable_key().unwrap().clone()
        }

        fn take_request(&mut self, request: CertificateRequest, key: &str) {
            let held = self.observed.next_keys.iter().find(|held| held.secret == key).unwrap();
            let names =
                Names { dns_names: self.certificate.spec.dns_names.clone(), ..Names::default() };
            let public_key = held.key.as_ref().unwrap().public_key.clone();
            let csr = Ok(CsrFacts { public_key, names });
            self.observed.requests.push(RequestFacts { request, csr, leaf: None, has_order: true });
        }

        fn request(&mut self, name: &str) -> &mut RequestFacts {
            let mut all = self.observed.requests.iter_mut();
            all.find(|facts| facts.request.metadata.name == name).unwrap()
        }

        fn set_condition(&mut self, name: &str, condition: Value) {
            let mut condition: Condition = serde_json::from_value(condition).unwrap();
            let now = self.now;
            condition.last_transition_time = Some(now.into());
            let status = &mut self.request(name).request.status;
            if condition.status != ConditionStatus::True || condition.kind == "Denied" {
                status.failure_time = Some(now.into());
            }
            status.conditions.push(condition);
        }

        /// The CA issues: a certificate for that many days from now.
        fn issue(&mut self, name: &str, days: i64) {
            let now = self.now;
            let request = self.request(name);
            let csr = request.csr.clone().unwrap();
            request.leaf = Some(Ok(LeafFacts {
                not_before: now,
                not_after: now + SignedDuration::from_hours(24 * days),
                public_key: csr.public_key,
                renewal_id: Some(format!("ca.{name}")),
                serial: "01".to_owned(),
                names: csr.names,
            }));
            self.set_condition(
                name,
                json!({"type": "Ready", "status": "True", "reason": "Issued"}),
            );
        }

        fn fail(&mut self, name: &str) {
            let ready = json!({
                "type": "Ready", "status": "False", "reason": "Failed",
                "message": format!("Failed to wait for order resource \"{name}-1\" to become ready"),
            });
            self.set_condition(name, ready);
        }

        fn later(&mut self, seconds: i64) {
            self.now += SignedDuration::from_secs(seconds);
        }

        /// A person asks for a renewal, as `cmctl renew` does.
        fn renew(&mut self) {
            let asked = Condition {
                kind: ISSUING.into(),
                status: ConditionStatus::True,
                reason: "ManuallyTriggered".into(),
                message: "Certificate re-issuance manually triggered".into(),
                ..Condition::default()
            };
            set_condition(&mut self.certificate.status.conditions, asked, self.now);
        }

        fn check(&mut self, expected: &[&str]) {
            assert_eq!(self.run(), expected);
        }

        /// Runs until the first certificate is in the Secret.
        fn issued(mut self) -> Self {
            self.run();
            self.issue("web-1", 90);
            self.run();
            self
        }
    }

    fn shown(outcome: &Outcome) -> String {
        match outcome {
            Outcome::Assessed(assessment) => {
                let ready = &assessment.ready;
                format!("ready {:?} {}", ready.status, ready.reason)
            }
            Outcome::Due { violation, .. } => format!("due {}", violation.reason),
            Outcome::Failed { reason, message } => format!("failed {reason}: {message}"),
            Outcome::Impossible { message, .. } => format!("impossible {message}"),
            Outcome::NextKeyGone => "forget key".to_owned(),
            Outcome::NextKeyFound(secret) => format!("find key {secret}"),
            Outcome::Deleted
            | Outcome::Issued(_)
            | Outcome::TemporaryStored
            | Outcome::KeyImpossible(_)
            | Outcome::KeyOutdated(_)
            | Outcome::NextKeyStored(..)
            | Outcome::RenewalAsked(..)
            | Outcome::RenewalNotAsked
            | Outcome::RequestCreated(_)
            | Outcome::RequestImpossible(_)
            | Outcome::SecretRepaired => format!("{outcome:?}"),
        }
    }

    #[test]
    fn what_the_ca_wants_is_done_once_and_not_again_at_once_while_it_goes_on_wanting() {
        let mut web = world(&json!({})).issued();
        web.later(2 * 3600);
        assert!(web.asks(100, 101).is_empty());
        let steps = web.run();
        assert!(steps[1].starts_with("wait 100h"), "{steps:?}");
        assert!(web.certificate.status.acme.is_some());
        // It has changed its mind.
        assert!(web.asks(-2, -1).is_empty());
        let steps = web.run();
        assert_eq!(steps[..2], ["ready True Ready", "due Renewing [Issuing]"], "{steps:?}");
        web.issue("web-2", 90);
        let steps = web.run();
        assert_eq!(steps.last().unwrap(), "wait 1440h");
        assert_eq!(web.certificate.status.acme, None);
        web.later(3600);
        assert_eq!(web.asks(-2, -1), ["RenewalWantedAgain"]);
        web.check(&["ready True Ready", "wait 23h"]);
        web.later(23 * 3600);
        assert_eq!(web.run()[0], "due Renewing [Issuing]");
        web.issue("web-3", 90);
        web.run();
        web.later(3600);
        assert_eq!(web.asks(-2, -1), ["RenewalWantedAgain"]);
        web.check(&["ready True Ready", "wait 47h"]);
        // A person may always.
        web.renew();
        let steps = web.run();
        assert!(steps.contains(&"create web-4 [Requested]".to_owned()), "{steps:?}");
        assert!(question(&web.certificate, &web.observed).is_none());
        web.issue("web-4", 90);
        web.run();
        assert!(web.asks(500, 501).is_empty());
        assert_eq!(web.asks(-2, -1), ["RenewalWantedAgain"], "it says both in turn");
        web.later(8 * 86_400);
        assert!(web.asks(500, 501).is_empty());
        assert!(web.asks(-2, -1).is_empty());
        assert!(web.run().contains(&"due Renewing [Issuing]".to_owned()));
    }

    #[test]
    fn nobody_asks_about_what_is_not_renewed_or_not_as_asked_for() {
        let mut web = world(&json!({})).issued();
        assert!(question(&web.certificate, &web.observed).is_some());
        web.change_spec(&json!({"dnsNames": ["b.example.com"]}));
        assert!(question(&web.certificate, &web.observed).is_none());
        let disabled = world(&json!({"renewal": {"policy": "Disabled"}})).issued();
        assert!(question(&disabled.certificate, &disabled.observed).is_none());
        let world = world(&json!({}));
        assert!(question(&world.certificate, &world.observed).is_none());
    }

    #[test]
    fn a_certificate_is_issued_in_the_recorded_order() {
        let mut web = world(&json!({}));
        web.check(&[
            "ready False DoesNotExist",
            "due DoesNotExist [Issuing]",
            "store key web-next [Generated]",
            "create web-1 [Requested]",
            "wait",
        ]);
        assert_eq!(web.certificate.status.next_private_key_secret_name, "web-next");
        web.later(10);
        web.issue("web-1", 90);
        web.check(&[
            "store web-1 [Issuing]",
            "delete key web-next",
            "forget key",
            "ready True Ready",
            "wait 1440h",
        ]);
        let status = &web.certificate.status;
        assert_eq!((status.revision, status.conditions.len()), (Some(1), 1));
        assert_eq!(status.renewal_time, Some((web.now + SignedDuration::from_hours(1440)).into()));
    }

    #[test]
    fn a_request_carries_what_the_certificate_carries() {
        let mut web = world(&json!({"duration": "24h", "usages": ["server auth"]}));
        web.run();
        let request = serde_json::to_value(&web.request("web-1").request).unwrap();
        assert_eq!(
            request["metadata"],
            json!({
                "name": "web-1", "namespace": "shop", "labels": {"team": "shop"},
                "annotations": {
                    "note": "kept",
                    "cert-manager.io/certificate-name": "web",
                    "cert-manager.io/certificate-revision": "1",
                    "cert-manager.io/private-key-secret-name": "web-next",
                },
                "ownerReferences": [{
                    "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "name": "web", "uid": "u",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            })
        );
        assert_eq!(request["spec"]["duration"], "24h0m0s");
        assert_eq!(request["spec"]["usages"], json!(["server auth"]));
    }

    #[test]
    fn a_temporary_certificate_holds_the_place_until_the_real_one_is_there() {
        let mut web = world(&json!({}));
        let annotations = &mut web.certificate.metadata.annotations;
        annotations.insert(annotation::TEMPORARY.to_owned(), "true".to_owned());
        web.run();
        assert!(web.observed.secret.is_none(), "nobody works on the request yet");
        let pending = json!({"type": "Ready", "status": "False", "reason": "Pending"});
        web.set_condition("web-1", pending);
        web.check(&["store temporary [Issuing]", "ready True Ready", "wait"]);
        let secret = web.observed.secret.clone().unwrap();
        assert!(secret.is_temporary() && !secret.annotations.contains_key(annotation::ISSUER_NAME));
        web.request("web-1").request.status.conditions.clear();
        web.fail("web-1");
        let steps = web.run();
        assert_eq!(steps.last().unwrap(), "wait 1h", "{steps:?}");
        assert_eq!(web.observed.secret.as_ref(), Some(&secret), "it is called no issuer's");
        web.later(3600);
        web.run();
        web.issue("web-1", 90);
        let steps = web.run();
        assert!(steps.contains(&"store web-1 [Issuing]".to_owned()), "{steps:?}");
        assert!(!web.observed.secret.unwrap().is_temporary());
    }

    #[test]
    fn a_renewal_replaces_the_old_request_as_soon_as_the_new_one_is_there() {
        let mut web = world(&json!({})).issued();
        web.later(60 * 86_400);
        web.check(&[
            "due Renewing [Issuing]",
            "store key web-next [Generated]",
            "create web-2 [Requested]",
            "delete web-1",
            "wait",
        ]);
        web.issue("web-2", 90);
        web.check(&[
            "store web-2 [Issuing]",
            "delete key web-next",
            "forget key",
            "ready True Ready",
            "wait 1440h",
        ]);
        assert_eq!(web.certificate.status.revision, Some(2));
    }

    #[test]
    fn a_longer_history_keeps_that_many_requests() {
        let mut web = world(&json!({"revisionHistoryLimit": 2})).issued();
        for next in ["web-2", "web-3"] {
            web.later(1);
            web.renew();
            web.run();
            web.issue(next, 90);
            web.run();
        }
        let kept: Vec<&str> = web
            .observed
            .requests
            .iter()
            .map(|facts| facts.request.metadata.name.as_str())
            .collect();
        assert_eq!(kept, ["web-2", "web-3"]);
    }

    #[test]
    fn a_failure_is_tried_again_after_1_hour_doubling_to_32() {
        let mut web = world(&json!({}));
        web.run();
        for (attempts, hours) in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 32), (7, 32)] {
            web.later(10);
            web.fail("web-1");
            let pause = format!("wait {hours}h");
            let failed = "failed Failed: Failed to wait for order resource \"web-1-1\" to become ready [Failed]";
            web.check(&[failed, "delete key web-next", &pause]);
            assert_eq!(web.certificate.status.failed_issuance_attempts, Some(attempts));
            web.later(hours * 3600);
            web.check(&[
                "due DoesNotExist [Issuing]",
                "store key web-next [Generated]",
                "delete web-1",
                "create web-1 [Requested]",
                "wait",
            ]);
        }
        web.issue("web-1", 90);
        web.run();
        let status = &web.certificate.status;
        assert_eq!((status.failed_issuance_attempts, status.last_failure_time), (None, None));
    }

    /// A Certificate whose first issuance just failed.
    fn failed() -> World {
        let mut web = world(&json!({}));
        web.run();
        web.later(10);
        web.fail("web-1");
        web.run();
        web.later(1);
        web
    }

    #[test]
    fn a_changed_spec_or_a_deleted_request_or_order_ends_the_back_off() {
        let again = [
            "due DoesNotExist [Issuing]",
            "store key web-next [Generated]",
            "delete web-1",
            "create web-1 [Requested]",
            "wait",
        ];
        let mut changed = failed();
        changed.change_spec(&json!({"dnsNames": ["other.example.com"]}));
        let ready = ["ready False DoesNotExist"];
        changed.check(&[&ready[..], &again].concat());

        let mut order_deleted = failed();
        order_deleted.request("web-1").has_order = false;
        order_deleted.check(&again);

        let mut request_deleted = failed();
        request_deleted.observed.requests.clear();
        request_deleted.check(&[
            "due DoesNotExist [Issuing]",
            "store key web-next [Generated]",
            "create web-1 [Requested]",
            "wait",
        ]);

        let mut asked = failed();
        asked.renew();
        asked.check(&again[1..]);
    }

    #[test]
    fn a_denied_request_fails_with_the_words_of_whoever_denied_it() {
        let mut web = world(&json!({}));
        web.run();
        let denied = json!({"type": "Denied", "status": "True", "reason": "person", "message": "Denied by hand"});
        web.set_condition("web-1", denied);
        web.check(&["failed person: Denied by hand [person]", "delete key web-next", "wait 1h"]);
        let issuing = condition(&web.certificate.status.conditions, ISSUING).unwrap();
        assert_eq!(
            issuing.message,
            "The certificate request has failed to complete and will be retried: Denied by hand"
        );
    }

    #[test]
    fn a_spec_changed_while_pending_replaces_the_request_and_keeps_the_key() {
        let mut web = world(&json!({}));
        web.run();
        web.change_spec(&json!({"dnsNames": ["b.example.com", "c.example.com"]}));
        web.check(&[
            "ready False DoesNotExist",
            "delete web-1",
            "create web-1 [Requested]",
            "wait",
        ]);
        assert_eq!(web.keys_made, 1);
        web.change_spec(&json!({"privateKey": {"algorithm": "ECDSA"}}));
        web.check(&[
            "ready False DoesNotExist",
            "delete key web-next [Deleted]",
            "store key web-next [Generated]",
            "delete web-1",
            "create web-1 [Requested]",
            "wait",
        ]);
    }

    #[test]
    fn a_certificate_that_is_of_no_use_fails_and_leaves_the_secret() {
        let mut web = world(&json!({})).issued();
        web.later(1);
        web.renew();
        web.run();
        web.issue("web-2", -1);
        let before = web.observed.secret.clone();
        let steps = web.run();
        assert!(
            steps[0].starts_with("failed InvalidCertificate: the issued certificate expired on"),
            "{steps:?}"
        );
        assert_eq!(web.observed.secret, before);
        web.later(3600);
        web.check(&["wait 1438h 59m 59s"]);
        web.renew();
        web.check(&[
            "store key web-next [Generated]",
            "delete web-2",
            "create web-2 [Requested]",
            "wait",
        ]);
    }

    #[test]
    fn the_key_stays_when_the_policy_says_never() {
        let never = json!({"privateKey": {"rotationPolicy": "Never"}});
        let mut web = world(&never).issued();
        web.later(1);
        web.renew();
        web.check(&[
            "store key web-next [Reused]",
            "create web-2 [Requested]",
            "delete web-1",
            "wait",
        ]);
        assert_eq!(web.keys_made, 1);

        let mut gone = world(&never).issued();
        gone.observed.secret = None;
        let steps = gone.run();
        assert!(steps.contains(&"store key web-next [Generated]".to_owned()), "{steps:?}");

        let mut broken = world(&never).issued();
        broken.observed.secret.as_mut().unwrap().key = Some(Err("no PEM".into()));
        let steps = broken.run();
        assert!(
            steps.contains(&"store key web-next [DecodeFailed] [Generated]".to_owned()),
            "{steps:?}"
        );

        let mut changed = world(&never).issued();
        changed
            .change_spec(&json!({"privateKey": {"rotationPolicy": "Never", "algorithm": "ECDSA"}}));
        changed.check(&[
            "ready False SecretMismatch",
            "due SecretMismatch [Issuing]",
            "impossible User intervention required: the private key in Secret \"web-tls\" does not fit the spec in \
             [spec.privateKey.algorithm], and spec.privateKey.rotationPolicy Never forbids a new one [CannotRegenerateKey]",
            "wait",
        ]);
    }

    #[test]
    fn a_person_may_ask_again_within_the_second_of_the_failure() {
        let mut web = world(&json!({"privateKey": {"rotationPolicy": "Never"}})).issued();
        web.renew();
        web.run();
        web.fail("web-2");
        web.run();
        let annotations = &mut web.request("web-2").request.metadata.annotations;
        let stored = annotation::PRIVATE_KEY_SECRET_NAME.to_owned();
        annotations.insert(stored, "web-before".to_owned());
        web.renew();
        web.check(&[
            "store key web-next [Reused]",
            "delete web-2",
            "create web-2 [Requested]",
            "wait",
        ]);
    }

    #[test]
    fn of_two_certificates_with_one_secret_the_named_or_the_older_one_issues() {
        let rival =
            |name: &str, second| Rival { name: name.into(), created: Some(at(second).into()) };
        for (rivals, issues) in [
            (vec![rival("older", -1)], false),
            (vec![rival("younger", 1)], true),
            (vec![rival("twin", 0)], false),
            (vec![rival("xeno", 0)], true),
        ] {
            let mut web = world(&json!({}));
            web.observed.rivals = rivals.clone();
            let steps = web.run();
            assert_eq!(
                steps.contains(&"due DoesNotExist [Issuing]".to_owned()),
                issues,
                "{rivals:?}"
            );
            assert_eq!(steps.contains(&"wait 3m".to_owned()), !issues, "{rivals:?}");
        }
        let mut named = world(&json!({})).issued();
        named.observed.rivals = vec![rival("older", -1)];
        named.later(60 * 86_400);
        assert_eq!(named.run()[0], "due Renewing [Issuing]");
        let mut other = world(&json!({}));
        other.observed.rivals = vec![rival("younger", 1)];
        let theirs = [(annotation::CERTIFICATE_NAME.to_owned(), "younger".to_owned())];
        other.observed.secret =
            Some(SecretFacts { annotations: theirs.into(), ..SecretFacts::default() });
        other.check(&["ready False MissingData", "wait 3m"]);
    }

    #[test]
    fn changed_output_formats_are_put_into_the_secret_without_a_new_certificate() {
        let formats = |formats: Value| json!({"additionalOutputFormats": formats});
        let mut web = world(&json!({})).issued();
        web.change_spec(&formats(json!([{"type": "DER"}, {"type": "CombinedPEM"}])));
        web.check(&["ready True Ready", "repair", "wait 1440h"]);
        web.change_spec(&formats(json!([{"type": "DER"}])));
        web.check(&["ready True Ready", "repair", "wait 1440h"]);
        web.observed.secret.as_mut().unwrap().foreign_data.insert("key.der".into());
        web.change_spec(&formats(json!([])));
        web.check(&["ready True Ready", "wait 1440h"]);
    }

    #[test]
    fn changed_keystores_are_put_into_the_secret_without_a_new_certificate() {
        let mut web = world(&json!({})).issued();
        let asked = json!({"create": true, "password": "changeit"});
        for keystores in [
            json!({"jks": asked}),
            json!({"jks": asked, "pkcs12": asked}),
            json!({"jks": {"create": false}, "pkcs12": asked}),
            json!(null),
        ] {
            web.change_spec(&json!({"keystores": keystores}));
            web.check(&["ready True Ready", "repair", "wait 1440h"]);
        }
        web.change_spec(&json!({"keystores": {"jks": asked}}));
        web.run();
        let state = |web: &mut World, facts| {
            let secret = web.observed.secret.as_mut().unwrap();
            secret.keystores.insert(KeystoreFormat::Jks, facts);
        };
        state(&mut web, KeystoreFacts::Outdated);
        web.check(&["repair", "wait 1440h"]);
        state(&mut web, KeystoreFacts::Unknown);
        web.check(&["wait 1440h"]);
        // Somebody else has put it there, and keeps it.
        web.change_spec(&json!({"keystores": null}));
        state(&mut web, KeystoreFacts::Unasked);
        let foreign = &mut web.observed.secret.as_mut().unwrap().foreign_data;
        foreign.insert("keystore.jks".to_owned());
        web.check(&["ready True Ready", "wait 1440h"]);
    }

    #[test]
    fn a_secret_is_owned_as_long_as_whoever_drives_says_so() {
        let mut web = world(&json!({})).issued();
        web.observed.options.owns_secret = true;
        web.check(&["repair", "wait 1440h"]);
        web.observed.options.owns_secret = false;
        let uid = web.certificate.metadata.uid.clone();
        let secret = web.observed.secret.as_mut().unwrap();
        secret.foreign_owners.insert(uid.clone());
        web.check(&["wait 1440h"]);
        web.observed.secret.as_mut().unwrap().foreign_owners.remove(&uid);
        web.check(&["repair", "wait 1440h"]);
    }

    #[test]
    fn whoever_drives_says_which_annotations_a_request_takes_over() {
        let mut web = world(&json!({}));
        web.observed.options.annotations = CopiedAnnotations(vec!["kubectl.".to_owned()]);
        web.run();
        let taken = &web.request("web-1").request.metadata.annotations;
        let foreign = taken.keys().filter(|key| !key.starts_with("cert-manager.io/"));
        let foreign: Vec<_> = foreign.collect();
        assert_eq!(foreign, ["kubectl.kubernetes.io/last-applied-configuration"]);
    }

    #[test]
    fn whoever_drives_says_how_long_a_failure_is_not_tried_again() {
        let (shortest, longest) = (SignedDuration::from_mins(10), SignedDuration::from_mins(15));
        let mut web = failed();
        web.observed.options.backoff = Backoff { shortest, longest };
        assert_eq!(web.run().last().unwrap(), "wait 9m 59s");
        web.later(600);
        web.run();
        web.fail("web-1");
        assert_eq!(web.run().last().unwrap(), "wait 15m");
    }

    #[test]
    fn a_changed_template_repairs_the_secret_without_a_new_certificate() {
        let template = |labels: Value| json!({"secretTemplate": {"labels": labels}});
        let mut web = world(&template(json!({"a": "1"}))).issued();
        web.observed.secret.as_mut().unwrap().labels.insert("theirs".into(), "kept".into());
        web.observed.secret.as_mut().unwrap().foreign.insert("theirs".into());
        web.change_spec(&template(json!({"b": "2"})));
        web.check(&["ready True Ready", "repair", "wait 1440h"]);
        assert!(!web.observed.secret.unwrap().labels.contains_key("a"));
    }

    #[test]
    fn an_interrupted_issuance_goes_on_with_what_is_stored() {
        let mut web = world(&json!({}));
        web.run();
        web.certificate.status.next_private_key_secret_name.clear();
        web.check(&["find key web-next", "wait"]);
        web.observed.next_keys.clear();
        web.check(&[
            "store key web-next [Generated]",
            "delete web-1",
            "create web-1 [Requested]",
            "wait",
        ]);
    }

    #[test]
    fn a_spec_of_which_no_request_can_be_made_is_said_once() {
        let mut web = world(&json!({}));
        web.run();
        web.observed.requests.clear();
        let why = Outcome::RequestImpossible("\"x\" is not an IP address".into());
        let new = record(&web.certificate, why, web.now);
        assert_eq!(
            new.notes[0].message,
            "Failed to generate CSR: \"x\" is not an IP address - will not retry"
        );
        web.certificate.status = new.status;
        web.check(&["wait"]);
        assert_eq!(issuing::end(&web.certificate), Some(&*new.notes[0].message));
        web.change_spec(&json!({"dnsNames": ["a.example.com"]}));
        assert_eq!(issuing::end(&web.certificate), None, "another spec may do");
        web.check(&["ready False DoesNotExist", "create web-1 [Requested]", "wait"]);

        web.observed.next_keys.clear();
        let why = Outcome::KeyImpossible("cannot make RSA 1000 key".into());
        web.certificate.status = record(&web.certificate, why, web.now).status;
        web.check(&["wait"]);
        let said = issuing::end(&web.certificate).unwrap();
        assert!(said.ends_with("cannot make RSA 1000 key"), "{said}");
    }

    #[test]
    fn a_window_that_cannot_be_kept_is_told_and_the_renewal_comes_all_the_same() {
        let windows = json!({"renewal": {"windows": [{"cron": "often", "windowDuration": "1h"}]}});
        let mut web = world(&json!({})).issued();
        web.change_spec(&windows);
        web.check(&["ready False WindowError", "wait 1440h"]);
        web.later(60 * 86_400);
        assert_eq!(web.run()[0], "due Renewing [WindowError] [Issuing]");
        let mut disabled = world(&json!({"renewal": {"policy": "Disabled"}})).issued();
        disabled.check(&["wait 2160h 1s"]);
        disabled.later(91 * 86_400);
        disabled.check(&["ready False Expired", "wait"]);
    }

    #[test]
    fn a_failure_of_this_try_is_its_own_though_the_clock_was_set_back() {
        let mut web = world(&json!({})).issued();
        web.later(60);
        web.renew();
        web.run();
        web.later(-5);
        web.fail("web-2");
        let steps = web.run();
        assert!(steps.iter().any(|step| step.starts_with("failed Failed: ")), "{steps:?}");
        assert!(!steps.iter().any(|step| step.contains("web-2 [Requested]")), "{steps:?}");
    }

    #[test]
    fn another_try_takes_another_key_than_the_one_that_failed() {
        let mut web = world(&json!({})).issued();
        web.later(60);
        web.renew();
        web.run();
        web.fail("web-2");
        // Asked for again, while the Secret is still there.
        web.certificate.status.next_private_key_secret_name.clear();
        let steps = web.run();
        // With the key of the one that failed it would end with its failure again.
        let expected = ["delete key web-next", "store key web-next [Generated]", "delete web-2"];
        assert_eq!(steps[..3], expected, "{steps:?}");
        assert_eq!(steps[3], "create web-2 [Requested]", "{steps:?}");
    }
}
