//! What stands in manifests: names that no CA takes, wildcards without DNS-01, two solvers in one item. The CA is our own; where
//! it has to be asked, it refuses in the words of Boulder.

use std::fs;

use serde_json::{Value, json};

use super::{Lab, NAME};
use crate::support::bed::free_port;
use crate::support::lab;
use crate::support::terminal::{Terminal, certificate};

/// What is named first of manifests that nobody has applied.
async fn foreseen(cause: &str, issuer: Value, names: &[&str]) -> Value {
    let lab = Lab::new().await;
    lab.terminal.manifests(&[lab.issuer(issuer), certificate("web", names, json!({}))]);
    let first = lab.names_first(&["-f", "manifests.yaml"], cause, 10);
    assert_eq!(lab.ca.server.statistics().of("newOrder"), 0, "nothing was ordered");
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_05_two_solvers_in_one_item_are_refused_and_known_where_they_stand() {
    let mut lab = Lab::new().await;
    let both = json!({"solvers": [{
        "http01": {"ingress": {}},
        "dns01": {"rfc2136": {"nameserver": "192.0.2.53"}},
    }]});
    lab.terminal.manifests(&[lab.issuer(both.clone())]);
    for words in [&["order", "-f", "manifests.yaml"][..], &["diagnose", "-f", "manifests.yaml"]] {
        let said = lab.terminal.run(words);
        assert_eq!(said.code, Some(2), "{said:?}");
        let place = "Issuer acme: spec.acme.solvers[0]: may not specify more than one solver type";
        assert!(said.stderr.contains(place), "{said:?}");
    }
    assert_eq!(lab.terminal.objects("issuers"), [Value::Null; 0], "nothing was written");

    // An API server without cert-manager's webhook takes it: what was observed there is judged here.
    lab.stuck_at(free_port());
    lab.diagnose(&["web", "--bundle=bundle.json"]);
    let path = lab.terminal.path("bundle.json");
    let mut bundle: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let spec = &mut bundle["case"]["issuers"][0]["issuer"]["spec"]["acme"];
    assert!(spec["solvers"].is_array(), "{spec:#}");
    spec["solvers"] = both["solvers"].clone();
    // Nobody has ordered there.
    for list in ["requests", "orders", "challenges", "held"] {
        bundle["case"]["certificates"][0][list] = json!([]);
    }
    bundle["case"]["names"] = json!([]);
    fs::write(&path, bundle.to_string()).unwrap();
    let said = Terminal::elsewhere().run(&[
        "diagnose",
        &format!("--from={}", path.display()),
        "-o",
        "json",
    ]);
    let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    let first = lab::names_first(&report, "CFG-05");
    assert!(first["message"].as_str().unwrap().contains("spec.acme.solvers[0]"), "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_10_the_first_byte_that_is_wrong_is_marked() {
    let lab = Lab::new().await;
    let long = format!("{}.example.com", "x".repeat(64));
    let names = [
        ("a_b.example.com", "byte 2, \"_b.example.com\""),
        ("a..example.com", "empty label"),
        ("*.*.example.com", "only letters, digits"),
        ("xn--0.example.com", "byte 1, \"xn--0.example.com\""),
        ("a.b.c.d.e.f.g.h.i.example.com", "byte 27, \"com\""),
        ("*.com", "byte 3, \"com\""),
        (long.as_str(), "63"),
    ];
    let words: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let (said, report) = lab.diagnose(&words);
    lab::names_first(&report, "CFG-10");
    assert_eq!(said.code, Some(10), "{report:#}");
    let found = report["findings"].as_array().unwrap();
    for (name, mark) in names {
        let of_name = found.iter().find(|it| it["cause"] == "CFG-10" && it["subject"] == name);
        let of_name = of_name.unwrap_or_else(|| panic!("{name} is not named: {report:#}"));
        let message = of_name["message"].as_str().unwrap();
        assert!(message.contains(mark), "{name}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_10_a_ca_refuses_the_form_of_a_name() {
    let lab = Lab::new().await;
    let said =
        lab.order(&[lab.issuer(json!({})), certificate("web", &["a_b.example.com"], json!({}))]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let first = lab.names_first(&["web"], "CFG-10", 10);
    assert!(first["message"].as_str().unwrap().contains("invalid character"), "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_14_a_wildcard_has_an_http01_solver_alone() {
    let first = foreseen("CFG-14", json!({}), &["*.example.com"]).await;
    assert_eq!(first["subject"], "*.example.com");
    let other = json!({"solvers": [
        {"selector": {"dnsZones": ["example.net"]}, "dns01": {"rfc2136": {"nameserver": "192.0.2.53"}}},
    ]});
    foreseen("CFG-04", other, &["*.example.com"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_17_a_common_name_is_too_long() {
    let lab = Lab::new().await;
    let long = format!("{}.{}.example.com", "a".repeat(30), "b".repeat(30));
    let more = json!({"commonName": long});
    lab.terminal.manifests(&[lab.issuer(json!({})), certificate("web", &[NAME, &long], more)]);
    let refused = lab.terminal.run(&["order", "-f", "manifests.yaml"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("spec.commonName"), "{refused:?}");
    assert_eq!(lab.terminal.objects("certificates"), [Value::Null; 0], "nothing was written");
}
