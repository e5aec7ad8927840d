//! LIM, and all other refusals of a CA: every problem document that was found, once.

use std::net::IpAddr;

use jiff::Timestamp;

use super::{problem, symptom, validated};
use crate::diagnosis::case::Case;
use crate::diagnosis::catalogue::CauseSeverity;
use crate::diagnosis::catalogue::id::{CauseFamily, CauseId};
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, evidence_of_answer, stored};
use crate::diagnosis::words::facts::{self, StaleAnswer};
use crate::diagnosis::words::foreign::{self, Perspective};
use crate::model::cause::{Cause, Symptom};
use crate::model::memory::{Holder, Memory};
use crate::model::{Challenge, ChallengeType, Problem, State, reserved};

pub(super) const RULES: &[FaultRule] = &[authority_says_no];

/// Problem of a CA, with its subject.
pub(super) struct AuthorityProblem {
    pub(super) problem: Problem,
    subject: String,
    pub(super) evidence: Evidence,
    /// Requests of the CA's validation, if the CA lists them.
    looks: Vec<Evidence>,
    /// Type of the challenge that the problem is about, if any.
    kind: Option<ChallengeType>,
    pub(super) challenge: Option<Challenge>,
    /// Time of the next try, if the CA named a time.
    next_try: Option<Timestamp>,
    /// Whether the CA has shown the problem in a validation that is not over.
    is_open: bool,
}

impl AuthorityProblem {
    /// Builds the entry for a problem of a whole order.
    fn of_order(problem: Problem, subject: String, evidence: Evidence) -> Self {
        let (looks, kind, challenge, next_try, is_open) = Default::default();
        Self { problem, subject, evidence, looks, kind, challenge, next_try, is_open }
    }
}

fn authority_says_no(case: &Case, found: &mut Vec<Finding>) {
    for told in problems(case) {
        let Some((cause, grade)) = cause(&told, case.in_cluster) else { continue };
        let problem = &told.problem;
        let detail = match told.next_try.filter(|at| *at > case.at) {
            Some(at) => format!("{}; next try at {at:.0}", problem.detail),
            None => problem.detail.clone(),
        };
        let kept = told.challenge.as_ref().and_then(|challenge| {
            Some((challenge, facts::kept_by_resolver(challenge, &told.problem)?))
        });
        if let Some((challenge, kept)) = kept {
            found.push(stale_resolver_finding(case, &told, challenge, kept));
            continue;
        }
        let finding = Finding::new(cause, grade, &told.subject, told.evidence)
            .shown_by(told.looks)
            .with("DOMAIN", &told.subject)
            .with("TYPE", problem.short_kind())
            .with("URL", format!("the validation of {} by the CA", told.subject))
            .with("DETAIL", detail);
        let met = told.challenge.as_ref().and_then(|of| problem::met(of, problem));
        if met == Some(Symptom::NoAddress) && has_address_now(case, &told.subject) {
            // The fault is mended since, unless a resolver of the CA remembers the old state.
            found.push(Finding { grade: Grade::Possible, ..finding });
            continue;
        }
        let is_over = told.kind.is_some() && !told.is_open && is_of_validation(problem);
        let is_met = matches!(
            cause.family(),
            CauseFamily::Dns | CauseFamily::D01 | CauseFamily::Http | CauseFamily::Tls
        );
        let finding =
            if is_over && is_met { finding.meaning(CauseSeverity::Error) } else { finding };
        // The failure of the validation is certain; which server answered the CA is not.
        let is_unread = is_over && problem.short_kind() == "connection";
        found.push(finding.failing(met.is_some() || is_unread));
    }
}

/// Reports whether a server of a name's public zone now gives an address that a CA can reach.
fn has_address_now(case: &Case, subject: &str) -> bool {
    let is_public = |record: &String| {
        record.parse::<IpAddr>().is_ok_and(|address| reserved::block(address).is_none())
    };
    let mut names = case.names.iter().filter(|name| name.shown() == subject);
    names.any(|name| {
        let domain = format!("{}.", name.name);
        let dns = name.dns.as_ref();
        let replies = ["A", "AAAA"].into_iter().filter_map(|kind| Some(dns?.asked(&domain, kind)));
        let mut replies = replies.flatten().filter(|reply| reply.is_by_public_server());
        replies.any(|it| it.heard.answer().is_some_and(|it| it.records.iter().any(is_public)))
    })
}

/// Reports whether the type of a problem says what a validation met (RFC 8555 §6.7).
fn is_of_validation(problem: &Problem) -> bool {
    matches!(
        problem.short_kind(),
        "connection" | "unauthorized" | "dns" | "tls" | "incorrectResponse" | "rejectedIdentifier"
    )
}

/// D01-03, D01-19, D01-22: the CA's view was outdated when its validation was asked for, by this program's self-check.
fn stale_resolver_finding(
    case: &Case,
    told: &AuthorityProblem,
    challenge: &Challenge,
    kept: StaleAnswer,
) -> Finding {
    let spec = &challenge.spec;
    let seen = facts::seen_everywhere_at(challenge).map(|at| {
        let asked = format!("Challenge {}: validation requested", challenge.name());
        stored(asked, at, "every name server had the value")
    });
    let all = case.certificates.iter().flat_map(|of| &of.challenges);
    let mut others = all.filter(|other| other.spec.key != spec.key);
    // A quoted value of an earlier challenge leaves no doubt.
    let quoted =
        others.any(|other| told.problem.detail.contains(&format!("\"{}\"", other.spec.key)));
    let (cause, grade) = match kept {
        StaleAnswer::Absence if is_inner_zone(case, &spec.dns_name) => {
            (CauseId::D0119, Grade::Likely)
        }
        StaleAnswer::Absence => (CauseId::D0103, Grade::Likely),
        StaleAnswer::Values if quoted => (CauseId::D0122, Grade::Certain),
        StaleAnswer::Values => (CauseId::D0122, Grade::Likely),
    };
    Finding::new(cause, grade, &told.subject, told.evidence.clone())
        .shown_by(seen)
        .with("DOMAIN", &told.subject)
        .with("RESOLVER", "the CA's resolver")
        .with("RECORD", spec.record_name().trim_end_matches('.'))
        .with("SECONDS", describe_absence_ttl(case, &spec.dns_name))
        .with("DETAIL", &told.problem.detail)
        // The authorization has failed by the outdated answer.
        .meaning(CauseSeverity::Error)
}

/// Reports whether each server that was asked for a name's zone has an address that cannot be reached from outside: the
/// servers may have another zone than the zone that the CA is led to.
fn is_inner_zone(case: &Case, name: &str) -> bool {
    let zones = case.names.iter().filter(|one| one.name == name);
    let mut zones = zones.filter_map(|one| one.dns.as_ref()?.zone.as_ref());
    zones.any(|zone| {
        let mut places = zone.servers.iter().filter_map(|server| server.address).peekable();
        places.peek().is_some() && places.all(|at| reserved::block(at.ip()).is_some())
    })
}

/// Describes how long resolvers may keep a name's absence, by its zone's SOA record (RFC 2308 §5), and after which lookup.
fn describe_absence_ttl(case: &Case, name: &str) -> String {
    const BY_NSEC: &str = " (by NSEC, RFC 8198, even if that very name was never looked up)";
    let mut looks = case.names.iter().filter(|one| one.name == name);
    let zone = looks.find_map(|one| one.dns.as_ref()?.zone.as_ref());
    let by_nsec = if zone.is_some_and(|zone| zone.ds_tags.is_empty()) { "" } else { BY_NSEC };
    let minimum = zone.and_then(|zone| {
        let soa = zone.servers.iter().find_map(|server| server.soa.answer())?;
        let minimum = soa.records.first()?.rsplit(' ').next()?.parse::<u32>().ok()?;
        Some(soa.ttl.map_or(minimum, |ttl| ttl.min(minimum)))
    });
    match minimum {
        Some(seconds) => format!("{seconds} s at most, by the zone's SOA record{by_nsec}"),
        None => format!("as long as the minimum of the zone's SOA record says{by_nsec}"),
    }
}

/// Returns the cause that a problem names: of a validation by what the CA met, else by the type first and the text second.
fn cause(told: &AuthorityProblem, in_cluster: bool) -> Option<(CauseId, Grade)> {
    let is_of_validation = is_of_validation(&told.problem);
    // CAA records that cannot be read are the cause, whatever the type of the challenge.
    if is_of_validation && foreign::lost_caa(&told.problem.detail).next().is_some() {
        return Some((CauseId::Caa03, Grade::Certain));
    }
    match told.kind {
        Some(kind) if is_of_validation => validation(told, kind, in_cluster).or_else(|| {
            // Whatever the CA met, it was not the answer.
            let cause = if kind.is_by_record() { CauseId::D0101 } else { CauseId::Http29 };
            let is_known = matches!(told.problem.short_kind(), "rejectedIdentifier" | "connection");
            (told.is_open || is_known).then_some((cause, Grade::Possible))
        }),
        // The CA has not validated at all.
        Some(_) if told.problem.short_kind() == "serverInternal" => {
            Some((CauseId::Lim08, Grade::Certain))
        }
        _ => problem::cause_of(&told.problem),
    }
}

/// Returns the cause of a failed validation, by what the CA says that it met.
fn validation(
    told: &AuthorityProblem,
    kind: ChallengeType,
    in_cluster: bool,
) -> Option<(CauseId, Grade)> {
    let problem = &told.problem;
    if foreign::perspective(problem) == Perspective::Secondary {
        let cause = match foreign::record_fault(problem) {
            _ if !kind.is_by_record() => CauseId::Http29,
            // Elsewhere in the world another copy of the zone was asked.
            Some(foreign::RecordFault::None | foreign::RecordFault::Others) => CauseId::D0102,
            _ => CauseId::Dns05,
        };
        return Some((cause, Grade::Likely));
    }
    if kind.is_by_record() {
        return Some(match foreign::record_fault(problem) {
            Some(foreign::RecordFault::None) => (CauseId::D0101, Grade::Likely),
            Some(foreign::RecordFault::Others) => (CauseId::D0111, Grade::Certain),
            Some(fault) => lookup(fault),
            None => return None,
        });
    }
    if let Some(fault) = foreign::lookup_fault(problem) {
        return Some(lookup(fault));
    }
    let symptom = problem::met(told.challenge.as_ref()?, problem)?;
    Some(symptom::cause_of(symptom, kind, in_cluster))
}

/// Returns the cause of a failed lookup by the CA.
fn lookup(fault: foreign::RecordFault) -> (CauseId, Grade) {
    match fault {
        foreign::RecordFault::Silence => (CauseId::Dns04, Grade::Certain),
        foreign::RecordFault::Signatures => (CauseId::Dns02, Grade::Certain),
        _ => (CauseId::Dns01, Grade::Certain),
    }
}

/// Returns every problem that a CA has sent, once each: from the authorization at the CA first, which is the best source.
pub(super) fn problems(case: &Case) -> Vec<AuthorityProblem> {
    let mut all: Vec<AuthorityProblem> = Vec::new();
    let add = |all: &mut Vec<AuthorityProblem>, one: AuthorityProblem| {
        let same = |known: &AuthorityProblem| {
            known.subject == one.subject && known.problem.kind == one.problem.kind
        };
        if !all.iter().any(same) {
            all.push(one);
        }
    };
    for of in &case.certificates {
        if !of.is_open() {
            continue;
        }
        let before = all.len();
        for held in of.held.iter().filter(|held| held.status != "valid") {
            let Some(problem) = &held.problem else { continue };
            // The CA need not know an authorization any more if its order is over.
            let is_over = of.order().is_some_and(|it| it.status.state == Some(State::Invalid));
            if is_over && held.status.is_empty() && problem.status == 404 {
                continue;
            }
            let challenge = of.challenges.iter().find(|c| c.spec.shown_domain() == held.name);
            let of_name = case.names.iter().find(|name| name.shown() == held.name);
            let kind = challenge.map(|c| c.spec.kind).or_else(|| of_name?.kind);
            let asked = format!("authorization of {} at the CA", held.name);
            let evidence = evidence_of_answer(asked, held.at, problem.to_string());
            let (subject, problem) = (held.name.clone(), problem.clone());
            let (looks, challenge) = (validated::looks(held), challenge.cloned());
            let (next_try, is_open) = (None, matches!(&*held.status, "pending" | "processing"));
            let told = AuthorityProblem {
                problem,
                subject,
                evidence,
                looks,
                kind,
                challenge,
                next_try,
                is_open,
            };
            add(&mut all, told);
        }
        for challenge in of.current_challenges() {
            let Some(Cause::Refused(problem) | Cause::Validation(problem)) =
                facts::cause(challenge)
            else {
                continue;
            };
            let asked = format!("Challenge {}: status.reason", challenge.name());
            add(
                &mut all,
                AuthorityProblem {
                    evidence: problem_evidence(asked, case.at, &problem),
                    looks: Vec::new(),
                    subject: challenge.spec.shown_domain(),
                    problem: *problem,
                    kind: Some(challenge.spec.kind),
                    challenge: Some(challenge.clone()),
                    next_try: None,
                    is_open: !challenge.has_ended(),
                },
            );
        }
        let Some(order) = of.order() else { continue };
        let held = of.held_order.as_ref().and_then(|held| Some((held, held.problem.clone()?)));
        if let Some((held, problem)) = held {
            // A problem of several names is reported with each name.
            let is_known = all[before..].iter().any(|known| known.problem.kind == problem.kind);
            if !is_known {
                let subject = format!("Order {}", order.name());
                let evidence = evidence_of_answer(
                    format!("{subject} at the CA"),
                    held.at,
                    problem.to_string(),
                );
                add(&mut all, AuthorityProblem::of_order(problem, subject, evidence));
            }
            continue;
        }
        let Some(problem) = facts::problem(order) else { continue };
        // The entries of the names say it better.
        if all[before..].iter().any(|known| known.problem.kind == problem.kind) {
            continue;
        }
        let name = order.name();
        let asked = format!("Order {name}: status.reason");
        let evidence = problem_evidence(asked, case.at, &problem);
        let subject = format!("Order {name}");
        let next_try = Memory::read(Holder::Order, &order.metadata.annotations).next_try;
        add(
            &mut all,
            AuthorityProblem { next_try, ..AuthorityProblem::of_order(problem, subject, evidence) },
        );
    }
    all
}

fn problem_evidence(asked: String, at: Timestamp, problem: &Problem) -> Evidence {
    stored(asked, at, problem.to_string())
}
