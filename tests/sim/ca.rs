//! The way to the CA, which is in this process, and what happens on it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{DATE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use jiff::{SignedDuration, Timestamp};
use kubectl_acme::http::exchange::{Reply, Transport, Unanswered};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio::time::sleep;
use url::Url;

use super::events::{Asked, Event};
use super::plan::{CaFault, Fault, RetryAfter, Side};
use super::world::{Life, World};

/// Where the CA says that it is.
pub(crate) const BASE: &str = "http://ca.example";

/// Carries the requests of one process.
pub(crate) struct SimCarrier(pub(crate) Arc<Life>);

/// Whether the CA has acted, and what is heard of it.
enum Heard {
    Answer(StatusCode, HeaderMap, Vec<u8>),
    Nothing(Unanswered),
}

#[async_trait]
impl Transport for SimCarrier {
    async fn carry(&self, request: RequestBuilder, _: usize) -> Result<Reply, Unanswered> {
        let request = request.build()?;
        let url = request.url().clone();
        let asked = asked(&self.0, &request);
        let world = &self.0.world;
        self.0.step().await;
        world.latency().await;
        world.tell(Event::Asks(asked.clone()));
        let strikes = world.strikes(&format!("ca {}", asked.what));
        let fault = match strikes {
            Some(Fault::Ca { what, .. }) => Some(what),
            _ if world.is_out(Side::Ca) => Some(CaFault::Cut { acted: false }),
            _ => None,
        };
        let heard = meet(world, &asked, request, fault).await;
        world.latency().await;
        self.0.step().await;
        let (status, pause) = match &heard {
            Heard::Answer(status, headers, _) => {
                let pause = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                let pause = pause.and_then(|text| pause_of(text, world.now()));
                (Some(status.as_u16()), pause)
            }
            Heard::Nothing(_) => (None, None),
        };
        world.tell(Event::Hears { asked, status, retry_after: pause });
        match heard {
            Heard::Answer(status, headers, body) => {
                // By the clock of the machine, as the network's carrier has it.
                let came = world.now_at(self.0.place);
                Ok(Reply { status, headers, body, url, came })
            }
            Heard::Nothing(why) => Err(why),
        }
    }
}

/// Seconds that a Retry-After asks for.
fn pause_of(text: &str, now: Timestamp) -> Option<u64> {
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let date = Timestamp::strptime("%a, %d %b %Y %H:%M:%S %z", text.replace("GMT", "+0000"));
    Some(u64::try_from(date.ok()?.duration_since(now).as_secs()).unwrap_or(0))
}

/// What comes of a request that meets a fault, if any.
async fn meet(
    world: &World,
    asked: &Asked,
    request: reqwest::Request,
    fault: Option<CaFault>,
) -> Heard {
    if asked.what != "directory" && asked.what != "newNonce" && spend_bad_nonce(world) {
        return refused(world, 400, "badNonce", None).await;
    }
    match fault {
        None => act(world, asked, request).await,
        Some(CaFault::Silent { acted, seconds }) => {
            if acted {
                act(world, asked, request).await;
            }
            sleep(Duration::from_secs(seconds)).await;
            Heard::Nothing(Unanswered::TimedOut)
        }
        Some(CaFault::Cut { acted }) => {
            if acted {
                act(world, asked, request).await;
            }
            Heard::Nothing(cut())
        }
        Some(CaFault::Says { acted, status, kind, retry_after }) => {
            if acted {
                act(world, asked, request).await;
            }
            refused(world, status, kind, retry_after).await
        }
        Some(CaFault::Page) => {
            act(world, asked, request).await;
            let page = b"<html>we will be back soon</html>".to_vec();
            Heard::Answer(StatusCode::OK, HeaderMap::new(), page)
        }
        Some(CaFault::BadNonce(times)) => {
            world.bad_nonces.fetch_add(times - 1, Ordering::Relaxed);
            refused(world, 400, "badNonce", None).await
        }
        Some(CaFault::Spoils) => {
            let heard = act(world, asked, request).await;
            for url in orders(world) {
                world.ca().spoil(&url);
            }
            heard
        }
        Some(CaFault::ForgetsOrders) => {
            let heard = act(world, asked, request).await;
            for url in orders(world) {
                world.ca().forget_order(&url);
            }
            heard
        }
        Some(CaFault::ForgetsAccounts) => {
            let heard = act(world, asked, request).await;
            world.ca().forget_accounts();
            heard
        }
        Some(CaFault::Slow(seconds)) => {
            let heard = act(world, asked, request).await;
            sleep(Duration::from_secs(seconds)).await;
            heard
        }
    }
}

/// The orders that anybody knows of here.
fn orders(world: &World) -> Vec<String> {
    let orders = world.peek_all(kubectl_acme::model::Kind::Order).into_iter();
    orders.map(|order| order.text("/status/url").to_owned()).filter(|url| !url.is_empty()).collect()
}

fn spend_bad_nonce(world: &World) -> bool {
    if world.is_calm() {
        return false;
    }
    world
        .bad_nonces
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        .is_ok()
}

/// Has the CA act.
async fn act(world: &World, asked: &Asked, request: reqwest::Request) -> Heard {
    let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default().to_vec();
    let (status, headers, body) =
        call(world, request.method().clone(), &asked.path, request.headers().clone(), body).await;
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    world.tell(Event::Acted { asked: asked.clone(), status: status.as_u16(), location });
    Heard::Answer(status, headers, body)
}

async fn call(
    world: &World,
    method: Method,
    path: &str,
    headers: HeaderMap,
    body: Vec<u8>,
) -> (StatusCode, HeaderMap, Vec<u8>) {
    let mut request = Request::builder().method(method).uri(path).body(Body::from(body)).unwrap();
    *request.headers_mut() = headers;
    let service = TowerToHyperService::new(world.ca().router());
    let (mut head, body) = service.call(request).await.unwrap().into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    head.headers.insert(DATE, date(world.now()));
    (head.status, head.headers, body.to_vec())
}

fn date(at: Timestamp) -> HeaderValue {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string().parse().unwrap()
}

/// A refusal in the CA's name, with a fresh nonce.
async fn refused(world: &World, status: u16, kind: &str, retry_after: Option<RetryAfter>) -> Heard {
    let (_, mut headers, _) =
        call(world, Method::HEAD, "/acme/new-nonce", HeaderMap::new(), Vec::new()).await;
    match retry_after {
        Some(RetryAfter::Seconds(seconds)) => {
            headers.insert(RETRY_AFTER, seconds.to_string().parse().unwrap());
        }
        Some(RetryAfter::Date(seconds)) => {
            let at = world.now() + SignedDuration::from_secs(seconds.cast_signed());
            headers.insert(RETRY_AFTER, date(at));
        }
        None => {}
    }
    let kind = format!("urn:ietf:params:acme:error:{kind}");
    let body = json!({"type": kind, "detail": "no, says the plan", "status": status});
    Heard::Answer(StatusCode::from_u16(status).unwrap(), headers, body.to_string().into_bytes())
}

/// A connection that broke, as the library tells of it.
fn cut() -> Unanswered {
    let response = http::Response::builder().status(599).body("").unwrap();
    Unanswered::Broken(reqwest::Response::from(response).error_for_status().unwrap_err())
}

fn asked(life: &Life, request: &reqwest::Request) -> Asked {
    let path = request.url().path().to_owned();
    let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
    let jws: Value = serde_json::from_slice(body).unwrap_or_default();
    let part = |name: &str| {
        let octets =
            URL_SAFE_NO_PAD.decode(jws[name].as_str().unwrap_or_default()).unwrap_or_default();
        serde_json::from_slice(&octets).unwrap_or_default()
    };
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let what = match parts[..] {
        ["directory"] => "directory",
        ["acme", "new-nonce"] => "newNonce",
        ["acme", "new-account"] => "newAccount",
        ["acme", "new-order"] => "newOrder",
        ["acme", "order", _] => "order",
        ["acme", "authorization", _] => "authorization",
        ["acme", "challenge", ..] => "challenge",
        ["acme", "finalize", _] => "finalize",
        ["acme", "certificate", ..] => "certificate",
        ["acme", "account", _] => "account",
        _ => "other",
    };
    Asked {
        number: life.world.next_number(),
        life: life.number,
        place: life.place,
        identity: life.identity.get().cloned(),
        what,
        is_read: jws["payload"] == "" || request.method() != Method::POST,
        header: part("protected"),
        payload: part("payload"),
        path,
    }
}

/// The URL of a path.
pub(crate) fn url(path: &str) -> Url {
    Url::parse(BASE).unwrap().join(path).unwrap()
}
