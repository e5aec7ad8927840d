//! Objects that a schema lets in and nobody can read: each is left alone by itself.

use kubectl_acme::model::Record;
use kubectl_acme::store::Store as _;
use kubectl_acme::store::local::{Access, LocalStore};
use serde_json::{Value, json};

use super::site::Site;

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
