//! Roles of `deploy/rbac`: the permissions that a task needs, and the files that grant missing permissions.
//!
//! These files are part of the program and the only list of verbs on resources; this module says on which objects a task
//! needs the verbs. A hint names the fewest files that grant what is missing, or writes the rule out.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

use super::task::{Part, Task};
use super::ways::Way;
use crate::model::{Kind, ObjectName};
use crate::store::cluster::permissions::{Permission, Rule};

/// Namespaces of the recipes, which the person who applies the recipes changes: of Certificates, of the Lease, and of the
/// Secrets of ClusterIssuers.
const HOME: &str = "web";
const LEASES: &str = "kube-system";
const CLUSTER_RESOURCES: &str = "cert-manager";

/// A file of `deploy/rbac`.
#[derive(Debug)]
pub(super) struct Recipe {
    /// Name of the file.
    pub(super) file: &'static str,
    roles: LazyLock<Vec<Role>>,
}

/// Recipe for orders while another controller does the work.
pub(super) static ORDER: Recipe = Recipe {
    file: "order.yaml",
    roles: LazyLock::new(|| roles(include_str!("../../deploy/rbac/order.yaml"))),
};
/// Recipe for the work of one namespace.
pub(super) static ONE_SHOT: Recipe = Recipe {
    file: "one-shot.yaml",
    roles: LazyLock::new(|| roles(include_str!("../../deploy/rbac/one-shot.yaml"))),
};
/// Recipe for the use of a ClusterIssuer, beside another recipe.
static CLUSTER_ISSUER: Recipe = Recipe {
    file: "one-shot-clusterissuer.yaml",
    roles: LazyLock::new(|| roles(include_str!("../../deploy/rbac/one-shot-clusterissuer.yaml"))),
};
/// Recipe for the work of the whole cluster.
pub(super) static RUN: Recipe = Recipe {
    file: "run.yaml",
    roles: LazyLock::new(|| roles(include_str!("../../deploy/rbac/run.yaml"))),
};

/// Object of a recipe's file; bindings have no rules.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Role {
    kind: String,
    metadata: Metadata,
    rules: Vec<Rule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    namespace: String,
}

fn roles(text: &str) -> Vec<Role> {
    let objects = text.split("\n---\n");
    objects.filter_map(|object| serde_yaml::from_str(object).ok()).collect()
}

impl Task {
    /// Returns the permissions that a task needs: to watch, those of `order.yaml`; to drive, also those of `run.yaml` in the
    /// namespaces of the task.
    pub fn needs(&self, part: Part) -> BTreeSet<Permission> {
        let roles = [&ORDER, &RUN, &CLUSTER_ISSUER].into_iter().flat_map(|file| &*file.roles);
        let given = roles.flat_map(|role| {
            role.rules.iter().flat_map(|rule| rule.permissions(&role.metadata.namespace))
        });
        let mut needs: BTreeSet<Permission> = given
            .flat_map(|given| {
                let objects = self.objects(&given, part).into_iter();
                objects.map(move |on| Permission {
                    namespace: on.namespace,
                    name: on.name,
                    ..given.clone()
                })
            })
            .collect();
        for key in &self.applied {
            let verbs = ["create", "patch"];
            needs
                .extend(verbs.map(|verb| Permission::of_kind(verb, key.kind, &key.name.namespace)));
        }
        if part == Part::Drive {
            let is_called = |name: &&String| {
                name.split_once('.').is_some_and(|(_, group)| !self.places.direct.contains(group))
            };
            let called = self.webhooks.iter().filter(is_called);
            needs.extend(called.map(|name| Permission::new("create", name, "")));
        }
        without_repeats(&needs)
    }

    /// Returns the objects on which the work needs a permission of a recipe; an empty name stands for all of the namespace.
    fn objects(&self, given: &Permission, part: Part) -> BTreeSet<ObjectName> {
        let ways = |is_one: &dyn Fn(Way) -> bool| {
            let ways = self.ways.iter().filter(|(_, way)| self.places.answers && is_one(*way));
            any_in(ways.map(|(namespace, _)| namespace))
        };
        let of_kind = |kind| self.issuers.iter().filter(move |account| account.key.kind == kind);
        let written = |kind| of_kind(kind).filter(|account| account.is_written);
        let if_written = |place| any_in(written(Kind::ClusterIssuer).map(|_| place));
        let (plural, _) = given.parts();
        let asking = |plural: &str| {
            let is_asking = self.asking.iter().any(|kind| kind.plural() == plural);
            any_in(self.namespaces.iter().filter(|_| is_asking))
        };
        let watched = |plural| if self.watches_asking { asking(plural) } else { BTreeSet::new() };
        let cluster_resources = &self.places.cluster_resources;
        match (given.namespace.as_str(), plural, given.verb) {
            (HOME, "secrets", _) => self.secrets.clone(),
            // The kinds of applied objects are added in `needs`.
            (HOME, _, "create" | "patch") if !given.status => BTreeSet::new(),
            (HOME, ..) => any_in(&self.namespaces),
            (_, "clusterissuers", "get" | "list" | "watch") => {
                of_kind(Kind::ClusterIssuer).map(|account| account.key.name.clone()).collect()
            }
            (_, "orders", "delete") if self.deleted => any_in(&self.namespaces),
            (_, "gateways" | "ingresses" | "listenersets", "get") if part == Part::Watch => {
                asking(plural)
            }
            _ if part == Part::Watch => BTreeSet::new(),
            (_, "certificates", "create" | "update" | "delete") if self.asking.is_empty() => {
                BTreeSet::new()
            }
            (_, "gateways" | "listenersets", "get") => asking(plural),
            (_, "gateways" | "listenersets", _) => watched(plural),
            (LEASES, ..) => [ObjectName::new(&self.places.lease, &given.name)].into(),
            // Permissions on these are tried out, or only some clusters ask for them.
            (_, "leases" | "signers", _) => BTreeSet::new(),
            (CLUSTER_RESOURCES, _, "get") => {
                let secrets = of_kind(Kind::ClusterIssuer).flat_map(|account| &account.secrets);
                secrets.map(|name| ObjectName::new(cluster_resources, name)).collect()
            }
            (CLUSTER_RESOURCES, ..) => if_written(cluster_resources),
            (_, "clusterissuers", _) => {
                written(Kind::ClusterIssuer).map(|account| account.key.name.clone()).collect()
            }
            (_, "issuers", "patch") => {
                any_in(written(Kind::Issuer).map(|account| &account.key.name.namespace))
            }
            (_, "pods" | "services", _) => ways(&|_| true),
            (_, "ingresses", "get") => merge(asking(plural), ways(&|way| way == Way::NamedIngress)),
            (_, "ingresses", "update") => ways(&|way| way == Way::NamedIngress),
            (_, "ingresses", "watch") => watched(plural),
            (_, "ingresses", "list") => merge(watched(plural), ways(&|way| way == Way::Ingress)),
            (_, "ingresses", _) => ways(&|way| way == Way::Ingress),
            (_, "httproutes", _) => ways(&|way| way == Way::Route),
            ("", ..) => any_in(&self.namespaces),
            _ => if_written(&given.namespace),
        }
    }
}

fn any_in<'a>(namespaces: impl IntoIterator<Item = &'a String>) -> BTreeSet<ObjectName> {
    namespaces.into_iter().map(|namespace| ObjectName::new(namespace, "")).collect()
}

fn merge(mut one: BTreeSet<ObjectName>, other: BTreeSet<ObjectName>) -> BTreeSet<ObjectName> {
    one.extend(other);
    one
}

/// Leaves out permissions on one object if the same permission is wanted on all objects.
fn without_repeats(needs: &BTreeSet<Permission>) -> BTreeSet<Permission> {
    let is_wider = |wide: &Permission, one: &Permission| {
        wide.name.is_empty()
            && (wide.verb, wide.full_resource()) == (one.verb, one.full_resource())
            && (wide.namespace.is_empty() || wide.namespace == one.namespace)
    };
    let repeats = |one: &Permission| needs.iter().any(|wide| wide != one && is_wider(wide, one));
    needs.iter().filter(|one| !repeats(one)).cloned().collect()
}

impl Role {
    /// Returns whether the Role permits something once its names and its namespace are those of the task.
    fn permits(&self, wanted: &Permission, task: &Task) -> bool {
        self.is_for(&wanted.namespace, task)
            && self.rules.iter().any(|rule| rule.permits_once_named(wanted))
    }

    fn is_for(&self, namespace: &str, task: &Task) -> bool {
        if self.kind == "ClusterRole" {
            return true;
        }
        let place = match self.metadata.namespace.as_str() {
            HOME => return !namespace.is_empty() && task.namespaces.contains(namespace),
            LEASES => &task.places.lease,
            CLUSTER_RESOURCES => &task.places.cluster_resources,
            other => other,
        };
        place == namespace
    }
}

/// Returns the fewest files that grant most missing permissions of a task, and the permissions that none of them grants.
/// Each of the `ways` is a recipe, with the recipe for ClusterIssuers beside it if needed.
pub(super) fn helping<'a>(
    ways: &[&Recipe],
    task: &Task,
    lacking: &'a [Permission],
) -> (Vec<&'static str>, Vec<&'a Permission>) {
    let sets = ways
        .iter()
        .flat_map(|way| [vec![], vec![*way], vec![&CLUSTER_ISSUER], vec![*way, &CLUSTER_ISSUER]]);
    let helped = sets.map(|set| {
        let roles = set.iter().flat_map(|recipe: &&Recipe| &*recipe.roles);
        let is_given = |one: &Permission| roles.clone().any(|role| role.permits(one, task));
        let rest: Vec<_> = lacking.iter().filter(|one| !is_given(one)).collect();
        (set.iter().map(|recipe| recipe.file).collect(), rest)
    });
    helped.min_by_key(|(_, rest)| rest.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Challenge, Record};
    use crate::permissions::task::Places;
    use crate::store::Store;
    use crate::store::memory::MemoryStore;
    use crate::store::resources::typed;

    fn places() -> Places {
        Places {
            lease: "leases".to_owned(),
            cluster_resources: "shared".to_owned(),
            answers: true,
            ..Places::default()
        }
    }

    /// Returns the files for a user without any permission, and the permissions that the files do not grant.
    fn check(ways: &[&Recipe], task: &Task, part: Part, files: &str, rest: &[&str]) {
        let lacking: Vec<_> = task.needs(part).into_iter().collect();
        let (named, left) = helping(ways, task, &lacking);
        assert_eq!(named.join(" "), files, "{left:?}");
        assert_eq!(left.iter().map(ToString::to_string).collect::<Vec<_>>(), rest);
    }

    async fn task(store: &Arc<dyn Store>, records: &[Record], applied: bool) -> Task {
        Task::on(records, applied, store, places()).await.unwrap()
    }

    fn record(group: &str, kind: &str, spec: &Value) -> Record {
        let namespace = if kind == "ClusterIssuer" { "" } else { "shop" };
        let object = json!({
            "apiVersion": format!("{group}/v1"), "kind": kind,
            "metadata": {"namespace": namespace, "name": "one"}, "spec": spec,
        });
        Record::new(object).unwrap()
    }

    /// Returns an issuer of that kind with this solver alone, and a Certificate.
    fn pair(kind: &str, http01: &Value) -> [Record; 2] {
        let acme = json!({
            "server": "https://ca.example", "privateKeySecretRef": {"name": "account"},
            "solvers": [{"http01": http01}],
        });
        let spec = json!({
            "secretName": "tls", "dnsNames": ["www.example.com"], "issuerRef": {"kind": kind, "name": "one"},
        });
        let group = "cert-manager.io";
        [record(group, kind, &json!({"acme": acme})), record(group, "Certificate", &spec)]
    }

    fn challenge(http01: &Value) -> Record {
        let spec = json!({
            "url": "https://ca.example/chall/1", "authorizationURL": "https://ca.example/authz/1",
            "dnsName": "www.example.com", "type": "HTTP-01", "token": "token", "key": "token.thumbprint",
            "wildcard": false, "issuerRef": {"name": "one"}, "solver": {"http01": http01},
        });
        record("acme.cert-manager.io", "Challenge", &spec)
    }

    #[test]
    fn every_document_of_the_files_is_read() {
        for recipe in [&ORDER, &ONE_SHOT, &CLUSTER_ISSUER, &RUN] {
            let path = format!("{}/deploy/rbac/{}", env!("CARGO_MANIFEST_DIR"), recipe.file);
            let text = std::fs::read_to_string(path).unwrap();
            let kinds = text.lines().filter_map(|line| line.strip_prefix("kind: "));
            let read: Vec<_> = recipe.roles.iter().map(|role| role.kind.as_str()).collect();
            assert_eq!(read, kinds.collect::<Vec<_>>(), "{}", recipe.file);
        }
    }

    #[tokio::test]
    async fn every_task_has_its_file() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (watch, drive) = ([&ORDER, &ONE_SHOT], [&ONE_SHOT]);
        let ingress = json!({"ingress": {}});
        let own = task(&store, &pair("Issuer", &ingress), true).await;
        check(&watch, &own, Part::Watch, "order.yaml", &[]);
        check(&drive, &own, Part::Drive, "one-shot.yaml", &[]);

        // As for certificate renew, order retry and order resume.
        let [issuer, certificate] = pair("ClusterIssuer", &ingress);
        store.create(issuer).await.unwrap();
        let shared = task(&store, &[certificate], false).await;
        check(&watch, &shared, Part::Watch, "order.yaml one-shot-clusterissuer.yaml", &[]);
        check(&drive, &shared, Part::Drive, "one-shot.yaml one-shot-clusterissuer.yaml", &[]);

        let any = Task::within("shop", places());
        check(&watch, &any, Part::Watch, "order.yaml", &[]);
        check(&drive, &any, Part::Drive, "one-shot.yaml", &[]);

        let order = record("acme.cert-manager.io", "Order", &json!({"request": "eA=="}));
        let order = store.create(order).await.unwrap();
        let mut owned = challenge(&ingress);
        owned.object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Order", "name": "one", "uid": order.uid(),
        }]);
        store.create(owned).await.unwrap();
        let names = ["one".to_owned()];
        let deletion = Task::deletion(&names, "shop", &store, places()).await.unwrap();
        check(&watch, &deletion, Part::Watch, "one-shot.yaml", &[]);
        check(&drive, &deletion, Part::Drive, "one-shot.yaml", &[]);
        let lacking = deletion.needs(Part::Drive);
        assert!(lacking.iter().any(|one| one.resource == "pods"), "{lacking:?}");

        let answer: Challenge = typed(challenge(&ingress)).unwrap();
        check(&drive, &Task::answer(&answer, places()), Part::Drive, "one-shot.yaml", &[]);

        let everything = Task::on_everything(&store, places(), &Kind::ASKING).await.unwrap();
        check(&[&RUN], &everything, Part::Drive, "run.yaml", &[]);
    }

    #[tokio::test]
    async fn what_no_file_gives_is_left_over() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let route = json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}});
        let routes = ["create", "delete", "list", "update"];
        let routes = routes.map(|verb| format!("{verb} httproutes.gateway.networking.k8s.io"));
        let routes: Vec<_> = routes.iter().map(String::as_str).collect();
        let own = task(&store, &pair("Issuer", &route), true).await;
        check(&[&ONE_SHOT], &own, Part::Drive, "one-shot.yaml", &routes);

        let shared = task(&store, &pair("ClusterIssuer", &json!({"ingress": {}})), true).await;
        let made =
            ["create clusterissuers.cert-manager.io", "patch clusterissuers.cert-manager.io"];
        let both = "order.yaml one-shot-clusterissuer.yaml";
        check(&[&ORDER, &ONE_SHOT], &shared, Part::Watch, both, &made);
    }

    #[test]
    fn no_file_is_named_that_gives_nothing_of_what_is_missing() {
        let task = Task::within("shop", places());
        let cluster = Permission::new("create", "ours.acme.webhook.example", "");
        let elsewhere = Permission::new("list", "pods", "mail");
        let lacking = [cluster, elsewhere];
        let (files, rest) = helping(&[&ORDER, &ONE_SHOT], &task, &lacking);
        assert_eq!((files, rest.len()), (Vec::<&str>::new(), 2));
    }

    #[test]
    fn a_file_is_named_by_what_is_missing_and_not_by_the_rest() {
        let task = Task::within("shop", places());
        let secret = Permission::new("get", "secrets", "shared").named("account");
        let (files, rest) = helping(&[&ONE_SHOT], &task, std::slice::from_ref(&secret));
        assert_eq!((files, rest.len()), (vec!["one-shot-clusterissuer.yaml"], 0));
    }
}
