//! Records of a CA's validation, as Boulder adds them to each challenge that was tried. A record that cannot be read
//! counts as absent, for no RFC defines such records.

use std::net::IpAddr;

use serde_json::Value;

use crate::model::text::shortened;
use crate::model::validation_record::ValidationRecord;

/// Most requests of a validation, and most addresses of a request.
const MAX_RECORDS: usize = 20;
/// Most characters that are kept of a URL or a name.
const MAX_TEXT_CHARS: usize = 1000;

/// Reads the member `validationRecord` of a challenge.
pub(super) fn read(value: Option<&Value>) -> Vec<ValidationRecord> {
    let all = value.and_then(Value::as_array).into_iter().flatten();
    all.map(record).take(MAX_RECORDS).collect()
}

fn record(value: &Value) -> ValidationRecord {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let addresses = |name: &str| -> Vec<IpAddr> {
        let all = value.get(name).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|address| address.as_str()?.parse().ok()).take(MAX_RECORDS).collect()
    };
    ValidationRecord {
        url: shortened(text("url"), MAX_TEXT_CHARS),
        hostname: shortened(text("hostname"), MAX_TEXT_CHARS),
        port: text("port").parse().ok(),
        resolved: addresses("addressesResolved"),
        tried: addresses("addressesTried"),
        used: text("addressUsed").parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_boulder_tells_of_a_look_is_read() {
        let records = json!([{
            "url": "http://a.example/x", "hostname": "a.example", "port": "80",
            "addressesResolved": ["2001:db8::1", "192.0.2.1"],
            "addressesTried": ["2001:db8::1"], "addressUsed": "192.0.2.1",
        }]);
        let all = read(Some(&records));
        let [record] = &all[..] else { panic!("one request: {all:?}") };
        assert_eq!((record.port, record.used), (Some(80), "192.0.2.1".parse().ok()));
        assert_eq!((record.resolved.len(), record.tried.len()), (2, 1));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let of_dns = json!([{"hostname": "a.example", "addressUsed": ""}]);
        assert_eq!(read(Some(&of_dns))[0].used, None);
        let odd = json!([{"port": 80, "addressesResolved": ["home", 7], "addressUsed": {}}, "x"]);
        assert!(read(Some(&odd)).iter().all(|record| *record == ValidationRecord::default()));
        assert_eq!(read(None), []);
        assert_eq!(read(Some(&json!("x"))), []);
    }
}
