//! Where the servers of one cluster are, and how they are called.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::bed::{free_port, program};
use super::super::program;
use super::identities::Identities;
use super::{OUR_IMAGE, OUR_SOLVER};

/// Controllers of Kubernetes that run; there are no nodes for the others.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,serviceaccount-controller,\
                           endpoints-controller,endpointslice-controller";

/// Memory is there, processor time is not: Go collects a quarter as often (`GOGC`).
pub(super) const LESS_COLLECTION: &str = "400";

/// This crate's program.
const OURS: &str = program::PATH;

/// Where one cluster listens, and the folder with all it has.
pub(super) struct Site {
    pub(super) folder: PathBuf,
    pub(super) api_port: u16,
    etcd_port: u16,
    etcd_peer_port: u16,
    pub(super) http_port: u16,
    pub(super) identities: Identities,
}

impl Site {
    /// Chooses free ports, and makes certificates for them.
    pub(super) fn choose(folder: &Path) -> Self {
        let api_port = free_port();
        Self {
            folder: folder.to_owned(),
            api_port,
            etcd_port: free_port(),
            etcd_peer_port: free_port(),
            http_port: free_port(),
            identities: Identities::generate(folder, api_port),
        }
    }

    /// The file with what a server logs.
    pub(super) fn log(&self, server: &str) -> PathBuf {
        self.folder.join(format!("{server}.log"))
    }

    /// The database.
    pub(super) fn etcd(&self) -> Command {
        let client = format!("http://127.0.0.1:{}", self.etcd_port);
        let peer = format!("http://127.0.0.1:{}", self.etcd_peer_port);
        let mut command = Command::new(program("etcd"));
        command
            .env("GOGC", LESS_COLLECTION)
            .arg("--unsafe-no-fsync")
            .arg("--data-dir")
            .arg(self.folder.join("etcd"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .arg(format!("--initial-cluster=default={peer}"));
        command
    }

    /// The API server.
    pub(super) fn api_server(&self) -> Command {
        let mut command = Command::new(program("kube-apiserver"));
        command
            .env("GOGC", LESS_COLLECTION)
            .arg("--enable-priority-and-fairness=false")
            .arg(format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port))
            .arg(format!("--secure-port={}", self.api_port))
            .args(["--bind-address=127.0.0.1", "--service-cluster-ip-range=10.0.0.0/16"])
            .args(["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"])
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .args(self.identities.api_server());
        command
    }

    /// The controllers of Kubernetes.
    pub(super) fn controllers(&self) -> Command {
        let mut command = Command::new(program("kube-controller-manager"));
        command
            .args(["--leader-elect=false", "--use-service-account-credentials", "--secure-port=0"])
            .arg(format!("--controllers={CONTROLLERS}"))
            .args(self.identities.controllers());
        command
    }

    /// What stands in for a node, an ingress controller and a Gateway.
    pub(super) fn stand_in(&self) -> Command {
        let mut command = Command::new(program("peer"));
        command
            .args(["kubelet", "--listen", &format!("127.0.0.1:{}", self.http_port)])
            .args(["--image", &format!("{OUR_IMAGE}={OURS}")])
            .args(["--image", &format!("{OUR_SOLVER}={}", self.solver_entry().display())])
            .arg("--kubeconfig")
            .arg(self.identities.admin())
            .arg("--logs")
            .arg(&self.folder)
            // For a Pod every name leads to the Ingresses, whatever DNS says outside.
            .env("KUBECTL_ACME_HTTP01_RESOLVE", format!("*=127.0.0.1:{}", self.http_port));
        command
    }

    /// The entry point of our solver image: a Pod has arguments only.
    fn solver_entry(&self) -> PathBuf {
        let path = self.folder.join(OUR_SOLVER);
        fs::write(&path, format!("#!/bin/sh\nexec '{OURS}' solve \"$@\"\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}
