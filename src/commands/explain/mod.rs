//! `explain`: the catalogue of causes, as a table, as pages, or the causes that mention a text.

pub mod cause_page;

use serde_json::{Value, json};

use self::cause_page::page;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::catalogue::id::{CauseFamily, CauseId};
use crate::diagnosis::catalogue::{self, CauseEntry, LabNote};
use crate::diagnosis::rules;
use crate::hints::invocation;
use crate::input::completers;
use crate::print::colour::Colour;
use crate::print::document;
use crate::print::format::Format;
use crate::print::table::{Fit, Headers, NONE, Narrow, Table};

/// Columns of a page without a terminal.
const PIPED_COLUMNS: usize = 80;
/// Maximum number of columns, beyond which lines are hard to read.
const MAX_COLUMNS: usize = 100;

/// Flags of `explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// Ids of causes (HTTP-10), families (HTTP), or a text that you see; without any, all causes
    #[arg(value_name = "ID|FAMILY|TEXT", add = completers::causes())]
    pub what: Vec<String>,
    /// Flags of the output
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Selected causes.
#[derive(Debug)]
enum Asked {
    /// Causes with their whole entries.
    Whole(Vec<&'static CauseEntry>),
    /// Causes as a list to choose from.
    Listed(Vec<&'static CauseEntry>),
}

/// Runs `explain`.
///
/// # Errors
/// Fails when there is no such cause, or the output cannot be written.
pub fn run(args: &ExplainArgs, context: &Context) -> Result<(), Failure> {
    let asked = select(&args.what)?;
    let mut printer = context.printer(&args.output);
    let headers = if args.output.no_headers { Headers::Hidden } else { Headers::Shown };
    let terminal = printer.width();
    let (Asked::Whole(entries) | Asked::Listed(entries)) = &asked;
    match printer.format() {
        Format::Csv | Format::Table | Format::Wide => {
            let is_wide = *printer.format() == Format::Wide;
            let text = match &asked {
                Asked::Whole(entries) => {
                    let width = terminal.unwrap_or(PIPED_COLUMNS).min(MAX_COLUMNS);
                    let pages: Vec<String> = entries.iter().map(|it| page(it, width)).collect();
                    pages.join("\n\n")
                }
                Asked::Listed(entries) => table(entries, is_wide, headers, terminal),
            };
            printer.text(&text)?;
        }
        Format::Name => {
            let names = entries.iter().map(|entry| entry.id.to_string() + "\n").collect::<String>();
            printer.data(&names)?;
        }
        Format::CustomColumns(columns) => {
            let values: Vec<Value> = entries.iter().map(|entry| json!(entry)).collect();
            let text = columns.render(values.iter(), headers);
            printer.text(&text)?;
        }
        Format::Jsonl => {
            let lines: String =
                entries.iter().map(|entry| document::json_line(&report(entry))).collect();
            printer.data(&lines)?;
        }
        Format::Json | Format::JsonPath(_) | Format::JsonPathAsJson(_) | Format::Yaml => {
            let document = match (&asked, &entries[..]) {
                (Asked::Whole(_), [one]) => report(one),
                _ => json!({
                    "apiVersion": "kubectl-acme/v1alpha1",
                    "kind": "CauseList",
                    "causes": entries,
                }),
            };
            printer.report(&document, |_| String::new())?;
        }
    }
    Ok(())
}

fn report(entry: &CauseEntry) -> Value {
    let mut report = json!(entry);
    report["apiVersion"] = json!("kubectl-acme/v1alpha1");
    report["kind"] = json!("Cause");
    report
}

fn select(words: &[String]) -> Result<Asked, Failure> {
    if words.is_empty() {
        return Ok(Asked::Listed(catalogue::all().iter().collect()));
    }
    let ids: Vec<_> = words.iter().map(|word| word.parse::<CauseId>()).collect();
    if let Ok(ids) = ids.iter().cloned().collect::<Result<Vec<_>, _>>() {
        return Ok(Asked::Whole(ids.into_iter().map(catalogue::entry).collect()));
    }
    let of = |word: &String| match CauseFamily::parse(word) {
        Some(family) => Some(catalogue::family(family).collect::<Vec<_>>()),
        None => word.parse().ok().map(|id| vec![catalogue::entry(id)]),
    };
    if let Some(listed) = words.iter().map(of).collect::<Option<Vec<_>>>() {
        return Ok(Asked::Listed(listed.concat()));
    }
    let text = words.join(" ");
    let all = format!("{} explain", invocation::program());
    let mut found: Vec<_> =
        rules::causes_of_words(&text).into_iter().map(catalogue::entry).collect();
    for entry in catalogue::mentioning(&text) {
        if found.iter().all(|known| known.id != entry.id) {
            found.push(entry);
        }
    }
    let is_form = words.iter().any(|word| CauseId::is_form(word));
    if found.is_empty() && !is_form {
        found = catalogue::nearest(&text);
        if !found.is_empty() {
            return Ok(Asked::Listed(found));
        }
    }
    match found[..] {
        [] => {
            let unknown = ids.into_iter().filter_map(Result::err);
            let mut unknown = unknown.filter(|unknown| CauseId::is_form(&unknown.word));
            let failure = match unknown.next() {
                Some(unknown) => {
                    let failure = Failure::usage(unknown.to_string());
                    match unknown.meant {
                        Some(meant) => failure.hint(format!("did you mean {meant}? {all} {meant}")),
                        None => failure,
                    }
                }
                None => Failure::usage(format!("no cause has \"{text}\" among its symptoms")),
            };
            Err(failure.hint(format!("list all causes: {all}")))
        }
        [one] => Ok(Asked::Whole(vec![one])),
        ref several => Ok(Asked::Listed(several.to_vec())),
    }
}

/// Table of causes to choose from.
fn table(
    entries: &[&CauseEntry],
    is_wide: bool,
    headers: Headers,
    terminal: Option<usize>,
) -> String {
    let more: &[&str] = if is_wide { &["EXPLAINS", "IN TESTS"] } else { &[] };
    let mut table = Table::new(["ID", "SEVERITY", "TITLE"].iter().chain(more).copied());
    for entry in entries {
        let mut cells = vec![entry.id.to_string(), entry.severity.word().into()];
        cells.push(entry.title.clone());
        if is_wide {
            let explains: Vec<String> = entry.explains.iter().map(ToString::to_string).collect();
            cells.push(if explains.is_empty() { NONE.into() } else { explains.join(",") });
            let lab = match entry.lab {
                LabNote::Reproduce(_) => "yes",
                LabNote::Unseen(_) => "no",
            };
            cells.push(lab.into());
        }
        table.row(cells);
    }
    match terminal.filter(|_| !is_wide) {
        Some(width) => {
            let fit = Fit { title: "TITLE", width, cells: Narrow::Cut };
            table.render_within(fit, headers, Colour::Off)
        }
        None => table.render(headers, Colour::Off),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::fold::columns;

    fn ask(words: &[&str]) -> Result<Asked, Failure> {
        select(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_page_fits_eighty_columns() {
        for entry in catalogue::all() {
            for line in page(entry, PIPED_COLUMNS).lines() {
                assert!(columns(line) <= PIPED_COLUMNS, "{}: {line}", entry.id);
            }
        }
        let whole =
            table(&catalogue::all().iter().collect::<Vec<_>>(), false, Headers::Shown, None);
        assert!(whole.lines().all(|line| columns(line) <= PIPED_COLUMNS), "{whole}");
    }

    #[test]
    fn what_is_asked_for_is_found() {
        let count = |words: &[&str]| match ask(words).unwrap() {
            Asked::Whole(entries) => (1, entries.len()),
            Asked::Listed(entries) => (2, entries.len()),
        };
        assert_eq!(count(&[]), (2, catalogue::all().len()));
        assert_eq!(count(&["http10", "CAA-1"]), (1, 2));
        assert_eq!(count(&["gw"]), (2, 5));
        assert_eq!(count(&["gw", "HTTP-10"]), (2, 6));
        assert_eq!(count(&["gateway", "api", "is", "not", "enabled"]), (1, 1));
        assert!(matches!(count(&["connection refused"]), (2, 2..)));
    }

    #[test]
    fn a_text_is_found_by_what_it_says_and_by_its_words() {
        for (text, expected) in [
            ("rate limit", &["LIM-"][..]),
            ("urn:ietf:params:acme:error:caa", &["CAA-01"]),
            ("403 urn:ietf:params:acme:error:badCSR: no", &["CFG-18"]),
            ("wrong status code '404', expected '200'", &["HTTP-03", "HTTP-10"]),
            ("Invalid response from http://x/: 404", &["HTTP-03"]),
            ("Fetching https://a:4433/x: invalid port 4433: must be 80 or 443", &["HTTP-15"]),
            ("dnsmasq", &["D01-04"]),
            ("filterwin2k", &["D01-04"]),
        ] {
            let (Asked::Whole(found) | Asked::Listed(found)) = ask(&[text]).unwrap();
            let found: Vec<String> = found.iter().map(|entry| entry.id.to_string()).collect();
            let is_there = |id: &str| found.iter().any(|found| found.starts_with(id));
            assert!(expected.iter().all(|id| is_there(id)), "{text}: {found:?}");
        }
        let (Asked::Whole(near) | Asked::Listed(near)) =
            ask(&["the certificate of my webroot folder is forbidden by nginx"]).unwrap();
        assert!(near.len() <= 3 && !near.is_empty(), "{near:?}");
    }

    #[test]
    fn what_is_not_found_is_told() {
        let failure = ask(&["HTTP-99"]).unwrap_err();
        assert_eq!(failure.message, "there is no cause HTTP-99");
        let failure = ask(&["HTTP-10", "HTTPS-11"]).unwrap_err();
        assert!(failure.hints[0].starts_with("did you mean HTTP-11?"), "{:?}", failure.hints);
        let failure = ask(&["xyzzy", "plugh"]).unwrap_err();
        assert_eq!(failure.message, "no cause has \"xyzzy plugh\" among its symptoms");
    }
}
