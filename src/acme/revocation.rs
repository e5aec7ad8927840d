//! Revocation state of a certificate at its CA: by the lists that the certificate names or, if it names none or none
//! can be read, by its OCSP responders. Each list and each answer is read once.

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

/// Longest time for a connection, and for a whole answer.
const TIMEOUTS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(20));
/// Largest list that is read, in bytes.
const LARGEST_LIST: usize = 32 << 20;
/// Largest answer of a responder that is read, in bytes.
const LARGEST_ANSWER: usize = 1 << 20;
/// Most URLs of a certificate that are requested, for lists and for responders each.
const MAX_URLS: usize = 4;
/// Most characters of a reason.
const MAX_REASON_CHARS: usize = 300;
/// Media types of a request and of an answer (RFC 6960 appendix A).
const REQUEST: &str = "application/ocsp-request";
const RESPONSE: &str = "application/ocsp-response";

/// Reason why the revocation state of a certificate is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevocationFault {
    /// The chain does not hold the certificate of the issuer, which has the key to check with.
    #[error("the certificate of its issuer is not beside it, which has to have signed the answer")]
    NoIssuer,
    /// The URL is invalid.
    #[error("its URL cannot be read: {0}")]
    Url(url::ParseError),
    /// The URL has another scheme than HTTP.
    #[error("it is to be had by {0} only, which is not asked")]
    Scheme(String),
    /// No connection within the time limit.
    #[error("no connection within {} s", TIMEOUTS.0.as_secs())]
    NotConnected,
    /// No whole answer within the time limit.
    #[error("no answer within {} s", TIMEOUTS.1.as_secs())]
    TimedOut,
    /// The answer is larger than the limit, in bytes.
    #[error("it is larger than {} MiB", .0 >> 20)]
    TooLarge(usize),
    /// The exchange broke.
    #[error("{0}")]
    Broken(String),
    /// The server answered with an error.
    #[error("the server answered {}", .0.as_u16())]
    Status(StatusCode),
    /// The list does not count.
    #[error(transparent)]
    List(#[from] RevocationListFault),
    /// The OCSP answer does not count.
    #[error(transparent)]
    Responder(#[from] OcspFault),
}

/// List by its URL and the certificate that has to have signed it, or answer by URL and request.
type Place = (String, Vec<u8>);
/// Results by place, each read once.
type ReadOnce<T> = Mutex<HashMap<Place, Arc<OnceCell<Arc<Result<T, RevocationFault>>>>>>;

/// Client of lists and responders, with all results so far.
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
    /// Makes a client without results; `resolver`, if given, looks up hosts instead of the system's resolver.
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
            return report_unknown(first, &RevocationFault::NoIssuer);
        };
        let serial = chain.first().and_then(|der| serial(der)).unwrap_or_default();
        let mut faults = Vec::new();
        for url in lists.iter().take(MAX_URLS) {
            match self.by_list(url, lists, (&serial, issuer), now).await {
                Ok(known) => return known,
                Err(fault) => faults.push((url, fault)),
            }
        }
        faults.truncate(1);
        for url in responders.iter().take(MAX_URLS) {
            match self.by_responder(url, (&serial, issuer), now).await {
                Ok(known) => return known,
                Err(fault) => faults.push((url, fault)),
            }
        }
        match &faults[..] {
            [] => report_unknown(first, &RevocationFault::NoIssuer),
            [(url, fault)] => report_unknown(url, fault),
            [(url, fault), (other, its), ..] => {
                report_unknown(url, &format_args!("{fault}; {other}: {its}"))
            }
        }
    }

    /// Returns the state by the list at a URL; `places` holds all list URLs of the certificate.
    async fn by_list(
        &self,
        url: &str,
        places: &[String],
        (serial, issuer): (&[u8], &[u8]),
        now: Timestamp,
    ) -> Result<ReportedRevocation, RevocationFault> {
        let place = (url.to_owned(), issuer.to_vec());
        let list = read_once(&self.lists, place, || async {
            let url = readable(url)?;
            let list = self.fetch(&url, LARGEST_LIST, |client| client.get(url.clone())).await?;
            Ok(RevocationList::read(&good(list)?, issuer)?)
        });
        let list = list.await;
        let list = (*list).as_ref().map_err(Clone::clone)?;
        let found = list.find(serial, places, now)?;
        Ok(report_known(url, found.map(|entry| (entry.at, entry.reason)), list.updates().1))
    }

    /// Returns the state by the OCSP responder at a URL.
    async fn by_responder(
        &self,
        url: &str,
        (serial, issuer): (&[u8], &[u8]),
        now: Timestamp,
    ) -> Result<ReportedRevocation, RevocationFault> {
        let question = OcspQuestion::about(serial, issuer)?;
        let request = question.request();
        let place = (url.to_owned(), request.clone());
        let answer = read_once(&self.answers, place, || async {
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
        Ok(report_known(url, answer.revoked.map(|it| (it.at, it.reason)), answer.next_update))
    }

    async fn fetch(
        &self,
        url: &Url,
        largest: usize,
        ask: impl FnOnce(&reqwest::Client) -> RequestBuilder,
    ) -> Result<Reply, RevocationFault> {
        use RevocationFault as Fault;
        let client = client::named(url, is_loopback(url), TIMEOUTS, self.resolver.clone());
        let client = client.build().map_err(|error| Fault::Broken(exchange::chain(&error)))?;
        exchange::send(ask(&client), largest).await.map_err(|why| match why {
            Unanswered::NotConnected => Fault::NotConnected,
            Unanswered::TimedOut => Fault::TimedOut,
            Unanswered::TooLarge => Fault::TooLarge(largest),
            Unanswered::Broken(error) => Fault::Broken(exchange::chain(&error)),
        })
    }
}

/// Returns the result for a place; reads it now if there is none yet.
async fn read_once<T, Asked>(
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

fn report_known(
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

fn report_unknown(url: &str, why: &dyn std::fmt::Display) -> ReportedRevocation {
    ReportedRevocation {
        url: Some(url.to_owned()),
        why: Some(shortened(&why.to_string(), MAX_REASON_CHARS)),
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

/// Returns whether a status may mean that the server takes requests by GET only, which CAs have to offer.
fn is_no_post(status: StatusCode) -> bool {
    status.is_client_error() || status == StatusCode::NOT_IMPLEMENTED
}

/// Builds the URL of a request that is sent by GET (RFC 6960 appendix A.1).
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
