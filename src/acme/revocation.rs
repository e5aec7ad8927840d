//! Whether a CA has revoked a certificate, by the lists that the certificate names. Each list is read once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use url::Url;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::revocation_list::{RevocationList, issuer_within};
use crate::http::client::{self, Resolver};
use crate::http::exchange::{self, Unanswered};
use crate::model::certificate_report::{CertificateContent, ReportedRevocation, RevocationState};
use crate::model::names::is_loopback;
use crate::model::text::shortened;

/// How long a connection may take, and a whole list.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(20));
/// Largest list that is read, in bytes.
const LARGEST: usize = 32 << 20;
/// Most places of one certificate that are asked.
const MOST: usize = 4;
/// Most letters of a reason.
const LONGEST: usize = 300;

/// A list by its URL and the certificate that has to have signed it.
type Place = (String, Vec<u8>);
/// A list, or why there is none.
type FetchedList = Arc<Result<RevocationList, String>>;

/// The lists that were read so far.
#[derive(Default)]
pub struct RevocationLists {
    resolver: Option<Resolver>,
    lists: Mutex<HashMap<Place, Arc<OnceCell<FetchedList>>>>,
}

impl std::fmt::Debug for RevocationLists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RevocationLists").finish_non_exhaustive()
    }
}

impl RevocationLists {
    /// None so far; hosts are looked up by that resolver instead of the system's, if there is one.
    pub fn with_resolver(resolver: Option<Resolver>) -> Self {
        Self { resolver, lists: Mutex::default() }
    }

    /// Asks whether the first certificate of a chain, DER, was revoked.
    pub async fn state(
        &self,
        chain: &[Vec<u8>],
        content: &CertificateContent,
        now: Timestamp,
    ) -> ReportedRevocation {
        let unknown = |url: Option<&String>, why: String| ReportedRevocation {
            url: url.cloned(),
            why: Some(shortened(&why, LONGEST)),
            ..ReportedRevocation::of(RevocationState::Unknown)
        };
        if content.crl_urls.is_empty() {
            return match content.ocsp_urls.first() {
                None => ReportedRevocation::of(RevocationState::NotOffered),
                Some(url) => unknown(
                    Some(url),
                    "it names an OCSP responder and no list, and OCSP is not asked".to_owned(),
                ),
            };
        }
        let first = content.crl_urls.first();
        let Some(issuer) = issuer_within(chain) else {
            let why =
                "the certificate of its issuer is not beside it, which has to have signed the list";
            return unknown(first, why.to_owned());
        };
        let serial = chain.first().and_then(|der| serial(der)).unwrap_or_default();
        let mut said = None;
        for url in content.crl_urls.iter().take(MOST) {
            let why = match &*self.list(url, issuer).await {
                Err(why) => why.clone(),
                Ok(list) => match list.look(&serial, &content.crl_urls, now) {
                    Err(fault) => fault.to_string(),
                    Ok(found) => {
                        let state = match found {
                            Some(_) => RevocationState::Revoked,
                            None => RevocationState::Good,
                        };
                        return ReportedRevocation {
                            url: Some(url.clone()),
                            at: found.map(|entry| entry.at.into()),
                            reason: found.and_then(|entry| entry.reason),
                            next_update: list.updates().1.map(Into::into),
                            ..ReportedRevocation::of(state)
                        };
                    }
                },
            };
            said.get_or_insert_with(|| unknown(Some(url), why));
        }
        said.unwrap_or_else(|| unknown(first, "nobody was asked".to_owned()))
    }

    async fn list(&self, url: &str, issuer: &[u8]) -> FetchedList {
        let place = (url.to_owned(), issuer.to_vec());
        let cell = Arc::clone(self.lists.lock().entry(place).or_default());
        let fetch = || async { Arc::new(read(url, issuer, self.resolver.as_ref()).await) };
        Arc::clone(cell.get_or_init(fetch).await)
    }
}

fn serial(der: &[u8]) -> Option<Vec<u8>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.raw_serial().to_vec())
}

async fn read(
    url: &str,
    issuer: &[u8],
    resolver: Option<&Resolver>,
) -> Result<RevocationList, String> {
    let url = Url::parse(url).map_err(|why| format!("its URL cannot be read: {why}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("it is to be had by {} only, which is not asked", url.scheme()));
    }
    let client = client::named(&url, is_loopback(&url), PATIENCE, resolver.cloned()).build();
    let client = client.map_err(|error| exchange::chain(&error))?;
    let (connect, whole) = PATIENCE;
    let reply = exchange::send(client.get(url), LARGEST).await.map_err(|why| match why {
        Unanswered::NotConnected => format!("no connection within {} s", connect.as_secs()),
        Unanswered::TimedOut => format!("no answer within {} s", whole.as_secs()),
        Unanswered::TooLarge => format!("it is larger than {} MiB", LARGEST >> 20),
        Unanswered::Broken(error) => exchange::chain(&error),
    })?;
    if !reply.status.is_success() {
        return Err(format!("the server answered {}", reply.status.as_u16()));
    }
    RevocationList::read(&reply.body, issuer).map_err(|fault| fault.to_string())
}
