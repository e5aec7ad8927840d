//! ENV: the network path from this machine to the CA.

use std::net::IpAddr;

use url::Url;

use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::issuer::{DirectoryAnswer, IssuerCase};
use crate::diagnosis::case::{Case, CertificateCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{FaultRule, Finding, Grade, evidence_of_answer, stored};
use crate::diagnosis::words::issuer::{self, ConnectionFault};
use crate::model::ConditionStatus;
use crate::model::common::condition;

pub(super) const RULES: &[FaultRule] = &[authority_is_not_reached, controller_does_not_get_there];

/// Reports whether the issuer's controller has reached the CA, and no open Certificate waits for the CA's answer: a fault
/// on this machine's path is then no fault of the controller's.
fn is_reached_by_others(case: &Case, of: &IssuerCase) -> bool {
    let Some(issuer) = of.issuer.as_ref().filter(|_| case.in_cluster) else { return false };
    let ready = condition(&issuer.status.conditions, "Ready");
    let is_ready = ready.is_some_and(|ready| ready.status == ConditionStatus::True);
    let waits_for_ca = |certificate: &&CertificateCase| {
        let is_its = issuer_key(&certificate.certificate).as_ref() == Some(&of.key);
        let has_order = certificate.order().is_some_and(|order| !order.status.url.is_empty());
        let mut challenges = certificate.current_challenges();
        let is_at_answer = challenges.any(|it| it.status.presented && !it.has_ended());
        is_its && certificate.is_open() && !(has_order && is_at_answer)
    };
    is_ready && !case.certificates.iter().any(|it| waits_for_ca(&it))
}

/// ENV-02, ENV-03, ENV-04: the CA answers this machine, and the controller does not reach it, by the controller's message.
fn controller_does_not_get_there(case: &Case, found: &mut Vec<Finding>) {
    if !case.in_cluster {
        return;
    }
    for of in &case.issuers {
        let Some(issuer) = &of.issuer else { continue };
        let Some(directory) = &of.directory else { continue };
        let is_well = matches!(directory.answer, DirectoryAnswer::Directory { .. });
        let ready = condition(&issuer.status.conditions, "Ready");
        let Some(ready) = ready.filter(|it| is_well && it.status != ConditionStatus::True) else {
            continue;
        };
        let Some(fault) = issuer::connection_fault(&ready.message) else { continue };
        let cause = match fault {
            ConnectionFault::Untrusted => CauseId::Env02,
            ConnectionFault::OtherHost => CauseId::Env04,
            ConnectionFault::Unreached => CauseId::Env03,
        };
        let shown = stored(format!("{}: condition Ready", of.key), case.at, &ready.message);
        let own =
            evidence_of_answer(format!("GET {}", directory.url), directory.at, "the directory");
        let url = Url::parse(&directory.url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let port = url.as_ref().and_then(Url::port_or_known_default).unwrap_or(443);
        found.push(
            Finding::new(cause, Grade::Likely, of.key.to_string(), shown)
                .shown_by([own])
                .with("ISSUER", of.key.to_string())
                .with("URL", &directory.url)
                .with("SERVER", &directory.url)
                .with("HOST", host)
                .with("CA-HOST", host)
                .with("PORT", port.to_string())
                .with("DETAIL", format!("the controller says: {}", ready.message)),
        );
    }
}

fn authority_is_not_reached(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.issuers {
        let Some(directory) = &of.directory else { continue };
        let (cause, grade, came) = match &directory.answer {
            DirectoryAnswer::Untrusted(came) => (CauseId::Env02, Grade::Certain, came.clone()),
            DirectoryAnswer::NoSuchHost(came) => (CauseId::Cfg03, Grade::Certain, came.clone()),
            DirectoryAnswer::Unreachable(came) | DirectoryAnswer::Lookup(came) => {
                (CauseId::Env03, Grade::Certain, came.clone())
            }
            DirectoryAnswer::Refused(problem) if problem.status >= 500 => {
                let answer = of.authority.as_ref().and_then(|it| it.answer.as_ref());
                // A CA that names a time for the next request is too busy.
                let is_busy = answer.is_some_and(|answer| !answer.retry_after.is_empty())
                    || problem.short_kind() == "rateLimited";
                let cause = if is_busy { CauseId::Lim07 } else { CauseId::Lim08 };
                (cause, Grade::Certain, problem.to_string())
            }
            DirectoryAnswer::Refused(problem) if problem.status == 429 => {
                (CauseId::Lim07, Grade::Certain, problem.to_string())
            }
            // A proxy or an allow-list in front of the CA.
            DirectoryAnswer::Refused(problem) if matches!(problem.status, 401 | 403) => {
                (CauseId::Env03, Grade::Likely, problem.to_string())
            }
            DirectoryAnswer::Refused(_)
            | DirectoryAnswer::NotAcme(_)
            | DirectoryAnswer::Directory { .. } => continue,
        };
        // An answer of the CA itself is the same for everyone.
        let is_of_way = matches!(
            directory.answer,
            DirectoryAnswer::Untrusted(_)
                | DirectoryAnswer::NoSuchHost(_)
                | DirectoryAnswer::Unreachable(_)
                | DirectoryAnswer::Lookup(_)
        );
        let is_ours = is_of_way && is_reached_by_others(case, of);
        if is_ours && is_inner(&directory.url) {
            continue;
        }
        let grade = if is_ours { Grade::Possible } else { grade };
        let shown = evidence_of_answer(format!("GET {}", directory.url), directory.at, &came);
        let (came, decided) = match hosts_file_override(of) {
            Some((pinned, known)) if cause == CauseId::Env03 => {
                let host = Url::parse(&directory.url).ok();
                let host = host.as_ref().and_then(Url::host_str).unwrap_or_default();
                let file =
                    stored(format!("{host} in this machine's hosts file"), directory.at, &pinned);
                let servers =
                    evidence_of_answer(format!("A and AAAA of {host}"), directory.at, &known);
                let why = format!("{came}; the hosts file gives {pinned}, name servers {known}");
                (why, vec![file, servers])
            }
            _ => (came, Vec::new()),
        };
        let mut finding = Finding::new(cause, grade, of.key.to_string(), shown)
            .shown_by(decided)
            .with("ISSUER", of.key.to_string())
            .with("URL", &directory.url)
            .with("SERVER", &directory.url)
            .with("DETAIL", came);
        let url = Url::parse(&directory.url).ok();
        if let Some((host, port)) =
            url.as_ref().and_then(|u| u.host_str().zip(u.port_or_known_default()))
        {
            finding = finding.with("CA-HOST", host).with("PORT", port.to_string());
        }
        found.push(finding);
    }
}

/// Reports whether a host is known only in a cluster or in a private network.
fn is_inner(url: &str) -> bool {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let labels: Vec<&str> = host.trim_end_matches('.').split('.').collect();
    labels.len() == 1 || labels.ends_with(&["svc"]) || labels.ends_with(&["cluster", "local"])
}

/// Returns a CA's addresses by the hosts file, and by name servers; `None` if one is the same, or the file has no entry.
fn hosts_file_override(of: &IssuerCase) -> Option<(String, String)> {
    let authority = of.authority.as_ref()?;
    let known = authority.by_name_servers.as_ref()?;
    let is_same = authority.addresses.iter().any(|address| known.contains(address));
    let text = |all: &[IpAddr]| {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        all.join(", ")
    };
    (!is_same).then(|| (text(&authority.addresses), text(known)))
}
