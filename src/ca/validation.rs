//! Validation of HTTP-01, DNS-01, dns-account-01, dns-persist-01 (RFC 8555 §8.3, §8.4): one check as at public CAs, its result.

use std::sync::Arc;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use url::Url;

use super::accounts::given_url;
use super::caa;
use super::context::Ca;
use super::refusal::{Kind, Refusal, dns_detail, dns_problem};
use super::state::{Authorization, Id, Method, Status, Validation, after};
use super::tls_alpn::{account_label, handshake};
use crate::dns::LookupError;
use crate::fetch::outcome::{FetchError, Fetched, Hop, HttpReply};
use crate::model::Identifier;
use crate::model::cause::Symptom;
use crate::model::persist::{Persist, RecordRequirements};

/// Validates a challenge once, and settles the authorization for good.
pub(super) async fn validate(ca: Arc<Ca>, id: Id, method: Method, thumbprint: String) {
    tokio::time::sleep(ca.config.validation_delay).await;
    if let Some(validation) = probe(&ca, id, method, thumbprint).await {
        conclude(&ca, id, validation);
    }
}

/// Validates a challenge once, and settles nothing; `None` if the authorization is gone.
pub(super) async fn probe(
    ca: &Ca,
    id: Id,
    method: Method,
    thumbprint: String,
) -> Option<Validation> {
    let (account, identifier, token) = question(ca, id)?;
    if ca.config.always_valid {
        return Some(Validation { method, at: ca.now(), hops: Vec::new(), refusal: None });
    }
    let key_authorization = format!("{token}.{thumbprint}");
    let account_url = given_url(ca, account);
    let prefix = format!("_{}._acme-challenge", account_label(&account_url));
    let (hops, proof) = match method {
        Method::Http01 => web_page(ca, &identifier, &token, &key_authorization).await,
        Method::TlsAlpn01 => handshake(ca, &identifier, &key_authorization).await,
        Method::Dns01 => {
            (Vec::new(), record(ca, "_acme-challenge", &identifier, &key_authorization).await)
        }
        Method::DnsAccount01 => {
            (Vec::new(), record(ca, &prefix, &identifier, &key_authorization).await)
        }
        Method::DnsPersist01 => (Vec::new(), persistent_record(ca, &identifier, account_url).await),
    };
    let proof = match (proof, &identifier) {
        (Ok(()), Identifier::Dns(name)) => caa::check(ca, name, method, account).await,
        (proof, _) => proof,
    };
    let refusal = proof.err();
    tracing::debug!(%identifier, method = method.word(), accepted = refusal.is_none(), "validated");
    Some(Validation { method, at: ca.now(), hops, refusal })
}

/// Settles an authorization for good, by the validation.
pub(super) fn conclude(ca: &Ca, id: Id, validation: Validation) {
    let valid_until = after(validation.at, ca.config.authorization_lifetime);
    if let Some(authorization) = ca.state().authorizations.get_mut(&id) {
        settle(authorization, validation, valid_until);
    }
}

fn question(ca: &Ca, id: Id) -> Option<(Id, Identifier, String)> {
    let state = ca.state();
    let authorization = state.authorizations.get(&id)?;
    let Authorization { account, identifier, token, .. } = authorization;
    Some((*account, identifier.clone(), token.clone()))
}

/// Checks the TXT record of a name (§8.4).
async fn record(
    ca: &Ca,
    prefix: &str,
    identifier: &Identifier,
    key_authorization: &str,
) -> Result<(), Refusal> {
    let Identifier::Dns(name) = identifier else {
        return Err(Refusal::malformed("DNS-01 is for names"));
    };
    let name = format!("{prefix}.{}", name.base());
    let digest = digest::digest(&digest::SHA256, key_authorization.as_bytes());
    let found = ca.look.texts(&format!("{name}.")).await;
    let wanted = URL_SAFE_NO_PAD.encode(digest);
    judge_texts(&name, found, |text| text == wanted)
}

/// Checks the persistent records of a name (draft-ietf-acme-dns-persist).
async fn persistent_record(
    ca: &Ca,
    identifier: &Identifier,
    account_url: String,
) -> Result<(), Refusal> {
    let Identifier::Dns(name) = identifier else {
        return Err(Refusal::malformed("dns-persist-01 is for names"));
    };
    let issuer_domain_names = ca.config.issuer_domain_names();
    let persist = Persist { issuer_domain_names, account_uris: vec![account_url] };
    let demand =
        RecordRequirements { persist: &persist, wildcard: name.is_wildcard(), now: ca.now() };
    let owner = format!("_validation-persist.{}", name.base());
    let found = ca.look.texts(&format!("{owner}.")).await;
    judge_texts(&owner, found, |text| demand.is_met_by(text))
}

/// Checks that the texts prove control; refuses in Boulder's words.
fn judge_texts(
    name: &str,
    found: Result<Vec<String>, LookupError>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(), Refusal> {
    let texts = match found {
        Ok(texts) => texts,
        Err(LookupError::NoText { .. }) => Vec::new(),
        Err(error) => return Err(Refusal::new(Kind::Dns, dns_problem("TXT", name, &error))),
    };
    if texts.iter().any(|text| is_wanted(text)) {
        return Ok(());
    }
    let detail = match &texts[..] {
        [] => format!("No TXT record found at {name}"),
        [text] => format!("Incorrect TXT record {text:?} found at {name}"),
        [first, more @ ..] => {
            format!("Incorrect TXT record {first:?} (and {} more) found at {name}", more.len())
        }
    };
    Err(Refusal::new(Kind::Unauthorized, detail))
}

/// Checks the page of a web server (§8.3).
async fn web_page(
    ca: &Ca,
    identifier: &Identifier,
    token: &str,
    key_authorization: &str,
) -> (Vec<Hop>, Result<(), Refusal>) {
    let Some(url) = page(identifier, token) else {
        return (Vec::new(), Err(Refusal::malformed("The name makes no URL")));
    };
    let fetched = ca.look.get(&url).await;
    let judged = judge(&fetched, &url, key_authorization);
    (fetched.hops, judged)
}

fn page(identifier: &Identifier, token: &str) -> Option<Url> {
    let host = match identifier {
        Identifier::Dns(name) => name.to_string(),
        Identifier::Ip(address) if address.is_ipv6() => format!("[{address}]"),
        Identifier::Ip(address) => address.to_string(),
    };
    Url::parse(&format!("http://{host}/.well-known/acme-challenge/{token}")).ok()
}

/// Stores a validation in its authorization, unless the client has deactivated the authorization meanwhile.
fn settle(authorization: &mut Authorization, validation: Validation, valid_until: Timestamp) {
    authorization.being_validated = false;
    if authorization.status != Status::Pending {
        return;
    }
    if validation.refusal.is_none() {
        authorization.status = Status::Valid;
        authorization.expires = valid_until;
    } else {
        authorization.status = Status::Invalid;
    }
    authorization.validation = Some(validation);
}

/// Returns Boulder's words for a failed connection or a missing answer (`va/va.go`, `detailedError`); `None` if it has none.
fn words(symptom: Symptom) -> Option<&'static str> {
    Some(match symptom {
        Symptom::ConnectionRefused => "Connection refused",
        Symptom::Unreachable => "Timeout during connect (likely firewall problem)",
        Symptom::NoReply => "Timeout after connect (your server may be slow or overloaded)",
        Symptom::HungUp => "Error getting validation data",
        _ => return None,
    })
}

/// Checks that the fetched reply proves control; refuses in Boulder's words.
fn judge(fetched: &Fetched, url: &Url, key_authorization: &str) -> Result<(), Refusal> {
    let last = fetched.hops.last();
    let url = last.map_or(url.as_str(), |hop| hop.url.as_str());
    let address = last
        .and_then(|hop| hop.address)
        .map(|address| format!("{}: ", address.ip()))
        .unwrap_or_default();
    let reply = match &fetched.result {
        Ok(reply) => reply,
        Err(FetchError::Lookup(error)) => return Err(Refusal::new(Kind::Dns, dns_detail(error))),
        Err(FetchError::Redirect { to, why }) => {
            let detail = format!("{address}Fetching {to}: {why}");
            return Err(Refusal::new(Kind::Connection, detail));
        }
        Err(FetchError::Connect { why, symptom } | FetchError::Malformed { why, symptom }) => {
            let said = symptom.and_then(words).unwrap_or(why.as_str());
            let detail = format!("{address}Fetching {url}: {said}");
            return Err(Refusal::new(Kind::Connection, detail));
        }
    };
    let body = String::from_utf8_lossy(&reply.body);
    if let Some(what) = unfit(reply, &body) {
        let detail = format!("{address}Invalid response from {url}: {what}");
        return Err(Refusal::new(Kind::Unauthorized, detail));
    }
    let body = body.trim_end();
    if body != key_authorization {
        let detail = format!(
            "The key authorization file from the server did not match this challenge. \
             Expected {key_authorization:?} (got {body:?})"
        );
        return Err(Refusal::new(Kind::Unauthorized, detail));
    }
    Ok(())
}

/// Describes why a reply is no key authorization at all: its status, or its length; `None` if it may be one.
fn unfit(reply: &HttpReply, body: &str) -> Option<String> {
    if reply.status != 200 {
        return Some(reply.status.to_string());
    }
    reply.truncated.then(|| format!("{body:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::LookupFailure;

    const URL: &str = "http://www.bed.test/.well-known/acme-challenge/token";

    fn reply(status: u16, body: &str) -> HttpReply {
        HttpReply { status, body: body.as_bytes().to_vec(), truncated: false, is_declined: false }
    }

    fn check(result: Result<HttpReply, FetchError>, expected: Option<(&str, &str)>) {
        let address = "192.0.2.1:80".parse().ok();
        let hops = vec![Hop { url: URL.to_owned(), address, status: None }];
        let fetched = Fetched { hops, result };
        let refusal = judge(&fetched, &Url::parse(URL).unwrap(), "token.thumb")
            .err()
            .map(|refusal| refusal.document());
        let seen = refusal.as_ref().map(|document| {
            (document["type"].as_str().unwrap(), document["detail"].as_str().unwrap())
        });
        let expected =
            expected.map(|(kind, detail)| (format!("urn:ietf:params:acme:error:{kind}"), detail));
        assert_eq!(seen, expected.as_ref().map(|(kind, detail)| (kind.as_str(), *detail)));
    }

    #[test]
    fn the_key_authorization_is_good_with_and_without_white_space_behind_it() {
        check(Ok(reply(200, "token.thumb")), None);
        check(Ok(reply(200, "token.thumb\r\n \t")), None);
    }

    #[test]
    fn another_body_is_shown_beside_what_was_expected() {
        check(
            Ok(reply(200, " token.thumb")),
            Some((
                "unauthorized",
                "The key authorization file from the server did not match this challenge. \
                 Expected \"token.thumb\" (got \" token.thumb\")",
            )),
        );
    }

    #[test]
    fn a_page_too_long_and_a_wrong_status_are_invalid_responses() {
        let page = HttpReply {
            status: 200,
            body: b"<p class=\"a\">".to_vec(),
            truncated: true,
            is_declined: false,
        };
        let detail = format!("192.0.2.1: Invalid response from {URL}: \"<p class=\\\"a\\\">\"");
        check(Ok(page), Some(("unauthorized", &detail)));
        let detail = format!("192.0.2.1: Invalid response from {URL}: 404");
        check(Ok(reply(404, "token.thumb")), Some(("unauthorized", &detail)));
    }

    #[test]
    fn what_cannot_be_reached_is_a_connection_or_a_dns_error() {
        let why = "connection refused by 192.0.2.1:80".to_owned();
        let detail = format!("192.0.2.1: Fetching {URL}: {why}");
        check(Err(FetchError::Connect { why, symptom: None }), Some(("connection", &detail)));
        let refused = FetchError::Connect {
            why: "connection refused by 192.0.2.1:80".to_owned(),
            symptom: Some(Symptom::ConnectionRefused),
        };
        let detail = format!("192.0.2.1: Fetching {URL}: Connection refused");
        check(Err(refused), Some(("connection", &detail)));
        let to = "http://www.bed.test:8080/x".to_owned();
        let why = "only ports 80 and 443 are followed".to_owned();
        check(
            Err(FetchError::Redirect { to, why }),
            Some((
                "connection",
                "192.0.2.1: Fetching http://www.bed.test:8080/x: only ports 80 and 443 are followed",
            )),
        );
        let name = "www.bed.test".to_owned();
        check(
            Err(FetchError::Lookup(LookupError::NoAddress { name })),
            Some((
                "dns",
                "no valid A records found for www.bed.test; no valid AAAA records found for www.bed.test",
            )),
        );
    }

    #[test]
    fn texts_prove_control_when_one_of_them_is_the_digest() {
        let check = |found: Result<&[&str], LookupError>, expected: Option<(&str, &str)>| {
            let found = found.map(|texts| texts.iter().map(ToString::to_string).collect());
            let refusal = judge_texts("_acme-challenge.bed.test", found, |text| text == "digest");
            let refusal = refusal.err();
            let document = refusal.map(|refusal| refusal.document());
            let seen = document.as_ref().map(|document| {
                let kind = document["type"].as_str().unwrap().rsplit(':').next().unwrap();
                (kind, document["detail"].as_str().unwrap())
            });
            assert_eq!(seen, expected);
        };
        check(Ok(&["other", "digest"]), None);
        let detail = "Incorrect TXT record \"other\" found at _acme-challenge.bed.test";
        check(Ok(&["other"]), Some(("unauthorized", detail)));
        let detail = "Incorrect TXT record \"one\" (and 2 more) found at _acme-challenge.bed.test";
        check(Ok(&["one", "two", "three"]), Some(("unauthorized", detail)));
        let name = || "_acme-challenge.bed.test.".to_owned();
        let detail = "No TXT record found at _acme-challenge.bed.test";
        check(Err(LookupError::NoText { name: name() }), Some(("unauthorized", detail)));
        let detail = "DNS problem: NXDOMAIN looking up TXT for _acme-challenge.bed.test - \
                      check that a DNS record exists for this domain";
        check(Err(LookupError::NoSuchName { name: name() }), Some(("dns", detail)));
        let why = LookupFailure::Answered { code: "SERVFAIL".to_owned(), target: None };
        let detail = "DNS problem: SERVFAIL looking up TXT for _acme-challenge.bed.test - \
                      the domain's nameservers may be malfunctioning";
        check(Err(LookupError::Failed { name: name(), why }), Some(("dns", detail)));
    }
}
