//! The server that takes dynamic updates (RFC 2136), as solvers name it and as texts about connections do.

use std::net::SocketAddr;

use crate::model::Challenge;

/// Tells whether a text is about the server that takes the updates of a challenge's solver (RFC 2136), or names no server at all.
pub fn is_about_update(challenge: &Challenge, said: &str) -> bool {
    let dns01 = challenge.spec.solver.dns01.as_deref();
    let Some(rfc2136) = dns01.and_then(|dns01| dns01.rfc2136.as_ref()) else { return false };
    let (host, _) = host_and_port(&rfc2136.nameserver);
    let host = host.trim_matches(['[', ']']);
    let names_one = |word: &str| {
        let word = word.trim_end_matches(':');
        word.parse::<SocketAddr>().is_ok()
    };
    let mut named = said.split([' ', '>']).filter(|word| names_one(word)).peekable();
    named.peek().is_none() || named.any(|word| word.trim_matches('[').starts_with(host))
}

/// Tells whether a text is about a connection to a name server that takes no updates: cert-manager asks its recursive resolvers for the
/// zone before it writes.
pub fn is_about_resolver(challenge: &Challenge, said: &str) -> bool {
    let is_of_connection =
        ["dial udp ", "dial tcp ", "read udp ", "read tcp "].iter().any(|mark| said.contains(mark));
    let is_of_dns = said.contains(":53: ") || said.ends_with(":53");
    is_of_connection && is_of_dns && !is_about_update(challenge, said)
}

/// A server as solvers name it, and its port.
pub fn host_and_port(server: &str) -> (&str, &str) {
    match server.rsplit_once(':') {
        // Without brackets it is an address of IPv6.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => (server, "53"),
    }
}
