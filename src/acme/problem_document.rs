//! Problem documents (RFC 8555 §6.7, RFC 9457), read from whatever a CA or a gateway before it answers.

use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::model::Problem;
use crate::model::problem::Subproblem;
use crate::model::text::{is_steering, shortened, without_steering};

/// How much of an answer that is no problem document is kept, in characters.
pub(super) const EXCERPT: usize = 200;
/// How much of a text is kept, in characters. Boulder names up to a hundred names in one sentence.
const TEXT: usize = 8000;
/// Most of whatever else comes in lists.
const ITEMS: usize = 1000;
/// How much of a shorter text is kept, in characters: a type, a name, what is wrong with one name of many.
const WORDS: usize = 1000;
/// Longest URL of a page that is kept, in bytes.
const PAGE_URL_MAX: usize = 4000;
/// Most subproblems that are kept: public CAs take a hundred names in one order.
const SUBPROBLEMS: usize = 100;
/// Most signature algorithms; there are some ten.
const ALGORITHMS: usize = 20;

/// Reads the problem in an answer of that status (RFC 8555 §6.7), whatever the body is.
pub(super) fn problem(status: u16, body: &[u8]) -> Problem {
    match serde_json::from_slice(body) {
        // One in an answer that was no error has a status of its own.
        Ok(value @ Value::Object(_)) => {
            problem_of_value(value, Some(status).filter(|status| *status >= 400))
        }
        Ok(_) | Err(_) => Problem { status, detail: excerpt(body), ..Problem::default() },
    }
}

/// Reads the problem in a member of an object.
pub(super) fn problem_of_value(mut value: Value, status: Option<u16>) -> Problem {
    tidy(&mut value);
    let mut problem = match Problem::deserialize(&value) {
        Ok(problem) => problem,
        Err(_) => piecemeal(&value),
    };
    if let Some(status) = status {
        problem.status = status;
    }
    within_bounds(problem)
}

/// Keeps of a problem what a person can read and a store can hold.
fn within_bounds(mut problem: Problem) -> Problem {
    let shorten = |text: &mut String| *text = shortened(text, WORDS);
    shorten(&mut problem.kind);
    let more = problem.subproblems.len().saturating_sub(SUBPROBLEMS);
    problem.subproblems.truncate(SUBPROBLEMS);
    for sub in &mut problem.subproblems {
        shorten(&mut sub.kind);
        shorten(&mut sub.detail);
        if let Some(identifier) = &mut sub.identifier {
            shorten(&mut identifier.kind);
            shorten(&mut identifier.value);
        }
    }
    if more > 0 {
        let detail = format!("… and {more} more");
        problem.subproblems.push(Subproblem { detail, ..Subproblem::default() });
    }
    problem.instance = problem.instance.filter(|page| page.len() <= PAGE_URL_MAX);
    let is_word =
        |word: &String| word.len() <= 32 && word.bytes().all(|b| b.is_ascii_alphanumeric());
    problem.algorithms.retain(is_word);
    problem.algorithms.truncate(ALGORITHMS);
    problem
}

/// Saves what can be saved from a problem document with members of odd types.
fn piecemeal(value: &Value) -> Problem {
    let empty = Map::new();
    let members = value.as_object().unwrap_or(&empty);
    let text =
        |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = members.get("status").and_then(Value::as_u64);
    let list = |name: &str| members.get(name).and_then(Value::as_array).into_iter().flatten();
    Problem {
        kind: text("type"),
        detail: match members.get("detail") {
            Some(Value::String(detail)) => detail.clone(),
            Some(other) => shortened(&other.to_string(), TEXT),
            None => value.as_str().unwrap_or_default().to_owned(),
        },
        status: number.and_then(|n| u16::try_from(n).ok()).unwrap_or_default(),
        instance: Some(text("instance")).filter(|url| !url.is_empty()),
        subproblems: list("subproblems").filter_map(subproblem).collect(),
        algorithms: list("algorithms").filter_map(Value::as_str).map(str::to_owned).collect(),
        links: Vec::new(),
    }
}

/// Reads a subproblem; one about an identifier of a sort that we do not know still says what is wrong.
fn subproblem(value: &Value) -> Option<Subproblem> {
    let read = Subproblem::deserialize(value).ok();
    read.or_else(|| {
        let mut members = value.as_object()?.clone();
        members.remove("identifier")?;
        Subproblem::deserialize(Value::Object(members)).ok()
    })
}

/// Takes away what no text of a CA needs.
pub(super) fn tidy(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => {
            items.truncate(ITEMS);
            items.iter_mut().for_each(tidy);
        }
        Value::String(text) => *text = shortened(&without_steering(text), TEXT),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The beginning of a body that is not what was expected.
pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !is_steering(*c)).take(EXCERPT).collect()
}
