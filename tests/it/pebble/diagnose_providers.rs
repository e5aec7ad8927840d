//! The fault lab where a DNS provider does not take a record, or does not let go of it: stand-ins for the APIs of providers that
//! nobody has an account at, BIND and Knot as they are, and Pebble as CA.

use rcgen::{KeyPair, PKCS_RSA_SHA256};
use serde_json::{Value, json};

use crate::pebble::dns01::{RECORD, Site, THEIRS};
use crate::support::dns::{DnsServer, Setup, Software, Updates, Zone, publish_at, texts_at};
use crate::support::lab;
use crate::support::provider_api::{ApiAnswer, ApiRequest, ProviderApis};
use crate::support::terminal::{Said, certificate, issuer, secret};

const NAMES: [&str; 1] = ["example.com"];
const ZONE: &str = "example.com.";

/// A selector of the one Secret.
fn key_of(entry: &str) -> Value {
    json!({"name": "dns", "key": entry})
}

fn cloudflare() -> Value {
    json!({"cloudflare": {"apiTokenSecretRef": key_of("token")}})
}

fn route53() -> Value {
    json!({"route53": {"accessKeyID": "AKIDEXAMPLE", "secretAccessKeySecretRef": key_of("token")}})
}

fn azure_dns() -> Value {
    json!({"azureDNS": {"subscriptionID": "sub", "resourceGroupName": "group", "hostedZoneName": "example.com",
        "clientID": "client", "tenantID": "tenant", "clientSecretSecretRef": key_of("token")}})
}

fn cloud_dns() -> Value {
    json!({"cloudDNS": {"project": "project", "serviceAccountSecretRef": key_of("account.json")}})
}

/// A zone that everybody may change, a CA that asks for its records, and somebody who orders by the API of a provider.
struct Lab {
    site: Site,
    apis: ProviderApis,
}

impl Lab {
    fn new(answer: impl Fn(&ApiRequest) -> ApiAnswer + Send + Sync + 'static) -> Self {
        let mut site = Site::new(Software::Bind, Updates::Unsigned);
        let apis = ProviderApis::start(answer);
        apis.lead(&mut site.terminal);
        Self { site, apis }
    }

    /// Orders by that solver, and leaves it where it is after a moment.
    fn order(&self, dns01: &Value) -> Said {
        let Site { pebble, terminal, .. } = &self.site;
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap().serialize_pem();
        let account = json!({"type": "service_account", "client_email": "acme@project.iam", "private_key": key});
        let mut secret = secret("dns", "token", "a-token");
        secret["stringData"]["account.json"] = account.to_string().into();
        let solver = json!({"solvers": [{"dns01": dns01, "waitInsteadOfSelfCheck": "0s"}]});
        let path = terminal.manifests(&[
            secret,
            issuer(&pebble.directory(), pebble.tls_ca_pem(), solver),
            certificate("web", &NAMES, json!({})),
        ]);
        terminal.run(&["order", "-f", path.to_str().unwrap(), "--timeout=8s"])
    }
}

/// What `diagnose` names first, with its evidence as one text.
#[track_caller]
fn named(site: &Site, cause: &str) -> (Value, String) {
    let said = site.terminal.run(&["diagnose", "web", "-o", "json"]);
    let report: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    let first = lab::names_first(&report, cause);
    let severity = first["severity"].as_str().unwrap();
    let expected = if severity == "warning" { 0 } else { 10 };
    assert_eq!(said.code, Some(expected), "{report:#}");
    let evidence = first["evidence"].to_string();
    (report, evidence)
}

/// That the provider refuses before an order is made: the CA hears nothing, and `diagnose` asks it and names that cause.
#[track_caller]
fn check(
    dns01: &Value,
    cause: &str,
    shown: &[&str],
    answer: impl Fn(&ApiRequest) -> ApiAnswer + Send + Sync + 'static,
) {
    let lab = Lab::new(answer);
    let said = lab.order(dns01);
    assert_eq!(said.code, Some(9), "{said:?}");
    assert_eq!(lab.site.pebble.orders(), 0, "the CA heard nothing: {said:?}");
    lab.apis.asked();
    let (report, evidence) = named(&lab.site, cause);
    assert!(shown.iter().all(|word| evidence.contains(word)), "{shown:?}: {report:#}");
    let asked = lab.apis.asked();
    assert!(!asked.is_empty(), "the provider is asked: {report:#}");
    let is_read = |one: &ApiRequest| one.line.starts_with("GET ") || one.line.contains("/token");
    assert!(asked.iter().all(is_read), "nothing is changed there: {asked:?}");
    assert!(!report.to_string().contains("a-token"), "{report:#}");
}

/// What Cloudflare answers where something is wrong.
fn cloudflare_error(status: u16, code: u32, message: &str) -> ApiAnswer {
    let error = json!({"success": false, "errors": [{"code": code, "message": message}]});
    (status, error.to_string())
}

fn cloudflare_list(items: &Value) -> ApiAnswer {
    (200, json!({"success": true, "errors": [], "result": items}).to_string())
}

fn aws_error(status: u16, code: &str, message: &str) -> ApiAnswer {
    let error = format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    );
    (status, error)
}

/// The guide's "find any errors from your DNS provider here": Cloudflare.
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn guide_the_dns_provider_does_not_know_the_token_or_has_no_such_zone() {
    check(&cloudflare(), "PRV-02", &["HTTP 403", "9109", "GET https://api.cloudflare.com"], |_| {
        cloudflare_error(403, 9109, "Invalid access token")
    });
    check(&cloudflare(), "PRV-02", &["Found no Zones for domain"], |_| cloudflare_list(&json!([])));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn cloudflare_lets_the_token_read_and_nothing_more() {
    let lab = Lab::new(|request| match request.line.as_str() {
        line if line.starts_with("GET ") && line.contains("/dns_records") => {
            cloudflare_list(&json!([]))
        }
        line if line.starts_with("GET ") => cloudflare_list(&json!([{"id": "zone-1"}])),
        _ => cloudflare_error(403, 10000, "Authentication error"),
    });
    let said = lab.order(&cloudflare());
    assert_eq!(lab.site.pebble.orders(), 1, "a look does not show it: {said:?}");
    let (report, evidence) = named(&lab.site, "PRV-02");
    let post = "POST https://api.cloudflare.com/client/v4/zones/zone-1/dns_records";
    assert!(evidence.contains(post) && evidence.contains("10000"), "{report:#}");
    // The same for whoever may not ask, or is not asked.
    let said = lab.site.terminal.run(&["describe", "certificate/web"]);
    assert!(said.stderr.starts_with("PRV-02: Cloudflare"), "{said:?}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn route53_does_not_permit_the_change() {
    let may_not = "User: arn:aws:iam::1:user/acme is not authorized to perform: route53:ListHostedZonesByName";
    check(
        &route53(),
        "PRV-03",
        &["HTTP 403", "AccessDenied", "arn:aws:iam::1:user/acme"],
        move |_| aws_error(403, "AccessDenied", may_not),
    );
    check(&route53(), "PRV-03", &["InvalidClientTokenId", "hostedzonesbyname"], |_| {
        aws_error(403, "InvalidClientTokenId", "The security token is invalid.")
    });
}

/// A token of any token service.
fn token() -> ApiAnswer {
    (200, json!({"access_token": "t", "expires_in": 3600}).to_string())
}

/// What an API answers with an object `error`.
fn api_error(status: u16, error: &Value) -> ApiAnswer {
    (status, json!({"error": error}).to_string())
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn azure_dns_does_not_permit_the_change() {
    let shown = ["AADSTS7000215", "login.microsoftonline.com/tenant"];
    check(&azure_dns(), "PRV-05", &shown, |_| {
        let why = "AADSTS7000215: Invalid client secret provided. Trace ID: 1";
        (401, json!({"error": "invalid_client", "error_description": why}).to_string())
    });
    let shown = ["AuthorizationFailed", "HTTP 403", "dnsZones/example.com"];
    check(&azure_dns(), "PRV-05", &shown, |request| {
        if request.host == "login.microsoftonline.com" {
            return token();
        }
        let why = "The client does not have authorization";
        api_error(403, &json!({"code": "AuthorizationFailed", "message": why}))
    });
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn google_cloud_dns_does_not_permit_the_change() {
    let shown = ["HTTP 403", "projects/project/managedZones"];
    check(&cloud_dns(), "PRV-06", &shown, |request| {
        if request.host == "oauth2.googleapis.com" {
            return token();
        }
        let errors = json!([{"reason": "forbidden"}]);
        api_error(403, &json!({"code": 403, "message": "Forbidden", "errors": errors}))
    });
    check(&cloud_dns(), "PRV-06", &["invalid_grant", "oauth2.googleapis.com"], |_| {
        let why = "account not found";
        (400, json!({"error": "invalid_grant", "error_description": why}).to_string())
    });
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn other_providers_refuse_credentials_or_addresses_or_are_busy() {
    let ocean = json!({"digitalocean": {"tokenSecretRef": key_of("token")}});
    check(&ocean, "PRV-16", &["HTTP 401", "Unable to authenticate you"], |_| {
        (401, json!({"id": "Unauthorized", "message": "Unable to authenticate you"}).to_string())
    });
    check(&ocean, "PRV-16", &["HTTP 404", "domains/example.com/records"], |_| {
        (404, json!({"id": "not_found", "message": "It could not be found."}).to_string())
    });

    let lab = Lab::new(|_| {
        let body = json!({"id": "too_many_requests", "message": "API Rate limit exceeded."});
        (429, body.to_string())
    });
    lab.order(&ocean);
    let (report, evidence) = named(&lab.site, "PRV-12");
    assert!(evidence.contains("HTTP 429"), "{report:#}");

    check(&cloudflare(), "PRV-14", &["9109", "location"], |_| {
        cloudflare_error(403, 9109, "Cannot use the access token from location: 192.0.2.1")
    });
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_provider_that_lets_nothing_go_is_named_by_the_record_that_stays() {
    let server = DnsServer::start(
        Software::Bind,
        &Setup::new(vec![Zone::new(ZONE).updates(Updates::Unsigned)]),
    );
    let address = server.address();
    let mut site = Site::with(server);
    // What is made there can be seen by the CA, as at a provider; only taking it away is refused.
    let apis = ProviderApis::start(move |request| {
        let is_of_records = request.line.contains("/dns_records");
        match (request.line.split(' ').next().unwrap(), is_of_records) {
            ("GET", false) => cloudflare_list(&json!([{"id": "zone-1"}])),
            ("GET", true) => {
                let texts = texts_at(address, RECORD);
                let record = |text: String| json!({"id": "r", "name": "_acme-challenge.example.com", "content": text});
                cloudflare_list(&texts.into_iter().map(record).collect())
            }
            ("POST", _) => {
                let record: Value = serde_json::from_str(&request.body).unwrap();
                let text = record["content"].as_str().unwrap();
                publish_at(address, ZONE, RECORD, text);
                (200, json!({"success": true, "result": record}).to_string())
            }
            _ => cloudflare_error(403, 10000, "Authentication error"),
        }
    });
    apis.lead(&mut site.terminal);
    let lab = Lab { site, apis };
    let said = lab.order(&cloudflare());
    assert_eq!(said.code, Some(0), "the certificate is there: {said:?}");
    assert_eq!(lab.site.server.texts(RECORD).len(), 1, "it stays: {said:?}");
    let (report, evidence) = named(&lab.site, "PRV-15");
    let asked = "DELETE https://api.cloudflare.com/client/v4/zones/zone-1/dns_records/r";
    assert!(evidence.contains(asked) && evidence.contains("HTTP 403"), "{report:#}");
}

/// A name server that refuses; the order is not made, and `diagnose` says why, with the key and the server.
#[track_caller]
fn check_update(site: &Site, solver: &Value, shown: &[&str]) {
    let manifests = site.manifests(&site.pebble.directory(), "hmac-sha256", solver, &NAMES);
    let said = site.terminal.try_order(&manifests);
    assert_eq!(said.code, Some(9), "{said:?}");
    assert_eq!(site.pebble.orders(), 0, "the CA heard nothing");
    let updates = |site: &Site| {
        let asked = site.server.asked();
        asked.iter().filter(|asked| format!("{:?}", asked.code) == "Update").count()
    };
    let before = updates(site);
    let (report, evidence) = named(site, "PRV-07");
    assert!(shown.iter().all(|word| evidence.contains(word)), "{shown:?}: {report:#}");
    assert_eq!(updates(site), before, "nothing is changed there");
    assert!(report["findings"][0]["message"].to_string().contains("example.com"), "{report:#}");
}

/// Another key, another algorithm, another access list, another zone.
fn check_server(software: Software) {
    let site = Site::new(software, Updates::Signed);
    let address = site.server.address().to_string();
    let mut stranger = site.solver("hmac-sha256", &json!({}));
    stranger["rfc2136"]["tsigKeyName"] = "stranger".into();
    check_update(&site, &stranger, &["BADKEY", "stranger", &address]);
    let mut algorithm = site.solver("hmac-sha256", &json!({}));
    algorithm["rfc2136"]["tsigAlgorithm"] = "HMACSHA512".into();
    check_update(&site, &algorithm, &["NOTAUTH", "HMACSHA512"]);

    let site = Site::new(software, Updates::SignedBy("hmac-md5.".to_owned()));
    let closed = site.solver("hmac-sha256", &json!({}));
    check_update(&site, &closed, &["key hmac-sha256", "before an order"]);
    assert_eq!(site.server.texts(RECORD), [THEIRS]);

    let site = Site::new(software, Updates::Signed);
    let other = Setup::new(vec![Zone::new("example.net.").updates(Updates::Signed)]);
    let other = DnsServer::start(software, &other);
    let mut elsewhere = site.solver("hmac-sha256", &json!({}));
    elsewhere["rfc2136"]["nameserver"] = other.address().to_string().into();
    check_update(&site, &elsewhere, &["example.com.", &other.address().to_string()]);
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn bind_refuses_another_key_algorithm_zone_and_whoever_is_not_on_its_list() {
    check_server(Software::Bind);
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn knot_refuses_another_key_algorithm_zone_and_whoever_is_not_on_its_list() {
    check_server(Software::Knot);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn acme_dns_has_no_account_for_the_domain() {
    let site = Site::new(Software::Bind, Updates::Unsigned);
    let accounts = json!({"other.example.com": {"subdomain": "s", "fulldomain": "s.auth.example", "username": "u", "password": "hush"}});
    let solver = json!({"acmeDNS": {"host": "http://127.0.0.1:1", "accountSecretRef": key_of("accounts.json")}});
    let solvers = json!({"solvers": [{"dns01": solver}]});
    let said = site.terminal.try_order(&[
        secret("dns", "accounts.json", &accounts.to_string()),
        issuer(&site.pebble.directory(), site.pebble.tls_ca_pem(), solvers),
        certificate("web", &NAMES, json!({})),
    ]);
    assert_eq!(said.code, Some(9), "{said:?}");
    assert_eq!(site.pebble.orders(), 0, "the CA heard nothing: {said:?}");
    let (report, evidence) = named(&site, "PRV-13");
    assert!(evidence.contains("other.example.com") && !evidence.contains("hush"), "{report:#}");
}
