//! A test's own part of a shared cluster.

use serde_json::{Value, json};

use super::{Cluster, Kubectl, Peer};

/// The part of a cluster that belongs to one test.
pub struct Namespace<'c> {
    pub(super) cluster: &'c Cluster,
    pub(super) name: String,
}

impl Namespace<'_> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// kubectl in it, as one who may do everything.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(self.cluster.kubeconfig(), Some(self.name.clone()))
    }

    /// Makes a ServiceAccount in it with a Role of these rules, a JSON or YAML list; returns kubectl as that account.
    pub fn service_account(&self, name: &str, rules: &str) -> Kubectl {
        let rules: Value = serde_yaml::from_str(rules).expect("rules are YAML");
        let namespace = &self.name;
        let kubectl = self.kubectl();
        kubectl.run(&["create", "serviceaccount", name]);
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": name}, "rules": rules,
        });
        kubectl.apply(&role.to_string());
        let (role, account) = (format!("--role={name}"), format!("{namespace}:{name}"));
        let account = format!("--serviceaccount={account}");
        kubectl.run(&["create", "rolebinding", name, &role, &account]);
        self.log_in(name)
    }

    /// Asks for a token of a ServiceAccount that is there; returns kubectl as that account.
    pub fn log_in(&self, account: &str) -> Kubectl {
        let token = self.kubectl().run(&["create", "token", account, "--duration=24h"]);
        let name = format!("{}-{account}", self.name);
        let identities = &self.cluster.site.identities;
        Kubectl::new(identities.write_token(&name, token.trim()), Some(self.name.clone()))
    }

    /// Starts cert-manager's controllers for this namespace alone, with the Lease in it; they know no ClusterIssuers.
    pub fn peer(&self, flags: &[&str]) -> Peer {
        let own = ["--namespace", &self.name, "--leader-election-namespace", &self.name];
        Peer::start(&self.cluster.site, &[&own, flags].concat())
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.cluster.janitor.keep();
        }
    }
}
