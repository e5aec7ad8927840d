//! Check that names every missing permission before work starts, with the next step.
//!
//! The Roles of `deploy/rbac` say what a task needs; the API server's own review of our rules is compared with them while
//! the command finds out who drives.

mod recipes;
pub mod task;
pub mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::OnceCell;

use self::recipes::{ONE_SHOT, ORDER, RUN, Recipe};
use self::task::{Part, Places, Task};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation::{self, quoted};
use crate::model::{Key, Kind, Record};
use crate::store::Store;
use crate::store::cluster::ClusterStore;
use crate::store::cluster::permissions::{Permission, Rules};
use crate::store::local::Access;

/// Most Roles that a hint writes out; for more Roles a hint names a file.
const MAX_ROLES_IN_HINT: usize = 3;

/// Task in a cluster, and the rules that the API server grants.
#[derive(Debug, Default)]
pub struct Permissions {
    cluster: Option<ClusterStore>,
    task: Task,
    /// Whether the task is the work of `run`, which has a recipe of its own.
    is_run: bool,
    rules: OnceCell<Rules>,
}

impl Places {
    /// Returns the places that the flags name.
    pub fn of(context: &Context, answers: bool) -> Self {
        Self {
            lease: context.global.cluster.leader_election_namespace.clone(),
            cluster_resources: context.global.cluster_resource_namespace.clone(),
            answers,
            direct: BTreeSet::new(),
        }
    }
}

impl Permissions {
    /// Makes the check for a task in the cluster, if there is a cluster.
    pub fn new(context: &Context, task: Task) -> Self {
        let cluster = context.cluster().cloned();
        Self { cluster, task, is_run: false, rules: OnceCell::new() }
    }

    /// Marks the task as the work of `run`.
    #[must_use]
    pub fn of_run(self) -> Self {
        Self { is_run: true, ..self }
    }

    /// Asks the API server for the rules, so that [`check`](Self::check) need not; a caller can send other requests meanwhile.
    pub async fn prepare(&self) {
        self.rules().await;
    }

    async fn rules(&self) -> Option<&Rules> {
        let cluster = self.cluster.as_ref()?;
        let needs = self.task.needs(Part::Drive);
        let namespaces = needs.iter().map(|need| &need.namespace).filter(|name| !name.is_empty());
        let namespaces: BTreeSet<String> = namespaces.cloned().collect();
        Some(self.rules.get_or_init(|| cluster.rules(&namespaces)).await)
    }

    /// Checks that everything is permitted, before anything is written.
    ///
    /// # Errors
    /// Fails with all missing permissions, and hints.
    pub async fn check(&self, part: Part) -> Result<(), Failure> {
        let (Some(cluster), Some(rules)) = (&self.cluster, self.rules().await) else {
            return Ok(());
        };
        let lacking = cluster.lacking(&self.task.needs(part), rules).await;
        if lacking.is_empty() {
            return Ok(());
        }
        let ways: &[&Recipe] = match part {
            _ if self.is_run => &[&RUN],
            Part::Drive => &[&ONE_SHOT],
            Part::Watch => &[&ORDER, &ONE_SHOT],
        };
        // The account of an Issuer needs nothing beyond what all work in its namespace needs.
        let is_hidden = |issuer: &&Key| part == Part::Drive && issuer.kind == Kind::ClusterIssuer;
        let hidden = self.task.hidden.iter().filter(is_hidden);
        Err(hidden.fold(missing_permissions(&lacking, ways, &self.task), |failure, issuer| {
            failure.hint(format!(
                "the needs of the account of {issuer} are unknown until that issuer may be read: \
                 deploy/rbac/one-shot-clusterissuer.yaml grants them, too"
            ))
        }))
    }
}

/// Returns the store for work on objects, and the check of the permissions for it; `applied` says whether the objects are
/// written before.
///
/// # Errors
/// Fails if the store cannot be read.
pub async fn workplace(
    context: &Context,
    records: &[Record],
    applied: bool,
    places: Places,
) -> Result<(Arc<dyn Store>, Permissions), Failure> {
    let store = context.store(Access::ReadWrite).await?;
    if !store.in_cluster() {
        return Ok((store, Permissions::default()));
    }
    let task = Task::on(records, applied, &store, places).await?;
    let store = context.store_within(task.confinement(), Access::ReadWrite).await?;
    Ok((store, Permissions::new(context, task)))
}

/// Returns the failure of a first read of a namespace, or all missing permissions there if a missing permission was the cause.
pub async fn all_that_is_missing(context: &Context, failure: Failure) -> Failure {
    if failure.kind != FailureKind::Cluster {
        return failure;
    }
    let task = Task::within(context.namespace(), Places::of(context, false));
    match Permissions::new(context, task).check(Part::Watch).await {
        Ok(()) => failure,
        Err(more) => more,
    }
}

/// Checks that these permissions are granted in the cluster, if there is a cluster, before anything is written.
///
/// # Errors
/// Fails with all missing permissions, and hints.
pub async fn need(context: &Context, wanted: &BTreeSet<Permission>) -> Result<(), Failure> {
    let Some(cluster) = Permissions::new(context, Task::default()).cluster else { return Ok(()) };
    let namespaces = wanted.iter().map(|one| &one.namespace).filter(|name| !name.is_empty());
    let rules = cluster.rules(&namespaces.cloned().collect()).await;
    let lacking = cluster.lacking(wanted, &rules).await;
    if lacking.is_empty() { Ok(()) } else { Err(are_missing(&lacking)) }
}

/// Returns the failure that names missing permissions, with the commands that grant them.
pub fn are_missing(lacking: &[Permission]) -> Failure {
    missing_permissions(lacking, &[], &Task::default())
}

/// Resources with the same verbs in one place, as in one rule of a Role.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    namespace: String,
    name: String,
    verbs: Vec<&'static str>,
    resources: Vec<String>,
}

fn missing_permissions(lacking: &[Permission], ways: &[&Recipe], task: &Task) -> Failure {
    let all = rules(lacking);
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for rule in &all {
        places.entry(&rule.namespace).or_default().push(rule.to_string());
    }
    let places = places.iter().map(|(namespace, rules)| match *namespace {
        "" => format!("in the whole cluster: {}", rules.join("; ")),
        namespace => format!("in namespace {namespace}: {}", rules.join("; ")),
    });
    let places: Vec<_> = places.collect();
    let message = format!("permissions are missing, and nothing was done: {}", places.join("; "));
    let failure = Failure::new(FailureKind::Cluster, message);
    let (files, rest) = recipes::helping(ways, task, lacking);
    let is_short = all.len() <= MAX_ROLES_IN_HINT;
    let failure = commands(failure, &if is_short { all } else { rules(rest.iter().copied()) });
    let gives = match rest.is_empty() {
        true => "all that is needed",
        false if is_short => return failure,
        false => "the rest",
    };
    let files: Vec<_> = files.iter().map(|file| format!("deploy/rbac/{file}")).collect();
    match &files[..] {
        [] => failure,
        [file] => failure.hint(format!("{file} has {gives} in one file to apply")),
        files => failure.hint(format!("{} have {gives} in files to apply", files.join(" and "))),
    }
}

/// Adds the commands that make these Roles.
fn commands(failure: Failure, rules: &[Rule]) -> Failure {
    if rules.is_empty() {
        return failure;
    }
    let numbered = rules.iter().enumerate();
    let lines = numbered.flat_map(|(number, rule)| rule.commands(number + 1));
    let failure = lines.fold(failure, Failure::hint);
    let kubectl = invocation::current().kubectl_program();
    failure.hint(format!("NAME is the user who runs this: {kubectl} auth whoami"))
}

fn rules<'a>(lacking: impl IntoIterator<Item = &'a Permission>) -> Vec<Rule> {
    let mut verbs: BTreeMap<(&str, &str, String), Vec<&'static str>> = BTreeMap::new();
    for permission in lacking {
        let Permission { namespace, name, verb, .. } = permission;
        let subject = (namespace.as_str(), name.as_str(), permission.full_resource());
        verbs.entry(subject).or_default().push(verb);
    }
    let mut rules: Vec<Rule> = Vec::new();
    for ((namespace, name, resource), verbs) in verbs {
        let alike = rules.iter_mut().find(|rule| {
            (rule.namespace.as_str(), rule.name.as_str(), &rule.verbs) == (namespace, name, &verbs)
        });
        match alike {
            Some(rule) => rule.resources.push(resource),
            None => rules.push(Rule {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                verbs,
                resources: vec![resource],
            }),
        }
    }
    rules
}

impl Rule {
    /// Returns the commands that make the Role and bind it.
    fn commands(&self, number: usize) -> [String; 2] {
        let (kind, place) = match self.namespace.as_str() {
            "" => ("clusterrole", String::new()),
            namespace => ("role", format!(" --namespace {}", quoted(namespace))),
        };
        let role = format!("kubectl-acme-{number}");
        let verbs = self.verbs.join(",");
        // Resource names come from Issuers and Certificates, which another person may have written: they are quoted.
        let resources = quoted(&self.resources.join(","));
        let name = match self.name.as_str() {
            "" => String::new(),
            name => format!(" {}", quoted(&format!("--resource-name={name}"))),
        };
        // Another person grants the permission.
        let kubectl = invocation::current().kubectl_of_others();
        [
            format!(
                "{kubectl} create {kind} {role}{place} --verb={verbs} --resource={resources}{name}"
            ),
            format!("{kubectl} create {kind}binding {role}{place} --{kind}={role} --user=NAME"),
        ]
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verbs.join(", "), self.resources.join(", "))?;
        if self.name.is_empty() { Ok(()) } else { write!(f, " \"{}\"", self.name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    fn check(lacking: &[Permission], expected: &str) {
        let failure = missing_permissions(lacking, &[&ONE_SHOT], &web());
        assert_eq!(failure.kind, FailureKind::Cluster);
        let lines = [failure.message].into_iter().chain(failure.hints);
        assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected);
    }

    fn web() -> Task {
        Task::within("web", Places::default())
    }

    #[test]
    fn all_that_is_missing_is_named_with_the_commands_that_give_it() {
        let pods = ["create", "list"].map(|verb| Permission::new(verb, "pods", "web"));
        let services = ["create", "list"].map(|verb| Permission::new(verb, "services", "web"));
        let issuer = Permission::of_kind("get", Kind::ClusterIssuer, "").named("le");
        let lacking: Vec<_> = [pods, services].concat().into_iter().chain([issuer]).collect();
        check(
            &lacking,
            "permissions are missing, and nothing was done: in the whole cluster: get \
             clusterissuers.cert-manager.io \"le\"; in namespace web: create, list pods, services\n\
             kubectl create clusterrole kubectl-acme-1 --verb=get --resource=clusterissuers.cert-manager.io \
             --resource-name=le\n\
             kubectl create clusterrolebinding kubectl-acme-1 --clusterrole=kubectl-acme-1 --user=NAME\n\
             kubectl create role kubectl-acme-2 --namespace web --verb=create,list --resource=pods,services\n\
             kubectl create rolebinding kubectl-acme-2 --namespace web --role=kubectl-acme-2 --user=NAME\n\
             NAME is the user who runs this: kubectl auth whoami\n\
             deploy/rbac/one-shot.yaml and deploy/rbac/one-shot-clusterissuer.yaml have all that is needed in files \
             to apply",
        );
    }

    #[test]
    fn many_rules_stand_in_a_file() {
        let kinds = [Kind::Order, Kind::Challenge, Kind::Secret, Kind::Event];
        let verbs = ["get", "list", "watch", "create"];
        let lacking: Vec<_> = kinds
            .into_iter()
            .zip(verbs)
            .map(|(kind, verb)| Permission::of_kind(verb, kind, "web"))
            .collect();
        let failure = missing_permissions(&lacking, &[&RUN], &web());
        assert_eq!(
            failure.hints,
            ["deploy/rbac/run.yaml has all that is needed in one file to apply"]
        );
    }

    #[test]
    fn names_that_others_chose_are_one_word_for_a_shell() {
        let issuer = Permission::of_kind("get", Kind::ClusterIssuer, "").named("le;reboot;'");
        let webhook = Permission::new("create", "$(reboot).acme.example.com", "");
        let hints = missing_permissions(&[issuer, webhook], &[&ONE_SHOT], &web()).hints;
        for line in [
            "kubectl create clusterrole kubectl-acme-2 --verb=get --resource=clusterissuers.cert-manager.io \
             '--resource-name=le;reboot;'\\'''",
            "kubectl create clusterrole kubectl-acme-1 --verb=create --resource='$(reboot).acme.example.com'",
        ] {
            assert!(hints.iter().any(|hint| hint == line), "{hints:#?}");
        }
    }

    #[test]
    fn what_no_file_has_is_written_out_beside_it() {
        let kinds = [Kind::Order, Kind::Challenge, Kind::Secret, Kind::Event];
        let verbs = ["get", "list", "watch", "create"];
        let kinds = kinds.into_iter().zip(verbs);
        let lacking = kinds.map(|(kind, verb)| Permission::of_kind(verb, kind, "web"));
        let routes = Permission::new("update", "httproutes.gateway.networking.k8s.io", "web");
        let lacking: Vec<_> = lacking.chain([routes.clone()]).collect();
        assert_eq!(
            missing_permissions(&lacking, &[&ONE_SHOT], &web()).hints,
            [
                "kubectl create role kubectl-acme-1 --namespace web --verb=update \
                 --resource=httproutes.gateway.networking.k8s.io",
                "kubectl create rolebinding kubectl-acme-1 --namespace web --role=kubectl-acme-1 --user=NAME",
                "NAME is the user who runs this: kubectl auth whoami",
                "deploy/rbac/one-shot.yaml has the rest in one file to apply",
            ]
        );
        let failure = missing_permissions(&[routes], &[&ONE_SHOT], &web());
        assert!(!failure.hints.iter().any(|hint| hint.contains("deploy/rbac")), "{failure:?}");
    }
}
