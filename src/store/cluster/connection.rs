//! Connection to a cluster: kubeconfig files and flags as kubectl takes them, or the Pod we run in.

use std::env;
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::refusal::chain;
use super::wire::Wire;
use super::{identity, login};
use crate::http::client::USER_AGENT;
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;

/// Longest time of one request unless a flag sets another; kubectl would wait for ever.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest kubeconfig that is read, in bytes.
const MAX_KUBECONFIG_BYTES: u64 = 16 << 20;
/// Longest time until a connection is open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Flags and environment variables about the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// File in place of `KUBECONFIG` and `~/.kube/config` (`--kubeconfig`).
    pub kubeconfig: Option<PathBuf>,
    /// Context in place of the current one (`--context`).
    pub context: Option<String>,
    /// The namespace of objects that name none (`--namespace`).
    pub namespace: Option<String>,
    /// User to act as (`--as`).
    pub user: Option<String>,
    /// Groups to act as (`--as-group`).
    pub groups: Vec<String>,
    /// Longest time of one request (`--request-timeout`).
    pub request_timeout: Option<Duration>,
}

/// Access to a cluster, with context and namespace.
pub(super) struct Connected {
    /// Client of the API server.
    pub wire: Wire,
    /// Context of the kubeconfig.
    pub context: Option<String>,
    /// The namespace of objects that name none.
    pub namespace: String,
}

/// Configuration that was found.
struct FoundConfig {
    config: Config,
    context: Option<String>,
    /// Entry of the kubeconfig, for errors.
    user: String,
}

impl Connection {
    /// Reads the configuration, logs in by a plugin if there is one, and makes the client.
    pub(super) async fn connect(&self) -> Result<Connected, StoreError> {
        let FoundConfig { mut config, context, user } = self.find().await?;
        login::tidy_token(&mut config.auth_info, &user)
            .map_err(|why| ClusterFault::Configuration { why })?;
        if let Some(user) = &self.user {
            config.auth_info.impersonate = Some(user.clone());
        }
        if !self.groups.is_empty() {
            config.auth_info.impersonate_groups = Some(self.groups.clone());
        }
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.headers.push((http::header::USER_AGENT, HeaderValue::from_static(USER_AGENT)));
        // We wait and try again ourselves, where people can see it.
        config.default_retry = false;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        identity::check(&config.auth_info, &user, &server)?;
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let plugin = config.auth_info.exec.clone();
        // A log-in plugin is a process that may ask a person.
        let connect = move || login::without_a_word(|| kube::Client::try_from(config));
        let client = match tokio::task::spawn_blocking(connect).await {
            Ok(Ok(client)) => client,
            Ok(Err(kube::Error::Auth(error))) => {
                let why = login::plugin_fault(&error, plugin.as_ref());
                let why = why.unwrap_or_else(|| chain(&error));
                return Err(ClusterFault::Credentials { server, why }.into());
            }
            Ok(Err(error)) => return Err(ClusterFault::Configuration { why: chain(&error) }.into()),
            Err(_) => {
                // The library panics at a token that no header can hold.
                let why = match plugin {
                    Some(_) => login::unusable_token(plugin.as_ref()),
                    None => "making the client panicked".into(),
                };
                return Err(ClusterFault::Credentials { server, why }.into());
            }
        };
        let timeout =
            self.request_timeout.filter(|limit| !limit.is_zero()).unwrap_or(REQUEST_TIMEOUT);
        Ok(Connected { wire: Wire { client, server, timeout }, context, namespace })
    }

    /// Contexts of the kubeconfig; empty if it cannot be read.
    pub fn contexts(&self) -> Vec<String> {
        let of_any = Self { context: None, ..self.clone() };
        let kubeconfig = of_any.files().ok().flatten().unwrap_or_default();
        kubeconfig.contexts.into_iter().map(|named| named.name).collect()
    }

    async fn find(&self) -> Result<FoundConfig, ClusterFault> {
        let Some(kubeconfig) = self.files()? else { return in_cluster() };
        let context = self.context.clone().or_else(|| kubeconfig.current_context.clone());
        let Some(context) = context.filter(|name| !name.is_empty()) else {
            // As kubectl does: a file that chooses nothing does not stand in the way.
            return in_cluster().map_err(|_| ClusterFault::Configuration {
                why: "it has no current context, and none was named".into(),
            });
        };
        let user = user_of(&kubeconfig, &context)?;
        let options =
            KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let config = config.map_err(|error| unusable(&error, &context))?;
        Ok(FoundConfig { config, context: Some(context), user })
    }

    /// Reads the kubeconfig, merged from all files that exist; `None` if there is no file, and none was asked for.
    fn files(&self) -> Result<Option<Kubeconfig>, ClusterFault> {
        if let Some(path) = &self.kubeconfig {
            return read(path).map(Some);
        }
        let listed = env::var_os("KUBECONFIG").unwrap_or_default();
        let mut paths: Vec<_> =
            env::split_paths(&listed).filter(|p| !p.as_os_str().is_empty()).collect();
        if paths.is_empty() {
            paths.extend(env::home_dir().map(|home| home.join(".kube/config")));
        }
        match (merge_files(&paths)?, &self.context) {
            (None, Some(context)) => Err(ClusterFault::Configuration {
                why: format!("there is none, so that there is no context {context}"),
            }),
            (merged, _) => Ok(merged),
        }
    }
}

/// Merges all files that exist, the first with precedence; as in kubectl missing files are passed over.
fn merge_files(paths: &[PathBuf]) -> Result<Option<Kubeconfig>, ClusterFault> {
    let mut merged: Option<Kubeconfig> = None;
    for path in paths.iter().filter(|path| path.exists()) {
        let next = read(path)?;
        let all = match merged.take() {
            Some(merged) => merged.merge(next),
            None => Ok(next),
        };
        merged = Some(all.map_err(|error| ClusterFault::Configuration { why: chain(&error) })?);
    }
    Ok(merged)
}

fn read(path: &Path) -> Result<Kubeconfig, ClusterFault> {
    let refused =
        |why: &str| ClusterFault::Configuration { why: format!("{}: {why}", path.display()) };
    if let Some(why) = beyond_reading(path) {
        return Err(refused(why));
    }
    Kubeconfig::read_from(path).map_err(|error| refused(&chain(&error)))
}

/// Returns why kube, which reads any size and panics at half a UTF-16 letter, must not get a file; pipes pass unread.
fn beyond_reading(path: &Path) -> Option<&'static str> {
    let size = fs::metadata(path).ok().filter(Metadata::is_file)?.len();
    if size > MAX_KUBECONFIG_BYTES {
        return Some("it is too large");
    }
    let mut mark = [0; 2];
    File::open(path).ok()?.read_exact(&mut mark).ok()?;
    let is_utf16 = matches!(mark, [0xff, 0xfe] | [0xfe, 0xff]);
    (is_utf16 && size % 2 == 1).then_some("it ends in the middle of a letter of UTF-16")
}

/// Returns the user entry of a context. A missing entry would log nobody in, without an error.
fn user_of(kubeconfig: &Kubeconfig, context: &str) -> Result<String, ClusterFault> {
    let named = kubeconfig.contexts.iter().find(|named| named.name == context);
    let user = named.and_then(|named| named.context.as_ref()?.user.clone());
    // Behind `kubectl proxy` there is no log-in.
    match user.filter(|user| !user.is_empty()) {
        Some(user) if !kubeconfig.auth_infos.iter().any(|known| known.name == user) => {
            let why =
                format!("its context {context} names the user {user}, which it does not have");
            Err(ClusterFault::Configuration { why })
        }
        user => Ok(user.unwrap_or_else(|| "nobody".into())),
    }
}

fn unusable(error: &KubeconfigError, context: &str) -> ClusterFault {
    let why = match error {
        KubeconfigError::LoadContext(name) => format!("it has no context {name}"),
        KubeconfigError::LoadClusterOfContext(name) => {
            format!("its context {context} names the cluster {name}, which it does not have")
        }
        error => format!("context {context}: {}", chain(error)),
    };
    ClusterFault::Configuration { why }
}

/// The configuration that every Pod is given.
fn in_cluster() -> Result<FoundConfig, ClusterFault> {
    if env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        let listed = env::var("KUBECONFIG").ok().filter(|listed| !listed.is_empty());
        let why = match listed {
            Some(listed) => format!(
                "KUBECONFIG names {listed}, where no file is, and there is no Pod around us"
            ),
            None => {
                "there is neither a kubeconfig (KUBECONFIG, ~/.kube/config) nor a Pod around us"
                    .into()
            }
        };
        return Err(ClusterFault::Unconfigured { why });
    }
    let config = Config::incluster().map_err(|error| ClusterFault::Unconfigured {
        why: format!("the service account of this Pod cannot be used: {}", chain(&error)),
    })?;
    Ok(FoundConfig { config, context: None, user: "the service account of this Pod".into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(user: &str, context: &str) -> String {
        format!(
            "{{apiVersion: v1, kind: Config, current-context: {context}, \
              clusters: [{{name: c, cluster: {{server: 'https://{context}'}}}}], \
              users: [{{name: {user}, user: {{token: t}}}}], \
              contexts: [{{name: {context}, context: {{cluster: c, user: {user}}}}}]}}"
        )
    }

    #[test]
    fn several_files_are_one_and_the_first_wins() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["missing", "one", "two"].map(|name| folder.path().join(name));
        fs::write(&paths[1], kubeconfig("ann", "work")).unwrap();
        fs::write(&paths[2], kubeconfig("bob", "home")).unwrap();
        let all = merge_files(&paths).unwrap().unwrap();
        assert_eq!(all.current_context.as_deref(), Some("work"));
        assert_eq!(
            [user_of(&all, "work").unwrap(), user_of(&all, "home").unwrap()],
            ["ann", "bob"]
        );
        let server = all.clusters[0].cluster.as_ref().unwrap().server.as_deref();
        assert_eq!(server, Some("https://work"));
        assert!(merge_files(&paths[..1]).unwrap().is_none());
    }

    #[test]
    fn a_context_may_have_no_user() {
        for context in ["{cluster: c}", "{cluster: c, user: ''}", "{cluster: c, user: null}"] {
            let text = format!(
                "{{clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:8001'}}}}], \
                  contexts: [{{name: p, context: {context}}}]}}"
            );
            let found: Kubeconfig = serde_yaml::from_str(&text).unwrap();
            assert_eq!(user_of(&found, "p").unwrap(), "nobody", "{context}");
        }
        let text = "{contexts: [{name: p, context: {cluster: c, user: ann}}]}";
        assert!(user_of(&serde_yaml::from_str(text).unwrap(), "p").is_err());
    }

    #[test]
    fn a_file_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("broken");
        fs::write(&file, "clusters: 5").unwrap();
        let said = merge_files(std::slice::from_ref(&file)).unwrap_err().to_string();
        let expected = format!("cannot use the kubeconfig: {}: ", file.display());
        assert!(said.starts_with(&expected), "{said}");
        let half: Vec<u8> = [&[0xff, 0xfe][..], b"a\0b"].concat();
        fs::write(&file, half).unwrap();
        let said = merge_files(&[file]).unwrap_err().to_string();
        assert!(said.ends_with(": it ends in the middle of a letter of UTF-16"), "{said}");
    }
}
