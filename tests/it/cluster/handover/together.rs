//! Several processes at once: whoever holds the Lease works, the others wait, watch or stand by, and take over when it goes.

use std::path::Path;

use super::fixture::Scene;
use super::row::{Row, Stop, apply};
use super::side::{Ours, Side, Worker};
use super::{finish, pebble, release_lease, wait_until_stopped};
use crate::cluster::takeover::PATIENT;
use crate::support::cluster::api_gate::ApiGate;
use crate::support::cluster::{Arena, Cluster, eventually};
use crate::support::pebble::Pebble;
use crate::support::traffic::Endpoint;

/// A cluster that nobody drives, and its CA.
struct Place<'a> {
    cluster: &'a Cluster,
    pebble: &'a Pebble,
    gate: ApiGate,
}

impl<'a> Place<'a> {
    fn new(cluster: &'a Cluster, pebble: &'a Pebble) -> Self {
        release_lease(cluster);
        Self { cluster, pebble, gate: ApiGate::before(&cluster.kubeconfig()) }
    }

    /// Applies what one issuance needs.
    fn row(&self, name: &str, stop: Stop) -> Row {
        let row = Row::new(name.to_owned(), stop, self.pebble, &self.gate);
        apply(&[&row], self.cluster, self.pebble);
        row
    }

    fn order(&self, row: &Row) -> Ours {
        let words = ["order", "-f", "manifests.json", "--timeout=5m"];
        self.start(&words, row)
    }

    fn start(&self, words: &[&str], row: &Row) -> Ours {
        let manifests = row.manifests(self.pebble);
        Ours::start(self.cluster, &self.cluster.kubeconfig(), words, &manifests)
    }

    /// Starts controllers that hold the Lease on these terms. Nobody starts them again here, when a machine that stands still has cost
    /// them the Lease.
    fn run(&self, terms: &[&str]) -> Ours {
        let kubeconfig: &Path = &self.cluster.kubeconfig();
        Ours::start(self.cluster, kubeconfig, &[&["run"], terms].concat(), &[])
    }

    /// Waits until the answer of an issuance is up and nobody can see it.
    fn wait_until_presented(&self, row: &Row) {
        eventually("an answer", || {
            let scene = Scene::glance(self.cluster);
            let mut challenges = scene.all(&row.namespace, "Challenge");
            challenges.any(|challenge| challenge["status"]["presented"] == true).then_some(())
        });
    }

    /// Every issuance comes to its end, with one order.
    ///
    /// `log` returns what the process that works wrote, for the message of a failure.
    fn check_ends(&self, rows: &[Row], log: impl Fn() -> String) {
        finish(self.cluster, rows, log);
        let scene = Scene::look(self.cluster);
        for row in rows {
            assert_eq!(row.faults(Side::Run, &scene, self.pebble), [""; 0], "{}", row.namespace);
        }
        self.cluster.kubectl().run(&["delete", "issuers", "--all", "--all-namespaces"]);
    }
}

fn wait_for_words(ours: &Ours, words: &str) {
    eventually(words, || ours.log().contains(words).then_some(()));
}

/// Waits for the end of a process of ours.
fn check_end(mut ours: Ours, expected: i32) {
    let code = eventually("the end of a process", || ours.code());
    assert_eq!(code, expected, "{}", ours.log());
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn one_shots_wait_for_each_other() {
    let cluster: &Cluster = &Arena::enter();
    let pebble: &Pebble = &pebble(cluster);
    let place = Place::new(cluster, pebble);
    let held = place.row("together-held", Stop::AtCa(Endpoint::Finalize));
    let other = place.row("together-other", Stop::Nowhere);
    let first = place.order(&held);
    wait_until_stopped(cluster, &[&held], &place.gate, || first.log());

    let [same, different] = [&held, &other].map(|row| place.order(row));
    for waiting in [&same, &different] {
        wait_for_words(waiting, "works on this cluster; waiting for its end");
    }
    held.release();
    check_end(first, 0);
    wait_for_words(&same, "nothing is due");
    check_end(same, 0);
    check_end(different, 0);
    place.check_ends(&[held, other], String::new);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn whoever_stands_by_takes_over() {
    let cluster: &Cluster = &Arena::enter();
    let pebble: &Pebble = &pebble(cluster);
    let place = Place::new(cluster, pebble);
    let first = place.run(&[]);
    wait_for_words(&first, "Ctrl-C ends this command");
    let second = place.run(&PATIENT);
    wait_for_words(&second, "standing by while");

    // The first is killed, while a one-shot watches.
    let mut killed = place.row("together-killed", Stop::AtCa(Endpoint::Finalize));
    let watching = place.order(&killed);
    wait_for_words(&watching, "driver: kubectl-acme run");
    wait_until_stopped(cluster, &[&killed], &place.gate, || first.log());
    drop(first);
    killed.note_death(Side::Run, &Scene::look(cluster));
    wait_for_words(&second, "Ctrl-C ends this command");
    check_end(watching, 0);

    // The second ends in good order, for cert-manager, which then does for a third.
    cluster.stop_stand_in();
    let theirs = place.row("together-theirs", Stop::Nowhere);
    place.wait_until_presented(&theirs);
    let Worker::Theirs(peer) = Side::CertManager.start(cluster, &cluster.kubeconfig(), &[]) else {
        unreachable!("cert-manager is not ours");
    };
    second.end_in_good_order();
    peer.wait_until_at_work();
    cluster.start_stand_in();
    finish(cluster, std::slice::from_ref(&theirs), || peer.log());

    cluster.stop_stand_in();
    let ours = place.row("together-ours", Stop::Nowhere);
    place.wait_until_presented(&ours);
    let third = place.run(&PATIENT);
    wait_for_words(&third, "standing by while");
    peer.stop();
    wait_for_words(&third, "Ctrl-C ends this command");
    cluster.start_stand_in();
    place.check_ends(&[killed, theirs, ours], || third.log());
    third.end_in_good_order();
}
