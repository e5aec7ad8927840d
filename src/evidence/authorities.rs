//! Server of a CA, and whether it can be reached: addresses, a connection for each address family, and one raw GET.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use url::Url;

use super::investigator::{Investigator, MAX_CONCURRENT};
use crate::acme::TlsOptions;
use crate::controllers::accounts::tls_of;
use crate::diagnosis::case::Case;
use crate::diagnosis::case::authority::{AddressReach, AuthorityCase, ReachOutcome};
use crate::model::{Key, reserved};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

impl Investigator {
    /// Reads everything that the CAs of a case hold of it, and probes whether the CAs can be reached. For issuers in
    /// `asked` (targets themselves, not only named by a Certificate) orders without an Order object are read too.
    pub(super) async fn authorities(&self, case: &mut Case, asked: &BTreeSet<Key>) {
        let looked = case.issuers.iter().map(|of| async {
            let acme = of.issuer.as_ref()?.spec.acme.as_ref()?;
            let tls = tls_of(acme);
            let server = self.authority(&acme.server, &tls);
            Some(tokio::join!(self.directory(acme), server, self.account(of, asked)))
        });
        let looked: Vec<_> = stream::iter(looked).buffered(MAX_CONCURRENT).collect().await;
        for (of, looked) in case.issuers.iter_mut().zip(looked) {
            let Some((directory, authority, account)) = looked else { continue };
            (of.directory, of.authority, of.account) = (Some(directory), authority, account);
        }
        self.ask_authority(case).await;
        let (orders, kept, (providers, unasked)) = tokio::join!(
            self.held_orders(case),
            self.kept_certificates(case),
            Box::pin(self.ask_providers(case)),
        );
        case.providers = providers;
        case.unseen.extend(unasked);
        for (index, order) in orders {
            match order {
                Ok(held) => case.certificates[index].held_order = Some(held),
                Err(missed) => case.unseen.push(missed),
            }
        }
        for (of, kept) in case.certificates.iter_mut().zip(kept) {
            of.kept = kept;
        }
    }

    /// Probes the server of a CA.
    async fn authority(&self, server: &str, tls: &TlsOptions) -> Option<AuthorityCase> {
        let url = Url::parse(server).ok()?;
        let host = url.host_str().unwrap_or_default();
        let (way, answer, by_name_servers) = tokio::join!(
            self.probe_addresses(&url),
            self.outside(self.clients.plain(server, tls, server)),
            self.outside(self.fetcher.resolver.behind_hosts_file(host)),
        );
        let (addresses, reaches) = way;
        let reserved = addresses.iter();
        let reserved = reserved.filter_map(|at| Some((*at, reserved::block(*at)?.to_owned())));
        Some(AuthorityCase {
            at: self.now,
            reserved: reserved.collect(),
            addresses,
            by_name_servers: by_name_servers.ok().flatten(),
            reaches,
            answer: answer.ok().and_then(Result::ok).map(|reply| reply.answer),
        })
    }

    /// Looks up the addresses of a host, and connects to one address of each family.
    async fn probe_addresses(&self, url: &Url) -> (Vec<IpAddr>, Vec<AddressReach>) {
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return (Vec::new(), Vec::new());
        };
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let addresses = if let Ok(address) = literal {
            vec![address]
        } else {
            let asked = self.outside(self.fetcher.resolver.addresses(host)).await;
            asked.ok().and_then(Result::ok).unwrap_or_default()
        };
        let six = addresses.iter().find(|address| address.is_ipv6());
        let four = addresses.iter().find(|address| address.is_ipv4());
        let one_of_each = six.into_iter().chain(four).map(|at| SocketAddr::new(*at, port));
        // With a single family there is nothing to compare.
        if six.is_none() || four.is_none() {
            return (addresses, Vec::new());
        }
        let reaches =
            self.outside(join_all(one_of_each.map(try_connect))).await.unwrap_or_default();
        (addresses, reaches)
    }
}

async fn try_connect(address: SocketAddr) -> AddressReach {
    let began = Instant::now();
    let outcome = match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
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
