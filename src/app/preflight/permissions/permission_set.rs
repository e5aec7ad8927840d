//! Permissions as they pile up for a task: what each sort of work needs.

use std::collections::BTreeSet;

use super::ways::Way;
use crate::model::Kind;
use crate::store::cluster::permissions::Permission;

/// What the chain below a Certificate consists of.
const CHAIN: [Kind; 3] = [Kind::CertificateRequest, Kind::Order, Kind::Challenge];
/// Solver objects.
const PODS: &str = "pods";
const SERVICES: &str = "services";
const INGRESSES: &str = "ingresses.networking.k8s.io";
const ROUTES: &str = "httproutes.gateway.networking.k8s.io";

/// Permissions as they pile up.
#[derive(Default)]
pub(super) struct PermissionSet(pub(super) BTreeSet<Permission>);

impl PermissionSet {
    pub(super) fn of_kind(&mut self, kind: Kind, namespace: &str, verbs: &[&'static str]) {
        self.0.extend(verbs.iter().map(|verb| Permission::of_kind(verb, kind, namespace)));
    }

    pub(super) fn named(&mut self, verb: &'static str, kind: Kind, namespace: &str, name: &str) {
        self.0.insert(Permission::of_kind(verb, kind, namespace).named(name));
    }

    pub(super) fn status(&mut self, kind: Kind, namespace: &str) {
        self.0.insert(Permission::of_kind("patch", kind, namespace).on_status());
    }

    /// Whoever waits for a Certificate looks at all that hangs below it; a person's wish for another try is a condition.
    pub(super) fn reading(&mut self, namespace: &str) {
        for kind in [Kind::Certificate, Kind::Issuer].into_iter().chain(CHAIN) {
            self.of_kind(kind, namespace, &["get", "list", "watch"]);
        }
        self.of_kind(Kind::Event, namespace, &["list"]);
        self.status(Kind::Certificate, namespace);
    }

    /// What the controllers do beside.
    pub(super) fn driving(&mut self, namespace: &str) {
        for kind in CHAIN {
            self.of_kind(kind, namespace, &["create", "delete"]);
            self.status(kind, namespace);
        }
        // What has been asked of the CA is kept with the Certificate.
        for kind in [Kind::Certificate, Kind::Order, Kind::Challenge] {
            self.of_kind(kind, namespace, &["patch"]);
        }
        let secrets = ["get", "list", "watch", "create", "patch", "delete"];
        self.of_kind(Kind::Secret, namespace, &secrets);
        self.of_kind(Kind::Event, namespace, &["create", "patch"]);
    }

    pub(super) fn answering(&mut self, namespace: &str, way: Way) {
        let entrance: (_, &[_]) = match way {
            Way::Ingress => (INGRESSES, &["list", "create", "delete"]),
            Way::NamedIngress => (INGRESSES, &["get", "update"]),
            Way::Route => (ROUTES, &["list", "create", "update", "delete"]),
        };
        let made: (_, &[_]) = (PODS, &["list", "create", "delete"]);
        for (resource, verbs) in [entrance, made, (SERVICES, made.1)] {
            self.0.extend(verbs.iter().map(|verb| Permission::new(verb, resource, namespace)));
        }
    }

    /// Without those on one object where the same is wanted on any.
    pub(super) fn without_repeats(self) -> BTreeSet<Permission> {
        let is_wider = |wide: &Permission, one: &Permission| {
            wide.name.is_empty()
                && (&wide.verb, wide.full_resource()) == (&one.verb, one.full_resource())
                && (wide.namespace.is_empty() || wide.namespace == one.namespace)
        };
        let repeats =
            |one: &Permission| self.0.iter().any(|wide| wide != one && is_wider(wide, one));
        self.0.iter().filter(|one| !repeats(one)).cloned().collect()
    }
}
