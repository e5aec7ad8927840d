//! One GET as a public CA makes it: one address at a time, ports 80 and 443, few redirects, a short body.
//!
//! Used by our own CA's validation and by the self-check, so that a rehearsal and a check see equal answers; recorded
//! answers of Pebble and Boulder test both.

pub mod alpn;
mod connection;
pub mod outcome;
mod overrides;
pub mod raw;
mod redirect;
pub mod served;
mod tls;
pub mod trust;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use url::{Host, Url};

use self::connection::{FetchAnswer, NoAnswer, Refusals, TimeLimits};
pub(crate) use self::outcome::{FetchError, Fetched, Hop};
pub use self::overrides::{InvalidOverride, Overrides};
use crate::dns::Resolve;
use crate::model::challenge::answer_limit;

/// Time limits of a CA: for a connection, and as long again for the answer.
const CA_PATIENCE: TimeLimits =
    TimeLimits { connect: Duration::from_secs(10), answer: Duration::from_secs(10) };

/// Time limits of a request for which a person waits.
const PERSONS_PATIENCE: TimeLimits =
    TimeLimits { connect: Duration::from_secs(2), answer: Duration::from_secs(3) };

/// Client that requests web servers as a public CA does.
#[derive(Clone, Debug)]
pub struct Fetcher {
    /// Resolver of hosts.
    pub resolver: Arc<dyn Resolve>,
    /// Addresses that replace those in DNS.
    pub overrides: Overrides,
}

impl Fetcher {
    /// Gets a URL and follows redirects by the rules of a public CA; takes at most 30 s for each hop.
    ///
    /// The first URL may name any port; a redirect only 80 or 443. Nothing is cached and no proxy is asked.
    pub async fn get(&self, url: &Url) -> Fetched {
        self.get_within(url, CA_PATIENCE).await
    }

    /// Gets a URL as [`Self::get`] does, with shorter time limits: a person waits for the answer.
    pub async fn get_soon(&self, url: &Url) -> Fetched {
        self.get_within(url, PERSONS_PATIENCE).await
    }

    async fn get_within(&self, url: &Url, patience: TimeLimits) -> Fetched {
        // The last part of the path is the token, or else a name whose answer is of no interest.
        let limit = answer_limit(url.path().rsplit('/').next().unwrap_or_default());
        let mut hops = Vec::new();
        let mut next = url.clone();
        loop {
            hops.push(Hop { url: next.to_string(), address: None, status: None });
            let answer = match self.ask(&next, &mut hops, (patience, limit)).await {
                Ok(answer) => answer,
                Err(error) => return Fetched { hops, result: Err(error) },
            };
            let Some(location) = redirect::location(&answer) else {
                return Fetched { hops, result: Ok(answer.reply) };
            };
            let asked: Vec<&str> = hops.iter().map(|hop| hop.url.as_str()).collect();
            match redirect::target(&next, answer.reply.status, &location, &asked) {
                Ok(target) => next = target,
                Err(error) => return Fetched { hops, result: Err(error) },
            }
        }
    }

    /// Requests one URL; notes address and status in the last hop.
    async fn ask(
        &self,
        url: &Url,
        hops: &mut [Hop],
        bounds: (TimeLimits, usize),
    ) -> Result<FetchAnswer, FetchError> {
        let addresses = self.addresses(url).await?;
        let mut refusals = Refusals::default();
        for address in addresses {
            if let Some(hop) = hops.last_mut() {
                hop.address = Some(address);
            }
            match connection::get(url, address, bounds).await {
                Ok(answer) => {
                    if let Some(hop) = hops.last_mut() {
                        hop.status = Some(answer.reply.status);
                    }
                    return Ok(answer);
                }
                Err(NoAnswer::NotConnected(why, symptom)) => refusals.add(why, symptom),
                Err(error) => return Err(error.into_error()),
            }
        }
        Err(refusals.into_error())
    }

    /// Returns the addresses to try: the first IPv6 address, then the first IPv4 address if IPv6 takes no connection,
    /// behind a redirect as well (Boulder since September 2026).
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, FetchError> {
        let malformed =
            || FetchError::Malformed { why: format!("{url} has no host and port"), symptom: None };
        let port = url.port_or_known_default().ok_or_else(malformed)?;
        let (host, literal) = match url.host().ok_or_else(malformed)? {
            Host::Domain(name) => (name.trim_end_matches('.').to_owned(), None),
            Host::Ipv4(address) => (address.to_string(), Some(IpAddr::V4(address))),
            Host::Ipv6(address) => (address.to_string(), Some(IpAddr::V6(address))),
        };
        if let Some(address) = self.overrides.address(&host, port) {
            return Ok(vec![address]);
        }
        if let Some(address) = literal {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let found = self.resolver.addresses(&host).await.map_err(FetchError::Lookup)?;
        let six = found.iter().find(|address| address.is_ipv6());
        let four = found.iter().find(|address| address.is_ipv4());
        let in_order = six.into_iter().chain(four);
        Ok(in_order.map(|address| SocketAddr::new(*address, port)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use axum::Router;
    use axum::http::{HeaderMap, StatusCode, header};
    use axum::response::IntoResponse;
    use axum::routing::get;
    use rcgen::generate_simple_self_signed;
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::dns::LookupError;
    use crate::fetch::outcome::HttpReply;

    const SHORT_LIMITS: TimeLimits =
        TimeLimits { connect: Duration::from_secs(1), answer: Duration::from_secs(1) };

    /// Says that every host has these addresses.
    #[derive(Debug)]
    struct Everywhere(Vec<IpAddr>);

    #[async_trait]
    impl Resolve for Everywhere {
        async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
            match host {
                "missing.example.com" => Err(LookupError::NoSuchName { name: host.to_owned() }),
                _ => Ok(self.0.clone()),
            }
        }
    }

    fn moved(to: &str) -> impl IntoResponse + use<> {
        (StatusCode::FOUND, [(header::LOCATION, to.to_owned())])
    }

    fn site() -> Router {
        let echo = |headers: HeaderMap| async move {
            let said =
                |name| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("-").to_owned();
            [said(header::HOST), said(header::ACCEPT), said(header::CONNECTION)].join(" ")
        };
        let countdown = |path: axum::extract::Path<u32>| async move {
            match path.0 {
                0 => "landed".into_response(),
                n => moved(&format!("/countdown/{}", n - 1)).into_response(),
            }
        };
        Router::new()
            .route("/good", get(|| async { "good" }))
            .route("/echo", get(echo))
            .route("/long", get(|| async { "x".repeat(129) }))
            .route("/full", get(|| async { "x".repeat(128) }))
            .route(&format!("/{}", "t".repeat(86)), get(|| async { "x".repeat(130) }))
            .route("/broken", get(|| async { StatusCode::INTERNAL_SERVER_ERROR }))
            .route("/elsewhere", get(|| async { moved("http://www.example.com:8080/x") }))
            .route("/there", get(|| async { moved("/back") }))
            .route("/back", get(|| async { moved("/there") }))
            .route("/nowhere", get(|| async { StatusCode::FOUND }))
            .route("/lost", get(|| async { moved("http://missing.example.com/") }))
            .route("/countdown/{n}", get(countdown))
    }

    /// Serves the test site on a free port.
    async fn serve() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, site()).await.unwrap() });
        address
    }

    /// Sends these bytes to whoever connects, after reading the request, and hangs up.
    async fn say(bytes: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1024];
                let _read = stream.read(&mut request).await.unwrap();
                stream.write_all(bytes).await.unwrap();
            }
        });
        address
    }

    async fn look(server: SocketAddr, url: &str) -> Fetched {
        let entry = format!("*={server}");
        let fetcher = Fetcher {
            resolver: Arc::new(Everywhere(Vec::new())),
            overrides: Overrides::parse([entry.as_str()]).unwrap(),
        };
        fetcher.get_within(&Url::parse(url).unwrap(), SHORT_LIMITS).await
    }

    /// Status and body, or the error; `ADDRESS` stands for the server's.
    fn summary(fetched: &Fetched, server: SocketAddr) -> String {
        match &fetched.result {
            Ok(reply) => format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body)),
            Err(error) => error.to_string().replace(&server.to_string(), "ADDRESS"),
        }
    }

    #[track_caller]
    fn assert_shows(fetched: &Fetched, server: SocketAddr, expected: impl fmt::Display) {
        assert_eq!(summary(fetched, server), expected.to_string());
    }

    async fn check(path: &str, expected: &str) {
        let server = serve().await;
        let seen = look(server, &format!("http://www.example.com{path}")).await;
        assert_shows(&seen, server, expected);
    }

    #[tokio::test]
    async fn the_server_sees_the_name_without_our_port() {
        check("/echo", "200 www.example.com */* close").await;
    }

    #[tokio::test]
    async fn a_status_is_an_answer() {
        check("/broken", "500 ").await;
        check("/absent", "404 ").await;
        check("/nowhere", "302 ").await;
    }

    #[tokio::test]
    async fn at_most_128_bytes_are_read_or_what_a_long_token_needs() {
        let server = serve().await;
        let token = "t".repeat(86);
        for (path, length, truncated) in
            [("full", 128, false), ("long", 128, true), (&token, 130, false)]
        {
            let seen = look(server, &format!("http://www.example.com/{path}")).await;
            let body = b"x".repeat(length);
            assert_eq!(
                seen.result,
                Ok(HttpReply { status: 200, body, truncated, is_declined: false })
            );
        }
    }

    #[tokio::test]
    async fn redirects_are_followed_by_the_rules() {
        check("/countdown/9", "200 landed").await;
        check("/countdown/10", "redirect to http://www.example.com/countdown/0: Too many hops")
            .await;
        check("/there", "redirect to http://www.example.com/there: redirect loop detected").await;
        check(
            "/elsewhere",
            "redirect to http://www.example.com:8080/x: invalid port 8080: must be 80 or 443",
        )
        .await;
    }

    #[tokio::test]
    async fn every_hop_is_noted() {
        let server = serve().await;
        let hops = look(server, "http://www.example.com/countdown/1").await.hops;
        let hop = |url: &str, status| Hop {
            url: url.to_owned(),
            address: Some(server),
            status: Some(status),
        };
        assert_eq!(
            hops,
            [
                hop("http://www.example.com/countdown/1", 302),
                hop("http://www.example.com/countdown/0", 200)
            ]
        );
    }

    #[tokio::test]
    async fn a_missing_name_is_named() {
        let server = serve().await;
        let fetcher = Fetcher {
            resolver: Arc::new(Everywhere(Vec::new())),
            overrides: Overrides::parse([format!("www.example.com={server}").as_str()]).unwrap(),
        };
        let url = Url::parse("http://www.example.com/lost").unwrap();
        let seen = fetcher.get_within(&url, SHORT_LIMITS).await;
        assert_shows(&seen, server, "no such host missing.example.com");
        assert_eq!(seen.hops.len(), 2);
    }

    #[tokio::test]
    async fn a_dead_ipv6_address_does_no_harm_at_first() {
        let server = serve().await;
        let resolver = Arc::new(Everywhere(vec!["::1".parse().unwrap(), server.ip()]));
        let fetcher = Fetcher { resolver, overrides: Overrides::default() };
        let url = Url::parse(&format!("http://www.example.com:{}/good", server.port())).unwrap();
        let seen = fetcher.get_within(&url, SHORT_LIMITS).await;
        assert_shows(&seen, server, "200 good");
        assert_eq!(seen.hops[0].address, Some(server));
        // Nor behind a redirect: both are tried, whichever hop it is.
        let tried = fetcher.addresses(&Url::parse("https://www.example.com/x").unwrap()).await;
        let ports = tried.unwrap().iter().map(SocketAddr::port).collect::<Vec<_>>();
        assert_eq!(ports, [443, 443]);
    }

    #[tokio::test]
    async fn one_address_of_each_family_is_tried() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let addresses = ["127.0.0.2", "127.0.0.1"].map(|a| a.parse().unwrap()).to_vec();
        let fetcher =
            Fetcher { resolver: Arc::new(Everywhere(addresses)), overrides: Overrides::default() };
        let url = Url::parse(&format!("http://www.example.com:{}/", closed.port())).unwrap();
        let seen = fetcher.get_within(&url, SHORT_LIMITS).await;
        let expected = format!("connection refused by 127.0.0.2:{}", closed.port());
        assert_shows(&seen, closed, expected);
    }

    #[tokio::test]
    async fn a_silent_server_is_given_up() {
        // Connections wait in the queue of this socket; nobody takes them.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let seen = look(server, "http://www.example.com/").await;
        let expected = "ADDRESS took the connection but did not answer within 1s";
        assert_shows(&seen, server, expected);
        assert!(matches!(seen.result, Err(FetchError::Connect { .. })));
    }

    #[tokio::test]
    async fn what_is_no_http_is_told_apart_from_silence() {
        for (bytes, expected) in [
            (b"".as_slice(), "ADDRESS closed the connection without an answer"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "the answer of ADDRESS is not HTTP/1.1"),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfour",
                "ADDRESS broke off in the middle of its answer",
            ),
        ] {
            let server = say(bytes).await;
            assert_shows(&look(server, "http://www.example.com/").await, server, expected);
        }
    }

    /// Serves one answer over TLS with a certificate that nobody trusts; counts the requests.
    async fn serve_tls(count: Arc<AtomicUsize>) -> SocketAddr {
        let made = generate_simple_self_signed(["other.example.net".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = acceptor.accept(stream).await.unwrap();
                let mut request = [0; 1024];
                let _read = stream.read(&mut request).await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood")
                    .await
                    .unwrap();
                stream.shutdown().await.unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn certificates_are_not_verified() {
        let count = Arc::new(AtomicUsize::new(0));
        let server = serve_tls(Arc::clone(&count)).await;
        let fetcher = Fetcher {
            resolver: Arc::new(Everywhere(vec![server.ip()])),
            overrides: Overrides::default(),
        };
        let url = Url::parse(&format!("https://www.example.com:{}/", server.port())).unwrap();
        assert_shows(&fetcher.get_within(&url, SHORT_LIMITS).await, server, "200 good");
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn plain_text_where_tls_is_asked_is_said() {
        let server = say(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let fetcher = Fetcher {
            resolver: Arc::new(Everywhere(vec![server.ip()])),
            overrides: Overrides::default(),
        };
        let url = Url::parse(&format!("https://www.example.com:{}/", server.port())).unwrap();
        let expected = "TLS handshake with ADDRESS failed: the server does not speak TLS there";
        assert_shows(&fetcher.get_within(&url, SHORT_LIMITS).await, server, expected);
    }
}
