//! `challenge present` and `challenge cleanup`: one answer by hand, and nothing else.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kubectl_acme::model::Record;
use kubectl_acme::store::Store as _;
use kubectl_acme::store::local::{Access, LocalStore};
use serde_json::{Value, json};

use crate::support::bed::{PATIENCE, free_port};
use crate::support::dns::{DnsServer, Key, Setup, Software, Updates, Zone};
use crate::support::http;
use crate::support::program::Running;
use crate::support::terminal::{Said, Terminal, secret};

const NAME: &str = "web-1-1-1";
const RECORD: &str = "_acme-challenge.www.example.com.";
const THEIRS: &str = "another party's";
const TEXT: &str = "gfj9Xq_Rg85nM-YoYCZiGAHqxmbPNkbCvBc5tSn4xYA";
const PATH: &str = ".well-known/acme-challenge/token";
/// A Challenge in that state, which belongs to nothing.
fn challenge(kind: &str, key: &str, solver: &Value, state: &str) -> Value {
    json!({
        "apiVersion": "acme.cert-manager.io/v1",
        "kind": "Challenge",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {
            "url": "https://ca.example/chall/1",
            "authorizationURL": "https://ca.example/authz/1",
            "dnsName": "www.example.com",
            "type": kind,
            "token": "token",
            "key": key,
            "solver": solver,
            "issuerRef": {"name": "acme"},
        },
        "status": {"state": state},
    })
}

fn http01(state: &str) -> Value {
    challenge("HTTP-01", "token.thumbprint", &json!({"http01": {"ingress": {}}}), state)
}

/// A terminal whose store holds these objects.
async fn terminal(objects: &[Value]) -> Terminal {
    let terminal = Terminal::elsewhere();
    let store = LocalStore::open(&terminal.path("state"), Access::ReadWrite).unwrap();
    for object in objects {
        let created = store.create(Record::new(object.clone()).unwrap()).await.unwrap();
        if let Some(status) = object.get("status") {
            let mut record = created;
            record.object["status"] = status.clone();
            store.replace(record, kubectl_acme::store::Part::Status).await.unwrap();
        }
    }
    terminal
}

/// Runs a command that succeeds, and returns what the store says of the challenge then: presented, and its finalizers.
fn check(terminal: &Terminal, words: &[&str]) -> (bool, usize) {
    let said = terminal.run(&[&["challenge"], words, &["-o", "json"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let shown: Value = serde_json::from_str(&said.stdout).unwrap();
    let stored = terminal.objects("challenges").remove(0);
    assert_eq!(shown, stored, "{said:?}");
    assert_ne!(stored["status"]["processing"], true, "nothing else is driven");
    let finalizers = stored["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
    (stored["status"]["presented"] == true, finalizers)
}

fn refused(said: &Said, code: i32, why: &str) {
    assert_eq!(said.code, Some(code), "{said:?}");
    assert!(said.stderr.contains(why), "{said:?}");
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_record_is_published_and_taken_away_by_its_provider() {
    let zone = Zone::new("example.com.")
        .updates(Updates::Signed)
        .with(&format!("_acme-challenge.www TXT \"{THEIRS}\""));
    let server = DnsServer::start(Software::Knot, &Setup::new(vec![zone]));
    let resolver = DnsServer::recursive(&[&server]);
    let keys = Key::all();
    let key = keys.iter().find(|key| key.algorithm == "hmac-sha256").unwrap();
    let solver = json!({"dns01": {"rfc2136": {
        "nameserver": server.address().to_string(),
        "tsigKeyName": "hmac-sha256",
        "tsigAlgorithm": "HMACSHA256",
        "tsigSecretSecretRef": {"name": "tsig", "key": "secret"},
    }}});
    let mut credentials = secret("tsig", "secret", &key.secret);
    credentials["metadata"]["namespace"] = "default".into();
    let mut terminal =
        terminal(&[challenge("DNS-01", TEXT, &solver, "pending"), credentials]).await;
    terminal.set("KUBECTL_ACME_DNS", resolver.address());
    for _ in 0..2 {
        assert_eq!(check(&terminal, &["present", NAME]), (true, 1));
        assert_eq!(server.texts(RECORD), [THEIRS, TEXT]);
    }
    for _ in 0..2 {
        assert_eq!(check(&terminal, &["cleanup", NAME]), (false, 1));
        assert_eq!(server.texts(RECORD), [THEIRS]);
    }
    drop(server);
    let said = terminal.run(&["challenge", "present", NAME]);
    refused(&said, 9, "error: cannot present the answer of challenge web-1-1-1: ");
}

#[tokio::test]
async fn a_file_is_written_and_removed() {
    let terminal = terminal(&[http01("pending")]).await;
    let webroot = ["--http01-webroot", "www"];
    fs::create_dir(terminal.path("www")).unwrap();
    assert_eq!(check(&terminal, &[&["present", NAME], &webroot[..]].concat()), (true, 1));
    let file = terminal.path("www").join(PATH);
    assert_eq!(fs::read_to_string(&file).unwrap(), "token.thumbprint");
    assert_eq!(check(&terminal, &[&["cleanup", NAME], &webroot[..]].concat()), (false, 1));
    assert!(!file.exists());
}

#[tokio::test]
async fn a_file_is_removed_from_where_it_was_written_whatever_is_chosen_now() {
    let terminal = terminal(&[http01("pending")]).await;
    let [old, new] = ["old", "new"].map(|root| terminal.path(root).join(PATH));
    for root in ["old", "new"] {
        fs::create_dir(terminal.path(root)).unwrap();
    }
    check(&terminal, &["present", NAME, "--http01-webroot=old"]);
    assert!(old.exists());
    check(&terminal, &["present", NAME, "--http01-webroot=new"]);
    assert_eq!((old.exists(), new.exists()), (false, true));
    assert_eq!(check(&terminal, &["cleanup", NAME]), (false, 1));
    assert!(!new.exists());
    let annotations = &terminal.objects("challenges")[0]["metadata"]["annotations"];
    assert_eq!(annotations["kubectl-acme/challenge-webroot"], Value::Null);
}

#[tokio::test]
async fn the_listener_answers_until_it_is_told_to_end() {
    let terminal = terminal(&[http01("pending")]).await;
    let port = free_port();
    let log = terminal.path("log");
    let listen = format!("--http01-listen=127.0.0.1:{port}");
    let mut present = terminal.command(&["challenge", "present", NAME, &listen]);
    let presents = Running::start(&mut present, log);
    let deadline = Instant::now() + PATIENCE;
    let answer = loop {
        match http::get(port, "www.example.com", &format!("/{PATH}")) {
            Ok(answer) => break answer,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        sleep(Duration::from_millis(20));
    };
    assert_eq!(answer, "token.thumbprint");
    presents.interrupt();
    assert_eq!(
        presents.ends(0),
        "challenge web-1-1-1: this process answers for www.example.com until Ctrl-C; \
         --http01-webroot writes a file that stays\n"
    );
    assert_eq!(terminal.objects("challenges")[0]["status"], json!({"state": "pending"}));
}

#[tokio::test]
async fn a_challenge_that_is_over_is_only_cleaned_up() {
    let terminal = terminal(&[http01("invalid")]).await;
    let said = terminal.run(&["challenge", "present", NAME]);
    refused(&said, 2, "the challenge is invalid, so the CA does not ask for the answer any more");
    assert_eq!(check(&terminal, &["cleanup", NAME]), (false, 0));
}

#[tokio::test]
async fn whoever_drives_everything_is_left_alone() {
    let terminal = terminal(&[http01("pending")]).await;
    let listen = format!("--http01-listen=127.0.0.1:{}", free_port());
    let mut run = Running::start(&mut terminal.command(&["run", &listen]), terminal.path("log"));
    run.says("Ctrl-C");
    let said = terminal.run(&["challenge", "cleanup", NAME]);
    run.kill();
    refused(&said, 12, "drives, and presents and cleans up answers by itself");
}
