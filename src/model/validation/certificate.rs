//! Rules for Certificates and CertificateRequests.

use std::collections::BTreeSet;

use super::Validation;
use crate::model::CertificateRequest;
use crate::model::certificate::{Certificate, CertificateSpec, network, subidentifiers};
use crate::model::common::{Duration, IssuerRef};
use crate::model::cron::Cron;
use crate::model::field::FieldPath;
use crate::model::keystore::{KeystoreFormat, Password};
use crate::model::names::{DnsName, host_in};

/// Shortest life time that can be asked for.
const MIN_DURATION: Duration = Duration::from_secs(3600);
/// Shortest time between renewal and expiry.
const MIN_RENEW_BEFORE: Duration = Duration::from_secs(300);
/// Life time if none is asked for: 90 days.
const DEFAULT_DURATION: Duration = Duration::from_secs(90 * 24 * 3600);

/// Checks a Certificate.
pub fn certificate(certificate: &Certificate) -> Validation {
    let mut verdict = Validation::default();
    let (spec, at) = (&certificate.spec, FieldPath::of("spec"));
    for rule in [
        names,
        wildcards,
        subject,
        key,
        times,
        windows,
        secret,
        keystores,
        constraints,
        odds_and_ends,
    ] {
        rule(spec, &at, &mut verdict);
    }
    issuer_reference(&spec.issuer_ref, &at, &mut verdict);
    verdict
}

fn names(spec: &CertificateSpec, at: &FieldPath, verdict: &mut Validation) {
    let nothing = spec.common_name.is_empty()
        && spec.literal_subject.is_empty()
        && spec.dns_names.is_empty()
        && spec.ip_addresses.is_empty()
        && spec.uris.is_empty()
        && spec.email_addresses.is_empty()
        && spec.other_names.is_empty();
    if nothing {
        verdict.error_hint(
            at.key("dnsNames"),
            "at least one name is required",
            "write dnsNames: [www.example.com]; ipAddresses, uris, emailAddresses, otherNames and commonName count too",
        );
    }
    for (index, name) in spec.dns_names.iter().enumerate() {
        let at = at.key("dnsNames").index(index);
        if name.contains("://") {
            verdict.error_hint(at, format!("\"{name}\" is a URL"), "write the host name alone");
        } else if name.parse::<std::net::IpAddr>().is_ok() {
            verdict.error_hint(
                at,
                format!("\"{name}\" is an IP address"),
                "move it to ipAddresses",
            );
        } else if let Err(error) = DnsName::parse(name) {
            match host_in(name) {
                Some(host) if host == name.trim() => verdict.error_hint(
                    at,
                    error.to_string(),
                    "write it without the blanks and line ends around it",
                ),
                Some(_) => verdict.error_hint(at, error.to_string(), "write the host name alone"),
                None => verdict.error(at, error.to_string()),
            }
        }
    }
    for (index, address) in spec.ip_addresses.iter().enumerate() {
        if address.parse::<std::net::IpAddr>().is_err() {
            let at = at.key("ipAddresses").index(index);
            verdict.error(at, format!("\"{address}\" is not an IP address"));
        }
    }
    for (index, uri) in spec.uris.iter().enumerate() {
        if url::Url::parse(uri).is_err() {
            verdict.error(at.key("uris").index(index), format!("\"{uri}\" is not a URI"));
        }
    }
    for (index, address) in spec.email_addresses.iter().enumerate() {
        let halves = address.split_once('@');
        if !halves.is_some_and(|(user, host)| !user.is_empty() && DnsName::parse(host).is_ok()) {
            let at = at.key("emailAddresses").index(index);
            verdict.error(at, format!("\"{address}\" is not an e-mail address"));
        }
    }
    for (index, name) in spec.other_names.iter().enumerate() {
        let at = at.key("otherNames").index(index);
        if subidentifiers(&name.oid).is_none() {
            verdict.error(
                at.key("oid"),
                "must be an object identifier such as 1.3.6.1.4.1.311.20.2.3",
            );
        }
        if name.utf8_value.is_empty() {
            verdict.error(at.key("utf8Value"), "must be set to a valid non-empty UTF-8 string");
        }
    }
}

/// Warns of wildcards beside names that they cover: Let's Encrypt takes no order with both.
fn wildcards(spec: &CertificateSpec, at: &FieldPath, verdict: &mut Validation) {
    let parsed = spec.dns_names.iter().filter_map(|name| DnsName::parse(name).ok());
    let wildcards: BTreeSet<DnsName> = parsed.filter(DnsName::is_wildcard).collect();
    if wildcards.is_empty() {
        return;
    }
    let listed =
        spec.dns_names.iter().enumerate().map(|(i, name)| (at.key("dnsNames").index(i), name));
    let common = Some((at.key("commonName"), &spec.common_name));
    let common = common.filter(|(_, name)| !spec.dns_names.contains(name));
    for (at, text) in listed.chain(common) {
        let Ok(name) = DnsName::parse(text) else { continue };
        let Some((_, parent)) = name.as_str().split_once('.').filter(|_| !name.is_wildcard())
        else {
            continue;
        };
        let Ok(cover) = DnsName::parse(&format!("*.{parent}")) else { continue };
        if wildcards.contains(&cover) {
            let what = "some CAs (Let's Encrypt) refuse an order for both: leave one out";
            verdict.warn(at, format!("\"{text}\" is covered by {cover}, and {what}"));
        }
    }
}

fn subject(spec: &CertificateSpec, at: &FieldPath, verdict: &mut Validation) {
    if spec.common_name.len() > 64 {
        verdict.error(
            at.key("commonName"),
            format!("is {} bytes long, may not be more than 64", spec.common_name.len()),
        );
    }
    if spec.literal_subject.is_empty() {
        return;
    }
    if spec.subject.is_some() {
        verdict.error(at.key("literalSubject"), "excludes subject: write one of the two");
    }
    if !spec.common_name.is_empty() {
        verdict.error(at.key("literalSubject"), "excludes commonName: write CN= in it");
    }
}

fn key(spec: &CertificateSpec, at: &FieldPath, verdict: &mut Validation) {
    let Some(key) = &spec.private_key else { return };
    let Some(size) = key.size else { return };
    let at = at.below("privateKey.size");
    match key.algorithm.as_str() {
        "" | "RSA" if !(2048..=8192).contains(&size) => {
            verdict.error(at, format!("is {size}, must be between 2048 and 8192 for RSA"));
        }
        "ECDSA" if ![256, 384, 521].contains(&size) => {
            verdict.error(at, format!("is {size}, must be 256, 384 or 521 for ECDSA"));
        }
        "Ed25519" => verdict.warn(at, "means nothing for Ed25519"),
        _ => {}
    }
}

fn times(spec: &CertificateSpec, at: &FieldPath, verdict: &mut Validation) {
    if spec.renew_before.is_some() && spec.renew_before_percentage.is_some() {
        verdict
            .error(at.key("renewBeforePercentage"), "excludes renewBefore: write one of the two");
    }
    let duration = spec.duration.unwrap_or(DEFAULT_DURATION);
    if duration < MIN_DURATION {
        verdict
            .error(at.key("duration"), format!("is {duration}, must be at least {MIN_DURATION}"));
    }
    if let Some(before) = spec.renew_before {
        let at = at.key("renewBefore");
        if before < MIN_RENEW_BEFORE {
            verdict.error(at, format!("is {before}, must be at least {MIN_RENEW_BEFORE}"));
        } else if before >= duration {
            verdict.error(at, format!("is {before}, must be less than the duration, {duration}"));
        }
    }
    if spec.renew_before_percentage.is_some_and(|percent| !(1..=99).contains(&percent)) {
        verdict.error(at.key("renewBeforePercentage"), "must be between 1 and 99");
    }
}

fn windows(spec: &CertificateSpec, at: &FieldPath, verdict: &mut Validation) {
    let Some(renewal) = &spec.renewal else { return };
    for (index, window) in renewal.windows.iter().enumerate() {
        let at = at.below("renewal.windows").index(index);
        if let Err(why) = Cron::parse(&window.cron) {
            verdict.error_hint(
                at.key("cron"),
                why,
                "write minute hour day month weekday: 0 3 * * 1-5",
            );
        }
        if !window.window_duration.0.is_positive() {
            verdict.error(at.key("windowDuration"), "must be longer than nothing");
        }
    }
}

fn secret(spec: &CertificateSpec, at: &FieldPath, verdict: &mut Validation) {
    verdict.object_name(at.key("secretName"), &spec.secret_name);
    let Some(template) = &spec.secret_template else { return };
    for annotation in template.annotations.keys() {
        if annotation.starts_with("cert-manager.io/")
            && annotation != "cert-manager.io/allow-direct-injection"
        {
            verdict.error(
                at.below("secretTemplate.annotations").key(annotation),
                "cert-manager.io/* annotations are not allowed",
            );
        }
    }
}

fn keystores(spec: &CertificateSpec, at: &FieldPath, verdict: &mut Validation) {
    let Some(keystores) = &spec.keystores else { return };
    let jks = keystores.jks.as_ref().map(|jks| (&jks.password_secret_ref, &jks.password));
    let pkcs12 = keystores.pkcs12.as_ref();
    let pkcs12 = pkcs12.map(|pkcs12| (&pkcs12.password_secret_ref, &pkcs12.password));
    for (format, passwords) in [(KeystoreFormat::Jks, jks), (KeystoreFormat::Pkcs12, pkcs12)] {
        let Some((selector, written)) = passwords else { continue };
        let at = at.key("keystores").key(format.field());
        let selector = selector.as_ref().filter(|selector| !selector.name.is_empty());
        let is_in_secret = selector.is_some();
        if selector.is_some_and(|selector| selector.key.is_empty()) {
            verdict.error(at.below("passwordSecretRef.key"), "is required");
        }
        match written {
            Some(_) if is_in_secret => {
                verdict.error(at, "passwordSecretRef excludes password: write one of the two");
            }
            Some(Password(text)) if text.is_empty() => {
                verdict.error(at.key("password"), "must not be empty");
            }
            Some(_) => {}
            None if is_in_secret => {}
            None => verdict.error_hint(
                at,
                "needs a password",
                "write passwordSecretRef: {name: SECRET, key: KEY}, or password",
            ),
        }
    }
}

fn constraints(spec: &CertificateSpec, at: &FieldPath, verdict: &mut Validation) {
    let Some(constraints) = &spec.name_constraints else { return };
    let at = at.key("nameConstraints");
    if !spec.is_ca {
        verdict.error(at.clone(), "is for CA certificates: isCA should be true");
    }
    let halves = [("permitted", &constraints.permitted), ("excluded", &constraints.excluded)];
    if halves.iter().all(|(_, half)| half.is_none()) {
        verdict.error(at.clone(), "needs permitted or excluded");
    }
    for (name, half) in halves {
        let ranges = half.iter().flat_map(|half| &half.ip_ranges).enumerate();
        for (index, range) in ranges.filter(|(_, range)| network(range).is_none()) {
            let at = at.key(name).key("ipRanges").index(index);
            verdict.error_hint(
                at,
                format!("\"{range}\" is not an IP network"),
                "write address and length: 192.0.2.0/24",
            );
        }
    }
}

/// Checks the reference to an issuer below a spec.
fn issuer_reference(issuer: &IssuerRef, at: &FieldPath, verdict: &mut Validation) {
    let at = at.key("issuerRef");
    verdict.object_name(at.key("name"), &issuer.name);
    if issuer.effective_group() != "cert-manager.io" {
        verdict.warn(at.key("group"), format!("issuers of {} are not ours", issuer.group));
    } else if !["Issuer", "ClusterIssuer"].contains(&issuer.effective_kind()) {
        verdict.error(
            at.key("kind"),
            format!("\"{}\" must be one of Issuer or ClusterIssuer", issuer.kind),
        );
    }
}

fn odds_and_ends(spec: &CertificateSpec, at: &FieldPath, verdict: &mut Validation) {
    if spec.revision_history_limit.is_some_and(|limit| limit < 1) {
        verdict.error(at.key("revisionHistoryLimit"), "must be at least 1");
    }
    let mut formats = BTreeSet::new();
    for (index, format) in spec.additional_output_formats.iter().enumerate() {
        if !formats.insert(format["type"].as_str().unwrap_or_default()) {
            let at = at.key("additionalOutputFormats").index(index).key("type");
            verdict.error(at, "stands there twice");
        }
    }
    if spec.is_ca {
        verdict.warn(at.key("isCA"), "an ACME server signs no CA certificates");
    }
}

/// Checks a CertificateRequest. Whether the signing request can be read is checked where keys and certificates are known.
pub fn certificate_request(request: &CertificateRequest) -> Validation {
    let mut verdict = Validation::default();
    let (spec, at) = (&request.spec, FieldPath::of("spec"));
    if spec.request.is_empty() {
        verdict.error_hint(
            at.key("request"),
            "must be specified",
            "it is a signing request in PEM, in base64 once more: base64 -w 0 FILE.csr",
        );
    }
    issuer_reference(&spec.issuer_ref, &at, &mut verdict);
    if spec.is_ca {
        verdict.warn(at.key("isCA"), "an ACME server signs no CA certificates");
    }
    verdict
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Remarks about a Certificate that is right but for these fields of its spec.
    fn check(spec: Value) -> Vec<String> {
        let mut object = json!({"spec": {"secretName": "web-tls", "issuerRef": {"name": "ca"}}});
        let Value::Object(fields) = spec else { panic!("no object: {spec}") };
        object["spec"].as_object_mut().unwrap().extend(fields);
        let verdict = certificate(&serde_json::from_value(object).unwrap());
        verdict.errors.iter().chain(&verdict.warnings).map(ToString::to_string).collect()
    }

    fn check_named(mut spec: Value) -> Vec<String> {
        spec["dnsNames"] = json!(["www.example.com"]);
        check(spec)
    }

    #[test]
    fn a_certificate_names_something() {
        assert_eq!(check(json!({})), ["spec.dnsNames: at least one name is required"]);
        for spec in [
            json!({"dnsNames": ["*.example.com", "bücher.example"]}),
            json!({"ipAddresses": ["192.0.2.1", "2001:db8::1"]}),
            json!({"uris": ["spiffe://cluster/ns"]}),
            json!({"emailAddresses": ["me@example.com"]}),
            json!({"commonName": "example.com"}),
            json!({"literalSubject": "CN=example.com"}),
            json!({"otherNames": [{"oid": "1.3.6.1.4.1.311.20.2.3", "utf8Value": "u@example"}]}),
        ] {
            assert_eq!(check(spec.clone()), [] as [&str; 0], "{spec}");
        }
    }

    #[test]
    fn a_name_that_a_wildcard_covers_is_remarked() {
        let refused = "some CAs (Let's Encrypt) refuse an order for both: leave one out";
        let names =
            json!({"dnsNames": ["*.a.example", "a.example", "w.A.example", "v.w.a.example"]});
        let covered =
            format!("spec.dnsNames[2]: \"w.A.example\" is covered by *.a.example, and {refused}");
        assert_eq!(check(names), [covered]);
        let name = json!({"commonName": "w.a.example", "dnsNames": ["*.a.example"]});
        let covered =
            format!("spec.commonName: \"w.a.example\" is covered by *.a.example, and {refused}");
        assert_eq!(check(name), [covered]);
    }

    #[test]
    fn many_names_are_not_each_compared_with_each() {
        const MANY: usize = 20_000;
        let pair = |number| [format!("*.a{number}.example"), format!("w.a{number}.example")];
        let names: Vec<_> = (0..MANY).flat_map(pair).collect();
        assert_eq!(check(json!({"dnsNames": names})).len(), MANY);
        let same = vec!["www.example.com"; 5 * MANY];
        assert_eq!(check(json!({"dnsNames": same})), [] as [&str; 0]);
    }

    #[test]
    fn a_keystore_has_one_password() {
        let secret = json!({"name": "pw", "key": "word"});
        for (jks, expected) in [
            (json!({"create": true, "password": "p"}), &[][..]),
            (json!({"create": true, "passwordSecretRef": secret}), &[]),
            (json!({"create": true}), &["spec.keystores.jks: needs a password"]),
            (
                json!({"create": true, "password": ""}),
                &["spec.keystores.jks.password: must not be empty"],
            ),
            (
                json!({"create": true, "password": "p", "passwordSecretRef": secret}),
                &["spec.keystores.jks: passwordSecretRef excludes password: write one of the two"],
            ),
            (
                json!({"create": true, "passwordSecretRef": {"name": "pw"}}),
                &["spec.keystores.jks.passwordSecretRef.key: is required"],
            ),
        ] {
            assert_eq!(check_named(json!({"keystores": {"jks": jks}})), expected);
        }
        let twice = json!([{"type": "DER"}, {"type": "CombinedPEM"}, {"type": "DER"}]);
        assert_eq!(
            check_named(json!({"additionalOutputFormats": twice})),
            ["spec.additionalOutputFormats[2].type: stands there twice"]
        );
    }

    #[test]
    fn constraints_are_for_authorities_and_name_networks() {
        let half =
            json!({"dnsDomains": ["example.com"], "ipRanges": ["192.0.2.0/24", "192.0.2.0"]});
        for (constraints, is_ca, expected) in [
            (
                json!({"permitted": half}),
                true,
                &["spec.nameConstraints.permitted.ipRanges[1]: \"192.0.2.0\" is not an IP network"]
                    [..],
            ),
            (
                json!({"critical": true}),
                true,
                &["spec.nameConstraints: needs permitted or excluded"],
            ),
            (
                json!({"excluded": {}}),
                false,
                &["spec.nameConstraints: is for CA certificates: isCA should be true"],
            ),
        ] {
            let mut said = check_named(json!({"nameConstraints": constraints, "isCA": is_ca}));
            said.retain(|remark| !remark.starts_with("spec.isCA"));
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn names_are_names() {
        for (spec, expected) in [
            (
                json!({"dnsNames": ["ok.example", "a b.example"]}),
                "spec.dnsNames[1]: \"a b.example\" is not a valid DNS name: only letters, digits, '-' and '.' are allowed",
            ),
            (
                json!({"dnsNames": ["https://a.example/"]}),
                "spec.dnsNames[0]: \"https://a.example/\" is a URL",
            ),
            (
                json!({"dnsNames": ["192.0.2.1"]}),
                "spec.dnsNames[0]: \"192.0.2.1\" is an IP address",
            ),
            (
                json!({"ipAddresses": ["host"]}),
                "spec.ipAddresses[0]: \"host\" is not an IP address",
            ),
            (json!({"uris": ["no uri"]}), "spec.uris[0]: \"no uri\" is not a URI"),
            (
                json!({"emailAddresses": ["me"]}),
                "spec.emailAddresses[0]: \"me\" is not an e-mail address",
            ),
            (
                json!({"otherNames": [{"oid": "1", "utf8Value": "a"}]}),
                "spec.otherNames[0].oid: must be an object identifier such as 1.3.6.1.4.1.311.20.2.3",
            ),
            (
                json!({"otherNames": [{"oid": "2.18446744073709551615", "utf8Value": "a"}]}),
                "spec.otherNames[0].oid: must be an object identifier such as 1.3.6.1.4.1.311.20.2.3",
            ),
        ] {
            assert_eq!(check(spec), [expected]);
        }
    }

    #[test]
    fn the_rules_of_the_webhook_hold() {
        for (spec, expected) in [
            (
                json!({"commonName": "é".repeat(33)}),
                "spec.commonName: is 66 bytes long, may not be more than 64",
            ),
            (
                json!({"literalSubject": "O=a", "subject": {}}),
                "spec.literalSubject: excludes subject: write one of the two",
            ),
            (
                json!({"literalSubject": "O=a", "commonName": "b"}),
                "spec.literalSubject: excludes commonName: write CN= in it",
            ),
            (
                json!({"privateKey": {"size": 1024}}),
                "spec.privateKey.size: is 1024, must be between 2048 and 8192 for RSA",
            ),
            (
                json!({"privateKey": {"algorithm": "RSA", "size": 8193}}),
                "spec.privateKey.size: is 8193, must be between 2048 and 8192 for RSA",
            ),
            (
                json!({"privateKey": {"algorithm": "ECDSA", "size": 2048}}),
                "spec.privateKey.size: is 2048, must be 256, 384 or 521 for ECDSA",
            ),
            (json!({"duration": "59m"}), "spec.duration: is 59m0s, must be at least 1h0m0s"),
            (json!({"renewBefore": "4m"}), "spec.renewBefore: is 4m0s, must be at least 5m0s"),
            (
                json!({"renewBefore": "2160h"}),
                "spec.renewBefore: is 2160h0m0s, must be less than the duration, 2160h0m0s",
            ),
            (
                json!({"renewBefore": "1h", "renewBeforePercentage": 30}),
                "spec.renewBeforePercentage: excludes renewBefore: write one of the two",
            ),
            (
                json!({"renewBeforePercentage": 100}),
                "spec.renewBeforePercentage: must be between 1 and 99",
            ),
            (json!({"revisionHistoryLimit": 0}), "spec.revisionHistoryLimit: must be at least 1"),
            (
                json!({"secretName": "Web"}),
                "spec.secretName: \"Web\" is not a valid name: only lower-case letters, digits, '-' and '.' are allowed",
            ),
            (
                json!({"secretTemplate": {"annotations": {"cert-manager.io/x": "", "cert-manager.io/allow-direct-injection": "true"}}}),
                "spec.secretTemplate.annotations.cert-manager.io/x: cert-manager.io/* annotations are not allowed",
            ),
            (
                json!({"issuerRef": {"name": "ca", "kind": "issuer"}}),
                "spec.issuerRef.kind: \"issuer\" must be one of Issuer or ClusterIssuer",
            ),
            (
                json!({"issuerRef": {"name": "ca", "kind": "X", "group": "a.io"}}),
                "spec.issuerRef.group: issuers of a.io are not ours",
            ),
            (json!({"isCA": true}), "spec.isCA: an ACME server signs no CA certificates"),
        ] {
            assert_eq!(check_named(spec), [expected]);
        }
    }

    #[test]
    fn what_lies_on_the_border_is_allowed() {
        for spec in [
            json!({"duration": "1h", "renewBefore": "59m"}),
            json!({"renewBefore": "5m"}),
            json!({"privateKey": {"size": 2048}}),
            json!({"privateKey": {"algorithm": "ECDSA", "size": 521}}),
            json!({"commonName": "a".repeat(64)}),
            json!({"issuerRef": {"name": "ca", "kind": "ClusterIssuer", "group": "cert-manager.io"}}),
        ] {
            assert_eq!(check_named(spec.clone()), [] as [&str; 0], "{spec}");
        }
    }

    #[test]
    fn windows_open_for_a_while() {
        let window = |cron: &str, length: &str| json!({"renewal": {"windows": [{"cron": cron, "windowDuration": length}]}});
        for (cron, length, expected) in [
            ("0 3 * * 1-5", "2h", None),
            ("often", "2h", Some("spec.renewal.windows[0].cron: \"often\" has 1 fields, not 5")),
            (
                "0 3 * * *",
                "0s",
                Some("spec.renewal.windows[0].windowDuration: must be longer than nothing"),
            ),
        ] {
            assert_eq!(check_named(window(cron, length)), Vec::from_iter(expected), "{cron}");
        }
    }
}
