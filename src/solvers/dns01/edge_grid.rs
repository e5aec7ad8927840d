//! Akamai's EdgeGrid signature of requests.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use url::Position;

use super::api::Request;
use super::credential::Credential;

/// Most bytes of a body that are signed.
const MAX_SIGNED_BYTES: usize = 131_072;

/// Identity at Akamai.
#[derive(Clone, Debug)]
pub struct EdgeGrid {
    /// Client token.
    pub client_token: Credential,
    /// Client secret.
    pub client_secret: Credential,
    /// Access token.
    pub access_token: Credential,
}

impl EdgeGrid {
    /// Signs a request; the nonce must never have been used before.
    pub(super) fn sign(&self, request: &mut Request, nonce: &str, now: Timestamp) {
        let authorization = self.authorization(request, nonce, now, MAX_SIGNED_BYTES);
        *request = request.clone().secret_header(AUTHORIZATION, &authorization);
    }

    fn authorization(
        &self,
        request: &Request,
        nonce: &str,
        now: Timestamp,
        longest: usize,
    ) -> String {
        let moment = now.strftime("%Y%m%dT%H:%M:%S+0000").to_string();
        let unsigned = format!(
            "EG1-HMAC-SHA256 client_token={};access_token={};timestamp={moment};nonce={nonce};",
            self.client_token.expose(),
            self.access_token.expose(),
        );
        // Only the bodies of POSTs are signed.
        let hash = if request.method == Method::POST && !request.body.is_empty() {
            let body = &request.body[..request.body.len().min(longest)];
            STANDARD.encode(digest(&SHA256, body))
        } else {
            String::new()
        };
        let host = &request.url[Position::BeforeHost..Position::AfterPort];
        // The empty part is for signed headers, of which Akamai's DNS wants none.
        let to_sign = [
            request.method.as_str(),
            request.url.scheme(),
            host,
            &request.target(),
            "",
            &hash,
            &unsigned,
        ];
        let key = mac(self.client_secret.expose(), &moment);
        format!("{unsigned}signature={}", mac(&key, &to_sign.join("\t")))
    }
}

fn mac(key: &str, message: &str) -> String {
    let key = hmac::Key::new(HMAC_SHA256, key.as_bytes());
    STANDARD.encode(hmac::sign(&key, message.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::api::{Api, Connection};
    use super::*;

    /// Signs as Akamai's published test data do, and compares with their signature.
    fn check(method: Method, path: &str, body: &str, signature: &str) {
        let login = EdgeGrid {
            client_token: Credential::new("akab-client-token-xxx-xxxxxxxxxxxxxxxx"),
            client_secret: Credential::new("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx="),
            access_token: Credential::new("akab-access-token-xxx-xxxxxxxxxxxxxxxx"),
        };
        let base = "https://akaa-baseurl-xxxxxxxxxxx-xxxxxxxxxxxxx.luna.akamaiapis.net/";
        let api = Api::new(base, &Connection::hasty(), |_| None).unwrap();
        let mut request = api.request(method, path);
        request.body = body.as_bytes().to_vec();
        let nonce = "nonce-xx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
        let now = "2014-03-21T19:34:21Z".parse().unwrap();
        let expected = format!(
            "EG1-HMAC-SHA256 client_token=akab-client-token-xxx-xxxxxxxxxxxxxxxx;\
            access_token=akab-access-token-xxx-xxxxxxxxxxxxxxxx;timestamp=20140321T19:34:21+0000;\
            nonce={nonce};signature={signature}"
        );
        assert_eq!(login.authorization(&request, nonce, now, 2048), expected, "{path}");
        login.sign(&mut request, nonce, now);
        assert!(request.headers[AUTHORIZATION].is_sensitive());
    }

    #[test]
    fn signatures_equal_those_of_akamais_published_test_data() {
        let (get, post, put) = (Method::GET, Method::POST, Method::PUT);
        check(get.clone(), "/", "", "tL+y4hxyHxgWVD30X3pWnGKHcPzmrIF+LThiAOhMxYU=");
        let query = "/testapi/v1/t1?p1=1&p2=2";
        check(get, query, "", "hKDH1UlnQySSHjvIcZpDMbQHihTQ0XyVAKZaApabdeA=");
        let data = "datadatadatadatadatadatadatadata";
        let path = "/testapi/v1/t3";
        check(post.clone(), path, data, "hXm4iCxtpN22m4cbZb4lVLW5rhX8Ca82vCFqXzSTPe4=");
        let long = "d".repeat(2500);
        check(post.clone(), path, &long, "6Q6PiTipLae6n4GsSIDTCJ54bEbHUBp+4MUXrbQCBoY=");
        let long = "d".repeat(2048);
        check(post.clone(), path, &long, "6Q6PiTipLae6n4GsSIDTCJ54bEbHUBp+4MUXrbQCBoY=");
        let path = "/testapi/v1/t6";
        check(post, path, "", "1gEDxeQGD5GovIkJJGcBaKnZ+VaPtrc4qBUHixjsPCQ=");
        let data = "P".repeat(31);
        check(put, path, &data, "GNBWEYSEWOLtu+7dD52da2C39aX/Jchpon3K/AmBqBU=");
    }
}
