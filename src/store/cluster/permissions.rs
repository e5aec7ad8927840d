//! Our permissions in a cluster, checked before the work. A check without an answer stops nothing: the work itself then
//! shows the missing permission.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ClusterStore;
use super::access_request::AccessRequest;
use super::wire::Call;
use crate::model::{Key, Kind, ObjectName};

/// Most reviews that are requested side by side.
const SIDE_BY_SIDE: usize = 16;

/// One action that a Role may permit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// Namespace; empty for all namespaces, and for objects without one.
    pub namespace: String,
    /// Plural and group, as in `ingresses.networking.k8s.io`.
    pub resource: String,
    /// Whether the permission is about the status, which a Role names apart.
    pub status: bool,
    /// Name of the only object that the permission is about; empty for any object.
    pub name: String,
    /// Verb of a Role.
    pub verb: &'static str,
}

impl Permission {
    /// Makes the permission for the objects of a resource, named as in a Role.
    pub fn new(verb: &'static str, resource: impl Into<String>, namespace: &str) -> Self {
        let (name, status) = (String::new(), false);
        Self { namespace: namespace.to_owned(), resource: resource.into(), status, name, verb }
    }

    /// Makes the permission for the objects of a kind of ours.
    pub fn of_kind(verb: &'static str, kind: Kind, namespace: &str) -> Self {
        let resource = full_resource(&kind.plural(), kind.group());
        Self::new(verb, resource, if kind.is_namespaced() { namespace } else { "" })
    }

    /// Makes the permission for one object.
    pub fn on(verb: &'static str, key: &Key) -> Self {
        Self::of_kind(verb, key.kind, &key.name.namespace).named(&key.name.name)
    }

    /// Limits the permission to the object of that name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Changes the permission to the status.
    #[must_use]
    pub fn on_status(self) -> Self {
        Self { status: true, ..self }
    }

    /// The resource as `kubectl create role --resource` takes it.
    pub fn full_resource(&self) -> String {
        format!("{}{}", self.resource, if self.status { "/status" } else { "" })
    }

    /// Plural and group of the resource.
    pub fn parts(&self) -> (&str, &str) {
        self.resource.split_once('.').unwrap_or((&self.resource, ""))
    }

    fn attributes(&self) -> Value {
        let (plural, group) = self.parts();
        let mut attributes = json!({
            "namespace": self.namespace, "verb": self.verb, "group": group, "resource": plural, "name": self.name,
        });
        if self.status {
            attributes["subresource"] = "status".into();
        }
        attributes
    }
}

fn full_resource(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.full_resource())
    }
}

/// Rules for us in some namespaces, as the server reports them.
#[derive(Clone, Debug, Default)]
pub struct Rules(BTreeMap<String, RulesReview>);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RulesReview {
    resource_rules: Vec<Rule>,
    /// Whether there may be more rules.
    incomplete: bool,
}

/// One rule of a Role.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

impl Rule {
    /// Lists the rule's permissions one by one, with the first of its names; only the status counts as subresource.
    pub fn permissions(&'static self, namespace: &str) -> Vec<Permission> {
        let name = self.resource_names.first().map_or("", String::as_str);
        let group = self.api_groups.first().map_or("", String::as_str);
        let mut permissions = Vec::new();
        for resource in &self.resources {
            let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let status = subresource == "status";
            let verbs = self.verbs.iter().filter(|_| status || subresource.is_empty());
            permissions.extend(verbs.map(|verb| Permission {
                status,
                ..Permission::new(verb, full_resource(plural, group), namespace).named(name)
            }));
        }
        permissions
    }

    /// Returns whether the rule permits an action if the name in the rule is only an example.
    pub fn permits_once_named(&self, wanted: &Permission) -> bool {
        match self.resource_names.first() {
            Some(example) if !wanted.name.is_empty() => {
                self.permits(&wanted.clone().named(example))
            }
            _ => self.permits(wanted),
        }
    }

    fn permits(&self, wanted: &Permission) -> bool {
        let has = |all: &[String], one: &str| all.iter().any(|word| word == one || word == "*");
        let (plural, group) = wanted.parts();
        let is_named = |resource: &String| match resource.as_str() {
            "*" => true,
            "*/status" => wanted.status,
            named if wanted.status => named.strip_suffix("/status") == Some(plural),
            named => named == plural,
        };
        let names = &self.resource_names;
        has(&self.verbs, wanted.verb)
            && has(&self.api_groups, group)
            && self.resources.iter().any(is_named)
            && (names.is_empty() || (!wanted.name.is_empty() && names.contains(&wanted.name)))
    }
}

impl Rules {
    /// Returns whether an action is permitted; `None` if that is not known.
    fn judge(&self, wanted: &Permission) -> Option<bool> {
        // The rules of a namespace hold in that namespace only.
        let known = self.0.get(&wanted.namespace).filter(|_| !wanted.namespace.is_empty())?;
        let is_permitted = known.resource_rules.iter().any(|rule| rule.permits(wanted));
        (is_permitted || !known.incomplete).then_some(is_permitted)
    }
}

impl ClusterStore {
    /// Reads our rules in some namespaces, by one request for each.
    pub async fn rules(&self, namespaces: &BTreeSet<String>) -> Rules {
        let answers = namespaces.iter().map(|namespace| async move {
            let spec = json!({ "namespace": namespace });
            let status = self.review("SelfSubjectRulesReview", &spec).await?;
            Some((namespace.clone(), serde_json::from_value(status).ok()?))
        });
        Rules(join_all(answers).await.into_iter().flatten().collect())
    }

    /// Returns the wanted permissions that we lack. Permissions that the rules leave open are asked for one by one.
    pub async fn lacking(&self, wanted: &BTreeSet<Permission>, rules: &Rules) -> Vec<Permission> {
        let judged = wanted.iter().map(|permission| async {
            let is_permitted = match rules.judge(permission) {
                Some(is_permitted) => is_permitted,
                None => self.may(permission).await,
            };
            (!is_permitted).then(|| permission.clone())
        });
        let judged: Vec<_> = judged.collect();
        let lacking = stream::iter(judged).buffered(SIDE_BY_SIDE);
        lacking.filter_map(|lacking| async { lacking }).collect().await
    }

    async fn may(&self, permission: &Permission) -> bool {
        let spec = json!({ "resourceAttributes": permission.attributes() });
        let status = self.review("SelfSubjectAccessReview", &spec).await;
        status.is_none_or(|status| status["allowed"].as_bool().unwrap_or(true))
    }

    /// Asks whether a service account has a permission, which few may ask; `None` without an answer. No trace is kept.
    pub async fn account_may(&self, account: &ObjectName, wanted: &Permission) -> Option<bool> {
        let ObjectName { namespace, name } = account;
        let spec = json!({
            "user": format!("system:serviceaccount:{namespace}:{name}"),
            "groups": [
                "system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated",
            ],
            "resourceAttributes": wanted.attributes(),
        });
        self.review("SubjectAccessReview", &spec).await?["allowed"].as_bool()
    }

    /// Returns the status in the server's answer; `None` if the server does not answer, or not to us.
    async fn review(&self, kind: &str, spec: &Value) -> Option<Value> {
        let resource = format!("{}s.authorization.k8s.io", kind.to_ascii_lowercase());
        let path = format!("/apis/authorization.k8s.io/v1/{}s", kind.to_ascii_lowercase());
        let body = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec });
        let call = Call::new(Method::POST, path).body("application/json", &body);
        match self.wire().call(&AccessRequest::other("create", &resource, ""), call).await {
            Ok(mut answer) => Some(answer.body["status"].take()),
            Err(error) => {
                tracing::debug!(%error, "what we may do is not known");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a rule permits something in the namespace `web`.
    fn check(rule: &Value, wanted: &Permission, expected: bool) {
        let answer = json!({ "resourceRules": [rule], "incomplete": false });
        let rules = Rules([("web".to_owned(), serde_json::from_value(answer).unwrap())].into());
        assert_eq!(rules.judge(wanted), Some(expected), "{rule} {wanted}");
    }

    fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
        json!({ "verbs": verbs, "apiGroups": [group], "resources": resources })
    }

    #[test]
    fn a_rule_names_verb_group_and_resource() {
        let wanted = Permission::of_kind("patch", Kind::Order, "web");
        let group = "acme.cert-manager.io";
        check(&rule(&["get", "patch"], group, &["orders"]), &wanted, true);
        check(&rule(&["*"], "*", &["*"]), &wanted, true);
        check(&rule(&["get"], group, &["orders"]), &wanted, false);
        check(&rule(&["patch"], "cert-manager.io", &["orders"]), &wanted, false);
        check(&rule(&["patch"], group, &["orders/status"]), &wanted, false);
    }

    #[test]
    fn a_status_is_named_apart() {
        let wanted = Permission::of_kind("patch", Kind::Order, "web").on_status();
        let group = "acme.cert-manager.io";
        check(&rule(&["patch"], group, &["orders"]), &wanted, false);
        check(&rule(&["patch"], group, &["orders/status"]), &wanted, true);
        check(&rule(&["patch"], group, &["*/status"]), &wanted, true);
        check(&rule(&["patch"], group, &["*"]), &wanted, true);
    }

    #[test]
    fn a_rule_that_names_objects_permits_no_others() {
        let named = json!({
            "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["web-tls"],
        });
        let wanted = Permission::of_kind("get", Kind::Secret, "web");
        check(&named, &wanted.clone().named("web-tls"), true);
        check(&named, &wanted.clone().named("other"), false);
        check(&named, &wanted, false);
    }

    #[test]
    fn what_rules_may_leave_out_is_not_known() {
        let answer = json!({ "resourceRules": [], "incomplete": true });
        let rules = Rules([("web".to_owned(), serde_json::from_value(answer).unwrap())].into());
        assert_eq!(rules.judge(&Permission::of_kind("get", Kind::Order, "web")), None);
        assert_eq!(rules.judge(&Permission::of_kind("get", Kind::Order, "mail")), None);
        assert_eq!(rules.judge(&Permission::of_kind("get", Kind::ClusterIssuer, "web")), None);
    }
}
