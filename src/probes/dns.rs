//! DNS-01 probe: asks every name server for the text, as the CA may ask any of them.

use async_trait::async_trait;
use jiff::Timestamp;

use super::Probe;
use crate::dns::zone::Zones;
use crate::model::observation::{CheckResult, Hop, Observation, Vantage};
use crate::model::{Answer, Challenge};

/// Probe from this machine; reads the system's clock for the time of the observation.
#[derive(Clone, Debug)]
pub struct DnsProbe {
    /// Lookups of the servers and of their records.
    pub zones: Zones,
}

#[async_trait]
impl Probe for DnsProbe {
    async fn probe(&self, challenge: &Challenge, _: &Answer) -> Vec<Observation> {
        let at = Timestamp::now();
        let name = challenge.spec.record_name();
        let looked = match zones_of(challenge, &self.zones) {
            Ok(zones) => zones.texts(&name).await.map_err(|error| {
                let (asked, kind) = error.question();
                let (hops, why) = (vec![url(&name, "TXT"), url(asked, kind)], error.to_string());
                let symptom = error.symptom();
                let seen = if error.tells_nothing() {
                    CheckResult::NoLook { why, symptom }
                } else {
                    CheckResult::Nothing { why, symptom }
                };
                (hops, seen)
            }),
            Err(why) => Err((vec![url(&name, "TXT")], CheckResult::NoLook { why, symptom: None })),
        };
        let (hops, seen) = match looked {
            Ok(answers) => {
                let end = answers.chain.last().cloned().unwrap_or_default();
                let (zone, servers) = (answers.zone, answers.servers);
                let hops = answers.chain.iter().map(|name| url(name, "TXT")).collect();
                (hops, CheckResult::Records { name: end, zone, servers })
            }
            Err(blind) => blind,
        };
        let hops = hops.into_iter().map(|url| Hop { url, address: None, status: None });
        let hops = hops.collect();
        vec![Observation { vantage: Vantage::ThisMachine, at, url: url(&name, "TXT"), hops, seen }]
    }
}

/// Returns the lookups for the record of a challenge, whose solver may name resolvers of its own.
///
/// # Errors
/// Fails if the address of such a resolver cannot be read.
pub fn zones_of(challenge: &Challenge, zones: &Zones) -> Result<Zones, String> {
    let nameservers = challenge.spec.solver.dns01.as_ref().map(|dns01| &dns01.nameservers[..]);
    let own = zones.for_solver(nameservers.unwrap_or_default());
    own.map_err(|why| format!("cannot use the solver's nameservers: {why}"))
}

/// The question as a URL (RFC 4501).
fn url(name: &str, kind: &str) -> String {
    format!("dns:{}?type={kind}", name.trim_end_matches('.'))
}
