//! How solver objects are named, labelled and owned, so that they are found again.

use serde_json::{Value, json};

use super::options::Options;
use crate::model::Challenge;

/// How names of solver objects begin; the server adds five characters.
const PREFIX: &str = "cm-acme-http-solver-";
/// Marks the objects of a rehearsal, which have no owner; the value is the UID of their Challenge.
pub const REHEARSAL: &str = "kubectl-acme/rehearsal";
/// Names, on the Service of a rehearsal, the Ingress of others with a path to it.
pub(super) const EDITS: &str = "kubectl-acme/edits-ingress";

/// The labels by which a Challenge's solver objects are found, cert-manager's own.
pub fn labels(challenge: &Challenge) -> Vec<(String, String)> {
    let label = |name: &str, value: String| (format!("acme.cert-manager.io/{name}"), value);
    vec![
        label("http-domain", adler32(&challenge.spec.dns_name).to_string()),
        label("http-token", adler32(&challenge.spec.token).to_string()),
        label("http01-solver", "true".to_owned()),
    ]
}

/// The labels by which we look for them; those of a rehearsal are found even if a template has changed the others, since no
/// owner takes them along.
pub(super) fn selector(challenge: &Challenge, options: &Options) -> Vec<(String, String)> {
    match options.rehearsal {
        Some(_) => vec![(REHEARSAL.to_owned(), challenge.metadata.uid.clone())],
        None => labels(challenge),
    }
}

/// The part of the metadata that all solver objects share.
pub(super) fn metadata(challenge: &Challenge, options: &Options) -> Value {
    let mut all = options.extra_labels.clone();
    all.extend(labels(challenge));
    let mut metadata = json!({
        "generateName": PREFIX,
        "namespace": challenge.metadata.namespace,
    });
    if options.rehearsal.is_none() {
        metadata["ownerReferences"] = json!([challenge.owner_reference()]);
    }
    metadata["labels"] = json!(all);
    metadata
}

/// Tells whether an object was made for this Challenge: equal labels happen, since they are short sums.
pub fn is_for(object: &Value, challenge: &Challenge) -> bool {
    let uid = challenge.metadata.uid.as_str();
    let metadata = &object["metadata"];
    if metadata["labels"][REHEARSAL].as_str().is_some_and(|marked| marked == uid) {
        return true;
    }
    let owners = metadata["ownerReferences"].as_array();
    owners.is_some_and(|owners| {
        owners.iter().any(|owner| owner["controller"] == true && owner["uid"] == uid)
    })
}

/// The path under which the CA asks.
pub(super) fn path(challenge: &Challenge) -> String {
    format!("{}{}", super::super::PATH, challenge.spec.token)
}

/// The host of rules; nothing for an address, because rules know only names.
pub(super) fn host(challenge: &Challenge) -> Option<&str> {
    let name = challenge.spec.dns_name.as_str();
    name.parse::<std::net::IpAddr>().is_err().then_some(name)
}

/// Adler-32 (RFC 1950 §8.2), which cert-manager makes label values of.
fn adler32(text: &str) -> u32 {
    const MODULUS: u32 = 65_521;
    let (low, high) = text.bytes().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::solvers::testing::challenge;
    use crate::store::cluster::temporary;

    #[test]
    fn sums_are_those_of_cert_manager() {
        for (text, sum) in [
            ("example.com", 446_694_490),
            ("www.example.com", 810_681_837),
            ("test.com", 244_122_414),
            ("token", 108_921_378),
            ("", 1),
        ] {
            assert_eq!(adler32(text), sum, "{text}");
        }
    }

    #[test]
    fn an_object_belongs_to_the_challenge_that_controls_it() {
        let ours = challenge();
        let made = |options: &Options| {
            let mut object = json!({"metadata": metadata(&ours, options)});
            if let Some(until) = options.rehearsal {
                temporary::mark(&mut object, REHEARSAL, &ours.metadata.uid, until);
            }
            object
        };
        let mut other = challenge();
        "another".clone_into(&mut other.metadata.uid);
        let rehearsal = Options { rehearsal: Some(Timestamp::UNIX_EPOCH), ..Options::default() };
        for options in [Options::default(), rehearsal] {
            let object = made(&options);
            assert_eq!(
                object["metadata"].get("ownerReferences").is_none(),
                options.rehearsal.is_some()
            );
            assert!(is_for(&object, &ours) && !is_for(&object, &other));
        }
        let mut held = made(&Options::default());
        held["metadata"]["ownerReferences"][0]["controller"] = false.into();
        assert!(!is_for(&held, &ours), "an owner that does not control it");
    }

    #[test]
    fn extra_labels_do_not_replace_those_by_which_objects_are_found() {
        let extra = [("team", "web"), ("acme.cert-manager.io/http01-solver", "no")];
        let extra_labels = extra.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let labels =
            &metadata(&challenge(), &Options { extra_labels, ..Options::default() })["labels"];
        assert_eq!(labels["team"], "web");
        assert_eq!(labels["acme.cert-manager.io/http01-solver"], "true");
    }
}
