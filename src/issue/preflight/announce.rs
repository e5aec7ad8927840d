//! First line of every command that drives: the store, the CA, and the driver.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::issue::flags::drive::DriveArgs;
use crate::lead::Claim;
use crate::lead::venue::Venue;
use crate::model::acme_server::{LETS_ENCRYPT, LETS_ENCRYPT_STAGING};
use crate::model::issuer::asked_type;
use crate::model::solver::Http01Solver;
use crate::model::{Issuer, Key, Kind, Record};
use crate::store::resources::typed;
use crate::store::{Scope, Store};

/// Let's Encrypt's directories, and their names for people.
const KNOWN_DIRECTORIES: [(&str, &str); 2] =
    [(LETS_ENCRYPT, "Let's Encrypt PRODUCTION"), (LETS_ENCRYPT_STAGING, "Let's Encrypt STAGING")];
/// Note printed if this machine may have to answer challenges.
const HTTP01_NOTE: &str = "HTTP-01 challenges are answered by this program's own listener or webroot, whatever the solver's class";
/// Note printed for a rehearsal in a cluster.
const CLUSTER_REHEARSAL_NOTE: &str = "that CA looks from this machine; solver objects are removed from the cluster at the end, and nothing else is written there";

/// Announces work on a store; the CAs are those of the Issuers to be worked on, in the version of the manifests that are
/// about to be applied.
///
/// # Errors
/// Fails when no state is chosen, or it cannot be read.
pub async fn work(
    context: &Context,
    store: &Arc<dyn Store>,
    given: &BTreeSet<Key>,
    records: &[Record],
    claim: &Claim,
    drive: Option<&DriveArgs>,
) -> Result<(), Failure> {
    let mut issuers = Vec::new();
    for key in given.iter().filter(|k| matches!(k.kind, Kind::Issuer | Kind::ClusterIssuer)) {
        match records.iter().find(|record| record.key == *key) {
            Some(record) => issuers.push(record.clone()),
            None => issuers.extend(store.get(key).await?),
        }
    }
    let place = format!("{}; namespace {}", context.place()?, context.namespace());
    note_place(context, &place, &authorities(&issuers), claim.driver());
    let in_place = || drive.and_then(|drive| in_place_of_solvers(drive, claim));
    let who = if store.in_cluster() { in_place() } else { Some(HTTP01_NOTE.to_owned()) };
    if let Some(who) = who {
        note_who_answers(context, &issuers, &who);
    }
    Ok(())
}

/// Announces work on everything in the store.
///
/// # Errors
/// Fails when no state is chosen, or it cannot be read.
pub async fn everything(
    context: &Context,
    store: &Arc<dyn Store>,
    claim: &Claim,
    drive: &DriveArgs,
) -> Result<(), Failure> {
    let mut issuers = store.list(Kind::Issuer, &Scope::all()).await?;
    issuers.extend(store.list(Kind::ClusterIssuer, &Scope::all()).await?);
    let place = format!("{}; all namespaces", context.place()?);
    note_place(context, &place, &authorities(&issuers), "kubectl-acme");
    // Issuers may come later.
    if !store.in_cluster() {
        note_who_answers(context, &issuers, HTTP01_NOTE);
    } else if let Some(line) = in_place_of_solvers(drive, claim) {
        context.printer(&OutputArgs::default()).note(&line);
    }
    Ok(())
}

/// Announces work that leaves nothing behind but the files of `--out`, with the solvers of a cluster or our own.
///
/// # Errors
/// Fails when no store is chosen.
pub fn rehearsal(context: &Context, in_cluster: bool, records: &[Record]) -> Result<(), Failure> {
    let namespace = context.namespace();
    let authorities = BTreeSet::from(["our own, trusted by nobody".to_owned()]);
    if !in_cluster {
        let place = format!("rehearsal in a throw-away store; namespace {namespace}");
        note_place(context, &place, &authorities, "kubectl-acme");
        if Venue::of_rehearsal(context) == Venue::Local {
            note_who_answers(context, records, HTTP01_NOTE);
        }
        return Ok(());
    }
    let place =
        format!("rehearsal with the solvers of {}; namespace {namespace}", context.place()?);
    note_place(context, &place, &authorities, "kubectl-acme");
    context.printer(&OutputArgs::default()).note(CLUSTER_REHEARSAL_NOTE);
    Ok(())
}

fn note_place(context: &Context, place: &str, authorities: &BTreeSet<String>, driver: &str) {
    let printer = context.printer(&OutputArgs::default());
    let authorities: Vec<&str> = authorities.iter().map(String::as_str).collect();
    let ca = match &authorities[..] {
        [] => String::new(),
        several => format!("; CA: {}", several.join(", ")),
    };
    printer.note(&format!("{place}{ca}; driver: {driver}"));
}

/// Prints who answers HTTP-01, if a solver asks for that: on this machine, or for a cluster whose solvers flags replace.
fn note_who_answers(context: &Context, issuers: &[Record], who: &str) {
    let mut issuers = issuers.iter().filter_map(|record| typed::<Issuer>(record.clone()).ok());
    if issuers.any(|issuer| asks_for_http01(&issuer)) {
        context.printer(&OutputArgs::default()).note(who);
    }
}

/// Returns the note on flags that replace the solvers of a cluster, with the forwarding that they need; `None` without.
fn in_place_of_solvers(drive: &DriveArgs, claim: &Claim) -> Option<String> {
    let listeners: Vec<String> = drive.http01_listen.iter().map(ToString::to_string).collect();
    let (flag, how, others) = match &drive.http01_webroot {
        Some(folder) => (
            "--http01-webroot",
            format!("files below {}", folder.display()),
            "the web server at port 80 of the names has to serve them",
        ),
        None if listeners.is_empty() => return None,
        None => (
            "--http01-listen",
            format!("this process at {}", listeners.join(" and ")),
            "the server at port 80 of the names has to forward /.well-known/acme-challenge/ to it",
        ),
    };
    Some(match claim {
        Claim::Watches(other) => {
            format!("{flag} is not used while {} drives and answers by solvers", other.driver)
        }
        Claim::Alone | Claim::Drives(_) => format!(
            "HTTP-01 challenges are answered by {how}, in place of solver Pods, Services, Ingresses and HTTPRoutes ({flag}): {others}"
        ),
    })
}

/// Returns whether names of an issuer may be answered with HTTP-01 by an Ingress or a Gateway that a solver names.
fn asks_for_http01(issuer: &Issuer) -> bool {
    let solvers = issuer.spec.acme.iter().flat_map(|acme| &acme.solvers);
    let mut http01 = solvers.filter_map(|solver| solver.http01.as_ref());
    asked_type(issuer).is_ok_and(|kind| kind.is_none()) && http01.any(names_a_class)
}

fn names_a_class(http01: &Http01Solver) -> bool {
    http01.gateway_http_route.is_some()
        || http01.ingress.as_ref().is_some_and(|ingress| {
            let class = ingress.class.as_ref().or(ingress.ingress_class_name.as_ref());
            class.is_some() || !ingress.name.is_empty()
        })
}

fn authorities(issuers: &[Record]) -> BTreeSet<String> {
    // Issuers of other types are left to cert-manager.
    let servers = issuers.iter().map(|issuer| issuer.text("/spec/acme/server"));
    servers.filter(|server| !server.is_empty()).map(authority).collect()
}

/// Returns the name of the CA with this directory URL; the URL itself if the CA is not known.
fn authority(server: &str) -> String {
    match KNOWN_DIRECTORIES.iter().find(|(url, _)| *url == server) {
        Some((_, name)) => (*name).to_owned(),
        None => server.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::lead::{Other, Program};

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        drive: DriveArgs,
    }

    /// Checks the note of `run` with these flags and this claim.
    fn check(flags: &str, claim: &Claim, expected: Option<&str>) {
        let words = ["run"].into_iter().chain(flags.split_whitespace());
        let flags = Flags::try_parse_from(words).unwrap();
        let line = in_place_of_solvers(&flags.drive, claim);
        match (&line, expected) {
            (Some(line), Some(expected)) => assert!(line.contains(expected), "{line}"),
            _ => assert_eq!(line.as_deref(), expected),
        }
    }

    #[test]
    fn flags_in_place_of_solvers_say_what_they_ask_of_others() {
        check("", &Claim::Alone, None);
        let listen = "--http01-listen 127.0.0.1:8080,[::1]:8080";
        check(
            listen,
            &Claim::Alone,
            Some(
                "by this process at 127.0.0.1:8080 and [::1]:8080, in place of solver Pods, Services, Ingresses and \
                 HTTPRoutes (--http01-listen): the server at port 80 of the names has to forward",
            ),
        );
        check("--http01-webroot /srv", &Claim::Alone, Some("by files below /srv, in place of"));
        let (driver, next_step) = ("cert-manager (pod)".to_owned(), String::new());
        let theirs =
            Claim::Watches(Other { seen: None, program: Program::CertManager, driver, next_step });
        check(listen, &theirs, Some("--http01-listen is not used while cert-manager (pod) drives"));
        check("", &theirs, None);
    }
}
