//! Command lines that repeat a probe, so that a person sees the same result.

use std::net::SocketAddr;

use url::Url;

use super::invocation::quoted;
use crate::dns::server::{PORT, Server};
use crate::model::Identifier;
use crate::model::observation::{CheckResult, Hop, NameServer, Observation, Vantage};

/// Resolvers and commands with which the probes were made.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProbeMeans {
    /// Address of `--dns`; `None` for the system's own configuration.
    pub(crate) hosts: Option<SocketAddr>,
    /// Resolvers of DNS-01.
    pub(crate) zones: Vec<Server>,
    /// Command line that probes from inside the cluster.
    pub(crate) inside: Option<String>,
}

/// Returns the command lines that repeat an observation. Names and URLs in the lines may come from a foreign server, so each
/// is quoted as one word for the shell.
pub(crate) fn commands(observation: &Observation, means: &ProbeMeans) -> Vec<String> {
    if matches!(observation.vantage, Vantage::Pod { .. }) {
        return means.inside.iter().cloned().collect();
    }
    match &observation.seen {
        CheckResult::Records { name, zone, servers } => {
            let recursion = if zone.is_empty() { "" } else { "+norecurse " };
            let asked = servers.iter().filter_map(at_server);
            asked.map(|at| format!("dig {recursion}{at} {} TXT", quoted(name))).collect()
        }
        _ if is_dns(observation) => {
            let question = observation.hops.last().and_then(question);
            let Some((name, kind)) = question else { return Vec::new() };
            let asked = means.zones.iter().filter_map(at);
            asked.map(|at| format!("dig {at} {} {}", quoted(name), quoted(kind))).collect()
        }
        CheckResult::Nothing { .. } if let Some(host) = unknown_host(observation) => {
            let at = means.hosts.map(|address| plain(address) + " ").unwrap_or_default();
            ["AAAA", "A"].map(|kind| format!("dig {at}{} {kind}", quoted(&host))).to_vec()
        }
        _ if observation.url.starts_with("https:") => openssl(observation).into_iter().collect(),
        _ => vec![curl(observation)],
    }
}

/// Returns the host at which a probe ended because the host has no address.
fn unknown_host(observation: &Observation) -> Option<String> {
    let hop = observation.hops.last().filter(|hop| hop.address.is_none())?;
    match Url::parse(&hop.url).ok()?.host()? {
        url::Host::Domain(name) => Some(name.to_owned()),
        url::Host::Ipv4(_) | url::Host::Ipv6(_) => None,
    }
}

/// Reads `dns:NAME?type=TYPE` (RFC 4501).
fn question(hop: &Hop) -> Option<(&str, &str)> {
    hop.url.strip_prefix("dns:")?.split_once("?type=")
}

fn at_server(server: &NameServer) -> Option<String> {
    match server.address {
        Some(address) => Some(plain(address)),
        None => at(&Server::Https(Url::parse(&server.name).ok()?)),
    }
}

/// Formats a server as dig's arguments.
fn at(server: &Server) -> Option<String> {
    match server {
        Server::Plain(address) => Some(plain(*address)),
        Server::Https(url) => Some(format!(
            "{} {}",
            quoted(&format!("+https={}", url.path())),
            quoted(&format!("@{}", url.host_str()?))
        )),
    }
}

fn plain(address: SocketAddr) -> String {
    match address.port() {
        PORT => format!("@{}", address.ip()),
        port => format!("@{} -p {port}", address.ip()),
    }
}

/// Returns the openssl line that makes the same handshake and shows the certificate.
fn openssl(observation: &Observation) -> Option<String> {
    let url = Url::parse(&observation.url).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let name = Identifier::parse(host).ok()?.server_name();
    let address = observation.hops.first().and_then(|hop| hop.address);
    let address = address.map_or_else(|| format!("{host}:443"), |address| address.to_string());
    Some(format!(
        "openssl s_client -connect {} -servername {} -alpn acme-tls/1 </dev/null | openssl x509 -noout -text",
        quoted(&address),
        quoted(&name)
    ))
}

/// Returns the curl line that repeats a probe: no proxy, the same addresses, as many redirects. If a redirect was not followed,
/// the line requests the URL that gave the redirect.
fn curl(observation: &Observation) -> String {
    let (start, redirects) = match &observation.seen {
        CheckResult::Redirect { .. } => (observation.hops.len().saturating_sub(1), ""),
        _ => (0, " --location --max-redirs 9"),
    };
    let hops = observation.hops.get(start..).unwrap_or_default();
    // CAs do not verify the certificate of a redirect's target.
    let insecure = if hops.iter().any(|hop| hop.url.starts_with("https:")) { " -k" } else { "" };
    let mut detours: Vec<String> = Vec::new();
    for hop in hops {
        let Some((url, address)) = Url::parse(&hop.url).ok().zip(hop.address) else { continue };
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            continue;
        };
        let detour = format!(" --connect-to {}", quoted(&format!("{host}:{port}:{address}")));
        if !detours.contains(&detour) {
            detours.push(detour);
        }
    }
    let url = hops.first().map_or(observation.url.as_str(), |hop| hop.url.as_str());
    // --globoff: brackets and braces in a URL are no ranges.
    format!(
        "curl -i --globoff{redirects}{insecure} --noproxy '*'{} {}",
        detours.concat(),
        quoted(url)
    )
}

pub(crate) fn is_dns(observation: &Observation) -> bool {
    observation.url.starts_with("dns:")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::observation::Vantage;

    const URL: &str = "http://www.example.com/x";

    fn hop(url: &str, address: Option<&str>) -> Hop {
        let address = address.map(|address| address.parse().unwrap());
        Hop { url: url.to_owned(), address, status: None }
    }

    #[track_caller]
    fn check(hops: &[Hop], seen: CheckResult, expected: &[&str]) {
        let observation = Observation {
            vantage: Vantage::ThisMachine,
            at: Timestamp::UNIX_EPOCH,
            url: hops[0].url.clone(),
            hops: hops.to_vec(),
            seen,
        };
        let means = ProbeMeans {
            hosts: Some("192.0.2.53:5353".parse().unwrap()),
            zones: vec![Server::Plain("192.0.2.54:53".parse().unwrap())],
            inside: None,
        };
        assert_eq!(commands(&observation, &means), expected);
    }

    fn nothing() -> CheckResult {
        CheckResult::Nothing { why: "why".to_owned(), symptom: None }
    }

    #[test]
    fn a_page_is_asked_for_at_the_same_addresses() {
        let first = hop(URL, Some("[2001:db8::1]:80"));
        check(
            std::slice::from_ref(&first),
            nothing(),
            &[
                "curl -i --globoff --location --max-redirs 9 --noproxy '*' --connect-to 'www.example.com:80:[2001:db8::1]:80' \
                 http://www.example.com/x",
            ],
        );
        let next = hop("https://other.example.com/", Some("192.0.2.1:443"));
        check(
            &[first, next],
            nothing(),
            &[
                "curl -i --globoff --location --max-redirs 9 -k --noproxy '*' --connect-to 'www.example.com:80:[2001:db8::1]:80' \
                 --connect-to other.example.com:443:192.0.2.1:443 http://www.example.com/x",
            ],
        );
    }

    #[test]
    fn a_redirect_that_is_not_followed_is_shown_where_it_was_given() {
        let refused =
            || CheckResult::Redirect { to: "ftp://a.example/".to_owned(), why: String::new() };
        let first = hop(URL, Some("192.0.2.1:80"));
        let line = "curl -i --globoff --noproxy '*' --connect-to www.example.com:80:192.0.2.1:80 http://www.example.com/x";
        check(std::slice::from_ref(&first), refused(), &[line]);
        let last = hop("http://www.example.com/y", Some("192.0.2.1:80"));
        check(&[first, last], refused(), &[&line.replace("/x", "/y")]);
    }

    #[test]
    fn a_host_without_an_address_is_looked_up() {
        let lookups =
            |host| ["AAAA", "A"].map(|kind| format!("dig @192.0.2.53 -p 5353 {host} {kind}"));
        let expected = lookups("www.example.com");
        check(&[hop(URL, None)], nothing(), &expected.each_ref().map(String::as_str));
        let hops = [hop(URL, Some("192.0.2.1:80")), hop("https://gone.example.com/", None)];
        let expected = lookups("gone.example.com");
        check(&hops, nothing(), &expected.each_ref().map(String::as_str));
    }

    #[test]
    fn what_strangers_say_is_one_word_for_a_shell() {
        let hops = [hop(URL, Some("192.0.2.1:80")), hop("http://$(reboot).example.com/", None)];
        let lookup = |kind| format!("dig @192.0.2.53 -p 5353 '$(reboot).example.com' {kind}");
        check(&hops, nothing(), &[&lookup("AAAA"), &lookup("A")]);
        let refused =
            CheckResult::Redirect { to: "ftp://a.example/".to_owned(), why: String::new() };
        let last = hop("http://a.example/';reboot;'", Some("192.0.2.1:80"));
        let line = "curl -i --globoff --noproxy '*' --connect-to a.example:80:192.0.2.1:80 \
                    'http://a.example/'\\'';reboot;'\\'''";
        check(&[last], refused, &[line]);
    }

    #[test]
    fn a_zone_that_is_not_found_is_asked_for() {
        let hops = ["dns:_acme-challenge.www.example.com?type=TXT", "dns:example.com?type=SOA"];
        let hops = hops.map(|url| hop(url, None));
        check(&hops, nothing(), &["dig @192.0.2.54 example.com SOA"]);
    }
}
