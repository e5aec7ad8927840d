//! Bad input for the verbs that look after certificates, orders and accounts: each is told with the object, the reason and what to do
//! next, ends with the right code, and changes nothing, neither in the store nor at the CA.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kubectl_acme::ca::{Config, OptionalEndpoint};
use kubectl_acme::model::{Blob, Key, Kind, ObjectName, Record};
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Part, Scope, Store as _};
use serde_json::{Value, json};

use crate::support::ca::TestCa;
use crate::support::outcome;
use crate::support::terminal::{Said, Terminal, openssl, site};

/// Everything that a verb could have changed.
#[derive(Debug, PartialEq)]
struct Traces {
    objects: Vec<Value>,
    files: BTreeMap<String, Vec<u8>>,
    accounts: usize,
    orders: BTreeMap<String, &'static str>,
}

/// Somebody with a certificate for www.example.com of a CA.
struct Desk {
    ca: TestCa,
    terminal: Terminal,
}

impl Desk {
    async fn with(config: Config) -> Self {
        let ca = TestCa::start(config, |fetcher| fetcher).await;
        let terminal = issued(&ca, "www.example.com");
        Self { ca, terminal }
    }

    async fn new() -> Self {
        Self::with(Config::default()).await
    }

    async fn traces(&self) -> Traces {
        let store = LocalStore::open(&self.terminal.path("state"), Access::ReadOnly).unwrap();
        let mut objects = Vec::new();
        for kind in Kind::ALL {
            let listed = store.list(kind, &Scope::all()).await.unwrap();
            objects.extend(listed.into_iter().map(|record| record.object));
        }
        Traces {
            objects,
            files: outcome::files(&self.terminal.path("out")),
            accounts: self.ca.server.accounts(),
            orders: self.ca.server.orders(),
        }
    }

    /// Runs a command that has to fail so, with all of these among its lines, and nothing changed.
    async fn refuses(&self, words: &[&str], code: i32, lines: &[&str]) -> Said {
        let before = self.traces().await;
        let said = self.terminal.run(words);
        assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
        assert_eq!(said.stdout, "", "{words:?}");
        for line in lines {
            assert!(said.stderr.contains(line), "{words:?} without {line:?}: {said:?}");
        }
        assert_eq!(self.traces().await, before, "{words:?}");
        said
    }

    /// Changes an object behind everybody's back.
    async fn change(&self, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
        let store = LocalStore::open(&self.terminal.path("state"), Access::ReadWrite).unwrap();
        let key = Key::new(kind, ObjectName::new("default", name));
        let mut record = store.get(&key).await.unwrap().unwrap();
        change(&mut record.object);
        store.replace(record, Part::Whole).await.unwrap();
    }
}

fn issued(ca: &TestCa, name: &str) -> Terminal {
    let terminal = site(ca, &[name]);
    let said = terminal.drive(&["order", "-f", "manifests.yaml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    terminal
}

/// A key that belongs to nothing.
fn stray_key(terminal: &Terminal) -> String {
    let path = terminal.path("stray.pem").to_str().unwrap().to_owned();
    let curve = "ec_paramgen_curve:P-256";
    openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", curve, "-out", &path]);
    path
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_nobody_are_refused_by_every_verb() {
    let desk = Desk::new().await;
    let key = stray_key(&desk.terminal);
    let issuer = "error: issuers.cert-manager.io \"nosuch\" not found";
    let certificate = "error: certificates.cert-manager.io \"nosuch\" not found";
    let request = "error: certificaterequests.cert-manager.io \"nosuch\" not found";
    let order = "error: orders.acme.cert-manager.io \"nosuch\" not found";
    let rows: &[(&[&str], &str)] = &[
        (&["certificate", "check", "nosuch"], certificate),
        (&["certificate", "show", "nosuch"], certificate),
        (&["certificate", "show", "secret/nosuch"], "error: secrets \"nosuch\" not found"),
        (&["certificate", "revoke", "nosuch", "--yes"], certificate),
        // One that is there is left alone beside one that is not.
        (&["certificate", "revoke", "www", "nosuch", "--yes"], certificate),
        (&["certificate", "renew", "nosuch"], certificate),
        (&["certificate", "renew", "www", "nosuch"], certificate),
        (&["certificate", "approve", "nosuch"], request),
        (&["certificate", "deny", "nosuch"], request),
        (&["order", "retry", "nosuch"], order),
        (&["order", "resume", "nosuch"], order),
        (&["account", "show", "nosuch"], issuer),
        (&["account", "update", "nosuch", "--email=ops@example.com"], issuer),
        (&["account", "rollover", "nosuch"], issuer),
        (&["account", "deactivate", "nosuch", "--yes"], issuer),
        (&["account", "recover", "nosuch"], issuer),
        (&["account", "export", "nosuch", "--out=key.pem"], issuer),
        (&["account", "import", "nosuch", "--key", &key], issuer),
    ];
    for (words, message) in rows {
        desk.refuses(words, 1, &[message, "hint: "]).await;
    }
    assert!(!desk.terminal.path("key.pem").exists());
    // What is there is of another kind.
    let other = "error: \"certificate/www\" is no Issuer but a Certificate\n\
                 hint: name an account by its Issuer";
    for words in [
        &["account", "show", "certificate/www"][..],
        &["account", "rollover", "certificate/www"],
        &["account", "deactivate", "certificate/www", "--yes"],
        &["account", "export", "certificate/www", "--out=key.pem"],
    ] {
        desk.refuses(words, 2, &[other]).await;
    }
    desk.refuses(
        &["certificate", "revoke", "secret/www-tls", "--yes"],
        2,
        &["error: \"secret/www-tls\" is neither a Certificate nor a file\nhint: "],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serial_numbers_of_nobody_lead_to_nothing_and_what_is_none_is_refused() {
    let desk = Desk::new().await;
    let check = ["certificate", "check", "--serials", "serials.txt"];
    let serial = desk.terminal.pair("www-tls").leaf(&["-serial"]);
    let serial = serial.trim().trim_start_matches("serial=").to_lowercase();
    // A fingerprint is no serial number; a bad line spoils the list, whatever stands beside it.
    for line in ["no number", "4g", "0x", &"ab".repeat(32)] {
        desk.terminal.write("serials.txt", &format!("{serial}\n{line}\n"));
        let message = format!(
            "error: cannot use serials.txt: \"{line}\" is not a serial number\nhint: write one"
        );
        desk.refuses(&[&check[..], &["--renew"]].concat(), 2, &[&message]).await;
    }
    // Well-formed, and of nobody.
    let before = desk.traces().await;
    desk.terminal.write("serials.txt", "04ab12\n");
    let said = desk.terminal.drive(&[&check[..], &["--renew"]].concat());
    assert_eq!((said.code, &*said.stdout), (Some(0), ""), "{said:?}");
    assert_eq!(said.stderr, "no certificate has a serial number in serials.txt\n");
    let said = desk.terminal.run(&[&check[..], &["-o", "json"]].concat());
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((said.code, &report["certificates"]), (Some(0), &json!([])), "{said:?}");
    assert_eq!(desk.traces().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_another_ca_is_not_revoked_and_whose_it_is_is_told() {
    let desk = Desk::new().await;
    let other = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let elsewhere = issued(&other, "mail.example.com");
    let foreign = elsewhere.pair("mail-tls");
    let file = text(&foreign.certificate);
    let revoke = ["certificate", "revoke", file, "--yes"];
    let unknown = format!("error: the CA that issued {file} is not known\nhint: name the Issuer");
    desk.refuses(&revoke, 2, &[&unknown]).await;
    let by_account = [&revoke[..], &["--issuer=acme"]].concat();
    let by_key = format!("--key={}", text(&foreign.key));
    let by_key = [&by_account[..], &[&by_key]].concat();
    let message = format!(
        "error: cannot revoke {file} by the account of Issuer default/acme: 404 urn:ietf:params:acme:error:malformed: \
         Unable to revoke :: No such certificate"
    );
    let hint = "hint: the CA is CN=kubectl-acme rehearsal intermediate, trusted by nobody: name the Issuer of that CA \
                with --issuer";
    for words in [by_account, by_key] {
        desk.refuses(&words, 1, &[&message, hint]).await;
    }
    assert_eq!(other.server.statistics().of("revokeCert"), 0);

    // A certificate of the same CA, which another account has asked for: its own key may revoke it, this account may not.
    let elsewhere = issued(&desk.ca, "shop.example.com");
    let neighbour = elsewhere.pair("shop-tls");
    let words = ["certificate", "revoke", text(&neighbour.certificate), "--yes", "--issuer=acme"];
    desk.refuses(
        &words,
        7,
        &[
            "unauthorized: Unable to revoke :: requester does not control all identifiers",
            "hint: --key=FILE signs with the certificate's own private key",
        ],
    )
    .await;

    // It lies in the Secret of a Certificate: that is found, and nothing is done about it unasked.
    let (chain, key) = (fs::read(&foreign.certificate).unwrap(), fs::read(&foreign.key).unwrap());
    desk.change(Kind::Secret, "www-tls", |secret| {
        secret["data"] = json!({"tls.crt": Blob(chain), "tls.key": Blob(key)});
    })
    .await;
    let before = desk.traces().await;
    let said = desk.terminal.run(&["certificate", "check", "www"]);
    assert_eq!(said.code, Some(10), "{said:?}");
    assert!(said.stdout.contains("www    NamesDiffer"), "{said:?}");
    assert_eq!(desk.traces().await, before);
    desk.refuses(&["certificate", "revoke", "www", "--yes"], 1, &["No such certificate", hint])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_does_not_match_signs_nothing() {
    let desk = Desk::new().await;
    let stray = stray_key(&desk.terminal);
    let own = desk.terminal.pair("www-tls");
    let revoke = ["certificate", "revoke", "www", "--yes"];
    let with_key = format!("--key={stray}");
    desk.refuses(
        &[&revoke[..], &[&with_key]].concat(),
        2,
        &["error: the key is not that of the certificate of www: nothing was revoked\n\
         hint: give the matching key with --key=FILE; without --key the account key signs"],
    )
    .await;
    fs::copy(&own.certificate, desk.terminal.path("alone.pem")).unwrap();
    let alone = ["certificate", "revoke", "alone.pem", "--yes", "--issuer=acme", "--key"];
    desk.refuses(
        &alone,
        2,
        &["error: there is no private key beside the certificate of alone.pem\nhint: give the private key with --key=FILE"],
    )
    .await;
    desk.refuses(&[&revoke[..], &["--key=alone.pem"]].concat(), 2, &["alone.pem"]).await;
    desk.refuses(&[&revoke[..], &["--key=nosuch.pem"]].concat(), 2, &["nosuch.pem"]).await;

    // Keys of no account, such as that of a certificate.
    for file in [&*stray, text(&own.key)] {
        let import = ["account", "import", "acme", "--key", file];
        desk.refuses(&import, 2, &[
            "error: Issuer default/acme has another account key in Secret default/acme-account: nothing was changed\n",
            "hint: account import --replace stores the new key",
        ])
        .await;
        let lines = [
            "error: cannot find the account of Issuer default/acme: 400 urn:ietf:params:acme:error:accountDoesNotExist",
            "has no account for this key; nothing was changed",
        ];
        desk.refuses(&[&import[..], &["--replace"]].concat(), 7, &lines).await;
    }
    let import = ["account", "import", "acme", "--replace", "--key"];
    desk.refuses(
        &[&import[..], &["alone.pem"]].concat(),
        2,
        &["error: alone.pem: ", "hint: an account key is PEM, or JWK as certbot keeps it"],
    )
    .await;
    desk.refuses(&[&import[..], &["nosuch.pem"]].concat(), 2, &["error: cannot read nosuch.pem: "])
        .await;
    let export = ["account", "export", "acme", "--out=nosuch/key.pem"];
    desk.refuses(&export, 2, &["error: cannot write nosuch/key.pem: "]).await;

    // The Secret of the account holds the key of nobody.
    let pem = fs::read(&stray).unwrap();
    desk.change(Kind::Secret, "acme-account", |secret| {
        secret["data"]["tls.key"] = json!(Blob(pem));
    })
    .await;
    let unknown = "400 urn:ietf:params:acme:error:accountDoesNotExist";
    for words in [
        &["account", "update", "acme", "--email=ops@example.com"][..],
        &["account", "rollover", "acme"],
        &["account", "deactivate", "acme", "--yes"],
        &["account", "recover", "acme"],
        &["certificate", "revoke", "www", "--yes"],
    ] {
        desk.refuses(words, 7, &["Issuer default/acme: ", unknown, "hint: "]).await;
    }
    let before = desk.traces().await;
    let shown = desk.terminal.run(&["account", "show", "acme"]);
    assert_eq!(shown.code, Some(7), "{shown:?}");
    assert!(shown.stderr.contains(unknown) && shown.stderr.contains("hint: "), "{shown:?}");
    assert_eq!(desk.traces().await, before);

    // It holds none, and then there is no Secret.
    desk.change(Kind::Secret, "acme-account", |secret| secret["data"] = json!({"other": ""})).await;
    for words in [
        &["account", "rollover", "acme"][..],
        &["account", "export", "acme", "--out=key.pem"],
        &["account", "recover", "acme"],
        &["certificate", "revoke", "www", "--yes"],
    ] {
        desk.refuses(words, 2, &["error: account key of Issuer default/acme: ", "hint: "]).await;
    }
    let store = LocalStore::open(&desk.terminal.path("state"), Access::ReadWrite).unwrap();
    let secret = Key::new(Kind::Secret, ObjectName::new("default", "acme-account"));
    store.delete(&secret).await.unwrap();
    drop(store);
    for words in [
        &["account", "update", "acme", "--email=ops@example.com"][..],
        &["account", "deactivate", "acme", "--yes"],
        &["account", "recover", "acme"],
    ] {
        desk.refuses(words, 2, &[
            "error: Secret default/acme-account with the account key of Issuer default/acme does not exist",
            "hint: ",
        ])
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_ca_does_not_offer_is_told_before_anything_is_changed() {
    let without = vec![
        OptionalEndpoint::KeyChange,
        OptionalEndpoint::RenewalInfo,
        OptionalEndpoint::RevokeCert,
    ];
    let desk = Desk::with(Config { without, ..Config::default() }).await;
    let offers = |what: &str| {
        let url = desk.ca.server.directory_url();
        format!("the CA at {url} offers no {what}: its directory does not name it\n")
    };
    let beside = "hint: the CA does this on its own pages, if at all: ACME has no request for it";
    let revoke = ["certificate", "revoke", "www", "--yes"];
    for words in [&revoke[..], &["certificate", "revoke", "www", "--yes", "--key"]] {
        let message = "error: cannot revoke www by the account of Issuer default/acme: ";
        desk.refuses(words, 1, &[message, &offers("revokeCert"), beside]).await;
    }
    desk.refuses(
        &["account", "rollover", "acme"],
        1,
        &[
            "error: cannot change the account key of Issuer default/acme: ",
            &offers("keyChange"),
            beside,
            "hint: the account keeps the key that it has",
        ],
    )
    .await;
    // Windows are a help, not a need.
    let before = desk.traces().await;
    let shown = desk.terminal.run(&["certificate", "show", "www"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("Renewal Window:  the CA offers none\n"), "{shown:?}");
    let checked = desk.terminal.run(&["certificate", "check", "www"]);
    assert_eq!((checked.code, &*checked.stdout), (Some(0), ""), "{checked:?}");
    assert_eq!(desk.traces().await, before);
    let renewed = desk.terminal.drive(&["certificate", "renew", "www"]);
    assert_eq!(renewed.code, Some(0), "{renewed:?}");
    assert_eq!((desk.ca.server.orders().len(), desk.ca.server.replaced().len()), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_or_belongs_to_nobody_is_left_alone() {
    let desk = Desk::new().await;
    let before = desk.traces().await;
    let order = desk.terminal.objects("orders")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    for (words, line) in [
        (["order", "retry", &order], "is valid: there is nothing to try again; "),
        (["order", "resume", &order], "Certificate default/www: nothing is under way\n"),
        (["order", "resume", "www"], "Certificate default/www: nothing is under way\n"),
    ] {
        let said = desk.terminal.run(&words);
        assert_eq!(said.code, Some(0), "{words:?} {said:?}");
        assert!(said.stderr.contains(line), "{words:?} {said:?}");
    }
    assert_eq!(desk.traces().await, before);
    for verb in ["approve", "deny"] {
        desk.refuses(&["certificate", verb, "www"], 1, &[
            "error: CertificateRequest default/www-1 is already approved\nhint: a decision is final",
        ])
        .await;
    }
    let stray = json!({
        "apiVersion": "acme.cert-manager.io/v1", "kind": "Order",
        "metadata": {"name": "stray", "namespace": "default"},
        "spec": {"request": "eA==", "issuerRef": {"name": "acme"}, "dnsNames": ["www.example.com"]},
    });
    let store = LocalStore::open(&desk.terminal.path("state"), Access::ReadWrite).unwrap();
    store.create(Record::new(stray).unwrap()).await.unwrap();
    drop(store);
    for verb in ["retry", "resume"] {
        let line = "error: Order default/stray belongs to no Certificate\nhint: ";
        desk.refuses(&["order", verb, "stray"], 2, &[line, "order delete stray"]).await;
    }
    desk.refuses(
        &["account", "update", "acme", "--email=nobody"],
        2,
        &["is not an e-mail address"],
    )
    .await;
    // The CA refuses the address itself.
    desk.refuses(
        &["account", "update", "acme", "--email=ops@example.com"],
        7,
        &[
            "error: cannot change the contact of the account of Issuer default/acme: ",
            "invalidContact",
            "hint: use another --email, or --no-email; the contact is unchanged",
        ],
    )
    .await;
    for words in [&["certificate", "revoke", "www"][..], &["account", "deactivate", "acme"]] {
        desk.refuses(words, 2, &["standard input is not a terminal", "hint: --yes confirms it"])
            .await;
    }
    let revoke = ["certificate", "revoke", "www", "--yes"];
    assert_eq!(desk.terminal.run(&revoke).code, Some(0));
    desk.refuses(
        &revoke,
        1,
        &[
            "alreadyRevoked",
            "hint: the certificate is already revoked; replace it: ",
            "certificate renew www",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_of_another_sort_or_not_there_yet_is_told_as_such() {
    let desk = Desk::new().await;
    let store = LocalStore::open(&desk.terminal.path("state"), Access::ReadWrite).unwrap();
    let object = |kind: &str, name: &str, spec: Value| {
        let metadata = json!({"name": name, "namespace": "default"});
        let api = "cert-manager.io/v1";
        Record::new(json!({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}))
    };
    let certificate = |name: &str, issuer: Value| {
        let spec = json!({"secretName": format!("{name}-tls"), "dnsNames": ["a.example.com"], "issuerRef": issuer});
        object("Certificate", name, spec)
    };
    let foreign = json!({"name": "pca", "kind": "AWSPCAIssuer", "group": "awspca.cert-manager.io"});
    for record in [
        object("Issuer", "own", json!({"selfSigned": {}})),
        certificate("new", json!({"name": "acme"})),
        certificate("signed", json!({"name": "own"})),
        certificate("foreign", foreign),
    ] {
        store.create(record.unwrap()).await.unwrap();
    }
    drop(store);
    let no_account =
        "error: Issuer default/own is of another type than acme: it has no account\nhint: ";
    for words in [
        &["account", "show", "own"][..],
        &["account", "update", "own", "--no-email"],
        &["account", "rollover", "own"],
        &["account", "deactivate", "own", "--yes"],
        &["account", "recover", "own"],
        &["account", "export", "own", "--out=key.pem"],
    ] {
        desk.refuses(words, 2, &[no_account]).await;
    }
    for (name, line) in [
        (
            "new",
            "error: Certificate default/new has no certificate in Secret default/new-tls\nhint: show the progress: ",
        ),
        (
            "signed",
            "error: Certificate default/signed has no certificate in Secret default/signed-tls\nhint: ",
        ),
        (
            "foreign",
            "error: Certificate default/foreign was not issued by an ACME issuer\nhint: revoke the certificate at its CA",
        ),
    ] {
        desk.refuses(&["certificate", "revoke", name, "--yes"], 2, &[line]).await;
        let line = format!("error: cannot show Certificate default/{name}: there is no Secret");
        desk.refuses(&["certificate", "show", name], 1, &[&line, "hint: show the progress: "])
            .await;
    }
    for (words, code, line) in [
        (
            ["certificate", "renew", "signed"],
            2,
            "Issuer default/own is of type selfSigned: on this machine only acme is served",
        ),
        (["certificate", "renew", "foreign"], 2, "issuerRef.group is awspca.cert-manager.io"),
        (["order", "retry", "foreign"], 2, "issuerRef.group is awspca.cert-manager.io"),
        (["order", "resume", "new"], 2, "nothing is under way"),
        (
            ["certificate", "approve", "new"],
            1,
            "certificaterequests.cert-manager.io \"new\" not found",
        ),
    ] {
        desk.refuses(&words, code, &["error: ", line, "hint: "]).await;
    }
}
