//! `certificate approve` and `certificate deny` in a local store.

use serde_json::{Value, json};

use crate::support::ca::TestCa;
use crate::support::cluster::eventually;
use crate::support::terminal::{Said, Terminal, certificate, issuer};

const NAMES: [&str; 3] = ["web", "mail", "shop"];

/// Three requests on which nobody has decided.
async fn waiting() -> (TestCa, Terminal) {
    let ca = TestCa::start(kubectl_acme::ca::Config::default(), |fetcher| fetcher).await;
    let mut terminal = Terminal::elsewhere();
    terminal.http_port = ca.http01.port();
    let one = issuer(&ca.server.directory_url(), ca.server.tls_root_pem(), json!({}));
    let of = |name: &&str| certificate(name, &[&format!("{name}.example.com")], json!({}));
    let certificates: Vec<Value> = NAMES.iter().map(of).collect();
    terminal.manifests(&[vec![one], certificates].concat());
    let listen = format!("--http01-listen=127.0.0.1:{}", terminal.http_port);
    let order = ["order", "-f", "manifests.yaml", "--approve=false", "--timeout=3s", &listen];
    // On a busy machine the requests are there only after another turn.
    eventually("requests to decide on", || {
        let said = terminal.run(&order);
        assert_eq!(said.code, Some(124), "{said:?}");
        said.stderr.contains("certificate approve web-1").then_some(())
    });
    (ca, terminal)
}

fn conditions(terminal: &Terminal, name: &str) -> Vec<Value> {
    let requests = terminal.objects("certificaterequests");
    let one = requests.iter().find(|request| request["metadata"]["name"] == name).unwrap();
    one["status"]["conditions"].as_array().cloned().unwrap_or_default()
}

#[track_caller]
fn ends(said: &Said, code: i32, words: &str) {
    assert_eq!(said.code, Some(code), "{said:?}");
    assert!(said.stdout.contains(words) || said.stderr.contains(words), "{words}: {said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_approves_is_issued_and_what_is_denied_is_not() {
    let (_ca, terminal) = waiting().await;
    let approve = ["certificate", "approve"];
    // By the Certificate, by its domain, and by its own name.
    ends(
        &terminal.run(&[&approve[..], &["web", "mail.example.com"]].concat()),
        0,
        "Approved CertificateRequest 'default/web-1'\nApproved CertificateRequest 'default/mail-1'\n",
    );
    let deny = ["certificate", "deny", "shop-1", "--reason=Policy", "--message=not on Fridays"];
    ends(&terminal.run(&deny), 0, "Denied CertificateRequest 'default/shop-1'\n");
    let denied = &conditions(&terminal, "shop-1")[0];
    assert_eq!((&denied["type"], &denied["reason"]), (&json!("Denied"), &json!("Policy")));
    let approved = &conditions(&terminal, "web-1")[0];
    assert_eq!(approved["reason"], "KubectlCertManager");
    assert_eq!(approved["message"], "manually approved by \"kubectl-acme\"");
    let resume = ["order", "resume", "web", "mail", "--approve=false"];
    ends(&terminal.drive(&resume), 0, "");
    ends(&terminal.drive(&["order", "resume", "shop", "--approve=false"]), 8, "not on Fridays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_final_and_bad_words_change_nothing() {
    let (_ca, terminal) = waiting().await;
    ends(&terminal.run(&["certificate", "approve", "web"]), 0, "");
    for verb in ["approve", "deny"] {
        let words = "error: CertificateRequest default/web-1 is already approved\n";
        ends(&terminal.run(&["certificate", verb, "mail", "web"]), 1, words);
    }
    let words = "error: certificaterequests.cert-manager.io \"absent\" not found";
    ends(&terminal.run(&["certificate", "deny", "mail", "absent"]), 1, words);
    let reason = ["certificate", "deny", "mail", "--reason=two words"];
    ends(&terminal.run(&reason), 2, "PolicyChecked");
    ends(&terminal.run(&["certificate", "deny"]), 2, "NAME");
    assert_eq!(conditions(&terminal, "mail-1"), Vec::<Value>::new());
}
