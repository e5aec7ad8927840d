//! More cases that are put together by hand: objects as they stand in a store, and symptoms of each sort of challenge.

use serde_json::{Value, json};

use super::judge;
use super::tests::{by, case, check, issuer_key, look, observation, refused, said, with};
use crate::diagnosis::case::authority::{AccountCase, AuthorityOrder, HeldCase};
use crate::diagnosis::case::issuer::{SecretCase, SecretState, SecretUse};
use crate::diagnosis::case::name::{AnswerProbe, NameCase};
use crate::diagnosis::case::web::WebrootCase;
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::model::cause::Symptom;
use crate::model::observation::{CheckResult, NameServerAnswer};
use crate::model::{ChallengeType, ObjectName};

const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The case with a request, its Order and its Challenge, changed.
pub(super) fn ordered(change: impl FnOnce(&mut Value, &mut Value, &mut Value)) -> Case {
    let owner = |kind: &str, uid: &str| json!([{"apiVersion": "v1", "kind": kind, "name": "www", "uid": uid, "controller": true}]);
    let mut request = json!({
        "metadata": {
            "namespace": "web", "name": "www-1", "uid": "r",
            "ownerReferences": owner("Certificate", "c"),
        },
        "spec": {"request": "", "issuerRef": {"name": "acme"}},
        "status": {"conditions": [{"type": "Approved", "status": "True"}]},
    });
    let mut order = json!({
        "metadata": {
            "namespace": "web", "name": "www-1-1", "uid": "o",
            "ownerReferences": owner("CertificateRequest", "r"),
        },
        "spec": {"request": "", "issuerRef": {"name": "acme"}},
        "status": {"state": "pending"},
    });
    let mut challenge = json!({
        "metadata": {
            "namespace": "web", "name": "www-1-1-1", "uid": "h",
            "ownerReferences": owner("Order", "o"),
        },
        "spec": {
            "dnsName": "www.example.com", "token": "token", "key": "token.thumb",
            "type": "HTTP-01", "authorizationURL": "a", "url": "u",
            "issuerRef": {"name": "acme"}, "solver": {},
        },
        "status": {"state": "pending", "processing": true},
    });
    change(&mut request, &mut order, &mut challenge);
    with(|case| {
        let of = &mut case.certificates[0];
        of.requests = vec![serde_json::from_value(request).unwrap()];
        of.orders = vec![serde_json::from_value(order).unwrap()];
        of.challenges = vec![serde_json::from_value(challenge).unwrap()];
    })
}

#[test]
fn a_port_that_is_taken_is_no_cause_where_others_answer_or_the_ca_has_spoken() {
    let names_it = |mut case: Case| {
        case.listener_fault =
            Some("cannot listen on 0.0.0.0:80: another program listens there".to_owned());
        judge(&case).iter().any(|finding| finding.cause == CauseId::Http34)
    };
    assert!(names_it(by(ChallengeType::Http01, |_| ())));
    assert!(!names_it(by(ChallengeType::Dns01, |_| ())));
    let folder = "/srv/www".to_owned();
    let webroot = WebrootCase { folder, has_answer: false };
    assert!(!names_it(by(ChallengeType::Http01, |name| name.webroot = Some(webroot))));
    let ordered = |state: &str, reason: &str| {
        let mut case = ordered(|_, _, challenge| {
            challenge["status"]["state"] = json!(state);
            challenge["status"]["reason"] = json!(reason);
        });
        case.names = vec![NameCase::of("www.example.com", Some(ChallengeType::Http01))];
        case
    };
    assert!(names_it(ordered("pending", "")));
    assert!(!names_it(ordered("invalid", "")));
    let said = "403 urn:ietf:params:acme:error:unauthorized: Invalid response from http://x: 404";
    assert!(!names_it(ordered("pending", said)));
}

#[test]
fn an_order_on_its_way_is_no_fault() {
    check(&ordered(|_, _, _| ()), &[]);
}

#[test]
fn an_issuer_that_is_not_ready_is_named_with_its_reason() {
    let issuer = |conditions: Value| {
        with(|case| {
            let issuer = case.issuers[0].issuer.as_mut().unwrap();
            issuer.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
        })
    };
    let message = "Failed to verify ACME account";
    let ready = |status: &str, message: &str| json!([{"type": "Ready", "status": status, "reason": "ErrRegisterACMEAccount", "message": message}]);
    check(&issuer(ready("False", message)), &[CauseId::Cfg02]);
    check(&issuer(ready("True", message)), &[]);
    // Nobody has looked at it yet.
    check(&issuer(json!([])), &[]);
}

/// The issuer's `spec.acme`, changed.
fn acme(change: impl FnOnce(&mut Value)) -> Case {
    with(|case| {
        let issuer = case.issuers[0].issuer.as_mut().unwrap();
        let mut spec = serde_json::to_value(&issuer.spec.acme).unwrap();
        change(&mut spec);
        issuer.spec.acme = Some(serde_json::from_value(spec).unwrap());
    })
}

#[test]
fn what_an_issuer_asks_for_and_may_not_is_named() {
    let two = json!([{"http01": {"ingress": {"class": "nginx", "ingressClassName": "nginx"}}}]);
    check(&acme(|spec| spec["solvers"] = two), &[CauseId::Cfg07]);
    let email = |server: &str| {
        acme(|spec| {
            spec["email"] = json!("me@example.com");
            spec["server"] = json!(server);
        })
    };
    check(&email(LETS_ENCRYPT), &[CauseId::Acc01]);
    // A CA of one's own may take it.
    check(&email("https://ca.example/dir"), &[]);
    let dated = |server: &str| {
        let mut case = acme(|spec| {
            spec["enableDurationFeature"] = json!(true);
            spec["server"] = json!(server);
        });
        let certificate = &mut case.certificates[0].certificate;
        certificate.spec.duration = serde_json::from_value(json!("720h")).unwrap();
        case
    };
    check(&dated(LETS_ENCRYPT), &[CauseId::Cfg20]);
    check(&dated("https://ca.example/dir"), &[]);
}

#[test]
fn what_is_too_much_for_one_certificate_is_named() {
    // A name that is among those asked for; dots, since a label has 63 bytes at most.
    let common_name = |length: usize| {
        with(|case| {
            let spec = &mut case.certificates[0].certificate.spec;
            spec.common_name = format!("{}.example.com", "a".repeat(length - 12));
            spec.dns_names.push(spec.common_name.clone());
        })
    };
    let causes = |case: &Case| -> Vec<CauseId> { judge(case).iter().map(|f| f.cause).collect() };
    assert!(causes(&common_name(65)).contains(&CauseId::Cfg17));
    assert!(!causes(&common_name(64)).contains(&CauseId::Cfg17));
    let stray = |name: &str| {
        with(|case| name.clone_into(&mut case.certificates[0].certificate.spec.common_name))
    };
    assert!(causes(&stray("release")).contains(&CauseId::Cfg17));
    assert!(!causes(&stray("WWW.example.com")).contains(&CauseId::Cfg17));
    let many = |count: usize| {
        let mut case = acme(|spec| spec["server"] = json!(LETS_ENCRYPT));
        case.certificates[0].certificate.spec.dns_names =
            (0..count).map(|number| format!("n{number}.example.com")).collect();
        case
    };
    check(&many(101), &[CauseId::Cfg17]);
    check(&many(100), &[]);
}

#[test]
fn what_a_ca_says_no_with_is_told_apart() {
    let http01 = ChallengeType::Http01;
    let address = refused(http01, "unsupportedIdentifier", "IP addresses are not taken");
    check(&address, &[CauseId::Cfg16]);
    let binding = refused(http01, "malformed", "unable to verify external account binding");
    check(&binding, &[CauseId::Acc07]);
    let used = refused(http01, "malformed", "the external account binding key was already used");
    check(&used, &[CauseId::Acc08]);
    let replaced = refused(http01, "alreadyReplaced", "already has a replacement order");
    check(&replaced, &[CauseId::Ord15]);
    check(&refused(http01, "userActionRequired", "new terms"), &[CauseId::Acc09]);
    check(&refused(http01, "nobodyKnows", "a word of tomorrow"), &[]);
}

#[test]
fn a_request_is_named_that_nobody_approves_or_that_somebody_denied() {
    let conditions = |conditions: Value| {
        ordered(|request, order, challenge| {
            request["status"]["conditions"] = conditions;
            // The Order and the Challenge are of another request.
            order["metadata"]["ownerReferences"] = json!([]);
            challenge["metadata"]["ownerReferences"] = json!([]);
        })
    };
    check(&conditions(json!([])), &[CauseId::Ord03]);
    let mut fresh = conditions(json!([]));
    let now = Some(crate::model::Time::new(fresh.at));
    fresh.certificates[0].requests[0].metadata.creation_timestamp = now;
    check(&fresh, &[]);
    let denied = json!([
        {"type": "Denied", "status": "True", "reason": "policy", "message": "no approver"},
    ]);
    check(&conditions(denied), &[CauseId::Ord03]);
    check(&conditions(json!([{"type": "Approved", "status": "True"}])), &[]);
}

#[test]
fn an_order_that_is_over_or_waits_for_nothing_is_named() {
    let errored = ordered(|_, order, _| {
        order["status"] = json!({"state": "errored", "reason": "Failed to create Order"});
    });
    check(&errored, &[CauseId::Ord04]);
    let held = |status: &str| {
        let mut case = ordered(|_, _, challenge| challenge["status"]["state"] = json!("valid"));
        let at = case.at;
        case.certificates[0].held = vec![HeldCase {
            name: "www.example.com".into(),
            status: status.into(),
            offered: vec!["http-01".into()],
            at,
            ..HeldCase::default()
        }];
        case
    };
    check(&held("valid"), &[CauseId::Ord16]);
    check(&held("pending"), &[]);
}

#[test]
fn a_self_check_that_does_not_get_there_is_told_where_the_answer_is_right() {
    let reason = "failed to perform self check GET request: dial tcp 192.0.2.1:80: i/o timeout";
    let of = |driver: DriverCase, is_answer: bool| {
        let mut case = ordered(|_, _, challenge| {
            challenge["status"]["presented"] = json!(true);
            challenge["status"]["reason"] = json!(reason);
        });
        case.driver = driver;
        case.names[0].pending = case.certificates[0].challenges.first().cloned();
        case.names[0].looks = vec![look("192.0.2.1:80", is_answer)];
        judge(&case).iter().any(|finding| finding.cause == CauseId::Http08)
    };
    assert!(of(DriverCase::CertManager, true));
    assert!(!of(DriverCase::CertManager, false));
    assert!(!of(DriverCase::Nobody, true), "the reason may be of yesterday");
}

#[test]
fn an_account_is_told_by_its_key_and_by_what_it_has_left() {
    let account = |change: fn(&mut AccountCase)| {
        with(|case| {
            let mut account = AccountCase {
                at: case.at,
                recorded: "https://ca.example/acct/1".into(),
                ..AccountCase::default()
            };
            change(&mut account);
            let (name, elsewhere) = (ObjectName::new("web", "account"), Vec::new());
            let state = SecretState::AccountKey {
                algorithm: "RSA".into(),
                thumbprint: "t".into(),
                is_being_changed: false,
            };
            let (purpose, entry) = (SecretUse::AccountKey, "tls.key".to_owned());
            case.issuers[0].secrets = vec![SecretCase { purpose, name, entry, state, elsewhere }];
            case.issuers[0].account = Some(account);
        })
    };
    check(&account(|_| ()), &[]);
    check(&account(|it| it.of_key = Some(it.recorded.clone())), &[]);
    let other = account(|it| it.of_key = Some("https://ca.example/acct/2".into()));
    check(&other, &[CauseId::Acc11]);
    let left = |expires: &'static str| {
        let mut case = account(|_| ());
        let held = AuthorityOrder {
            url: "https://ca.example/order/1".into(),
            status: "pending".into(),
            expires: expires.parse().ok(),
            problem: None,
            at: case.at,
        };
        case.issuers[0].account.as_mut().unwrap().left_orders = vec![held];
        case
    };
    check(&left("2026-12-01T00:00:00Z"), &[CauseId::Hyg04]);
    check(&left("2026-11-01T00:00:00Z"), &[]);
}

#[test]
fn a_secret_of_two_certificates_is_named() {
    let rivals = |rivals: Vec<ObjectName>| with(|case| case.certificates[0].rivals = rivals);
    check(&rivals(vec![ObjectName::new("web", "shop")]), &[CauseId::Ord10]);
    check(&rivals(Vec::new()), &[]);
}

#[test]
fn whether_somebody_drives_matters_in_a_cluster() {
    let driven = |driver: DriverCase, in_cluster: bool| {
        with(|case| (case.driver, case.in_cluster) = (driver, in_cluster))
    };
    check(&driven(DriverCase::Nobody, true), &[CauseId::Ctl01]);
    check(&driven(DriverCase::CertManager, true), &[]);
    check(&driven(DriverCase::Unknown, true), &[]);
    check(&driven(DriverCase::Nobody, false), &[]);
}

#[test]
fn a_deletion_hangs_after_a_while() {
    let deleted = |at: &str| {
        ordered(|_, _, challenge| {
            challenge["metadata"]["deletionTimestamp"] = json!(at);
            challenge["metadata"]["finalizers"] = json!(["acme.cert-manager.io/finalizer"]);
        })
    };
    check(&deleted("2026-11-24T21:50:00Z"), &[CauseId::Ctl06]);
    check(&deleted("2026-11-24T21:58:00Z"), &[]);
}

/// Builds the case of a symptom in place of the answer at one address.
fn seen(kind: ChallengeType, symptom: Symptom, in_cluster: bool) -> Case {
    let case = by(kind, |name| {
        let mut look = look("192.0.2.1:80", false);
        look.observation.seen = CheckResult::Nothing { symptom: Some(symptom), why: "so".into() };
        look.sighting = Some(symptom.into());
        name.looks = vec![look];
    });
    Case { in_cluster, ..case }
}

#[test]
fn every_symptom_of_an_address_has_its_cause() {
    use {CauseId as Id, ChallengeType as Type, Symptom as S};
    for (kind, symptom, in_cluster, cause) in [
        (Type::Http01, S::Unreachable, false, Id::Http04),
        (Type::Http01, S::NoTls, false, Id::Http14),
        (Type::Http01, S::HungUp, false, Id::Http30),
        (Type::Http01, S::NotFound, true, Id::Http10),
        (Type::Http01, S::NotFound, false, Id::Http03),
        (Type::Http01, S::ServerError, true, Id::Ctl15),
        (Type::Http01, S::ServerError, false, Id::Http32),
        (Type::TlsAlpn01, S::NoTls, false, Id::Tls01),
        (Type::TlsAlpn01, S::ConnectionRefused, false, Id::Tls03),
        (Type::TlsAlpn01, S::NoAddress, false, Id::Http01),
        (Type::TlsAlpn01, S::WrongAnswer, false, Id::Tls02),
    ] {
        check(&seen(kind, symptom, in_cluster), &[cause]);
    }
}

/// Builds the case of a record that could not be looked for.
fn not_found(kind: ChallengeType, change: impl FnOnce(&mut NameCase)) -> Case {
    by(kind, |name| {
        name.issuer = Some(issuer_key());
        name.answer = Some(AnswerProbe {
            expected: "digest".into(),
            observations: vec![observation(CheckResult::Nothing {
                symptom: None,
                why: "so".into(),
            })],
            reason: Some("so".into()),
            sighting: None,
        });
        change(name);
    })
}

#[test]
fn every_symptom_of_a_record_has_its_cause() {
    use {CauseId as Id, Symptom as S};
    for (symptom, cause) in [
        (S::NotDelegated, Id::D0104),
        (S::AliasLoop, Id::D0109),
        (S::ResolverSilent, Id::D0115),
        (S::ServersSilent, Id::Dns04),
        (S::LameServer, Id::Dns03),
    ] {
        let case = not_found(ChallengeType::Dns01, |name| {
            name.answer.as_mut().unwrap().sighting = Some(symptom.into());
        });
        check(&case, &[cause]);
    }
    let referred = said(&[NameServerAnswer::Referral("sub.example.com.".into())]);
    check(&referred, &[CauseId::D0107]);
    let mut alias = said(&[NameServerAnswer::NoName]);
    alias.names[0].answer.as_mut().unwrap().sighting = Some(S::AliasNotFollowed.into());
    check(&alias, &[CauseId::D0109]);
    // acme-dns has a name for each registration, which an alias leads to.
    let mut elsewhere = said(&[NameServerAnswer::Texts(vec!["other".into()])]);
    let registered = ordered(|_, _, challenge| {
        let secret = json!({"name": "acme-dns", "key": "accounts"});
        let acme_dns = json!({"host": "https://auth.example", "accountSecretRef": secret});
        challenge["spec"]["solver"] = json!({"dns01": {"acmeDNS": acme_dns}});
    });
    elsewhere.names[0].pending = registered.certificates[0].challenges.first().cloned();
    elsewhere.names[0].answer.as_mut().unwrap().sighting = Some(S::AliasNotFollowed.into());
    check(&elsewhere, &[CauseId::Prv13]);
    let mut persistent = said(&[NameServerAnswer::NoText]);
    persistent.names[0].kind = Some(ChallengeType::DnsPersist01);
    check(&persistent, &[CauseId::Per02]);
    check(&case(), &[]);
}
