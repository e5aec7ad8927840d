//! One account at one CA: every request signed, sent and judged on one path.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::authority::{Asked, Authority, nonce_of, protocol, refused};
use super::http::{CHAIN_LIMIT, JSON_LIMIT, Reply, exchange};
use super::jws::{self, Identity, Jws};
use super::nonces::Verdict;
use super::{
    AccountKey, AccountReply, Acme, AcmeError, AuthorizationReply, CertificateChain,
    ChallengeReply, Directory, Fault, NewOrder, OrderReply, Registration, Retry, headers, wire,
};
use crate::model::Identifier;

/// How often one request is sent when its nonce is refused: a CA that refuses every other one is outlasted with
/// all but one request in a million.
const ATTEMPTS: u32 = 20;
/// So many are sent at once, the others after growing pauses.
const EAGER: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// Only what broke so soon is read again at once; a slow CA is the driver's to wait for.
const SWIFT: Duration = Duration::from_secs(2);

/// One account at one CA.
pub struct Session {
    authority: Arc<Authority>,
    key: AccountKey,
    account: Mutex<Option<String>>,
    /// Held while the account is looked up by its key, so that this happens once.
    looking_up: tokio::sync::Mutex<()>,
}

/// What is sent: nothing is POST-as-GET (RFC 8555 §6.3).
#[derive(Clone, Copy)]
enum Payload<'a> {
    Read,
    Send(&'a [u8]),
}

impl Payload<'_> {
    fn is_read(self) -> bool {
        matches!(self, Self::Read)
    }
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
            looking_up: tokio::sync::Mutex::default(),
        }
    }

    fn known_account(&self) -> Option<String> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The account's URL; one that was never written down is found by its key (RFC 8555 §7.3.1).
    async fn account(&self) -> Result<String, AcmeError> {
        if let Some(account) = self.known_account() {
            return Ok(account);
        }
        let _guard = self.looking_up.lock().await;
        if let Some(account) = self.known_account() {
            return Ok(account);
        }
        let existing = Registration { only_return_existing: true, ..Registration::default() };
        Ok(self.new_account(&existing).await?.url)
    }

    async fn new_account(&self, registration: &Registration) -> Result<AccountReply, AcmeError> {
        let url = self.authority.directory().await?.new_account.clone();
        let payload = if registration.only_return_existing {
            json(&json!({"onlyReturnExisting": true}))
        } else {
            let external = registration.external_account.as_ref();
            let jwk = self.key.signer().jwk();
            let binding = external.map(|e| jws::binding(e, &jwk, &url)).transpose();
            json(&NewAccount {
                contact: &registration.contact,
                terms_of_service_agreed: true,
                external_account_binding: binding.map_err(|_| unsigned(&url))?,
            })
        };
        let sent = self.exchange(Identity::Key, &url, Payload::Send(&payload), JSON_LIMIT).await;
        let reply = self.listed(sent).await?;
        let account = wire::account(&reply.body).map_err(|why| protocol(&reply.url, why))?;
        let url = self.location(&reply)?.ok_or_else(|| {
            protocol(&reply.url, "it names no account: there is no Location header")
        })?;
        *self.account.lock().unwrap_or_else(PoisonError::into_inner) = Some(url.clone());
        Ok(AccountReply { url, created: reply.status == 201, ..account })
    }

    /// Sends a request as the account.
    async fn send(&self, url: &str, payload: Payload<'_>) -> Result<Reply, AcmeError> {
        let account = self.account().await?;
        self.exchange(Identity::Account(&account), url, payload, JSON_LIMIT).await
    }

    /// Sends a request until its nonce is taken (RFC 8555 §6.5).
    async fn exchange(
        &self,
        identity: Identity<'_>,
        url: &str,
        payload: Payload<'_>,
        limit: usize,
    ) -> Result<Reply, AcmeError> {
        self.admissible(url)?;
        let mut fresh = None;
        let mut pause = FIRST_PAUSE;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (nonce, pooled) = match fresh.take() {
                Some(nonce) => (nonce, false),
                None => (self.authority.nonce().await?, true),
            };
            let started = Instant::now();
            let reply = match self.once(identity, url, payload, limit, &nonce).await {
                // Reading has no effect at the CA: a connection that broke under way is worth a second try.
                Err(error) if attempt == 1 && payload.is_read() && started.elapsed() < SWIFT => {
                    match error.retry() {
                        Retry::Backoff => continue,
                        Retry::Never | Retry::At(_) => return Err(error),
                    }
                }
                sent => sent?,
            };
            let given = nonce_of(&reply.headers);
            let error = (reply.status >= 400).then(|| refused(&reply));
            let bad_nonce = error.as_ref().is_some_and(is_bad_nonce);
            self.authority.count(if bad_nonce { Asked::RefusedNonce } else { Asked::Signed });
            if pooled {
                let verdict = if bad_nonce { Verdict::Refused } else { Verdict::Taken };
                self.authority.nonces.judged(verdict);
            }
            tracing::debug!(url, status = reply.status, attempt, "the CA answered");
            if bad_nonce && attempt < ATTEMPTS {
                // The retry has to use the nonce of the refusal, if it brought one.
                fresh = given;
                if attempt >= EAGER {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                continue;
            }
            if let Some(nonce) = given {
                self.authority.nonces.put(nonce);
            }
            return match error {
                Some(error) => Err(error),
                None if reply.status >= 300 => {
                    let why = format!("status {} to a signed request", reply.status);
                    Err(protocol(&reply.url, why))
                }
                None => Ok(reply),
            };
        }
    }

    /// A URL from the store is held to the same rules as one from an answer.
    fn admissible(&self, url: &str) -> Result<(), AcmeError> {
        let why = match self.authority.origin(&self.authority.server).absolute(url) {
            Ok(absolute) if absolute == url => return Ok(()),
            Ok(_) => format!("\"{url}\" is no absolute URL"),
            Err(why) => why,
        };
        Err(AcmeError::Protocol { url: url.to_owned(), why })
    }

    /// Signs and sends once.
    async fn once(
        &self,
        identity: Identity<'_>,
        url: &str,
        payload: Payload<'_>,
        limit: usize,
        nonce: &str,
    ) -> Result<Reply, AcmeError> {
        let (deed, body) = match payload {
            Payload::Read => ("read", None),
            Payload::Send(body) => ("post to", Some(body)),
        };
        let signer = self.key.signer();
        let signed = signer.request(identity, nonce, url, body).map_err(|_| unsigned(url))?;
        let request = self
            .authority
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/jose+json")
            .header(ACCEPT, "application/pem-certificate-chain, application/json;q=0.9, */*;q=0.1")
            .body(json(&signed));
        exchange(request, deed, url, limit).await
    }

    /// An endpoint of the directory that is gone means another directory.
    async fn listed(&self, sent: Result<Reply, AcmeError>) -> Result<Reply, AcmeError> {
        if let Err(AcmeError::Refused { problem, .. }) = &sent
            && matches!(problem.status, 404 | 405 | 410)
        {
            self.authority.forget_directory().await;
        }
        sent
    }

    fn location(&self, reply: &Reply) -> Result<Option<String>, AcmeError> {
        headers::text(&reply.headers, &LOCATION)
            .filter(|url| !url.is_empty())
            .map(|url| self.authority.origin(&reply.url).absolute(url))
            .transpose()
            .map_err(|why| protocol(&reply.url, why))
    }

    fn order_reply(&self, reply: &Reply, url: String) -> Result<OrderReply, AcmeError> {
        let order = wire::order(self.authority.origin(&reply.url), &reply.body)
            .map_err(|why| protocol(&reply.url, why))?;
        Ok(OrderReply { url, retry_after: pause_of(reply), ..order })
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
        let reply = self.send(&url, Payload::Send(&payload)).await?;
        let account = wire::account(&reply.body).map_err(|why| protocol(&reply.url, why))?;
        Ok(AccountReply { url, ..account })
    }

    async fn create_order(&self, order: &NewOrder) -> Result<OrderReply, AcmeError> {
        let url = self.authority.directory().await?.new_order.clone();
        let payload = json(&WireNewOrder {
            identifiers: order.identifiers.iter().map(identifier).collect(),
            not_after: order.not_after,
            profile: order.profile.as_deref(),
            replaces: order.replaces.as_deref(),
        });
        let sent = self.send(&url, Payload::Send(&payload)).await;
        let reply = self.listed(sent).await?;
        let url = self.location(&reply)?.ok_or_else(|| {
            protocol(&reply.url, "it names no order: there is no Location header")
        })?;
        self.order_reply(&reply, url)
    }

    async fn order(&self, url: &str) -> Result<OrderReply, AcmeError> {
        let reply = self.send(url, Payload::Read).await?;
        self.order_reply(&reply, url.to_owned())
    }

    async fn authorization(&self, url: &str) -> Result<AuthorizationReply, AcmeError> {
        let reply = self.send(url, Payload::Read).await?;
        let authorization = wire::authorization(self.authority.origin(&reply.url), &reply.body)
            .map_err(|why| protocol(&reply.url, why))?;
        Ok(AuthorizationReply { retry_after: pause_of(&reply), ..authorization })
    }

    async fn accept(&self, challenge_url: &str) -> Result<ChallengeReply, AcmeError> {
        let reply = self.send(challenge_url, Payload::Send(b"{}")).await?;
        let challenge = wire::challenge(self.authority.origin(&reply.url), &reply.body)
            .map_err(|why| protocol(&reply.url, why))?;
        Ok(ChallengeReply { retry_after: pause_of(&reply), ..challenge })
    }

    async fn finalize(&self, finalize_url: &str, csr_der: &[u8]) -> Result<OrderReply, AcmeError> {
        let payload = json(&json!({"csr": URL_SAFE_NO_PAD.encode(csr_der)}));
        let reply = self.send(finalize_url, Payload::Send(&payload)).await?;
        let url = self.location(&reply)?.unwrap_or_default();
        self.order_reply(&reply, url)
    }

    async fn certificate(&self, url: &str) -> Result<CertificateChain, AcmeError> {
        let account = self.account().await?;
        let reply =
            self.exchange(Identity::Account(&account), url, Payload::Read, CHAIN_LIMIT).await?;
        let pem = String::from_utf8(reply.body)
            .ok()
            .filter(|text| text.contains("-----BEGIN CERTIFICATE-----"))
            .ok_or_else(|| protocol(&reply.url, "there is no certificate in it"))?;
        let mut alternates = Vec::new();
        for link in headers::links(&reply.headers, "alternate") {
            let link = self
                .authority
                .origin(&reply.url)
                .absolute(&link)
                .map_err(|why| protocol(&reply.url, why))?;
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

/// Told by the last part of its type: namespaces and statuses differ.
fn is_bad_nonce(error: &AcmeError) -> bool {
    error.problem().is_some_and(|problem| problem.short_kind() == "badNonce")
}

fn pause_of(reply: &Reply) -> Option<Timestamp> {
    headers::retry_after(&reply.headers, Timestamp::now())
}

/// JSON of our own structures, none of which can fail to serialize.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn unsigned(url: &str) -> AcmeError {
    AcmeError::Transport {
        deed: "sign a request to",
        url: url.to_owned(),
        why: "the crypto library failed".to_owned(),
        fault: Fault::Passing,
    }
}
