//! TLS-ALPN-01 probe: makes the handshake that the CA will make.

use async_trait::async_trait;
use jiff::Timestamp;

use super::Probe;
use crate::fetch::Fetcher;
use crate::fetch::alpn::{self, HandshakeOutcome};
use crate::model::observation::{CheckResult, Hop, Observation, Vantage};
use crate::model::{Answer, Challenge};

/// Probe from this machine, as a public CA would from its own; reads the system's clock for the observation's time.
#[derive(Clone, Debug)]
pub struct TlsAlpnProbe {
    /// Client that looks hosts up and makes the connections.
    pub fetcher: Fetcher,
}

#[async_trait]
impl Probe for TlsAlpnProbe {
    async fn probe(&self, _: &Challenge, answer: &Answer) -> Vec<Observation> {
        let at = Timestamp::now();
        let url = alpn::url_of(&answer.identifier).map(String::from).unwrap_or_default();
        let HandshakeOutcome { address, result } = self.fetcher.greet(&answer.identifier).await;
        let seen = match result {
            Ok(said) => {
                CheckResult::Handshake { protocol: said.protocol, certificate: said.certificate }
            }
            Err(error) => CheckResult::Nothing { why: error.to_string(), symptom: error.symptom() },
        };
        let hops = vec![Hop { url: url.clone(), address, status: None }];
        vec![Observation { vantage: Vantage::ThisMachine, at, url, hops, seen }]
    }
}
