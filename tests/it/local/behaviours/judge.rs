//! What is wrong with what came of a row.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use super::bench::Seen;
use super::row::{End, Row, Times};
use crate::support::ca::is_pair;

/// Most requests that any row may cost, besides four a second.
const MOST: u64 = 40;
/// How much longer than its time limit a run may take on a busy machine.
const MARGIN: Duration = Duration::from_secs(30);

/// Everything that is not as the row says.
pub(super) fn faults(row: &Row, seen: &Seen, timeout: Duration) -> Vec<String> {
    let mut faults = Vec::new();
    let expected = match row.end {
        End::Issued => 0,
        End::Code(code) => code,
    };
    if seen.code != Some(expected) {
        faults.push(format!("exit code {:?} in place of {expected}", seen.code));
    }
    if seen.took > timeout + MARGIN {
        faults.push(format!("it took {:?} where {timeout:?} were given", seen.took));
    }
    // Pauses grow by half from 50 ms; at four seconds they are as long as they get.
    let paced = 14 + timeout.min(seen.took).as_secs() / 2;
    for (what, times) in &row.asked {
        let asked = seen.asked.get(*what).copied().unwrap_or_default();
        let is_so = match times {
            Times::Is(times) => asked == *times,
            Times::Between(least, most) => (*least..=*most).contains(&asked),
            Times::AtOurPace => (1..=paced).contains(&asked),
        };
        if !is_so {
            faults.push(format!("{asked} requests for {what} in place of {times:?}"));
        }
    }
    for words in &row.says {
        if !seen.talk.contains(words) {
            faults.push(format!("does not say {words:?}"));
        }
    }
    match row.end {
        End::Issued => faults.extend(pair_faults(row, seen).err()),
        End::Code(_) => faults.extend(left_over(seen)),
    }
    let state = seen.newest_order();
    if let Some(expected) = row.order
        && state.as_deref() != Some(expected)
    {
        faults.push(format!("the Order is {state:?} in place of {expected:?}"));
    }
    let total: u64 = seen.asked.values().sum();
    if total > MOST + timeout.as_secs() * 4 {
        faults.push(format!("{total} requests in all"));
    }
    // Whatever becomes of the account, its key was there before the CA heard of it.
    if !seen.has_secret("acme-account") {
        faults.push("the account key is not kept".to_owned());
    }
    faults
}

/// A pair for exactly the names is on disk, with a chain in the one form, and in the Secret.
fn pair_faults(row: &Row, seen: &Seen) -> Result<(), String> {
    let files: Vec<_> = seen.files.keys().map(String::as_str).collect();
    if files != ["web-tls/tls.crt", "web-tls/tls.key"] {
        return Err(format!("on disk: {files:?}"));
    }
    let (chain, key) = (&seen.files["web-tls/tls.crt"], &seen.files["web-tls/tls.key"]);
    if !is_pair(chain, key) {
        return Err("key and certificate are no pair".to_owned());
    }
    let blocks = pem::parse_many(chain).map_err(|why| why.to_string())?;
    let different: BTreeSet<_> = blocks.iter().map(pem::Pem::contents).collect();
    let written: String = blocks
        .iter()
        .map(|block| {
            let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
            pem::encode_config(block, config)
        })
        .collect();
    if different.len() != blocks.len() || written.as_bytes() != chain {
        return Err(format!("the chain is not in order: {}", String::from_utf8_lossy(chain)));
    }
    let (_, leaf) = parse_x509_certificate(blocks[0].contents()).map_err(|why| why.to_string())?;
    let names = leaf.subject_alternative_name().map_err(|why| why.to_string())?;
    let names: BTreeSet<&str> = names
        .iter()
        .flat_map(|names| &names.value.general_names)
        .filter_map(|name| if let GeneralName::DNSName(name) = name { Some(*name) } else { None })
        .collect();
    if names != row.names.iter().chain(&row.certified_beside).copied().collect() {
        return Err(format!("certified are {names:?}"));
    }
    if seen.secrets != ["acme-account", "web-tls"] {
        return Err(format!("Secrets are {:?}", seen.secrets));
    }
    if seen.of("Challenge").next().is_some() {
        return Err("a Challenge is left over".to_owned());
    }
    Ok(())
}

/// What nobody gets when there is no certificate.
fn left_over(seen: &Seen) -> Vec<String> {
    let mut faults = Vec::new();
    if !seen.files.is_empty() {
        faults.push(format!("on disk: {:?}", seen.files.keys()));
    }
    if seen.has_secret("web-tls") {
        faults.push("there is a Secret web-tls".to_owned());
    }
    faults
}

impl Seen {
    fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.stored.iter().filter(move |object| object["kind"] == kind)
    }

    fn has_secret(&self, name: &str) -> bool {
        self.secrets.iter().any(|secret| secret == name)
    }

    fn newest_order(&self) -> Option<String> {
        let newest = self.of("Order").max_by_key(|order| {
            order["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned()
        });
        Some(newest?["status"]["state"].as_str().unwrap_or_default().to_owned())
    }

    /// Everything, for whoever has to find out why.
    pub(super) fn told(&self) -> String {
        let kept = self.stored.iter().map(|object| {
            let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
            let (state, reason) = (&object["status"]["state"], &object["status"]["reason"]);
            format!("{kind}/{name} {state} {reason}")
        });
        let kept: Vec<_> = kept.collect();
        let code = self.code;
        format!(
            "  exit {code:?} after {:?}; asked: {:?}\n  files: {:?}\n  stored: {kept:?} {:?}\n{}",
            self.took,
            self.asked,
            self.files.keys(),
            self.secrets,
            self.talk
        )
    }
}
