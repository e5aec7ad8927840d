//! CFG: manifests, issuers and the choice of solvers.

use super::public_name::{self, NotPublic};
use crate::diagnosis::case::Case;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::issuer::{DirectoryAnswer, IssuerCase};
use crate::diagnosis::case::name::{LookUp, NameCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, evidence_of_answer, stored};
use crate::diagnosis::words::facts;
use crate::model::acme_server::AcmeServer;
use crate::model::certificate::is_listed;
use crate::model::common::condition;
use crate::model::issuer::first_offered;
use crate::model::{Challenge, ConditionStatus, Identifier};
use crate::reconcile::solver_choice;

pub(super) const RULES: &[FaultRule] = &[
    issuer_is_missing,
    issuer_group_is_mistyped,
    issuer_is_not_ready,
    directory_is_none,
    no_solver_fits,
    two_ingress_classes,
    annotation_adds_second_class,
    profile_is_unknown,
    name_is_none,
    type_is_not_offered,
    too_much_in_one_certificate,
    lifetime_is_asked_for,
];

/// Endings that are never in DNS (RFC 6761, RFC 6762, RFC 7686).
const NEVER_IN_DNS: [&str; 4] = ["local", "localhost", "invalid", "onion"];
/// Maximum number of bytes of a common name (RFC 5280, ub-common-name).
const MAX_COMMON_NAME_BYTES: usize = 64;
/// Maximum number of names of one certificate at Let's Encrypt.
const NAMES: usize = 100;

/// Annotations of a Certificate that change the class of the Ingress in its Challenges' solvers.
const OVERRIDES: [&str; 2] = [solver_choice::OVERRIDE_CLASS, solver_choice::OVERRIDE_CLASS_NAME];

/// Reports whether a directory is that of Let's Encrypt, whose rules are public and known here.
pub(super) fn is_lets_encrypt(server: &str) -> bool {
    server.contains(".api.letsencrypt.org/")
}

/// The API group of Issuers.
const GROUP: &str = "cert-manager.io";
/// Groups that are written in place of `GROUP`: that of Orders, that of releases before 0.11, and the bare name.
const MISTYPED: [&str; 3] = ["acme.cert-manager.io", "certmanager.k8s.io", "cert-manager"];

fn issuer_is_missing(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        let Some(key) = issuer_key(&of.certificate) else { continue };
        let Some(issuer) = case.issuer(&key).filter(|of| of.is_known && of.issuer.is_none()) else {
            continue;
        };
        let name = of.certificate.name();
        let near: Vec<String> = issuer.near.iter().map(ToString::to_string).collect();
        let near = if near.is_empty() {
            "no issuer has a similar name".to_owned()
        } else {
            let verb = if near.len() == 1 { "is" } else { "are" };
            format!("there {verb} {}", near.join(", "))
        };
        let asked = format!("Certificate {name}: spec.issuerRef");
        let shown = stored(asked, case.at, format!("{key}, which does not exist; {near}"));
        let subject = format!("Certificate {name}");
        let mut finding = Finding::new(CauseId::Cfg01, Grade::Certain, subject, shown)
            .with("NAME", &name.name)
            .with("NAMESPACE", &name.namespace)
            .with("ISSUER", key.to_string())
            .with("NEAR", near);
        if let [only] = &issuer.near[..] {
            let kind = only.kind.as_str();
            finding = finding.with("ISSUER-KIND", kind).with("EXISTING-ISSUER", &only.name.name);
        }
        found.push(finding);
    }
}

/// CFG-01: the group of the reference is cert-manager's, mistyped, so that no controller handles the reference.
fn issuer_group_is_mistyped(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        let reference = &of.certificate.spec.issuer_ref;
        let group = &reference.group;
        let is_own_kind = matches!(reference.kind.as_str(), "" | "Issuer" | "ClusterIssuer");
        if !is_own_kind || !(group.contains('/') || MISTYPED.contains(&group.as_str())) {
            continue;
        }
        let name = of.certificate.name();
        let asked = format!("Certificate {name}: spec.issuerRef.group");
        let came = format!("{group}, which no controller serves");
        let near = format!("the group of Issuers is {GROUP}, without a version");
        let subject = format!("Certificate {name}");
        found.push(
            Finding::new(CauseId::Cfg01, Grade::Certain, subject, stored(asked, case.at, came))
                .with("NAME", &name.name)
                .with("NAMESPACE", &name.namespace)
                .with("ISSUER", format!("{} of group {group}", reference.name))
                .with("NEAR", near),
        );
    }
}

fn issuer_is_not_ready(case: &Case, found: &mut Vec<Finding>) {
    for (key, issuer) in present(case) {
        let Some(ready) = condition(&issuer.status.conditions, "Ready") else {
            continue;
        };
        if ready.status == ConditionStatus::True {
            continue;
        }
        let asked = format!("{}: condition Ready", key.key);
        let shown = stored(asked, case.at, format!("{}: {}", ready.reason, ready.message));
        found.push(
            Finding::new(CauseId::Cfg02, Grade::Certain, key.key.to_string(), shown)
                .with("ISSUER", key.key.to_string())
                .with("REASON", &ready.reason)
                .with("MESSAGE", &ready.message),
        );
    }
}

fn directory_is_none(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.issuers {
        let Some(directory) = &of.directory else { continue };
        let came = match &directory.answer {
            DirectoryAnswer::NotAcme(came) => came.clone(),
            DirectoryAnswer::Refused(problem) if matches!(problem.status, 404 | 405 | 410) => {
                problem.to_string()
            }
            _ => continue,
        };
        let shown = evidence_of_answer(format!("GET {}", directory.url), directory.at, came);
        found.push(
            Finding::new(CauseId::Cfg03, Grade::Certain, of.key.to_string(), shown)
                .with("ISSUER", of.key.to_string())
                .with("URL", &directory.url)
                .with("SERVER", &directory.url),
        );
    }
}

fn no_solver_fits(case: &Case, found: &mut Vec<Finding>) {
    for name in case.names.iter().filter(|name| !name.unfit.is_empty()) {
        let Some(key) = &name.issuer else { continue };
        let issuer = case.issuer(key).and_then(|of| of.issuer.as_ref());
        let solvers = issuer.and_then(|issuer| issuer.spec.acme.as_ref());
        let has_dns01 = solvers.is_some_and(|acme| acme.solvers.iter().any(|s| s.dns01.is_some()));
        let cause = if name.wildcard && !has_dns01 { CauseId::Cfg14 } else { CauseId::Cfg04 };
        let asked = format!("{key}: spec.acme.solvers for {}", name.shown());
        let shown = stored(asked, case.at, name.unfit.join("; "));
        found.push(
            Finding::new(cause, Grade::Certain, name.shown(), shown)
                .with("DOMAIN", name.shown())
                .with("ISSUER", key.to_string()),
        );
    }
}

fn two_ingress_classes(case: &Case, found: &mut Vec<Finding>) {
    for (of, issuer) in present(case) {
        let solvers = issuer.spec.acme.iter().flat_map(|acme| acme.solvers.iter().enumerate());
        for (index, solver) in solvers {
            let Some(ingress) = solver.http01.as_ref().and_then(|http01| http01.ingress.as_ref())
            else {
                continue;
            };
            let (Some(class), Some(name)) = (&ingress.class, &ingress.ingress_class_name) else {
                continue;
            };
            let field = format!("spec.acme.solvers[{index}].http01.ingress");
            let came = format!("class: {class}, ingressClassName: {name}");
            let shown = stored(format!("{}: {field}", of.key), case.at, came);
            found.push(
                Finding::new(CauseId::Cfg07, Grade::Certain, of.key.to_string(), shown)
                    .with("ISSUER", of.key.to_string())
                    .with("FIELD", field),
            );
        }
    }
}

/// CFG-07: an annotation of the Certificate adds a second class to the class of the issuer, in a Challenge's solver.
fn annotation_adds_second_class(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        let is_open = |it: &&Challenge| !(it.has_ended() || it.metadata.is_deleted());
        for challenge in of.challenges.iter().filter(is_open) {
            let solver = &challenge.spec.solver;
            let ingress = solver.http01.as_ref().and_then(|http01| http01.ingress.as_ref());
            let Some(ingress) = ingress else { continue };
            let (Some(class), Some(name)) = (&ingress.class, &ingress.ingress_class_name) else {
                continue;
            };
            let annotations = &of.certificate.metadata.annotations;
            let set = OVERRIDES.into_iter().find_map(|key| Some((key, annotations.get(key)?)));
            let Some((annotation, value)) = set else { continue };
            let certificate = of.certificate.name();
            let field = "spec.solver.http01.ingress".to_owned();
            let asked = format!("Challenge {}: {field}", challenge.name());
            let came = format!("class: {class}, ingressClassName: {name}");
            let by = format!("Certificate {certificate}: metadata.annotations");
            let by = stored(by, case.at, format!("{annotation}: {value}"));
            let subject = challenge.spec.shown_domain();
            found.push(
                Finding::new(CauseId::Cfg07, Grade::Certain, subject, stored(asked, case.at, came))
                    .shown_by([by])
                    .with("ISSUER", format!("Challenge {}", challenge.name()))
                    .with("NAME", &certificate.name)
                    .with("NAMESPACE", &certificate.namespace)
                    .with("FIELD", field),
            );
        }
    }
}

fn profile_is_unknown(case: &Case, found: &mut Vec<Finding>) {
    for (of, issuer) in present(case) {
        let Some(acme) = issuer.spec.acme.as_ref().filter(|acme| !acme.profile.is_empty()) else {
            continue;
        };
        let Some(directory) = &of.directory else { continue };
        let DirectoryAnswer::Directory { profiles, .. } = &directory.answer else { continue };
        if first_offered(&acme.profile, |name| profiles.iter().any(|it| it == name)).is_some() {
            continue;
        }
        let offered =
            if profiles.is_empty() { "no profiles".to_owned() } else { profiles.join(", ") };
        let shown = evidence_of_answer(
            format!("GET {}: meta.profiles", directory.url),
            directory.at,
            &offered,
        );
        found.push(
            Finding::new(CauseId::Cfg09, Grade::Certain, of.key.to_string(), shown)
                .with("ISSUER", of.key.to_string())
                .with("PROFILE", &acme.profile)
                .with("SERVER", &acme.server)
                .with("OFFERED", offered),
        );
    }
}

/// CFG-10, CFG-12, CFG-21: a name that can be in no certificate, or in no certificate of a public CA.
fn name_is_none(case: &Case, found: &mut Vec<Finding>) {
    for name in &case.names {
        let shown_name = name.shown();
        let asked = format!("the name {shown_name}");
        if let Err(why) = Identifier::parse(&shown_name) {
            let shown = stored(asked, case.at, why.to_string());
            found.push(
                Finding::new(CauseId::Cfg10, Grade::Certain, &shown_name, shown)
                    .with("DOMAIN", &shown_name)
                    .with("WHY", why.to_string()),
            );
            continue;
        }
        let refusal = Identifier::parse(&shown_name).ok().as_ref().and_then(public_name::refusal);
        let Some(why) = refusal else { continue };
        // A private CA may take the name, until the CA refuses it.
        let refused = name_refusal(case, &shown_name);
        let is_nowhere = matches!(name.addresses, LookUp::NoName(_) | LookUp::NoRecord(_))
            && matches!(&why, NotPublic::Suffix(suffix) if NEVER_IN_DNS.contains(&suffix.as_str()));
        let grade = match (is_for_public_ca(case, name), &refused) {
            (true, _) => Grade::Certain,
            (false, Some(_)) => Grade::Likely,
            // Whatever the CA, its resolvers find no such name.
            (false, None) if is_nowhere => Grade::Likely,
            (false, None) => continue,
        };
        let suffix = match &why {
            NotPublic::Suffix(suffix) => suffix.as_str(),
            NotPublic::Address(_)
            | NotPublic::Form(_)
            | NotPublic::OneLabel
            | NotPublic::PublicSuffix => &name.name,
        };
        let shown = stored(asked, case.at, why.to_string());
        found.push(
            Finding::new(why.cause(), grade, &shown_name, shown)
                .shown_by(refused)
                .with("DOMAIN", &shown_name)
                .with("SUFFIX", suffix)
                .with("WHY", why.to_string()),
        );
    }
}

/// Returns the CA's refusal to make an order with a name, if the refusal is about names; `None` without such a refusal.
fn name_refusal(case: &Case, name: &str) -> Option<Evidence> {
    case.certificates.iter().find_map(|of| {
        let order = of.order()?;
        let mut names = order.spec.dns_names.iter().chain(&order.spec.ip_addresses);
        let has_it = names.any(|one| one == name);
        let problem = facts::problem(order).filter(|_| has_it && order.status.url.is_empty())?;
        // The rule for limits reports a `rejectedIdentifier`, which is explicit.
        let is_about_names = problem.short_kind() == "malformed";
        let asked = format!("Order {}: status.reason", order.name());
        is_about_names.then(|| stored(asked, case.at, problem.to_string()))
    })
}

/// Reports whether the name goes to a CA that issues for public names only, or no CA is known.
pub(super) fn is_for_public_ca(case: &Case, name: &NameCase) -> bool {
    let Some(key) = &name.issuer else { return true };
    let acme = case.issuer(key).and_then(|of| of.issuer.as_ref()?.spec.acme.as_ref());
    acme.is_some_and(|acme| AcmeServer::is_public(&acme.server))
}

fn type_is_not_offered(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        for held in of.held.iter().filter(|held| held.status == "pending") {
            let names = case.names.iter().filter(|name| name.shown() == held.name);
            for kind in names.filter_map(|name| name.kind) {
                if held.offered.is_empty() || held.offered.iter().any(|o| o == kind.acme_name()) {
                    continue;
                }
                let offered = held.offered.join(", ");
                let shown = evidence_of_answer(
                    format!("authorization of {}", held.name),
                    held.at,
                    &offered,
                );
                found.push(
                    Finding::new(CauseId::Cfg15, Grade::Certain, &held.name, shown)
                        .with("DOMAIN", &held.name)
                        .with("TYPE", kind.acme_name())
                        .with("OFFERED", offered),
                );
            }
        }
    }
}

fn too_much_in_one_certificate(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        let (spec, name) = (&of.certificate.spec, of.certificate.name());
        let subject = format!("Certificate {name}");
        let mut push = |field: &str, came: String| {
            let shown = stored(format!("Certificate {name}: {field}"), case.at, &came);
            found.push(
                Finding::new(CauseId::Cfg17, Grade::Certain, &subject, shown)
                    .with("NAME", &name.name)
                    .with("NAMESPACE", &name.namespace)
                    .with("WHAT", came),
            );
        };
        if spec.common_name.len() > MAX_COMMON_NAME_BYTES {
            push(
                "spec.commonName",
                format!("a common name of {} bytes, where 64 are allowed", spec.common_name.len()),
            );
        }
        let count = spec.dns_names.len() + spec.ip_addresses.len();
        let acme = issuer_key(&of.certificate)
            .and_then(|key| case.issuer(&key)?.issuer.as_ref()?.spec.acme.as_ref());
        let is_stray = !is_listed(&spec.common_name, &spec.dns_names, &spec.ip_addresses);
        if of.is_open() && acme.is_some() && is_stray {
            let common_name = &spec.common_name;
            push(
                "spec.commonName",
                format!("the common name {common_name}, which is none of its names"),
            );
        }
        if count > NAMES && acme.is_some_and(|acme| is_lets_encrypt(&acme.server)) {
            push("spec.dnsNames", format!("{count} names, but Let's Encrypt allows {NAMES}"));
        }
    }
}

fn lifetime_is_asked_for(case: &Case, found: &mut Vec<Finding>) {
    for (of, issuer) in present(case) {
        let Some(acme) = &issuer.spec.acme else { continue };
        let asks = case.certificates.iter().any(|of_issuer| {
            issuer_key(&of_issuer.certificate).as_ref() == Some(&of.key)
                && of_issuer.certificate.spec.duration.is_some()
        });
        if !(asks && acme.enable_duration_feature && is_lets_encrypt(&acme.server)) {
            continue;
        }
        let asked = format!("{}: spec.acme.enableDurationFeature", of.key);
        let shown =
            stored(asked, case.at, format!("true, and spec.acme.server is {}", acme.server));
        found.push(
            Finding::new(CauseId::Cfg20, Grade::Likely, of.key.to_string(), shown)
                .with("ISSUER", of.key.to_string()),
        );
    }
}

/// Returns the issuers that exist.
pub(super) fn present(case: &Case) -> impl Iterator<Item = (&IssuerCase, &crate::model::Issuer)> {
    case.issuers.iter().filter_map(|of| Some((of, of.issuer.as_ref()?)))
}
