//! Real DNS servers on loopback: BIND, Knot and PowerDNS with the zones of a test, and a BIND that resolves names through them.
//!
//! Delegations lead to port 53 only, so every server has a loopback address of its own: 127.x.y.z, port 53. That takes
//! root, or `sysctl net.ipv4.ip_unprivileged_port_start=53`. Behind it the program listens on some port of 127.0.0.1.

mod bind;
mod knot;
mod kresd;
mod powerdns;
mod query;
pub mod recursor;
pub mod relay;
mod zone;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use hickory_resolver::proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::{CNAME, TXT};
use hickory_resolver::proto::rr::{DNSClass, Name, RData, Record, RecordType};
use tempfile::TempDir;

pub(super) use super::bed::PATIENCE;
use super::bed::{Server, copy_program, free_port, number_of_process};
pub use query::{ask, publish_at, texts_at};
use query::{exchange, try_ask};
use relay::{Asked, Relay, Spoilt};
use zone::ZoneTimes;
pub use zone::{Key, Setup, Software, Updates, Zone};

/// Where delegations lead.
const PORT: u16 = 53;
/// A running server with files of its own; both end with this value.
pub struct DnsServer {
    server: Server,
    relay: Relay,
    port: u16,
    /// Where it listens, port 53.
    pub addresses: Vec<IpAddr>,
    zones: Vec<String>,
    folder: TempDir,
}

impl DnsServer {
    /// Starts a server for zones.
    pub fn start(software: Software, setup: &Setup) -> Self {
        let folder = folder();
        for zone in setup.zones.iter().filter(|zone| zone.primary.is_none()) {
            let file = folder.path().join(format!("{}zone", zone.name));
            fs::write(file, zone.text(&setup.addresses, setup.times())).unwrap();
        }
        let port = free_port();
        let command = match software {
            Software::Bind => bind::command(folder.path(), port, setup),
            Software::Knot => knot::command(folder.path(), port, setup),
            Software::PowerDns => powerdns::command(folder.path(), port, setup),
        };
        let zones = setup.zones.iter().map(|zone| (zone.name.clone(), zone.is_refused)).collect();
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
        fs::write(
            folder.path().join("root.zone"),
            root.text(&addresses, ZoneTimes { ttl: 2, refresh: 3600 }),
        )
        .unwrap();
        let port = free_port();
        let command = bind::recursive(folder.path(), port);
        Self::run(&command, port, addresses, vec![(".".to_owned(), false)], folder)
    }

    /// Starts a PowerDNS that resolves names by way of another resolver, and validates what is below a DS record in `anchors`:
    /// the zone's name, and the record's content.
    pub fn validating(upstream: &Self, anchors: &[(String, String)]) -> Self {
        let (folder, port) = (folder(), free_port());
        let command = recursor::command(folder.path(), port, upstream.address(), anchors);
        let zones = vec![(recursor::READY.to_owned(), false)];
        Self::run(&command, port, vec![loopback()], zones, folder)
    }

    /// Starts a Knot Resolver that resolves names by way of another resolver, which knows that zone.
    pub fn keeping(upstream: &Self, zone: &str) -> Self {
        let (folder, port) = (folder(), free_port());
        let command = kresd::command(folder.path(), port, upstream.address());
        Self::run(&command, port, vec![loopback()], vec![(zone.to_owned(), false)], folder)
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
        zones: Vec<(String, bool)>,
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
        let zones = zones.into_iter().map(|(zone, _)| zone).collect();
        Self { server, relay, port, addresses, zones, folder }
    }

    /// Its first address, with the port.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.addresses[0], PORT)
    }

    /// Where the program itself listens, whatever stands before it.
    pub fn own_address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
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
        self.update(zone, [text_record(name, text)]);
    }

    /// Puts a text in the place of all texts at a name, as a provider that keeps one value for each name does.
    pub fn replace(&self, zone: &str, name: &str, text: &str) {
        self.update(zone, [no_texts(name), text_record(name, text)]);
    }

    /// Takes all texts at a name away.
    pub fn withdraw(&self, zone: &str, name: &str) {
        self.update(zone, [no_texts(name)]);
    }

    /// Makes a name an alias of another one.
    pub fn lead(&self, zone: &str, name: &str, target: &str) {
        let target = RData::CNAME(CNAME(Name::from_ascii(target).unwrap()));
        self.update(zone, [Record::from_rdata(Name::from_ascii(name).unwrap(), 2, target)]);
    }

    fn update<const N: usize>(&self, zone: &str, records: [Record; N]) {
        let mut update = Message::new(4712, MessageType::Query, OpCode::Update);
        update.add_query(Query::query(Name::from_ascii(zone).unwrap(), RecordType::SOA));
        for record in records {
            update.add_authority(record);
        }
        let reply = exchange(self.address(), &update, PATIENCE).unwrap();
        assert_eq!(reply.metadata.response_code, ResponseCode::NoError, "{}", self.log());
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

    /// What spoils its answers from now on; nothing means that it is well.
    pub fn spoil(&self, spoilt: Option<Spoilt>) {
        self.relay.spoil(spoilt);
    }

    /// Sends it a signal, such as `STOP` or `CONT`.
    pub fn signal(&mut self, name: &str) {
        self.server.signal(name);
    }
}

fn text_record(name: &str, text: &str) -> Record {
    let data = RData::TXT(TXT::new(vec![text.to_owned()]));
    Record::from_rdata(Name::from_ascii(name).unwrap(), 2, data)
}

/// In an update: all texts at a name go (RFC 2136 §2.5.2).
fn no_texts(name: &str) -> Record {
    let mut record = Record::update0(Name::from_ascii(name).unwrap(), 0, RecordType::TXT);
    record.dns_class = DNSClass::ANY;
    record
}

/// Looks once whether every zone is there, or refused as it is to be.
fn look(server: SocketAddr, zones: &[(String, bool)]) -> io::Result<()> {
    for (zone, is_refused) in zones {
        let reply = try_ask(server, zone, RecordType::SOA, Duration::from_secs(1))?;
        let code = reply.metadata.response_code;
        let is_there = code == ResponseCode::NoError && !reply.answers.is_empty();
        let is_as_asked = if *is_refused { code == ResponseCode::Refused } else { is_there };
        if !is_as_asked {
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
