//! Labels and annotations of the Secret that holds key and certificate.

use std::collections::BTreeMap;

use crate::model::{CertificateSpec, IssuerRef};

use super::facts::{LeafFacts, SecretFacts, annotation};

/// Labels and annotations of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretMetadata {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

/// Computes labels and annotations of a Secret: the template's, overridden by those about the certificate's origin. A
/// temporary certificate has no issuer.
pub fn metadata(
    certificate_name: &str,
    spec: &CertificateSpec,
    issuer: Option<&IssuerRef>,
    leaf: &LeafFacts,
) -> SecretMetadata {
    let template = spec.secret_template.clone().unwrap_or_default();
    let mut labels = template.labels;
    labels.insert(annotation::FAO.to_owned(), "true".to_owned());
    let mut annotations = template.annotations;
    let origin = issuer.map(|issuer| {
        [
            (annotation::ISSUER_NAME, issuer.name.as_str()),
            (annotation::ISSUER_KIND, &issuer.kind),
            (annotation::ISSUER_GROUP, &issuer.group),
        ]
    });
    let owner = [(annotation::CERTIFICATE_NAME, certificate_name)];
    for (key, value) in owner.into_iter().chain(origin.into_iter().flatten()) {
        annotations.insert(key.to_owned(), value.to_owned());
    }
    let names = &leaf.names;
    let always = [
        ("common-name", names.common_name.clone()),
        ("alt-names", csv(&names.dns_names)),
        ("ip-sans", csv(&names.addresses())),
        ("uri-sans", csv(&names.uris)),
    ];
    let subject = &names.subject;
    let when_given = [
        ("email-sans", csv(&names.email_addresses)),
        ("subject-serialnumber", subject.serial_number.clone()),
        ("subject-organizations", csv(&subject.organizations)),
        ("subject-organizationalunits", csv(&subject.organizational_units)),
        ("subject-countries", csv(&subject.countries)),
        ("subject-provinces", csv(&subject.provinces)),
        ("subject-localities", csv(&subject.localities)),
        ("subject-postalcodes", csv(&subject.postal_codes)),
        ("subject-streetaddresses", csv(&subject.street_addresses)),
    ];
    let when_given = when_given.into_iter().filter(|(_, value)| !value.is_empty());
    for (key, value) in always.into_iter().chain(when_given) {
        annotations.insert(format!("cert-manager.io/{key}"), value);
    }
    SecretMetadata { labels, annotations }
}

impl SecretMetadata {
    /// Returns whether a Secret carries exactly this metadata, beside what others wrote.
    pub fn is_on(&self, secret: &SecretFacts) -> bool {
        let carried = |wanted: &BTreeMap<String, String>, there: &BTreeMap<String, String>| {
            let ours = there.keys().filter(|key| !secret.foreign.contains(*key));
            wanted.iter().all(|(key, value)| there.get(key) == Some(value))
                && ours.into_iter().all(|key| wanted.contains_key(key))
        };
        carried(&self.labels, &secret.labels) && carried(&self.annotations, &secret.annotations)
    }
}

/// Returns one line of comma-separated values (RFC 4180), quoted where Go's `encoding/csv` quotes.
fn csv(values: &[String]) -> String {
    let quoted = |value: &String| {
        let plain = !value.contains(['"', ',', '\r', '\n']) && !value.starts_with(' ');
        if plain { value.clone() } else { format!("\"{}\"", value.replace('"', "\"\"")) }
    };
    values.iter().map(quoted).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::certificate::{Names, Subject};
    use crate::reconcile::facts::PublicKey;

    /// Labels and annotations of the Secret of a Certificate `web` with such a template and such names.
    fn check(template: Value, names: Names, expected: &Value) {
        let spec: CertificateSpec = serde_json::from_value(json!({
            "secretName": "web-tls", "issuerRef": {"name": "acme"}, "secretTemplate": template,
        }))
        .unwrap();
        let leaf = LeafFacts {
            not_before: jiff::Timestamp::UNIX_EPOCH,
            not_after: jiff::Timestamp::UNIX_EPOCH,
            public_key: PublicKey::default(),
            renewal_id: None,
            serial: "01".to_owned(),
            names,
        };
        let made = metadata("web", &spec, Some(&spec.issuer_ref), &leaf);
        assert_eq!(json!({"labels": made.labels, "annotations": made.annotations}), *expected);
    }

    #[test]
    fn a_secret_says_where_its_certificate_comes_from_as_in_recording_01() {
        check(
            json!({"labels": {"team": "shop"}, "annotations": {"cert-manager.io/issuer-name": "x"}}),
            Names { dns_names: vec!["www.t01.example.test".into()], ..Names::default() },
            &json!({
                "labels": {"controller.cert-manager.io/fao": "true", "team": "shop"},
                "annotations": {
                    "cert-manager.io/alt-names": "www.t01.example.test",
                    "cert-manager.io/certificate-name": "web",
                    "cert-manager.io/common-name": "",
                    "cert-manager.io/ip-sans": "",
                    "cert-manager.io/issuer-group": "",
                    "cert-manager.io/issuer-kind": "",
                    "cert-manager.io/issuer-name": "acme",
                    "cert-manager.io/uri-sans": "",
                },
            }),
        );
    }

    #[test]
    fn lists_are_separated_by_commas_and_quoted_where_needed() {
        let subject = Subject {
            organizations: vec!["Example, Inc.".into(), "The \"Other\"".into()],
            ..Subject::default()
        };
        check(
            json!({}),
            Names {
                common_name: "a.example".into(),
                dns_names: vec!["a.example".into(), "b.example".into()],
                ip_addresses: vec!["192.0.2.1".parse().unwrap()],
                email_addresses: vec!["me@a.example".into()],
                subject,
                ..Names::default()
            },
            &json!({
                "labels": {"controller.cert-manager.io/fao": "true"},
                "annotations": {
                    "cert-manager.io/alt-names": "a.example,b.example",
                    "cert-manager.io/certificate-name": "web",
                    "cert-manager.io/common-name": "a.example",
                    "cert-manager.io/email-sans": "me@a.example",
                    "cert-manager.io/ip-sans": "192.0.2.1",
                    "cert-manager.io/issuer-group": "",
                    "cert-manager.io/issuer-kind": "",
                    "cert-manager.io/issuer-name": "acme",
                    "cert-manager.io/subject-organizations": "\"Example, Inc.\",\"The \"\"Other\"\"\"",
                    "cert-manager.io/uri-sans": "",
                },
            }),
        );
    }
}
