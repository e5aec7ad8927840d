//! Output of issued certificates: writes files, prints a line for each, and runs the command of the user.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;

use super::closing::{self, Issued, Location};
use super::files::{self, Written};
use super::folder_turn::WriteWait;
use super::purpose::Purpose;
use super::report::{self, ObjectResult, ObjectResults};
use super::subject::Results;
use crate::acme::chain::{self as acme_chain, ChainRemark};
use crate::acme::csr;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::diagnosis::case::chain::Chain;
use crate::model::{Certificate, CertificateRequest, Key, Kind, ObjectName, Secret};
use crate::objects::{chain, own_request};
use crate::print::{Printer, document};
use crate::store::resources::{Resources, typed};

/// Most certificates written at once, each by a thread; a folder that blocks delays only others of its file system.
const MAX_CONCURRENCY: usize = 8;

/// Writes certificates and keys to the folder, if there is one, and prints where each is; then runs the command of the
/// user, if there is one. Returns the failures.
pub async fn write_out(
    results: &Results<'_>,
    (issued, done): (&[&Key], &BTreeMap<Key, Timestamp>),
    stories: &mut ObjectResults,
    printer: &Printer,
    context: &Context,
) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut to_run = Vec::new();
    for (key, written) in issued.iter().zip(write_all(results, issued, context).await) {
        if let Ok(Some((_, Some(written)))) = &written {
            let story = stories.of.entry((*key).clone()).or_default();
            story.files = Some(report::files(written));
            to_run.push(((*key).clone(), written.clone()));
        }
        match written {
            Ok(Some((certificate, written))) if printer.format().is_for_people() => {
                let took = done.get(*key).map(|at| at.duration_since(results.times.0));
                let issued = took.map_or(Issued::Before, Issued::After);
                let place = match &written {
                    Some(written) => Some(Location::Files(written)),
                    None => results.purpose.is_kept().then_some(Location::Secret),
                };
                let line = closing::line(&certificate, issued, place, context.now());
                printer.note(&line);
                if took.is_some() {
                    for remark in remarks(results, key).await {
                        printer.warning(&format!("{key}: {remark}"));
                    }
                }
                for line in written.iter().flat_map(Written::outdated_lines) {
                    printer.note(&line);
                }
            }
            Ok(_) => {}
            Err(failure) => {
                let failure = failure.hint(after_a_failed_write(results.purpose));
                let story = stories.of.entry((*key).clone()).or_default();
                story.error = ObjectResult::failed(&failure).error;
                failures.push(failure);
            }
        }
    }
    for (key, failure) in run_commands(results, &to_run, printer, context).await {
        stories.of.entry(key).or_default().error = ObjectResult::failed(&failure).error;
        failures.push(failure);
    }
    failures
}

/// Returns the differences of an issued certificate from its signing request.
async fn remarks(results: &Results<'_>, key: &Key) -> Vec<ChainRemark> {
    let found = chain::of(results.store, key).await.ok().flatten();
    let Some(name) = found.as_ref().and_then(Chain::request).map(CertificateRequest::name) else {
        return Vec::new();
    };
    // A chain is read without its bulky fields.
    let whole =
        Resources::<CertificateRequest>::new(Arc::clone(results.store), Kind::CertificateRequest);
    let Ok(Some(request)) = whole.get(&name).await else { return Vec::new() };
    let pem = String::from_utf8_lossy(&request.status.certificate.0);
    let ordered = csr::read_unverified(&request.spec.request.0);
    ordered.map(|ordered| acme_chain::remarks(&pem, &ordered)).unwrap_or_default()
}

/// Returns the hint if a certificate and its key could not be written.
fn after_a_failed_write(purpose: Purpose) -> &'static str {
    if purpose.is_kept() {
        "the certificate is safe in the store; run the same command again to write it out"
    } else {
        "nothing is kept of a rehearsal: correct that, and rehearse again"
    }
}

/// Writes the files of Certificates at once, because the folder of one may block; returns results in the order of `keys`.
async fn write_all(
    results: &Results<'_>,
    keys: &[&Key],
    context: &Context,
) -> Vec<Result<Option<(Certificate, Option<Written>)>, Failure>> {
    let patience = WriteWait::until(results.times.1, context.interrupted());
    let patience = &patience;
    let write = |(index, key)| async move { (index, write(results, key, patience).await) };
    let writes =
        stream::iter(keys.iter().copied().enumerate()).map(write).buffer_unordered(MAX_CONCURRENCY);
    let mut written: Vec<_> = writes.collect().await;
    written.sort_by_key(|(index, _)| *index);
    written.into_iter().map(|(_, written)| written).collect()
}

/// Writes the result of one Certificate or CertificateRequest if there is a folder; `None` if there is no result yet.
///
/// # Errors
/// Fails when a file cannot be written.
async fn write(
    results: &Results<'_>,
    key: &Key,
    patience: &WriteWait,
) -> Result<Option<(Certificate, Option<Written>)>, Failure> {
    let store = results.store;
    let Some(record) = store.get(key).await? else { return Ok(None) };
    let certificate = own_request::certificate_of(&record)?;
    let Some(folder) = results.out else { return Ok(Some((certificate, None))) };
    if key.kind == Kind::CertificateRequest {
        let chain = typed::<CertificateRequest>(record)?.status.certificate;
        if chain.is_empty() {
            return Ok(None);
        }
        let name = own_request::folder(&certificate);
        let written = files::write_chain(folder, name, &chain.0, patience).await?;
        return Ok(Some((certificate, Some(written))));
    }
    let secret = ObjectName::new(&key.name.namespace, &certificate.spec.secret_name);
    let Some(record) = store.get(&Key::new(Kind::Secret, secret)).await? else { return Ok(None) };
    let manifest = results.out_secret.then(|| document::yaml(&document::manifest(&record.object)));
    let secret = typed::<Secret>(record)?;
    let written = files::write(folder, &secret, manifest, patience).await?;
    Ok(Some((certificate, Some(written))))
}

/// Runs the command of the user for each certificate that was written, one after the other; returns the failures.
async fn run_commands(
    results: &Results<'_>,
    written: &[(Key, Written)],
    printer: &Printer,
    context: &Context,
) -> Vec<(Key, Failure)> {
    let mut failures = Vec::new();
    let Some(command) = results.on_issued.filter(|_| results.purpose.is_kept()) else {
        return failures;
    };
    for (key, written) in written {
        match command.run(key, written, context.interrupted()).await {
            Ok(said) => said.iter().for_each(|line| printer.note(line)),
            Err(failure) => failures.push((key.clone(), failure)),
        }
    }
    failures
}
