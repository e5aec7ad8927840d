//! DNS-01: asks every name server for the text, as the CA may ask any of them.

use async_trait::async_trait;
use jiff::Timestamp;

use super::Probe;
use crate::dns::zone::Zones;
use crate::model::observation::{Hop, Observation, Seen, Vantage};
use crate::model::{Answer, Challenge};

/// Looks from this machine; reads the system's clock for the moment of the look.
#[derive(Clone, Debug)]
pub struct DnsProbe {
    /// Finds the servers and asks them.
    pub zones: Zones,
}

#[async_trait]
impl Probe for DnsProbe {
    async fn look(&self, challenge: &Challenge, _: &Answer) -> Vec<Observation> {
        let at = Timestamp::now();
        let name = challenge.spec.record_name();
        let nameservers = challenge.spec.solver.dns01.as_ref().map(|dns01| &dns01.nameservers[..]);
        let looked = match self.zones.for_solver(nameservers.unwrap_or_default()) {
            Ok(zones) => zones.texts(&name).await.map_err(|error| error.to_string()),
            Err(why) => Err(format!("cannot use the solver's nameservers: {why}")),
        };
        let (chain, seen) = match looked {
            Ok(answers) => {
                let end = answers.chain.last().cloned().unwrap_or_default();
                let (zone, servers) = (answers.zone, answers.servers);
                (answers.chain, Seen::Records { name: end, zone, servers })
            }
            Err(why) => (vec![name.clone()], Seen::Nothing { why }),
        };
        let hops = chain.iter().map(|name| Hop { url: url(name), address: None, status: None });
        let hops = hops.collect();
        vec![Observation { vantage: Vantage::ThisMachine, at, url: url(&name), hops, seen }]
    }
}

/// The question as a URL (RFC 4501).
fn url(name: &str) -> String {
    format!("dns:{}?type=TXT", name.trim_end_matches('.'))
}
