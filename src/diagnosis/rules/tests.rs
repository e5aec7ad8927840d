//! Rules on cases that are put together by hand: faults that cannot be made to happen on loopback, and every branch of the
//! others. The fault lab (`tests/it/local/diagnose/`) has the rest.

use serde_json::json;

use super::control_plane::tests::{cluster, says};
use super::judge;
use crate::diagnosis::case::authority::HeldCase;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::case::issuer::{
    DirectoryAnswer, DirectoryCase, IssuerCase, SecretCase, SecretState, SecretUse,
};
use crate::diagnosis::case::name::{AddressProbe, AnswerProbe, CaaLevel, LookUp, NameCase};
use crate::diagnosis::case::{Case, CertificateCase, DueReason, QueuedCase, Unobserved};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::Grade;
use crate::model::caa::{CaaProperty, CaaRecordSet};
use crate::model::observation::{CheckResult, NameServer, NameServerAnswer, Observation, Vantage};
use crate::model::{ChallengeType, Key, Kind, ObjectName, Problem, State};
use crate::reconcile::schedule::Obstacle;

/// A case with one Certificate `web/www` for `www.example.com` that is due, its issuer `acme` of a CA at `ca.example`, and the name.
pub(super) fn case() -> Case {
    let certificate = json!({
        "metadata": {"namespace": "web", "name": "www", "uid": "c"},
        "spec": {
            "secretName": "www-tls", "dnsNames": ["www.example.com"], "issuerRef": {"name": "acme"},
        },
    });
    let issuer = json!({
        "kind": "Issuer", "metadata": {"namespace": "web", "name": "acme"},
        "spec": {"acme": {
            "server": "https://ca.example/dir", "privateKeySecretRef": {"name": "account"},
            "solvers": [{"http01": {"ingress": {}}}],
        }},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    let due = DueReason { reason: "DoesNotExist".into(), message: "there is no Secret".into() };
    let (requests, orders, challenges) = Default::default();
    let certificate = serde_json::from_value(certificate).unwrap();
    let chain =
        Chain { certificate, requests, orders, challenges, issuer: None, in_cluster: false };
    let certificate = CertificateCase { due: Some(due), ..CertificateCase::of(chain) };
    let issuer = IssuerCase::of(issuer_key(), Some(serde_json::from_value(issuer).unwrap()));
    Case {
        at: "2026-11-24T22:00:00Z".parse().unwrap(),
        certificates: vec![certificate],
        issuers: vec![issuer],
        names: vec![name("www.example.com", Some(ChallengeType::Http01))],
        ..Case::default()
    }
}

/// The issuer of that case.
pub(super) fn issuer_key() -> Key {
    Key::new(Kind::Issuer, ObjectName::new("web", "acme"))
}

/// A name without observations.
pub(super) fn name(name: &str, kind: Option<ChallengeType>) -> NameCase {
    NameCase { issuer: Some(issuer_key()), ..NameCase::of(name, kind) }
}

/// The causes that are found, in their order, and no other.
#[track_caller]
pub(super) fn check(case: &Case, expected: &[CauseId]) {
    let found: Vec<CauseId> = judge(case).iter().map(|finding| finding.cause).collect();
    assert_eq!(found, expected, "{:#?}", judge(case));
}

/// Builds the case with a change.
pub(super) fn with(change: impl FnOnce(&mut Case)) -> Case {
    let mut case = case();
    change(&mut case);
    case
}

pub(super) fn by(kind: ChallengeType, change: impl FnOnce(&mut NameCase)) -> Case {
    with(|case| {
        let mut name = name("www.example.com", Some(kind));
        change(&mut name);
        case.names = vec![name];
    })
}

/// Builds a pending authorization of a name at the CA.
pub(super) fn held(name: &str, offered: Vec<String>) -> HeldCase {
    let (name, status) = (name.to_owned(), "pending".to_owned());
    HeldCase { name, status, offered, at: case().at, ..HeldCase::default() }
}

#[test]
fn what_is_well_has_no_fault() {
    check(&case(), &[]);
}

#[test]
fn an_issuer_that_is_not_there_names_what_may_be_meant() {
    let case = with(|case| {
        case.issuers[0].issuer = None;
        case.issuers[0].near = vec![Key::new(Kind::ClusterIssuer, ObjectName::new("", "acme"))];
    });
    check(&case, &[CauseId::Cfg01]);
    let found = judge(&case);
    assert!(found[0].facts["NEAR"].contains("ClusterIssuer"), "{found:?}");
    let unread = with(|case| {
        case.issuers[0].issuer = None;
        case.issuers[0].is_known = false;
    });
    check(&unread, &[]);
}

#[test]
fn a_group_of_issuers_that_nobody_serves_is_named() {
    let of = |group: &str, kind: &str| {
        with(|case| {
            let reference = &mut case.certificates[0].certificate.spec.issuer_ref;
            (reference.group, reference.kind) = (group.to_owned(), kind.to_owned());
        })
    };
    for group in ["cert-manager.io/v1", "acme.cert-manager.io", "certmanager.k8s.io"] {
        check(&of(group, "Issuer"), &[CauseId::Cfg01]);
    }
    // Issuers of others have groups of their own.
    for (group, kind) in [("cert-manager.io", "Issuer"), ("certmanager.freeipa.org", "Issuer")] {
        check(&of(group, kind), &[]);
    }
}

#[test]
fn solvers_that_do_not_fit_are_told_apart_from_wildcards_without_dns01() {
    let unfit = |case: &mut Case, shown: &str| {
        case.names = vec![name(shown, None)];
        case.names[0].unfit = vec!["solvers[0] is for dnsZones example.net".into()];
    };
    check(&with(|case| unfit(case, "www.example.com")), &[CauseId::Cfg04]);
    check(&with(|case| unfit(case, "*.example.com")), &[CauseId::Cfg14]);
}

#[test]
fn names_that_no_ca_takes_are_told_before_it_is_asked() {
    let of = |shown: &str, server: &str| {
        with(|case| {
            case.names = vec![name(shown, Some(ChallengeType::Http01))];
            let issuer = case.issuers[0].issuer.as_mut().unwrap();
            issuer.spec.acme.as_mut().unwrap().server = server.to_owned();
        })
    };
    let public = "https://acme-v02.api.letsencrypt.org/directory";
    check(&of("www.example.com", public), &[]);
    check(&of("-www.example.org", public), &[CauseId::Cfg10]);
    check(&of("printer.local", public), &[CauseId::Cfg12]);
    check(&of("printer.local", "https://ca.example/dir"), &[]);
    check(&of("localhost", public), &[CauseId::Cfg12]);
    check(&of("10.0.0.1", public), &[CauseId::Cfg21]);
    check(&of("10.0.0.1", "https://ca.example/dir"), &[]);
    for public in ["https://acme.zerossl.com/v2/DV90", "https://dv.acme-v02.api.pki.goog/directory"]
    {
        check(&of("printer.local", public), &[CauseId::Cfg12]);
    }
}

#[test]
fn accounts_and_their_keys() {
    let account = |uri: &str| {
        with(|case| {
            case.issuers[0].directory = Some(directory(DirectoryAnswer::Directory {
                profiles: Vec::new(),
                caa_identities: Vec::new(),
                external_account_required: false,
                new_account: "https://ca.example/new-account".into(),
            }));
            let issuer = case.issuers[0].issuer.as_mut().unwrap();
            issuer.status.acme = serde_json::from_value(json!({"uri": uri})).unwrap();
        })
    };
    check(&account("https://ca.example/acct/1"), &[]);
    check(&account("https://staging.example/acct/1"), &[CauseId::Acc03]);
    let secret = |purpose: SecretUse, state: SecretState| {
        with(|case| {
            let name = ObjectName::new("web", "account");
            let (entry, elsewhere) = ("tls.key".to_owned(), Vec::new());
            case.issuers[0].secrets = vec![SecretCase { purpose, name, entry, state, elsewhere }];
        })
    };
    check(&secret(SecretUse::AccountKey, SecretState::Missing), &[]);
    check(&secret(SecretUse::AccountKey, SecretState::Empty), &[CauseId::Acc06]);
    check(&secret(SecretUse::Binding, SecretState::Missing), &[CauseId::Acc07]);
    check(&secret(SecretUse::Provider, SecretState::NoEntry(vec!["a".into()])), &[CauseId::Prv01]);
    check(&secret(SecretUse::Provider, SecretState::Present), &[]);
}

fn directory(answer: DirectoryAnswer) -> DirectoryCase {
    let at = "2026-11-24T22:00:00Z".parse().unwrap();
    DirectoryCase { url: "https://ca.example/dir".into(), at, answer }
}

#[test]
fn what_a_directory_answers_is_told_at_its_issuer() {
    let of =
        |answer: DirectoryAnswer| with(|case| case.issuers[0].directory = Some(directory(answer)));
    check(&of(DirectoryAnswer::Untrusted("self-signed".into())), &[CauseId::Env02]);
    check(&of(DirectoryAnswer::Unreachable("refused".into())), &[CauseId::Env03]);
    check(&of(DirectoryAnswer::NoSuchHost("no such host".into())), &[CauseId::Cfg03]);
    check(&of(DirectoryAnswer::NotAcme("<html>".into())), &[CauseId::Cfg03]);
    let problem = |status| DirectoryAnswer::Refused(Problem { status, ..Problem::default() });
    check(&of(problem(404)), &[CauseId::Cfg03]);
    check(&of(problem(503)), &[CauseId::Lim08]);
}

/// A problem of the authorization that the CA holds.
pub(super) fn refused(kind: ChallengeType, problem: &str, detail: &str) -> Case {
    with(|case| {
        case.names = vec![name("www.example.com", Some(kind))];
        case.certificates[0].held = vec![HeldCase {
            name: "www.example.com".into(),
            status: "invalid".into(),
            offered: vec![kind.acme_name().into()],
            problem: Some(Problem {
                kind: format!("urn:ietf:params:acme:error:{problem}"),
                detail: detail.into(),
                status: 403,
                ..Problem::default()
            }),
            at: case.at,
            ..HeldCase::default()
        }];
    })
}

#[test]
fn the_limits_of_a_ca_are_told_apart() {
    for (detail, cause) in [
        (
            "too many certificates (5) already issued for this exact set of identifiers in the last 168h",
            CauseId::Lim01,
        ),
        (
            "too many certificates (50) already issued for \"example.com\" in the last 168h",
            CauseId::Lim02,
        ),
        (
            "too many failed authorizations (5) for \"www.example.com\" in the last 1h",
            CauseId::Lim03,
        ),
        ("too many new orders (300) from this account in the last 3h", CauseId::Lim04),
        ("too many new registrations (10) from this IP address in the last 3h", CauseId::Lim05),
        (
            "Your account is temporarily prevented from requesting certificates for www.example.com. Please visit: https://x/y",
            CauseId::Lim06,
        ),
        ("Service busy; retry later.", CauseId::Lim07),
    ] {
        let case = refused(ChallengeType::Http01, "rateLimited", detail);
        check(&case, &[cause]);
        assert_eq!(judge(&case)[0].facts["DETAIL"], detail);
    }
}

#[test]
fn what_a_ca_saw_in_the_record_is_told_apart() {
    for (problem, detail, cause) in [
        ("unauthorized", "No TXT record found at _acme-challenge.www.example.com", CauseId::D0101),
        (
            "dns",
            "DNS problem: NXDOMAIN looking up TXT for _acme-challenge.www.example.com",
            CauseId::D0101,
        ),
        (
            "unauthorized",
            "Incorrect TXT record \"x\" (and 1 more) found at _acme-challenge.www.example.com",
            CauseId::D0111,
        ),
        (
            "dns",
            "DNS problem: SERVFAIL looking up TXT for _acme-challenge.www.example.com",
            CauseId::Dns01,
        ),
        ("dns", "During secondary validation: DNS problem: query timed out", CauseId::Dns05),
        ("caa", "CAA record for example.com prevents issuance", CauseId::Caa01),
        ("caa", "Error finalizing order :: Rechecking CAA for \"a\"", CauseId::Caa09),
        ("rejectedIdentifier", "forbidden by policy", CauseId::D0101),
    ] {
        check(&refused(ChallengeType::Dns01, problem, detail), &[cause]);
    }
    let secondary =
        "During secondary validation: 192.0.2.1: Fetching http://x/: Connection refused";
    check(&refused(ChallengeType::Http01, "connection", secondary), &[CauseId::Http29]);
}

pub(super) fn observation(seen: CheckResult) -> Observation {
    Observation {
        vantage: Vantage::ThisMachine,
        at: "2026-11-24T22:00:00Z".parse().unwrap(),
        url: "http://www.example.com/".into(),
        hops: Vec::new(),
        seen,
    }
}

pub(super) fn look(address: &str, is_answer: bool) -> AddressProbe {
    let body = if is_answer { "token.thumb" } else { "shop" };
    AddressProbe {
        address: address.parse().unwrap(),
        observation: observation(CheckResult::Reply {
            status: 200,
            body: body.into(),
            truncated: false,
            is_declined: false,
        }),
        expected: "token.thumb".into(),
        is_expected: true,
        is_answer,
        sighting: None,
        disagreement: None,
        web: None,
        arrivals: Vec::new(),
    }
}

#[test]
fn addresses_are_judged_each_and_together() {
    let of = |looks: Vec<AddressProbe>| by(ChallengeType::Http01, |name| name.looks = looks);
    check(&of(vec![look("192.0.2.1:80", true)]), &[]);
    check(
        &of(vec![look("[2001:db8::1]:80", false), look("192.0.2.1:80", true)]),
        &[CauseId::Http06],
    );
    let two = of(vec![look("192.0.2.1:80", true), look("192.0.2.2:80", false)]);
    assert!(judge(&two).iter().any(|finding| finding.cause == CauseId::Http07), "{two:?}");
    let other = |body: &str| {
        let mut look = look("192.0.2.1:80", false);
        look.observation.seen = CheckResult::Reply {
            status: 200,
            body: body.into(),
            truncated: false,
            is_declined: false,
        };
        of(vec![look])
    };
    check(&other("token.another"), &[CauseId::Acc05]);
    check(&other("<p>token.thumb</p>"), &[CauseId::Http23]);
}

#[test]
fn a_name_without_a_public_address_is_not_reached() {
    let of = |addresses: LookUp<Vec<std::net::IpAddr>>| {
        by(ChallengeType::Http01, |name| {
            name.addresses = addresses;
            name.is_looked_for_in_dns = true;
        })
    };
    check(&of(LookUp::NoName("no such host".into())), &[CauseId::Http01]);
    check(&of(LookUp::NoRecord("no A".into())), &[CauseId::Http01]);
    check(&of(LookUp::Dangling { target: "gone.example".into() }), &[CauseId::Http01]);
    check(&of(LookUp::Code("SERVFAIL".into())), &[CauseId::Dns01]);
    let private = by(ChallengeType::Http01, |name| {
        let address = "10.0.0.1".parse().unwrap();
        name.addresses = LookUp::Found(vec![address]);
        name.reserved = vec![(address, "[RFC1918]: Private-Use".into())];
        name.is_looked_for_in_dns = true;
    });
    check(&private, &[]);
    let mut public = private;
    let issuer = public.issuers[0].issuer.as_mut().unwrap();
    issuer.spec.acme.as_mut().unwrap().server =
        "https://acme-v02.api.letsencrypt.org/directory".into();
    check(&public, &[CauseId::Http02]);
}

/// Builds a case with the replies of name servers about the record, where `digest` is expected.
pub(super) fn said(servers: &[NameServerAnswer]) -> Case {
    by(ChallengeType::Dns01, |name| {
        let servers = servers.iter().enumerate().map(|(number, said)| NameServer {
            name: format!("ns{number}.example."),
            address: None,
            said: said.clone(),
            ttl: None,
        });
        let seen = CheckResult::Records {
            name: "_acme-challenge.www.example.com.".into(),
            zone: "example.com.".into(),
            servers: servers.collect(),
        };
        name.answer = Some(AnswerProbe {
            expected: "digest".into(),
            observations: vec![observation(seen)],
            reason: Some("not everywhere".into()),
            sighting: None,
        });
    })
}

#[test]
fn what_the_name_servers_say_together_is_told_apart() {
    let texts =
        |all: &[&str]| NameServerAnswer::Texts(all.iter().map(|text| (*text).to_owned()).collect());
    check(&said(&[NameServerAnswer::NoName, NameServerAnswer::NoText]), &[CauseId::D0101]);
    check(&said(&[texts(&["digest"]), NameServerAnswer::NoName]), &[CauseId::D0102]);
    check(&said(&[texts(&["other"]), texts(&["other"])]), &[CauseId::D0111]);
    check(&said(&[texts(&["\"digest\""])]), &[CauseId::D0112]);
    check(
        &said(&[texts(&["digest"]), NameServerAnswer::Code("REFUSED".into())]),
        &[CauseId::Dns03],
    );
    check(
        &said(&[texts(&["digest"]), NameServerAnswer::Nothing("timed out".into())]),
        &[CauseId::Dns04],
    );
    for (heard, expected) in [
        (texts(&["\"digest\""]), (CauseId::D0112, Grade::Certain)),
        (NameServerAnswer::NoName, (CauseId::D0101, Grade::Possible)),
    ] {
        let mut fresh = said(&[heard]);
        let mut of = cluster(|case| says(case, "")).certificates.remove(0);
        let mut pending = of.challenges.remove(0);
        pending.status.presented_at = Some(fresh.at.into());
        fresh.names[0].pending = Some(pending);
        let found = judge(&fresh).remove(0);
        assert_eq!((found.cause, found.grade), expected);
    }
    let mut doubled = said(&[NameServerAnswer::NoName]);
    doubled.names[0].doubled = Some("_acme-challenge.www.example.com.www.example.com".into());
    let found = judge(&doubled);
    assert!(found.iter().any(|finding| finding.cause == CauseId::D0110), "{found:?}");
}

/// CAA records at `example.com`, of a CA that is called `ca.example`.
fn caa(shown: &str, records: &[(bool, &str, &str)]) -> Case {
    let records = records.iter().map(|(is_critical, tag, value)| CaaProperty {
        is_critical: *is_critical,
        tag: (*tag).to_owned(),
        value: (*value).to_owned(),
    });
    let records: CaaRecordSet = records.collect();
    with(|case| {
        case.issuers[0].directory = Some(directory(DirectoryAnswer::Directory {
            profiles: Vec::new(),
            caa_identities: vec!["ca.example".into()],
            external_account_required: false,
            new_account: "https://ca.example/new-account".into(),
        }));
        let issuer = case.issuers[0].issuer.as_mut().unwrap();
        let account = json!({"uri": "https://ca.example/acct/1"});
        issuer.status.acme = serde_json::from_value(account).unwrap();
        let kind =
            if shown.starts_with('*') { ChallengeType::Dns01 } else { ChallengeType::Http01 };
        case.names = vec![name(shown, Some(kind))];
        let level = |name: &str, records| CaaLevel { name: name.into(), records, at: case.at };
        case.names[0].caa = vec![
            level("www.example.com", LookUp::Found(CaaRecordSet::default())),
            level("example.com", LookUp::Found(records)),
        ];
    })
}

#[test]
fn caa_is_read_as_a_ca_reads_it() {
    let host = "www.example.com";
    check(&caa(host, &[(false, "issue", "ca.example")]), &[]);
    check(&caa(host, &[(false, "iodef", "mailto:a@b")]), &[]);
    check(&caa(host, &[(false, "issue", "other.example")]), &[CauseId::Caa01]);
    check(&caa(host, &[(false, "issue", ";")]), &[CauseId::Caa01]);
    check(&caa(host, &[(true, "tbs", "x"), (false, "issue", "ca.example")]), &[CauseId::Caa02]);
    check(&caa(host, &[(false, "issue", "https://ca.example/")]), &[CauseId::Caa04]);
    let account = |uri: &str| format!("ca.example; accounturi={uri}");
    check(&caa(host, &[(false, "issue", &account("https://ca.example/acct/1"))]), &[]);
    check(
        &caa(host, &[(false, "issue", &account("https://ca.example/acct/2"))]),
        &[CauseId::Caa05],
    );
    check(
        &caa(host, &[(false, "issue", "ca.example; validationmethods=dns-01")]),
        &[CauseId::Caa06],
    );
    check(&caa(host, &[(false, "issue", "ca.example; validationmethods=dns-01,http-01")]), &[]);
    let wild = [(false, "issue", "ca.example"), (false, "issuewild", ";")];
    check(&caa("*.example.com", &wild), &[CauseId::Caa07]);
    check(&caa(host, &wild), &[]);
    let mut lost = caa(host, &[]);
    lost.names[0].caa[1].records = LookUp::Code("SERVFAIL".into());
    check(&lost, &[CauseId::Caa03]);
}

#[test]
fn whoever_waits_is_told_for_what() {
    let queued = |waits: Obstacle| {
        with(|case| {
            let challenge = ObjectName::new("web", "www-1-2-3");
            let domain = "www.example.com".to_owned();
            let is_of_same_order = false;
            case.queue = vec![QueuedCase { challenge, domain, waits, is_of_same_order }];
        })
    };
    check(&queued(Obstacle::Slot { slots: 60 }), &[CauseId::Ctl04]);
    check(&queued(Obstacle::Lock { holder: ObjectName::new("shop", "c") }), &[CauseId::Ctl05]);
    check(&queued(Obstacle::Nothing), &[]);
}

#[test]
fn a_pause_is_explained_by_what_has_failed() {
    let paused = |case: &mut Case| {
        case.certificates[0].next_try = Some("2026-11-24T23:00:00Z".parse().unwrap());
    };
    check(&with(paused), &[CauseId::Ord02]);
    let mut both = refused(ChallengeType::Dns01, "unauthorized", "No TXT record found at x");
    paused(&mut both);
    let found = judge(&both);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(
        (found[0].cause, found[0].explains.as_slice()),
        (CauseId::D0101, &[CauseId::Ord02][..])
    );
}

#[test]
fn a_pause_is_explained_by_the_end_of_an_order_or_a_request() {
    type Change = Box<dyn Fn(&mut CertificateCase)>;
    let ended =
        |state: State| move |of: &mut CertificateCase| of.orders[0].status.state = Some(state);
    let denied = |of: &mut CertificateCase| {
        let condition =
            json!([{"type": "Denied", "status": "True", "reason": "Policy", "message": "no"}]);
        of.requests[0].status.conditions = serde_json::from_value(condition).unwrap();
        of.orders.clear();
    };
    let all: [(CauseId, Change); 3] = [
        (CauseId::Ord03, Box::new(denied)),
        (CauseId::Ord04, Box::new(ended(State::Errored))),
        (CauseId::Ord06, Box::new(ended(State::Expired))),
    ];
    for (cause, end) in all {
        let case = cluster(|case| {
            says(case, "");
            let of = &mut case.certificates[0];
            of.challenges.clear();
            of.next_try = Some("2026-11-24T23:00:00Z".parse().unwrap());
            end(of);
        });
        check(&case, &[cause]);
        assert_eq!(judge(&case)[0].explains, [CauseId::Ord02]);
    }
}

#[test]
fn an_issuer_that_fails_explains_the_certificates_that_wait_for_it() {
    let case = with(|case| {
        let answer = DirectoryAnswer::Untrusted("unknown issuer".into());
        case.issuers[0].directory = Some(directory(answer));
        let conditions = json!([{"type": "Ready", "status": "False", "reason": "ErrRegisterACMEAccount", "message": "x509"}]);
        let issuer = case.issuers[0].issuer.as_mut().unwrap();
        issuer.status.conditions = serde_json::from_value(conditions).unwrap();
    });
    check(&case, &[CauseId::Env02]);
}

#[test]
fn silence_is_not_health_and_not_a_fault_either() {
    let unseen = |is_forbidden| {
        with(|case| {
            let (what, why) = ("Secret web/account".to_owned(), "forbidden".to_owned());
            case.unseen = vec![Unobserved { what, why, is_forbidden }];
        })
    };
    check(&unseen(true), &[CauseId::Int01]);
    check(&unseen(false), &[CauseId::Int01]);
    assert!(judge(&unseen(true)).iter().all(|finding| !finding.is_error()));
}

#[test]
fn of_a_server_with_several_addresses_those_that_are_not_heard_do_not_count() {
    let mut case = said(&[NameServerAnswer::NoName, NameServerAnswer::NoRoute]);
    let look = &mut case.names[0].answer.as_mut().unwrap().observations[0];
    let CheckResult::Records { servers, .. } = &mut look.seen else { unreachable!() };
    servers[1].name = servers[0].name.clone();
    check(&case, &[CauseId::D0101]);
}

#[test]
fn names_of_other_issuers_and_those_that_are_proven_are_not_judged() {
    let mut unknown = by(ChallengeType::Http01, |name| {
        name.kind = None;
        name.addresses = LookUp::NoName("no such host".into());
    });
    check(&unknown, &[]);
    unknown.names[0].issuer = None;
    check(&unknown, &[CauseId::Http01]);
    let mut valid = refused(ChallengeType::Http01, "unauthorized", "of another challenge");
    valid.certificates[0].held[0].status = "valid".into();
    check(&valid, &[]);
}

#[test]
fn what_is_issued_has_no_old_faults() {
    let mut issued = refused(ChallengeType::Http01, "rateLimited", "too many new orders");
    issued.certificates[0].due = None;
    check(&issued, &[]);
}
