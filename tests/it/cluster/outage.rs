//! The API server goes away in the middle of many issuances, each at another step, and comes back: what works on them goes on
//! or ends cleanly, and no order is made twice.

use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::handover::fixture::Scene;
use crate::cluster::handover::row::{Row, Stop, apply};
use crate::cluster::handover::side::{Ours, Side};
use crate::cluster::handover::{finish, pebble, release_lease, wait_until_stopped};
use crate::support::cluster::api_gate::{ApiGate, Moment, Step};
use crate::support::cluster::{Arena, Cluster, eventually};
use crate::support::pebble::Pebble;
use crate::support::traffic::Endpoint;

/// The exit code of `run` when another may drive.
const LEASE_LOST: i32 = 12;

/// What `order` says when nothing of its work is under way any more.
const STOPPED: &str = "work is paused until it is settled which process drives";

/// How long the API server is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outage {
    /// As long as it takes to start it again, which may cost the Lease.
    Restart,
    /// Until the Lease is lost for certain.
    Long,
}

/// Between two writes, with the connection lost before and after one, and while the CA is waited for.
fn stops() -> Vec<Stop> {
    let writes = [
        ("PATCH", "certificates/status", 2),
        ("POST", "secrets", 1),
        ("POST", "orders", 1),
        ("PATCH", "orders/status", 1),
        ("PATCH", "challenges", 1),
        ("POST", "services", 1),
        ("PATCH", "secrets", 1),
    ];
    let steps = writes.map(|(verb, resource, nth)| Step {
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        nth,
    });
    let at_write = |moment: Moment| steps.clone().map(move |step| Stop::AtWrite(step, moment));
    let at_ca =
        [Endpoint::NewOrder, Endpoint::Challenge, Endpoint::Finalize, Endpoint::Certificate];
    let at_ca = at_ca.map(Stop::AtCa);
    at_write(Moment::Before).into_iter().chain(at_write(Moment::After)).chain(at_ca).collect()
}

fn start(cluster: &Cluster, gate: &ApiGate, words: &[&str], manifests: &[Value]) -> Ours {
    Ours::start(cluster, &gate.kubeconfig(), words, manifests)
}

/// Whether one that lost the Lease has stopped its work.
fn has_stopped(ours: &mut Ours, is_run: bool) -> bool {
    if is_run { ours.code().is_some() } else { ours.log().contains(STOPPED) }
}

/// When the Lease was last written by its holder.
fn renewed(cluster: &Cluster) -> Option<Timestamp> {
    let lease = ["get", "lease", "cert-manager-controller", "--namespace=kube-system"];
    let wanted = ["--output=jsonpath={.spec.renewTime}"];
    cluster.kubectl().run(&[&lease[..], &wanted].concat()).trim().parse().ok()
}

/// Stops the API server when every issuance has come to its step, and starts it again.
fn check(name: &str, words: &[&str], outage: Outage) {
    let cluster: &Cluster = &Arena::enter();
    let pebble: &Pebble = &pebble(cluster);
    let gate = ApiGate::before(&cluster.kubeconfig());
    let is_run = words[0] == "run";
    let new = |(number, stop)| Row::new(format!("{name}-{number}"), stop, pebble, &gate);
    let mut rows: Vec<Row> = stops().into_iter().enumerate().map(new).collect();
    let manifests: Vec<Value> = rows.iter().flat_map(|row| row.manifests(pebble)).collect();
    apply(&rows.iter().collect::<Vec<_>>(), cluster, pebble);
    let mut ours = start(cluster, &gate, words, &manifests);
    wait_until_stopped(cluster, &rows.iter().collect::<Vec<_>>(), &gate, || ours.log());

    let scene = Scene::look(cluster);
    cluster.stop_api_server();
    if outage == Outage::Long {
        eventually("the loss of the Lease", || has_stopped(&mut ours, is_run).then_some(()));
    }
    let back = Timestamp::now();
    cluster.start_api_server();
    let mut first = None;
    let has_lost = eventually("whether the Lease is lost", || {
        // Whoever has stopped takes it again: what the Lease says is older than what he says. The first renewal may come from one
        // who has given up meanwhile, for want of the answer.
        let renewal = renewed(cluster).filter(|at| *at > back);
        let is_renewed = renewal.is_some_and(|at| at > *first.get_or_insert(at));
        let has_stopped = has_stopped(&mut ours, is_run);
        (has_stopped || is_renewed).then_some(has_stopped)
    });
    gate.open();
    rows.iter().for_each(Row::release);
    if has_lost {
        // What was told in the meantime died with the work on it; the orders that the CA has taken die with the process alone.
        for row in &mut rows {
            row.note_death(if is_run { Side::Run } else { Side::Order }, &scene);
            if !is_run {
                row.note_memory();
            }
        }
    }
    if has_lost && is_run {
        assert_eq!(ours.ended(), LEASE_LOST, "{}", ours.log());
        ours = start(cluster, &gate, words, &manifests);
    }
    finish(cluster, &rows, || ours.log());
    if !is_run {
        assert_eq!(ours.ended(), 0, "{}", ours.log());
    }
    drop(ours);
    release_lease(cluster);
    let scene = Scene::look(cluster);
    let faults =
        rows.iter().map(|row| (row.stop.to_string(), row.faults(Side::Run, &scene, pebble)));
    let faults: Vec<_> = faults.filter(|(_, faults)| !faults.is_empty()).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    cluster.kubectl().run(&["delete", "issuers", "--all", "--all-namespaces"]);
}

const ORDER: [&str; 4] = ["order", "-f", "manifests.json", "--timeout=5m"];

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_one_shot_goes_on_when_the_api_server_is_back() {
    check("outage-order", &ORDER, Outage::Restart);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_one_shot_that_lost_its_lease_takes_it_again_and_goes_on() {
    check("outage-lost-order", &ORDER, Outage::Long);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn our_controllers_go_on_when_the_api_server_is_back() {
    check("outage-run", &["run"], Outage::Restart);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn controllers_that_lost_their_lease_end_and_the_next_go_on() {
    check("outage-lost-run", &["run"], Outage::Long);
}
