//! CTL-14: obstacles before a solver's Pod: NetworkPolicies, policies of network plugins, and service meshes.

use super::open_path::{OpenPath, named, open_paths};
use crate::diagnosis::case::Case;
use crate::diagnosis::case::network_policy::Admits;
use crate::diagnosis::case::path_objects::PodCase;
use crate::diagnosis::case::plugin_policy::{
    DeniedTraffic, MESH_NAMESPACE, PluginPolicyCase, PluginPolicyKind,
};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{FaultRule, Finding, Grade};
use crate::model::cause::Symptom;
use crate::model::observation::CheckResult;

/// Label in which Cilium has the namespace of a Pod.
const NAMESPACE_LABEL: &str = "io.kubernetes.pod.namespace";
/// Port at which a solver listens.
const PORT: u16 = 8089;
/// Containers that a service mesh adds.
const SIDECARS: [&str; 2] = ["istio-proxy", "linkerd-proxy"];

pub(super) const RULES: &[FaultRule] = &[policy_shuts_off];

/// CTL-14.
fn policy_shuts_off(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(pod) = open.pod() else { continue };
        let name = named("Pod", &pod.metadata);
        let labels = &pod.metadata.labels;
        let about = open.path.policies.iter().filter(|policy| {
            policy.metadata.namespace == pod.metadata.namespace && policy.is_about(labels)
        });
        let about: Vec<_> = about.collect();
        // One policy that admits the traffic is enough.
        let best = about.iter().map(|policy| policy.admits(PORT)).max();
        let grade = match best {
            Some(Admits::Nobody) => Grade::Likely,
            // The probes fail as this policy would make them fail.
            Some(Admits::Neighbours) if is_cut_off(&open) => Grade::Likely,
            Some(Admits::Neighbours) => Grade::Possible,
            Some(Admits::Some | Admits::Everybody) | None => {
                // Policies of plugins do not stop traffic that a NetworkPolicy admits.
                if !plugin_shuts_off(&open, pod, best.is_none(), found) {
                    sidecar_may_shut_off(&open, pod, found);
                }
                continue;
            }
        };
        let who = match best {
            Some(Admits::Neighbours) => "only Pods of its own namespace",
            _ => "no client",
        };
        let came = format!("selects {name}, and lets {who} reach its port {PORT}");
        let shown =
            about.iter().map(|policy| open.stored(named("NetworkPolicy", &policy.metadata), &came));
        let mut shown = shown;
        let Some(first) = shown.next() else { continue };
        let detail = format!("{} {came}", first.asked);
        let rest: Vec<_> = shown.collect();
        found.push(open.finding(CauseId::Ctl14, grade, first, detail).shown_by(rest));
    }
}

/// CTL-14: a policy of a service mesh or a network plugin is about the Pod, and admits no plain HTTP.
fn plugin_shuts_off(
    open: &OpenPath<'_>,
    pod: &PodCase,
    is_unnamed: bool,
    found: &mut Vec<Finding>,
) -> bool {
    let namespace = &pod.metadata.namespace;
    let mut labels = pod.metadata.labels.clone();
    // Cilium counts the namespace among the labels.
    labels.insert(NAMESPACE_LABEL.to_owned(), namespace.clone());
    let labels = &labels;
    let is_istio = |it: &&PluginPolicyCase| it.kind == PluginPolicyKind::PeerAuthentication;
    let is_near = |it: &&PluginPolicyCase| {
        let of = &it.metadata.namespace;
        of.is_empty() || of == namespace || (is_istio(it) && of == MESH_NAMESPACE)
    };
    let all = || open.path.plugin_policies.iter().filter(is_near);
    let closest = all().filter(is_istio);
    let closest = closest.max_by_key(|policy| policy.closeness(namespace, labels));
    // A Pod without the mesh's proxy is not in the mesh.
    let has_proxy = pod.spec.containers.iter().any(|one| one.name == SIDECARS[0]);
    let closest = closest.filter(|_| has_proxy);
    let policies = closest.into_iter().chain(all().filter(|it| !is_istio(it)));
    let about = policies.filter_map(|it| Some((it, it.keeps_away(labels, PORT)?)));
    let mut about = about.filter(|(_, away)| is_unnamed || *away == DeniedTraffic::PlainRequests);
    let Some((policy, kept_away)) = about.next() else { return false };
    // Another policy of a plugin may admit traffic that this policy does not.
    let is_alone =
        kept_away == DeniedTraffic::PlainRequests || all().filter(|it| !is_istio(it)).count() == 1;
    let fails_so = match kept_away {
        DeniedTraffic::PlainRequests => is_refused_behind(open),
        DeniedTraffic::Port => is_cut_off(open) || is_refused_behind(open),
    };
    let grade = if is_alone && fails_so { Grade::Likely } else { Grade::Possible };
    let pod = named("Pod", &pod.metadata);
    let came = match kept_away {
        DeniedTraffic::PlainRequests => format!("holds for {pod}, and refuses plain HTTP (STRICT)"),
        DeniedTraffic::Port => format!("selects {pod}, and lets no client reach its port {PORT}"),
    };
    let policy = match policy.metadata.namespace.as_str() {
        "" => format!("{} {}", policy.kind.word(), policy.metadata.name),
        _ => named(policy.kind.word(), &policy.metadata),
    };
    let detail = format!("{policy} {came}");
    found.push(open.finding(CauseId::Ctl14, grade, open.stored(policy, came), detail));
    true
}

/// Reports whether a server in front got no answer from behind, or the connection was cut in the middle, as a mesh does to
/// a client without the mesh's certificate.
fn is_refused_behind(open: &OpenPath<'_>) -> bool {
    let looks = open.case.names.iter().filter(|name| name.shown() == open.wanted.domain);
    let mut seen = looks.flat_map(|name| &name.looks).map(|look| &look.observation.seen);
    seen.any(|seen| {
        matches!(
            seen,
            CheckResult::Nothing { symptom: Some(Symptom::HungUp), .. }
                | CheckResult::Reply { status: 502..=504, .. }
        )
    })
}

fn sidecar_may_shut_off(open: &OpenPath<'_>, pod: &PodCase, found: &mut Vec<Finding>) {
    let mut containers = pod.spec.containers.iter();
    let Some(sidecar) = containers.find(|one| SIDECARS.contains(&one.name.as_str())) else {
        return;
    };
    let name = named("Pod", &pod.metadata);
    let came = format!("has the container {} of a service mesh", sidecar.name);
    let shown = open.stored(format!("{name}: spec.containers"), &came);
    found.push(open.finding(CauseId::Ctl14, Grade::Possible, shown, format!("{name} {came}")));
}

/// Reports whether a probe of a name went as if packets were dropped behind the server in front.
fn is_cut_off(open: &OpenPath<'_>) -> bool {
    let looks = open.case.names.iter().filter(|name| name.shown() == open.wanted.domain);
    looks.flat_map(|name| &name.looks).any(|look| match &look.observation.seen {
        CheckResult::Reply { status, .. } => matches!(status, 502..=504),
        CheckResult::Nothing { symptom, .. } => {
            matches!(symptom, Some(Symptom::NoReply | Symptom::Unreachable))
        }
        _ => false,
    })
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::super::judge;
    use super::super::open_path::testing::{object, path_with};
    use super::super::tests::check;
    use super::*;
    use crate::diagnosis::case::path::ClusterPathCase;

    fn by_ingress(change: impl FnOnce(&mut Case, &mut ClusterPathCase)) -> Case {
        path_with(json!({"ingress": {"ingressClassName": "edge"}}), change)
    }

    fn policy(spec: Value) -> Case {
        by_ingress(|_, path| {
            path.policies =
                vec![object(json!({"metadata": {"namespace": "web", "name": "p"}, "spec": spec}))];
        })
    }

    #[test]
    fn a_policy_shuts_off_unless_one_lets_somebody_in() {
        check(&policy(json!({"podSelector": {}, "policyTypes": ["Ingress"]})), &[CauseId::Ctl14]);
        check(&policy(json!({"podSelector": {}, "policyTypes": ["Egress"]})), &[]);
        check(&policy(json!({"podSelector": {"matchLabels": {"app": "shop"}}})), &[]);
        let solver = json!({"matchExpressions": [{"key": "acme.cert-manager.io/http01-solver", "operator": "Exists"}]});
        check(&policy(json!({"podSelector": solver})), &[CauseId::Ctl14]);
        let ports =
            |port: Value| json!({"podSelector": {}, "ingress": [{"ports": [{"port": port}]}]});
        check(&policy(ports(json!(8089))), &[]);
        check(&policy(ports(json!("http"))), &[]);
        check(&policy(ports(json!(443))), &[CauseId::Ctl14]);
        let from = |from: Value| json!({"podSelector": {}, "ingress": [{"from": [from]}]});
        check(&policy(from(json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}))), &[]);
        check(&policy(from(json!({"podSelector": {}}))), &[CauseId::Ctl14]);
        check(&policy(from(json!({"ipBlock": {"cidr": "0.0.0.0/0"}}))), &[]);
        let both = by_ingress(|_, path| {
            let of = |name: &str, spec: Value| {
                object(json!({"metadata": {"namespace": "web", "name": name}, "spec": spec}))
            };
            path.policies = vec![
                of("deny", json!({"podSelector": {}})),
                of("allow", json!({"podSelector": {}, "ingress": [{}]})),
            ];
        });
        check(&both, &[]);
        let meshed = by_ingress(|_, path| {
            path.pods[0].spec.containers.push(object(json!({"name": "istio-proxy"})));
        });
        check(&meshed, &[CauseId::Ctl14]);
    }

    #[test]
    fn a_policy_of_a_mesh_or_a_plugin_is_named_with_the_object() {
        let with = |has_proxy: bool, policies: Value| {
            by_ingress(|_, path| {
                if has_proxy {
                    path.pods[0].spec.containers.push(object(json!({"name": "istio-proxy"})));
                }
                path.plugin_policies = object(policies);
            })
        };
        let strict = json!({"mtls": {"mode": "STRICT"}});
        let istio = |namespace: &str, spec: &Value| json!({"policyKind": "peerAuthentication", "metadata": {"namespace": namespace, "name": "default"}, "spec": spec});
        let of_mesh = with(true, json!([istio("istio-system", &strict)]));
        check(&of_mesh, &[CauseId::Ctl14]);
        let detail = &judge(&of_mesh)[0].facts["DETAIL"];
        assert!(detail.starts_with("PeerAuthentication istio-system/default holds"), "{detail}");
        check(&with(false, json!([istio("istio-system", &strict)])), &[]);
        // The namespace's own is the one that counts; the proxy alone is a guess.
        let own = json!({"mtls": {"mode": "PERMISSIVE"}});
        let both = with(true, json!([istio("istio-system", &strict), istio("web", &own)]));
        assert!(judge(&both)[0].facts["DETAIL"].starts_with("Pod web/"));
        let cilium = json!([{
            "policyKind": "ciliumClusterwideNetworkPolicy", "metadata": {"name": "deny"},
            "spec": {"endpointSelector": {}, "ingress": [{}]},
        }]);
        let found = judge(&with(false, cilium));
        assert!(
            found[0].facts["DETAIL"].starts_with("CiliumClusterwideNetworkPolicy deny selects")
        );
    }
}
