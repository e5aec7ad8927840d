use std::sync::Arc;

use serde_json::{Value, json};

use super::factory::site_with;
use super::stub::{Fake, Seen, Stub, Told};
use super::{NAME, keeps_the_contract, record};
use crate::solvers::SolveError;
use crate::solvers::dns01::site::Hooks;
use crate::solvers::dns01::{Provider, factory};
use crate::solvers::testing::advice;

const HOST: &str = "_acme-challenge.www.example.com";

/// Builds one of the many.
async fn many(name: &str, config: Value) -> Result<Arc<dyn Provider>, SolveError> {
    let solver =
        json!({"webhook": {"groupName": "kubectl-acme", "solverName": name, "config": config}});
    let solver = serde_json::from_value(solver).unwrap();
    site_with(Hooks::NotAllowed, async |site| factory::provider(&solver, site).await).await
}

fn key() -> Value {
    json!({"name": "dns", "key": "good"})
}

/// PowerDNS: one RRset, written whole.
struct PowerDns(Vec<String>);

impl PowerDns {
    async fn serve() -> (Stub<Self>, Arc<dyn Provider>) {
        let stub = Stub::serve(Self(vec!["theirs".to_owned()])).await;
        let config = json!({"apiKeySecretRef": key(), "endpoint": stub.url});
        (stub, many("pdns", config).await.unwrap())
    }
}

impl Fake for PowerDns {
    fn answer(&mut self, request: &Seen) -> Told {
        if request.header("x-api-key") != "value" {
            return Told::new(401, "");
        }
        if request.uri.path() != "/api/v1/servers/localhost/zones/example.com." {
            return Told::new(404, json!({"error": "Not Found"}));
        }
        if request.method == "PATCH" {
            let body = request.json();
            let change = &body["rrsets"][0];
            assert_eq!((&change["name"], &change["type"]), (&NAME.into(), &"TXT".into()));
            let records = change["records"].as_array().cloned().unwrap_or_default();
            let text =
                |record: &Value| record["content"].as_str().unwrap().trim_matches('"').to_owned();
            self.0 = records.iter().map(text).collect();
            return Told::new(204, "");
        }
        let record = |text: &String| json!({"content": format!("\"{text}\""), "disabled": false});
        let records: Vec<Value> = self.0.iter().map(record).collect();
        let rrset = json!({"name": NAME, "type": "TXT", "ttl": 60, "records": records});
        let rrsets = if records.is_empty() { json!([]) } else { json!([rrset]) };
        Told::new(200, json!({"name": "example.com.", "rrsets": rrsets}))
    }

    fn values(&self, _: &str) -> Vec<String> {
        self.0.clone()
    }
}

/// Plesk: a list of records with numbers.
struct Plesk(Vec<(u64, String)>);

impl Plesk {
    async fn serve() -> (Stub<Self>, Arc<dyn Provider>) {
        let stub = Stub::serve(Self(vec![(1, "theirs".to_owned())])).await;
        let config = json!({"apiKeySecretRef": key(), "baseURL": stub.url});
        (stub, many("plesk", config).await.unwrap())
    }
}

impl Fake for Plesk {
    fn answer(&mut self, request: &Seen) -> Told {
        assert_eq!(request.header("x-api-key"), "value");
        match request.method.as_str() {
            "GET" => {
                assert_eq!(request.parameter("domain").as_deref(), Some("example.com"));
                let record = |(id, text): &(u64, String)| json!({"id": id, "type": "TXT", "host": format!("{HOST}."), "value": text, "opt": ""});
                Told::new(200, self.0.iter().map(record).collect::<Value>())
            }
            "POST" => {
                let body = request.json();
                assert_eq!((&body["type"], &body["host"]), (&"TXT".into(), &HOST.into()));
                let id = self.0.iter().map(|(id, _)| id + 1).max().unwrap_or(1);
                self.0.push((id, body["value"].as_str().unwrap().to_owned()));
                Told::new(201, json!({"id": id}))
            }
            _ => {
                let id: u64 = request.uri.path().rsplit('/').next().unwrap().parse().unwrap();
                self.0.retain(|(known, _)| *known != id);
                Told::new(200, json!({}))
            }
        }
    }

    fn values(&self, _: &str) -> Vec<String> {
        self.0.iter().map(|(_, text)| text.clone()).collect()
    }
}

/// Infoblox: a list of records with references.
struct Infoblox(Vec<String>);

impl Infoblox {
    async fn serve() -> (Stub<Self>, Arc<dyn Provider>) {
        let stub = Stub::serve(Self(vec!["theirs".to_owned()])).await;
        let config = json!({"host": stub.url, "username": "me", "passwordSecretRef": key()});
        (stub, many("infoblox", config).await.unwrap())
    }
}

impl Fake for Infoblox {
    fn answer(&mut self, request: &Seen) -> Told {
        // me:value
        assert_eq!(request.header("authorization"), "Basic bWU6dmFsdWU=");
        match request.method.as_str() {
            "GET" => {
                assert_eq!(request.parameter("name").as_deref(), Some(HOST));
                let record =
                    |text: &String| json!({"_ref": format!("record:txt/{text}"), "text": text});
                Told::new(200, self.0.iter().map(record).collect::<Value>())
            }
            "POST" => {
                let body = request.json();
                assert_eq!(body["name"], HOST);
                self.0.push(body["text"].as_str().unwrap().to_owned());
                Told::new(201, json!("record:txt/new"))
            }
            _ => {
                let text = request.uri.path().rsplit('/').next().unwrap();
                self.0.retain(|known| known != text);
                Told::new(200, json!("record:txt/gone"))
            }
        }
    }

    fn values(&self, _: &str) -> Vec<String> {
        self.0.clone()
    }
}

#[tokio::test]
async fn powerdns_keeps_the_contract() {
    let (stub, provider) = PowerDns::serve().await;
    keeps_the_contract(&*provider, &stub).await;
}

#[tokio::test]
async fn plesk_keeps_the_contract() {
    let (stub, provider) = Plesk::serve().await;
    keeps_the_contract(&*provider, &stub).await;
}

#[tokio::test]
async fn infoblox_keeps_the_contract() {
    let (stub, provider) = Infoblox::serve().await;
    keeps_the_contract(&*provider, &stub).await;
}

/// Adds a text and takes it away: what is asked.
async fn check<F: Fake>((stub, provider): (Stub<F>, Arc<dyn Provider>), expected: &[String]) {
    provider.add(&record("one")).await.unwrap();
    provider.remove(&record("one")).await.unwrap();
    let asked = stub.seen();
    let asked = asked.iter().map(|seen| format!("{} {}", seen.line(), seen.body));
    let asked: Vec<String> = asked.map(|line| line.trim().to_owned()).collect();
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn powerdns_is_sent_the_texts_of_others_with_ours() {
    let zone = "/api/v1/servers/localhost/zones/example.com.";
    let filter = format!("?rrset_name={NAME}&rrset_type=TXT&include_disabled=false");
    let record = |text: &&str| json!({"content": format!("\"{text}\""), "disabled": false});
    let change = |texts: &[&str]| {
        let records: Vec<Value> = texts.iter().map(record).collect();
        let records = Value::from(records);
        format!(
            "PATCH {zone} {{\"rrsets\":[{{\"name\":\"{NAME}\",\"type\":\"TXT\",\"changetype\":\"REPLACE\",\"ttl\":60,\
             \"records\":{records}}}]}}"
        )
    };
    let look = format!("GET {zone}");
    let expected = [
        format!("{look}{filter}"),
        look.clone(),
        change(&["theirs", "one"]),
        look.clone(),
        change(&["theirs"]),
        format!("{look}{filter}"),
    ];
    check(PowerDns::serve().await, &expected).await;
}

#[tokio::test]
async fn plesk_is_sent_one_record() {
    let look = "GET /api/v2/dns/records?domain=example.com";
    let add = format!(
        "POST /api/v2/dns/records?domain=example.com {{\"type\":\"TXT\",\"host\":\"{HOST}\",\"value\":\"one\",\"ttl\":60}}"
    );
    let expected = [look, look, &add, look, "DELETE /api/v2/dns/records/2", look];
    check(Plesk::serve().await, &expected.map(ToOwned::to_owned)).await;
}

#[tokio::test]
async fn infoblox_is_sent_one_record() {
    let look = format!("GET /wapi/v2.11/record:txt?name={HOST}&view=External");
    let add = format!(
        "POST /wapi/v2.11/record:txt {{\"name\":\"{HOST}\",\"text\":\"one\",\"ttl\":60,\"use_ttl\":true,\"view\":\"External\"}}"
    );
    let remove = "DELETE /wapi/v2.11/record:txt/one".to_owned();
    let expected = [look.clone(), look.clone(), add, look.clone(), remove, look];
    check(Infoblox::serve().await, &expected).await;
}

#[tokio::test]
async fn refusals_are_told_with_what_to_do() {
    let (stub, provider) = PowerDns::serve().await;
    for (told, why, hint) in [
        (Told::new(401, "Unauthorized"), "it refuses the credentials", "other credentials"),
        (Told::new(404, "{}"), "it knows no such zone", "let the zone be in the account"),
        (
            Told::new(403, json!({"error": "the key value may not"})),
            "HTTP 403: the key *** may not",
            "more rights",
        ),
    ] {
        stub.script([told]);
        let error = provider.check(NAME).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot look at the TXT record {HOST} at pdns: {why}")
        );
        assert!(error.needs_person && advice(&error).contains(hint));
    }
    stub.script([Told::new(500, "at /srv/internal.php line 3")]);
    let error = provider.add(&record("one")).await.unwrap_err();
    assert_eq!(error.why, "HTTP 500");
    assert!(!error.needs_person, "it may pass");
    assert_eq!(stub.values(NAME), ["theirs"], "nothing was written");
}

#[tokio::test]
async fn what_is_missing_is_named_before_anything_is_asked() {
    for (name, config, why) in [
        ("hetzner", json!({}), "webhook.config.apiTokenSecretRef: is required"),
        (
            "hetzner",
            json!({"apiTokenSecretRef": {"name": "dns", "key": "none"}}),
            "it has no key \"none\"",
        ),
        ("nobody", json!({}), "webhook.solverName: there is no solver \"nobody\" of kubectl-acme"),
        ("manual", json!({}), "the solver \"manual\" leaves it to a person"),
        (
            "ovh",
            json!({"applicationKeySecretRef": key(), "applicationSecretSecretRef": key(),
                "consumerKeySecretRef": key(), "endpoint": "ovh-xx"}),
            "Invalid OVH endpoint: ovh-xx",
        ),
    ] {
        let error = many(name, config).await.unwrap_err();
        assert_eq!(error.why, why);
        assert!(error.remedy.is_some() || name == "ovh", "{error:?}");
    }
}

#[tokio::test]
async fn a_provider_shows_no_credentials() {
    let (_stub, provider) = PowerDns::serve().await;
    assert_eq!(format!("{provider:?}"), "Many(pdns)");
}
