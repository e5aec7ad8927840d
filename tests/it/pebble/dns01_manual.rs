//! DNS-01 by hand, in two steps: a run that prints the records, a person who makes them, a run that goes on.

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::bed::PATIENCE;
use crate::support::dns::{DnsServer, Setup, Software, Updates, Zone};
use crate::support::fault::Fault;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::proxy::Proxy;
use crate::support::terminal::{Said, Terminal, certificate, issuer};
use crate::support::traffic::Endpoint;

const ZONE: &str = "example.com.";
const RECORD: &str = "_acme-challenge.example.com.";
const WORDS: [&str; 5] = ["order", "-f", "manifests.yaml", "--dns01-manual", "--out=out"];
/// A zone that a person edits, a resolver, a CA that asks it through a counter, and that person's terminal.
struct Site {
    server: DnsServer,
    proxy: Proxy,
    pebble: Pebble,
    terminal: Terminal,
    /// Answers for as long as the site stands.
    _resolver: DnsServer,
}

impl Site {
    fn new(software: Software, names: &[&str]) -> Self {
        let zone = Zone::new(ZONE)
            .updates(Updates::Unsigned)
            .with("_acme-challenge.alias CNAME answers.example.com.");
        let server = DnsServer::start(software, &Setup::new(vec![zone]));
        let resolver = DnsServer::recursive(&[&server]);
        let dns_server = Some(resolver.address().to_string());
        let pebble = Pebble::start(&PebbleOptions { dns_server, ..PebbleOptions::default() });
        let mut terminal = Terminal::at(&pebble);
        terminal.set("KUBECTL_ACME_DNS", resolver.address());
        let proxy = pebble.proxy();
        // Neither that server nor the Secret is there: nobody asks for them.
        let solver = json!({
            "dns01": {"rfc2136": {"nameserver": "192.0.2.53", "tsigKeyName": "nobodys",
                "tsigSecretSecretRef": {"name": "missing", "key": "secret"}}},
            // No wait replaces a look at what a person made.
            "waitInsteadOfSelfCheck": "0s",
        });
        let site = Self { server, proxy, pebble, terminal, _resolver: resolver };
        site.write(&solver, names);
        site
    }

    /// Writes the manifests, with that solver.
    fn write(&self, solver: &Value, names: &[&str]) {
        let directory = self.proxy.directory();
        self.terminal.manifests(&[
            issuer(&directory, self.pebble.tls_ca_pem(), json!({"solvers": [solver]})),
            certificate("web", names, json!({})),
        ]);
    }

    /// Starts a command, whose conversation goes into a file.
    fn spawn(&self, words: &[&str]) -> Child {
        let mut command = self.terminal.command(words);
        command
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(self.terminal.path("log")).unwrap());
        command.spawn().unwrap()
    }

    fn order(&self, more: &[&str]) -> Said {
        self.terminal.run(&[&WORDS[..], more].concat())
    }

    /// Runs until a person is needed, and returns the records.
    fn wants(&self, more: &[&str]) -> (Said, Vec<(String, String)>) {
        let said = self.order(&[more, &["-o", "json"]].concat());
        assert_eq!(said.code, Some(13), "{said:?}\n{}", self.pebble.log());
        let report: Value = serde_json::from_str(&said.stdout).unwrap();
        let text = |record: &Value, field: &str| record[field].as_str().unwrap().to_owned();
        let records = report["records"].as_array().unwrap().iter().map(|record| {
            assert_eq!(
                (&record["type"], &record["certificate"]["name"]),
                (&"TXT".into(), &"web".into())
            );
            (text(record, "name"), text(record, "value"))
        });
        let mut records: Vec<_> = records.collect();
        records.sort();
        (said, records)
    }

    fn make(&self, (name, value): &(String, String)) {
        self.server.publish(ZONE, name, value);
    }

    /// Everything is there, by one order.
    fn is_issued(&self) {
        self.terminal.pair("web-tls").check(&self.pebble.root_pem());
        assert_eq!(self.proxy.counts().at(Endpoint::NewOrder), 1, "one order for all runs");
    }
}

#[test]
fn a_dry_run_asks_for_no_secret_where_a_person_makes_the_records() {
    let terminal = Terminal::elsewhere();
    let rfc2136 = json!({
        "nameserver": "192.0.2.53", "tsigKeyName": "nobodys",
        "tsigSecretSecretRef": {"name": "missing", "key": "secret"},
    });
    let solvers = json!({"solvers": [{"dns01": {"rfc2136": rfc2136}}]});
    terminal.manifests(&[
        issuer("https://ca.example/directory", "", solvers),
        certificate("web", &["*.example.com"], json!({})),
    ]);
    let words = ["order", "-f", "manifests.yaml", "--dry-run=server"];
    let said = terminal.run(&words);
    assert!(said.code == Some(9) && said.stderr.contains("missing"), "{said:?}");
    let said = terminal.run(&[&words[..], &["--dns01-manual"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_wildcard_and_its_apex_are_issued_in_two_steps() {
    let site = Site::new(Software::Bind, &["example.com", "*.example.com"]);
    let (said, records) = site.wants(&["--dns01-zone-file=records.zone"]);
    assert!(records.len() == 2 && records[0].1 != records[1].1, "{said:?}");
    assert!(records.iter().all(|(name, _)| name == RECORD), "both stand at one name: {said:?}");
    assert_eq!(site.proxy.counts().at(Endpoint::Challenge), 0, "the CA was told nothing");
    let go_on = "hint: make them as printed, then go on with: ";
    assert!(said.stderr.contains(go_on) && said.stderr.contains(" --dns01-manual "), "{said:?}");
    let zone = std::fs::read_to_string(site.terminal.path("records.zone")).unwrap();
    for (name, value) in &records {
        assert!(zone.contains(&format!("{name} 60 IN TXT \"{value}\"\n")), "{zone}");
    }
    // Too early: nothing is lost, and the reason names the server.
    let (said, again) = site.wants(&["--timeout=5s"]);
    assert_eq!(again, records, "the values stay");
    let reason = "0 of 1 nameservers answer: ns.example.com. (";
    assert!(said.stderr.contains(reason) && said.stderr.contains("says NXDOMAIN"), "{said:?}");
    assert_eq!(site.proxy.counts().at(Endpoint::Challenge), 0, "the CA was told nothing");
    for record in &records {
        site.make(record);
    }
    let said = site.order(&["--timeout=60s"]);
    assert_eq!(said.code, Some(0), "{said:?}\n{}", site.pebble.log());
    site.is_issued();
    for (name, value) in &records {
        let line = format!("not needed any more, and yours to remove: {name} TXT \"{value}\"\n");
        assert!(said.stderr.contains(&line), "{said:?}");
    }
    let values: Vec<&str> = records.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(site.server.texts(RECORD), values, "what a person made stays");
    let said = site.order(&[]);
    assert!(said.code == Some(0) && said.stderr.contains("nothing is due"), "{said:?}");
    renewed_and_given_up(&site);
}

/// A renewal asks for other records; should nobody want it any more, the provider of the manifest is not asked to tidy up.
fn renewed_and_given_up(site: &Site) {
    let renew = ["certificate", "renew", "web", "--dns01-manual", "--no-headers"];
    let first = site.terminal.run(&renew);
    let again = site.terminal.run(&[&renew[..], &["--timeout=5s"]].concat());
    assert_eq!((first.code, again.code), (Some(13), Some(13)), "{first:?}\n{again:?}");
    assert_eq!(first.stdout, again.stdout, "the same order");
    assert_eq!(first.stdout.lines().count(), 2, "{first:?}");
    assert!(first.stdout.starts_with(RECORD), "{first:?}");
    let orders = site.terminal.objects("orders");
    let pending = orders.iter().find(|order| order["status"]["state"] == "pending").unwrap();
    let name = pending["metadata"]["name"].as_str().unwrap();
    let said = site.terminal.run(&["order", "delete", name]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let removable = format!("not needed any more, and yours to remove: {RECORD} TXT \"");
    assert_eq!(said.stderr.matches(&removable).count(), 2, "{said:?}");
    assert_eq!(site.server.texts(RECORD).len(), 2, "what a person made stays");
}

/// Starts the run that goes on, and waits until it waits for the record.
fn waiting(site: &Site) -> Child {
    let log = site.terminal.path("log");
    let child = site.spawn(&WORDS);
    let deadline = Instant::now() + PATIENCE;
    while !std::fs::read_to_string(&log).unwrap().contains("waits for the record") {
        assert!(Instant::now() < deadline, "it does not wait");
        sleep(Duration::from_millis(20));
    }
    child
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_person_may_be_late_and_the_process_killed_between() {
    let site = Site::new(Software::Knot, &["example.com", "*.example.com", "alias.example.com"]);
    let (_, records) = site.wants(&[]);
    assert_eq!(records.len(), 3);
    assert_eq!(records[2].0, "answers.example.com.", "where the alias leads");
    let mut child = waiting(&site);
    child.kill().unwrap();
    child.wait().unwrap();
    // Two of three: the third one is asked for again, and only that.
    for record in &records[..2] {
        site.make(record);
    }
    let (_, missing) = site.wants(&["--timeout=20s"]);
    assert_eq!(missing, records[2..]);
    // It goes on as soon as the record is there.
    let mut child = waiting(&site);
    site.make(&records[2]);
    assert!(child.wait().unwrap().success());
    site.is_issued();
}

/// The provider of the manifests, which everybody may use.
fn provider(site: &Site) -> Value {
    json!({"dns01": {"rfc2136": {"nameserver": site.server.address().to_string()}}})
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn what_was_left_to_a_person_may_be_done_by_a_provider_after_all() {
    let names = ["example.com"];
    for is_given_later in [false, true] {
        let site = Site::new(Software::Knot, &names);
        if !is_given_later {
            site.write(&provider(&site), &names);
        }
        site.wants(&[]);
        site.write(&provider(&site), &names);
        goes_on_with_its_provider(&site);
    }
}

fn goes_on_with_its_provider(site: &Site) {
    let said = site.terminal.run(&["order", "-f", "manifests.yaml", "--out=out", "--timeout=60s"]);
    assert_eq!(said.code, Some(0), "{said:?}\n{}", site.pebble.log());
    site.is_issued();
    assert_eq!(site.server.texts(RECORD), [""; 0], "whoever publishes tidies up");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn what_a_provider_has_published_is_taken_away_by_it_though_a_person_goes_on() {
    let names = ["example.com"];
    let site = Site::new(Software::Bind, &names);
    site.write(&provider(&site), &names);
    site.proxy.inject(Fault::hold().at(Endpoint::Challenge));
    let mut child = site.spawn(&["order", "-f", "manifests.yaml", "--out=out"]);
    let deadline = Instant::now() + PATIENCE;
    while site.proxy.held() == 0 {
        assert!(Instant::now() < deadline, "the CA hears nothing");
        sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    site.proxy.calm_down();
    let said = site.order(&["--timeout=60s"]);
    assert_eq!(said.code, Some(0), "{said:?}\n{}", site.pebble.log());
    site.is_issued();
    assert_eq!(site.server.texts(RECORD), [""; 0], "whoever publishes tidies up");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn more_names_than_there_are_slots_are_asked_for_at_once() {
    // Few, for Pebble gives its resolver two seconds: on a busy machine sixty validations at once are too many.
    const SLOTS: &str = "--max-concurrent-challenges=3";
    let names: Vec<String> = (0..8).map(|number| format!("n{number}.example.com")).collect();
    let site = Site::new(Software::Knot, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let (said, records) = site.wants(&[SLOTS]);
    assert_eq!(records.len(), names.len(), "{said:?}");
    for record in &records {
        site.make(record);
    }
    let started = Instant::now();
    let said = site.order(&[SLOTS, "--timeout=2m"]);
    if said.code != Some(0) {
        let there = records.iter().filter(|(name, value)| site.server.texts(name) == [&**value]);
        let (there, all) = (there.count(), records.len());
        let asked = site.server.asked().len();
        let waits = |line: &&str| !line.contains("waits for the record");
        let stderr: Vec<_> = said.stderr.lines().filter(waits).collect();
        let stderr = stderr.join("\n");
        panic!(
            "exit {:?} after {:?}; {there} of {all} records are there, {asked} questions\n{stderr}",
            said.code,
            started.elapsed()
        );
    }
    site.is_issued();
    let removable = said.stderr.matches("not needed any more, and yours to remove: ").count();
    assert_eq!(removable, names.len(), "{said:?}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_name_alone_is_enough_in_both_steps() {
    let mut site = Site::new(Software::Bind, &["unused.example.com"]);
    let roots = site.terminal.write("roots.pem", site.pebble.tls_ca_pem());
    site.terminal.set("SSL_CERT_FILE", roots.display());
    let home = site.terminal.path("home");
    site.terminal.set("XDG_STATE_HOME", home.display());
    let server = format!("--server={}", site.pebble.directory());
    let words =
        ["order", "--domain=*.example.com", &server, "--dns01-manual", "--local", "--out=out"];
    let said = site.terminal.run(&[&words[..], &["--no-headers"]].concat());
    assert_eq!(said.code, Some(13), "{said:?}");
    let line: Vec<&str> = said.stdout.split_whitespace().collect();
    let value = line.iter().find(|word| word.trim_matches('"').len() == 43);
    let value = value.unwrap_or_else(|| panic!("{said:?}")).trim_matches('"');
    site.make(&(RECORD.to_owned(), value.to_owned()));
    let said = site.terminal.run(&[&words[..], &["--timeout=60s"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}\n{}", site.pebble.log());
    let secret = std::fs::read_dir(site.terminal.path("out")).unwrap().next().unwrap().unwrap();
    site.terminal.pair(secret.file_name().to_str().unwrap()).check(&site.pebble.root_pem());
}

#[test]
fn a_cluster_is_refused_before_anything_is_read() {
    let terminal = Terminal::elsewhere();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    });
    let path = terminal.write("config", &config.to_string());
    let said = terminal.run(&[
        "order",
        "-f",
        "missing.yaml",
        "--dns01-manual",
        "--kubeconfig",
        path.to_str().unwrap(),
    ]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.starts_with("error: --dns01-manual cannot be used in a cluster: "),
        "{said:?}"
    );
}
