//! What kubectl's own `get`, `get -o wide` and `describe` print in a namespace, line by line.

use jiff::Timestamp;

use super::fixture::Site;
use crate::support::story::Story;

const KINDS: [&str; 6] =
    ["certificates", "certificaterequests", "challenges", "issuers", "orders", "secrets"];

/// Every line that kubectl prints there, and how often. Lines of two runs are in another order where events came in the same second.
pub(super) fn shown(site: &Site<'_>) -> Story {
    let mut story = Story::new();
    for kind in KINDS {
        let singular = kind.trim_end_matches('s');
        for command in [&["get", kind][..], &["get", kind, "-o", "wide"], &["describe", kind]] {
            let text = site.kubectl.run(command).replace(site.namespace.name(), "here");
            let called = command.join(" ").replace(kind, singular);
            for line in text.lines().filter(|line| !is_of_one_run(line)) {
                let about = format!("kubectl {called}: {}", plain(line));
                let times = story.get(&about).and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
                story.insert(about, (times + 1).to_string());
            }
        }
    }
    story
}

/// What no two runs share as a whole, and our annotations: memory, not state.
fn is_of_one_run(line: &str) -> bool {
    const FIELDS: [&str; 12] = [
        "Certificate:",
        "Key:",
        "Last Private Key Hash:",
        "Request:",
        "Resource Version:",
        "Token:",
        "UID:",
        "URL:",
        "Uri:",
        "ca.crt:",
        "tls.crt:",
        "tls.key:",
    ];
    let line = line.trim_start();
    // A long annotation has a line of its own: the ledger of orders, and what is known of a reason.
    let is_annotation = ["[{\"number\":", "{\"of\":"].iter().any(|start| line.starts_with(start));
    FIELDS.iter().any(|field| line.starts_with(field))
        || line.contains("kubectl-acme/")
        || is_annotation
}

/// The line with one space between words, and without ages, moments, made-up names and what the CA says of one attempt.
fn plain(line: &str) -> String {
    const URN: &str = "urn:ietf:params:acme:error:";
    let words: Vec<String> = line.split_whitespace().map(word).collect();
    let mut plain = words.join(" ");
    if let Some((before, problem)) = plain.split_once(URN) {
        let sort = problem.split(':').next().unwrap_or_default();
        let age = if plain.ends_with("<age>") { "<age>" } else { "" };
        plain = format!("{before}{URN}{sort}: <detail>{age}");
    }
    // An event that was told again: `5s (x2 over 7s)`.
    if let (Some(start), Some(end)) = (plain.find(" (x"), plain.find("<age>) ")) {
        plain = format!("{}{}", &plain[..start], &plain[end + "<age>)".len()..]);
    }
    // A message may end in a space.
    if line.ends_with(' ') { plain + " " } else { plain }
}

fn word(word: &str) -> String {
    let bare = word.trim_matches(|c: char| "\"()".contains(c));
    if bare.starts_with("https://") {
        return word.replace(bare, "<url>");
    }
    if bare.parse::<Timestamp>().is_ok() {
        return word.replace(bare, "<time>");
    }
    if is_age(bare) {
        return word.replace(bare, "<age>");
    }
    match bare.rsplit_once('-') {
        // A Challenge's name ends in its Order's hash and its own; and what the API server makes up for Secrets: `plain-x7k2p`.
        Some((name, end)) if is_hash(end) && name.rsplit('-').next().is_some_and(is_hash) => {
            word.replace(bare, &format!("{name}-<hash>"))
        }
        Some((name, end)) if is_made_up(name, end) => {
            word.replace(bare, &format!("{name}-<random>"))
        }
        _ => word.to_owned(),
    }
}

/// An age as kubectl prints it: `22s`, `5m10s`, `38d`.
fn is_age(word: &str) -> bool {
    let units = |c: char| "smhdy".contains(c);
    let mut parts = word.split_inclusive(units).peekable();
    parts.peek().is_some() && parts.all(|part| part.strip_suffix(units).is_some_and(is_number))
}

fn is_hash(text: &str) -> bool {
    text.len() > 4 && is_number(text)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_made_up(name: &str, end: &str) -> bool {
    const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";
    !name.is_empty() && end.len() == 5 && end.chars().all(|c| LETTERS.contains(c))
}
