//! Facts about each checked certificate: its contents, its revocation status, its renewal window at the CA, whether the
//! CA may issue again (CAA), and how the certificate fits its Certificate. Several certificates are checked at once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;

use super::places::{CheckPlace, CheckPlaces, serial};
use crate::acme::inspection::InspectedChain;
use crate::commands::certificate::inspect::inquiry::{Inquiry, IssuerAuthority};
use crate::commands::certificate::inspect::servers::{self, ServerInspector};
use crate::commands::certificate::inspect::{FoundCertificate, files, stored};
use crate::context::Context;
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::replacement::{
    CaaResult, IssuerCertificateFacts, ReplacementFacts, SpecComparison, judge,
};
use crate::fetch::Fetcher;
use crate::inspect::caa_records::CaaRecords;
use crate::model::certificate_check::{CheckedCertificate, ReplacementCause};
use crate::model::certificate_report::{CertificateSource, SourceKind};
use crate::model::{Certificate, Key, ObjectName};
use crate::store::Store;
use crate::store::mirror::Mirror;

/// Number of certificates that are checked at once.
const CHECKS_AT_ONCE: usize = 16;
/// Maximum time for a server to present its certificate.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks certificates.
pub struct CertificateChecker {
    store: Option<Arc<dyn Store>>,
    inquiry: Inquiry,
    caa: CaaRecords,
    visitor: ServerInspector,
    interrupted: Interrupted,
    now: Timestamp,
}

/// A checked certificate, with the data that its replacement needs.
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// Report of the certificate.
    pub checked: CheckedCertificate,
    /// Certificate resource of the certificate, with the revision of its issuance.
    pub certificate: Option<(ObjectName, Option<i64>)>,
    /// Time at which the present certificate was requested, if known.
    pub issued_at: Option<Timestamp>,
}

impl CheckResult {
    /// Returns whether the certificate has this reason to be replaced.
    pub fn has(&self, cause: ReplacementCause) -> bool {
        self.checked.reasons.iter().any(|reason| reason.reason == cause)
    }
}

impl std::fmt::Debug for CertificateChecker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surveyor").finish_non_exhaustive()
    }
}

/// Findings at one place.
#[derive(Default)]
struct Seen {
    found: Option<FoundCertificate>,
    missing: Option<String>,
    unseen: Option<String>,
    asked: Option<SpecComparison>,
    certificate: Option<Certificate>,
    issued_at: Option<Timestamp>,
}

impl CertificateChecker {
    /// Builds a surveyor of the store's objects, if there is a store. The fetcher makes all requests; servers are verified
    /// against the roots of the file, or else of this machine.
    ///
    /// # Errors
    /// Fails when the file holds no certificate, and on a signal.
    pub async fn new(
        store: Option<Arc<dyn Store>>,
        fetcher: Fetcher,
        bundle: Option<&Path>,
        context: &Context,
    ) -> Result<Self, Failure> {
        // The mirror asks the API server once for each kind and namespace.
        let store = store.map(|store| -> Arc<dyn Store> {
            if store.in_cluster() { Arc::new(Mirror::for_one_look(store)) } else { store }
        });
        let interrupted = context.interrupted().clone();
        let (client, roots) = servers::client(bundle, &interrupted).await?;
        let now = context.now();
        let inquiry = Inquiry::new(store.clone(), &fetcher.resolver, now);
        let caa = CaaRecords::new(&fetcher.resolver);
        let (server_name, longest) = (None, SERVER_TIMEOUT);
        let visitor = ServerInspector { fetcher, client, roots, server_name, longest };
        Ok(Self { store, inquiry, caa, visitor, interrupted, now })
    }

    /// Checks all places; returns the results with the most urgent first.
    ///
    /// # Errors
    /// Fails when a named object is not found, the store fails, and on a signal.
    pub async fn survey(&self, wanted: &CheckPlaces) -> Result<Vec<CheckResult>, Failure> {
        let looks = wanted.places.iter().map(|place| self.check(place, wanted));
        let all = async {
            let mut all = Vec::new();
            let mut looks = stream::iter(looks).buffered(CHECKS_AT_ONCE);
            while let Some(looked) = looks.next().await {
                all.extend(looked?);
            }
            Ok(all)
        };
        let mut all: Vec<CheckResult> = tokio::select! {
            all = all => all,
            kind = self.interrupted.wait() => Err(Failure::silent(kind)),
        }?;
        all.sort_by_key(|one| {
            let first = one.checked.reasons.first().map(|reason| (reason.reason, reason.at));
            (one.checked.verdict, first)
        });
        Ok(all)
    }

    /// Checks the certificate at one place; `None` if there is a list of serial numbers and the certificate is not in the list.
    async fn check(
        &self,
        place: &CheckPlace,
        wanted: &CheckPlaces,
    ) -> Result<Option<CheckResult>, Failure> {
        let seen = self.inspect(place).await?;
        let content = seen.found.as_ref().map(|found| &found.reported.content);
        let number = content.and_then(|content| serial(&content.serial_number));
        let mut list = None;
        if let Some((serials, name)) = &wanted.listed {
            let is_listed = number.as_ref().is_some_and(|number| serials.contains(number));
            // A certificate that cannot be read may be in the list.
            let is_of_store = matches!(place, CheckPlace::Certificate(_)) && seen.unseen.is_none();
            if !is_listed && is_of_store {
                return Ok(None);
            }
            list = is_listed.then_some(name.as_str());
        }
        let (asked, caa) = tokio::join!(
            async {
                match &seen.found {
                    Some(found) => Some(self.inquiry.ask(found).await),
                    None => None,
                }
            },
            self.caa(&seen),
        );
        let (revocation, window) = asked.map_or((None, None), |(one, other)| (Some(one), other));
        let above = seen.found.as_ref().map(|found| above(found, self.now)).unwrap_or_default();
        let server = seen.found.as_ref().and_then(|found| found.reported.server.as_ref());
        let facts = ReplacementFacts {
            content,
            missing: seen.missing.as_deref(),
            unseen: seen.unseen.as_deref(),
            above: &above,
            top_issuer: seen.found.as_ref().map_or("", |found| &found.top_issuer),
            asked: seen.asked.as_ref(),
            server,
            listed: list,
            revocation: revocation.as_ref(),
            window: window.as_ref(),
            caa: &caa,
        };
        let judged = judge(&facts, self.now);
        let names = content.map(|content| [&content.names.dns[..], &content.names.ips].concat());
        let checked = CheckedCertificate {
            source: source(place),
            verdict: judged.verdict,
            reasons: judged.reasons,
            unknown: judged.unknown,
            names: names.unwrap_or_default(),
            serial_number: content.map(|content| content.serial_number.clone()),
            issuer: content.map(|content| content.issuer.clone()),
            not_after: content.map(|content| content.not_after),
            revocation,
            renewal_window: window,
            renewal: None,
        };
        let certificate = seen.certificate.as_ref().map(|it| (it.name(), it.status.revision));
        Ok(Some(CheckResult { checked, certificate, issued_at: seen.issued_at }))
    }

    async fn inspect(&self, place: &CheckPlace) -> Result<Seen, Failure> {
        let of = |found: FoundCertificate| Seen { found: Some(found), ..Seen::default() };
        let now = self.now;
        match (place, &self.store) {
            (CheckPlace::Certificate(certificate), Some(store)) => {
                let looked = stored::look_at(store, (**certificate).clone(), None, now).await;
                let looked = match looked {
                    Ok(looked) => looked,
                    Err(error) if error.lacks_permission() => {
                        let certificate = Some((**certificate).clone());
                        let unseen = Some(error.to_string());
                        return Ok(Seen { unseen, certificate, ..Seen::default() });
                    }
                    Err(error) => return Err(error.into()),
                };
                let (found, missing) = match looked.found {
                    Ok(found) => (Some(found), None),
                    Err(why) => (None, Some(why)),
                };
                Ok(Seen {
                    found,
                    missing,
                    unseen: None,
                    asked: Some(looked.asked),
                    certificate: Some(looked.certificate),
                    issued_at: looked.issued_at,
                })
            }
            (CheckPlace::Secret(name), Some(store)) => {
                Ok(of(stored::of_secret(store, name, None, now).await?))
            }
            (CheckPlace::Certificate(_) | CheckPlace::Secret(_), None) => Ok(Seen::default()),
            (CheckPlace::Request(request), _) => Ok(match stored::issued(request, None, now) {
                Ok(found) => of(found),
                Err(fault) => Seen { missing: Some(fault.to_string()), ..Seen::default() },
            }),
            (CheckPlace::File(name), _) => {
                let found = files::read(name, &self.interrupted).await?;
                let read = FoundCertificate::read(source(place), found, None, now);
                let read =
                    read.map_err(|fault| Failure::usage(format!("cannot check {name}: {fault}")))?;
                Ok(of(read))
            }
            (CheckPlace::Server { host, port }, _) => {
                match self.visitor.visit(host, *port, None, now).await {
                    Ok(found) => Ok(of(found)),
                    Err(failure) => Ok(Seen { unseen: Some(failure.message), ..Seen::default() }),
                }
            }
        }
    }

    /// Looks up the CAA records for the CA that would issue next.
    async fn caa(&self, seen: &Seen) -> Vec<CaaResult> {
        let Some(found) = &seen.found else { return Vec::new() };
        let wanted = seen.certificate.as_ref().and_then(|certificate| {
            certificate.spec.issuer_ref.key(&certificate.metadata.namespace)
        });
        let Some(issuer) = wanted.as_ref().or(found.issued_by.as_ref()) else {
            return Vec::new();
        };
        self.caa_of(issuer, &found.reported.content.names.dns).await
    }

    async fn caa_of(&self, issuer: &Key, names: &[String]) -> Vec<CaaResult> {
        match &*self.inquiry.authority(issuer).await {
            IssuerAuthority::Acme(issuer, directory) if !directory.caa_identities.is_empty() => {
                let account = issuer.status.acme.as_ref().map(|acme| acme.uri.as_str());
                let account = account.filter(|uri| !uri.is_empty());
                self.caa.judge(names, (&directory.caa_identities, account)).await
            }
            // A CA that does not answer is reported with the renewal window.
            _ => Vec::new(),
        }
    }
}

/// Facts about the certificates above the leaf.
fn above(found: &FoundCertificate, now: Timestamp) -> Vec<IssuerCertificateFacts> {
    let above = found.chain.iter().zip(&found.reported.chain).skip(1);
    above
        .map(|(der, link)| {
            let content = InspectedChain::read(std::slice::from_ref(der), now);
            let content = content.ok().filter(|_| !link.self_signed);
            IssuerCertificateFacts {
                subject: link.subject.clone(),
                not_after: link.not_after.timestamp(),
                signature: content.map(|read| read.content.signature_algorithm),
            }
        })
        .collect()
}

fn source(place: &CheckPlace) -> CertificateSource {
    match place {
        CheckPlace::Certificate(certificate) => CertificateSource {
            kind: SourceKind::Certificate,
            namespace: Some(certificate.metadata.namespace.clone()),
            name: certificate.metadata.name.clone(),
        },
        CheckPlace::Secret(name) => CertificateSource {
            kind: SourceKind::Secret,
            namespace: Some(name.namespace.clone()),
            name: name.name.clone(),
        },
        CheckPlace::Request(request) => CertificateSource {
            kind: SourceKind::CertificateRequest,
            namespace: Some(request.metadata.namespace.clone()),
            name: request.metadata.name.clone(),
        },
        CheckPlace::File(name) => {
            CertificateSource { kind: SourceKind::File, namespace: None, name: name.clone() }
        }
        CheckPlace::Server { host, port } => {
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            let name = format!("{host}:{port}");
            CertificateSource { kind: SourceKind::Server, namespace: None, name }
        }
    }
}
