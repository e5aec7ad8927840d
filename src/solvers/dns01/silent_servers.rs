//! Addresses of name servers that have not answered lately: other addresses are tried before them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::dns::update::Updater;

/// Time for which a silence is remembered: about as long as an order takes.
const SILENCE_MEMORY: Duration = Duration::from_mins(5);

/// Times at which addresses were last silent.
pub(super) struct SilentServers(Mutex<BTreeMap<SocketAddr, Instant>>);

impl SilentServers {
    /// Creates an empty memory.
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Records whether an address has answered.
    pub(super) fn heard(&self, server: SocketAddr, answered: bool) {
        if answered {
            self.lock().remove(&server);
        } else {
            self.lock().insert(server, Instant::now());
        }
    }

    /// Returns the servers with their numbers; servers that were silent come last, with less patience, and marked.
    pub(super) fn in_turn(&self, updaters: &[Updater]) -> Vec<(usize, Updater, bool)> {
        let mut silences = self.lock();
        silences.retain(|_, since| since.elapsed() < SILENCE_MEMORY);
        let updaters = updaters.iter().cloned().enumerate();
        let marked = updaters.map(|(number, updater)| {
            let was_silent = silences.contains_key(&updater.server());
            let updater = if was_silent { updater.hasty() } else { updater };
            (number, updater, was_silent)
        });
        let mut all: Vec<_> = marked.collect();
        all.sort_by_key(|(number, _, was_silent)| (*was_silent, *number));
        all
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Instant>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::update::Protocol;

    #[test]
    fn an_address_that_was_silent_is_tried_last_until_it_answers() {
        let servers: [SocketAddr; 3] =
            ["[::1]:53", "127.0.0.1:53", "127.0.0.2:53"].map(|text| text.parse().unwrap());
        let updaters = servers.map(|server| Updater::new(server, Protocol::Udp, None));
        let silences = SilentServers::new();
        let numbers = || {
            let all = silences.in_turn(&updaters);
            all.into_iter().map(|(number, _, marked)| (number, marked)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(), [(0, false), (1, false), (2, false)]);
        silences.heard(servers[0], false);
        assert_eq!(numbers(), [(1, false), (2, false), (0, true)]);
        silences.heard(servers[0], true);
        assert_eq!(numbers(), [(0, false), (1, false), (2, false)]);
    }
}
