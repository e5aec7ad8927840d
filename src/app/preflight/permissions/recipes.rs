//! The Roles of `deploy/rbac`: which of its files give what is missing.
//!
//! These files are part of the program: a hint names the fewest of them that give what is missing, or writes the rule
//! out.

use serde::Deserialize;

use super::needs::Task;
use crate::store::cluster::permissions::{Permission, Rule};

/// The namespaces of the recipes, which whoever applies them changes: where Certificates are, the Lease, and the Secrets of
/// ClusterIssuers.
const HOME: &str = "web";
const LEASES: &str = "kube-system";
const CLUSTER_RESOURCES: &str = "cert-manager";

/// A file of `deploy/rbac`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    /// Name of the file.
    pub(super) file: &'static str,
    text: &'static str,
}

/// To order where somebody else does the work.
pub(super) const ORDER: Recipe =
    Recipe { file: "order.yaml", text: include_str!("../../../../deploy/rbac/order.yaml") };
/// To do the work of one namespace.
pub(super) const ONE_SHOT: Recipe =
    Recipe { file: "one-shot.yaml", text: include_str!("../../../../deploy/rbac/one-shot.yaml") };
/// To use a ClusterIssuer, beside another one.
pub(super) const CLUSTER_ISSUER: Recipe = Recipe {
    file: "one-shot-clusterissuer.yaml",
    text: include_str!("../../../../deploy/rbac/one-shot-clusterissuer.yaml"),
};
/// To do the work of the whole cluster.
pub(super) const RUN: Recipe =
    Recipe { file: "run.yaml", text: include_str!("../../../../deploy/rbac/run.yaml") };

/// Objects of such a file; bindings have no rules.
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

impl Recipe {
    fn roles(self) -> Vec<Role> {
        let objects = self.text.split("\n---\n");
        objects.filter_map(|object| serde_yaml::from_str(object).ok()).collect()
    }
}

impl Role {
    /// Whether it permits something once its names and its namespace are those of the task.
    fn permits(&self, wanted: &Permission, task: &Task) -> bool {
        self.is_for(&wanted.namespace, task)
            && self.rules.iter().any(|rule| rule.permits_once_named(wanted))
    }

    fn is_for(&self, namespace: &str, task: &Task) -> bool {
        if self.kind == "ClusterRole" {
            return true;
        }
        let place = match self.metadata.namespace.as_str() {
            HOME => return !namespace.is_empty() && task.namespaces().contains(namespace),
            LEASES => &task.places().lease,
            CLUSTER_RESOURCES => &task.places().cluster_resources,
            other => other,
        };
        place == namespace
    }
}

/// The files that give most of what is missing for a task, as few as possible, and what none of them gives; every one of
/// the ways to go is a recipe and, where need be, that for ClusterIssuers beside it.
pub(super) fn helping<'a>(
    ways: &[Recipe],
    task: &Task,
    lacking: &'a [Permission],
) -> (Vec<&'static str>, Vec<&'a Permission>) {
    let sets = ways
        .iter()
        .flat_map(|way| [vec![], vec![*way], vec![CLUSTER_ISSUER], vec![*way, CLUSTER_ISSUER]]);
    let helped = sets.map(|set| {
        let roles: Vec<Role> = set.iter().flat_map(|recipe| recipe.roles()).collect();
        let is_given = |one: &Permission| roles.iter().any(|role| role.permits(one, task));
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
    use crate::app::preflight::permissions::needs::{Part, Places};
    use crate::model::{Challenge, Record};
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

    /// The files for whoever may do nothing yet, and what they do not give.
    fn check(ways: &[Recipe], task: &Task, part: Part, files: &str, rest: &[&str]) {
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

    /// An issuer of that kind whose only solver is this, and a Certificate.
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

    #[tokio::test]
    async fn every_task_has_its_file() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (watch, drive) = ([ORDER, ONE_SHOT], [ONE_SHOT]);
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

        let everything = Task::on_everything(&store, places()).await.unwrap();
        check(&[RUN], &everything, Part::Drive, "run.yaml", &[]);
    }

    #[tokio::test]
    async fn what_no_file_gives_is_left_over() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let route = json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}});
        let routes = ["create", "delete", "list", "update"];
        let routes = routes.map(|verb| format!("{verb} httproutes.gateway.networking.k8s.io"));
        let routes: Vec<_> = routes.iter().map(String::as_str).collect();
        let own = task(&store, &pair("Issuer", &route), true).await;
        check(&[ONE_SHOT], &own, Part::Drive, "one-shot.yaml", &routes);

        let shared = task(&store, &pair("ClusterIssuer", &json!({"ingress": {}})), true).await;
        let made =
            ["create clusterissuers.cert-manager.io", "patch clusterissuers.cert-manager.io"];
        let both = "order.yaml one-shot-clusterissuer.yaml";
        check(&[ORDER, ONE_SHOT], &shared, Part::Watch, both, &made);
    }

    #[test]
    fn no_file_is_named_that_gives_nothing_of_what_is_missing() {
        let task = Task::within("shop", places());
        let cluster = Permission::new("create", "ours.acme.webhook.example", "");
        let elsewhere = Permission::new("list", "pods", "mail");
        let lacking = [cluster, elsewhere];
        let (files, rest) = helping(&[ORDER, ONE_SHOT], &task, &lacking);
        assert_eq!((files, rest.len()), (Vec::<&str>::new(), 2));
    }

    #[test]
    fn a_file_is_named_by_what_is_missing_and_not_by_the_rest() {
        let task = Task::within("shop", places());
        let secret = Permission::new("get", "secrets", "shared").named("account");
        let (files, rest) = helping(&[ONE_SHOT], &task, std::slice::from_ref(&secret));
        assert_eq!((files, rest.len()), (vec!["one-shot-clusterissuer.yaml"], 0));
    }
}
