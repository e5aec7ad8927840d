//! How many connections a server has at once, and who makes room for a newcomer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::task::AbortHandle;

/// The most connections of one server, where the process may have files enough.
const MOST: u64 = 512;
/// Which part of the files that the process may have open one server takes at most.
const SHARE: u64 = 4;

/// The places for connections of one server; clones share them.
///
/// A newcomer always gets one: when all are taken, the address with the most connections loses its oldest. An attacker with
/// few addresses takes places from itself only, and one with many has to be faster than a CA that sends one request.
#[derive(Clone, Debug)]
pub struct ConnectionSlots {
    most: usize,
    /// The oldest first.
    taken: Arc<Mutex<Vec<(IpAddr, AbortHandle)>>>,
}

impl ConnectionSlots {
    /// That many places.
    pub fn of(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// How many there are.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Gives a connection a place; the handle cuts it off.
    pub(super) fn take(&self, address: IpAddr, connection: AbortHandle) {
        let mut taken = self.taken.lock();
        taken.retain(|(_, connection)| !connection.is_finished());
        if taken.len() >= self.most
            && let Some(oldest) = oldest_of_the_greediest(&taken)
        {
            let (origin, connection) = taken.remove(oldest);
            tracing::debug!(%origin, "a connection makes room for another");
            connection.abort();
        }
        taken.push((origin(address), connection));
    }
}

impl Default for ConnectionSlots {
    /// 512, or a quarter of the files that this process may have open where that is less.
    fn default() -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::of(usize::try_from((files / SHARE).clamp(1, MOST)).unwrap_or(1))
    }
}

fn oldest_of_the_greediest(taken: &[(IpAddr, AbortHandle)]) -> Option<usize> {
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    for (origin, _) in taken {
        *counts.entry(*origin).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    taken.iter().position(|(origin, _)| counts.get(origin) == Some(&most))
}

/// Whose an address is: of IPv6 everybody has a network of 64 bits at least.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX)).into(),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use crate::serve::connection_slots::*;

    #[test]
    fn an_origin_is_an_address_of_ipv4_or_a_network_of_ipv6() {
        for (address, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(origin(address.parse().unwrap()).to_string(), expected);
        }
    }
}
