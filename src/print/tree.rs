//! Trees of objects as `kubectl tree` draws them: a row for each, branches before the names.

use jiff::Timestamp;

use super::age::age;
use super::colour::Colour;
use super::table::{Fit, Headers, NONE, Narrow, Table};
use crate::model::Time;

/// A row of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// Namespace.
    pub namespace: String,
    /// Branches, kind and name.
    pub name: String,
    /// State of the object, in a word.
    pub state: String,
    /// Reason for waiting, in a sentence.
    pub waits_for: String,
    /// Reason for waiting, in few words.
    pub in_short: String,
    /// Time of creation.
    pub created: Option<Time>,
}

/// Renders the rows for a terminal of `width` columns; with namespaces if objects of several
/// namespaces are shown, and whole sentences in the wide form.
pub fn table(
    rows: &[TreeRow],
    (has_namespaces, is_wide): (bool, bool),
    (headers, colour, width): (Headers, Colour, Option<usize>),
    now: Timestamp,
) -> String {
    const WAITS: &str = "WAITS FOR";
    let first: &[&str] = if has_namespaces { &["NAMESPACE"] } else { &[] };
    let mut table = Table::new(first.iter().chain(&["NAME", "STATE", WAITS, "AGE"]).copied());
    for row in rows {
        let said = |text: &str| if text.is_empty() { NONE.to_owned() } else { text.to_owned() };
        let mut cells: Vec<String> = Vec::new();
        if has_namespaces {
            cells.push(said(&row.namespace));
        }
        let waits_for = if is_wide { &row.waits_for } else { &row.in_short };
        cells.extend([row.name.clone(), said(&row.state), said(waits_for)]);
        cells.push(age(row.created.map(Time::timestamp), now));
        table.row(cells);
    }
    match width.filter(|_| !is_wide) {
        Some(width) => {
            let fit = Fit { title: WAITS, width, cells: Narrow::CutOrBelow };
            table.render_within(fit, headers, colour)
        }
        None => table.render(headers, colour),
    }
}
