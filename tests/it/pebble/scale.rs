//! Many names and many certificates: the binary against Pebble, strict and with 20 % of the nonces refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use kubectl_acme::acme::chain;
use kubectl_acme::model::{Challenge, Kind, ObjectName, Record};
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::resources::typed;
use kubectl_acme::store::{Change, Scope, Store as _};
use serde_json::json;
use tempfile::TempDir;

use crate::support::fault::Fault;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::program;
use crate::support::proxy::Proxy;
use crate::support::traffic::{Counts, Endpoint, Exchange};

/// Everything that one run left.
struct Issued {
    pebble: Pebble,
    counts: Counts,
    exchanges: Vec<Exchange>,
    /// Most challenges that were in flight at once, as another process saw it.
    in_flight: usize,
    folder: TempDir,
}

/// Issues one certificate per list of names, and returns when the command has ended well.
fn check(
    options: &PebbleOptions,
    faults: Vec<Fault>,
    certificates: &[Vec<String>],
    cap: usize,
) -> Issued {
    let pebble = Pebble::start(options);
    let proxy = pebble.proxy();
    for fault in faults {
        proxy.inject(fault);
    }
    let folder = tempfile::tempdir().unwrap();
    write_manifests(folder.path(), &pebble, &proxy, certificates);
    let mut command = program::command();
    command
        .args(["order", "-f", "manifests.yaml", "--local=state", "--out=out"])
        .args(["--timeout=20m", "-o", "name", "--dns", &pebble.dns().address()])
        .args(["--http01-listen", &format!("127.0.0.1:{}", pebble.http_port())])
        .args(["--http01-resolve", &format!("*=127.0.0.1:{}", pebble.http_port())])
        .args(["--max-concurrent-challenges", &cap.to_string()])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(folder.path().join("log")).unwrap());
    let (output, in_flight) = run_watched(command, &folder.path().join("state"));
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(output.status.success(), "{}: {log}", output.status);
    let issued = String::from_utf8(output.stdout).unwrap().lines().count();
    assert_eq!(issued, certificates.len(), "{log}");
    let (counts, exchanges) = (proxy.counts(), proxy.exchanges());
    Issued { pebble, counts, exchanges, in_flight, folder }
}

fn write_manifests(folder: &Path, pebble: &Pebble, proxy: &Proxy, certificates: &[Vec<String>]) {
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": {"name": "pebble"},
        "spec": {"acme": {
            "server": proxy.directory(),
            "caBundle": STANDARD.encode(pebble.tls_ca_pem()),
            "privateKeySecretRef": {"name": "pebble-account"},
            "solvers": [{"http01": {"ingress": {}}}],
        }},
    });
    let certificate = |(number, names): (usize, &Vec<String>)| {
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": format!("c{number}")},
            "spec": {
                "secretName": format!("c{number}-tls"),
                "issuerRef": {"name": "pebble"},
                "privateKey": {"algorithm": "ECDSA"},
                "dnsNames": names,
            },
        })
    };
    let documents = certificates.iter().enumerate().map(certificate);
    let documents: Vec<String> =
        std::iter::once(issuer).chain(documents).map(|document| document.to_string()).collect();
    fs::write(folder.join("manifests.yaml"), documents.join("\n---\n")).unwrap();
}

/// Runs the command while another process, this one, counts its challenges in flight.
fn run_watched(command: Command, state: &Path) -> (std::process::Output, usize) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let state = state.to_owned();
    runtime.block_on(async {
        let store = LocalStore::open(&state, Access::ReadOnly).unwrap();
        let mut changes = store.watch(Kind::Challenge, Scope::all());
        let run = tokio::process::Command::from(command).kill_on_drop(true).output();
        let mut run = std::pin::pin!(run);
        let (mut running, mut most) = (BTreeSet::new(), 0);
        loop {
            tokio::select! {
                biased;
                Some(change) = changes.next() => {
                    note(&mut running, change.unwrap());
                    most = most.max(running.len());
                }
                output = &mut run => return (output.unwrap(), most),
            }
        }
    })
}

/// Keeps the names of the challenges that are being processed.
fn note(running: &mut BTreeSet<ObjectName>, change: Change) {
    match change {
        Change::Applied(record) if is_processed(&record) => drop(running.insert(record.key.name)),
        Change::Applied(record) | Change::Deleted(record) => drop(running.remove(&record.key.name)),
        Change::Resynced(records) => {
            *running = records.into_iter().filter(is_processed).map(|r| r.key.name).collect();
        }
    }
}

fn is_processed(record: &Record) -> bool {
    typed::<Challenge>(record.clone()).unwrap().status.processing
}

impl Issued {
    /// Signed requests that were no repetition after a refused nonce.
    fn signed(&self) -> usize {
        let unsigned = [Endpoint::Directory, Endpoint::Nonce];
        self.counts.total()
            - unsigned.map(|endpoint| self.counts.at(endpoint)).iter().sum::<usize>()
    }

    /// Names in the certificate on disk.
    fn names(&self, number: usize) -> BTreeSet<String> {
        let path = self.folder.path().join(format!("out/c{number}-tls/tls.crt"));
        let leaf = chain::leaf(&fs::read_to_string(path).unwrap()).unwrap();
        leaf.names.dns_names.iter().map(ToString::to_string).collect()
    }

    /// How many requests to these endpoints came one after the other: the longest row of which each began when the one
    /// before had been answered.
    fn rounds(&self, endpoints: &[Endpoint]) -> usize {
        let mut row: Vec<&Exchange> =
            self.exchanges.iter().filter(|e| endpoints.contains(&e.endpoint)).collect();
        row.sort_by_key(|exchange| exchange.finished);
        let mut rounds = 0;
        let mut last = None;
        for exchange in row {
            if last.is_none_or(|last| exchange.started >= last) {
                rounds += 1;
                last = Some(exchange.finished);
            }
        }
        rounds
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("n{number}.example.com")).collect()
}

/// Retry-After as Pebble sends it by default: no poll comes before all is done.
fn with_retry_after() -> PebbleOptions {
    PebbleOptions { retry_after_authz: 3, retry_after_order: 5, ..PebbleOptions::default() }
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_hundred_names_cost_two_requests_each_and_five_more() {
    let issued = check(&with_retry_after(), Vec::new(), &[names(100)], 100);
    assert_eq!(issued.names(0), names(100).into_iter().collect());
    assert!(issued.counts.nonces_refused > 0);
    // A busy Pebble still validates when all is accepted, and names no moment: the order is looked at at our own pace then.
    let looks = issued.counts.at(Endpoint::Order).saturating_sub(2);
    assert!(looks <= 10, "{}", issued.counts);
    // One more makes the account.
    assert_eq!(issued.signed() - looks, 2 * 100 + 5 + 1, "{}", issued.counts);
    assert_eq!((issued.pebble.accounts(), issued.pebble.orders()), (1, 1));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_hundred_names_take_turns_under_a_cap_of_sixty() {
    let issued = check(&PebbleOptions::default(), Vec::new(), &[names(100)], 60);
    assert_eq!(issued.names(0), names(100).into_iter().collect());
    assert!(issued.in_flight <= 60, "{} challenges were in flight at once", issued.in_flight);
    assert_eq!(issued.counts.at(Endpoint::Challenge), 100, "{}", issued.counts);
    assert_eq!((issued.pebble.accounts(), issued.pebble.orders()), (1, 1));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn two_hundred_certificates_take_turns_under_a_cap_of_sixty() {
    let certificates: Vec<Vec<String>> = names(200).into_iter().map(|name| vec![name]).collect();
    let issued = check(&PebbleOptions::default(), Vec::new(), &certificates, 60);
    for (number, names) in certificates.into_iter().enumerate() {
        assert_eq!(issued.names(number), names.into_iter().collect());
    }
    assert!(issued.in_flight <= 60, "{} challenges were in flight at once", issued.in_flight);
    let once = [Endpoint::NewOrder, Endpoint::Challenge, Endpoint::Finalize, Endpoint::Certificate];
    assert_eq!(once.map(|endpoint| issued.counts.at(endpoint)), [200; 4], "{}", issued.counts);
    assert_eq!((issued.pebble.accounts(), issued.pebble.orders()), (1, 200));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Pebble: run by just pebble"]
async fn two_hundred_windows_in_the_past_replace_each_certificate_once() {
    crate::local::renewal_info::drill(200).await;
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn authorizations_are_read_and_answered_side_by_side() {
    // Answers that take so long show who waited for whom.
    let slow = |endpoint| Fault::delay(Duration::from_secs(2)).at(endpoint);
    let faults = vec![slow(Endpoint::Authorization), slow(Endpoint::Challenge)];
    let options = PebbleOptions { nonce_reject: 0, ..with_retry_after() };
    let issued = check(&options, faults, &[names(8)], 60);
    assert_eq!(issued.rounds(&[Endpoint::Authorization, Endpoint::Challenge]), 2);
}
