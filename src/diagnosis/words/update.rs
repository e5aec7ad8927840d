//! The server for dynamic updates (RFC 2136), as solvers and messages about connections name it.

use std::net::{IpAddr, SocketAddr};

use crate::model::Challenge;

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
pub fn is_about_resolver(challenge: &Challenge, said: &str) -> bool {
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
    use crate::reconcile::testing::challenge;

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
