//! Objects that are not ours and lead to Certificates: Ingresses, Gateways, HTTPRoutes, Services, Pods and Secrets, by owner,
//! by the Secret that both name, or by what refers to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::investigator::DiagnosisTarget;
use super::path::{GATEWAYS, INGRESSES, LISTENER_SETS, PODS, ROUTES, SERVICES};
use crate::app::context::Context;
use crate::app::failure::Failure;
use crate::app::input::applying::behind;
use crate::app::input::lookup;
use crate::diagnosis::failure_kind::FailureKind;
use crate::model::closest::closest;
use crate::model::{Certificate, Issuer, Key, Kind, Metadata, ObjectName, Secret};
use crate::store::cluster::ClusterStore;
use crate::store::cluster::raw_objects::Resource;
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::manager::Manager;
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Annotations by which an Ingress or Gateway asks for a Certificate.
const ASKS: [&str; 3] =
    ["cert-manager.io/issuer", "cert-manager.io/cluster-issuer", "kubernetes.io/tls-acme"];
/// Annotation by which a Secret names its Certificate.
const CERTIFICATE: &str = "cert-manager.io/certificate-name";
/// What the kinds are, for whoever named another one.
pub(super) const KINDS: &str =
    "what leads to Certificates: ingress, gateway, listenerset, httproute, service, pod, secret";

/// A kind that is not ours, and leads to Certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelatedKind {
    Gateway,
    HttpRoute,
    Ingress,
    ListenerSet,
    Pod,
    Secret,
    Service,
}

impl RelatedKind {
    /// Reads `KIND/NAME`, as kubectl takes the words for kinds.
    pub(super) fn parse(word: &str) -> Option<(Self, String)> {
        let (kind, name) = word.split_once('/')?;
        // The group may stand behind it.
        let kind = kind.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let kind = match kind.as_str() {
            "gateway" | "gateways" | "gtw" => Self::Gateway,
            "httproute" | "httproutes" => Self::HttpRoute,
            "ingress" | "ingresses" | "ing" => Self::Ingress,
            "listenerset" | "listenersets" | "lset" => Self::ListenerSet,
            "pod" | "pods" | "po" => Self::Pod,
            "secret" | "secrets" => Self::Secret,
            "service" | "services" | "svc" => Self::Service,
            _ => return None,
        };
        (!name.is_empty() && !name.contains('/')).then(|| (kind, name.to_owned()))
    }

    /// How the API server calls it; nothing of Secrets, which every store has.
    fn resource(self) -> Option<Resource> {
        match self {
            Self::Gateway => Some(GATEWAYS),
            Self::HttpRoute => Some(ROUTES),
            Self::Ingress => Some(INGRESSES),
            Self::ListenerSet => Some(LISTENER_SETS),
            Self::Pod => Some(PODS),
            Self::Service => Some(SERVICES),
            Self::Secret => None,
        }
    }

    /// The kind as which every store has it; nothing of what only a cluster has.
    fn stored(self) -> Option<Kind> {
        match self {
            Self::Gateway => Some(Kind::Gateway),
            Self::Ingress => Some(Kind::Ingress),
            Self::ListenerSet => Some(Kind::ListenerSet),
            Self::HttpRoute | Self::Pod | Self::Secret | Self::Service => None,
        }
    }
}

/// What an object leads to.
///
/// # Errors
/// Fails when it is not there, leads nowhere, or cannot be read.
pub(super) async fn targets_of(
    (kind, name): (RelatedKind, &str),
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<Vec<DiagnosisTarget>, Failure> {
    let namespace = context.namespace();
    let certificates = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
    let certificates = certificates.list(&Scope::namespace(namespace).brief()).await?;
    let search = Search { store, namespace, certificates };
    let Some(resource) = kind.resource() else { return search.of_secret(name, context).await };
    let Some(cluster) = behind(store, context) else {
        if let Some(of) = kind.stored() {
            let key = Key::new(of, ObjectName::new(namespace, name));
            let object = lookup::read(store, &key).await?.object;
            let mut links = KnownLinks::default();
            take(kind, &object, &mut links);
            return search.conclude(resource.kind, name, &object, &links);
        }
        let message = format!("cannot diagnose {} {name}: a state folder has none", resource.kind);
        return Err(Failure::usage(message).hint("it has Certificates, and Secrets by name"));
    };
    let all = cluster.foreign(resource, namespace, Manager::Person);
    let Some(object) = all.get(name).await? else {
        let there = unless_forbidden(all.fitting("", "").await)?.unwrap_or_default();
        let names: Vec<String> = there.iter().map(|one| metadata(one).name).collect();
        return Err(absent(resource.kind, name, namespace, &names));
    };
    let mut links = KnownLinks::default();
    search.follow(kind, &object, cluster, &mut links).await?;
    search.conclude(resource.kind, name, &object, &links)
}

/// What is known to lead from an object to Certificates.
#[derive(Default)]
struct KnownLinks {
    /// UIDs of what may own Certificates.
    owners: BTreeSet<String>,
    /// Names of Secrets.
    secrets: BTreeSet<String>,
    /// What was looked at on the way, in words.
    looked_at: Vec<String>,
    /// Certificates that are known already.
    found: Vec<ObjectName>,
}

/// The Certificates among which is looked.
struct Search<'a> {
    store: &'a Arc<dyn Store>,
    namespace: &'a str,
    certificates: Vec<Certificate>,
}

impl Search<'_> {
    /// Follows what an object refers to, and what refers to it.
    async fn follow(
        &self,
        kind: RelatedKind,
        object: &Value,
        cluster: &ClusterStore,
        links: &mut KnownLinks,
    ) -> Result<(), Failure> {
        let of = metadata(object);
        links.looked_at.push("a Challenge that owns it".to_owned());
        links.found.extend(self.by_challenge(&of).await?);
        match kind {
            RelatedKind::Ingress | RelatedKind::Gateway | RelatedKind::ListenerSet => {
                take(kind, object, links);
            }
            RelatedKind::HttpRoute => {
                links.looked_at.push("the Gateways that are its parents".to_owned());
                for parent in object["spec"]["parentRefs"].as_array().into_iter().flatten() {
                    let own = parent["namespace"].as_str().is_none_or(|n| n == self.namespace);
                    let name = parent["name"].as_str().unwrap_or_default();
                    let is_gateway = parent["kind"].as_str().is_none_or(|kind| kind == "Gateway");
                    // A Certificate is in the namespace of its Gateway.
                    if own && is_gateway {
                        let all = cluster.foreign(GATEWAYS, self.namespace, Manager::Person);
                        let found = unless_forbidden(all.get(name).await)?.flatten();
                        if let Some(one) = &found {
                            take(RelatedKind::Gateway, one, links);
                        }
                    }
                }
            }
            RelatedKind::Service => {
                links.looked_at.push("the Ingresses that lead to it".to_owned());
                let all = cluster.foreign(INGRESSES, self.namespace, Manager::Person);
                let all = unless_forbidden(all.fitting("", "").await)?.unwrap_or_default();
                for ingress in all.iter().filter(|ingress| leads_to(ingress, &of.name)) {
                    take(RelatedKind::Ingress, ingress, links);
                }
            }
            RelatedKind::Pod | RelatedKind::Secret => {}
        }
        Ok(())
    }

    /// The Certificate of the Challenge that owns an object of a solver.
    async fn by_challenge(&self, of: &Metadata) -> Result<Option<ObjectName>, StoreError> {
        let Some((key, _)) = of.controller_key() else { return Ok(None) };
        let read = unless_forbidden(self.store.get(&key).await)?.flatten();
        let Some(record) = read.filter(|record| record.key.kind == Kind::Challenge) else {
            return Ok(None);
        };
        Ok(lookup::above(self.store, record, Kind::Certificate).await?.map(|key| key.name))
    }

    /// The Certificates to which the links lead, or what was looked for in vain.
    fn conclude(
        &self,
        kind: &str,
        name: &str,
        object: &Value,
        links: &KnownLinks,
    ) -> Result<Vec<DiagnosisTarget>, Failure> {
        let mut found = links.found.clone();
        for certificate in &self.certificates {
            let is_owned =
                links.owners.iter().any(|uid| certificate.metadata.is_controlled_by(uid));
            let is_named = links.secrets.contains(&certificate.spec.secret_name);
            if (is_owned || is_named) && !found.contains(&certificate.name()) {
                found.push(certificate.name());
            }
        }
        if !found.is_empty() {
            return Ok(found.into_iter().map(DiagnosisTarget::Certificate).collect());
        }
        let namespace = self.namespace;
        let mut looked_for = links.looked_at.clone();
        if !links.owners.is_empty() {
            looked_for.push("Certificates that it owns".to_owned());
        }
        if !links.secrets.is_empty() {
            let names: Vec<&str> = links.secrets.iter().map(String::as_str).collect();
            looked_for.push(format!("Certificates with the Secret {}", names.join(", ")));
        }
        let message = format!("no Certificate belongs to {kind} {namespace}/{name}");
        let failure = Failure::new(FailureKind::Unexpected, message)
            .hint(format!("looked for: {}", looked_for.join("; ")));
        let annotations = metadata(object).annotations;
        let asks = ASKS.into_iter().find(|name| annotations.contains_key(*name));
        Err(match (asks, links.secrets.is_empty()) {
            (Some(annotation), true) => failure.hint(format!(
                "its annotation {annotation} asks for one, and it names no Secret for it (spec.tls)"
            )),
            (Some(annotation), false) => failure.hint(format!(
                "its annotation {annotation} asks for one, which nobody has made yet"
            )),
            (None, _) => failure,
        })
    }

    /// What a Secret is of: the Certificate that keeps its certificate there, or an issuer whose account key it is.
    async fn of_secret(
        &self,
        name: &str,
        context: &Context,
    ) -> Result<Vec<DiagnosisTarget>, Failure> {
        let (namespace, store) = (self.namespace, self.store);
        let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
        let secret = secrets.get(&ObjectName::new(namespace, name)).await;
        let secret = unless_forbidden(secret)?;
        let annotated = secret
            .iter()
            .flatten()
            .find_map(|secret| secret.metadata.annotations.get(CERTIFICATE).cloned());
        let is_its = |certificate: &&Certificate| {
            certificate.spec.secret_name == name
                || certificate.status.next_private_key_secret_name == name
                || annotated.as_ref() == Some(&certificate.metadata.name)
        };
        let its = self.certificates.iter().filter(is_its);
        let mut found: Vec<_> = its.map(|of| DiagnosisTarget::Certificate(of.name())).collect();
        if found.is_empty() {
            found = self.issuers_with(name, context).await?;
        }
        if !found.is_empty() {
            return Ok(found);
        }
        if matches!(secret, Some(None)) {
            let names: Vec<String> =
                self.certificates.iter().map(|of| of.spec.secret_name.clone()).collect();
            return Err(absent("Secret", name, namespace, &names));
        }
        let message = format!("no Certificate belongs to Secret {namespace}/{name}");
        Err(Failure::new(FailureKind::Unexpected, message).hint(format!(
            "looked for: Certificates with it in spec.secretName or in its annotation {CERTIFICATE}; issuers whose account key it is"
        )))
    }

    /// Issuers whose account key is in that Secret.
    async fn issuers_with(
        &self,
        secret: &str,
        context: &Context,
    ) -> Result<Vec<DiagnosisTarget>, StoreError> {
        let namespace = self.namespace;
        let mut kinds = vec![(Kind::Issuer, Scope::namespace(namespace))];
        if namespace == context.global.cluster_resource_namespace {
            kinds.push((Kind::ClusterIssuer, Scope::all()));
        }
        let mut found = Vec::new();
        for (kind, scope) in kinds {
            let all = Resources::<Issuer>::new(Arc::clone(self.store), kind).list(&scope).await;
            for issuer in unless_forbidden(all)?.into_iter().flatten() {
                let acme = issuer.spec.acme.as_ref();
                if acme.is_some_and(|acme| acme.private_key_secret_ref.name == secret) {
                    found.push(DiagnosisTarget::Issuer(Key::new(kind, issuer.name())));
                }
            }
        }
        Ok(found)
    }
}

/// Takes in what an Ingress or a Gateway owns and names.
fn take(kind: RelatedKind, object: &Value, links: &mut KnownLinks) {
    links.owners.insert(metadata(object).uid);
    let names: Vec<&Value> = if kind == RelatedKind::Ingress {
        let tls = object["spec"]["tls"].as_array().into_iter().flatten();
        tls.map(|one| &one["secretName"]).collect()
    } else {
        let listeners = object["spec"]["listeners"].as_array().into_iter().flatten();
        let refs = listeners.filter_map(|one| one["tls"]["certificateRefs"].as_array());
        refs.flatten().map(|secret| &secret["name"]).collect()
    };
    links.secrets.extend(names.into_iter().filter_map(Value::as_str).map(str::to_owned));
}

/// Tells whether a rule of an Ingress leads to a Service.
fn leads_to(ingress: &Value, service: &str) -> bool {
    let rules = ingress["spec"]["rules"].as_array().into_iter().flatten();
    let paths = rules.flat_map(|rule| rule["http"]["paths"].as_array().into_iter().flatten());
    let mut backends = paths.map(|path| &path["backend"]);
    backends.any(|backend| backend["service"]["name"] == service)
        || ingress["spec"]["defaultBackend"]["service"]["name"] == service
}

fn metadata(object: &Value) -> Metadata {
    serde_json::from_value(object["metadata"].clone()).unwrap_or_default()
}

/// Says that an object is not there, and what is.
fn absent(kind: &str, name: &str, namespace: &str, there: &[String]) -> Failure {
    let message = format!("{kind} \"{name}\" not found in namespace {namespace}");
    let failure = Failure::new(FailureKind::Unexpected, message);
    match (closest(name, there.iter().map(String::as_str)), there) {
        (Some(meant), _) => failure.hint(format!("did you mean {meant}?")),
        (None, []) => failure,
        (None, there) => {
            let few: Vec<&str> = there.iter().take(10).map(String::as_str).collect();
            failure.hint(format!("there are {}", few.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_taken_as_kubectl_takes_them() {
        for (word, expected) in [
            ("ingress/shop", Some(RelatedKind::Ingress)),
            ("Ing/shop", Some(RelatedKind::Ingress)),
            ("svc/shop", Some(RelatedKind::Service)),
            ("httproutes.gateway.networking.k8s.io/shop", Some(RelatedKind::HttpRoute)),
            ("gateway.gateway.networking.k8s.io/edge", Some(RelatedKind::Gateway)),
            ("secret/tls", Some(RelatedKind::Secret)),
            ("lset/more", Some(RelatedKind::ListenerSet)),
            ("certificate/shop", None),
            ("ingress/", None),
            ("ingress/a/b", None),
            ("shop", None),
        ] {
            assert_eq!(RelatedKind::parse(word).map(|(kind, _)| kind), expected, "{word}");
        }
    }
}
