//! Whether a CA has revoked a certificate: by the lists that the certificate names, or, where it names none or none can be had, by its
//! OCSP responders. Each list and each answer is read once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use jiff::Timestamp;
use parking_lot::Mutex;
use reqwest::RequestBuilder;
use tokio::sync::OnceCell;
use url::Url;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::ocsp::{OcspAnswer, OcspFault, OcspQuestion};
use super::revocation_list::{RevocationList, RevocationListFault, issuer_within};
use crate::http::client::{self, Resolver};
use crate::http::exchange::{self, Reply, Unanswered};
use crate::model::certificate_report::{CertificateContent, ReportedRevocation, RevocationState};
use crate::model::names::is_loopback;
use crate::model::text::shortened;

/// How long a connection may take, and a whole answer.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(20));
/// Largest list that is read, in bytes.
const LARGEST_LIST: usize = 32 << 20;
/// Largest answer of a responder that is read, in bytes.
const LARGEST_ANSWER: usize = 1 << 20;
/// Most places of one sort of a certificate that are asked.
const MOST: usize = 4;
/// Most letters of a reason.
const LONGEST: usize = 300;
/// What is asked and answered (RFC 6960 appendix A).
const REQUEST: &str = "application/ocsp-request";
const RESPONSE: &str = "application/ocsp-response";

/// Why it could not be learnt whether a certificate was revoked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevocationFault {
    /// Nobody has signed the certificate whose key could be looked at.
    #[error("the certificate of its issuer is not beside it, which has to have signed the answer")]
    NoIssuer,
    /// The place is none.
    #[error("its URL cannot be read: {0}")]
    Url(url::ParseError),
    /// The place is asked in another way than HTTP.
    #[error("it is to be had by {0} only, which is not asked")]
    Scheme(String),
    /// No connection came about.
    #[error("no connection within {} s", PATIENCE.0.as_secs())]
    NotConnected,
    /// No whole answer came.
    #[error("no answer within {} s", PATIENCE.1.as_secs())]
    TimedOut,
    /// There is more than is read.
    #[error("it is larger than {} MiB", .0 >> 20)]
    TooLarge(usize),
    /// The exchange broke.
    #[error("{0}")]
    Broken(String),
    /// The server answered with an error.
    #[error("the server answered {}", .0.as_u16())]
    Status(StatusCode),
    /// What came is no list that counts.
    #[error(transparent)]
    List(#[from] RevocationListFault),
    /// What came is no answer of OCSP that counts.
    #[error(transparent)]
    Responder(#[from] OcspFault),
}

/// A list by its URL and the certificate that has to have signed it, or an answer by URL and request.
type Place = (String, Vec<u8>);
/// What was read at each place, once.
type ReadOnce<T> = Mutex<HashMap<Place, Arc<OnceCell<Arc<Result<T, RevocationFault>>>>>>;

/// What asks lists and responders, and what they have said so far.
#[derive(Default)]
pub struct RevocationInquiry {
    resolver: Option<Resolver>,
    lists: ReadOnce<RevocationList>,
    answers: ReadOnce<OcspAnswer>,
}

impl std::fmt::Debug for RevocationInquiry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RevocationInquiry").finish_non_exhaustive()
    }
}

impl RevocationInquiry {
    /// Nobody was asked so far; hosts are looked up by that resolver instead of the system's, if there is one.
    pub fn with_resolver(resolver: Option<Resolver>) -> Self {
        Self { resolver, ..Self::default() }
    }

    /// Asks whether the first certificate of a chain, DER, was revoked.
    pub async fn state(
        &self,
        chain: &[Vec<u8>],
        content: &CertificateContent,
        now: Timestamp,
    ) -> ReportedRevocation {
        let (lists, responders) = (&content.crl_urls, &content.ocsp_urls);
        let Some(first) = lists.iter().chain(responders).next() else {
            return ReportedRevocation::of(RevocationState::NotOffered);
        };
        let Some(issuer) = issuer_within(chain) else {
            return unknown(first, &RevocationFault::NoIssuer);
        };
        let serial = chain.first().and_then(|der| serial(der)).unwrap_or_default();
        let mut faults = Vec::new();
        for url in lists.iter().take(MOST) {
            match self.by_list(url, lists, (&serial, issuer), now).await {
                Ok(known) => return known,
                Err(fault) => faults.push((url, fault)),
            }
        }
        faults.truncate(1);
        for url in responders.iter().take(MOST) {
            match self.by_responder(url, (&serial, issuer), now).await {
                Ok(known) => return known,
                Err(fault) => faults.push((url, fault)),
            }
        }
        match &faults[..] {
            [] => unknown(first, &RevocationFault::NoIssuer),
            [(url, fault)] => unknown(url, fault),
            [(url, fault), (other, its), ..] => {
                unknown(url, &format_args!("{fault}; {other}: {its}"))
            }
        }
    }

    /// What the list at a URL says, of all those that the certificate names.
    async fn by_list(
        &self,
        url: &str,
        places: &[String],
        (serial, issuer): (&[u8], &[u8]),
        now: Timestamp,
    ) -> Result<ReportedRevocation, RevocationFault> {
        let place = (url.to_owned(), issuer.to_vec());
        let list = once(&self.lists, place, || async {
            let url = readable(url)?;
            let list = self.fetch(&url, LARGEST_LIST, |client| client.get(url.clone())).await?;
            Ok(RevocationList::read(&good(list)?, issuer)?)
        });
        let list = list.await;
        let list = (*list).as_ref().map_err(Clone::clone)?;
        let found = list.look(serial, places, now)?;
        Ok(known(url, found.map(|entry| (entry.at, entry.reason)), list.updates().1))
    }

    /// What the OCSP responder at a URL says.
    async fn by_responder(
        &self,
        url: &str,
        (serial, issuer): (&[u8], &[u8]),
        now: Timestamp,
    ) -> Result<ReportedRevocation, RevocationFault> {
        let question = OcspQuestion::about(serial, issuer)?;
        let request = question.request();
        let place = (url.to_owned(), request.clone());
        let answer = once(&self.answers, place, || async {
            let url = readable(url)?;
            let reply = self.fetch(&url, LARGEST_ANSWER, |client| {
                let asked = client.post(url.clone()).header(CONTENT_TYPE, REQUEST);
                asked.header(ACCEPT, RESPONSE).body(request.clone())
            });
            let mut reply = reply.await?;
            if is_no_post(reply.status) {
                let url = by_get(&url, &request)?;
                reply = self.fetch(&url, LARGEST_ANSWER, |client| client.get(url.clone())).await?;
            }
            Ok(question.read(&good(reply)?, now)?)
        });
        let answer = answer.await;
        let answer = (*answer).as_ref().map_err(Clone::clone)?;
        Ok(known(url, answer.revoked.map(|it| (it.at, it.reason)), answer.next_update))
    }

    async fn fetch(
        &self,
        url: &Url,
        largest: usize,
        ask: impl FnOnce(&reqwest::Client) -> RequestBuilder,
    ) -> Result<Reply, RevocationFault> {
        use RevocationFault as Fault;
        let client = client::named(url, is_loopback(url), PATIENCE, self.resolver.clone());
        let client = client.build().map_err(|error| Fault::Broken(exchange::chain(&error)))?;
        exchange::send(ask(&client), largest).await.map_err(|why| match why {
            Unanswered::NotConnected => Fault::NotConnected,
            Unanswered::TimedOut => Fault::TimedOut,
            Unanswered::TooLarge => Fault::TooLarge(largest),
            Unanswered::Broken(error) => Fault::Broken(exchange::chain(&error)),
        })
    }
}

/// What was heard at a place, or is now.
async fn once<T, Asked>(
    heard: &ReadOnce<T>,
    place: Place,
    ask: impl FnOnce() -> Asked,
) -> Arc<Result<T, RevocationFault>>
where
    Asked: Future<Output = Result<T, RevocationFault>>,
{
    let cell = Arc::clone(heard.lock().entry(place).or_default());
    let ask = || async { Arc::new(ask().await) };
    Arc::clone(cell.get_or_init(ask).await)
}

fn known(
    url: &str,
    revoked: Option<(Timestamp, Option<&'static str>)>,
    next_update: Option<Timestamp>,
) -> ReportedRevocation {
    let state = if revoked.is_some() { RevocationState::Revoked } else { RevocationState::Good };
    ReportedRevocation {
        url: Some(url.to_owned()),
        at: revoked.map(|(at, _)| at.into()),
        reason: revoked.and_then(|(_, reason)| reason),
        next_update: next_update.map(Into::into),
        ..ReportedRevocation::of(state)
    }
}

fn unknown(url: &str, why: &dyn std::fmt::Display) -> ReportedRevocation {
    ReportedRevocation {
        url: Some(url.to_owned()),
        why: Some(shortened(&why.to_string(), LONGEST)),
        ..ReportedRevocation::of(RevocationState::Unknown)
    }
}

fn serial(der: &[u8]) -> Option<Vec<u8>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.raw_serial().to_vec())
}

fn readable(url: &str) -> Result<Url, RevocationFault> {
    let url = Url::parse(url).map_err(RevocationFault::Url)?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(RevocationFault::Scheme(other.to_owned())),
    }
}

fn good(reply: Reply) -> Result<Vec<u8>, RevocationFault> {
    if reply.status.is_success() {
        Ok(reply.body)
    } else {
        Err(RevocationFault::Status(reply.status))
    }
}

/// Whether a server may take requests by GET only, which CAs have to offer.
fn is_no_post(status: StatusCode) -> bool {
    status.is_client_error() || status == StatusCode::NOT_IMPLEMENTED
}

/// The URL of a request that is sent by GET (RFC 6960 appendix A.1).
fn by_get(url: &Url, request: &[u8]) -> Result<Url, RevocationFault> {
    let request = STANDARD.encode(request);
    let request = request.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    Url::parse(&format!("{}/{request}", url.as_str().trim_end_matches('/')))
        .map_err(RevocationFault::Url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_by_get_is_one_part_of_the_path() {
        let url = by_get(&Url::parse("http://ocsp.example/x/").unwrap(), &[0xfb, 0xff]).unwrap();
        assert_eq!(url.as_str(), "http://ocsp.example/x/%2B%2F8%3D");
    }
}
