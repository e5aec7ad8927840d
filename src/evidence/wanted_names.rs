//! Names that are to be proven, and the solvers for them.

use std::collections::BTreeMap;

use crate::diagnosis::case::Case;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::name::NameCase;
use crate::model::issuer::asked_type;
use crate::model::solver::{ChallengeSolver, Webhook};
use crate::model::{Certificate, Challenge, ChallengeType, Identifier, Key, State};
use crate::reconcile::solver_choice::{Asking, Chosen, NoSolver, would_choose};

/// Builds the case of a name of which nothing else is known.
pub(super) fn of_domain(domain: &str) -> NameCase {
    let kind = domain.starts_with("*.").then_some(ChallengeType::Dns01);
    NameCase::of(domain, kind)
}

/// Lists the names of Certificates that have to be issued, each with its Challenge, or the solver that would be chosen.
pub(super) fn of_certificates(case: &Case) -> Vec<NameCase> {
    let mut all = Vec::new();
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        // Issuers that are not ACME issuers prove names in their own way.
        let issuer = issuer_key(&of.certificate);
        let acme =
            issuer.as_ref().and_then(|key| case.issuer(key)?.issuer.as_ref()?.spec.acme.as_ref());
        let is_proven = of.order().is_some_and(|order| {
            matches!(order.status.state, Some(State::Ready | State::Processing | State::Valid))
        });
        if acme.is_none() || is_proven {
            continue;
        }
        let challenges: BTreeMap<String, &Challenge> =
            of.current_challenges().map(|c| (c.spec.shown_domain(), c)).collect();
        for shown in ordered(&of.certificate) {
            let mut name = NameCase::of(&shown, None);
            name.issuer.clone_from(&issuer);
            match challenges.get(&shown) {
                Some(challenge) if challenge.status.state == Some(State::Valid) => continue,
                Some(challenge) => {
                    name.kind = Some(challenge.spec.kind);
                    name.pending = (!challenge.has_ended() && challenge.status.presented)
                        .then(|| (*challenge).clone());
                }
                None => choose(case, issuer.as_ref(), &of.certificate, &mut name),
            }
            all.push(name);
        }
    }
    all
}

/// Lists every name and address of a Certificate as it is ordered. The common name is ordered only if it is alone.
pub(super) fn ordered(certificate: &Certificate) -> Vec<String> {
    let spec = &certificate.spec;
    let mut all: Vec<String> = Vec::new();
    let is_alone = spec.dns_names.is_empty() && spec.ip_addresses.is_empty();
    let common = Some(&spec.common_name).filter(|name| is_alone && !name.is_empty());
    for name in spec.dns_names.iter().chain(&spec.ip_addresses).chain(common) {
        let name = name.to_ascii_lowercase();
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Finds the solver that would be chosen for a name, before there is an order.
fn choose(case: &Case, issuer: Option<&Key>, certificate: &Certificate, name: &mut NameCase) {
    let Some(acme) = issuer
        .and_then(|key| case.issuer(key)?.issuer.as_ref())
        .and_then(|issuer| issuer.spec.acme.as_ref())
    else {
        return;
    };
    match chosen(case, certificate, &name.shown()) {
        Some(Ok(chosen)) => {
            name.kind = Some(chosen.kind);
            return;
        }
        Some(Err(_)) => {}
        None => return,
    }
    let unfit =
        acme.solvers.iter().enumerate().map(|(index, solver)| describe_unfit(index, solver, name));
    name.unfit = unfit.collect();
    if name.unfit.is_empty() {
        name.unfit.push("the issuer has no solvers".to_owned());
    }
}

/// Returns the solver that would be chosen for a name, or that none fits; `None` if this is not known.
pub(super) fn chosen(
    case: &Case,
    certificate: &Certificate,
    shown: &str,
) -> Option<Result<Chosen, NoSolver>> {
    let key = issuer_key(certificate)?;
    let issuer = case.issuer(&key)?.issuer.as_ref()?;
    let identifier = Identifier::parse(shown).ok()?;
    let kind = asked_type(issuer).ok()?;
    let metadata = &certificate.metadata;
    let asking = Asking {
        namespace: &metadata.namespace,
        labels: &metadata.labels,
        annotations: &metadata.annotations,
        kind,
    };
    Some(would_choose(&issuer.spec.acme.as_ref()?.solvers, &identifier, asking))
}

/// Lists the DNS-01 webhooks that are, or would be, used for names of the Certificates, each with its issuer; of issuers
/// without a Certificate in the case, all webhooks.
pub(super) fn webhooks(case: &Case) -> Vec<(Key, Webhook)> {
    let mut all: Vec<(Key, Webhook)> = Vec::new();
    let mut add = |issuer: &Key, solver: &ChallengeSolver| {
        let webhook = solver.dns01.as_ref().and_then(|dns01| dns01.webhook.clone());
        let found = webhook.map(|webhook| (issuer.clone(), webhook));
        all.extend(found.filter(|one| !all.contains(one)));
    };
    for of in &case.certificates {
        let Some(issuer) = issuer_key(&of.certificate) else { continue };
        for domain in ordered(&of.certificate) {
            let is_of = |challenge: &&Challenge| challenge.spec.shown_domain() == domain;
            match of.current_challenges().find(is_of) {
                Some(challenge) => add(&issuer, &challenge.spec.solver),
                None => {
                    if let Some(Ok(chosen)) = chosen(case, &of.certificate, &domain) {
                        add(&issuer, &chosen.solver);
                    }
                }
            }
        }
    }
    let used = |key: &Key| {
        case.certificates.iter().any(|of| issuer_key(&of.certificate).as_ref() == Some(key))
    };
    for of in case.issuers.iter().filter(|of| !used(&of.key)) {
        let acme = of.issuer.as_ref().and_then(|issuer| issuer.spec.acme.as_ref());
        acme.into_iter().flat_map(|acme| &acme.solvers).for_each(|solver| add(&of.key, solver));
    }
    all
}

/// Describes in a few words why a solver does not fit a name.
fn describe_unfit(index: usize, solver: &ChallengeSolver, name: &NameCase) -> String {
    let place = format!("solvers[{index}]");
    if name.wildcard && solver.dns01.is_none() {
        return format!("{place} is no dns01, which a wildcard needs");
    }
    let Some(selector) = &solver.selector else {
        return format!("{place} is neither http01 nor dns01");
    };
    let mut wants = Vec::new();
    if !selector.match_labels.is_empty() {
        let labels = selector.match_labels.iter().map(|(name, value)| format!("{name}={value}"));
        wants.push(format!("labels {}", labels.collect::<Vec<_>>().join(",")));
    }
    if !selector.dns_names.is_empty() {
        wants.push(format!("dnsNames {}", selector.dns_names.join(", ")));
    }
    if !selector.dns_zones.is_empty() {
        wants.push(format!("dnsZones {}", selector.dns_zones.join(", ")));
    }
    format!("{place} is for {}", wants.join(" and "))
}
