//! Objects that a schema lets in and nobody can read: each is left alone by itself.

use std::thread::sleep;
use std::time::Duration;

use kubectl_acme::model::{Key, Kind, ObjectName, Record};
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Part, Store as _};
use serde_json::{Value, json};

use super::site::{Site, wait_until};
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

/// One of each kind whose texts a CRD takes as they are; the Order is unfinished, and its issuer there.
fn unreadable() -> [Value; 3] {
    let named = |kind: &str, group: &str, spec: Value| {
        json!({
            "apiVersion": format!("{group}cert-manager.io/v1"), "kind": kind,
            "metadata": {"name": "ban", "namespace": "default"}, "spec": spec,
        })
    };
    let acme = json!({
        "server": "https://ca.example/directory", "privateKeySecretRef": {"name": "ban"},
        "solvers": [{"http01": {"ingress": {}}, "waitInsteadOfSelfCheck": "banana"}],
    });
    [
        named(
            "Certificate",
            "",
            json!({
                "secretName": "ban", "dnsNames": ["ban.example.com"], "issuerRef": {"name": "acme"}, "duration": "banana",
            }),
        ),
        named("Issuer", "", json!({"acme": acme})),
        named("Order", "acme.", json!({"issuerRef": {"name": "acme"}, "duration": "banana"})),
    ]
}

#[test]
fn what_cannot_be_read_stands_in_nobody_elses_way() {
    let site = Site::new();
    site.issues();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = LocalStore::open(&site.path("state"), Access::ReadWrite).unwrap();
    for object in unreadable() {
        runtime.block_on(store.create(Record::new(object).unwrap())).unwrap();
    }
    drop(store);
    site.change("www.example.com", "beside.example.com");
    site.run(site.order("")).check(0, "");

    let run = site.start("run", site.program("run"));
    let left_alone = "\"banana\" is not a duration such as 2160h or 90m; it is left alone until that is corrected";
    for (object, field) in [
        ("Certificate default/ban", "spec.duration"),
        ("Issuer default/ban", "spec.acme.solvers[0].waitInsteadOfSelfCheck"),
        ("Order default/ban", "spec.duration"),
    ] {
        run.says(&format!("{object}: cannot read {object}: {field}: {left_alone}"));
    }
    site.change("beside.example.com", "beneath.example.com");
    site.run(site.order("")).check(0, "");
    assert_eq!(site.orders(), 3);
    run.signal("TERM");
    assert_eq!(run.end().code, Some(143));
}

#[test]
fn a_run_that_fails_writes_down_the_order_that_the_ca_has_just_taken() {
    let site = Site::new();
    site.issues();
    let run = site.start("run", site.program("run"));
    run.says("Certificate default/web: up to date");
    site.proxy.inject(Fault::hold().at(Endpoint::NewOrder));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = LocalStore::open(&site.path("state"), Access::ReadWrite).unwrap();
    let next = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": {"name": "next", "namespace": "default"},
        "spec": {"secretName": "next-tls", "dnsNames": ["next.example.com"], "issuerRef": {"name": "acme"}},
    });
    runtime.block_on(store.create(Record::new(next).unwrap())).unwrap();
    wait_until(|| site.proxy.held() == 1, "the second order");
    let change = |kind, name, part, change: fn(&mut Value)| {
        let key = Key::new(kind, ObjectName::new("default", name));
        let mut record = runtime.block_on(store.get(&key)).unwrap().unwrap();
        change(&mut record.object);
        runtime.block_on(store.replace(record, part)).unwrap();
    };
    change(Kind::Secret, "web-tls", Part::Whole, |secret| secret["type"] = json!(1));
    change(Kind::Certificate, "web", Part::Metadata, |certificate| {
        certificate["metadata"]["labels"] = json!({"a-person": "was-here"});
    });
    // Time to read the Secret, and to end at once if it did.
    sleep(Duration::from_secs(2));
    site.proxy.release();
    run.end().check(
        2,
        "\
error: cannot read Secret default/web-tls: it does not have the shape of a Secret; it is left alone until that is corrected
",
    );
    let orders = site.run(site.program("get orders -o jsonpath={.items[*].status.url}"));
    assert_eq!(orders.result.split_whitespace().count(), 2, "{}", orders.result);
}
