//! HTTP-01 probe: fetches the answer as the CA would.

use std::net::IpAddr;

use async_trait::async_trait;
use jiff::Timestamp;
use url::Url;

use super::Probe;
use crate::fetch::Fetcher;
use crate::fetch::outcome::{FetchError, Fetched};
use crate::model::observation::{CheckResult, Hop, Observation, Vantage};
use crate::model::{Answer, Challenge, Identifier};

/// Probe from this machine, as a public CA would from its own; reads the system's clock for the observation's time.
#[derive(Clone, Debug)]
pub struct HttpProbe {
    /// Client that makes the requests.
    pub fetcher: Fetcher,
}

#[async_trait]
impl Probe for HttpProbe {
    async fn probe(&self, _: &Challenge, answer: &Answer) -> Vec<Observation> {
        vec![self.look_at(&address(answer)).await]
    }
}

impl HttpProbe {
    /// Requests a URL, with the time limits of a CA.
    pub async fn look_at(&self, address: &str) -> Observation {
        Self::look_by(address, |url| async move { self.fetcher.get(&url).await }).await
    }

    /// Requests a URL, with the time limits of a waiting person.
    pub async fn look_soon(&self, address: &str) -> Observation {
        Self::look_by(address, |url| async move { self.fetcher.get_soon(&url).await }).await
    }

    async fn look_by<F: Future<Output = Fetched>>(
        address: &str,
        get: impl FnOnce(Url) -> F,
    ) -> Observation {
        let at = Timestamp::now();
        match Url::parse(address) {
            Ok(url) => observation(at, address.to_owned(), get(url).await),
            Err(error) => Observation {
                vantage: Vantage::ThisMachine,
                at,
                url: address.to_owned(),
                hops: Vec::new(),
                seen: CheckResult::Nothing { why: error.to_string(), symptom: None },
            },
        }
    }
}

/// Returns the URL that the CA requests (RFC 8555 §8.3, RFC 8738 §3).
pub fn address(answer: &Answer) -> String {
    let host = match &answer.identifier {
        Identifier::Dns(name) => name.base().to_owned(),
        Identifier::Ip(IpAddr::V4(address)) => address.to_string(),
        Identifier::Ip(IpAddr::V6(address)) => format!("[{address}]"),
    };
    format!("http://{host}/.well-known/acme-challenge/{}", answer.token)
}

fn observation(at: Timestamp, url: String, fetched: Fetched) -> Observation {
    let hops = fetched.hops.into_iter();
    let seen = match fetched.result {
        Ok(reply) => CheckResult::Reply {
            status: reply.status,
            body: String::from_utf8_lossy(&reply.body).into_owned(),
            truncated: reply.truncated,
            is_declined: reply.is_declined,
        },
        Err(FetchError::Redirect { to, why }) => CheckResult::Redirect { to, why },
        Err(error) => CheckResult::Nothing { why: error.to_string(), symptom: error.symptom() },
    };
    Observation {
        vantage: Vantage::ThisMachine,
        at,
        url,
        hops: hops
            .map(|hop| Hop { url: hop.url, address: hop.address, status: hop.status })
            .collect(),
        seen,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::http::{HeaderMap, StatusCode, header};
    use axum::routing::get;
    use tokio::net::TcpListener;

    use super::*;
    use crate::dns::lookup::SystemResolver;
    use crate::fetch::Overrides;

    fn answer(identifier: &str) -> Answer {
        Answer {
            identifier: Identifier::parse(identifier).unwrap(),
            token: "token".to_owned(),
            key_authorization: "token.thumbprint".to_owned(),
        }
    }

    /// Looks at a server of our own; it serves one name, redirects another and has not heard of the rest.
    async fn check(identifier: &str, expected: CheckResult) {
        let path = "/.well-known/acme-challenge/token";
        let serve = |headers: HeaderMap| async move {
            match headers[header::HOST].to_str().unwrap() {
                "www.example.com" => {
                    (StatusCode::OK, [(header::LOCATION, "")], "token.thumbprint\n")
                }
                "old.example.com" => {
                    (StatusCode::FOUND, [(header::LOCATION, "http://www.example.com:81/")], "")
                }
                _ => (StatusCode::NOT_FOUND, [(header::LOCATION, "")], "not here"),
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let router = Router::new().route(path, get(serve));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let resolver = Arc::new(SystemResolver::new());
        let overrides = Overrides::parse([format!("*={server}").as_str()]).unwrap();
        let probe = HttpProbe { fetcher: Fetcher { resolver, overrides } };
        let before = Timestamp::now();
        let seen = probe.look_at(&address(&answer(identifier))).await;
        assert_eq!(seen.seen, expected);
        assert_eq!(seen.url, address(&answer(identifier)));
        let [hop] = seen.hops.try_into().unwrap();
        assert_eq!((hop.url, hop.address), (seen.url, Some(server)));
        assert!(before <= seen.at && seen.at <= Timestamp::now());
    }

    #[tokio::test]
    async fn what_the_server_says_is_what_is_seen() {
        let reply = |status, body: &str| CheckResult::Reply {
            status,
            body: body.to_owned(),
            truncated: false,
            is_declined: false,
        };
        check("www.example.com", reply(200, "token.thumbprint\n")).await;
        check("other.example.com", reply(404, "not here")).await;
        check("2001:db8::1", reply(404, "not here")).await;
    }

    #[tokio::test]
    async fn a_redirect_that_no_ca_follows_is_told_apart() {
        let to = "http://www.example.com:81/".to_owned();
        let why = "invalid port 81: must be 80 or 443".to_owned();
        check("old.example.com", CheckResult::Redirect { to, why }).await;
    }

    #[test]
    fn the_url_is_the_one_the_ca_asks() {
        for (identifier, expected) in [
            ("www.example.com", "http://www.example.com/.well-known/acme-challenge/token"),
            ("192.0.2.1", "http://192.0.2.1/.well-known/acme-challenge/token"),
            ("2001:db8::1", "http://[2001:db8::1]/.well-known/acme-challenge/token"),
        ] {
            assert_eq!(address(&answer(identifier)), expected);
        }
    }
}
