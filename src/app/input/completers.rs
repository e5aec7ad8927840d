//! Names of objects that shells and kubectl are offered at TAB.
//!
//! Names come from wherever the command would find its objects: read, never written, within a short time, and silent about
//! whatever goes wrong.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};

use super::target;
use crate::app::blocking::Interrupted;
use crate::app::context;
use crate::model::text::without_steering;
use crate::model::{Kind, Record};
use crate::store::Store;
use crate::store::cluster::{ClusterStore, Connection};
use crate::store::local::{Access, LocalStore};

/// How long names on this machine may take.
const LOCAL_TIMEOUT: Duration = Duration::from_millis(300);

/// How long names in a cluster may take, with a log-in plugin where there is one.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(3);

/// The environment form of `--local`.
const LOCAL: &str = "KUBECTL_ACME_LOCAL";

/// The environment form of `--namespace`.
const NAMESPACE: &str = "KUBECTL_ACME_NAMESPACE";

/// The environment forms of `--kubeconfig`, `--context` and `--as`.
const CLUSTER: [&str; 3] = ["KUBECTL_ACME_KUBECONFIG", "KUBECTL_ACME_CONTEXT", "KUBECTL_ACME_AS"];

/// Completes `KIND`, `NAME` and `KIND/NAME`, whichever is due.
pub fn objects() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let (line, current) = (Line::typed(), current.to_string_lossy());
        if let Some((word, _)) = current.split_once('/') {
            let names = Kind::parse(word).map(|kind| names_of(kind, &line)).unwrap_or_default();
            let paired = names.into_iter().map(|c| c.add_prefix(format!("{word}/")));
            return starting(paired, &current);
        }
        match line.kind {
            Some(kind) => starting(names_of(kind, &line), &current),
            None => starting(Kind::SIX.into_iter().map(kind_candidate), &current),
        }
    })
}

/// Completes names of one kind.
pub fn names(kind: Kind) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        starting(names_of(kind, &Line::typed()), &current.to_string_lossy())
    })
}

/// Completes names of Certificates, and those of files once something is typed.
pub fn certificates_and_files() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = names_of(Kind::Certificate, &Line::typed());
        let mut found = starting(names, &current.to_string_lossy());
        if !current.is_empty() {
            found.extend(PathCompleter::any().complete(current));
        }
        found
    })
}

fn kind_candidate(kind: Kind) -> CompletionCandidate {
    let help = match kind.short_names() {
        [] => kind.to_string(),
        short => format!("{kind} ({})", short.join(", ")),
    };
    CompletionCandidate::new(kind.singular()).help(Some(help.into()))
}

fn starting(
    candidates: impl IntoIterator<Item = CompletionCandidate>,
    current: &str,
) -> Vec<CompletionCandidate> {
    let starts = |c: &CompletionCandidate| c.get_value().to_string_lossy().starts_with(current);
    candidates.into_iter().filter(starts).collect()
}

/// What a command line says so far about which objects are meant.
#[derive(Debug, Default, PartialEq, Eq)]
struct Line {
    kind: Option<Kind>,
    /// Words without dash: commands, kinds, names.
    words: Vec<String>,
    local: Option<String>,
    /// Which cluster, as whom, and the namespace.
    cluster: Connection,
}

impl Line {
    /// The command line that is being completed, as the shell or kubectl handed it to this process.
    fn typed() -> Self {
        let mut words: Vec<String> =
            env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        if let Some(start) = words.iter().position(|word| word == "--" || word == ASK) {
            words.drain(..=start);
        }
        // The last word is the one to complete.
        words.pop();
        let mut line = Self::read(words);
        // What is typed beats the environment.
        if !line.names_cluster() {
            line.local = line.local.or_else(|| env::var(LOCAL).ok());
        }
        let cluster = &mut line.cluster;
        cluster.namespace = cluster.namespace.take().or_else(|| env::var(NAMESPACE).ok());
        let [kubeconfig, context, user] = CLUSTER.map(|variable| env::var(variable).ok());
        cluster.kubeconfig = cluster.kubeconfig.take().or_else(|| kubeconfig.map(PathBuf::from));
        cluster.context = cluster.context.take().or(context);
        cluster.user = cluster.user.take().or(user);
        line
    }

    /// Tells whether a flag names a cluster, or who we are in it.
    fn names_cluster(&self) -> bool {
        let Connection { kubeconfig, context, user, groups, .. } = &self.cluster;
        kubeconfig.is_some() || context.is_some() || user.is_some() || !groups.is_empty()
    }

    fn read(words: Vec<String>) -> Self {
        let mut line = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let flag = word.split_once('=').filter(|(flag, _)| flag.starts_with('-'));
            let (flag, value) = match flag {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let cluster = &mut line.cluster;
            match flag {
                "--local" => line.local = Some(value.unwrap_or_else(|| "1".to_owned())),
                "-n" | "--namespace" => cluster.namespace = value.or_else(|| words.next()),
                "--context" => cluster.context = value.or_else(|| words.next()),
                "--kubeconfig" => {
                    cluster.kubeconfig = value.or_else(|| words.next()).map(PathBuf::from);
                }
                "--as" => cluster.user = value.or_else(|| words.next()),
                "--as-group" => cluster.groups.extend(value.or_else(|| words.next())),
                _ if flag.starts_with('-') => {}
                _ => {
                    let kind = Kind::parse(&word).filter(|kind| Kind::SIX.contains(kind));
                    line.kind = line.kind.or(kind);
                    line.words.push(word);
                }
            }
        }
        line
    }
}

/// The names of a kind that are not on the command line yet.
fn names_of(kind: Kind, line: &Line) -> Vec<CompletionCandidate> {
    let is_new = |record: &Record| {
        let name = &record.key.name.name;
        !line.words.iter().any(|word| word == name)
    };
    let found = read(kind, line).unwrap_or_default();
    let candidates = found.iter().filter(|record| is_new(record)).map(|record| {
        CompletionCandidate::new(&record.key.name.name).help(help(record).map(Into::into))
    });
    candidates.collect()
}

fn read(kind: Kind, line: &Line) -> Option<Vec<Record>> {
    let patience = if line.local.is_some() { LOCAL_TIMEOUT } else { CLUSTER_TIMEOUT };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let found = runtime.block_on(async {
        let listed = async {
            let (store, namespace) = open(line).await?;
            store.list(kind, &target::scope(kind, Some(&namespace)).brief()).await.ok()
        };
        tokio::time::timeout(patience, listed).await.ok().flatten()
    });
    // A thread that still reads does not hold the shell.
    runtime.shutdown_background();
    found
}

/// The store that a command line means, and the namespace in it.
async fn open(line: &Line) -> Option<(Arc<dyn Store>, String)> {
    if line.local.is_none() {
        let cluster = ClusterStore::connect(&line.cluster).await.ok()?;
        let namespace = cluster.namespace().to_owned();
        return Some((Arc::new(cluster), namespace));
    }
    let folder = context::state_folder(line.local.as_deref()).ok()?;
    if !LocalStore::exists(&folder).unwrap_or(false) {
        return None;
    }
    let uninterrupted = Interrupted::default();
    let store = context::open(folder, Access::ReadOnly, &uninterrupted).await.ok()?;
    let namespace = line.cluster.namespace.clone();
    Some((store, namespace.unwrap_or_else(|| "default".to_owned())))
}

/// What helps to tell one name from another.
fn help(record: &Record) -> Option<String> {
    let words = match record.key.kind {
        Kind::Certificate => ["/spec/dnsNames/0", "/spec/secretName"],
        Kind::Challenge => ["/spec/dnsName", "/status/state"],
        Kind::Order => ["/spec/dnsNames/0", "/status/state"],
        Kind::CertificateRequest => ["/spec/issuerRef/name", ""],
        Kind::ClusterIssuer | Kind::Issuer => ["/spec/acme/server", ""],
        Kind::Event | Kind::Secret => return None,
    };
    let words = words.map(|pointer| if pointer.is_empty() { "" } else { record.text(pointer) });
    let text = without_steering(words.join(" ").trim());
    (!text.is_empty()).then_some(text)
}

/// The hidden word by which `kubectl_complete-acme` asks.
pub const ASK: &str = "__complete";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, kind: Option<Kind>, namespace: Option<&str>, local: Option<&str>) {
        let words = line.split_whitespace().map(str::to_owned).collect();
        let line_read = Line::read(words);
        assert_eq!(line_read.kind, kind, "{line}");
        assert_eq!(line_read.cluster.namespace.as_deref(), namespace, "{line}");
        assert_eq!(line_read.local.as_deref(), local, "{line}");
    }

    #[test]
    fn the_kind_is_the_first_one_named_even_as_a_command() {
        check("kubectl-acme describe cert", Some(Kind::Certificate), None, None);
        check("kubectl-acme challenge get", Some(Kind::Challenge), None, None);
        check("kubectl-acme get secret", None, None, None);
        check("kubectl-acme get", None, None, None);
    }

    #[test]
    fn flags_that_choose_the_objects_are_read() {
        check("kubectl-acme --local get order", Some(Kind::Order), None, Some("1"));
        check(
            "x get -n shop --local=/srv cert",
            Some(Kind::Certificate),
            Some("shop"),
            Some("/srv"),
        );
        check("x get --namespace=shop cert", Some(Kind::Certificate), Some("shop"), None);
    }

    #[test]
    fn flags_that_choose_the_cluster_are_read() {
        let words = "x get --context work --kubeconfig=k --as ann --as-group=a order";
        let line = Line::read(words.split(' ').map(str::to_owned).collect());
        let expected = Connection {
            kubeconfig: Some("k".into()),
            context: Some("work".to_owned()),
            user: Some("ann".to_owned()),
            groups: vec!["a".to_owned()],
            ..Connection::default()
        };
        assert_eq!(line.cluster, expected);
        assert!(line.names_cluster() && line.kind == Some(Kind::Order));
    }
}
