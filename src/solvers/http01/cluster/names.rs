//! Names, labels and owners of solver objects, by which the objects are found again.

use serde_json::{Value, json};

use super::options::Options;
use crate::model::Challenge;

/// Start of the names of solver objects; the server adds five characters.
const NAME_PREFIX: &str = "cm-acme-http-solver-";
/// Label of the objects of a rehearsal, which have no owner; the value is the UID of their Challenge.
pub const REHEARSAL: &str = "kubectl-acme/rehearsal";
/// Annotation on the Service of a rehearsal: the foreign Ingress that has a path to the Service.
pub(super) const EDITS_INGRESS_ANNOTATION: &str = "kubectl-acme/edits-ingress";

/// Returns the labels by which a Challenge's solver objects are found, cert-manager's own.
pub fn labels(challenge: &Challenge) -> Vec<(String, String)> {
    let label = |name: &str, value: String| (format!("acme.cert-manager.io/{name}"), value);
    vec![
        label("http-domain", adler32(&challenge.spec.dns_name).to_string()),
        label("http-token", adler32(&challenge.spec.token).to_string()),
        label("http01-solver", "true".to_owned()),
    ]
}

/// Returns the labels of the search; the objects of a rehearsal are found even if a template has
/// changed the other labels, since no owner takes the objects along.
pub(super) fn selector(challenge: &Challenge, options: &Options) -> Vec<(String, String)> {
    match options.rehearsal {
        Some(_) => vec![(REHEARSAL.to_owned(), challenge.metadata.uid.clone())],
        None => labels(challenge),
    }
}

/// Returns the part of the metadata that all solver objects share.
pub(super) fn metadata(challenge: &Challenge, options: &Options) -> Value {
    let mut all = options.extra_labels.clone();
    all.extend(labels(challenge));
    let mut metadata = json!({
        "generateName": NAME_PREFIX,
        "namespace": challenge.metadata.namespace,
    });
    if options.rehearsal.is_none() {
        metadata["ownerReferences"] = json!([challenge.owner_reference()]);
    }
    metadata["labels"] = json!(all);
    metadata
}

/// Returns whether an object was made for this Challenge: labels are short checksums, so equal labels happen.
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

/// Returns the path that the CA requests.
pub(super) fn path(challenge: &Challenge) -> String {
    format!("{}{}", super::super::PATH, challenge.spec.token)
}

/// Returns the host of rules; `None` for an address, because rules only take names.
pub(super) fn host(challenge: &Challenge) -> Option<&str> {
    let name = challenge.spec.dns_name.as_str();
    name.parse::<std::net::IpAddr>().is_err().then_some(name)
}

/// Computes Adler-32 (RFC 1950 §8.2), from which cert-manager makes label values.
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
