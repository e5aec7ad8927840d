//! Extended DNS errors (RFC 8914): a name server's own reason, beside the response code, for having no better answer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Purposes by their numbers, as IANA's registry calls them; 0 has no meaning.
const PURPOSES: [&str; 31] = [
    "",
    "Unsupported DNSKEY Algorithm",
    "Unsupported DS Digest Type",
    "Stale Answer",
    "Forged Answer",
    "DNSSEC Indeterminate",
    "DNSSEC Bogus",
    "Signature Expired",
    "Signature Not Yet Valid",
    "DNSKEY Missing",
    "RRSIGs Missing",
    "No Zone Key Bit Set",
    "NSEC Missing",
    "Cached Error",
    "Not Ready",
    "Blocked",
    "Censored",
    "Filtered",
    "Prohibited",
    "Stale NXDOMAIN Answer",
    "Not Authoritative",
    "Not Supported",
    "No Reachable Authority",
    "Network Error",
    "Invalid Data",
    "Signature Expired before Valid",
    "Too Early",
    "Unsupported NSEC3 Iterations Value",
    "Unable to conform to policy",
    "Synthesized",
    "Invalid Query Type",
];

/// An extended DNS error that IANA's registry knows, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExtendedError(u16);

impl ExtendedError {
    /// Returns the error of the given number; `None` if the number is unknown, or has no meaning.
    pub fn of(number: u16) -> Option<Self> {
        PURPOSES.get(usize::from(number)).filter(|purpose| !purpose.is_empty())?;
        Some(Self(number))
    }

    /// Reports whether the error says that the answer fails DNSSEC (§4.7 to §4.13, and "Signature Expired before Valid").
    pub fn is_of_dnssec(self) -> bool {
        matches!(self.0, 6..=12 | 25)
    }
}

impl fmt::Display for ExtendedError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let purpose = PURPOSES.get(usize::from(self.0)).copied().unwrap_or_default();
        formatter.write_str(purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_by_its_number() {
        let purpose = |number| ExtendedError::of(number).map(|error| error.to_string());
        assert_eq!(purpose(7).as_deref(), Some("Signature Expired"));
        assert_eq!(purpose(30).as_deref(), Some("Invalid Query Type"));
        for unknown in [0, 31, u16::MAX] {
            assert_eq!(purpose(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn errors_of_dnssec_are_told_apart() {
        let of_dnssec = (0..=30).filter_map(ExtendedError::of).filter(|e| e.is_of_dnssec());
        let of_dnssec: Vec<String> = of_dnssec.map(|error| error.to_string()).collect();
        let expected = [
            "DNSSEC Bogus",
            "Signature Expired",
            "Signature Not Yet Valid",
            "DNSKEY Missing",
            "RRSIGs Missing",
            "No Zone Key Bit Set",
            "NSEC Missing",
            "Signature Expired before Valid",
        ];
        assert_eq!(of_dnssec, expected);
    }
}
