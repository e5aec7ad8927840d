//! What somebody sees who sits at a terminal, whatever that is called.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::site::{Site, wait_until};
use crate::support::bed::free_port;
use crate::support::program;

/// What a terminal of that name shows of an order that waits for a port, once it shows these words, until somebody presses Ctrl-C.
#[track_caller]
fn check(name: Option<&str>, words: &str) -> String {
    let site = Site::new();
    let closed = free_port();
    let order = format!(
        "stty cols 200; exec {} order -f site.yaml --http01-resolve www.example.com=127.0.0.1:{closed}",
        program::PATH
    );
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--flush", "--return", "--command", &order, "shown"]);
    site.settle(&mut terminal);
    terminal.env("SHELL", "/bin/sh").envs(name.map(|name| ("TERM", name)));
    let mut terminal =
        terminal.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("script(1)");
    let shown = || fs::read_to_string(site.path("shown")).unwrap_or_default();
    wait_until(|| shown().contains(words), words);
    let mut keyboard = terminal.stdin.take().unwrap();
    keyboard.write_all(b"\x03").unwrap();
    let ended = terminal.wait().unwrap();
    assert_eq!(ended.code(), Some(130), "{}", shown());
    shown()
}

#[test]
fn a_terminal_that_cannot_draw_gets_lines_without_colours() {
    for name in [None, Some(""), Some("dumb")] {
        let shown = check(name, "Waiting for HTTP-01 challenge propagation");
        let is_told = |line: &str| {
            line.contains("Z www.example.com pending: Waiting for HTTP-01 challenge propagation")
        };
        assert!(shown.lines().any(is_told), "{name:?}: {shown}");
        assert!(shown.contains("\nhint: "), "{name:?}: {shown}");
        assert!(!shown.contains('\u{1b}'), "{name:?}: {shown:?}");
    }
}

#[test]
fn a_terminal_that_draws_gets_rows_and_colours() {
    let row = "  www.example.com \u{1b}[33mpending\u{1b}[0m since ";
    let shown = check(Some("xterm-256color"), row);
    assert!(!shown.contains("Z www.example.com pending: "), "{shown:?}");
    assert!(shown.contains("1 challenge: 1 pending; "), "{shown:?}");
    // Whatever the terminal shows of Ctrl-C stands below the rows, and goes with them.
    let (_, end) = shown.rsplit_once("\u{1b}[J").unwrap();
    assert!(end.starts_with("\u{1b}[1m\u{1b}[31merror:"), "{shown:?}");
    assert!(shown.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m "), "{shown:?}");
    assert!(shown.contains("\u{1b}[1m\u{1b}[36mhint:\u{1b}[0m "), "{shown:?}");
    // What is escaped is seen as `^[`.
    assert!(!shown.contains("^["), "{shown:?}");
}
