//! Work that a command is about to do in a cluster, as far as known before anything is written.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::ways::{Way, way, ways};
use crate::diagnosis::case::chain::issuer_key;
use crate::model::common::is_true;
use crate::model::solver::Dns01Solver;
use crate::model::{
    Certificate, Challenge, ChallengeSolver, Issuer, Key, Kind, ObjectName, Record, own_solver,
};
use crate::objects::own_request::certificate_of;
use crate::store::cluster::Confinement;
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::typed;
use crate::store::{Scope, Store};

/// Most namespaces that are watched one by one; with more, the whole cluster is watched, as each namespace has its own watches.
const MAX_NAMESPACES: usize = 8;
/// Most Secrets that are named one by one.
const MAX_SECRETS: usize = 20;

/// Part of the work that this process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Apply and watch: another controller does the work.
    Watch,
    /// The whole work.
    Drive,
}

/// Places, as far as flags name them.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Namespace of the Lease.
    pub lease: String,
    /// Namespace of the Secrets of ClusterIssuers.
    pub cluster_resources: String,
    /// Whether challenges are answered by objects in the cluster, and not by a listener or a webroot.
    pub answers: bool,
    /// Groups of webhooks that are not called through the API server.
    pub direct: BTreeSet<String>,
}

impl Places {
    /// Names the webhooks that are called directly, at the addresses that flags give.
    #[must_use]
    pub fn with_direct(self, webhooks: &[(String, String)]) -> Self {
        Self { direct: webhooks.iter().map(|(group, _)| group.clone()).collect(), ..self }
    }
}

/// Work that a command is about to do.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Namespaces of Certificates and Issuers; an empty name stands for all.
    pub(super) namespaces: BTreeSet<String>,
    pub(super) applied: BTreeSet<Key>,
    pub(super) deleted: bool,
    /// Kinds whose annotations ask for Certificates.
    pub(super) asking: BTreeSet<Kind>,
    /// Whether all objects of the kinds that ask are watched.
    pub(super) watches_asking: bool,
    /// Secrets of Certificates.
    pub(super) secrets: BTreeSet<ObjectName>,
    pub(super) issuers: Vec<IssuerNeeds>,
    pub(super) ways: BTreeSet<(String, Way)>,
    /// Webhooks of dns01 solvers behind the API server, as resources: `solver.group`.
    pub(super) webhooks: BTreeSet<String>,
    /// Issuers that may not be read, so that what their accounts need is not known.
    pub(super) hidden: BTreeSet<Key>,
    pub(super) places: Places,
}

/// An issuer, as far as it may be read.
enum IssuerAccess {
    Here(Box<Issuer>),
    Absent,
    Hidden,
}

/// An issuer, and what work on it needs.
#[derive(Clone, Debug)]
pub(super) struct IssuerNeeds {
    pub(super) key: Key,
    /// Whether the issuer may have to be registered.
    pub(super) is_written: bool,
    /// Secrets of the issuer, if their names are known.
    pub(super) secrets: BTreeSet<String>,
}

impl Task {
    /// Describes work on Certificates and Issuers; `applied` says whether the objects are written before.
    ///
    /// # Errors
    /// Fails if an issuer cannot be read, for other reasons than a missing permission.
    pub async fn on(
        records: &[Record],
        applied: bool,
        store: &Arc<dyn Store>,
        places: Places,
    ) -> Result<Self, StoreError> {
        let mut task = Self { places, ..Self::default() };
        task.namespaces = Confinement::of(records.iter().map(|record| &record.key)).namespaces;
        if applied {
            task.applied.extend(records.iter().map(|record| record.key.clone()));
            task.asking.extend(
                task.applied.iter().map(|key| key.kind).filter(|kind| Kind::ASKING.contains(kind)),
            );
        }
        let certificates = certificates(records)?;
        let mut keys: BTreeSet<Key> = certificates.iter().filter_map(issuer_key).collect();
        let is_issuer = |key: &&Key| matches!(key.kind, Kind::Issuer | Kind::ClusterIssuer);
        keys.extend(task.applied.iter().filter(is_issuer).cloned());
        let issuers = try_join_all(keys.iter().map(|key| issuer(records, store, key))).await?;
        for (key, issuer) in keys.iter().zip(&issuers) {
            task.issuers.push(IssuerNeeds::of(key, issuer, &task.applied));
            if let IssuerAccess::Here(issuer) = issuer {
                let solvers = issuer.spec.acme.iter().flat_map(|acme| &acme.solvers);
                task.webhooks.extend(solvers.filter_map(webhook));
            }
            if let IssuerAccess::Hidden = issuer {
                task.hidden.insert(key.clone());
            }
        }
        for certificate in &certificates {
            let namespace = &certificate.metadata.namespace;
            let secret = &certificate.spec.secret_name;
            // A user with a signing request of their own has the key as well, so no Secret is written.
            if !secret.is_empty() {
                task.secrets.insert(ObjectName::new(namespace, secret));
            }
            let key = issuer_key(certificate);
            let found = keys.iter().zip(&issuers).find(|(known, _)| Some(*known) == key.as_ref());
            match found.map(|(_, issuer)| issuer) {
                Some(IssuerAccess::Here(issuer)) => {
                    task.ways.extend(ways(certificate, issuer).map(|way| (namespace.clone(), way)));
                }
                // Most solvers make an Ingress; asking for that now saves a second request for permissions.
                Some(IssuerAccess::Hidden) => {
                    task.ways.insert((namespace.clone(), Way::Ingress));
                }
                Some(IssuerAccess::Absent) | None => {}
            }
        }
        Ok(task.widen())
    }

    /// Describes work in a namespace, on objects that are not known yet.
    pub fn within(namespace: &str, places: Places) -> Self {
        Self { namespaces: [namespace.to_owned()].into(), places, ..Self::default() }
    }

    /// Describes the deletion of Orders of a namespace: their Challenges say which answers have to be taken down.
    ///
    /// # Errors
    /// Fails if Challenges cannot be read, for other reasons than a missing permission.
    pub async fn deletion(
        orders: &[String],
        namespace: &str,
        store: &Arc<dyn Store>,
        places: Places,
    ) -> Result<Self, StoreError> {
        let all =
            unless_forbidden(store.list(Kind::Challenge, &Scope::namespace(namespace)).await)?;
        let mut ways = BTreeSet::new();
        for record in all.unwrap_or_default() {
            let Ok(challenge) = typed::<Challenge>(record) else { continue };
            let is_of_it =
                challenge.metadata.owner_references.iter().any(|o| orders.contains(&o.name));
            let way = challenge.spec.solver.http01.as_ref().and_then(way).filter(|_| is_of_it);
            ways.extend(way.map(|way| (namespace.to_owned(), way)));
        }
        Ok(Self { deleted: true, ways, ..Self::within(namespace, places) })
    }

    /// Describes the work of putting up or taking down the answer of one Challenge.
    pub fn answer(challenge: &Challenge, places: Places) -> Self {
        let namespace = &challenge.metadata.namespace;
        let way = challenge.spec.solver.http01.as_ref().and_then(way);
        let ways = way.into_iter().map(|way| (namespace.clone(), way)).collect();
        let webhooks = webhook(&challenge.spec.solver).into_iter().collect();
        let mut secrets = BTreeSet::new();
        // The Secrets of an Issuer are in the Challenge's namespace, which the task names anyway.
        if challenge.spec.issuer_ref.is_cluster() {
            let of_solver =
                challenge.spec.solver.dns01.as_deref().into_iter().flat_map(Dns01Solver::secrets);
            let place = &places.cluster_resources;
            secrets.extend(of_solver.map(|secret| ObjectName::new(place, &secret.name)));
        }
        Self { secrets, ways, webhooks, ..Self::within(namespace, places) }
    }

    /// Describes work on all objects of the cluster.
    ///
    /// # Errors
    /// Fails if issuers cannot be read, for other reasons than a missing permission.
    pub async fn on_everything(
        store: &Arc<dyn Store>,
        places: Places,
        asking: &[Kind],
    ) -> Result<Self, StoreError> {
        let mut ways = BTreeSet::from([(String::new(), Way::Ingress)]);
        // Webhooks are not asked for: one Issuer with a webhook could stop the work on all other Issuers.
        for kind in [Kind::Issuer, Kind::ClusterIssuer] {
            for record in
                unless_forbidden(store.list(kind, &Scope::all()).await)?.unwrap_or_default()
            {
                // An issuer that cannot be read is not worked on.
                let Ok(issuer) = typed::<Issuer>(record) else { continue };
                let acme = issuer.spec.acme.unwrap_or_default();
                let solvers =
                    acme.solvers.iter().filter_map(|solver| way(solver.http01.as_ref()?));
                ways.extend(solvers.map(|way| (String::new(), way)));
            }
        }
        let namespaces = [String::new()].into();
        let any = |kind| Key::new(kind, ObjectName::default());
        let any = |kind| IssuerNeeds { key: any(kind), is_written: true, secrets: BTreeSet::new() };
        let issuers = vec![any(Kind::Issuer), any(Kind::ClusterIssuer)];
        let asking = asking.iter().copied().collect();
        let watches_asking = true;
        Ok(Self { namespaces, asking, watches_asking, issuers, ways, places, ..Self::default() })
    }

    /// Replaces many namespaces by the whole cluster, and many Secrets by all Secrets of the namespaces.
    fn widen(mut self) -> Self {
        if self.namespaces.len() > MAX_NAMESPACES {
            self.namespaces = [String::new()].into();
            self.ways = self.ways.into_iter().map(|(_, way)| (String::new(), way)).collect();
        }
        if self.secrets.len() > MAX_SECRETS {
            let anything = |namespace: &String| ObjectName::new(namespace, "");
            self.secrets = self.namespaces.iter().map(anything).collect();
        }
        self
    }

    /// Returns the part of the cluster in which the work is done; `None` for the whole cluster.
    pub fn confinement(&self) -> Option<Confinement> {
        if self.namespaces.contains("") {
            return None;
        }
        let issuers = self.issuers.iter().map(|account| &account.key);
        let cluster_issuers = Confinement::of(issuers).cluster_issuers;
        Some(Confinement { namespaces: self.namespaces.clone(), cluster_issuers })
    }
}

impl IssuerNeeds {
    fn of(key: &Key, issuer: &IssuerAccess, applied: &BTreeSet<Key>) -> Self {
        let issuer = if let IssuerAccess::Here(issuer) = issuer { Some(&**issuer) } else { None };
        let acme = issuer.and_then(|issuer| issuer.spec.acme.as_ref());
        let binding = acme.and_then(|acme| acme.external_account_binding.as_ref());
        let account = acme.map(|acme| &acme.private_key_secret_ref);
        let secrets = account.into_iter().chain(binding.map(|binding| &binding.key_secret_ref));
        let solvers = acme.map_or(&[][..], |acme| &acme.solvers);
        let of_solvers = solvers.iter().filter_map(|solver| solver.dns01.as_deref());
        let of_solvers = of_solvers.flat_map(Dns01Solver::secrets);
        let is_ready = issuer.is_some_and(|issuer| is_true(&issuer.status.conditions, "Ready"));
        Self {
            key: key.clone(),
            is_written: acme.is_some() && (!is_ready || applied.contains(key)),
            secrets: secrets.cloned().chain(of_solvers).map(|secret| secret.name).collect(),
        }
    }
}

/// Returns the webhook of a solver, as a resource behind the API server; `None` for our own group, which this process serves.
fn webhook(solver: &ChallengeSolver) -> Option<String> {
    let webhook = solver.dns01.as_ref()?.webhook.as_ref()?;
    if webhook.group_name == own_solver::GROUP {
        return None;
    }
    Some(format!("{}.{}", webhook.solver_name, webhook.group_name))
}

fn certificates(records: &[Record]) -> Result<Vec<Certificate>, StoreError> {
    let issued = records.iter().filter(|record| record.key.kind.is_issued());
    issued.map(certificate_of).collect()
}

/// Returns an issuer as it will be: a given manifest counts before the stored object.
async fn issuer(
    records: &[Record],
    store: &Arc<dyn Store>,
    key: &Key,
) -> Result<IssuerAccess, StoreError> {
    let given = records.iter().find(|record| record.key == *key);
    let there = match given {
        Some(record) => Some(Some(record.clone())),
        None => unless_forbidden(store.get(key).await)?,
    };
    Ok(match there {
        Some(Some(record)) => IssuerAccess::Here(Box::new(typed(record)?)),
        Some(None) => IssuerAccess::Absent,
        None => IssuerAccess::Hidden,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::store::cluster::permissions::Permission;
    use crate::store::memory::MemoryStore;

    const CERTIFICATE: &str = "certificates.cert-manager.io";

    fn record(kind: &str, name: &str, spec: &Value) -> Record {
        let namespace = if kind == "ClusterIssuer" { "" } else { "web" };
        let metadata = json!({ "namespace": namespace, "name": name });
        let object = json!({
            "apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": metadata, "spec": spec,
        });
        Record::new(object).unwrap()
    }

    /// An issuer of that kind whose only solver is this, and a Certificate.
    fn pair(kind: &str, http01: &Value) -> [Record; 2] {
        solved(kind, &json!({ "http01": http01 }))
    }

    fn solved(kind: &str, solver: &Value) -> [Record; 2] {
        let solvers = json!([solver]);
        let acme = json!({
            "server": "https://ca.example", "privateKeySecretRef": {"name": "account"}, "solvers": solvers,
        });
        let issuer = record(kind, "le", &json!({ "acme": acme }));
        let spec = json!({
            "secretName": "web-tls", "dnsNames": ["www.example.com"], "issuerRef": {"kind": kind, "name": "le"},
        });
        [issuer, record("Certificate", "web", &spec)]
    }

    /// Returns whether a permission is needed, as `verb resource "name" in namespace`.
    async fn check(records: &[Record], part: Part, needed: &[&str], not_needed: &[&str]) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let places = Places {
            lease: "kube-system".to_owned(),
            cluster_resources: "cert-manager".to_owned(),
            answers: true,
            direct: ["direct.example".to_owned()].into(),
        };
        let task = Task::on(records, true, &store, places).await.unwrap();
        let needs = task.needs(part).into_iter();
        let needs: BTreeSet<String> = needs
            .map(|need| {
                format!("{need} {}/{}", need.namespace, need.name).replace(".cert-manager.io", "")
            })
            .collect();
        for one in needed {
            assert!(needs.contains(*one), "{one} is missing in {needs:#?}");
        }
        for one in not_needed {
            assert!(!needs.contains(*one), "{one} is too much in {needs:#?}");
        }
    }

    #[tokio::test]
    async fn whoever_watches_needs_no_more_than_to_apply_and_to_look() {
        assert_eq!(Permission::of_kind("get", Kind::Certificate, "web").resource, CERTIFICATE);
        check(
            &pair("Issuer", &json!({"ingress": {}})),
            Part::Watch,
            &[
                "create certificates web/",
                "patch issuers web/",
                "get secrets web/web-tls",
                "watch orders.acme web/",
            ],
            &[
                "list secrets web/",
                "patch issuers/status web/",
                "list pods web/",
                "create events web/",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn whoever_drives_needs_what_the_solvers_make() {
        let drives = [
            "create leases.coordination.k8s.io kube-system/",
            "patch challenges.acme/status web/",
            "delete secrets web/",
            "create pods web/",
        ];
        let (ingress, route) =
            ("ingresses.networking.k8s.io", "httproutes.gateway.networking.k8s.io");
        for (http01, needed, not_needed) in [
            (
                json!({"ingress": {}}),
                format!("create {ingress} web/"),
                format!("update {ingress} web/"),
            ),
            (
                json!({"ingress": {"name": "shop"}}),
                format!("update {ingress} web/"),
                format!("create {ingress} web/"),
            ),
            (
                json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}}),
                format!("update {route} web/"),
                format!("list {ingress} web/"),
            ),
        ] {
            let needed = [&drives[..], &[&needed]].concat();
            let not_needed = [&*not_needed, "get secrets web/web-tls", "get clusterissuers /le"];
            check(&pair("Issuer", &http01), Part::Drive, &needed, &not_needed).await;
        }
    }

    #[tokio::test]
    async fn a_cluster_issuer_is_named_with_its_secret() {
        check(
            &pair("ClusterIssuer", &json!({"ingress": {}})),
            Part::Drive,
            &[
                "watch clusterissuers /le",
                "patch clusterissuers/status /le",
                "get secrets cert-manager/account",
                "create secrets cert-manager/",
                "create events default/",
            ],
            &["list clusterissuers /", "list secrets cert-manager/", "patch issuers web/"],
        )
        .await;
    }

    #[tokio::test]
    async fn what_providers_of_dns01_need_is_asked_for() {
        let tsig = json!({"dns01": {"rfc2136": {
            "nameserver": "192.0.2.53", "tsigSecretSecretRef": {"name": "tsig", "key": "secret"},
        }}});
        let secret = "get secrets cert-manager/tsig";
        check(
            &solved("ClusterIssuer", &tsig),
            Part::Drive,
            &[secret],
            &["create secrets web/tsig"],
        )
        .await;
        check(&solved("ClusterIssuer", &tsig), Part::Watch, &[], &[secret]).await;
        let webhook = json!({"dns01": {"webhook": {
            "groupName": "acme.webhook.example", "solverName": "ours",
        }}});
        let create = "create ours.acme.webhook.example /";
        check(&solved("Issuer", &webhook), Part::Drive, &[create], &[secret]).await;
        check(&solved("Issuer", &webhook), Part::Watch, &[], &[create]).await;
        let direct = json!({"dns01": {"webhook": {
            "groupName": "direct.example", "solverName": "ours",
        }}});
        check(&solved("Issuer", &direct), Part::Drive, &[], &["create ours.direct.example /"])
            .await;
        let own = json!({"dns01": {"webhook": {
            "groupName": "kubectl-acme", "solverName": "hetzner",
        }}});
        check(&solved("Issuer", &own), Part::Drive, &[], &["create hetzner.kubectl-acme /"]).await;
    }
}
