//! Order: the names that the CA is asked for, and the Challenges that the authorizations call for.
//!
//! Each authorization is read once, whatever the order lists; if there are more authorizations than names, the order
//! ends before any is read.

use std::collections::BTreeSet;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;

use crate::model::cause::OrderWait;
use crate::model::hashed_names::challenge_name;
use crate::model::issuer::asked_type;
use crate::model::names::shown_domain;
use crate::model::order::{Authorization, OfferedChallenge};
use crate::model::persist::{Account, Persist};
use crate::model::{
    ChallengeSolver, ChallengeSpec, ChallengeType, Identifier, Issuer, Order, OrderSpec, State,
};
use crate::reconcile::solver_choice::{Asking, NoSolver, choose};

/// Challenge types that a store can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Types {
    /// All types of this program: a store of our own.
    #[default]
    All,
    /// Types of cert-manager: a cluster.
    OfCluster,
}

/// Reason that no solver can be used for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsolved {
    /// Name and explanation, in cert-manager's words.
    pub why: String,
    /// Condition that has to change.
    pub waits_for: OrderWait,
}

impl Unsolved {
    /// Builds the reason for solvers of the issuer that do not fit.
    pub fn by_solvers(why: impl Into<String>) -> Self {
        Self { why: why.into(), waits_for: OrderWait::Solver }
    }

    /// Builds the reason for a challenge type that an annotation of the issuer asks for but that is not available.
    pub fn by_type(why: impl Into<String>) -> Self {
        Self { why: why.into(), waits_for: OrderWait::ChallengeType }
    }
}

/// Returns the Challenges that the authorizations of an Order call for, in the CA's order; valid ones call for none.
///
/// # Errors
/// Fails with the name for which no solver can be used, in cert-manager's words.
pub fn required(
    order: &Order,
    issuer: &Issuer,
    account: Account<'_>,
    types: Types,
) -> Result<Vec<Required>, Unsolved> {
    let kind = asked_type(issuer).map_err(|why| Unsolved::by_type(why.to_string()))?;
    if let Some(kind) = kind.filter(|_| types == Types::OfCluster) {
        return Err(Unsolved::by_type(not_in_a_cluster(kind)));
    }
    let solvers = issuer.spec.acme.as_ref().map_or(&[][..], |acme| &acme.solvers);
    let asking = Asking {
        namespace: &order.metadata.namespace,
        labels: &order.metadata.labels,
        annotations: &order.metadata.annotations,
        kind,
    };
    let mut required = Vec::new();
    for authorization in &order.status.authorizations {
        let is_read = !authorization.identifier.is_empty();
        if !is_read || authorization.initial_state == Some(State::Valid) {
            continue;
        }
        let chosen = choose(solvers, asking, authorization)
            .map_err(|why| with_offer(&why, solvers, authorization))?;
        let name = &authorization.identifier;
        let persist =
            persist_of(chosen.kind, &chosen.challenge, account, name).map_err(Unsolved::by_type)?;
        let key = match &persist {
            Some(persist) => persist.record(is_wildcard_anywhere(order, name)),
            None => key(chosen.kind, &chosen.challenge.token, account.thumbprint),
        };
        let spec = ChallengeSpec {
            url: chosen.challenge.url,
            authorization_url: authorization.url.clone(),
            dns_name: name.clone(),
            wildcard: authorization.wildcard.unwrap_or(false),
            kind: chosen.kind,
            key,
            token: chosen.challenge.token,
            solver: chosen.solver,
            issuer_ref: order.spec.issuer_ref.clone(),
            account_label: account_label(chosen.kind, account.url),
            persist,
        };
        let name = challenge_name(&order.metadata.name, &spec);
        if !required.iter().any(|known: &Required| known.name == name) {
            required.push(Required { name, spec });
        }
    }
    Ok(required)
}

/// Returns why no solver is used, with the types that the CA offers if the solvers are for other ones.
fn with_offer(
    why: &NoSolver,
    solvers: &[ChallengeSolver],
    authorization: &Authorization,
) -> Unsolved {
    let offered: Vec<&str> = authorization.challenges.iter().map(|c| c.kind.as_str()).collect();
    let lacks = |kind: ChallengeType| !offered.contains(&kind.acme_name());
    let is_lacked = solvers.iter().any(|solver| {
        solver.http01.is_some() && lacks(ChallengeType::Http01)
            || solver.dns01.is_some() && lacks(ChallengeType::Dns01)
    });
    match why {
        NoSolver::NoneFits if is_lacked => {
            let offered =
                if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") };
            let name = name_of(authorization);
            Unsolved::by_solvers(format!("{why}: for {name} the CA offers {offered}"))
        }
        NoSolver::NotOffered { .. } => Unsolved::by_type(why.to_string()),
        NoSolver::NoneFits | NoSolver::TwoOverrides | NoSolver::HalfParent | NoSolver::NoParent => {
            Unsolved::by_solvers(why.to_string())
        }
    }
}

/// Returns why a challenge type cannot be used in a cluster.
pub fn not_in_a_cluster(kind: ChallengeType) -> String {
    format!(
        "{} is for a store of one machine only: the schema of a Challenge in a cluster admits HTTP-01 and DNS-01 \
         alone, and cert-manager would answer the wrong question if it took over",
        kind.acme_name()
    )
}

/// Returns the content of a persistent record, for the challenge type that has one.
fn persist_of(
    kind: ChallengeType,
    offered: &OfferedChallenge,
    account: Account<'_>,
    name: &str,
) -> Result<Option<Persist>, String> {
    if kind != ChallengeType::DnsPersist01 {
        return Ok(None);
    }
    let unusable = |why: &str| format!("cannot use what the CA offers for {name}: {why}");
    let Some(offer) = &offered.persist else {
        return Err(unusable(
            "its dns-persist-01 challenge has no issuer domain names, or the order is older than the wish for that type",
        ));
    };
    Persist::of(offer, account, name).map(Some).map_err(|why| unusable(&why))
}

/// Returns whether an order includes the wildcard of a name, so that one record can do for both.
fn is_wildcard_anywhere(order: &Order, name: &str) -> bool {
    let mut authorizations = order.status.authorizations.iter();
    authorizations.any(|a| a.wildcard == Some(true) && a.identifier == name)
}

/// Returns the label of an account (draft-ietf-acme-dns-account-label §3.2), for the type that has one: base32 of the
/// first 10 bytes of the digest of the account's URL.
fn account_label(kind: ChallengeType, url: &str) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    if kind != ChallengeType::DnsAccount01 {
        return String::new();
    }
    let digest = digest::digest(&digest::SHA256, url.as_bytes());
    let quintets = digest.as_ref()[..10].chunks(5).flat_map(|bytes| {
        let forty = bytes.iter().fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
        (0..8).rev().map(move |place| (forty >> (5 * place)) & 31)
    });
    let letter = |quintet: u64| usize::try_from(quintet).ok().and_then(|at| ALPHABET.get(at));
    quintets.filter_map(letter).map(|letter| char::from(*letter)).collect()
}

/// Returns the terms of newOrder; identifiers are DNS names, then addresses, each sorted and once (RFC 8555 §7.4).
///
/// # Errors
/// Fails if a name of the spec is not a valid identifier.
pub fn wanted(order: &Order, now: Timestamp) -> Result<OrderTerms, String> {
    let spec = &order.spec;
    let mut identifiers = Vec::new();
    for name in &spec.dns_names {
        identifiers.push(Identifier::parse(name).map_err(|e| e.to_string())?);
    }
    for address in &spec.ip_addresses {
        let parsed = address.parse().map_err(|_| format!("\"{address}\" is not an IP address"))?;
        identifiers.push(Identifier::Ip(parsed));
    }
    if !spec.common_name.is_empty() {
        // A common name that is neither a full name nor an address is dropped, as cert-manager does.
        if let Ok(identifier) = Identifier::parse(&spec.common_name) {
            let full = match &identifier {
                Identifier::Dns(name) => name.as_str().contains('.') && !name.is_wildcard(),
                Identifier::Ip(_) => true,
            };
            identifiers.extend(full.then_some(identifier));
        }
    }
    identifiers.sort();
    identifiers.dedup();
    let not_after = spec.duration.and_then(|d| now.saturating_add(d.0).ok());
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    let (profile, replaces) = (text(&spec.profile), text(&spec.replaces));
    Ok(OrderTerms { identifiers, not_after, profile, replaces })
}

/// Returns the fault of an order with more authorizations than names, before each costs a request and a Challenge.
pub fn too_many(spec: &OrderSpec, authorizations: usize) -> Option<String> {
    let names = ordered_names(spec);
    (authorizations > names.len()).then(|| {
        format!(
            "the CA asks for {authorizations} authorizations, more than the order has names: it is for {}",
            list(&names)
        )
    })
}

/// Returns the fault of an order's authorizations, once all are read: an open one is for a name that was not ordered,
/// or a name has none. A valid authorization may be for a parent name (RFC 9444).
pub fn mismatch(spec: &OrderSpec, authorizations: &[Authorization]) -> Option<String> {
    if authorizations.iter().any(|a| a.identifier.is_empty()) {
        return None;
    }
    let ordered = ordered_names(spec);
    let authorized: BTreeSet<String> = authorizations.iter().map(name_of).collect();
    let open = |a: &&Authorization| a.initial_state != Some(State::Valid);
    let stray = authorizations.iter().filter(open).map(name_of).find(|n| !ordered.contains(n));
    if let Some(name) = stray {
        return Some(format!(
            "the CA asks for an authorization of {name}, which was not ordered: the order is for {}",
            list(&ordered)
        ));
    }
    let required = spec.dns_names.iter().chain(&spec.ip_addresses).map(|name| canonical(name));
    let covered =
        |name: &String| authorized.iter().any(|a| a == name || name.ends_with(&format!(".{a}")));
    let bare = required.into_iter().find(|name| !covered(name))?;
    Some(format!("the CA has no authorization for {bare}: it has {}", list(&authorized)))
}

/// Returns the ordered names, each once.
fn ordered_names(spec: &OrderSpec) -> BTreeSet<String> {
    let names = spec.dns_names.iter().chain(&spec.ip_addresses).chain([&spec.common_name]);
    names.filter(|name| !name.is_empty()).map(|name| canonical(name)).collect()
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn name_of(authorization: &Authorization) -> String {
    let base = canonical(&authorization.identifier);
    shown_domain(&base, authorization.wildcard == Some(true))
}

/// Returns the canonical spelling of a name: lower case, addresses in their shortest form.
fn canonical(name: &str) -> String {
    Identifier::parse(name).map_or_else(|_| name.to_ascii_lowercase(), |id| id.to_string())
}

/// Returns the key authorization (RFC 8555 §8.1), or its digest for DNS-01 (§8.4).
fn key(kind: ChallengeType, token: &str, thumbprint: &str) -> String {
    let authorization = format!("{token}.{thumbprint}");
    match kind {
        ChallengeType::Http01 | ChallengeType::TlsAlpn01 => authorization,
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::DnsPersist01 => {
            URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, authorization.as_bytes()))
        }
    }
}

/// A Challenge that an authorization calls for.
#[derive(Clone, Debug, PartialEq)]
pub struct Required {
    /// Object name: a hash over the spec, so that a repeat finds the first Challenge.
    pub name: String,
    /// Spec of the Challenge.
    pub spec: ChallengeSpec,
}

/// Terms of newOrder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderTerms {
    /// Names, each once, DNS names before addresses.
    pub identifiers: Vec<Identifier>,
    /// Requested end of the certificate.
    pub not_after: Option<Timestamp>,
    /// Profile.
    pub profile: Option<String>,
    /// ARI identifier of the predecessor.
    pub replaces: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::order::Authorization;
    use crate::reconcile::testing::order;

    const ACCOUNT: Account<'static> = Account {
        url: "https://ca.example/acct/123",
        thumbprint: "thumbprint",
        directory: "https://ca.example/",
    };

    /// Checks the Challenges for an order of a name and its wildcard, if the CA offers this challenge; each as name,
    /// key, and whether its solver has a provider.
    fn check(
        asked: &str,
        solvers: &Value,
        offered: &Value,
        types: Types,
    ) -> Result<Vec<(String, String, bool)>, String> {
        let mut annotations = json!({"kubectl-acme/challenge-type": asked});
        if asked.is_empty() {
            annotations = json!({});
        }
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "acme", "annotations": annotations},
            "spec": {"acme": {
                "server": "https://ca.example/directory", "privateKeySecretRef": {"name": "key"},
                "solvers": solvers,
            }},
        });
        let authorization = |wildcard: bool| Authorization {
            url: format!("https://ca.example/authz/{wildcard}"),
            identifier: "example.com".to_owned(),
            wildcard: Some(wildcard),
            initial_state: Some(State::Pending),
            challenges: serde_json::from_value(json!([offered])).unwrap(),
            ..Authorization::default()
        };
        let order = order("web-1")
            .state(State::Pending)
            .change(|o| o.status.authorizations = [false, true].map(authorization).to_vec())
            .build();
        let issuer = serde_json::from_value(issuer).unwrap();
        let found = required(&order, &issuer, ACCOUNT, types).map_err(|unsolved| unsolved.why)?;
        let found = found.into_iter().map(|required| {
            let spec = required.spec;
            (spec.record_name(), spec.key, spec.solver.dns01.is_some())
        });
        Ok(found.collect())
    }

    #[test]
    fn the_record_of_an_account_stands_at_a_name_of_its_own() {
        let label = |url: &str| account_label(ChallengeType::DnsAccount01, url);
        assert_eq!(label("https://example.com/acme/acct/ExampleAccount"), "ujmmovf2vn55tgye");
        let offered = json!({"type": "dns-account-01", "url": "/c", "token": "token"});
        let solvers = json!([{"http01": {"ingress": {}}}, {"dns01": {"rfc2136": {"nameserver": "192.0.2.1"}}}]);
        let found = check("dns-account-01", &solvers, &offered, Types::All).unwrap();
        let name = format!("_{}._acme-challenge.example.com.", label(ACCOUNT.url));
        let key = key(ChallengeType::Dns01, "token", "thumbprint");
        assert_eq!(found, vec![(name, key, true); 2]);
        let why =
            check("dns-account-01", &json!([{"http01": {"ingress": {}}}]), &offered, Types::All);
        assert!(why.unwrap_err().starts_with("no configured challenge solvers"));
    }

    #[test]
    fn a_persistent_record_does_for_a_name_and_its_wildcard() {
        let offered = json!({"type": "dns-persist-01", "url": "/c", "token": "", "persist": {
            "issuerDomainNames": ["ca.example"], "account": "url",
        }});
        let name = "_validation-persist.example.com.".to_owned();
        let key = format!("ca.example; accounturi={}; policy=wildcard", ACCOUNT.url);
        let by_hand =
            check("dns-persist-01", &json!([{"http01": {"ingress": {}}}]), &offered, Types::All);
        assert_eq!(by_hand, Ok(vec![(name.clone(), key.clone(), false); 2]));
        let solvers = json!([{"dns01": {"rfc2136": {"nameserver": "192.0.2.1"}}}]);
        let by_provider = check("dns-persist-01", &solvers, &offered, Types::All);
        assert_eq!(by_provider, Ok(vec![(name, key, true); 2]));
    }

    #[test]
    fn a_cluster_has_no_words_for_other_types() {
        let offered = json!({"type": "tls-alpn-01", "url": "/c", "token": "token"});
        let why = check("tls-alpn-01", &json!([]), &offered, Types::OfCluster).unwrap_err();
        assert!(why.starts_with("tls-alpn-01 is for a store of one machine only"), "{why}");
        let why = check("tls-sni-01", &json!([]), &offered, Types::OfCluster).unwrap_err();
        assert!(why.contains("must be dns-account-01, dns-persist-01 or tls-alpn-01"), "{why}");
    }

    #[test]
    fn solvers_for_what_the_ca_does_not_offer_are_told_what_it_offers() {
        let offered = json!({"type": "tls-alpn-01", "url": "/c", "token": "token"});
        let none = "no configured challenge solvers can be used for this challenge";
        for (solvers, more) in [
            (json!([{"http01": {"ingress": {}}}]), ": for example.com the CA offers tls-alpn-01"),
            (json!([]), ""),
        ] {
            let why = check("", &solvers, &offered, Types::All).unwrap_err();
            assert_eq!(why, format!("{none}{more}"));
        }
    }

    #[test]
    fn what_the_ca_does_not_offer_is_told_with_what_it_offers() {
        let offered = json!({"type": "dns-01", "url": "/c", "token": "token"});
        let why = check("tls-alpn-01", &json!([]), &offered, Types::All).unwrap_err();
        assert_eq!(
            why,
            "the issuer asks for tls-alpn-01 (kubectl-acme/challenge-type), and for example.com the CA offers dns-01"
        );
        let offered = json!({"type": "dns-persist-01", "url": "/c", "token": ""});
        let why = check("dns-persist-01", &json!([]), &offered, Types::All).unwrap_err();
        assert!(why.contains("has no issuer domain names"), "{why}");
    }
}
