//! Facts: keys, certificates and signing requests, parsed for the machines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::secret_builder;
use crate::acme::chain::{self, ChainFault};
use crate::acme::csr::{self, RequestError};
use crate::acme::keys::PrivateKey;
use crate::model::event::source;
use crate::model::secret::{TLS_CRT, TLS_KEY};
use crate::model::{Blob, Metadata, Secret, memory};
use crate::reconcile::facts::{CsrFacts, KeyFacts, LeafFacts, PublicKey, SecretFacts};

/// Returns the facts about a Secret of key and certificate, without keystores, which need their passwords.
pub fn of_secret(secret: &Secret) -> SecretFacts {
    let filled = |key: &str| secret.value(key).filter(|value| !value.is_empty());
    SecretFacts {
        has_data: !secret.data.is_empty() || !secret.string_data.is_empty(),
        key: filled(TLS_KEY).map(of_key),
        leaf: filled(TLS_CRT).map(of_chain),
        formats: secret_builder::formats_in(secret),
        keystores: BTreeMap::new(),
        labels: secret.metadata.labels.clone(),
        annotations: secret.metadata.annotations.clone(),
        foreign: foreign(&secret.metadata, &["f:metadata/f:labels", "f:metadata/f:annotations"]),
        foreign_data: foreign(&secret.metadata, &["f:data"]),
        owners: secret.metadata.owner_references.clone(),
        foreign_owners: foreign_owners(&secret.metadata),
    }
}

/// Returns the facts about a private key, PEM.
pub fn of_key(pem: &[u8]) -> Result<KeyFacts, String> {
    let key = PrivateKey::from_pem(pem).map_err(|error| error.to_string())?;
    let public_key = PublicKey(key.public_key().to_vec());
    Ok(KeyFacts { algorithm: key.algorithm(), public_key })
}

/// Returns the facts about the first certificate of a chain, PEM.
pub fn of_chain(pem: &[u8]) -> Result<LeafFacts, String> {
    let leaf = chain::leaf(&String::from_utf8_lossy(pem)).map_err(describe_fault)?;
    Ok(LeafFacts {
        not_before: leaf.not_before,
        not_after: leaf.not_after,
        public_key: PublicKey(leaf.public_key),
        renewal_id: leaf.renewal_id,
        serial: leaf.serial,
        names: leaf.names,
    })
}

/// Returns why a chain cannot be read, in cert-manager's words; details from Go's libraries are put in plain ones.
fn describe_fault(fault: ChainFault) -> String {
    match fault {
        ChainFault::Empty => {
            "error decoding certificate PEM block: no valid certificates found".to_owned()
        }
        ChainFault::Unreadable { why, .. } => format!("error parsing TLS certificate: {why}"),
        other => other.to_string(),
    }
}

/// Returns the facts about the first certificate of a status; `None` while there is none.
pub fn of_issued(chain: &Blob) -> Option<Result<LeafFacts, String>> {
    (!chain.is_empty()).then(|| of_chain(&chain.0))
}

/// Returns the facts about a signing request, PEM or DER, after checking its signature.
pub fn of_request(bytes: &[u8]) -> Result<CsrFacts, String> {
    read_request(csr::read(bytes))
}

/// Returns the facts about a signing request whose signature is checked elsewhere: that check is most of the work.
pub(super) fn of_request_unverified(bytes: &[u8]) -> Result<CsrFacts, String> {
    read_request(csr::read_unverified(bytes))
}

fn read_request(read: Result<csr::SigningRequest, RequestError>) -> Result<CsrFacts, String> {
    let request = read.map_err(RequestError::why)?;
    Ok(CsrFacts { public_key: PublicKey(request.public_key), names: request.names })
}

/// Returns the keys at these places that another field manager wrote. A store without field managers has only what this
/// program applied, beside its own annotations.
fn foreign(metadata: &Metadata, places: &[&str]) -> BTreeSet<String> {
    let notes = metadata.annotations.keys().filter(|key| memory::is_ours(key)).cloned();
    let fields = places.iter().flat_map(|place| of_others(metadata, place));
    notes.chain(fields.filter_map(|key| key.strip_prefix("f:").map(str::to_owned))).collect()
}

/// Returns the UIDs of owners that another field manager set.
fn foreign_owners(metadata: &Metadata) -> BTreeSet<String> {
    let uid = |key: &String| {
        let fields: Value = serde_json::from_str(key.strip_prefix("k:")?).ok()?;
        Some(fields.get("uid")?.as_str()?.to_owned())
    };
    of_others(metadata, "f:metadata/f:ownerReferences").filter_map(uid).collect()
}

/// Returns the fields at a place that other field managers wrote.
fn of_others<'a>(metadata: &'a Metadata, place: &str) -> impl Iterator<Item = &'a String> {
    let entries = metadata.other.get("managedFields").and_then(Value::as_array);
    let others = entries
        .into_iter()
        .flatten()
        .filter(|entry| entry.get("manager").and_then(Value::as_str) != Some(source::ISSUING));
    let place = format!("/fieldsV1/{place}");
    let fields = move |entry: &'a Value| entry.pointer(&place).and_then(Value::as_object);
    others.filter_map(fields).flat_map(|fields| fields.keys())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_cannot_be_read_is_told_in_cert_managers_words() {
        let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (pem, expected) in [
            ("", "error decoding certificate PEM block: no valid certificates found"),
            ("nonsense", "error decoding certificate PEM block: no valid certificates found"),
            (damaged, "error parsing TLS certificate: "),
        ] {
            let why = of_chain(pem.as_bytes()).unwrap_err();
            assert!(why.starts_with(expected), "{pem}: {why}");
        }
    }
}
