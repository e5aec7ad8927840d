//! Rules for DNS-01 solvers and their providers.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::Value;

use super::{Validation, path_segment_fault};
use crate::model::field::FieldPath;
use crate::model::names::DnsName;
use crate::model::own_solver::OwnSolver;
use crate::model::solver::{
    AcmeDns, Akamai, AzureDns, CloudDns, Cloudflare, DigitalOcean, Dns01Solver, Rfc2136, Route53,
    Webhook,
};

/// Algorithms of TSIG keys (RFC 8945 §6); upper and lower case are the same.
const TSIG_ALGORITHMS: [&str; 4] = ["HMACMD5", "HMACSHA1", "HMACSHA256", "HMACSHA512"];

/// Checks a DNS-01 solver: exactly one provider, and that one complete.
pub(super) fn solver(solver: &Dns01Solver, at: &FieldPath, verdict: &mut Validation) {
    let given = [
        solver.akamai.is_some(),
        solver.cloud_dns.is_some(),
        solver.cloudflare.is_some(),
        solver.route53.is_some(),
        solver.azure_dns.is_some(),
        solver.digitalocean.is_some(),
        solver.acme_dns.is_some(),
        solver.rfc2136.is_some(),
        solver.webhook.is_some(),
    ];
    match given.into_iter().filter(|given| *given).count() {
        0 => verdict.error(at.clone(), "no DNS01 provider configured"),
        1 => provider(solver, at, verdict),
        _ => verdict.error(at.clone(), "may not specify more than one provider type"),
    }
}

fn provider(solver: &Dns01Solver, at: &FieldPath, verdict: &mut Validation) {
    if let Some(provider) = &solver.akamai {
        akamai(provider, &at.key("akamai"), verdict);
    }
    if let Some(provider) = &solver.cloud_dns {
        cloud(provider, &at.key("cloudDNS"), verdict);
    }
    if let Some(provider) = &solver.cloudflare {
        cloudflare(provider, &at.key("cloudflare"), verdict);
    }
    if let Some(provider) = &solver.route53 {
        route53(provider, &at.key("route53"), verdict);
    }
    if let Some(provider) = &solver.azure_dns {
        azure(provider, &at.key("azureDNS"), verdict);
    }
    if let Some(provider) = &solver.digitalocean {
        digitalocean(provider, &at.key("digitalocean"), verdict);
    }
    if let Some(provider) = &solver.acme_dns {
        acme_dns(provider, &at.key("acmeDNS"), verdict);
    }
    if let Some(provider) = &solver.rfc2136 {
        rfc2136(provider, &at.key("rfc2136"), verdict);
    }
    if let Some(provider) = &solver.webhook {
        webhook(provider, &at.key("webhook"), verdict);
    }
}

fn require(text: &str, path: FieldPath, verdict: &mut Validation) {
    if text.is_empty() {
        verdict.error(path, "is required");
    }
}

fn akamai(provider: &Akamai, at: &FieldPath, verdict: &mut Validation) {
    require(&provider.service_consumer_domain, at.key("serviceConsumerDomain"), verdict);
    verdict.secret_key(&at.key("clientTokenSecretRef"), &provider.client_token_secret_ref);
    verdict.secret_key(&at.key("clientSecretSecretRef"), &provider.client_secret_secret_ref);
    verdict.secret_key(&at.key("accessTokenSecretRef"), &provider.access_token_secret_ref);
}

fn cloud(provider: &CloudDns, at: &FieldPath, verdict: &mut Validation) {
    require(&provider.project, at.key("project"), verdict);
    if let Some(account) = &provider.service_account_secret_ref {
        verdict.secret_key(&at.key("serviceAccountSecretRef"), account);
    }
}

fn cloudflare(provider: &Cloudflare, at: &FieldPath, verdict: &mut Validation) {
    match (&provider.api_key_secret_ref, &provider.api_token_secret_ref) {
        (None, None) => {
            verdict.error(at.clone(), "apiKeySecretRef or apiTokenSecretRef is required");
        }
        (Some(_), Some(_)) => {
            verdict.error(at.clone(), "apiKeySecretRef excludes apiTokenSecretRef");
        }
        (Some(key), None) => {
            verdict.secret_key(&at.key("apiKeySecretRef"), key);
            if provider.email.is_empty() {
                verdict.error(at.key("email"), "email is required with an API key");
            }
        }
        (None, Some(token)) => verdict.secret_key(&at.key("apiTokenSecretRef"), token),
    }
}

fn route53(provider: &Route53, at: &FieldPath, verdict: &mut Validation) {
    let account = provider.auth.as_ref();
    let account = account.and_then(|auth| auth.pointer("/kubernetes/serviceAccountRef/name"));
    if let Some(account) = account.and_then(Value::as_str) {
        let at = at.key("auth").key("kubernetes").key("serviceAccountRef").key("name");
        verdict.object_name(at, account);
    }
    let key = !provider.access_key_id.is_empty();
    if let Some(selector) = &provider.access_key_id_secret_ref {
        if key {
            verdict.error(at.clone(), "accessKeyID excludes accessKeyIDSecretRef");
        }
        verdict.secret_key(&at.key("accessKeyIDSecretRef"), selector);
    }
    let key = key || provider.access_key_id_secret_ref.is_some();
    let secret = &provider.secret_access_key_secret_ref;
    if !secret.name.is_empty() || key {
        verdict.secret_key(&at.key("secretAccessKeySecretRef"), secret);
    }
    if !secret.name.is_empty() && !key {
        verdict.error(
            at.clone(),
            "accessKeyID or accessKeyIDSecretRef is required with a secret access key",
        );
    }
}

fn azure(provider: &AzureDns, at: &FieldPath, verdict: &mut Validation) {
    require(&provider.subscription_id, at.key("subscriptionID"), verdict);
    require(&provider.resource_group_name, at.key("resourceGroupName"), verdict);
    let client = !provider.client_id.is_empty();
    let tenant = !provider.tenant_id.is_empty();
    let secret = provider.client_secret_secret_ref.as_ref();
    if let Some(selector) = secret {
        verdict.secret_key(&at.key("clientSecretSecretRef"), selector);
    }
    if !(client || tenant || secret.is_some()) {
        return;
    }
    if provider.managed_identity.is_some() {
        verdict.error(
            at.key("managedIdentity"),
            "excludes clientID, clientSecretSecretRef and tenantID",
        );
    }
    for (there, field) in
        [(client, "clientID"), (secret.is_some(), "clientSecretSecretRef"), (tenant, "tenantID")]
    {
        if !there {
            verdict.error(
                at.key(field),
                "is required: clientID, clientSecretSecretRef and tenantID go together",
            );
        }
    }
}

fn digitalocean(provider: &DigitalOcean, at: &FieldPath, verdict: &mut Validation) {
    verdict.secret_key(&at.key("tokenSecretRef"), &provider.token_secret_ref);
}

fn acme_dns(provider: &AcmeDns, at: &FieldPath, verdict: &mut Validation) {
    require(&provider.host, at.key("host"), verdict);
    verdict.secret_key(&at.key("accountSecretRef"), &provider.account_secret_ref);
}

fn rfc2136(provider: &Rfc2136, at: &FieldPath, verdict: &mut Validation) {
    if !is_nameserver(&provider.nameserver) {
        verdict.error_hint(
            at.key("nameserver"),
            format!("\"{}\" is not a name server", provider.nameserver),
            "write 192.0.2.53, 192.0.2.53:53, [2001:db8::53]:53 or ns.example.com",
        );
    }
    let algorithm = provider.tsig_algorithm.to_ascii_uppercase();
    if !algorithm.is_empty() && !TSIG_ALGORITHMS.contains(&algorithm.as_str()) {
        verdict.error(
            at.key("tsigAlgorithm"),
            format!("\"{}\" is not one of {}", provider.tsig_algorithm, TSIG_ALGORITHMS.join(", ")),
        );
    }
    let secret = &provider.tsig_secret_secret_ref;
    match (secret.name.is_empty(), provider.tsig_key_name.is_empty()) {
        (true, true) => {}
        (false, true) => verdict.error(at.key("tsigKeyName"), "is required with a TSIG key"),
        (_, false) => verdict.secret_key(&at.key("tsigSecretSecretRef"), secret),
    }
}

fn webhook(provider: &Webhook, at: &FieldPath, verdict: &mut Validation) {
    if let Some(own) = OwnSolver::read(provider, at) {
        verdict.errors.extend(own.err().unwrap_or_default());
        return;
    }
    verdict.object_name(at.key("groupName"), &provider.group_name);
    require(&provider.solver_name, at.key("solverName"), verdict);
    if let Some(why) = path_segment_fault(&provider.solver_name)
        && !provider.solver_name.is_empty()
    {
        let message = format!("\"{}\" is not a valid name: {why}", provider.solver_name);
        verdict.error(at.key("solverName"), message);
    }
}

/// Reports whether a text is a host with or without port; a bare IPv6 address would leave the port in doubt.
fn is_nameserver(text: &str) -> bool {
    let is_v6 = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(host, port)| {
            is_v6(host) && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
        });
    }
    let (host, port) = text.split_once(':').unwrap_or((text, "53"));
    is_port(port) && (host.parse::<IpAddr>().is_ok() || DnsName::parse(host).is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(provider: Value) -> Vec<String> {
        let mut verdict = Validation::default();
        let at = FieldPath::of("dns01");
        solver(&serde_json::from_value(provider).unwrap(), &at, &mut verdict);
        verdict.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn exactly_one_provider_is_configured() {
        assert_eq!(check(json!({})), ["dns01: no DNS01 provider configured"]);
        assert_eq!(
            check(json!({"route53": {}, "cloudDNS": {"project": "p"}})),
            ["dns01: may not specify more than one provider type"]
        );
    }

    #[test]
    fn providers_are_complete() {
        let key = json!({"name": "n", "key": "k"});
        for (provider, expected) in [
            (json!({"route53": {}}), vec![]),
            (
                json!({"route53": {"accessKeyID": "a"}}),
                vec![
                    "dns01.route53.secretAccessKeySecretRef.name: secret name is required",
                    "dns01.route53.secretAccessKeySecretRef.key: secret key is required",
                ],
            ),
            (
                json!({"route53": {"secretAccessKeySecretRef": key}}),
                vec![
                    "dns01.route53: accessKeyID or accessKeyIDSecretRef is required with a secret access key",
                ],
            ),
            (
                json!({"route53": {"accessKeyID": "a", "accessKeyIDSecretRef": key, "secretAccessKeySecretRef": key}}),
                vec!["dns01.route53: accessKeyID excludes accessKeyIDSecretRef"],
            ),
            (json!({"cloudDNS": {"project": ""}}), vec!["dns01.cloudDNS.project: is required"]),
            (
                json!({"cloudflare": {}}),
                vec!["dns01.cloudflare: apiKeySecretRef or apiTokenSecretRef is required"],
            ),
            (
                json!({"cloudflare": {"apiKeySecretRef": key}}),
                vec!["dns01.cloudflare.email: email is required with an API key"],
            ),
            (
                json!({"cloudflare": {"apiKeySecretRef": key, "apiTokenSecretRef": key}}),
                vec!["dns01.cloudflare: apiKeySecretRef excludes apiTokenSecretRef"],
            ),
            (
                json!({"cloudflare": {"apiTokenSecretRef": {"name": "n"}}}),
                vec!["dns01.cloudflare.apiTokenSecretRef.key: secret key is required"],
            ),
            (json!({"azureDNS": {"subscriptionID": "s", "resourceGroupName": "g"}}), vec![]),
            (
                json!({"azureDNS": {"subscriptionID": "s", "resourceGroupName": "g", "clientID": "c"}}),
                vec![
                    "dns01.azureDNS.clientSecretSecretRef: is required: clientID, clientSecretSecretRef and tenantID go together",
                    "dns01.azureDNS.tenantID: is required: clientID, clientSecretSecretRef and tenantID go together",
                ],
            ),
            (
                json!({"digitalocean": {"tokenSecretRef": {}}}),
                vec![
                    "dns01.digitalocean.tokenSecretRef.name: secret name is required",
                    "dns01.digitalocean.tokenSecretRef.key: secret key is required",
                ],
            ),
            (
                json!({"acmeDNS": {"host": "", "accountSecretRef": key}}),
                vec!["dns01.acmeDNS.host: is required"],
            ),
            (
                json!({"webhook": {"groupName": "g", "solverName": ""}}),
                vec!["dns01.webhook.solverName: is required"],
            ),
            (json!({"webhook": {"groupName": "acme.example.org", "solverName": "ours"}}), vec![]),
            (
                json!({"webhook": {"groupName": "../v1", "solverName": "../../api/v1/x"}}),
                vec![
                    "dns01.webhook.groupName: \"../v1\" is not a valid name: a '.' must stand between letters or digits",
                    "dns01.webhook.solverName: \"../../api/v1/x\" is not a valid name: a character in it means something in a URL",
                ],
            ),
            (
                json!({"route53": {"role": "r", "auth": {"kubernetes": {"serviceAccountRef": {"name": "../x"}}}}}),
                vec![
                    "dns01.route53.auth.kubernetes.serviceAccountRef.name: \"../x\" is not a valid name: a '.' must stand between letters or digits",
                ],
            ),
            (
                json!({"rfc2136": {"nameserver": "192.0.2.53", "tsigKeyName": "k"}}),
                vec![
                    "dns01.rfc2136.tsigSecretSecretRef.name: secret name is required",
                    "dns01.rfc2136.tsigSecretSecretRef.key: secret key is required",
                ],
            ),
            (
                json!({"rfc2136": {"nameserver": "192.0.2.53", "tsigSecretSecretRef": key}}),
                vec!["dns01.rfc2136.tsigKeyName: is required with a TSIG key"],
            ),
            (
                json!({"rfc2136": {"nameserver": "192.0.2.53", "tsigAlgorithm": "hmacsha256"}}),
                vec![],
            ),
            (
                json!({"rfc2136": {"nameserver": "192.0.2.53", "tsigAlgorithm": "MD4"}}),
                vec![
                    "dns01.rfc2136.tsigAlgorithm: \"MD4\" is not one of HMACMD5, HMACSHA1, HMACSHA256, HMACSHA512",
                ],
            ),
        ] {
            assert_eq!(check(provider), expected);
        }
    }

    #[test]
    fn a_name_server_is_a_host_with_or_without_port() {
        for text in
            ["8.8.8.8", "8.8.8.8:5353", "[2001:db8::1]", "[2001:db8::1]:5353", "host.example"]
        {
            assert!(is_nameserver(text), "{text}");
        }
        for text in ["2001:db8::1", "2001:db8::1:5353", ":53", "", "8.8.8.8:dns", "[::1]53"] {
            assert!(!is_nameserver(text), "{text}");
        }
    }
}
