//! Rooms that verbs share: what only one verb needs stands in the folder of that verb.

use std::collections::{BTreeMap, BTreeSet};

use super::check;
use super::circles::{Path, arrows};

/// Rooms whose files at least two users reach. The room `issue` is a user by itself: all of it belongs to ordering.
const SHARED: [&str; 12] = [
    "account",
    "context",
    "engine",
    "evidence",
    "hints",
    "input",
    "inspect",
    "known",
    "lead",
    "listing",
    "objects",
    "permissions",
];

/// The user that a file belongs to: a verb, or a room that stands for itself; `None` for files of shared rooms.
fn user(file: &Path) -> Option<String> {
    match (file.first()?.as_str(), file.get(1)) {
        ("commands", Some(verb)) => Some(format!("the verb {verb}")),
        (room, _) if SHARED.contains(&room) => None,
        (room, _) => Some(room.to_owned()),
    }
}

/// The users that reach a file by imports. A file of methods alone is imported by nobody, and has no users.
fn users(file: &Path, importers: &BTreeMap<Path, BTreeSet<Path>>) -> BTreeSet<String> {
    let (mut users, mut reached, mut open) =
        (BTreeSet::new(), BTreeSet::from([file.clone()]), vec![file.clone()]);
    while let Some(file) = open.pop() {
        for importer in importers.get(&file).into_iter().flatten() {
            match user(importer) {
                Some(user) => {
                    users.insert(user);
                }
                None if reached.insert(importer.clone()) => open.push(importer.clone()),
                None => {}
            }
        }
    }
    users
}

#[test]
fn no_file_outside_a_verb_is_for_one_verb_alone() {
    let mut importers: BTreeMap<Path, BTreeSet<Path>> = BTreeMap::new();
    for (from, taken) in arrows().0 {
        for to in taken.into_keys() {
            importers.entry(to).or_default().insert(from.clone());
        }
    }
    let shared = importers.keys().filter(|file| !file.is_empty() && user(file).is_none());
    check(shared.filter_map(|file| {
        let users = users(file, &importers);
        let verb = users.first().filter(|user| users.len() == 1 && user.starts_with("the verb"))?;
        Some(format!("src/{}.rs is for {verb} alone: move it there", file.join("/")))
    }));
}
