//! Several processes at one state folder.

use super::site::{Site, wait_until};

#[test]
fn the_second_of_two_processes_waits_and_finds_nothing_due() {
    let site = Site::new();
    site.blind();
    let first = site.start("first", site.order(""));
    wait_until(|| site.orders() == 1, "the first order");
    let second = site.start("second", site.order(""));
    second.says("waiting for its end");
    site.see();
    first.end().check(0, "");
    let second = second.end();
    second.check(0, "");
    assert!(second.talk.contains("nothing is due"), "{}", second.talk);
    assert_eq!(site.orders(), 1);
}
