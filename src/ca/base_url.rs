//! Beginnings of URLs. Every URL for a client has the host that the client has asked (RFC 8555 §6.4), so that the CA
//! can be reached by any name, through a container's port, a port-forward or a proxy that passes `Host` on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

use crate::model::Identifier;

const TLS: &str = "https://";
const PLAIN: &str = "http://";

/// Scheme, host and port, without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BaseUrl(String);

impl BaseUrl {
    /// Takes a text unchanged.
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the base for people: the first name, else the listening address, or loopback if that is every address.
    pub(super) fn printed(names: &[Identifier], address: SocketAddr) -> Self {
        let listening = Identifier::Ip(match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        });
        let port = address.port();
        Self(match names.first().unwrap_or(&listening) {
            Identifier::Ip(IpAddr::V6(ip)) => format!("{TLS}[{ip}]:{port}"),
            name @ (Identifier::Ip(IpAddr::V4(_)) | Identifier::Dns(_)) => {
                format!("{TLS}{name}:{port}")
            }
        })
    }

    /// Returns the base that a request was sent to: this base's scheme, with the host that the
    /// request names. Returns this base if the request names no host that can stand in a URL.
    pub(super) fn of(&self, uri: &Uri, headers: &HeaderMap) -> Self {
        let (scheme, standard_port) =
            if self.0.starts_with(TLS) { (TLS, ":443") } else { (PLAIN, ":80") };
        let in_header = || headers.get(HOST)?.to_str().ok()?.parse::<Authority>().ok();
        let named = uri.authority().cloned().or_else(in_header);
        let named = named.filter(|it| !it.host().is_empty() && !it.as_str().contains('@'));
        let Some(named) = named else { return self.clone() };
        let host = named.as_str().to_ascii_lowercase();
        // Clients leave the standard port out of the URLs that they sign, whatever they put into `Host`.
        Self(format!("{scheme}{}", host.strip_suffix(standard_port).unwrap_or(&host)))
    }

    /// Returns the URL of a path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// Returns the base with the same host and port, without TLS.
    pub(super) fn plain(&self) -> Self {
        let Some(host) = self.0.strip_prefix(TLS) else { return self.clone() };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        Self(format!("{PLAIN}{host}{}", if has_port { "" } else { ":443" }))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_printed_base_is_the_first_name_or_where_the_server_listens() {
        let named =
            [Identifier::parse("ca.acme.test").unwrap(), Identifier::parse("b.test").unwrap()];
        let six = [Identifier::parse("2001:db8::1").unwrap()];
        for (names, address, expected) in [
            (&[][..], "127.0.0.1:14000", "https://127.0.0.1:14000"),
            (&[], "127.0.0.9:14000", "https://127.0.0.9:14000"),
            (&[], "[::1]:14000", "https://[::1]:14000"),
            (&[], "0.0.0.0:14000", "https://127.0.0.1:14000"),
            (&[], "[::]:14000", "https://[::1]:14000"),
            (&named, "0.0.0.0:14000", "https://ca.acme.test:14000"),
            (&named, "127.0.0.1:14000", "https://ca.acme.test:14000"),
            (&six, "127.0.0.1:14000", "https://[2001:db8::1]:14000"),
        ] {
            assert_eq!(BaseUrl::printed(names, address.parse().unwrap()).url(""), expected);
        }
    }

    #[test]
    fn a_request_says_by_which_host_the_server_is_reached() {
        let check = |base: &str, uri: &str, host: Option<&str>, expected: &str| {
            let mut headers = HeaderMap::new();
            if let Some(host) = host {
                headers.insert(HOST, HeaderValue::from_bytes(host.as_bytes()).unwrap());
            }
            let seen = BaseUrl::new(base).of(&uri.parse().unwrap(), &headers);
            assert_eq!(seen.url("/x"), expected, "{host:?}");
        };
        let own = "https://127.0.0.1:14000";
        for (host, expected) in [
            (None, "https://127.0.0.1:14000/x"),
            (Some("ca.acme.test:8443"), "https://ca.acme.test:8443/x"),
            (Some("CA.acme.test"), "https://ca.acme.test/x"),
            (Some("ca.acme.test:443"), "https://ca.acme.test/x"),
            (Some("[::1]:15000"), "https://[::1]:15000/x"),
            (Some("[::1]:443"), "https://[::1]/x"),
            // What cannot stand in a URL, or would lead a client elsewhere.
            (Some(""), "https://127.0.0.1:14000/x"),
            (Some("a b"), "https://127.0.0.1:14000/x"),
            (Some("user@ca.acme.test"), "https://127.0.0.1:14000/x"),
            (Some("ca.acme.test/elsewhere"), "https://127.0.0.1:14000/x"),
            (Some("b\u{fc}cher.test"), "https://127.0.0.1:14000/x"),
        ] {
            check(own, "/acme/new-nonce", host, expected);
        }
        // HTTP/2, and the absolute form of HTTP/1.1.
        check(own, "https://h2.acme.test:1/x", None, "https://h2.acme.test:1/x");
        check(own, "https://h2.acme.test:1/x", Some("other.test"), "https://h2.acme.test:1/x");
        check("http://ca.example", "/", Some("ca.example:80"), "http://ca.example/x");
        check("http://ca.example", "/", Some("ca.example:443"), "http://ca.example:443/x");
    }

    #[test]
    fn the_same_port_without_tls_is_named_even_if_it_is_the_standard_one_of_tls() {
        for (base, expected) in [
            ("https://ca.acme.test:14000", "http://ca.acme.test:14000"),
            ("https://ca.acme.test", "http://ca.acme.test:443"),
            ("https://[::1]:14000", "http://[::1]:14000"),
            ("https://[::1]", "http://[::1]:443"),
            ("http://ca.example", "http://ca.example"),
        ] {
            assert_eq!(BaseUrl::new(base).plain().url(""), expected);
        }
    }
}
