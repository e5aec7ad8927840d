//! HTTP-01, HTTP-02, DNS-01, DNS-04: the addresses of a name, before any connection to them.

use std::net::IpAddr;

use super::http01::{by_address, of_name};
use super::manifest::is_for_public_ca;
use super::problem;
use crate::diagnosis::case::Case;
use crate::diagnosis::case::dns::{DnsCase, DnsVantage, VantageReply};
use crate::diagnosis::case::name::{LookUp, NameCase};
use crate::diagnosis::catalogue::CauseSeverity;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{
    Evidence, FaultRule, Finding, Grade, evidence_of_answer, evidence_of_dns_reply,
};
use crate::model::cause::Symptom;
use crate::model::reserved;

pub(super) const RULES: &[FaultRule] = &[name_has_no_address, address_is_not_public];

fn name_has_no_address(case: &Case, found: &mut Vec<Finding>) {
    for name in by_address(case) {
        let (cause, grade, came) = match &name.addresses {
            LookUp::NoName(why) | LookUp::NoRecord(why) => {
                (CauseId::Http01, Grade::Certain, why.clone())
            }
            LookUp::Dangling { target } => {
                let came = format!("a CNAME of {target}, which does not exist");
                (CauseId::Http01, Grade::Certain, came)
            }
            LookUp::Circle(why) => (CauseId::Http01, Grade::Certain, why.clone()),
            // HTTP-09 reports addresses that this machine's own resolver withholds.
            LookUp::Code(_) if name.is_withheld() => continue,
            // Only one resolver has given this code.
            LookUp::Code(code) => (CauseId::Dns01, Grade::Likely, code.clone()),
            // The silent server may be our own resolver.
            LookUp::Silence(why) | LookUp::Other(why) => {
                (CauseId::Dns04, Grade::Possible, why.clone())
            }
            LookUp::NotAsked | LookUp::Found(_) => continue,
        };
        let shown = evidence_of_answer(format!("A and AAAA of {}", name.name), case.at, &came);
        let is_code = matches!(name.addresses, LookUp::Code(_));
        let servers = name.dns.iter().filter(|_| is_code).flat_map(|dns| {
            let domain = format!("{}.", name.name);
            let replies: Vec<_> =
                ["A", "AAAA"].iter().flat_map(|kind| dns.asked(&domain, kind)).collect();
            replies.into_iter().filter(|it| matches!(it.from, DnsVantage::Authority { .. })).take(2)
        });
        found.push(
            of_name(cause, grade, name, shown)
                .shown_by(servers.map(evidence_of_dns_reply))
                .with("ANSWER", came),
        );
    }
}

fn address_is_not_public(case: &Case, found: &mut Vec<Finding>) {
    for name in by_address(case).filter(|name| name.is_looked_for_in_dns) {
        let LookUp::Found(addresses) = &name.addresses else { continue };
        let Some((address, block)) = name.reserved.first() else { continue };
        let is_all = name.reserved.len() == addresses.len();
        let refusal = found_no_address(case, name);
        if !is_all || !(refusal.is_some() || is_for_public_ca(case, name)) {
            continue;
        }
        // A machine inside may get other addresses than the CA, unless the CA or the zone's servers confirm them.
        let by_servers = name.dns.as_ref().and_then(|dns| reserved_by_servers(name, dns));
        let is_sure = !name.is_bare() && (refusal.is_some() || by_servers.is_some());
        let grade = if is_sure { Grade::Certain } else { Grade::Possible };
        let came = format!("{address}, which is in {block}");
        let shown = evidence_of_answer(format!("A and AAAA of {}", name.name), case.at, came);
        found.push(
            of_name(CauseId::Http02, grade, name, shown)
                .shown_by(by_servers.map(evidence_of_dns_reply))
                .shown_by(refusal)
                .meaning(if is_sure { CauseSeverity::Error } else { CauseSeverity::Warning })
                .failing(is_sure)
                .with("ADDRESS", address.to_string())
                .with("BLOCK", block),
        );
    }
}

/// Returns evidence that the CA found no address to connect to for a name; `None` if the CA has not said so.
fn found_no_address(case: &Case, name: &NameCase) -> Option<Evidence> {
    let held = case.certificates.iter().flat_map(|of| of.held.iter().map(move |held| (of, held)));
    let mut held = held.filter(|(_, held)| held.name == name.shown());
    held.find_map(|(of, held)| {
        let problem = held.problem.as_ref()?;
        let challenge = of.challenges.iter().find(|it| it.spec.shown_domain() == held.name)?;
        let is_it = problem::met(challenge, problem) == Some(Symptom::NoAddress);
        let asked = format!("authorization of {} at the CA", held.name);
        is_it.then(|| evidence_of_answer(asked, held.at, problem.to_string()))
    })
}

/// Returns the reply of a server of the name's own zone that gives reserved addresses only.
fn reserved_by_servers<'a>(name: &NameCase, dns: &'a DnsCase) -> Option<&'a VantageReply> {
    let domain = format!("{}.", name.name);
    let replies = ["A", "AAAA"].into_iter().flat_map(|kind| dns.asked(&domain, kind));
    // An inner server may have another zone than the zone that the CA is led to.
    let mut replies = replies.filter(|it| it.is_by_public_server());
    let is_reserved = |record: &String| {
        record.parse::<IpAddr>().is_ok_and(|address| reserved::block(address).is_some())
    };
    let all = |reply: &&VantageReply| {
        let records = reply.heard.answer().map(|answer| &answer.records);
        records.is_some_and(|records| !records.is_empty() && records.iter().all(is_reserved))
    };
    replies.find(all)
}
