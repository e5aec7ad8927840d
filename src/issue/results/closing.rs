//! Last lines of `order`: the result of each Certificate, in one line.

use std::fmt::Write as _;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use super::files::Written;
use crate::diagnosis::case::chain::key_of;
use crate::model::Certificate;
use crate::model::common::Duration;
use crate::print::age::short;

/// Origin of a certificate that is in its Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issued {
    /// Issued by this command, after this time.
    After(SignedDuration),
    /// There before this command.
    Before,
}

/// Place of a certificate.
#[derive(Clone, Copy, Debug)]
pub enum Location<'a> {
    /// In these files.
    Files(&'a Written),
    /// In its Secret alone, or in the status of a CertificateRequest.
    Secret,
}

/// Returns one line: names, how long the certificate took, until when it is valid, when it is renewed, and where it is.
pub fn line(
    certificate: &Certificate,
    issued: Issued,
    place: Option<Location<'_>>,
    now: Timestamp,
) -> String {
    let mut line = names(certificate);
    let took = match issued {
        Issued::After(length) => format!("issued in {}", took(length)),
        Issued::Before => "up to date".to_owned(),
    };
    // Writing into memory cannot fail.
    let _written = write!(line, ": {took}");
    let status = &certificate.status;
    if let Some(end) = status.not_after {
        let left = short(end.timestamp().duration_since(now));
        let _written = write!(line, "; valid until {end} ({left})");
    }
    if let Some(renewal) = status.renewal_time {
        let _written = write!(line, "; renews {renewal}");
    }
    let place = place.map(|place| match place {
        Location::Files(Written { certificate, key, .. }) => {
            let name = |key: &PathBuf| key.file_name().unwrap_or_default().display().to_string();
            let key = key.as_ref().map(|key| format!(" and {}", name(key)));
            format!("; {}{}", certificate.display(), key.unwrap_or_default())
        }
        Location::Secret if certificate.spec.secret_name.is_empty() => {
            format!("; status.certificate of {}", key_of(certificate))
        }
        Location::Secret => {
            let namespace = &certificate.metadata.namespace;
            format!("; Secret {namespace}/{}", certificate.spec.secret_name)
        }
    });
    line.extend(place);
    line
}

/// Returns the first name, and how many other names there are.
fn names(certificate: &Certificate) -> String {
    let spec = &certificate.spec;
    let all = [&spec.dns_names, &spec.ip_addresses, &spec.uris, &spec.email_addresses];
    let mut all = all.into_iter().flatten();
    let first = Some(&spec.common_name).filter(|name| !name.is_empty());
    let Some(first) = all.next().or(first) else { return certificate.metadata.name.clone() };
    match all.count() {
        0 => first.clone(),
        1 => format!("{first} and 1 more name"),
        more => format!("{first} and {more} more names"),
    }
}

/// Formats a length of time for people: with tenths of a second below 10 s.
pub fn took(length: SignedDuration) -> String {
    if length < SignedDuration::from_secs(10) {
        return format!("{:.1}s", length.as_secs_f64());
    }
    Duration::from_secs(length.as_secs()).to_string()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn certificate(names: &[&str]) -> Certificate {
        let times =
            json!({"notAfter": "2027-02-21T03:25:03Z", "renewalTime": "2027-01-22T03:25:03Z"});
        let certificate = json!({
            "metadata": {"namespace": "web", "name": "www"},
            "spec": {"secretName": "www-tls", "dnsNames": names, "issuerRef": {"name": "acme"}},
            "status": times,
        });
        serde_json::from_value(certificate).unwrap()
    }

    fn now() -> Timestamp {
        "2026-11-23T03:25:03Z".parse().unwrap()
    }

    #[test]
    fn a_line_says_what_how_long_until_when_and_where() {
        let written = Written {
            certificate: PathBuf::from("out/www-tls/tls.crt"),
            key: Some("tls.key".into()),
            manifest: None,
            outdated: Vec::new(),
        };
        let after = Issued::After(SignedDuration::from_millis(5_903));
        let one =
            line(&certificate(&["www.example.com"]), after, Some(Location::Files(&written)), now());
        let many = line(
            &certificate(&["a.example", "b.example", "c.example"]),
            Issued::Before,
            None,
            now(),
        );
        insta::assert_snapshot!(format!("{one}\n{many}"), @"
        www.example.com: issued in 5.9s; valid until 2027-02-21T03:25:03Z (90d); renews 2027-01-22T03:25:03Z; out/www-tls/tls.crt and tls.key
        a.example and 2 more names: up to date; valid until 2027-02-21T03:25:03Z (90d); renews 2027-01-22T03:25:03Z
        ");
    }

    #[test]
    fn a_certificate_of_no_names_is_called_by_its_own() {
        let mut certificate = certificate(&[]);
        assert_eq!(names(&certificate), "www");
        certificate.spec.ip_addresses = vec!["192.0.2.1".to_owned()];
        assert_eq!(names(&certificate), "192.0.2.1");
        assert_eq!(took(SignedDuration::from_secs(75)), "1m15s");
    }
}
