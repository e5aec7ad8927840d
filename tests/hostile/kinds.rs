//! The kinds of input: each is a folder of the corpus, and a function that gives bytes to what ships.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use kubectl_acme::acme::inspection::{InspectedChain, Material, issuer_name};
use kubectl_acme::acme::revocation_list::RevocationList;
use kubectl_acme::acme::{
    AccountKey, Acme, Clients, PrivateKey, Registration, Session, TlsOptions, chain, csr,
    renewal_info,
};
use kubectl_acme::commands::diagnose::bundle;
use kubectl_acme::diagnosis::case::web::WebReply;
use kubectl_acme::diagnosis::rules;
use kubectl_acme::dns::Resolve;
use kubectl_acme::dns::lookup::DirectResolver;
use kubectl_acme::fetch::trust::TrustingClient;
use kubectl_acme::http::headers;
use kubectl_acme::keystores::{jks, pkcs12};
use kubectl_acme::model::cron::Cron;
use kubectl_acme::model::manifest::set::Namespaces;
use kubectl_acme::model::manifest::{self, Source};
use kubectl_acme::model::memory::{Holder, Memory};
use kubectl_acme::model::order_ledger::Ledger;
use kubectl_acme::model::{
    Certificate, CertificateRequest, Challenge, Identifier, Issuer, KeyAlgorithm, Kind, Order,
    Record, Secret,
};
use kubectl_acme::print::jsonpath::Template;
use kubectl_acme::reconcile::record_values::RecordState;
use kubectl_acme::reconcile::{challenge, order};
use kubectl_acme::store::cluster::Connection;
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Scope, Store as _};
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use super::network::{DIRECTORY, SaidByCa, Words, name_server};

/// Gives bytes to what ships.
type Reads = fn(&mut Bench, &[u8]);

/// A folder of the corpus, and what reads it.
pub(crate) const KINDS: [(&str, Reads); 10] = [
    ("manifests", manifests),
    ("ca", ca),
    ("objects", objects),
    ("pem", pem),
    ("der", der),
    ("dns", dns),
    ("kubeconfig", kubeconfig),
    ("state", state),
    ("bundle", diagnosis_bundle),
    ("words", words),
];

/// What the functions need beside bytes.
pub(crate) struct Bench {
    runtime: Runtime,
    said: Words,
    clients: Clients,
    session: Session,
    resolver: DirectResolver,
    folder: PathBuf,
}

impl Bench {
    pub(crate) fn new(folder: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let said = Words::default();
        let carried = |has_directory| {
            let carrier = SaidByCa { words: Arc::clone(&said), has_directory };
            Clients::new().carried_by(Arc::new(carrier))
        };
        let key = AccountKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap();
        let account = Some("https://ca.example/account/1".to_owned());
        let session = carried(true).session(DIRECTORY, &TlsOptions::default(), key, account);
        let server = runtime.block_on(name_server(Arc::clone(&said)));
        Self {
            session: session.unwrap(),
            clients: carried(false),
            resolver: DirectResolver::new(server),
            folder: folder.to_owned(),
            runtime,
            said,
        }
    }

    fn say(&self, bytes: &[u8]) {
        *self.said.lock().unwrap() = bytes.to_vec();
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn manifests(_: &mut Bench, bytes: &[u8]) {
    let source = Source { name: "hostile.yaml".to_owned(), text: text(bytes) };
    let namespaces = Namespaces { given: None, default: "default" };
    match manifest::read(&[source], namespaces) {
        Ok(set) => drop(set.warnings.iter().map(ToString::to_string).collect::<String>()),
        Err(complaints) => {
            drop(complaints.iter().map(ToString::to_string).collect::<String>());
        }
    }
}

/// Everything that a CA answers, as its session reads it.
fn ca(bench: &mut Bench, bytes: &[u8]) {
    bench.say(bytes);
    let (session, clients) = (&bench.session, &bench.clients);
    bench.runtime.block_on(async {
        drop(clients.directory(DIRECTORY, &TlsOptions::default()).await);
        drop(session.order("https://ca.example/order/1").await);
        drop(session.authorization("https://ca.example/authorization/1").await);
        drop(session.accept("https://ca.example/challenge/1").await);
        drop(session.finalize("https://ca.example/order/1/finalize", b"request").await);
        drop(session.certificate("https://ca.example/certificate/1").await);
        drop(session.register(&Registration::default()).await);
    });
    drop(renewal_info::read(bytes));
}

fn as_kind<T: DeserializeOwned>(record: &Record) -> Option<T> {
    serde_json::from_value(record.object.clone()).ok()
}

/// An object of an API server, and what the machines make of it.
fn objects(_: &mut Bench, bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice(bytes) else { return };
    let Some(record) = Record::new(value) else { return };
    let annotations = record.metadata().annotations;
    for holder in [Holder::Certificate, Holder::Challenge, Holder::Issuer, Holder::Order] {
        let mut written = annotations.clone();
        Memory::read(holder, &annotations).write(holder, &mut written);
    }
    Ledger::read(&annotations).write(&mut annotations.clone());
    drop(as_kind::<Certificate>(&record));
    drop(as_kind::<CertificateRequest>(&record));
    drop(as_kind::<Issuer>(&record));
    drop(as_kind::<Secret>(&record));
    if let Some(found) = as_kind::<Order>(&record) {
        let observed =
            order::Observed { challenges: &[], required: Ok(&[]), sharers: &[], heard: None };
        drop(order::next_action(&found, &observed, now()));
        drop(order::record(&found, order::Outcome::Expired(now()), now()));
    }
    if let Some(found) = as_kind::<Challenge>(&record) {
        let observed = challenge::Observed {
            order: None,
            contended: true,
            beside: true,
            polled: None,
            answer_stands: true,
            by_hand: false,
            visible: None,
            lingering: None,
            record: &RecordState::Complete(None),
            followed: challenge::Followed::default(),
        };
        drop(challenge::next_action(&found, &observed, now()));
        drop(challenge::record(&found, challenge::Outcome::Presented(Vec::new()), now()));
    }
}

fn pem(_: &mut Bench, bytes: &[u8]) {
    drop(PrivateKey::from_pem(bytes));
    drop(AccountKey::from_pem(bytes));
    drop(csr::read(bytes));
    let words = text(bytes);
    drop(chain::leaf(&words));
    drop(chain::top_issuer(&words));
    if let Ok(Material { certificates, .. }) = Material::find(bytes) {
        chain_of(&certificates);
        for issuer in &certificates {
            drop(RevocationList::read(bytes, issuer));
        }
    }
    let tls = TlsOptions { ca_bundle: bytes.to_vec(), skip_verify: false };
    let key = AccountKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap();
    drop(Clients::new().session(DIRECTORY, &tls, key, None));
}

fn chain_of(certificates: &[Vec<u8>]) {
    drop(InspectedChain::read(certificates, now()));
    drop(TrustingClient::of(certificates.iter().cloned()));
}

fn der(_: &mut Bench, bytes: &[u8]) {
    drop(PrivateKey::from_der(bytes));
    drop(csr::read(bytes));
    drop(chain::leaf_of_der(bytes));
    drop(issuer_name(bytes));
    chain_of(&[bytes.to_vec()]);
    drop(RevocationList::read(bytes, bytes));
    jks::opens(bytes, "certificate", "changeit");
    for profile in ["", "LegacyDES", "Modern2023", "Modern2026"] {
        pkcs12::opens(bytes, pkcs12::Profile::of(profile), "changeit");
    }
}

fn dns(bench: &mut Bench, bytes: &[u8]) {
    bench.say(bytes);
    bench.runtime.block_on(async {
        drop(bench.resolver.texts("www.example.com").await);
        drop(bench.resolver.caa("www.example.com").await);
        drop(bench.resolver.addresses("www.example.com").await);
    });
}

fn kubeconfig(bench: &mut Bench, bytes: &[u8]) {
    let path = bench.folder.join("kubeconfig");
    fs::write(&path, bytes).unwrap();
    drop(Connection { kubeconfig: Some(path), ..Connection::default() }.contexts());
}

/// The file of the local state; an empty folder has a new one made.
fn state(bench: &mut Bench, bytes: &[u8]) {
    let folder = tempfile::tempdir_in(&bench.folder).unwrap();
    let file = folder.path().join("state.db");
    fs::write(&file, bytes).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    for access in [Access::ReadOnly, Access::ReadWrite] {
        let Ok(store) = LocalStore::open(folder.path(), access) else { continue };
        bench.runtime.block_on(async {
            for kind in [Kind::Certificate, Kind::Challenge, Kind::Event, Kind::Order] {
                drop(store.list(kind, &Scope::all()).await);
            }
        });
    }
}

fn diagnosis_bundle(bench: &mut Bench, bytes: &[u8]) {
    let path = bench.folder.join("bundle");
    fs::write(&path, bytes).unwrap();
    if let Ok(case) = bundle::open(&path) {
        drop(rules::judge(&case));
        drop(bundle::text(&case));
    }
}

/// Small things: names, times, paths, answers of web servers.
fn words(_: &mut Bench, bytes: &[u8]) {
    let words = text(bytes);
    drop(WebReply::read(bytes));
    drop(Cron::parse(&words));
    drop(Identifier::parse(&words));
    drop(Template::parse(&words).map(|template| template.render(&serde_json::json!({"a": [1]}))));
    let mut map = http::HeaderMap::new();
    if let Ok(value) = http::HeaderValue::from_bytes(bytes) {
        map.insert("retry-after", value.clone());
        map.insert("date", value);
        let _pause = headers::retry_after(&map, now());
    }
}
