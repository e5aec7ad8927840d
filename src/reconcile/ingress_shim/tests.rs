use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::model::Duration;
use crate::model::certificate::{PrivateKey, Subject};
use crate::model::ingress::IngressLike;

const OWN: &str = "cert-manager.io/issuer";

fn object(kind: Kind, annotations: &Value, spec: &Value) -> IngressLike {
    let object = json!({
        "apiVersion": kind.api_version(), "kind": kind.as_str(), "spec": spec,
        "metadata": {
            "name": "shop", "namespace": "web", "uid": "u1", "annotations": annotations,
            "labels": {"team": "web", APPLYSET_LABEL: "set"},
        },
    });
    IngressLike::deserialize_as(kind, &object).unwrap()
}

fn ingress(annotations: &Value) -> IngressLike {
    let tls = json!([{"hosts": ["www.example.com", "192.0.2.1"], "secretName": "shop-tls"}]);
    object(Kind::Ingress, annotations, &json!({"tls": tls}))
}

/// Annotations to be tested, beside one that names an Issuer.
fn asking(more: &Value) -> Value {
    let mut all = json!({OWN: "acme"});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

fn listeners() -> Value {
    json!([
        {"name": "http", "port": 80, "protocol": "HTTP"},
        {"name": "a", "hostname": "a.example.com", "protocol": "HTTPS",
         "tls": {"mode": "Terminate", "certificateRefs": [{"group": "", "kind": "Secret", "name": "edge-tls"}]}},
        {"name": "b", "hostname": "b.example.com", "protocol": "TLS",
         "tls": {"mode": "Terminate", "certificateRefs": [{"name": "edge-tls"}, {"name": "b-tls"}]}},
        {"name": "through", "hostname": "t.example.com", "protocol": "TLS",
         "tls": {"mode": "Passthrough"}},
    ])
}

fn gateway(annotations: &Value) -> IngressLike {
    object(Kind::Gateway, annotations, &json!({"listeners": listeners()}))
}

fn set(annotations: &Value, parent: &Value) -> IngressLike {
    let spec = json!({"parentRef": parent, "listeners": [listeners()[1]]});
    object(Kind::ListenerSet, annotations, &spec)
}

fn plan_of(object: &IngressLike, there: &[Certificate], defaults: &Defaults) -> Plan {
    plan(object, Observed { certificates: there, parent: None }, defaults).unwrap()
}

/// The one Certificate that an object asks for.
fn made(object: &IngressLike) -> Certificate {
    let plan = plan_of(object, &[], &Defaults::default());
    assert_eq!(plan.warnings, []);
    let [CertificateChange::Create(certificate)] = &plan.changes[..] else {
        panic!("{:?}", plan.changes)
    };
    (**certificate).clone()
}

/// The annotations of a Certificate but the one that notes who asked.
fn told(certificate: &Certificate) -> BTreeMap<String, String> {
    let mut all = certificate.metadata.annotations.clone();
    assert!(all.remove(asked_by::ASKED_BY).is_some_and(|askers| !askers.is_empty()));
    all
}

/// Content that an annotation adds to a Certificate.
fn check(annotation: &str, value: &str, pointer: &str, expected: &Value) {
    let mut certificate = made(&ingress(&asking(&json!({annotation: value}))));
    certificate.metadata.annotations = told(&certificate);
    let shown = serde_json::to_value(certificate).unwrap();
    assert_eq!(shown.pointer(pointer), Some(expected), "{annotation}: {value}");
}

#[test]
fn an_entry_becomes_a_certificate_of_its_own() {
    let certificate = made(&ingress(&asking(&json!({"other": "annotation"}))));
    assert_eq!(
        serde_json::to_value(certificate).unwrap(),
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {
                "name": "shop-tls", "namespace": "web", "labels": {"team": "web"},
                "annotations": {"kubectl-acme/asked-by": OWN},
                "ownerReferences": [{
                    "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "shop", "uid": "u1",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "secretName": "shop-tls", "dnsNames": ["www.example.com"], "ipAddresses": ["192.0.2.1"],
                "issuerRef": {"name": "acme", "kind": "Issuer", "group": "cert-manager.io"},
                "usages": ["digital signature", "key encipherment"],
            },
            "status": {},
        })
    );
}

#[test]
fn every_annotation_of_the_table_is_read() {
    for (name, value, pointer, expected) in [
        ("common-name", "www.example.com", "/spec/commonName", json!("www.example.com")),
        (
            "alt-names",
            "a.example.com,b.example.com",
            "/spec/dnsNames",
            json!(["www.example.com", "a.example.com", "b.example.com"]),
        ),
        ("ip-sans", "192.0.2.2", "/spec/ipAddresses", json!(["192.0.2.1", "192.0.2.2"])),
        (
            "email-sans",
            "a@example.com,b@example.com",
            "/spec/emailAddresses",
            json!(["a@example.com", "b@example.com"]),
        ),
        (
            "subject-organizations",
            "\"Doe, Inc.\",\"the \"\"best\"\"\",b",
            "/spec/subject/organizations",
            json!(["Doe, Inc.", "the \"best\"", "b"]),
        ),
        (
            "subject-organizationalunits",
            "a,b",
            "/spec/subject/organizationalUnits",
            json!(["a", "b"]),
        ),
        ("subject-countries", "DE", "/spec/subject/countries", json!(["DE"])),
        ("subject-provinces", "a", "/spec/subject/provinces", json!(["a"])),
        ("subject-localities", "a", "/spec/subject/localities", json!(["a"])),
        ("subject-postalcodes", "1,2", "/spec/subject/postalCodes", json!(["1", "2"])),
        ("subject-streetaddresses", "a", "/spec/subject/streetAddresses", json!(["a"])),
        ("subject-serialnumber", "7", "/spec/subject/serialNumber", json!("7")),
        ("duration", "2160h", "/spec/duration", json!("2160h0m0s")),
        ("renew-before", "360h", "/spec/renewBefore", json!("360h0m0s")),
        ("renew-before-percentage", "30", "/spec/renewBeforePercentage", json!(30)),
        (
            "usages",
            "server auth, client auth",
            "/spec/usages",
            json!(["server auth", "client auth"]),
        ),
        ("revision-history-limit", "7", "/spec/revisionHistoryLimit", json!(7)),
        ("private-key-algorithm", "Ed25519", "/spec/privateKey/algorithm", json!("Ed25519")),
        ("private-key-encoding", "PKCS8", "/spec/privateKey/encoding", json!("PKCS8")),
        ("private-key-size", "4096", "/spec/privateKey/size", json!(4096)),
        ("private-key-rotation-policy", "Never", "/spec/privateKey/rotationPolicy", json!("Never")),
        (
            "secret-template",
            r#"{"labels": {"a": "b"}}"#,
            "/spec/secretTemplate",
            json!({"labels": {"a": "b"}}),
        ),
    ] {
        check(&format!("cert-manager.io/{name}"), value, pointer, &expected);
    }
}

#[test]
fn annotations_for_http_01_become_overrides_of_the_solver() {
    for (name, value, expected) in [
        (
            "http01-edit-in-place",
            "true",
            json!({
                "acme.cert-manager.io/http01-override-ingress-name": "shop",
                "cert-manager.io/issue-temporary-certificate": "true",
            }),
        ),
        (
            "http01-ingress-class",
            "nginx",
            json!({"acme.cert-manager.io/http01-override-ingress-class": "nginx"}),
        ),
        (
            "http01-ingress-ingressclassname",
            "nginx",
            json!({"acme.cert-manager.io/http01-override-ingress-ingressclassname": "nginx"}),
        ),
    ] {
        check(&format!("acme.cert-manager.io/{name}"), value, "/metadata/annotations", &expected);
    }
    for value in ["yes", "false", ""] {
        let given = json!({"acme.cert-manager.io/http01-edit-in-place": value});
        assert!(told(&made(&ingress(&asking(&given)))).is_empty(), "{value}");
    }
}

#[test]
fn listeners_with_tls_are_gathered_by_their_secret() {
    let plan = plan_of(&gateway(&asking(&json!({}))), &[], &Defaults::default());
    let shown: Vec<_> = plan
        .changes
        .iter()
        .map(|change| match change {
            CertificateChange::Create(one) => {
                (one.metadata.name.as_str(), one.spec.dns_names.join(" "))
            }
            CertificateChange::Update(_) | CertificateChange::Delete(_) => panic!("{change:?}"),
        })
        .collect();
    let both = "a.example.com b.example.com".to_owned();
    assert_eq!(shown, [("edge-tls", both), ("b-tls", "b.example.com".to_owned())]);
    let [CertificateChange::Create(first), ..] = &plan.changes[..] else { panic!() };
    let parent = json!({
        "acme.cert-manager.io/http01-parentrefkind": "Gateway",
        "acme.cert-manager.io/http01-parentrefname": "shop",
    });
    assert_eq!(json!(told(first)), parent);
    let ignoring = asking(&json!({"cert-manager.io/ignore-tls-listeners": " b , through"}));
    assert_eq!(made(&gateway(&ignoring)).spec.dns_names, ["a.example.com"]);
}

#[test]
fn a_listener_set_is_its_own_parent_unless_it_falls_back_to_its_gateway() {
    let fallback = "acme.cert-manager.io/http01-parentreffallback";
    let with = |annotations: &Value, of_gateway: &Value| {
        let object = set(annotations, &json!({"name": "edge", "namespace": "infra"}));
        let IngressLike::Gateway(parent) = gateway(of_gateway) else { panic!() };
        let observed = Observed { certificates: &[], parent: Some(&parent) };
        plan(&object, observed, &Defaults::default()).unwrap().changes
    };
    let told_of = |annotations: &Value| {
        let changes = with(annotations, &json!({}));
        let [CertificateChange::Create(one)] = &changes[..] else { panic!("{changes:?}") };
        let short = |(name, value): (&String, &String)| {
            (name.rsplit('-').next().unwrap().to_owned(), value.clone())
        };
        told(one).iter().map(short).collect::<Vec<_>>()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let own = [pair("parentrefkind", "ListenerSet"), pair("parentrefname", "shop")];
    assert_eq!(told_of(&asking(&json!({}))), own);
    assert_eq!(told_of(&asking(&json!({fallback: "no"}))), own);
    let parent = [
        pair("parentrefkind", "Gateway"),
        pair("parentrefname", "edge"),
        pair("parentrefnamespace", "infra"),
    ];
    assert_eq!(told_of(&asking(&json!({fallback: "true"}))), parent);
    let inherited = with(&json!({}), &asking(&json!({})));
    assert!(
        matches!(&inherited[..], [CertificateChange::Create(one)] if one.spec.issuer_ref.name == "acme")
    );
    assert_eq!(with(&json!({}), &json!({})), []);
    let alone = set(&asking(&json!({})), &json!({"name": "edge"}));
    assert_eq!(plan_of(&alone, &[], &Defaults::default()), Plan::default());
}

/// Warnings on an Ingress with these annotations and entries, and the number of Certificates made.
fn check_told(annotations: &Value, tls: &Value, expected: &[&str], count: usize) {
    let plan = plan_of(
        &object(Kind::Ingress, annotations, &json!({"tls": tls})),
        &[],
        &Defaults::default(),
    );
    let told: Vec<_> = plan.warnings.iter().map(|note| note.message.as_str()).collect();
    assert_eq!(told, expected);
    assert!(plan.warnings.iter().all(|note| note.source == "cert-manager-ingress-shim"));
    assert_eq!(plan.changes.len(), count, "{:?}", plan.changes);
}

#[test]
fn an_issuer_that_is_not_clear_is_told() {
    let bad = "Could not determine issuer for ingress due to bad annotations: ";
    let tls = json!([{"hosts": ["a.example.com"], "secretName": "a-tls"}]);
    for (annotations, why) in [
        (
            json!({OWN: "a", "cert-manager.io/cluster-issuer": "b"}),
            r#"both "cert-manager.io/issuer" and "cert-manager.io/cluster-issuer" may not be set"#,
        ),
        (
            json!({"cert-manager.io/cluster-issuer": "b", "cert-manager.io/issuer-kind": "K"}),
            r#"both "cert-manager.io/cluster-issuer" and "cert-manager.io/issuer-kind" may not be set"#,
        ),
        (
            json!({"cert-manager.io/cluster-issuer": "b", "cert-manager.io/issuer-group": "g"}),
            r#"both "cert-manager.io/cluster-issuer" and "cert-manager.io/issuer-group" may not be set"#,
        ),
        (json!({OWN: ""}), "failed to determine issuer name to be used for ingress resource"),
        (
            json!({TLS_ACME: "true"}),
            "failed to determine issuer name to be used for ingress resource",
        ),
    ] {
        check_told(&annotations, &tls, &[&format!("{bad}{why}")], 0);
    }
}

#[test]
fn an_entry_that_cannot_be_used_is_skipped_and_two_of_one_secret_stop_all() {
    let good = json!({"hosts": ["a.example.com"], "secretName": "a-tls"});
    check_told(
        &asking(&json!({})),
        &json!([{"secretName": "b-tls"}, good, {}]),
        &[
            "Skipped a TLS block: spec.tls[0].hosts: Required value",
            "Skipped a TLS block: [spec.tls[2].hosts: Required value, spec.tls[2].secretName: Required value]",
        ],
        1,
    );
    check_told(
        &asking(&json!({})),
        &json!([good, good]),
        &[
            "spec.tls[0].secretName: Invalid value: \"a-tls\": this secret name must only appear in a single TLS entry but is \
           also used in spec.tls[1].secretName",
        ],
        0,
    );
}

#[test]
fn a_listener_that_cannot_be_used_is_skipped() {
    let https = |tls: &Value| json!({"hostname": "a.example.com", "protocol": "HTTPS", "tls": tls});
    let secret = |one: &Value| https(&json!({"certificateRefs": [one]}));
    for (listener, why) in [
        (
            json!({"protocol": "HTTPS"}),
            "[spec.listeners[0].hostname: Required value: the hostname cannot be empty, \
             spec.listeners[0].tls: Required value: the TLS block cannot be empty]",
        ),
        (
            https(&json!({})),
            "spec.listeners[0].tls.certificateRef: Required value: listener has no certificateRefs",
        ),
        (
            secret(&json!({"name": "a", "namespace": "other"})),
            "spec.listeners[0].tls.certificateRef[0].namespace: Invalid value: \"other\": cross-namespace secret references are \
             not allowed in listeners",
        ),
        (
            secret(&json!({"name": "a", "kind": "ConfigMap"})),
            "spec.listeners[0].tls.certificateRef[0].kind: Unsupported value: \"ConfigMap\": supported values: \"Secret\", \"\"",
        ),
        (
            secret(&json!({"name": "a", "group": "g"})),
            "spec.listeners[0].tls.certificateRef[0].group: Unsupported value: \"g\": supported values: \"core\", \"\"",
        ),
    ] {
        let object = object(Kind::Gateway, &asking(&json!({})), &json!({"listeners": [listener]}));
        let plan = plan_of(&object, &[], &Defaults::default());
        let told: Vec<_> = plan.warnings.iter().map(|note| note.message.clone()).collect();
        assert_eq!(told, [format!("Skipped a listener block: {why}")]);
        assert_eq!(plan.changes, []);
    }
}

#[test]
fn a_value_that_cannot_be_read_stops_all() {
    for (name, value, why) in [
        ("duration", "3 days", "time: invalid duration \"3 days\""),
        ("renew-before", "", "time: invalid duration \"\""),
        ("renew-before-percentage", "half", "\"half\" is no number"),
        ("usages", "server auth,tea", "invalid key usage name \"tea\""),
        ("revision-history-limit", "0", "revision history limit must be a positive number \"0\""),
        ("private-key-algorithm", "rsa", "invalid private key algorithm \"rsa\""),
        ("private-key-encoding", "pkcs8", "invalid private key encoding \"pkcs8\""),
        ("private-key-size", "1024", "invalid private key size for RSA algorithm \"1024\""),
        ("private-key-rotation-policy", "Once", "invalid private key rotation policy \"Once\""),
        ("subject-countries", "", "no values found after parsing \"\""),
        (
            "subject-countries",
            "\"DE",
            "failed to parse \"\"DE\" as CSV: a quote stands where none may be",
        ),
        (
            "subject-localities",
            "a\nb",
            "refusing to use \"a\nb\" as input as it parses as multiple lines of CSV",
        ),
        (
            "secret-template",
            r#"{"annotations": {"cert-manager.io/x": "y"}}"#,
            "secretTemplate must not have cert-manager.io/ annotations: \"cert-manager.io/x\"",
        ),
    ] {
        let name = format!("cert-manager.io/{name}");
        let object = ingress(&asking(&json!({&name: value})));
        let error = plan(&object, Observed::default(), &Defaults::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("invalid ingress annotation \"{name}\": {why}"));
    }
    let unknown = ingress(&asking(&json!({"cert-manager.io/secret-template": r#"{"data": {}}"#})));
    assert!(plan(&unknown, Observed::default(), &Defaults::default()).is_err());
}

#[test]
fn flags_name_the_issuer_of_those_that_name_none() {
    let issuer = IssuerRef {
        name: "le".into(),
        kind: "ClusterIssuer".into(),
        group: "cert-manager.io".into(),
    };
    let defaults = Defaults {
        issuer: issuer.clone(),
        asking: vec![TLS_ACME.to_owned(), "example.com/tls".to_owned()],
        copied: vec!["example.com/owner".to_owned()],
        ..Defaults::default()
    };
    for (annotations, is_asked) in [
        (json!({TLS_ACME: "true", "example.com/owner": "web"}), true),
        (json!({"example.com/tls": "T", "example.com/owner": "web"}), true),
        (json!({TLS_ACME: "false"}), false),
        (json!({"example.com/owner": "web"}), false),
    ] {
        let plan = plan_of(&ingress(&annotations), &[], &defaults);
        assert_eq!(plan.changes.len(), usize::from(is_asked), "{annotations}");
        if let [CertificateChange::Create(one)] = &plan.changes[..] {
            assert_eq!(one.spec.issuer_ref, issuer);
            assert_eq!(json!(told(one)), json!({"example.com/owner": "web"}));
        }
    }
    // Of Gateways only an issuer by name is heard.
    assert_eq!(plan_of(&gateway(&json!({TLS_ACME: "true"})), &[], &defaults), Plan::default());
    let own = plan_of(&ingress(&json!({OWN: "own"})), &[], &defaults);
    assert!(
        matches!(&own.changes[..], [CertificateChange::Create(one)] if one.spec.issuer_ref.kind == "Issuer")
    );
}

/// Whether the Certificate of an Ingress is written anew when this of it differs.
fn check_update(change: impl FnOnce(&mut Certificate), is_updated: bool) {
    let object = ingress(&asking(&json!({})));
    let wanted = made(&object);
    let mut there = wanted.clone();
    change(&mut there);
    let plan = plan_of(&object, &[there.clone()], &Defaults::default());
    match (&plan.changes[..], is_updated) {
        ([CertificateChange::Update(one)], true) => {
            assert_eq!(one.spec, wanted.spec);
            assert_eq!(one.metadata.labels, wanted.metadata.labels);
            assert_eq!(one.metadata.annotations, there.metadata.annotations);
        }
        ([], false) => {}
        (changes, _) => panic!("{there:?}: {changes:?}"),
    }
}

#[test]
fn only_what_cert_manager_compares_makes_a_certificate_outdated() {
    let key = |key: PrivateKey| move |one: &mut Certificate| one.spec.private_key = Some(key);
    check_update(|_| {}, false);
    check_update(|one| drop(one.metadata.labels.insert("a".into(), "b".into())), true);
    check_update(|one| one.spec.common_name = "a".into(), true);
    check_update(|one| one.spec.dns_names.push("a".into()), true);
    check_update(|one| one.spec.issuer_ref.name = "a".into(), true);
    check_update(|one| one.spec.issuer_ref.kind = "a".into(), true);
    check_update(|one| one.spec.revision_history_limit = Some(1), true);
    check_update(|one| one.spec.duration = Some(Duration::from_secs(3600)), true);
    check_update(|one| one.spec.renew_before = Some(Duration::from_secs(3600)), true);
    check_update(key(PrivateKey { algorithm: "ECDSA".into(), ..PrivateKey::default() }), true);
    check_update(key(PrivateKey { encoding: "PKCS8".into(), ..PrivateKey::default() }), true);
    check_update(
        key(PrivateKey { rotation_policy: "Never".into(), ..PrivateKey::default() }),
        true,
    );
    check_update(key(PrivateKey { size: Some(4096), ..PrivateKey::default() }), true);
    check_update(key(PrivateKey::default()), false);
    check_update(|one| one.spec.ip_addresses.clear(), false);
    check_update(|one| one.spec.usages = None, false);
    check_update(|one| one.spec.email_addresses = vec!["a@example.com".into()], false);
    check_update(|one| one.spec.subject = Some(Subject::default()), false);
    check_update(|one| one.spec.issuer_ref.group = "g".into(), false);
    check_update(|one| one.spec.renew_before_percentage = Some(30), false);
    check_update(|one| drop(one.metadata.annotations.insert("a".into(), "b".into())), false);
}

#[test]
fn annotations_that_are_taken_over_are_added_to_those_there_are() {
    let defaults = Defaults { copied: vec!["mine".to_owned()], ..Defaults::default() };
    let class = "acme.cert-manager.io/http01-ingress-class";
    let object = ingress(&asking(&json!({"mine": "new", class: "nginx"})));
    let mut there = made(&ingress(&asking(&json!({}))));
    there.spec.common_name = "old".into();
    there.metadata.annotations.insert("theirs".into(), "kept".into());
    let plan = plan_of(&object, &[there], &defaults);
    let [CertificateChange::Update(one)] = &plan.changes[..] else { panic!("{:?}", plan.changes) };
    let expected = json!({
        "mine": "new", "theirs": "kept", "acme.cert-manager.io/http01-override-ingress-class": "nginx",
    });
    assert_eq!(json!(told(one)), expected);
}

#[test]
fn a_certificate_that_the_object_does_not_own_is_left_alone() {
    let object = ingress(&asking(&json!({})));
    let mut there = made(&object);
    there.spec.common_name = "old".into();
    there.metadata.owner_references.clear();
    assert_eq!(plan_of(&object, &[there.clone()], &Defaults::default()), Plan::default());
    let mut other = object.owner_reference();
    other.uid = "u2".into();
    there.metadata.owner_references.push(other);
    assert_eq!(plan_of(&object, &[there], &Defaults::default()), Plan::default());
}

#[test]
fn a_certificate_that_is_not_asked_for_any_more_is_deleted() {
    let asked = ingress(&asking(&json!({})));
    let mut there = made(&asked);
    "u7".clone_into(&mut there.metadata.uid);
    let check = |object: &IngressLike, is_deleted: bool| {
        let changes = plan_of(object, &[there.clone()], &Defaults::default()).changes;
        let deleted = [CertificateChange::Delete(Box::new(there.clone()))];
        assert_eq!(changes, if is_deleted { &deleted[..] } else { &[] }, "{object:?}");
    };
    check(&asked, false);
    // Its entry, or the annotation, is gone.
    check(&object(Kind::Ingress, &asking(&json!({})), &json!({})), true);
    check(&ingress(&json!({})), true);
    // An entry that is skipped still names it.
    check(
        &object(Kind::Ingress, &asking(&json!({})), &json!({"tls": [{"secretName": "shop-tls"}]})),
        false,
    );
    let note = CertificateChange::Delete(Box::new(there.clone())).note(Kind::Ingress);
    assert_eq!(note.message, "Successfully deleted unrequired Certificate \"shop-tls\"");
    assert_eq!((&*note.reason, note.source), ("DeleteCertificate", "cert-manager-ingress-shim"));
}

#[test]
fn only_what_we_have_made_goes_and_only_once_nothing_is_left_that_asked_for_it() {
    let asking = vec![TLS_ACME.to_owned(), "example.com/tls".to_owned()];
    let issuer = IssuerRef { name: "acme".into(), ..Defaults::default().issuer };
    let defaults = Defaults { issuer, asking, ..Defaults::default() };
    let [both, custom, old] = [
        json!({"example.com/tls": "true", TLS_ACME: "true"}),
        json!({"example.com/tls": "true"}),
        json!({TLS_ACME: "true"}),
    ];
    let made_of = |annotations: &Value| {
        let changes = plan_of(&ingress(annotations), &[], &defaults).changes;
        let [CertificateChange::Create(one)] = &changes[..] else { panic!("{changes:?}") };
        (**one).clone()
    };
    let without_flags = |one: &Certificate, annotations: &Value, is_deleted: bool| {
        let there = [one.clone()];
        let changes = plan_of(&ingress(annotations), &there, &Defaults::default()).changes;
        let is_it = matches!(&changes[..], [CertificateChange::Delete(_)]);
        assert_eq!(is_it, is_deleted, "{annotations}: {changes:?}");
    };
    let of_both = made_of(&both);
    // Who was not told of an annotation does not take away what it asks for.
    without_flags(&of_both, &custom, false);
    without_flags(&of_both, &json!({"example.com/tls": "false", TLS_ACME: "no"}), true);
    without_flags(&made_of(&old), &json!({TLS_ACME: "false"}), true);
    without_flags(&made_of(&custom), &json!({}), true);
    // Whatever asks now is noted, where we have noted something before.
    let mut there = made_of(&old);
    let changes = plan_of(&ingress(&custom), &[there.clone()], &defaults).changes;
    let [CertificateChange::Update(one)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(**one, made_of(&custom));
    without_flags(one, &custom, false);
    // One of cert-manager's own shim stays.
    there.metadata.annotations.clear();
    assert_eq!(plan_of(&ingress(&custom), &[there.clone()], &defaults), Plan::default());
    without_flags(&there, &json!({}), false);
    let copying = Defaults { copied: vec!["example.com/tls".to_owned()], ..defaults.clone() };
    there.spec.common_name = "old".into();
    let changes = plan_of(&ingress(&custom), &[there], &copying).changes;
    let [CertificateChange::Update(one)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(json!(one.metadata.annotations), custom);
}

#[test]
fn nothing_is_done_for_an_object_that_is_going() {
    for (field, value) in [
        ("deletionTimestamp", json!("2026-11-25T12:00:00Z")),
        ("finalizers", json!(["foregroundDeletion"])),
    ] {
        let mut going = json!({
            "metadata": {"name": "shop", "namespace": "web", "uid": "u1", "annotations": {OWN: "acme"}},
            "spec": {"tls": [{"hosts": ["a.example.com"], "secretName": "a-tls"}]},
        });
        going["metadata"][field] = value;
        let going = IngressLike::deserialize_as(Kind::Ingress, &going).unwrap();
        assert_eq!(plan_of(&going, &[], &Defaults::default()), Plan::default());
    }
}

#[test]
fn old_annotations_are_read_and_named() {
    let old = json!({
        "certmanager.k8s.io/issuer": "old", "certmanager.k8s.io/acme-http01-edit-in-place": "true",
        "certmanager.k8s.io/acme-challenge-type": "http01",
    });
    let plan = plan_of(&ingress(&old), &[], &Defaults::default());
    let [warning] = &plan.warnings[..] else { panic!("{:?}", plan.warnings) };
    assert_eq!(
        warning.message,
        "cert-manager has not read these annotations since 0.11: certmanager.k8s.io/acme-http01-edit-in-place is now \
         acme.cert-manager.io/http01-edit-in-place; certmanager.k8s.io/issuer is now cert-manager.io/issuer"
    );
    let [CertificateChange::Create(one)] = &plan.changes[..] else { panic!("{:?}", plan.changes) };
    assert_eq!(one.spec.issuer_ref.name, "old");
    assert_eq!(told(one).len(), 2);
    // The new name counts.
    let both = json!({"certmanager.k8s.io/issuer": "old", OWN: "new"});
    let plan = plan_of(&ingress(&both), &[], &Defaults::default());
    assert!(
        matches!(&plan.changes[..], [CertificateChange::Create(one)] if one.spec.issuer_ref.name == "new")
    );
}

#[test]
fn what_cert_manager_has_made_of_blanks_is_awaited_as_it_makes_it() {
    let object =
        ingress(&asking(&json!({"cert-manager.io/alt-names": "b.example.com, c.example.com,"})));
    let ours = made(&object);
    assert_eq!(ours.spec.dns_names[1..], ["b.example.com", "c.example.com"]);
    let theirs = Defaults { lists: Lists::AsCertManager, ..Defaults::default() };
    let CertificateChange::Create(kept) = &plan_of(&object, &[], &theirs).changes[0] else {
        panic!()
    };
    assert_eq!(kept.spec.dns_names[1..], ["b.example.com", " c.example.com", ""]);
    assert_eq!(plan_of(&object, &[(**kept).clone()], &theirs).changes, [], "it is as awaited");
    let mended = plan_of(&object, &[(**kept).clone()], &Defaults::default()).changes;
    assert!(matches!(&mended[..], [CertificateChange::Update(_)]), "where we drive: {mended:?}");
    let said = untidy_annotations(&object).to_string();
    assert!(
        said.ends_with("write cert-manager.io/alt-names: \"b.example.com,c.example.com\""),
        "{said}"
    );
}
