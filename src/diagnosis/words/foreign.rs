//! Parser for messages of others: cert-manager (in Go's wording), CAs, and admission plugins. Only this module and the
//! modules of this folder parse prose on this floor. Facts of this program are kept as data beside its messages
//! (`model::memory`), and read by `diagnosis::facts`.

use std::net::{IpAddr, SocketAddr};

use super::{http, issuer};
use crate::ca::NO_ACCOUNT;
use crate::model::cause::{Cause, CheckFinding, Guard, OrderWait, Symptom};
use crate::model::{Challenge, ChallengeType, Problem};
use crate::store::cluster::{guard_that_says, is_refused_by_admission};

/// Start of a problem's type, with the blank between status and type.
const PROBLEM: &str = " urn:ietf:params:acme:error:";
/// Start of a problem's type.
const ACME_ERROR: &str = "urn:ietf:params:acme:error:";

/// Finds a problem that a text quotes as cert-manager does: `… 429 urn:ietf:params:acme:error:rateLimited: …`.
/// cert-manager leaves out the space before the status in `Failed to update ACME account:400 …`.
pub fn problem_in(text: &str) -> Option<Problem> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let numbered = words.windows(2).find_map(|pair| {
        let status = pair[0].rsplit(':').next()?.parse::<u16>().ok()?;
        let is_problem = (400..600).contains(&status) && pair[1].ends_with(':');
        is_problem.then_some((status, pair[1]))
    });
    // A CA need not give its problems a status.
    let is_bare = |word: &&str| word.starts_with(ACME_ERROR) && word.len() > ACME_ERROR.len();
    let bare = || words.iter().copied().find(is_bare).map(|kind| (0, kind));
    let (status, kind) = numbered.or_else(bare)?;
    let detail = text.split_once(kind).map_or("", |(_, said)| said).trim().to_owned();
    let kind = kind.trim_end_matches(':').to_owned();
    Some(Problem { kind, detail, status, ..Problem::default() })
}

/// Returns the problem in an Order's reason; cert-manager finds out by itself which profiles a CA has, before any request.
pub fn problem_of_order(reason: &str) -> Option<Problem> {
    let is_profile = ["does not support profiles", "does not advertise a profile"];
    problem_in(reason).or_else(|| {
        let lacks_profile = is_profile.iter().any(|words| reason.contains(words));
        lacks_profile.then(|| Problem::no_profile(reason))
    })
}

/// Returns what an Order waits for, by its reason.
pub fn order_wait(reason: &str) -> Option<OrderWait> {
    reason
        .starts_with("Failed to determine a valid solver configuration")
        .then_some(OrderWait::Solver)
}

/// Returns why a challenge does not go on, by its reason.
pub fn cause(challenge: &Challenge) -> Option<Cause> {
    let reason = &challenge.status.reason;
    if let Some(problem) = problem_in(reason).map(Box::new) {
        let is_of_validation = reason.contains("acme: authorization error for ");
        let of_validation = is_of_validation.then(|| Cause::Validation(problem.clone()));
        return Some(of_validation.unwrap_or(Cause::Refused(problem)));
    }
    let ingress = challenge.spec.solver.http01.as_ref().and_then(|http01| http01.ingress.as_ref());
    let ingress = ingress.map(|ingress| ingress.name.as_str()).filter(|name| !name.is_empty());
    if ingress.is_some_and(|name| reason.ends_with(&format!("ingress {name} not found"))) {
        return Some(Cause::NoIngress);
    }
    // cert-manager puts its own action before the server's message.
    let of_webhook = reason.find("admission webhook").map_or(reason.as_str(), |at| &reason[at..]);
    if let Some(guard) = guard_that_says(reason).or_else(|| guard_that_says(of_webhook)) {
        return Some(Cause::Denied(guard));
    }
    if is_refused_by_admission(reason) {
        return Some(Cause::Denied(Guard::Unknown));
    }
    sighting(challenge, reason).map(Cause::Seen)
}

/// Returns the sighting in place of a challenge's answer, by a message of cert-manager or a CA.
pub fn sighting(challenge: &Challenge, said: &str) -> Option<CheckFinding> {
    // The status of the CA's own answer stands before the type of its problem.
    let said = said.rsplit_once(PROBLEM).map_or(said, |(_, said)| said);
    let says = |marks: &&[&str]| marks.iter().any(|mark| said.contains(mark));
    if challenge.spec.kind.is_by_record() {
        let is_lame = said.contains(" returned ") && said.contains("NS ");
        // An error of a resolver does not mean that there is no zone.
        let is_error = said.contains("When querying the SOA record") && said.contains("SERVFAIL");
        let found = ZONE.iter().find(|(marks, _)| says(marks)).map(|(_, symptom)| *symptom);
        let found = if is_error { Some(Symptom::NameServersFail) } else { found };
        let is_unreached = is_about_resolver(challenge, said);
        let found = found.or_else(|| is_unreached.then_some(Symptom::ResolverSilent));
        return found.or_else(|| is_lame.then_some(Symptom::LameServer)).map(CheckFinding::from);
    }
    let symptom = match challenge.spec.kind {
        ChallengeType::TlsAlpn01 => http::symptom_of_tls_alpn(said)?,
        _ => http::symptom(said)?,
    };
    Some(CheckFinding { symptom, over_ipv6: said.contains("dial tcp [") })
}

/// Reports whether cert-manager's self-check says that name servers do not have a record yet.
pub fn says_record_is_missing(reason: &str) -> bool {
    reason.contains("not yet propagated")
}

/// Returns the symptom that HTTP-01 validation met, by a message of cert-manager or a CA.
pub fn symptom_of_http(said: &str) -> Option<Symptom> {
    http::symptom(said)
}

/// Reason why an Ingress is not served, by messages of Ingress controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IngressRefusal {
    /// Another Ingress has the host.
    HostTaken,
    /// The type of the path is not accepted.
    PathType,
    /// The Service is of another type than the load balancer needs.
    ServiceType,
    /// The back end does not pass the load balancer's check.
    Unhealthy,
}

/// Reads an event about an Ingress, or an admission plugin's message about an Ingress.
pub fn ingress_refusal(said: &str) -> Option<IngressRefusal> {
    let says = |words: &[&str]| words.iter().any(|words| said.contains(words));
    if says(&[
        "hosts are taken by other resources",
        "conflicting server name",
        "is already defined in ingress",
    ]) {
        Some(IngressRefusal::HostTaken)
    } else if says(&["pathType", "path type"]) {
        Some(IngressRefusal::PathType)
    } else if says(&["NodePort", "ClusterIP"]) {
        Some(IngressRefusal::ServiceType)
    } else if says(&["UNHEALTHY", "unhealthy"]) {
        Some(IngressRefusal::Unhealthy)
    } else {
        None
    }
}

/// cert-manager's messages about a record's zone, with the symptom of each.
const ZONE: &[(&[&str], Symptom)] = &[
    (&["recursive CNAME record"], Symptom::AliasLoop),
    (
        &[
            "Could not determine the zone",
            "Could not find the SOA record",
            "Could not determine authoritative nameservers",
            "When querying the SOA record",
        ],
        Symptom::NotDelegated,
    ),
];

/// Limit of a CA that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Certificates for the same set of names.
    ExactSet,
    /// Certificates for a registered domain.
    RegisteredDomain,
    /// Failed authorizations of a name.
    FailedAuthorizations,
    /// Orders of an account.
    NewOrders,
    /// Accounts from an address.
    Registrations,
    /// The account is paused for a name.
    Paused,
    /// The CA is too busy, or gives no details.
    Busy,
}

/// Reads which limit was reached, in Boulder's wording, which other CAs have taken over.
pub fn limit(problem: &Problem) -> Limit {
    let detail = problem.detail.to_ascii_lowercase();
    let says = |words: &str| detail.contains(words);
    if crate::acme::error::says_paused(problem) {
        Limit::Paused
    } else if says("exact set") {
        Limit::ExactSet
    } else if says("failed authorizations") {
        Limit::FailedAuthorizations
    } else if says("new registrations") || says("too many registrations") {
        Limit::Registrations
    } else if says("new orders") {
        Limit::NewOrders
    } else if says("too many certificates") {
        Limit::RegisteredDomain
    } else {
        Limit::Busy
    }
}

/// Place from which a CA validates a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Perspective {
    /// The CA's own place, which validates first.
    Primary,
    /// Other places of the world, which validate once the first place has seen the answer.
    Secondary,
}

/// Returns the perspective that has failed, by Boulder's prefix.
pub fn perspective(problem: &Problem) -> Perspective {
    let detail = problem.detail.to_ascii_lowercase();
    let prefixes = ["during secondary validation", "during secondary domain validation"];
    if prefixes.iter().any(|prefix| detail.contains(prefix)) {
        Perspective::Secondary
    } else {
        Perspective::Primary
    }
}

/// Reports whether a CA says that it cannot validate from as many places as it must, a fault of the CA itself.
pub fn lacks_perspectives(problem: &Problem) -> bool {
    problem.detail.to_ascii_lowercase().contains("insufficient remote perspectives")
}

/// Returns the address that a CA names before the fault, in Boulder's wording.
pub fn address_met(problem: &Problem) -> Option<IpAddr> {
    // `dial tcp` is Go's wording for a connection, and so that of Pebble and step-ca.
    let dialled = |part: &str| part.strip_prefix("dial tcp ")?.parse::<SocketAddr>().ok();
    let address = |part: &str| part.parse().ok().or_else(|| Some(dialled(part)?.ip()));
    problem.detail.split(": ").find_map(address)
}

/// Returns the URL that a CA expected in a signed request, in Boulder's wording, which Pebble and step-ca share.
pub fn other_signed_url(problem: &Problem) -> Option<String> {
    let detail = &problem.detail;
    let is_about_it = detail.contains("parameter 'url' incorrect")
        || (detail.contains("url header in JWS") && detail.contains("does not match"));
    let quoted = detail.split('"').nth(1).unwrap_or_default();
    is_about_it.then(|| quoted.to_owned())
}

/// Reports whether a Challenge's reason is about its answer that could not be put up or taken down, rather than about what
/// the Challenge waits for. The reason is cert-manager's, or ours.
pub fn is_about_deed(reason: &str) -> bool {
    !reason.is_empty() && !reason.starts_with("Waiting for ")
}

/// Fault of the record of DNS-01, as a CA describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// There is no record.
    None,
    /// There are other records only.
    Others,
    /// The name servers answered with an error.
    Servers,
    /// The name servers did not answer.
    Silence,
    /// The signatures of the zone do not hold (DNSSEC).
    Signatures,
}

/// Reads the fault of the record of DNS-01 from a CA's problem.
pub fn record_fault(problem: &Problem) -> Option<RecordFault> {
    let detail = problem.detail.to_ascii_lowercase();
    let says = |words: &str| detail.contains(words);
    if says("incorrect txt record") || says("correct value not found") {
        Some(RecordFault::Others)
    } else if says("no txt record") || says("nxdomain looking up txt") {
        Some(RecordFault::None)
    } else {
        lookup_fault(problem)
    }
}

/// Reads why a CA could not look up a record, in the wording of Boulder and Pebble.
pub fn lookup_fault(problem: &Problem) -> Option<RecordFault> {
    let detail = problem.detail.to_ascii_lowercase();
    let says = |words: &str| detail.contains(words);
    if !says("dns problem") && !says("looking up") {
        return None;
    }
    // The addition of a validating resolver says more than the code (RFC 8914).
    if says("dnssec")
        || says("dnskey missing")
        || says("rrsigs missing")
        || says("signature expired")
    {
        Some(RecordFault::Signatures)
    } else if says("timed out") || says("networking error") {
        Some(RecordFault::Silence)
    } else if says("servfail")
        || says("refused")
        || says("server failure")
        || says("misconfiguration")
    {
        Some(RecordFault::Servers)
    } else {
        None
    }
}

/// Reports whether the CA checked CAA again when the order was finalized.
pub fn is_caa_again(problem: &Problem) -> bool {
    problem.detail.to_ascii_lowercase().contains("rechecking caa")
}

/// Name that a CA refuses because of CAA records, in Boulder's wording, which our own CA shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedByCaa<'a> {
    /// Name as it was ordered.
    pub name: &'a str,
    /// Owner of the records that exclude the CA.
    pub owner: &'a str,
    /// Whether the records lack nothing but an account, as our own CA says in a rehearsal.
    pub is_bound: bool,
}

/// Returns the names that a text says are refused.
pub fn refused_by_caa(text: &str) -> impl Iterator<Item = RefusedByCaa<'_>> {
    text.split("While processing CAA for ").skip(1).filter_map(|rest| {
        let (name, why) = rest.split_once(':')?;
        let owner = word(why.strip_prefix(" CAA record for ")?);
        Some(RefusedByCaa { name, owner, is_bound: rest.contains(NO_ACCOUNT) })
    })
}

/// Returns the owners of CAA records that could not be looked up.
pub fn lost_caa(text: &str) -> impl Iterator<Item = &str> {
    text.split(" looking up CAA for ").skip(1).map(word)
}

/// Reports whether a text quotes a problem of the type `caa`, whatever the namespace of its type.
pub fn is_caa(text: &str) -> bool {
    text.split_whitespace().any(|word| word.ends_with(":caa:"))
}

/// Reports whether a wait has timed out, in Go's wording.
pub fn has_run_out_of_time(reason: &str) -> bool {
    reason.contains("context deadline exceeded")
}

/// Reports whether a passing error has ended a Challenge or an Order: cert-manager before 1.21 took any error that is no
/// problem of the CA for final.
pub fn is_passing_fault_made_final(reason: &str) -> bool {
    reason.contains("unexpected non-ACME API error") || issuer::is_unreachable(reason)
}

/// Returns the first word of a text, without punctuation behind the word.
fn word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default().trim_end_matches([';', ',', '.'])
}

/// Reports whether a text is about the update server of a challenge's solver (RFC 2136), or names no server at all.
pub fn is_about_update(challenge: &Challenge, said: &str) -> bool {
    let dns01 = challenge.spec.solver.dns01.as_deref();
    let Some(rfc2136) = dns01.and_then(|dns01| dns01.rfc2136.as_ref()) else { return false };
    let (host, _) = host_and_port(&rfc2136.nameserver);
    // The addresses of a host name are not known here.
    let Ok(own) = host.trim_matches(['[', ']']).parse::<IpAddr>() else { return true };
    let met = said.split([' ', '>']).map(|word| word.trim_end_matches(':'));
    let mut met = met.filter_map(|word| word.parse::<SocketAddr>().ok()).peekable();
    met.peek().is_none() || met.any(|address| address.ip() == own)
}

/// Reports whether a text is about a connection to a name server other than the update server: cert-manager asks its
/// recursive resolvers for the zone before it writes.
fn is_about_resolver(challenge: &Challenge, said: &str) -> bool {
    let is_of_connection =
        ["dial udp ", "dial tcp ", "read udp ", "read tcp "].iter().any(|mark| said.contains(mark));
    let is_of_dns = said.contains(":53: ") || said.ends_with(":53");
    is_of_connection && is_of_dns && !is_about_update(challenge, said)
}

/// Splits a server, as solvers name it, into host and port; the default port is 53.
pub fn host_and_port(server: &str) -> (&str, &str) {
    match server.rsplit_once(':') {
        // Without brackets the server is an IPv6 address.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => (server, "53"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ChallengeType;
    use crate::reconcile::testing::challenge;

    #[test]
    fn a_problem_without_a_status_is_read_and_of_a_validation_it_is_no_refusal() {
        let kind = "urn:ietf:params:acme:error:rejectedIdentifier";
        let mut challenge = challenge("www.example.com").build();
        challenge.status.reason = format!(
            "Error accepting authorization: acme: authorization error for www.example.com: {kind}: no"
        );
        let problem = |status| {
            Box::new(Problem {
                kind: kind.to_owned(),
                detail: "no".to_owned(),
                status,
                ..Problem::default()
            })
        };
        assert_eq!(cause(&challenge), Some(Cause::Validation(problem(0))));
        challenge.status.reason = format!("Error accepting challenge: 400 {kind}: no");
        assert_eq!(cause(&challenge), Some(Cause::Refused(problem(400))));
    }

    #[track_caller]
    fn check(kind: ChallengeType, said: &str, expected: Option<Symptom>) {
        let mut challenge = challenge("www.example.com").build();
        challenge.spec.kind = kind;
        let found = sighting(&challenge, said).map(|sighting| sighting.symptom);
        assert_eq!(found, expected, "{said}");
    }

    #[test]
    fn the_address_of_a_look_is_read_in_the_words_of_boulder_and_of_go() {
        for (detail, expected) in [
            (
                "2001:db8::1: Fetching http://www.example.com/x: Connection refused",
                Some("2001:db8::1"),
            ),
            (
                "Get \"http://www.example.com:5002/x\": dial tcp [::1]:5002: connect: connection refused",
                Some("::1"),
            ),
            (
                "Get \"http://www.example.com:5002/x\": dial tcp 192.0.2.1:5002: i/o timeout",
                Some("192.0.2.1"),
            ),
            ("dial tcp: lookup www.example.com: no such host", None),
        ] {
            let problem = Problem { detail: detail.to_owned(), ..Problem::default() };
            assert_eq!(
                address_met(&problem),
                expected.map(|text| text.parse().unwrap()),
                "{detail}"
            );
        }
    }

    #[test]
    fn what_a_look_met_is_known_by_whoever_tells() {
        for (said, expected) in [
            ("wrong status code '404', expected '200'", Symptom::NotFound),
            ("Invalid response from http://x/: 404", Symptom::NotFound),
            ("wrong status code '403', expected '200'", Symptom::Forbidden),
            ("wrong status code '429', expected '200'", Symptom::RequestRefused),
            ("wrong status code '418', expected '200'", Symptom::RequestRefused),
            ("wrong status code '302', expected '200'", Symptom::WrongAnswer),
            ("wrong status code '400', expected '200'", Symptom::BadRequest),
            ("wrong status code '503', expected '200'", Symptom::ServerError),
            (
                "did not get expected response when querying endpoint: got \"<html>\"",
                Symptom::WrongAnswer,
            ),
            ("connect: connection refused", Symptom::ConnectionRefused),
            ("Connection refused", Symptom::ConnectionRefused),
            ("dial tcp 192.0.2.1:80: i/o timeout", Symptom::Unreachable),
            ("Timeout during connect (likely firewall problem)", Symptom::Unreachable),
            ("lookup www.example.com on 10.96.0.10:53: no such host", Symptom::NoAddress),
            ("DNS problem: NXDOMAIN looking up A for www.example.com", Symptom::NoAddress),
            ("remote error: tls: handshake failure", Symptom::NoTls),
            ("dial tcp 192.0.2.1:443: connect: connection refused", Symptom::TlsPortSilent),
            ("Invalid port in redirect target", Symptom::RedirectNotFollowed),
            // cert-manager before and since 1.21.2.
            (
                "did not get expected response \"token.key\" when querying endpoint",
                Symptom::WrongAnswer,
            ),
        ] {
            check(ChallengeType::Http01, said, Some(expected));
        }
        check(ChallengeType::Http01, "", None);
        let zone = "Could not determine the zone for \"a.\": no answer";
        check(ChallengeType::Dns01, zone, Some(Symptom::NotDelegated));
        let lame = "NS ns1.a. returned REFUSED for _acme-challenge.a.";
        check(ChallengeType::Dns01, lame, Some(Symptom::LameServer));
        check(ChallengeType::Dns01, "DNS problem: NXDOMAIN looking up TXT for a", None);
    }

    #[test]
    fn a_ca_is_read_as_it_says_it() {
        for (problem, expected) in [
            (
                "400 urn:ietf:params:acme:error:connection: 192.0.2.1: Fetching http://www.example.com/x: Connection refused",
                Symptom::ConnectionRefused,
            ),
            (
                "403 urn:ietf:params:acme:error:unauthorized: 192.0.2.1: Invalid response from http://www.example.com/x: 404",
                Symptom::NotFound,
            ),
            (
                "403 urn:ietf:params:acme:error:unauthorized: 192.0.2.1: Invalid response from http://www.example.com/x: 403",
                Symptom::Forbidden,
            ),
            (
                "403 urn:ietf:params:acme:error:unauthorized: The key authorization file from the server did not match this challenge. Expected \"a\" (got \"b\")",
                Symptom::WrongAnswer,
            ),
            (
                "400 urn:ietf:params:acme:error:dns: DNS problem: NXDOMAIN looking up A for www.example.com",
                Symptom::NoAddress,
            ),
        ] {
            let reason = format!("acme: authorization error for www.example.com: {problem}");
            check(ChallengeType::Http01, &reason, Some(expected));
        }
    }

    #[test]
    fn every_redirect_that_a_ca_refuses_is_known_in_old_words_and_new() {
        for why in [
            // Boulder before September 2026.
            "Invalid port in redirect target. Only ports 80 and 443 are supported, not 8443",
            "Invalid protocol scheme in redirect target. Only \"http\" and \"https\" protocol schemes are supported, not \"ftp\"",
            "Invalid empty host in redirect target",
            "Invalid host in redirect target, must end in IANA registered TLD",
            "Invalid host in redirect target \"a.well-known\". Check webserver config for missing '/' in redirect target.",
            "Invalid host in redirect target: IP address is in a reserved address block: [RFC1918]: Private-Use",
            "Redirect target too long",
            "Redirect loop detected",
            "Too many redirects",
            "received disallowed redirect status code",
            // Since.
            "redirect loop detected",
            "Too many hops",
            "Received disallowed redirect status code 303",
            "invalid port 4433: must be 80 or 443",
            "invalid port 443443: must be 80 or 443",
            "invalid protocol scheme: only \"http\" and \"https\" are supported, not \"ftp\"",
            "invalid host: must end in IANA registered TLD",
            "invalid host: host must be non-empty",
            "invalid host: IP address is in a reserved address block: [RFC1918]: Private-Use",
            "invalid host: contains IPv6 scope zone",
            "invalid url: path component too long",
            "Invalid Location header in 302 redirect",
        ] {
            let detail = format!("192.0.2.1: Fetching https://www.example.com:4433/x: {why}");
            // What a rule reads ends before what a web server may have said.
            for said in [&detail[..], detail.split('"').next().unwrap_or_default()] {
                let kind = "urn:ietf:params:acme:error:connection";
                for said in [
                    said.to_owned(),
                    said.to_ascii_uppercase(),
                    format!("acme: authorization error for www.example.com: 400 {kind}: {said}"),
                ] {
                    check(ChallengeType::Http01, &said, Some(Symptom::RedirectNotFollowed));
                }
            }
        }
        // The URL of a redirect is not why it failed.
        let silent = "Fetching https://www.example.com:443/x: Timeout during connect";
        check(ChallengeType::Http01, silent, Some(Symptom::TlsPortSilent));
    }

    #[test]
    fn a_question_of_a_ca_that_found_no_answer_is_read() {
        for (detail, expected) in [
            (
                "DNS problem: SERVFAIL looking up TXT for _acme-challenge.a.example - the domain's nameservers may be malfunctioning",
                Some(RecordFault::Servers),
            ),
            (
                "DNS problem: query timed out looking up TXT for _acme-challenge.a.example",
                Some(RecordFault::Silence),
            ),
            ("DNS problem: query timed out looking up A for a.example", Some(RecordFault::Silence)),
            (
                "DNS problem: networking error looking up A for a.example",
                Some(RecordFault::Silence),
            ),
            (
                "DNS problem: query timed out (and was canceled) looking up CAA for a.example",
                Some(RecordFault::Silence),
            ),
            (
                "DNS problem: server failure at resolver looking up TXT for _acme-challenge.a.example",
                Some(RecordFault::Servers),
            ),
            (
                "DNS problem: looking up TXT for _acme-challenge.a.example: DNSSEC: DNSKEY Missing",
                Some(RecordFault::Signatures),
            ),
            ("192.0.2.1: Fetching http://a.example/x: Timeout during connect", None),
            ("it timed out", None),
        ] {
            let problem = Problem { detail: detail.to_owned(), ..Problem::default() };
            assert_eq!(lookup_fault(&problem), expected, "{detail}");
        }
    }

    #[test]
    fn a_family_is_told_where_go_names_the_address() {
        let challenge = challenge("www.example.com").build();
        let said = "dial tcp [2001:db8::1]:80: connect: connection refused";
        let expected = CheckFinding { symptom: Symptom::ConnectionRefused, over_ipv6: true };
        assert_eq!(sighting(&challenge, said), Some(expected));
    }

    #[test]
    fn a_problem_is_found_in_cert_managers_words() {
        for (text, expected) in [
            ("Failed to create Order: 429 urn:x:rateLimited: too many", Some((429, "rateLimited"))),
            (
                "Failed to update ACME account:400 urn:x:invalidEmail: no",
                Some((400, "invalidEmail")),
            ),
            ("Failed: 503 : upstream is away", Some((503, ""))),
            ("the order expired in 2026", None),
            ("acme: certificate authority does not support profiles", Some((0, "invalidProfile"))),
        ] {
            let found = problem_of_order(text);
            let found = found.as_ref().map(|problem| (problem.status, problem.short_kind()));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_text_is_about_the_server_of_the_updates_or_about_another_one() {
        let of = |nameserver: &str, said: &str| {
            let solver = json!({"dns01": {"rfc2136": {"nameserver": nameserver}}});
            let mut challenge = challenge("www.example.com").build();
            challenge.spec.solver = serde_json::from_value(solver).unwrap();
            (is_about_update(&challenge, said), is_about_resolver(&challenge, said))
        };
        let silent = "dial tcp 192.0.2.53:53: i/o timeout";
        assert_eq!(of("192.0.2.53", silent), (true, false));
        assert_eq!(of("192.0.2.5:53", silent), (false, true));
        assert_eq!(of("ns1.example.com:53", silent), (true, false));
        assert_eq!(of("[2001:db8::1]:53", "dial tcp [2001:db8::1]:53: refused"), (true, false));
        assert_eq!(of("192.0.2.53", "words without an address"), (true, false));
    }
}
