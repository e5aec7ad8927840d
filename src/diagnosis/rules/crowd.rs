//! Many Certificates at once, and two faults in one: each root is named for what it is about, and for nothing else.

use std::collections::BTreeMap;

use serde_json::Value;

use super::judge;
use super::tests::{by, case, look, said};
use crate::diagnosis::case::Case;
use crate::diagnosis::case::name::LookUp;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::Finding;
use crate::model::ChallengeType;
use crate::model::cause::Symptom;
use crate::model::observation::{CheckResult, NameServerAnswer};

/// A case of one Certificate whose name meets a symptom at its one address.
fn met(symptom: Symptom) -> Case {
    by(ChallengeType::Http01, |name| {
        let mut look = look("192.0.2.1:80", false);
        look.observation.seen = CheckResult::Nothing { symptom: Some(symptom), why: "so".into() };
        look.sighting = Some(symptom.into());
        name.looks = vec![look];
    })
}

/// A case of one Certificate whose name has these addresses.
fn found(addresses: LookUp<Vec<std::net::IpAddr>>) -> Case {
    by(ChallengeType::Http01, |name| name.addresses = addresses)
}

/// Twenty cases of one Certificate each, and the cause that each shows.
fn faults() -> Vec<(CauseId, Case)> {
    use {CauseId as Id, Symptom as S};
    let texts =
        |all: &[&str]| NameServerAnswer::Texts(all.iter().map(|text| (*text).to_owned()).collect());
    let mut all: Vec<(CauseId, Case)> = [
        (Id::Http04, S::Unreachable),
        (Id::Http05, S::ConnectionRefused),
        (Id::Http11, S::Declined),
        (Id::Http14, S::NoTls),
        (Id::Http15, S::RedirectNotFollowed),
        (Id::Http16, S::Forbidden),
        (Id::Http20, S::NotHttp),
        (Id::Http22, S::AnswerAltered),
        (Id::Http31, S::NoReply),
        (Id::Http32, S::ServerError),
        (Id::Http37, S::TlsForwarded),
        (Id::Http38, S::PathChanged),
        (Id::Acc05, S::OtherAccount),
    ]
    .into_iter()
    .map(|(cause, symptom)| (cause, met(symptom)))
    .collect();
    all.extend([
        (Id::Http01, found(LookUp::NoName("no such host".into()))),
        (Id::Dns01, found(LookUp::Code("SERVFAIL".into()))),
        (Id::D0101, said(&[NameServerAnswer::NoName, NameServerAnswer::NoText])),
        (Id::D0102, said(&[texts(&["digest"]), NameServerAnswer::NoName])),
        (Id::D0111, said(&[texts(&["other"]), texts(&["other"])])),
        (Id::D0112, said(&[texts(&["\"digest\""])])),
        (Id::D0107, said(&[NameServerAnswer::Referral("sub.example.com.".into())])),
    ]);
    all
}

/// Builds the case of another Certificate and another name.
fn numbered(case: &Case, number: usize) -> Case {
    fn rename(value: &mut Value, number: usize) {
        match value {
            Value::String(text) => *text = text.replace("www", &format!("www{number}")),
            Value::Array(all) => all.iter_mut().for_each(|one| rename(one, number)),
            Value::Object(fields) => {
                for (field, value) in fields {
                    match value {
                        Value::String(text) if field == "uid" => text.push_str(&number.to_string()),
                        _ => rename(value, number),
                    }
                }
            }
            _ => {}
        }
    }
    let mut value = serde_json::to_value(case).unwrap();
    rename(&mut value, number);
    serde_json::from_value(value).unwrap()
}

/// The errors, each with what it is about, in a stable order.
fn errors(case: &Case) -> Vec<(CauseId, String)> {
    let mut all: Vec<_> = judge(case)
        .into_iter()
        .filter(Finding::is_error)
        .map(|finding| (finding.cause, finding.subject))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn sixty_of_three_hundred_that_are_stuck_are_told_by_their_twenty_roots() {
    let well = {
        let mut case = case();
        case.certificates[0].due = None;
        case.names.clear();
        case
    };
    let faults = faults();
    assert_eq!(faults.len(), 20);
    let mut crowd = Case { certificates: Vec::new(), names: Vec::new(), ..case() };
    let mut expected: BTreeMap<CauseId, usize> = BTreeMap::new();
    for number in 0..300 {
        let of = if number % 5 == 0 {
            let (cause, of) = &faults[number / 5 % faults.len()];
            // What is graded as possible alone is no error.
            *expected.entry(*cause).or_default() += errors(of).len();
            of
        } else {
            &well
        };
        let of = numbered(of, number);
        crowd.certificates.extend(of.certificates);
        crowd.names.extend(of.names);
    }
    expected.retain(|_, count| *count > 0);
    assert!(expected.len() >= 18, "{expected:?}");
    let mut told: BTreeMap<CauseId, usize> = BTreeMap::new();
    for (cause, _) in errors(&crowd) {
        *told.entry(cause).or_default() += 1;
    }
    assert_eq!(told, expected);
}

#[test]
fn two_names_of_one_certificate_have_each_its_own_root() {
    let faults = faults();
    for (one, (_, first)) in faults.iter().enumerate() {
        for (other, (_, second)) in faults.iter().enumerate() {
            let (first, second) = (numbered(first, 1), numbered(second, 2));
            let mut expected = [errors(&first), errors(&second)].concat();
            expected.sort_unstable();
            let mut both = first;
            let added = second.certificates[0].certificate.spec.dns_names.clone();
            both.certificates[0].certificate.spec.dns_names.extend(added);
            both.names.extend(second.names);
            assert_eq!(errors(&both), expected, "{one} and {other}");
        }
    }
}
