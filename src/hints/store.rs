//! Hints for a store, local or in a cluster, that fails or refuses a request.

use std::path::Path;

use super::invocation::{self, quoted};
use crate::disk::private::Exposure;
use crate::model::cause::Guard;
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;

/// Beginnings of the names of the resources that solvers create.
const SOLVER_RESOURCES: [&str; 4] = ["pods", "services", "ingresses.", "httproutes."];

/// Hint for a store that cannot be used.
const UNUSABLE_HINT: &str = "put that right, or choose another state folder with --local=DIR";

/// Returns the next steps, one line each, with kubectl as called for the same cluster and user.
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
        StoreError::Unusable { .. } => vec![UNUSABLE_HINT.to_owned()],
        StoreError::Exposed { place, exposure } => {
            vec![make_private(place, *exposure), UNUSABLE_HINT.to_owned()]
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
            &["kubectl config get-contexts lists the contexts; --context NAME chooses one"]
        }
        ClusterFault::OldCertificate { .. } => &[
            "issue the certificate as version 3: openssl x509 -req … -extfile FILE, with extendedKeyUsage = clientAuth in FILE",
        ],
        ClusterFault::Credentials { .. } => {
            return vec![format!(
                "log in again as for kubectl, then check that {kubectl} auth whoami answers"
            )];
        }
        ClusterFault::Untrusted { .. } => &[
            "compare certificate-authority-data of the kubeconfig with the CA of the cluster; kubectl would refuse it as well",
        ],
        ClusterFault::Unreachable { .. } => {
            return vec![format!(
                "check that {kubectl} version answers with the same context; a VPN or a proxy may be missing"
            )];
        }
        ClusterFault::Forbidden { verb, resource, namespace, .. } => {
            // Only a ClusterRole grants access to objects without a namespace, and to objects of all namespaces.
            let (role, namespace) = match namespace {
                Some(name) => ("Role", format!(" --namespace {name}")),
                None => ("ClusterRole", " --all-namespaces".to_owned()),
            };
            let (resource, status) = match resource.strip_suffix("/status") {
                Some(resource) => (resource, " --subresource status"),
                None => (resource.as_str(), ""),
            };
            return vec![format!(
                "ask for this in a {role}; {kubectl} auth can-i {verb} {resource}{status}{namespace} says yes once it is granted"
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
        ClusterFault::Refused { .. } => {
            &["change the fields that the message names; kubectl would be refused as well"]
        }
        ClusterFault::Busy { .. } | ClusterFault::Failing { .. } => &["try again later"],
    };
    hints.iter().map(|hint| (*hint).to_owned()).collect()
}

/// Returns the hint for getting an object or a resource past a guard of the cluster.
pub fn past(guard: Guard, what: &str, namespace: &str) -> String {
    match guard {
        Guard::Quota => format!(
            "raise that quota, or delete what fills it: kubectl describe quota --namespace {namespace}"
        ),
        Guard::Limits => format!(
            "set other amounts by podTemplate.spec.resources of the solver, or --acme-http01-solver-resource-limits-cpu \
             and its like; limits: kubectl describe limitrange,quota --namespace {namespace}"
        ),
        Guard::PodSecurity => format!(
            "change podTemplate.spec.securityContext of the solver as that level requires, or the level: kubectl get \
             namespace {namespace} --show-labels"
        ),
        Guard::Policy if SOLVER_RESOURCES.iter().any(|solved| what.starts_with(solved)) => {
            "change the solver's templates as that policy requires, or ask its owner to admit objects with the label \
             acme.cert-manager.io/http01-solver"
                .to_owned()
        }
        Guard::Policy | Guard::Unknown => {
            "an administrator of the cluster set this rule; kubectl would be refused as well"
                .to_owned()
        }
    }
}

/// Returns the hint for making a file or folder of the state private again, so that this program uses it.
fn make_private(place: &Path, exposure: Exposure) -> String {
    let path = quoted(&place.to_string_lossy());
    match exposure {
        Exposure::Link => format!("remove the link: rm {path}; or name its target"),
        Exposure::NoFile => format!("see what it is: ls -ld {path}; and remove it"),
        Exposure::Owner { theirs, ours } => format!(
            "work as that user (sudo -u '#{theirs}'); or, if the contents are yours, take them over: chown -R {ours} {path}"
        ),
        Exposure::OpenFile(_) => {
            format!("if nobody has changed the file, make it private: chmod 600 {path}")
        }
        // A folder for all users, such as /tmp, stays open.
        Exposure::OpenFolder(mode) if mode & STICKY_BIT != 0 => {
            let own = quoted(&place.join("kubectl-acme").to_string_lossy());
            format!("make a folder of your own in it: mkdir -m 700 {own}; and name that folder")
        }
        // kubelet leaves volumes with fsGroup in this mode, at each mount anew.
        Exposure::OpenFolder(mode) if mode & SET_GROUP_BIT != 0 => format!(
            "if all its contents are yours, make it private: chmod 700 {path}; on a volume of a Pod, set fsGroup to the \
             volume's group, or fsGroupChangePolicy: OnRootMismatch, so that it stays private"
        ),
        Exposure::OpenFolder(_) => {
            format!("if all its contents are yours, make it private: chmod 700 {path}")
        }
    }
}

/// Set-group-ID bit of a folder's mode: new files get the folder's group.
const SET_GROUP_BIT: u32 = 0o2000;

/// Sticky bit of a folder's mode: users cannot remove each other's files.
const STICKY_BIT: u32 = 0o1000;

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
                "ask for this in a Role; kubectl --as ann auth can-i list orders.acme.cert-manager.io --namespace web says yes \
                 once it is granted",
            ),
            (
                "orders.acme.cert-manager.io/status",
                None,
                "ask for this in a ClusterRole; kubectl --as ann auth can-i list orders.acme.cert-manager.io \
                 --subresource status --all-namespaces says yes once it is granted",
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
            (Guard::Policy, "Order web/a", "an administrator of the cluster"),
            (Guard::Unknown, pods, "an administrator of the cluster"),
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
