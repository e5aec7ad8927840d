//! The server of a CA, and the way to it: addresses, one connection by each family, and one GET whose answer is kept as it came.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use url::Url;

use super::investigator::{Investigator, PROBE_TIMEOUT};
use crate::acme::TlsOptions;
use crate::acme::plain::PlainAnswer;
use crate::diagnosis::authority_case::{
    AddressReach, AuthorityAnswer, AuthorityCase, ReachOutcome,
};
use crate::fetch::reserved;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(3);
/// Most letters of a body that are kept.
const START: usize = 120;
/// Most letters of a header or a URL that are kept.
const LONGEST: usize = 300;
/// Most URLs of a directory that are kept.
const MEMBERS: usize = 12;

impl Investigator {
    /// Looks at the server of a CA.
    pub(super) async fn authority(&self, server: &str, tls: &TlsOptions) -> Option<AuthorityCase> {
        let url = Url::parse(server).ok()?;
        let (way, answer) = tokio::join!(
            self.way(&url),
            timeout(PROBE_TIMEOUT, self.clients.plain(server, tls, server)),
        );
        let (addresses, reaches) = way;
        let reserved = addresses.iter();
        let reserved = reserved.filter_map(|at| Some((*at, reserved::block(*at)?.to_owned())));
        Some(AuthorityCase {
            at: self.now,
            reserved: reserved.collect(),
            addresses,
            reaches,
            answer: answer.ok().and_then(Result::ok).map(kept),
        })
    }

    /// The addresses of a host, and one connection by each family.
    async fn way(&self, url: &Url) -> (Vec<IpAddr>, Vec<AddressReach>) {
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return (Vec::new(), Vec::new());
        };
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let addresses = if let Ok(address) = literal {
            vec![address]
        } else {
            let asked = timeout(PROBE_TIMEOUT, self.fetcher.resolver.addresses(host)).await;
            asked.ok().and_then(Result::ok).unwrap_or_default()
        };
        let six = addresses.iter().find(|address| address.is_ipv6());
        let four = addresses.iter().find(|address| address.is_ipv4());
        let one_of_each = six.into_iter().chain(four).map(|at| SocketAddr::new(*at, port));
        // Of one family there is nothing to compare.
        if six.is_none() || four.is_none() {
            return (addresses, Vec::new());
        }
        let reaches = join_all(one_of_each.map(reach)).await;
        (addresses, reaches)
    }
}

async fn reach(address: SocketAddr) -> AddressReach {
    let began = Instant::now();
    let outcome = match timeout(CONNECT, TcpStream::connect(address)).await {
        Ok(Ok(_)) => {
            let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            ReachOutcome::Connected(took)
        }
        Ok(Err(error)) => match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => ReachOutcome::Refused,
            ErrorKind::TimedOut => ReachOutcome::Silent,
            _ => ReachOutcome::NoRoute,
        },
        Err(_) => ReachOutcome::Silent,
    };
    AddressReach { address, outcome }
}

/// What is kept of an answer.
fn kept(answer: PlainAnswer) -> AuthorityAnswer {
    let bounded = |text: String| text.chars().take(LONGEST).collect::<String>();
    let members = match serde_json::from_slice(&answer.body) {
        Ok(Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    let urls = members.into_iter().filter_map(|(name, value)| match value {
        Value::String(url) if url.contains("://") => Some((bounded(name), bounded(url))),
        _ => None,
    });
    AuthorityAnswer {
        status: answer.status,
        date: answer.date,
        came: answer.came,
        content_type: bounded(answer.content_type),
        location: bounded(answer.location),
        retry_after: bounded(answer.retry_after),
        start: String::from_utf8_lossy(&answer.body).chars().take(START).collect(),
        members: urls.take(MEMBERS).collect(),
    }
}
