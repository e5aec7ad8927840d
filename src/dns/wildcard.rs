//! Hosts with records by a wildcard alone (RFC 4592): any name made below such a host takes its records away.

use futures_util::future::join_all;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};

use super::lookup::absolute;
use super::reply::{Reply, sorted};
use super::zone::{Trust, Zone, Zones};

/// Label that no name in use has.
pub const UNUSED_LABEL: &str = "kubectl-acme-nobody";

/// Records that a wildcard gives to a host without records of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByWildcard {
    /// Records, as they are written in a zone.
    pub records: Vec<String>,
    /// Whether the host has none of these records now, since a name exists below the host.
    pub is_hidden: bool,
}

impl Zones {
    /// Returns the records that a wildcard gives to a host (absolute, or without final dot). The zone's servers are
    /// asked for it and for unused names beside and below it. `None` if it has its own records, or no server answers.
    pub async fn by_wildcard(&self, host: &str) -> Option<ByWildcard> {
        if self.trust == Trust::RecursiveOnly {
            return None;
        }
        let host = absolute(host).ok()?;
        let record = Name::from_ascii("_acme-challenge").ok()?.append_domain(&host).ok()?;
        let found = async {
            // The zone of the challenge's record, which is known already if that record is to be made.
            let apex = self.apex_above(&record).await?;
            self.descend(apex, &record).await
        };
        let zone = self.in_time("", found).await.ok()?;
        if !zone.name.zone_of(&host) || zone.name == host {
            return None;
        }
        let nobody = |above: &Name| Name::from_ascii(UNUSED_LABEL).ok()?.append_domain(above).ok();
        let (beside, below) = (nobody(&host.base_name())?, nobody(&host)?);
        for kind in [RecordType::A, RecordType::AAAA] {
            let asked = [&host, &beside, &below].map(|name| self.ask_one_of(&zone, name, kind));
            let replies: Option<Vec<Reply>> = join_all(asked).await.into_iter().collect();
            let replies = replies?;
            let [own, beside, below] = [&host, &beside, &below];
            let records =
                [(0, own), (1, beside), (2, below)].map(|(at, n)| records(&replies[at], n));
            let [own, beside, below] = records;
            if beside.is_empty() {
                continue;
            }
            // An empty name between other names (NOERROR), not an absent name.
            let is_hidden = own.is_empty() && replies[0].code() == ResponseCode::NoError;
            let is_covered = own == beside && below == beside;
            return (is_hidden || is_covered).then_some(ByWildcard { records: beside, is_hidden });
        }
        None
    }

    async fn ask_one_of(&self, zone: &Zone, name: &Name, kind: RecordType) -> Option<Reply> {
        self.ask_one(&zone.servers, (name, kind)).await
    }
}

/// Address and CNAME records at a name.
fn records(reply: &Reply, name: &Name) -> Vec<String> {
    let kinds = [RecordType::A, RecordType::AAAA, RecordType::CNAME];
    let all = reply.at(name).filter(|record| kinds.contains(&record.record_type()));
    sorted(all.map(|record| record.data.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::testing::{World, Zone as TestZone};

    const SERVER: &str = "127.0.0.2";

    /// Records that the wildcards of `example.com.` give to a host, with these records.
    async fn look(host: &str, change: impl FnOnce(TestZone) -> TestZone) -> Option<ByWildcard> {
        let zone = TestZone::new("example.com.")
            .ns("example.com.", "ns1.example.com.")
            .address("ns1.example.com.", SERVER.parse().unwrap());
        let com = TestZone::new("com.").ns("example.com.", "ns1.example.com.");
        let zone = change(zone);
        let known = vec![TestZone::new("."), com, zone.clone()];
        let world = World::start(known, &[(SERVER, vec![zone])]).await;
        world.zones(Trust::Authoritative).by_wildcard(host).await
    }

    fn given(zone: TestZone) -> TestZone {
        zone.address("*.w.example.com.", "192.0.2.1".parse().unwrap())
    }

    #[tokio::test]
    async fn a_host_that_only_a_wildcard_answers_for_is_known() {
        let covered = look("www.w.example.com", given).await.unwrap();
        assert_eq!(covered, ByWildcard { records: vec!["192.0.2.1".into()], is_hidden: false });
        let six = |zone: TestZone| zone.address("*.w.example.com.", "2001:db8::1".parse().unwrap());
        assert!(look("www.w.example.com", six).await.is_some());
        let alias = |zone: TestZone| zone.cname("*.w.example.com.", "host.example.com.");
        assert!(look("www.w.example.com", alias).await.is_some());
        // Something stands below it.
        let with_record =
            |zone: TestZone| given(zone).txt("_acme-challenge.www.w.example.com.", &["value"]);
        assert!(look("www.w.example.com", with_record).await.unwrap().is_hidden);
    }

    #[tokio::test]
    async fn a_host_with_a_record_of_its_own_or_without_a_wildcard_is_left_alone() {
        let address = "192.0.2.1".parse().unwrap();
        let own = |zone: TestZone| given(zone).address("www.w.example.com.", address);
        assert_eq!(look("www.w.example.com", own).await, None);
        let alone = |zone: TestZone| zone.address("www.w.example.com.", address);
        assert_eq!(look("www.w.example.com", alone).await, None);
        assert_eq!(look("www.w.example.com", |zone| zone).await, None);
        let apex = |zone: TestZone| zone.address("*.example.com.", address);
        assert_eq!(look("example.com", apex).await, None);
    }
}
