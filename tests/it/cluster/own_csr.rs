//! Signing requests of somebody's own in a cluster, whoever drives it.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::cluster::{Arena, Bench, Kubectl, check};
use crate::support::terminal::openssl;

/// A CertificateRequest of that name, for one name of the namespace; its key stays in the folder.
fn request(bench: &Bench<'_>, name: &str) -> Value {
    let path = |extension: &str| {
        let path = bench.folder().join(format!("{name}.{extension}"));
        path.to_str().unwrap().to_owned()
    };
    let (key, request) = (path("key"), path("csr"));
    let names = format!("subjectAltName=DNS:{name}.{}.example.com", bench.namespace.name());
    let begin = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let rest = ["-subj", "/", "-addext", &names, "-keyout", &key, "-out", &request];
    openssl(&[&begin[..], &rest].concat());
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest", "metadata": {"name": name},
        "spec": {
            "request": STANDARD.encode(fs::read(&request).unwrap()),
            "issuerRef": {"name": "pebble"},
        },
    })
}

/// The chain in the folder for results is the one of the status, and for the key that stayed here.
fn has_come(bench: &Bench<'_>, kubectl: &Kubectl, name: &str) {
    let folder = bench.folder().join("out").join(name);
    assert!(!folder.join("tls.key").exists());
    let stored = kubectl.object(&format!("certificaterequest/{name}"));
    let chain = STANDARD.decode(stored["status"]["certificate"].as_str().unwrap()).unwrap();
    assert_eq!(fs::read(folder.join("tls.crt")).unwrap(), chain);
    let [certificate, key] = [folder.join("tls.crt"), bench.folder().join(format!("{name}.key"))];
    let of = |words: &[&str]| openssl(words);
    assert_eq!(
        of(&["x509", "-noout", "-pubkey", "-in", certificate.to_str().unwrap()]),
        of(&["pkey", "-pubout", "-in", key.to_str().unwrap()])
    );
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_signing_request_of_ones_own_is_issued_by_whoever_drives() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "own-csr");
    let kubectl = bench.namespace.kubectl();
    let issuer = bench.issuer("Issuer", "pebble", &json!({"ingress": {}}));
    let order = |name: &str, code: i32| {
        let words = ["order", "-f", "own.yaml", "--out=out", "--timeout=3m"];
        let said = bench.run(&kubectl, &words);
        let talk = check(&said, code);
        if code == 0 {
            has_come(&bench, &kubectl, name);
        }
        talk
    };
    bench.write("own.yaml", &[issuer.clone(), request(&bench, "ours")]);
    let talk = order("ours", 0);
    assert!(talk.contains("driver: kubectl-acme\n"), "{talk}");
    let talk = order("ours", 0);
    assert!(talk.contains("nothing is due: every certificate is there"), "{talk}");
    assert_eq!(bench.pebble.orders(), 1);
    for kind in ["pods", "services", "ingresses", "challenges"] {
        assert!(kubectl.standing(kind).is_empty(), "{kind} stay");
    }
    let before = kubectl.object("certificaterequest/ours");
    bench.write("own.yaml", &[issuer.clone(), request(&bench, "ours")]);
    let talk = order("ours", 2);
    assert!(talk.contains("exists with another spec, and cannot be changed"), "{talk}");
    assert_eq!(kubectl.object("certificaterequest/ours"), before);

    let peer = arena.peer(&[]);
    peer.wait_until_at_work();
    bench.write("own.yaml", &[issuer, request(&bench, "theirs")]);
    let talk = order("theirs", 0);
    assert!(talk.contains("driver: cert-manager ("), "{talk}");
    assert_eq!(bench.orders().ours, 1);
    peer.stop();
}
