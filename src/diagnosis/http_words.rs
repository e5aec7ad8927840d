//! What a look by HTTP-01 met, in the words of cert-manager (Go's), of Boulder and of Pebble.

use crate::model::cause::Symptom;

/// Go's words (in cert-manager's self-check), and those of Boulder and Pebble. What is told first decides, so that what a web
/// server's own words may hold comes last.
const HTTP: &[(&[&str], Symptom)] = &[
    // Boulder's words since September 2026, those before, and Pebble's: each before the first quotation mark, where what a web
    // server has said may begin.
    (
        &[
            "in redirect target",
            "redirect loop",
            "too many redirects",
            "too many hops",
            "redirect target too long",
            "disallowed redirect status code",
            "invalid protocol scheme: only",
            "invalid port ",
            "invalid host: ",
            "invalid url: path component",
            "invalid location header",
            "missing '/' in redirect",
        ],
        Symptom::RedirectNotFollowed,
    ),
    (&["tls: ", "Server only speaks HTTP, not TLS"], Symptom::NoTls),
    (&[":443"], Symptom::TlsPortSilent),
    (&["wrong status code '404'", ": 404"], Symptom::NotFound),
    (&["wrong status code '401'", "wrong status code '403'", ": 401", ": 403"], Symptom::Forbidden),
    (&["wrong status code '5", ": 500", ": 502", ": 503", ": 504"], Symptom::ServerError),
    (&["wrong status code '400'", ": 400 "], Symptom::BadRequest),
    (
        &[
            "wrong status code '",
            "did not get expected response",
            "did not match this challenge",
            "Invalid response from ",
        ],
        Symptom::WrongAnswer,
    ),
    (&["connection refused", "Connection refused"], Symptom::ConnectionRefused),
    (
        &["i/o timeout", "deadline exceeded", "Timeout during connect", "no route to host"],
        Symptom::Unreachable,
    ),
    (&["malformed HTTP"], Symptom::NotHttp),
    (&["connection reset", "Connection reset", ": EOF"], Symptom::HungUp),
    (
        &[": no such host", "NXDOMAIN looking up", "no valid A records", "No valid IP addresses"],
        Symptom::NoAddress,
    ),
];

/// What was met, by what is said of it.
pub(super) fn symptom(said: &str) -> Option<Symptom> {
    // Others change the case of their letters from release to release.
    let said = said.to_ascii_lowercase();
    let says = |marks: &&[&str]| marks.iter().any(|mark| said.contains(&mark.to_ascii_lowercase()));
    HTTP.iter().find(|(marks, _)| says(marks)).map(|(_, symptom)| *symptom)
}
