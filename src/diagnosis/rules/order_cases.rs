//! Cases of orders, put together by hand: names that a CA has refused, waits for others and for a CA.

use jiff::SignedDuration;
use serde_json::json;

use super::cases::ordered;
use super::judge;
use super::tests::{check, held, name};
use crate::diagnosis::case::authority::HeldCase;
use crate::diagnosis::case::{QueuedCase, RunningCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::Grade;
use crate::model::cause::About;
use crate::model::memory::{Holder, Memory};
use crate::model::{ChallengeType, ObjectName, Problem};
use crate::reconcile::schedule::Obstacle;

const LONG_AGO: &str = "2026-11-24T21:30:00Z";
const NOW: &str = "2026-11-24T21:55:00Z";
const REASON: &str = "wrong status code '404', expected '200'";

#[test]
fn a_ca_that_has_all_it_needs_is_late_after_minutes_alone() {
    let of = |state: &str, validated: &str| {
        let mut case = ordered(|_, order, challenge| {
            order["status"]["state"] = json!(state);
            challenge["status"]["state"] = json!("valid");
        });
        let held =
            HeldCase { validated: validated.parse().ok(), ..held("www.example.com", vec![]) };
        case.certificates[0].held = vec![HeldCase { status: "valid".into(), ..held }];
        case
    };
    for (state, cause) in [("pending", CauseId::Ord16), ("processing", CauseId::Ord09)] {
        for (validated, is_late) in
            [("2026-11-24T21:50:00Z", true), ("2026-11-24T21:58:00Z", false), ("", false)]
        {
            let case = of(state, validated);
            check(&case, &[cause]);
            assert_eq!(judge(&case)[0].is_error(), is_late, "{state} {validated}");
        }
        // It has said when to ask again.
        let mut asked = of(state, "2026-11-24T21:50:00Z");
        let next_try = Some(asked.at + SignedDuration::from_mins(3));
        let memory = Memory { next_try, ..Memory::default() };
        memory.write(Holder::Order, &mut asked.certificates[0].orders[0].metadata.annotations);
        assert!(!judge(&asked)[0].is_error(), "{state}");
    }
}

#[test]
fn a_wait_behind_what_is_stuck_for_minutes_is_an_error_that_names_its_cause() {
    let of = |waits: &Obstacle, made: &str, ahead: &[(&str, &str)]| {
        let mut case = ordered(|_, _, challenge| {
            challenge["metadata"]["creationTimestamp"] = json!(made);
        });
        let running = ahead.iter().zip(1..).map(|((since, reason), number)| RunningCase {
            challenge: ObjectName::new("shop", format!("c{number}")),
            domain: "www.example.com".into(),
            reason: (*reason).to_owned(),
            since: serde_json::from_value(json!(since)).ok(),
        });
        case.running = running.collect();
        case.queue = vec![QueuedCase {
            challenge: ObjectName::new("web", "www-1-1-1"),
            domain: "www.example.com".into(),
            waits: waits.clone(),
            is_of_same_order: false,
        }];
        case
    };
    let lock = Obstacle::Lock { holder: ObjectName::new("shop", "c1") };
    for (waits, ahead, is_stuck) in [
        (&lock, &[(LONG_AGO, REASON), (NOW, "")][..], true),
        (&lock, &[(LONG_AGO, "")], false),
        (&lock, &[(NOW, REASON)], false),
        (&Obstacle::Slot { slots: 2 }, &[(LONG_AGO, REASON), (LONG_AGO, REASON)], true),
        (&Obstacle::Slot { slots: 2 }, &[(LONG_AGO, REASON), (NOW, "")], false),
    ] {
        let found = judge(&of(waits, LONG_AGO, ahead));
        let finding = found.iter().find(|it| matches!(it.cause, CauseId::Ctl04 | CauseId::Ctl05));
        let finding = finding.unwrap();
        assert_eq!(finding.is_error(), is_stuck, "{ahead:?} {finding:#?}");
        let named = finding.evidence.iter().filter(|one| one.came.starts_with("HTTP-"));
        assert_eq!(named.count(), usize::from(is_stuck), "{finding:#?}");
    }
    let fresh = judge(&of(&lock, NOW, &[(LONG_AGO, REASON)]));
    assert!(fresh.iter().all(|it| !it.is_error()), "{fresh:#?}");
}

#[test]
fn a_name_that_no_public_ca_takes_is_blamed_once_a_ca_of_ones_own_has_refused_it() {
    let of = |shown: &str, kind: &str| {
        let mut case = ordered(|_, order, challenge| {
            order["spec"]["dnsNames"] = json!([shown]);
            order["status"] = json!({"state": "errored", "reason": "Failed to create Order"});
            challenge["spec"]["dnsName"] = json!(shown);
        });
        case.names = vec![name(shown, Some(ChallengeType::Http01))];
        let of = &mut case.certificates[0];
        of.certificate.spec.dns_names = vec![shown.to_owned()];
        of.challenges.clear();
        let kind = format!("urn:ietf:params:acme:error:{kind}");
        let problem = Problem { kind, status: 400, detail: "odd".into(), ..Problem::default() };
        let order = &mut of.orders[0];
        let problem = Some(About::new(&order.status.reason, problem));
        let memory = Memory { problem, ..Memory::default() };
        memory.write(Holder::Order, &mut order.metadata.annotations);
        judge(&case).first().map(|first| (first.cause, first.grade, first.is_error()))
    };
    let refused = Some((CauseId::Cfg10, Grade::Likely, true));
    assert_eq!(of("my_host.example.org", "malformed"), refused);
    let other = of("my_host.example.org", "serverInternal");
    assert!(other.is_some_and(|(cause, ..)| cause != CauseId::Cfg10), "{other:?}");
    let good = of("www.example.org", "malformed");
    assert!(good.is_some_and(|(cause, ..)| cause != CauseId::Cfg10), "{good:?}");
}
