//! Symptoms of HTTP-01 validation, read from the messages of cert-manager (in Go's wording), of Boulder and of Pebble.

use crate::model::cause::Symptom;

/// Messages of Go (in cert-manager's self-check), of Boulder and of Pebble. The first match decides, so that texts which a
/// web server's own page may hold come last.
const HTTP: &[(&[&str], Symptom)] = &[
    // Boulder's messages since September 2026, the older ones, and Pebble's: each stands before the first quotation mark,
    // where a web server's text may begin.
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
    (
        &[
            "net/http: TLS handshake timeout",
            "timeout awaiting response headers",
            "timeout after connect",
            "timeout during read",
        ],
        Symptom::NoReply,
    ),
    (
        &["tls: ", "Server only speaks HTTP, not TLS", "HTTP response to HTTPS client"],
        Symptom::NoTls,
    ),
    (&[":443"], Symptom::TlsPortSilent),
    (&["wrong status code '404'", ": 404"], Symptom::NotFound),
    (&["wrong status code '401'", "wrong status code '403'", ": 401", ": 403"], Symptom::Forbidden),
    (&["wrong status code '5", ": 500", ": 502", ": 503", ": 504"], Symptom::ServerError),
    (&["wrong status code '400'", ": 400 "], Symptom::BadRequest),
    (
        &["wrong status code '4", ": 405", ": 410", ": 421", ": 429", ": 451"],
        Symptom::RequestRefused,
    ),
    (
        &[
            "wrong status code '",
            "did not get expected response",
            "did not match this challenge",
            "Invalid response from ",
        ],
        Symptom::WrongAnswer,
    ),
    (&["connection refused"], Symptom::ConnectionRefused),
    (&["i/o timeout", "deadline exceeded", "Timeout during connect"], Symptom::Unreachable),
    (&["malformed HTTP"], Symptom::NotHttp),
    (
        &[": no such host", "NXDOMAIN looking up", "no valid A records", "No valid IP addresses"],
        Symptom::NoAddress,
    ),
];

/// Linux's messages for a connection that could not be made, or that ended (strerror(3), as Go prints them).
const KERNEL_MESSAGES: &[(&[&str], Symptom)] = &[
    (
        &[
            "address family not supported by protocol",
            "cannot assign requested address",
            "connection timed out",
            "host is down",
            "network is down",
            "network is unreachable",
            "network unreachable",
            "no route to host",
            // Without `connect: ` the message may be about a file.
            "connect: operation not permitted",
            "connect: permission denied",
        ],
        Symptom::Unreachable,
    ),
    (
        &[
            "broken pipe",
            "connection reset",
            "network dropped connection on reset",
            "software caused connection abort",
            "transport endpoint is not connected",
            "error getting validation data",
        ],
        Symptom::HungUp,
    ),
];

/// Starts of Go's messages for a connection that could not be made, or that ended, whatever the rest of the message says.
const GO_MESSAGE_STARTS: &[(&[&str], Symptom)] = &[
    (&["dial tcp ", "dial udp "], Symptom::Unreachable),
    (
        &[
            "read tcp ",
            "write tcp ",
            "read: ",
            "write: ",
            ": EOF",
            "unexpected EOF",
            "net/http: ",
            "http: server closed",
            "http2: ",
            "use of closed network connection",
        ],
        Symptom::HungUp,
    ),
];

/// Go's messages for a resolver without an answer, which follow the name of the lookup.
const LOOKUP_MESSAGES: &[(&[&str], Symptom)] = &[
    (&["i/o timeout", "temporary failure in name resolution"], Symptom::ResolverSilent),
    (&["server misbehaving"], Symptom::NameServersFail),
];

/// Texts of web servers on the page for a client that sends plain HTTP to a port for TLS: nginx, Go (and Caddy, Traefik),
/// Apache httpd, Tomcat. Others hang up.
const TLS_PORT: [&str; 4] = [
    "plain http request was sent to https port",
    "http request to an https server",
    "plain http to an ssl-enabled server port",
    "host and port requires tls",
];

/// Reports whether a web server's page says that its port is for TLS.
pub(crate) fn is_of_tls_port(page: &str) -> bool {
    let page = page.to_ascii_lowercase();
    TLS_PORT.iter().any(|mark| page.contains(mark))
}

/// Texts of web servers on the page for a client without a client certificate: nginx, and HAProxy and Caddy if they answer
/// at all. Others end the handshake.
const CLIENT_CERTIFICATE: [&str; 3] = [
    "no required ssl certificate was sent",
    "the ssl certificate error",
    "client certificate required",
];

/// Reports whether a web server's page asks for the certificate of a client.
pub(crate) fn wants_client_certificate(page: &str) -> bool {
    let page = page.to_ascii_lowercase();
    CLIENT_CERTIFICATE.iter().any(|mark| page.contains(mark))
}

/// Reports whether an answer of status 403 is Envoy's, for a request that policies of a service mesh keep out (Istio's
/// authorization policies, Cilium's network policies).
pub(crate) fn is_mesh_denial(page: &str, server: Option<&str>) -> bool {
    match page.trim_end() {
        "RBAC: access denied" => true,
        // Other servers have this page, too.
        "Access denied" => server.is_some_and(|name| name.ends_with("envoy")),
        _ => false,
    }
}

/// Reports whether a page itself says what its server wants, so that no folder is to blame.
pub(crate) fn tells_itself(page: &str) -> bool {
    is_of_tls_port(page) || wants_client_certificate(page)
}

/// Reports whether a page is HAProxy's own (503), for when its checks have called every server behind it down.
pub(crate) fn lacks_healthy_server(page: &str) -> bool {
    page.to_ascii_lowercase().contains("no server is available to handle this request")
}

/// Returns the symptom that a message describes.
pub(crate) fn symptom(said: &str) -> Option<Symptom> {
    // Other programs change the case of letters from release to release.
    let text = said.to_ascii_lowercase();
    let find = |table: &[(&[&str], Symptom)], text: &str| {
        let says =
            |marks: &[&str]| marks.iter().any(|mark| text.contains(&mark.to_ascii_lowercase()));
        table.iter().find(|(marks, _)| says(marks)).map(|(_, symptom)| *symptom)
    };
    let lookup = text.split_once("lookup ").and_then(|(_, rest)| find(LOOKUP_MESSAGES, rest));
    let by_words =
        || [HTTP, KERNEL_MESSAGES, GO_MESSAGE_STARTS].iter().find_map(|table| find(table, &text));
    let symptom = lookup.or_else(|| symptom_of_status(&text)).or_else(by_words)?;
    // A redirect to https means that port 80 works (Boulder names no port there).
    let is_led = text.contains("fetching https://");
    Some(match symptom {
        Symptom::ConnectionRefused | Symptom::Unreachable if is_led => Symptom::TlsPortSilent,
        symptom => symptom,
    })
}

/// Returns the symptom of the status in Boulder's `Invalid response from URL: 526`; `None` if there is no status.
fn symptom_of_status(text: &str) -> Option<Symptom> {
    let (_, rest) = text.split_once("invalid response from ")?;
    let status: u16 = rest.rsplit(": ").next()?.split_whitespace().next()?.parse().ok()?;
    Some(match status {
        404 => Symptom::NotFound,
        401 | 403 => Symptom::Forbidden,
        400 => Symptom::BadRequest,
        402..=499 => Symptom::RequestRefused,
        500..=599 => Symptom::ServerError,
        _ => return None,
    })
}

/// Messages about TLS-ALPN-01 of Boulder and Pebble; tried before the messages for HTTP, which go by ports.
const TLS_ALPN: &[(&str, Symptom)] = &[
    ("cannot negotiate alpn protocol", Symptom::NoTls),
    ("did not negotiate the alpn protocol", Symptom::NoTls),
    ("incorrect validation certificate", Symptom::WrongAnswer),
    ("received certificate", Symptom::WrongAnswer),
];

/// Returns the symptom that a message about TLS-ALPN-01 describes.
pub(crate) fn symptom_of_tls_alpn(said: &str) -> Option<Symptom> {
    let text = said.to_ascii_lowercase();
    let own = TLS_ALPN.iter().find(|(mark, _)| text.contains(mark)).map(|(_, symptom)| *symptom);
    own.or_else(|| symptom(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_for_tls_says_so_on_its_page() {
        // As nginx 1.22, Caddy 2.6 (Go), Apache httpd 2.4 and Tomcat write it.
        for page in [
            "<center><h1>400 Bad Request</h1></center><center>The plain HTTP request was sent to HTTPS port</center>",
            "Client sent an HTTP request to an HTTPS server.\n",
            "<p>Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
            "Bad Request\r\nThis combination of host and port requires TLS.\r\n",
        ] {
            assert!(is_of_tls_port(page), "{page}");
        }
        for page in ["<h1>400 Bad Request</h1>", "see our HTTPS page", "TLS required for mail"] {
            assert!(!is_of_tls_port(page), "{page}");
        }
    }

    #[test]
    fn a_page_tells_what_its_server_wants() {
        let nginx = "<center><h1>400 Bad Request</h1></center><center>No required SSL certificate was sent</center>";
        assert!(wants_client_certificate(nginx) && !wants_client_certificate("400 Bad Request"));
        let haproxy = "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>";
        assert!(is_mesh_denial("Access denied\r\n", Some("envoy")));
        assert!(!is_mesh_denial("Access denied\r\n", Some("nginx")));
        assert!(!is_mesh_denial("<h1>Access denied</h1>", Some("envoy")));
        assert!(lacks_healthy_server(haproxy) && !lacks_healthy_server("503 Service Unavailable"));
    }

    /// Texts of the kernel that connect(2) can bring, as Go prints them on Linux, and the symptom that each shows.
    const CONNECT: &[(&str, Symptom)] = &[
        ("connection refused", Symptom::ConnectionRefused),
        ("connection timed out", Symptom::Unreachable),
        ("network is unreachable", Symptom::Unreachable),
        ("network is down", Symptom::Unreachable),
        ("no route to host", Symptom::Unreachable),
        ("host is down", Symptom::Unreachable),
        ("permission denied", Symptom::Unreachable),
        ("operation not permitted", Symptom::Unreachable),
        ("cannot assign requested address", Symptom::Unreachable),
        ("address family not supported by protocol", Symptom::Unreachable),
        ("i/o timeout", Symptom::Unreachable),
        ("operation was canceled", Symptom::Unreachable),
        ("a text that nobody has seen", Symptom::Unreachable),
    ];
    /// Texts that read(2) and write(2) can bring.
    const ENDED: [&str; 6] = [
        "connection reset by peer",
        "broken pipe",
        "software caused connection abort",
        "transport endpoint is not connected",
        "use of closed network connection",
        "a text that nobody has seen",
    ];
    /// Messages of net/http itself, and the symptom that each shows.
    const TRANSPORT: &[(&str, Symptom)] = &[
        ("EOF", Symptom::HungUp),
        ("unexpected EOF", Symptom::HungUp),
        ("http: server closed idle connection", Symptom::HungUp),
        ("net/http: HTTP/1.x transport connection broken: unexpected EOF", Symptom::HungUp),
        (
            "net/http: HTTP/1.x transport connection broken: malformed HTTP response \"\\x15\\x03\"",
            Symptom::NotHttp,
        ),
        ("net/http: abort Handler", Symptom::HungUp),
        ("http2: server sent GOAWAY and closed the connection", Symptom::HungUp),
        ("net/http: timeout awaiting response headers", Symptom::NoReply),
        ("net/http: TLS handshake timeout", Symptom::NoReply),
        ("http: server gave HTTP response to HTTPS client", Symptom::NoTls),
        (
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            Symptom::Unreachable,
        ),
    ];
    /// Messages of the resolver, and the symptom that each shows.
    const RESOLVER: &[(&str, Symptom)] = &[
        ("no such host", Symptom::NoAddress),
        ("server misbehaving", Symptom::NameServersFail),
        ("i/o timeout", Symptom::ResolverSilent),
        ("Temporary failure in name resolution", Symptom::ResolverSilent),
    ];

    #[track_caller]
    fn check(said: &str, expected: Symptom) {
        let get = format!("Get \"http://www.example.com/.well-known/acme-challenge/t\": {said}");
        for said in [get.clone(), get.to_ascii_uppercase()] {
            assert_eq!(symptom(&said), Some(expected), "{said}");
        }
    }

    #[test]
    fn what_go_and_the_kernel_say_of_a_connection_is_known_by_its_shape() {
        for (text, expected) in CONNECT {
            for address in ["192.0.2.1:80", "[2001:db8::1]:80"] {
                check(&format!("dial tcp {address}: connect: {text}"), *expected);
            }
        }
        for text in ENDED {
            for call in ["read", "write"] {
                let said = format!("{call} tcp 10.0.0.1:40000->192.0.2.1:80: {call}: {text}");
                check(&said, Symptom::HungUp);
            }
        }
        for (text, expected) in TRANSPORT {
            check(text, *expected);
        }
        for (text, expected) in RESOLVER {
            check(&format!("dial tcp: lookup www.example.com on 10.96.0.10:53: {text}"), *expected);
        }
    }
}
