//! What becomes of what was asked for once and is no longer: told before it happens, and left alone where nobody knows who uses it.

use std::fs;

use kubectl_acme::ca::Config;
use serde_json::{Value, json};

use crate::support::ca::TestCa;
use crate::support::outcome;
use crate::support::terminal::{Said, Terminal, certificate, issuer};

fn ingress(annotations: &Value, hosts: &[&str]) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "shop", "annotations": annotations},
        "spec": {
            "defaultBackend": {"service": {"name": "shop", "port": {"number": 80}}},
            "tls": [{"hosts": hosts, "secretName": "shop-tls"}],
        },
    })
}

async fn desk() -> (TestCa, Terminal, Value) {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let mut terminal = Terminal::elsewhere();
    terminal.http_port = ca.http01.port();
    let issuer = issuer(&ca.server.directory_url(), ca.server.tls_root_pem(), json!({}));
    (ca, terminal, issuer)
}

/// What a dry run on the store says of these manifests, line by line.
fn told(terminal: &Terminal, manifests: &[Value]) -> Vec<String> {
    terminal.manifests(manifests);
    let said = terminal.run(&["order", "-f", "manifests.yaml", "--dry-run=server"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let lines = said.stdout.lines().map(|line| line.trim_end_matches(" (server dry run)"));
    lines.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_what_would_become_of_the_certificates_that_an_ingress_asks_for() {
    let (ca, terminal, issuer) = desk().await;
    let asking = json!({"cert-manager.io/issuer": "acme"});
    let first = [issuer.clone(), ingress(&asking, &["shop.example.com"])];
    let [own, object, made] = [
        "issuer.cert-manager.io/acme",
        "ingress.networking.k8s.io/shop",
        "certificate.cert-manager.io/shop-tls",
    ];
    let lines = |words: [&str; 3]| {
        let names = [own, object, made];
        names
            .into_iter()
            .zip(words)
            .map(|(name, word)| format!("{name} {word}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&terminal, &first), lines(["created", "created", "created"]));
    // By the client alone, too; what it prints as documents is to be applied, and then the Certificate comes by itself.
    let client = ["order", "-f", "manifests.yaml", "--dry-run=client"];
    let said = terminal.run(&client);
    assert!(said.stdout.contains(&format!("{made} created (dry run)\n")), "{said:?}");
    let said = terminal.run(&[&client[..], &["-o", "yaml"]].concat());
    assert!(said.stdout.contains("kind: Ingress") && !said.stdout.contains("kind: Certificate"));
    let said = terminal.run(&["order", "-f", "manifests.yaml", "--dry-run=server", "-o", "yaml"]);
    assert!(said.stdout.contains("kind: Certificate\n"), "{said:?}");
    assert!(said.stdout.contains("  dnsNames:\n  - shop.example.com\n"), "{said:?}");
    assert_eq!(outcome::files(&terminal.path("out")).len(), 0);
    assert_eq!(ca.server.orders().len(), 0);

    terminal.order(&first);
    assert_eq!(told(&terminal, &first), lines(["unchanged", "unchanged", "unchanged"]));
    let more = [issuer.clone(), ingress(&asking, &["shop.example.com", "www.example.com"])];
    assert_eq!(told(&terminal, &more), lines(["unchanged", "configured", "configured"]));
    let none = [issuer.clone(), ingress(&json!({}), &["shop.example.com"])];
    assert_eq!(told(&terminal, &none), lines(["unchanged", "configured", "deleted"]));
    let certificates = terminal.objects("certificates");
    assert_eq!(certificates[0]["spec"]["dnsNames"], json!(["shop.example.com"]));
    assert_eq!((certificates.len(), ca.server.orders().len()), (1, 1));

    // What contradicts itself is refused by a dry run as by the work, and what another object lacks is found for it, too.
    let both = json!({"cert-manager.io/issuer": "acme", "cert-manager.io/cluster-issuer": "acme"});
    terminal.manifests(&[issuer, ingress(&both, &["shop.example.com"])]);
    for how in ["--dry-run=client", "--dry-run=server"] {
        let said = terminal.run(&["order", "-f", "manifests.yaml", how]);
        assert_eq!((said.code, &*said.stdout), (Some(2), ""), "{said:?}");
        assert!(said.stderr.contains("Ingress shop: Could not determine issuer"), "{said:?}");
    }
    let other = json!({"cert-manager.io/issuer": "nosuch"});
    terminal.manifests(&[ingress(&other, &["shop.example.com"])]);
    let said = terminal.run(&["order", "-f", "manifests.yaml", "--dry-run=server"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("refers to Issuer default/nosuch"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_longer_asked_for_stays_as_it_is_and_that_is_told() {
    let (_ca, terminal, issuer) = desk().await;
    let of = |more: Value| [issuer.clone(), certificate("web", &["www.example.com"], more)];
    let line = "out/web-tls/tls-combined.pem is no longer asked for: it stays as it is, and may be deleted\n";
    let tells = |said: &Said| said.stderr.matches(line).count();
    let formats = json!({"additionalOutputFormats": [{"type": "CombinedPEM"}, {"type": "DER"}]});
    assert_eq!(tells(&terminal.order(&of(formats))), 0);
    let combined = terminal.path("out/web-tls/tls-combined.pem");
    let before = fs::read(&combined).unwrap();
    let formats = json!({"additionalOutputFormats": [{"type": "DER"}]});
    assert_eq!(tells(&terminal.order(&of(formats))), 1);
    let secrets = outcome::files(&terminal.path("out/web-tls"));
    assert_eq!(
        secrets.keys().collect::<Vec<_>>(),
        ["key.der", "tls-combined.pem", "tls.crt", "tls.key"]
    );
    // A renewal leaves it alone, too, and goes on telling.
    let renewed = terminal.drive(&["certificate", "renew", "web"]);
    assert_eq!((renewed.code, tells(&renewed)), (Some(0), 1), "{renewed:?}");
    assert_eq!(fs::read(&combined).unwrap(), before);
    assert_ne!(secrets["tls.crt"], fs::read(terminal.pair("web-tls").certificate).unwrap());
    fs::remove_file(&combined).unwrap();
    let renewed = terminal.drive(&["certificate", "renew", "web"]);
    assert_eq!((renewed.code, tells(&renewed)), (Some(0), 0), "{renewed:?}");
}
