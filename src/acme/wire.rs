//! JSON answers, read into our own types: lenient where CAs differ, strict where a mistake would do harm.
//!
//! instant-acme's types refuse whole answers over one unknown word; `docs/decisions/01-own-acme-session.md` lists the
//! fields. Every function fails with the reason only; the session knows the URL of the answer.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use url::Url;

use super::problem_document::{MAX_EXCERPT_CHARS, excerpt, problem_of_value, tidy};
use super::replies::{AccountReply, AuthorizationReply, ChallengeReply, Directory, OrderReply};
use super::validation_records;
use crate::model::persist::{AccountForm, Offer};
use crate::model::text::shortened;

/// Most bytes of a URL, and of a token.
const LONGEST_URL: usize = 4000;
const LONGEST_TOKEN: usize = 500;

/// Source of an answer; the URLs of the answer are read against it.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) url: &'a Url,
    /// Whether plain http is acceptable: only if the directory itself is read by plain http.
    pub(super) plain: bool,
}

impl Origin<'_> {
    /// Makes a URL absolute. An absolute URL is kept letter for letter, since names are hashed from it; a relative URL
    /// is resolved. Another host is the CA's choice; a step down to plain http is not.
    pub(super) fn absolute(&self, text: &str) -> Result<String, String> {
        if text.len() > LONGEST_URL {
            return Err(format!(
                "its URL {}… is longer than any",
                shortened(text, MAX_EXCERPT_CHARS)
            ));
        }
        let (url, kept) = match Url::parse(text) {
            Ok(url) => (url, text.to_owned()),
            Err(url::ParseError::RelativeUrlWithoutBase) => {
                let url = self.url.join(text).map_err(|e| format!("its URL \"{text}\": {e}"))?;
                let kept = url.to_string();
                (url, kept)
            }
            Err(e) => return Err(format!("its URL \"{text}\": {e}")),
        };
        match url.scheme() {
            "https" => Ok(kept),
            "http" if self.plain => Ok(kept),
            "http" => Err(format!("its URL {text} is not https")),
            scheme => Err(format!("its URL {text} has the scheme {scheme}")),
        }
    }

    fn optional(&self, text: Option<String>) -> Result<Option<String>, String> {
        text.map(|text| self.absolute(&text)).transpose()
    }

    /// Makes an optional URL absolute; a URL that cannot be requested counts as absent.
    fn or_absent(&self, text: Option<String>) -> Option<String> {
        self.absolute(&text?).ok()
    }
}

/// Reads a JSON object; members that are null count as absent, characters that steer terminals are removed, and texts
/// are cut that are longer than any text that a CA can mean.
fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let mut value: Value = serde_json::from_slice(body).map_err(|e| not_json(body, &e))?;
    tidy(&mut value);
    members(value)
}

/// Reads a value; the error names the member that cannot be read.
fn members<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| error.to_string())
}

/// Reads an optional member; a member of another type counts as absent.
fn or_absent<'de, D: Deserializer<'de>, T: Default + DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Reads an optional list; items of another type are left out.
fn readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(items(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// Reads an optional list whose presence counts; `None` if the member is no list.
fn readable_if_there<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Ok(items(Value::deserialize(deserializer)?))
}

/// Reads the readable items of a list; `None` if the value is no list.
fn items<T: DeserializeOwned>(value: Value) -> Option<Vec<T>> {
    let Value::Array(items) = value else { return None };
    Some(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect())
}

fn not_json(body: &[u8], error: &serde_json::Error) -> String {
    match body.iter().find(|b| !b.is_ascii_whitespace()) {
        None => "it is empty".to_owned(),
        Some(b'<') => format!("it is HTML: {}", excerpt(body)),
        Some(_) => format!("it is not JSON: {error}"),
    }
}

fn moment(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDirectory {
    new_nonce: String,
    new_account: String,
    new_order: String,
    #[serde(default, deserialize_with = "or_absent")]
    revoke_cert: Option<String>,
    #[serde(default, deserialize_with = "or_absent")]
    key_change: Option<String>,
    #[serde(default, deserialize_with = "or_absent")]
    renewal_info: Option<String>,
    #[serde(default, deserialize_with = "or_absent")]
    meta: WireMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireMeta {
    #[serde(deserialize_with = "or_absent")]
    terms_of_service: Option<String>,
    #[serde(deserialize_with = "or_absent")]
    website: Option<String>,
    #[serde(deserialize_with = "readable")]
    caa_identities: Vec<String>,
    #[serde(deserialize_with = "or_absent")]
    external_account_required: bool,
    #[serde(deserialize_with = "or_absent")]
    profiles: BTreeMap<String, Value>,
    account_hash_prefix: Option<Value>,
}

/// Reads a directory (RFC 8555 §7.1.1).
pub(super) fn directory(origin: Origin<'_>, body: &[u8]) -> Result<Directory, String> {
    let wire: WireDirectory = object(body)?;
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(Directory {
        new_nonce: origin.absolute(&wire.new_nonce)?,
        new_account: origin.absolute(&wire.new_account)?,
        new_order: origin.absolute(&wire.new_order)?,
        revoke_cert: origin.or_absent(wire.revoke_cert),
        key_change: origin.or_absent(wire.key_change),
        renewal_info: origin.or_absent(wire.renewal_info),
        terms_of_service: wire.meta.terms_of_service,
        website: wire.meta.website,
        caa_identities: wire.meta.caa_identities,
        external_account_required: wire.meta.external_account_required,
        profiles: wire.meta.profiles.into_iter().map(|(name, v)| (name, text(v))).collect(),
        account_hash_prefix: wire
            .meta
            .account_hash_prefix
            .and_then(|prefix| prefix.as_str().map(str::to_owned)),
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireAccount {
    #[serde(deserialize_with = "or_absent")]
    status: String,
    #[serde(deserialize_with = "readable_if_there")]
    contact: Option<Vec<String>>,
    #[serde(deserialize_with = "or_absent")]
    orders: Option<String>,
}

/// Reads an account (RFC 8555 §7.1.2); some CAs answer with nothing but headers.
pub(super) fn account(body: &[u8]) -> Result<AccountReply, String> {
    let wire: WireAccount =
        if body.trim_ascii().is_empty() { WireAccount::default() } else { object(body)? };
    Ok(AccountReply {
        status: if wire.status.is_empty() { "valid".to_owned() } else { wire.status },
        contact: wire.contact,
        orders: wire.orders.filter(|url| !url.is_empty()),
        ..AccountReply::default()
    })
}

#[derive(Deserialize)]
struct WireIdentifier {
    #[serde(rename = "type")]
    kind: String,
    value: String,
}

#[derive(Deserialize)]
struct WireOrder {
    status: String,
    #[serde(default, deserialize_with = "or_absent")]
    expires: Option<String>,
    #[serde(default, deserialize_with = "readable")]
    identifiers: Vec<WireIdentifier>,
    #[serde(default)]
    authorizations: Vec<String>,
    #[serde(default)]
    finalize: String,
    certificate: Option<String>,
    error: Option<Value>,
}

/// Reads an order (RFC 8555 §7.1.3).
pub(super) fn order(origin: Origin<'_>, body: &[u8]) -> Result<OrderReply, String> {
    let wire: WireOrder = object(body)?;
    let finalize = Some(wire.finalize).filter(|url| !url.is_empty());
    Ok(OrderReply {
        url: String::new(),
        status: wire.status,
        expires: moment(wire.expires.as_deref()),
        identifiers: wire.identifiers.into_iter().map(|i| (i.kind, i.value)).collect(),
        authorizations: wire
            .authorizations
            .iter()
            .map(|url| origin.absolute(url))
            .collect::<Result<_, _>>()?,
        finalize: origin.optional(finalize)?.unwrap_or_default(),
        certificate: origin.optional(wire.certificate)?,
        error: wire.error.map(|value| problem_of_value(value, None)),
        retry_after: None,
    })
}

/// Reads a list of orders (RFC 8555 §7.1.2.1), which step-ca and Caddy give as a bare array; `None` if it is no list.
pub(super) fn orders(body: &[u8]) -> Option<Vec<String>> {
    let list = match object(body).ok()? {
        Value::Object(mut members) => members.remove("orders")?,
        list => list,
    };
    items(list)
}

#[derive(Deserialize)]
struct WireAuthorization {
    status: String,
    identifier: WireIdentifier,
    #[serde(default, deserialize_with = "or_absent")]
    wildcard: bool,
    #[serde(default, deserialize_with = "or_absent")]
    expires: Option<String>,
    #[serde(default)]
    challenges: Vec<Value>,
}

#[derive(Deserialize)]
struct WireChallenge {
    #[serde(default)]
    url: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    token: Value,
    error: Option<Value>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// Reads an authorization (RFC 8555 §7.1.4).
pub(super) fn authorization(origin: Origin<'_>, body: &[u8]) -> Result<AuthorizationReply, String> {
    let wire: WireAuthorization = object(body)?;
    let base = wire.identifier.value.strip_prefix("*.");
    Ok(AuthorizationReply {
        status: wire.status,
        wildcard: wire.wildcard || base.is_some(),
        identifier: base.unwrap_or(&wire.identifier.value).to_owned(),
        expires: moment(wire.expires.as_deref()),
        challenges: challenges(origin, wire.challenges)?,
        retry_after: None,
    })
}

/// Returns whether the response to a challenge of that type is made from its token.
fn is_answered_by_token(kind: &str) -> bool {
    matches!(kind, "http-01" | "dns-01" | "tls-alpn-01" | "dns-account-01")
}

/// Reads the challenges of an authorization. An unreadable challenge is left out as long as another one can be answered.
fn challenges(origin: Origin<'_>, list: Vec<Value>) -> Result<Vec<ChallengeReply>, String> {
    let (mut read, mut fault) = (Vec::new(), None);
    for (index, value) in list.into_iter().enumerate() {
        let challenge = members(value).map_err(|why| format!("challenges[{index}].{why}"));
        match challenge.and_then(|challenge| challenge_of(origin, challenge)) {
            Ok(challenge) => read.push(challenge),
            Err(why) => fault = fault.or(Some(why)),
        }
    }
    let is_known = |challenge: &ChallengeReply| {
        is_answered_by_token(&challenge.kind) || challenge.persist.is_some()
    };
    match fault {
        Some(why) if !read.iter().any(is_known) => Err(why),
        Some(_) | None => Ok(read),
    }
}

/// Reads a challenge (RFC 8555 §7.1.5).
pub(super) fn challenge(origin: Origin<'_>, body: &[u8]) -> Result<ChallengeReply, String> {
    challenge_of(origin, object(body)?)
}

fn challenge_of(origin: Origin<'_>, wire: WireChallenge) -> Result<ChallengeReply, String> {
    // Challenges of an unknown type may have another shape, and are never answered.
    let token = match (wire.token, is_answered_by_token(&wire.kind)) {
        (Value::String(token), true) => token,
        (Value::String(token), false) if is_token(&token) => token,
        (Value::Null, _) | (_, false) => String::new(),
        (_, true) => return Err(format!("the token of its {} challenge is no text", wire.kind)),
    };
    // A token becomes part of a path and of a DNS record (RFC 8555 §8.3, §8.4).
    if !is_token(&token) {
        return Err(format!("the token of its {} challenge is not base64url", wire.kind));
    }
    let is_over = matches!(wire.status.as_str(), "valid" | "invalid");
    if token.is_empty() && is_answered_by_token(&wire.kind) && !is_over {
        return Err(format!("its {} challenge has no token", wire.kind));
    }
    let url = if wire.url.is_empty() { String::new() } else { origin.absolute(&wire.url)? };
    Ok(ChallengeReply {
        url,
        validated: moment(wire.more.get("validated").and_then(Value::as_str)),
        records: validation_records::read(wire.more.get("validationRecord")),
        persist: persist(&wire.more),
        kind: wire.kind,
        status: wire.status,
        token,
        error: wire.error.map(|value| problem_of_value(value, None)),
        retry_after: None,
    })
}

fn is_token(token: &str) -> bool {
    let base64url = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    token.bytes().all(base64url) && token.len() <= LONGEST_TOKEN
}

/// Reads the offer of a persistent record: draft -02 has member names of its own, -01 names the account and -00 does
/// not. A member that cannot be read counts as absent, for the challenge may be of a type that we do not know.
fn persist(challenge: &Map<String, Value>) -> Option<Offer> {
    let names = |key: &str| {
        let names = challenge.get(key)?.as_array()?.iter();
        Some(names.filter_map(|name| name.as_str().map(str::to_owned)).collect())
    };
    if let Some(issuer_domain_names) = names("issuerDomainNames") {
        return Some(Offer { issuer_domain_names, account: AccountForm::Hashed(None) });
    }
    let uri = challenge.get("accounturi").and_then(Value::as_str).map(str::to_owned);
    let account = uri.map_or(AccountForm::Url, AccountForm::Given);
    Some(Offer { issuer_domain_names: names("issuer-domain-names")?, account })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::acme::problem_document::problem;

    fn https() -> Url {
        Url::parse("https://ca.example/acme/answer/1").unwrap()
    }

    fn read_order(json: &str) -> Result<OrderReply, String> {
        order(Origin { url: &https(), plain: false }, json.as_bytes())
    }

    fn read_authorization(json: &str) -> Result<AuthorizationReply, String> {
        authorization(Origin { url: &https(), plain: false }, json.as_bytes())
    }

    #[test]
    fn urls_are_kept_resolved_or_refused() {
        let url = https();
        for (text, plain, expected) in [
            ("https://ca.example:443/x", false, Some("https://ca.example:443/x")),
            ("https://other.example/x", false, Some("https://other.example/x")),
            ("/acme/x", false, Some("https://ca.example/acme/x")),
            ("2", false, Some("https://ca.example/acme/answer/2")),
            ("//cdn.example/x", false, Some("https://cdn.example/x")),
            ("http://ca.example/x", false, None),
            ("http://ca.example/x", true, Some("http://ca.example/x")),
            ("ftp://ca.example/x", true, None),
            ("javascript:alert(1)", true, None),
            ("https://", false, None),
        ] {
            let read = Origin { url: &url, plain }.absolute(text);
            assert_eq!(read.ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn unknown_words_survive_as_text() {
        let order = read_order(
            r#"{"status":"deactivated","expires":"2026-11-27T00:00:00.5+01:00","finalize":"/f",
            "identifiers":[{"type":"new-type","value":"x"}],"authorizations":["/a"],"replaces":"a\u002eb",
            "error":null,"certificate":null}"#,
        )
        .unwrap();
        assert_eq!(order.status, "deactivated");
        assert_eq!(order.identifiers, [("new-type".to_owned(), "x".to_owned())]);
        assert_eq!(order.expires, Some("2026-11-26T23:00:00.5Z".parse().unwrap()));
        assert_eq!(order.authorizations, ["https://ca.example/a"]);

        let authorization = read_authorization(
            r#"{"status":"odd","identifier":{"type":"dns","value":"*.a.example"},
            "challenges":[{"type":"dns-persist-01","url":"/c","status":"new","issuerDomainNames":["ca"]},
            {"type":"http-01","url":"/d","status":"invalid","token":"a_-9",
             "error":{"type":"urn:x:dns","detail":7,"subproblems":[{"detail":"sub"},3]}}]}"#,
        )
        .unwrap();
        assert_eq!(authorization.identifier, "a.example");
        assert!(authorization.wildcard);
        assert_eq!(authorization.expires, None);
        let [persist, http] = &authorization.challenges[..] else { panic!("two challenges") };
        assert_eq!((persist.kind.as_str(), persist.token.as_str()), ("dns-persist-01", ""));
        let error = http.error.as_ref().unwrap();
        assert_eq!((error.short_kind(), error.detail.as_str()), ("dns", "7"));
        assert_eq!(error.subproblems.len(), 1);
    }

    #[test]
    fn the_draft_of_a_persistent_record_shows_in_its_challenge() {
        let check = |more: &str, expected: Option<AccountForm>| {
            let json = format!(
                r#"{{"status":"pending","identifier":{{"type":"dns","value":"a"}},
                "challenges":[{{"type":"dns-persist-01","url":"/c","status":"pending"{more}}}]}}"#
            );
            let [challenge] = &read_authorization(&json).unwrap().challenges[..] else {
                panic!("one challenge")
            };
            let issuer_domain_names = vec!["ca.example".to_owned()];
            let expected = expected.map(|account| Offer { issuer_domain_names, account });
            assert_eq!(challenge.persist, expected, "{more}");
        };
        check(r#","issuer-domain-names":["ca.example"]"#, Some(AccountForm::Url));
        check(
            r#","issuer-domain-names":["ca.example"],"accounturi":"https://ca.example/1""#,
            Some(AccountForm::Given("https://ca.example/1".to_owned())),
        );
        check(r#","issuerDomainNames":["ca.example"]"#, Some(AccountForm::Hashed(None)));
        check("", None);
        check(r#","issuer-domain-names":"ca.example","accounturi":7"#, None);
    }

    /// Google Trust Services (lego 5.6.0 follows it): draft-ietf-acme-dns-persist-01 §3.1 has the member, and some challenges have not.
    #[test]
    fn a_persistent_record_without_an_account_uri_is_for_the_url_of_the_account() {
        let json = r#"{"status":"pending","identifier":{"type":"dns","value":"a.example"},"challenges":[
            {"type":"dns-persist-01","url":"/c","status":"pending","token":"t","issuer-domain-names":["pki.example"]}]}"#;
        let authorization = read_authorization(json).unwrap();
        let [challenge] = &authorization.challenges[..] else { panic!("{authorization:?}") };
        let offer = challenge.persist.as_ref().unwrap();
        assert_eq!(offer.account, AccountForm::Url);
    }

    #[test]
    fn what_would_do_harm_is_refused_with_the_reason() {
        for token in ["../x", "a/b", "a=", "a b", "é"] {
            let json = format!(
                r#"{{"status":"pending","identifier":{{"type":"dns","value":"a"}},
                "challenges":[{{"type":"http-01","url":"/c","status":"pending","token":"{token}"}}]}}"#
            );
            let error = read_authorization(&json).unwrap_err();
            assert!(error.contains("token of its http-01 challenge"), "{error}");
        }
        for (json, reason) in [
            ("", "empty"),
            ("  \n", "empty"),
            ("<html><b>busy</b>", "HTML: <html><b>busy</b>"),
            ("nonsense", "not JSON"),
            ("[]", "invalid"),
            (r#"{"finalize":"/f"}"#, "missing field `status`"),
            (r#"{"status":"pending","finalize":"http://ca.example/f"}"#, "not https"),
        ] {
            let error = read_order(json).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }

    #[test]
    fn a_token_is_needed_where_the_answer_is_made_from_it() {
        let read = |kind: &str, status: &str, token: &str| {
            read_authorization(&format!(
                r#"{{"status":"pending","identifier":{{"type":"dns","value":"a"}},
                "challenges":[{{"type":"{kind}","url":"/c","status":"{status}","token":"{token}"}}]}}"#
            ))
        };
        for kind in ["http-01", "dns-01", "tls-alpn-01", "dns-account-01"] {
            let error = read(kind, "pending", "").unwrap_err();
            assert_eq!(error, format!("its {kind} challenge has no token"));
            assert!(read(kind, "", "").is_err());
            assert!(read(kind, "pending", &"a".repeat(501)).is_err());
            assert!(read(kind, "pending", "a_-9").is_ok());
            assert!(read(kind, "valid", "").is_ok(), "nobody answers it any more");
        }
        assert!(read("dns-persist-01", "pending", "").is_ok());
        assert!(read("new-01", "pending", "").is_ok());
    }

    #[test]
    fn a_problem_of_a_hundred_names_is_whole_and_one_without_end_is_cut() {
        let problem_of = |count: usize, length: usize| {
            let sub = |number: usize| {
                let value = format!("{}.example", number.to_string().repeat(60));
                json!({"type": "urn:ietf:params:acme:error:caa", "detail": "x".repeat(length),
                       "identifier": {"type": "dns", "value": value}})
            };
            let subproblems: Vec<Value> = (100..100 + count).map(sub).collect();
            let body = json!({"type": "urn:ietf:params:acme:error:compound", "detail": "y".repeat(length * 8),
                              "subproblems": subproblems, "instance": format!("https://a/{}", "z".repeat(5000))});
            problem(403, body.to_string().as_bytes())
        };
        let whole = problem_of(100, 900);
        assert_eq!(whole.subproblems.len(), 100);
        assert!(!whole.to_string().contains('…'), "{whole}");
        let cut = problem_of(400, 2000);
        assert!(cut.detail.ends_with("yyy… (cut: 16000 characters)"), "{}", cut.detail);
        let last = &cut.subproblems[99..];
        assert!(last[0].detail.ends_with("xxx… (cut: 2000 characters)"), "{}", last[0].detail);
        assert!(cut.to_string().ends_with("\n\t… and 300 more"));
        assert_eq!((cut.subproblems.len(), cut.instance), (101, None));
        let odd = json!({"type": ["x".repeat(900)], "detail": "y".repeat(900_000)}).to_string();
        assert!(problem(400, odd.as_bytes()).to_string().chars().count() < 9000);
    }

    #[test]
    fn texts_and_lists_without_end_are_cut() {
        let profiles: Map<String, Value> =
            (0..5).map(|number| (number.to_string(), json!("p".repeat(90_000)))).collect();
        let body = json!({"newNonce": "/n", "newAccount": "/a", "newOrder": "/o", "meta": {
            "profiles": profiles, "caaIdentities": vec!["ca.example"; 5000]}});
        let origin = https();
        let read = |body: &Value| {
            directory(Origin { url: &origin, plain: false }, body.to_string().as_bytes())
        };
        let directory = read(&body).unwrap();
        assert!(directory.profiles.values().all(|text| text.chars().count() < 8100));
        assert_eq!(directory.caa_identities.len(), 1000);
        let body = json!({"newNonce": format!("/{}", "n".repeat(5000)), "newAccount": "/a", "newOrder": "/o"});
        assert!(read(&body).unwrap_err().contains("is longer than any"));
    }

    #[test]
    fn a_problem_is_found_in_any_body() {
        for (status, body, shown) in [
            (
                429,
                r#"{"type":"urn:x:rateLimited","detail":"slow","status":200}"#,
                "429 urn:x:rateLimited: slow",
            ),
            (503, "upstream  is\n away", "503 : upstream is away"),
            (404, "", "404"),
            (500, "[1]", "500 : [1]"),
            (
                400,
                r#"{"type":"urn:x:a","detail":null,"subproblems":"no","status":"400"}"#,
                "400 urn:x:a",
            ),
        ] {
            assert_eq!(problem(status, body.as_bytes()).to_string(), shown);
        }
        let long = "x".repeat(1000);
        assert_eq!(problem(502, long.as_bytes()).detail.len(), 200);
    }

    #[test]
    fn no_word_of_a_ca_steers_a_terminal() {
        let rude = r"\u001b]0;owned\u0007\u001b[2J\u009b31m\u202e";
        let clean = " ]0;owned  [2J 31m ";
        let document = format!(
            r#"{{"type":"urn:x:{rude}","detail":"a\nb{rude}","status":400,
            "subproblems":[{{"type":"{rude}","detail":"{rude}","identifier":{{"type":"dns","value":"{rude}"}}}}]}}"#
        );
        let shown = format!(
            "400 urn:x:{clean}: a\nb{clean}; subproblems:\n\t{clean}: [dns: {clean}] {clean}"
        );
        assert_eq!(problem(400, document.as_bytes()).to_string(), shown);
        let odd = document.replace("\"status\":400", "\"status\":\"400\"");
        assert_eq!(problem(400, odd.as_bytes()).to_string(), shown);
        let order = format!(r#"{{"status":"invalid","finalize":"/f","error":{document}}}"#);
        assert_eq!(read_order(&order).unwrap().error.unwrap().to_string(), shown);
        assert_eq!(problem(502, "a\u{1b}b\u{202e}c".as_bytes()).detail, "abc");
    }

    #[test]
    fn a_directory_is_read_whatever_else_it_holds() {
        let json =
            br#"{"newNonce":"/n","newAccount":"/a","newOrder":"/o","keyChange":null,"random":"x",
            "meta":{"profiles":{"classic":"text","odd":{"a":1}},"caaIdentities":["ca.example"]}}"#;
        let read = directory(Origin { url: &https(), plain: false }, json).unwrap();
        assert_eq!(read.new_nonce, "https://ca.example/n");
        assert_eq!(read.key_change, None);
        assert_eq!(read.profiles.keys().collect::<Vec<_>>(), ["classic", "odd"]);
        assert!(directory(Origin { url: &https(), plain: false }, b"{}").is_err());
    }

    #[test]
    fn what_is_optional_and_malformed_counts_as_absent() {
        for (member, value) in [
            ("expires", json!(1_800_000_000)),
            ("expires", json!("soon")),
            ("expires", json!({})),
            ("identifiers", json!("www.example.com")),
            ("identifiers", json!([null, 7])),
        ] {
            let mut body = json!({"status": "pending", "finalize": "/f", "authorizations": ["/a"]});
            body[member] = value;
            let order = read_order(&body.to_string()).unwrap();
            assert_eq!((order.expires, order.identifiers.len()), (None, 0), "{body}");
        }
        for (member, value) in [("expires", json!(7)), ("wildcard", json!("false"))] {
            let mut body =
                json!({"status": "pending", "identifier": {"type": "dns", "value": "a"}});
            body[member] = value;
            let read = read_authorization(&body.to_string()).unwrap();
            assert_eq!((read.expires, read.wildcard), (None, false), "{body}");
        }
        for meta in [
            json!({"externalAccountRequired": "false", "caaIdentities": "ca.example", "profiles": ["a"]}),
            json!({"termsOfService": 7, "website": {}, "caaIdentities": [null], "profiles": "a"}),
            json!("none"),
            json!([]),
        ] {
            let body = json!({"newNonce": "/n", "newAccount": "/a", "newOrder": "/o", "meta": meta,
                              "renewalInfo": 7, "keyChange": "ftp://ca.example/k", "revokeCert": false});
            let origin = https();
            let origin = Origin { url: &origin, plain: false };
            let read = directory(origin, body.to_string().as_bytes()).unwrap();
            let bare = json!({"newNonce": "/n", "newAccount": "/a", "newOrder": "/o"}).to_string();
            assert_eq!(read, directory(origin, bare.as_bytes()).unwrap(), "{body}");
        }
    }

    #[test]
    fn what_is_needed_names_itself() {
        for (json, reason) in [
            (r#"{"status":7}"#, "status: invalid type"),
            (r#"{"status":"pending","authorizations":"/a"}"#, "authorizations: invalid type"),
            (
                r#"{"status":"pending","authorizations":["/a",7]}"#,
                "authorizations[1]: invalid type",
            ),
            (r#"{"status":"pending","finalize":{}}"#, "finalize: invalid type"),
            (r#"{"status":"valid","certificate":7}"#, "certificate: invalid type"),
        ] {
            let error = read_order(json).unwrap_err();
            assert!(error.starts_with(reason), "{json}: {error}");
        }
        let error = read_authorization(r#"{"status":"pending","identifier":"a"}"#).unwrap_err();
        assert!(error.starts_with("identifier: invalid type"), "{error}");
    }

    #[test]
    fn a_challenge_that_cannot_be_read_takes_nothing_from_the_others() {
        let read = |challenges: Value| {
            let identifier = json!({"type": "dns", "value": "a"});
            let body =
                json!({"status": "pending", "identifier": identifier, "challenges": challenges});
            read_authorization(&body.to_string())
                .map(|read| read.challenges.iter().map(|c| c.kind.clone()).collect::<Vec<_>>())
        };
        let good = json!({"type": "http-01", "url": "/c", "status": "pending", "token": "a_-9"});
        for bad in [
            json!(null),
            json!("dns-01"),
            json!({"type": "dns-01", "url": 7, "status": "pending", "token": "a"}),
            json!({"type": "dns-01", "url": "/d", "status": "pending", "token": "../x"}),
            json!({"type": "dns-01", "url": "/d", "status": "pending", "token": 7}),
        ] {
            assert_eq!(read(json!([bad, good])).unwrap(), ["http-01"], "{bad}");
            assert!(read(json!([bad])).is_err(), "{bad}");
        }
        // Nobody answers a type that nobody knows, whatever its token is.
        for token in [json!("a.b"), json!(7), json!(["a"]), json!(null)] {
            let odd = json!({"type": "smoke-01", "url": "/s", "status": "pending", "token": token});
            assert_eq!(read(json!([odd, good])).unwrap(), ["smoke-01", "http-01"]);
        }
        let error = read(json!([{"type": "http-01", "url": 7}])).unwrap_err();
        assert!(error.starts_with("challenges[0].url: invalid type"), "{error}");
    }

    #[test]
    fn a_list_of_orders_is_read_in_both_forms() {
        for (body, expected) in [
            (r#"{"orders":["https://ca.example/o/1"]}"#, Some(1)),
            (r#"["https://ca.example/o/1","https://ca.example/o/2"]"#, Some(2)),
            (r#"[null,"https://ca.example/o/2"]"#, Some(1)),
            ("[]", Some(0)),
            (r#"{"status":"valid"}"#, None),
            (r#"{"orders":"https://ca.example/o"}"#, None),
            ("<html>", None),
            ("", None),
        ] {
            assert_eq!(orders(body.as_bytes()).map(|list| list.len()), expected, "{body}");
        }
    }

    #[test]
    fn an_account_may_be_all_headers() {
        assert_eq!(account(b"").unwrap().status, "valid");
        for (body, contacts) in [
            (r#"{"contact":[null]}"#, Some(0)),
            (r#"{"contact":[7,"mailto:a@b.example"],"status":null}"#, Some(1)),
            (r#"{"contact":"mailto:a@b.example","orders":7,"status":7}"#, None),
            ("{}", None),
        ] {
            let read = account(body.as_bytes()).unwrap();
            assert_eq!((read.status.as_str(), read.contact.map(|c| c.len())), ("valid", contacts));
        }
        let read =
            account(br#"{"status":"deactivated","contact":["mailto:a@b.example"]}"#).unwrap();
        assert_eq!(read.status, "deactivated");
        assert_eq!(read.contact.unwrap().len(), 1);
    }
}
