//! Validation of TLS-ALPN-01 (RFC 8737 §3), and the label of dns-account-01; in Boulder's words.

use aws_lc_rs::digest;

use super::context::Ca;
use super::refusal::{Kind, Refusal, dns_detail};
use crate::fetch::alpn::HandshakeOutcome;
use crate::fetch::outcome::{FetchError, Hop};
use crate::model::Identifier;
use crate::model::cause::Symptom;
use crate::model::observation::PresentedCertificate;
use crate::model::text::hex;

/// Digits of base32 (RFC 4648 §6), in lower case.
const BASE32_DIGITS: &str = "abcdefghijklmnopqrstuvwxyz234567";

/// Returns the label that stands for an account (draft-ietf-acme-dns-account-label §3.2).
pub(super) fn account_label(url: &str) -> String {
    let digest = digest::digest(&digest::SHA256, url.as_bytes());
    let bits: Vec<u8> = digest.as_ref()[..10]
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |place| (byte >> place) & 1))
        .collect();
    let digit = |five: &[u8]| five.iter().fold(0, |digit, bit| (digit << 1) | usize::from(*bit));
    bits.chunks(5).filter_map(|five| BASE32_DIGITS.chars().nth(digit(five))).collect()
}

/// Opens a TLS connection to a host, and judges the certificate that the host shows.
pub(super) async fn handshake(
    ca: &Ca,
    identifier: &Identifier,
    key_authorization: &str,
) -> (Vec<Hop>, Result<(), Refusal>) {
    let HandshakeOutcome { address, result } = ca.look.greet(identifier).await;
    let hop = Hop { url: format!("https://{identifier}/"), address, status: None };
    let judged = match result {
        Ok(said) if said.protocol != "acme-tls/1" => Err(Refusal::new(
            Kind::Unauthorized,
            "Cannot negotiate ALPN protocol \"acme-tls/1\" for tls-alpn-01 challenge",
        )),
        Ok(said) => judge(&said.certificate, identifier, key_authorization),
        Err(FetchError::Lookup(error)) => Err(Refusal::new(Kind::Dns, dns_detail(&error))),
        Err(
            FetchError::Malformed { why, .. }
            | FetchError::Redirect { why, .. }
            | FetchError::Connect { why, symptom: Some(Symptom::NoTls) },
        ) => Err(Refusal::new(Kind::Tls, why)),
        Err(FetchError::Connect { why, .. }) => Err(Refusal::new(Kind::Connection, why)),
    };
    (vec![hop], judged)
}

fn judge(
    certificate: &PresentedCertificate,
    identifier: &Identifier,
    key_authorization: &str,
) -> Result<(), Refusal> {
    let digest = digest::digest(&digest::SHA256, key_authorization.as_bytes());
    let wanted = hex(digest.as_ref());
    let name = identifier.to_string();
    let why = match (&certificate.names[..], &certificate.acme_identifiers[..]) {
        _ if !certificate.self_signed => "is not self-signed",
        ([only], _) if !only.eq_ignore_ascii_case(&name) => "is for another name",
        ([_], [extension]) if !extension.critical => "has an acmeIdentifier that is not critical",
        ([_], [extension]) if extension.digest == wanted => return Ok(()),
        ([_], [_]) => "has the acmeIdentifier of another challenge",
        ([_], _) => "must have one acmeIdentifier",
        _ => "must have one name",
    };
    let detail =
        format!("Incorrect validation certificate for tls-alpn-01 challenge: it {why} ({name})");
    Err(Refusal::new(Kind::Unauthorized, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::observation::AcmeIdentifier;

    #[test]
    fn the_label_of_an_account_is_that_of_the_draft() {
        let url = "https://example.com/acme/acct/ExampleAccount";
        assert_eq!(account_label(url), "ujmmovf2vn55tgye");
    }

    #[test]
    fn only_the_right_certificate_is_taken() {
        let check = |change: fn(&mut PresentedCertificate), expected: Option<&str>| {
            // The digest of the empty text.
            let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
            let digest = digest.to_owned();
            let mut shown = PresentedCertificate {
                subject: String::new(),
                self_signed: true,
                names: vec!["a.example".to_owned()],
                acme_identifiers: vec![AcmeIdentifier { critical: true, digest }],
            };
            change(&mut shown);
            let refusal = judge(&shown, &Identifier::parse("a.example").unwrap(), "").err();
            let detail = refusal.map(|refusal| refusal.document()["detail"].to_string());
            match (detail, expected) {
                (None, None) => {}
                (Some(detail), Some(part)) => assert!(detail.contains(part), "{detail}"),
                (detail, expected) => panic!("{detail:?}, not {expected:?}"),
            }
        };
        check(|_| {}, None);
        check(|shown| shown.self_signed = false, Some("is not self-signed"));
        check(|shown| shown.names = vec!["b.example".to_owned()], Some("is for another name"));
        check(|shown| shown.names.clear(), Some("must have one name"));
        check(|shown| shown.acme_identifiers.clear(), Some("must have one acmeIdentifier"));
        check(|shown| shown.acme_identifiers[0].critical = false, Some("not critical"));
        check(|shown| shown.acme_identifiers[0].digest.clear(), Some("of another challenge"));
    }
}
