//! Questions to CAs about issued certificates: whether a certificate is revoked (by the lists or OCSP responders that
//! it names), and its renewal window (RFC 9773). No account is needed, and the requests cost nothing. A state that
//! cannot be found out is reported as not known, never as good.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::FoundCertificate;
use crate::acme::renewal_info::RenewalAnswer;
use crate::acme::revocation::RevocationInquiry;
use crate::acme::{Clients, Directory, renewal_info};
use crate::controllers::accounts::tls_of;
use crate::dns::{Resolve, in_place_of_system};
use crate::engine;
use crate::model::certificate_report::{
    ReportedRevocation, ReportedWindow, RevocationState, WindowState,
};
use crate::model::text::shortened;
use crate::model::{Issuer, Key};
use crate::store::Store;
use crate::store::resources::Resources;

/// Longest wait for one answer of a CA.
const CA_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest number of characters kept of a CA's text.
const MAX_TEXT_CHARS: usize = 300;

/// Client of CAs for these questions; the directory of each issuer's CA is read once.
pub struct Inquiry {
    store: Option<Arc<dyn Store>>,
    clients: Clients,
    revocation: RevocationInquiry,
    authorities: Mutex<HashMap<Key, Arc<OnceCell<Arc<IssuerAuthority>>>>>,
    now: Timestamp,
}

/// CA behind an issuer.
#[derive(Debug)]
pub enum IssuerAuthority {
    /// ACME CA, with its issuer and its directory.
    Acme(Box<Issuer>, Arc<Directory>),
    /// Issuer that is not ACME, or does not exist any more.
    Other,
    /// CA that does not answer, or issuer that cannot be read; with the reason.
    Unknown(String),
}

impl std::fmt::Debug for Inquiry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inquiry").finish_non_exhaustive()
    }
}

impl Inquiry {
    /// Builds a client that has asked no CA yet; issuers are read from `store`, if there is one.
    pub fn new(store: Option<Arc<dyn Store>>, resolver: &Arc<dyn Resolve>, now: Timestamp) -> Self {
        let revocation = RevocationInquiry::with_resolver(in_place_of_system(resolver));
        let clients = engine::clients(resolver);
        Self { store, clients, revocation, authorities: Mutex::default(), now }
    }

    /// Reads revocation and renewal window of a certificate concurrently.
    pub async fn ask(
        &self,
        found: &FoundCertificate,
    ) -> (ReportedRevocation, Option<ReportedWindow>) {
        let content = &found.reported.content;
        let asked = self.revocation.state(&found.chain, content, self.now);
        let (revocation, window) = tokio::join!(asked, self.window(found));
        // A revocation list may be older than the revocation, or not exist.
        let revocation = match found.revoked_at {
            Some(at) if revocation.state != RevocationState::Revoked => ReportedRevocation {
                at: Some(at.into()),
                ..ReportedRevocation::of(RevocationState::Revoked)
            },
            _ => revocation,
        };
        (revocation, window)
    }

    /// Reads the renewal window of a certificate at its CA; `None` if the certificate has no known ACME issuer.
    async fn window(&self, found: &FoundCertificate) -> Option<ReportedWindow> {
        let authority = self.authority(found.issued_by.as_ref()?).await;
        let unknown = |why: String| ReportedWindow {
            why: Some(shortened(&why, MAX_TEXT_CHARS)),
            ..ReportedWindow::of(WindowState::Unknown)
        };
        let issuer = match &*authority {
            IssuerAuthority::Acme(issuer, _) => issuer,
            IssuerAuthority::Other => return None,
            IssuerAuthority::Unknown(why) => return Some(unknown(why.clone())),
        };
        let not_offered = || Some(ReportedWindow::of(WindowState::NotOffered));
        let acme = issuer.spec.acme.as_ref()?;
        let Some(id) = found.chain.first().and_then(|der| renewal_info::identifier(der)) else {
            return not_offered();
        };
        let tls = tls_of(acme);
        let asked = self.clients.renewal_info(&acme.server, &tls, &id);
        let info = match timeout(CA_ANSWER_TIMEOUT, asked)
            .await
            .map(|reply| reply.map(|reply| reply.answer))
        {
            Ok(Ok(RenewalAnswer::Window(info))) => info,
            Ok(Ok(RenewalAnswer::NotOffered)) => return not_offered(),
            Ok(Ok(RenewalAnswer::Nothing(why) | RenewalAnswer::NotNow(why))) => {
                return Some(unknown(why));
            }
            Ok(Err(error)) => return Some(unknown(error.to_string())),
            Err(_) => return Some(unknown(no_answer())),
        };
        let state = match (info.start > self.now, info.end > self.now) {
            (true, _) => WindowState::Ahead,
            (false, true) => WindowState::Open,
            (false, false) => WindowState::Past,
        };
        let page = shortened(&info.explanation, MAX_TEXT_CHARS);
        Some(ReportedWindow {
            state,
            start: Some(info.start.into()),
            end: Some(info.end.into()),
            explanation: (!page.is_empty()).then_some(page),
            why: None,
        })
    }

    /// Returns the CA behind an issuer; its directory is read once.
    pub async fn authority(&self, issuer: &Key) -> Arc<IssuerAuthority> {
        let cell = Arc::clone(self.authorities.lock().entry(issuer.clone()).or_default());
        let ask = || async { Arc::new(self.read_authority(issuer).await) };
        Arc::clone(cell.get_or_init(ask).await)
    }

    async fn read_authority(&self, key: &Key) -> IssuerAuthority {
        let Some(store) = &self.store else { return IssuerAuthority::Other };
        let issuers = Resources::<Issuer>::new(Arc::clone(store), key.kind);
        let issuer = match issuers.get(&key.name).await {
            Ok(Some(issuer)) => issuer,
            Ok(None) => return IssuerAuthority::Other,
            Err(error) => return IssuerAuthority::Unknown(error.to_string()),
        };
        let Some(acme) = &issuer.spec.acme else { return IssuerAuthority::Other };
        let tls = tls_of(acme);
        match timeout(CA_ANSWER_TIMEOUT, self.clients.directory(&acme.server, &tls)).await {
            Ok(Ok(directory)) => IssuerAuthority::Acme(Box::new(issuer), directory),
            Ok(Err(error)) => IssuerAuthority::Unknown(error.to_string()),
            Err(_) => IssuerAuthority::Unknown(no_answer()),
        }
    }
}

fn no_answer() -> String {
    format!("no answer from the CA within {} s", CA_ANSWER_TIMEOUT.as_secs())
}
