//! Real DNS servers on loopback: BIND, Knot and PowerDNS with the zones of a test, and a BIND that resolves names through them.
//!
//! Delegations lead to port 53 only, so every server has a loopback address of its own: 127.x.y.z, port 53. That takes
//! root, or `sysctl net.ipv4.ip_unprivileged_port_start=53`. Behind it the program listens on some port of 127.0.0.1.

mod bind;
mod knot;
mod powerdns;
mod query;
pub mod recursor;
pub mod relay;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::RecordType;
use tempfile::TempDir;

pub(super) use super::bed::PATIENCE;
use super::bed::{Server, copy_program, free_port, number_of_process};
use query::try_ask;
pub use query::{ask, publish_at, texts_at};
use relay::{Asked, Relay};

/// Where delegations lead.
const PORT: u16 = 53;
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
}

impl Zone {
    /// A zone with nothing but its SOA and NS, which nobody may change.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            records: String::new(),
            updates: Updates::Refused,
            servers: Vec::new(),
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

    /// The lines of a parent's zone file that lead here.
    pub fn delegation(&self) -> String {
        let lines = self.servers.iter().map(|(name, address)| {
            let kind = if address.is_ipv4() { "A" } else { "AAAA" };
            format!("{} NS {name}\n{name} {kind} {address}\n", self.name)
        });
        lines.collect()
    }

    /// Its file; absence is remembered for `ttl` seconds, the SOA's minimum.
    fn text(&self, addresses: &[IpAddr], ttl: u32) -> String {
        let mut text = format!(
            "$ORIGIN {name}\n$TTL {ttl}\n@ SOA ns hostmaster 1 3600 600 86400 {ttl}\n",
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
}

impl Setup {
    /// One fresh address, a key of each algorithm and short memories.
    pub fn new(zones: Vec<Zone>) -> Self {
        Self { addresses: vec![loopback()], zones, keys: Key::all(), ttl: 2 }
    }
}

/// A running server with files of its own; both end with this value.
pub struct DnsServer {
    server: Server,
    relay: Relay,
    /// Where it listens, port 53.
    pub addresses: Vec<IpAddr>,
    zones: Vec<String>,
    folder: TempDir,
}

impl DnsServer {
    /// Starts a server for zones.
    pub fn start(software: Software, setup: &Setup) -> Self {
        let folder = folder();
        for zone in &setup.zones {
            let file = folder.path().join(format!("{}zone", zone.name));
            fs::write(file, zone.text(&setup.addresses, setup.ttl)).unwrap();
        }
        let port = free_port();
        let command = match software {
            Software::Bind => bind::command(folder.path(), port, setup),
            Software::Knot => knot::command(folder.path(), port, setup),
            Software::PowerDns => powerdns::command(folder.path(), port, setup),
        };
        let zones = setup.zones.iter().map(|zone| zone.name.clone()).collect();
        Self::run(&command, port, setup.addresses.clone(), zones, folder)
    }

    /// Starts a BIND that resolves names as the Internet's resolvers do, from a root of its own that leads to the zones of
    /// those servers, each below the root or below one of the others. Nobody outside of loopback is ever asked.
    pub fn recursive(servers: &[&Self]) -> Self {
        let mut root = Zone::new(".");
        for server in servers {
            // A zone below another one is delegated there.
            let all = servers.iter().flat_map(|server| &server.zones);
            let is_top =
                |zone: &&String| !all.clone().any(|other| zone.ends_with(&format!(".{other}")));
            for zone in server.zones.iter().filter(is_top) {
                root.records += &server.delegation(zone);
            }
        }
        Self::recursive_from(&root)
    }

    /// Starts a BIND that resolves names from that root zone on.
    pub fn recursive_from(root: &Zone) -> Self {
        let folder = folder();
        let addresses = vec![IpAddr::V4(loopback_v4())];
        fs::write(folder.path().join("root.zone"), root.text(&addresses, 2)).unwrap();
        let port = free_port();
        let command = bind::recursive(folder.path(), port);
        Self::run(&command, port, addresses, vec![".".to_owned()], folder)
    }

    /// Starts a PowerDNS that resolves names by way of another resolver, and validates what is below a DS record in `anchors`:
    /// the zone's name, and the record's content.
    pub fn validating(upstream: &Self, anchors: &[(String, String)]) -> Self {
        let (folder, port) = (folder(), free_port());
        let command = recursor::command(folder.path(), port, upstream.address(), anchors);
        let zones = vec![recursor::READY.to_owned()];
        Self::run(&command, port, vec![loopback()], zones, folder)
    }

    /// The lines of a parent's zone file that lead to a zone here.
    pub fn delegation(&self, zone: &str) -> String {
        let mut lines = format!("{zone} NS ns.{zone}\n");
        for address in &self.addresses {
            let kind = if address.is_ipv4() { "A" } else { "AAAA" };
            writeln!(lines, "ns.{zone} {kind} {address}").unwrap();
        }
        lines
    }

    fn run(
        command: &Command,
        port: u16,
        addresses: Vec<IpAddr>,
        zones: Vec<String>,
        folder: TempDir,
    ) -> Self {
        let mut server = Server::start(command, &folder.path().join("log"));
        let log = || fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = look(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), &zones) {
            let gone = !server.is_running();
            assert!(!gone && Instant::now() < deadline, "no DNS server: {error}\n{}", log());
            sleep(Duration::from_millis(20));
        }
        let relay = Relay::start(&addresses, port);
        Self { server, relay, addresses, zones, folder }
    }

    /// Its first address, with the port.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.addresses[0], PORT)
    }

    /// What it says of a name, as far as it answers.
    pub fn ask(&self, name: &str, kind: RecordType) -> Message {
        ask(self.address(), name, kind)
    }

    /// The texts at a name, sorted.
    pub fn texts(&self, name: &str) -> Vec<String> {
        texts_at(self.address(), name)
    }

    /// Seconds that the texts at a name may be kept.
    pub fn ttl(&self, name: &str) -> Option<u32> {
        let answers = self.ask(name, RecordType::TXT).answers;
        answers.iter().map(|record| record.ttl).max()
    }

    /// Adds a text at a name of a zone that everybody may change (RFC 2136).
    pub fn publish(&self, zone: &str, name: &str, text: &str) {
        publish_at(self.address(), zone, name, text);
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Its folder, with configuration, zone files and log.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it was asked so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.relay.asked()
    }

    /// Whether it gives no answers from now on.
    pub fn be_silent(&self, silent: bool) {
        self.relay.be_silent(silent);
    }

    /// Sends it a signal, such as `STOP` or `CONT`.
    pub fn signal(&mut self, name: &str) {
        self.server.signal(name);
    }
}

/// Looks once whether every zone is there.
fn look(server: SocketAddr, zones: &[String]) -> io::Result<()> {
    for zone in zones {
        let reply = try_ask(server, zone, RecordType::SOA, Duration::from_secs(1))?;
        if reply.metadata.response_code != ResponseCode::NoError || reply.answers.is_empty() {
            return Err(io::Error::other(format!("it has no {zone} yet")));
        }
    }
    Ok(())
}

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("dns-").tempdir().unwrap()
}

/// A loopback address whose port 53 is free for UDP and TCP, another one at each call.
pub fn loopback() -> IpAddr {
    IpAddr::V4(loopback_v4())
}

fn loopback_v4() -> Ipv4Addr {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let number = u32::from(number_of_process());
    for _ in 0..256 {
        // Test processes that run side by side have different ones; 127.0.0.0/16 is left to the system's own services.
        let number = number * 1_024 + TAKEN.fetch_add(1, Ordering::Relaxed);
        // No two numbers that follow one another are the same address: one may be kept for later.
        let [last, rest] = [number % 254 + 1, number / 254];
        let [_, _, b, c] = (rest % 0xffff).to_be_bytes();
        let address = Ipv4Addr::new(127, b.max(1), c, u8::try_from(last).unwrap_or(1));
        let bound =
            TcpListener::bind((address, PORT)).and_then(|_| UdpSocket::bind((address, PORT)));
        match bound {
            Ok(_) => return address,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => panic!(
                "cannot start DNS servers on port 53: {error}; be root, or sysctl net.ipv4.ip_unprivileged_port_start=53"
            ),
            Err(_) => {}
        }
    }
    panic!("port 53 is taken on 256 loopback addresses");
}

/// The program, copied to where the profile that some systems confine it with does not apply.
fn copied(name: &str, folder: &Path) -> PathBuf {
    let copy = folder.join(name);
    copy_program(program(name), &copy);
    copy
}

/// Where a program is.
fn program(name: &str) -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin";
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{name} is missing: run tests/run once"))
}
