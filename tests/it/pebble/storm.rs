//! A CA that refuses is asked for one order by each run, wherever it refuses, however quickly the next run comes, and whatever the
//! clock says. Counted by a proxy before Pebble.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fault::Fault;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::proxy::Proxy;
use crate::support::terminal::{Said, Terminal, certificate, issuer};
use crate::support::traffic::Endpoint;

/// How often the same command is run, right behind one another.
pub(crate) const RUNS: usize = 6;

/// Where the CA refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NewOrder,
    /// The CA looks at a port where nobody listens.
    Validation,
    Finalize,
    Download,
}

impl Refusal {
    /// The fault of a proxy before the CA, where it is one.
    pub(crate) fn fault(self) -> Option<Fault> {
        Some(match self {
            Self::NewOrder => {
                Fault::problem(403, "rejectedIdentifier", "not this name").at(Endpoint::NewOrder)
            }
            Self::Validation => return None,
            Self::Finalize => {
                Fault::problem(403, "unauthorized", "not this key").at(Endpoint::Finalize)
            }
            Self::Download => {
                Fault::problem(404, "malformed", "no such certificate").at(Endpoint::Certificate)
            }
        })
    }
}

/// A CA that refuses, and somebody who does not give up.
struct Scene {
    pebble: Pebble,
    proxy: Proxy,
    terminal: Terminal,
}

impl Scene {
    fn new(refusal: Refusal) -> Self {
        let pebble = Pebble::start(&PebbleOptions::calm());
        let proxy = pebble.proxy();
        // The self-check is led to our listener in either case.
        let terminal = match refusal {
            Refusal::Validation => Terminal::elsewhere(),
            _ => Terminal::at(&pebble),
        };
        if let Some(fault) = refusal.fault() {
            proxy.inject(fault);
        }
        Self { pebble, proxy, terminal }
    }

    fn manifests(&self) -> [Value; 2] {
        let issuer = issuer(&self.proxy.directory(), self.pebble.tls_ca_pem(), json!({}));
        [issuer, certificate("web", &["www.example.com"], json!({}))]
    }

    fn order(&self) -> Said {
        self.terminal.try_order(&self.manifests())
    }

    /// Runs the command again and again; each run sends one newOrder, and ends with the CA's refusal.
    fn check(&self, refusal: Refusal, runs: usize) {
        for run in 1..=runs {
            let said = self.order();
            assert!(matches!(said.code, Some(1..=7)), "{refusal:?}, run {run}: {said:?}");
            assert_eq!(self.new_orders(), run, "{refusal:?}: {said:?}");
        }
    }

    fn new_orders(&self) -> usize {
        self.proxy.counts().at(Endpoint::NewOrder)
    }
}

fn check(refusal: Refusal) {
    let scene = Scene::new(refusal);
    scene.check(refusal, RUNS);
    // A slow CA: the failure comes in another second than the try.
    scene.proxy.forget();
    if let Some(fault) = refusal.fault() {
        scene.proxy.inject(fault);
    }
    scene.proxy.inject(Fault::delay(Duration::from_millis(400)));
    scene.check(refusal, 2);
}

/// The library by which a process sees another time, where Debian's package has put it.
fn other_time() -> PathBuf {
    let found = Command::new("dpkg").args(["-L", "libfaketime"]).output().unwrap().stdout;
    let files = String::from_utf8(found).unwrap();
    let library = files.lines().find(|line| line.ends_with("/libfaketime.so.1"));
    library.expect("the bed has libfaketime").into()
}

/// Runs the command by a clock that stands still, then by one that stands still an hour earlier.
fn check_by_other_clocks(refusal: Refusal) {
    let mut scene = Scene::new(refusal);
    let now = jiff::Timestamp::now();
    scene.terminal.set("LD_PRELOAD", other_time().display());
    scene.terminal.set("FAKETIME_DONT_FAKE_MONOTONIC", 1);
    scene.terminal.set("TZ", "UTC");
    let stand_still = |scene: &mut Scene, at: jiff::Timestamp| {
        scene.terminal.set("FAKETIME", at.strftime("%Y-%m-%d %H:%M:%S"));
    };
    stand_still(&mut scene, now);
    scene.check(refusal, RUNS);
    stand_still(&mut scene, now - jiff::SignedDuration::from_secs(5));
    let said = scene.order();
    assert_eq!(scene.new_orders(), RUNS + 1, "{refusal:?}, the clock was set back: {said:?}");
}

macro_rules! storms {
    ($($name:ident, $other:ident: $refusal:ident;)*) => {$(
        #[test]
        #[ignore = "needs Pebble: run by just pebble"]
        fn $name() {
            check(Refusal::$refusal);
        }

        #[test]
        #[ignore = "needs Pebble: run by just pebble"]
        fn $other() {
            check_by_other_clocks(Refusal::$refusal);
        }
    )*};
}

storms! {
    a_refused_new_order_is_asked_for_once_a_run, a_refused_new_order_by_other_clocks: NewOrder;
    a_refused_validation_costs_one_order_a_run, a_refused_validation_by_other_clocks: Validation;
    a_refused_signing_request_costs_one_order_a_run, a_refused_signing_request_by_other_clocks: Finalize;
    a_certificate_that_is_not_served_costs_one_order_a_run, a_certificate_that_is_not_served_by_other_clocks: Download;
}
