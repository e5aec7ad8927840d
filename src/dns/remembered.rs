//! Facts about zones that are kept for a little while: their apexes, their servers, and names that are not the apex of
//! a zone. The absence of a name is never kept: the name is about to be published.
//!
//! A fact is kept for 30 s at most, so that a mended zone is seen soon. The zone of a name is kept for 10 s at least if
//! the zone's own servers are asked afterwards, because every step of a challenge looks for the zone anew.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_resolver::proto::rr::Name;
use parking_lot::{Mutex, MutexGuard};

use super::server::Authority;

/// Longest time for which a fact is kept: a mended zone is to be seen soon.
const TTL_MAX: Duration = Duration::from_secs(30);
/// Most zones that are kept.
const MAX_ZONES: usize = 1000;

/// Zones and their servers, kept for the TTL of their records, and no longer than half a minute.
#[derive(Clone, Debug, Default)]
pub(super) struct ZoneCache(Arc<Mutex<RememberedZones>>);

#[derive(Debug, Default)]
struct RememberedZones {
    /// Zone of a name; the name itself if it is the apex of a zone.
    zones: HashMap<Name, (Name, Instant)>,
    servers: HashMap<Name, (Vec<Authority>, Instant)>,
}

impl ZoneCache {
    /// Zone that a name is known to be in, by the answers of resolvers.
    pub(super) fn zone(&self, name: &Name) -> Option<Name> {
        let known = self.lock();
        let (zone, until) = known.zones.get(name)?;
        (*until > Instant::now()).then(|| zone.clone())
    }

    /// Known servers of a zone.
    pub(super) fn servers(&self, zone: &Name) -> Option<Vec<Authority>> {
        let known = self.lock();
        let (servers, until) = known.servers.get(zone)?;
        (*until > Instant::now()).then(|| servers.clone())
    }

    pub(super) fn keep_zone(&self, name: &Name, zone: &Name, ttl: Duration) {
        self.with_room().zones.insert(name.clone(), (zone.clone(), until(ttl)));
    }

    pub(super) fn keep_servers(&self, zone: &Name, servers: &[Authority], ttl: Duration) {
        self.with_room().servers.insert(zone.clone(), (servers.to_vec(), until(ttl)));
    }

    fn lock(&self) -> MutexGuard<'_, RememberedZones> {
        self.0.lock()
    }

    fn with_room(&self) -> MutexGuard<'_, RememberedZones> {
        let mut known = self.lock();
        if known.zones.len() + known.servers.len() >= MAX_ZONES {
            let now = Instant::now();
            known.zones.retain(|_, (_, until)| *until > now);
            known.servers.retain(|_, (_, until)| *until > now);
        }
        // Names are many, zones few.
        if known.zones.len() + known.servers.len() >= MAX_ZONES {
            known.zones.clear();
        }
        if known.servers.len() >= MAX_ZONES {
            known.servers.clear();
        }
        known
    }
}

fn until(ttl: Duration) -> Instant {
    Instant::now() + ttl.min(TTL_MAX)
}
