//! TLS-ALPN-01: makes the handshake that the CA will make.

use async_trait::async_trait;
use jiff::Timestamp;

use super::Probe;
use crate::fetch::Fetcher;
use crate::fetch::alpn::{self, Greeting};
use crate::model::observation::{Hop, Observation, Seen, Vantage};
use crate::model::{Answer, Challenge};

/// Looks from this machine, as a public CA would from its own; reads the system's clock for the moment of the look.
#[derive(Clone, Debug)]
pub struct TlsAlpnProbe {
    /// Looks hosts up and makes the connections.
    pub fetcher: Fetcher,
}

#[async_trait]
impl Probe for TlsAlpnProbe {
    async fn look(&self, _: &Challenge, answer: &Answer) -> Vec<Observation> {
        let at = Timestamp::now();
        let url = alpn::url_of(&answer.identifier).map(String::from).unwrap_or_default();
        let Greeting { address, result } = self.fetcher.greet(&answer.identifier).await;
        let seen = match result {
            Ok(said) => Seen::Handshake { protocol: said.protocol, certificate: said.certificate },
            Err(error) => Seen::Nothing { why: error.to_string(), symptom: error.symptom() },
        };
        let hops = vec![Hop { url: url.clone(), address, status: None }];
        vec![Observation { vantage: Vantage::ThisMachine, at, url, hops, seen }]
    }
}
