//! Places of the certificates to check: Certificates of a store by name, label or namespace, Secrets, files, servers,
//! and lists of hosts and of serial numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::commands::certificate::inspect::{CertificatePlace, files, stored};
use crate::context::Context;
use crate::context::blocking::{Unfinished, aside};
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::disk;
use crate::input::selector::LabelSelector;
use crate::input::{lookup, target};
use crate::model::{Certificate, CertificateRequest, Key, Kind, ObjectName, Record};
use crate::objects::own_request::as_certificate;
use crate::store::Store;
use crate::store::resources::typed;

/// Maximum size of a list, in bytes.
const MAX_LIST_BYTES: u64 = 16 << 20;
/// Maximum number of hexadecimal digits of a serial number (RFC 5280 §4.1.2.2).
const MAX_SERIAL_DIGITS: usize = 40;
/// Default port of TLS servers.
const HTTPS_PORT: u16 = 443;

/// Selection of certificates to check.
#[derive(Clone, Debug, Default)]
pub struct CheckScope {
    /// Words of the command line.
    pub words: Vec<String>,
    /// Whether the Certificates of every namespace are selected.
    pub all_namespaces: bool,
    /// Labels of the selected Certificates.
    pub selector: Option<LabelSelector>,
    /// File with hosts.
    pub hosts: Option<String>,
    /// File with serial numbers.
    pub serials: Option<String>,
}

/// Place of one certificate to check.
#[derive(Clone, Debug)]
pub enum CheckPlace {
    /// Certificate of a Certificate resource.
    Certificate(Box<Certificate>),
    /// Certificate of a CertificateRequest that no Certificate has made.
    Request(Box<CertificateRequest>),
    /// Certificate in a file or a folder.
    File(String),
    /// Certificate in a Secret.
    Secret(ObjectName),
    /// Certificate that a TLS server presents.
    Server {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

/// Places of the certificates to check.
#[derive(Debug, Default)]
pub struct CheckPlaces {
    /// Places, in the order of the report's input.
    pub places: Vec<CheckPlace>,
    /// Listed serial numbers and the name of the list; Certificates with other serial numbers are left out.
    pub listed: Option<(BTreeSet<String>, String)>,
}

impl CheckScope {
    /// Returns whether any certificate of the selection is in a store.
    pub fn needs_store(&self) -> bool {
        let is_stored =
            |word: &String| place(word).is_ok_and(|place: CertificatePlace| place.is_stored());
        let is_all = self.words.is_empty() && self.hosts.is_none();
        is_all || self.serials.is_some() || self.words.iter().any(is_stored)
    }

    /// Finds the places of the selection; makes no network request except to the store.
    ///
    /// # Errors
    /// Fails when words contradict each other or name nothing, a list cannot be read, or the store fails.
    pub async fn find(
        &self,
        store: Option<&Arc<dyn Store>>,
        context: &Context,
    ) -> Result<CheckPlaces, Failure> {
        let is_named = !self.words.is_empty();
        if is_named && (self.all_namespaces || self.selector.is_some()) {
            let what = "names cannot be combined with -A or a selector";
            return Err(Failure::usage(what));
        }
        let mut found = CheckPlaces::default();
        for word in &self.words {
            let place = match place(word)? {
                CertificatePlace::File(name) => CheckPlace::File(name),
                CertificatePlace::Server { host, port } => CheckPlace::Server { host, port },
                CertificatePlace::Secret(name) => {
                    CheckPlace::Secret(ObjectName::new(context.namespace(), name))
                }
                CertificatePlace::Certificate(name) => {
                    let Some(store) = store else { continue };
                    let name = ObjectName::new(context.namespace(), name);
                    let key = stored::certificate_or_request(store, &name).await?;
                    let record = lookup::read(store, &key).await?;
                    match key.kind {
                        Kind::CertificateRequest => CheckPlace::Request(Box::new(typed(record)?)),
                        _ => CheckPlace::Certificate(Box::new(typed(record)?)),
                    }
                }
                CertificatePlace::Request(name) => {
                    let Some(store) = store else { continue };
                    let key = target::key(Kind::CertificateRequest, &name, context.namespace());
                    let key = lookup::one(store, &key).await?;
                    CheckPlace::Request(Box::new(typed(lookup::read(store, &key).await?)?))
                }
            };
            found.places.push(place);
        }
        if let Some(name) = &self.hosts {
            for line in lines(name, context).await? {
                let (host, port) = host(&line).ok_or_else(|| {
                    Failure::usage(format!("cannot use {name}: \"{line}\" is not a host"))
                        .hint("write one host on each line: www.example.com, or HOST:PORT")
                })?;
                found.places.push(CheckPlace::Server { host, port });
            }
        }
        if let Some(name) = &self.serials {
            let mut serials = BTreeSet::new();
            for line in lines(name, context).await? {
                let number = serial(&line).ok_or_else(|| {
                    Failure::usage(format!("cannot use {name}: \"{line}\" is not a serial number"))
                        .hint("write one serial number on each line, in hexadecimal digits")
                })?;
                serials.insert(number);
            }
            found.listed = Some((serials, name.clone()));
        }
        let is_all = !is_named && (self.hosts.is_none() || self.serials.is_some());
        if let Some(store) = store.filter(|_| is_all) {
            let namespace = (!self.all_namespaces).then(|| context.namespace());
            let scope = target::scope(Kind::Certificate, namespace);
            for record in store.list(Kind::Certificate, &scope).await? {
                if self.selector.as_ref().is_none_or(|labels| labels.fits(&record)) {
                    found.places.push(CheckPlace::Certificate(Box::new(typed(record)?)));
                }
            }
            let scope = target::scope(Kind::CertificateRequest, namespace);
            let listed = match store.list(Kind::CertificateRequest, &scope).await {
                // A user who may read Certificates only gets Certificates only.
                Err(error) if error.lacks_permission() => Vec::new(),
                listed => listed?,
            };
            let fits =
                |record: &Record| self.selector.as_ref().is_none_or(|labels| labels.fits(record));
            let requests: Result<Vec<_>, _> = listed.into_iter().filter(fits).map(typed).collect();
            let newest = newest(requests?).into_iter();
            found.places.extend(newest.map(|request| CheckPlace::Request(Box::new(request))));
        }
        Ok(found)
    }
}

impl CheckPlace {
    /// Key of the Certificate resource; `None` for other places.
    pub fn key(&self) -> Option<Key> {
        match self {
            Self::Certificate(certificate) => Some(Key::new(Kind::Certificate, certificate.name())),
            Self::Request(_) | Self::File(_) | Self::Secret(_) | Self::Server { .. } => None,
        }
    }
}

/// Returns the issued CertificateRequests that no Certificate has made: for each issuer and set of names the newest
/// request, which replaces the older ones.
fn newest(requests: Vec<CertificateRequest>) -> Vec<CertificateRequest> {
    let mut found: BTreeMap<(String, Vec<String>), CertificateRequest> = BTreeMap::new();
    let is_own = |request: &CertificateRequest| {
        request.metadata.controller().is_none() && !request.status.certificate.0.is_empty()
    };
    for request in requests.into_iter().filter(is_own) {
        let spec = as_certificate(&request).spec;
        let mut names = [spec.dns_names, spec.ip_addresses].concat();
        names.sort_unstable();
        let ObjectName { namespace, .. } = request.name();
        let issuer = &request.spec.issuer_ref;
        let of = (format!("{namespace} {} {}", issuer.kind, issuer.name), names);
        let is_newer = found.get(&of).is_none_or(|known| {
            known.metadata.creation_timestamp <= request.metadata.creation_timestamp
        });
        if is_newer {
            found.insert(of, request);
        }
    }
    found.into_values().collect()
}

fn place(word: &str) -> Result<CertificatePlace, Failure> {
    CertificatePlace::parse(word, files::is_there)
}

/// Reads the lines of a list (`-` is standard input), without comments after `#` and without empty lines.
async fn lines(name: &str, context: &Context) -> Result<Vec<String>, Failure> {
    let path = name.to_owned();
    let reading = move || {
        let bytes = if path == "-" {
            disk::read_bytes(std::io::stdin().lock(), MAX_LIST_BYTES)
        } else {
            std::fs::File::open(Path::new(&path))
                .and_then(|file| disk::read_bytes(file, MAX_LIST_BYTES))
        };
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let read = aside(context.interrupted(), Duration::ZERO, reading).await;
    let read = read.map_err(|left| match left {
        Unfinished::Signal(kind) => Failure::silent(kind),
        Unfinished::Panic => Failure::new(FailureKind::Unexpected, "reading a list panicked"),
    })?;
    let text = read.map_err(|error| {
        Failure::usage(format!("cannot read {name}: {}", crate::input::files::reason(&error)))
    })?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Parses a host and a port; the default port is 443.
fn host(line: &str) -> Option<(String, u16)> {
    if line.contains(char::is_whitespace) {
        return None;
    }
    let is_url = line.starts_with("https://");
    let has_port = line.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
    });
    let bare = line.trim_matches(['[', ']']);
    let is_address = bare.parse::<std::net::IpAddr>().is_ok();
    if !is_url && (is_address || !has_port) {
        let is_host = is_address || (!bare.is_empty() && !bare.contains(['/', ':']));
        return is_host.then(|| (bare.to_owned(), HTTPS_PORT));
    }
    match CertificatePlace::parse(line, |_| false) {
        Ok(CertificatePlace::Server { host, port }) => Some((host, port)),
        _ => None,
    }
}

/// Serial number in lower-case hexadecimal without leading zeroes; `None` for another text, such as a longer fingerprint.
pub fn serial(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let lower = lower.strip_prefix("0x").unwrap_or(&lower);
    let digits: String = lower.chars().filter(|c| *c != ':').collect();
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    let digits = digits.trim_start_matches('0');
    (is_number && digits.len() <= MAX_SERIAL_DIGITS).then(|| digits.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_hosts_are_read_with_and_without_ports() {
        for (line, expected) in [
            ("www.example.com", Some(("www.example.com", 443))),
            ("www.example.com:8443", Some(("www.example.com", 8443))),
            ("https://www.example.com/path", Some(("www.example.com", 443))),
            ("192.0.2.1", Some(("192.0.2.1", 443))),
            ("2001:db8::1", Some(("2001:db8::1", 443))),
            ("[2001:db8::1]:8443", Some(("2001:db8::1", 8443))),
            ("web.pem", Some(("web.pem", 443))),
            ("a b", None),
            ("a/b", None),
            ("a:http", None),
        ] {
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(host(line), expected, "{line}");
        }
    }

    #[test]
    fn serial_numbers_are_one_however_they_are_written() {
        for text in ["04A1B2", "4a1b2", "0x04a1b2", "04:a1:b2", " 0004a1b2 "] {
            assert_eq!(serial(text).as_deref(), Some("4a1b2"), "{text}");
        }
        assert_eq!(serial("4g"), None);
        let longest = "7".repeat(MAX_SERIAL_DIGITS);
        assert_eq!(serial(&format!("00{longest}")), Some(longest.clone()));
        assert_eq!(serial(&format!("{longest}0")), None);
        assert_eq!(serial(""), None);
    }
}
