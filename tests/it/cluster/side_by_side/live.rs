//! The same manifests in two namespaces of one cluster: cert-manager's controllers drive one, ours the other.
//!
//! One after the other, each with its own defaults and the same Lease for the whole cluster, as where one takes over from
//! the other: so neither is told of a namespace to keep to, and ours meet cert-manager's finished work and leave it as it is.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::fixture::{Site, condition, is_ready, request_for};
use super::in_turn::InTurn;
use super::scenarios::{INVALID, MEMORY, manually_triggered};
use super::{arena, report, sheets};
use crate::support::cluster::Cluster;
use crate::support::difference::{self, Difference};
use crate::support::gate::Passage;
use crate::support::pebble::Pebble;
use crate::support::purpose::OUR_NAME;
use crate::support::story::{self, Turn};

const CERTIFICATES: &str = "
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: plain}
spec: {secretName: plain-tls, dnsNames: [plain.example.test], issuerRef: {name: acme}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: rich, labels: {team: web}, annotations: {example.com/note: kept}}
spec:
  secretName: rich-tls
  commonName: a.rich.example.test
  dnsNames: [a.rich.example.test, b.rich.example.test]
  duration: 1440h
  renewBefore: 480h
  usages: [server auth, digital signature]
  revisionHistoryLimit: 3
  privateKey: {algorithm: ECDSA, size: 384, encoding: PKCS8, rotationPolicy: Never}
  secretTemplate: {labels: {tier: front}, annotations: {example.com/owner: web}}
  issuerRef: {name: acme, kind: Issuer, group: cert-manager.io}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: routed}
spec: {secretName: routed-tls, dnsNames: [routed.example.test], issuerRef: {name: route}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: refused}
spec: {secretName: refused-tls, dnsNames: [www.blocked-domain.example], issuerRef: {name: acme}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: stuck}
spec: {secretName: stuck-tls, dnsNames: ['*.stuck.example.test'], issuerRef: {name: acme}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: invalid}
spec: {secretName: invalid-tls, dnsNames: [invalid.example.test], issuerRef: {name: misled}}
";

/// What differs on purpose, beside what we remember in annotations.
pub(super) const DIFFERENCES: &[Difference] = &[
    OUR_NAME,
    INVALID,
    Difference {
        about: "Order invalid-1-*eason",
        theirs: "-",
        ours: "*403 urn:ietf:params:acme:error:unauthorized: <detail>",
        why: "an invalid Order has its reason in its status, with the CA's problem",
    },
    Difference {
        about: "Order stuck-1-*eason",
        theirs: "-",
        ours: "*no configured challenge solvers can be used for this challenge*",
        why: "that no solver fits is in the Order's reason",
    },
    Difference {
        about: "Order stuck-1-*, event Warning Solver: *",
        theirs: "*",
        ours: "*",
        why: "behind cert-manager's words stands what the CA offers",
    },
    Difference {
        about: "Order rich-2-*, at last /spec/replaces",
        theirs: "-",
        ours: "*",
        why: "a renewal says which certificate it replaces, so that it counts towards no limit",
    },
    Difference {
        about: "kubectl describe order: Replaces: *",
        theirs: "-",
        ours: "1",
        why: "a renewal says which certificate it replaces, so that it counts towards no limit",
    },
    Difference {
        about: "kubectl describe certificate: Annotations: <none>",
        theirs: "*",
        ours: "-",
        why: "what we must remember beyond the schema is in annotations",
    },
    Difference {
        about: "kubectl describe order: Reason: *",
        theirs: "-",
        ours: "1",
        why: "the reason of an Order is in its status",
    },
    Difference {
        about: "kubectl get order -o wide: stuck-1-* pending acme <age>",
        theirs: "1",
        ours: "-",
        why: "the reason of an Order is in its status",
    },
    Difference {
        about: "kubectl get order -o wide: stuck-1-* pending acme Failed to determine a valid solver configuration for the set of domains on the Order: no configured challenge solvers can be used for this challenge* <age>",
        theirs: "-",
        ours: "1",
        why: "the reason of an Order is in its status",
    },
    Difference {
        about: "kubectl get order -o wide: invalid-1-* invalid misled <age>",
        theirs: "1",
        ours: "-",
        why: "the reason of an Order is in its status",
    },
    Difference {
        about: "kubectl get order -o wide: invalid-1-* invalid misled *403 urn:ietf:params:acme:error:unauthorized: <detail><age>",
        theirs: "-",
        ours: "1",
        why: "the reason of an Order is in its status",
    },
    Difference {
        about: "kubectl describe challenge: Annotations: <none>",
        theirs: "1",
        ours: "-",
        why: "what we must remember beyond the schema is in annotations",
    },
    Difference {
        about: "kubectl describe order: Annotations: <none>",
        theirs: "1",
        ours: "-",
        why: "what we must remember beyond the schema is in annotations",
    },
];

/// Gateway, Issuers, and a signing request by hand. Issuer `misled` is that of a CA that sees wrong answers.
fn site_manifests(pebble: &Pebble, misled: &Pebble) -> [Value; 5] {
    let issuer = |name: &str, pebble: &Pebble, http01: Value| {
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": name},
            "spec": {"acme": {
                "server": pebble.directory(), "caBundle": STANDARD.encode(pebble.tls_ca_pem()),
                "email": "ops@example.test", "privateKeySecretRef": {"name": format!("{name}-account")},
                "solvers": [{"http01": http01}],
            }},
        })
    };
    [
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "edge"},
            "spec": {
                "gatewayClassName": "bed",
                "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
            },
        }),
        issuer("acme", pebble, json!({"ingress": {"ingressClassName": "bed"}})),
        issuer("misled", misled, json!({"ingress": {"ingressClassName": "bed"}})),
        issuer("route", pebble, json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}})),
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest",
            "metadata": {"name": "byhand"},
            "spec": {"issuerRef": {"name": "acme"}, "usages": ["server auth"], "request": request_for(&["byhand.example.test"])},
        }),
    ]
}

/// Applies the manifests, renews one certificate and changes the labels of its Secret; returns when nothing is left to do.
fn act(site: &Site<'_>, manifests: &[Value; 5]) {
    let [gateway, acme, misled, route, request] = manifests;
    for object in [gateway, acme, misled, route] {
        site.kubectl.apply(&object.to_string());
    }
    for issuer in ["acme", "misled", "route"] {
        site.until("Issuer", issuer, is_ready);
    }
    site.kubectl.apply(&request.to_string());
    site.kubectl.apply(CERTIFICATES);
    site.until("CertificateRequest", "byhand", is_ready);
    for name in ["plain", "rich", "routed"] {
        site.until_issued(name, 1);
    }
    for name in ["refused", "invalid"] {
        site.until("Certificate", name, |c| c["status"]["failedIssuanceAttempts"] == 1);
        site.until_clean_of(name);
    }
    site.until_event("Solver", "stuck");
    site.add_condition("Certificate", "rich", &manually_triggered());
    site.until_issued("rich", 2);
    let template = r#"{"spec": {"secretTemplate": {"labels": {"tier": "back"}}}}"#;
    site.kubectl.run(&["patch", "certificate/rich", "--type=merge", "-p", template]);
    site.until("Secret", "rich-tls", |secret| secret["metadata"]["labels"]["tier"] == "back");
    site.until("Certificate", "rich", |certificate| {
        let ready = condition(certificate, "Ready").unwrap();
        ready["observedGeneration"] == certificate["metadata"]["generation"]
    });
}

/// Whether cert-manager tells that it has made a CertificateRequest already, or has found a second solver Service or Ingress of its
/// own: its memory may be behind its own writes.
pub(super) fn is_outrun_by_itself(turn: &Turn) -> bool {
    let message = turn.object["message"].as_str().unwrap_or_default();
    let why = turn.object["status"]["reason"].as_str().unwrap_or_default();
    (turn.object["reason"] == "RequestFailed" && message.ends_with(" already exists"))
        || why.ends_with("found and cleaned up. retrying challenge sync")
}

/// Whether cert-manager has deleted a CertificateRequest of its own and made it once more: one controller had not heard yet what another
/// one had written.
fn is_remade_by_itself(turns: &[Turn]) -> bool {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    let requests = turns.iter().filter(|turn| turn.kind == "CertificateRequest");
    requests.into_iter().any(|turn| {
        let metadata = &turn.object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let before = known.insert(text("name"), text("uid"));
        before.is_some_and(|uid| uid != text("uid"))
    })
}

/// Each of our controllers tells of a Certificate after the one by whose writing it was woken, in every issuance; cert-manager's are
/// several, and which of two tells first is chance.
fn check_causes(ours: &[Turn]) {
    // The last begins where a person triggers.
    const WOKEN: [(&str, &str); 5] = [
        ("nobody", "trigger"),
        ("trigger", "key-manager"),
        ("key-manager", "request-manager"),
        ("request-manager", "issuing"),
        ("issuing", "key-manager"),
    ];
    let told = story::speakers(ours);
    let certificates = told.iter().filter(|(who, _)| who.starts_with("Certificate "));
    for (who, controllers) in certificates {
        let names = controllers.iter().map(|name| name.rsplit("certificates-").next().unwrap());
        let mut last = "nobody";
        for name in names {
            assert!(WOKEN.contains(&(last, name)), "{who}: {name} after {last} in {controllers:?}");
            last = name;
        }
    }
}

/// Every request of ours says that it waits for approval; cert-manager's may be approved before its issuer has seen it.
fn check_waits(ours: &[Turn]) {
    let names = |wanted: &dyn Fn(&Turn) -> Option<Value>| -> BTreeSet<String> {
        ours.iter().filter_map(wanted).map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let requests = names(&|turn| {
        (turn.kind == "CertificateRequest").then(|| turn.object["metadata"]["name"].clone())
    });
    let waiting = names(&|turn| {
        (turn.kind == "Event" && turn.object["reason"] == "WaitingForApproval")
            .then(|| turn.object["involvedObject"]["name"].clone())
    });
    assert_eq!(waiting, requests);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn the_same_manifests_come_to_the_same_objects_and_events() {
    let cluster: &Cluster = &arena();
    let both = InTurn::on(cluster);
    let validation = both.gate(Passage::Wrong);
    let (pebble, misled) = (both.pebble(None), both.pebble(Some(&validation)));
    let manifests = site_manifests(&pebble, &misled);

    // Where cert-manager's controllers get in each other's way, their side is taken anew.
    let mut places = ["theirs", "theirs-again", "theirs-once-more"].into_iter();
    let (theirs, shown_there, mut finished) = loop {
        let site = both.site(places.next().expect("cert-manager remakes a request each time"));
        both.theirs(|| act(&site, &manifests));
        let (shown, finished) = (sheets::shown(&site), site.all_turns());
        if !is_remade_by_itself(&finished) {
            break (site, shown, finished);
        }
    };

    let ours = both.site("ours");
    both.ours(|| act(&ours, &manifests));

    // Ours add one thing to cert-manager's work: why its Order is stuck, in its status and as an event of theirs.
    let after = theirs.all_turns();
    for turn in &after[finished.len()..] {
        let name = turn.object["metadata"]["name"].as_str().unwrap();
        let is_stuck =
            ["Event", "Order"].contains(&turn.kind.as_str()) && name.starts_with("stuck-1-");
        assert!(is_stuck, "finished work of cert-manager's is left alone: {turn:?}");
    }
    let ours_did = ours.all_turns();
    check_causes(&ours_did);
    check_waits(&ours_did);
    // Ours never tells that.
    finished.retain(|turn| !is_outrun_by_itself(turn));
    let mut told = (story::tell_apart(&finished), story::tell_apart(&ours_did));
    told.0.extend(shown_there);
    told.1.extend(sheets::shown(&ours));
    let listed = [&MEMORY[..], DIFFERENCES].concat();
    report("side by side", &[("live", difference::compare(&told.0, &told.1, &listed))]);
}
