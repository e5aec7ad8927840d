//! Certificates by the solvers that only this program has: a program, and one of the many providers; both publish at one desk.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::put;
use kubectl_acme::dns::update::{Change, Protocol, Update, Updater};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::pebble::dns01::{RECORD, Site, THEIRS};
use crate::support::dns::{Software, Updates};
use crate::support::terminal::{Said, certificate, issuer, secret};

pub(crate) const TOKEN: &str = "open-sesame";
const NAMES: [&str; 2] = ["example.com", "*.example.com"];

/// An API before a zone, which wants a token; it listens until it goes.
pub(crate) struct Desk {
    pub(crate) url: String,
    runtime: Option<Runtime>,
}

impl Desk {
    pub(crate) fn open(site: &Site) -> Self {
        let updater = Updater::new(site.server.address(), Protocol::Tcp, None);
        let text = put(publish).delete(take_away);
        let router = Router::new().route("/api/txt/{name}/{text}", text);
        #[cfg(feature = "many-providers")]
        let router = router.merge(power_dns::router());
        let router = router.with_state(Arc::new(updater));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
        Self { url, runtime: Some(runtime) }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Changes one text in the zone.
async fn change(updater: &Updater, text: &str, change: Change) -> StatusCode {
    let update = Update { zone: "example.com.", name: RECORD, text, change };
    match updater.send(&update).await {
        Ok(()) => StatusCode::OK,
        Err(_) => StatusCode::BAD_GATEWAY,
    }
}

async fn publish(
    state: State<Arc<Updater>>,
    Path((name, text)): Path<(String, String)>,
    headers: HeaderMap,
) -> StatusCode {
    one_text(&state, &name, &text, &headers, Change::Add { ttl: 0 }).await
}

async fn take_away(
    state: State<Arc<Updater>>,
    Path((name, text)): Path<(String, String)>,
    headers: HeaderMap,
) -> StatusCode {
    one_text(&state, &name, &text, &headers, Change::Remove).await
}

async fn one_text(
    updater: &Updater,
    name: &str,
    text: &str,
    headers: &HeaderMap,
    deed: Change,
) -> StatusCode {
    let token = headers.get("authorization").and_then(|value| value.to_str().ok());
    if token != Some(&format!("Bearer {TOKEN}")) {
        return StatusCode::FORBIDDEN;
    }
    assert_eq!(name, RECORD);
    change(updater, text, deed).await
}

/// What PowerDNS answers, from the zone that dynamic updates change.
#[cfg(feature = "many-providers")]
mod power_dns {
    use std::collections::BTreeSet;

    use axum::response::{IntoResponse as _, Response};
    use axum::routing::get;
    use axum::{Extension, Json};
    use tokio::sync::Mutex;

    use super::*;

    /// The texts at the name, as this API knows them.
    type Texts = Arc<Mutex<BTreeSet<String>>>;

    pub(crate) fn router() -> Router<Arc<Updater>> {
        let texts: Texts = Arc::new(Mutex::new(BTreeSet::from([THEIRS.to_owned()])));
        let zone = get(look).patch(replace).layer(Extension(texts));
        Router::new().route("/api/v1/servers/localhost/zones/example.com.", zone)
    }

    fn is_known(headers: &HeaderMap) -> bool {
        headers.get("x-api-key").is_some_and(|key| key == TOKEN)
    }

    async fn look(Extension(texts): Extension<Texts>, headers: HeaderMap) -> Response {
        if !is_known(&headers) {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        let texts = texts.lock().await;
        let record = |text: &String| json!({"content": format!("\"{text}\""), "disabled": false});
        let records: Vec<Value> = texts.iter().map(record).collect();
        let rrset = json!({"name": RECORD, "type": "TXT", "ttl": 60, "records": records});
        Json(json!({"rrsets": [rrset]})).into_response()
    }

    async fn replace(
        State(updater): State<Arc<Updater>>,
        Extension(texts): Extension<Texts>,
        Json(body): Json<Value>,
    ) -> StatusCode {
        let mut texts = texts.lock().await;
        let records = body["rrsets"][0]["records"].as_array().cloned().unwrap_or_default();
        let text =
            |record: &Value| record["content"].as_str().unwrap().trim_matches('"').to_owned();
        let wanted: BTreeSet<String> = records.iter().map(text).collect();
        for gone in texts.difference(&wanted) {
            change(&updater, gone, Change::Remove).await;
        }
        for new in wanted.difference(&texts) {
            change(&updater, new, Change::Add { ttl: 0 }).await;
        }
        *texts = wanted;
        StatusCode::NO_CONTENT
    }

    #[test]
    #[ignore = "needs name servers: run by just pebble"]
    fn a_wildcard_and_its_apex_are_issued_by_one_of_the_many_providers() {
        let site = Site::new(Software::Knot, Updates::Unsigned);
        let desk = Desk::open(&site);
        let key = json!({"name": "dns", "key": "token"});
        let config = json!({"endpoint": desk.url, "apiKeySecretRef": key});
        let said = order(&site, "pdns", &config, "wrong");
        let refusal = "the dns01 solver of Issuer default/acme cannot be used: cannot look at the TXT record \
                       _acme-challenge.example.com at pdns: it refuses the credentials\n";
        assert!(said.code == Some(9) && said.stderr.contains(refusal), "{said:?}");
        assert!(!said.stderr.contains("wrong"), "{said:?}");
        assert_eq!(site.pebble.orders(), 0, "the CA has heard of nothing");
        is_issued(&site, &order(&site, "pdns", &config, TOKEN));
    }
}

/// Orders an apex and its wildcard by a solver of ours; the Secret `dns` has that token.
fn order(site: &Site, solver: &str, config: &Value, token: &str) -> Said {
    site.terminal.try_order(&manifests(site, solver, config, token))
}

fn manifests(site: &Site, solver: &str, config: &Value, token: &str) -> Vec<Value> {
    let webhook = json!({"groupName": "kubectl-acme", "solverName": solver, "config": config});
    let solvers = json!({"solvers": [{"dns01": {"webhook": webhook}}]});
    vec![
        secret("dns", "token", token),
        issuer(&site.pebble.directory(), site.pebble.tls_ca_pem(), solvers),
        certificate("web", &NAMES, json!({})),
    ]
}

fn is_issued(site: &Site, said: &Said) {
    assert_eq!(said.code, Some(0), "{said:?}\n{}", site.pebble.log());
    site.terminal.pair("web-tls").check(&site.pebble.root_pem());
    assert_eq!(site.server.texts(RECORD), [THEIRS], "ours are gone, theirs are there");
}

/// The hook of the example, which asks the desk.
fn hook(desk: &Desk, key: &str) -> Value {
    let program = format!("{}/examples/dns01-exec/hook.sh", env!("CARGO_MANIFEST_DIR"));
    json!({
        "command": [program],
        "env": [
            {"name": "PATH", "value": std::env::var("PATH").unwrap()},
            {"name": "DNS_API", "value": format!("{}/api", desk.url)},
            {"name": "DNS_TOKEN", "valueFrom": {"secretKeyRef": {"name": "dns", "key": key}}},
        ],
    })
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_wildcard_and_its_apex_are_issued_by_the_hook_of_the_example() {
    let mut site = Site::new(Software::Bind, Updates::Unsigned);
    let desk = Desk::open(&site);
    let said = order(&site, "exec", &hook(&desk, "token"), TOKEN);
    let hint = "hint: check what the program does, then add --dns01-allow-exec\n";
    assert!(said.code == Some(9) && said.stderr.contains(hint), "{said:?}");
    let said = order(&site, "exec", &hook(&desk, "other"), TOKEN);
    let refusal = "Secret default/dns has no key \"other\"\n";
    assert!(said.code == Some(9) && said.stderr.contains(refusal), "{said:?}");
    site.terminal.set("KUBECTL_ACME_DNS01_ALLOW_EXEC", true);
    let said = order(&site, "exec", &json!({"command": ["/nowhere/hook"]}), TOKEN);
    let refusal = "cannot be used: cannot run the hook /nowhere/hook: there is no such program\n";
    assert!(said.code == Some(9) && said.stderr.contains(refusal), "{said:?}");
    assert_eq!(site.pebble.orders(), 0, "the CA has heard of nothing");

    let said = order(&site, "exec", &hook(&desk, "token"), "wrong-token");
    let refusal = format!("present {RECORD}` fails: it ended with exit status 22: curl: ");
    assert!(said.code == Some(9) && said.stderr.contains(&refusal), "{said:?}");
    let hint =
        format!("present {RECORD} TEXT; it has to end with 0 once the TXT record is published\n");
    assert!(said.stderr.contains(&hint) && !said.stderr.contains("wrong-token"), "{said:?}");
    is_issued(&site, &order(&site, "exec", &hook(&desk, "token"), TOKEN));
}

#[test]
fn a_solver_that_nobody_knows_is_refused_with_the_nearest_names() {
    let terminal = crate::support::terminal::Terminal::elsewhere();
    let webhook = json!({"groupName": "kubectl-acme", "solverName": "gandi", "config": {}});
    let solvers = json!({"solvers": [{"dns01": {"webhook": webhook}}]});
    let said = terminal.try_order(&[
        issuer("https://ca.example/directory", "", solvers),
        certificate("web", &NAMES, json!({})),
    ]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let refusal = "spec.acme.solvers[0].dns01.webhook.solverName: there is no solver \"gandi\" of kubectl-acme\n";
    assert!(
        said.stderr.contains(refusal) && said.stderr.contains("hint: there are: gandiv5, "),
        "{said:?}"
    );
}
