//! The part of a cluster that a user's Roles reach, and the requests to the server for that part.
//!
//! Commands with manifests list and watch only the namespaces of the manifests, and a ClusterIssuer by its name; above
//! eight namespaces, the whole cluster.

use std::collections::BTreeSet;

use crate::model::{Key, Kind};
use crate::store::Scope;

/// Some namespaces, and objects without a namespace by their names. Nothing beyond is listed or watched; an object that
/// is known by its name may still be read and written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Namespaces.
    pub namespaces: BTreeSet<String>,
    /// Names of ClusterIssuers.
    pub cluster_issuers: BTreeSet<String>,
}

/// Request to the server: the objects of a scope, or one object by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) scope: Scope,
    /// Name of the one object, if a Role names objects: only these may be listed and watched, one by one.
    pub(super) name: Option<String>,
}

impl Confinement {
    /// Makes the confinement to the places of some objects.
    pub fn of<'a>(keys: impl IntoIterator<Item = &'a Key>) -> Self {
        let mut confinement = Self::default();
        for Key { kind, name } in keys {
            if kind.is_namespaced() {
                confinement.namespaces.insert(name.namespace.clone());
            } else if *kind == Kind::ClusterIssuer {
                confinement.cluster_issuers.insert(name.name.clone());
            }
        }
        confinement
    }

    /// Returns whether an object is within the confinement.
    pub(super) fn holds(&self, key: &Key) -> bool {
        if key.kind.is_namespaced() {
            return self.namespaces.contains(&key.name.namespace);
        }
        key.kind == Kind::ClusterIssuer && self.cluster_issuers.contains(&key.name.name)
    }

    /// Requests to the server for a scope; empty if the server need not be asked.
    pub(super) fn reach(&self, kind: Kind, scope: &Scope) -> Vec<Reach> {
        if !kind.is_namespaced() {
            let names = self.cluster_issuers.iter().filter(|_| kind == Kind::ClusterIssuer);
            let only = |name: &String| Reach { scope: scope.clone(), name: Some(name.clone()) };
            return names.map(only).collect();
        }
        if scope.namespace.is_some() {
            return vec![Reach::all_of(scope.clone())];
        }
        let namespaces = self.namespaces.iter();
        namespaces.map(|namespace| Reach::all_of(scope.clone().within(namespace))).collect()
    }
}

impl Reach {
    /// Makes the request for all objects of a scope.
    pub(super) fn all_of(scope: Scope) -> Self {
        Self { scope, name: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests for a scope of Orders or ClusterIssuers within the namespaces `a` and `b` and the name `le`.
    fn check(kind: Kind, scope: &Scope, expected: &[&str]) {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let confinement =
            Confinement { namespaces: set(&["a", "b"]), cluster_issuers: set(&["le"]) };
        let reached = confinement.reach(kind, scope).into_iter().map(|reach| {
            format!(
                "{}/{}",
                reach.scope.namespace.unwrap_or_default(),
                reach.name.unwrap_or_default()
            )
        });
        assert_eq!(reached.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn everything_means_the_namespaces_and_the_names() {
        check(Kind::Order, &Scope::all(), &["a/", "b/"]);
        check(Kind::Order, &Scope::namespace("b"), &["b/"]);
        check(Kind::ClusterIssuer, &Scope::all(), &["/le"]);
    }

    #[test]
    fn what_is_elsewhere_is_asked_for_when_it_is_named() {
        check(Kind::Secret, &Scope::namespace("cert-manager"), &["cert-manager/"]);
    }

    #[test]
    fn it_reaches_where_the_objects_are() {
        let key = |kind, namespace: &str, name: &str| {
            Key::new(kind, crate::model::ObjectName::new(namespace, name))
        };
        let keys = [key(Kind::Certificate, "a", "web"), key(Kind::ClusterIssuer, "", "le")];
        let found = Confinement::of(&keys);
        assert_eq!((found.namespaces.len(), found.cluster_issuers.len()), (1, 1));
        assert!(keys.iter().all(|key| found.holds(key)));
        assert!(!found.holds(&key(Kind::Secret, "cert-manager", "account")));
    }
}
