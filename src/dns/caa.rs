//! CAA records as they come from the wire.

use hickory_resolver::proto::rr::rdata::CAA;

use crate::model::caa::CaaProperty;

/// The bit of the flags that RFC 8659 §4.1 calls critical.
const CRITICAL: u8 = 0x80;

/// Property in a record.
pub(super) fn property(record: &CAA) -> CaaProperty {
    let flags = if record.issuer_critical { CRITICAL } else { 0 } | record.reserved_flags;
    CaaProperty::new(flags, &record.tag, &String::from_utf8_lossy(&record.value))
}
