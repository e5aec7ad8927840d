//! What the CA saw, and what a self-check sees, where that differs or somebody stands in between. The servers and proxies are bare
//! sockets; the CA is our own, which tells of its looks as Boulder does.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kubectl_acme::ca::{self, Config, Look};
use kubectl_acme::fetch::Fetcher;
use kubectl_acme::fetch::outcome::Fetched;
use serde_json::json;
use url::Url;

use super::{Lab, NAME};
use crate::support::bed::{PATIENCE, free_port};
use crate::support::ca::TestCa;
use crate::support::full_port::FullPort;
use crate::support::lab;
use crate::support::terminal::{Terminal, certificate};

/// The guide's item "check if you can see the challenge URL from the public internet … firewall configuration": HTTP-04.
#[tokio::test(flavor = "multi_thread")]
async fn guide_a_firewall_hides_the_challenge_url() {
    let full = FullPort::open("127.0.0.1:0");
    let mut lab = Lab::new().await;
    lab.stuck_at(full.port);
    let first = lab.names_first(&["web"], "HTTP-04", 10);
    assert!(first["message"].as_str().unwrap().contains(&full.port.to_string()), "{first:#}");
}

/// Hands each connection on to a port of this machine, its request and the answer changed so; nothing hangs up.
fn between(
    port: u16,
    request: impl Fn(&str) -> Option<String> + Send + 'static,
    answer: impl Fn(&str) -> String + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let edge = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).unwrap_or_default();
            let Some(request) = request(&String::from_utf8_lossy(&bytes[..read])) else { continue };
            let Ok(mut origin) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            origin.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut came = Vec::new();
            let sent = origin.write_all(request.as_bytes());
            let _passed = sent.and_then(|()| origin.read_to_end(&mut came));
            // Whoever asks may be gone.
            let _written = stream.write_all(answer(&String::from_utf8_lossy(&came)).as_bytes());
        }
    });
    edge
}

/// The request, with the wish to end the connection after it.
fn last(request: &str) -> Option<String> {
    let (line, rest) = request.split_once("\r\n")?;
    Some(format!("{line}\r\nConnection: close\r\n{rest}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn http_23_something_is_added_to_the_answer() {
    let mut lab = Lab::new().await;
    let injects = |answer: &str| {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
        let head = head.lines().filter(|line| !line.to_lowercase().starts_with("content-length"));
        let head: Vec<&str> = head.collect();
        format!("{}\r\n\r\n{body}</body></html>", head.join("\r\n"))
    };
    lab.stuck_at(between(lab.terminal.http_port, last, injects));
    let first = lab.names_first(&["web"], "HTTP-23", 10);
    assert!(first["message"].as_str().unwrap().contains("</html>"), "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_30_the_server_wants_a_header_of_the_proxy_protocol() {
    let mut lab = Lab::new().await;
    let strict = |request: &str| last(request.strip_prefix("PROXY ")?.split_once("\r\n")?.1);
    lab.stuck_at(between(lab.terminal.http_port, strict, str::to_owned));
    let first = lab.names_first(&["web"], "HTTP-30", 10);
    assert_eq!(first["grade"], "certain", "{first:#}");
    assert!(first["evidence"].to_string().contains("behind a PROXY header"), "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_29_other_places_of_the_world_do_not_see_it() {
    let lab = Lab::with(Config::default(), &["unseen-from-elsewhere"]).await;
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let first = lab.names_first(&["web"], "HTTP-29", 10);
    let evidence = first["evidence"].to_string();
    assert!(evidence.contains("connected to 127.0.0.1 port "), "{first:#}");
    assert!(evidence.contains("from its own place the CA has seen the answer"), "{first:#}");
}

/// Eyes of a CA before which a clean-up job comes: it takes every answer out of a folder.
#[derive(Debug)]
struct AfterCleanUp {
    eyes: Fetcher,
    folder: PathBuf,
}

#[async_trait]
impl Look for AfterCleanUp {
    async fn get(&self, url: &Url) -> Fetched {
        // Whoever works on the challenge may put the answer there once more.
        loop {
            fs::remove_dir_all(&self.folder).unwrap();
            fs::create_dir_all(&self.folder).unwrap();
            let fetched = self.eyes.get(url).await;
            if fetched.result.as_ref().is_ok_and(|reply| reply.status == 404) {
                return fetched;
            }
        }
    }
}

/// A web server that shows the files below a folder.
fn serving(folder: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).unwrap_or_default();
            let request = String::from_utf8_lossy(&bytes[..read]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
            let (status, body) = match fs::read_to_string(folder.join(path)) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", "no such file".to_owned()),
            };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nServer: files\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            let _written = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn http_36_the_answer_is_gone_when_the_ca_looks() {
    let mut lab = Lab::new().await;
    let webroot = lab.terminal.path("webroot");
    let answers = webroot.join(".well-known/acme-challenge");
    fs::create_dir_all(&answers).unwrap();
    let port = serving(webroot.clone());
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let mut eyes = ca.fetcher();
    eyes.overrides.hosts.insert("*".to_owned(), ("127.0.0.1".parse().unwrap(), Some(port)));
    let eyes = Arc::new(AfterCleanUp { eyes, folder: answers });
    lab.ca.server = ca::serve(Config::default(), eyes).await.unwrap();
    lab.target = port;
    lab.terminal.manifests(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    let root = format!("--http01-webroot={}", webroot.display());
    let order = ["order", "-f", "manifests.yaml", "--timeout=20s", &root, &lab.resolve()];
    let said = lab.terminal.run(&order);
    assert_eq!(said.code, Some(4), "{said:?}");
    let words = ["diagnose", "web", "-o", "json", &root, &lab.resolve()];
    let said = lab.terminal.run(&words);
    let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    let first = lab::names_first(&report, "HTTP-36");
    assert_eq!(said.code, Some(10), "{report:#}");
    assert!(first["evidence"].to_string().contains("connected to 127.0.0.1 port "), "{first:#}");
    assert_eq!(first["explains"].as_array().map(|it| it.contains(&json!("HTTP-03"))), Some(true));
}

/// The guide's item "check if your cluster can see it too": HTTP-08.
#[tokio::test(flavor = "multi_thread")]
async fn guide_the_cluster_does_not_see_the_challenge_url() {
    let mut lab = Lab::new().await;
    lab.terminal.manifests(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    // The router does not send the traffic of those inside back in.
    let closed = format!("--http01-resolve=*=127.0.0.1:{}", free_port());
    let order = ["order", "-f", "manifests.yaml", "--timeout=170s", &lab.listen(), &closed];
    let mut driver = lab.terminal.command(&order);
    let mut driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let is_refused = |terminal: &Terminal| {
        let challenges = terminal.objects("challenges");
        let reason = challenges.first().map(|of| of["status"]["reason"].to_string());
        reason.is_some_and(|reason| reason.contains("efused"))
    };
    while !is_refused(&lab.terminal) {
        assert!(Instant::now() < deadline, "no self-check has failed");
        thread::sleep(Duration::from_millis(100));
    }
    lab.target = lab.terminal.http_port;
    let first = lab.names_first(&["web"], "HTTP-08", 10);
    assert_eq!(first["grade"], "likely", "{first:#}");
    assert!(first["evidence"].to_string().contains("the answer"), "{first:#}");
    driver.kill().unwrap();
    driver.wait().unwrap();
}
