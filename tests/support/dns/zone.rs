//! What a server of a test is given: zones, keys, and who may change what.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use super::loopback;

/// The server programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// BIND's `named`.
    Bind,
    /// Knot's `knotd`.
    Knot,
    /// PowerDNS' `pdns_server`.
    PowerDns,
}

/// A key for signed updates (RFC 8945).
#[derive(Clone, Debug)]
pub struct Key {
    /// Absolute name, with the final dot.
    pub name: String,
    /// As the servers' configurations write it: `hmac-md5`, `hmac-sha1`, `hmac-sha256` or `hmac-sha512`.
    pub algorithm: &'static str,
    /// Base64.
    pub secret: String,
}

impl Key {
    /// What the servers call the algorithms that cert-manager has.
    pub const ALGORITHMS: [&str; 4] = ["hmac-md5", "hmac-sha1", "hmac-sha256", "hmac-sha512"];

    /// A key with a secret that only that name has.
    pub fn new(name: &str, algorithm: &'static str) -> Self {
        let secret: Vec<u8> = name.bytes().cycle().take(32).collect();
        let secret = kubectl_acme::model::Blob(secret);
        let secret = serde_json::to_value(&secret).unwrap().as_str().unwrap().to_owned();
        Self { name: name.to_owned(), algorithm, secret }
    }

    /// One key for each algorithm, named after it: `hmac-md5.`
    pub fn all() -> Vec<Self> {
        Self::ALGORITHMS
            .iter()
            .map(|algorithm| Self::new(&format!("{algorithm}."), algorithm))
            .collect()
    }
}

/// Who may change a zone.
#[derive(Clone, Debug, Default)]
pub enum Updates {
    /// Nobody.
    #[default]
    Refused,
    /// Holders of any of the server's keys.
    Signed,
    /// Holders of the key of that name.
    SignedBy(String),
    /// Everybody.
    Unsigned,
}

/// A zone of a test. Its SOA, NS and the address of that name server are written by us.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Absolute name, with the final dot.
    pub name: String,
    /// More lines of the zone file; names without the final dot are below the zone.
    pub records: String,
    /// Who may change it.
    pub updates: Updates,
    /// Its name servers; none means the server itself, as `ns` below the zone.
    pub servers: Vec<(String, IpAddr)>,
    /// Whether BIND gives nothing of it to anybody (`allow-query`).
    pub is_refused: bool,
    /// Whose copy it is, asked at that address; nothing means that it is the first.
    pub primary: Option<SocketAddr>,
}

impl Zone {
    /// A zone with nothing but its SOA and NS, which nobody may change.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            records: String::new(),
            updates: Updates::Refused,
            servers: Vec::new(),
            is_refused: false,
            primary: None,
        }
    }

    /// Adds a line of the zone file, such as `www 60 A 127.0.0.1`.
    pub fn with(mut self, line: &str) -> Self {
        writeln!(self.records, "{line}").unwrap();
        self
    }

    /// Says who may change it.
    pub fn updates(mut self, updates: Updates) -> Self {
        self.updates = updates;
        self
    }

    /// Says who serves it: absolute names below the zone, and their addresses.
    pub fn served_by(mut self, servers: &[(String, IpAddr)]) -> Self {
        self.servers = servers.to_vec();
        self
    }

    /// Makes it one of which BIND gives nothing to anybody.
    pub fn refused(mut self) -> Self {
        self.is_refused = true;
        self
    }

    /// Makes it a copy, which is asked for anew as often as its SOA record says.
    pub fn copy_of(mut self, primary: SocketAddr) -> Self {
        self.primary = Some(primary);
        self
    }

    /// The lines of a parent's zone file that lead here.
    pub fn delegation(&self) -> String {
        let lines = self.servers.iter().map(|(name, address)| {
            let kind = if address.is_ipv4() { "A" } else { "AAAA" };
            format!("{} NS {name}\n{name} {kind} {address}\n", self.name)
        });
        lines.collect()
    }

    /// Its file.
    pub(super) fn text(&self, addresses: &[IpAddr], times: ZoneTimes) -> String {
        let ZoneTimes { ttl, refresh } = times;
        let mut text = format!(
            "$ORIGIN {name}\n$TTL {ttl}\n@ SOA ns hostmaster 1 {refresh} {refresh} 86400 {ttl}\n",
            name = self.name
        );
        if !self.servers.is_empty() {
            return text + &self.delegation() + &self.records;
        }
        text += "@ NS ns\n";
        for address in addresses {
            let kind = if address.is_ipv4() { "A" } else { "AAAA" };
            writeln!(text, "ns {kind} {address}").unwrap();
        }
        text + &self.records
    }
}

/// What a server gets.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where it is found, port 53.
    pub addresses: Vec<IpAddr>,
    /// What it serves.
    pub zones: Vec<Zone>,
    /// What it knows.
    pub keys: Vec<Key>,
    /// Seconds that records and absences of its zones are remembered.
    pub ttl: u32,
    /// After how many seconds copies of its zones are asked for anew.
    pub refresh: u32,
}

/// The times in a zone's SOA record, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneTimes {
    pub(super) ttl: u32,
    pub(super) refresh: u32,
}

impl Setup {
    /// One fresh address, a key of each algorithm and short memories.
    pub fn new(zones: Vec<Zone>) -> Self {
        Self { addresses: vec![loopback()], zones, keys: Key::all(), ttl: 2, refresh: 3600 }
    }

    pub(super) fn times(&self) -> ZoneTimes {
        ZoneTimes { ttl: self.ttl, refresh: self.refresh }
    }
}
