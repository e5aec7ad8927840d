//! Servers of a zone: their names and addresses, and the first server that answers.
//!
//! At most 16 servers of a zone with 8 addresses each are queried: a zone may be hostile.

use std::net::{IpAddr, SocketAddr};

use futures_util::future::join_all;
use hickory_resolver::proto::rr::{Name, RecordType};

use super::LookupError;
use super::reply::{Reply, sorted};
use super::server::{Authority, Server};
use super::wire::Recursion;
use super::zone::Zones;

/// Most servers of a zone that are queried; the root has 13.
const MAX_SERVERS: usize = 16;
/// Most addresses of a server that are queried.
const MAX_ADDRESSES: usize = 8;
/// Most addresses that are queried if one answer suffices: one address of each server, then the next of each.
const MAX_ADDRESSES_ASKED: usize = 32;

impl Zones {
    /// Returns the servers of a zone; `name` is the name for which the zone is looked up.
    pub(super) async fn servers(
        &self,
        zone: &Name,
        name: &Name,
    ) -> Result<Vec<Authority>, LookupError> {
        if let Some(known) = self.remembered.servers(zone) {
            return Ok(known);
        }
        let no_servers = |why: String| LookupError::NoServers { name: name.to_ascii(), why };
        let reply = self.recurse((zone, RecordType::NS)).await;
        let reply = reply.map_err(|error| no_servers(error.to_string()))?;
        let (names, ttl) = reply.name_servers(zone);
        if names.is_empty() {
            let zone = zone.to_ascii();
            let servers = self.listed();
            return Err(no_servers(format!("{servers} has no NS record of the zone {zone}")));
        }
        let found = names
            .into_iter()
            .take(MAX_SERVERS)
            .map(|name| async { Authority { addresses: self.addresses_of(&name).await, name } });
        let servers = join_all(found).await;
        if servers.iter().all(|server| !server.addresses.is_empty()) {
            self.remembered.keep_servers(zone, &servers, ttl);
        }
        Ok(servers)
    }

    /// Returns the servers that a delegation names, with addresses from its glue, else with addresses looked up.
    pub(super) async fn listed_in(&self, referral: &Reply, names: Vec<Name>) -> Vec<Authority> {
        let servers = names.into_iter().take(MAX_SERVERS).map(|name| async {
            let mut addresses = match referral.glue(&name) {
                glue if glue.is_empty() => self.addresses_of(&name).await,
                glue => glue,
            };
            addresses.truncate(MAX_ADDRESSES);
            Authority { name, addresses }
        });
        join_all(servers).await
    }

    /// Addresses of a server, IPv4 first, sorted; the resolvers come first, since they found the zone.
    async fn addresses_of(&self, host: &Name) -> Vec<IpAddr> {
        let (four, six) = tokio::join!(
            self.recurse((host, RecordType::A)),
            self.recurse((host, RecordType::AAAA))
        );
        let found = [four, six].into_iter().flatten();
        let mut addresses = sorted(found.flat_map(|reply| reply.addresses().collect::<Vec<_>>()));
        if addresses.is_empty() {
            let hosts = self.hosts.addresses(&host.to_ascii()).await;
            addresses = sorted(hosts.unwrap_or_default().into_iter());
        }
        addresses.truncate(MAX_ADDRESSES);
        addresses
    }

    /// Returns the first reply of a zone's servers that is an answer.
    pub(super) async fn ask_one(
        &self,
        servers: &[Authority],
        question: (&Name, RecordType),
    ) -> Option<Reply> {
        let servers = self.in_turn(servers);
        let reply = self.wire.ask_any(&servers, question, Recursion::Unwanted).await?;
        reply.ok().filter(Reply::is_an_answer)
    }

    /// Lists the first address of each server, then the next of each.
    fn in_turn(&self, servers: &[Authority]) -> Vec<Server> {
        let mut all = Vec::new();
        for turn in 0..MAX_ADDRESSES {
            let addresses = servers.iter().filter_map(|server| self.addresses(server).nth(turn));
            all.extend(addresses.map(Server::Plain));
        }
        all.truncate(MAX_ADDRESSES_ASKED);
        all
    }

    /// Socket addresses of a server of a zone.
    pub(super) fn addresses(&self, server: &Authority) -> impl Iterator<Item = SocketAddr> {
        server.addresses.iter().map(|address| SocketAddr::new(*address, self.port))
    }
}
