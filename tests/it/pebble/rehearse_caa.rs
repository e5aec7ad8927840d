//! A rehearsal looks at CAA records as the issuer's CA would: for its names, and the account that is there.

use serde_json::{Value, json};

use crate::support::dns::{DnsServer, Key, Setup, Software, Updates, Zone};
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Said, Terminal, certificate, issuer, secret};

/// A person with an account at a CA, and a zone whose records name that CA, that account, and others.
struct Site {
    terminal: Terminal,
    pebble: Pebble,
    server: DnsServer,
    _resolver: DnsServer,
}

impl Site {
    fn new() -> Self {
        let caa_identities = vec!["ca.example".to_owned()];
        let pebble = Pebble::start(&PebbleOptions { caa_identities, ..PebbleOptions::calm() });
        let mut terminal = Terminal::at(&pebble);
        let acme = issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({}));
        terminal.order(&[acme, certificate("first", &["first.example.com"], json!({}))]);
        let account = terminal.objects("issuers")[0]["status"]["acme"]["uri"].clone();
        let account = account.as_str().unwrap();

        let zone = Zone::new("example.com.")
            .updates(Updates::Signed)
            .with("ours CAA 0 issue \"ca.example\"")
            .with("theirs CAA 0 issue \"other.example\"")
            .with("nobodys CAA 0 issue \";\"")
            .with(&format!("bound CAA 0 issue \"ca.example; accounturi={account}\""))
            .with(&format!("moved CAA 0 issue \"ca.example; accounturi={account}0\""))
            .with("http CAA 0 issue \"ca.example; validationmethods=http-01\"")
            .with("dns CAA 0 issue \"ca.example; validationmethods=dns-01\"")
            .with("plain CAA 0 issue \"ca.example\"\nplain CAA 0 issuewild \";\"")
            .with("wild CAA 0 issue \";\"\nwild CAA 0 issuewild \"ca.example\"")
            .with("strict CAA 0 issue \"ca.example\"\nstrict CAA 128 future \"x\"");
        let server = DnsServer::start(Software::Bind, &Setup::new(vec![zone]));
        let resolver = DnsServer::recursive(&[&server]);
        terminal.set("KUBECTL_ACME_DNS", resolver.address());
        Self { terminal, pebble, server, _resolver: resolver }
    }

    /// Rehearses a Certificate for each name, wildcards by DNS-01.
    fn rehearse(&self, names: &[&str]) -> Said {
        let keys = Key::all();
        let key = keys.iter().find(|key| key.algorithm == "hmac-sha256").unwrap();
        let rfc2136 = json!({
            "nameserver": self.server.address().to_string(),
            "tsigKeyName": key.name,
            "tsigAlgorithm": "HMACSHA256",
            "tsigSecretSecretRef": {"name": "tsig", "key": "secret"},
        });
        let solvers = json!({"solvers": [
            {"http01": {"ingress": {}}},
            {"dns01": {"rfc2136": rfc2136}, "selector": {"dnsNames": wildcards(names)}},
        ]});
        let (directory, trust) = (self.pebble.directory(), self.pebble.tls_ca_pem());
        let mut manifests =
            vec![secret("tsig", "secret", &key.secret), issuer(&directory, trust, solvers)];
        manifests.extend(
            names
                .iter()
                .enumerate()
                .map(|(number, name)| certificate(&format!("number-{number}"), &[name], json!({}))),
        );
        let path = self.terminal.manifests(&manifests);
        self.terminal.drive(&["order", "-f", path.to_str().unwrap(), "--rehearse"])
    }
}

fn wildcards<'a>(names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().filter(|name| name.starts_with('*')).collect()
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_rehearsal_heeds_caa_records_as_the_issuers_ca_would() {
    let site = Site::new();
    let (accounts, orders) = (site.pebble.accounts(), site.pebble.orders());
    let said = site.rehearse(&[
        "www.example.com",
        "a.ours.example.com",
        "*.ours.example.com",
        "bound.example.com",
        "http.example.com",
        "*.dns.example.com",
        "plain.example.com",
        "*.wild.example.com",
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");

    let refused = [
        ("theirs.example.com", "theirs"),
        ("www.theirs.example.com", "theirs"),
        ("*.nobodys.example.com", "nobodys"),
        ("moved.example.com", "moved"),
        ("*.http.example.com", "http"),
        ("dns.example.com", "dns"),
        ("*.plain.example.com", "plain"),
        ("wild.example.com", "wild"),
        ("strict.example.com", "strict"),
    ];
    let said = site.rehearse(&refused.map(|(name, _)| name));
    assert_ne!(said.code, Some(0), "{said:?}");
    for (name, owner) in refused {
        let expected = format!(
            "urn:ietf:params:acme:error:caa: While processing CAA for {name}: CAA record for {owner}.example.com prevents issuance"
        );
        assert!(said.stderr.contains(&expected), "{expected}\n{said:?}");
        let tag = if name.starts_with("*.") { "issuewild" } else { "issue" };
        let owner = format!("{owner}.example.com");
        let expected = format!(
            "hint: the CAA records of {owner} decide for {name} (dig {owner} CAA): let one of them name the CA, as in {owner}. \
             CAA 0 {tag} \"ca.example\"\n"
        );
        assert!(said.stderr.contains(&expected), "{expected}\n{said:?}");
    }
    an_issuer_without_an_account_is_told_so(&site);
    assert_eq!((site.pebble.accounts(), site.pebble.orders()), (accounts, orders));
}

/// A record can only name an account that is there.
fn an_issuer_without_an_account_is_told_so(site: &Site) {
    let (directory, trust) = (site.pebble.directory(), site.pebble.tls_ca_pem());
    let mut manifests = [
        issuer(&directory, trust, json!({})),
        certificate("web", &["bound.example.com"], json!({})),
    ];
    manifests[0]["metadata"]["name"] = "new".into();
    manifests[1]["spec"]["issuerRef"]["name"] = "new".into();
    let path = site.terminal.manifests(&manifests);
    let said = site.terminal.drive(&["order", "-f", path.to_str().unwrap(), "--rehearse"]);
    assert_eq!(said.code, Some(4), "{said:?}");
    for words in [
        "CAA record for bound.example.com prevents issuance: it is for one account (accounturi), and this issuer has none at its \
         CA yet, as far as its status tells",
        "hint: the account of Issuer default/new is created with the first order, and no CAA record can name it before: register \
         Issuer default/new alone first (order -f), then put its status.acme.uri into the record of bound.example.com as \
         accounturi\n",
    ] {
        assert!(said.stderr.contains(words), "{words}\n{said:?}");
    }
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_ca_that_does_not_say_who_it_is_is_rehearsed_without_caa() {
    let site = Site::new();
    let mut manifests: Vec<Value> = vec![
        issuer("https://127.0.0.1:1/directory", site.pebble.tls_ca_pem(), json!({})),
        certificate("web", &["theirs.example.com"], json!({})),
    ];
    manifests[0]["metadata"]["name"] = "other".into();
    manifests[1]["spec"]["issuerRef"]["name"] = "other".into();
    let path = site.terminal.manifests(&manifests);
    let said = site.terminal.drive(&["order", "-f", path.to_str().unwrap(), "--rehearse"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let note = "CAA records are not checked for Issuer default/other, as its CA's CAA identities are unknown: cannot read";
    assert!(said.stderr.contains(note), "{said:?}");
}
