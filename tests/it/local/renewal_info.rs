//! Renewal information (RFC 9773): `run` and `order -f` follow what our own CA says, each certificate once and as a replacement.

use std::collections::BTreeSet;
use std::fs;

use jiff::{SignedDuration, Timestamp};
use kubectl_acme::ca::Config;
use serde_json::json;

use crate::support::ca::TestCa;
use crate::support::cluster::eventually;
use crate::support::program::Running;
use crate::support::terminal::{Terminal, certificate, issuer};

/// A terminal with so many certificates, each of one name, that the CA has issued.
fn issued(ca: &TestCa, count: usize) -> Terminal {
    let mut terminal = Terminal::elsewhere();
    terminal.http_port = ca.http01.port();
    let mut documents =
        vec![issuer(&ca.server.directory_url(), ca.server.tls_root_pem(), json!({}))];
    documents.extend((0..count).map(|number| {
        let (name, host) = (format!("c{number}"), format!("n{number}.example.com"));
        certificate(&name, &[&host], json!({}))
    }));
    terminal.order(&documents);
    terminal
}

/// Serial numbers of all certificates that were written, in hexadecimal.
fn serials(terminal: &Terminal, count: usize) -> BTreeSet<String> {
    let all = (0..count).map(|number| {
        let pem = fs::read(terminal.pair(&format!("c{number}-tls")).certificate).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
        let serial = pem.parse_x509().unwrap().raw_serial().to_vec();
        kubectl_acme::model::text::hex(&serial)
    });
    all.collect()
}

/// `run`, which asks every few seconds when to renew.
fn run(terminal: &Terminal) -> Running {
    let listen = format!("--http01-listen=127.0.0.1:{}", terminal.http_port);
    let resolve = format!("--http01-resolve=*=127.0.0.1:{}", terminal.http_port);
    let flags = ["run", "--out=out", "--renewal-info-interval=1s", &listen, &resolve];
    Running::start(&mut terminal.command(&flags), terminal.path("run.log"))
}

/// Moves the windows of all that was issued so far to so many hours from now.
fn move_windows(ca: &TestCa, start: i64, end: i64) {
    let at = |hours: i64| Timestamp::now() + SignedDuration::from_hours(hours);
    ca.server.move_windows((at(start), at(end)), "https://ca.test/drill");
}

fn events(terminal: &Terminal, reason: &str) -> usize {
    let said = terminal.run(&["describe", "certificates", "-A"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.stdout.matches(&format!("  {reason} ")).count()
}

/// Has the CA move all windows into the past, and then those of the new certificates, too.
pub(crate) async fn drill(count: usize) {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let terminal = issued(&ca, count);
    let old = serials(&terminal, count);
    let asked = |what: &str| usize::try_from(ca.server.statistics().of(what)).unwrap();
    assert_eq!((asked("newOrder"), ca.server.replaced().len(), old.len()), (count, 0, count));
    move_windows(&ca, -2, -1);
    let before = ca.server.statistics().total();
    let mut running = run(&terminal);
    eventually("that all are replaced", || {
        (serials(&terminal, count).is_disjoint(&old)).then_some(())
    });
    let requests = ca.server.statistics().total() - before;
    assert!(requests <= 14 * count as u64, "{requests} requests for {count} certificates");
    let each_once = |ca: &TestCa| {
        let mut replaced = ca.server.replaced();
        replaced.sort();
        assert_eq!(replaced, old.iter().cloned().collect::<Vec<_>>());
        assert_eq!(ca.server.statistics().of("newOrder"), 2 * count as u64);
    };
    // The CA is content with the new ones, and nothing follows.
    let asked_again = |least: usize| {
        let until = asked("renewalInfo") + least;
        eventually("more questions", || (asked("renewalInfo") >= until).then_some(()));
    };
    asked_again(count);
    each_once(&ca);
    // Now it says of the new ones, too, that they are to be renewed at once.
    move_windows(&ca, -2, -1);
    asked_again(3 * count);
    each_once(&ca);
    assert_eq!(events(&terminal, "RenewalWantedAgain"), count);
    // One that begins anew remembers it.
    running.kill();
    let running = run(&terminal);
    asked_again(2 * count);
    each_once(&ca);
    running.interrupt();
    running.ends(130);
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_in_the_past_replace_each_certificate_once_though_the_ca_goes_on_saying_now() {
    drill(12).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_of_what_is_good_follows_the_window_of_the_ca_unless_the_issuer_says_otherwise() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let terminal = issued(&ca, 1);
    let manifests = terminal.path("manifests.yaml");
    let order = |manifests: &str| {
        let said = terminal.drive(&["order", "-f", manifests, "--renewal-info-interval=1s"]);
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    let asked = || ca.server.statistics().of("renewalInfo");
    // Between two questions lie some seconds.
    let order_until_asked = || {
        let before = asked();
        eventually("a question", || {
            order(manifests.to_str().unwrap());
            (asked() > before).then_some(())
        });
    };
    let old = serials(&terminal, 1);
    let text = fs::read_to_string(&manifests).unwrap();
    let unasked =
        text.replacen("\"server\"", "\"renewalInformationSource\":\"None\",\"server\"", 1);
    assert_ne!(unasked, text);
    let unasked = terminal.write("unasked.yaml", &unasked);
    let orders = || ca.server.statistics().of("newOrder");
    order_until_asked();
    assert_eq!((orders(), asked()), (1, 1));
    move_windows(&ca, -2, -1);
    order(unasked.to_str().unwrap());
    assert_eq!((orders(), asked()), (1, 1));
    order_until_asked();
    assert_eq!((orders(), ca.server.replaced()), (2, old.into_iter().collect()));
    // What has just come is kept, whatever the CA says.
    move_windows(&ca, -2, -1);
    order_until_asked();
    order(manifests.to_str().unwrap());
    assert_eq!(orders(), 2);
    let certificate = &terminal.objects("certificates")[0];
    let window = &certificate["status"]["acme"]["ari"];
    assert_eq!(window["explanationURL"], "https://ca.test/drill", "{certificate}");
    assert_eq!(events(&terminal, "RenewalWantedAgain"), 1);
}
