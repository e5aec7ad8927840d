//! Addresses that replace those in DNS: `--http01-resolve HOST=ADDR[:PORT]`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Addresses that replace those in DNS, for test set-ups and split DNS (`--http01-resolve HOST=ADDR[:PORT]`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Targets by host; `*` stands for every host. A port replaces port 80, never another port.
    pub hosts: BTreeMap<String, (IpAddr, Option<u16>)>,
    /// Targets of handshakes for TLS-ALPN-01, used before `hosts`; a port replaces port 443 (`--tls-alpn-resolve`).
    pub handshakes: BTreeMap<String, (IpAddr, Option<u16>)>,
}

/// A text that is not `HOST=ADDR[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not HOST=ADDR[:PORT], such as www.example.com=127.0.0.1:8080")]
pub struct InvalidOverride {
    text: String,
}

impl Overrides {
    /// Reads entries as a person writes them: `HOST=ADDR[:PORT]`, an IPv6 address with a port in brackets.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidOverride> {
        let mut hosts = BTreeMap::new();
        for text in entries {
            let (host, target) =
                parse_entry(text).ok_or_else(|| InvalidOverride { text: text.to_owned() })?;
            hosts.insert(host, target);
        }
        Ok(Self { hosts, handshakes: BTreeMap::new() })
    }

    /// Returns the address for a connection to that host and port; `None` if DNS decides.
    pub fn address(&self, host: &str, port: u16) -> Option<SocketAddr> {
        find(&self.hosts, host, port, 80)
    }

    /// Returns the address for a TLS-ALPN-01 handshake with that host; `None` if DNS decides.
    pub fn handshake(&self, host: &str) -> Option<SocketAddr> {
        find(&self.handshakes, host, 443, 443).or_else(|| self.address(host, 443))
    }
}

/// Finds the entry of a host; the entry's port replaces the standard port alone.
fn find(
    entries: &BTreeMap<String, (IpAddr, Option<u16>)>,
    host: &str,
    port: u16,
    standard: u16,
) -> Option<SocketAddr> {
    let (address, own_port) = entries.get(host).or_else(|| entries.get("*"))?;
    let port = if port == standard { own_port.unwrap_or(port) } else { port };
    Some(SocketAddr::new(*address, port))
}

fn parse_entry(text: &str) -> Option<(String, (IpAddr, Option<u16>))> {
    let (host, target) = text.split_once('=')?;
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host.is_empty() {
        return None;
    }
    if let Ok(address) = target.parse::<SocketAddr>() {
        return Some((host, (address.ip(), Some(address.port()))));
    }
    let bare = target.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(target);
    Some((host, (bare.parse().ok()?, None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entry: &str, host: &str, port: u16, expected: Option<&str>) {
        let address = Overrides::parse([entry]).unwrap().address(host, port);
        assert_eq!(address.map(|a| a.to_string()).as_deref(), expected);
    }

    #[test]
    fn a_host_goes_where_its_entry_says() {
        check("www.example.com=192.0.2.7", "www.example.com", 80, Some("192.0.2.7:80"));
        check("WWW.example.com.=192.0.2.7", "www.example.com", 80, Some("192.0.2.7:80"));
        check("www.example.com=192.0.2.7", "example.com", 80, None);
    }

    #[test]
    fn a_port_replaces_port_80_only() {
        check("a.example=127.0.0.1:5002", "a.example", 80, Some("127.0.0.1:5002"));
        check("a.example=127.0.0.1:5002", "a.example", 443, Some("127.0.0.1:443"));
    }

    #[test]
    fn a_star_stands_for_every_host() {
        check("*=127.0.0.1:5002", "any.example", 80, Some("127.0.0.1:5002"));
    }

    #[test]
    fn ipv6_may_stand_in_brackets() {
        check("a.example=::1", "a.example", 80, Some("[::1]:80"));
        check("a.example=[::1]", "a.example", 80, Some("[::1]:80"));
        check("a.example=[::1]:5002", "a.example", 80, Some("[::1]:5002"));
    }

    #[test]
    fn the_entry_of_a_host_comes_before_the_star() {
        let both = Overrides::parse(["*=127.0.0.1", "a.example=127.0.0.2"]).unwrap();
        assert_eq!(both.address("a.example", 80).unwrap().to_string(), "127.0.0.2:80");
    }

    #[test]
    fn a_handshake_goes_its_own_way_if_it_has_one() {
        let mut overrides = Overrides::parse(["*=127.0.0.1:5002"]).unwrap();
        let address = |overrides: &Overrides| overrides.handshake("a.example").unwrap().to_string();
        assert_eq!(address(&overrides), "127.0.0.1:443");
        overrides.handshakes = Overrides::parse(["a.example=127.0.0.2:5001"]).unwrap().hosts;
        assert_eq!(address(&overrides), "127.0.0.2:5001");
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in ["", "a.example", "=127.0.0.1", "a.example=", "a.example=host", "a=1.2.3.4:x"] {
            assert!(Overrides::parse([text]).is_err(), "{text}");
        }
    }
}
