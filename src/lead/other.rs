//! Whoever drives in our place, as the cluster or the state folder shows it, and what to do when nothing moves there.

use crate::store::cluster::lease_object::{LeaseHolder, Who};
use crate::store::cluster::survey::Driver;
use crate::store::lease::Role;

/// Somebody else who drives, or who counts as driving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// As the cluster shows it, where one was looked at.
    pub seen: Option<Driver>,
    /// Which program it runs.
    pub program: Program,
    /// Who, in words.
    pub driver: String,
    /// What to do when nothing moves.
    pub next_step: String,
}

/// Which program somebody else who drives runs, or counts as running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// cert-manager's own controllers.
    CertManager,
    /// `run` of this program.
    KubectlAcme,
}

/// `run`, at work on the state folder.
pub(super) fn local_run() -> Other {
    Other {
        seen: None,
        program: Program::KubectlAcme,
        driver: "kubectl-acme run, in another process".to_owned(),
        next_step: "see what it says; when it ends, this command takes over".to_owned(),
    }
}

/// cert-manager, whether it is there or not: a flag says that it does the work.
pub(super) fn as_wished() -> Other {
    Other {
        seen: None,
        program: Program::CertManager,
        driver: "cert-manager".to_owned(),
        next_step: "without --driver=cert-manager it is looked whether cert-manager works here"
            .to_owned(),
    }
}

/// Somebody else who goes on driving; a one-shot command of ours ends.
pub(super) fn other(driver: &Driver) -> Option<Other> {
    let other = match driver {
        Driver::Nobody => return None,
        Driver::WithoutLease { pod } => without_lease(pod),
        Driver::Unknown { why } => unseen(why),
        Driver::Holder(holder) => match holder.who {
            Who::CertManager => cert_manager(holder),
            Who::Ours(Some(Role::Always)) => run(holder),
            Who::Ours(_) => return None,
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
        next_step: "read its log: kubectl logs --namespace cert-manager deployment/cert-manager; should it be gone, this \
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

fn unseen(why: &str) -> Other {
    Other {
        seen: None,
        program: Program::CertManager,
        driver: format!("cert-manager, as far as may be seen ({why})"),
        next_step: "it may be that nobody works here: with permission to get that Lease (deploy/rbac/order.yaml) it is seen \
                    who does, and with deploy/rbac/one-shot.yaml this command works by itself"
            .to_owned(),
    }
}
