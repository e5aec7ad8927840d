//! Limit on the connections of one server, and the choice of the connection that makes room for a new one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::task::AbortHandle;

/// Most connections of one server, if the process may open enough files.
const MAX_CONNECTIONS: u64 = 512;
/// Divisor of the process's limit on open files: the quotient is the most that one server takes.
const FILE_LIMIT_DIVISOR: u64 = 4;

/// Places for the connections of one server; clones share the places.
///
/// A new connection always gets a place: if all are taken, the address with the most connections loses its oldest one.
/// An attacker with few addresses takes places from itself only; one with many must outpace a CA that sends one request.
#[derive(Clone, Debug)]
pub struct ConnectionSlots {
    most: usize,
    /// Open connections, the oldest first.
    taken: Arc<Mutex<Vec<(IpAddr, AbortHandle)>>>,
}

impl ConnectionSlots {
    /// Builds the given number of places.
    pub fn of(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// Returns the number of places.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Gives a connection a place; the handle aborts the connection.
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
    /// Builds 512 places, or a quarter of the files that this process may open, if that is less.
    fn default() -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::of(
            usize::try_from((files / FILE_LIMIT_DIVISOR).clamp(1, MAX_CONNECTIONS)).unwrap_or(1),
        )
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

/// Returns the origin of an address: for IPv6 the network of 64 bits, which is the least that everybody has.
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
