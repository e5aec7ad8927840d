//! OCSP both ways: openssl reads what our CA answers, and `certificate check` reads what openssl's responder and our CA answer.

use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use kubectl_acme::acme::inspection::InspectedChain;
use kubectl_acme::acme::revocation::RevocationInquiry;
use kubectl_acme::ca::{Config, RevocationSource};
use kubectl_acme::model::certificate_report::{ReportedRevocation, RevocationState};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CrlDistributionPoint, CustomExtension,
    DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, SerialNumber,
};
use serde_json::Value;

use crate::support::bed::free_port;
use crate::support::ca::TestCa;
use crate::support::program::Running;
use crate::support::terminal::{Said, Terminal, openssl, site};

/// Serial numbers that openssl's responder knows, and one that it has never heard of.
const GOOD: u64 = 0x1001;
const REVOKED: u64 = 0x1002;
const UNKNOWN: u64 = 0x1003;

/// A CA whose responder is openssl.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    port: u16,
    terminal: Terminal,
}

impl Authority {
    fn new() -> Self {
        let issuer = authority("One");
        let terminal = Terminal::elsewhere();
        terminal.write("issuer.pem", &issuer.pem());
        terminal.write("issuer.key", &issuer.key().serialize_pem());
        let line = |sort: &str, revoked: &str, serial: u64| {
            format!("{sort}\t301231000000Z\t{revoked}\t{serial:X}\tunknown\t/CN=www\n")
        };
        let revoked = line("R", "261101000000Z,keyCompromise", REVOKED);
        terminal.write("index.txt", &(line("V", "", GOOD) + &revoked));
        Self { issuer, port: free_port(), terminal }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A certificate that names this responder, and these lists, with its issuer's behind it; the path of both.
    fn chain(&self, serial: u64, responder: &str, lists: &[&str]) -> String {
        let mut leaf = CertificateParams::new(vec!["www.example.com".to_owned()]).unwrap();
        leaf.serial_number = Some(SerialNumber::from(serial));
        let day = Duration::from_hours(24);
        leaf.not_before = (SystemTime::now() - day).into();
        leaf.not_after = (SystemTime::now() + 80 * day).into();
        leaf.custom_extensions = vec![responder_at(responder)];
        let point = |url: &&str| CrlDistributionPoint { uris: vec![(*url).to_owned()] };
        leaf.crl_distribution_points = lists.iter().map(point).collect();
        let leaf = leaf.signed_by(&KeyPair::generate().unwrap(), &self.issuer).unwrap();
        let name = format!("{serial:x}.pem");
        self.terminal.write(&name, &(leaf.pem() + &self.issuer.pem()));
        name
    }

    /// Somebody whom `by` lets sign for it, or for nothing.
    fn delegate(&self, by: &CertifiedIssuer<'static, KeyPair>, may_sign: bool) {
        let mut signer = CertificateParams::default();
        signer.distinguished_name.push(DnType::CommonName, "Responder");
        signer.use_authority_key_identifier_extension = true;
        let usage = ExtendedKeyUsagePurpose::OcspSigning;
        signer.extended_key_usages = if may_sign { vec![usage] } else { Vec::new() };
        let key = KeyPair::generate().unwrap();
        self.terminal.write("signer.pem", &signer.signed_by(&key, by).unwrap().pem());
        self.terminal.write("signer.key", &key.serialize_pem());
    }

    /// Starts openssl's responder, whose answers that one signs.
    fn respond(&self, signer: &str) -> Running {
        let mut command = Command::new("openssl");
        let port = self.port.to_string();
        let (certificate, key) = (format!("{signer}.pem"), format!("{signer}.key"));
        command.current_dir(self.terminal.path("")).args(["ocsp", "-index", "index.txt"]);
        command.args(["-CA", "issuer.pem", "-ndays", "1", "-port", &port]);
        command.args(["-rsigner", &certificate, "-rkey", &key]);
        let mut running = Running::start(&mut command, self.terminal.path("responder.log"));
        running.says("waiting for OCSP client connections");
        running
    }

    /// What `certificate check` finds out of a chain.
    fn checked(&self, chain: &str) -> Value {
        let said = self.terminal.run(&["certificate", "check", chain, "-o", "json"]);
        let report: Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        let one = report["certificates"][0].clone();
        let code = match one["verdict"].as_str() {
            Some("keep") => 0,
            Some("replace") => 10,
            _ => 11,
        };
        assert_eq!(said.code, Some(code), "{said:?}");
        one
    }

    /// Why it is not known whether that chain was revoked.
    #[track_caller]
    fn why(&self, chain: &str) -> String {
        let one = self.checked(chain);
        assert_eq!(one["verdict"], "unknown", "{one:#}");
        assert_eq!(one["unknown"][0]["part"], "revocation", "{one:#}");
        assert_eq!(one["revocation"]["state"], "unknown", "{one:#}");
        one["revocation"]["why"].as_str().unwrap().to_owned()
    }
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// AuthorityInfoAccess with one responder.
fn responder_at(url: &str) -> CustomExtension {
    let ocsp = [0x06, 8, 0x2b, 6, 1, 5, 5, 7, 0x30, 1];
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let place = [&[0x86, length(url.as_bytes())], url.as_bytes()].concat();
    let one = [&ocsp[..], &place].concat();
    let one = [&[0x30, length(&one)], &one[..]].concat();
    let all = [&[0x30, length(&one)], &one[..]].concat();
    CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], all)
}

#[test]
fn what_openssl_answers_is_believed_when_it_counts() {
    let one = Authority::new();
    let [good, revoked, unknown] =
        [GOOD, REVOKED, UNKNOWN].map(|serial| one.chain(serial, &one.url(), &[]));
    assert_eq!(one.why(&good), "Connection refused");
    let other = authority("Two");
    for (signer, by) in [("issuer", None), ("signer", Some(&one.issuer))] {
        if let Some(by) = by {
            one.delegate(by, true);
        }
        let _responder = one.respond(signer);
        let seen = one.checked(&good);
        assert_eq!(
            (&seen["verdict"], &seen["revocation"]["state"]),
            (&"keep".into(), &"good".into())
        );
        assert_eq!(seen["revocation"]["url"], one.url());
        assert!(seen["revocation"]["nextUpdate"].is_string(), "{seen:#}");
        let seen = one.checked(&revoked);
        let reason = &seen["reasons"][0];
        assert_eq!(reason["reason"], "Revoked", "{seen:#}");
        assert_eq!(reason["at"], "2026-11-01T00:00:00Z");
        assert_eq!(reason["detail"], format!("keyCompromise: {}", one.url()));
        assert_eq!(one.why(&unknown), "the responder does not know the certificate");
        let shown = one.terminal.run(&["certificate", "show", &revoked]);
        let line = format!("YES, 2026-11-01T00:00:00Z (keyCompromise), by {}", one.url());
        assert!(shown.stdout.contains(&line), "{shown:?}");
    }
    for (by, may_sign, why) in [
        (&one.issuer, false, "its certificate is not for signing answers of OCSP"),
        (&other, true, "its certificate is not by the issuer"),
    ] {
        one.delegate(by, may_sign);
        let _responder = one.respond("signer");
        let whole = format!("whoever has signed the answer may not answer for the issuer: {why}");
        // A revocation by nobody who may revoke is not believed either.
        assert_eq!([one.why(&good), one.why(&revoked)], [whole.clone(), whole]);
    }
    // Another CA under the same name, which knows the same numbers.
    let namesake = authority("One");
    one.terminal.write("issuer.pem", &namesake.pem());
    one.terminal.write("issuer.key", &namesake.key().serialize_pem());
    let _responder = one.respond("issuer");
    assert_eq!(one.why(&good), "the signature of the answer is wrong");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_to_be_replaced_or_is_to_come_is_not_believed() {
    let one = Authority::new();
    let path = one.chain(REVOKED, &one.url(), &[]);
    let _responder = one.respond("issuer");
    let pem = fs::read(one.terminal.path(&path)).unwrap();
    let chain: Vec<Vec<u8>> =
        pem::parse_many(&pem).unwrap().into_iter().map(pem::Pem::into_contents).collect();
    let state = async |hours: i64| -> ReportedRevocation {
        let now = Timestamp::now() + SignedDuration::from_hours(hours);
        let content = InspectedChain::read(&chain, now).unwrap().content;
        RevocationInquiry::default().state(&chain, &content, now).await
    };
    assert_eq!(state(0).await.state, RevocationState::Revoked);
    for (hours, why) in [(25, "the answer was to be replaced by "), (-1, ", which is to come")] {
        let known = state(hours).await;
        assert_eq!(known.state, RevocationState::Unknown);
        assert!(known.why.as_ref().unwrap().contains(why), "{known:?}");
    }
}

#[test]
fn lists_come_first_and_responders_answer_where_no_list_can_be_had() {
    let one = Authority::new();
    let closed = format!("http://127.0.0.1:{}/1.crl", free_port());
    let path = one.chain(REVOKED, &one.url(), &[&closed]);
    let why = one.why(&path);
    assert!(why.contains(&format!("; {}: ", one.url())), "{why}");
    let _responder = one.respond("issuer");
    assert_eq!(one.checked(&path)["revocation"]["url"], one.url());
}

/// A server that takes no POST, as some that stand before responders do.
#[tokio::test(flavor = "multi_thread")]
async fn a_responder_that_takes_get_only_is_asked_by_get() {
    let config = Config { revocation: vec![RevocationSource::Responder], ..Config::default() };
    let ca = TestCa::start(config, |fetcher| fetcher).await;
    let address = ca.server.address();
    let pass = move |axum::extract::Path(request): axum::extract::Path<String>| async move {
        let request = request.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let url = format!("http://{address}/ocsp/{request}");
        let client = kubectl_acme::http::client::anonymous(None).no_proxy().build().unwrap();
        let reply = client.get(url).send().await.unwrap();
        reply.bytes().await.unwrap()
    };
    let router = Router::new()
        .route("/{*request}", get(pass))
        .fallback(async || StatusCode::METHOD_NOT_ALLOWED);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let terminal = issued(&ca);
    let pem = fs::read(terminal.pair("www-tls").certificate).unwrap();
    let chain: Vec<Vec<u8>> =
        pem::parse_many(&pem).unwrap().into_iter().map(pem::Pem::into_contents).collect();
    let mut content = InspectedChain::read(&chain, Timestamp::now()).unwrap().content;
    content.ocsp_urls = vec![url.clone()];
    let known = RevocationInquiry::default().state(&chain, &content, Timestamp::now()).await;
    assert_eq!(
        (known.state, known.url.as_deref()),
        (RevocationState::Good, Some(&*url)),
        "{known:?}"
    );
}

fn issued(ca: &TestCa) -> Terminal {
    let terminal = site(ca, &["www.example.com"]);
    let said = terminal.drive(&["order", "-f", "manifests.yaml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    terminal
}

#[tokio::test(flavor = "multi_thread")]
async fn openssl_reads_what_our_ca_answers_and_so_does_check() {
    let revocation = vec![RevocationSource::Responder];
    let ca = TestCa::start(Config { revocation, ..Config::default() }, |fetcher| fetcher).await;
    let terminal = issued(&ca);
    let pair = terminal.pair("www-tls");
    let chain = fs::read_to_string(&pair.certificate).unwrap();
    let (leaf, issuer) = chain.split_at(chain.rfind("-----BEGIN").unwrap());
    let files = [("leaf.pem", leaf), ("issuer.pem", issuer), ("root.pem", ca.server.root_pem())];
    for (name, text) in files {
        terminal.write(name, text);
    }
    let url = pair.leaf(&["-ocsp_uri"]).trim().to_owned();
    assert_eq!(url, format!("http://{}/ocsp", ca.server.address()));
    assert_eq!(pair.leaf(&["-ext", "crlDistributionPoints"]), "");
    let ask = |more: &[&str]| -> Said {
        let mut command = Command::new("openssl");
        command.current_dir(terminal.path("")).args(["ocsp", "-issuer", "issuer.pem"]);
        command.args(["-CAfile", "root.pem", "-no_nonce"]).args(more).output().unwrap().into()
    };
    let by_url = |more: &[&str]| {
        let said = ask(&[more, &["-url", &url]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stderr.contains("Response verify OK"), "{said:?}");
        said.stdout
    };
    assert!(by_url(&["-cert", "leaf.pem"]).starts_with("leaf.pem: good\n"));
    assert!(by_url(&["-serial", "0x1234"]).starts_with("0x1234: unknown\n"));
    assert!(by_url(&["-sha256", "-cert", "leaf.pem"]).starts_with("leaf.pem: good\n"));
    let checked = terminal.run(&["certificate", "check", "-o", "json"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("\"state\": \"good\""), "{checked:?}");

    let serial = pair.leaf(&["-serial"]).trim().trim_start_matches("serial=").to_lowercase();
    assert!(ca.server.revoke(&serial, 4));
    let said = by_url(&["-cert", "leaf.pem", "-serial", "0x1234"]);
    for line in ["leaf.pem: revoked\n", "\tReason: superseded\n", "0x1234: unknown\n"] {
        assert!(said.contains(line), "{said}");
    }
    // The same by GET, and what is no request.
    let request = openssl(&[
        "ocsp",
        "-issuer",
        terminal.path("issuer.pem").to_str().unwrap(),
        "-cert",
        terminal.path("leaf.pem").to_str().unwrap(),
        "-no_nonce",
        "-reqout",
        terminal.path("request.der").to_str().unwrap(),
    ]);
    assert_eq!(request, "");
    let client = kubectl_acme::http::client::anonymous(None).no_proxy().build().unwrap();
    let got = async |request: &[u8]| {
        let request = STANDARD.encode(request);
        let request = request.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let reply = client.get(format!("{url}/{request}")).send().await.unwrap();
        assert_eq!(reply.headers()["content-type"], "application/ocsp-response");
        reply.bytes().await.unwrap()
    };
    let answer = got(&fs::read(terminal.path("request.der")).unwrap()).await;
    fs::write(terminal.path("answer.der"), answer).unwrap();
    let said = ask(&["-cert", "leaf.pem", "-respin", "answer.der"]);
    assert!(said.stdout.starts_with("leaf.pem: revoked\n"), "{said:?}");
    assert_eq!(&got(b"nothing").await[..], [0x30, 3, 0x0a, 1, 1]);
    let checked = terminal.run(&["certificate", "check"]);
    assert_eq!(checked.code, Some(10), "{checked:?}");
    assert!(checked.stdout.contains("www    Revoked   "), "{checked:?}");
    let checked = terminal.drive(&["certificate", "check", "--renew"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert_eq!(terminal.run(&["certificate", "check"]).code, Some(0));
}
