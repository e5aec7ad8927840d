use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::stub::{Fake, Seen, Stub, Told};
use super::{NAME, record, webhooks, zones};
use crate::dns::Resolve;
use crate::dns::lookup::SystemResolver;
use crate::model::Secret;
use crate::solvers::SolveError;
use crate::solvers::dns01::Provider;
use crate::solvers::dns01::factory::provider;
use crate::solvers::dns01::site::{Credentials, Hooks, Site};
use crate::solvers::testing::advice;

/// One account; of its texts the last two stay, as in the real one.
struct Server(Vec<String>);

impl Fake for Server {
    fn answer(&mut self, request: &Seen) -> Told {
        if (request.header("x-api-user"), request.header("x-api-key")) != ("user", "hush") {
            return Told::new(401, json!({"error": "forbidden"}));
        }
        let told = request.json();
        self.0.push(told["txt"].as_str().unwrap().to_owned());
        if self.0.len() > 2 {
            self.0.remove(0);
        }
        Told::new(200, json!({"txt": told["txt"]}))
    }

    fn values(&self, _: &str) -> Vec<String> {
        self.0.clone()
    }
}

/// Has one Secret.
#[derive(Debug)]
struct Accounts(String);

#[async_trait]
impl Credentials for Accounts {
    async fn secret(&self, _: &str, name: &str) -> Result<Option<Secret>, SolveError> {
        let secret = json!({"stringData": {"accounts.json": self.0}});
        Ok((name == "acme-dns").then(|| serde_json::from_value(secret).unwrap()))
    }

    async fn service_account_token(
        &self,
        _: &str,
        _: &str,
        _: &[String],
    ) -> Result<Zeroizing<String>, SolveError> {
        panic!("acme-dns has no service accounts")
    }
}

async fn build(host: &str, accounts: &str) -> Result<Arc<dyn Provider>, SolveError> {
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::new());
    let (zones, webhooks) = (zones(), webhooks());
    let site = Site {
        namespace: "web",
        credentials: &Accounts(accounts.to_owned()),
        ambient: false,
        zones: &zones,
        resolver: &resolver,
        webhooks: &webhooks,
        hooks: Hooks::NotAllowed,
        impatient: false,
    };
    let reference = json!({"name": "acme-dns", "key": "accounts.json"});
    let solver = json!({"acmeDNS": {"host": host, "accountSecretRef": reference}});
    provider(&serde_json::from_value(solver).unwrap(), &site).await
}

fn accounts(domain: &str, password: &str) -> String {
    let account: Value = json!({"fulldomain": "d420.acme-dns.example", "subdomain": "d420", "username": "user",
        "password": password, "allowfrom": [], "server_url": "https://acme-dns.example"});
    json!({ domain: account }).to_string()
}

#[tokio::test]
async fn the_text_is_sent_for_the_accounts_subdomain() {
    let stub = Stub::serve(Server(Vec::new())).await;
    for host in [stub.url.clone(), format!("{}/", stub.url)] {
        let provider = build(&host, &accounts("www.example.com", "hush")).await.unwrap();
        provider.check(NAME).await.unwrap();
        provider.add(&record("one")).await.unwrap();
        let [seen] = &stub.seen()[..] else { panic!("one request is enough") };
        assert_eq!(seen.line(), "POST /update");
        assert_eq!((seen.header("x-api-user"), seen.header("x-api-key")), ("user", "hush"));
        assert_eq!(seen.header("content-type"), "application/json");
        assert_eq!(seen.json(), json!({"subdomain": "d420", "txt": "one"}));
        assert!(!format!("{provider:?}").contains("hush"));
    }
}

#[tokio::test]
async fn an_apex_and_its_wildcard_have_both_texts_and_nothing_is_taken_away() {
    let stub = Stub::serve(Server(Vec::new())).await;
    let provider = build(&stub.url, &accounts("www.example.com", "hush")).await.unwrap();
    provider.add(&record("one")).await.unwrap();
    provider.remove(&record("one")).await.unwrap();
    provider.add(&record("two")).await.unwrap();
    assert_eq!(stub.values(NAME), ["one", "two"]);
    assert_eq!(stub.lines(), ["POST /update"; 2]);
}

#[tokio::test]
async fn an_account_is_looked_for_by_the_exact_name() {
    let stub = Stub::serve(Server(Vec::new())).await;
    let provider = build(&stub.url, &accounts("example.com", "hush")).await.unwrap();
    let error = provider.add(&record("one")).await.unwrap_err();
    let expected =
        "cannot publish the record: account credentials not found for domain www.example.com";
    assert_eq!(error.to_string(), expected);
    assert!(error.needs_person && advice(&error).contains("Secret \"acme-dns\""));
    assert_eq!(stub.lines(), [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_used_says_why() {
    let error = build("http://127.0.0.1:9", "nonsense").await.unwrap_err();
    let expected = "cannot use the key \"accounts.json\" of Secret \"acme-dns\": it is not the JSON of acme-dns accounts";
    assert_eq!(error.to_string(), expected);
    let stub = Stub::serve(Server(Vec::new())).await;
    let provider = build(&stub.url, &accounts("www.example.com", "other")).await.unwrap();
    let error = provider.add(&record("one")).await.unwrap_err();
    let expected = format!("cannot update d420.acme-dns.example at {}: forbidden", stub.url);
    assert_eq!((error.to_string(), error.needs_person), (expected, true));
}
