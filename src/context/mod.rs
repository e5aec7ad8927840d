//! Context: the only place that builds real stores, clients and clocks.

pub mod blocking;
pub mod ci_reports;
pub mod confirm;
pub mod failure;
pub mod flags;
pub mod output_files;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;

use self::blocking::{Interrupted, Unfinished, aside};
use self::ci_reports::PipelineReports;
use self::failure::Failure;
use self::flags::global::GlobalArgs;
use self::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::print::colour::{Colour, Colours};
use crate::print::format::Format;
use crate::print::table::Headers;
use crate::print::talk::MessageStream;
use crate::print::{Printer, terminal};
use crate::store::Store;
use crate::store::cluster::lease::ClusterGuard;
use crate::store::cluster::{ClusterStore, Confinement};
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;
use crate::store::local::{Access, LocalStore};
use crate::store::mirror::Mirror;

/// Surroundings of a command: flags, output streams, signals, cluster and reports.
#[derive(Debug)]
pub struct Context {
    /// Flags of every command.
    pub global: GlobalArgs,
    talk: MessageStream,
    colours: Colours,
    interrupted: Interrupted,
    cluster: Option<ClusterStore>,
    lease: Mutex<Option<ClusterGuard>>,
    has_printed: Arc<AtomicBool>,
    reports: PipelineReports,
}

/// Standard output, which remembers whether anything was written there.
struct Product(Arc<AtomicBool>);

impl Write for Product {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.store(true, Ordering::Relaxed);
        io::stdout().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

impl Context {
    /// Makes the context of a command with these flags; no cluster is connected yet.
    pub fn new(
        global: GlobalArgs,
        talk: MessageStream,
        colours: Colours,
        interrupted: Interrupted,
    ) -> Self {
        let (cluster, lease, has_printed) = (None, Mutex::default(), Arc::default());
        let reports = PipelineReports::default();
        Self { global, talk, colours, interrupted, cluster, lease, has_printed, reports }
    }

    /// Makes a printer in the format that was asked for.
    pub fn printer(&self, output: &OutputArgs) -> Printer {
        let headers = if output.no_headers { Headers::Hidden } else { Headers::Shown };
        let format = output.output.clone().unwrap_or_default();
        let product = Box::new(Product(Arc::clone(&self.has_printed)));
        Printer::new(product, self.talk.clone(), format, headers, self.colours)
            .within(terminal::width())
    }

    /// Prints the failure as a document, if a document is asked for and nothing else was printed.
    pub fn print_error(&self, failure: &Failure) {
        let format = self.global.format.clone().unwrap_or_default();
        let takes_any = matches!(format, Format::Json | Format::Jsonl | Format::Yaml);
        if !takes_any || self.has_printed.load(Ordering::Relaxed) {
            return;
        }
        let document = failure.document().and_then(|error| format.document(&json!(error)));
        if let Some(text) = document {
            let output = OutputArgs { output: Some(format), no_headers: false };
            // A failed write is ignored: the reader is gone, and the exit code still reports the failure.
            self.printer(&output).data(&text).ok();
        }
    }

    /// Returns the reports for the CI system.
    pub fn reports(&self) -> &PipelineReports {
        &self.reports
    }

    /// Chooses the reports, and checks that they can be written, before any work begins.
    ///
    /// # Errors
    /// Fails if a report cannot be written, or two reports would be in one place.
    pub async fn choose_reports(&mut self) -> Result<(), Failure> {
        let has_document = self.global.format.is_some();
        let chosen = PipelineReports::chosen(self.global.reports.as_deref(), has_document)?;
        chosen.expect_writable(&self.interrupted).await?;
        self.reports = chosen;
        Ok(())
    }

    /// Writes the reports of a command that has ended.
    ///
    /// # Errors
    /// Fails if a report cannot be written.
    pub async fn write_reports(&self, ended: &Result<(), Failure>) -> Result<(), Failure> {
        let mut printer = self.printer(&OutputArgs::default());
        let tone = self.global.log.tone();
        self.reports.write(ended, (&mut printer, tone), &self.interrupted).await
    }

    /// Returns the writer of messages to standard error.
    pub fn talk(&self) -> MessageStream {
        self.talk.clone()
    }

    /// Returns whether messages on standard error are coloured.
    pub fn talk_colour(&self) -> Colour {
        self.colours.talk
    }

    /// Returns the signals that ask this process to end.
    pub fn interrupted(&self) -> &Interrupted {
        &self.interrupted
    }

    /// Returns the moment for computing ages; `KUBECTL_ACME_NOW` fixes the moment for tests of outputs.
    pub fn now(&self) -> Timestamp {
        let fixed = std::env::var("KUBECTL_ACME_NOW").ok();
        fixed.and_then(|text| text.parse().ok()).unwrap_or_else(Timestamp::now)
    }

    /// Connects to the cluster, unless `--local` is given.
    ///
    /// # Errors
    /// Fails if neither a cluster nor `--local` is chosen (no store is chosen silently), or the configuration cannot be used.
    pub async fn connect(&mut self) -> Result<(), Failure> {
        if self.global.local.is_some() {
            return Ok(());
        }
        let connection = self.global.cluster.connection(self.global.namespace.as_deref());
        match ClusterStore::connect(&connection).await {
            Ok(store) => self.cluster = Some(store),
            Err(StoreError::Cluster(fault)) => {
                return Err(match *fault {
                    ClusterFault::Unconfigured { why } => {
                        no_store(&format!("--local is not given, and {why}"))
                    }
                    fault => StoreError::from(fault).into(),
                });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Keeps a Lease until the command has ended, in whatever way.
    pub fn keep(&self, lease: ClusterGuard) {
        *self.lease.lock() = Some(lease);
    }

    /// Returns whether this command holds the Lease under that name, or has held the Lease last.
    pub fn has_held(&self, identity: &str) -> bool {
        let lease = self.lease.lock();
        lease.as_ref().is_some_and(|lease| lease.identity() == identity)
    }

    /// Releases the Lease that was kept, if any.
    pub async fn give_lease_back(&self) {
        let lease = self.lease.lock().take();
        if let Some(lease) = lease {
            lease.release().await;
        }
    }

    /// Returns the cluster; `None` if the resources are on this machine.
    pub fn cluster(&self) -> Option<&ClusterStore> {
        self.cluster.as_ref()
    }

    /// Describes the place of the resources.
    ///
    /// # Errors
    /// Fails if no store is chosen.
    pub fn place(&self) -> Result<String, Failure> {
        let Some(cluster) = &self.cluster else {
            return Ok(format!("local state in {}", self.state_folder()?.display()));
        };
        Ok(match cluster.context() {
            Some(name) => format!("context {name}"),
            None => format!("cluster {}", cluster.server()),
        })
    }

    /// Returns the folder of the local state if no state is there yet: the user may mean another folder.
    ///
    /// # Errors
    /// Fails if no store is chosen, or the folder cannot be read.
    pub fn absent_state(&self) -> Result<Option<PathBuf>, Failure> {
        if self.cluster.is_some() {
            return Ok(None);
        }
        let folder = self.state_folder()?;
        Ok((!LocalStore::exists(&folder)?).then_some(folder))
    }

    /// Returns the namespace of objects that name none: the given namespace, else the context's, locally `default`.
    pub fn namespace(&self) -> &str {
        let given = self.global.namespace.as_deref();
        let of_context = self.cluster.as_ref().map(ClusterStore::namespace);
        given.or(of_context).unwrap_or("default")
    }

    /// Returns the folder of the local state.
    ///
    /// # Errors
    /// Fails without `--local`: no store is chosen silently.
    pub fn state_folder(&self) -> Result<PathBuf, Failure> {
        state_folder(self.global.local.as_deref())
    }

    /// Opens the store.
    ///
    /// # Errors
    /// Fails if no store is chosen, or the store cannot be used.
    pub async fn store(&self, access: Access) -> Result<Arc<dyn Store>, Failure> {
        match &self.cluster {
            Some(cluster) => Ok(Arc::new(cluster.clone())),
            None => open(self.state_folder()?, access, &self.interrupted).await,
        }
    }

    /// Opens the store to read its objects; a folder without local state is an error.
    ///
    /// # Errors
    /// Fails if no store is chosen, the store cannot be used, or its folder has no local state.
    pub async fn existing_store(&self) -> Result<Arc<dyn Store>, Failure> {
        match self.absent_state()? {
            Some(folder) => Err(Failure::usage(no_state_in(&folder)).hint(OTHER_FOLDER_HINT)),
            None => self.store(Access::ReadOnly).await,
        }
    }

    /// Opens the store, confined to the part of the cluster in which the work is done; a local store is not confined.
    ///
    /// # Errors
    /// Fails if no store is chosen, or the store cannot be used.
    pub async fn store_within(
        &self,
        confinement: Option<Confinement>,
        access: Access,
    ) -> Result<Arc<dyn Store>, Failure> {
        match (&self.cluster, confinement) {
            (Some(cluster), Some(part)) => Ok(Arc::new(cluster.confined_by(part))),
            _ => self.store(access).await,
        }
    }

    /// Prepares a store for constant reading: in a cluster, watched objects are kept in memory. Locally the indexes of the
    /// database suffice, and 3,000 certificates would take 360 MB.
    pub fn at_hand(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        match self.cluster {
            Some(_) => Arc::new(Mirror::new(store)),
            None => store,
        }
    }

    /// Returns the folder for certificates and keys: the given folder; locally, `out` in the state folder; in a cluster, none.
    ///
    /// # Errors
    /// Fails if no store is chosen.
    pub fn out(&self, given: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
        match (given, &self.cluster) {
            (Some(folder), _) => Ok(Some(folder.to_owned())),
            (None, Some(_)) => Ok(None),
            (None, None) => Ok(Some(self.state_folder()?.join("out"))),
        }
    }
}

/// Returns the folder that the value of `--local` means.
///
/// # Errors
/// Fails without `--local`: no store is chosen silently.
pub fn state_folder(local: Option<&str>) -> Result<PathBuf, Failure> {
    match local {
        Some("1" | "true" | "") => default_folder(),
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Err(no_store("--local is missing")),
    }
}

fn no_store(why: &str) -> Failure {
    Failure::usage(format!("no store chosen: {why}"))
        .hint("--local keeps everything on this machine (or KUBECTL_ACME_LOCAL=1)")
        .hint("--kubeconfig FILE, KUBECONFIG or ~/.kube/config names a cluster")
}

/// Opens the local store of a folder; for reading, a missing folder is an empty store.
///
/// # Errors
/// Fails if the store cannot be used, or a signal came.
pub async fn open(
    folder: PathBuf,
    access: Access,
    interrupted: &Interrupted,
) -> Result<Arc<dyn Store>, Failure> {
    if access == Access::ReadOnly && !LocalStore::exists(&folder)? {
        return Ok(Arc::new(crate::store::memory::MemoryStore::new()));
    }
    // Another process may hold the database, and a disk may not answer.
    match aside(interrupted, Duration::ZERO, move || LocalStore::open(&folder, access)).await {
        Ok(store) => Ok(Arc::new(store?)),
        Err(Unfinished::Signal(kind)) if access == Access::ReadOnly => Err(Failure::silent(kind)),
        Err(Unfinished::Signal(kind)) => Err(Failure::interrupted(kind)),
        Err(Unfinished::Panic) => {
            Err(Failure::new(FailureKind::Unexpected, "opening the store panicked"))
        }
    }
}

/// `$XDG_STATE_HOME/kubectl-acme`, else `~/.local/state/kubectl-acme`.
fn default_folder() -> Result<PathBuf, Failure> {
    let variable = |name| std::env::var_os(name).filter(|v| Path::new(v).is_absolute());
    let base = variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".local/state")));
    base.map(|base| base.join("kubectl-acme")).ok_or_else(|| {
        Failure::usage("no folder for the local state: neither XDG_STATE_HOME nor HOME is set")
            .hint("name one: --local=DIR")
    })
}

/// Hint for a folder without local state.
pub const OTHER_FOLDER_HINT: &str =
    "name the folder that the Certificates were ordered in, --local=DIR";

/// Returns the message for a folder without local state.
pub fn no_state_in(folder: &Path) -> String {
    format!("there is no local state in {} yet", folder.display())
}

/// Opens the store; waits until another command has made it.
///
/// # Errors
/// Fails if no store is chosen, the store cannot be read, or a signal came.
pub async fn store_when_there(context: &Context) -> Result<Arc<dyn Store>, Failure> {
    if let Some(folder) = context.absent_state()? {
        context.talk().line(&format!("waiting for state in {}", folder.display()));
    }
    while context.absent_state()?.is_some() {
        tokio::select! {
            () = tokio::time::sleep(STATE_CHECK_PERIOD) => {}
            kind = context.interrupted().wait() => return Err(Failure::silent(kind)),
        }
    }
    context.store(Access::ReadOnly).await
}

/// Time between two checks whether there is a state by now.
const STATE_CHECK_PERIOD: Duration = Duration::from_millis(250);
