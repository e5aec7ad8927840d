//! HTTP-01: fetches the answer as the CA would.

use std::net::IpAddr;

use async_trait::async_trait;
use jiff::Timestamp;
use url::Url;

use super::Probe;
use crate::fetch::{FetchError, Fetched, Fetcher};
use crate::model::observation::{Hop, Observation, Seen, Vantage};
use crate::model::{Answer, Identifier};

/// Looks from this machine, as a public CA would from its own; reads the system's clock for the moment of the look.
#[derive(Clone, Debug)]
pub struct HttpProbe {
    /// Makes the requests.
    pub fetcher: Fetcher,
}

#[async_trait]
impl Probe for HttpProbe {
    async fn look(&self, answer: &Answer) -> Vec<Observation> {
        let at = Timestamp::now();
        let address = address(answer);
        let observation = match Url::parse(&address) {
            Ok(url) => observation(at, address, self.fetcher.get(&url).await),
            Err(error) => Observation {
                vantage: Vantage::ThisMachine,
                at,
                url: address,
                hops: Vec::new(),
                seen: Seen::Nothing { why: error.to_string() },
            },
        };
        vec![observation]
    }
}

/// Returns the URL that the CA asks (RFC 8555 §8.3, RFC 8738 §3).
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
        Ok(reply) => Seen::Reply {
            status: reply.status,
            body: String::from_utf8_lossy(&reply.body).into_owned(),
            truncated: reply.truncated,
        },
        Err(FetchError::Redirect { to, why }) => Seen::Redirect { to, why },
        Err(error) => Seen::Nothing { why: error.to_string() },
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
