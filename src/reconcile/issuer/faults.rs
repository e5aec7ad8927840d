//! Faults of an Issuer that only a person can remove, found without a request to the CA.

use std::collections::{BTreeMap, BTreeSet};

use url::Url;

use crate::model::acme_server::{LETS_ENCRYPT, LETS_ENCRYPT_STAGING};
use crate::model::event::reason;
use crate::model::issuer::AcmeIssuer;
use crate::model::solver::Dns01Solver;

/// Directories with a protocol older than RFC 8555, each with its successor.
const V1_ENDPOINTS: [(&str, &str); 2] = [
    ("https://acme-v01.api.letsencrypt.org/directory", LETS_ENCRYPT),
    ("https://acme-staging.api.letsencrypt.org/directory", LETS_ENCRYPT_STAGING),
];

/// Reason that an Issuer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Reason of the condition.
    pub reason: &'static str,
    /// Message of the condition.
    pub message: String,
    /// Event about the fault: reason and message.
    pub event: Option<(&'static str, String)>,
}

type FaultCheck = fn(&AcmeIssuer, &Observed) -> Option<Fault>;

const RULES: [FaultCheck; 3] = [key_fault, solver_fault, server_fault];

/// Returns the first fault in the needs of an account: key, credentials of solvers, server.
pub(super) fn of_set_up(acme: &AcmeIssuer, observed: &Observed) -> Option<Fault> {
    RULES.iter().find_map(|rule| rule(acme, observed))
}

/// Returns the fault of a directory that no longer exists.
pub(super) fn outdated_endpoint(acme: &AcmeIssuer) -> Option<Fault> {
    let server = acme.server.trim_end_matches('/');
    let (_, successor) = V1_ENDPOINTS.iter().find(|(old, _)| *old == server)?;
    let message = format!(
        "Your ACME server URL is set to a v1 endpoint ({}). You should update the spec.acme.server field to \"{successor}\"",
        acme.server
    );
    Some(Fault { reason: reason::INVALID_CONFIG, message, event: None })
}

fn key_fault(acme: &AcmeIssuer, observed: &Observed) -> Option<Fault> {
    match &observed.key {
        AccountKey::Usable(_) => None,
        AccountKey::Unusable(why) => {
            let message = format!("Account private key is invalid: {why}");
            Some(Fault { reason: reason::ERR_VERIFY_ACME_ACCOUNT, message, event: None })
        }
        AccountKey::Missing => {
            let secret = &acme.private_key_secret_ref.name;
            let message = format!(
                "Failed to verify ACME account: the ACME issuer config has 'disableAccountKeyGeneration' set to true, \
                 but the secret was not found: secrets \"{secret}\" not found"
            );
            let event = (reason::ERR_INIT_ISSUER, format!("Error initializing issuer: {message}"));
            Some(Fault { reason: reason::ERR_VERIFY_ACME_ACCOUNT, message, event: Some(event) })
        }
    }
}

/// Checks that every Secret that a DNS-01 solver names exists and holds the key.
fn solver_fault(acme: &AcmeIssuer, observed: &Observed) -> Option<Fault> {
    let named = acme.solvers.iter().filter_map(|solver| solver.dns01.as_deref());
    let mut faults: Vec<String> = Vec::new();
    for selector in named.flat_map(Dns01Solver::secrets) {
        let (name, key) = (&selector.name, &selector.key);
        let fault = match observed.secrets.get(name) {
            None => format!("failed to get secret \"{name}\": secrets \"{name}\" not found"),
            Some(keys) if !keys.contains(key) => {
                format!("the secret \"{name}\" does not have key \"{key}\"")
            }
            Some(_) => continue,
        };
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    let message = faults.join("; ");
    (!faults.is_empty()).then_some(Fault { reason: reason::INVALID_SOLVER, message, event: None })
}

fn server_fault(acme: &AcmeIssuer, _: &Observed) -> Option<Fault> {
    let why = match Url::parse(&acme.server) {
        Ok(url) if url.has_host() => return None,
        Ok(_) => "it names no host".to_owned(),
        Err(error) => error.to_string(),
    };
    let message = format!("Failed to parse existing ACME server URI \"{}\": {why}", acme.server);
    let event = Some((reason::INVALID_URL, message.clone()));
    Some(Fault { reason: reason::INVALID_URL, message, event })
}

/// Returns the fault of an external account binding that cannot be made.
pub(super) fn of_external_account(observed: &Observed) -> Option<Fault> {
    let why = observed.external_account.as_ref().err()?;
    let message = format!("Failed to register ACME account: {why}");
    let event = Some((reason::ERR_REGISTER_ACME_ACCOUNT, message.clone()));
    Some(Fault { reason: reason::ERR_REGISTER_ACME_ACCOUNT, message, event })
}

/// Observations of one step beside the Issuer.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The account key.
    pub key: AccountKey,
    /// Whether the external account binding can be made, if one is asked for; the error says why not.
    pub external_account: Result<(), String>,
    /// Secrets of DNS-01 solvers that exist, each with its keys.
    pub secrets: BTreeMap<String, BTreeSet<String>>,
    /// Whether the CA has refused the same request to this process, so that a repeat is useless.
    pub refused: bool,
}

/// Facts about the account key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountKey {
    /// The Secret does not exist.
    Missing,
    /// The Secret exists and holds no usable key.
    Unusable(String),
    /// Base64 of the SHA-256 of the key, as `status.acme.lastPrivateKeyHash` keeps it.
    Usable(String),
}
