use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::factory::Store;
use super::stub::{Fake, Seen, Stub, Told};
use super::{NAME, record, webhooks, zones};
use crate::dns::Resolve;
use crate::dns::lookup::SystemResolver;
use crate::model::solver;
use crate::solvers::dns01::Provider as _;
use crate::solvers::dns01::site::{Hooks, Site, Webhooks};
use crate::solvers::dns01::webhook::{DirectWebhooks, Webhook};
use crate::solvers::testing::advice;

/// Answers every payload with one response, as servers do that are made with cert-manager's library.
struct Server(Value);

impl Fake for Server {
    fn answer(&mut self, request: &Seen) -> Told {
        let mut payload = request.json();
        payload["response"] = self.0.clone();
        Told::new(200, payload)
    }

    fn values(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

fn webhook(webhooks: &Arc<dyn Webhooks>, config: Option<Value>) -> Webhook {
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::new());
    let zones = zones();
    let site = Site {
        namespace: "web",
        credentials: &Store,
        ambient: true,
        zones: &zones,
        resolver: &resolver,
        webhooks,
        hooks: Hooks::NotAllowed,
        impatient: false,
    };
    let fields = solver::Webhook {
        group_name: "acme.example.org".to_owned(),
        solver_name: "ours".to_owned(),
        config,
    };
    Webhook::of(&fields, &site)
}

fn direct(url: &str) -> Arc<dyn Webhooks> {
    let urls = BTreeMap::from([("acme.example.org".to_owned(), url.to_owned())]);
    Arc::new(DirectWebhooks { urls, resolver: Arc::new(SystemResolver::new()), others: None })
}

/// Checks the result of a webhook that answers in this way.
async fn check(response: Value, expected: Result<(), &str>) {
    let stub = Stub::serve(Server(response)).await;
    let seen = webhook(&direct(&stub.url), None).add(&record("one")).await;
    let seen = seen.map_err(|error| error.to_string());
    assert_eq!(seen.as_ref().copied().map_err(String::as_str), expected);
}

#[tokio::test]
async fn it_is_told_everything_in_one_payload() {
    let stub = Stub::serve(Server(json!({"uid": "", "success": true}))).await;
    let ours = webhook(&direct(&stub.url), Some(json!({"token": {"name": "dns"}})));
    ours.check(NAME).await.unwrap();
    ours.add(&record("one")).await.unwrap();
    ours.remove(&record("one")).await.unwrap();
    let seen = stub.seen();
    let lines: Vec<String> = seen.iter().map(Seen::line).collect();
    assert_eq!(lines, ["POST /apis/acme.example.org/v1alpha1/ours"; 2]);
    for (seen, action) in seen.iter().zip(["Present", "CleanUp"]) {
        let expected = json!({
            "apiVersion": "webhook.acme.cert-manager.io/v1alpha1",
            "kind": "ChallengePayload",
            "request": {
                "uid": "",
                "action": action,
                "type": "dns-01",
                "dnsName": "www.example.com",
                "key": "one",
                "resourceNamespace": "web",
                "resolvedFQDN": NAME,
                "resolvedZone": "example.com.",
                "allowAmbientCredentials": true,
                "config": {"token": {"name": "dns"}},
            },
        });
        assert_eq!(seen.json(), expected);
    }
}

#[tokio::test]
async fn its_response_decides() {
    check(json!({"uid": "", "success": true}), Ok(())).await;
    let failure = json!({"uid": "", "success": false, "status": {"status": "Failed", "message": "no such zone"}});
    check(failure, Err("the webhook ours of acme.example.org fails: no such zone")).await;
    let rude = format!("no\n\u{1b}[2Jsuch {}", "zone ".repeat(1000));
    let failure = json!({"uid": "", "success": false, "status": {"message": rude}});
    let line = format!("no [2Jsuch {}", "zone ".repeat(1000));
    let cut = format!("the webhook ours of acme.example.org fails: {}…", &line[..300]);
    check(failure, Err(&cut)).await;
    let nothing = "the webhook ours of acme.example.org fails: invalid payload response, did not succeed but no result provided";
    check(json!({"success": false}), Err(nothing)).await;
    check(Value::Null, Err(nothing)).await;
}

#[tokio::test]
async fn names_never_lead_elsewhere() {
    let stub = Stub::serve(Server(json!({"success": true}))).await;
    for (group, solver, field) in [
        ("acme.example.org", "../../../api/v1/secrets", "solverName"),
        ("acme.example.org", "a%2fb", "solverName"),
        ("acme.example.org", "..", "solverName"),
        ("acme.example.org", "ours?dryRun=All", "solverName"),
        ("../api", "ours", "groupName"),
        ("a/b", "ours", "groupName"),
        ("", "ours", "groupName"),
    ] {
        let urls = BTreeMap::from([(group.to_owned(), stub.url.clone())]);
        let resolver = Arc::new(SystemResolver::new());
        let direct = DirectWebhooks { urls, resolver, others: None };
        let error = direct.call(group, solver, &Value::Null).await.unwrap_err();
        assert!(error.needs_person && error.why.starts_with(&format!("webhook.{field} is ")));
    }
    assert_eq!(stub.lines(), [""; 0], "nobody was asked");
}

#[tokio::test]
async fn one_that_cannot_be_called_says_why() {
    let error = webhook(&webhooks(), None).add(&record("one")).await.unwrap_err();
    assert!(
        error.needs_person
            && advice(&error).contains("WebhookAddress { group: \"acme.example.org\"")
    );
    let stub = Stub::serve(Server(Value::Null)).await;
    let refusal = json!({"kind": "Status", "reason": "NotFound", "message": "no solver ours"});
    stub.script([Told::new(404, refusal), Told::new(200, "<html>")]);
    let what = format!("cannot call the webhook ours of acme.example.org at {}", stub.url);
    for why in ["no solver ours", "its answer is not the JSON that was expected"] {
        let error = webhook(&direct(&stub.url), None).add(&record("one")).await.unwrap_err();
        assert_eq!(error.to_string(), format!("{what}: {why}"));
    }
}
