//! Types of challenges that a cluster has no words for: refused before anything is applied.

use crate::support::cluster::{Bench, Cluster, check};

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_type_that_the_schema_does_not_admit_is_refused_before_anything_is_applied() {
    let bench = Bench::new(Cluster::shared(), "types");
    let kubectl = bench.namespace.kubectl();
    let kinds = ["dns-account-01", "dns-persist-01", "tls-alpn-01"];
    // A rehearsal does what the real thing would, wherever its results go.
    let rehearsals: [&[&str]; 2] = [&["--rehearse"], &["--rehearse", "--out=out"]];
    let wishes = kinds.map(|kind| (kind, &[][..])).into_iter();
    for (kind, flags) in wishes.chain(kinds.into_iter().zip(rehearsals.into_iter().cycle())) {
        let wish = format!("--challenge-type={kind}");
        let talk = bench.order(&kubectl, &[&[wish.as_str()], flags].concat(), 2);
        let reason = format!("cannot be used: {kind} is for a store of one machine only");
        assert!(talk.contains(&reason), "{talk}");
        assert!(
            talk.contains("hint: take the annotation kubectl-acme/challenge-type away"),
            "{talk}"
        );
    }
    assert!(bench.names("issuers,certificates").is_empty());
    // An annotation that is there already is seen, too.
    kubectl.run(&["apply", "-f", bench.folder().join("web.yaml").to_str().unwrap()]);
    kubectl.run(&["annotate", "issuer/pebble", "kubectl-acme/challenge-type=tls-alpn-01"]);
    let retry = bench.run(&kubectl, &["certificate", "renew", "web"]);
    let talk = check(&retry, 2);
    assert!(talk.contains("tls-alpn-01 is for a store of one machine only"), "{talk}");
    assert_eq!(bench.pebble.orders(), 0);
}
