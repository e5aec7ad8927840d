//! One account at one CA: all requests are signed, sent and judged on one path.
//!
//! A newOrder that is answered without a Location is sent once more, and then the Order is `errored`: each try may
//! leave an order behind at the CA.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::LOCATION;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use tracing::warn;

use super::authority::{Authority, protocol};
use super::error::AcmeError;
use super::jws::{self, Identity, Jws, Signer, json};
use super::post::{Payload, post, unsigned};
use super::shared::Shared;
use super::telling::NamedUrl;
use super::transport::{CHAIN_LIMIT, JSON_LIMIT};
use super::{
    AccountKey, AccountReply, Acme, AuthorizationReply, CertificateChain, ChallengeReply,
    Directory, ErrorSubject, NewOrder, OrderReply, Registration, headers, wire,
};
use crate::http::exchange::Reply;
use crate::http::headers::{retry_after, text};
use crate::model::order_budget::Permit;
use crate::model::{Identifier, Problem};

/// One account at one CA.
pub struct Session {
    authority: Arc<Authority>,
    key: AccountKey,
    account: Mutex<Option<String>>,
    looked_up: Shared<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewAccount<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    contact: &'a [String],
    terms_of_service_agreed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_account_binding: Option<Jws>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireNewOrder<'a> {
    identifiers: Vec<instant_acme::Identifier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replaces: Option<&'a str>,
}

impl Session {
    pub(super) fn new(authority: Arc<Authority>, key: AccountKey, account: Option<String>) -> Self {
        Self {
            authority,
            key,
            account: Mutex::new(account.filter(|url| !url.is_empty())),
            looked_up: Shared::new(),
        }
    }

    /// CA of the session.
    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Signer in the name of the account.
    pub(super) fn signer(&self) -> &Signer {
        self.key.signer()
    }

    fn known_account(&self) -> Option<String> {
        self.account.lock().clone()
    }

    /// Returns the account's URL; a URL that was never stored is found by the account's key (RFC 8555 §7.3.1).
    pub(super) async fn account(&self) -> Result<String, AcmeError> {
        if let Some(account) = self.known_account() {
            return Ok(account);
        }
        let existing = Registration { only_return_existing: true, ..Registration::default() };
        let look_up = async { Ok(self.new_account(&existing).await?.url) };
        self.looked_up.get(Duration::MAX, None, look_up).await
    }

    async fn new_account(&self, registration: &Registration) -> Result<AccountReply, AcmeError> {
        let found = self.authority.find(|directory| &directory.new_account).await?;
        let mut sent = self.new_account_at(&found.url, registration).await;
        if let Some(found) = self.authority.moved(&found, &sent).await? {
            sent = self.new_account_at(&found.url, registration).await;
        }
        let reply = sent?;
        let account = wire::account(&reply.body).map_err(|why| protocol(&reply.url, why));
        let Some(url) = self.location(&reply)? else {
            account?;
            return Err(AcmeError::NotAcme {
                url: reply.url.to_string(),
                why: "it names no account: there is no Location header".to_owned(),
            });
        };
        // Nothing of an account but its URL is needed to order.
        let account = account.unwrap_or_default();
        if reply.status == 201 {
            self.authority.named.note([url.as_str()]);
        }
        if matches!(account.status.as_str(), "deactivated" | "revoked") {
            return Err(closed(&url, &account.status));
        }
        *self.account.lock() = Some(url.clone());
        Ok(AccountReply { url, created: reply.status == 201, ..account })
    }

    async fn new_account_at(
        &self,
        url: &str,
        registration: &Registration,
    ) -> Result<Reply, AcmeError> {
        let payload = if registration.only_return_existing {
            json(&json!({"onlyReturnExisting": true}))
        } else {
            let external = registration.external_account.as_ref();
            let jwk = self.key.signer().jwk();
            let binding = external.map(|e| jws::binding(e, &jwk, url)).transpose();
            json(&NewAccount {
                contact: &registration.contact,
                terms_of_service_agreed: true,
                external_account_binding: binding.map_err(|_| unsigned(url))?,
            })
        };
        let asked = NamedUrl { what: "newAccount", url };
        self.post(Identity::Key, asked, Payload::Send(&payload), JSON_LIMIT).await
    }

    /// Makes a URL in an answer absolute.
    pub(super) fn absolute(&self, reply: &Reply, url: &str) -> Result<String, AcmeError> {
        let origin = self.authority.origin(&reply.url);
        origin.absolute(url).map_err(|why| protocol(&reply.url, why))
    }

    /// Sends a request as the account.
    pub(super) async fn send(
        &self,
        what: &'static str,
        url: &str,
        payload: Payload<'_>,
    ) -> Result<Reply, AcmeError> {
        let account = self.account().await?;
        self.post(Identity::Account(&account), NamedUrl { what, url }, payload, JSON_LIMIT).await
    }

    pub(super) async fn post(
        &self,
        identity: Identity<'_>,
        asked: NamedUrl<'_>,
        payload: Payload<'_>,
        limit: usize,
    ) -> Result<Reply, AcmeError> {
        post(&self.authority, &self.key, identity, asked, payload, limit).await
    }

    fn location(&self, reply: &Reply) -> Result<Option<String>, AcmeError> {
        text(&reply.headers, &LOCATION)
            .filter(|url| !url.is_empty())
            .map(|url| self.authority.origin(&reply.url).absolute(url))
            .transpose()
            .map_err(|why| protocol(&reply.url, why))
    }

    async fn ask_for_order(&self, url: &str, payload: &[u8]) -> Result<OrderReply, AcmeError> {
        let reply = self.send("newOrder", url, Payload::Send(payload)).await?;
        let is_made = reply.status == 201;
        let url = match self.location(&reply) {
            Ok(named) => named.unwrap_or_default(),
            // The order is made; another request would make another order.
            Err(AcmeError::Protocol { url, why }) if is_made => {
                return Err(AcmeError::NotAcme { url, why });
            }
            Err(error) => return Err(error),
        };
        match self.order_reply(&reply, url.clone()) {
            // The order exists, and another newOrder would make another: its URL is read for the missing data.
            Err(why) if is_made || !url.is_empty() => {
                warn!("{why}");
                self.authority.named.note([url.as_str()]);
                Ok(OrderReply { url, ..OrderReply::default() })
            }
            read => read,
        }
    }

    fn order_reply(&self, reply: &Reply, url: String) -> Result<OrderReply, AcmeError> {
        let order = wire::order(self.authority.origin(&reply.url), &reply.body)
            .map_err(|why| protocol(&reply.url, why))?;
        let expires = by_our_clock(order.expires, reply);
        let authorizations = order.authorizations.iter().map(String::as_str);
        let certificate = order.certificate.iter().map(String::as_str);
        let named = authorizations.chain([url.as_str(), &order.finalize]).chain(certificate);
        self.authority.named.note(named);
        Ok(OrderReply { url, expires, retry_after: pause_of(reply), ..order })
    }
}

#[async_trait]
impl Acme for Session {
    async fn directory(&self) -> Result<Arc<Directory>, AcmeError> {
        self.authority.directory().await
    }

    async fn register(&self, registration: &Registration) -> Result<AccountReply, AcmeError> {
        self.new_account(registration).await
    }

    async fn update_contact(&self, contact: &[String]) -> Result<AccountReply, AcmeError> {
        let url = self.account().await?;
        let payload = json(&json!({"contact": contact}));
        let reply = self.send("account", &url, Payload::Send(&payload)).await?;
        let account = wire::account(&reply.body).map_err(|why| protocol(&reply.url, why))?;
        Ok(AccountReply { url, ..account })
    }

    async fn change_key(&self, new: &AccountKey) -> Result<(), AcmeError> {
        self.send_key_change(new).await
    }

    async fn prepare(&self) -> Result<(), AcmeError> {
        self.directory().await?;
        self.account().await?;
        let _place = self.authority.place().await?;
        let nonce = self.authority.nonce().await?;
        self.authority.nonces.put(nonce);
        Ok(())
    }

    async fn create_order(&self, order: &NewOrder, _: Permit) -> Result<OrderReply, AcmeError> {
        let mut found = self.authority.find(|directory| &directory.new_order).await?;
        let payload = |replaces| {
            json(&WireNewOrder {
                identifiers: order.identifiers.iter().map(identifier).collect(),
                not_after: order.not_after,
                profile: order.profile.as_deref(),
                replaces,
            })
        };
        let replaces = match &order.replaces {
            Some(id) if self.authority.directory().await?.renewal_info.is_some() => Some(id),
            _ => None,
        };
        let mut wanted = payload(replaces.map(String::as_str));
        let mut sent = self.ask_for_order(&found.url, &wanted).await;
        if let Some(there) = self.authority.moved(&found, &sent).await? {
            found = there;
            sent = self.ask_for_order(&found.url, &wanted).await;
        }
        if replaces.is_some() && sent.as_ref().is_err_and(may_be_for_replacing) {
            // Nothing was ordered: another order replaces that certificate already, or the CA does not know it, or knows it as
            // another account's (RFC 9773 §5).
            wanted = payload(None);
            sent = self.ask_for_order(&found.url, &wanted).await;
        }
        let mut reply = sent?;
        if reply.url.is_empty() {
            // A CA that returns the same order again may name its URL now.
            reply = self.ask_for_order(&found.url, &wanted).await?;
        }
        Ok(reply)
    }

    async fn order(&self, url: &str) -> Result<OrderReply, AcmeError> {
        let reply = self.send("order", url, Payload::Read).await?;
        self.order_reply(&reply, url.to_owned())
    }

    async fn authorization(&self, url: &str) -> Result<AuthorizationReply, AcmeError> {
        let reply = self.send("authorization", url, Payload::Read).await?;
        let authorization = wire::authorization(self.authority.origin(&reply.url), &reply.body)
            .map_err(|why| protocol(&reply.url, why))?;
        let expires = by_our_clock(authorization.expires, &reply);
        let named = authorization.challenges.iter().map(|challenge| challenge.url.as_str());
        self.authority.named.note(named);
        Ok(AuthorizationReply { expires, retry_after: pause_of(&reply), ..authorization })
    }

    async fn accept(&self, challenge_url: &str) -> Result<ChallengeReply, AcmeError> {
        let reply = self.send("challenge", challenge_url, Payload::Send(b"{}")).await?;
        let challenge = wire::challenge(self.authority.origin(&reply.url), &reply.body)
            .map_err(|why| protocol(&reply.url, why))?;
        Ok(ChallengeReply { retry_after: pause_of(&reply), ..challenge })
    }

    async fn finalize(&self, finalize_url: &str, csr_der: &[u8]) -> Result<OrderReply, AcmeError> {
        let payload = json(&json!({"csr": URL_SAFE_NO_PAD.encode(csr_der)}));
        let reply = self.send("finalize", finalize_url, Payload::Send(&payload)).await?;
        let url = self.location(&reply).ok().flatten().unwrap_or_default();
        self.order_reply(&reply, url)
    }

    async fn certificate(&self, url: &str) -> Result<CertificateChain, AcmeError> {
        let account = self.account().await?;
        let asked = NamedUrl { what: "certificate", url };
        let identity = Identity::Account(&account);
        let reply = self.post(identity, asked, Payload::Read, CHAIN_LIMIT).await?;
        if reply.status == 202 {
            // A certificate that waits for cosigners (draft-ietf-plants-merkle-tree-certs) is promised, not refused.
            let why = "the CA still makes the certificate, and answers HTTP 202".to_owned();
            let (url, retry_after) = (url.to_owned(), pause_of(&reply));
            return Err(AcmeError::NotYet { url, why, retry_after });
        }
        let pem = String::from_utf8(reply.body)
            .ok()
            .filter(|text| text.contains("-----BEGIN CERTIFICATE-----"))
            .ok_or_else(|| protocol(&reply.url, "there is no certificate in it"))?;
        let mut alternates = Vec::new();
        let origin = self.authority.origin(&reply.url);
        // A link that cannot be followed takes nothing from the chain that is here.
        for link in headers::links(&reply.headers, "alternate") {
            let Ok(link) = origin.absolute(&link) else { continue };
            if link != url && !alternates.contains(&link) {
                alternates.push(link);
            }
        }
        Ok(CertificateChain { pem, alternates })
    }

    fn thumbprint(&self) -> &str {
        self.key.thumbprint()
    }

    fn account_url(&self) -> Option<String> {
        self.known_account()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account = self.known_account().unwrap_or_default();
        write!(f, "Session({}, {account})", self.authority.server)
    }
}

fn identifier(identifier: &Identifier) -> instant_acme::Identifier {
    match identifier {
        Identifier::Dns(name) => instant_acme::Identifier::Dns(name.to_string()),
        Identifier::Ip(address) => instant_acme::Identifier::Ip(*address),
    }
}

/// Makes the refusal for an account that the CA has closed (RFC 8555 §7.3.6), as CAs send that refusal themselves.
pub fn closed(url: &str, status: &str) -> AcmeError {
    let problem = Problem {
        kind: "urn:ietf:params:acme:error:unauthorized".to_owned(),
        status: 401,
        detail: format!("the account {url} is {status}: a new key makes a new account"),
        ..Problem::default()
    };
    AcmeError::Refused { problem: Box::new(problem), retry_after: None, location: None }
}

/// Returns whether an order may have been refused for its `replaces`. CAs say so in words of their own: an order that
/// is refused for another reason is refused again without `replaces`.
fn may_be_for_replacing(error: &AcmeError) -> bool {
    let kind = error.problem().map_or("", Problem::short_kind);
    error.sort() == ErrorSubject::Replaced || matches!(kind, "malformed" | "unauthorized")
}

/// Converts a time of an answer to our own clock, which may differ from the CA's.
fn by_our_clock(at: Option<Timestamp>, reply: &Reply) -> Option<Timestamp> {
    let ahead = headers::ahead(&reply.headers, reply.came);
    at.map(|at| at.checked_sub(ahead).unwrap_or(at))
}

fn pause_of(reply: &Reply) -> Option<Timestamp> {
    let pause = retry_after(&reply.headers, reply.came).filter(|pause| !pause.is_zero())?;
    Some(reply.came + pause)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

    use futures_util::future::join_all;
    use jiff::SignedDuration;
    use zeroize::Zeroizing;

    use super::*;
    use crate::acme::error::{Fault, Retry};
    use crate::acme::fake::{FakeCa, FakeReply, ReceivedRequest};
    use crate::acme::post::MAX_ATTEMPTS;
    use crate::acme::{Clients, ErrorSubject, ExternalAccount, Requests, TlsOptions};
    use crate::model::KeyAlgorithm;
    use crate::model::order_budget::permit;

    fn key() -> AccountKey {
        AccountKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap()
    }

    fn session(clients: &Clients, ca: &FakeCa) -> Session {
        clients.session(&ca.url, &TlsOptions::default(), key(), None).unwrap()
    }

    fn order() -> NewOrder {
        NewOrder {
            identifiers: vec![Identifier::parse("*.a.example").unwrap()],
            ..NewOrder::default()
        }
    }

    async fn registered(clients: &Clients, ca: &FakeCa) -> Session {
        let session = session(clients, ca);
        session.register(&Registration::default()).await.unwrap();
        session
    }

    /// A registered session makes an order at a CA that answers newOrder by the script.
    async fn new_order(
        script: impl Fn(&ReceivedRequest) -> Option<FakeReply> + Send + Sync + 'static,
    ) -> (Result<OrderReply, AcmeError>, FakeCa) {
        let ca =
            FakeCa::start(move |heard| (heard.what == "POST /order").then(|| script(heard))?).await;
        let session = registered(&Clients::new(), &ca).await;
        (session.create_order(&order(), permit()).await, ca)
    }

    #[tokio::test]
    async fn one_certificate_costs_as_few_requests_as_the_protocol_allows() {
        let ca = FakeCa::start(|_| None).await;
        let clients = Clients::new();
        let session = session(&clients, &ca);
        let external =
            ExternalAccount { key_id: "kid".to_owned(), mac_key: Zeroizing::new(vec![1; 32]) };
        let account = session
            .register(&Registration {
                contact: vec!["mailto:a@b.example".to_owned()],
                external_account: Some(external),
                only_return_existing: false,
            })
            .await
            .unwrap();
        assert!(account.created);
        assert_eq!(session.account_url(), Some(ca.at("/acct/1")));

        let made = session.create_order(&order(), permit()).await.unwrap();
        assert_eq!((made.status.as_str(), made.url), ("pending", ca.at("/order/1")));
        let authorization = session.authorization(&made.authorizations[0]).await.unwrap();
        let challenge = session.accept(&authorization.challenges[0].url).await.unwrap();
        assert_eq!(challenge.token, "token_1");
        assert_eq!(session.order(&ca.at("/order/1")).await.unwrap().status, "ready");
        let done = session.finalize(&made.finalize, b"request").await.unwrap();
        assert_eq!((done.status.as_str(), done.url), ("valid", ca.at("/order/1")));
        let chain = session.certificate(&done.certificate.unwrap()).await.unwrap();
        assert_eq!(chain.alternates, [ca.at("/cert/2")]);

        let requests = Requests { directory: 1, nonces: 1, signed: 7, refused_nonces: 0 };
        assert_eq!(clients.requests(), requests);
        let log = ca.log();
        let sent =
            |what: &str| log.iter().find(|heard| heard.what == what).unwrap().payload.clone();
        let account = sent("POST /account");
        assert_eq!(account["termsOfServiceAgreed"], true);
        assert_eq!(account["contact"], json!(["mailto:a@b.example"]));
        assert!(account["externalAccountBinding"]["signature"].is_string());
        assert_eq!(
            sent("POST /order"),
            json!({"identifiers": [{"type": "dns", "value": "*.a.example"}]})
        );
        assert_eq!(sent("POST /chall/1"), json!({}));
        assert_eq!(sent("POST /order/1/finalize"), json!({"csr": "cmVxdWVzdA"}));
    }

    #[tokio::test]
    async fn an_order_carries_what_was_asked_for() {
        let (sent, ca) = new_order(|_| None).await;
        sent.unwrap();
        let session = session(&Clients::new(), &ca);
        session.register(&Registration::default()).await.unwrap();
        let full = NewOrder {
            identifiers: vec![Identifier::parse("2001:db8::1").unwrap()],
            not_after: Some("2026-12-01T00:00:00Z".parse().unwrap()),
            profile: Some("shortlived".to_owned()),
            replaces: Some("a.b".to_owned()),
        };
        session.create_order(&full, permit()).await.unwrap();
        assert_eq!(
            ca.log().last().unwrap().payload,
            json!({"identifiers": [{"type": "ip", "value": "2001:db8::1"}], "profile": "shortlived",
                   "notAfter": "2026-12-01T00:00:00Z", "replaces": "a.b"})
        );
    }

    #[tokio::test]
    async fn what_another_order_replaces_is_ordered_without_saying_so_once() {
        for (refused, orders) in [(1, 2), (2, 2)] {
            let ca = FakeCa::start(move |heard| {
                let is_refused = heard.what == "POST /order" && heard.before < refused;
                is_refused.then(|| FakeReply::problem(409, "alreadyReplaced"))
            })
            .await;
            let session = session(&Clients::new(), &ca);
            session.register(&Registration::default()).await.unwrap();
            let again = NewOrder { replaces: Some("a.b".to_owned()), ..NewOrder::default() };
            let sent = session.create_order(&again, permit()).await;
            assert_eq!((sent.is_ok(), ca.count("POST /order")), (refused == 1, orders));
            let last = ca.log().last().unwrap().payload.clone();
            assert_eq!(last, json!({"identifiers": []}), "{refused}");
        }
    }

    #[tokio::test]
    async fn what_a_ca_knows_nothing_of_is_ordered_without_replacing_it() {
        for (kind, orders) in [("malformed", 2), ("unauthorized", 2), ("rejectedIdentifier", 1)] {
            let body = json!({"type": format!("urn:ietf:params:acme:error:{kind}")});
            let ca = FakeCa::start(move |heard| {
                let is_refused = heard.what == "POST /order" && heard.payload["replaces"] == "a.b";
                is_refused.then(|| FakeReply::new(400, body.to_string()))
            })
            .await;
            let session = session(&Clients::new(), &ca);
            session.register(&Registration::default()).await.unwrap();
            let again = NewOrder { replaces: Some("a.b".to_owned()), ..NewOrder::default() };
            let sent = session.create_order(&again, permit()).await;
            assert_eq!((sent.is_ok(), ca.count("POST /order")), (orders == 2, orders), "{kind}");
        }
    }

    #[tokio::test]
    async fn a_moment_in_the_past_is_no_pause() {
        for (said, waits) in [("0", false), ("Fri, 20 Nov 1994 12:00:00 GMT", false), ("2", true)] {
            let ca = FakeCa::start(move |heard| {
                let order =
                    FakeReply::new(200, r#"{"status":"processing"}"#).with("retry-after", said);
                (heard.what == "POST /order/1").then_some(order)
            })
            .await;
            let session = session(&Clients::new(), &ca);
            session.register(&Registration::default()).await.unwrap();
            let reply = session.order(&ca.at("/order/1")).await.unwrap();
            assert_eq!(reply.retry_after.is_some(), waits, "{said}");
        }
    }

    #[tokio::test]
    async fn a_refused_nonce_is_retried_with_the_fresh_one() {
        let bad = |status: u16, kind: &str| {
            FakeReply::new(status, json!({"type": kind}).to_string()).with("replay-nonce", "fresh")
        };
        for refusal in [
            bad(400, "urn:ietf:params:acme:error:badNonce"),
            bad(403, "urn:acme:error:badNonce"),
            bad(503, "badNonce"),
        ] {
            let (sent, ca) = new_order(move |heard| match heard.before {
                0 => Some(refusal.clone()),
                _ => Some(
                    FakeReply::new(201, r#"{"status":"pending"}"#).with("location", "/order/1"),
                ),
            })
            .await;
            sent.unwrap();
            assert_eq!(ca.log().last().unwrap().protected["nonce"], "fresh");
        }
    }

    #[tokio::test]
    async fn a_refusal_without_a_nonce_costs_a_fetch() {
        let (sent, ca) = new_order(|heard| {
            (heard.before == 0).then(|| FakeReply::problem(400, "badNonce").without_nonce())
        })
        .await;
        sent.unwrap();
        assert_eq!(ca.count("HEAD /nonce"), 2);
    }

    #[tokio::test]
    async fn a_storm_of_refused_nonces_ends() {
        let (sent, ca) = new_order(|_| Some(FakeReply::problem(400, "badNonce"))).await;
        let error = sent.unwrap_err();
        assert_eq!((error.retry(), error.sort()), (Retry::Backoff, ErrorSubject::Unavailable));
        assert_eq!(ca.count("POST /order"), MAX_ATTEMPTS as usize);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn hundreds_of_parallel_requests_survive_refused_nonces() {
        for period in [2, 5] {
            let ca = FakeCa::start(move |heard| {
                let refuse = heard.what == "POST /authz/1" && heard.before % period == 0;
                refuse.then(|| FakeReply::problem(400, "badNonce"))
            })
            .await;
            let clients = Clients::new();
            let session = registered(&clients, &ca).await;
            let url = ca.at("/authz/1");
            let started = std::time::Instant::now();
            for reply in join_all((0..300).map(|_| session.authorization(&url))).await {
                reply.unwrap();
            }
            // Ten at once, then twenty a second.
            let most = 12 + started.elapsed().as_millis() / 50;
            let requests = clients.requests();
            assert_eq!(requests.signed, 301);
            assert!(requests.refused_nonces >= 300 / period as u64, "{requests:?}");
            let nonces = u128::from(requests.nonces);
            assert!(nonces <= most, "new-nonce is the scarcest endpoint: {requests:?}");
        }
    }

    #[tokio::test]
    async fn accounts_of_one_server_share_nonces_and_directory() {
        let ca = FakeCa::start(|_| None).await;
        let clients = Clients::new();
        for _ in 0..3 {
            registered(&clients, &ca).await;
        }
        let requests = Requests { directory: 1, nonces: 1, signed: 3, refused_nonces: 0 };
        assert_eq!(clients.requests(), requests);
        assert_eq!(format!("{clients:?}"), format!("Clients({requests:?})"));
    }

    #[tokio::test]
    async fn an_account_without_its_url_is_found_by_its_key_once() {
        let ca = FakeCa::start(|_| None).await;
        let session = session(&Clients::new(), &ca);
        let url = ca.at("/order/1");
        for reply in join_all((0..5).map(|_| session.order(&url))).await {
            reply.unwrap();
        }
        assert_eq!(ca.count("POST /account"), 1);
        let asked = ca.log().into_iter().find(|heard| heard.what == "POST /account").unwrap();
        assert_eq!(asked.payload, json!({"onlyReturnExisting": true}));
        let updated = session.update_contact(&["mailto:c@d.example".to_owned()]).await.unwrap();
        assert_eq!(updated.contact, Some(vec!["mailto:c@d.example".to_owned()]));
        assert_eq!(updated.url, ca.at("/acct/1"));
    }

    #[tokio::test]
    async fn an_account_may_answer_with_headers_only_but_needs_a_location() {
        for (said, url) in [
            (FakeReply::new(200, "").with("location", "/acct/9"), Some("/acct/9")),
            (FakeReply::new(201, r#"{"status":"valid"}"#), None),
        ] {
            let ca =
                FakeCa::start(move |heard| (heard.what == "POST /account").then(|| said.clone()))
                    .await;
            let sent = session(&Clients::new(), &ca).register(&Registration::default()).await;
            match url {
                Some(path) => {
                    let account = sent.unwrap();
                    assert_eq!((account.url, account.created), (ca.at(path), false));
                }
                None => assert!(sent.unwrap_err().to_string().contains("Location")),
            }
        }
    }

    #[tokio::test]
    async fn a_closed_account_is_no_account() {
        for status in ["deactivated", "revoked"] {
            let ca = FakeCa::start(move |heard| {
                let body = json!({"status": status}).to_string();
                (heard.what == "POST /account")
                    .then(|| FakeReply::new(200, body).with("location", "/acct/9"))
            })
            .await;
            let sent = session(&Clients::new(), &ca).register(&Registration::default()).await;
            let error = sent.unwrap_err();
            assert!(error.to_string().contains(&format!("/acct/9 is {status}")), "{error}");
            assert_eq!((error.retry(), error.sort()), (Retry::Never, ErrorSubject::Account));
        }
    }

    #[tokio::test]
    async fn an_alternate_that_cannot_be_asked_is_left_out() {
        let ca = FakeCa::start(|heard| {
            let links =
                r#"<ftp://ca/1>;rel="alternate", <//>;rel="alternate", </cert/2>;rel="alternate""#;
            let pem = "-----BEGIN CERTIFICATE-----";
            (heard.what == "POST /cert/1").then(|| FakeReply::new(200, pem).with("link", links))
        })
        .await;
        let session = registered(&Clients::new(), &ca).await;
        let chain = session.certificate(&ca.at("/cert/1")).await.unwrap();
        assert_eq!(chain.alternates, [ca.at("/cert/2")]);
    }

    /// A refusal of newOrder shows as that text, sort and pause (in seconds from now; none means for ever).
    async fn check_refusal(said: FakeReply, shown: &str, sort: ErrorSubject, pause: Option<i64>) {
        let (sent, _ca) = new_order(move |_| Some(said.clone())).await;
        let error = sent.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.sort()), (shown, sort));
        match (error.retry(), pause) {
            (Retry::At(at), Some(seconds)) => {
                let left = at.duration_since(Timestamp::now()).as_secs();
                assert!((seconds - 2..=seconds).contains(&left), "{shown}: {left}");
            }
            (Retry::Backoff, Some(0)) | (Retry::Never, None) => {}
            (retry, _) => panic!("{shown}: {retry:?}"),
        }
    }

    #[tokio::test]
    async fn refusals_keep_status_words_and_pause() {
        let limited = || FakeReply::problem(429, "rateLimited");
        let shown = "429 urn:ietf:params:acme:error:rateLimited: no";
        let day = 24 * 3600;
        for (header, pause) in [
            ("3600", 3600),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 1),
            ("0", 1),
            ("-5", 300),
            ("1.5", 300),
            ("soon", 300),
            ("99999999999999999999", 300),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 300),
            ("99999999", 8 * day),
            ("Fri, 01 Jan 2100 00:00:00 GMT", 8 * day),
        ] {
            let said = limited().with("retry-after", header);
            check_refusal(said, shown, ErrorSubject::RateLimited, Some(pause)).await;
        }
        check_refusal(limited(), shown, ErrorSubject::RateLimited, Some(300)).await;
        let detail =
            "Your account is temporarily prevented from requesting certificates for a.example";
        let kind = "urn:ietf:params:acme:error:rateLimited";
        let paused = FakeReply::new(429, json!({"type": kind, "detail": detail}).to_string());
        check_refusal(paused, &format!("429 {kind}: {detail}"), ErrorSubject::Paused, None).await;
        let html = FakeReply::new(429, "<html><h1>429 Too Many\r\n  Requests</h1>");
        let shown = "429 : <html><h1>429 Too Many Requests</h1>";
        check_refusal(html, shown, ErrorSubject::RateLimited, Some(0)).await;
        check_refusal(
            FakeReply::new(503, "busy"),
            "503 : busy",
            ErrorSubject::Unavailable,
            Some(0),
        )
        .await;
        check_refusal(
            FakeReply::problem(500, "serverInternal").with("retry-after", "60"),
            "500 urn:ietf:params:acme:error:serverInternal: no",
            ErrorSubject::Unavailable,
            Some(60),
        )
        .await;
        check_refusal(FakeReply::new(404, ""), "404", ErrorSubject::Gone, None).await;
    }

    /// The pages that the user is sent to by a refusal of newOrder.
    async fn check_pages(kind: &str, instance: Option<&str>, links: &str, pages: &[&str]) {
        let kind = format!("urn:ietf:params:acme:error:{kind}");
        let body = json!({"type": kind, "detail": "no", "instance": instance}).to_string();
        let links = links.to_owned();
        let (sent, ca) = new_order(move |_| {
            let said = FakeReply::new(403, body.clone()).with("location", "/x");
            Some(said.with("link", links.clone()))
        })
        .await;
        let Err(error) = sent else { panic!("{sent:?}") };
        let AcmeError::Refused { problem, location, .. } = &error else { panic!("{error}") };
        assert_eq!(location.as_deref(), Some("/x"));
        let pages: Vec<String> = pages.iter().map(|page| page.replace("CA", &ca.at(""))).collect();
        assert_eq!(problem.pages(), pages, "{kind}");
        for page in pages {
            assert!(error.to_string().contains(&page), "{error}");
        }
    }

    #[tokio::test]
    async fn refusals_come_with_the_pages_that_the_ca_names() {
        let terms = r#"<https://ca.example/terms/2>; rel="terms-of-service""#;
        let both = r#"</terms/2>; rel="terms-of-service", <https://ca.example/help>; rel="help""#;
        let agree = Some("https://ca.example/agree");
        check_pages("userActionRequired", None, terms, &["https://ca.example/terms/2"]).await;
        check_pages(
            "userActionRequired",
            Some("/agree"),
            terms,
            &["CA/agree", "https://ca.example/terms/2"],
        )
        .await;
        check_pages(
            "userActionRequired",
            agree,
            both,
            &["https://ca.example/agree", "CA/terms/2", "https://ca.example/help"],
        )
        .await;
        check_pages("rejectedIdentifier", None, both, &["https://ca.example/help"]).await;
        check_pages("rejectedIdentifier", Some("urn:uuid:1"), "", &[]).await;
    }

    #[tokio::test]
    async fn answers_that_no_ca_should_give_are_named() {
        for (said, reason) in [
            (FakeReply::new(200, "<html>"), "it is HTML"),
            (FakeReply::new(302, "").with("location", "/elsewhere"), "status 302"),
            (FakeReply::endless(), "larger than 1 MiB"),
        ] {
            let (sent, ca) = new_order(move |_| Some(said.clone())).await;
            let error = sent.unwrap_err();
            let text = error.to_string();
            let start = format!("the answer of {} is no ACME", ca.at("/order"));
            assert!(text.starts_with(&start) && text.contains(reason), "{text}");
            assert_eq!(error.retry(), Retry::Backoff);
            assert_eq!(ca.count("POST /elsewhere") + ca.count("GET /elsewhere"), 0);
        }
    }

    #[tokio::test]
    async fn an_order_that_the_answer_does_not_show_is_there_all_the_same() {
        let texts = [
            "",
            "<html>",
            "{}",
            r#"{"status":7}"#,
            r#"{"status":"pending","authorizations":"/authz/1"}"#,
        ];
        let broken =
            [FakeReply::cut(), FakeReply::endless()].map(|said| FakeReply { status: 201, ..said });
        for said in texts.map(|text| FakeReply::new(201, text)).into_iter().chain(broken) {
            let said = said.with("location", "/order/1");
            let (sent, ca) = new_order(move |_| Some(said.clone())).await;
            let reply = sent.unwrap();
            assert_eq!((reply.url, reply.status.as_str()), (ca.at("/order/1"), ""));
            assert_eq!(ca.count("POST /order"), 1);
        }
        // To ask again would make another order.
        let said = FakeReply::new(201, "{}").with("location", "ftp://x/");
        let (sent, _ca) = new_order(move |_| Some(said.clone())).await;
        let error = sent.unwrap_err();
        assert!(error.to_string().contains("scheme ftp"), "{error}");
        assert_eq!(error.retry(), Retry::Never);
    }

    #[tokio::test]
    async fn what_an_answer_has_named_may_lag_behind_and_a_certificate_may_be_promised() {
        let ca = FakeCa::start(|heard| match (heard.what.as_str(), heard.before) {
            ("POST /authz/1" | "POST /order/1", 0) | ("POST /authz/9", _) => {
                Some(FakeReply::problem(404, "malformed"))
            }
            ("POST /cert/1", 0) => Some(FakeReply::new(202, "").with("retry-after", "30")),
            _ => None,
        })
        .await;
        let session = registered(&Clients::new(), &ca).await;
        let order = session.create_order(&order(), permit()).await.unwrap();
        let lags = session.order(&order.url).await.unwrap_err();
        assert_eq!((lags.retry(), lags.problem()), (Retry::Backoff, None), "{lags}");
        assert!(session.order(&order.url).await.is_ok());
        let gone = session.authorization(&ca.at("/authz/9")).await.unwrap_err();
        assert_eq!(gone.retry(), Retry::Never, "{gone}");
        let promised = session.certificate(&ca.at("/cert/1")).await.unwrap_err();
        assert!(matches!(promised.retry(), Retry::At(_)), "{promised}");
    }

    #[tokio::test]
    async fn an_order_whose_place_is_not_told_is_asked_for_once_more() {
        for (silent, requests, url) in [(1, 2, "/order/1"), (9, 2, "")] {
            let (sent, ca) = new_order(move |heard| {
                let said = FakeReply::new(201, r#"{"status":"pending"}"#);
                let told = heard.before >= silent;
                Some(if told { said.with("location", "/order/1") } else { said })
            })
            .await;
            let expected = if url.is_empty() { String::new() } else { ca.at(url) };
            assert_eq!(sent.unwrap().url, expected);
            assert_eq!(ca.count("POST /order"), requests);
        }
    }

    #[tokio::test]
    async fn a_page_is_no_certificate() {
        let ca = FakeCa::start(|heard| {
            (heard.what == "POST /cert/1").then(|| FakeReply::new(200, "<html>come back later"))
        })
        .await;
        let session = registered(&Clients::new(), &ca).await;
        let error = session.certificate(&ca.at("/cert/1")).await.unwrap_err().to_string();
        assert!(error.contains("no certificate in it"), "{error}");
    }

    #[tokio::test]
    async fn a_cut_connection_is_tried_again_where_nothing_can_happen_twice() {
        let ca = FakeCa::start(|heard| {
            let cut = heard.before == 0 && heard.what.starts_with("POST /order");
            cut.then(FakeReply::cut)
        })
        .await;
        let session = registered(&Clients::new(), &ca).await;
        assert_eq!(session.order(&ca.at("/order/1")).await.unwrap().status, "ready");
        let error = session.create_order(&order(), permit()).await.unwrap_err();
        assert!(matches!(error, AcmeError::Transport { fault: Fault::Passing, .. }), "{error}");
        assert_eq!(ca.count("POST /order"), 1);
    }

    #[tokio::test]
    async fn only_absolute_urls_are_asked() {
        let ca = FakeCa::start(|_| None).await;
        let session = registered(&Clients::new(), &ca).await;
        for url in ["", "/order/1", "ftp://ca.example/", "nonsense"] {
            let error = session.order(url).await.unwrap_err();
            assert!(error.to_string().starts_with(&format!("cannot ask {url}: it")), "{error}");
            assert_eq!(error.retry(), Retry::Never);
        }
    }

    #[tokio::test]
    async fn a_pause_is_read_from_good_answers_too() {
        let ca = FakeCa::start(|heard| {
            let body = r#"{"status":"processing","identifier":{"type":"dns","value":"a"}}"#;
            let slow = heard.what == "POST /authz/1" || heard.what == "POST /order/1";
            slow.then(|| FakeReply::new(200, body).with("retry-after", "30"))
        })
        .await;
        let session = registered(&Clients::new(), &ca).await;
        let order = session.order(&ca.at("/order/1")).await.unwrap().retry_after;
        let authorization = session.authorization(&ca.at("/authz/1")).await.unwrap().retry_after;
        for at in [order, authorization] {
            assert!(at.unwrap() > Timestamp::now());
        }
    }

    #[tokio::test]
    async fn what_a_ca_does_not_want_to_be_asked_before_a_moment_is_refused_here_whoever_asks() {
        for what in ["POST /authz/1", "POST /chall/1", "POST /account"] {
            let ca = FakeCa::start(move |heard| {
                let limit = FakeReply::problem(429, "rateLimited").with("retry-after", "60");
                (heard.what == what && heard.before == 0).then_some(limit)
            })
            .await;
            let later = Arc::new(AtomicI64::new(0));
            let clock = Arc::clone(&later);
            let now = move || Timestamp::now() + SignedDuration::from_secs(clock.load(Relaxed));
            let refused = Arc::default();
            let key = key();
            let session = |key: AccountKey| {
                let clients =
                    Clients::new().by_clock(now.clone()).remembering(Arc::clone(&refused));
                clients.session(&ca.url, &TlsOptions::default(), key, None).unwrap()
            };
            let ask = async |session: Session| match what {
                "POST /authz/1" => session.authorization(&ca.at("/authz/1")).await.map(drop),
                "POST /chall/1" => session.accept(&ca.at("/chall/1")).await.map(drop),
                _ => session.register(&Registration::default()).await.map(drop),
            };
            let first = ask(session(key.clone())).await.unwrap_err();
            for _ in 0..2 {
                let again = ask(session(key.clone())).await.unwrap_err();
                assert_eq!((again.retry(), again.to_string()), (first.retry(), first.to_string()));
            }
            assert_eq!(ca.count(what), 1);
            // What another account asks is another request, and so is what is asked later.
            ask(session(AccountKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap())).await.ok();
            assert_eq!(ca.count(what), 2);
            later.store(61, Relaxed);
            ask(session(key.clone())).await.ok();
            assert_eq!(ca.count(what), 3);
        }
    }

    #[tokio::test]
    async fn the_end_of_an_order_is_told_by_our_clock() {
        let ca = FakeCa::start(|heard| {
            let body = r#"{"status":"pending","expires":"1994-11-06T09:49:37Z","identifier":{"type":"dns","value":"a"}}"#;
            let dated = FakeReply::new(200, body).with("date", "Sun, 06 Nov 1994 08:49:37 GMT");
            matches!(heard.what.as_str(), "POST /order/1" | "POST /authz/1").then_some(dated)
        })
        .await;
        let session = registered(&Clients::new(), &ca).await;
        let order = session.order(&ca.at("/order/1")).await.unwrap().expires;
        let authorization = session.authorization(&ca.at("/authz/1")).await.unwrap().expires;
        for at in [order, authorization] {
            let minutes = at.unwrap().duration_since(Timestamp::now()).as_mins();
            assert!((50..=70).contains(&minutes), "an hour from then, not from now: {minutes}");
        }
    }

    #[tokio::test]
    async fn a_refusal_of_several_names_tells_each() {
        let sub = |name: &str, detail: &str| {
            json!({"type": "urn:ietf:params:acme:error:rejectedIdentifier", "detail": detail,
                   "identifier": {"type": "dns", "value": name}})
        };
        let body = json!({
            "type": "urn:ietf:params:acme:error:rejectedIdentifier", "detail": "Error creating new order",
            "subproblems": [sub("a.example", "forbidden by policy"), sub("b.example", "no such suffix"), {"detail": 7}],
        });
        let (sent, _ca) = new_order(move |_| Some(FakeReply::new(400, body.to_string()))).await;
        let error = sent.unwrap_err();
        for name in ["[dns: a.example] forbidden by policy", "[dns: b.example] no such suffix"] {
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!((error.retry(), error.sort()), (Retry::Never, ErrorSubject::Identifier));
    }

    #[tokio::test]
    async fn what_an_answer_calls_itself_does_not_matter() {
        for kind in ["text/html", "application/json; charset=utf-8", "application/octet-stream"] {
            let (sent, ca) = new_order(move |_| {
                let said =
                    FakeReply::new(201, r#"{"status":"pending"}"#).with("content-type", kind);
                Some(said.with("location", "/order/1"))
            })
            .await;
            assert_eq!(sent.unwrap().url, ca.at("/order/1"), "{kind}");
        }
    }

    #[tokio::test]
    async fn an_answer_without_end_is_no_answer() {
        // What is too long is as long the next time; headers without end break the connection.
        for (said, reason, times) in [
            (FakeReply::endless(), "larger than 5 MiB", 1),
            (FakeReply::new(200, "x").with("x-long", "x".repeat(1 << 20)), "headers", 2),
        ] {
            let ca =
                FakeCa::start(move |heard| (heard.what == "POST /cert/1").then(|| said.clone()))
                    .await;
            let session = registered(&Clients::new(), &ca).await;
            let error = session.certificate(&ca.at("/cert/1")).await.unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert_eq!((error.retry(), ca.count("POST /cert/1")), (Retry::Backoff, times));
        }
    }

    #[tokio::test]
    async fn a_session_does_not_print_its_key() {
        let ca = FakeCa::start(|_| None).await;
        let session = registered(&Clients::new(), &ca).await;
        assert_eq!(format!("{session:?}"), format!("Session({}, {})", ca.url, ca.at("/acct/1")));
    }
}
