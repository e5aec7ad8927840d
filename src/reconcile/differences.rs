//! Fields of a Certificate's spec that an existing object no longer fits, in cert-manager's names and order.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::model::certificate::{KeyAlgorithm, Names, PrivateKey, Subject};
use crate::model::{CertificateSpec, Identifier, IssuerRef};

use super::facts::{KeyFacts, LeafFacts, RequestFacts};

/// Returns the kind of key that a spec asks for.
///
/// # Errors
/// Fails with the algorithm's word if the algorithm is unknown.
pub fn wanted_key(key: Option<&PrivateKey>) -> Result<KeyAlgorithm, String> {
    let algorithm = key.map_or("", |key| key.algorithm.as_str());
    let size = key.and_then(|key| key.size).filter(|size| *size > 0);
    match algorithm {
        "" | "RSA" => Ok(KeyAlgorithm::Rsa(size.unwrap_or(2048))),
        "ECDSA" => Ok(KeyAlgorithm::Ecdsa(size.unwrap_or(256))),
        "Ed25519" => Ok(KeyAlgorithm::Ed25519),
        other => Err(other.to_owned()),
    }
}

/// Returns the fields that a key does not fit.
pub fn of_key(spec: &CertificateSpec, key: &KeyFacts) -> Vec<&'static str> {
    match (wanted_key(spec.private_key.as_ref()), key.algorithm) {
        (Ok(wanted), held) if wanted == held => Vec::new(),
        (Ok(KeyAlgorithm::Rsa(_)), KeyAlgorithm::Rsa(_))
        | (Ok(KeyAlgorithm::Ecdsa(_)), KeyAlgorithm::Ecdsa(_)) => vec!["spec.privateKey.size"],
        (Ok(_) | Err(_), _) => vec!["spec.privateKey.algorithm"],
    }
}

/// Returns the fields that a CertificateRequest does not fit; empty if its signing request cannot be read.
pub fn of_request(spec: &CertificateSpec, facts: &RequestFacts) -> Vec<&'static str> {
    let Ok(csr) = &facts.csr else { return Vec::new() };
    let request = &facts.request.spec;
    let mut fields = of_requested_names(spec, facts);
    if spec.literal_subject.is_empty() {
        fields.extend(of_subject(spec.subject.as_ref(), &csr.names.subject));
    }
    if spec.is_ca != request.is_ca {
        fields.push("spec.isCA");
    }
    if set(spec.usages.as_deref()) != set(request.usages.as_deref()) {
        fields.push("spec.usages");
    }
    if let (Some(wanted), Some(asked)) = (spec.duration, request.duration)
        && wanted != asked
    {
        fields.push("spec.duration");
    }
    if !same_issuer(&spec.issuer_ref, &request.issuer_ref) {
        fields.push("spec.issuerRef");
    }
    fields
}

/// Returns the fields for names that a CertificateRequest does not fit; empty if its signing request cannot be read.
pub fn of_requested_names(spec: &CertificateSpec, facts: &RequestFacts) -> Vec<&'static str> {
    let Ok(csr) = &facts.csr else { return Vec::new() };
    let mut fields = of_addresses(spec, &csr.names);
    if names_of(&spec.dns_names) != names_of(&csr.names.dns_names) {
        fields.push("spec.dnsNames");
    }
    // A literal subject is not parsed here.
    if spec.literal_subject.is_empty()
        && normal(&spec.common_name) != normal(&csr.names.common_name)
    {
        fields.push("spec.commonName");
    }
    fields
}

/// Returns the fields that an issued certificate does not fit. A CA may move names between common name and DNS names,
/// and add a title as common name, a name with or without `www.`, or an address or URI if none is asked for.
pub fn of_leaf(spec: &CertificateSpec, leaf: &LeafFacts) -> Vec<&'static str> {
    let all = |common_name: &str, dns_names: &[String]| -> BTreeSet<String> {
        let common_name = (!common_name.is_empty()).then(|| normal(common_name));
        names_of(dns_names).into_iter().chain(common_name).collect()
    };
    let wanted = all(&spec.common_name, &spec.dns_names);
    let mut issued = all(&leaf.names.common_name, &leaf.names.dns_names);
    let own_title = normal(&leaf.names.common_name);
    let is_name = |name: &String| leaf.names.dns_names.iter().any(|other| normal(other) == *name);
    let is_added = |name: &String| {
        let twin = name.strip_prefix("www.").map_or_else(|| format!("www.{name}"), str::to_owned);
        wanted.contains(&twin) || (*name == own_title && !is_name(name))
    };
    issued.retain(|name| wanted.contains(name) || !is_added(name));
    let mut fields = Vec::new();
    if !spec.common_name.is_empty() && !issued.contains(&normal(&spec.common_name)) {
        fields.push("spec.commonName");
    }
    let addresses = leaf.names.addresses().into_iter().collect();
    // An address may stand in the common name as well.
    if wanted.difference(&addresses).ne(issued.difference(&addresses)) {
        fields.push("spec.dnsNames");
    }
    let compared = Names {
        ip_addresses: drop_unwanted(&leaf.names.ip_addresses, spec.ip_addresses.is_empty()),
        uris: drop_unwanted(&leaf.names.uris, spec.uris.is_empty()),
        email_addresses: drop_unwanted(
            &leaf.names.email_addresses,
            spec.email_addresses.is_empty(),
        ),
        ..Names::default()
    };
    fields.extend(of_addresses(spec, &compared));
    fields
}

/// Returns a list for comparison: empty if the spec asks for none.
fn drop_unwanted<T: Clone>(list: &[T], is_unwanted: bool) -> Vec<T> {
    if is_unwanted { Vec::new() } else { list.to_vec() }
}

/// Returns whether two references mean the same issuer; an empty kind is `Issuer`, an empty group `cert-manager.io`.
pub fn same_issuer(one: &IssuerRef, other: &IssuerRef) -> bool {
    one.name == other.name
        && one.effective_kind() == other.effective_kind()
        && one.effective_group() == other.effective_group()
}

/// Returns the fields for IP addresses, URIs and e-mail addresses that differ.
fn of_addresses(spec: &CertificateSpec, names: &Names) -> Vec<&'static str> {
    let wanted: BTreeSet<Option<IpAddr>> =
        spec.ip_addresses.iter().map(|text| text.parse().ok()).collect();
    let given: BTreeSet<Option<IpAddr>> = names.ip_addresses.iter().copied().map(Some).collect();
    let mut fields = Vec::new();
    if wanted != given {
        fields.push("spec.ipAddresses");
    }
    if set(Some(&spec.uris)) != set(Some(&names.uris)) {
        fields.push("spec.uris");
    }
    if set(Some(&spec.email_addresses)) != set(Some(&names.email_addresses)) {
        fields.push("spec.emailAddresses");
    }
    fields
}

fn of_subject(wanted: Option<&Subject>, given: &Subject) -> Vec<&'static str> {
    let none = Subject::default();
    let wanted = wanted.unwrap_or(&none);
    let lists = [
        ("spec.subject.organizations", &wanted.organizations, &given.organizations),
        ("spec.subject.countries", &wanted.countries, &given.countries),
        ("spec.subject.localities", &wanted.localities, &given.localities),
        (
            "spec.subject.organizationalUnits",
            &wanted.organizational_units,
            &given.organizational_units,
        ),
        ("spec.subject.postCodes", &wanted.postal_codes, &given.postal_codes),
        ("spec.subject.provinces", &wanted.provinces, &given.provinces),
        ("spec.subject.streetAddresses", &wanted.street_addresses, &given.street_addresses),
    ];
    let number = wanted.serial_number != given.serial_number;
    let number = number.then_some("spec.subject.serialNumber");
    let differs = |(field, one, other): (&'static str, &Vec<String>, &Vec<String>)| {
        (set(Some(one)) != set(Some(other))).then_some(field)
    };
    number.into_iter().chain(lists.into_iter().filter_map(differs)).collect()
}

fn set(list: Option<&[String]>) -> BTreeSet<&str> {
    list.unwrap_or_default().iter().map(String::as_str).collect()
}

fn names_of(list: &[String]) -> BTreeSet<String> {
    list.iter().map(|name| normal(name)).collect()
}

/// Returns a name as in certificates, so that upper case, a final dot or U-labels in a manifest make no difference.
fn normal(name: &str) -> String {
    Identifier::parse(name).map_or_else(|_| name.to_owned(), |identifier| identifier.to_string())
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::CertificateRequest;
    use crate::reconcile::facts::CsrFacts;

    fn spec(change: Value) -> CertificateSpec {
        let mut spec = json!({
            "secretName": "web-tls", "issuerRef": {"name": "acme"},
            "dnsNames": ["www.example.com", "example.com"],
        });
        merge(&mut spec, change);
        serde_json::from_value(spec).unwrap()
    }

    fn merge(into: &mut Value, change: Value) {
        for (key, value) in change.as_object().unwrap() {
            into[key] = value.clone();
        }
    }

    /// Differences between a changed spec and a request made for `www.example.com` and `example.com`.
    fn check(change: Value, expected: &[&str]) {
        let names = Names {
            dns_names: vec!["example.com".into(), "www.example.com".into()],
            ..Names::default()
        };
        let facts = RequestFacts {
            request: CertificateRequest {
                spec: serde_json::from_value(json!({
                    "request": "", "issuerRef": {"name": "acme"}, "duration": "2160h",
                }))
                .unwrap(),
                ..CertificateRequest::default()
            },
            csr: Ok(CsrFacts { names, ..CsrFacts::default() }),
            leaf: None,
            has_order: true,
        };
        assert_eq!(of_request(&spec(change.clone()), &facts), expected, "{change}");
    }

    #[test]
    fn a_request_differs_where_it_asks_for_something_else() {
        for (change, expected) in [
            (json!({}), &[][..]),
            (json!({"dnsNames": ["WWW.example.com.", "example.com"]}), &[]),
            (
                json!({"issuerRef": {"name": "acme", "kind": "Issuer", "group": "cert-manager.io"}}),
                &[],
            ),
            (json!({"duration": "2160h0m0s", "usages": []}), &[]),
            (json!({"dnsNames": ["example.com"]}), &["spec.dnsNames"]),
            (json!({"ipAddresses": ["192.0.2.1"]}), &["spec.ipAddresses"]),
            (json!({"commonName": "example.com"}), &["spec.commonName"]),
            (json!({"literalSubject": "CN=example.com"}), &[]),
            (json!({"duration": "24h"}), &["spec.duration"]),
            (json!({"issuerRef": {"name": "acme", "kind": "ClusterIssuer"}}), &["spec.issuerRef"]),
            (
                json!({"uris": ["spiffe://a"], "isCA": true, "usages": ["server auth"],
                       "subject": {"serialNumber": "1", "countries": ["AT"], "postalCodes": ["1010"]}}),
                &[
                    "spec.uris",
                    "spec.subject.serialNumber",
                    "spec.subject.countries",
                    "spec.subject.postCodes",
                    "spec.isCA",
                    "spec.usages",
                ],
            ),
        ] {
            check(change, expected);
        }
    }

    #[test]
    fn names_may_move_between_common_name_and_dns_names() {
        let leaf = |common_name: &str, dns_names: &[&str], addresses: &[&str]| LeafFacts {
            not_before: jiff::Timestamp::UNIX_EPOCH,
            not_after: jiff::Timestamp::UNIX_EPOCH,
            public_key: crate::reconcile::facts::PublicKey::default(),
            renewal_id: None,
            serial: "01".to_owned(),
            names: Names {
                common_name: common_name.into(),
                dns_names: dns_names.iter().map(|name| (*name).into()).collect(),
                ip_addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
                ..Names::default()
            },
        };
        let both = ["example.com", "www.example.com"];
        for (change, leaf, expected) in [
            (json!({}), leaf("", &both, &[]), &[][..]),
            (json!({}), leaf("example.com", &both, &[]), &[]),
            (
                json!({"commonName": "a.example.com"}),
                leaf("", &both, &[]),
                &["spec.commonName", "spec.dnsNames"],
            ),
            (json!({}), leaf("", &both[..1], &[]), &["spec.dnsNames"]),
            (json!({}), leaf("Generic ACME Certificate", &both, &[]), &[]),
            (json!({}), leaf("other.example", &both, &["192.0.2.1"]), &[]),
            (json!({"dnsNames": ["example.com"]}), leaf("", &both, &[]), &[]),
            (json!({"dnsNames": ["www.example.com"]}), leaf("", &both, &[]), &[]),
            (
                json!({"ipAddresses": ["192.0.2.2"]}),
                leaf("", &both, &["192.0.2.1"]),
                &["spec.ipAddresses"],
            ),
            (
                json!({"dnsNames": ["example.com"]}),
                leaf("", &["example.com", "b.example.com"], &[]),
                &["spec.dnsNames"],
            ),
            (
                json!({"dnsNames": [], "ipAddresses": ["192.0.2.1"]}),
                leaf("192.0.2.1", &[], &["192.0.2.1"]),
                &[],
            ),
        ] {
            assert_eq!(of_leaf(&spec(change.clone()), &leaf), expected, "{change}");
        }
    }

    #[test]
    fn a_key_differs_by_algorithm_or_size() {
        let key = |algorithm| KeyFacts {
            algorithm,
            public_key: crate::reconcile::facts::PublicKey::default(),
        };
        for (wanted, held, expected) in [
            (json!({}), key(KeyAlgorithm::Rsa(2048)), &[][..]),
            (json!({"size": 4096}), key(KeyAlgorithm::Rsa(2048)), &["spec.privateKey.size"]),
            (json!({"algorithm": "ECDSA"}), key(KeyAlgorithm::Ecdsa(256)), &[]),
            (
                json!({"algorithm": "ECDSA"}),
                key(KeyAlgorithm::Rsa(2048)),
                &["spec.privateKey.algorithm"],
            ),
            (json!({"algorithm": "Ed25519", "size": 1}), key(KeyAlgorithm::Ed25519), &[]),
        ] {
            assert_eq!(of_key(&spec(json!({"privateKey": wanted})), &held), expected, "{wanted}");
        }
    }
}
