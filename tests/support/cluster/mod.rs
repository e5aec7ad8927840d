//! A real Kubernetes API server with cert-manager's CRDs, RBAC and the controllers that tidy up.
//!
//! The tests of one process share one cluster, a [`Namespace`] each. Those that settle who drives, stop a server or change what is
//! served have it for themselves ([`Arena`]): their process runs one test at a time (`tests/bed/groups`). There is no
//! node: a stand-in runs solver Pods as local processes and serves Ingresses and HTTPRoutes at [`Cluster::http_port`],
//! where a CA is told to look instead of port 80.

mod api;
pub mod api_gate;
mod bench;
mod identities;
mod janitor;
mod kubectl;
mod namespace;
mod peer;
mod site;
mod witness;

use std::fs;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use self::bench::{Bench, check};
use self::janitor::Janitor;
pub use self::kubectl::Kubectl;
pub use self::namespace::Namespace;
pub use self::peer::Peer;
use self::site::Site;
pub use self::witness::{Objects, Witness};
use super::bed::{PATIENCE, Server, program};
use super::http;

/// The image that the stand-in runs as this crate's program, whatever its tag.
pub const OUR_IMAGE: &str = "kubectl-acme";

/// The image of which the stand-in runs this crate's `solve`, whatever its tag.
pub const OUR_SOLVER: &str = "kubectl-acme-solver";

/// Whether the harness was told to run one test after the other.
fn runs_one_by_one() -> bool {
    let words: Vec<String> = std::env::args().collect();
    let is_told = words.iter().any(|word| word == "--test-threads=1")
        || words.windows(2).any(|pair| pair == ["--test-threads", "1"]);
    is_told || std::env::var("RUST_TEST_THREADS").is_ok_and(|threads| threads == "1")
}

/// Looks until there is something to see; fails the test when nothing comes.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "in vain waited for {what}");
        sleep(Duration::from_millis(100));
    }
}

/// The cluster of this test process for the one test that runs: who drives is asked of all of it.
pub struct Arena(&'static Cluster);

impl Arena {
    /// Nobody drives when this returns.
    ///
    /// # Panics
    /// Where other tests may run at the same time.
    pub fn enter() -> Self {
        assert!(
            runs_one_by_one(),
            "this test needs the cluster for itself: run it by `just cluster`, or with --test-threads=1 (tests/bed/groups says which \
             tests run so)"
        );
        let cluster = Cluster::shared();
        let leases = ["delete", "leases", "--all-namespaces", "--field-selector"];
        cluster.kubectl().run(&[&leases[..], &["metadata.name=cert-manager-controller"]].concat());
        Self(cluster)
    }
}

impl Deref for Arena {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.0
    }
}

/// A running cluster; all of it ends when it goes, or with the test process.
pub struct Cluster {
    site: Site,
    etcd: Server,
    api_server: Mutex<Option<Server>>,
    controllers: Option<Server>,
    stand_in: Mutex<Option<Server>>,
    janitor: Janitor,
    namespaces: AtomicUsize,
}

impl Cluster {
    /// The cluster of this test process, which starts at the first call. Nobody stops its servers.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn start() -> Self {
        let mut log = String::new();
        // A port that was free a moment ago may be taken: then another round.
        for _ in 0..3 {
            match Self::try_start() {
                Ok(cluster) => return cluster,
                Err(reason) => log = reason,
            }
        }
        panic!("cannot start a cluster: {log}");
    }

    fn try_start() -> Result<Self, String> {
        let janitor = Janitor::start();
        let site = Site::choose(janitor.folder());
        let etcd = Server::start(&site.etcd(), &site.log("etcd"));
        let mut cluster = Self {
            site,
            etcd,
            api_server: Mutex::default(),
            controllers: None,
            stand_in: Mutex::default(),
            janitor,
            namespaces: AtomicUsize::new(0),
        };
        cluster.try_start_api_server()?;
        cluster.install();
        let controllers = cluster.site.controllers();
        cluster.controllers = Some(Server::start(&controllers, &cluster.site.log("controllers")));
        cluster.start_stand_in();
        Ok(cluster)
    }

    /// Applies the CRDs. The garbage collector comes after them: it learns new kinds only every half minute.
    fn install(&self) {
        let kubectl = self.kubectl();
        let bed = program("kubectl").parent().map(Path::to_owned).unwrap();
        for entry in fs::read_dir(bed).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("crds-")) {
                kubectl.run(&["apply", "--server-side", "-f", &format!("{}/", path.display())]);
            }
        }
        kubectl.run(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=180s"]);
    }

    /// A kubeconfig that may do everything.
    pub fn kubeconfig(&self) -> PathBuf {
        self.site.identities.admin()
    }

    /// kubectl as one who may do everything, in no namespace of its own.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(self.kubeconfig(), None)
    }

    /// Where Ingresses and HTTPRoutes are served on 127.0.0.1; it is an HTTP proxy to them too.
    pub fn http_port(&self) -> u16 {
        self.site.http_port
    }

    /// Makes a namespace that no other test uses; its name begins with `name`.
    pub fn namespace(&self, name: &str) -> Namespace<'_> {
        let name = format!("{name}-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        self.kubectl().run(&["create", "namespace", &name]);
        Namespace { cluster: self, name }
    }

    /// Starts cert-manager's controllers for the whole cluster, with flags of cert-manager.
    pub fn peer(&self, flags: &[&str]) -> Peer {
        Peer::start(&self.site, flags)
    }

    /// The same, with self-checks that go through a gate.
    pub fn peer_through(&self, gate: u16, flags: &[&str]) -> Peer {
        Peer::start_through(&self.site, gate, flags)
    }

    /// Kills the API server, as a power cut would.
    pub fn stop_api_server(&self) {
        *self.api_server.lock().unwrap() = None;
    }

    /// Starts it again, on the same port with the same data; returns when it is ready.
    pub fn start_api_server(&self) {
        self.try_start_api_server().unwrap_or_else(|log| panic!("the API server ended: {log}"));
    }

    fn try_start_api_server(&self) -> Result<(), String> {
        let log = self.site.log("kube-apiserver");
        let mut server = Server::start(&self.site.api_server(), &log);
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.look() {
            if !server.is_running() {
                return Err(fs::read_to_string(&log).unwrap_or_default());
            }
            assert!(Instant::now() < deadline, "the API server is not ready: {error}");
            sleep(Duration::from_millis(100));
        }
        *self.api_server.lock().unwrap() = Some(server);
        Ok(())
    }

    /// Looks once whether the API server is ready.
    fn look(&self) -> std::io::Result<()> {
        http::get_tls(self.site.api_port, "/readyz", &self.site.identities.ca_pem).map(drop)
    }

    /// Kills the stand-in and with it every Pod's process.
    pub fn stop_stand_in(&self) {
        *self.stand_in.lock().unwrap() = None;
    }

    /// Starts the stand-in; Pods that had not ended run again, at other addresses.
    pub fn start_stand_in(&self) {
        self.run_stand_in(&self.site.stand_in());
    }

    fn run_stand_in(&self, command: &Command) {
        let log = self.site.log("stand-in");
        let server = Server::start(command, &log);
        *self.stand_in.lock().unwrap() = Some(server);
        peer::wait_until_at_work("the stand-in", &log);
    }

    /// Starts it so that Pods are led there, whatever the name: a cluster that does not reach its own addresses, or that knows others.
    pub fn start_stand_in_astray(&self, at: SocketAddr) {
        let mut stand_in = self.site.stand_in();
        stand_in.env("KUBECTL_ACME_HTTP01_RESOLVE", format!("*={at}"));
        self.run_stand_in(&stand_in);
    }

    /// What a server logged: `etcd`, `kube-apiserver`, `controllers` or `stand-in`.
    pub fn log(&self, server: &str) -> String {
        fs::read_to_string(self.site.log(server)).unwrap_or_default()
    }
}
