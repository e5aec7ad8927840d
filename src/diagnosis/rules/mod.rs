//! Rules of the catalogue: each rule is one function that reads the observations, and adds a finding with its evidence for
//! each cause that the observations show. A rule without a match adds nothing.
//!
//! The files follow the catalogue's families. The catalogue has the sentence of each finding (`says`), with words in braces
//! for the values that the rule fills in.
#![expect(clippy::similar_names, reason = "a case shows its cause by what came")]

mod account;
mod addresses;
mod admission;
mod authority;
mod balancer;
mod by_status;
mod caa;
mod control_plane;
mod controller;
mod defects;
mod dns01;
mod dns_webhook;
mod gateway;
mod gateway_hops;
mod http01;
mod http_answer;
mod limit;
mod manifest;
mod named_objects;
mod network;
mod open_path;
mod order;
mod other_solver;
mod path;
mod persist;
mod pod;
mod problem;
mod provider;
pub mod public_name;
mod quota;
mod record;
mod record_times;
mod renewal;
mod residual;
mod servers;
mod shut_off;
pub mod sights;
mod stages;
mod symptom;
mod validated;
mod vantage;
mod web;
mod zone;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod look_cases;
#[cfg(test)]
mod order_cases;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod view_cases;

use std::collections::BTreeSet;

pub use self::controller::hangs_in_deletion;
pub use self::problem::causes_of_words;
use super::case::chain::issuer_key;
use super::case::{Case, CertificateCase};
use super::finding::{FaultRule, Finding, fold};
use crate::model::ObjectName;

const RULES: &[&[FaultRule]] = &[
    manifest::RULES,
    other_solver::RULES,
    account::RULES,
    network::RULES,
    limit::RULES,
    controller::RULES,
    renewal::RULES,
    order::RULES,
    caa::RULES,
    zone::RULES,
    servers::RULES,
    record::RULES,
    record_times::RULES,
    dns01::RULES,
    // The objects of a cluster say more than the effects of these objects.
    gateway::RULES,
    path::RULES,
    balancer::RULES,
    pod::RULES,
    shut_off::RULES,
    persist::RULES,
    vantage::RULES,
    validated::RULES,
    addresses::RULES,
    http01::RULES,
    control_plane::RULES,
    admission::RULES,
    defects::RULES,
    dns_webhook::RULES,
    stages::RULES,
    quota::RULES,
    web::RULES,
    authority::RULES,
    provider::RULES,
];

/// Returns the findings, most urgent first, one for each root. A stuck object without a known cause is quoted: `case` has
/// every possible observation.
pub fn judge(case: &Case) -> Vec<Finding> {
    let mut found = by_rules(case);
    found.extend(residual::unexplained(case, &found, |subject| concerned(case, subject)));
    fold_findings(case, found)
}

/// Returns the causes that the store alone shows, in the order of `judge`; probes may show more causes.
pub fn judge_stored(case: &Case) -> Vec<Finding> {
    fold_findings(case, by_rules(case))
}

fn by_rules(case: &Case) -> Vec<Finding> {
    let mut found = Vec::new();
    for rule in RULES.iter().flat_map(|rules| rules.iter()) {
        rule(case, &mut found);
    }
    found
}

fn fold_findings(case: &Case, found: Vec<Finding>) -> Vec<Finding> {
    let mut found = fold(found, &|subject| concerned(case, subject));
    for finding in &mut found {
        let concerned = concerned(case, &finding.subject);
        named_objects::name_objects(case, &concerned, finding);
    }
    found
}

/// Returns the Certificates that a subject is about: an object of their chain, their issuer, or one of their names.
pub fn concerned(case: &Case, subject: &str) -> BTreeSet<ObjectName> {
    let is_about = |of: &&CertificateCase| {
        let own = format!("Certificate {}", of.certificate.name());
        let is_issuer =
            || issuer_key(&of.certificate).is_some_and(|key| key.to_string() == subject);
        let is_order =
            || of.orders.iter().any(|order| format!("Order {}", order.name()) == subject);
        let is_challenge =
            || of.challenges.iter().any(|c| format!("Challenge {}", c.name()) == subject);
        let spec = &of.certificate.spec;
        let mut names = spec.dns_names.iter().chain(&spec.ip_addresses).chain([&spec.common_name]);
        own == subject
            || is_issuer()
            || is_order()
            || is_challenge()
            || names.any(|name| name.eq_ignore_ascii_case(subject))
    };
    case.certificates.iter().filter(is_about).map(|of| of.certificate.name()).collect()
}
