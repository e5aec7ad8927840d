//! A real Kubernetes API server with cert-manager's CRDs, RBAC and the controllers that tidy up.
//!
//! Tests share one cluster, a [`Namespace`] each; a test that stops a server starts a cluster of its own. There is no
//! node: a stand-in runs solver Pods as local processes and serves Ingresses and HTTPRoutes at [`Cluster::http_port`],
//! where a CA is told to look instead of port 80.

mod identities;
mod kubectl;
mod peer;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use self::identities::Identities;
pub use self::kubectl::Kubectl;
pub use self::peer::Peer;
use super::bed::{Server, free_port, program};
use super::http;

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// The image that the stand-in runs as this crate's program, whatever its tag.
pub const OUR_IMAGE: &str = "kubectl-acme";

/// Controllers of Kubernetes that run; there are no nodes for the others.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,serviceaccount-controller,\
                           endpoints-controller,endpointslice-controller";

/// Looks until there is something to see; fails the test when nothing comes.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "in vain waited for {what}");
        sleep(Duration::from_millis(100));
    }
}

/// Where one cluster listens, and the folder with all it has.
struct Site {
    folder: PathBuf,
    api_port: u16,
    etcd_port: u16,
    etcd_peer_port: u16,
    http_port: u16,
    identities: Identities,
}

/// A running cluster; all of it ends when it goes, or with the test process.
pub struct Cluster {
    site: Site,
    /// Options of the API server beyond ours.
    options: Vec<String>,
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
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// Starts a cluster of one's own; `options` are flags of the API server.
    pub fn start(options: &[&str]) -> Self {
        let mut log = String::new();
        // A port that was free a moment ago may be taken: then another round.
        for _ in 0..3 {
            match Self::try_start(options) {
                Ok(cluster) => return cluster,
                Err(reason) => log = reason,
            }
        }
        panic!("cannot start a cluster: {log}");
    }

    fn try_start(options: &[&str]) -> Result<Self, String> {
        let janitor = Janitor::start();
        let api_port = free_port();
        let site = Site {
            identities: Identities::generate(&janitor.folder, api_port),
            folder: janitor.folder.clone(),
            api_port,
            etcd_port: free_port(),
            etcd_peer_port: free_port(),
            http_port: free_port(),
        };
        let etcd = Server::start(&site.etcd(), &site.log("etcd"));
        let mut cluster = Self {
            site,
            options: options.iter().map(ToString::to_string).collect(),
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
        let mut server = Server::start(&self.site.api_server(&self.options), &log);
        let deadline = Instant::now() + LIMIT;
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
        let log = self.site.log("stand-in");
        let server = Server::start(&self.site.stand_in(), &log);
        *self.stand_in.lock().unwrap() = Some(server);
        peer::wait_until_at_work("the stand-in", &log);
    }

    /// What a server logged: `etcd`, `kube-apiserver`, `controllers` or `stand-in`.
    pub fn log(&self, server: &str) -> String {
        fs::read_to_string(self.site.log(server)).unwrap_or_default()
    }
}

impl Site {
    fn log(&self, server: &str) -> PathBuf {
        self.folder.join(format!("{server}.log"))
    }

    fn etcd(&self) -> Command {
        let client = format!("http://127.0.0.1:{}", self.etcd_port);
        let peer = format!("http://127.0.0.1:{}", self.etcd_peer_port);
        let mut command = Command::new(program("etcd"));
        command
            .arg("--unsafe-no-fsync")
            .arg("--data-dir")
            .arg(self.folder.join("etcd"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .arg(format!("--initial-cluster=default={peer}"));
        command
    }

    fn api_server(&self, options: &[String]) -> Command {
        let mut command = Command::new(program("kube-apiserver"));
        command
            .arg(format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port))
            .arg(format!("--secure-port={}", self.api_port))
            .args(["--bind-address=127.0.0.1", "--service-cluster-ip-range=10.0.0.0/16"])
            .args(["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"])
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .args(self.identities.api_server())
            .args(options);
        command
    }

    fn controllers(&self) -> Command {
        let mut command = Command::new(program("kube-controller-manager"));
        command
            .args(["--leader-elect=false", "--use-service-account-credentials", "--secure-port=0"])
            .arg(format!("--controllers={CONTROLLERS}"))
            .args(self.identities.controllers());
        command
    }

    fn stand_in(&self) -> Command {
        let mut command = Command::new(program("peer"));
        command
            .args(["kubelet", "--listen", &format!("127.0.0.1:{}", self.http_port)])
            .args(["--image", &format!("{OUR_IMAGE}={}", env!("CARGO_BIN_EXE_kubectl-acme"))])
            .arg("--kubeconfig")
            .arg(self.identities.admin())
            .arg("--logs")
            .arg(&self.folder);
        command
    }
}

/// The part of a cluster that belongs to one test.
pub struct Namespace<'c> {
    cluster: &'c Cluster,
    name: String,
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
        let rules: serde_json::Value = serde_yaml::from_str(rules).expect("rules are YAML");
        let namespace = &self.name;
        let kubectl = self.kubectl();
        kubectl.run(&["create", "serviceaccount", name]);
        let role = serde_json::json!({
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

/// Removes a cluster's folder at the end, also at that of the process: nobody drops what is static.
struct Janitor {
    folder: PathBuf,
    process: Child,
}

impl Janitor {
    fn start() -> Self {
        let folder =
            tempfile::Builder::new().prefix("cluster-").tempdir().map(TempDir::keep).unwrap();
        let script =
            r#"cat >/dev/null; sleep 1; [ -e "$1/keep" ] && set -- "$1/etcd"; rm -rf "$1""#;
        let process = Command::new("setsid")
            .args(["bash", "-c", script, "janitor"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .spawn()
            .expect("bash starts");
        Self { folder, process }
    }

    /// Leaves the logs for whoever looks into a failed test.
    fn keep(&self) {
        fs::write(self.folder.join("keep"), "").ok();
        #[expect(clippy::print_stderr, reason = "shown beside the failed assertion")]
        {
            eprintln!("the cluster's logs are in {}", self.folder.display());
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().ok();
    }
}
