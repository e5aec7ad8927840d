//! Rates of requests that public CAs permit for one address, as far as the CAs publish them.

use super::acme_server::{LETS_ENCRYPT, LETS_ENCRYPT_STAGING};

/// Kinds of requests that CAs count separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The directory.
    Directory,
    /// newNonce.
    NewNonce,
    /// newAccount.
    NewAccount,
    /// newOrder.
    NewOrder,
    /// revokeCert.
    RevokeCert,
    /// renewalInfo (RFC 9773).
    RenewalInfo,
    /// Everything else.
    Other,
}

impl Endpoint {
    /// All endpoints, in their order.
    pub const ALL: [Self; 7] = [
        Self::Directory,
        Self::NewNonce,
        Self::NewAccount,
        Self::NewOrder,
        Self::RevokeCert,
        Self::RenewalInfo,
        Self::Other,
    ];

    /// Returns the endpoint that has the given name in a directory (RFC 8555 §7.1.1).
    pub fn named(name: &str) -> Self {
        match name {
            "directory" => Self::Directory,
            "newNonce" => Self::NewNonce,
            "newAccount" => Self::NewAccount,
            "newOrder" => Self::NewOrder,
            "revokeCert" => Self::RevokeCert,
            "renewalInfo" => Self::RenewalInfo,
            _ => Self::Other,
        }
    }
}

/// Limit on requests per second, and on requests at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests a second, in the long run.
    pub per_second: u32,
    /// Requests at once.
    pub burst: u32,
}

/// The rates of one CA.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestRates {
    /// Short name of the CA.
    pub name: &'static str,
    server: &'static str,
    /// Rates by endpoint, in the order of [`Endpoint::ALL`].
    rates: [(u32, u32); Endpoint::ALL.len()],
}

/// Rates as published for one address at the load balancer, which answers 503 beyond them: requests a second, and burst.
/// Source: letsencrypt.org/docs/rate-limits ("Overall Requests Limit") and letsencrypt.org/docs/staging-environment, as
/// of 2026-11; staging has 20 a second for every endpoint, and names no burst, so that no burst is assumed.
static RATES: [RequestRates; 2] = [
    RequestRates {
        name: "letsencrypt",
        server: LETS_ENCRYPT,
        rates: [(40, 40), (20, 10), (5, 15), (300, 200), (10, 100), (1000, 100), (250, 125)],
    },
    RequestRates {
        name: "letsencrypt-staging",
        server: LETS_ENCRYPT_STAGING,
        rates: [(20, 1), (20, 1), (5, 1), (20, 1), (10, 1), (20, 1), (20, 1)],
    },
];

impl RequestRates {
    /// Returns the rates of the CA with the given directory URL; `None` if none are known.
    pub fn of_server(server: &str) -> Option<&'static Self> {
        RATES.iter().find(|rates| rates.server == server)
    }

    /// Returns the rates of the CA with the given short name; `None` if none are known.
    pub fn named(name: &str) -> Option<&'static Self> {
        RATES.iter().find(|rates| rates.name == name)
    }

    /// Returns the short names of the CAs whose rates are known.
    pub fn names() -> impl Iterator<Item = &'static str> {
        RATES.iter().map(|rates| rates.name)
    }

    /// Returns the rate at which one client sends requests to an endpoint: a quarter of the burst is left for requests
    /// that arrive closer together than they were sent, and for other clients behind the same address.
    pub fn of(&self, endpoint: Endpoint) -> Rate {
        let (per_second, burst) = self.rates[endpoint as usize];
        Rate { per_second, burst: burst - burst / 4 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ca_that_publishes_its_rates_is_found_by_its_directory() {
        let rate = |server, endpoint| RequestRates::of_server(server).map(|r| r.of(endpoint));
        let nonces = Rate { per_second: 20, burst: 8 };
        assert_eq!(rate(LETS_ENCRYPT, Endpoint::NewNonce), Some(nonces));
        let others = Rate { per_second: 250, burst: 94 };
        assert_eq!(rate(LETS_ENCRYPT, Endpoint::named("finalize")), Some(others));
        let staging = Rate { per_second: 20, burst: 1 };
        assert_eq!(rate(LETS_ENCRYPT_STAGING, Endpoint::named("authorization")), Some(staging));
        assert_eq!(rate("https://ca.internal/directory", Endpoint::Other), None);
    }

    #[test]
    fn every_endpoint_has_a_rate() {
        for rates in &RATES {
            for (index, endpoint) in Endpoint::ALL.into_iter().enumerate() {
                assert_eq!(endpoint as usize, index);
                let Rate { per_second, burst } = rates.of(endpoint);
                assert!(per_second > 0 && burst > 0, "{} {endpoint:?}", rates.name);
            }
            assert_eq!(RequestRates::named(rates.name), Some(rates));
        }
    }
}
