//! A client that signs by hand, so that a test can bend every part of a request.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256,
};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rcgen::CertificateParams;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::Bed;

/// A key that can sign requests.
pub(super) struct Key {
    pub(super) algorithm: &'static str,
    pair: Pair,
}

enum Pair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl Key {
    pub(super) fn generate(algorithm: &'static str) -> Self {
        let pair = match algorithm {
            "RS256" => Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()),
            "ES384" => Pair::Ec(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap()),
            "ES512" => Pair::Ec(EcdsaKeyPair::generate(&ECDSA_P521_SHA512_FIXED_SIGNING).unwrap()),
            _ => Pair::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()),
        };
        Self { algorithm, pair }
    }

    /// The P-256 key of a certificate, as one that signs requests.
    pub(super) fn of(key: &rcgen::KeyPair) -> Self {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.serialized_der()).unwrap();
        Self { algorithm: "ES256", pair: Pair::Ec(pair) }
    }

    pub(super) fn jwk(&self) -> Value {
        match &self.pair {
            Pair::Ec(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = point[1..].split_at(point.len() / 2);
                let curve = match self.algorithm {
                    "ES384" => "P-384",
                    "ES512" => "P-521",
                    _ => "P-256",
                };
                json!({ "kty": "EC", "crv": curve, "x": base64url(x), "y": base64url(y) })
            }
            Pair::Rsa(pair) => {
                let key = pair.public_key();
                let modulus = key.modulus().big_endian_without_leading_zero();
                let exponent = key.exponent().big_endian_without_leading_zero();
                json!({ "kty": "RSA", "n": base64url(modulus), "e": base64url(exponent) })
            }
        }
    }

    /// Signs a header and a payload as they are, good or bad.
    pub(super) fn sign(&self, header: &Value, payload: &str) -> Value {
        let (protected, payload) = (base64url(header.to_string()), base64url(payload));
        let message = format!("{protected}.{payload}");
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Ec(pair) => pair.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
        };
        json!({ "protected": protected, "payload": payload, "signature": base64url(signature) })
    }
}

/// Answer of the CA.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Where the link of that relation leads.
    pub(super) fn link(&self, relation: &str) -> String {
        let mut links = self.headers.get_all("link").iter().map(|value| value.to_str().unwrap());
        let suffix = format!(">;rel=\"{relation}\"");
        let link = links.find_map(|link| link.strip_prefix('<')?.strip_suffix(&suffix));
        link.unwrap().to_owned()
    }

    /// Status, error type and detail of a refusal.
    pub(super) fn refusal(&self) -> (u16, String, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{self:?}");
        let kind = problem["type"].as_str().unwrap();
        let kind = kind.strip_prefix("urn:ietf:params:acme:error:").unwrap().to_owned();
        (self.status, kind, problem["detail"].as_str().unwrap().to_owned())
    }
}

pub(super) struct Client<'a> {
    pub(super) bed: &'a Bed,
    pub(super) key: Key,
    /// Once registered.
    pub(super) account: Option<String>,
    pub(super) directory: Value,
}

impl<'a> Client<'a> {
    pub(super) async fn new(bed: &'a Bed, key: Key) -> Self {
        let directory = bed.http.get(bed.server.directory_url()).send().await.unwrap();
        Self { bed, key, account: None, directory: directory.json().await.unwrap() }
    }

    pub(super) async fn registered(bed: &'a Bed, key: Key) -> Self {
        let mut client = Self::new(bed, key).await;
        let answer = client.ask("newAccount", &json!({ "termsOfServiceAgreed": true })).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        client.account = Some(answer.header("location").to_owned());
        client
    }

    pub(super) async fn account_object(&self) -> Value {
        self.read(self.account.as_deref().unwrap()).await.json()
    }

    pub(super) fn url(&self, resource: &str) -> String {
        self.directory[resource].as_str().unwrap_or(resource).to_owned()
    }

    pub(super) async fn nonce(&self) -> String {
        let answer = self.bed.http.head(self.url("newNonce")).send().await.unwrap();
        answer.headers()["replay-nonce"].to_str().unwrap().to_owned()
    }

    /// The header of a good request.
    pub(super) async fn header(&self, url: &str) -> Value {
        let mut header =
            json!({ "alg": self.key.algorithm, "nonce": self.nonce().await, "url": url });
        match &self.account {
            Some(account) => header["kid"] = account.as_str().into(),
            None => header["jwk"] = self.key.jwk(),
        }
        header
    }

    pub(super) async fn send(&self, url: &str, content_type: &str, body: String) -> Answer {
        let request = self.bed.http.post(url).header("content-type", content_type).body(body);
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, text: response.text().await.unwrap() }
    }

    /// Sends a good request to a resource of the directory, or to a URL.
    pub(super) async fn ask(&self, resource: &str, payload: &Value) -> Answer {
        self.ask_text(resource, &payload.to_string()).await
    }

    /// Sends a POST-as-GET.
    pub(super) async fn read(&self, url: &str) -> Answer {
        self.ask_text(url, "").await
    }

    async fn ask_text(&self, resource: &str, payload: &str) -> Answer {
        let url = self.url(resource);
        let body = self.key.sign(&self.header(&url).await, payload);
        self.send(&url, "application/jose+json", body.to_string()).await
    }

    /// Makes an order.
    pub(super) async fn order(&self, names: &[&str]) -> Answer {
        self.ask("newOrder", &json!({ "identifiers": identifiers(names) })).await
    }

    /// Answers every challenge of an order and waits until all authorizations are final.
    pub(super) async fn authorize(&self, order: &Value) {
        for url in order["authorizations"].as_array().unwrap() {
            let url = url.as_str().unwrap();
            let challenge = &self.read(url).await.json()["challenges"][0];
            let token = challenge["token"].as_str().unwrap();
            self.bed.present(token, &self.key_authorization(token));
            self.ask(challenge["url"].as_str().unwrap(), &json!({})).await;
            self.settled(url).await;
        }
    }

    /// Waits until an authorization is final.
    pub(super) async fn settled(&self, url: &str) -> Value {
        loop {
            let authorization = self.read(url).await.json();
            if authorization["status"] != "pending" {
                return authorization;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Makes an order and answers its challenges; gives its URL and itself.
    pub(super) async fn ready_order(&self, names: &[&str]) -> (String, Value) {
        let answer = self.order(names).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        self.authorize(&answer.json()).await;
        let url = answer.header("location").to_owned();
        let order = self.read(&url).await.json();
        assert_eq!(order["status"], "ready");
        (url, order)
    }

    pub(super) async fn finalize(&self, order: &Value, request: &[u8]) -> Answer {
        let csr = base64url(request);
        self.ask(order["finalize"].as_str().unwrap(), &json!({ "csr": csr })).await
    }

    pub(super) fn key_authorization(&self, token: &str) -> String {
        format!("{token}.{}", base64url(digest(&SHA256, self.key.jwk().to_string().as_bytes())))
    }
}

pub(super) fn identifiers(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({ "type": "dns", "value": name })).collect()
}

pub(super) fn base64url(octets: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(octets)
}

/// A signing request in DER for names, without a common name.
pub(super) fn signing_request(names: &[&str], key: &impl rcgen::SigningKey) -> Vec<u8> {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = CertificateParams::new(names).unwrap();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.serialize_request(key).unwrap().der().to_vec()
}
