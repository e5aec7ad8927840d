//! Which Challenges an Order calls for.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::order::Required;
use super::solver_choice::{Asking, choose};
use crate::model::naming::challenge_name;
use crate::model::{ChallengeSpec, ChallengeType, Issuer, Order, State};

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
