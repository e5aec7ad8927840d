//! The Lease as it stands in the cluster: its holder, and whether the holder still counts, by the API server's clock.
//!
//! A Lease counts by the API server's clock: the moments in its `managedFields` against the `Date` of the answer.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::model::Time;
use crate::store::lease::Role;

/// End of the names of our holders.
pub(super) const IDENTITY_SUFFIX: &str = "_kubectl-acme";
/// Annotation that states how long a holder of ours means to drive.
const ROLE: &str = "kubectl-acme/role";
/// Clocks in metadata and in headers are cut to the second.
const ROUNDING: Duration = Duration::from_secs(1);

/// The Lease with its unknown fields, as read or written last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeaseObject(pub(super) Value);

impl LeaseObject {
    /// Makes a Lease that does not exist yet.
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": { "app.kubernetes.io/managed-by": "cert-manager" },
            },
            "spec": {},
        }))
    }

    /// Returns the holder at a moment of the API server's clock; `None` if the Lease was released or has expired.
    pub(super) fn holder(&self, now: Timestamp) -> Option<LeaseHolder> {
        let identity = self.identity();
        let until = self.last_write()?.checked_add(self.duration()).ok()?;
        if identity.is_empty() || until.checked_add(ROUNDING).ok()? <= now {
            return None;
        }
        let moment = |pointer| self.text(pointer).parse::<Timestamp>().ok();
        let who = if identity.ends_with(IDENTITY_SUFFIX) {
            HolderKind::Ours(Role::parse(self.annotation()))
        } else {
            HolderKind::CertManager
        };
        Some(LeaseHolder {
            identity: identity.to_owned(),
            who,
            namespace: self.text("/metadata/namespace").to_owned(),
            since: moment("/spec/acquireTime").map(Time::new),
        })
    }

    /// Returns the holder that has not renewed the Lease in time; `None` if the Lease is held, or was released.
    pub(super) fn lapsed(&self, now: Timestamp) -> Option<LapsedLease> {
        let identity = self.identity();
        if identity.is_empty() || self.holder(now).is_some() {
            return None;
        }
        let namespace = self.text("/metadata/namespace").to_owned();
        Some(LapsedLease { namespace, identity: identity.to_owned(), renewed: self.last_write()? })
    }

    /// Name of the holder, whether or not it still counts.
    pub(super) fn identity(&self) -> &str {
        self.text("/spec/holderIdentity")
    }

    /// Enters a new holder.
    pub(super) fn take(&mut self, identity: &str, duration: Duration, role: Role, now: Timestamp) {
        let transitions = self.0.pointer("/spec/leaseTransitions").and_then(Value::as_u64);
        // As client-go counts: a new Lease begins with 0.
        let is_new = self.text("/metadata/uid").is_empty();
        self.set("leaseTransitions", transitions.map_or(0, |n| n + u64::from(!is_new)).into());
        self.set("holderIdentity", identity.into());
        self.set("leaseDurationSeconds", duration.as_secs().into());
        self.set("acquireTime", moment(now));
        self.set("renewTime", moment(now));
        let annotations = &mut self.0["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations[ROLE] = role.as_str().into();
    }

    /// Enters that the holder is still there.
    pub(super) fn renew(&mut self, now: Timestamp) {
        self.set("renewTime", moment(now));
    }

    /// Releases the Lease as cert-manager does.
    pub(super) fn release(&mut self, now: Timestamp) {
        self.set("holderIdentity", "".into());
        self.set("leaseDurationSeconds", 1.into());
        self.set("acquireTime", moment(now));
        self.set("renewTime", moment(now));
        if let Some(Value::Object(annotations)) = self.0.pointer_mut("/metadata/annotations") {
            annotations.remove(ROLE);
        }
    }

    /// Time of the last write, by the API server's clock; the holder's own clock may be wrong.
    fn last_write(&self) -> Option<Timestamp> {
        let fields = self.0.pointer("/metadata/managedFields").and_then(Value::as_array);
        let times = fields.into_iter().flatten().filter_map(|entry| entry["time"].as_str());
        let last = times.filter_map(|time| time.parse().ok()).max();
        last.or_else(|| self.text("/spec/renewTime").parse().ok())
    }

    fn duration(&self) -> Duration {
        let seconds = self.0.pointer("/spec/leaseDurationSeconds").and_then(Value::as_u64);
        Duration::from_secs(seconds.unwrap_or_default())
    }

    fn annotation(&self) -> &str {
        let annotations = self.0.pointer("/metadata/annotations");
        annotations.and_then(|all| all.get(ROLE)?.as_str()).unwrap_or_default()
    }

    fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn set(&mut self, field: &str, value: Value) {
        let spec = &mut self.0["spec"];
        if !spec.is_object() {
            *spec = json!({});
        }
        spec[field] = value;
    }
}

/// Writes a time as Leases have it: six digits below the second.
fn moment(at: Timestamp) -> Value {
    format!("{at:.6}").into()
}

/// Holder of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// Name of the holder, of its own choice.
    pub identity: String,
    /// Kind of holder.
    pub who: HolderKind,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Time at which the holder took the Lease.
    pub since: Option<Time>,
}

/// A Lease that has run out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LapsedLease {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the last holder, of its own choice.
    pub identity: String,
    /// Time of the last renewal.
    pub renewed: Timestamp,
}

/// Kind of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderKind {
    /// cert-manager, or another program that is not ours.
    CertManager,
    /// A process of ours, and how long it means to drive, if the Lease states that.
    Ours(Option<Role>),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Lease of cert-manager's controller as a cluster showed it, written at 04:47:22.
    fn held() -> LeaseObject {
        let mut lease = LeaseObject::new("kube-system", "cert-manager-controller");
        lease.0["metadata"]["managedFields"] = json!([
            { "manager": "kubectl-edit", "time": "2026-11-21T04:40:00Z" },
            { "manager": "cert-manager-leader-election", "time": "2026-11-21T04:47:22Z" },
        ]);
        lease.0["metadata"]["uid"] = "7e1e4d07".into();
        lease.0["spec"] = json!({
            "acquireTime": "2026-11-21T04:46:52.255322Z",
            "holderIdentity": "node-a-external-cert-manager-controller",
            "leaseDurationSeconds": 60,
            "leaseTransitions": 3,
            "renewTime": "2026-11-21T04:47:22.271924Z",
        });
        lease
    }

    fn at(time: &str) -> Timestamp {
        format!("2026-11-21T{time}Z").parse().unwrap()
    }

    fn check(lease: &LeaseObject, time: &str, expected: Option<&HolderKind>) {
        assert_eq!(lease.holder(at(time)).map(|holder| holder.who).as_ref(), expected, "{time}");
    }

    #[test]
    fn a_holder_counts_until_the_lease_has_run_out() {
        check(&held(), "04:47:22", Some(&HolderKind::CertManager));
        check(&held(), "04:48:22.9", Some(&HolderKind::CertManager));
        check(&held(), "04:48:23", None);
    }

    #[test]
    fn the_holder_s_own_clock_does_not_count() {
        for wrong in ["2020-01-01T00:00:00.000000Z", "2100-01-01T00:00:00.000000Z"] {
            let mut lease = held();
            lease.0["spec"]["renewTime"] = wrong.into();
            check(&lease, "04:48:00", Some(&HolderKind::CertManager));
            check(&lease, "04:49:00", None);
        }
    }

    #[test]
    fn without_the_server_s_clock_the_holder_s_serves() {
        let mut lease = held();
        lease.0["metadata"]["managedFields"] = Value::Null;
        check(&lease, "04:48:00", Some(&HolderKind::CertManager));
        check(&lease, "04:49:00", None);
    }

    #[test]
    fn a_lease_that_was_given_back_is_free_at_once() {
        let mut lease = held();
        lease.take("here_x_kubectl-acme", Duration::from_secs(15), Role::Once, at("04:47:22"));
        check(&lease, "04:47:23", Some(&HolderKind::Ours(Some(Role::Once))));
        assert_eq!(lease.0["spec"]["leaseTransitions"], 4);
        lease.release(at("04:47:24"));
        check(&lease, "04:47:24", None);
        let expected = json!({
            "acquireTime": "2026-11-21T04:47:24.000000Z",
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "leaseTransitions": 4,
            "renewTime": "2026-11-21T04:47:24.000000Z",
        });
        assert_eq!((&lease.0["spec"], lease.annotation()), (&expected, ""));
    }

    #[test]
    fn a_new_lease_looks_as_cert_manager_makes_it() {
        let mut lease = LeaseObject::new("kube-system", "cert-manager-controller");
        lease.take("here_x_kubectl-acme", Duration::from_secs(15), Role::Always, at("04:47:22.5"));
        let expected = json!({
            "acquireTime": "2026-11-21T04:47:22.500000Z",
            "holderIdentity": "here_x_kubectl-acme",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 0,
            "renewTime": "2026-11-21T04:47:22.500000Z",
        });
        assert_eq!(lease.0["spec"], expected);
        assert_eq!(lease.annotation(), "always");
    }
}
