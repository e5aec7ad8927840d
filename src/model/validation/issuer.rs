//! Rules for Issuers, ClusterIssuers and their solvers.

use url::Url;

use super::{Validation, dns01, object_name_fault};
use crate::model::acme_server::LETS_ENCRYPT;
use crate::model::field::FieldPath;
use crate::model::issuer::{AcmeIssuer, Issuer};
use crate::model::names::{DnsName, is_loopback};
use crate::model::solver::{ChallengeSolver, Http01Solver, IngressSolver};

/// Checks an Issuer or ClusterIssuer. An issuer of another type than ACME passes: it may be left to cert-manager.
pub fn issuer(issuer: &Issuer) -> Validation {
    let mut verdict = Validation::default();
    let at = FieldPath::of("spec");
    match issuer.spec.types().len() {
        0 => verdict.error(at.clone(), "at least one issuer must be configured"),
        1 => {}
        _ => verdict.error(at.clone(), "may not specify more than one issuer type"),
    }
    if let Some(server) = &issuer.spec.acme {
        acme(server, &at.key("acme"), &mut verdict);
    }
    verdict
}

fn acme(acme: &AcmeIssuer, at: &FieldPath, verdict: &mut Validation) {
    server(acme, at, verdict);
    if acme.private_key_secret_ref.name.is_empty() {
        verdict.error(
            at.below("privateKeySecretRef.name"),
            "private key secret name is a required field",
        );
    } else {
        let at = at.below("privateKeySecretRef.name");
        verdict.object_name(at, &acme.private_key_secret_ref.name);
    }
    if let Some(binding) = &acme.external_account_binding {
        let at = at.key("externalAccountBinding");
        if binding.key_id.is_empty() {
            verdict.error(
                at.key("keyID"),
                "the keyID field is required when using externalAccountBinding",
            );
        }
        verdict.secret_key(&at.key("keySecretRef"), &binding.key_secret_ref);
        if !binding.key_algorithm.is_empty() {
            verdict.warn(at.key("keyAlgorithm"), "is deprecated and ignored: always HS256");
        }
    }
    for (index, entry) in acme.solvers.iter().enumerate() {
        solver(entry, &at.key("solvers").index(index), verdict);
    }
}

fn server(acme: &AcmeIssuer, at: &FieldPath, verdict: &mut Validation) {
    match Url::parse(&acme.server) {
        _ if acme.server.is_empty() => {
            verdict.error(at.key("server"), "acme server URL is a required field");
        }
        Ok(url) if url.scheme() == "http" && url.has_host() && !is_loopback(&url) => {
            let why = "is plain http: whoever is on the way reads and changes what is said; write https where the CA has it";
            verdict.warn(at.key("server"), why);
        }
        Ok(url) if url.has_host() => {}
        Ok(_) | Err(_) => verdict.error_hint(
            at.key("server"),
            format!("\"{}\" is not a URL", acme.server),
            &format!("write the directory, such as {LETS_ENCRYPT}"),
        ),
    }
    if acme.preferred_chain.len() > 64 {
        verdict.error(at.key("preferredChain"), "may not be more than 64 bytes");
    }
    if acme.ca_bundle.is_empty() {
        return;
    }
    if acme.skip_tls_verify {
        verdict.error(at.key("caBundle"), "excludes skipTLSVerify: write one of the two");
    }
    let blocks = pem::parse_many(&acme.ca_bundle.0).unwrap_or_default();
    if !blocks.iter().any(|block| block.tag() == "CERTIFICATE") {
        verdict.error_hint(
            at.key("caBundle"),
            "holds no certificate",
            "write the PEM file in base64: base64 -w0 ca.pem",
        );
    }
}

fn solver(solver: &ChallengeSolver, at: &FieldPath, verdict: &mut Validation) {
    match (&solver.http01, &solver.dns01) {
        (None, None) => verdict.error_hint(
            at.clone(),
            "no solver type configured",
            "write http01: {ingress: {}} or a dns01 provider",
        ),
        (Some(_), Some(_)) => verdict.error_hint(
            at.clone(),
            "may not specify more than one solver type in a single solver",
            "make two entries of the list",
        ),
        (Some(http), None) => http01(http, &at.key("http01"), verdict),
        (None, Some(dns)) => dns01::solver(dns, &at.key("dns01"), verdict),
    }
    if solver.wait_instead_of_self_check.is_some_and(|wait| wait.0.is_negative()) {
        verdict.error(at.key("waitInsteadOfSelfCheck"), "must not be negative");
    }
    let Some(selector) = &solver.selector else { return };
    for (field, names) in [("dnsNames", &selector.dns_names), ("dnsZones", &selector.dns_zones)] {
        for (index, name) in names.iter().enumerate() {
            let at = at.key("selector").key(field).index(index);
            match DnsName::parse(name) {
                Err(error) => verdict.error(at, error.to_string()),
                // Like cert-manager, this program takes selectors as written: either may finish what the other began.
                Ok(plain) if plain.as_str() != name => verdict.warn(
                    at,
                    format!("\"{name}\" fits no name, for names are compared with it as \"{plain}\": write that"),
                ),
                Ok(_) => {}
            }
        }
    }
}

fn http01(solver: &Http01Solver, at: &FieldPath, verdict: &mut Validation) {
    match (&solver.ingress, &solver.gateway_http_route) {
        (None, None) => verdict.error_hint(
            at.clone(),
            "no HTTP01 solver type configured",
            "write ingress: {} (with the braces: without them it counts as absent)",
        ),
        (Some(_), Some(_)) => {
            verdict.error(at.clone(), "only 1 HTTP01 solver type may be configured");
        }
        (Some(ingress), None) => self::ingress(ingress, &at.key("ingress"), verdict),
        (None, Some(_)) => {}
    }
}

fn ingress(ingress: &IngressSolver, at: &FieldPath, verdict: &mut Validation) {
    let given = usize::from(ingress.ingress_class_name.is_some())
        + usize::from(ingress.class.is_some())
        + usize::from(!ingress.name.is_empty());
    if given > 1 {
        verdict.error(
            at.clone(),
            "only one of 'ingressClassName', 'name' or 'class' should be specified",
        );
    }
    if let Some(class) = &ingress.ingress_class_name
        && let Some(why) = object_name_fault(class)
    {
        let at = at.key("ingressClassName");
        verdict.error(at, format!("\"{class}\" is not a valid name: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(spec: Value) -> Vec<String> {
        let object = Value::Object([("spec".to_owned(), spec)].into_iter().collect());
        let verdict = issuer(&serde_json::from_value(object).unwrap());
        verdict.errors.iter().chain(&verdict.warnings).map(ToString::to_string).collect()
    }

    /// Remarks about an ACME issuer that is right but for these fields.
    fn check_acme(fields: Value) -> Vec<String> {
        let mut acme =
            json!({"server": "https://ca.example/dir", "privateKeySecretRef": {"name": "key"}});
        let Value::Object(fields) = fields else { panic!("no object: {fields}") };
        acme.as_object_mut().unwrap().extend(fields);
        check(json!({ "acme": acme }))
    }

    #[test]
    fn exactly_one_type_of_issuer_is_configured() {
        assert_eq!(check(json!({})), ["spec: at least one issuer must be configured"]);
        assert_eq!(
            check(json!({"ca": {}, "selfSigned": {}})),
            ["spec: may not specify more than one issuer type"]
        );
        assert_eq!(check(json!({"selfSigned": {}})), [] as [&str; 0]);
        assert_eq!(
            check_acme(json!({})),
            [] as [&str; 0],
            "no solvers: names may be authorized already"
        );
    }

    #[test]
    fn the_rules_for_the_account_hold() {
        let certificate =
            "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";
        for (fields, expected) in [
            (json!({"server": ""}), vec!["spec.acme.server: acme server URL is a required field"]),
            (
                json!({"server": "letsencrypt"}),
                vec!["spec.acme.server: \"letsencrypt\" is not a URL"],
            ),
            (
                json!({"server": "http://ca.example/dir"}),
                vec![
                    "spec.acme.server: is plain http: whoever is on the way reads and changes what is said; write https where the CA has it",
                ],
            ),
            (json!({"server": "http://127.0.0.1:14000/dir"}), vec![]),
            (
                json!({"privateKeySecretRef": {}}),
                vec![
                    "spec.acme.privateKeySecretRef.name: private key secret name is a required field",
                ],
            ),
            (
                json!({"privateKeySecretRef": {"name": "A"}}),
                vec![
                    "spec.acme.privateKeySecretRef.name: \"A\" is not a valid name: only lower-case letters, digits, '-' and '.' are allowed",
                ],
            ),
            (
                json!({"preferredChain": "x".repeat(65)}),
                vec!["spec.acme.preferredChain: may not be more than 64 bytes"],
            ),
            (json!({"caBundle": certificate}), vec![]),
            (
                json!({"caBundle": certificate, "skipTLSVerify": true}),
                vec!["spec.acme.caBundle: excludes skipTLSVerify: write one of the two"],
            ),
            (json!({"caBundle": "bm9uZQ=="}), vec!["spec.acme.caBundle: holds no certificate"]),
            (
                json!({"externalAccountBinding": {"keyID": "", "keySecretRef": {}}}),
                vec![
                    "spec.acme.externalAccountBinding.keyID: the keyID field is required when using externalAccountBinding",
                    "spec.acme.externalAccountBinding.keySecretRef.name: secret name is required",
                    "spec.acme.externalAccountBinding.keySecretRef.key: secret key is required",
                ],
            ),
            (
                json!({"externalAccountBinding": {"keyID": "a", "keyAlgorithm": "HS512",
                       "keySecretRef": {"name": "eab", "key": "secret"}}}),
                vec![
                    "spec.acme.externalAccountBinding.keyAlgorithm: is deprecated and ignored: always HS256",
                ],
            ),
        ] {
            assert_eq!(check_acme(fields), expected);
        }
    }

    #[test]
    fn the_rules_for_solvers_hold() {
        let ingress = json!({"ingress": {}});
        for (solver, expected) in [
            (json!({}), vec!["spec.acme.solvers[0]: no solver type configured"]),
            (
                json!({"http01": ingress, "dns01": {}}),
                vec![
                    "spec.acme.solvers[0]: may not specify more than one solver type in a single solver",
                ],
            ),
            (
                json!({"http01": {}}),
                vec!["spec.acme.solvers[0].http01: no HTTP01 solver type configured"],
            ),
            (
                json!({"http01": {"ingress": {}, "gatewayHTTPRoute": {}}}),
                vec!["spec.acme.solvers[0].http01: only 1 HTTP01 solver type may be configured"],
            ),
            (json!({"http01": {"gatewayHTTPRoute": {}}}), vec![]),
            (
                json!({"http01": {"ingress": {"class": "a", "name": "b"}}}),
                vec![
                    "spec.acme.solvers[0].http01.ingress: only one of 'ingressClassName', 'name' or 'class' should be specified",
                ],
            ),
            (
                json!({"http01": {"ingress": {"ingressClassName": "A"}}}),
                vec![
                    "spec.acme.solvers[0].http01.ingress.ingressClassName: \"A\" is not a valid name: only lower-case letters, digits, '-' and '.' are allowed",
                ],
            ),
            (
                json!({"http01": ingress, "waitInsteadOfSelfCheck": "-1s"}),
                vec!["spec.acme.solvers[0].waitInsteadOfSelfCheck: must not be negative"],
            ),
            (
                json!({"http01": ingress, "selector": {"dnsZones": ["a..b"]}}),
                vec![
                    "spec.acme.solvers[0].selector.dnsZones[0]: \"a..b\" is not a valid DNS name: it has an empty label",
                ],
            ),
            (json!({"http01": ingress, "selector": {}}), vec![]),
        ] {
            assert_eq!(check_acme(json!({"solvers": [solver]})), expected);
        }
    }
}
