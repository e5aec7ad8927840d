//! What an Order asks the CA for, and which Challenges its authorizations call for.

use std::collections::BTreeSet;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;

use super::order::{Required, Wanted};
use super::solver_choice::{Asking, choose};
use crate::model::naming::challenge_name;
use crate::model::order::Authorization;
use crate::model::{ChallengeSpec, ChallengeType, Identifier, Issuer, Order, OrderSpec, State};

/// Returns the Challenges that the authorizations of an Order call for, in the CA's order; valid ones call for none.
///
/// # Errors
/// Says for which name no solver can be used, in cert-manager's words.
pub fn required(order: &Order, issuer: &Issuer, thumbprint: &str) -> Result<Vec<Required>, String> {
    let solvers = issuer.spec.acme.as_ref().map_or(&[][..], |acme| &acme.solvers);
    let asking = Asking {
        namespace: &order.metadata.namespace,
        labels: &order.metadata.labels,
        annotations: &order.metadata.annotations,
    };
    let mut required = Vec::new();
    for authorization in &order.status.authorizations {
        let is_read = !authorization.identifier.is_empty();
        if !is_read || authorization.initial_state == Some(State::Valid) {
            continue;
        }
        let chosen = choose(solvers, asking, authorization).map_err(|why| why.to_string())?;
        let spec = ChallengeSpec {
            url: chosen.challenge.url,
            authorization_url: authorization.url.clone(),
            dns_name: authorization.identifier.clone(),
            wildcard: authorization.wildcard.unwrap_or(false),
            kind: chosen.kind,
            key: key(chosen.kind, &chosen.challenge.token, thumbprint),
            token: chosen.challenge.token,
            solver: chosen.solver,
            issuer_ref: order.spec.issuer_ref.clone(),
        };
        required.push(Required { name: challenge_name(&order.metadata.name, &spec), spec });
    }
    Ok(required)
}

/// The identifiers of the signing request: DNS names, then addresses, each sorted and once (RFC 8555 §7.4).
///
/// # Errors
/// Fails when a name of the spec is none.
pub fn wanted(order: &Order, now: Timestamp) -> Result<Wanted, String> {
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
    Ok(Wanted { identifiers, not_after, profile, replaces })
}

/// Says what is wrong with the authorizations of an order, once all are read: one that has yet to be shown is for a name
/// that was not ordered, or a name has none. A valid one may be for a name above (RFC 9444).
pub fn mismatch(spec: &OrderSpec, authorizations: &[Authorization]) -> Option<String> {
    if authorizations.iter().any(|a| a.identifier.is_empty()) {
        return None;
    }
    let names = spec.dns_names.iter().chain(&spec.ip_addresses).chain([&spec.common_name]);
    let ordered: BTreeSet<String> =
        names.filter(|name| !name.is_empty()).map(|name| canonical(name)).collect();
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

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn name_of(authorization: &Authorization) -> String {
    let base = canonical(&authorization.identifier);
    if authorization.wildcard == Some(true) { format!("*.{base}") } else { base }
}

/// One spelling for every name: lower case, addresses in their shortest form.
fn canonical(name: &str) -> String {
    Identifier::parse(name).map_or_else(|_| name.to_ascii_lowercase(), |id| id.to_string())
}

/// The key authorization (RFC 8555 §8.1), for DNS-01 its digest (§8.4).
fn key(kind: ChallengeType, token: &str, thumbprint: &str) -> String {
    let authorization = format!("{token}.{thumbprint}");
    match kind {
        ChallengeType::Http01 => authorization,
        ChallengeType::Dns01 => {
            URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, authorization.as_bytes()))
        }
    }
}
