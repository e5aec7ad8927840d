//! Certificates for which Ingresses, Gateways and ListenerSets ask by their annotations, as cert-manager's shims make them and as
//! ours do.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::fixture::{Site, is_ready};
use super::in_turn::InTurn;
use super::live::is_outrun_by_itself;
use super::scenarios::MEMORY;
use super::{arena, report};
use crate::support::cluster::Cluster;
use crate::support::difference::{self, Difference};
use crate::support::pebble::Pebble;
use crate::support::purpose::OUR_NAME;
use crate::support::story::{self, Turn};

/// What differs on purpose, beside what we remember in annotations.
pub(super) const DIFFERENCES: &[Difference] = &[OUR_NAME];

const ASKING: &str = r#"
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  labels: {team: web, applyset.kubernetes.io/part-of: set}
  annotations:
    cert-manager.io/issuer: acme
    acme.cert-manager.io/http01-ingress-ingressclassname: bed
    cert-manager.io/common-name: alt.example.test
    cert-manager.io/alt-names: alt.example.test
    cert-manager.io/subject-organizations: '"Doe, Inc.",Web'
    cert-manager.io/duration: 1440h
    cert-manager.io/renew-before: 480h
    cert-manager.io/usages: server auth,digital signature
    cert-manager.io/revision-history-limit: "3"
    cert-manager.io/private-key-algorithm: ECDSA
    cert-manager.io/private-key-size: "384"
    cert-manager.io/private-key-encoding: PKCS8
    cert-manager.io/private-key-rotation-policy: Never
    cert-manager.io/secret-template: '{"labels": {"tier": "front"}}'
    example.com/note: not copied
spec:
  ingressClassName: none
  defaultBackend: {service: {name: shop, port: {number: 80}}}
  tls:
    - {hosts: [shop.example.test], secretName: shop-tls}
    - {hosts: [nameless.example.test]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: bad
  annotations: {cert-manager.io/issuer: acme, cert-manager.io/cluster-issuer: acme}
spec:
  defaultBackend: {service: {name: shop, port: {number: 80}}}
  tls: [{hosts: [bad.example.test], secretName: bad-tls}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, annotations: {cert-manager.io/issuer: route}}
spec:
  gatewayClassName: bed
  listeners:
    - {name: http, port: 80, protocol: HTTP}
    - name: https
      port: 443
      protocol: HTTPS
      hostname: edge.example.test
      tls: {certificateRefs: [{name: edge-tls}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata:
  name: more
  annotations: {acme.cert-manager.io/http01-parentreffallback: "true"}
spec:
  parentRef: {name: edge}
  listeners:
    - name: https
      port: 443
      protocol: HTTPS
      hostname: more.example.test
      tls: {certificateRefs: [{name: more-tls}]}
"#;

fn issuer(name: &str, pebble: &Pebble, http01: &Value) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": name},
        "spec": {"acme": {
            "server": pebble.directory(), "caBundle": STANDARD.encode(pebble.tls_ca_pem()),
            "privateKeySecretRef": {"name": format!("{name}-account")},
            "solvers": [{"http01": http01}],
        }},
    })
}

/// Applies all, and changes what one Ingress asks for; tells whether each Certificate was issued once.
fn act(site: &Site<'_>, pebble: &Pebble) -> bool {
    let by_route = json!({"gatewayHTTPRoute": {"labels": {"by": "route"}}});
    for issuer in
        [issuer("acme", pebble, &json!({"ingress": {}})), issuer("route", pebble, &by_route)]
    {
        let name = issuer["metadata"]["name"].as_str().unwrap();
        site.kubectl.apply(&issuer.to_string());
        site.until("Issuer", name, is_ready);
    }
    site.kubectl.apply(ASKING);
    let issued = ["shop-tls", "edge-tls", "more-tls"].map(|name| site.until_issued_at_all(name, 1));
    if issued != [1; 3] {
        return false;
    }
    // Later: which of two Certificates with a name in common has its turn first is chance.
    let second = json!({"hosts": ["second.example.test"], "secretName": "second-tls"});
    let more = json!([{"op": "add", "path": "/spec/tls/-", "value": second}]);
    site.kubectl.run(&["patch", "ingress/shop", "--type=json", "-p", &more.to_string()]);
    if site.until_issued_at_all("second-tls", 1) != 1 {
        return false;
    }
    site.until_event("BadConfig", "bad");
    let labels = json!({"metadata": {"labels": {"team": "sales"}}});
    site.kubectl.run(&["patch", "ingress/shop", "--type=merge", "-p", &labels.to_string()]);
    site.until("Certificate", "shop-tls", |one| one["metadata"]["labels"]["team"] == "sales");
    site.until("Certificate", "second-tls", |one| one["metadata"]["labels"]["team"] == "sales");
    let fewer = json!([{"op": "remove", "path": "/spec/tls/2"}]);
    site.kubectl.run(&["patch", "ingress/shop", "--type=json", "-p", &fewer.to_string()]);
    site.until_gone("Certificate", "second-tls");
    site.until_event("DeleteCertificate", "shop");
    true
}

/// What cert-manager does, in the first place in which it does not race with itself: before its cache has what it has written it
/// makes a second request for one Certificate at times.
fn theirs<'a>(both: &'a InTurn<'_>, pebble: &Pebble) -> Site<'a> {
    let mut sites = (0..4).map(|_| both.site("theirs"));
    sites.find(|site| act(site, pebble)).expect("cert-manager has raced with itself each time")
}

/// What happened there, but for chance: how often it is looked whether what is wrong still is.
fn turns(site: &Site<'_>) -> Vec<Turn> {
    let mut turns = site.all_turns();
    turns.retain(|turn| !is_told_again(turn) && !is_outrun_by_itself(turn));
    turns
}

fn is_told_again(turn: &Turn) -> bool {
    is_complaint(turn) && turn.object["count"].as_u64().unwrap_or(1) > 1
}

/// Whoever begins to work tells it anew.
fn is_complaint(turn: &Turn) -> bool {
    turn.object["reason"] == "BadConfig"
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn what_ingresses_and_gateways_ask_for_comes_to_the_same_objects_and_events() {
    let cluster: &Cluster = &arena();
    let both = InTurn::on(cluster);
    let pebble = both.pebble(None);

    let theirs = both.theirs(|| theirs(&both, &pebble));
    let theirs_did = turns(&theirs);

    let ours = both.site("ours");
    let ours_did = both.ours(|| {
        assert!(act(&ours, &pebble), "we issue each once");
        let done = |turns: &[Turn]| turns.iter().filter(|turn| !is_complaint(turn)).count();
        let after = turns(&theirs);
        assert_eq!(
            done(&after),
            done(&theirs_did),
            "finished work of cert-manager's is left alone"
        );
        let ours_did = turns(&ours);
        // cert-manager would leave it.
        ours.kubectl.run(&["annotate", "ingress/shop", "cert-manager.io/issuer-"]);
        ours.until_gone("Certificate", "shop-tls");
        ours_did
    });

    let told = (story::tell_apart(&theirs_did), story::tell_apart(&ours_did));
    let listed = [&MEMORY[..], DIFFERENCES].concat();
    report("asked for", &[("asked for", difference::compare(&told.0, &told.1, &listed))]);
}
