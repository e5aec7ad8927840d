//! Names, parsed once and valid ever after.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::{Host, Url};

/// ALPN protocol by which a CA asks for the answer to TLS-ALPN-01 (RFC 8737 §6.2).
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// Namespace and name of an object; the namespace of a cluster-scoped object is empty.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct ObjectName {
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// Name within the namespace.
    pub name: String,
}

impl ObjectName {
    /// Makes the name of an object in a namespace.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{}", self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// Returns a domain of an authorization as people write it: a wildcard with `*.`, which RFC 8555 §7.1.4 leaves out.
pub fn shown_domain(domain: &str, is_wildcard: bool) -> String {
    if is_wildcard { format!("*.{domain}") } else { domain.to_owned() }
}

/// Text that is no name of the requested kind, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a valid {what}: {why}")]
pub struct InvalidName {
    text: String,
    what: &'static str,
    why: &'static str,
}

/// A DNS name as it stands in certificates: lower-case A-labels without the final dot, at most one leading `*.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsName(String);

impl DnsName {
    /// Parses a name as a person writes it: upper case, a final dot and U-labels are accepted and normalised.
    ///
    /// # Errors
    /// Fails when the text is empty, too long, or has a label that no CA accepts (RFC 1123 §2.1).
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let invalid = |why| InvalidName { text: text.to_owned(), what: "DNS name", why };
        let trimmed = text.strip_suffix('.').unwrap_or(text);
        let (star, base) = match trimmed.strip_prefix("*.") {
            Some(base) => ("*.", base),
            None => ("", trimmed),
        };
        if base.is_empty() {
            return Err(invalid("it is empty"));
        }
        let ascii = if base.is_ascii() {
            base.to_ascii_lowercase()
        } else {
            match Host::parse(base) {
                Ok(Host::Domain(domain)) => domain,
                Ok(Host::Ipv4(_) | Host::Ipv6(_)) | Err(_) => {
                    return Err(invalid("it has no ASCII form (IDNA)"));
                }
            }
        };
        if star.len() + ascii.len() > 253 {
            return Err(invalid("it is longer than 253 characters"));
        }
        let last = ascii.rsplit('.').next().unwrap_or_default();
        if !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()) {
            // A program would take such a name for an IPv4 address (RFC 1123 §2.1).
            return Err(invalid("its last label is a number, and it is no IP address"));
        }
        for label in ascii.split('.') {
            if label.is_empty() {
                return Err(invalid("it has an empty label"));
            }
            if label.len() > 63 {
                return Err(invalid("a label is longer than 63 characters"));
            }
            if label.starts_with('-') || label.ends_with('-') {
                return Err(invalid("a label starts or ends with '-'"));
            }
            if !label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
                return Err(invalid("only letters, digits, '-' and '.' are allowed"));
            }
        }
        Ok(Self(format!("{star}{ascii}")))
    }

    /// Returns the name as text, `*.` included.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reports whether the name starts with `*.`.
    pub fn is_wildcard(&self) -> bool {
        self.0.starts_with("*.")
    }

    /// Returns the name without `*.`.
    pub fn base(&self) -> &str {
        self.0.strip_prefix("*.").unwrap_or(&self.0)
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for DnsName {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text)
    }
}

impl Serialize for DnsName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for DnsName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Name in a certificate (RFC 8555 §9.7.7, RFC 8738): a DNS name or an IP address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identifier {
    /// Type `dns`.
    Dns(DnsName),
    /// Type `ip`.
    Ip(IpAddr),
}

impl Identifier {
    /// Parses an IP address, else a DNS name.
    ///
    /// # Errors
    /// Fails when the text is neither.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Self::Ip(address)),
            Err(_) => DnsName::parse(text).map(Self::Dns),
        }
    }

    /// Returns the server name of a CA's TLS handshake: the name, or an address's reverse name (RFC 8737 §3, RFC 8738 §6).
    pub fn server_name(&self) -> String {
        match self {
            Self::Dns(name) => name.base().to_owned(),
            Self::Ip(IpAddr::V4(address)) => {
                let [a, b, c, d] = address.octets();
                format!("{d}.{c}.{b}.{a}.in-addr.arpa")
            }
            Self::Ip(IpAddr::V6(address)) => {
                let nibbles = address.octets().into_iter().rev();
                let nibbles = nibbles.map(|byte| format!("{:x}.{:x}.", byte & 15, byte >> 4));
                format!("{}ip6.arpa", nibbles.collect::<String>())
            }
        }
    }

    /// Returns the identifier type on the wire: `dns` or `ip`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Dns(_) => "dns",
            Self::Ip(_) => "ip",
        }
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => name.fmt(f),
            Self::Ip(address) => address.fmt(f),
        }
    }
}

/// Returns the host in a user's text that should be a name, if the text has more than a name: a URL, a port, brackets
/// of an IPv6 address, blanks around the name.
pub fn host_in(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let host = if trimmed.contains("://") {
        match Url::parse(trimmed).ok()?.host()? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        }
    } else {
        without_port(trimmed).to_owned()
    };
    (host != text && Identifier::parse(&host).is_ok()).then_some(host)
}

/// Cuts off a port, and the brackets that separate the port from an IPv6 address.
fn without_port(text: &str) -> &str {
    if let Some((address, _)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match text.split_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => text,
    }
}

/// Reports whether a URL leads to this machine alone, so that no other host is on the way.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised_once() {
        for (text, expected) in [
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            ("*.Example.com", "*.example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("_acme.example.com", "_acme.example.com"),
        ] {
            assert_eq!(DnsName::parse(text).map(|n| n.to_string()).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_is_no_name_is_refused_with_the_reason() {
        for text in
            ["", ".", "a..b", "-a.example", "a-.example", "a b.example", "*.*.example", "host:80"]
        {
            assert!(DnsName::parse(text).is_err(), "{text}");
        }
        for text in ["999.1.1.1", "1.2.3", "www.example.0", "*.1"] {
            let why = DnsName::parse(text).map_err(|error| error.why);
            assert_eq!(why, Err("its last label is a number, and it is no IP address"), "{text}");
        }
        let longest = format!("{}abcd.example", "abcdefgh.".repeat(26) + "abcdef.");
        assert_eq!(longest.len(), 253);
        assert!(DnsName::parse(&longest).is_ok());
        assert!(DnsName::parse(&format!("*.{longest}")).is_err(), "the star counts");
        let long = format!("{}.example", "a".repeat(64));
        assert_eq!(
            DnsName::parse(&long).map_err(|e| e.why),
            Err("a label is longer than 63 characters")
        );
    }

    #[test]
    fn an_address_is_asked_for_by_its_reverse_name() {
        for (text, expected) in [
            ("www.example.com", "www.example.com"),
            ("192.0.2.1", "1.2.0.192.in-addr.arpa"),
            (
                "2001:db8::a",
                "a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
            ),
        ] {
            assert_eq!(Identifier::parse(text).unwrap().server_name(), expected);
        }
    }

    #[test]
    fn an_address_is_an_address() {
        assert_eq!(Identifier::parse("::1").map(|i| i.type_name()), Ok("ip"));
        assert_eq!(Identifier::parse("a.example").map(|i| i.type_name()), Ok("dns"));
    }

    #[test]
    fn the_host_is_found_in_what_is_no_name() {
        for (text, host) in [
            ("http://www.example.com/", Some("www.example.com")),
            ("https://www.example.com:8443/path?query", Some("www.example.com")),
            ("www.example.com:443", Some("www.example.com")),
            (" www.example.com\n", Some("www.example.com")),
            ("http://192.0.2.1/", Some("192.0.2.1")),
            ("http://[2001:db8::1]:80/", Some("2001:db8::1")),
            ("[2001:db8::1]", Some("2001:db8::1")),
            ("[::1]:443", Some("::1")),
            ("https://m\u{fc}nchen.example", Some("xn--mnchen-3ya.example")),
            ("www.example.com", None),
            ("::1", None),
            ("certificate/web", None),
            ("a b.example", None),
            ("https://", None),
        ] {
            assert_eq!(host_in(text).as_deref(), host, "{text}");
        }
    }

    #[test]
    fn loopback_is_told_from_the_world() {
        for (url, loopback) in [
            ("https://localhost:14000/dir", true),
            ("http://127.0.0.2/", true),
            ("http://[::1]:80/", true),
            ("https://ca.example/", false),
            ("https://10.0.0.1/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), loopback, "{url}");
        }
    }
}
