//! Cases in which another place sees or says something else than this machine: the CA, the cluster, a server of the zone.

use serde_json::json;

use super::control_plane::tests::{cluster, says};
use super::judge;
use super::open_path::testing::{object, path_with};
use super::tests::{self, by, check, look, name, refused};
use super::zone::tests::reply;
use crate::diagnosis::case::dns::{DnsCase, DnsVantage};
use crate::diagnosis::case::issuer::{DirectoryAnswer, DirectoryCase};
use crate::diagnosis::case::name::{AddressProbe, AnswerProbe, LookUp};
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::Grade;
use crate::model::acme_server::LETS_ENCRYPT;
use crate::model::cause::Symptom;
use crate::model::common::Condition;
use crate::model::observation::CheckResult;
use crate::model::{ChallengeType, Time, reserved};

const HTTP: ChallengeType = ChallengeType::Http01;

/// The only error that is found, with its grade.
#[track_caller]
fn only_error(case: &Case) -> (CauseId, Grade) {
    let found = judge(case);
    let errors: Vec<_> = found.iter().filter(|it| it.is_error()).collect();
    assert_eq!(errors.len(), 1, "{found:#?}");
    (errors[0].cause, errors[0].grade)
}

/// A look that met nothing, for that reason.
fn nothing(address: &str, symptom: Symptom) -> AddressProbe {
    let mut look = look(address, false);
    look.observation.seen = CheckResult::Nothing { why: "nothing".into(), symptom: Some(symptom) };
    look.sighting = Some(symptom.into());
    look
}

#[test]
fn what_the_ca_met_is_read_in_its_words() {
    let base = "192.0.2.1: Fetching http://www.example.com/.well-known/acme-challenge/t: ";
    for (words, cause) in [
        ("Timeout during connect (likely firewall problem)", CauseId::Http04),
        ("Timeout after connect (your server may be slow or overloaded)", CauseId::Http31),
        ("Connection refused", CauseId::Http05),
        ("Network unreachable", CauseId::Http04),
        ("Something of tomorrow", CauseId::Http29),
    ] {
        let mut case = refused(HTTP, "connection", &format!("{base}{words}"));
        says(&mut case, "");
        case.certificates[0].held[0].status = "invalid".into();
        case.certificates[0].challenges[0].status.state = Some(crate::model::State::Invalid);
        assert_eq!(only_error(&case).0, cause, "{words}");
    }
    // Whoever was led to https has found port 80 at work.
    let https = "192.0.2.1: Fetching https://www.example.com/x: Timeout during connect";
    let mut case = refused(HTTP, "connection", https);
    says(&mut case, "");
    assert_eq!(only_error(&case).0, CauseId::Http14);
    for (status, cause) in [(526, CauseId::Http32), (409, CauseId::Http32), (403, CauseId::Http16)]
    {
        let words = format!("192.0.2.1: Invalid response from http://www.example.com/x: {status}");
        let mut case = refused(HTTP, "unauthorized", &words);
        says(&mut case, "");
        assert_eq!(only_error(&case).0, cause, "{status}");
    }
}

#[test]
fn a_ca_that_found_no_address_is_believed_unless_there_is_one_now() {
    let none = "no valid A records found for www.example.com; no valid AAAA records found";
    let of = |addresses: &[&str]| {
        let mut case = refused(HTTP, "unauthorized", none);
        says(&mut case, "");
        let all: Vec<std::net::IpAddr> = addresses.iter().map(|it| it.parse().unwrap()).collect();
        let one = &mut case.names[0];
        one.reserved =
            all.iter().filter_map(|at| Some((*at, reserved::block(*at)?.to_owned()))).collect();
        one.is_looked_for_in_dns = true;
        one.addresses = LookUp::Found(all);
        let from = DnsVantage::Authority {
            name: "ns1.example.com.".into(),
            address: "9.9.9.10:53".parse().unwrap(),
        };
        let known = reply(from, "www.example.com.", "A", addresses);
        one.dns = Some(DnsCase { replies: vec![known], ..DnsCase::default() });
        case
    };
    // All that there is cannot be reached by anybody outside.
    assert_eq!(only_error(&of(&["192.168.1.10"])), (CauseId::Http02, Grade::Certain));
    // It has one now: that was mended since.
    let mended = judge(&of(&["9.9.9.9"]));
    assert!(mended.iter().all(|it| it.cause != CauseId::Http01 || !it.is_error()), "{mended:#?}");
}

#[test]
fn a_public_ca_is_never_led_to_addresses_that_the_zone_itself_keeps_inside() {
    let of = |server: &str, by_servers: &str| {
        tests::with(|case| {
            let inner = "10.1.2.3".parse().unwrap();
            let acme = case.issuers[0].issuer.as_mut().unwrap().spec.acme.as_mut().unwrap();
            LETS_ENCRYPT.clone_into(&mut acme.server);
            let mut one = name("www.example.com", Some(HTTP));
            one.issuer = Some(case.issuers[0].key.clone());
            one.is_looked_for_in_dns = true;
            one.addresses = LookUp::Found(vec![inner]);
            one.reserved = vec![(inner, "10.0.0.0/8".into())];
            let from = DnsVantage::Authority {
                name: "ns1.example.com.".into(),
                address: server.parse().unwrap(),
            };
            let known = reply(from, "www.example.com.", "A", &[by_servers]);
            one.dns = Some(DnsCase { replies: vec![known], ..DnsCase::default() });
            case.names = vec![one];
        })
    };
    let public = "9.9.9.10:53";
    assert_eq!(only_error(&of(public, "10.1.2.3")), (CauseId::Http02, Grade::Certain));
    // The outer view may have another address, and a server that is inside does not know that.
    for (server, known) in [(public, "9.9.9.9"), ("10.0.0.53:53", "10.1.2.3")] {
        let found = judge(&of(server, known));
        assert!(found.iter().all(|it| !it.is_error()), "{server}: {found:#?}");
    }
}

#[test]
fn ipv6_is_judged_by_what_happened_to_its_connection() {
    let of = |looks: Vec<AddressProbe>| by(HTTP, |one| one.looks = looks);
    let six = |symptom| nothing("[2001:db8::1]:80", symptom);
    let good = || look("192.0.2.1:80", true);
    // It was connected, and then nothing came: no family is tried after that.
    let silent = of(vec![six(Symptom::NoReply), good()]);
    assert_eq!(only_error(&silent), (CauseId::Http06, Grade::Certain));
    // A connection that fails is passed over, and this machine may have no IPv6.
    for symptom in [Symptom::Unreachable, Symptom::ConnectionRefused] {
        let found = judge(&of(vec![six(symptom), good()]));
        assert!(found.iter().all(|it| !it.is_error()), "{found:#?}");
        // The fault of IPv4 is the root then.
        let both = of(vec![six(symptom), look("192.0.2.1:80", false)]);
        assert_eq!(only_error(&both).0, CauseId::Http22, "{symptom:?}");
    }
    let alone = of(vec![six(Symptom::ConnectionRefused)]);
    assert_eq!(only_error(&alone).0, CauseId::Http05);
    let unknown = judge(&of(vec![six(Symptom::Unreachable)]));
    assert!(unknown.iter().all(|it| !it.is_error()), "{unknown:#?}");
}

#[test]
fn one_address_of_several_that_fails_is_one_finding() {
    for symptom in [Symptom::ConnectionRefused, Symptom::Unreachable, Symptom::NotFound] {
        let case = by(HTTP, |one| {
            one.looks = vec![look("192.0.2.1:80", true), nothing("192.0.2.2:80", symptom)];
        });
        assert_eq!(only_error(&case).0, CauseId::Http07, "{symptom:?}");
    }
}

#[test]
fn whoever_looks_from_inside_for_minutes_is_believed() {
    let of = |reason: &str, made: Option<&str>| {
        let mut case = cluster(|case| {
            says(case, reason);
            let challenge = &mut case.certificates[0].challenges[0];
            challenge.status.presented = true;
            challenge.metadata.creation_timestamp =
                made.map(|made| Time::new(made.parse().unwrap()));
            let mut one = name("www.example.com", Some(HTTP));
            one.pending = Some(challenge.clone());
            one.looks = vec![look("192.0.2.80:80", true)];
            case.names = vec![one];
        });
        case.driver = DriverCase::CertManager;
        case
    };
    let long_ago = Some("2026-11-24T21:30:00Z");
    for reason in [
        "Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'",
        "Waiting for HTTP-01 challenge propagation: failed to perform self check GET request 'http://x/': Get \"http://x/\": dial tcp: lookup www.example.com on 10.96.0.10:53: no such host",
    ] {
        assert_eq!(only_error(&of(reason, long_ago)), (CauseId::Http09, Grade::Likely));
        check(&of(reason, Some("2026-11-24T21:59:00Z")), &[]);
    }
}

#[test]
fn a_record_that_the_cluster_alone_misses_is_told() {
    let of = |reason: &str, made: &str| {
        cluster(|case| {
            says(case, reason);
            let challenge = &mut case.certificates[0].challenges[0];
            challenge.spec.kind = ChallengeType::Dns01;
            challenge.status.presented = true;
            challenge.metadata.creation_timestamp = Some(Time::new(made.parse().unwrap()));
            let mut one = name("www.example.com", Some(ChallengeType::Dns01));
            one.pending = Some(challenge.clone());
            one.answer = Some(AnswerProbe {
                expected: "value".into(),
                observations: vec![look("192.0.2.53:53", true).observation],
                reason: None,
                sighting: None,
            });
            case.names = vec![one];
        })
    };
    let waits = "Waiting for DNS-01 challenge propagation: ";
    let long_ago = "2026-11-24T21:30:00Z";
    let missing = format!("{waits}DNS record for \"www.example.com\" not yet propagated");
    assert_eq!(only_error(&of(&missing, long_ago)), (CauseId::D0116, Grade::Likely));
    check(&of(&missing, "2026-11-24T21:58:00Z"), &[]);
    check(&of("Waiting for DNS-01 challenge propagation", long_ago), &[]);
}

/// A Certificate whose issuer is, or is not, ready by that message, with what this machine met on its way to the CA.
fn issuer_says(is_ready: bool, message: &str, answer: DirectoryAnswer) -> Case {
    cluster(|case| {
        case.names.clear();
        case.certificates.clear();
        let of = &mut case.issuers[0];
        let issuer = of.issuer.as_mut().unwrap();
        let server = issuer.spec.acme.as_ref().unwrap().server.clone();
        let status = if is_ready { "True" } else { "False" };
        let ready = json!({"type": "Ready", "status": status, "reason": "R", "message": message});
        let ready: Condition = serde_json::from_value(ready).unwrap();
        issuer.status.conditions = vec![ready];
        of.directory = Some(DirectoryCase { url: server, at: case.at, answer });
    })
}

fn directory() -> DirectoryAnswer {
    DirectoryAnswer::Directory {
        profiles: Vec::new(),
        caa_identities: Vec::new(),
        external_account_required: false,
        new_account: "https://ca.example/new-account".into(),
    }
}

#[test]
fn a_controller_that_does_not_reach_the_ca_is_told_where_this_machine_does() {
    let said = |rest: &str| {
        let message =
            format!("Failed to register ACME account: Get \"https://ca.example/dir\": {rest}");
        only_error(&issuer_says(false, &message, directory())).0
    };
    assert_eq!(said("dial tcp 192.0.2.1:443: i/o timeout"), CauseId::Env03);
    assert_eq!(
        said("dial tcp: lookup ca.example on 10.0.0.10:53: server misbehaving"),
        CauseId::Env03
    );
    let unknown =
        "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert_eq!(said(unknown), CauseId::Env02);
    let other = "tls: failed to verify certificate: x509: certificate is valid for edge.example, not ca.example";
    assert_eq!(said(other), CauseId::Env04);
    assert_eq!(said("a text that nobody has seen"), CauseId::Cfg02);
}

#[test]
fn what_this_machine_meets_on_its_way_is_no_fault_of_a_cluster_that_gets_there() {
    let met = || DirectoryAnswer::Unreachable("no answer within 5 s".into());
    let well = judge(&issuer_says(true, "The ACME account was registered", met()));
    assert!(well.iter().all(|it| !it.is_error()), "{well:#?}");
    let lost = issuer_says(false, "not yet", met());
    assert_eq!(only_error(&lost), (CauseId::Env03, Grade::Certain));
    // A host of the cluster is not looked for from outside at all.
    let mut inner =
        issuer_says(true, "registered", DirectoryAnswer::NoSuchHost("no such host".into()));
    inner.issuers[0].directory.as_mut().unwrap().url =
        "https://ca.pki.svc.cluster.local/dir".into();
    check(&inner, &[]);
}

#[test]
fn a_binding_is_told_by_what_the_ca_says_of_it() {
    for (words, cause) in [
        ("External account binding was not made with the key of \"kid-1\"", CauseId::Acc07),
        ("External account \"kid-1\" is unknown", CauseId::Acc07),
        ("[External Account Binding] Invalid MAC on JWS request", CauseId::Acc07),
        ("external account binding key was already used", CauseId::Acc08),
        ("the external account has expired", CauseId::Acc08),
    ] {
        check(&refused(HTTP, "malformed", words), &[cause]);
    }
}

#[test]
fn a_record_that_others_have_not_got_yet_is_no_fault_of_the_way_of_asking() {
    let dns01 = ChallengeType::Dns01;
    let said = |words: &str| {
        refused(dns01, "unauthorized", &format!("During secondary validation: {words}"))
    };
    let missing = "No TXT record found at _acme-challenge.www.example.com";
    check(&said(missing), &[CauseId::D0102]);
    let silent = "DNS problem: query timed out looking up TXT for _acme-challenge.www.example.com";
    check(&said(silent), &[CauseId::Dns05]);
}

#[test]
fn a_name_that_leads_past_the_balancer_is_told_whatever_answers_there() {
    let at = |http01: serde_json::Value, looked: AddressProbe, own: serde_json::Value| {
        let case = path_with(http01, |case, path| {
            let mut one = name("www.example.com", Some(HTTP));
            one.pending = case.certificates[0].challenges.first().cloned();
            one.is_looked_for_in_dns = true;
            one.looks = vec![looked];
            case.names = vec![one];
            path.ingresses[0].status = object(json!({"loadBalancer": {"ingress": [own]}}));
            let balancer = "lb.example.net".to_owned();
            path.balancer_names = [(balancer, vec!["192.0.2.1".parse().unwrap()])].into();
        });
        only_error(&case).0
    };
    let ingress = || json!({"ingress": {"ingressClassName": "edge"}});
    for own in [json!({"ip": "192.0.2.1"}), json!({"hostname": "lb.example.net"})] {
        for symptom in [Symptom::ConnectionRefused, Symptom::Unreachable] {
            let past = at(ingress(), nothing("192.0.2.99:80", symptom), own.clone());
            assert_eq!(past, CauseId::Http03, "{own} {symptom:?}");
        }
        assert_eq!(at(ingress(), look("192.0.2.99:80", false), own.clone()), CauseId::Http03);
        let there = at(ingress(), nothing("192.0.2.1:80", Symptom::ConnectionRefused), own);
        assert_eq!(there, CauseId::Http05);
    }
}

#[test]
fn what_is_due_and_nobody_begins_is_told() {
    let of = |over: Option<&str>| {
        cluster(|case| {
            case.names.clear();
            let of = &mut case.certificates[0];
            let due = ("Expired", "Certificate expired");
            of.due = Some(crate::diagnosis::case::DueReason {
                reason: due.0.into(),
                message: due.1.into(),
            });
            of.certificate.status = serde_json::from_value(json!({
                "conditions": [{"type": "Ready", "status": "False", "reason": due.0, "message": due.1}],
                "notAfter": over, "revision": 1,
            }))
            .unwrap();
        })
    };
    assert_eq!(only_error(&of(Some("2026-11-24T20:00:00Z"))).0, CauseId::Ord17);
    let fresh = judge(&of(Some("2026-11-24T21:58:00Z")));
    assert!(fresh.iter().all(|it| !it.is_error()), "{fresh:#?}");
}

#[test]
fn a_name_that_is_never_in_dns_is_told_whatever_the_ca() {
    let of = |domain: &str| {
        tests::with(|case| {
            let mut one = name(domain, Some(HTTP));
            one.addresses = LookUp::NoName(format!("no such host {domain}"));
            case.names = vec![one];
            case.certificates[0].certificate.spec.dns_names = vec![domain.into()];
        })
    };
    assert_eq!(only_error(&of("nas.office.local")), (CauseId::Cfg12, Grade::Likely));
    // A zone of one's own may have such a name.
    assert_eq!(only_error(&of("nas.corp")).0, CauseId::Http01);
}
