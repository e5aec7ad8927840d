//! What is looked after in a cluster: certificates that must be replaced, and accounts at CAs.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubectl_acme::ca::Config;
use serde_json::{Value, json};

use crate::support::ca::TestCa;

use crate::support::cluster::{Arena, Bench, Kubectl, Namespace, check};
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::program;
use crate::support::terminal;

/// Two CAs, one of which heeds CAA, and a person who has certificates of both in two namespaces.
struct Desk<'c> {
    kubectl: Kubectl,
    namespaces: [Namespace<'c>; 2],
    ca: TestCa,
    pebble: Pebble,
    folder: tempfile::TempDir,
}

impl Desk<'_> {
    /// This program, which answers HTTP-01 where both CAs look.
    fn command(&self, words: &[&str]) -> Command {
        let port = self.ca.http01.port();
        let mut command = program::command();
        command
            .args(words)
            .env("KUBECONFIG", self.kubectl.kubeconfig())
            .env("KUBECTL_ACME_HTTP01_RESOLVE", format!("*=127.0.0.1:{port}"))
            .env("KUBECTL_ACME_HTTP01_LISTEN", format!("127.0.0.1:{port}"))
            .env("KUBECTL_ACME_DNS", self.pebble.dns().address())
            .current_dir(self.folder.path());
        command
    }

    /// What `certificate check` finds of ours: names with their verdicts, first reasons, and what came of their renewal.
    fn checked(&self, flags: &[&str], code: i32) -> Vec<String> {
        let ours = format!("-lupkeep={}", self.namespaces[0].name());
        let words = [&["certificate", "check", "-A", &ours, "-o", "json"], flags].concat();
        let output = self.command(&words).output().unwrap();
        check(&output, code);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let all = report["certificates"].as_array().unwrap().iter();
        let shown = all.map(|one| {
            let parts = [
                &one["source"]["name"],
                &one["verdict"],
                &one["reasons"][0]["reason"],
                &one["renewal"]["outcome"],
            ];
            let parts = parts.into_iter().filter_map(Value::as_str);
            parts.collect::<Vec<_>>().join(" ")
        });
        shown.collect()
    }

    fn serial(&self, namespace: usize, secret: &str) -> String {
        let kubectl = self.namespaces[namespace].kubectl();
        let secret = kubectl.object(&format!("secret/{secret}"));
        let pem = STANDARD.decode(secret["data"]["tls.crt"].as_str().unwrap()).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
        kubectl_acme::model::text::hex(pem.parse_x509().unwrap().raw_serial())
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn revoked_certificates_and_changed_caa_records_are_found_everywhere_and_replaced() {
    let arena = Arena::enter();
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let options = PebbleOptions {
        http_port: Some(ca.http01.port()),
        caa_identities: vec!["ca.example".to_owned()],
        ..PebbleOptions::calm()
    };
    let desk = Desk {
        kubectl: arena.kubectl(),
        namespaces: ["upkeep-one", "upkeep-two"].map(|name| arena.namespace(name)),
        pebble: Pebble::start(&options),
        ca,
        folder: tempfile::tempdir().unwrap(),
    };
    let place = |mut object: Value, namespace: usize| {
        object["metadata"]["namespace"] = json!(desk.namespaces[namespace].name());
        object["metadata"]["labels"] = json!({"upkeep": desk.namespaces[0].name()});
        object
    };
    let of_pebble = || {
        let mut issuer =
            terminal::issuer(&desk.pebble.directory(), desk.pebble.tls_ca_pem(), json!({}));
        issuer["metadata"]["name"] = json!("pebble");
        issuer
    };
    let mut barred = terminal::certificate("barred", &["barred.example.com"], json!({}));
    barred["spec"]["issuerRef"]["name"] = json!("pebble");
    let manifests = [
        place(desk.ca.issuer(), 0),
        place(desk.ca.issuer(), 1),
        place(of_pebble(), 1),
        place(terminal::certificate("revoked", &["revoked.example.com"], json!({})), 0),
        place(terminal::certificate("good", &["good.example.com"], json!({})), 1),
        place(barred, 1),
    ];
    let documents: Vec<String> = manifests.iter().map(Value::to_string).collect();
    std::fs::write(desk.folder.path().join("all.yaml"), documents.join("\n---\n")).unwrap();
    check(&desk.command(&["order", "-f", "all.yaml", "--timeout=3m"]).output().unwrap(), 0);
    assert_eq!(desk.checked(&[], 0), ["revoked keep", "barred keep", "good keep"]);

    let revoked = desk.serial(0, "revoked-tls");
    assert!(desk.ca.server.revoke(&revoked, 1));
    desk.pebble.dns().add_caa("example.com", "issue", "other.example");
    let found = ["revoked replace Revoked", "barred replace CaaForbids", "good keep"];
    assert_eq!(desk.checked(&[], 10), found);
    // The limit is that of the cluster, where others renew, too; what its CA would refuse is not asked for.
    let renew = ["--renew", "--max-per-hour=1000", "--timeout=3m"];
    let replaced =
        ["revoked replace Revoked replaced", "barred replace CaaForbids heldBack", "good keep"];
    assert_eq!(desk.checked(&renew, 10), replaced);
    assert_ne!(desk.serial(0, "revoked-tls"), revoked);
    assert_eq!(desk.ca.server.statistics().of("newOrder"), 3);
    // It gets another issuer, which the records do not bar.
    let before = desk.serial(1, "barred-tls");
    let other = json!({"spec": {"issuerRef": {"name": "acme"}}}).to_string();
    let two = desk.namespaces[1].kubectl();
    two.run(&["patch", "certificate/barred", "--type=merge", "--patch", &other]);
    let replaced = ["barred replace IssuerDiffers replaced", "revoked keep", "good keep"];
    assert_eq!(desk.checked(&renew, 0), replaced);
    assert_ne!(desk.serial(1, "barred-tls"), before);
    assert_eq!(desk.checked(&[], 0), ["revoked keep", "barred keep", "good keep"]);
}

/// Standard output of a command that ends with that code and says that on one of its streams.
#[track_caller]
fn says(bench: &Bench<'_>, words: &[&str], code: i32, expected: &str) -> String {
    let output = bench.run(&bench.namespace.kubectl(), words);
    let told = check(&output, code);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains(expected) || shown.contains(expected), "{expected}: {told}\n{shown}");
    shown
}

fn shown(bench: &Bench<'_>) -> Value {
    let shown = says(bench, &["account", "show", "pebble", "-o", "json"], 0, "AccountReport");
    serde_json::from_str::<Value>(&shown).unwrap()["accounts"][0].clone()
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn an_account_is_shown_changed_given_another_key_found_again_and_ended() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "accounts");
    let kubectl = bench.namespace.kubectl();
    bench.order(&kubectl, &[], 0);
    let before = shown(&bench);
    assert_eq!(before["status"], "valid");

    says(&bench, &["account", "update", "pebble", "--email=ops@example.com"], 0, "ops@example.com");
    let issuer = kubectl.object("issuer/pebble");
    assert_eq!(issuer["spec"]["acme"]["email"], "ops@example.com");
    assert_eq!(shown(&bench)["contact"], json!(["mailto:ops@example.com"]));

    says(&bench, &["account", "rollover", "pebble"], 0, "has a new key");
    let after = shown(&bench);
    assert_eq!((&after["url"], &after["status"]), (&before["url"], &json!("valid")));
    assert_ne!(after["key"]["thumbprint"], before["key"]["thumbprint"]);
    says(&bench, &["certificate", "renew", "web", "--timeout=3m"], 0, "");

    // Issuer and Secret are lost; a copy of the key is left.
    says(&bench, &["account", "export", "pebble", "--out=account.pem"], 0, "account.pem");
    kubectl.run(&["delete", "issuer/pebble", "secret/pebble-account"]);
    bench.write("issuer.yaml", &[bench.issuer("Issuer", "pebble", &json!({"ingress": {}}))]);
    let recover = ["account", "recover", "-f", "issuer.yaml", "--key"];
    says(&bench, &[&recover[..], &["issuer.yaml"]].concat(), 2, "cannot read private key");
    assert_eq!(bench.names("issuers"), "");
    let url = before["url"].as_str().unwrap();
    says(&bench, &[&recover[..], &["account.pem"]].concat(), 0, url);
    assert_eq!(&shown(&bench)["url"], url);
    says(&bench, &["certificate", "renew", "web", "--timeout=3m"], 0, "");
    assert_eq!(bench.pebble.accounts(), 1);

    says(&bench, &["account", "deactivate", "pebble"], 2, "--yes");
    assert_eq!(shown(&bench)["status"], "valid");
    says(&bench, &["account", "deactivate", "pebble", "--yes"], 0, "is deactivated");
    says(&bench, &["account", "show", "pebble"], 7, "deactivated");
    says(&bench, &["certificate", "renew", "web", "--timeout=3m"], 7, "deactivated");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn whoever_may_only_read_changes_nothing_by_any_verb_neither_here_nor_at_the_ca() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "readers");
    let kubectl = bench.namespace.kubectl();
    bench.order(&kubectl, &[], 0);
    says(&bench, &["account", "export", "pebble", "--out=account.pem"], 0, "account.pem");
    let objects = json!({
        "apiGroups": ["cert-manager.io", "acme.cert-manager.io"], "resources": ["*"], "verbs": ["get", "list", "watch"],
    });
    let secrets =
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]});
    let looker = bench.namespace.service_account("looker", &json!([objects]).to_string());
    let reader = bench.namespace.service_account("reader", &json!([objects, secrets]).to_string());
    let kinds = "certificates,certificaterequests,orders,challenges,issuers,secrets";
    let stored = || kubectl.run(&["get", kinds, "--output=json"]);
    let (before, account) = (stored(), shown(&bench));
    let issuers = "issuers.cert-manager.io \"pebble\"";
    let status = "issuers.cert-manager.io/status \"pebble\"";
    let all_missing = "error: permissions are missing, and nothing was done: ";
    // Who may read Secrets lacks what is written.
    for (words, missing) in [
        (&["certificate", "renew", "web"][..], "patch certificates.cert-manager.io/status"),
        (&["order", "retry", "web"], "patch certificates.cert-manager.io/status"),
        (&["order", "resume", "web"], "patch certificates.cert-manager.io/status"),
        (&["certificate", "deny", "web-1"], "is already approved"),
        (&["account", "update", "pebble", "--email=ops@example.com"], &format!("update {issuers}")),
        (&["account", "update", "pebble", "--no-email"], status),
        (&["account", "rollover", "pebble"], "update secrets \"pebble-account\""),
        (&["account", "deactivate", "pebble", "--yes"], status),
        (&["account", "recover", "pebble"], status),
        (&["account", "import", "pebble", "--key=account.pem"], status),
    ] {
        let is_decided = words[1] == "deny";
        let said = check(&bench.run(&reader, words), if is_decided { 1 } else { 8 });
        assert!(is_decided || said.contains(all_missing), "{words:?}: {said}");
        assert!(said.contains(missing) && said.contains("hint: "), "{words:?}: {said}");
        assert_eq!(stored(), before, "{words:?}");
    }
    // Who may not is told so by the verbs that read them, too.
    for words in [
        &["certificate", "show", "web"][..],
        &["certificate", "revoke", "web", "--yes"],
        &["certificate", "revoke", "web", "--yes", "--key"],
        &["account", "export", "pebble", "--out=other.pem"],
        &["account", "show", "pebble"],
        &["account", "deactivate", "pebble", "--yes"],
        &["account", "recover", "pebble"],
    ] {
        let said = check(&bench.run(&looker, words), 8);
        assert!(said.contains("get secrets") && said.contains("hint: "), "{words:?}: {said}");
    }
    let said = check(&bench.run(&looker, &["certificate", "check", "web"]), 11);
    assert!(said.contains("not everything is known of 1"), "{said}");
    assert!(!bench.folder().join("other.pem").exists());
    assert_eq!((stored(), shown(&bench)), (before, account));
    assert_eq!((bench.pebble.orders(), bench.pebble.accounts()), (1, 1));
}
