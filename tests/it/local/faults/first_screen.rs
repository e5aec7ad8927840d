//! What a person sees of an order while it waits and when it ends: each thing once, in few lines, with what helps.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::site::{Site, wait_until};
use crate::support::bed::free_port;
use crate::support::program;

/// Waits are a fifth of what they are for people: 3 s for a hint, 6 s for a CA that was never reached.
const SOON: (&str, &str) = ("KUBECTL_ACME_PATIENCE", "4s");

/// The manifest's Certificate for so many names.
fn names(site: &Site, count: usize) {
    let names: Vec<String> = (0..count).map(|number| format!("n{number}.example.com")).collect();
    site.change("[www.example.com]", &format!("[{}]", names.join(", ")));
}

/// What a terminal of that width shows of an order.
fn on_terminal(site: &Site, columns: u16, more: &str, limit: Duration) -> String {
    let order =
        format!("stty cols {columns} rows 30; exec {} order -f site.yaml {more}", program::PATH);
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--flush", "--return", "--command", &order, "shown"]);
    site.settle(&mut terminal);
    terminal.env("SHELL", "/bin/sh").env("TERM", "xterm-256color");
    let seconds = format!("{}s", limit.as_secs());
    terminal.env("KUBECTL_ACME_TIMEOUT", seconds);
    terminal.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("script(1)");
    fs::read_to_string(site.path("shown")).unwrap()
}

#[test]
fn a_faultless_order_of_a_hundred_names_is_a_few_lines() {
    let site = Site::new();
    names(&site, 100);
    let said = site.run(site.order(""));
    said.check(0, "");
    let lines = said.talk.lines().count() + said.result.lines().count();
    assert!(lines < 30, "{said:?}");
    let closing = "n0.example.com and 99 more names: issued in ";
    assert!(said.talk.lines().any(|line| line.starts_with(closing)), "{said:?}");
}

#[test]
fn twenty_stuck_names_write_little_to_a_terminal() {
    for columns in [60, 80, 200] {
        let site = Site::new();
        names(&site, 20);
        let nowhere = format!("--http01-resolve *=127.0.0.1:{}", free_port());
        let shown = on_terminal(&site, columns, &nowhere, Duration::from_secs(5));
        assert!(shown.len() < 10_000, "{} bytes in 5 s: {shown}", shown.len());
        assert!(shown.contains("20 challenges: 20 pending"), "{shown}");
        assert!(shown.contains("connection refused: n0.example.com"), "{shown}");
    }
}

#[test]
fn what_stands_in_the_way_for_a_while_shows_its_hint_before_the_end() {
    let site = Site::new();
    let mut order = site.order(&format!("--http01-resolve *=127.0.0.1:{}", free_port()));
    order.env(SOON.0, SOON.1);
    let order = site.start("order", order);
    order.says("hint: forward port 80 of www.example.com to ");
    order.signal("INT");
    assert_eq!(order.end().code, Some(130));
}

#[test]
fn a_ca_that_is_never_reached_is_given_up_long_before_the_timeout() {
    let site = Site::new();
    site.change(&site.ca.directory_url(), &format!("https://127.0.0.1:{}/directory", free_port()));
    let mut order = site.order("");
    order.env(SOON.0, SOON.1);
    let said = site.run(order);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.talk.contains("Connection refused: not reached for 6 s"), "{said:?}");
    assert!(said.talk.contains("hint: check spec.acme.server of Issuer default/acme"), "{said:?}");
}

#[test]
fn a_second_run_does_not_say_what_the_first_one_saw() {
    let site = Site::new();
    let (before, now) = (free_port(), free_port());
    let first = site.start("first", site.order(&format!("--http01-resolve *=127.0.0.1:{before}")));
    first.says(&format!("refused by 127.0.0.1:{before}"));
    first.signal("INT");
    assert_eq!(first.end().code, Some(130));
    let second = site.start("second", site.order(&format!("--http01-resolve *=127.0.0.1:{now}")));
    second.says(&format!("refused by 127.0.0.1:{now}"));
    second.signal("INT");
    let said = second.end();
    let talk = said.talk.split("error: interrupted").next().unwrap();
    assert!(!talk.contains(&format!(":{before}")), "{talk}");
}

#[test]
fn a_rehearsal_says_that_it_was_one_and_what_the_real_thing_is() {
    let site = Site::new();
    let said = site.run(site.order("--rehearse=loopback"));
    said.check(0, "");
    let last = said.talk.lines().last().unwrap();
    assert!(last.starts_with("rehearsed: nothing was spent at the issuer's CA"), "{said:?}");
    assert!(last.ends_with(" order -f site.yaml"), "{last}");
}

#[test]
fn a_renewal_shows_its_own_issuance_and_nothing_that_reads_like_trouble() {
    let site = Site::new();
    site.issues();
    let said = site.run(site.program("certificate renew web"));
    said.check(0, "");
    assert_eq!(said.result.matches("Created new CertificateRequest").count(), 1, "{said:?}");
    for noise in ["WaitingForApproval", "IssuerNotReady", "scheduler"] {
        assert!(!format!("{said:?}").contains(noise), "{noise}: {said:?}");
    }
    let always = site.run(site.program("certificate renew web --timeline=always"));
    assert!(always.result.contains("Total: issued after "), "{always:?}");
    let never = site.run(site.program("certificate renew web --timeline=never"));
    assert_eq!(never.result.lines().count(), 2, "{never:?}");
}

#[test]
fn wildcard_and_apex_can_be_told_apart() {
    let site = Site::new();
    site.change("[www.example.com]", "[example.com, '*.example.com']");
    let by_dns = "    - dns01: {rfc2136: {nameserver: '127.0.0.1:1'}}\n";
    site.change("    - http01:\n        ingress: {}\n", by_dns);
    let order = site.start("order", site.order("--dns 127.0.0.1:1"));
    wait_until(|| site.orders() == 1, "the order");
    let table = || site.run(site.program("get challenges")).result;
    wait_until(|| table().contains(" *.example.com "), "the wildcard");
    assert!(table().contains(" example.com "), "{}", table());
    order.signal("INT");
    order.end();
}
