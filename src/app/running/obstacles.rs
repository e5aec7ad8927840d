//! `run` tells what stands in the way of objects until somebody changes something: once, not at every try.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::app::hints;
use crate::controllers::ReconcileError;
use crate::controllers::obstacles::Obstacles;
use crate::diagnosis::advice;
use crate::model::Key;
use crate::print::progress::Progress;

/// Tells of obstacles until the controllers end. After each look at all of them it rests three times as long as that took: they
/// change with every object that fails.
pub async fn tell(mut obstacles: watch::Receiver<Obstacles>, mut progress: Progress) {
    let mut told = BTreeMap::new();
    loop {
        let began = Instant::now();
        let lines = news(&obstacles.borrow_and_update(), &mut told);
        for line in lines {
            progress.line(&line, Timestamp::now());
        }
        tokio::time::sleep(began.elapsed() * 3).await;
        if obstacles.changed().await.is_err() {
            return;
        }
    }
}

/// What has not been told yet. What passes by itself is not told: while a CA is away, that would be a line for each object.
fn news(now: &Obstacles, told: &mut BTreeMap<Key, String>) -> Vec<String> {
    told.retain(|key, _| now.contains_key(key));
    let mut lines = Vec::new();
    for (key, obstacle) in now.iter().filter(|(_, obstacle)| obstacle.stays()) {
        let text = obstacle.error.to_string();
        if told.get(key) == Some(&text) {
            continue;
        }
        let hint = match &*obstacle.error {
            // The CA's own words tell more than what could be said without its issuer.
            ReconcileError::Acme(_) => None,
            error => advice::for_error(error, key),
        };
        let hint = hint.map_or(String::new(), |step| format!(" (hint: {})", hints::line(&step)));
        lines.push(format!("{key}: {text}{hint}"));
        told.insert(key.clone(), text);
    }
    lines
}
