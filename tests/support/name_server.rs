//! The DNS server that Pebble asks, and its management interface.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use kubectl_acme::dns::lookup::SystemResolver;
use kubectl_acme::dns::zone::{Trust, Zones};
use serde_json::{Value, json};

use super::bed::{Server, free_port, program};
use super::http;

/// A DNS server that answers every A query with 127.0.0.1, unless told otherwise.
pub struct NameServer {
    server: Server,
    port: u16,
    management_port: u16,
    log: PathBuf,
}

impl NameServer {
    /// Starts it on free ports, with its output in `log`.
    pub fn start(log: PathBuf) -> Self {
        let (port, management_port) = (free_port(), free_port());
        let mut command = Command::new(program("pebble-challtestsrv"));
        command
            .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""])
            .args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""])
            .args(["-dnsserver", &format!("127.0.0.1:{port}")])
            .args(["-management", &format!("127.0.0.1:{management_port}")]);
        Self { server: Server::start(&command, &log), port, management_port, log }
    }

    /// `HOST:PORT`, for UDP and TCP.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Answers A queries for this name with these addresses.
    pub fn add_a(&self, host: &str, addresses: &[&str]) {
        self.tell("/add-a", &json!({"host": host, "addresses": addresses}));
    }

    /// Answers AAAA queries for this name with these addresses.
    pub fn add_aaaa(&self, host: &str, addresses: &[&str]) {
        self.tell("/add-aaaa", &json!({"host": host, "addresses": addresses}));
    }

    /// Answers CAA queries for this name with one record.
    pub fn add_caa(&self, host: &str, tag: &str, value: &str) {
        let policy = json!([{"tag": tag, "value": value}]);
        self.tell("/add-caa", &json!({"host": host, "policies": policy}));
    }

    /// Leads this name to another one.
    pub fn set_cname(&self, host: &str, target: &str) {
        self.tell("/set-cname", &json!({"host": host, "target": target}));
    }

    /// Adds a TXT value to this name.
    pub fn add_txt(&self, host: &str, value: &str) {
        self.tell("/set-txt", &json!({"host": host, "value": value}));
    }

    /// Answers every query for this name with SERVFAIL.
    pub fn add_servfail(&self, host: &str) {
        self.tell("/set-servfail", &json!({"host": host}));
    }

    /// Answers A queries for all other names with this address; an empty one with nothing.
    pub fn set_default_ipv4(&self, address: &str) {
        self.tell("/set-default-ipv4", &json!({"ip": address}));
    }

    /// Forgets all that was set for this name.
    pub fn clear(&self, host: &str) {
        for kind in ["a", "aaaa", "caa", "cname", "servfail"] {
            self.tell(&format!("/clear-{kind}"), &json!({"host": host}));
        }
        self.tell("/clear-txt", &json!({"host": host}));
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn tell(&self, path: &str, what: &Value) {
        http::post(self.management_port, path, what)
            .unwrap_or_else(|error| panic!("the DNS server refuses {path} {what}: {error}"));
    }

    /// Says whether it is running.
    pub fn is_running(&mut self) -> bool {
        self.server.is_running()
    }

    /// Looks once whether it takes orders.
    pub fn look(&self) -> io::Result<()> {
        http::post(self.management_port, "/clear-servfail", &json!({"host": "nobody."})).map(drop)
    }
}

/// For tests that do without DNS-01: nobody is asked for zones.
pub fn nobody_to_ask() -> Zones {
    Zones::new(Vec::new(), Trust::Authoritative, Arc::new(SystemResolver::new()))
}
