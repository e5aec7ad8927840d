//! Secrets that providers of DNS-01 need: a Challenge tries again as soon as a Secret is created or mended.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::{Mutex, MutexGuard};

use super::is_by_record;
use crate::model::solver::Dns01Solver;
use crate::model::{Challenge, ObjectName, Record};
use crate::store::resources::typed;

/// The Secrets of unfinished Challenges, by Challenge.
#[derive(Debug, Default)]
pub(super) struct AwaitedSecrets(Mutex<BTreeMap<ObjectName, BTreeSet<ObjectName>>>);

impl AwaitedSecrets {
    /// Records the Secrets that a changed Challenge needs.
    pub(super) fn heard(&self, changed: &Record, cluster_namespace: &str) {
        if !is_by_record(changed) {
            return;
        }
        let Ok(challenge) = typed::<Challenge>(changed.clone()) else { return };
        let spec = &challenge.spec;
        let own = &challenge.metadata.namespace;
        let namespace = spec.issuer_ref.secret_namespace(own, cluster_namespace);
        let is_tidy = challenge.metadata.finalizers.is_empty();
        if challenge.has_ended() && is_tidy {
            return self.forget(&changed.key.name);
        }
        let secrets = spec.solver.dns01.as_deref().into_iter().flat_map(Dns01Solver::secrets);
        let secrets = secrets.map(|secret| ObjectName::new(namespace, &secret.name)).collect();
        self.lock().insert(changed.key.name.clone(), secrets);
    }

    /// Returns the Challenges that need a Secret.
    pub(super) fn who_needs(&self, secret: &ObjectName) -> Vec<ObjectName> {
        let all = self.lock();
        let waiting = all.iter().filter(|(_, secrets)| secrets.contains(secret));
        waiting.map(|(challenge, _)| challenge.clone()).collect()
    }

    /// Forgets a Challenge that needs no Secret any more.
    pub(super) fn forget(&self, challenge: &ObjectName) {
        self.lock().remove(challenge);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectName, BTreeSet<ObjectName>>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::State;
    use crate::reconcile::testing::challenge;

    /// Which of the two Challenges wake when that Secret changes.
    fn check(state: Option<State>, secret: (&str, &str), expected: &[&str]) {
        let awaited = AwaitedSecrets::default();
        for kind in ["Issuer", "ClusterIssuer"] {
            let waiting = challenge(kind).dns01().change(|c| {
                kind.clone_into(&mut c.spec.issuer_ref.kind);
                c.status.state = state;
                c.spec.solver.dns01 = serde_json::from_value(json!({
                    "rfc2136": {"nameserver": "192.0.2.53", "tsigSecretSecretRef": {"name": "tsig", "key": "secret"}},
                }))
                .unwrap();
            });
            let record = Record::new(serde_json::to_value(waiting.build()).unwrap()).unwrap();
            awaited.heard(&record, "cert-manager");
        }
        let woken = awaited.who_needs(&ObjectName::new(secret.0, secret.1));
        let woken: Vec<&str> = woken.iter().map(|name| name.name.as_str()).collect();
        assert_eq!(woken, expected);
        awaited.forget(&ObjectName::new("default", "Issuer"));
        assert_eq!(awaited.who_needs(&ObjectName::new("default", "tsig")), []);
    }

    #[test]
    fn a_challenge_is_woken_by_the_secret_of_its_provider() {
        for state in [None, Some(State::Pending)] {
            check(state, ("default", "tsig"), &["Issuer"]);
            check(state, ("cert-manager", "tsig"), &["ClusterIssuer"]);
            check(state, ("default", "another"), &[]);
        }
        check(Some(State::Valid), ("default", "tsig"), &[]);
    }
}
