//! One recording played again: a namespace, a CA, and gates that spoil answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::authorities::Authorities;
use super::names::{self, Names};
use crate::support::cluster::{Cluster, Kubectl, Namespace, Objects, Witness};
use crate::support::gate::{Gate, Passage};
use crate::support::recorded::{manifest, recorded};
use crate::support::story::Turn;

/// A namespace, with all that happens in it.
pub(super) struct Site<'a> {
    pub(super) namespace: Namespace<'a>,
    pub(super) kubectl: Kubectl,
    pub(super) witness: &'a Witness,
}

impl<'a> Site<'a> {
    pub(super) fn new(cluster: &'a Cluster, witness: &'a Witness, name: &str) -> Self {
        let namespace = cluster.namespace(name);
        let kubectl = namespace.kubectl();
        Self { namespace, kubectl, witness }
    }

    /// What happened there, but for what Kubernetes itself does; whatever its name, the place is called the same.
    pub(super) fn all_turns(&self) -> Vec<Turn> {
        let here = self.namespace.name();
        let mut turns = self.witness.turns(|place, _| place == here);
        turns.retain(|turn| !is_of_kubernetes(turn));
        moved(turns, here, "here")
    }

    /// Deletes an object and does not wait until it is gone.
    pub(super) fn delete(&self, object: &str) {
        self.kubectl.run(&["delete", object, "--wait=false"]);
    }

    /// Adds a condition to those of an object, as a person with kubectl does.
    pub(super) fn add_condition(&self, kind: &str, name: &str, condition: &Value) {
        let object = self.until(kind, name, |_| true);
        let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|there| there["type"] != condition["type"]);
        conditions.push(condition.clone());
        let patch = json!({"status": {"conditions": conditions}}).to_string();
        let what = format!("{kind}/{name}");
        self.kubectl.run(&["patch", &what, "--subresource=status", "--type=merge", "-p", &patch]);
    }

    /// Waits until an object whose name begins so is as wanted, and returns it.
    pub(super) fn until(&self, kind: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let here = self.namespace.name();
        let namespace = if kind == "ClusterIssuer" { "" } else { here };
        self.witness.until(&format!("{kind} {name}"), here, |objects| {
            let mut all = objects.of(kind, namespace).into_iter();
            let is_it = |o: &&Value| o["metadata"]["name"].as_str().unwrap().starts_with(name);
            all.find(|object| is_it(object) && wanted(object)).cloned()
        })
    }

    /// Waits until no object of a kind has a name that begins so.
    pub(super) fn until_gone(&self, kind: &str, name: &str) {
        let namespace = self.namespace.name();
        self.witness.until(&format!("the end of {kind} {name}"), namespace, |objects| {
            let mut all = objects.of(kind, namespace).into_iter();
            let is_it = |o: &Value| o["metadata"]["name"].as_str().unwrap().starts_with(name);
            (!all.any(is_it)).then_some(())
        });
    }

    /// Waits until there is no object of a kind.
    pub(super) fn until_none(&self, kind: &str) {
        self.until_gone(kind, "");
    }

    /// Waits until an event was told of an object.
    pub(super) fn until_event(&self, reason: &str, about: &str) {
        let is_it = |event: &Value| {
            let name = event["involvedObject"]["name"].as_str().unwrap();
            event["reason"] == reason && name.starts_with(about)
        };
        self.until("Event", "", is_it);
    }

    /// Waits until a Certificate is issued and nothing is left of the way there.
    pub(super) fn until_issued(&self, name: &str, revision: u64) {
        let issued = self.until_issued_at_all(name, revision);
        assert_eq!(issued, revision, "{name} was issued more often than was asked for");
    }

    /// The same for the first time at least, by whoever may race with itself; returns the revision.
    pub(super) fn until_issued_at_all(&self, name: &str, revision: u64) -> u64 {
        let issued = |certificate: &Value| certificate["status"]["revision"].as_u64().unwrap_or(0);
        let certificate = self.until("Certificate", name, |certificate| {
            condition(certificate, "Issuing").is_none()
                && is_ready(certificate)
                && issued(certificate) >= revision
        });
        self.until_clean_of(name);
        issued(&certificate)
    }

    /// Waits until no challenge is at work, no key waits for its certificate, no solver Pod is there.
    pub(super) fn until_clean(&self) {
        self.until_clean_of("");
    }

    /// The same for what belongs to objects whose names begin so.
    pub(super) fn until_clean_of(&self, name: &str) {
        let namespace = self.namespace.name();
        self.witness.until(&format!("the clean-up of {name}"), namespace, |objects| {
            is_clean(objects, namespace, name).then_some(())
        });
    }
}

/// Where one recording is played.
pub(super) struct Scene<'a> {
    site: Site<'a>,
    pub(super) recorded: Vec<Turn>,
    /// What the self-checks see.
    pub(super) self_check: Gate,
    /// What the CA sees.
    pub(super) validation: Gate,
    pub(super) authorities: Authorities,
    /// The namespace of the recording.
    pub(super) place: String,
    /// Where the name server is that publishes records.
    name_server: String,
}

impl<'a> Scene<'a> {
    /// Prepares it; nothing happens yet.
    pub(super) async fn set(
        cluster: &'a Cluster,
        witness: &'a Witness,
        names: &Names,
        trace: &str,
    ) -> Self {
        let way_in = SocketAddr::from((Ipv4Addr::LOCALHOST, cluster.http_port()));
        let (self_check, validation) = (Gate::to(way_in).await, Gate::to(way_in).await);
        self_check.set(Passage::Patient);
        let place = format!("trace-{}", &trace[..2]);
        let site = Site::new(cluster, witness, &place);
        let recorded = recorded(trace);
        let authorities = Authorities::start(&recorded, validation.port, &names.resolver).await;
        let name_server = names.server.address().to_string();
        Self { site, recorded, self_check, validation, authorities, place, name_server }
    }

    /// The names that are looked at, and the port where.
    pub(super) fn hosts(&self) -> Vec<(String, u16)> {
        let mut hosts: Vec<String> = self
            .recorded
            .iter()
            .flat_map(|turn| [&turn.object["spec"]["dnsName"], &turn.object["spec"]["dnsNames"][0]])
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        hosts.sort();
        hosts.dedup();
        hosts.into_iter().map(|host| (host, self.self_check.port)).collect()
    }

    /// Applies the `generation`th state of a recorded object, as the recorded person did.
    pub(super) fn apply(&self, kind: &str, name: &str, generation: u64) {
        let mut object = manifest(&self.recorded, kind, name, generation);
        if let Some(request) = object.pointer_mut("/spec/request") {
            *request = signing_request(request.as_str().unwrap()).into();
        }
        object["metadata"].as_object_mut().unwrap().remove("namespace");
        if let Some(server) = object.pointer_mut("/spec/acme/server") {
            *server = self.authorities.address(server.as_str().unwrap()).into();
        }
        names::moved_here(&mut object, &self.name_server);
        self.kubectl.apply(&object.to_string());
    }

    /// Applies Issuer `acme` and waits until it is ready, then applies these Certificates.
    pub(super) fn begin(&self, certificates: &[&str]) {
        self.apply("Issuer", "acme", 1);
        self.until("Issuer", "acme", is_ready);
        for certificate in certificates {
            self.apply("Certificate", certificate, 1);
        }
    }

    /// What happened here, told as if it had been at the recorded place.
    pub(super) fn turns(&self) -> Vec<Turn> {
        const SOLVERS: [&str; 3] = ["Pod", "Service", "Ingress"];
        let here = self.namespace.name();
        let issuer = format!("{}-acme", self.place);
        let mut turns =
            self.witness.turns(|place, name| place == here || name.starts_with(&issuer));
        // Recording 22 has no Secrets.
        let has_secrets = self.recorded.iter().any(|turn| turn.kind == "Secret");
        let is_left_out = |kind: &str| SOLVERS.contains(&kind) || kind == "Secret" && !has_secrets;
        turns.retain(|turn| !is_left_out(turn.kind.as_str()) && !is_of_kubernetes(turn));
        if self.place == "trace-16" {
            // Whether the new Order's Challenge meets that of the old one is a race.
            turns.retain(|turn| !is_held_back(turn));
        }
        if self.place == "trace-07" {
            // Whether the request is looked at while its Issuer has no account is a race.
            turns.retain(|turn| !waits_for_issuer(turn));
        }
        let mut turns = moved(turns, here, &self.place);
        // Where a CA is stands in messages, too.
        turns = moved(turns, &self.authorities.address(""), "https://localhost:14500/dir");
        turns = moved(turns, &self.name_server, names::RECORDED);
        for turn in &mut turns {
            forget_fields(&mut turn.object);
        }
        turns
    }
}

impl<'a> Deref for Scene<'a> {
    type Target = Site<'a>;

    fn deref(&self) -> &Site<'a> {
        &self.site
    }
}

/// Whether this is a Challenge that says for which other one it waits.
fn is_held_back(turn: &Turn) -> bool {
    let reason = turn.object.pointer("/status/reason").and_then(Value::as_str);
    turn.kind == "Challenge" && reason.is_some_and(|r| r.starts_with("Waiting for challenge "))
}

/// Whether this is a request that waits for its Issuer.
fn waits_for_issuer(turn: &Turn) -> bool {
    let ready = condition(&turn.object, "Ready");
    turn.kind == "CertificateRequest"
        && ready.is_some_and(|ready| {
            ready["message"] == "Referenced issuer does not have a Ready status condition"
        })
}

/// Events of Kubernetes' own controllers, which tell of Endpoints when a Service has just gone.
fn is_of_kubernetes(turn: &Turn) -> bool {
    let source = turn.object.pointer("/source/component").and_then(Value::as_str);
    source.is_some_and(|component| !component.starts_with("cert-manager-"))
}

/// A signing request for the names of a recorded one, which is described only: `<pem:…; san=dns:a,dns:b; …>`; what is none is
/// none here, either.
fn signing_request(described: &str) -> String {
    if !described.starts_with("<pem:") {
        return described.to_owned();
    }
    if described.ends_with("; ValueError>") {
        let label = "CERTIFICATE REQUEST";
        return STANDARD
            .encode(format!("-----BEGIN {label}-----\naGVsbG8=\n-----END {label}-----\n"));
    }
    let names = described.split("dns:").skip(1);
    let names: Vec<&str> =
        names.map(|name| name.split([',', ';', '>', ' ']).next().unwrap()).collect();
    assert!(!names.is_empty(), "{described}");
    request_for(&names)
}

/// A signing request for these names, as a manifest holds it.
pub(super) fn request_for(names: &[&str]) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut wanted = rcgen::CertificateParams::new(names).unwrap();
    wanted.distinguished_name = rcgen::DistinguishedName::new();
    let request = wanted.serialize_request(&key).unwrap();
    STANDARD.encode(request.pem().unwrap())
}

/// The same in another namespace.
fn moved(mut turns: Vec<Turn>, from: &str, to: &str) -> Vec<Turn> {
    for turn in &mut turns {
        let text = turn.object.to_string().replace(from, to);
        turn.object = serde_json::from_str(&text).unwrap();
    }
    turns
}

/// Recordings say who manages, not what.
fn forget_fields(object: &mut Value) {
    let Some(Value::Array(managers)) = object.pointer_mut("/metadata/managedFields") else {
        return;
    };
    for manager in managers.iter_mut().filter_map(Value::as_object_mut) {
        manager.remove("fieldsV1");
    }
}

fn is_clean(objects: &Objects<'_>, namespace: &str, name: &str) -> bool {
    let all = |kind: &str| {
        let of_it = |object: &&Value| {
            let owner = &object["metadata"]["ownerReferences"][0]["name"];
            let own = &object["metadata"]["name"];
            [own, owner].into_iter().filter_map(Value::as_str).any(|n| n.starts_with(name))
        };
        objects.of(kind, namespace).into_iter().filter(of_it)
    };
    let waits = |secret: &Value| {
        !secret["metadata"]["labels"]["cert-manager.io/next-private-key"].is_null()
    };
    let names_key =
        |certificate: &Value| !certificate["status"]["nextPrivateKeySecretName"].is_null();
    // A Challenge that has passed stays only where its Order has failed since.
    let has_failed = |challenge: &Value| {
        let of_it = |o: &&Value| {
            o["metadata"]["name"] == challenge["metadata"]["ownerReferences"][0]["name"]
        };
        let order = objects.of("Order", namespace).into_iter().find(of_it);
        order.is_some_and(|order| order["status"]["state"] == "errored")
    };
    let at_work = |challenge: &Value| {
        challenge["status"]["state"] == "valid" && !has_failed(challenge)
            || challenge["status"]["processing"] != false
            || !challenge["metadata"]["finalizers"].is_null()
    };
    let is_solver = |pod: &Value| !pod["metadata"]["generateName"].is_null();
    !all("Secret").any(waits)
        && !all("Certificate").any(names_key)
        && !all("Challenge").any(at_work)
        && !all("Pod").any(is_solver)
}

/// The condition of a type.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == kind)
}

/// Whether condition Ready is true.
pub(super) fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|ready| ready["status"] == "True")
}
