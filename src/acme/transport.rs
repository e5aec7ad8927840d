//! Connection to a CA: trusted certificates, limits of time and size, and faults.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, RequestBuilder};
use url::Url;

use super::bundle;
use super::error::{AcmeError, Fault};
use crate::http::client::{self, Resolver};
use crate::http::exchange::{Reply, Transport, Unanswered, chain, is_untrusted};
use crate::model::names::is_loopback;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a request without a whole answer is given up.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);

/// Largest JSON answer read, in bytes.
pub(super) const JSON_LIMIT: usize = 1 << 20;
/// Largest chain read, in bytes.
pub(super) const CHAIN_LIMIT: usize = 5 << 20;

/// Trust in the server at the CA's end of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TlsOptions {
    /// PEM certificates that replace the system's roots; none means the system's.
    pub ca_bundle: Vec<u8>,
    /// Takes any certificate (`skipTLSVerify`).
    pub skip_verify: bool,
}

/// Builds the HTTP client for a server: HTTP/2 if offered, proxies from the environment, no redirects.
/// Requests to loopback never use a proxy, as with cert-manager.
pub(super) fn client(
    server: &Url,
    tls: &TlsOptions,
    resolver: Option<&Resolver>,
) -> Result<Client, AcmeError> {
    let refused = |why: String| AcmeError::Transport {
        deed: "trust",
        url: server.to_string(),
        why,
        fault: Fault::Untrusted,
    };
    let resolver = resolver.map(Arc::clone);
    let builder =
        client::named(server, is_loopback(server), (CONNECT_TIMEOUT, REQUEST_TIMEOUT), resolver);
    let config = (!tls.ca_bundle.is_empty()).then(|| bundle::client_config(&tls.ca_bundle));
    let builder = match config.transpose().map_err(refused)? {
        Some(config) if !tls.skip_verify => builder.tls_backend_preconfigured(config),
        Some(_) | None => builder.tls_danger_accept_invalid_certs(tls.skip_verify),
    };
    builder.build().map_err(|e| refused(chain(&e)))
}

/// Sends a request and reads the answer, at most `limit` bytes.
pub(super) async fn exchange(
    carrier: &dyn Transport,
    (request, deed): (RequestBuilder, &'static str),
    url: &str,
    limit: usize,
) -> Result<Reply, AcmeError> {
    let url = url.to_owned();
    let (why, fault) = match carrier.carry(request, limit).await {
        Ok(reply) => return Ok(reply),
        Err(Unanswered::TooLarge) => {
            let why = format!("it is larger than {} MiB", limit >> 20);
            return Err(AcmeError::Protocol { url, why });
        }
        Err(Unanswered::NotConnected) => {
            (format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()), Fault::Passing)
        }
        Err(Unanswered::TimedOut) => {
            (format!("no answer within {} s", REQUEST_TIMEOUT.as_secs()), Fault::Passing)
        }
        Err(Unanswered::Broken(error)) => {
            let why = chain(&error);
            let fault = sort(&error, &why);
            (if why.contains(LOOKUP) { no_address(&why, fault, &url) } else { why }, fault)
        }
    };
    Err(AcmeError::Transport { deed, url, why, fault })
}

/// Start of the standard library's message if the system's resolver gives no address.
const LOOKUP: &str = "failed to lookup address information: ";

/// Describes the failed lookup of the host of a URL by the system's resolver, in the words of our own resolver.
fn no_address(why: &str, fault: Fault, url: &str) -> String {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or("the CA");
    if fault == Fault::NoSuchHost {
        return format!("no such host {host}");
    }
    let said = why.split_once(LOOKUP).map_or(why, |(_, said)| said);
    format!("cannot look up {host}: {said}")
}

fn sort(error: &(dyn Error + 'static), why: &str) -> Fault {
    if is_untrusted(error) {
        return Fault::Untrusted;
    }
    // The resolver's answers come as text only: glibc, musl, macOS, Windows, and ours.
    let no_such_host = [
        "Name or service not known",
        "No address associated with hostname",
        "Name does not resolve",
        "Name has no usable address",
        "nodename nor servname provided",
        "No such host is known",
        "no such host ",
        "has neither an A nor an AAAA record",
    ];
    if no_such_host.iter().any(|text| why.contains(text)) {
        return Fault::NoSuchHost;
    }
    if why.contains(LOOKUP) { Fault::Lookup } else { Fault::Passing }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_missing_host_is_told_from_one_that_may_come_back() {
        for (text, fault) in [
            (
                "dns error: failed to lookup address information: Name or service not known",
                Fault::NoSuchHost,
            ),
            (
                "dns error: failed to lookup address information: Temporary failure in name resolution",
                Fault::Lookup,
            ),
            ("tcp connect error: Connection refused", Fault::Passing),
        ] {
            let error = io::Error::other(text);
            assert_eq!(sort(&error, &chain(&error)), fault, "{text}");
        }
    }

    #[test]
    fn what_the_systems_resolver_says_names_the_host_as_ours_does() {
        for (said, fault, expected) in [
            ("Name or service not known", Fault::NoSuchHost, "no such host ca.example"),
            (
                "Temporary failure in name resolution",
                Fault::Lookup,
                "cannot look up ca.example: Temporary failure in name resolution",
            ),
        ] {
            let why = format!("{LOOKUP}{said}");
            assert_eq!(no_address(&why, fault, "https://ca.example:14000/dir"), expected);
        }
    }

    #[test]
    fn a_bundle_without_certificates_is_refused() {
        let server = Url::parse("https://ca.example/directory").unwrap();
        for bundle in
            ["no certificate", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"]
        {
            let tls = TlsOptions { ca_bundle: bundle.as_bytes().to_vec(), skip_verify: false };
            let error = client(&server, &tls, None).unwrap_err().to_string();
            assert!(error.contains("caBundle"), "{error}");
        }
    }
}
