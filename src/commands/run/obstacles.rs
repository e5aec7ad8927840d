//! `run` reports lasting faults of objects, which stay until somebody changes something: once, not at every try.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::controllers::ReconcileError;
use crate::controllers::obstacles::Obstacles;
use crate::diagnosis::verdict::advice;
use crate::hints;
use crate::model::Key;
use crate::print::progress::Progress;

/// Reports obstacles until the controllers end. After each pass over all obstacles the task sleeps three times as long as
/// the pass took, because the obstacles change with every object that fails.
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

/// Lines for unreported lasting obstacles. Temporary ones are left out: while a CA is away, each object would get a line.
fn news(now: &Obstacles, told: &mut BTreeMap<Key, String>) -> Vec<String> {
    told.retain(|key, _| now.contains_key(key));
    let mut lines = Vec::new();
    for (key, obstacle) in now.iter().filter(|(_, obstacle)| obstacle.stays()) {
        let text = obstacle.error.to_string();
        if told.get(key) == Some(&text) {
            continue;
        }
        let hint = match &*obstacle.error {
            // The CA's error text says more than a hint could say without the issuer.
            ReconcileError::Acme(_) => None,
            error => advice::for_error(error, key),
        };
        let hint = hint.map_or(String::new(), |step| format!(" (hint: {})", hints::line(&step)));
        lines.push(format!("{key}: {text}{hint}"));
        told.insert(key.clone(), text);
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;

    use super::*;
    use crate::controllers::obstacles::Obstacle;
    use crate::model::order_budget::{Denial, OverBudget};
    use crate::model::{Kind, ObjectName};
    use crate::reconcile::testing::at;

    /// Lines for an Order that has to wait.
    fn told_of(denial: Denial) -> Vec<String> {
        let [holder, order] = [Kind::Certificate, Kind::Order]
            .map(|kind| Key::new(kind, ObjectName::new("web", "www")));
        let over = OverBudget { holder, denial, until: Some(at(300)) };
        let error = Arc::new(ReconcileError::OverBudget(Box::new(over)));
        let obstacle = Obstacle { error, since: at(0), next_try: at(300), tries: 1 };
        let (now, mut told) = ([(order, obstacle)].into(), BTreeMap::new());
        let first = news(&now, &mut told);
        assert_eq!(news(&now, &mut told), Vec::<String>::new());
        first
    }

    #[test]
    fn more_orders_than_can_be_right_are_told_with_what_helps() {
        let pause = SignedDuration::from_mins(5);
        let [told] = &told_of(Denial::TooMany { pause })[..] else { panic!("one line is told") };
        assert!(told.contains("within an hour") && told.contains("(hint: "), "{told}");
        assert_eq!(told_of(Denial::Failures { pause }), Vec::<String>::new());
    }
}
