//! Finds the Certificates that belong to Ingresses, Gateways, ListenerSets, HTTPRoutes, Services, Pods and Secrets: by
//! owner, by a Secret that both name, or by objects that refer to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::investigator::DiagnosisTarget;
use super::path::{GATEWAYS, INGRESSES};
use super::related_kind::RelatedKind;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::input::applying::behind;
use crate::input::lookup;
use crate::model::text::closest;
use crate::model::{Certificate, Challenge, Issuer, Key, Kind, Metadata, ObjectName, Secret};
use crate::store::cluster::ClusterStore;
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::Resources;
use crate::store::{Manager, Scope, Store};

/// Annotations by which an Ingress or Gateway asks for a Certificate.
const ASKING_ANNOTATIONS: [&str; 3] =
    ["cert-manager.io/issuer", "cert-manager.io/cluster-issuer", "kubernetes.io/tls-acme"];
/// Annotation by which a Secret names its Certificate.
const CERTIFICATE_ANNOTATION: &str = "cert-manager.io/certificate-name";
/// Finds the Certificates or issuers that an object belongs to.
///
/// # Errors
/// Fails when the object does not exist, belongs to none, or cannot be read.
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
            search.add_links(kind, &object, &mut links);
            return search.conclude(resource.kind, name, &object, &links).await;
        }
        let message = format!(
            "cannot diagnose {} {name}: a state folder has no objects of this kind",
            resource.kind
        );
        return Err(
            Failure::usage(message).hint("name a Certificate of the folder, or secret/NAME")
        );
    };
    let all = cluster.foreign(resource, namespace, Manager::Person);
    let Some(object) = all.get(name).await? else {
        let there = unless_forbidden(all.fitting("", "").await)?.unwrap_or_default();
        let names: Vec<String> = there.iter().map(|one| metadata(one).name).collect();
        return Err(not_found(resource.kind, name, namespace, &names));
    };
    let mut links = KnownLinks::default();
    search.follow(kind, &object, cluster, &mut links).await?;
    search.conclude(resource.kind, name, &object, &links).await
}

/// Links from an object to Certificates.
#[derive(Default)]
struct KnownLinks {
    /// UIDs of objects that may own Certificates.
    owners: BTreeSet<String>,
    /// Secrets that the object names.
    secrets: BTreeSet<ObjectName>,
    /// Links that were followed, in words for the user.
    looked_at: Vec<String>,
    /// Certificates that are already known.
    found: Vec<ObjectName>,
}

/// Search among the Certificates of a namespace.
struct Search<'a> {
    store: &'a Arc<dyn Store>,
    namespace: &'a str,
    certificates: Vec<Certificate>,
}

impl Search<'_> {
    /// Follows the references of an object, and the references to it.
    async fn follow(
        &self,
        kind: RelatedKind,
        object: &Value,
        cluster: &ClusterStore,
        links: &mut KnownLinks,
    ) -> Result<(), Failure> {
        let of = metadata(object);
        links.looked_at.push("a Challenge that owns the object".to_owned());
        links.found.extend(self.by_challenge(&of).await?);
        match kind {
            RelatedKind::Ingress => self.add_links(kind, object, links),
            RelatedKind::Gateway | RelatedKind::ListenerSet => {
                self.add_links(kind, object, links);
                links.looked_at.push("Challenges that are solved through the object".to_owned());
                links.found.extend(self.solved_through(kind, &of).await?);
            }
            RelatedKind::HttpRoute => {
                links.looked_at.push("Gateways that are parents of the object".to_owned());
                for parent in object["spec"]["parentRefs"].as_array().into_iter().flatten() {
                    let own = parent["namespace"].as_str().is_none_or(|n| n == self.namespace);
                    let name = parent["name"].as_str().unwrap_or_default();
                    let is_gateway = parent["kind"].as_str().is_none_or(|kind| kind == "Gateway");
                    // A Certificate is in the namespace of its Gateway.
                    if own && is_gateway {
                        let all = cluster.foreign(GATEWAYS, self.namespace, Manager::Person);
                        let found = unless_forbidden(all.get(name).await)?.flatten();
                        if let Some(one) = &found {
                            self.add_links(RelatedKind::Gateway, one, links);
                        }
                    }
                }
            }
            RelatedKind::Service => {
                links.looked_at.push("Ingresses that lead to the object".to_owned());
                let all = cluster.foreign(INGRESSES, self.namespace, Manager::Person);
                let all = unless_forbidden(all.fitting("", "").await)?.unwrap_or_default();
                for ingress in all.iter().filter(|ingress| leads_to(ingress, &of.name)) {
                    self.add_links(RelatedKind::Ingress, ingress, links);
                }
            }
            RelatedKind::Pod | RelatedKind::Secret => {}
        }
        Ok(())
    }

    /// Adds the UID of an Ingress, a Gateway or a ListenerSet as owner, and the Secrets that the object names.
    fn add_links(&self, kind: RelatedKind, object: &Value, links: &mut KnownLinks) {
        links.owners.insert(metadata(object).uid);
        let named = |name: &Value, namespace: &Value| {
            let namespace = namespace.as_str().unwrap_or(self.namespace);
            Some(ObjectName::new(namespace, name.as_str()?))
        };
        if kind == RelatedKind::Ingress {
            let tls = object["spec"]["tls"].as_array().into_iter().flatten();
            links.secrets.extend(tls.filter_map(|one| named(&one["secretName"], &Value::Null)));
        } else {
            let listeners = object["spec"]["listeners"].as_array().into_iter().flatten();
            let refs = listeners.filter_map(|one| one["tls"]["certificateRefs"].as_array());
            let secrets = refs.flatten();
            links.secrets.extend(secrets.filter_map(|it| named(&it["name"], &it["namespace"])));
        }
    }

    /// Finds the Certificate of the Challenge that owns an object of a solver.
    async fn by_challenge(&self, of: &Metadata) -> Result<Option<ObjectName>, StoreError> {
        let Some((key, _)) = of.controller_key() else { return Ok(None) };
        let read = unless_forbidden(self.store.get(&key).await)?.flatten();
        let Some(record) = read.filter(|record| record.key.kind == Kind::Challenge) else {
            return Ok(None);
        };
        Ok(lookup::above(self.store, record, Kind::Certificate).await?.map(|key| key.name))
    }

    /// Finds the Certificates of Challenges whose routes have the Gateway or ListenerSet as parent, in every namespace
    /// that may be read.
    async fn solved_through(
        &self,
        kind: RelatedKind,
        of: &Metadata,
    ) -> Result<BTreeSet<ObjectName>, StoreError> {
        let all = Resources::<Challenge>::new(Arc::clone(self.store), Kind::Challenge);
        let challenges = match unless_forbidden(all.list(&Scope::all()).await)? {
            Some(everywhere) => everywhere,
            None => unless_forbidden(all.list(&Scope::namespace(self.namespace)).await)?
                .unwrap_or_default(),
        };
        let word = if kind == RelatedKind::Gateway { "Gateway" } else { "ListenerSet" };
        let mut found = BTreeSet::new();
        for challenge in challenges {
            let route =
                challenge.spec.solver.http01.as_ref().and_then(|it| it.gateway_http_route.as_ref());
            let mut parents = route.into_iter().flat_map(|route| &route.parent_refs);
            let leads_there = parents.any(|parent| {
                let namespace = parent.namespace.as_deref();
                let namespace = namespace.unwrap_or(&challenge.metadata.namespace);
                parent.kind.as_deref().unwrap_or("Gateway") == word
                    && parent.name == of.name
                    && namespace == of.namespace
            });
            if !leads_there {
                continue;
            }
            let key = Key::new(Kind::Challenge, challenge.name());
            let Some(record) = unless_forbidden(self.store.get(&key).await)?.flatten() else {
                continue;
            };
            let above = lookup::above(self.store, record, Kind::Certificate).await?;
            found.extend(above.map(|key| key.name));
        }
        Ok(found)
    }

    /// Lists the Certificates that may write one of the linked Secrets, or have one of the linked owners.
    async fn candidates(&self, links: &KnownLinks) -> Result<Vec<Certificate>, StoreError> {
        let mut all = self.certificates.clone();
        let namespaces: BTreeSet<&str> =
            links.secrets.iter().map(|secret| secret.namespace.as_str()).collect();
        for namespace in namespaces.into_iter().filter(|it| *it != self.namespace) {
            let certificates =
                Resources::<Certificate>::new(Arc::clone(self.store), Kind::Certificate);
            let scope = Scope::namespace(namespace).brief();
            let there = unless_forbidden(certificates.list(&scope).await)?;
            all.extend(there.unwrap_or_default());
        }
        Ok(all)
    }

    /// Returns the Certificates to which the links lead; the error lists the links that were followed in vain.
    async fn conclude(
        &self,
        kind: &str,
        name: &str,
        object: &Value,
        links: &KnownLinks,
    ) -> Result<Vec<DiagnosisTarget>, Failure> {
        let mut found = links.found.clone();
        for certificate in &self.candidates(links).await? {
            let of = &certificate.metadata;
            let is_owned = links.owners.iter().any(|uid| of.is_controlled_by(uid));
            let secret = ObjectName::new(&of.namespace, &certificate.spec.secret_name);
            let is_named = links.secrets.contains(&secret);
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
            looked_for.push("Certificates that the object owns".to_owned());
        }
        if !links.secrets.is_empty() {
            let names: Vec<String> = links.secrets.iter().map(ToString::to_string).collect();
            looked_for.push(format!("Certificates with the Secret {}", names.join(", ")));
        }
        let message = format!("no Certificate belongs to {kind} {namespace}/{name}");
        let failure = Failure::new(FailureKind::Unexpected, message)
            .hint(format!("looked for: {}", looked_for.join("; ")));
        let failure = failed_conditions(object).into_iter().fold(failure, Failure::hint);
        let annotations = metadata(object).annotations;
        let asks = ASKING_ANNOTATIONS.into_iter().find(|name| annotations.contains_key(*name));
        Err(match (asks, links.secrets.is_empty()) {
            (Some(annotation), true) => failure.hint(format!(
                "annotation {annotation} asks for a Certificate, but spec.tls names no Secret for it"
            )),
            (Some(annotation), false) => failure.hint(format!(
                "annotation {annotation} asks for a Certificate, but no controller has created it yet"
            )),
            (None, _) => failure,
        })
    }

    /// Finds the Certificate that stores its certificate in a Secret, or the issuer whose account key the Secret holds.
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
            .find_map(|secret| secret.metadata.annotations.get(CERTIFICATE_ANNOTATION).cloned());
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
            return Err(not_found("Secret", name, namespace, &names));
        }
        let message = format!("no Certificate belongs to Secret {namespace}/{name}");
        Err(Failure::new(FailureKind::Unexpected, message).hint(format!(
            "looked for: Certificates with this spec.secretName, or named by the Secret's annotation {CERTIFICATE_ANNOTATION}; issuers with this account key Secret"
        )))
    }

    /// Lists the issuers whose account key is in that Secret.
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

/// Describes the failed conditions in the status of a Gateway API object, of the whole object and of each listener.
fn failed_conditions(object: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let status = &object["status"];
    let whole = list(&status["conditions"]).into_iter().map(|one| ("the status".to_owned(), one));
    let of_listeners = list(&status["listeners"]).into_iter().flat_map(|listener| {
        let name = format!("listener {}", listener["name"].as_str().unwrap_or_default());
        list(&listener["conditions"]).into_iter().map(move |one| (name.clone(), one))
    });
    let wrong = whole.chain(of_listeners).filter(|(_, condition)| {
        let kind = condition["type"].as_str().unwrap_or_default();
        let is_good = if kind == "Conflicted" { "False" } else { "True" };
        ["Accepted", "Programmed", "ResolvedRefs", "Conflicted"].contains(&kind)
            && condition["status"].as_str().is_some_and(|status| status != is_good)
    });
    let said = wrong.map(|(whose, condition)| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        format!(
            "{whose} says {} {}: {}: {}",
            text("type"),
            text("status"),
            text("reason"),
            text("message")
        )
    });
    said.collect()
}

/// Returns whether a rule of an Ingress leads to a Service.
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

/// Builds the error for an object that does not exist; the hint names those that do.
fn not_found(kind: &str, name: &str, namespace: &str, there: &[String]) -> Failure {
    let message = format!("{kind} \"{name}\" not found in namespace {namespace}");
    let failure = Failure::new(FailureKind::Unexpected, message);
    match (closest(name, there.iter().map(String::as_str)), there) {
        (Some(meant), _) => failure.hint(format!("did you mean {meant}?")),
        (None, []) => failure,
        (None, there) => {
            let few: Vec<&str> = there.iter().take(10).map(String::as_str).collect();
            failure.hint(format!("existing names: {}", few.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_gateway_says_of_itself_is_told() {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "R", "message": "m"});
        let gateway = json!({"status": {
            "conditions": [condition("Accepted", "True"), condition("Programmed", "False")],
            "listeners": [{"name": "https", "conditions": [
                condition("ResolvedRefs", "False"), condition("Conflicted", "False"), condition("Other", "False"),
            ]}],
        }});
        assert_eq!(
            failed_conditions(&gateway),
            [
                "the status says Programmed False: R: m",
                "listener https says ResolvedRefs False: R: m"
            ]
        );
        assert!(failed_conditions(&json!({})).is_empty());
    }
}
