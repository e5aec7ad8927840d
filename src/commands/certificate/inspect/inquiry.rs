//! What a CA is asked about certificates that it has issued: whether it has revoked one (by the lists or OCSP responders that the certificate names),
//! and when it wants one to be renewed (RFC 9773). No account is needed, and nothing is spent. What cannot be found out is told as
//! not known, never as good.

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

/// How long a CA may take to one answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most letters of what a CA says.
const LONGEST: usize = 300;

/// What asks CAs; each is asked once what it is.
pub struct Inquiry {
    store: Option<Arc<dyn Store>>,
    clients: Clients,
    revocation: RevocationInquiry,
    authorities: Mutex<HashMap<Key, Arc<OnceCell<Arc<AskedAuthority>>>>>,
    now: Timestamp,
}

/// The CA behind an issuer.
#[derive(Debug)]
pub enum AskedAuthority {
    /// It speaks ACME, and says this of itself.
    Acme(Box<Issuer>, Arc<Directory>),
    /// It does not speak ACME, or the issuer is not there any more.
    Other,
    /// It does not answer, or the issuer may not be read.
    Unknown(String),
}

impl std::fmt::Debug for Inquiry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inquiry").finish_non_exhaustive()
    }
}

impl Inquiry {
    /// Nobody was asked yet; issuers are in that store, where there is one.
    pub fn new(store: Option<Arc<dyn Store>>, resolver: &Arc<dyn Resolve>, now: Timestamp) -> Self {
        let revocation = RevocationInquiry::with_resolver(in_place_of_system(resolver));
        let clients = engine::clients(resolver);
        Self { store, clients, revocation, authorities: Mutex::default(), now }
    }

    /// Asks both questions about a certificate, side by side.
    pub async fn ask(
        &self,
        found: &FoundCertificate,
    ) -> (ReportedRevocation, Option<ReportedWindow>) {
        let content = &found.reported.content;
        let asked = self.revocation.state(&found.chain, content, self.now);
        let (revocation, window) = tokio::join!(asked, self.window(found));
        // A list may be older than the revocation, or not exist.
        let revocation = match found.revoked_at {
            Some(at) if revocation.state != RevocationState::Revoked => ReportedRevocation {
                at: Some(at.into()),
                ..ReportedRevocation::of(RevocationState::Revoked)
            },
            _ => revocation,
        };
        (revocation, window)
    }

    /// When a certificate is to be renewed in the eyes of its CA; nothing where it is from no issuer that is known.
    async fn window(&self, found: &FoundCertificate) -> Option<ReportedWindow> {
        let authority = self.authority(found.issued_by.as_ref()?).await;
        let unknown = |why: String| ReportedWindow {
            why: Some(shortened(&why, LONGEST)),
            ..ReportedWindow::of(WindowState::Unknown)
        };
        let issuer = match &*authority {
            AskedAuthority::Acme(issuer, _) => issuer,
            AskedAuthority::Other => return None,
            AskedAuthority::Unknown(why) => return Some(unknown(why.clone())),
        };
        let not_offered = || Some(ReportedWindow::of(WindowState::NotOffered));
        let acme = issuer.spec.acme.as_ref()?;
        let Some(id) = found.chain.first().and_then(|der| renewal_info::identifier(der)) else {
            return not_offered();
        };
        let tls = tls_of(acme);
        let asked = self.clients.renewal_info(&acme.server, &tls, &id);
        let info = match timeout(PATIENCE, asked).await.map(|reply| reply.map(|reply| reply.answer))
        {
            Ok(Ok(RenewalAnswer::Window(info))) => info,
            Ok(Ok(RenewalAnswer::NotOffered)) => return not_offered(),
            Ok(Ok(RenewalAnswer::Nothing(why) | RenewalAnswer::NotNow(why))) => {
                return Some(unknown(why));
            }
            Ok(Err(error)) => return Some(unknown(error.to_string())),
            Err(_) => return Some(unknown(late())),
        };
        let state = match (info.start > self.now, info.end > self.now) {
            (true, _) => WindowState::Ahead,
            (false, true) => WindowState::Open,
            (false, false) => WindowState::Past,
        };
        let page = shortened(&info.explanation, LONGEST);
        Some(ReportedWindow {
            state,
            start: Some(info.start.into()),
            end: Some(info.end.into()),
            explanation: (!page.is_empty()).then_some(page),
            why: None,
        })
    }

    /// The CA behind an issuer; asked once.
    pub async fn authority(&self, issuer: &Key) -> Arc<AskedAuthority> {
        let cell = Arc::clone(self.authorities.lock().entry(issuer.clone()).or_default());
        let ask = || async { Arc::new(self.find_out(issuer).await) };
        Arc::clone(cell.get_or_init(ask).await)
    }

    async fn find_out(&self, key: &Key) -> AskedAuthority {
        let Some(store) = &self.store else { return AskedAuthority::Other };
        let issuers = Resources::<Issuer>::new(Arc::clone(store), key.kind);
        let issuer = match issuers.get(&key.name).await {
            Ok(Some(issuer)) => issuer,
            Ok(None) => return AskedAuthority::Other,
            Err(error) => return AskedAuthority::Unknown(error.to_string()),
        };
        let Some(acme) = &issuer.spec.acme else { return AskedAuthority::Other };
        let tls = tls_of(acme);
        match timeout(PATIENCE, self.clients.directory(&acme.server, &tls)).await {
            Ok(Ok(directory)) => AskedAuthority::Acme(Box::new(issuer), directory),
            Ok(Err(error)) => AskedAuthority::Unknown(error.to_string()),
            Err(_) => AskedAuthority::Unknown(late()),
        }
    }
}

fn late() -> String {
    format!("no answer of the CA within {} s", PATIENCE.as_secs())
}
