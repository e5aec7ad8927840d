//! One CA, shared by all its accounts: connections, directory, nonces, and counts of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::LOCATION;
use http::{HeaderMap, HeaderName, Method};
use reqwest::Client;
use tokio::time::Instant;
use url::Url;

use super::error::{self, AcmeError, Fault};
use super::named_urls::NamedUrls;
use super::nonces::Nonces;
use super::pace::{Pace, RequestPlace};
use super::refusal::refused;
use super::refused_requests::RefusedRequests;
use super::replies::Directory;
use super::shared::Shared;
use super::telling::{NamedUrl, RequestLog};
use super::transport::{JSON_LIMIT, TlsOptions, client};
use super::under_way::{Effect, OpenRequests};
use super::wire::{self, Origin};
use crate::http::client::Resolver;
use crate::http::exchange::Reply;
use crate::http::headers::text;
use crate::model::request_rates::{Endpoint as Counted, RequestRates};

pub(super) const REPLAY_NONCE: HeaderName = HeaderName::from_static("replay-nonce");
/// Longest time for which a directory is used before it is read again.
const DIRECTORY_MAX_AGE: Duration = Duration::from_hours(24);
const REDIRECTS: usize = 5;

/// Numbers of requests to the CA since start; requests with a refused nonce are counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Directory reads.
    pub directory: u64,
    /// Requests for a nonce alone.
    pub nonces: u64,
    /// Signed requests that were answered otherwise than by badNonce.
    pub signed: u64,
    /// Signed requests answered by badNonce.
    pub refused_nonces: u64,
}

/// Function that picks one URL of the directory.
pub(super) type Endpoint = fn(&Directory) -> &str;

/// URL of an endpoint, as the directory gave it.
pub(super) struct LocatedEndpoint {
    endpoint: Endpoint,
    pub(super) url: String,
    /// Moment of the lookup in the directory.
    since: Instant,
}

/// One CA.
pub(super) struct Authority {
    pub(super) server: Url,
    pub(super) http: Client,
    pub(super) nonces: Nonces,
    pub(super) pace: Pace,
    pub(super) named: NamedUrls,
    pub(super) under_way: OpenRequests,
    /// Refused requests of all CAs.
    pub(super) refused: Arc<RefusedRequests>,
    directory: Shared<Arc<Directory>>,
    /// Counters of all CAs.
    counts: Arc<Counts>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(super) directory: AtomicU64,
    pub(super) nonces: AtomicU64,
    pub(super) signed: AtomicU64,
    pub(super) refused_nonces: AtomicU64,
}

/// Kind of signed request to count.
#[derive(Clone, Copy)]
pub(super) enum CountedRequest {
    Signed,
    RefusedNonce,
}

impl Authority {
    pub(crate) fn new(
        server: &str,
        tls: &TlsOptions,
        resolver: Option<&Resolver>,
        (counts, refused): (Arc<Counts>, Arc<RefusedRequests>),
        under_way: OpenRequests,
        rates: Option<&'static RequestRates>,
    ) -> Result<Self, AcmeError> {
        let bad = |why: String| AcmeError::Transport {
            deed: "read",
            url: server.to_owned(),
            why,
            fault: Fault::Unusable,
        };
        let url = Url::parse(server).map_err(|e| bad(format!("it is no URL: {e}")))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(bad("it is no https URL".to_owned()));
        }
        Ok(Self {
            http: client(&url, tls, resolver)?,
            server: url,
            nonces: Nonces::new(),
            pace: Pace::new(rates),
            named: NamedUrls::default(),
            under_way,
            refused,
            directory: Shared::new(),
            counts,
        })
    }

    /// Makes the base for the URLs in an answer of `url`.
    pub(super) fn origin<'a>(&self, url: &'a Url) -> Origin<'a> {
        Origin { url, plain: self.server.scheme() == "http" }
    }

    /// Returns the directory; one request reads it while others wait for the result.
    pub(super) async fn directory(&self) -> Result<Arc<Directory>, AcmeError> {
        self.directory_since(None).await
    }

    /// Returns the directory as it was after that moment, if a moment is given.
    async fn directory_since(&self, since: Option<Instant>) -> Result<Arc<Directory>, AcmeError> {
        let read = async {
            let reply = self.read_directory().await?;
            wire::directory(self.origin(&reply.url), &reply.body)
                .map(Arc::new)
                .map_err(|why| AcmeError::NotAcme { url: reply.url.to_string(), why })
        };
        self.directory.get(DIRECTORY_MAX_AGE, since, read).await
    }

    /// Finds an endpoint in the directory.
    pub(super) async fn find(&self, endpoint: Endpoint) -> Result<LocatedEndpoint, AcmeError> {
        let since = Instant::now();
        let url = endpoint(&*self.directory().await?).to_owned();
        Ok(LocatedEndpoint { endpoint, url, since })
    }

    /// Returns the new URL of an endpoint if the outcome of a request shows that the old URL is gone; `None` if the URL
    /// is unchanged. The directory is read again for that, once for all callers that find out.
    ///
    /// # Errors
    /// Fails if the directory cannot be read any more.
    pub(super) async fn moved<T>(
        &self,
        found: &LocatedEndpoint,
        sent: &Result<T, AcmeError>,
    ) -> Result<Option<LocatedEndpoint>, AcmeError> {
        if !sent.as_ref().err().is_some_and(error::is_nowhere) {
            return Ok(None);
        }
        let directory = self.directory_since(Some(found.since)).await?;
        let LocatedEndpoint { endpoint, since, .. } = *found;
        let url = endpoint(&directory).to_owned();
        Ok((url != found.url).then_some(LocatedEndpoint { endpoint, url, since }))
    }

    async fn read_directory(&self) -> Result<Reply, AcmeError> {
        let mut url = self.server.to_string();
        for _ in 0..=REDIRECTS {
            self.counts.directory.fetch_add(1, Ordering::Relaxed);
            let asking = (self.http.get(&url), "read", Effect::None);
            self.pace.turn(Counted::Directory).await;
            let telling = RequestLog::begin("GET", NamedUrl { what: "directory", url: &url });
            let reply = telling.end(self.under_way.exchange(asking, &url, JSON_LIMIT).await)?;
            match reply.status.as_u16() {
                200..=299 => return Ok(reply),
                301 | 302 | 303 | 307 | 308 => {
                    let target = text(&reply.headers, &LOCATION)
                        .ok_or_else(|| protocol(&reply.url, "it redirects to nowhere"))?;
                    url = self
                        .origin(&reply.url)
                        .absolute(target)
                        .map_err(|why| protocol(&reply.url, why))?;
                }
                _ => return Err(refused(&reply)),
            }
        }
        Err(protocol(&self.server, format!("it redirects more than {REDIRECTS} times")))
    }

    /// Sends one GET and returns the answer, of whatever status.
    pub(super) async fn plain(&self, asked: NamedUrl<'_>) -> Result<Reply, AcmeError> {
        let url = asked.url;
        let place = self.place().await?;
        self.pace.turn(Counted::named(asked.what)).await;
        let asking = (self.http.get(url), "read", Effect::None);
        let telling = RequestLog::begin("GET", asked);
        let outcome = telling.end(self.under_way.exchange(asking, url, JSON_LIMIT).await);
        place.ended(&outcome);
        outcome
    }

    /// Takes a place among the requests in flight. The wait for a place ends once reads are stopped.
    pub(super) async fn place(&self) -> Result<RequestPlace<'_>, AcmeError> {
        if let Some(place) = self.pace.free_place() {
            return Ok(place);
        }
        let waits = Box::pin(self.pace.place());
        self.under_way.prepare("send a request to", self.server.as_str(), waits).await
    }

    /// Takes a nonce from the pool, else fetches one. The wait for the turn to fetch ends once reads are stopped.
    pub(super) async fn nonce(&self) -> Result<String, AcmeError> {
        if let Some(nonce) = self.nonces.at_hand() {
            return Ok(nonce);
        }
        // Boxed, for it stands in every request: fetching a nonce may read the directory first.
        let turn = self.pace.turn(Counted::NewNonce);
        let taken = Box::pin(self.nonces.take(turn, self.fetch_nonce()));
        self.under_way.prepare("take a nonce from", self.server.as_str(), taken).await
    }

    async fn fetch_nonce(&self) -> Result<String, AcmeError> {
        let found = self.find(|directory| &directory.new_nonce).await?;
        let asked = self.ask_for_nonce(&found.url).await;
        match self.moved(&found, &asked).await? {
            Some(found) => self.ask_for_nonce(&found.url).await,
            None => asked,
        }
    }

    /// Asks for a nonce by HEAD, then by GET, because some gateways refuse HEAD (RFC 8555 §7.2).
    async fn ask_for_nonce(&self, url: &str) -> Result<String, AcmeError> {
        let mut last = None;
        for (method, word) in [(Method::HEAD, "HEAD"), (Method::GET, "GET")] {
            self.counts.nonces.fetch_add(1, Ordering::Relaxed);
            let asking = (self.http.request(method, url), "take a nonce from", Effect::None);
            let telling = RequestLog::begin(word, NamedUrl { what: "newNonce", url });
            let reply = telling.end(self.under_way.exchange(asking, url, JSON_LIMIT).await)?;
            match (reply.status.as_u16(), nonce_of(&reply.headers)) {
                (200..=299, Some(nonce)) => return Ok(nonce),
                // A limit holds for GET as well.
                (429 | 503, _) => return Err(refused(&reply)),
                _ => last = Some(reply),
            }
        }
        match last {
            Some(reply) if reply.status.as_u16() >= 400 => Err(refused(&reply)),
            Some(_) | None => Err(AcmeError::Protocol {
                url: url.to_owned(),
                why: "it carries no Replay-Nonce header".to_owned(),
            }),
        }
    }

    /// Counts a request.
    pub(super) fn count(&self, asked: CountedRequest) {
        let counter = match asked {
            CountedRequest::Signed => &self.counts.signed,
            CountedRequest::RefusedNonce => &self.counts.refused_nonces,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the nonce in an answer, if it is base64url (RFC 8555 §6.5.1): other text could not be sent back.
pub(super) fn nonce_of(headers: &HeaderMap) -> Option<String> {
    let nonce = text(headers, &REPLAY_NONCE)?;
    let base64url = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (!nonce.is_empty() && nonce.bytes().all(base64url)).then(|| nonce.to_owned())
}

/// Makes the error for an answer that no CA should give.
pub(super) fn protocol(url: &Url, why: impl Into<String>) -> AcmeError {
    AcmeError::Protocol { url: url.to_string(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};
    use serde_json::json;

    use super::*;
    use crate::acme::account::AccountKey;
    use crate::acme::clients::Clients;
    use crate::acme::error::Retry;
    use crate::acme::fake::{FakeCa, FakeReply};
    use crate::acme::session::Session;
    use crate::acme::{Acme as _, NewOrder, Registration};
    use crate::model::KeyAlgorithm;
    use crate::model::order_budget::permit;

    fn session(clients: &Clients, url: &str, tls: &TlsOptions) -> Result<Session, AcmeError> {
        let key = AccountKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap();
        clients.session(url, tls, key, None)
    }

    fn plain(ca: &FakeCa) -> Session {
        session(&Clients::new(), &ca.url, &TlsOptions::default()).unwrap()
    }

    #[tokio::test]
    async fn a_nonce_is_fetched_however_the_ca_gives_it() {
        // By status of HEAD, status of GET, and whether either carries one.
        for (head, get, nonce, fetched) in [
            (200, 0, true, Ok(1)),
            (204, 0, true, Ok(1)),
            (405, 204, true, Ok(2)),
            (404, 404, true, Err("404")),
            (200, 200, false, Err("no Replay-Nonce")),
            (429, 200, true, Err("429")),
        ] {
            let ca = FakeCa::start(move |heard| {
                let status = match heard.what.as_str() {
                    "HEAD /nonce" => head,
                    "GET /nonce" => get,
                    _ => return None,
                };
                let said = FakeReply::new(status, "");
                Some(if nonce { said } else { said.without_nonce() })
            })
            .await;
            let sent = plain(&ca).register(&Registration::default()).await;
            match (sent, fetched) {
                (Ok(_), Ok(times)) => {
                    assert_eq!(ca.count("HEAD /nonce") + ca.count("GET /nonce"), times);
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (sent, _) => panic!("HEAD {head}, GET {get}: {sent:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_turn_to_fetch_a_nonce_once_nothing_is_read() {
        let clients = Clients::new().with_rates(RequestRates::named("letsencrypt"));
        let authority = clients.authority("https://ca.example/dir", &TlsOptions::default());
        let authority = authority.unwrap();
        for _ in 0..8 {
            authority.pace.turn(Counted::NewNonce).await;
        }
        clients.stop_reading();
        let began = Instant::now();
        let error = authority.nonce().await.unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot take a nonce from https://ca.example/dir: the work was ended before"
        );
        assert_eq!(began.elapsed(), Duration::ZERO);
        // What has an effect at the CA may still be sent, with a nonce that is there.
        authority.nonces.put("kept".to_owned());
        assert_eq!(authority.nonce().await.unwrap(), "kept");
    }

    #[tokio::test]
    async fn the_directory_is_read_through_a_few_redirects() {
        for (redirects, read) in [(0, true), (5, true), (6, false)] {
            let ca = FakeCa::start(move |heard| {
                let moved = heard.what == "GET /dir" && heard.before < redirects;
                moved.then(|| FakeReply::new(302, "").with("location", "/dir"))
            })
            .await;
            assert_eq!(plain(&ca).directory().await.is_ok(), read, "{redirects}");
        }
    }

    #[tokio::test]
    async fn a_directory_that_failed_is_read_again() {
        let ca = FakeCa::start(|heard| match (heard.what.as_str(), heard.before) {
            ("GET /dir", 0) => Some(FakeReply::new(503, "<html>").with("retry-after", "5")),
            ("GET /dir", 1) => Some(FakeReply::new(200, "<html>")),
            _ => None,
        })
        .await;
        let session = plain(&ca);
        assert!(matches!(session.directory().await.unwrap_err().retry(), Retry::At(_)));
        assert_eq!(session.directory().await.unwrap_err().retry(), Retry::Never);
        session.directory().await.unwrap();
        session.directory().await.unwrap();
        assert_eq!(ca.count("GET /dir"), 3);
    }

    /// A CA whose endpoints have moved after the directory was read so often; where they were, it says that status.
    async fn moving(after: usize, gone: u16) -> FakeCa {
        FakeCa::start(move |heard| {
            let directory = |at: &str| {
                let [nonce, account, order] =
                    ["nonce", "account", "order"].map(|name| format!("{at}/{name}"));
                json!({"newNonce": nonce, "newAccount": account, "newOrder": order}).to_string()
            };
            Some(match heard.what.as_str() {
                "GET /dir" if heard.before < after => FakeReply::new(200, directory("/old")),
                "GET /dir" => FakeReply::new(200, directory("/new")),
                "HEAD /new/nonce" => FakeReply::new(200, "").with("replay-nonce", "fresh"),
                "POST /new/account" => FakeReply::new(201, "").with("location", "/acct/1"),
                "POST /new/order" => {
                    FakeReply::new(201, r#"{"status":"pending"}"#).with("location", "/order/1")
                }
                _ => FakeReply::new(gone, "404 page not found"),
            })
        })
        .await
    }

    #[tokio::test]
    async fn endpoints_that_have_moved_are_found_where_the_directory_says_now() {
        for gone in [404, 405, 410] {
            let ca = moving(1, gone).await;
            let session = plain(&ca);
            session.register(&Registration::default()).await.unwrap();
            assert_eq!(
                session.create_order(&NewOrder::default(), permit()).await.unwrap().url,
                ca.at("/order/1")
            );
            assert_eq!((ca.count("GET /dir"), ca.count("POST /old/account")), (2, 1), "{gone}");
        }
    }

    #[tokio::test]
    async fn endpoints_that_are_nowhere_are_a_refusal_after_one_more_look() {
        let ca = moving(usize::MAX, 404).await;
        let error = plain(&ca).register(&Registration::default()).await.unwrap_err();
        assert_eq!((error.retry(), ca.count("GET /dir")), (Retry::Never, 2));
        let ca = moving(1, 503).await;
        let error = plain(&ca).register(&Registration::default()).await.unwrap_err();
        assert_eq!((error.retry(), ca.count("GET /dir")), (Retry::Backoff, 1), "it may come back");
    }

    #[tokio::test]
    async fn a_directory_that_is_gone_with_its_urls_is_the_obstacle() {
        let ca = FakeCa::start(|heard| match (heard.what.as_str(), heard.before) {
            ("GET /dir", 1) => Some(FakeReply::new(503, "moving")),
            ("POST /order", 0) => Some(FakeReply::new(404, "404 page not found")),
            _ => None,
        })
        .await;
        let session = plain(&ca);
        session.register(&Registration::default()).await.unwrap();
        let error = session.create_order(&NewOrder::default(), permit()).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.retry()), ("503 : moving", Retry::Backoff));
        session.create_order(&NewOrder::default(), permit()).await.unwrap();
    }

    /// Knows one host.
    struct OneHost;

    impl reqwest::dns::Resolve for OneHost {
        fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
            Box::pin(async move {
                if name.as_str() != "ca.example" {
                    return Err(format!("no such host {}", name.as_str()).into());
                }
                let found: reqwest::dns::Addrs = Box::new(["127.0.0.1:0".parse()?].into_iter());
                Ok(found)
            })
        }
    }

    #[tokio::test]
    async fn a_ca_without_sessions_is_forgotten_and_what_it_was_asked_is_not() {
        let (kept, left, other) = (
            FakeCa::start(|_| None).await,
            FakeCa::start(|_| None).await,
            FakeCa::start(|_| None).await,
        );
        let clients = Clients::new();
        let tls = TlsOptions::default();
        let session = session(&clients, &kept.url, &tls).unwrap();
        clients.directory(&left.url, &tls).await.unwrap();
        clients.directory(&left.url, &tls).await.unwrap();
        assert_eq!(clients.requests().directory, 1, "it is believed until another one comes");
        clients.directory(&other.url, &tls).await.unwrap();
        session.directory().await.unwrap();
        clients.directory(&kept.url, &tls).await.unwrap();
        assert_eq!((clients.requests().directory, kept.count("GET /dir")), (3, 1));
        assert_eq!(clients.authorities.lock().len(), 2);
    }

    #[tokio::test]
    async fn a_resolver_of_ones_own_finds_the_ca() {
        let ca = FakeCa::start(|_| None).await;
        let clients = Clients::with_resolver(Some(Arc::new(OneHost)));
        let read = async |host: &str| {
            let url = ca.url.replace("127.0.0.1", host);
            session(&clients, &url, &TlsOptions::default()).unwrap().directory().await
        };
        assert!(read("ca.example").await.unwrap().new_order.starts_with("http://ca.example:"));
        let error = read("other.example").await.unwrap_err();
        assert!(error.to_string().ends_with("no such host other.example"), "{error}");
        assert_eq!(error.retry(), Retry::Never);
    }

    #[tokio::test]
    async fn trust_is_what_the_issuer_says() {
        let key = KeyPair::generate().unwrap();
        let for_name = |name: &str| {
            CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap()
        };
        let (good, other) = (for_name("localhost"), for_name("other.example"));
        let bundle = format!("{}{}", other.pem(), good.pem());
        let stranger = KeyPair::generate().unwrap();
        let stranger = CertificateParams::default().self_signed(&stranger).unwrap().pem();
        let trusting =
            |pem: &str, skip_verify| TlsOptions { ca_bundle: pem.as_bytes().to_vec(), skip_verify };
        for (served, tls, said) in [
            (&good, trusting(&bundle, false), None),
            (&good, trusting("", true), None),
            (&good, trusting(&stranger, false), Some("its signature")),
            (&other, trusting(&bundle, false), Some("it is for another name")),
        ] {
            let ca = FakeCa::start_tls(served, &key).await;
            let read = session(&Clients::new(), &ca.url, &tls).unwrap().directory().await;
            match (read, said) {
                (Ok(directory), None) => assert!(directory.new_order.starts_with("https://")),
                (Err(error), Some(part)) => {
                    let text = error.to_string();
                    assert!(text.contains("not trusted") && text.contains(part), "{text}");
                    assert_eq!(error.retry(), Retry::Never);
                }
                (read, said) => panic!("{said:?}: {read:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_refused_connection_may_pass() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/dir", listener.local_addr().unwrap());
        drop(listener);
        let session = session(&Clients::new(), &url, &TlsOptions::default()).unwrap();
        let error = session.directory().await.unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read {url}: Connection refused"));
        assert_eq!(error.retry(), Retry::Backoff);
    }

    #[test]
    fn a_server_that_is_no_url_is_refused_at_once() {
        for url in ["", "acme.example/directory", "ftp://acme.example/", "https://"] {
            let error = session(&Clients::new(), url, &TlsOptions::default()).unwrap_err();
            assert_eq!(error.retry(), Retry::Never, "{url}");
        }
    }
}
