//! The first line of every driving command: where, which CA, who drives.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::context::{Context, OutputArgs};
use super::failure::Failure;
use super::local::Claim;
use crate::model::{Key, Kind};
use crate::store::Store;

/// Let's Encrypt's directories, and what to call them.
const KNOWN: [(&str, &str); 2] = [
    ("https://acme-v02.api.letsencrypt.org/directory", "Let's Encrypt PRODUCTION"),
    ("https://acme-staging-v02.api.letsencrypt.org/directory", "Let's Encrypt STAGING"),
];
/// Said wherever challenges may have to be answered.
const ANSWERS: &str = "HTTP-01 challenges are answered by this program's own listener or webroot, whatever the solver's class";

/// Announces work on the local state; the CAs are those of the Issuers among the objects to be worked on.
///
/// # Errors
/// Fails when no state is chosen, or it cannot be read.
pub async fn local(
    context: &Context,
    store: &Arc<dyn Store>,
    given: &BTreeSet<Key>,
    claim: &Claim,
) -> Result<(), Failure> {
    let mut authorities = BTreeSet::new();
    for key in given.iter().filter(|k| matches!(k.kind, Kind::Issuer | Kind::ClusterIssuer)) {
        if let Some(issuer) = store.get(key).await? {
            authorities.insert(authority(issuer.text("/spec/acme/server")));
        }
    }
    let place = format!("local state in {}", context.state_folder()?.display());
    let driver = match claim {
        Claim::Alone | Claim::Drives(_) => "kubectl-acme",
        Claim::Watches => "kubectl-acme run, in another process",
    };
    say(context, &place, &authorities, driver);
    Ok(())
}

/// Announces work that leaves nothing behind but what `--out` asks for.
pub fn rehearsal(context: &Context) {
    let authorities = BTreeSet::from(["our own, trusted by nobody".to_owned()]);
    say(context, "rehearsal in a throw-away store", &authorities, "kubectl-acme");
}

fn say(context: &Context, place: &str, authorities: &BTreeSet<String>, driver: &str) {
    let printer = context.printer(&OutputArgs::default());
    let authorities: Vec<&str> = authorities.iter().map(String::as_str).collect();
    let ca = match &authorities[..] {
        [] => String::new(),
        several => format!("; CA: {}", several.join(", ")),
    };
    printer.note(&format!("{place}; namespace {}{ca}; driver: {driver}", context.namespace()));
    if !authorities.is_empty() {
        printer.note(ANSWERS);
    }
}

/// The CA behind a directory URL, in words where it is known.
fn authority(server: &str) -> String {
    match KNOWN.iter().find(|(url, _)| *url == server) {
        Some((_, name)) => (*name).to_owned(),
        None => server.to_owned(),
    }
}
