//! The recordings, carried out again with our controllers on the API server.

use std::thread;

use super::plays::PLAYS;
use super::scene::Scene;
use super::{Ours, cluster, report};
use crate::support::cluster::Witness;
use crate::support::difference::{self, Verdict};
use crate::support::purpose::EVERYWHERE;
use crate::support::story;

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn every_recording_is_done_again_with_the_same_objects_and_events() {
    let (cluster, _turn) = cluster();
    let witness = Witness::of(cluster);
    // Gates live in it.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let scenes: Vec<Scene<'_>> = PLAYS
        .iter()
        .map(|play| runtime.block_on(Scene::set(cluster, &witness, play.trace)))
        .collect();
    let hosts: Vec<_> = scenes.iter().flat_map(Scene::hosts).collect();
    let ours = Ours::start(cluster, &hosts);
    thread::scope(|scope| {
        for (play, scene) in PLAYS.iter().zip(&scenes) {
            scope.spawn(|| (play.act)(scene));
        }
    });
    ours.stop();
    let verdicts: Vec<(&str, Verdict)> = PLAYS
        .iter()
        .zip(&scenes)
        .map(|(play, scene)| {
            let (theirs, ours) = (story::tell(&scene.recorded), story::tell(&scene.turns()));
            let listed = [&[EVERYWHERE], play.differences].concat().concat();
            (play.trace, difference::compare(&theirs, &ours, &listed))
        })
        .collect();
    report("recording", &verdicts);
}
