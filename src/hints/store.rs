//! What helps where a store, local or in a cluster, does not do what it is asked for.

use std::path::Path;

use super::invocation;
use super::invocation::quoted;
use crate::disk::private::Exposure;
use crate::model::cause::Guard;
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;

/// How the resources begin that solvers make objects of.
const SOLVED: [&str; 4] = ["pods", "services", "ingresses.", "httproutes."];

/// What helps when the store cannot be used.
const UNUSABLE: &str = "put that right, or choose another state folder with --local=DIR";

/// What to do next, one line each, with kubectl as it is called for the same cluster and user.
pub fn lines(error: &StoreError) -> Vec<String> {
    lines_by(error, &invocation::current().kubectl_program())
}

fn lines_by(error: &StoreError, kubectl: &str) -> Vec<String> {
    match error {
        StoreError::Cluster(fault) => cluster(fault, kubectl),
        StoreError::Held { .. } => {
            vec![
                "leave those fields out of the manifest, or take them over with --force-conflicts"
                    .into(),
            ]
        }
        StoreError::Denied { key, guard, .. } => {
            vec![past(*guard, &key.to_string(), &key.name.namespace)]
        }
        StoreError::Unusable { .. } => vec![UNUSABLE.to_owned()],
        StoreError::Exposed { place, exposure } => {
            vec![exposed(place, *exposure), UNUSABLE.to_owned()]
        }
        StoreError::Conflict { .. }
        | StoreError::AlreadyExists { .. }
        | StoreError::NotFound { .. }
        | StoreError::Invalid { .. }
        | StoreError::Unreadable { .. } => Vec::new(),
    }
}

fn cluster(fault: &ClusterFault, kubectl: &str) -> Vec<String> {
    let hints: &[&str] = match fault {
        ClusterFault::Unconfigured { .. } => &[
            "name a kubeconfig: --kubeconfig FILE, or KUBECONFIG",
            "or work without a cluster: --local keeps everything on this machine",
        ],
        ClusterFault::Configuration { .. } => {
            &["kubectl config get-contexts lists what there is; --context NAME chooses one"]
        }
        ClusterFault::OldCertificate { .. } => &[
            "issue it again as version 3: openssl x509 -req … -extfile FILE, where FILE says extendedKeyUsage = clientAuth",
        ],
        ClusterFault::Credentials { .. } => {
            return vec![format!(
                "log in again as for kubectl, then see that {kubectl} auth whoami answers"
            )];
        }
        ClusterFault::Untrusted { .. } => &[
            "compare certificate-authority-data of the kubeconfig with the CA of the cluster; kubectl would refuse it as well",
        ],
        ClusterFault::Unreachable { .. } => {
            return vec![format!(
                "see that {kubectl} version answers with the same context; a VPN or a proxy may be missing"
            )];
        }
        ClusterFault::Forbidden { verb, resource, namespace, .. } => {
            // Only a ClusterRole is about objects without a namespace, and about those of all namespaces.
            let (role, namespace) = match namespace {
                Some(name) => ("Role", format!(" --namespace {name}")),
                None => ("ClusterRole", " --all-namespaces".to_owned()),
            };
            let (resource, status) = match resource.strip_suffix("/status") {
                Some(resource) => (resource, " --subresource status"),
                None => (resource.as_str(), ""),
            };
            return vec![format!(
                "ask for it in a {role}; {kubectl} auth can-i {verb} {resource}{status}{namespace} tells when it is there"
            )];
        }
        ClusterFault::Stranger { .. } => {
            return vec![format!(
                "{kubectl} config view --minify shows the URL; is there a proxy that answers in the server's place?"
            )];
        }
        ClusterFault::Undefined { resource, .. }
            if resource.ends_with("gateway.networking.k8s.io") =>
        {
            &[
                "install the Gateway API's definitions, or answer by an Ingress: solvers[].http01.ingress",
            ]
        }
        ClusterFault::Undefined { .. } => &[
            "install cert-manager's definitions of version 1.0 or newer, or ours: kubectl acme crds | kubectl apply -f -",
        ],
        ClusterFault::NoNamespace { namespace, is_ending, is_of_lease, .. } => {
            let create = format!("kubectl create namespace {namespace}");
            let create =
                if *is_ending { format!("wait until it is gone, then: {create}") } else { create };
            let elsewhere = "or name another one: --leader-election-namespace".to_owned();
            return [create].into_iter().chain(is_of_lease.then_some(elsewhere)).collect();
        }
        ClusterFault::Refused { guard: Some(guard), what, namespace, .. } => {
            return vec![past(*guard, what, namespace)];
        }
        ClusterFault::Refused { .. } => &["change what it names; kubectl would be refused as well"],
        ClusterFault::Busy { .. } | ClusterFault::Failing { .. } => &["try again later"],
    };
    hints.iter().map(|hint| (*hint).to_owned()).collect()
}

/// What helps to get an object or a resource past a guard of the cluster.
pub fn past(guard: Guard, what: &str, namespace: &str) -> String {
    match guard {
        Guard::Quota => format!(
            "raise that quota, or delete what fills it: kubectl describe quota --namespace {namespace}"
        ),
        Guard::Limits => format!(
            "ask for other amounts by podTemplate.spec.resources of the solver, or --acme-http01-solver-resource-limits-cpu \
             and its like; what is wanted: kubectl describe limitrange,quota --namespace {namespace}"
        ),
        Guard::PodSecurity => format!(
            "change podTemplate.spec.securityContext of the solver as that level wants it, or the level: \
             kubectl get namespace {namespace} --show-labels"
        ),
        Guard::Policy if SOLVED.iter().any(|solved| what.starts_with(solved)) => {
            "change the solver's templates as that guard wants it, or ask whoever set it to let in what has the label \
             acme.cert-manager.io/http01-solver"
                .to_owned()
        }
        Guard::Policy | Guard::Unknown => {
            "whoever looks after the cluster set this guard; kubectl would be refused as well"
                .to_owned()
        }
    }
}

/// What makes a file or folder of the state private again, so that it is used.
fn exposed(place: &Path, exposure: Exposure) -> String {
    let path = quoted(&place.to_string_lossy());
    match exposure {
        Exposure::Link => format!("take the link away: rm {path}; or name what it leads to"),
        Exposure::NoFile => format!("look what it is: ls -ld {path}; and take it away"),
        Exposure::Owner { theirs, ours } => format!(
            "work as that user (sudo -u '#{theirs}'); or, where what is in it is yours, take it over: chown -R {ours} {path}"
        ),
        Exposure::OpenFile(_) => {
            format!("where nobody has changed what is in it, close it: chmod 600 {path}")
        }
        // Everybody's folder, such as /tmp, stays so.
        Exposure::OpenFolder(mode) if mode & STICKY != 0 => {
            let own = quoted(&place.join("kubectl-acme").to_string_lossy());
            format!("make one of your own in it: mkdir -m 700 {own}; and name that")
        }
        // So kubelet leaves volumes with fsGroup, at each mount anew.
        Exposure::OpenFolder(mode) if mode & SET_GROUP != 0 => format!(
            "where everything in it is yours, close it: chmod 700 {path}; on a volume of a Pod, say fsGroup as the \
             volume's group, or fsGroupChangePolicy: OnRootMismatch, so that it stays closed"
        ),
        Exposure::OpenFolder(_) => {
            format!("where everything in it is yours, close it: chmod 700 {path}")
        }
    }
}

/// The bit of a folder's mode by which it hands its group down.
const SET_GROUP: u32 = 0o2000;

/// The bit of a folder's mode that keeps its users from each other's files.
const STICKY: u32 = 0o1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Key, Kind, ObjectName};

    #[test]
    fn what_only_a_cluster_role_gives_is_asked_for_in_one() {
        for (resource, namespace, expected) in [
            (
                "orders.acme.cert-manager.io",
                Some("web"),
                "ask for it in a Role; kubectl --as ann auth can-i list orders.acme.cert-manager.io --namespace web tells when \
                 it is there",
            ),
            (
                "orders.acme.cert-manager.io/status",
                None,
                "ask for it in a ClusterRole; kubectl --as ann auth can-i list orders.acme.cert-manager.io \
                 --subresource status --all-namespaces tells when it is there",
            ),
        ] {
            let (resource, namespace) = (resource.to_owned(), namespace.map(str::to_owned));
            let said = "no".to_owned();
            let fault = ClusterFault::Forbidden { verb: "list", resource, namespace, said };
            assert_eq!(lines_by(&fault.into(), "kubectl --as ann"), [expected]);
        }
    }

    #[test]
    fn every_guard_has_its_own_way_past_it() {
        let pods = "pods in namespace web";
        for (guard, what, helps) in [
            (Guard::Quota, pods, "kubectl describe quota --namespace web"),
            (Guard::Quota, "Secret web/tls", "kubectl describe quota --namespace web"),
            (Guard::Limits, pods, "podTemplate.spec.resources"),
            (Guard::PodSecurity, pods, "podTemplate.spec.securityContext"),
            (Guard::Policy, "httproutes.gateway.networking.k8s.io", "http01-solver"),
            (Guard::Policy, "Order web/a", "whoever looks after the cluster"),
            (Guard::Unknown, pods, "whoever looks after the cluster"),
        ] {
            let hint = past(guard, what, "web");
            assert!(hint.contains(helps), "{hint}");
            let key = Key::new(Kind::Secret, ObjectName::new("web", "tls"));
            let denied = StoreError::Denied { key, why: String::new(), guard };
            assert_eq!(lines_by(&denied, "kubectl"), [past(guard, "Secret web/tls", "web")]);
        }
    }

    #[test]
    fn a_namespace_that_is_missing_is_made_or_another_one_named() {
        let lines = |is_ending, is_of_lease| {
            let (what, namespace) = ("the Lease".to_owned(), "nowhere".to_owned());
            let fault = ClusterFault::NoNamespace { what, namespace, is_ending, is_of_lease };
            lines_by(&fault.into(), "kubectl")
        };
        assert_eq!(lines(false, false), ["kubectl create namespace nowhere"]);
        let ending = "wait until it is gone, then: kubectl create namespace nowhere";
        let elsewhere = "or name another one: --leader-election-namespace";
        assert_eq!(lines(true, true), [ending, elsewhere]);
    }
}
