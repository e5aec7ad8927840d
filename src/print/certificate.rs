//! Sheet of an inspected certificate: its content, and how the certificate fits its surroundings.

use jiff::{SignedDuration, Timestamp};

use super::age::short;
use super::escape::escape;
use super::table::Headers;
use super::tabs;
use crate::model::Time;
use crate::model::certificate_report::{
    CertificateContent, CertificateKey, ChainEnd, ChainLink, ReportedCertificate, ReportedResource,
    ReportedRevocation, ReportedServer, ReportedWindow, RevocationState, RootsOrigin, SourceKind,
    WindowState, left,
};
use crate::model::text::shortened;

/// Most names shown of one kind; reports for programs list all names.
const MAX_NAMES_SHOWN: usize = 100;
/// Most characters of a value.
const MAX_VALUE_CHARS: usize = 500;
const DAY: i64 = 24 * 60 * 60;

/// Renders the sheet of one certificate.
pub fn sheet(certificate: &ReportedCertificate, headers: Headers, now: Timestamp) -> String {
    let mut sheet = Sheet::default();
    origin(&mut sheet, certificate);
    if let Some(resource) = &certificate.resource {
        as_asked(&mut sheet, resource, now);
    }
    if let Some(server) = &certificate.server {
        as_served(&mut sheet, server);
    }
    says(&mut sheet, certificate, now);
    chain(&mut sheet, certificate, headers);
    tabs::align(&sheet.text)
}

/// Renders the sheets of several certificates, as far apart as the sheets of `describe`.
pub fn sheets(certificates: &[ReportedCertificate], headers: Headers, now: Timestamp) -> String {
    let sheets = certificates.iter().map(|certificate| sheet(certificate, headers, now));
    sheets.collect::<Vec<_>>().join("\n\n")
}

/// Lines of labels and values, not aligned yet.
#[derive(Debug, Default)]
struct Sheet {
    text: String,
}

impl Sheet {
    /// Adds a label with a value, on one line whatever the value contains.
    fn line(&mut self, label: &str, value: &str) {
        self.row(&[&format!("{label}:"), value]);
    }

    /// Adds a label with values below each other, and the number of values left out.
    fn list(&mut self, label: &str, values: &[String]) {
        let more = values.len().saturating_sub(MAX_NAMES_SHOWN);
        let mut label = format!("{label}:");
        for value in values.iter().take(MAX_NAMES_SHOWN) {
            self.row(&[&std::mem::take(&mut label), value]);
        }
        if more > 0 {
            self.row(&["", &format!("and {more} more")]);
        }
    }

    /// Adds a row of cells; no cell can end the line or begin another cell.
    fn row(&mut self, cells: &[&str]) {
        let cells: Vec<String> = cells.iter().map(|cell| on_one_line(cell)).collect();
        self.text.push_str(&cells.join("\t"));
        self.text.push('\n');
    }
}

/// Shortens and escapes a value, so that the value can neither end its line nor begin another column.
fn on_one_line(value: &str) -> String {
    escape(&shortened(value, MAX_VALUE_CHARS)).replace('\n', "\\n").replace('\t', "\\t")
}

fn origin(sheet: &mut Sheet, certificate: &ReportedCertificate) {
    let source = &certificate.source;
    let name = match &source.namespace {
        Some(namespace) => format!("{namespace}/{}", source.name),
        None => source.name.clone(),
    };
    let label = match source.kind {
        SourceKind::Certificate => "Certificate",
        SourceKind::CertificateRequest => "CertificateRequest",
        SourceKind::File => "File",
        SourceKind::Secret => "Secret",
        SourceKind::Server => "Server",
    };
    sheet.line(label, &name);
}

fn as_asked(sheet: &mut Sheet, resource: &ReportedResource, now: Timestamp) {
    sheet.line("Secret", &resource.secret_name);
    if let Some(revision) = resource.revision {
        sheet.line("Revision", &revision.to_string());
    }
    if let Some(at) = resource.renewal_time {
        sheet.line("Renewal", &format!("{at} ({})", distance(at.timestamp().duration_since(now))));
    }
    let parts = [
        (resource.names_as_asked, "names"),
        (resource.key_as_asked != Some(false), "key"),
        (resource.issuer_as_asked, "issuer"),
    ];
    let others: Vec<&str> = parts.iter().filter(|(is, _)| !is).map(|(_, part)| *part).collect();
    match others[..] {
        [] => sheet.line("As Asked For", "yes"),
        _ => sheet.line("As Asked For", &format!("NO: another {}", others.join(", another "))),
    }
    let due = resource.due.as_ref().map(|why| format!("now: {why}"));
    sheet.line("Due", due.as_deref().unwrap_or("no"));
}

fn as_served(sheet: &mut Sheet, server: &ReportedServer) {
    sheet.line("Address", &server.address);
    sheet.line("Server Name", &server.server_name);
    match (&server.protocol, &server.handshake_fault) {
        (Some(protocol), _) => sheet.line("Protocol", protocol),
        (None, Some(why)) => sheet.line("Handshake", &format!("broken off: {why}")),
        (None, None) => {}
    }
    let roots = match server.roots {
        RootsOrigin::File => "the roots given",
        RootsOrigin::Platform => "this machine's roots",
    };
    let verified = match &server.verify_fault {
        None => format!("yes, by {roots}"),
        Some(why) => format!("NO, by {roots}: {why}"),
    };
    sheet.line("Verified", &verified);
    let fits = if server.fits_name { "yes" } else { "NO: it is for other names" };
    sheet.line("Fits Name", fits);
}

fn says(sheet: &mut Sheet, certificate: &ReportedCertificate, now: Timestamp) {
    let content = &certificate.content;
    names(sheet, content);
    sheet.line("Subject", or_none(&content.subject));
    sheet.line("Issuer", or_none(&content.issuer));
    if let Some(authority) = content.test_authority {
        sheet.line("Trust", &format!("not trusted by clients: issued by {authority}"));
    }
    sheet.line("Serial Number", &content.serial_number);
    let ahead = content.not_before.timestamp().duration_since(now);
    let ahead = ahead.is_positive().then(|| format!(" (not valid yet: {})", distance(ahead)));
    sheet.line("Not Before", &format!("{}{}", content.not_before, ahead.unwrap_or_default()));
    let life = life(content.not_after.timestamp(), now);
    sheet.line("Not After", &format!("{} ({life})", content.not_after));
    sheet.line("Key", &key(&content.key));
    match (certificate.key_matches, &certificate.key_fault) {
        (Some(true), _) => sheet.line("Key Matches", "yes"),
        (Some(false), why) => {
            let why = why.as_deref().unwrap_or("the key belongs to another certificate");
            sheet.line("Key Matches", &format!("NO: {why}"));
        }
        (None, Some(why)) => sheet.line("Key Matches", &format!("unknown: {why}")),
        (None, None) => {}
    }
    sheet.line("Signature", &content.signature_algorithm);
    sheet.line("SHA-256", &content.fingerprints.sha256);
    sheet.line("SHA-1", &content.fingerprints.sha1);
    sheet.line("Key Pin", &format!("sha256//{}", content.spki_sha256));
    sheet.line("Usages", or_none(&content.usages.join(", ")));
    sheet.line("CA", if content.is_ca { "yes: it may sign certificates" } else { "no" });
    sheet.list("OCSP", &content.ocsp_urls);
    sheet.list("CRL", &content.crl_urls);
    if let Some(revocation) = &certificate.revocation {
        sheet.line("Revoked", &describe_revocation(revocation));
    }
    if let Some(window) = &certificate.renewal_window {
        sheet.line("Renewal Window", &describe_window(window));
    }
    sheet.line("SCTs", &content.sct_count.to_string());
    sheet.list("Unreadable", &content.faults);
}

fn names(sheet: &mut Sheet, content: &CertificateContent) {
    let names = &content.names;
    let kinds = [
        ("DNS Names", &names.dns),
        ("IP Addresses", &names.ips),
        ("URIs", &names.uris),
        ("Email Addresses", &names.emails),
        ("Other Names", &names.others),
    ];
    for (label, names) in kinds {
        sheet.list(label, names);
    }
    if kinds.iter().all(|(_, names)| names.is_empty()) {
        sheet.line("DNS Names", or_none(""));
    }
}

fn or_none(value: &str) -> &str {
    if value.is_empty() { "<none>" } else { value }
}

fn key(key: &CertificateKey) -> String {
    match (key.algorithm.as_str(), key.size) {
        ("ECDSA", Some(size)) => format!("ECDSA P-{size}"),
        (algorithm, Some(size)) => format!("{algorithm} {size}"),
        (algorithm, None) => algorithm.to_owned(),
    }
}

/// Describes the revocation, as far as its state is known.
fn describe_revocation(revocation: &ReportedRevocation) -> String {
    let list = revocation.url.as_deref().unwrap_or_default();
    match revocation.state {
        RevocationState::Good => format!("no, by {list}"),
        RevocationState::NotOffered => {
            "not known: the certificate names no list and no responder".to_owned()
        }
        RevocationState::Revoked => {
            let at = revocation.at.map(|at| format!(" {at}")).unwrap_or_default();
            let why = revocation.reason.map(|why| format!(" ({why})")).unwrap_or_default();
            match list {
                "" => format!("YES,{at}, by this program"),
                list => format!("YES,{at}{why}, by {list}"),
            }
        }
        RevocationState::Unknown => {
            let why = revocation.why.as_deref().unwrap_or_default();
            let list = if list.is_empty() { String::new() } else { format!("{list}: ") };
            format!("not known: {list}{why}")
        }
    }
}

/// Describes the window in which the CA wants the certificate to be renewed, as far as known.
fn describe_window(window: &ReportedWindow) -> String {
    let state = match window.state {
        WindowState::Ahead => "",
        WindowState::NotOffered => return "the CA offers none".to_owned(),
        WindowState::Open => " (NOW)",
        WindowState::Past => " (OVER: to be renewed now)",
        WindowState::Unknown => {
            return format!("not known: {}", window.why.as_deref().unwrap_or_default());
        }
    };
    let moment = |at: Option<Time>| at.map(|at| at.to_string()).unwrap_or_default();
    let page = window.explanation.as_ref().map(|page| format!(", see {page}"));
    let (start, end) = (moment(window.start), moment(window.end));
    format!("{start} to {end}{state}{}", page.unwrap_or_default())
}

/// Describes the remaining life of a certificate, or the time since its end.
fn life(not_after: Timestamp, now: Timestamp) -> String {
    let left = left(not_after, now);
    if left.is_negative() {
        format!("expired {} ago", length(-left))
    } else {
        format!("{} left", length(left))
    }
}

/// Describes the time to a moment, or since a past moment.
fn distance(to: SignedDuration) -> String {
    if to.is_negative() { format!("{} ago", length(-to)) } else { format!("in {}", length(to)) }
}

/// Writes a length in whole days, and a length below one day as an age.
fn length(length: SignedDuration) -> String {
    match length.as_secs() / DAY {
        0 => short(length),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

fn chain(sheet: &mut Sheet, certificate: &ReportedCertificate, headers: Headers) {
    sheet.text.push_str("Chain:\n");
    if headers == Headers::Shown {
        sheet.row(&["  Subject", "Until", "Signed By Next"]);
        sheet.row(&["  -------", "-----", "--------------"]);
    }
    let links = &certificate.chain;
    for (index, link) in links.iter().enumerate() {
        let signed = match links.get(index + 1) {
            Some(next) => by_next(link, next),
            None => end(link, certificate.root),
        };
        let until = link.not_after.to_string();
        sheet.row(&[&format!("  {}", or_none(&link.subject)), &until, &signed]);
    }
}

fn by_next(link: &ChainLink, next: &ChainLink) -> String {
    match link.signed_by_next {
        Some(true) => "yes".to_owned(),
        Some(false) if link.issuer == next.subject => {
            "NO: the next one has the issuer's name, but another key".to_owned()
        }
        Some(false) => format!("NO: {} should come next", or_none(&link.issuer)),
        None => "unknown: signed in a way that cannot be checked here".to_owned(),
    }
}

/// Describes the signer of the last certificate of a chain.
fn end(link: &ChainLink, end: ChainEnd) -> String {
    match end {
        ChainEnd::Included => "it is a self-signed root".to_owned(),
        ChainEnd::NotIncluded => format!("{}, which is not included", or_none(&link.issuer)),
        ChainEnd::SelfSigned => "self-signed: no CA vouches for it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::certificate_report::{
        AlternativeNamesByKind, CertificateSource, Distrust, Fingerprints,
    };

    fn time(text: &str) -> Time {
        text.parse::<Timestamp>().unwrap().into()
    }

    fn link(subject: &str, issuer: &str, signed_by_next: Option<bool>) -> ChainLink {
        ChainLink {
            subject: subject.to_owned(),
            issuer: issuer.to_owned(),
            not_after: time("2027-02-21T11:59:59Z"),
            sha256: "ab".repeat(32),
            self_signed: subject == issuer,
            signed_by_next,
        }
    }

    fn good() -> ReportedCertificate {
        ReportedCertificate {
            source: CertificateSource {
                kind: SourceKind::File,
                namespace: None,
                name: "tls.crt".to_owned(),
            },
            content: CertificateContent {
                names: AlternativeNamesByKind {
                    dns: vec!["www.example.com".to_owned(), "example.com".to_owned()],
                    ips: vec!["192.0.2.1".to_owned()],
                    ..AlternativeNamesByKind::default()
                },
                subject: "CN=www.example.com".to_owned(),
                common_name: "www.example.com".to_owned(),
                issuer: "C=US, O=Let's Encrypt, CN=E8".to_owned(),
                test_authority: None,
                serial_number: "04ab".to_owned(),
                not_before: time("2026-11-23T12:00:00Z"),
                not_after: time("2027-02-21T11:59:59Z"),
                days_left: 88,
                key: CertificateKey { algorithm: "ECDSA".to_owned(), size: Some(256) },
                signature_algorithm: "ecdsa-with-SHA384".to_owned(),
                fingerprints: Fingerprints { sha256: "ab".repeat(32), sha1: "cd".repeat(20) },
                spki_sha256: "k3t=".to_owned(),
                usages: vec!["digital signature".to_owned(), "server auth".to_owned()],
                is_ca: false,
                ocsp_urls: Vec::new(),
                crl_urls: vec!["http://e8.c.lencr.org/1.crl".to_owned()],
                sct_count: 2,
                faults: Vec::new(),
            },
            key_matches: Some(true),
            key_fault: None,
            chain: vec![
                link("CN=www.example.com", "C=US, O=Let's Encrypt, CN=E8", Some(true)),
                link("C=US, O=Let's Encrypt, CN=E8", "CN=ISRG Root X1", None),
            ],
            root: ChainEnd::NotIncluded,
            resource: None,
            server: None,
            revocation: None,
            renewal_window: None,
        }
    }

    fn check(change: impl FnOnce(&mut ReportedCertificate)) -> String {
        let mut certificate = good();
        change(&mut certificate);
        sheet(&certificate, Headers::Shown, "2026-11-24T12:00:00Z".parse().unwrap())
    }

    /// Returns the lines with these labels.
    fn lines(text: &str, labels: &[&str]) -> String {
        let wanted = |line: &&str| labels.iter().any(|label| line.starts_with(label));
        let wanted: Vec<&str> = text.lines().filter(wanted).collect();
        wanted.join("\n")
    }

    #[test]
    fn a_good_certificate_of_a_file() {
        insta::assert_snapshot!(check(|_| ()), @"
        File:           tls.crt
        DNS Names:      www.example.com
                        example.com
        IP Addresses:   192.0.2.1
        Subject:        CN=www.example.com
        Issuer:         C=US, O=Let's Encrypt, CN=E8
        Serial Number:  04ab
        Not Before:     2026-11-23T12:00:00Z
        Not After:      2027-02-21T11:59:59Z (88 days left)
        Key:            ECDSA P-256
        Key Matches:    yes
        Signature:      ecdsa-with-SHA384
        SHA-256:        abababababababababababababababababababababababababababababababab
        SHA-1:          cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd
        Key Pin:        sha256//k3t=
        Usages:         digital signature, server auth
        CA:             no
        CRL:            http://e8.c.lencr.org/1.crl
        SCTs:           2
        Chain:
          Subject                       Until                 Signed By Next
          -------                       -----                 --------------
          CN=www.example.com            2027-02-21T11:59:59Z  yes
          C=US, O=Let's Encrypt, CN=E8  2027-02-21T11:59:59Z  CN=ISRG Root X1, which is not included
        ");
    }

    #[test]
    fn what_the_ca_says_of_it_is_told_and_what_it_does_not_say_too() {
        let url = || Some("http://e8.c.lencr.org/1.crl".to_owned());
        let labels = ["Revoked", "Renewal Window"];
        let shown = |state: RevocationState, window: WindowState| {
            let text = check(|it| {
                it.revocation = Some(ReportedRevocation {
                    url: url(),
                    at: (state == RevocationState::Revoked).then(|| time("2026-11-24T09:00:00Z")),
                    reason: (state == RevocationState::Revoked).then_some("keyCompromise"),
                    why: Some("no connection within 5 s".to_owned()),
                    ..ReportedRevocation::of(state)
                });
                it.renewal_window = Some(ReportedWindow {
                    start: Some(time("2026-11-24T10:00:00Z")),
                    end: Some(time("2026-11-24T11:00:00Z")),
                    explanation: Some("https://ca.example/why".to_owned()),
                    why: Some("no answer".to_owned()),
                    ..ReportedWindow::of(window)
                });
            });
            lines(&text, &labels).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let whole = "2026-11-24T10:00:00Z to 2026-11-24T11:00:00Z";
        let page = ", see https://ca.example/why";
        for (state, window, expected) in [
            (
                RevocationState::Good,
                WindowState::Ahead,
                format!("Revoked: no, by http://e8.c.lencr.org/1.crl Renewal Window: {whole}{page}"),
            ),
            (
                RevocationState::Revoked,
                WindowState::Past,
                format!(
                    "Revoked: YES, 2026-11-24T09:00:00Z (keyCompromise), by http://e8.c.lencr.org/1.crl \
                     Renewal Window: {whole} (OVER: to be renewed now){page}"
                ),
            ),
            (
                RevocationState::Unknown,
                WindowState::Unknown,
                "Revoked: not known: http://e8.c.lencr.org/1.crl: no connection within 5 s \
                 Renewal Window: not known: no answer"
                    .to_owned(),
            ),
            (
                RevocationState::NotOffered,
                WindowState::NotOffered,
                "Revoked: not known: the certificate names no list and no responder Renewal Window: the CA offers none"
                    .to_owned(),
            ),
        ] {
            assert_eq!(shown(state, window), expected);
        }
    }

    #[test]
    fn one_of_a_certificate_says_whether_it_is_what_is_asked_for() {
        let text = check(|it| {
            it.source = CertificateSource {
                kind: SourceKind::Certificate,
                namespace: Some("shop".to_owned()),
                name: "web".to_owned(),
            };
            it.resource = Some(ReportedResource {
                secret_name: "web-tls".to_owned(),
                revision: Some(3),
                renewal_time: Some(time("2027-01-22T12:00:00Z")),
                due: None,
                names_as_asked: true,
                key_as_asked: None,
                issuer_as_asked: true,
            });
        });
        insta::assert_snapshot!(text.split("DNS").next().unwrap(), @"
        Certificate:    shop/web
        Secret:         web-tls
        Revision:       3
        Renewal:        2027-01-22T12:00:00Z (in 59 days)
        As Asked For:   yes
        Due:            no
        ");
        let text = check(|it| {
            it.resource = Some(ReportedResource {
                secret_name: "web-tls".to_owned(),
                revision: None,
                renewal_time: Some(time("2026-11-22T12:00:00Z")),
                due: Some("Renewing certificate as renewal was scheduled".to_owned()),
                names_as_asked: false,
                key_as_asked: Some(false),
                issuer_as_asked: true,
            });
        });
        insta::assert_snapshot!(text.split("DNS").next().unwrap(), @"
        File:           tls.crt
        Secret:         web-tls
        Renewal:        2026-11-22T12:00:00Z (2 days ago)
        As Asked For:   NO: another names, another key
        Due:            now: Renewing certificate as renewal was scheduled
        ");
    }

    #[test]
    fn one_of_a_server_says_whether_clients_take_it() {
        let server = ReportedServer {
            address: "192.0.2.1:443".to_owned(),
            server_name: "www.example.com".to_owned(),
            protocol: Some("TLS 1.3".to_owned()),
            handshake_fault: None,
            roots: RootsOrigin::Platform,
            verified: true,
            verify_fault: None,
            distrust: None,
            fits_name: true,
        };
        let labels = ["Address", "Server Name", "Protocol", "Handshake", "Verified", "Fits"];
        let text = check(|it| it.server = Some(server.clone()));
        insta::assert_snapshot!(lines(&text, &labels), @"
        Address:        192.0.2.1:443
        Server Name:    www.example.com
        Protocol:       TLS 1.3
        Verified:       yes, by this machine's roots
        Fits Name:      yes
        ");
        let bad = ReportedServer {
            protocol: None,
            handshake_fault: Some("received fatal alert: CertificateRequired".to_owned()),
            roots: RootsOrigin::File,
            verified: false,
            verify_fault: Some("it is signed by nobody who is trusted here".to_owned()),
            distrust: Some(Distrust::Untrusted),
            fits_name: false,
            ..server
        };
        let text = check(|it| it.server = Some(bad));
        insta::assert_snapshot!(lines(&text, &labels), @"
        Address:        192.0.2.1:443
        Server Name:    www.example.com
        Handshake:      broken off: received fatal alert: CertificateRequired
        Verified:       NO, by the roots given: it is signed by nobody who is trusted here
        Fits Name:      NO: it is for other names
        ");
    }

    #[test]
    fn what_is_wrong_stands_where_it_belongs() {
        let text = check(|it| {
            it.content.test_authority = Some("Let's Encrypt staging");
            it.content.not_before = time("2026-11-27T12:00:00Z");
            it.content.not_after = time("2026-11-21T12:00:00Z");
            it.content.names = AlternativeNamesByKind::default();
            it.content.faults = vec!["an IP address of 2 bytes".to_owned()];
            it.content.is_ca = true;
            it.key_matches = Some(false);
            it.key_fault = Some("it is that of certificate 2 of the chain".to_owned());
            it.chain[0].signed_by_next = Some(false);
            it.chain[1].issuer = it.chain[1].subject.clone();
            it.root = ChainEnd::Included;
        });
        insta::assert_snapshot!(text, @"
        File:           tls.crt
        DNS Names:      <none>
        Subject:        CN=www.example.com
        Issuer:         C=US, O=Let's Encrypt, CN=E8
        Trust:          not trusted by clients: issued by Let's Encrypt staging
        Serial Number:  04ab
        Not Before:     2026-11-27T12:00:00Z (not valid yet: in 3 days)
        Not After:      2026-11-21T12:00:00Z (expired 3 days ago)
        Key:            ECDSA P-256
        Key Matches:    NO: it is that of certificate 2 of the chain
        Signature:      ecdsa-with-SHA384
        SHA-256:        abababababababababababababababababababababababababababababababab
        SHA-1:          cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd
        Key Pin:        sha256//k3t=
        Usages:         digital signature, server auth
        CA:             yes: it may sign certificates
        CRL:            http://e8.c.lencr.org/1.crl
        SCTs:           2
        Unreadable:     an IP address of 2 bytes
        Chain:
          Subject                       Until                 Signed By Next
          -------                       -----                 --------------
          CN=www.example.com            2027-02-21T11:59:59Z  NO: the next one has the issuer's name, but another key
          C=US, O=Let's Encrypt, CN=E8  2027-02-21T11:59:59Z  it is a self-signed root
        ");
        let text = check(|it| {
            it.key_matches = None;
            it.key_fault = Some("cannot read private key: it is encrypted".to_owned());
        });
        insta::assert_snapshot!(lines(&text, &["Key Matches"]), @"Key Matches:    unknown: cannot read private key: it is encrypted");
        let text = check(|it| {
            it.key_matches = None;
            it.chain[0].signed_by_next = None;
            it.chain.truncate(1);
            it.root = ChainEnd::SelfSigned;
        });
        assert_eq!(lines(&text, &["Key Matches"]), "");
        assert!(text.ends_with("self-signed: no CA vouches for it\n"), "{text}");
        let text = check(|it| {
            it.chain.insert(1, it.chain[0].clone());
            it.chain[0].signed_by_next = Some(false);
        });
        assert!(text.contains("NO: C=US, O=Let's Encrypt, CN=E8 should come next\n"), "{text}");
    }

    #[test]
    fn lives_are_told_in_days_and_the_last_one_in_hours() {
        let now: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
        for (end, expected) in [
            ("2027-02-21T12:00:00Z", "89 days left"),
            ("2026-11-25T12:00:00Z", "1 day left"),
            ("2026-11-25T11:00:00Z", "23h left"),
            ("2026-11-24T12:00:00Z", "0s left"),
            ("2026-11-24T11:00:00Z", "expired 60m ago"),
            ("2026-11-21T12:00:00Z", "expired 3 days ago"),
        ] {
            assert_eq!(life(end.parse().unwrap(), now), expected, "{end}");
        }
    }

    #[test]
    fn nothing_that_others_have_written_steers_the_terminal_or_looks_like_ours() {
        let rude = "a\u{1b}[2J\nKey Matches:\tyes\u{202e}".to_owned();
        let text = check(|it| {
            it.content.names.dns = vec![rude.clone(); 10_000];
            it.content.subject.clone_from(&rude);
            it.content.issuer = rude.repeat(1_000);
            it.content.crl_urls = vec![rude.clone()];
            it.chain[0].subject = rude;
            it.key_matches = Some(false);
            it.key_fault = None;
        });
        let is_plain = |c: char| c == '\n' || !crate::model::text::is_steering(c);
        assert!(text.chars().all(is_plain), "{text}");
        assert_eq!(text.matches("\nKey Matches:").count(), 1);
        assert!(text.contains("\\nKey Matches:\\tyes\\u{202e}"), "{text}");
        assert!(text.contains("and 9900 more\n") && text.len() < 20_000);
    }

    #[test]
    fn headings_can_be_left_out_and_several_stand_apart() {
        let both = [good(), good()];
        let text = sheets(&both, Headers::Hidden, "2026-11-24T12:00:00Z".parse().unwrap());
        assert_eq!(text.matches("\n\n\nFile:").count(), 1);
        assert!(!text.contains("----"), "{text}");
    }
}
