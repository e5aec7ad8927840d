//! Process that drives in our place, as the cluster or the state folder shows it, and the next step if nothing changes.

use crate::store::cluster::lease_object::{HolderKind, LeaseHolder};
use crate::store::cluster::survey::Driver;
use crate::store::lease::Role;

/// Other process that drives, or counts as driving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Driver as the cluster shows it; `None` if no cluster was read.
    pub seen: Option<Driver>,
    /// Program of the process.
    pub program: Program,
    /// Description of the process.
    pub driver: String,
    /// Next step if nothing changes.
    pub next_step: String,
}

/// Program that another driver runs, or counts as running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// cert-manager's own controllers.
    CertManager,
    /// `run` of this program.
    KubectlAcme,
}

/// Describes `run` at work on the state folder.
pub(super) fn local_run() -> Other {
    Other {
        seen: None,
        program: Program::KubectlAcme,
        driver: "kubectl-acme run, in another process".to_owned(),
        next_step: "read its output; when it ends, this command takes over".to_owned(),
    }
}

/// Describes cert-manager, seen or not: a flag says that cert-manager does the work.
pub(super) fn as_wished() -> Other {
    Other {
        seen: None,
        program: Program::CertManager,
        driver: "cert-manager".to_owned(),
        next_step:
            "without --driver=cert-manager this command checks whether cert-manager works here"
                .to_owned(),
    }
}

/// Returns another process that keeps driving; `None` for a one-shot command of ours, which ends.
pub(super) fn other(driver: &Driver) -> Option<Other> {
    let other = match driver {
        Driver::Nobody => return None,
        Driver::WithoutLease { pod } => without_lease(pod),
        Driver::Unknown { why } => unknown(why),
        Driver::Holder(holder) => match holder.who {
            HolderKind::CertManager => cert_manager(holder),
            HolderKind::Ours(Some(Role::Always)) => run(holder),
            HolderKind::Ours(_) => return None,
        },
    };
    Some(Other { seen: Some(driver.clone()), ..other })
}

fn cert_manager(holder: &LeaseHolder) -> Other {
    let LeaseHolder { identity, namespace, .. } = holder;
    Other {
        seen: None,
        program: Program::CertManager,
        driver: format!("cert-manager ({identity} holds the Lease in {namespace})"),
        next_step: "read its log: kubectl logs --namespace cert-manager deployment/cert-manager; if it is gone, this \
                    command takes over when its Lease has expired"
            .to_owned(),
    }
}

fn run(holder: &LeaseHolder) -> Other {
    Other {
        seen: None,
        program: Program::KubectlAcme,
        driver: format!("kubectl-acme run ({})", holder.identity),
        next_step: "read its log; when it ends, this command takes over".to_owned(),
    }
}

pub(super) fn without_lease(pod: &str) -> Other {
    let (namespace, name) = pod.split_once('/').unwrap_or(("", pod));
    Other {
        seen: None,
        program: Program::CertManager,
        driver: format!("cert-manager (Pod {pod}, which holds no Lease)"),
        next_step: format!("read its log: kubectl logs --namespace {namespace} {name}"),
    }
}

fn unknown(why: &str) -> Other {
    Other {
        seen: None,
        program: Program::CertManager,
        driver: format!("cert-manager, as far as this user may see ({why})"),
        next_step: "maybe no controller works here: with permission to get that Lease (deploy/rbac/order.yaml) this \
                    command sees its holder, and with deploy/rbac/one-shot.yaml it works by itself"
            .to_owned(),
    }
}
