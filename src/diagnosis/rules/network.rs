//! ENV: the way from here to the CA.

use std::net::IpAddr;

use url::Url;

use super::rule::FaultRule;
use crate::diagnosis::case::{Case, DirectoryAnswer, IssuerCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Finding, Grade, stored, told};

pub(super) const RULES: &[FaultRule] = &[authority_is_not_reached];

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
                // Who says when to come again has too much to do.
                let is_busy = answer.is_some_and(|answer| !answer.retry_after.is_empty())
                    || problem.short_kind() == "rateLimited";
                let cause = if is_busy { CauseId::Lim07 } else { CauseId::Lim08 };
                (cause, Grade::Certain, problem.to_string())
            }
            DirectoryAnswer::Refused(problem) if problem.status == 429 => {
                (CauseId::Lim07, Grade::Certain, problem.to_string())
            }
            // A proxy or an allow-list before the CA.
            DirectoryAnswer::Refused(problem) if matches!(problem.status, 401 | 403) => {
                (CauseId::Env03, Grade::Likely, problem.to_string())
            }
            DirectoryAnswer::Refused(_)
            | DirectoryAnswer::NotAcme(_)
            | DirectoryAnswer::Directory { .. } => continue,
        };
        let shown = told(format!("GET {}", directory.url), directory.at, &came);
        let (came, decided) = match overridden(of) {
            Some((pinned, known)) if cause == CauseId::Env03 => {
                let host = Url::parse(&directory.url).ok();
                let host = host.as_ref().and_then(Url::host_str).unwrap_or_default();
                let file =
                    stored(format!("{host} in this machine's hosts file"), directory.at, &pinned);
                let servers = told(format!("A and AAAA of {host}"), directory.at, &known);
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

/// The addresses of a CA by this machine's hosts file, and by name servers; `None` if they are the same, or the hosts file has none.
fn overridden(of: &IssuerCase) -> Option<(String, String)> {
    let authority = of.authority.as_ref()?;
    let known = authority.by_name_servers.as_ref()?;
    let is_same = authority.addresses.iter().any(|address| known.contains(address));
    let text = |all: &[IpAddr]| {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        all.join(", ")
    };
    (!is_same).then(|| (text(&authority.addresses), text(known)))
}
