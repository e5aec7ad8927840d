//! Refusals of DNS providers, read from the messages of cert-manager, of its libraries and of webhooks. Refusals that this
//! program's own solvers met are kept as data beside the reason (`model::provider_refusal`).

use super::controller::missing_right;
use super::foreign::{is_about_deed, is_about_update};
use crate::model::Challenge;
use crate::model::provider_refusal::{
    ProviderFault, ProviderRefusal, is_about_address, provider_name,
};

/// Returns what a provider refuses of a challenge's record, by the challenge's reason.
pub fn refusal(challenge: &Challenge) -> Option<ProviderRefusal> {
    let dns01 = challenge.spec.solver.dns01.as_deref()?;
    let reason = challenge.status.reason.as_str();
    let fault = provider_fault(reason).filter(|_| is_about_deed(reason))?;
    // The search for the zone asks other servers before the update is sent.
    if dns01.rfc2136.is_some()
        && fault == ProviderFault::Unreachable
        && !is_about_update(challenge, reason)
    {
        return None;
    }
    let provider = provider_name(dns01).to_owned();
    Some(ProviderRefusal { provider, ..ProviderRefusal::new(fault, "", reason) })
}

/// Reads why a DNS provider does not take a record from a message of cert-manager and its libraries. The messages do not
/// distinguish unknown credentials from credentials without permission.
fn provider_fault(said: &str) -> Option<ProviderFault> {
    if is_about_address(said) {
        return Some(ProviderFault::AddressRefused);
    }
    // The API server has refused a request; the provider never got one.
    if missing_right(said).is_some() {
        return None;
    }
    let said = said.to_lowercase();
    let says = |marks: &&[&str]| marks.iter().any(|mark| said.contains(mark));
    PROVIDER_MESSAGES.iter().find(|(marks, _)| says(marks)).map(|(_, fault)| *fault)
}

/// Messages with the fault that each means; the first match decides.
const PROVIDER_MESSAGES: &[(&[&str], ProviderFault)] = &[
    // Credentials that cannot even be sent, and machines without credentials of their own.
    (
        &[
            "contain a newline",
            "no ec2 imds role found",
            "failed to refresh cached credentials",
            "could not find default credentials",
            "no valid credential sources",
            "defaultazurecredential",
            "managedidentitycredential",
        ],
        ProviderFault::Credentials,
    ),
    (&["account credentials not found for domain"], ProviderFault::NotRegistered),
    (&["server replied: notimp"], ProviderFault::NoUpdates),
    (
        &["server replied: ", "notauth", "notzone", "badkey", "badsig", "badtime"],
        ProviderFault::Update,
    ),
    (
        &[
            "http 429",
            "error 429",
            "status 429",
            "status code: 429",
            "too many requests",
            "rate exceeded",
            "rate limit",
            "throttling",
            "quota exceeded",
            "http 500",
            "http 502",
            "http 503",
            "http 504",
            "error 503",
            "status code: 503",
            "service unavailable",
        ],
        ProviderFault::Busy,
    ),
    (
        &[
            "found no zones",
            "not found in route 53",
            "no matching googlecloud domain",
            "no zone",
            "zone not found",
            "domain not found",
        ],
        ProviderFault::NoZone,
    ),
    (
        &[
            "accessdenied",
            "not authorized to perform",
            "assumerole",
            "invalidclienttokenid",
            "signaturedoesnotmatch",
            "unrecognizedclient",
            "redacted aws sdk error",
            "redacted azure",
            "redacted digitalocean",
            "aadsts",
            "clientid was omitted",
            "authorizationfailed",
            "error 403",
            "http 403",
            "http 401",
            "status code: 401",
            "status code: 403",
            "(6003)",
            "(9103)",
            "(9109)",
            "(10000)",
            "6003:",
            "9103:",
            "9109:",
            "10000:",
            "authentication error",
            "invalid access token",
            "unable to authenticate",
            "invalid request headers",
            "are both present",
            "permission_denied",
            "forbidden",
            "unauthorized",
        ],
        ProviderFault::Permission,
    ),
    (
        &[
            "dial tcp",
            "i/o timeout",
            "connection refused",
            "connection reset",
            "no connection within",
            "no answer within",
            "no such host",
            "tls handshake",
            "x509: ",
            "invalid peer certificate",
        ],
        ProviderFault::Unreachable,
    ),
];
