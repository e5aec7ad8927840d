//! The command that is run for each certificate: once, and never skipped.

use std::fs;
use std::process::Command;

use super::site::{Site, wait_until};

/// The program's main job with such a command for each certificate.
fn order(site: &Site, command: &str) -> Command {
    with(site.order(""), command)
}

fn with(mut program: Command, command: &str) -> Command {
    program.env("KUBECTL_ACME_ON_ISSUED", command);
    program
}

fn read(site: &Site, name: &str) -> String {
    fs::read_to_string(site.path(name)).unwrap_or_default()
}

/// How often a command ran that writes a line each time.
fn times(site: &Site) -> usize {
    read(site, "ran").lines().count()
}

#[test]
fn a_command_runs_once_for_a_certificate_and_is_told_of_it() {
    let site = Site::new();
    let command = "echo \"$ISSUED_CERTIFICATE $ISSUED_NAMES $ISSUED_FOLDER $ISSUED_KEY_FILE\" >>ran; \
                   cp \"$ISSUED_CERT_FILE\" copy; echo \"until $ISSUED_NOT_AFTER, $ISSUED_SERIAL\"";
    let said = site.run(order(&site, command));
    said.check(0, "");
    assert!(said.talk.contains("Certificate default/web: `echo"), "{}", said.talk);
    assert_eq!(read(&site, "ran"), "default/web www.example.com out/web-tls out/web-tls/tls.key\n");
    assert_eq!(read(&site, "copy"), read(&site, "out/web-tls/tls.crt"));
    let serial = read(&site, "out/web-tls/on-issued.done");
    let log = read(&site, "out/web-tls/on-issued.log");
    assert!(log.starts_with("until 20") && log.ends_with(&serial) && serial.len() > 8, "{log}");
    let again = site.run(order(&site, command));
    again.check(0, "");
    assert_eq!(times(&site), 1, "{}", again.talk);
}

#[test]
fn a_command_that_fails_is_told_and_runs_again_while_the_certificate_stays() {
    let site = Site::new();
    let failing = "echo x >>ran; echo no such server; exit 3";
    for count in [1, 2] {
        site.run(order(&site, failing)).check(1, "\
error: `echo x >>ran; echo no such server; exit 3` failed for Certificate default/web: it ended with exit status 3: no such server
hint: certificate and key are written; the same kubectl-acme command tries again
");
        assert_eq!((times(&site), site.orders()), (count, 1));
    }
    site.run(order(&site, "echo x >>ran")).check(0, "");
    site.run(order(&site, "echo x >>ran")).check(0, "");
    assert_eq!((times(&site), site.orders()), (3, 1));
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    let site = Site::new();
    let mut program = order(&site, "sleep 600 & echo $! >ran; wait");
    program.env("KUBECTL_ACME_ON_ISSUED_TIMEOUT", "1s");
    site.run(program).check(1, "\
error: `sleep 600 & echo $! >ran; wait` failed for Certificate default/web: it was still running after 1 s, and was ended (--on-issued-timeout)
hint: certificate and key are written; the same kubectl-acme command tries again
");
    let process = read(&site, "ran");
    let is_over = || {
        let state =
            fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    wait_until(is_over, "the end of what the command has started");
}

#[test]
fn a_command_that_was_killed_with_the_program_runs_once_more() {
    let site = Site::new();
    let run = site.start("order", order(&site, "echo begun >>ran; exec sleep 600"));
    wait_until(|| times(&site) == 1, "the command");
    drop(run);
    site.run(order(&site, "echo again >>ran")).check(0, "");
    assert_eq!((read(&site, "ran").as_str(), site.orders()), ("begun\nagain\n", 1));
}

#[test]
fn run_runs_it_too_and_a_rehearsal_does_not() {
    let site = Site::new();
    let rehearsal = with(site.order("--rehearse=loopback"), "echo x >>ran");
    site.run(rehearsal).check(0, "");
    assert_eq!(times(&site), 0);
    fs::remove_dir_all(site.path("out")).ok();
    site.issues();
    let run = site.start("run", with(site.program("run"), "echo x >>ran"));
    run.says("`echo x >>ran` has run");
    run.signal("TERM");
    run.end();
    site.run(order(&site, "echo x >>ran")).check(0, "");
    assert_eq!((times(&site), site.orders()), (1, 1));
}
