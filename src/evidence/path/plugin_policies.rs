//! Policies of service meshes and network plugins, if the cluster defines such kinds.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use crate::diagnosis::case::plugin_policy::{MESH_NAMESPACE, PluginPolicyCase, PluginPolicyKind};
use crate::evidence::listed::{list, resource};
use crate::store::cluster::ClusterStore;
use crate::store::cluster::raw_objects::Resource;

const PEER_AUTHENTICATIONS: Resource =
    resource("security.istio.io/v1", "PeerAuthentication", "peerauthentications.security.istio.io");
const CILIUM: Resource =
    resource("cilium.io/v2", "CiliumNetworkPolicy", "ciliumnetworkpolicies.cilium.io");
const CILIUM_CLUSTERWIDE: Resource = resource(
    "cilium.io/v2",
    "CiliumClusterwideNetworkPolicy",
    "ciliumclusterwidenetworkpolicies.cilium.io",
);
const CALICO: Resource =
    resource("crd.projectcalico.org/v1", "NetworkPolicy", "networkpolicies.crd.projectcalico.org");
const CALICO_GLOBAL: Resource = resource(
    "crd.projectcalico.org/v1",
    "GlobalNetworkPolicy",
    "globalnetworkpolicies.crd.projectcalico.org",
);

/// Lists the policies of the cluster and of `namespaces`, of all namespaces if one is empty. Kinds that the cluster
/// lacks, or that may not be read, are left out.
pub(crate) async fn plugin_policies(
    cluster: &ClusterStore,
    namespaces: &BTreeSet<String>,
) -> Vec<PluginPolicyCase> {
    use PluginPolicyKind as Kind;
    let own = namespaces.iter().map(String::as_str);
    let mut asked: Vec<(Kind, Resource, &str)> = vec![
        (Kind::CiliumClusterwideNetworkPolicy, CILIUM_CLUSTERWIDE, ""),
        (Kind::CalicoGlobalNetworkPolicy, CALICO_GLOBAL, ""),
    ];
    for namespace in own {
        asked.extend([
            (Kind::PeerAuthentication, PEER_AUTHENTICATIONS, namespace),
            (Kind::CiliumNetworkPolicy, CILIUM, namespace),
            (Kind::CalicoNetworkPolicy, CALICO, namespace),
        ]);
    }
    if !namespaces.contains(MESH_NAMESPACE) && !namespaces.contains("") {
        asked.push((Kind::PeerAuthentication, PEER_AUTHENTICATIONS, MESH_NAMESPACE));
    }
    let read = asked.into_iter().map(|(kind, resource, namespace)| async move {
        let found = list::<PluginPolicyCase>(cluster, resource, namespace, "", "").await;
        found.unwrap_or_default().into_iter().map(move |it| PluginPolicyCase { kind, ..it })
    });
    join_all(read).await.into_iter().flatten().collect()
}
