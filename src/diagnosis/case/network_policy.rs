//! NetworkPolicies, and whether they let a request in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::Metadata;

/// A NetworkPolicy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkPolicyCase {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: NetworkPolicySpec,
}

/// Specification of a NetworkPolicy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicySpec {
    /// Pods to which the policy applies.
    pub pod_selector: LabelSelection,
    /// `Ingress`, `Egress`; the API server fills in the types.
    pub policy_types: Vec<String>,
    /// Rules that permit incoming traffic; no traffic is permitted if there are none.
    pub ingress: Vec<IngressAllowance>,
}

/// Rule that permits incoming traffic.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressAllowance {
    /// Ports; every port if empty.
    pub ports: Vec<PolicyPort>,
    /// Sources; every source if empty.
    pub from: Vec<Value>,
}

/// Ports of a NetworkPolicy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyPort {
    /// Number or name.
    pub port: Option<Value>,
    /// Last port of a range.
    pub end_port: Option<u16>,
}

/// A selector of labels (apimachinery's LabelSelector).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelection {
    /// Labels that all have to match.
    pub match_labels: BTreeMap<String, String>,
    /// Conditions that all have to hold as well.
    pub match_expressions: Vec<LabelExpression>,
}

/// One condition of a selector of labels.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelExpression {
    /// Label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Values.
    pub values: Vec<String>,
}

/// Sources that may reach a port of a Pod, by one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Admits {
    /// No source.
    Nobody,
    /// Pods of the same namespace alone.
    Neighbours,
    /// Some sources; which ones is not known here.
    Some,
    /// Every source, or the policy does not apply.
    Everybody,
}

impl NetworkPolicyCase {
    /// Reports whether the policy is about incoming traffic of a Pod with these labels.
    pub fn is_about(&self, labels: &BTreeMap<String, String>) -> bool {
        let types = &self.spec.policy_types;
        let is_of_ingress = types.is_empty() || types.iter().any(|kind| kind == "Ingress");
        is_of_ingress && self.spec.pod_selector.fits(labels)
    }

    /// Returns the sources that may reach a port of the policy's Pods.
    pub fn admits(&self, port: u16) -> Admits {
        let rules = self.spec.ingress.iter().filter(|rule| rule.is_for(port));
        rules.map(IngressAllowance::sources).max().unwrap_or(Admits::Nobody)
    }
}

impl IngressAllowance {
    fn is_for(&self, port: u16) -> bool {
        let is_it = |one: &PolicyPort| match (&one.port, one.end_port) {
            (None, _) => true,
            (Some(Value::Number(first)), last) => {
                let first = first.as_u64().unwrap_or_default();
                (first..=last.map_or(first, u64::from)).contains(&u64::from(port))
            }
            // The solver's only port has a name.
            (Some(name), _) => name == "http",
        };
        self.ports.is_empty() || self.ports.iter().any(is_it)
    }

    fn sources(&self) -> Admits {
        let admits = |peer: &Value| {
            if let Some(block) = peer.get("ipBlock") {
                let is_all = ["0.0.0.0/0", "::/0"].iter().any(|all| block["cidr"] == *all);
                let is_whole = is_all && block.get("except").is_none_or(Value::is_null);
                return if is_whole { Admits::Everybody } else { Admits::Some };
            }
            match peer.get("namespaceSelector") {
                None => Admits::Neighbours,
                // An empty selector fits every namespace.
                Some(selector) if selector.as_object().is_some_and(serde_json::Map::is_empty) => {
                    if peer.get("podSelector").is_none() {
                        Admits::Everybody
                    } else {
                        Admits::Some
                    }
                }
                Some(_) => Admits::Some,
            }
        };
        self.from.iter().map(admits).max().unwrap_or(Admits::Everybody)
    }
}

impl LabelSelection {
    /// Reports whether labels match the selector.
    pub fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        let is_fit = |expression: &LabelExpression| {
            let value = labels.get(&expression.key);
            let is_in = || value.is_some_and(|value| expression.values.contains(value));
            match expression.operator.as_str() {
                "In" => is_in(),
                "NotIn" => !is_in(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        };
        self.match_labels.iter().all(|(name, value)| labels.get(name) == Some(value))
            && self.match_expressions.iter().all(is_fit)
    }
}
