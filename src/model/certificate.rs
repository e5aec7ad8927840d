//! Certificate: the user's wish for a certificate.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::common::{Condition, Duration, IssuerRef, Other, Time, is_false, is_true};
use super::keystore::Keystores;
use super::metadata::Resource;
use super::names::DnsName;
use super::renewal_info::CertificateAcmeStatus;

/// `cert-manager.io/v1` Certificate.
pub type Certificate = Resource<CertificateSpec, CertificateStatus>;

impl Certificate {
    /// Reports whether an issuance is under way: the condition `Issuing` is true.
    pub fn is_being_issued(&self) -> bool {
        is_true(&self.status.conditions, "Issuing")
    }
}

/// Spec of a Certificate: what the user wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// Subject; exclusive with `literalSubject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// Subject as text (RFC 4514).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub literal_subject: String,
    /// Common name, at most 64 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub common_name: String,
    /// Asked-for life time; 90 days when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// Time between renewal and expiry; a third of the life time when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_before: Option<Duration>,
    /// Time between renewal and expiry, as a percentage of the life time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_before_percentage: Option<i32>,
    /// Renewal policy and windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal: Option<Renewal>,
    /// DNS names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns_names: Vec<String>,
    /// IP addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<String>,
    /// URIs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uris: Vec<String>,
    /// Other names by OID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_names: Vec<OtherName>,
    /// E-mail addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email_addresses: Vec<String>,
    /// Secret that receives key and certificate.
    pub secret_name: String,
    /// Labels and annotations for that Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_template: Option<SecretTemplate>,
    /// Keystores beside the PEM files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keystores: Option<Keystores>,
    /// Issuer.
    pub issuer_ref: IssuerRef,
    /// Whether a CA certificate is wanted.
    #[serde(default, rename = "isCA", skip_serializing_if = "is_false")]
    pub is_ca: bool,
    /// Key usages; digital signature and key encipherment when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usages: Option<Vec<String>>,
    /// The key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key: Option<PrivateKey>,
    /// Signature algorithm of the signing request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature_algorithm: String,
    /// Whether usages stand in the signing request; yes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encode_usages_in_request: Option<bool>,
    /// Number of CertificateRequests that are kept; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// Additional forms in the Secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_output_formats: Vec<serde_json::Value>,
    /// Name constraints of a CA certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_constraints: Option<NameConstraints>,
}

/// Names that a CA certificate may sign (RFC 5280 §4.2.1.10).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameConstraints {
    /// Whether software that does not know the extension has to refuse the certificate.
    #[serde(skip_serializing_if = "is_false")]
    pub critical: bool,
    /// Names that the CA may sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permitted: Option<ConstrainedNames>,
    /// Names that the CA may not sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded: Option<ConstrainedNames>,
}

/// Names of one half of name constraints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConstrainedNames {
    /// DNS domains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns_domains: Vec<String>,
    /// IP addresses, as networks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ip_ranges: Vec<String>,
    /// E-mail addresses, and domains of e-mail addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub email_addresses: Vec<String>,
    /// Domains of URIs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uri_domains: Vec<String>,
}

/// Encodes an IP network as a name constraint does: the address, its bits beyond the mask cleared, and the mask; `None`
/// if the text is no network.
pub fn network(text: &str) -> Option<Vec<u8>> {
    let (address, length) = text.split_once('/')?;
    let address = match address.parse().ok()? {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let length = Some(length).filter(|length| length.bytes().all(|byte| byte.is_ascii_digit()))?;
    let length = length.parse::<usize>().ok().filter(|length| *length <= address.len() * 8)?;
    let mask = |index: usize| {
        let bits = length.saturating_sub(index * 8).min(8);
        u8::try_from(0xff00_u16 >> bits & 0xff).unwrap_or(u8::MAX)
    };
    let mask: Vec<u8> = (0..address.len()).map(mask).collect();
    let masked = address.iter().zip(&mask).map(|(byte, mask)| byte & mask);
    Some(masked.chain(mask.iter().copied()).collect())
}

/// Subject of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subject {
    /// O.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub organizations: Vec<String>,
    /// C.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub countries: Vec<String>,
    /// OU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub organizational_units: Vec<String>,
    /// L.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub localities: Vec<String>,
    /// ST.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provinces: Vec<String>,
    /// street.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub street_addresses: Vec<String>,
    /// postalCode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub postal_codes: Vec<String>,
    /// serialNumber.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
}

/// Names of a certificate or a signing request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// Common name of the subject, empty when absent.
    pub common_name: String,
    /// The subject without its common name.
    pub subject: Subject,
    /// DNS names, in their order, wildcards included.
    pub dns_names: Vec<String>,
    /// IP addresses.
    pub ip_addresses: Vec<IpAddr>,
    /// URIs.
    pub uris: Vec<String>,
    /// E-mail addresses.
    pub email_addresses: Vec<String>,
}

impl Names {
    /// Returns the IP addresses as texts.
    pub fn addresses(&self) -> Vec<String> {
        self.ip_addresses.iter().map(ToString::to_string).collect()
    }

    /// Returns DNS names and IP addresses, the identifiers that a CA validates.
    pub fn identifiers(&self) -> Vec<String> {
        self.dns_names.iter().cloned().chain(self.addresses()).collect()
    }
}

/// Text about a common name that is not listed, to follow the name.
pub const STRAY_COMMON_NAME: &str =
    "is none of dnsNames and ipAddresses, and an ACME CA certifies no other";
/// Advice about a common name that is not listed.
pub const LIST_COMMON_NAME: &str =
    "write it under dnsNames, too, if it is a name to be certified; else leave commonName out";

/// Reports whether a common name is empty, or among names and addresses regardless of case.
pub fn is_listed(common_name: &str, names: &[String], addresses: &[String]) -> bool {
    let same = |name: &str| match (DnsName::parse(name), DnsName::parse(common_name)) {
        (Ok(name), Ok(wanted)) => name == wanted,
        _ => false,
    };
    let address = common_name.parse::<IpAddr>();
    common_name.is_empty()
        || names.iter().any(|name| name == common_name || same(name))
        || address.is_ok_and(|wanted| addresses.iter().any(|a| a.parse() == Ok(wanted)))
}

/// Renewal policy and windows (cert-manager 1.21).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Renewal {
    /// `RenewBefore` or `Disabled`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// Windows in which renewals may happen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<RenewalWindow>,
}

/// One renewal window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewalWindow {
    /// Times at which the window opens, as a cron expression.
    pub cron: String,
    /// Time that the window stays open.
    pub window_duration: Duration,
    /// IANA time zone; UTC when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timezone: String,
}

/// A name by OID.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherName {
    /// Object identifier.
    #[serde(default)]
    pub oid: String,
    /// Value.
    #[serde(default, rename = "utf8Value")]
    pub utf8_value: String,
}

/// Returns the numbers of an object identifier as encoded, the first two in one (X.690 §8.19.4); `None` if the text is
/// no object identifier, or a number does not fit into 64 bits.
pub fn subidentifiers(dotted: &str) -> Option<Vec<u64>> {
    let is_number = |arc: &str| arc.bytes().all(|digit| digit.is_ascii_digit());
    let number = |arc: &str| is_number(arc).then(|| arc.parse::<u64>().ok()).flatten();
    let arcs: Vec<u64> = dotted.split('.').map(number).collect::<Option<_>>()?;
    let [first, second, rest @ ..] = arcs.as_slice() else { return None };
    if *first > 2 || (*first < 2 && *second > 39) {
        return None;
    }
    let both = (first * 40).checked_add(*second)?;
    Some(std::iter::once(both).chain(rest.iter().copied()).collect())
}

/// Labels and annotations of the Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretTemplate {
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Private key that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrivateKey {
    /// `Always` (default) or `Never`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rotation_policy: String,
    /// `PKCS1` (default) or `PKCS8`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub encoding: String,
    /// `RSA` (default), `ECDSA` or `Ed25519`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub algorithm: String,
    /// Bits; RSA 2048 and ECDSA 256 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
}

/// Kind and size of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyAlgorithm {
    /// RSA with a modulus of the given number of bits.
    Rsa(u32),
    /// ECDSA on P-256, P-384 or P-521.
    Ecdsa(u32),
    /// Ed25519.
    Ed25519,
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa(bits) => write!(f, "RSA {bits}"),
            Self::Ecdsa(bits) => write!(f, "ECDSA P-{bits}"),
            Self::Ed25519 => f.write_str("Ed25519"),
        }
    }
}

/// Status of a Certificate: the progress so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    /// `Ready` and `Issuing`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Time at which the last issuance failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure_time: Option<Time>,
    /// Start of the certificate in the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// End of the certificate in the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
    /// Time at which the certificate will be renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal_time: Option<Time>,
    /// Number of the current issuance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Secret that holds the key of the running issuance.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_private_key_secret_name: String,
    /// Failures in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_issuance_attempts: Option<i64>,
    /// Statements of the CA about the renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acme: Option<CertificateAcmeStatus>,
    /// Fields that this program does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Condition: whether the Secret holds what the spec asks for.
pub const READY: &str = "Ready";

/// Condition: whether a certificate is being issued.
pub const ISSUING: &str = "Issuing";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_and_a_mask() {
        for (text, expected) in [
            ("10.1.2.3/8", Some(&[10, 0, 0, 0, 255, 0, 0, 0][..])),
            ("192.0.2.129/25", Some(&[192, 0, 2, 128, 255, 255, 255, 128])),
            ("0.0.0.0/0", Some(&[0; 8])),
            ("192.0.2.1", None),
            ("192.0.2.1/33", None),
            ("192.0.2.1/+8", None),
            ("host/8", None),
        ] {
            assert_eq!(network(text).as_deref(), expected, "{text}");
        }
        assert_eq!(network("2001:db8::1/32").map(|bytes| bytes.len()), Some(32));
    }
}
