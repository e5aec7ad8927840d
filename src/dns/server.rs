//! Name servers as people write them: `ADDR:PORT`, `ADDR` or, for DNS over HTTPS (RFC 8484), a URL.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hickory_resolver::config::ResolverOpts;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;
use url::Url;

/// Port of a name server that is named without one.
pub const PORT: u16 = 53;
/// Servers that are asked if the system names none, as with cert-manager.
const PUBLIC_SERVERS: [Ipv4Addr; 2] = [Ipv4Addr::new(8, 8, 8, 8), Ipv4Addr::new(8, 8, 4, 4)];

/// Address of a name server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Server {
    /// By UDP and TCP.
    Plain(SocketAddr),
    /// By HTTPS (RFC 8484).
    Https(Url),
}

impl Server {
    /// Reads `ADDR:PORT`, `ADDR` or `https://…`.
    ///
    /// # Errors
    /// Fails with the expected forms if the text has none of these forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(url) = Url::parse(text).ok().filter(|url| url.scheme() == "https") {
            return Ok(Self::Https(url));
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        text.parse()
            .or_else(|_| bare.parse::<IpAddr>().map(|address| SocketAddr::new(address, PORT)))
            .map(Self::Plain)
            .map_err(|_| format!("\"{text}\" is neither ADDR:PORT nor an https:// URL"))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(address) => address.fmt(f),
            Self::Https(url) => url.fmt(f),
        }
    }
}

/// Reads the name servers of this machine's configuration, and its options for queries; there may be no servers.
pub(super) fn configured() -> (Vec<Server>, ResolverOpts) {
    let (config, options) = read_system_conf().unwrap_or_default();
    let mut servers: Vec<Server> = Vec::new();
    for server in config.name_servers() {
        let port = server.connections.first().map_or(PORT, |connection| connection.port);
        let server = Server::Plain(SocketAddr::new(server.ip, port));
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    (servers, options)
}

/// Name servers of this machine's configuration; two public servers if none are configured.
pub fn of_the_system() -> Vec<Server> {
    let (mut servers, _) = configured();
    if servers.is_empty() {
        servers.extend(PUBLIC_SERVERS.map(|address| Server::Plain((address, PORT).into())));
    }
    servers
}

/// A server of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    /// Absolute name.
    pub(crate) name: Name,
    /// Addresses of the server, IPv4 first, 8 at most; there may be none.
    pub(crate) addresses: Vec<IpAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let read = Server::parse(text).map(|server| server.to_string());
        assert_eq!(read.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn servers_are_addresses_or_urls() {
        check("192.0.2.1:5353", Ok("192.0.2.1:5353"));
        check("192.0.2.1", Ok("192.0.2.1:53"));
        check("[2001:db8::1]:53", Ok("[2001:db8::1]:53"));
        check("[2001:db8::1]", Ok("[2001:db8::1]:53"));
        check("2001:db8::1", Ok("[2001:db8::1]:53"));
        check("https://dns.example/dns-query", Ok("https://dns.example/dns-query"));
        let neither = Err("\"dns.example:53\" is neither ADDR:PORT nor an https:// URL");
        check("dns.example:53", neither);
        let neither = Err("\"http://dns.example/\" is neither ADDR:PORT nor an https:// URL");
        check("http://dns.example/", neither);
    }
}
