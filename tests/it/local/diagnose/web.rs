//! Web servers that are there and do not show the answer: each is told apart by who it says that it is, and by what it says to other
//! paths. The servers are bare sockets: what counts is each byte that they send.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::{Lab, NAME, reply, server};
use crate::support::bed::free_port;
use crate::support::lab;
use crate::support::terminal::certificate;

const CHALLENGES: &str = "GET /.well-known/acme-challenge/";

/// A server that says one thing to the path of challenges, and another to every other path. Without an answer it ends the connection.
fn by_path(challenge: Option<&'static str>, others: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut request = [0; 2048];
            let read = stream.read(&mut request).unwrap_or_default();
            let is_challenge = request[..read].starts_with(CHALLENGES.as_bytes());
            let answer = if is_challenge { challenge } else { Some(others) };
            // Whoever asks may be gone.
            let _written = stream.write_all(answer.unwrap_or_default().as_bytes());
        }
    });
    port
}

/// What is named first where the name leads to such a server, with the words that tell why.
async fn names_first(cause: &str, port: u16, words: &str, code: i32) {
    let mut lab = Lab::new().await;
    lab.stuck_at(port);
    let first = lab.names_first(&["web"], cause, code);
    assert!(first["message"].as_str().unwrap().contains(words), "{first:#}");
    assert!(!first["evidence"].as_array().unwrap().is_empty(), "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_17_a_page_against_robots() {
    let page =
        "<html><script>document.cookie='__test='+toHex(slowAES.decrypt(c,2,a,b))</script></html>";
    names_first("HTTP-17", server(Some(reply("200 OK", "", page))), "slowaes.decrypt", 10).await;
    let headers = "Server: cloudflare\r\nCF-Ray: 8-FRA\r\ncf-mitigated: challenge\r\n";
    let page = reply("403 Forbidden", headers, "<title>Just a moment...</title>");
    names_first("HTTP-17", server(Some(page)), "cf-mitigated", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_18_a_firewall_cuts_that_path_alone() {
    let shop = reply("200 OK", "", "shop");
    names_first("HTTP-18", by_path(None, shop), NAME, 10).await;
    let blocked = reply("403 Forbidden", "", "Application: acme-protocol is not allowed");
    names_first("HTTP-18", by_path(Some(blocked), shop), NAME, 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_19_a_router_answers() {
    let login = reply(
        "401 Unauthorized",
        "Server: micro_httpd\r\nWWW-Authenticate: Basic realm=\"DSL\"\r\n",
        "login",
    );
    names_first("HTTP-19", server(Some(login)), "micro_httpd", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_21_a_cdn_does_not_reach_the_server_behind_it() {
    let headers = "Server: cloudflare\r\nCF-Ray: 8-FRA\r\n";
    names_first("HTTP-21", server(Some(reply("522 ", headers, ""))), "Cloudflare", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_28_the_port_speaks_http2_only() {
    // SETTINGS, then GOAWAY with PROTOCOL_ERROR, as servers without HTTP/1.1 answer.
    const FRAMES: &str =
        "\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
    names_first("HTTP-28", server(Some(FRAMES)), "HTTP/2", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_35_the_server_shows_another_folder_than_the_webroot() {
    let mut lab = Lab::new().await;
    lab.target = server(Some(reply("404 Not Found", "Server: nginx\r\n", "")));
    let folder = lab.terminal.path("webroot");
    fs::create_dir(&folder).unwrap();
    let webroot = format!("--http01-webroot={}", folder.display());
    lab.terminal.manifests(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    let order = ["order", "-f", "manifests.yaml", "--timeout=8s", &webroot, &lab.resolve()];
    let said = lab.terminal.run(&order);
    assert_eq!(said.code, Some(124), "{said:?}");
    let said = lab.terminal.run(&["diagnose", "web", "-o", "json", &webroot, &lab.resolve()]);
    let report = serde_json::from_str(&said.stdout).unwrap();
    let first = lab::names_first(&report, "HTTP-35");
    assert_eq!(said.code, Some(10), "{first:#}");
    assert!(first["message"].as_str().unwrap().contains("webroot"), "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_rewrites_the_host_is_well() {
    let mut lab = Lab::new().await;
    lab.stuck_at(free_port());
    lab.target = passes_on(lab.terminal.http_port, |bytes| bytes.replace(NAME, "backend.internal"));
    let (said, report) = lab.diagnose(&["web"]);
    lab::names_none(&report, "a proxy that rewrites the Host");
    assert_eq!(said.code, Some(0), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_11_another_run_of_this_program_answers() {
    let mut lab = Lab::new().await;
    let declined = "x-acme-solver: kubectl-acme\r\nCache-Control: no-store\r\n";
    lab.target = server(Some(reply("404 Not Found", declined, "404 page not found\n")));
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("now another run of this program gets the request"), "{said:?}");
    let resolve = lab.resolve();
    let said = lab.terminal.run(&["challenge", "check", &resolve]);
    assert!(format!("{said:?}").contains("HTTP-11"), "{said:?}");
    let first = lab.names_first(&["web"], "HTTP-11", 10);
    assert_eq!(first["grade"], "certain", "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_38_a_proxy_takes_the_path_away() {
    let mut lab = Lab::new().await;
    let cut = |bytes: &str| bytes.replace("/.well-known/acme-challenge", "");
    lab.target = passes_on(lab.terminal.http_port, cut);
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("pass the path on as it is"), "{said:?}");
    let why = said.stderr.lines().find(|line| line.contains("diagnose certificate/web")).unwrap();
    for flag in [lab.listen(), lab.resolve()] {
        assert!(why.contains(flag.split('=').next().unwrap()), "{flag}: {why}");
    }
    let first = lab.names_first(&["web"], "HTTP-38", 10);
    assert!(first["evidence"].to_string().contains("under another path"), "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_37_a_proxy_makes_a_handshake_with_our_listener() {
    let mut lab = Lab::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (origin, port) = (lab.terminal.http_port, listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let _read = stream.read(&mut [0; 2048]);
            if let Ok(mut origin) = TcpStream::connect(("127.0.0.1", origin)) {
                let _hello = origin.write_all(&[22, 3, 1, 0, 5, 1, 0, 0, 1, 0]);
                let _refusal = origin.read(&mut [0; 2048]);
            }
            let _written = stream.write_all(reply("502 Bad Gateway", "", "").as_bytes());
        }
    });
    lab.target = port;
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("it forwards TLS"), "{said:?}");
    let first = lab.names_first(&["web"], "HTTP-37", 10);
    assert!(first["evidence"].to_string().contains("a TLS handshake from"), "{first:#}");
}

/// Nothing is named where somebody asks about a name whose server is well.
async fn is_well(setup: &str, port: u16) {
    let mut lab = Lab::new().await;
    lab.target = port;
    let (said, report) = lab.diagnose(&[NAME]);
    lab::names_none(&report, setup);
    assert_eq!(said.code, Some(0), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_not_know_the_token_are_well() {
    let cdn = "Server: cloudflare\r\nCF-Ray: 8-FRA\r\nCF-Cache-Status: DYNAMIC\r\n";
    is_well("a CDN before the server", server(Some(reply("404 Not Found", cdn, "")))).await;
    let page = "<html><form class=g-recaptcha></form><p>Nothing here</p></html>";
    let cms = reply("404 Not Found", "Server: Apache\r\n", page);
    is_well("a page for what is not there, with a script against robots", server(Some(cms))).await;
    let upgrade = "Server: nginx\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n";
    let both = reply("404 Not Found", upgrade, "");
    is_well("HTTP/1.1 with HTTP/2 on offer", server(Some(both))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cdn_that_passes_the_answer_on_is_well() {
    let mut lab = Lab::new().await;
    // Nobody answers now; what diagnose puts up for the look comes through the CDN.
    lab.stuck_at(free_port());
    lab.target = passes_on(lab.terminal.http_port, str::to_owned);
    let (said, report) = lab.diagnose(&["web"]);
    lab::names_none(&report, "a CDN that passes the answer on");
    assert_eq!(said.code, Some(0), "{report:#}");
}

/// A domain together with a place where this machine answers: whether the way leads there.
#[tokio::test(flavor = "multi_thread")]
async fn a_domain_is_answered_where_the_command_names_a_place() {
    let mut lab = Lab::new().await;
    let port = free_port();
    let listen = format!("--http01-listen=127.0.0.1:{port}");
    lab.target = port;
    let (said, report) = lab.diagnose(&[NAME, &listen]);
    assert_eq!(said.code, Some(0), "{report:#}");
    lab::names_none(&report, "a name that leads to this machine");
    lab.target = server(Some(reply("404 Not Found", "", "")));
    let (said, report) = lab.diagnose(&[NAME, &listen]);
    assert_eq!(said.code, Some(10), "{report:#}");
    lab::names_first(&report, "HTTP-03");
}

/// The guide's item "Got 404 status code": the name leads to a server that does not have the answer.
#[tokio::test(flavor = "multi_thread")]
async fn guide_got_404_status_code() {
    names_first("HTTP-03", server(Some(reply("404 Not Found", "", ""))), NAME, 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_with_an_ipv6_address_alone_is_well() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else { return };
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let _read = stream.read(&mut [0; 2048]);
            let _written = stream.write_all(reply("404 Not Found", "", "").as_bytes());
        }
    });
    let lab = Lab::new().await;
    let resolve = format!("--http01-resolve=*=[::1]:{port}");
    let said = lab.terminal.run(&["diagnose", NAME, "-o", "json", &resolve]);
    let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    lab::names_none(&report, "a name with an IPv6 address alone");
}

/// Hands each request on to a port of this machine, changed so, and puts headers of a CDN before the others of the answer.
fn passes_on(port: u16, change: impl Fn(&str) -> String + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let edge = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let Ok(mut origin) = TcpStream::connect(("127.0.0.1", port)) else {
                continue;
            };
            origin.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).unwrap_or_default();
            let mut answer = Vec::new();
            let request = change(&String::from_utf8_lossy(&bytes[..read]));
            let sent = origin.write_all(request.as_bytes());
            let _passed = sent.and_then(|()| origin.read_to_end(&mut answer));
            let answer = String::from_utf8_lossy(&answer);
            let answer = answer.replacen("\r\n", "\r\nServer: cloudflare\r\nCF-Ray: 8-FRA\r\n", 1);
            let _written = stream.write_all(answer.as_bytes());
        }
    });
    edge
}
