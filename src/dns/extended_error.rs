//! Why a server has no better answer, as it says beside the code (RFC 8914).

/// The EDNS option that holds it (§2).
pub(super) const OPTION: u16 = 15;

/// Purposes by their numbers, as IANA's registry calls them. 0 says nothing.
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

/// What the number at the beginning of the option stands for. The server's own words behind it differ from look to look.
pub(super) fn purpose(option: &[u8]) -> Option<&'static str> {
    let number = u16::from_be_bytes(option.first_chunk().copied()?);
    PURPOSES.get(usize::from(number)).copied().filter(|purpose| !purpose.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purpose_is_told_by_its_number() {
        assert_eq!(purpose(&[0, 7]), Some("Signature Expired"));
        assert_eq!(purpose(b"\x00\x16at 192.0.2.1"), Some("No Reachable Authority"));
        assert_eq!(purpose(&[0, 30]), Some("Invalid Query Type"));
    }

    #[test]
    fn what_is_unknown_is_left_out() {
        for option in [&[][..], &[0], &[0, 0], &[0, 31], &[255, 255]] {
            assert_eq!(purpose(option), None, "{option:?}");
        }
    }
}
