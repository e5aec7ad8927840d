//! In a cluster, too, a CA that refuses is asked for one order by each run: the ledger is kept with the Certificate.

use serde_json::Value;

use crate::pebble::storm::{RUNS, Refusal};
use crate::support::cluster::{Arena, Bench};
use crate::support::traffic::Endpoint;

/// Runs the command again and again, right behind one another, as processes that each take the Lease; returns what was kept.
fn check(refusal: Refusal, namespace: &str) -> Vec<Value> {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, namespace);
    match refusal.fault() {
        Some(fault) => bench.proxy().inject(fault),
        // The self-check is led to the cluster; the CA looks where nobody listens.
        None => bench.pebble.dns().set_default_ipv4("127.0.0.11"),
    }
    let kubectl = bench.namespace.kubectl();
    for run in 1..=RUNS {
        let output = bench.run(&kubectl, &["order", "-f", "web.yaml", "--timeout=3m"]);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(1..=7)), "{refusal:?}, run {run}: {talk}");
        let new_orders = bench.proxy().counts().at(Endpoint::NewOrder);
        assert_eq!(new_orders, run, "{refusal:?}: {talk}");
    }
    let ledger = kubectl.run(&[
        "get",
        "certificate",
        "web",
        "--output=jsonpath={.metadata.annotations.kubectl-acme/certificate-orders}",
    ]);
    serde_json::from_str(&ledger).unwrap()
}

macro_rules! storms {
    ($($name:ident: $refusal:ident in $namespace:literal, $became:literal;)*) => {$(
        #[test]
        #[ignore = "needs an API server: run by just cluster"]
        fn $name() {
            let ledger = check(Refusal::$refusal, $namespace);
            let became: Vec<&str> = ledger.iter().map(|entry| entry["became"].as_str().unwrap()).collect();
            assert_eq!(became, [$became; RUNS]);
        }
    )*};
}

storms! {
    a_refused_new_order_is_asked_for_once_a_run: NewOrder in "storm-order", "refused";
    a_refused_validation_costs_one_order_a_run: Validation in "storm-validation", "failed";
    a_refused_signing_request_costs_one_order_a_run: Finalize in "storm-finalize", "failed";
    a_certificate_that_is_not_served_costs_one_order_a_run: Download in "storm-download", "failed";
}
