//! The Secrets of an Issuer: account key, external account binding, credentials of solvers.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use super::accounts;
use crate::acme::AccountKey;
use crate::model::issuer::AcmeIssuer;
use crate::model::solver::Dns01Solver;
use crate::model::{Blob, Issuer, KeyAlgorithm, Metadata, Secret, SecretKeySelector, mac_key};

/// Makes an account key, PEM; RSA 2048 takes some 50 ms of computing.
///
/// # Errors
/// Fails with the reason if the crypto library fails.
pub fn make_key(algorithm: KeyAlgorithm) -> Result<Zeroizing<String>, String> {
    let made = AccountKey::generate(algorithm).and_then(|key| key.to_pem());
    made.map_err(|error| error.to_string())
}

/// Builds the Secret of a new account key; it has no owner, so that it outlives the Issuer.
pub fn new_secret(acme: &AcmeIssuer, namespace: &str, pem: &str) -> Secret {
    let managed_by = ("app.kubernetes.io/managed-by".to_owned(), "cert-manager".to_owned());
    Secret {
        metadata: Metadata {
            name: acme.private_key_secret_ref.name.clone(),
            namespace: namespace.to_owned(),
            labels: BTreeMap::from([managed_by]),
            ..Metadata::default()
        },
        secret_type: "Opaque".to_owned(),
        data: BTreeMap::from([(accounts::key_in_secret(acme), Blob(pem.as_bytes().to_vec()))]),
        ..Secret::default()
    }
}

/// Returns whether an issuer refers to a Secret of this name.
pub fn names_secret(issuer: &Issuer, name: &str) -> bool {
    let Some(acme) = &issuer.spec.acme else { return false };
    let binding = acme.external_account_binding.iter().map(|binding| &binding.key_secret_ref);
    let solvers = acme.solvers.iter().filter_map(|solver| solver.dns01.as_deref());
    let mut solvers = solvers.flat_map(Dns01Solver::secrets);
    let key = std::iter::once(&acme.private_key_secret_ref);
    key.chain(binding).any(|selector| selector.name == name)
        || solvers.any(|selector| selector.name == name)
}

/// Returns the MAC key of an external account binding.
///
/// # Errors
/// Fails with the reason if the key is missing or not base64url text.
pub fn mac_key(
    secret: Option<&Secret>,
    selector: &SecretKeySelector,
    namespace: &str,
) -> Result<Zeroizing<Vec<u8>>, String> {
    let SecretKeySelector { name, key } = selector;
    let secret = secret
        .ok_or_else(|| format!("secrets \"{name}\" not found in namespace \"{namespace}\""))?;
    let text = secret
        .value(key)
        .ok_or_else(|| format!("failed to find external account binding key data in Secret \"{name}\" at index \"{key}\""))?;
    let decoded = std::str::from_utf8(text).ok().and_then(mac_key::decode);
    decoded.ok_or_else(|| {
        format!("the external account binding key in Secret \"{name}\" is not base64url text")
    })
}
