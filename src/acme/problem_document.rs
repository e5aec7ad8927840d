//! Problem documents (RFC 8555 §6.7, RFC 9457), read from any answer of a CA or of a gateway before the CA.

use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::model::Problem;
use crate::model::problem::Subproblem;
use crate::model::text::{is_steering, shortened, without_steering};

/// Most characters that are kept of an answer that is no problem document.
pub(super) const MAX_EXCERPT_CHARS: usize = 200;
/// Most characters that are kept of a text. Boulder names up to a hundred names in one sentence.
const MAX_TEXT_CHARS: usize = 8000;
/// Most items that are kept of any other list.
const MAX_ITEMS: usize = 1000;
/// Most characters that are kept of a shorter text: a type, a name, the fault of one name of many.
const MAX_SHORT_TEXT_CHARS: usize = 1000;
/// Longest URL of a page that is kept, in bytes.
const PAGE_URL_MAX: usize = 4000;
/// Most subproblems that are kept: public CAs take a hundred names in one order.
const MAX_SUBPROBLEMS: usize = 100;
/// Most signature algorithms; there are some ten.
const MAX_ALGORITHMS: usize = 20;

/// Reads the problem in an answer of that status (RFC 8555 §6.7), whatever the body is.
pub(super) fn problem(status: u16, body: &[u8]) -> Problem {
    match serde_json::from_slice(body) {
        // A problem in an answer that was no error has a status of its own.
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

/// Limits a problem to the size that a person can read and a store can hold.
fn within_bounds(mut problem: Problem) -> Problem {
    let shorten = |text: &mut String| *text = shortened(text, MAX_SHORT_TEXT_CHARS);
    shorten(&mut problem.kind);
    let more = problem.subproblems.len().saturating_sub(MAX_SUBPROBLEMS);
    problem.subproblems.truncate(MAX_SUBPROBLEMS);
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
    problem.algorithms.truncate(MAX_ALGORITHMS);
    problem
}

/// Reads as much as possible of a problem document with members of odd types.
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
            Some(other) => shortened(&other.to_string(), MAX_TEXT_CHARS),
            None => value.as_str().unwrap_or_default().to_owned(),
        },
        status: number.and_then(|n| u16::try_from(n).ok()).unwrap_or_default(),
        instance: Some(text("instance")).filter(|url| !url.is_empty()),
        subproblems: list("subproblems").filter_map(subproblem).collect(),
        algorithms: list("algorithms").filter_map(Value::as_str).map(str::to_owned).collect(),
        links: Vec::new(),
    }
}

/// Reads a subproblem; an identifier of an unknown type is left out, since the rest still says what is wrong.
fn subproblem(value: &Value) -> Option<Subproblem> {
    let read = Subproblem::deserialize(value).ok();
    read.or_else(|| {
        let mut members = value.as_object()?.clone();
        members.remove("identifier")?;
        Subproblem::deserialize(Value::Object(members)).ok()
    })
}

/// Removes nulls and steering characters, and shortens texts and lists.
pub(super) fn tidy(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => {
            items.truncate(MAX_ITEMS);
            items.iter_mut().for_each(tidy);
        }
        Value::String(text) => *text = shortened(&without_steering(text), MAX_TEXT_CHARS),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Start of a body that is not the expected document.
pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !is_steering(*c)).take(MAX_EXCERPT_CHARS).collect()
}
