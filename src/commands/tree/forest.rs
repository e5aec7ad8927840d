//! Trees of objects with their states: Certificate, CertificateRequest, Order, Challenge, and the objects that a solver has
//! made in a cluster, if these may be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::context::failure::Failure;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::verdict::awaited::narrow;
use crate::diagnosis::verdict::node_state::NodeState;
use crate::input::lookup;
use crate::model::{
    Certificate, CertificateRequest, Challenge, Issuer, Key, Kind, ObjectName, Order, Record, Time,
};
use crate::objects::chain;
use crate::print::tree::TreeRow;
use crate::solvers::http01::cluster::names::is_for;
use crate::solvers::http01::cluster::objects::{SOLVER_LABEL, SOLVER_RESOURCES};
use crate::store::cluster::ClusterStore;
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::typed;
use crate::store::{Manager, Scope, Store};

/// An object with the objects below it.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeNode {
    kind: String,
    name: ObjectName,
    /// Domain of a Challenge.
    domain: Option<String>,
    state: NodeState,
    created: Option<Time>,
    below: Vec<Self>,
}

/// Reads trees of objects. Objects of solvers are listed once for each namespace.
#[derive(Debug)]
pub struct TreeReader<'a> {
    store: &'a Arc<dyn Store>,
    /// Cluster in which solvers make objects; `None` for a local store.
    cluster: Option<&'a ClusterStore>,
    solved: BTreeMap<String, Vec<Value>>,
    unread: BTreeSet<UnreadPart>,
}

/// Kind of objects in a namespace that may not be read, and so are in no tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnreadPart {
    /// Namespace.
    namespace: String,
    /// Plural and group, as a Role names them.
    resource: String,
}

/// Trees, with the kinds of objects that may not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forest {
    /// Trees.
    pub trees: Vec<TreeNode>,
    /// Kinds of objects that are missing in the trees, by namespace.
    pub unread: BTreeSet<UnreadPart>,
}

impl Forest {
    /// Lines about the missing kinds, one for each namespace.
    pub fn unread_lines(&self) -> Vec<String> {
        let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for part in &self.unread {
            places.entry(&part.namespace).or_default().push(&part.resource);
        }
        let line = |(namespace, resources): (&str, Vec<&str>)| {
            let resources = resources.join(", ");
            format!("no permission to list in namespace {namespace}, so not shown: {resources}")
        };
        places.into_iter().map(line).collect()
    }
}

impl<'a> TreeReader<'a> {
    /// Builds a reader of trees of a store.
    pub fn new(store: &'a Arc<dyn Store>, cluster: Option<&'a ClusterStore>) -> Self {
        Self { store, cluster, solved: BTreeMap::new(), unread: BTreeSet::new() }
    }

    /// Reads the tree below an object, which must exist.
    ///
    /// # Errors
    /// Fails when the object is not found, or the store fails.
    pub async fn tree(&mut self, root: &Key) -> Result<TreeNode, Failure> {
        let record = lookup::read(self.store, root).await?;
        Ok(self.node(record).await?)
    }

    /// Returns the trees, with the kinds of objects that were missing in them.
    pub fn forest(self, trees: Vec<TreeNode>) -> Forest {
        Forest { trees, unread: self.unread }
    }

    /// Unwraps a list; a forbidden list is recorded as unread, and empty.
    fn unwrap_list<T>(
        &mut self,
        listed: Result<Vec<T>, StoreError>,
        (namespace, resource): (&str, String),
    ) -> Result<Vec<T>, StoreError> {
        let listed = unless_forbidden(listed)?;
        if listed.is_none() {
            self.unread.insert(UnreadPart { namespace: namespace.to_owned(), resource });
        }
        Ok(listed.unwrap_or_default())
    }

    async fn node(&mut self, record: Record) -> Result<TreeNode, StoreError> {
        let below = self.below(&record).await?;
        let (kind, name) = (record.key.kind.as_str().to_owned(), record.key.name.clone());
        let created = record.metadata().creation_timestamp;
        let mut node = TreeNode {
            kind,
            name,
            domain: None,
            state: NodeState::default(),
            created,
            below: Vec::new(),
        };
        match record.key.kind {
            Kind::Certificate => {
                // A forbidden kind is recorded when it is listed.
                let chain = unless_forbidden(chain::read(self.store, &record.key.name).await)?;
                let chain = match chain {
                    Some(chain) => chain,
                    None => Some(self.bare(typed(record)?)),
                };
                if let Some(mut chain) = chain {
                    let key = Key::new(Kind::Certificate, node.name.clone());
                    narrow(&mut chain, &key);
                    node.state = NodeState::of_certificate(&chain);
                }
            }
            Kind::CertificateRequest => {
                let request: CertificateRequest = typed(record)?;
                let order = below.first().cloned().map(typed::<Order>).transpose()?;
                node.state = NodeState::of_request(&request, order.as_ref());
            }
            Kind::Order => {
                let order: Order = typed(record)?;
                let challenges = below.iter().cloned().map(typed::<Challenge>);
                let challenges = challenges.collect::<Result<Vec<_>, _>>()?;
                let all: Vec<&Challenge> = challenges.iter().collect();
                node.state = NodeState::of_order(&order, &all);
            }
            Kind::Challenge => {
                let challenge: Challenge = typed(record)?;
                node.domain = Some(challenge.spec.shown_domain());
                node.state = NodeState::of_challenge(&challenge);
                node.below = self.solver_objects(&challenge).await?;
            }
            Kind::Issuer | Kind::ClusterIssuer => {
                node.state = NodeState::of_issuer(&typed::<Issuer>(record)?);
            }
            Kind::Event | Kind::Gateway | Kind::Ingress | Kind::ListenerSet | Kind::Secret => {}
        }
        for record in below {
            node.below.push(Box::pin(self.node(record)).await?);
        }
        Ok(node)
    }

    /// Lists the objects of the next kind that belong to an object, oldest first.
    async fn below(&mut self, record: &Record) -> Result<Vec<Record>, StoreError> {
        let next = match record.key.kind {
            Kind::Certificate => Kind::CertificateRequest,
            Kind::CertificateRequest => Kind::Order,
            Kind::Order => Kind::Challenge,
            Kind::Gateway | Kind::Ingress | Kind::ListenerSet => Kind::Certificate,
            Kind::Challenge | Kind::Issuer | Kind::ClusterIssuer | Kind::Event | Kind::Secret => {
                return Ok(Vec::new());
            }
        };
        let namespace = &record.key.name.namespace;
        let scope = Scope::owned_by(namespace, record.uid()).brief();
        let listed = self.store.list(next, &scope).await;
        let resource = format!("{}.{}", next.plural(), next.group());
        let mut below = self.unwrap_list(listed, (namespace, resource))?;
        below.sort_by_key(|it| (it.metadata().creation_timestamp, it.key.name.name.clone()));
        Ok(below)
    }

    /// Chain of a Certificate of which nothing else may be read.
    fn bare(&self, certificate: Certificate) -> Chain {
        let (requests, orders, challenges) = Default::default();
        let in_cluster = self.store.in_cluster();
        Chain { certificate, requests, orders, challenges, issuer: None, in_cluster }
    }

    /// Objects that a solver has made for a Challenge; empty if they may not be read.
    async fn solver_objects(&mut self, challenge: &Challenge) -> Result<Vec<TreeNode>, StoreError> {
        let Some(cluster) = self.cluster else { return Ok(Vec::new()) };
        let namespace = &challenge.metadata.namespace;
        if !self.solved.contains_key(namespace) {
            let mut all = Vec::new();
            for resource in SOLVER_RESOURCES {
                let foreign = cluster.foreign(resource, namespace, Manager::Person);
                let listed = foreign
                    .list(&[SOLVER_LABEL.map(str::to_owned)].map(|[name, value]| (name, value)))
                    .await;
                let named = |mut object: Value| {
                    object["kind"] = resource.kind.into();
                    object
                };
                let listed = match listed {
                    // The cluster may have no Gateway API.
                    Err(StoreError::Cluster(fault)) if fault.is_undefined() => Vec::new(),
                    listed => self.unwrap_list(listed, (namespace, resource.plural.to_owned()))?,
                };
                all.extend(listed.into_iter().map(named));
            }
            self.solved.insert(namespace.clone(), all);
        }
        let all = self.solved.get(namespace).into_iter().flatten();
        Ok(all.filter(|object| is_for(object, challenge)).map(solver_node).collect())
    }
}

/// Node of an object that a solver has made.
fn solver_node(object: &Value) -> TreeNode {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/kind").to_owned();
    let (state, waits_for) = match kind.as_str() {
        "Pod" => {
            let waiting = text("/status/containerStatuses/0/state/waiting/reason");
            let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
            let unscheduled = conditions
                .into_iter()
                .flatten()
                .find(|it| it["type"] == "PodScheduled" && it["status"] == "False");
            let why = unscheduled.and_then(|it| it["message"].as_str()).unwrap_or(waiting);
            (text("/status/phase").to_lowercase(), why.to_owned())
        }
        "Ingress" => {
            let has_address = object.pointer("/status/loadBalancer/ingress/0").is_some();
            (String::new(), if has_address { "" } else { "an address" }.to_owned())
        }
        _ => (String::new(), String::new()),
    };
    TreeNode {
        kind,
        name: ObjectName::new(text("/metadata/namespace"), text("/metadata/name")),
        domain: None,
        state: NodeState { state, waits_for, in_short: None },
        created: text("/metadata/creationTimestamp").parse().ok().map(Time::new),
        below: Vec::new(),
    }
}

/// Rows of trees, each branch below its stem.
pub fn rows(trees: &[TreeNode]) -> Vec<TreeRow> {
    fn add(node: &TreeNode, (own, below): (&str, &str), rows: &mut Vec<TreeRow>) {
        let domain = node.domain.as_ref().map(|domain| format!(" ({domain})"));
        rows.push(TreeRow {
            namespace: node.name.namespace.clone(),
            name: format!("{own}{}/{}{}", node.kind, node.name.name, domain.unwrap_or_default()),
            state: node.state.state.clone(),
            waits_for: node.state.waits_for.clone(),
            in_short: node.state.shortly().to_owned(),
            created: node.created,
        });
        for (index, child) in node.below.iter().enumerate() {
            let is_last = index + 1 == node.below.len();
            let (branch, stem) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
            add(child, (&format!("{below}{branch}"), &format!("{below}{stem}")), rows);
        }
    }
    let mut rows = Vec::new();
    for tree in trees {
        add(tree, ("", ""), &mut rows);
    }
    rows
}

/// Trees as a report for programs: every object in the order of the rows, each with its owner.
pub fn report(forest: &Forest) -> Value {
    fn add(node: &TreeNode, owner: Option<&TreeNode>, objects: &mut Vec<Value>) {
        let mut object = json!({
            "kind": node.kind,
            "namespace": node.name.namespace,
            "name": node.name.name,
            "state": node.state.state,
        });
        if !node.state.waits_for.is_empty() {
            object["waitsFor"] = json!(node.state.waits_for);
        }
        if let Some(domain) = &node.domain {
            object["domain"] = json!(domain);
        }
        if let Some(created) = node.created {
            object["created"] = json!(created);
        }
        if let Some(owner) = owner {
            object["owner"] = json!({"kind": owner.kind, "name": owner.name.name});
        }
        objects.push(object);
        for child in &node.below {
            add(child, Some(node), objects);
        }
    }
    let mut objects = Vec::new();
    for tree in &forest.trees {
        add(tree, None, &mut objects);
    }
    let mut report =
        json!({"apiVersion": "kubectl-acme/v1alpha1", "kind": "ObjectTree", "objects": objects});
    if !forest.unread.is_empty() {
        let unread = forest.unread.iter();
        let unread =
            unread.map(|part| json!({"namespace": part.namespace, "resource": part.resource}));
        report["unread"] = unread.collect();
    }
    report
}
