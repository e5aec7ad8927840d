//! Whoever drives a cluster is killed at every step of an issuance, and somebody else finishes what it began: one order at
//! the CA, one certificate, nothing left behind.

pub(crate) mod fixture;
pub(crate) mod row;
pub(crate) mod side;
mod together;

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::fixture::Scene;
use self::row::{Row, Stop, apply};
use self::side::{Side, Worker};
use crate::support::cluster::api_gate::{ApiGate, Moment, Step};
use crate::support::cluster::{Arena, Cluster, eventually};
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::traffic::Endpoint;

/// How long a side may take on a busy machine for all rows together.
const PATIENCE: Duration = Duration::from_mins(4);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// The order of writes changes a little from run to run: so many steps may not be taken.
const MISSED: usize = 6;

/// How often each side issues without disturbance.
const CALM: usize = 3;

/// A CA that looks where a cluster serves.
pub(crate) fn pebble(cluster: &Cluster) -> Pebble {
    Pebble::start(&PebbleOptions { http_port: Some(cluster.http_port()), ..PebbleOptions::calm() })
}

/// The scheduler writes for one Challenge after the other: one it cannot finish holds up all that come later.
fn is_schedulers(stop: &Stop) -> bool {
    matches!(stop, Stop::AtWrite(write, _) if write.is_schedulers())
}

/// Requests that a CA acts upon, and the one that fetches what came of them.
const DEEDS: [Endpoint; 5] = [
    Endpoint::NewAccount,
    Endpoint::NewOrder,
    Endpoint::Challenge,
    Endpoint::Finalize,
    Endpoint::Certificate,
];

/// Which writes are tried, of all: each so many-th from one on. `KUBECTL_ACME_TEST_KILLS` says it, such as `1/4` (`tests/bed/beside`);
/// `tests/it/local/crash` kills at every write, in memory.
const SHARE: &str = "KUBECTL_ACME_TEST_KILLS";

/// The first write that is tried of those that a side takes, and how many it is to the next one.
fn share() -> (usize, usize) {
    let text = std::env::var(SHARE).unwrap_or_else(|_| "0/4".to_owned());
    let share = text.split_once('/').and_then(|(first, every)| {
        let (first, every) = (first.parse().ok()?, every.parse().ok()?);
        (first < every).then_some((first, every))
    });
    share.unwrap_or_else(|| panic!("{SHARE}={text} is not such as 1/4"))
}

/// Kills the first side at the steps of an issuance, and lets the second one finish them all. What is tried of the writes begins so
/// many later than elsewhere.
fn check(first: Side, second: Side, moment: Moment, later: usize) {
    let cluster = Arena::enter();
    let (begun, (from, every)) = (Instant::now(), share());
    let pebble = pebble(&cluster);
    let name = format!("{first:?}-{second:?}").to_lowercase();
    let writes = undisturbed(first, &cluster, &pebble, &format!("{name}-calm"));
    assert!(writes.len() > 30, "an issuance takes more than 30 writes: {writes:?}");
    let stop = |write: &Step| {
        let moment = if write.is_schedulers() { Moment::Before } else { moment };
        Stop::AtWrite(write.clone(), moment)
    };
    let mut stops: Vec<Stop> =
        writes.iter().skip((from + later) % every).step_by(every).map(stop).collect();
    stops.extend(DEEDS.map(Stop::AtCa));
    let handover = Handover { first, second, cluster: &cluster, pebble: &pebble };
    let is_serial = |stop: &Stop| match stop {
        // It applies one manifest after the other, and takes no more later.
        Stop::AtWrite(write, _) if first == Side::Order => {
            is_schedulers(stop) || ["certificates", "issuers"].contains(&write.resource.as_str())
        }
        _ => false,
    };
    let (serial, together): (Vec<Stop>, Vec<Stop>) = stops.into_iter().partition(is_serial);
    let mut ends = handover.perform(&format!("{name}-all"), together);
    for (number, stop) in serial.into_iter().enumerate() {
        ends.extend(handover.perform(&format!("{name}-{number}"), vec![stop]));
    }
    // What is wrong comes first: a long output may be cut.
    ends.sort_by_key(|end| end.faults.is_empty());
    show(&ends, begun.elapsed());
    let missed = ends.iter().filter(|end| !end.stopped).count();
    assert!(missed < MISSED, "{missed} steps were never taken");
    let faulty = ends.iter().filter(|end| !end.faults.is_empty()).count();
    assert_eq!(faulty, 0, "steps are faulty");
}

/// How an issuance ended whose first worker was killed.
struct End {
    stop: Stop,
    stopped: bool,
    lost_order: bool,
    faults: Vec<String>,
    /// What both workers said of it.
    log: Vec<String>,
}

/// Who follows whom, and where.
struct Handover<'a> {
    first: Side,
    second: Side,
    cluster: &'a Cluster,
    pebble: &'a Pebble,
}

impl Handover<'_> {
    /// Lets the first side work until it has stopped everywhere, kills it, and waits until the second one has finished.
    fn perform(&self, name: &str, stops: Vec<Stop>) -> Vec<End> {
        let gate = ApiGate::before(&self.cluster.kubeconfig());
        let new = |(number, stop)| Row::new(format!("{name}-{number}"), stop, self.pebble, &gate);
        let mut rows: Vec<Row> = stops.into_iter().enumerate().map(new).collect();
        let manifests: Vec<Value> =
            rows.iter().flat_map(|row| row.manifests(self.pebble)).collect();

        let (late, early): (Vec<&Row>, Vec<&Row>) =
            rows.iter().partition(|row| is_schedulers(&row.stop) && rows.len() > 1);
        apply(&early, self.cluster, self.pebble);
        let worker = self.first.start(self.cluster, &gate.kubeconfig(), &manifests);
        let stopped = wait_until_stopped(self.cluster, &early, &gate, || worker.log());
        apply(&late, self.cluster, self.pebble);
        let stopped_late = wait_until_stopped(self.cluster, &late, &gate, || worker.log());
        let stopped: BTreeSet<String> = stopped.into_iter().chain(stopped_late).collect();

        let mut log = worker.log();
        drop(worker);
        let scene = Scene::look(self.cluster);
        for row in &mut rows {
            row.note_death(self.first, &scene);
        }
        drop(gate);
        let mut worker = self.second.start(self.cluster, &self.cluster.kubeconfig(), &manifests);
        finish(self.cluster, &rows, || worker.log());
        if let (Side::Order, Worker::Ours(ours)) = (self.second, &mut worker) {
            let code = eventually("the end of the command", || ours.code());
            assert_eq!(code, 0, "{}", ours.log());
        }
        log.push_str(&worker.log());
        drop(worker);
        release_lease(self.cluster);
        let scene = Scene::look(self.cluster);
        let end = |row: &Row| End {
            stop: row.stop.clone(),
            stopped: stopped.contains(&row.namespace),
            lost_order: row.has_lost_order(),
            faults: row.faults(self.second, &scene, self.pebble),
            log: lines_about(&row.namespace, &log),
        };
        let ends = rows.iter().map(end).collect();
        // Their CAs are gone.
        self.cluster.kubectl().run(&["delete", "issuers", "--all", "--all-namespaces"]);
        ends
    }
}

/// Returns the namespaces of those that have stopped; the others came to their end.
pub(crate) fn wait_until_stopped(
    cluster: &Cluster,
    rows: &[&Row],
    gate: &ApiGate,
    log: impl Fn() -> String,
) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (stopped, moving): (Vec<&Row>, Vec<&Row>) =
            rows.iter().partition(|row| row.has_stopped(gate));
        let has_ended = |scene: &Scene| moving.iter().all(|r| scene.lacks(&r.namespace).is_none());
        // Most come to their stop; only a few may not be there when the order of writes is another one.
        if moving.is_empty() || moving.len() < MISSED && has_ended(&Scene::glance(cluster)) {
            return stopped.iter().map(|row| row.namespace.clone()).collect();
        }
        let moving: Vec<String> = moving.iter().map(|row| row.stop.to_string()).collect();
        assert!(Instant::now() < deadline, "does not stop: {moving:?}\n{}", log());
        sleep(PAUSE);
    }
}

/// Prints where the work was stopped, and how it ended; what both workers said where that is wrong.
fn show(ends: &[End], taken: Duration) {
    let lines = ends.iter().map(|end| {
        let orders = if end.lost_order { "a second order" } else { "one order" };
        let reached = if end.stopped { orders } else { "not reached" };
        let log = if end.faults.is_empty() { String::new() } else { end.log.join("\n") + "\n" };
        format!("{:<45} {reached:<15} {}\n{log}", end.stop.to_string(), end.faults.join("; "))
    });
    let table: String = lines.collect();
    #[expect(clippy::print_stderr, reason = "shown beside a failed assertion")]
    {
        eprintln!("{table}{} steps in {taken:.0?}", ends.len());
    }
}

/// Lines of a log that name a namespace.
fn lines_about(namespace: &str, log: &str) -> Vec<String> {
    let names_it = |line: &&str| {
        line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == namespace)
    };
    log.lines().filter(names_it).map(str::to_owned).collect()
}

/// Waits for the end of all rows; fails with what every one lacks that has none, and shows what is in the cluster of the first one.
///
/// `log` returns what the process that works wrote, for the message of a failure.
pub(crate) fn finish(cluster: &Cluster, rows: &[Row], log: impl Fn() -> String) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let scene = Scene::glance(cluster);
        let lacking: Vec<(&Row, String)> =
            rows.iter().filter_map(|row| Some((row, scene.lacks(&row.namespace)?))).collect();
        let Some((first, _)) = lacking.first() else { return };
        if Instant::now() > deadline {
            let lines = lacking.iter().map(|(row, lack)| {
                let about = lines_about(&row.namespace, &log()).join("\n");
                format!("{} {}: {lack}\n{about}\n", row.namespace, row.stop)
            });
            let kinds = "certificates,certificaterequests,orders,challenges,events";
            let objects = ["get", kinds, "--namespace", &first.namespace, "--output=yaml"];
            let there = cluster.kubectl().try_run(&objects).unwrap_or_else(|error| error);
            let lines: String = lines.collect();
            // What is wrong comes first: a long output may be cut.
            panic!("not finished:\n{lines}\n{there}\n{}", log());
        }
        sleep(PAUSE);
    }
}

/// Lets one side issue a few times without any disturbance; returns the writes that each of them takes. Some are chance:
/// cert-manager makes solver objects twice when its watch lags behind, and deletes what is too much.
fn undisturbed(side: Side, cluster: &Cluster, pebble: &Pebble, name: &str) -> Vec<Step> {
    let gate = ApiGate::before(&cluster.kubeconfig());
    let new = |number| Row::new(format!("{name}-{number}"), Stop::Nowhere, pebble, &gate);
    let rows: Vec<Row> = (0..CALM).map(new).collect();
    let manifests: Vec<Value> = rows.iter().flat_map(|row| row.manifests(pebble)).collect();
    apply(&rows.iter().collect::<Vec<_>>(), cluster, pebble);
    let worker = side.start(cluster, &gate.kubeconfig(), &manifests);
    finish(cluster, &rows, || worker.log());
    let mut taken = rows.iter().map(|row| gate.writes(&row.namespace));
    let mut writes = taken.next().unwrap();
    for others in taken {
        writes.retain(|write| others.contains(write));
    }
    drop(worker);
    release_lease(cluster);
    writes
}

/// Saves the wait until the Lease of one that was killed runs out.
pub(crate) fn release_lease(cluster: &Cluster) {
    let name = "lease/cert-manager-controller";
    cluster.kubectl().run(&["delete", name, "--namespace=kube-system", "--ignore-not-found"]);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn we_finish_what_cert_manager_began() {
    check(Side::CertManager, Side::Run, Moment::Before, 0);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cert_manager_finishes_what_we_began() {
    check(Side::Run, Side::CertManager, Moment::Before, 1);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn our_controllers_killed_after_a_write_are_continued_by_the_next() {
    check(Side::Run, Side::Run, Moment::After, 2);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_one_shot_killed_before_a_write_is_continued_by_the_next() {
    check(Side::Order, Side::Order, Moment::Before, 3);
}
