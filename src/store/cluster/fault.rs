//! Faults of a cluster, by what kube and its libraries report.

use std::error::Error;

use kube::client::AuthError;

use super::login;
use crate::http::exchange::{causes, is_untrusted};
use crate::store::cluster_fault::ClusterFault;

/// Prefixes that kube and its libraries put before the messages of others.
const LAYERS: [&str; 4] =
    ["ServiceError: ", "HyperError: ", "auth error: ", "client error (Connect)"];

/// Makes the fault for a request without an answer.
pub(super) fn unanswered(server: &str, error: &kube::Error) -> ClusterFault {
    let server = server.to_owned();
    let log_in = causes(error).find_map(|cause| cause.downcast_ref::<AuthError>());
    match log_in {
        Some(error) => {
            let why = login::plugin_fault(error, None).unwrap_or_else(|| chain(error));
            ClusterFault::Credentials { server, why }
        }
        None if is_untrusted(error) => ClusterFault::Untrusted { server, why: chain(error) },
        None => ClusterFault::Unreachable { server, why: chain(error) },
    }
}

/// Joins the messages of an error and all its causes, without repeats and without names of a library's layers.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut told: Vec<String> = Vec::new();
    for error in causes(error) {
        let text = error.to_string();
        let words = LAYERS.iter().fold(text.as_str(), |text, layer| text.trim_start_matches(layer));
        let is_new = !told.iter().any(|before| before.contains(words));
        if is_new && !words.is_empty() {
            told.push(words.to_owned());
        }
    }
    told.join(": ")
}
