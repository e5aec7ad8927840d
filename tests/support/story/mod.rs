//! What happened to every object, told so that two runs can be compared: what differs between any two runs is normalized.

mod normalize;
mod told;

use std::collections::BTreeMap;

use serde_json::Value;

use self::told::{Events, Told};

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Kind.
    pub kind: String,
    /// The object as it was written, or as it was last seen.
    pub object: Value,
    /// Whether it is gone.
    pub gone: bool,
}

/// Facts by what they are about: the sequence of values that a field went through, every field at the end, every event,
/// and who manages each object, where that is noted.
pub type Story = BTreeMap<String, String>;

/// One fact on which two runs differ; `-` stands for none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What it is about.
    pub about: String,
    /// There.
    pub theirs: String,
    /// Here.
    pub ours: String,
}

/// Finds all facts on which two stories differ.
pub fn differences(theirs: &Story, ours: &Story) -> Vec<Finding> {
    let mut all: Vec<&String> = theirs.keys().chain(ours.keys()).collect();
    all.sort();
    all.dedup();
    let told = |story: &Story, about| story.get(about).map_or("-", String::as_str).to_owned();
    all.into_iter()
        .map(|about| Finding {
            about: about.clone(),
            theirs: told(theirs, about),
            ours: told(ours, about),
        })
        .filter(|finding| finding.theirs != finding.ours)
        .collect()
}

/// Tells what happened, from all turns in the order in which they came; the events of an object stand in one order, as they were
/// told.
pub fn tell(turns: &[Turn]) -> Story {
    told(turns).story(Events::of_object)
}

/// The same where several controllers worked side by side and nobody knows which of two was quicker: the events of an object stand
/// in one order for each controller. Whether one sees a request before another has approved it is chance as well.
pub fn tell_apart(turns: &[Turn]) -> Story {
    let of_the_race =
        |turn: &&Turn| turn.kind != "Event" || turn.object["reason"] != "WaitingForApproval";
    let turns: Vec<Turn> = turns.iter().filter(of_the_race).cloned().collect();
    told(&turns).story(Events::of_each_controller)
}

/// The controllers that have told of each object, one after the other, by kind and name.
pub fn speakers(turns: &[Turn]) -> BTreeMap<String, Vec<String>> {
    told(turns).speakers()
}

fn told(turns: &[Turn]) -> Told {
    let names = normalize::made_up_names(turns);
    let mut told = Told::default();
    for turn in turns {
        let mut object = normalize::with_names(&turn.object, &names);
        normalize::normalize(&mut object, "");
        if turn.kind == "Event" {
            told.event(&object);
        } else {
            let managers = told::managers(&object);
            normalize::tidy(&turn.kind, &mut object);
            told.turn(&turn.kind, &object, managers, turn.gone);
        }
    }
    told
}
