//! Causes by messages alone: of a CA or of a self-check, without the objects that the messages are about.

use super::{problem, symptom};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::words::foreign;
use crate::model::{ChallengeType, Problem};

/// Returns the causes that a text of a CA or of a self-check names, as people paste it; shared words alone do not count.
pub fn causes_of_words(text: &str) -> Vec<CauseId> {
    const URN: &str = "urn:ietf:params:acme:error:";
    let typed = text.split_once(URN).map(|(_, rest)| {
        let is_of_type = |c: char| c.is_ascii_alphanumeric();
        let kind: String = rest.chars().take_while(|c| is_of_type(*c)).collect();
        let detail = rest[kind.len()..].trim_start_matches(':').trim().to_owned();
        Problem { kind: format!("{URN}{kind}"), detail, ..Problem::default() }
    });
    let of_problem = typed.as_ref().and_then(problem::cause_of).map(|(cause, _)| cause);
    let of_look = foreign::symptom_of_http(text).into_iter().flat_map(|met| {
        [false, true].map(|in_cluster| symptom::cause_of(met, ChallengeType::Http01, in_cluster).0)
    });
    let mut found: Vec<CauseId> = of_problem.into_iter().chain(of_look).collect();
    found.dedup();
    found
}
