//! The recordings, carried out again with our controllers on the API server.

use std::thread;

use super::differences::INSTEAD;
use super::fixture::Scene;
use super::names::Names;
use super::scenarios::{DENIED, KILLED, PLAYS, Play};
use super::{Ours, arena, report};
use crate::cluster::handover::release_lease;
use crate::support::cluster::{Cluster, Witness};
use crate::support::difference::{self, Verdict};
use crate::support::gate::Passage;
use crate::support::purpose::EVERYWHERE;
use crate::support::recorded::recorded;
use crate::support::story;

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn every_recording_is_done_again_with_the_same_objects_and_events() {
    let cluster: &Cluster = &arena();
    let witness = Witness::of(cluster);
    // Gates live in it.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let names = Names::start();
    let dns = format!("--dns={}", names.resolver.address());
    let plays: Vec<&Play> = PLAYS.iter().chain([&KILLED, &DENIED]).collect();
    let scenes: Vec<Scene<'_>> = plays
        .iter()
        .map(|play| runtime.block_on(Scene::set(cluster, &witness, &names, play.trace)))
        .collect();
    let [.., killed, denied] = &scenes[..] else { panic!("more are played") };
    let hosts: Vec<_> = scenes.iter().flat_map(Scene::hosts).collect();
    let ours = Ours::start_with(cluster, &hosts, &[&dns]);
    thread::scope(|scope| {
        for (play, scene) in
            plays.iter().zip(&scenes).filter(|(play, _)| play.trace != DENIED.trace)
        {
            scope.spawn(|| (play.act)(scene));
        }
    });
    // The others have ended: the last one goes on under new controllers; nobody waits until the Lease of those killed expires.
    ours.kill();
    release_lease(cluster);
    let ours = Ours::start(cluster, &hosts);
    killed.self_check.set(Passage::Patient);
    killed.until_issued("web", 1);
    ours.stop();
    let ours = Ours::start_with(cluster, &hosts, &["--approve=false"]);
    (DENIED.act)(denied);
    ours.stop();
    let verdicts: Vec<(&str, Verdict)> = plays
        .iter()
        .zip(&scenes)
        .map(|(play, scene)| {
            let (as_recorded, ours) = (story::tell(&scene.recorded), story::tell(&scene.turns()));
            let mut theirs = as_recorded.clone();
            for instead in INSTEAD.iter().filter(|instead| instead.fails.0 == play.trace) {
                theirs = instead.retold(&theirs, &story::tell(&recorded(instead.like.0)));
            }
            let listed = [&[EVERYWHERE], play.differences].concat().concat();
            let mut verdict = difference::compare(&theirs, &ours, &listed);
            verdict.on_purpose += story::differences(&as_recorded, &theirs).len();
            (play.trace, verdict)
        })
        .collect();
    report("recording", &verdicts);
}
