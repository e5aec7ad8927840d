//! Signature version 4 of AWS, and the keys that sign.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use jiff::{SignedDuration, Timestamp};
use url::{Position, Url};

use crate::model::text::hex;
use crate::solvers::dns01::api::Request;
use crate::solvers::dns01::credential::Credential;
use crate::solvers::dns01::text::encoded;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// Time before the end at which temporary keys are given up.
const KEYS_EXPIRY_MARGIN: SignedDuration = SignedDuration::from_mins(5);

/// Signs a request to a service in that region: adds the moment, the session's token and the signature as headers.
pub(super) fn sign(
    request: &mut Request,
    keys: &Keys,
    region: &str,
    service: &str,
    now: Timestamp,
) {
    let moment = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let scope = format!("{}/{region}/{service}/aws4_request", now.strftime("%Y%m%d"));
    let (names, canonical) = canonical(request, keys, &moment);
    let to_sign = format!("{ALGORITHM}\n{moment}\n{scope}\n{}", hash(canonical.as_bytes()));
    let first = format!("AWS4{}", keys.secret.expose());
    let key = scope.split('/').fold(first.into_bytes(), |key, part| mac(&key, part.as_bytes()));
    let signature = hex(&mac(&key, to_sign.as_bytes()));
    let authorization = format!(
        "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        keys.id
    );
    let date = HeaderName::from_static("x-amz-date");
    let mut signed = request.clone().header(date, &moment);
    if let Some(session) = &keys.session {
        let token = HeaderName::from_static("x-amz-security-token");
        signed = signed.secret_header(token, session.expose());
    }
    *request = signed.secret_header(AUTHORIZATION, &authorization);
}

/// Returns the names of the signed headers, and the request in the form that is hashed.
fn canonical(request: &Request, keys: &Keys, moment: &str) -> (String, String) {
    let mut headers = BTreeMap::from([("host", host(&request.url)), ("x-amz-date", moment)]);
    headers.extend(keys.session.as_ref().map(|s| ("x-amz-security-token", s.expose())));
    let kind = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    headers.extend(kind.map(|kind| ("content-type", kind)));
    let names = headers.keys().copied().collect::<Vec<_>>().join(";");
    let lines: Vec<_> =
        headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let lines = lines.concat();
    // All services but S3 expect percent-encoded parts to be percent-encoded once more.
    let path = request.url.path().split('/').map(encoded).collect::<Vec<_>>().join("/");
    let mut pairs: Vec<_> =
        request.url.query_pairs().map(|(key, value)| (encoded(&key), encoded(&value))).collect();
    pairs.sort();
    let query = pairs.iter().map(|(key, value)| format!("{key}={value}"));
    let query = query.collect::<Vec<_>>().join("&");
    let (method, body) = (&request.method, hash(&request.body));
    let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body}");
    (names, canonical)
}

/// Returns host and port as the client will send them.
fn host(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
}

fn hash(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(HMAC_SHA256, key), message).as_ref().to_vec()
}

/// Keys that sign requests to AWS.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: Credential,
    /// Session token of temporary keys.
    pub(crate) session: Option<Credential>,
    /// End of temporary keys.
    pub(crate) expires: Option<Timestamp>,
}

impl Keys {
    pub(crate) fn are_good_at(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|end| end.duration_since(now) > KEYS_EXPIRY_MARGIN)
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::super::super::api::{Api, Connection};
    use super::super::super::credential::Credential;
    use super::*;

    /// Signs as AWS's published test suite does, and compares with its signature.
    fn check(request: Request, session: Option<&str>, headers: &str, expected: &str) {
        let keys = Keys {
            id: "AKIDEXAMPLE".to_owned(),
            secret: Credential::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session: session.map(Credential::new),
            expires: None,
        };
        let mut request = request;
        sign(&mut request, &keys, "us-east-1", "service", "2015-08-30T12:36:00Z".parse().unwrap());
        let scope = "20150830/us-east-1/service/aws4_request";
        let expected = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{scope}, SignedHeaders={headers}, Signature={expected}"
        );
        assert_eq!(request.headers[AUTHORIZATION], expected);
        assert!(request.headers[AUTHORIZATION].is_sensitive());
        assert_eq!(request.headers["x-amz-date"], "20150830T123600Z");
    }

    fn request(method: Method, path: &str) -> Request {
        let base = "https://example.amazonaws.com";
        Api::new(base, &Connection::hasty(), |_| None).unwrap().request(method, path)
    }

    #[test]
    fn signatures_equal_those_of_the_published_test_suite() {
        let plain = "host;x-amz-date";
        check(
            request(Method::GET, "/"),
            None,
            plain,
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        );
        check(
            request(Method::GET, "/?Param2=value2&Param1=value1"),
            None,
            plain,
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        );
        check(
            request(Method::POST, "/"),
            None,
            plain,
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        );
        check(
            request(Method::POST, "/").form(&[("Param1", "value1")]),
            None,
            "content-type;host;x-amz-date",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        );
        let token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
        check(
            request(Method::POST, "/"),
            Some(token),
            "host;x-amz-date;x-amz-security-token",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        );
    }

    #[test]
    fn what_is_in_per_cent_is_hashed_in_per_cent_twice() {
        let (_, canonical) = canonical(
            &request(Method::GET, "/a%2Fb/c?x=%20~&a="),
            &Keys {
                id: String::new(),
                secret: Credential::default(),
                session: None,
                expires: None,
            },
            "moment",
        );
        assert!(canonical.starts_with("GET\n/a%252Fb/c\na=&x=%20~\n"), "{canonical}");
    }
}
