//! CAA records (RFC 8659): who may issue for a name.

use hickory_resolver::proto::rr::rdata::CAA;

/// Bits of the flags that make a property critical: that of RFC 8659 §4.1, and the lowest, which many write for it.
const CRITICAL: [u8; 2] = [0x80, 0x01];

/// One property of a CAA record set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaaRecord {
    /// Whether a CA that does not know the tag must not issue.
    pub is_critical: bool,
    /// What it is about, in lower case: `issue`, `issuewild`, `iodef` and others.
    pub tag: String,
    /// What it says, as it stands there.
    pub value: String,
}

impl CaaRecord {
    /// Makes a property from the flags, the tag and the value of a record.
    pub fn new(flags: u8, tag: &str, value: &str) -> Self {
        let is_critical = CRITICAL.iter().any(|bit| flags & bit != 0);
        Self { is_critical, tag: tag.to_ascii_lowercase(), value: value.to_owned() }
    }
}

impl From<&CAA> for CaaRecord {
    fn from(record: &CAA) -> Self {
        let flags = if record.issuer_critical { CRITICAL[0] } else { 0 } | record.reserved_flags;
        Self::new(flags, &record.tag, &String::from_utf8_lossy(&record.value))
    }
}
