//! One process after the other, and several at one state folder.

use super::site::{Said, Site, wait_until};

#[track_caller]
fn check(said: &Said, code: i32, words: &str) {
    said.check(code, "");
    assert!(said.talk.contains(words), "{}", said.talk);
}

#[test]
fn a_second_run_finds_nothing_due_and_asks_nothing() {
    let site = Site::new();
    site.issues();
    site.proxy.forget();
    check(&site.run(site.order("")), 0, "nothing is due");
    assert_eq!(site.proxy.counts().total(), 0);
}

#[test]
fn the_second_of_two_processes_waits_and_finds_nothing_due() {
    let site = Site::new();
    site.blind();
    let first = site.start("first", site.order(""));
    wait_until(|| site.orders() == 1, "the first order");
    let second = site.start("second", site.order(""));
    second.says("waiting for its end");
    site.see();
    check(&first.end(), 0, "");
    check(&second.end(), 0, "nothing is due");
    assert_eq!(site.orders(), 1);
    site.has_pair();
}

#[test]
fn the_second_of_two_processes_waits_no_longer_than_its_timeout() {
    let site = Site::new();
    site.blind();
    let first = site.start("first", site.order(""));
    wait_until(|| site.orders() == 1, "the first order");
    site.run(site.order("--timeout 1s")).check(
        12,
        "\
error: cannot work on state: process [id] still does
hint: wait for that process, end it, or use another state folder (--local=DIR)
",
    );
    site.see();
    check(&first.end(), 0, "");
    assert_eq!(site.orders(), 1);
}

#[test]
fn what_run_drives_is_watched_to_its_end() {
    let site = Site::new();
    let run = site.start("run", site.program("run"));
    run.says("driver: kubectl-acme");
    check(&site.run(site.order("")), 0, "(run) drives this state folder; watching it");
    assert_eq!(site.orders(), 1);
    site.has_pair();
    // It looks for its turn at the folder now and then.
    run.says("Certificate default/web: up to date in ");
    run.signal("TERM");
    let said = run.end();
    said.check(143, "");
    let stopped = "stopped by SIGTERM; everything so far is kept; go on with: kubectl-acme run\n";
    assert!(said.talk.ends_with(stopped), "{}", said.talk);
}

#[test]
fn a_run_beside_another_is_refused() {
    let site = Site::new();
    let first = site.start("first", site.program("run"));
    first.says("driver: kubectl-acme");
    site.run(site.program("run")).check(
        12,
        "\
error: cannot work on state: another process does
hint: wait for that process, end it, or use another state folder (--local=DIR)
",
    );
}

#[test]
fn an_interrupted_run_tells_how_to_go_on() {
    let site = Site::new();
    site.blind();
    let first = site.start("first", site.order(""));
    wait_until(|| site.ca.statistics().of("challenge") > 0, "the acceptance");
    first.signal("INT");
    first.end().check(
        130,
        "\
error: interrupted; everything so far is kept
hint: go on with: kubectl-acme order -f site.yaml
",
    );
    // The CA looks where nobody answers any more, unless the next run is quicker; then a fresh order is made at once.
    site.see();
    site.issues();
    assert!(site.orders() <= 2, "{}", site.orders());
}

#[test]
fn a_dry_run_tells_that_run_would_drive() {
    let site = Site::new();
    let by_hand = "--dns01-manual --dry-run=server";
    site.run(site.order(by_hand)).check(0, "");
    let run = site.start("run", site.program("run"));
    run.says("driver: kubectl-acme");
    let said = site.run(site.order(by_hand));
    assert_eq!(said.code, Some(12), "{}", said.talk);
    assert!(
        said.talk.contains("while kubectl-acme run, in another process drives"),
        "{}",
        said.talk
    );
}
