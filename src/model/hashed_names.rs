//! The hashed names of Orders and Challenges, byte for byte cert-manager's.
//!
//! Either program may find what the other made, so a name must not depend on the program that computed it.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use serde::Serialize;

use super::challenge::ChallengeSpec;
use super::common::Blob;
use super::order::OrderSpec;
use super::text::hex;

/// Longest part of the owner's name that an Order or Challenge name begins with, in bytes.
const PREFIX_LIMIT: usize = 52;
/// Longest Certificate name that a CertificateRequest name takes whole, in bytes.
const CERTIFICATE_NAME_LIMIT: usize = 233;
/// Longest part of a longer Certificate name that stands before its digest, in bytes.
const CERTIFICATE_PREFIX_LIMIT: usize = 168;

/// Names the Order of a CertificateRequest: equal for equal requests, whatever the key and the replaced certificate.
pub fn order_name(request_name: &str, spec: &OrderSpec) -> String {
    let (request, replaces) = (Blob::default(), String::new());
    let keyless = OrderSpec { request, replaces, ..spec.clone() };
    // Go writes a missing byte slice as null; the field comes first.
    let spec = go_json(&keyless).replacen(r#""request":"""#, r#""request":null"#, 1);
    if request_name.len() < PREFIX_LIMIT {
        return hashed_name(request_name, &spec);
    }
    let request = go_json(&request_name);
    hashed_name(request_name, &format!(r#"{{"certificateRequestName":{request},"spec":{spec}}}"#))
}

/// Names a Challenge of an Order: equal for equal authorization, token and solver.
pub fn challenge_name(order_name: &str, spec: &ChallengeSpec) -> String {
    let keyless = ChallengeSpec { key: String::new(), ..spec.clone() };
    hashed_name(order_name, &go_json(&keyless))
}

/// Names the CertificateRequest of one revision of a Certificate.
pub fn request_name(certificate_name: &str, revision: i64) -> String {
    if certificate_name.len() <= CERTIFICATE_NAME_LIMIT {
        return format!("{certificate_name}-{revision}");
    }
    let prefix = shorten(certificate_name, CERTIFICATE_PREFIX_LIMIT);
    let digest = hex(digest(&SHA256, certificate_name.as_bytes()).as_ref());
    format!("{prefix}-{digest}-{revision}")
}

/// Reports whether an object of the given owner may have the name: the owner's name, or as much of it as there is room
/// for, and a number.
pub fn is_named_after(name: &str, owner: &str) -> bool {
    let rest = name.strip_prefix(shorten(owner, PREFIX_LIMIT)).and_then(|r| r.strip_prefix('-'));
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Computes the label value that solver objects carry for a name or a token: Adler-32, decimal (RFC 1950 §8.2).
pub fn adler32(text: &str) -> String {
    const MODULUS: u32 = 65_521;
    let (a, b) = text.bytes().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(byte)) % MODULUS;
        (a, (b + a) % MODULUS)
    });
    ((b << 16) | a).to_string()
}

/// Cuts a name that reaches the limit to the limit, and back to its last letter or digit.
pub fn shorten(name: &str, limit: usize) -> &str {
    if name.len() < limit {
        return name;
    }
    let end = name.as_bytes()[..limit].iter().rposition(u8::is_ascii_alphanumeric);
    end.and_then(|last| name.get(..=last)).unwrap_or("")
}

fn hashed_name(prefix: &str, json: &str) -> String {
    format!("{}-{}", shorten(prefix, PREFIX_LIMIT), fnv1(json.as_bytes()))
}

/// Computes 32-bit FNV-1, which multiplies first, unlike FNV-1a.
pub(crate) fn fnv1(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0x811c_9dc5, |hash: u32, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte))
}

/// Serializes as Go's `encoding/json`, which also escapes characters that could end a script element in HTML.
fn go_json<T: Serialize>(value: &T) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    // Outside of strings none of these characters occurs in JSON.
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(character));
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    fn order(spec: Value) -> OrderSpec {
        let mut spec = spec;
        spec["request"] = "Q1NS".into();
        OrderSpec::deserialize(spec).unwrap()
    }

    fn challenge(spec: Value) -> ChallengeSpec {
        ChallengeSpec::deserialize(spec).unwrap()
    }

    #[test]
    fn a_name_leads_back_to_its_owner() {
        let long = "a".repeat(60);
        let cut = format!("{}-12", "a".repeat(52));
        for (name, owner, is) in [
            ("web-1-123", "web-1", true),
            ("web-1-123-456", "web-1", false),
            ("web-1-", "web-1", false),
            ("web-10-123", "web-1", false),
            ("web-1", "web-1", false),
            (&cut, &long, true),
        ] {
            assert_eq!(is_named_after(name, owner), is, "{name}");
        }
    }

    #[test]
    fn a_name_is_its_prefix_and_the_hash_of_the_json() {
        let of = |name: &str| {
            format!(r#"{{"commonName":"{name}","secretName":"","issuerRef":{{"name":""}}}}"#)
        };
        for (prefix, expected) in [
            ("unit.test.jetstack.io".to_owned(), "unit.test.jetstack.io-1683025094".to_owned()),
            ("a".repeat(58) + "b.jetstack.io", "a".repeat(52) + "-108802726"),
            ("a".repeat(51) + ".jetstack.io", "a".repeat(51) + "-225297437"),
            ("a".repeat(53) + ".jetstack.io", "a".repeat(52) + "-1448584771"),
        ] {
            assert_eq!(hashed_name(&prefix, &of(&prefix)), expected);
        }
    }

    #[test]
    fn orders_are_named_as_cert_manager_names_them() {
        let issuer = json!({"name": "test-issuer", "kind": "Issuer", "group": "cert-manager.io"});
        let cluster = json!({"name": "letsencrypt", "kind": "ClusterIssuer"});
        let long = "test-comparison-that-is-at-the-fifty-two-character-l";
        for (request, spec, expected) in [
            (
                "test-cr",
                json!({"issuerRef": issuer, "commonName": "example.com",
                       "dnsNames": ["example.com", "foo.com"]}),
                "test-cr-1733622556",
            ),
            (
                "test-cr",
                json!({"issuerRef": issuer, "commonName": "10.0.0.1", "ipAddresses": ["10.0.0.1"]}),
                "test-cr-3104426127",
            ),
            (
                "any",
                json!({"issuerRef": cluster, "dnsNames": ["example.com", "*.example.com"]}),
                "any-331944425",
            ),
            (
                "any",
                json!({"issuerRef": cluster, "dnsNames": ["example.com"], "duration": "2160h0m0s",
                       "profile": "shortlived"}),
                "any-907834670",
            ),
            (
                long,
                json!({"issuerRef": {"name": "i"}, "dnsNames": ["example.com"]}),
                &format!("{long}-3937811163"),
            ),
        ] {
            assert_eq!(order_name(request, &order(spec)), expected);
        }
    }

    #[test]
    fn challenges_are_named_as_cert_manager_names_them() {
        let of = |kind: &str, wildcard: bool, solver: Value| {
            json!({"url": "https://ca/chall/1", "authorizationURL": "https://ca/authz/1",
                   "dnsName": "example.com", "wildcard": wildcard, "type": kind, "token": "tok",
                   "key": "not hashed", "solver": solver,
                   "issuerRef": {"name": "letsencrypt", "kind": "ClusterIssuer"}})
        };
        let unit = json!({"url": "http://chalurl", "authorizationURL": "http://authzurl",
            "dnsName": "test.com", "wildcard": false, "type": "HTTP-01", "token": "token", "key": "",
            "solver": {"selector": {"dnsNames": ["test.com"]}, "http01": {"ingress": {}}},
            "issuerRef": {"name": "testissuer", "kind": "Issuer", "group": "cert-manager.io"}});
        for (order, spec, expected) in [
            ("testorder", unit, "testorder-2580184217"),
            (
                "any",
                of("DNS-01", true, json!({"dns01": {"rfc2136": {"nameserver": "10.0.0.1"}}})),
                "any-454644204",
            ),
            (
                "any",
                of("HTTP-01", false, json!({"http01": {"ingress": {"ingressClassName": "nginx"}}})),
                "any-1154258174",
            ),
        ] {
            assert_eq!(challenge_name(order, &challenge(spec)), expected);
        }
    }

    #[test]
    fn recorded_objects_have_the_names_we_compute() {
        #[derive(Deserialize)]
        struct Recorded {
            kind: String,
            name: String,
            prefix: String,
            spec: Value,
        }
        let text = include_str!("../../tests/fixtures/manifests/recorded-names.json");
        let recorded: Vec<Recorded> = serde_json::from_str(text).unwrap();
        assert_eq!(recorded.len(), 12);
        for object in recorded {
            let name = match object.kind.as_str() {
                "Order" => {
                    order_name(&object.prefix, &OrderSpec::deserialize(object.spec).unwrap())
                }
                _ => challenge_name(&object.prefix, &challenge(object.spec)),
            };
            assert_eq!(name, object.name);
        }
    }

    #[test]
    fn an_order_name_depends_on_the_wish_and_not_on_the_key() {
        let base = order(json!({"issuerRef": {"name": "i"}, "dnsNames": ["example.com"]}));
        let other_key = OrderSpec { request: Blob(b"another".to_vec()), ..base.clone() };
        let other_profile = OrderSpec { profile: "shortlived".into(), ..base.clone() };
        assert_eq!(order_name("web-1", &base), order_name("web-1", &other_key));
        assert_ne!(order_name("web-1", &base), order_name("web-1", &other_profile));
    }

    #[test]
    fn long_request_names_with_a_common_start_give_different_orders() {
        let spec = order(json!({"issuerRef": {"name": "i"}, "dnsNames": ["example.com"]}));
        let start = "r".repeat(52);
        assert_ne!(
            order_name(&format!("{start}-1"), &spec),
            order_name(&format!("{start}-2"), &spec)
        );
        let hash = |name: &str| order_name(name, &spec).rsplit('-').next().map(str::to_owned);
        assert_eq!(hash(&"r".repeat(51)), hash("short"), "51 characters: the spec alone is hashed");
        assert_ne!(hash(&"r".repeat(52)), hash("short"));
    }

    #[test]
    fn request_names_keep_certificate_names_of_233_characters() {
        let fits = "c".repeat(233);
        assert_eq!(request_name(&fits, 1), format!("{fits}-1"));
        let long = "c".repeat(167) + "." + &"d".repeat(66);
        let name = request_name(&long, 12);
        let digest =
            name.strip_prefix(&("c".repeat(167) + "-")).and_then(|n| n.strip_suffix("-12"));
        assert_eq!(
            digest,
            Some("4c6d3dd5397cfa842446d83c00b29a3b6e83212a241ed057821b7ac33039f133"),
            "{name}"
        );
    }

    #[test]
    fn names_are_cut_back_to_a_letter_or_digit() {
        for (name, limit, expected) in [
            ("aa-----aaaa", 5, "aa"),
            ("aa11111aaaa", 5, "aa111"),
            (".....", 3, ""),
            ("aa.....", 3, "aa"),
            ("a*aa.....", 3, "a*a"),
            ("a**aa.....", 3, "a"),
            ("..", 3, ".."),
        ] {
            assert_eq!(shorten(name, limit), expected, "{name}");
        }
    }

    #[test]
    fn labels_are_adler32_in_decimal() {
        for (text, expected) in [
            ("example.com", "446694490"),
            ("www.example.com", "810681837"),
            ("test.com", "244122414"),
            ("token", "108921378"),
        ] {
            assert_eq!(adler32(text), expected, "{text}");
        }
    }

    #[test]
    fn json_is_escaped_as_go_escapes_it() {
        assert_eq!(go_json(&"<a>&\u{2028}\u{2029}é\n"), r#""\u003ca\u003e\u0026\u2028\u2029é\n""#);
    }
}
