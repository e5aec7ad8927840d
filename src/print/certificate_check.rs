//! Certificates that have to be replaced now: as a table for people with a line for each, and as comma-separated values.

use jiff::Timestamp;

use super::age::short;
use super::colour::Colour;
use super::columns::Namespaces;
use super::fold::{columns, cut_middle};
use super::table::{Fit, Headers, NONE, Narrow, Table};
use crate::model::Time;
use crate::model::certificate_check::{CheckVerdict, CheckedCertificate, ReplacementReason};
use crate::model::certificate_report::{CertificateSource, SourceKind};

/// Columns assumed if the output is no terminal.
const DEFAULT_WIDTH: usize = 80;
/// Most columns of a name on a terminal of the usual width; the middle of a longer name is cut out.
const MAX_NAME_COLUMNS: usize = 26;
/// Text in place of a reason if a fact is not known.
const NOT_KNOWN: &str = "(not known)";
/// Headings of the comma-separated values.
const VALUE_TITLES: [&str; 10] = [
    "kind",
    "namespace",
    "name",
    "serial",
    "names",
    "notAfter",
    "verdict",
    "reason",
    "at",
    "detail",
];

/// Style of the table.
#[derive(Clone, Copy, Debug)]
pub struct CheckStyle {
    /// Whether everything is shown: good certificates, too, and nothing is cut.
    pub is_wide: bool,
    /// Whether namespaces are shown.
    pub namespaces: Namespaces,
    /// Whether headings are shown.
    pub headers: Headers,
    /// Columns of the terminal; `None` if the output is no terminal.
    pub width: Option<usize>,
}

/// Renders the table of certificates with a finding, or of all certificates if everything is shown.
pub fn table(certificates: &[CheckedCertificate], style: CheckStyle, now: Timestamp) -> String {
    let CheckStyle { is_wide, namespaces, headers, width } = style;
    let width = width.unwrap_or(DEFAULT_WIDTH);
    let has_namespaces = namespaces == Namespaces::Shown;
    let titles = has_namespaces.then_some("NAMESPACE").into_iter();
    let titles = titles.chain(["NAME", "REASON", "WHEN"]);
    let titles = titles.chain(is_wide.then_some("SERIAL")).chain(["DETAIL"]);
    let mut table = Table::new(titles);
    let is_shown = |it: &&CheckedCertificate| is_wide || it.verdict != CheckVerdict::Keep;
    for certificate in certificates.iter().filter(is_shown) {
        let source = &certificate.source;
        let namespace = source.namespace.clone().unwrap_or_else(|| NONE.to_owned());
        let mut name = display_name(source);
        let longest = MAX_NAME_COLUMNS.max(width / 3);
        if !is_wide && columns(&name) > longest {
            name = cut_middle(&name, longest);
        }
        let (reason, when, detail) = finding_cells(certificate, now);
        let serial = certificate.serial_number.clone().unwrap_or_else(|| NONE.to_owned());
        let cells = has_namespaces.then_some(namespace).into_iter().chain([name, reason, when]);
        table.row(cells.chain(is_wide.then_some(serial)).chain([detail]));
    }
    if table.is_empty() {
        return String::new();
    }
    if is_wide {
        return table.render(headers, Colour::Off);
    }
    let fit = Fit { title: "DETAIL", width, cells: Narrow::Cut };
    table.render_within(fit, headers, Colour::Off)
}

/// Renders comma-separated values: a line for each reason, and a line for each certificate without a reason.
pub fn values(certificates: &[CheckedCertificate], headers: Headers) -> String {
    let mut text = String::new();
    if headers == Headers::Shown {
        line(&mut text, &VALUE_TITLES.map(str::to_owned));
    }
    let moment = |at: Option<Time>| at.map(|at| at.to_string()).unwrap_or_default();
    for certificate in certificates {
        let source = &certificate.source;
        let mut add = |reason: &str, at: String, detail: &str| {
            line(
                &mut text,
                &[
                    kind(source).to_owned(),
                    source.namespace.clone().unwrap_or_default(),
                    source.name.clone(),
                    certificate.serial_number.clone().unwrap_or_default(),
                    certificate.names.join(" "),
                    moment(certificate.not_after),
                    verdict(certificate.verdict).to_owned(),
                    reason.to_owned(),
                    at,
                    detail.to_owned(),
                ],
            );
        };
        for ReplacementReason { reason, at, detail } in &certificate.reasons {
            add(reason.word(), moment(*at), detail);
        }
        if certificate.reasons.is_empty() {
            add("", String::new(), &not_known(certificate));
        }
    }
    text
}

/// Returns the word for a verdict, as in the report.
fn verdict(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Keep => "keep",
        CheckVerdict::Replace => "replace",
        CheckVerdict::Unknown => "unknown",
    }
}

fn kind(source: &CertificateSource) -> &'static str {
    match source.kind {
        SourceKind::Certificate => "Certificate",
        SourceKind::CertificateRequest => "CertificateRequest",
        SourceKind::File => "File",
        SourceKind::Secret => "Secret",
        SourceKind::Server => "Server",
    }
}

fn display_name(source: &CertificateSource) -> String {
    match source.kind {
        SourceKind::Secret => format!("secret/{}", source.name),
        SourceKind::CertificateRequest => format!("certificaterequest/{}", source.name),
        SourceKind::Certificate | SourceKind::File | SourceKind::Server => source.name.clone(),
    }
}

/// Returns the cells for the reason, the moment and the detail.
fn finding_cells(certificate: &CheckedCertificate, now: Timestamp) -> (String, String, String) {
    let none = || NONE.to_owned();
    let Some((first, more)) = certificate.reasons.split_first() else {
        let reason = if certificate.unknown.is_empty() { none() } else { NOT_KNOWN.to_owned() };
        let end = certificate.not_after.map_or_else(none, |at| distance(at, now));
        let detail = not_known(certificate);
        return (reason, end, if detail.is_empty() { none() } else { detail });
    };
    let when = first.at.map_or_else(none, |at| distance(at, now));
    let others = more.iter().map(|reason| reason.reason.word());
    let mut others: Vec<&str> = others.filter(|word| *word != first.reason.word()).collect();
    others.dedup();
    let detail = match &others[..] {
        [] => first.detail.clone(),
        others => format!("{}; also {}", first.detail, others.join(", ")),
    };
    (first.reason.word().to_owned(), when, detail)
}

fn not_known(certificate: &CheckedCertificate) -> String {
    let parts = certificate.unknown.iter();
    let parts = parts.map(|unknown| format!("{}: {}", unknown.part.words(), unknown.why));
    parts.collect::<Vec<_>>().join("; ")
}

fn distance(at: Time, now: Timestamp) -> String {
    let to = at.timestamp().duration_since(now);
    if to.is_negative() { format!("{} ago", short(-to)) } else { format!("in {}", short(to)) }
}

/// Appends a line of values (RFC 4180).
fn line(text: &mut String, values: &[String]) {
    let quoted = |value: &String| {
        if value.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", value.replace('"', "\"\""))
        } else {
            value.clone()
        }
    };
    let values: Vec<String> = values.iter().map(quoted).collect();
    text.push_str(&values.join(","));
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::certificate_check::{CheckedPart, ReplacementCause, UnknownPart};

    const NOW: &str = "2026-11-25T12:00:00Z";

    fn at(text: &str) -> Time {
        Time::from(text.parse::<Timestamp>().unwrap())
    }

    fn certificate(kind: SourceKind, name: &str) -> CheckedCertificate {
        let namespace = Some("shop".to_owned()).filter(|_| kind == SourceKind::Certificate);
        CheckedCertificate {
            source: CertificateSource { kind, namespace, name: name.to_owned() },
            verdict: CheckVerdict::Keep,
            reasons: Vec::new(),
            unknown: Vec::new(),
            names: vec!["www.example.com".to_owned(), "example.com".to_owned()],
            serial_number: Some("0a".to_owned()),
            issuer: None,
            not_after: Some(at("2027-01-24T12:00:00Z")),
            revocation: None,
            renewal_window: None,
            renewal: None,
        }
    }

    fn certificates() -> Vec<CheckedCertificate> {
        let reason =
            |reason, at, detail: &str| ReplacementReason { reason, at, detail: detail.to_owned() };
        let mut revoked = certificate(SourceKind::Certificate, "web");
        revoked.verdict = CheckVerdict::Replace;
        let list = "keyCompromise: http://e7.c.lencr.org/17.crl";
        revoked.reasons = vec![
            reason(ReplacementCause::Revoked, Some(at("2026-11-25T09:00:00Z")), list),
            reason(ReplacementCause::NamesDiffer, None, "it is not as spec.dnsNames"),
        ];
        let long = "shop-one-of-the-department-of-shoes.example.com:8443";
        let mut forbidden = certificate(SourceKind::Server, long);
        forbidden.verdict = CheckVerdict::Replace;
        let detail = "CAA of example.com: 0 issue \"ca.example\"";
        forbidden.reasons = vec![reason(ReplacementCause::CaaForbids, forbidden.not_after, detail)];
        let mut unknown = certificate(SourceKind::File, "old.pem");
        unknown.verdict = CheckVerdict::Unknown;
        let why = "no connection within 5 s".to_owned();
        unknown.unknown = vec![UnknownPart { part: CheckedPart::Revocation, why }];
        vec![revoked, forbidden, unknown, certificate(SourceKind::Secret, "good-tls")]
    }

    fn shown(is_wide: bool, namespaces: Namespaces) -> String {
        let headers = Headers::Shown;
        let style = CheckStyle { is_wide, namespaces, headers, width: None };
        table(&certificates(), style, NOW.parse().unwrap())
    }

    #[test]
    fn a_table_fits_eighty_columns_and_leaves_out_what_is_good() {
        let text = shown(false, Namespaces::Hidden);
        insta::assert_snapshot!(text, @r#"
        NAME                         REASON        WHEN     DETAIL
        web                          Revoked       3h ago   keyCompro…; also NamesDiffer
        shop-one….example.com:8443   CaaForbids    in 60d   CAA of ex…issue "ca.example"
        old.pem                      (not known)   in 60d   revocatio…nection within 5 s
        "#);
        assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
        let text = shown(false, Namespaces::Shown);
        assert!(text.lines().all(|line| columns(line) <= 92), "{text}");
        assert!(!shown(true, Namespaces::Hidden).contains('…'));
        assert!(shown(true, Namespaces::Hidden).contains("secret/good-tls"));
    }

    #[test]
    fn values_are_quoted_where_they_have_to_be() {
        insta::assert_snapshot!(values(&certificates(), Headers::Shown), @r#"
        kind,namespace,name,serial,names,notAfter,verdict,reason,at,detail
        Certificate,shop,web,0a,www.example.com example.com,2027-01-24T12:00:00Z,replace,Revoked,2026-11-25T09:00:00Z,keyCompromise: http://e7.c.lencr.org/17.crl
        Certificate,shop,web,0a,www.example.com example.com,2027-01-24T12:00:00Z,replace,NamesDiffer,,it is not as spec.dnsNames
        Server,,shop-one-of-the-department-of-shoes.example.com:8443,0a,www.example.com example.com,2027-01-24T12:00:00Z,replace,CaaForbids,2027-01-24T12:00:00Z,"CAA of example.com: 0 issue ""ca.example"""
        File,,old.pem,0a,www.example.com example.com,2027-01-24T12:00:00Z,unknown,,,revocation: no connection within 5 s
        Secret,,good-tls,0a,www.example.com example.com,2027-01-24T12:00:00Z,keep,,,
        "#);
    }
}
