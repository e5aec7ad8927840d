//! `--rehearse-first`: the CA hears of nothing unless the rehearsal has worked, and the rehearsal leaves nothing behind.

use kubectl_acme::model::Kind;
use serde_json::Value;

use super::site::Site;
use crate::support::bed::free_port;

const GO_ON: &str = "nothing was spent at the issuer's CA; now the real order";

/// The CA heard of nothing, and nothing was applied or written.
#[track_caller]
fn is_untouched(site: &Site) {
    assert_eq!((site.ca.accounts(), site.orders()), (0, 0));
    assert!(site.results().is_empty(), "{:?}", site.results());
    for kind in [Kind::Certificate, Kind::Issuer, Kind::Order, Kind::Secret] {
        assert!(site.stored(kind).is_empty(), "{kind:?}: {:?}", site.stored(kind));
    }
}

#[test]
fn what_has_been_rehearsed_is_issued_by_the_same_command() {
    let site = Site::new();
    let said = site.run(site.order("--rehearse-first -o json --events events"));
    said.check(0, "");
    assert_eq!(said.talk.matches(GO_ON).count(), 1, "{said:?}");
    site.has_pair();
    assert_eq!(site.orders(), 1);
    let report: Value = serde_json::from_str(&said.result).unwrap();
    assert_eq!((&report["kind"], &report["rehearsal"]), (&"OrderReport".into(), &false.into()));
    let steps = std::fs::read_to_string(site.path("events")).unwrap();
    let steps = steps.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let issued =
        |step: &Value| step["object"]["kind"] == "Certificate" && step["state"] == "issued";
    assert_eq!(steps.filter(issued).count(), 1, "steps of the rehearsal are not told to programs");
}

#[test]
fn nothing_is_rehearsed_where_nothing_is_due() {
    let site = Site::new();
    site.issues();
    let said = site.run(site.order("--rehearse-first"));
    said.check(0, "");
    assert!(said.talk.contains("nothing is due") && !said.talk.contains("rehears"), "{said:?}");
}

#[test]
fn only_what_is_due_is_rehearsed() {
    let site = Site::new();
    site.issues();
    let second = site
        .manifest()
        .replace("name: web\n", "name: mail\n")
        .replace("web-tls", "mail-tls")
        .replace("www.example.com", "mail.example.com");
    let (_, second) = second.split_once("---\n").unwrap();
    site.give(&format!("{}---\n{second}", site.manifest()));
    let said = site.run(site.order("--rehearse-first"));
    said.check(0, "");
    let (rehearsed, real) = said.talk.split_once(GO_ON).unwrap();
    assert!(rehearsed.contains("mail.example.com"), "{said:?}");
    assert!(!rehearsed.contains("www.example.com"), "{said:?}");
    assert!(real.contains("mail.example.com: issued in "), "{said:?}");
    site.has_pairs(&["mail-tls", "web-tls"]);
    assert_eq!(site.orders(), 2);
}

#[test]
fn a_rehearsal_that_fails_spends_and_changes_nothing() {
    let site = Site::new();
    let nowhere = format!("--http01-resolve *=127.0.0.1:{}", free_port());
    let flags = format!("--rehearse-first -o json --timeout 3s {nowhere}");
    let said = site.run(site.order(&flags));
    assert_eq!(said.code, Some(124), "{said:?}");
    let report: Value = serde_json::from_str(&said.result).unwrap();
    assert_eq!((&report["rehearsal"], &report["exitCode"]), (&true.into(), &124.into()));
    is_untouched(&site);

    let said = site.run(site.order(&flags.replace("-o json", "")));
    assert!(said.talk.contains("the rehearsal failed: nothing was spent"), "{said:?}");
    assert!(said.talk.contains("the real order: not begun"), "{said:?}");
    is_untouched(&site);
}

#[test]
fn a_rehearsal_that_is_interrupted_ends_the_command() {
    let site = Site::new();
    let nowhere = free_port();
    let order = site.order(&format!("--rehearse-first --http01-resolve *=127.0.0.1:{nowhere}"));
    let order = site.start("order", order);
    order.says(&format!("refused by 127.0.0.1:{nowhere}"));
    order.signal("INT");
    let said = order.end();
    assert_eq!(said.code, Some(130), "{said:?}");
    is_untouched(&site);
}

#[test]
fn what_cannot_begin_is_told_before_anything_is_rehearsed() {
    let site = Site::new();
    let both = site.run(site.order("--rehearse --rehearse-first"));
    assert_eq!(both.code, Some(2), "{both:?}");
    let by_hand = site.run(site.order("--rehearse-first --dns01-manual"));
    assert_eq!(by_hand.code, Some(2), "{by_hand:?}");
    let taken = site.taken_port();
    let said = site.run(site.order("--rehearse-first"));
    drop(taken);
    assert_eq!(said.code, Some(9), "{said:?}");
    is_untouched(&site);
}
