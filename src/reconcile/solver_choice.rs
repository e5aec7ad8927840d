//! Choice of the solver for each name, and the reason for the choice.

use std::collections::BTreeMap;

use crate::model::issuer::CHALLENGE_TYPE;
use crate::model::order::{Authorization, OfferedChallenge};
use crate::model::solver::{ChallengeSolver, GatewaySolver, ParentReference, Selector};
use crate::model::{ChallengeType, Identifier};

/// Overrides `ingress.name`.
pub(super) const OVERRIDE_NAME: &str = "acme.cert-manager.io/http01-override-ingress-name";
/// Overrides `ingress.class`.
pub const OVERRIDE_CLASS: &str = "acme.cert-manager.io/http01-override-ingress-class";
/// Overrides `ingress.ingressClassName`.
pub const OVERRIDE_CLASS_NAME: &str =
    "acme.cert-manager.io/http01-override-ingress-ingressclassname";
/// Adds a parent to the HTTPRoute: its name.
pub(super) const PARENT_NAME: &str = "acme.cert-manager.io/http01-parentrefname";
/// Adds a parent to the HTTPRoute: its kind.
pub(super) const PARENT_KIND: &str = "acme.cert-manager.io/http01-parentrefkind";
/// Adds a parent to the HTTPRoute: its namespace.
pub(super) const PARENT_NAMESPACE: &str = "acme.cert-manager.io/http01-parentrefnamespace";

/// Facts for the choice beside solvers and authorization: the Order's metadata.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// Namespace of the Order.
    pub namespace: &'a str,
    /// Labels of the Order, copied down from the Certificate.
    pub labels: &'a BTreeMap<String, String>,
    /// Annotations of the Order.
    pub annotations: &'a BTreeMap<String, String>,
    /// Challenge type that the issuer asks for, if its solvers alone do not decide.
    pub kind: Option<ChallengeType>,
}

/// Chosen solver.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Copy of the solver, after annotation overrides.
    pub solver: ChallengeSolver,
    /// Position of the solver in the issuer's list, from 0.
    pub position: usize,
    /// Challenge to solve.
    pub challenge: OfferedChallenge,
    /// Type of the challenge.
    pub kind: ChallengeType,
    /// Part of the selector that decided.
    pub why: Match,
}

/// Quality of a selector's match; a greater one wins over a smaller one that stands before it in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// Whether the selector lists the name.
    pub dns_name: bool,
    /// Number of labels of the longest matching zone.
    pub zone_labels: usize,
    /// Number of matching labels of the Order.
    pub labels: usize,
}

/// Reason that no solver can be used; the text is cert-manager's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSolver {
    /// No solver has an offered challenge type and a matching selector.
    #[error("no configured challenge solvers can be used for this challenge")]
    NoneFits,
    /// The CA does not offer the type that the issuer asks for.
    #[error(
        "the issuer asks for {asked} ({CHALLENGE_TYPE}), and for {name} the CA offers {offered}"
    )]
    NotOffered {
        /// Type asked for.
        asked: &'static str,
        /// Name concerned.
        name: String,
        /// Types that the CA offers.
        offered: String,
    },
    /// More than one ingress override.
    #[error("may not specify more than one of: name, class, ingressClassName override annotations")]
    TwoOverrides,
    /// Half a parent reference.
    #[error("cannot specify only one of parentRefName, parentRefKind override annotations")]
    HalfParent,
    /// An HTTPRoute without a parent.
    #[error("must specify parentRefs either through annotations or solver config")]
    NoParent,
}

/// Chooses the solver for one authorization, as cert-manager does.
///
/// # Errors
/// Fails if no solver fits, or if the Order's annotations contradict each other.
pub fn choose(
    solvers: &[ChallengeSolver],
    asking: Asking<'_>,
    authorization: &Authorization,
) -> Result<Chosen, NoSolver> {
    let domain = if authorization.wildcard == Some(true) {
        format!("*.{}", authorization.identifier)
    } else {
        authorization.identifier.clone()
    };
    let only = match asking.kind {
        None => None,
        Some(kind) => Some((find_offered(kind, &domain, authorization)?, kind)),
    };
    // Our own listener needs no solver, and a person replaces a provider of persistent records.
    let unaided = only.filter(|(_, kind)| match kind {
        ChallengeType::DnsPersist01 | ChallengeType::TlsAlpn01 => true,
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::Http01 => false,
    });
    let mut best: Option<(Match, Chosen)> = None;
    for (position, solver) in solvers.iter().enumerate() {
        let answerable = match only {
            None => first_answerable(solver, &authorization.challenges),
            Some((_, kind)) => only.filter(|_| kind.is_by_record() && solver.dns01.is_some()),
        };
        let Some((challenge, kind)) = answerable else { continue };
        let Some(why) = matches(solver.selector.as_ref(), &domain, asking.labels) else { continue };
        if best.as_ref().is_none_or(|(held, _)| why > *held) {
            let challenge = challenge.clone();
            let chosen = Chosen { solver: solver.clone(), position, challenge, kind, why };
            best = Some((why, chosen));
        }
    }
    let (_, mut chosen) = match (best, unaided) {
        (Some(best), _) => best,
        (None, Some((challenge, kind))) => {
            let (solver, why) = (ChallengeSolver::default(), Match::default());
            let position = solvers.len();
            (why, Chosen { solver, position, challenge: challenge.clone(), kind, why })
        }
        (None, None) => return Err(NoSolver::NoneFits),
    };
    override_ingress(&mut chosen.solver, asking)?;
    override_parents(&mut chosen.solver, asking)?;
    Ok(chosen)
}

/// Returns the solver that would be chosen for a name before any order exists, if the CA offers the challenge types
/// that RFC 8555 §8 and RFC 8738 §7 let it offer.
///
/// # Errors
/// Fails if no solver fits.
pub fn would_choose(
    solvers: &[ChallengeSolver],
    identifier: &Identifier,
    asking: Asking<'_>,
) -> Result<Chosen, NoSolver> {
    let (name, wildcard) = match identifier {
        Identifier::Dns(name) => (name.base().to_owned(), name.is_wildcard()),
        Identifier::Ip(address) => (address.to_string(), false),
    };
    let types = [ChallengeType::Http01, ChallengeType::Dns01].into_iter().chain(asking.kind);
    let offered = |kind: ChallengeType| OfferedChallenge {
        kind: kind.acme_name().to_owned(),
        ..Default::default()
    };
    let authorization = Authorization {
        identifier: name,
        wildcard: Some(wildcard),
        challenges: types.filter(|kind| kind.can_prove(identifier)).map(offered).collect(),
        ..Authorization::default()
    };
    choose(solvers, asking, &authorization)
}

/// Returns the position and match of every solver that fits a name; the solver that is chosen comes first.
pub fn fitting(
    solvers: &[ChallengeSolver],
    identifier: &Identifier,
    asking: Asking<'_>,
) -> Vec<(usize, Match)> {
    let fit = solvers.iter().enumerate().filter_map(|(position, solver)| {
        let alone = would_choose(std::slice::from_ref(solver), identifier, asking);
        Some((position, alone.ok()?.why))
    });
    let mut all: Vec<(usize, Match)> = fit.collect();
    // Of equal matches the first in the list stays first.
    all.sort_by(|(_, one), (_, other)| other.cmp(one));
    all
}

/// Returns the offered challenge of this type.
fn find_offered<'a>(
    kind: ChallengeType,
    domain: &str,
    authorization: &'a Authorization,
) -> Result<&'a OfferedChallenge, NoSolver> {
    let challenges = &authorization.challenges;
    challenges.iter().find(|challenge| challenge.kind == kind.acme_name()).ok_or_else(|| {
        let offered: Vec<&str> = challenges.iter().map(|c| c.kind.as_str()).collect();
        let offered = if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") };
        NoSolver::NotOffered { asked: kind.acme_name(), name: domain.to_owned(), offered }
    })
}

/// Returns the first challenge in the CA's list that the solver can answer.
fn first_answerable<'a>(
    solver: &ChallengeSolver,
    offered: &'a [OfferedChallenge],
) -> Option<(&'a OfferedChallenge, ChallengeType)> {
    offered.iter().find_map(|challenge| match challenge.kind.as_str() {
        "http-01" if solver.http01.is_some() => Some((challenge, ChallengeType::Http01)),
        "dns-01" if solver.dns01.is_some() => Some((challenge, ChallengeType::Dns01)),
        _ => None,
    })
}

/// Returns the quality of a selector's match; `None` if it does not match, the lowest quality without a selector.
fn matches(
    selector: Option<&Selector>,
    domain: &str,
    labels: &BTreeMap<String, String>,
) -> Option<Match> {
    let Some(selector) = selector else { return Some(Match::default()) };
    if !selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value)) {
        return None;
    }
    let dns_name = selector.dns_names.iter().any(|name| name == domain);
    if !dns_name && !selector.dns_names.is_empty() {
        return None;
    }
    let zone_labels =
        selector.dns_zones.iter().filter_map(|zone| labels_in_zone(zone, domain)).max();
    if zone_labels.is_none() && !selector.dns_zones.is_empty() {
        return None;
    }
    let zone_labels = zone_labels.unwrap_or(0);
    Some(Match { dns_name, zone_labels, labels: selector.match_labels.len() })
}

/// Returns the number of labels of the zone, if the domain is in the zone.
fn labels_in_zone(zone: &str, domain: &str) -> Option<usize> {
    let mut domain = domain.rsplit('.');
    let mut count = 0;
    for label in zone.rsplit('.') {
        if !domain.next().is_some_and(|own| own.eq_ignore_ascii_case(label)) {
            return None;
        }
        count += 1;
    }
    Some(count)
}

fn override_ingress(solver: &mut ChallengeSolver, asking: Asking<'_>) -> Result<(), NoSolver> {
    let Some(ingress) = solver.http01.as_mut().and_then(|http01| http01.ingress.as_mut()) else {
        return Ok(());
    };
    let given = |key: &str| asking.annotations.get(key).filter(|v| !v.is_empty()).cloned();
    let (name, class, class_name) =
        (given(OVERRIDE_NAME), given(OVERRIDE_CLASS), given(OVERRIDE_CLASS_NAME));
    match [&name, &class, &class_name].into_iter().flatten().count() {
        0 => Ok(()),
        1 => {
            ingress.name = name.unwrap_or_default();
            ingress.class = class;
            ingress.ingress_class_name = class_name;
            Ok(())
        }
        _ => Err(NoSolver::TwoOverrides),
    }
}

fn override_parents(solver: &mut ChallengeSolver, asking: Asking<'_>) -> Result<(), NoSolver> {
    let Some(route) = solver.http01.as_mut().and_then(|http01| http01.gateway_http_route.as_mut())
    else {
        return Ok(());
    };
    // cert-manager skips the whole check for an Order without annotations.
    if asking.annotations.is_empty() {
        return Ok(());
    }
    let given = |key: &str| asking.annotations.get(key).filter(|v| !v.is_empty());
    match (given(PARENT_NAME), given(PARENT_KIND)) {
        (None, None) => {}
        (Some(name), Some(kind)) => {
            let namespace =
                given(PARENT_NAMESPACE).map_or(asking.namespace, String::as_str).to_owned();
            append_parent(route, name, kind, namespace);
        }
        (Some(_), None) | (None, Some(_)) => return Err(NoSolver::HalfParent),
    }
    if route.parent_refs.is_empty() { Err(NoSolver::NoParent) } else { Ok(()) }
}

fn append_parent(route: &mut GatewaySolver, name: &str, kind: &str, namespace: String) {
    route.parent_refs.retain(|parent| {
        parent.namespace.as_deref() != Some(&namespace)
            || parent.name != name
            || parent.kind.as_deref().is_some_and(|own| own != kind)
    });
    route.parent_refs.push(ParentReference {
        kind: Some(kind.to_owned()),
        namespace: Some(namespace),
        name: name.to_owned(),
        ..ParentReference::default()
    });
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HTTP: &str = "http-01";
    const DNS: &str = "dns-01";

    /// Chooses and shows position and type, or the reason why there is none.
    fn check(solvers: Value, name: &str, labels: Value, annotations: Value, expected: &str) {
        let solvers: Vec<ChallengeSolver> = serde_json::from_value(solvers).unwrap();
        let labels = serde_json::from_value(labels).unwrap();
        let annotations = serde_json::from_value(annotations).unwrap();
        let asking =
            Asking { namespace: "web", labels: &labels, annotations: &annotations, kind: None };
        let identifier = Identifier::parse(name).unwrap();
        let shown = match would_choose(&solvers, &identifier, asking) {
            Ok(chosen) => format!("{} {}", chosen.position, chosen.challenge.kind),
            Err(reason) => reason.to_string(),
        };
        assert_eq!(shown, expected, "{name}");
    }

    fn http01(selector: Value) -> Value {
        json!({"selector": selector, "http01": {"ingress": {}}})
    }

    fn plain_http01() -> Value {
        json!({"http01": {"ingress": {}}})
    }

    fn plain_dns01() -> Value {
        json!({"dns01": {"acmeDNS": {"host": "https://dns", "accountSecretRef": {"name": "s", "key": "k"}}}})
    }

    const NONE: &str = "no configured challenge solvers can be used for this challenge";

    #[test]
    fn the_first_solver_stays_unless_a_later_one_is_more_specific() {
        let www = "www.example.com";
        let name = json!({"dnsNames": [www]});
        for (solvers, expected) in [
            (json!([plain_http01(), http01(json!({}))]), "0 http-01"),
            (json!([http01(json!({})), plain_http01()]), "0 http-01"),
            (json!([plain_http01(), http01(name.clone())]), "1 http-01"),
            (
                json!([
                    http01(json!({"dnsZones": ["com"]})),
                    http01(json!({"dnsZones": ["example.com"]}))
                ]),
                "1 http-01",
            ),
            (
                json!([http01(json!({"dnsZones": ["example.com"]})), http01(name.clone())]),
                "1 http-01",
            ),
            (
                json!([http01(name.clone()), http01(json!({"dnsZones": ["example.com"]}))]),
                "0 http-01",
            ),
            (json!([http01(name.clone()), http01(name)]), "0 http-01"),
            (json!([http01(json!({"dnsNames": ["other.example.com"]}))]), NONE),
            (json!([]), NONE),
        ] {
            check(solvers, www, json!({}), json!({}), expected);
        }
    }

    #[test]
    fn labels_of_the_order_must_all_match_and_count_last() {
        let www = "www.example.com";
        let one = http01(json!({"matchLabels": {"a": "1"}}));
        let two = http01(json!({"matchLabels": {"a": "1", "b": "2"}}));
        let named = |labels: Value| http01(json!({"dnsNames": [www], "matchLabels": labels}));
        let both = json!({"a": "1", "b": "2"});
        check(json!([one, two]), www, both.clone(), json!({}), "1 http-01");
        check(json!([two]), www, json!({"a": "1"}), json!({}), NONE);
        check(
            json!([named(json!({})), named(json!({"a": "1"}))]),
            www,
            both,
            json!({}),
            "1 http-01",
        );
    }

    #[test]
    fn a_wildcard_is_a_name_of_its_own_and_needs_dns_01() {
        let dns01 = |selector: Value| {
            let mut solver = plain_dns01();
            solver["selector"] = selector;
            solver
        };
        for (solver, expected) in [
            (dns01(json!({"dnsNames": ["example.com"]})), NONE),
            (dns01(json!({"dnsNames": ["*.example.com"]})), "0 dns-01"),
            (dns01(json!({"dnsZones": ["Example.COM"]})), "0 dns-01"),
            (dns01(json!({"dnsZones": ["ample.com"]})), NONE),
            (plain_http01(), NONE),
        ] {
            check(json!([solver]), "*.example.com", json!({}), json!({}), expected);
        }
    }

    #[test]
    fn an_address_is_proven_by_http_01_alone() {
        check(
            json!([plain_dns01(), plain_http01()]),
            "192.0.2.1",
            json!({}),
            json!({}),
            "1 http-01",
        );
    }

    #[test]
    fn a_solver_with_both_types_answers_what_the_ca_lists_first() {
        let solver: ChallengeSolver = serde_json::from_value(json!({
            "http01": {"ingress": {}},
            "dns01": {"webhook": {"groupName": "g", "solverName": "s"}},
        }))
        .unwrap();
        let offered = |kinds: &[&str]| -> Vec<OfferedChallenge> {
            kinds
                .iter()
                .map(|k| OfferedChallenge { kind: (*k).into(), ..Default::default() })
                .collect()
        };
        let first =
            |kinds: &[&str]| first_answerable(&solver, &offered(kinds)).map(|(_, kind)| kind);
        assert_eq!(first(&["tls-alpn-01", DNS, HTTP]), Some(ChallengeType::Dns01));
        assert_eq!(first(&[HTTP, DNS]), Some(ChallengeType::Http01));
        assert_eq!(first(&["tls-alpn-01"]), None);
    }

    /// Chooses for www.example.com and shows the solver after overrides.
    fn check_overrides(solver: Value, annotations: Value, expected: Result<Value, &str>) {
        let solvers: Vec<ChallengeSolver> = vec![serde_json::from_value(solver).unwrap()];
        let annotations = serde_json::from_value(annotations).unwrap();
        let asking = Asking {
            namespace: "web",
            labels: &BTreeMap::new(),
            annotations: &annotations,
            kind: None,
        };
        let identifier = Identifier::parse("www.example.com").unwrap();
        let chosen = would_choose(&solvers, &identifier, asking);
        let shown = chosen.map(|c| serde_json::to_value(c.solver).unwrap());
        assert_eq!(shown.map_err(|reason| reason.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn an_ingress_override_clears_the_other_two_fields() {
        check_overrides(
            json!({"http01": {"ingress": {"name": "shop"}}}),
            json!({OVERRIDE_CLASS: "nginx"}),
            Ok(json!({"http01": {"ingress": {"class": "nginx"}}})),
        );
        check_overrides(
            json!({"http01": {"ingress": {"ingressClassName": "nginx"}}}),
            json!({OVERRIDE_NAME: "shop"}),
            Ok(json!({"http01": {"ingress": {"name": "shop"}}})),
        );
        check_overrides(
            plain_http01(),
            json!({OVERRIDE_CLASS: "nginx", OVERRIDE_NAME: "shop"}),
            Err(
                "may not specify more than one of: name, class, ingressClassName override annotations",
            ),
        );
        check_overrides(
            plain_dns01(),
            json!({OVERRIDE_CLASS: "nginx", OVERRIDE_NAME: "shop"}),
            Ok(plain_dns01()),
        );
    }

    #[test]
    fn a_gateway_override_is_appended_once() {
        let edge = json!({"name": "edge"});
        let shim = json!({"kind": "Gateway", "namespace": "web", "name": "shim"});
        let route =
            |parents: Value| json!({"http01": {"gatewayHTTPRoute": {"parentRefs": parents}}});
        let named = json!({PARENT_NAME: "shim", PARENT_KIND: "Gateway"});
        check_overrides(route(json!([edge])), named.clone(), Ok(route(json!([edge, shim]))));
        check_overrides(route(json!([shim, edge])), named, Ok(route(json!([edge, shim]))));
        check_overrides(
            route(json!([edge])),
            json!({PARENT_NAME: "shim"}),
            Err("cannot specify only one of parentRefName, parentRefKind override annotations"),
        );
        let none = json!({"http01": {"gatewayHTTPRoute": {}}});
        check_overrides(
            none.clone(),
            json!({"other": "annotation"}),
            Err("must specify parentRefs either through annotations or solver config"),
        );
        check_overrides(none.clone(), json!({}), Ok(none));
    }
}
