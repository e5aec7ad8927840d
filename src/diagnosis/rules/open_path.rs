//! Names that wait for an answer to HTTP-01 in a cluster, with the objects that were read of the path.

use crate::diagnosis::case::Case;
use crate::diagnosis::case::gateway_objects::RouteCase;
use crate::diagnosis::case::path::{ClusterPathCase, WantedPath};
use crate::diagnosis::case::path_objects::{IngressCase, PodCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, Finding, Grade, stored};
use crate::model::{Challenge, Event, Metadata};

/// Name whose answer was not seen yet.
#[derive(Clone, Copy)]
pub(super) struct OpenPath<'a> {
    pub(super) case: &'a Case,
    pub(super) path: &'a ClusterPathCase,
    pub(super) wanted: &'a WantedPath,
    /// Challenge of the name, if there is one.
    pub(super) challenge: Option<&'a Challenge>,
}

/// Returns the names that wait; a name is left out if its answer was seen at every address, since the path is well then.
pub(super) fn open_paths(case: &Case) -> Vec<OpenPath<'_>> {
    let Some(path) = &case.cluster_path else { return Vec::new() };
    let is_seen = |wanted: &&WantedPath| {
        let name = case.names.iter().find(|name| name.shown() == wanted.domain);
        name.is_some_and(|name| !name.looks.is_empty() && name.looks.iter().all(|l| l.is_answer))
    };
    let challenges = || case.certificates.iter().flat_map(|of| &of.challenges);
    let wanted = path.wanted.iter().filter(|wanted| !is_seen(wanted));
    let open = wanted.map(|wanted| OpenPath {
        case,
        path,
        wanted,
        challenge: challenges().find(|c| wanted.challenge.as_ref() == Some(&c.name())),
    });
    open.collect()
}

impl<'a> OpenPath<'a> {
    /// Builds a finding about the name.
    pub(super) fn finding(
        &self,
        cause: CauseId,
        grade: Grade,
        shown: Evidence,
        detail: impl Into<String>,
    ) -> Finding {
        let WantedPath { domain, namespace, .. } = self.wanted;
        let mut finding = Finding::new(cause, grade, domain, shown)
            .with("DOMAIN", domain)
            .with("NAMESPACE", namespace)
            .with("DETAIL", detail);
        if let Some(challenge) = self.challenge {
            finding = finding.with("CHALLENGE", &challenge.metadata.name);
            if let Some(order) = challenge.metadata.controller() {
                finding = finding.with("ORDER", &order.name);
            }
        }
        finding
    }

    /// Builds evidence from data of the cluster.
    pub(super) fn stored(&self, asked: impl Into<String>, came: impl Into<String>) -> Evidence {
        stored(asked, self.case.at, came)
    }

    /// Returns the Challenge, if its answer has to be up at this moment.
    pub(super) fn presented(&self) -> Option<&'a Challenge> {
        let is_up = |c: &&Challenge| self.path.challenges.get(&c.metadata.uid) == Some(&true);
        self.challenge.filter(is_up)
    }

    /// Returns the object among `all` that the Challenge controls and that is not being deleted.
    pub(super) fn own<T>(&self, all: &'a [T], metadata: impl Fn(&T) -> &Metadata) -> Option<&'a T> {
        let uid = &self.challenge?.metadata.uid;
        all.iter().find(|one| {
            let of = metadata(one);
            of.is_controlled_by(uid) && !of.is_deleted()
        })
    }

    /// Returns the solver's Pod.
    pub(super) fn pod(&self) -> Option<&'a PodCase> {
        self.own(&self.path.pods, |pod| &pod.metadata)
    }

    /// Returns the solver's HTTPRoute.
    pub(super) fn route(&self) -> Option<&'a RouteCase> {
        self.own(&self.path.routes, |route| &route.metadata)
    }

    /// Returns the Ingress that leads to the solver: the solver's own, or the Ingress that the solver edits.
    pub(super) fn ingress(&self) -> Option<&'a IngressCase> {
        let edited = self.edited_ingress();
        let Some(edited) = edited else {
            return self.own(&self.path.ingresses, |ingress| &ingress.metadata);
        };
        self.path.ingresses.iter().find(|ingress| {
            let of = &ingress.metadata;
            of.namespace == self.wanted.namespace && of.name == edited
        })
    }

    /// Returns the name of the Ingress that the solver edits, if the solver makes none.
    pub(super) fn edited_ingress(&self) -> Option<&'a str> {
        let ingress = self.wanted.solver.ingress.as_ref()?;
        Some(ingress.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns the Warning Events about an object.
    pub(super) fn warnings(&self, of: &'a Metadata) -> impl Iterator<Item = &'a Event> {
        let is_about = move |event: &&Event| event.involved_object.uid == of.uid;
        self.path.warnings.iter().filter(is_about)
    }
}

/// Returns an object as messages name it.
pub(super) fn named(kind: &str, metadata: &Metadata) -> String {
    format!("{kind} {}/{}", metadata.namespace, metadata.name)
}

/// A case with one name that waits for a solver, and the solver's objects.
#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
pub(super) mod testing {
    use serde_json::{Value, json};

    use crate::diagnosis::case::Case;
    use crate::diagnosis::case::path::{ClusterPathCase, WantedPath};
    use crate::diagnosis::rules::tests::with;
    use crate::model::{Challenge, ObjectName};

    /// UID of the Challenge.
    const UID: &str = "challenge";

    /// Metadata of an object that is the Challenge's, ten minutes old.
    pub(in crate::diagnosis::rules) fn own(name: &str, more: Value) -> Value {
        let mut metadata = json!({
            "namespace": "web", "name": name, "uid": name, "creationTimestamp": "2026-11-24T21:50:00Z",
            "labels": {"acme.cert-manager.io/http01-solver": "true", "acme.cert-manager.io/http-token": "1"},
            "ownerReferences": [{
                "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge", "name": "www-1", "uid": UID,
                "controller": true,
            }],
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            metadata[name] = value.clone();
        }
        metadata
    }

    /// An object that a rule reads.
    pub(in crate::diagnosis::rules) fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    /// Builds a Challenge `web/www-1` whose answer is up, by an Ingress or by an HTTPRoute; every kind was listed, and Pod,
    /// Service and Ingress are well.
    pub(in crate::diagnosis::rules) fn path_with(
        http01: Value,
        change: impl FnOnce(&mut Case, &mut ClusterPathCase),
    ) -> Case {
        let challenge: Challenge = object(json!({
            "metadata": {"namespace": "web", "name": "www-1", "uid": UID},
            "spec": {
                "dnsName": "www.example.com", "type": "HTTP-01", "token": "t", "key": "t.k",
                "issuerRef": {"name": "acme"}, "solver": {"http01": http01}, "url": "", "authorizationURL": "",
            },
            "status": {"presented": true, "processing": true},
        }));
        let by_route = http01.get("gatewayHTTPRoute").is_some();
        let mut path = ClusterPathCase {
            wanted: vec![WantedPath {
                domain: "www.example.com".into(),
                namespace: "web".into(),
                challenge: Some(ObjectName::new("web", "www-1")),
                solver: object(http01),
            }],
            has_gateway_api: Some(true),
            challenges: [(UID.to_owned(), true)].into(),
            ..ClusterPathCase::default()
        };
        for plural in ["pods", "services", "endpointslices", "httproutes", "challenges"] {
            path.note(plural, "web");
        }
        path.note("ingresses", "");
        path.note("ingressclasses", "");
        path.classes = vec![object(json!({"metadata": {"name": "edge"}}))];
        path.pods = vec![object(json!({
            "metadata": own("pod", json!({})),
            "spec": {"containers": [{"name": "acmesolver", "image": "solver:v1"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }))];
        path.services = vec![object(json!({
            "metadata": own("service", json!({})),
            "spec": {"type": "NodePort", "selector": {"acme.cert-manager.io/http-token": "1"}},
        }))];
        let label = json!({"labels": {"kubernetes.io/service-name": "service"}});
        path.endpoints = vec![object(json!({
            "metadata": own("slice", label), "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}],
        }))];
        if by_route {
            path.routes = vec![object(json!({
                "metadata": own("route", json!({})), "spec": {"hostnames": ["www.example.com"]},
            }))];
        } else {
            path.ingresses = vec![object(json!({
                "metadata": own("ingress", json!({})),
                "spec": {
                    "ingressClassName": "edge",
                    "rules": [{"host": "www.example.com", "http": {"paths": [{"path": "/x/t", "pathType": "Exact"}]}}],
                },
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
            }))];
        }
        with(|case| {
            case.in_cluster = true;
            case.certificates[0].challenges = vec![challenge];
            change(case, &mut path);
            case.cluster_path = Some(path);
        })
    }
}
