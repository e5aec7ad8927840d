//! The timeline on a terminal: folded to its width, with the domain of a challenge in place of its name.
//!
//! If the width is too small, parts give way in this order: the time of each step (the total has the start
//! and the end), the column of messages, which go below their rows, the lengths of steps, and the column of
//! reasons, which go before the messages. A text that an earlier row contains is not repeated.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, again, length, moment};
use crate::model::{Kind, Severity};
use crate::print::colour::Colour;
use crate::print::escape::escape;
use crate::print::fold::{columns, cut, fold};
use crate::print::table::{Headers, paint};

/// Blanks between columns.
const GAP: usize = 3;
/// Fewest columns for messages that stand beside their rows.
const MIN_MESSAGE_COLUMNS: usize = 40;
/// Fewest columns for messages beside their rows if each row also shows its time.
const MIN_MESSAGE_COLUMNS_WITH_TIMES: usize = 60;
/// Offset of messages below their rows.
const BELOW_OFFSET: usize = 4;
/// Fewest bytes of a repeated text that is left out; a shorter text is written again.
const MIN_OMITTED_BYTES: usize = 60;
/// Most bytes of a message that is searched for repeated text.
const MAX_SEARCHED_BYTES: usize = 4096;

/// Renders the rows of one issuance.
pub(super) fn rows(entries: &[Entry], headers: Headers, colour: Colour, width: usize) -> String {
    let labels = labels(entries);
    let since: Vec<String> = entries.iter().map(|entry| length(entry.since_start)).collect();
    let step = |entry: &Entry| match entry.step {
        step if step.is_zero() => String::new(),
        step => format!("+{}", length(step)),
    };
    let steps: Vec<String> = entries.iter().map(step).collect();
    let reasons: Vec<String> = entries.iter().map(|entry| escape(&entry.reason)).collect();
    let mut grid = vec![
        column("SINCE START", since),
        column("STEP", steps),
        column("OBJECT", labels),
        column("REASON", reasons),
    ];
    let fixed = |grid: &[Vec<String>]| grid.iter().map(|cells| widest(cells) + GAP).sum::<usize>();
    let moments = entries.iter().map(|entry| moment(entry.at, entry.measure));
    let timed = column("TIME", moments.collect());
    if fixed(&grid) + widest(&timed) + GAP + MIN_MESSAGE_COLUMNS_WITH_TIMES <= width {
        grid.insert(0, timed);
    }
    if fixed(&grid) > width {
        grid.remove(1);
    }
    let is_reason_below = fixed(&grid) > width;
    if is_reason_below {
        grid.pop();
    }
    let left = fixed(&grid);
    let is_beside = left + MIN_MESSAGE_COLUMNS <= width;
    let mut text = String::new();
    let mut told: Vec<&str> = Vec::new();
    if headers == Headers::Shown {
        text.push_str(&row(&grid, 0));
        text.push_str(if is_beside { "MESSAGE\n" } else { "\n" });
    }
    for (number, entry) in entries.iter().enumerate() {
        let message = omit_repeated_end(&told, &entry.message) + &again(entry);
        told.push(&entry.message);
        let warning = if entry.severity == Severity::Warning { "Warning: " } else { "" };
        let reason = if is_reason_below { format!("{}: ", entry.reason) } else { String::new() };
        let message = format!("{warning}{}", escape(&(reason + &message)));
        let offset = if is_beside { left } else { BELOW_OFFSET };
        let mut lines = fold(&message, width.saturating_sub(offset + 1)).into_iter();
        let head = row(&grid, number + 1);
        if is_beside {
            text.push_str(&head);
            text.push_str(&colour_warning(&lines.next().unwrap_or_default(), colour));
        } else {
            text.push_str(&cut(head.trim_end(), width.saturating_sub(1)));
        }
        text.push('\n');
        for (nth, line) in lines.enumerate() {
            let line = if nth == 0 && !is_beside { colour_warning(&line, colour) } else { line };
            text.extend([" ".repeat(offset), line, "\n".to_owned()]);
        }
    }
    text.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

fn column(title: &str, cells: Vec<String>) -> Vec<String> {
    std::iter::once(title.to_owned()).chain(cells).collect()
}

fn widest(cells: &[String]) -> usize {
    cells.iter().map(|cell| columns(cell)).max().unwrap_or(0)
}

/// Renders a row, with the gap after its last cell.
fn row(grid: &[Vec<String>], number: usize) -> String {
    let cell = |cells: &Vec<String>| {
        let cell = cells.get(number).map_or("", String::as_str);
        format!("{cell}{}", " ".repeat(widest(cells) + GAP - columns(cell)))
    };
    grid.iter().map(cell).collect()
}

fn colour_warning(line: &str, colour: Colour) -> String {
    match line.strip_prefix("Warning:") {
        Some(rest) if colour == Colour::On => format!("{}:{rest}", paint("Warning")),
        _ => line.to_owned(),
    }
}

/// Returns a label for the object of each entry: its kind, with the domain for a challenge; kind
/// and name if the short label would be ambiguous.
pub(super) fn labels(entries: &[Entry]) -> Vec<String> {
    let short = |entry: &Entry| match &entry.domain {
        Some(domain) => format!("challenge {domain}"),
        None if entry.kind == Kind::CertificateRequest.as_str() => "request".to_owned(),
        None => entry.kind.to_ascii_lowercase(),
    };
    let mut names: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for entry in entries {
        names.entry(short(entry)).or_default().insert(&entry.name);
    }
    let label = |entry: &Entry| {
        let short = short(entry);
        let is_clear = names.get(&short).is_some_and(|names| names.len() == 1);
        if is_clear { short } else { format!("{}/{}", entry.kind.to_ascii_lowercase(), entry.name) }
    };
    entries.iter().map(|entry| escape(&label(entry))).collect()
}

/// Returns a message without the end that an earlier message contains already.
fn omit_repeated_end(told: &[&str], message: &str) -> String {
    if message.len() > MAX_SEARCHED_BYTES {
        return message.to_owned();
    }
    let starts = message.char_indices().filter(|(at, character)| *at == 0 || *character == ' ');
    for (start, _) in starts {
        let end = message[start..].trim_start();
        if end.len() < MIN_OMITTED_BYTES {
            break;
        }
        if told.iter().any(|earlier| earlier.contains(end)) {
            let head = message[..message.len() - end.len()].trim_end();
            let gap = if head.is_empty() { "" } else { " " };
            return format!("{head}{gap}(as above)");
        }
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Event;
    use crate::print::timeline::entries;
    use crate::print::timeline::saying::Sequence;

    fn refused(width: usize, colour: Colour) -> String {
        let files = [
            include_str!(
                "../../../tests/fixtures/pairs/04-http01-ca-refuses/invalid/certificate.web.events.json"
            ),
            include_str!(
                "../../../tests/fixtures/pairs/04-http01-ca-refuses/invalid/certificaterequest.web-1.events.json"
            ),
            include_str!(
                "../../../tests/fixtures/pairs/04-http01-ca-refuses/invalid/challenge.web-1-2726938748-762612507.events.json"
            ),
            include_str!(
                "../../../tests/fixtures/pairs/04-http01-ca-refuses/invalid/order.web-1-2726938748.events.json"
            ),
        ];
        let events: Vec<Event> = files
            .iter()
            .flat_map(|file| serde_json::from_str::<Vec<Event>>(file).unwrap())
            .collect();
        rows(&entries(&events, Sequence::Moments), Headers::Shown, colour, width)
    }

    #[test]
    fn messages_are_folded_beside_their_rows() {
        insta::assert_snapshot!(refused(160, Colour::Off), @r#"
        SINCE START   STEP      OBJECT                           REASON               MESSAGE
        0s                      certificate                      Issuing              Issuing certificate as Secret does not exist
        126ms         +126ms    certificate                      Generated            Stored new private key in temporary Secret resource "web-vr5m8"
        142ms         +16ms     certificate                      Requested            Created new CertificateRequest resource "web-1"
        142ms                   request                          WaitingForApproval   Not signing CertificateRequest until it is Approved (said by 5 controllers)
        155ms         +13ms     request                          cert-manager.io      Certificate request has been approved by cert-manager.io
        157ms         +2ms      request                          OrderCreated         Created Order resource trace-04/web-1-2726938748
        198ms         +41ms     order                            Created              Created Challenge resource "web-1-2726938748-762612507" for domain
                                                                                      "www.t04.example.test"
        463ms         +265ms    challenge www.t04.example.test   Started              Challenge scheduled for processing
        501ms         +38ms     challenge www.t04.example.test   Presented            Presented challenge using HTTP-01 challenge mechanism
        8.522s        +8.021s   challenge www.t04.example.test   Failed               Warning: Accepting challenge authorization failed: acme: authorization error for
                                                                                      www.t04.example.test: 403 urn:ietf:params:acme:error:unauthorized: The key
                                                                                      authorization file from the server did not match this challenge
                                                                                      "4ROOn77-1rxfDJpr4tayEQnbff3z8RC-YGmobiSfwcY.nYRBFXkRb2CfKdrTfy0R2G-wIYOaE6kztK1O
                                                                                      0uazGXU" != "wrong.answer"
        8.548s        +26ms     request                          OrderFailed          Warning: Failed to wait for order resource "web-1-2726938748" to become ready:
                                                                                      order is in "invalid" state:
        8.572s        +24ms     certificate                      Failed               Warning: The certificate request has failed to complete and will be retried: (as
                                                                                      above)
        "#);
    }

    #[test]
    fn messages_go_below_their_rows_where_there_is_no_room_beside() {
        insta::assert_snapshot!(refused(110, Colour::Off), @r#"
        SINCE START   STEP      OBJECT                           REASON
        0s                      certificate                      Issuing
            Issuing certificate as Secret does not exist
        126ms         +126ms    certificate                      Generated
            Stored new private key in temporary Secret resource "web-vr5m8"
        142ms         +16ms     certificate                      Requested
            Created new CertificateRequest resource "web-1"
        142ms                   request                          WaitingForApproval
            Not signing CertificateRequest until it is Approved (said by 5 controllers)
        155ms         +13ms     request                          cert-manager.io
            Certificate request has been approved by cert-manager.io
        157ms         +2ms      request                          OrderCreated
            Created Order resource trace-04/web-1-2726938748
        198ms         +41ms     order                            Created
            Created Challenge resource "web-1-2726938748-762612507" for domain "www.t04.example.test"
        463ms         +265ms    challenge www.t04.example.test   Started
            Challenge scheduled for processing
        501ms         +38ms     challenge www.t04.example.test   Presented
            Presented challenge using HTTP-01 challenge mechanism
        8.522s        +8.021s   challenge www.t04.example.test   Failed
            Warning: Accepting challenge authorization failed: acme: authorization error for www.t04.example.test:
            403 urn:ietf:params:acme:error:unauthorized: The key authorization file from the server did not match
            this challenge "4ROOn77-1rxfDJpr4tayEQnbff3z8RC-YGmobiSfwcY.nYRBFXkRb2CfKdrTfy0R2G-wIYOaE6kztK1O0uazGXU"
            != "wrong.answer"
        8.548s        +26ms     request                          OrderFailed
            Warning: Failed to wait for order resource "web-1-2726938748" to become ready: order is in "invalid"
            state:
        8.572s        +24ms     certificate                      Failed
            Warning: The certificate request has failed to complete and will be retried: (as above)
        "#);
        insta::assert_snapshot!(refused(60, Colour::Off), @r#"
        SINCE START   OBJECT
        0s            certificate
            Issuing: Issuing certificate as Secret does not exist
        126ms         certificate
            Generated: Stored new private key in temporary Secret
            resource "web-vr5m8"
        142ms         certificate
            Requested: Created new CertificateRequest resource
            "web-1"
        142ms         request
            WaitingForApproval: Not signing CertificateRequest
            until it is Approved (said by 5 controllers)
        155ms         request
            cert-manager.io: Certificate request has been approved
            by cert-manager.io
        157ms         request
            OrderCreated: Created Order resource
            trace-04/web-1-2726938748
        198ms         order
            Created: Created Challenge resource
            "web-1-2726938748-762612507" for domain
            "www.t04.example.test"
        463ms         challenge www.t04.example.test
            Started: Challenge scheduled for processing
        501ms         challenge www.t04.example.test
            Presented: Presented challenge using HTTP-01 challenge
            mechanism
        8.522s        challenge www.t04.example.test
            Warning: Failed: Accepting challenge authorization
            failed: acme: authorization error for
            www.t04.example.test: 403
            urn:ietf:params:acme:error:unauthorized: The key
            authorization file from the server did not match this
            challenge
            "4ROOn77-1rxfDJpr4tayEQnbff3z8RC-YGmobiSfwcY.nYRBFXkRb2
            CfKdrTfy0R2G-wIYOaE6kztK1O0uazGXU" != "wrong.answer"
        8.548s        request
            Warning: OrderFailed: Failed to wait for order resource
            "web-1-2726938748" to become ready: order is in
            "invalid" state:
        8.572s        certificate
            Warning: Failed: The certificate request has failed to
            complete and will be retried: (as above)
        "#);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [60, 80, 120, 200, 400] {
            let text = refused(width, Colour::Off);
            assert!(text.lines().all(|line| columns(line) < width), "{width}: {text}");
        }
        assert!(refused(160, Colour::On).contains("\u{1b}[33mWarning\u{1b}[0m: "));
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let long = "a reason that is long enough for nobody to want to read it another time";
        let told = [long, "short"];
        assert_eq!(
            omit_repeated_end(&told, &format!("it failed: {long}")),
            "it failed: (as above)"
        );
        assert_eq!(omit_repeated_end(&told, long), "(as above)");
        assert_eq!(omit_repeated_end(&told, "it failed: short"), "it failed: short");
        assert_eq!(omit_repeated_end(&[], long), long);
    }
}
