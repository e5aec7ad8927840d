//! Stages of an issuance at which a controller stops without a message, and changes of an API server or others to objects
//! of an issuance: ACC-02, ACC-10, ORD-08, ORD-11, ORD-14, CFG-08, HYG-03.

use jiff::SignedDuration;

use super::control_plane::{concerns, messages_of_others};
use super::manifest::present;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::control::WarningCase;
use crate::diagnosis::case::issuer::{SecretState, SecretUse};
use crate::diagnosis::case::{Case, CertificateCase, DriverCase};
use crate::diagnosis::catalogue::CauseSeverity;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{FaultRule, Finding, Grade, stored};
use crate::diagnosis::words::controller::{self, ControllerLack};
use crate::diagnosis::words::facts;
use crate::model::common::{condition, is_true};
use crate::model::event::reason;
use crate::model::{State, Time};

pub(super) const RULES: &[FaultRule] = &[
    key_secret_is_a_leftover,
    controller_has_no_client,
    challenge_is_gone,
    secret_is_overwritten,
    key_is_not_made,
    key_may_not_be_replaced,
    secret_may_not_be_changed,
    field_is_not_known,
    requests_pile_up,
];

/// Maximum time of a controller for a step that takes a second.
const STEP_MAX: SignedDuration = SignedDuration::from_mins(1);
/// Maximum time of a controller to make its clients after a start.
const CLIENT_START_MAX: SignedDuration = SignedDuration::from_mins(5);
/// Number of finished requests of one Certificate that may be kept as a history.
const MAX_KEPT_REQUESTS: usize = 20;
/// Minimum time between two planned issuances.
const MIN_ISSUANCE_INTERVAL: SignedDuration = SignedDuration::from_hours(24);

fn about(
    of: &CertificateCase,
    cause: CauseId,
    grade: Grade,
    asked: &str,
    came: &str,
    case: &Case,
) -> Finding {
    let name = of.certificate.name();
    let shown = stored(format!("Certificate {name}: {asked}"), case.at, came);
    Finding::new(cause, grade, format!("Certificate {name}"), shown)
        .with("NAME", &name.name)
        .with("NAMESPACE", &name.namespace)
}

/// ACC-02: a Secret of the account key's name exists without a key; a controller does not make a key in its place.
fn key_secret_is_a_leftover(case: &Case, found: &mut Vec<Finding>) {
    for (of, issuer) in present(case) {
        let Some(acme) = &issuer.spec.acme else { continue };
        let Some(secret) = of.secrets.iter().find(|one| one.purpose == SecretUse::AccountKey)
        else {
            continue;
        };
        let ready = condition(&issuer.status.conditions, "Ready");
        let says = ready.filter(|ready| controller::says_secret_is_there(&ready.message));
        let is_empty = matches!(&secret.state, SecretState::NoEntry(entries) if entries.is_empty());
        let shown = match says {
            Some(ready) => stored(format!("{}: condition Ready", of.key), case.at, &ready.message),
            None if is_empty && !acme.disable_account_key_generation => {
                stored(format!("Secret {}", secret.name), case.at, "it exists, but has no entries")
            }
            None => continue,
        };
        found.push(
            Finding::new(CauseId::Acc02, Grade::Certain, of.key.to_string(), shown)
                .with("ISSUER", of.key.to_string())
                .with("SECRET", &secret.name.name)
                .with("NAMESPACE", &secret.name.namespace),
        );
    }
}

/// ACC-10: the controller says that it has no client, or an Order has waited for a client for long.
fn controller_has_no_client(case: &Case, found: &mut Vec<Finding>) {
    for (issuer, shown) in messages_of_others(case) {
        let Some(issuer) = issuer
            .filter(|_| controller::controller_lack(&shown.came) == Some(ControllerLack::Client))
        else {
            continue;
        };
        let subject = issuer.to_string();
        found.push(
            Finding::new(CauseId::Acc10, Grade::Certain, subject.clone(), shown)
                .with("ISSUER", subject),
        );
    }
    if case.driver != DriverCase::CertManager {
        return;
    }
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let Some(order) = of.order() else { continue };
        let Some(key) = issuer_key(&of.certificate) else { continue };
        let issuer = case.issuer(&key).and_then(|of| of.issuer.as_ref());
        let is_ready = issuer.is_some_and(|it| is_true(&it.status.conditions, "Ready"));
        let made = order.metadata.creation_timestamp.map(Time::timestamp);
        let is_old = made.is_some_and(|at| case.at.duration_since(at) > CLIENT_START_MAX);
        let status = &order.status;
        let is_untouched = status.url.is_empty() && status.state.is_none();
        if !(is_ready && is_old && is_untouched && status.reason.is_empty()) {
            continue;
        }
        let asked = format!("Order {}: status", order.name());
        let shown =
            stored(asked, case.at, "empty, for more than 5 minutes, and the issuer is ready");
        let ready = issuer.and_then(|it| condition(&it.status.conditions, "Ready"));
        let ready = ready.and_then(|ready| ready.last_transition_time);
        let ready = ready.map(|at| {
            stored(format!("{key}: condition Ready"), case.at, format!("True since {at}"))
        });
        found.push(
            Finding::new(CauseId::Acc10, Grade::Likely, key.to_string(), shown)
                .meaning(CauseSeverity::Error)
                .shown_by(ready)
                .with("ISSUER", key.to_string()),
        );
    }
}

/// ORD-08: an order has failed, and no object that is left says at which name.
fn challenge_is_gone(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let Some(order) = of.order().filter(|it| it.status.state == Some(State::Invalid)) else {
            continue;
        };
        let is_told = facts::problem(order).is_some()
            || of.current_challenges().next().is_some()
            // An authorization without a status is one that the CA no longer shows.
            || of.held.iter().any(|held| held.problem.is_some() && !held.status.is_empty());
        if is_told {
            continue;
        }
        let asked = format!("Order {}: status", order.name());
        let shown = stored(asked, case.at, format!("invalid: {}", order.status.reason));
        let name = of.certificate.name();
        found.push(
            Finding::new(CauseId::Ord08, Grade::Certain, format!("Certificate {name}"), shown)
                .with("NAME", &name.name)
                .with("NAMESPACE", &name.namespace),
        );
    }
}

/// ORD-11: another program has written the Secret, or the Secret is deleted each time.
fn secret_is_overwritten(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.due.is_some()) {
        let name = of.certificate.name();
        let secret = &of.certificate.spec.secret_name;
        let due = of.due.as_ref().map(|due| due.reason.as_str()).unwrap_or_default();
        let written = case.control.secrets.iter().find(|one| one.certificate == name);
        let revision = of.certificate.status.revision.unwrap_or(0);
        for (manager, at) in written.into_iter().flat_map(|one| &one.writers) {
            // A program that made the Secret before anything was issued has overwritten nothing.
            if revision == 0 {
                continue;
            }
            let asked = format!("Secret {}/{secret}: managedFields of data", name.namespace);
            let shown = stored(asked, at.unwrap_or(case.at), format!("written by {manager}"));
            let marks = written.map(|one| one.marks.join(", ")).filter(|marks| !marks.is_empty());
            let marks =
                marks.map(|marks| stored(format!("Secret {secret}: marks"), case.at, marks));
            found.push(
                about(of, CauseId::Ord11, Grade::Likely, "why it is due", due, case)
                    .shown_by([shown])
                    .shown_by(marks)
                    .with("SECRET", secret)
                    .with("DETAIL", format!("Secret {secret} was written by {manager}")),
            );
        }
        let since = of.certificate.metadata.creation_timestamp.map(Time::timestamp);
        let each = since.map(|since| case.at.duration_since(since).as_secs() / revision.max(1));
        let is_often = each.is_some_and(|seconds| seconds < MIN_ISSUANCE_INTERVAL.as_secs());
        if due == "DoesNotExist" && revision > 2 && is_often {
            let came = format!("{revision}, and its Secret is gone again");
            found.push(
                about(of, CauseId::Ord11, Grade::Likely, "status.revision", &came, case)
                    .with("SECRET", secret)
                    .with("DETAIL", format!("Secret {secret} was deleted after it was issued")),
            );
        }
    }
}

/// ORD-14: no key can be made as it is asked for, or the key that was made cannot be read.
fn key_is_not_made(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let key = of.certificate.spec.private_key.clone().unwrap_or_default();
        let size = key.size.unwrap_or(0);
        let is_size = match key.algorithm.as_str() {
            "" | "RSA" => size == 0 || (2048..=8192).contains(&size),
            "ECDSA" => [0, 256, 384, 521].contains(&size),
            _ => true,
        };
        if !is_size {
            let algorithm = if key.algorithm.is_empty() { "RSA" } else { &key.algorithm };
            let came = format!("{algorithm} of {size} bits, a size that is not supported");
            found.push(
                about(of, CauseId::Ord14, Grade::Certain, "spec.privateKey", &came, case)
                    .with("DETAIL", came.clone()),
            );
            continue;
        }
        let status = &of.certificate.status;
        let issuing = condition(&status.conditions, "Issuing").filter(|it| {
            it.last_transition_time
                .is_some_and(|at| case.at.duration_since(at.timestamp()) > STEP_MAX)
        });
        let next = status.revision.unwrap_or(0) + 1;
        let is_requested = of.requests.iter().any(|it| it.revision() == Some(next));
        let name = of.certificate.name();
        let secret = case.control.next_keys.iter().find(|one| one.certificate == name);
        if let (Some(_), false, Some(secret)) = (issuing, is_requested, secret)
            && let Some(fault) = &secret.fault
        {
            let came = format!("{}: {fault}", secret.secret);
            let asked = "status.nextPrivateKeySecretName";
            found.push(
                about(of, CauseId::Ord14, Grade::Likely, asked, &came, case)
                    .with("SECRET", &secret.secret)
                    .with("DETAIL", format!("Secret {came}")),
            );
        }
    }
}

/// ORD-18: the controller asks for a person, since the previous key has to be kept and does not fit.
fn key_may_not_be_replaced(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let next = of.certificate.status.revision.unwrap_or(0) + 1;
        // A person has decided since.
        if of.requests.iter().any(|it| it.revision() == Some(next)) {
            continue;
        }
        let since = of.begun_at();
        let asks = |warning: &&WarningCase| {
            let is_of_now = warning.at.zip(since).is_none_or(|(at, since)| at >= since);
            is_of_now
                && warning.reason == reason::CANNOT_REGENERATE_KEY
                && concerns(of, &warning.about)
        };
        let Some(warning) = case.control.warnings.iter().filter(asks).max_by_key(|it| it.at) else {
            continue;
        };
        let name = of.certificate.name();
        let asked = format!("Event {} of {}", warning.reason, warning.about);
        let shown = stored(asked, warning.at.unwrap_or(case.at), &warning.message);
        found.push(
            Finding::new(CauseId::Ord18, Grade::Certain, format!("Certificate {name}"), shown)
                .with("NAME", &name.name)
                .with("NAMESPACE", &name.namespace)
                .with("DETAIL", &warning.message),
        );
    }
}

/// ORD-19: the Secret for the certificate is immutable.
fn secret_may_not_be_changed(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let name = of.certificate.name();
        let known = case.control.immutable.iter().find(|one| one.certificate == name);
        let Some(secret) = known.map(|one| &one.secret) else { continue };
        let shown =
            stored(format!("Secret {}/{secret}: immutable", name.namespace), case.at, "true");
        found.push(
            Finding::new(CauseId::Ord19, Grade::Certain, format!("Certificate {name}"), shown)
                .with("NAME", &name.name)
                .with("NAMESPACE", &name.namespace)
                .with("SECRET", secret),
        );
    }
}

/// CFG-08: a manifest has fields that the API server has dropped.
fn field_is_not_known(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.control.dropped {
        let fields = of.fields.join(", ");
        let asked = format!("{}: the manifest that was applied last", of.object);
        let shown = stored(asked, case.at, format!("it has {fields}, which the object lacks"));
        let name = format!("{}.{}", of.object.kind.plural(), of.object.kind.group());
        let release = case.control.definitions.get(&name);
        let release = release.map(|it| stored(format!("definition {name}"), case.at, it));
        let grade = if of.is_undefined { Grade::Certain } else { Grade::Possible };
        found.push(
            Finding::new(CauseId::Cfg08, grade, of.object.to_string(), shown)
                .shown_by(release)
                .with("OBJECT", of.object.to_string())
                .with("FIELDS", fields),
        );
    }
}

/// HYG-03: finished requests that no controller removes.
fn requests_pile_up(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        let count = of.requests.len();
        if count <= MAX_KEPT_REQUESTS {
            continue;
        }
        let limit = of.certificate.spec.revision_history_limit;
        let limit = limit.map_or_else(|| "absent".to_owned(), |limit| limit.to_string());
        let came = format!("{count}; spec.revisionHistoryLimit is {limit}");
        let finding = about(of, CauseId::Hyg03, Grade::Certain, "its requests", &came, case);
        found.push(finding.with("COUNT", count.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::control_plane::tests::{cluster, says};
    use super::super::tests::{check, issuer_key};
    use super::*;
    use crate::diagnosis::case::control::{
        DroppedCase, ImmutableSecretCase, IssuedSecretCase, NextKeyCase,
    };
    use crate::diagnosis::case::issuer::SecretCase;
    use crate::model::ObjectName;

    fn time(text: &str) -> Time {
        text.parse::<jiff::Timestamp>().unwrap().into()
    }

    #[test]
    fn a_leftover_of_an_account_key_is_told_from_a_damaged_one() {
        let of = |state: SecretState, message: &str| {
            cluster(|case| {
                case.issuers[0].secrets = vec![SecretCase {
                    purpose: SecretUse::AccountKey,
                    name: ObjectName::new("web", "account"),
                    entry: "tls.key".into(),
                    state,
                    elsewhere: Vec::new(),
                }];
                let issuer = case.issuers[0].issuer.as_mut().unwrap();
                issuer.status.conditions[0].message = message.into();
            })
        };
        check(&of(SecretState::NoEntry(Vec::new()), ""), &[CauseId::Acc02]);
        check(&of(SecretState::NoEntry(vec!["key".into()]), ""), &[CauseId::Acc06]);
        let said = "Failed to register ACME account: secrets \"account\" already exists";
        check(&of(SecretState::Missing, said), &[CauseId::Acc02]);
        check(&of(SecretState::Missing, ""), &[]);
        let key = |algorithm: &str| SecretState::AccountKey {
            algorithm: algorithm.into(),
            thumbprint: "t".into(),
            is_being_changed: false,
        };
        check(&of(key("RSA 2048"), ""), &[]);
        check(&of(key("ECDSA P-256"), ""), &[CauseId::Acc06]);
        let changed = SecretState::AccountKey {
            algorithm: "RSA 2048".into(),
            thumbprint: "t".into(),
            is_being_changed: true,
        };
        check(&of(changed, ""), &[CauseId::Acc12]);
    }

    #[test]
    fn a_client_that_is_missing_is_told_by_word_and_after_a_while() {
        check(
            &cluster(|case| says(case, "ACME client for issuer not initialised/available")),
            &[CauseId::Acc10],
        );
        let order = |made: &str| {
            cluster(|case| {
                says(case, "");
                let of = &mut case.certificates[0];
                of.challenges.clear();
                of.orders[0].status.state = None;
                of.orders[0].status.url.clear();
                of.orders[0].metadata.creation_timestamp = Some(time(made));
            })
        };
        check(&order("2026-11-24T21:50:00Z"), &[CauseId::Acc10]);
        check(&order("2026-11-24T21:59:00Z"), &[]);
    }

    #[test]
    fn a_failed_order_of_which_nothing_is_left_is_told() {
        let of = |keeps: bool| {
            cluster(|case| {
                says(case, "");
                case.certificates[0].orders[0].status.state = Some(State::Invalid);
                if !keeps {
                    case.certificates[0].challenges.clear();
                }
            })
        };
        check(&of(false), &[CauseId::Ord08]);
        check(&of(true), &[]);
    }

    #[test]
    fn a_key_that_has_to_be_kept_and_a_secret_that_cannot_be_changed_are_named() {
        let begun = |case: &mut Case| {
            says(case, "");
            let of = &mut case.certificates[0];
            of.requests.clear();
            of.orders.clear();
            of.challenges.clear();
            let issuing = json!({"type": "Issuing", "status": "True", "lastTransitionTime": "2026-11-24T21:30:00Z"});
            of.certificate.status.conditions = vec![serde_json::from_value(issuing).unwrap()];
            of.certificate.status.next_private_key_secret_name = "k".into();
            case.names.clear();
        };
        let asked = |reason: &str, at: &str| {
            cluster(|case| {
                begun(case);
                case.control.warnings = vec![WarningCase {
                    about: "Certificate web/www".into(),
                    name: ObjectName::new("web", "www"),
                    reason: reason.into(),
                    message: "mismatching fields: [spec.privateKey.algorithm]".into(),
                    at: at.parse().ok(),
                    count: 1,
                    by: "cert-manager".into(),
                }];
            })
        };
        check(&asked("CannotRegenerateKey", "2026-11-24T21:40:00Z"), &[CauseId::Ord18]);
        // Of an issuance before, and of something else.
        check(&asked("CannotRegenerateKey", "2026-11-24T20:40:00Z"), &[CauseId::Ord17]);
        check(&asked("Other", "2026-11-24T21:40:00Z"), &[CauseId::Ord17]);
        let immutable = cluster(|case| {
            begun(case);
            case.control.immutable = vec![ImmutableSecretCase {
                certificate: ObjectName::new("web", "www"),
                secret: "www-tls".into(),
            }];
        });
        check(&immutable, &[CauseId::Ord19]);
    }

    #[test]
    fn whoever_writes_the_secret_is_named() {
        let of = |writers: &[&str], reason: &str, revision: i64| {
            cluster(|case| {
                case.certificates[0].certificate.status.revision = Some(revision);
                let made = time("2026-11-24T20:00:00Z");
                case.certificates[0].certificate.metadata.creation_timestamp = Some(made);
                case.certificates[0].due.as_mut().unwrap().reason = reason.into();
                case.control.secrets = vec![IssuedSecretCase {
                    certificate: ObjectName::new("web", "www"),
                    secret: "www-tls".into(),
                    writers: writers.iter().map(|one| ((*one).to_owned(), None)).collect(),
                    marks: Vec::new(),
                }];
            })
        };
        check(&of(&["argocd-controller"], "SecretMismatch", 1), &[CauseId::Ord11]);
        check(&of(&["kubectl"], "SecretMismatch", 0), &[]);
        check(&of(&[], "SecretMismatch", 1), &[]);
        check(&of(&[], "DoesNotExist", 5), &[CauseId::Ord11]);
        check(&of(&[], "DoesNotExist", 1), &[]);
    }

    #[test]
    fn a_key_that_is_never_made_stops_the_issuance() {
        let of = |algorithm: &str, size: u32| {
            cluster(|case| {
                let key = serde_json::json!({"algorithm": algorithm, "size": size});
                let spec = &mut case.certificates[0].certificate.spec;
                spec.private_key = Some(serde_json::from_value(key).unwrap());
            })
        };
        check(&of("RSA", 1024), &[CauseId::Ord14]);
        check(&of("ECDSA", 2048), &[CauseId::Ord14]);
        check(&of("RSA", 4096), &[]);
        let damaged = |since: &str, fault: Option<&str>| {
            cluster(|case| {
                let condition = serde_json::json!({"type": "Issuing", "status": "True", "lastTransitionTime": since});
                let status = &mut case.certificates[0].certificate.status;
                status.conditions = vec![serde_json::from_value(condition).unwrap()];
                case.control.next_keys = vec![NextKeyCase {
                    certificate: ObjectName::new("web", "www"),
                    secret: "www-abc".into(),
                    fault: fault.map(str::to_owned),
                }];
            })
        };
        check(&damaged("2026-11-24T21:00:00Z", Some("it is empty")), &[CauseId::Ord14]);
        check(&damaged("2026-11-24T21:59:50Z", Some("it is empty")), &[]);
        // Then nothing says why no request comes.
        check(&damaged("2026-11-24T21:00:00Z", None), &[CauseId::Ord17]);
    }

    #[test]
    fn fields_that_were_dropped_are_told_and_requests_that_pile_up() {
        let of = |is_undefined| {
            cluster(|case| {
                case.control.dropped = vec![DroppedCase {
                    object: issuer_key(),
                    fields: vec!["spec.acme.profile".into()],
                    is_undefined,
                }];
            })
        };
        check(&of(true), &[CauseId::Cfg08]);
        check(&of(false), &[CauseId::Cfg08]);
        let pile = |count: usize| {
            cluster(|case| {
                says(case, "");
                let request = case.certificates[0].requests[0].clone();
                case.certificates[0].requests.splice(0..0, vec![request; count - 1]);
            })
        };
        check(&pile(MAX_KEPT_REQUESTS + 1), &[CauseId::Hyg03]);
        check(&pile(MAX_KEPT_REQUESTS), &[]);
    }
}
