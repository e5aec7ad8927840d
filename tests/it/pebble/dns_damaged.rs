//! Resolvers that give no answer although the zone's servers have one: what they say is told, and it heals.

use std::fs;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use kubectl_acme::dns::zone::Trust;

use crate::pebble::dns_look::{Bed, PATIENCE, RECORD, TEXT, ZONE};
use crate::support::dns::recursor::WITHHOLDS_SOA;
use crate::support::dns::{DnsServer, Software, Updates};

/// A server whose zone has the text already, behind a resolver that trusts the zone's key.
pub(super) struct Signed {
    pub(super) bed: Bed,
    /// Base name of the key's files in the server's folder.
    key: String,
}

impl Signed {
    pub(super) fn start() -> Self {
        let text = format!("{RECORD} TXT \"{TEXT}\"");
        let mut bed = Bed::start(&[Software::Bind], "", |_, zone| {
            vec![zone.updates(Updates::Refused).with(&text)]
        });
        let folder = bed.servers[0].folder().display().to_string();
        let words = ["-q", "-K", &folder, "-a", "ECDSAP256SHA256", "-f", "KSK", ZONE];
        let key = run("dnssec-keygen", &words).trim().to_owned();
        let ds = run("dnssec-dsfromkey", &["-2", &format!("{folder}/{key}.key")]);
        let content = ds.split_once(" DS ").unwrap().1.trim().to_owned();
        let anchors = [(ZONE.to_owned(), content)];
        behind(&mut bed, &anchors);
        Self { bed, key }
    }

    /// Signs the zone, changes it by hand afterwards if it is to be spoilt, and has the server read it.
    pub(super) fn sign(&mut self, spoilt: bool) {
        let server = &mut self.bed.servers[0];
        let folder = server.folder();
        let plain = folder.join("plain.zone");
        let zone = folder.join(format!("{ZONE}zone"));
        if !plain.exists() {
            fs::copy(&zone, &plain).unwrap();
        }
        let text = |path: &std::path::Path| path.display().to_string();
        let (folder, key) = (text(folder), folder.join(&self.key));
        let (plain, zone, key) = (text(&plain), text(&zone), text(&key));
        let words =
            ["-q", "-S", "-z", "-K", &folder, "-d", &folder, "-o", ZONE, "-f", &zone, &plain, &key];
        run("dnssec-signzone", &words);
        if spoilt {
            let signed = fs::read_to_string(&zone).unwrap();
            let changed = signed.replacen(" hostmaster.", " somebody.", 1);
            fs::write(&zone, changed.replace(TEXT, "another")).unwrap();
        }
        server.signal("HUP");
    }
}

/// Has a bed look by way of a resolver that asks its own one, and trusts these DS records.
fn behind(bed: &mut Bed, anchors: &[(String, String)]) {
    let resolver = DnsServer::validating(&bed.resolver, anchors);
    bed.servers.push(std::mem::replace(&mut bed.resolver, resolver));
}

/// Looks until a Challenge waits for this; for nothing, when it is empty. A server reads its zones, and a resolver forgets, a
/// moment later.
async fn says(bed: &Bed, trust: Trust, expected: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let reason = bed.reason(trust, "").await;
        if reason == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{reason}\nis not\n{expected}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Runs one of BIND's tools; what it printed.
fn run(tool: &str, words: &[&str]) -> String {
    let output = Command::new(tool).args(words).output().unwrap();
    assert!(output.status.success(), "{tool} {words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_zone_that_is_not_what_was_signed_is_told_until_it_is_signed_anew() {
    let mut site = Signed::start();
    site.sign(true);
    let resolver = site.bed.resolver.address().to_string();
    let bogus = "SERVFAIL (DNSSEC Bogus)";
    let walk = format!(
        "Could not determine the zone for \"{RECORD}\": When querying the SOA record for the domain 'www.example.com.' \
         using nameservers [{resolver}], rcode was expected to be 'NOERROR' or 'NXDOMAIN', but got 'SERVFAIL': \
         {resolver} says {bogus}"
    );
    says(&site.bed, Trust::Authoritative, &walk).await;
    let only = format!(
        "NS {resolver} returned {bogus} for {RECORD}: 0 of 1 nameservers answer: {resolver} says {bogus}"
    );
    says(&site.bed, Trust::RecursiveOnly, &only).await;
    site.sign(false);
    for trust in [Trust::Authoritative, Trust::RecursiveOnly] {
        says(&site.bed, trust, "").await;
    }
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_zone_whose_soa_records_a_resolver_withholds_is_found_by_its_name_servers() {
    let text = format!("{RECORD} TXT \"{TEXT}\"");
    let mut bed = Bed::start(&[Software::PowerDns], "", |_, zone| vec![zone.with(&text)]);
    behind(&mut bed, &[]);
    let flag = bed.resolver.folder().join(WITHHOLDS_SOA);
    fs::write(&flag, "").unwrap();
    says(&bed, Trust::Authoritative, "").await;
    fs::remove_file(&flag).unwrap();
    says(&bed, Trust::Authoritative, "").await;
}
