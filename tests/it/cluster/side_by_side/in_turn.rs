//! A cluster in which cert-manager's controllers work first, and ours after them, with the same self-checks.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::runtime::Runtime;

use super::Ours;
use super::fixture::Site;
use crate::support::cluster::{Cluster, Witness};
use crate::support::gate::{Gate, Passage};
use crate::support::pebble::{Pebble, PebbleOptions};

pub(super) struct InTurn<'a> {
    cluster: &'a Cluster,
    witness: Witness,
    self_check: Gate,
    /// Gates live in it.
    runtime: Runtime,
}

impl<'a> InTurn<'a> {
    pub(super) fn on(cluster: &'a Cluster) -> Self {
        let (witness, runtime) = (Witness::of(cluster), Runtime::new().unwrap());
        let self_check = gate(&runtime, cluster, Passage::Patient);
        Self { cluster, witness, self_check, runtime }
    }

    /// Another way into the cluster.
    pub(super) fn gate(&self, passage: Passage) -> Gate {
        gate(&self.runtime, self.cluster, passage)
    }

    /// A CA that looks at that port of loopback, the cluster's own where none is named.
    pub(super) fn pebble(&self, at: Option<&Gate>) -> Pebble {
        let http_port = Some(at.map_or_else(|| self.cluster.http_port(), |gate| gate.port));
        Pebble::start(&PebbleOptions { http_port, ..PebbleOptions::long_lived() })
    }

    pub(super) fn site(&self, name: &str) -> Site<'_> {
        Site::new(self.cluster, &self.witness, name)
    }

    /// Lets cert-manager's controllers work meanwhile.
    pub(super) fn theirs<T>(&self, act: impl FnOnce() -> T) -> T {
        let peer = self.cluster.peer_through(self.self_check.port, &[]);
        peer.wait_until_at_work();
        let done = act();
        peer.stop();
        done
    }

    /// Lets our controllers work meanwhile.
    pub(super) fn ours<T>(&self, act: impl FnOnce() -> T) -> T {
        let program = Ours::start(self.cluster, &[("*".to_owned(), self.self_check.port)]);
        let done = act();
        program.stop();
        done
    }
}

fn gate(runtime: &Runtime, cluster: &Cluster, passage: Passage) -> Gate {
    let way_in = SocketAddr::from((Ipv4Addr::LOCALHOST, cluster.http_port()));
    let gate = runtime.block_on(Gate::to(way_in));
    gate.set(passage);
    gate
}
