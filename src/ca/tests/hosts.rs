//! URLs by the host that is asked, HTTP/2, and what anybody gets.

use reqwest::Version;
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use super::Bed;
use super::client::{Client, Key, identifiers};
use crate::ca::Config;
use crate::model::Identifier;

const NAME: &str = "ca.acme.test";

/// A CA of that name, and a client that finds it.
async fn named() -> Bed {
    let names = vec![Identifier::parse(NAME).unwrap()];
    let mut bed = Bed::start(Config { names, ..Config::default() }).await;
    bed.http = http(&bed).build().unwrap();
    bed
}

fn http(bed: &Bed) -> reqwest::ClientBuilder {
    let root = reqwest::Certificate::from_pem(bed.server.tls_root_pem().as_bytes()).unwrap();
    let builder = reqwest::Client::builder().tls_certs_only([root]).no_proxy();
    builder.resolve(NAME, bed.server.address())
}

/// Returns the same URL at another host.
fn at(host: &str, url: &str) -> String {
    let (_, path) = url.strip_prefix("https://").unwrap().split_once('/').unwrap();
    format!("https://{host}/{path}")
}

/// Fails unless every URL in a document is at that host.
#[track_caller]
fn check_urls(document: &Value, host: &str) {
    let (text, prefix) = (document.to_string(), format!("https://{host}/"));
    let urls = text.split('"').filter(|text| text.starts_with("https://"));
    let elsewhere: Vec<_> = urls.filter(|url| !url.starts_with(&prefix)).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}, not {host}");
}

#[tokio::test]
async fn a_client_is_given_urls_by_the_host_that_it_asks() {
    let bed = named().await;
    // HTTP/2 has the host of the URL, whatever a header says.
    let client = http(&bed).http1_only().build().unwrap();
    let port = bed.server.address().port();
    assert_eq!(bed.server.directory_url(), format!("https://{NAME}:{port}/directory"));
    for host in [NAME, "localhost", "127.0.0.1", "[::1]"] {
        let host = format!("{host}:{port}");
        // The server listens at one address only, but a proxy may ask it for any.
        let url = at(&host.replace("[::1]", "127.0.0.1"), &bed.server.directory_url());
        let answer = client.get(url).header("host", &host).send().await.unwrap();
        let directory: Value = answer.json().await.unwrap();
        check_urls(&directory, &host);
    }
}

#[tokio::test]
async fn an_order_goes_on_by_another_host_and_the_url_is_held_against_that() {
    let bed = named().await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let account = client.account.clone().unwrap();
    let order = client.order(&["www.bed.test"]).await;
    let own = format!("{NAME}:{}", bed.server.address().port());
    let other = format!("localhost:{}", bed.server.address().port());
    check_urls(&order.json(), &own);

    // By the other host, signed for it, with the account as it was given by the first one.
    let seen = client.read(&at(&other, order.header("location"))).await;
    assert_eq!(seen.status, 200, "{seen:?}");
    check_urls(&seen.json(), &other);
    client.authorize(&seen.json()).await;
    assert_eq!(client.read(order.header("location")).await.json()["status"], "ready");

    // Signed for one host and sent to the other (RFC 8555 §6.4).
    let url = client.url("newOrder");
    let payload = json!({ "identifiers": identifiers(&["www.bed.test"]) }).to_string();
    let body = client.key.sign(&client.header(&url).await, &payload).to_string();
    let refused = client.send(&at(&other, &url), "application/jose+json", body).await;
    let (status, kind, detail) = refused.refusal();
    assert_eq!((status, kind.as_str()), (400, "malformed"));
    assert!(detail.contains(&format!("Expected \"https://{other}/")), "{detail}");

    // An account is one of a host that has given it, or of the one that is asked.
    for (kid, status) in [
        (at(&other, &account), 200),
        (account.clone(), 200),
        (at("elsewhere.test", &account), 400),
        (at(&format!("elsewhere.test:{}", bed.server.address().port()), &account), 400),
    ] {
        let url = at(&other, order.header("location"));
        let mut header = client.header(&url).await;
        header["kid"] = kid.as_str().into();
        let body = client.key.sign(&header, "").to_string();
        let answer = client.send(&url, "application/jose+json", body).await;
        assert_eq!(answer.status, status, "{kid}: {answer:?}");
    }
}

#[tokio::test]
async fn an_account_is_known_by_another_host_once_its_key_is_found_again_there() {
    let bed = named().await;
    let mut client = Client::registered(&bed, Key::generate("ES256")).await;
    let account = client.account.take().unwrap();
    let other = format!("localhost:{}", bed.server.address().port());
    let url = at(&other, &client.url("newAccount"));
    let found = client.ask(&url, &json!({ "onlyReturnExisting": true })).await;
    assert_eq!((found.status, found.header("location")), (200, &*at(&other, &account)));
    check_urls(&found.json(), &other);
}

#[tokio::test]
async fn a_forwarded_port_is_in_every_url() {
    let bed = named().await;
    let forward = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (to, port) = (bed.server.address(), forward.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((mut from, _)) = forward.accept().await {
            tokio::spawn(async move {
                let mut to = TcpStream::connect(to).await.unwrap();
                copy_bidirectional(&mut from, &mut to).await.ok();
            });
        }
    });
    let mut client = Client::new(&bed, Key::generate("ES256")).await;
    let directory = format!("https://localhost:{port}/directory");
    client.directory = bed.http.get(directory).send().await.unwrap().json().await.unwrap();
    let made = client.ask("newAccount", &json!({ "termsOfServiceAgreed": true })).await;
    assert_eq!(made.status, 201, "{made:?}");
    client.account = Some(made.header("location").to_owned());
    let order = client.order(&["www.bed.test"]).await;
    check_urls(&order.json(), &format!("localhost:{port}"));
    assert!(order.link("index").starts_with(&format!("https://localhost:{port}/")), "{order:?}");
}

#[tokio::test]
async fn http2_is_spoken_with_those_who_offer_it_and_http1_with_others() {
    let bed = named().await;
    let url = bed.server.directory_url();
    for (client, version) in [
        (http(&bed), Version::HTTP_2),
        (http(&bed).http2_prior_knowledge(), Version::HTTP_2),
        (http(&bed).http1_only(), Version::HTTP_11),
    ] {
        let answer = client.build().unwrap().get(&url).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        let directory: Value = answer.json().await.unwrap();
        check_urls(&directory, &format!("{NAME}:{}", bed.server.address().port()));
    }
}

#[tokio::test]
async fn a_nonce_is_not_to_be_stored_and_health_needs_no_trust() {
    let bed = named().await;
    let client = Client::new(&bed, Key::generate("ES256")).await;
    let caching = async |url: &str| {
        let answer = bed.http.get(url).send().await.unwrap();
        answer.headers()["cache-control"].to_str().unwrap().to_owned()
    };
    assert_eq!(caching(&client.url("newNonce")).await, "no-store");
    assert_eq!(caching(&bed.server.directory_url()).await, "public, max-age=0, no-cache");
    for scheme in ["https", "http"] {
        let url = format!("{scheme}://localhost:{}/health", bed.server.address().port());
        let answer = bed.http.get(url).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{scheme}");
    }
}

#[tokio::test]
async fn a_member_that_is_null_counts_as_absent() {
    let bed = named().await;
    let mut client = Client::new(&bed, Key::generate("ES256")).await;
    for (wish, status) in [
        (json!({"contact": null, "termsOfServiceAgreed": null}), 400),
        (json!({"contact": null, "termsOfServiceAgreed": true, "onlyReturnExisting": null}), 201),
    ] {
        let answer = client.ask("newAccount", &wish).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(!answer.text.contains("did not parse"), "{answer:?}");
        client.account = Some(answer.header("location").to_owned()).filter(|it| !it.is_empty());
    }
    let names = identifiers(&["www.bed.test"]);
    let wish = json!({"identifiers": names, "profile": null, "notAfter": null, "replaces": null});
    assert_eq!(client.ask("newOrder", &wish).await.status, 201);
    let detail = client.ask("newOrder", &json!({"identifiers": null})).await.refusal().2;
    assert!(detail.contains("did not specify any identifiers"), "{detail}");
    let account = client.account.clone().unwrap();
    let changed = client.ask(&account, &json!({"contact": null, "status": null})).await;
    assert_eq!(changed.status, 200, "{changed:?}");
}
