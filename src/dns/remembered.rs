//! What is known of zones for a little while: where they begin, who serves them, and which names are not the top of
//! one. That a name does not exist is never remembered: it is about to be published.
//!
//! What is there is remembered for 30 s at most, so that whoever mends a zone sees it soon; which zone a name is in for
//! 10 s at least where the zone's own servers are asked afterwards, because every step of a challenge looks for the
//! zone anew.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_resolver::proto::rr::Name;
use parking_lot::{Mutex, MutexGuard};

use super::server::Authority;

/// Longest that anything is remembered: whoever mends a zone wants to see it soon.
const LONGEST: Duration = Duration::from_secs(30);
/// Most zones that are remembered.
const MOST: usize = 1000;

/// Zones and who serves them, for as long as their records say, and no longer than half a minute.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered(Arc<Mutex<RememberedZones>>);

#[derive(Debug, Default)]
struct RememberedZones {
    /// The zone of a name; its own where it begins one.
    zones: HashMap<Name, (Name, Instant)>,
    servers: HashMap<Name, (Vec<Authority>, Instant)>,
}

impl Remembered {
    /// The zone that a name is known to be in, as far as resolvers tell.
    pub(super) fn zone(&self, name: &Name) -> Option<Name> {
        let known = self.known();
        let (zone, until) = known.zones.get(name)?;
        (*until > Instant::now()).then(|| zone.clone())
    }

    /// Who is known to serve a zone.
    pub(super) fn servers(&self, zone: &Name) -> Option<Vec<Authority>> {
        let known = self.known();
        let (servers, until) = known.servers.get(zone)?;
        (*until > Instant::now()).then(|| servers.clone())
    }

    pub(super) fn keep_zone(&self, name: &Name, zone: &Name, ttl: Duration) {
        self.with_room().zones.insert(name.clone(), (zone.clone(), until(ttl)));
    }

    pub(super) fn keep_servers(&self, zone: &Name, servers: &[Authority], ttl: Duration) {
        self.with_room().servers.insert(zone.clone(), (servers.to_vec(), until(ttl)));
    }

    fn known(&self) -> MutexGuard<'_, RememberedZones> {
        self.0.lock()
    }

    fn with_room(&self) -> MutexGuard<'_, RememberedZones> {
        let mut known = self.known();
        if known.zones.len() + known.servers.len() >= MOST {
            let now = Instant::now();
            known.zones.retain(|_, (_, until)| *until > now);
            known.servers.retain(|_, (_, until)| *until > now);
        }
        // Names are many, zones few.
        if known.zones.len() + known.servers.len() >= MOST {
            known.zones.clear();
        }
        if known.servers.len() >= MOST {
            known.servers.clear();
        }
        known
    }
}

fn until(ttl: Duration) -> Instant {
    Instant::now() + ttl.min(LONGEST)
}
