//! Signing requests of somebody's own: `order --csr`, and CertificateRequests by `-f`. openssl has the keys.

use std::fs;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Pair, Said, Terminal, issuer, openssl};

const NAME: &str = "www.example.com";

/// A person who keeps keys to himself.
struct Owner {
    pebble: Pebble,
    terminal: Terminal,
}

impl Owner {
    fn new() -> Self {
        let blocked = vec!["refused.example".to_owned()];
        let pebble = Pebble::start(&PebbleOptions { blocked, ..PebbleOptions::calm() });
        let terminal = Terminal::at(&pebble);
        terminal.write("ca.pem", pebble.tls_ca_pem());
        Self { pebble, terminal }
    }

    /// Makes a key and a signing request of that name, for these names.
    fn sign(&self, file: &str, names: &[&str], more: &[&str]) {
        let path = |extension| {
            let path = self.terminal.path(&format!("{file}.{extension}"));
            path.to_str().unwrap().to_owned()
        };
        let names: Vec<String> = names.iter().map(|name| format!("DNS:{name}")).collect();
        let names = format!("subjectAltName={}", names.join(","));
        let (key, request) = (path("key"), path("csr"));
        let begin = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
        let rest = ["-nodes", "-subj", "/", "-keyout", &key, "-out", &request, "-addext", &names];
        openssl(&[&begin[..], &rest, more].concat());
    }

    fn order(&self, words: &[&str]) -> Said {
        let server = format!("--server={}", self.pebble.directory());
        let begin = ["order", &server, "--ca-bundle=ca.pem"];
        self.terminal.drive(&[&begin, words].concat())
    }

    /// The chain in this folder leads to the CA's root, and is for the key in that file; no key is beside it.
    fn check(&self, folder: &str, key: &str) {
        let pair = self.terminal.pair(folder);
        assert!(!pair.key.exists());
        let key = self.terminal.path(&format!("{key}.key"));
        Pair { key, ..pair }.check(&self.pebble.root_pem());
    }

    fn requests(&self) -> Vec<String> {
        let all = self.terminal.objects("certificaterequests");
        all.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn has(said: &Said, code: i32, parts: &[&str]) {
    assert_eq!(said.code, Some(code), "{said:?}");
    for part in parts {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_signing_request_of_ones_own_is_issued_without_its_key_and_then_left_alone() {
    let owner = Owner::new();
    let usages = ["-addext", "keyUsage=digitalSignature", "-addext", "extendedKeyUsage=serverAuth"];
    owner.sign("own", &[NAME, "example.com"], &usages);
    let command = "--on-issued=echo ${ISSUED_KEY_FILE-none} > told; echo $ISSUED_NAMES >> told";
    let said = owner.order(&["--csr=own.csr", command]);
    has(&said, 0, &["CertificateRequest default/www-example-com-csr-1 issued"]);
    owner.check("www-example-com", "own");
    let told = fs::read_to_string(owner.terminal.path("told")).unwrap();
    assert!(told.starts_with("none\n") && told.contains("example.com"), "{told}");
    let stored = owner.terminal.objects("certificaterequests").pop().unwrap();
    assert_eq!(stored["spec"]["usages"], json!(["digital signature", "server auth"]));

    // DER says the same.
    let [pem, der] = ["own.csr", "own.der"].map(|name| owner.terminal.path(name));
    let words = ["req", "-in", pem.to_str().unwrap(), "-outform", "DER", "-out"];
    openssl(&[&words[..], &[der.to_str().unwrap()]].concat());
    has(&owner.order(&["--csr=own.der"]), 0, &["nothing is due: every certificate is there"]);
    assert_eq!((owner.pebble.orders(), owner.requests().len()), (1, 1));

    // Another key for the same name, as often as one likes: the store does not fill.
    for (number, key) in [(2, "other"), (3, "third")] {
        owner.sign(key, &[NAME], &[]);
        let said = owner.order(&[&format!("--csr={key}.csr")]);
        has(&said, 0, &[&format!("www-example-com-csr-{number} issued")]);
        owner.check("www-example-com", key);
    }
    assert_eq!(owner.requests(), ["www-example-com-csr-2", "www-example-com-csr-3"]);
    let said = owner.terminal.run(&["tree"]);
    assert!(said.stdout.contains("CertificateRequest/www-example-com-csr-3"), "{said:?}");
    // The third has taken the place of the second.
    let said = owner.terminal.run(&["certificate", "check", "-o", "json"]);
    let report: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    let checked = report["certificates"].as_array().unwrap();
    assert_eq!(checked.len(), 1, "{report:#}");
    let source = json!({"kind": "CertificateRequest", "namespace": "default", "name": "www-example-com-csr-3"});
    assert_eq!(checked[0]["source"], source, "{report:#}");
    assert_eq!(checked[0]["names"], json!([NAME]), "{report:#}");
    // It is shown by its name alone, too: no Certificate has that one.
    for word in ["www-example-com-csr-3", "cr/www-example-com-csr-3"] {
        let said = owner.terminal.run(&["certificate", "show", word, "--offline"]);
        has(&said, 0, &[]);
        let first = said.stdout.lines().next().unwrap_or_default();
        assert!(first.starts_with("CertificateRequest:") && first.ends_with("-csr-3"), "{said:?}");
    }
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_signing_request_that_was_refused_is_tried_anew_by_the_next_command() {
    let owner = Owner::new();
    owner.sign("own", &[NAME], &[]);
    let mut input = owner.terminal.command(&["order", "--csr=-", "--ca-bundle=ca.pem"]);
    let listen = format!("--http01-listen=127.0.0.1:{}", owner.terminal.http_port);
    // Nobody answers where the self-check looks, and the CA looks elsewhere, too.
    let server = format!("--server={}", owner.pebble.directory());
    input.args([&server, &listen, "--http01-resolve=*=127.0.0.1:1", "--timeout=3s"]);
    let file = fs::File::open(owner.terminal.path("own.csr")).unwrap();
    let said = Said::from(input.stdin(Stdio::from(file)).output().unwrap());
    has(&said, 124, &["CertificateRequest default/www-example-com-csr-1 is not done after 3s"]);
    let why = owner.terminal.run(&["diagnose", "certificaterequest/www-example-com-csr-1"]);
    assert!(why.stdout.contains(NAME), "{why:?}");
    // What is under way goes on.
    has(&owner.order(&["--csr=own.csr"]), 0, &["www-example-com-csr-1 issued"]);
    assert_eq!(owner.pebble.orders(), 1);

    owner.sign("bad", &["refused.example"], &[]);
    for number in [1, 2] {
        let said = owner.order(&["--csr=bad.csr"]);
        let part = format!("CertificateRequest default/refused-example-csr-{number} was not");
        has(&said, 2, &[&part]);
    }
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_certificate_request_of_a_manifest_is_tried_once() {
    let owner = Owner::new();
    owner.sign("own", &[NAME], &[]);
    owner.sign("other", &[NAME], &[]);
    let manifests = |key: &str| {
        let request = fs::read(owner.terminal.path(&format!("{key}.csr"))).unwrap();
        let issuer = issuer(&owner.pebble.directory(), owner.pebble.tls_ca_pem(), json!({}));
        let request: Value = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest",
            "metadata": {"name": "web"},
            "spec": {"request": STANDARD.encode(request), "issuerRef": {"name": "acme"}},
        });
        [issuer, request]
    };
    let rehearsed = {
        let path = owner.terminal.manifests(&manifests("own"));
        owner.terminal.drive(&["order", "-f", path.to_str().unwrap(), "--rehearse"])
    };
    has(&rehearsed, 0, &["rehearsed: nothing was spent"]);
    assert_eq!(owner.pebble.orders(), 0);
    let said = owner.terminal.try_order(&manifests("own"));
    has(&said, 0, &["CertificateRequest default/web issued"]);
    owner.check("web", "own");
    has(&owner.terminal.try_order(&manifests("own")), 0, &["nothing is due"]);
    let before = owner.terminal.objects("certificaterequests");
    let said = owner.terminal.try_order(&manifests("other"));
    has(
        &said,
        2,
        &["exists with another spec, and cannot be changed", "delete certificaterequest/web"],
    );
    assert_eq!(owner.terminal.objects("certificaterequests"), before);
    assert_eq!(owner.pebble.orders(), 1);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn what_is_no_signing_request_for_an_acme_ca_changes_nothing() {
    let owner = Owner::new();
    owner.sign("own", &[NAME], &[]);
    owner.terminal.write("text.csr", "hello\n");
    let key = owner.terminal.path("own.key");
    let without = owner.terminal.path("cn.csr");
    for (subject, names) in [("/CN=www.example.com", None), ("/CN=a.example", Some(NAME))] {
        let mut words = vec!["req", "-new", "-subj", subject, "-key", key.to_str().unwrap()];
        words.extend(["-out", without.to_str().unwrap()]);
        let names = names.map(|name| format!("subjectAltName=DNS:{name}"));
        words.extend(names.iter().flat_map(|names| ["-addext", names]));
        openssl(&words);
        let why = match names {
            None => "names neither a DNS name nor an address in subjectAltName",
            Some(_) => "requests a commonName that is not present in the list of dnsNames",
        };
        has(&owner.order(&["--csr=cn.csr"]), 2, &["cannot use --csr cn.csr: ", why, "hint: "]);
    }
    let mut damaged = fs::read_to_string(owner.terminal.path("own.csr")).unwrap();
    let at = damaged.len() / 2;
    let other = if &damaged[at..=at] == "A" { "B" } else { "A" };
    damaged.replace_range(at..=at, other);
    owner.terminal.write("damaged.csr", &damaged);
    for (name, why) in [
        ("text.csr", "there is no PEM block of a certificate request"),
        ("own.key", "it is a PEM block of type \"PRIVATE KEY\""),
        ("damaged.csr", "cannot use --csr damaged.csr: "),
        ("none.csr", "cannot use --csr none.csr: "),
    ] {
        has(&owner.order(&[&format!("--csr={name}")]), 2, &[why]);
    }
    // A key that is there belongs to another certificate.
    owner.terminal.write("out/www-example-com/tls.key", "somebody's");
    has(&owner.order(&["--csr=own.csr"]), 2, &["there is tls.key, of another certificate"]);
    assert_eq!((owner.requests().len(), owner.pebble.orders()), (0, 0));
}
