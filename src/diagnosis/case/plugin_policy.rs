//! Policies of service meshes and network plugins, which keep requests away from Pods in addition to Kubernetes' own
//! policies: Istio's PeerAuthentication, Cilium's and Calico's policies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::network_policy::LabelSelection;
use crate::model::Metadata;

/// Namespace whose PeerAuthentications apply to the whole mesh, unless Istio was set up otherwise.
pub const MESH_NAMESPACE: &str = "istio-system";

/// Kind of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PluginPolicyKind {
    /// Istio's PeerAuthentication: whether requests without mutual TLS are accepted.
    #[default]
    PeerAuthentication,
    /// Cilium's policy of a namespace.
    CiliumNetworkPolicy,
    /// Cilium's policy of the cluster.
    CiliumClusterwideNetworkPolicy,
    /// Calico's policy of a namespace.
    CalicoNetworkPolicy,
    /// Calico's policy of the cluster.
    CalicoGlobalNetworkPolicy,
}

/// A policy of a service mesh or a network plugin.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginPolicyCase {
    /// Kind of the policy, by the list that the policy was read from.
    #[serde(rename = "policyKind")]
    pub kind: PluginPolicyKind,
    /// Metadata; without a namespace if the policy is for all namespaces.
    pub metadata: Metadata,
    /// Specification, as the kind's own definition has it.
    pub spec: Value,
}

/// Traffic that a policy keeps away from a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedTraffic {
    /// Requests without the mesh's mutual TLS.
    PlainRequests,
    /// All traffic to the port: no rule of the policy permits any.
    Port,
}

impl PluginPolicyKind {
    /// Returns the name of the kind, as its definition has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::PeerAuthentication => "PeerAuthentication",
            Self::CiliumNetworkPolicy => "CiliumNetworkPolicy",
            Self::CiliumClusterwideNetworkPolicy => "CiliumClusterwideNetworkPolicy",
            Self::CalicoNetworkPolicy => "NetworkPolicy.crd.projectcalico.org",
            Self::CalicoGlobalNetworkPolicy => "GlobalNetworkPolicy.crd.projectcalico.org",
        }
    }
}

impl PluginPolicyCase {
    /// Returns what the policy keeps away from a port of a Pod with these labels; `None` if the policy permits some
    /// traffic, is not about the Pod, or has a form that is not read here.
    pub fn keeps_away(
        &self,
        labels: &BTreeMap<String, String>,
        port: u16,
    ) -> Option<DeniedTraffic> {
        match self.kind {
            PluginPolicyKind::PeerAuthentication => self.asks_for_tls(labels, port),
            PluginPolicyKind::CiliumNetworkPolicy
            | PluginPolicyKind::CiliumClusterwideNetworkPolicy => self.cilium(labels, port),
            PluginPolicyKind::CalicoNetworkPolicy | PluginPolicyKind::CalicoGlobalNetworkPolicy => {
                self.calico(port)
            }
        }
    }

    /// Returns how closely a PeerAuthentication is about a Pod: 2 for workload, 1 for namespace, 0 for mesh; only the
    /// closest one counts (Istio's PeerAuthentication). `None` if the policy is not about the Pod.
    pub fn closeness(&self, namespace: &str, labels: &BTreeMap<String, String>) -> Option<u8> {
        let chosen = selection(&self.spec, "/selector");
        let is_own = self.metadata.namespace == namespace;
        match chosen {
            Some(chosen) => (is_own && chosen.fits(labels)).then_some(2),
            None => Some(u8::from(is_own)),
        }
    }

    fn asks_for_tls(&self, labels: &BTreeMap<String, String>, port: u16) -> Option<DeniedTraffic> {
        self.closeness(&self.metadata.namespace, labels)?;
        let of_port = self.spec.pointer(&format!("/portLevelMtls/{port}/mode"));
        let mode = of_port.or_else(|| self.spec.pointer("/mtls/mode")).and_then(Value::as_str);
        (mode == Some("STRICT")).then_some(DeniedTraffic::PlainRequests)
    }

    fn cilium(&self, labels: &BTreeMap<String, String>, port: u16) -> Option<DeniedTraffic> {
        let mut chosen = selection(&self.spec, "/endpointSelector")?;
        let bare = |key: &str| key.trim_start_matches("k8s:").to_owned();
        chosen.match_labels =
            chosen.match_labels.into_iter().map(|(key, value)| (bare(&key), value)).collect();
        for one in &mut chosen.match_expressions {
            one.key = bare(&one.key);
        }
        let rules = self.spec.get("ingress")?.as_array().filter(|rules| !rules.is_empty())?;
        if self.spec.pointer("/enableDefaultDeny/ingress") == Some(&Value::Bool(false)) {
            return None;
        }
        let is_for = |rule: &Value| match rule.get("toPorts").and_then(Value::as_array) {
            None => !is_empty(rule),
            Some(of) => of.iter().any(|one| has_port(one.get("ports"), "port", "endPort", port)),
        };
        (chosen.fits(labels) && !rules.iter().any(is_for)).then_some(DeniedTraffic::Port)
    }

    fn calico(&self, port: u16) -> Option<DeniedTraffic> {
        let text = |field: &str| self.spec.get(field).and_then(Value::as_str).unwrap_or_default();
        // Calico's expressions are a language of their own.
        if !matches!(text("selector").trim(), "" | "all()") || !text("namespaceSelector").is_empty()
        {
            return None;
        }
        let empty = Vec::new();
        let types = self.spec.get("types").and_then(Value::as_array).unwrap_or(&empty);
        let rules = self.spec.get("ingress").and_then(Value::as_array);
        if !types.is_empty() && !types.iter().any(|one| one == "Ingress") {
            return None;
        }
        let admits = |rule: &Value| {
            let ports = rule.pointer("/destination/ports").and_then(Value::as_array);
            rule.get("action").is_some_and(|action| action != "Deny")
                && ports.is_none_or(|ports| ports.iter().any(|one| is_calico_port(one, port)))
        };
        let rules = rules.map_or(&[][..], Vec::as_slice);
        let is_of_ingress = !rules.is_empty() || types.iter().any(|one| one == "Ingress");
        (is_of_ingress && !rules.iter().any(admits)).then_some(DeniedTraffic::Port)
    }
}

/// Reads a selector of labels from a specification; `None` if the selector is absent, or of another shape.
fn selection(spec: &Value, pointer: &str) -> Option<LabelSelection> {
    serde_json::from_value(spec.pointer(pointer)?.clone()).ok()
}

/// Reports whether a rule of Cilium is empty, and so permits no traffic.
fn is_empty(rule: &Value) -> bool {
    rule.as_object().is_none_or(serde_json::Map::is_empty)
}

/// Reports whether a list of ports has a port; an absent list has every port.
fn has_port(ports: Option<&Value>, first: &str, last: &str, port: u16) -> bool {
    let Some(ports) = ports.and_then(Value::as_array) else { return true };
    let number = |one: &Value, field: &str| {
        let value = one.get(field)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    };
    ports.iter().any(|one| match number(one, first) {
        // A name, or every port.
        None | Some(0) => true,
        Some(from) => {
            let to = number(one, last).filter(|to| *to > from).unwrap_or(from);
            (from..=to).contains(&u64::from(port))
        }
    })
}

/// Reports whether an entry of Calico's ports has a port: a number, a range such as `8000:9000`, or a name.
fn is_calico_port(entry: &Value, port: u16) -> bool {
    let Some(text) = entry.as_str() else {
        return entry.as_u64() == Some(u64::from(port));
    };
    let (from, to) = text.split_once(':').unwrap_or((text, text));
    match (from.parse::<u16>(), to.parse::<u16>()) {
        (Ok(from), Ok(to)) => (from..=to).contains(&port),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keeps(kind: PluginPolicyKind, spec: Value) -> Option<DeniedTraffic> {
        let labels = BTreeMap::from([("app".to_owned(), "solver".to_owned())]);
        let policy = PluginPolicyCase { kind, metadata: Metadata::default(), spec };
        policy.keeps_away(&labels, 8089)
    }

    #[test]
    fn istio_asks_for_tls_by_port_or_for_all() {
        let of = |spec: Value| keeps(PluginPolicyKind::PeerAuthentication, spec);
        assert_eq!(of(json!({"mtls": {"mode": "STRICT"}})), Some(DeniedTraffic::PlainRequests));
        assert_eq!(of(json!({"mtls": {"mode": "PERMISSIVE"}})), None);
        assert_eq!(of(json!({})), None);
        let exempt =
            json!({"mtls": {"mode": "STRICT"}, "portLevelMtls": {"8089": {"mode": "DISABLE"}}});
        assert_eq!(of(exempt), None);
    }

    #[test]
    fn cilium_lets_in_what_a_rule_names() {
        let of = |ingress: Value| {
            let spec = json!({"endpointSelector": {"matchLabels": {"k8s:app": "solver"}}, "ingress": ingress});
            keeps(PluginPolicyKind::CiliumNetworkPolicy, spec)
        };
        let port = |port: &str| json!([{"toPorts": [{"ports": [{"port": port}]}]}]);
        assert_eq!(of(json!([{}])), Some(DeniedTraffic::Port));
        assert_eq!(of(port("443")), Some(DeniedTraffic::Port));
        assert_eq!(of(port("8089")), None);
        assert_eq!(
            of(json!([{"toPorts": [{"ports": [{"port": "8000", "endPort": 9000}]}]}])),
            None
        );
        assert_eq!(of(json!([{"fromEntities": ["ingress"]}])), None);
        let other = json!({"endpointSelector": {"matchLabels": {"app": "shop"}}, "ingress": [{}]});
        assert_eq!(keeps(PluginPolicyKind::CiliumNetworkPolicy, other), None);
        let outward = json!({"endpointSelector": {}, "egress": [{}]});
        assert_eq!(keeps(PluginPolicyKind::CiliumClusterwideNetworkPolicy, outward), None);
    }

    #[test]
    fn calico_lets_in_what_a_rule_allows() {
        let of = |spec: Value| keeps(PluginPolicyKind::CalicoGlobalNetworkPolicy, spec);
        assert_eq!(of(json!({"types": ["Ingress", "Egress"]})), Some(DeniedTraffic::Port));
        assert_eq!(
            of(json!({"selector": "all()", "ingress": [{"action": "Deny"}]})),
            Some(DeniedTraffic::Port)
        );
        assert_eq!(of(json!({"types": ["Egress"]})), None);
        assert_eq!(of(json!({"selector": "has(role)", "types": ["Ingress"]})), None);
        let ports = |ports: Value| json!({"ingress": [{"action": "Allow", "destination": {"ports": ports}}]});
        assert_eq!(of(ports(json!([443]))), Some(DeniedTraffic::Port));
        assert_eq!(of(ports(json!(["8000:9000"]))), None);
        assert_eq!(of(json!({"ingress": [{"action": "Allow"}]})), None);
    }
}
