//! Timeline for people: a table, and remarks on each issuance below its rows.

use jiff::Timestamp;

use super::{Entry, IssuanceResult, Total, again, folded, length, moment, totals};
use crate::model::{Kind, Severity};
use crate::print::colour::Colour;
use crate::print::escape::{escape, set_off};
use crate::print::fold::fold;
use crate::print::table::{Headers, Table};

/// Style of a timeline for people.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimelineStyle {
    /// Whether headings are shown.
    pub headers: Headers,
    /// Whether words are coloured.
    pub colour: Colour,
    /// Columns of the terminal, to which the timeline is folded; `None` if the output is no terminal.
    pub width: Option<usize>,
}

/// Renders the timeline, each issuance with its total; empty if there are no entries.
pub fn text(
    entries: &[Entry],
    awaited: Option<&str>,
    now: Timestamp,
    style: TimelineStyle,
) -> String {
    let totals = totals(entries, now);
    let Some((last, earlier)) = totals.split_last() else { return String::new() };
    let blocks = match style.width {
        Some(width) => folded_blocks(&totals, style, width),
        None => blocks(&totals, style),
    };
    let remark = |remark: &str| match style.width {
        Some(width) => fold(&escape(remark), width.saturating_sub(1)).join("\n  "),
        None => set_off(&escape(remark)),
    };
    let mut out = String::new();
    for (number, block) in blocks.iter().enumerate() {
        out.extend([block, "\n"]);
        if let Some(total) = earlier.get(number) {
            out.extend([&remark(&sum(total)), "\n\n"]);
        }
    }
    for line in remarks(last, awaited, style.width.is_some()) {
        out.extend([&remark(&line), "\n"]);
    }
    out
}

/// Summarizes the last issuance in place of a timeline: `16 events in 292ms`; `None` if there are no entries.
pub fn summary(entries: &[Entry], now: Timestamp) -> Option<String> {
    let totals = totals(entries, now);
    let total = totals.last()?;
    Some(format!("{} events in {}", total.entries.len(), length(total.length())))
}

/// Renders the rows of each issuance as a table; all tables have the same columns.
fn blocks(totals: &[Total<'_>], style: TimelineStyle) -> Vec<String> {
    let mut table =
        Table::new(["TIME", "SINCE START", "STEP", "OBJECT", "TYPE", "REASON", "MESSAGE"]);
    for (number, total) in totals.iter().enumerate() {
        if number > 0 {
            table.row([""; 7]);
        }
        total.entries.iter().for_each(|entry| table.row(cells(entry)));
    }
    // Only between issuances a line is empty.
    let table = table.render(style.headers, style.colour);
    table.split("\n\n").map(|block| format!("{}\n", block.trim_end_matches('\n'))).collect()
}

fn folded_blocks(totals: &[Total<'_>], style: TimelineStyle, width: usize) -> Vec<String> {
    let block = |(number, total): (usize, &Total<'_>)| {
        let headers = if number == 0 { style.headers } else { Headers::Hidden };
        folded::rows(total.entries, headers, style.colour, width)
    };
    totals.iter().enumerate().map(block).collect()
}

fn cells(entry: &Entry) -> [String; 7] {
    let step = entry.step;
    [
        moment(entry.at, entry.measure),
        length(entry.since_start),
        // A step without a length stays empty, so that long steps stand out.
        if step.is_zero() { String::new() } else { format!("+{}", length(step)) },
        format!("{}/{}", entry.kind.to_ascii_lowercase(), entry.name),
        word(entry.severity).to_owned(),
        entry.reason.clone(),
        entry.message.clone() + &again(entry),
    ]
}

/// Returns remarks on the last issuance: its length, the longest step, the deepest warning, the
/// time without an event, and the current wait.
fn remarks(total: &Total<'_>, awaited: Option<&str>, is_folded: bool) -> Vec<String> {
    let run = total.entries;
    let labels = if is_folded { folded::labels(run) } else { Vec::new() };
    let headline = |number: usize, entry: &Entry| match labels.get(number) {
        Some(label) => format!("{} of {label}", entry.reason),
        None => format!("{} of {}/{}", entry.reason, entry.kind.to_ascii_lowercase(), entry.name),
    };
    let mut remarks = vec![sum(total)];
    let longest = run.iter().enumerate().rev().max_by_key(|(_, entry)| entry.step);
    if let Some((number, entry)) = longest.filter(|(_, entry)| !entry.step.is_zero()) {
        let step = length(entry.step);
        remarks.push(format!("Longest step: {step} before {}", headline(number, entry)));
    }
    if total.outcome == IssuanceResult::Issued {
        remarks.extend(awaited.map(|awaited| format!("Now: {awaited}")));
        return remarks;
    }
    // The deepest object knows best: objects above only repeat that something failed below.
    let warnings = run.iter().enumerate().filter(|(_, it)| it.severity == Severity::Warning);
    if let Some((number, entry)) = warnings.max_by_key(|(_, it)| (depth(&it.kind), it.at)) {
        // On a terminal the message stands a few rows above.
        let message = if is_folded { String::new() } else { format!(": {}", entry.message) };
        remarks.push(format!("Warning: {}{message}", headline(number, entry)));
    }
    let quiet = (!total.quiet.is_zero())
        .then(|| format!("Since then: nothing for {}", length(total.quiet)));
    remarks.extend(match (quiet, awaited) {
        (Some(quiet), Some(awaited)) => Some(format!("{quiet}; {awaited}")),
        (None, Some(awaited)) => Some(format!("Now: {awaited}")),
        (quiet, None) => quiet,
    });
    remarks
}

/// Describes the outcome and the length of an issuance.
fn sum(total: &Total<'_>) -> String {
    let outcome = match total.outcome {
        IssuanceResult::Issued => "issued after ",
        IssuanceResult::NotIssued => "not issued after ",
        IssuanceResult::Over => "",
        IssuanceResult::UnderWay => "not over after ",
    };
    let (count, measure) = (total.entries.len(), total.end.measure);
    format!(
        "Total: {outcome}{}, {count} {} ({} to {})",
        length(total.length()),
        if count == 1 { "entry" } else { "entries" },
        moment(total.entries[0].at, measure),
        moment(total.until(), measure),
    )
}

/// Returns the depth of a kind in the chain.
fn depth(kind: &str) -> usize {
    Kind::SIX.iter().position(|known| known.as_str() == kind).unwrap_or(Kind::SIX.len())
}

/// The word for a severity.
pub(super) fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::model::Event;
    use crate::model::event::{EventSource, ObjectReference, source};
    use crate::print::timeline::entries;
    use crate::print::timeline::saying::Sequence;

    fn hidden() -> TimelineStyle {
        TimelineStyle { headers: Headers::Hidden, ..TimelineStyle::default() }
    }

    fn check(events: &[Event], sequence: Sequence, now: &str) -> String {
        let entries = entries(events, sequence);
        text(&entries, None, now.parse().unwrap(), hidden())
    }

    /// The events recorded at a moment, in the order of the API server's lists.
    fn recorded(files: &[&str]) -> Vec<Event> {
        files.iter().flat_map(|file| serde_json::from_str::<Vec<Event>>(file).unwrap()).collect()
    }

    fn refused() -> Vec<Event> {
        recorded(&[
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
        ])
    }

    fn renewed() -> Vec<Event> {
        recorded(&[
            include_str!(
                "../../../tests/fixtures/pairs/09-renewal/renewed/certificate.web.events.json"
            ),
            include_str!(
                "../../../tests/fixtures/pairs/09-renewal/renewed/certificaterequest.web-2.events.json"
            ),
        ])
    }

    fn at(time: &str) -> Timestamp {
        format!("2026-11-23T{time}Z").parse().unwrap()
    }

    /// Builds an event of a chain `web`, `web-1`, `web-1-8`, `web-1-8-9`, written at that moment under that revision.
    fn told(time: &str, revision: u64, (object, reason, message): (&str, &str, &str)) -> Event {
        let (kind, name) = object.split_once('/').unwrap();
        let (severity, component) = match reason {
            "Failed" | "OrderFailed" => (Severity::Warning, source::ISSUING),
            _ => (Severity::Normal, "cert-manager"),
        };
        let mut event = Event {
            involved_object: ObjectReference {
                kind: kind.to_owned(),
                name: name.to_owned(),
                ..ObjectReference::default()
            },
            reason: reason.to_owned(),
            message: message.to_owned(),
            severity,
            source: EventSource { component: component.to_owned() },
            first_timestamp: Some(at(time).into()),
            last_timestamp: Some(at(time).into()),
            count: Some(1),
            ..Event::default()
        };
        event.metadata.name = format!("{name}.{:016x}", at(time).as_nanosecond());
        event.metadata.resource_version = revision.to_string();
        event
    }

    /// Repeats an event, as this program records repetitions.
    fn again(mut event: Event, time: &str, revision: u64) -> Event {
        event.tell_again(at(time));
        event.metadata.resource_version = revision.to_string();
        event
    }

    const BEGUN: (&str, &str, &str) = ("Certificate/web", "Issuing", "Issuing certificate");
    const KEY: (&str, &str, &str) = ("Certificate/web", "Generated", "Stored new private key");
    const REQUESTED: (&str, &str, &str) =
        ("Certificate/web", "Requested", "Created new CertificateRequest resource \"web-1\"");
    const ORDERED: (&str, &str, &str) =
        ("CertificateRequest/web-1", "OrderCreated", "Created Order resource web/web-1-8");
    const CHALLENGED: (&str, &str, &str) = (
        "Order/web-1-8",
        "Created",
        "Created Challenge resource \"web-1-8-9\" for domain \"www.example.com\"",
    );
    const STARTED: (&str, &str, &str) = ("Challenge/web-1-8-9", "Started", "Challenge scheduled");
    const PRESENTED: (&str, &str, &str) = ("Challenge/web-1-8-9", "Presented", "Presented");
    const VERIFIED: (&str, &str, &str) = ("Challenge/web-1-8-9", "DomainVerified", "verified");
    const REFUSED: (&str, &str, &str) = ("Challenge/web-1-8-9", "Failed", "refused");
    const COMPLETE: (&str, &str, &str) = ("Order/web-1-8", "Complete", "Order completed");
    const FETCHED: (&str, &str, &str) =
        ("CertificateRequest/web-1", "CertificateIssued", "Certificate fetched");
    const ORDER_FAILED: (&str, &str, &str) = ("CertificateRequest/web-1", "OrderFailed", "failed");
    const FAILED: (&str, &str, &str) = ("Certificate/web", "Failed", "will be retried");
    const ISSUED: (&str, &str, &str) =
        ("Certificate/web", "Issuing", "The certificate has been successfully issued");

    /// The reasons in order, with the time since the start.
    fn reasons(events: &[Event], sequence: Sequence) -> Vec<String> {
        let entries = entries(events, sequence);
        entries
            .iter()
            .map(|entry| format!("{} {}", length(entry.since_start), entry.reason))
            .collect()
    }

    #[test]
    fn a_certificate_that_did_not_arrive_tells_where_it_stopped() {
        insta::assert_snapshot!(check(&refused(), Sequence::Moments, "2026-11-21T04:42:29Z"), @r#"
        2026-11-21T04:32:10.789Z   0s                 certificate/web                        Normal    Issuing              Issuing certificate as Secret does not exist
        2026-11-21T04:32:10.915Z   126ms    +126ms    certificate/web                        Normal    Generated            Stored new private key in temporary Secret resource "web-vr5m8"
        2026-11-21T04:32:10.931Z   142ms    +16ms     certificate/web                        Normal    Requested            Created new CertificateRequest resource "web-1"
        2026-11-21T04:32:10.931Z   142ms              certificaterequest/web-1               Normal    WaitingForApproval   Not signing CertificateRequest until it is Approved (said by 5 controllers)
        2026-11-21T04:32:10.944Z   155ms    +13ms     certificaterequest/web-1               Normal    cert-manager.io      Certificate request has been approved by cert-manager.io
        2026-11-21T04:32:10.946Z   157ms    +2ms      certificaterequest/web-1               Normal    OrderCreated         Created Order resource trace-04/web-1-2726938748
        2026-11-21T04:32:10.987Z   198ms    +41ms     order/web-1-2726938748                 Normal    Created              Created Challenge resource "web-1-2726938748-762612507" for domain "www.t04.example.test"
        2026-11-21T04:32:11.252Z   463ms    +265ms    challenge/web-1-2726938748-762612507   Normal    Started              Challenge scheduled for processing
        2026-11-21T04:32:11.290Z   501ms    +38ms     challenge/web-1-2726938748-762612507   Normal    Presented            Presented challenge using HTTP-01 challenge mechanism
        2026-11-21T04:32:19.311Z   8.522s   +8.021s   challenge/web-1-2726938748-762612507   Warning   Failed               Accepting challenge authorization failed: acme: authorization error for www.t04.example.test: 403 urn:ietf:params:acme:error:unauthorized: The key authorization file from the server did not match this challenge "4ROOn77-1rxfDJpr4tayEQnbff3z8RC-YGmobiSfwcY.nYRBFXkRb2CfKdrTfy0R2G-wIYOaE6kztK1O0uazGXU" != "wrong.answer"
        2026-11-21T04:32:19.337Z   8.548s   +26ms     certificaterequest/web-1               Warning   OrderFailed          Failed to wait for order resource "web-1-2726938748" to become ready: order is in "invalid" state:
        2026-11-21T04:32:19.361Z   8.572s   +24ms     certificate/web                        Warning   Failed               The certificate request has failed to complete and will be retried: Failed to wait for order resource "web-1-2726938748" to become ready: order is in "invalid" state:

        Total: not issued after 10m18.211s, 12 entries (2026-11-21T04:32:10.789Z to 2026-11-21T04:42:29.000Z)
        Longest step: 8.021s before Failed of challenge/web-1-2726938748-762612507
        Warning: Failed of challenge/web-1-2726938748-762612507: Accepting challenge authorization failed: acme: authorization error for www.t04.example.test: 403 urn:ietf:params:acme:error:unauthorized: The key authorization file from the server did not match this challenge "4ROOn77-1rxfDJpr4tayEQnbff3z8RC-YGmobiSfwcY.nYRBFXkRb2CfKdrTfy0R2G-wIYOaE6kztK1O0uazGXU" != "wrong.answer"
        Since then: nothing for 10m9.639s
        "#);
    }

    #[test]
    fn a_renewal_starts_the_clock_again() {
        insta::assert_snapshot!(check(&renewed(), Sequence::Moments, "2026-11-21T04:42:29Z"), @r#"
        2026-11-21T04:33:38.294Z   0s               certificate/web            Normal   Issuing              Issuing certificate as Secret does not exist
        2026-11-21T04:33:38.319Z   25ms    +25ms    certificate/web            Normal   Generated            Stored new private key in temporary Secret resource "web-8rgbc"
        2026-11-21T04:33:38.334Z   40ms    +15ms    certificate/web            Normal   Requested            Created new CertificateRequest resource "web-1"
        2026-11-21T04:33:47.624Z   9.33s   +9.29s   certificate/web            Normal   Issuing              The certificate has been successfully issued

        Total: issued after 9.33s, 4 entries (2026-11-21T04:33:38.294Z to 2026-11-21T04:33:47.624Z)

        2026-11-21T04:33:50Z       0s               certificate/web            Normal   Generated            Stored new private key in temporary Secret resource "web-t6nxn"
        2026-11-21T04:33:50Z       0s               certificate/web            Normal   Requested            Created new CertificateRequest resource "web-2"
        2026-11-21T04:33:50Z       0s               certificaterequest/web-2   Normal   WaitingForApproval   Not signing CertificateRequest until it is Approved (said by 5 controllers)
        2026-11-21T04:33:50Z       0s               certificaterequest/web-2   Normal   cert-manager.io      Certificate request has been approved by cert-manager.io
        2026-11-21T04:33:50Z       0s               certificaterequest/web-2   Normal   OrderCreated         Created Order resource trace-09/web-2-1182851421
        2026-11-21T04:33:51Z       1s      +1s      certificaterequest/web-2   Normal   CertificateIssued    Certificate fetched from issuer successfully (x2)
        2026-11-21T04:33:51Z       1s               certificate/web            Normal   Issuing              The certificate has been successfully issued

        Total: issued after 1s, 7 entries (2026-11-21T04:33:50Z to 2026-11-21T04:33:51Z)
        Longest step: 1s before CertificateIssued of certificaterequest/web-2
        "#);
    }

    #[test]
    fn an_order_is_complete_after_its_domain_is_verified_and_told_before() {
        let told = [
            told("03:25:03.001", 1, BEGUN),
            told("03:25:03.004", 2, KEY),
            told("03:25:03.006", 3, REQUESTED),
            told("03:25:03.009", 4, ORDERED),
            told("03:25:03.020", 5, CHALLENGED),
            told("03:25:03.024", 6, STARTED),
            told("03:25:03.030", 7, PRESENTED),
            told("03:25:03.413", 8, COMPLETE),
            told("03:25:03.415", 10, FETCHED),
            told("03:25:03.420", 9, VERIFIED),
            told("03:25:03.421", 11, ISSUED),
        ];
        insta::assert_snapshot!(check(&told, Sequence::Revisions, "2026-11-23T03:26:00Z"), @r#"
        2026-11-23T03:25:03.001Z   0s               certificate/web            Normal   Issuing             Issuing certificate
        2026-11-23T03:25:03.004Z   3ms     +3ms     certificate/web            Normal   Generated           Stored new private key
        2026-11-23T03:25:03.006Z   5ms     +2ms     certificate/web            Normal   Requested           Created new CertificateRequest resource "web-1"
        2026-11-23T03:25:03.009Z   8ms     +3ms     certificaterequest/web-1   Normal   OrderCreated        Created Order resource web/web-1-8
        2026-11-23T03:25:03.020Z   19ms    +11ms    order/web-1-8              Normal   Created             Created Challenge resource "web-1-8-9" for domain "www.example.com"
        2026-11-23T03:25:03.024Z   23ms    +4ms     challenge/web-1-8-9        Normal   Started             Challenge scheduled
        2026-11-23T03:25:03.030Z   29ms    +6ms     challenge/web-1-8-9        Normal   Presented           Presented
        2026-11-23T03:25:03.413Z   412ms   +383ms   challenge/web-1-8-9        Normal   DomainVerified      verified
        2026-11-23T03:25:03.413Z   412ms            order/web-1-8              Normal   Complete            Order completed
        2026-11-23T03:25:03.415Z   414ms   +2ms     certificaterequest/web-1   Normal   CertificateIssued   Certificate fetched
        2026-11-23T03:25:03.421Z   420ms   +6ms     certificate/web            Normal   Issuing             The certificate has been successfully issued

        Total: issued after 420ms, 11 entries (2026-11-23T03:25:03.001Z to 2026-11-23T03:25:03.421Z)
        Longest step: 383ms before DomainVerified of challenge/web-1-8-9
        "#);
        assert_eq!(reasons(&told, Sequence::Moments), reasons(&told, Sequence::Revisions));
    }

    #[test]
    fn what_failed_stands_before_what_failed_by_it() {
        let mut events = vec![
            told("03:25:03.001", 1, BEGUN),
            told("03:25:03.006", 2, REQUESTED),
            told("03:25:03.009", 3, ORDERED),
            told("03:25:03.020", 4, CHALLENGED),
            told("03:25:03.024", 5, STARTED),
            told("03:25:04.000", 6, ORDER_FAILED),
            told("03:25:04.001", 7, FAILED),
            told("03:25:04.002", 8, REFUSED),
        ];
        let expected = [
            "0s Issuing",
            "5ms Requested",
            "8ms OrderCreated",
            "19ms Created",
            "23ms Started",
            "999ms Failed",
            "999ms OrderFailed",
            "1s Failed",
        ];
        assert_eq!(reasons(&events, Sequence::Revisions), expected);
        assert_eq!(reasons(&events, Sequence::Moments), expected);
        // One that failed later has not brought it down.
        let other = ("Challenge/web-1-8-7", "Failed", "refused, too");
        events.push(told("03:25:05.500", 9, other));
        assert_eq!(reasons(&events, Sequence::Revisions)[8], "2.499s Failed");
    }

    /// An issuance, and another one of the same Certificate from that minute on; each has objects of its own below it.
    fn twice(minute: &str, again: impl Fn(Event, &str, u64) -> Event) -> Vec<Event> {
        let later = |second: &str| format!("{minute}:{second}");
        let below = |time: &str, revision: u64, uid: &str, what| {
            let mut event = told(time, revision, what);
            uid.clone_into(&mut event.involved_object.uid);
            event
        };
        let another = ("Certificate/web", "Generated", "Stored another private key");
        vec![
            again(told("03:00:00.100", 1, BEGUN), &later("00.200"), 11),
            told("03:00:00.200", 2, KEY),
            told(&later("00.300"), 12, another),
            again(told("03:00:00.300", 3, REQUESTED), &later("00.400"), 13),
            below("03:00:00.400", 4, "one", ORDERED),
            below(&later("00.500"), 14, "two", ORDERED),
            below("03:00:05.500", 5, "one", FETCHED),
            below(&later("04.600"), 15, "two", FETCHED),
            again(told("03:00:05.600", 6, ISSUED), &later("04.700"), 16),
        ]
    }

    #[test]
    fn each_issuance_has_its_own_beginning_end_and_total() {
        let told = twice("04:00", again);
        insta::assert_snapshot!(check(&told, Sequence::Revisions, "2026-11-23T05:00:00Z"), @r#"
        2026-11-23T03:00:00.100Z   0s               certificate/web            Normal   Issuing             Issuing certificate
        2026-11-23T03:00:00.200Z   100ms   +100ms   certificate/web            Normal   Generated           Stored new private key
        2026-11-23T03:00:00.300Z   200ms   +100ms   certificate/web            Normal   Requested           Created new CertificateRequest resource "web-1"
        2026-11-23T03:00:00.400Z   300ms   +100ms   certificaterequest/web-1   Normal   OrderCreated        Created Order resource web/web-1-8
        2026-11-23T03:00:05.500Z   5.4s    +5.1s    certificaterequest/web-1   Normal   CertificateIssued   Certificate fetched
        2026-11-23T03:00:05.600Z   5.5s    +100ms   certificate/web            Normal   Issuing             The certificate has been successfully issued

        Total: issued after 5.5s, 6 entries (2026-11-23T03:00:00.100Z to 2026-11-23T03:00:05.600Z)

        2026-11-23T04:00:00.200Z   0s               certificate/web            Normal   Issuing             Issuing certificate
        2026-11-23T04:00:00.300Z   100ms   +100ms   certificate/web            Normal   Generated           Stored another private key
        2026-11-23T04:00:00.400Z   200ms   +100ms   certificate/web            Normal   Requested           Created new CertificateRequest resource "web-1"
        2026-11-23T04:00:00.500Z   300ms   +100ms   certificaterequest/web-1   Normal   OrderCreated        Created Order resource web/web-1-8
        2026-11-23T04:00:04.600Z   4.4s    +4.1s    certificaterequest/web-1   Normal   CertificateIssued   Certificate fetched
        2026-11-23T04:00:04.700Z   4.5s    +100ms   certificate/web            Normal   Issuing             The certificate has been successfully issued

        Total: issued after 4.5s, 6 entries (2026-11-23T04:00:00.200Z to 2026-11-23T04:00:04.700Z)
        Longest step: 4.1s before CertificateIssued of certificaterequest/web-1
        "#);
    }

    #[test]
    fn what_others_count_up_stands_at_its_first_and_its_last_time() {
        let told = twice("04:00", |mut event, time, _| {
            event.count = Some(2);
            event.last_timestamp = Some(at(time).into());
            event
        });
        insta::assert_snapshot!(check(&told, Sequence::Moments, "2026-11-23T05:00:00Z"), @r#"
        2026-11-23T03:00:00.100Z   0s               certificate/web            Normal   Issuing             Issuing certificate
        2026-11-23T03:00:00.200Z   100ms   +100ms   certificate/web            Normal   Generated           Stored new private key
        2026-11-23T03:00:00.300Z   200ms   +100ms   certificate/web            Normal   Requested           Created new CertificateRequest resource "web-1"
        2026-11-23T03:00:00.400Z   300ms   +100ms   certificaterequest/web-1   Normal   OrderCreated        Created Order resource web/web-1-8
        2026-11-23T03:00:05.500Z   5.4s    +5.1s    certificaterequest/web-1   Normal   CertificateIssued   Certificate fetched
        2026-11-23T03:00:05.600Z   5.5s    +100ms   certificate/web            Normal   Issuing             The certificate has been successfully issued

        Total: issued after 5.5s, 6 entries (2026-11-23T03:00:00.100Z to 2026-11-23T03:00:05.600Z)

        2026-11-23T04:00:00Z       0s               certificate/web            Normal   Issuing             Issuing certificate
        2026-11-23T04:00:00Z       0s               certificate/web            Normal   Generated           Stored another private key
        2026-11-23T04:00:00Z       0s               certificate/web            Normal   Requested           Created new CertificateRequest resource "web-1"
        2026-11-23T04:00:00Z       0s               certificaterequest/web-1   Normal   OrderCreated        Created Order resource web/web-1-8
        2026-11-23T04:00:04Z       4s      +4s      certificaterequest/web-1   Normal   CertificateIssued   Certificate fetched
        2026-11-23T04:00:04Z       4s               certificate/web            Normal   Issuing             The certificate has been successfully issued

        Total: issued after 4s, 6 entries (2026-11-23T04:00:00Z to 2026-11-23T04:00:04Z)
        Longest step: 4s before CertificateIssued of certificaterequest/web-1
        "#);
    }

    #[test]
    fn a_clock_that_goes_back_changes_no_order() {
        let reasons = |minute: &str| {
            let entries = entries(&twice(minute, again), Sequence::Revisions);
            assert!(entries.iter().all(|entry| !entry.step.is_negative()), "{entries:?}");
            entries.into_iter().map(|entry| (entry.issuance, entry.reason)).collect::<Vec<_>>()
        };
        // The first issuance ends at 03:00:05.
        for minute in ["03:00", "02:00"] {
            assert_eq!(reasons(minute), reasons("04:00"), "{minute}");
        }
    }

    #[test]
    fn a_repetition_does_not_stand_behind_what_came_of_it() {
        let told = [
            again(told("03:00:00.100", 1, REQUESTED), "03:00:00.300", 2),
            told("03:00:00.200", 3, ORDERED),
            told("03:00:00.500", 4, COMPLETE),
        ];
        let entries = entries(&told, Sequence::Revisions);
        let rows: Vec<String> =
            entries.iter().map(|e| e.reason.clone() + &super::again(e)).collect();
        assert_eq!(rows, ["Requested (x2)", "OrderCreated", "Complete"]);
    }

    #[test]
    fn an_object_that_is_made_again_keeps_its_own_moments() {
        let ordered_again = ("Order/web-1-8", "OrderedAgain", "asking for another order");
        let mut told = vec![
            told("03:00:00.000", 1, CHALLENGED),
            told("03:00:00.010", 2, STARTED),
            told("03:00:09.000", 3, ordered_again),
            told("03:00:09.100", 4, CHALLENGED),
            told("03:00:09.110", 5, STARTED),
            told("03:00:09.200", 6, PRESENTED),
        ];
        for event in &mut told[2..] {
            event.involved_object.uid = "another".to_owned();
        }
        let expected = [
            "0s Created",
            "10ms Started",
            "9s OrderedAgain",
            "9.1s Created",
            "9.11s Started",
            "9.2s Presented",
        ];
        for sequence in [Sequence::Revisions, Sequence::Moments] {
            assert_eq!(reasons(&told, sequence), expected);
        }
    }

    #[test]
    fn what_is_told_again_and_again_is_told_the_first_and_the_last_time() {
        let error = ("Challenge/web-1-8-9", "PresentError", "no route");
        let mut failing = told("03:00:10.000", 2, error);
        for second in 11..50 {
            failing = again(failing, &format!("03:00:{second}.250"), second);
        }
        let told = [
            told("03:00:00.000", 1, STARTED),
            failing,
            told("03:00:20.000", 90, ("Challenge/web-1-8-9", "Other", "between")),
        ];
        let entries = entries(&told, Sequence::Moments);
        let rows: Vec<String> =
            entries.iter().map(|e| e.reason.clone() + &super::again(e)).collect();
        let last = "PresentError (last of 40, over 39s)";
        assert_eq!(rows, ["Started", "PresentError (first of 40)", "Other", last]);
    }

    #[test]
    fn sums_agree_with_their_steps_and_waiting_counts() {
        let told = [
            told("03:00:00.100", 1, BEGUN),
            told("03:00:00.512", 2, KEY),
            told("03:16:40.600", 3, REQUESTED),
        ];
        insta::assert_snapshot!(check(&told, Sequence::Revisions, "2026-11-23T03:17:04.700Z"), @r#"
        2026-11-23T03:00:00.100Z   0s                       certificate/web   Normal   Issuing     Issuing certificate
        2026-11-23T03:00:00.512Z   412ms      +412ms        certificate/web   Normal   Generated   Stored new private key
        2026-11-23T03:16:40.600Z   16m40.5s   +16m40.088s   certificate/web   Normal   Requested   Created new CertificateRequest resource "web-1"

        Total: not issued after 17m4.6s, 3 entries (2026-11-23T03:00:00.100Z to 2026-11-23T03:17:04.700Z)
        Longest step: 16m40.088s before Requested of certificate/web
        Since then: nothing for 24.1s
        "#);
        let entries = entries(&told, Sequence::Revisions);
        let steps: SignedDuration = entries.iter().map(|entry| entry.step).sum();
        let total = totals(&entries, at("03:17:04.700"))[0].length();
        assert_eq!(total, steps + SignedDuration::from_millis(24_100));
        assert_eq!(total, SignedDuration::from_millis(1_024_600));
    }

    #[test]
    fn where_only_seconds_are_known_they_are_what_is_measured() {
        let mut told = [told("03:00:00", 1, BEGUN), told("03:16:40", 2, KEY)];
        for event in &mut told {
            "web".clone_into(&mut event.metadata.name);
        }
        insta::assert_snapshot!(check(&told, Sequence::Moments, "2026-11-23T03:17:04.7Z"), @"
        2026-11-23T03:00:00Z   0s                 certificate/web   Normal   Issuing     Issuing certificate
        2026-11-23T03:16:40Z   16m40s   +16m40s   certificate/web   Normal   Generated   Stored new private key

        Total: not issued after 17m4s, 2 entries (2026-11-23T03:00:00Z to 2026-11-23T03:17:04Z)
        Longest step: 16m40s before Generated of certificate/web
        Since then: nothing for 24s
        ");
    }

    #[test]
    fn in_one_second_the_chain_tells_the_order() {
        let chain = [
            BEGUN, KEY, REQUESTED, ORDERED, CHALLENGED, STARTED, PRESENTED, VERIFIED, COMPLETE,
            FETCHED, ISSUED,
        ];
        // As an API server lists them: by name.
        let mut told = chain.map(|what| told("03:00:00", 1, what));
        for event in &mut told {
            event.metadata.name.truncate(1);
        }
        told.sort_by(|a, b| a.involved_object.name.cmp(&b.involved_object.name).reverse());
        let expected: Vec<String> =
            chain.iter().map(|(_, reason, _)| format!("0s {reason}")).collect();
        assert_eq!(reasons(&told, Sequence::Moments), expected);
    }

    #[test]
    fn an_order_that_is_not_over_is_waited_for() {
        let mut told = vec![told("03:00:00.100", 1, CHALLENGED), told("03:00:00.200", 2, STARTED)];
        let sum = |told: &[Event]| {
            let entries = entries(told, Sequence::Revisions);
            sum(totals(&entries, at("03:00:10.2")).last().unwrap())
        };
        assert!(
            sum(&told).starts_with("Total: not over after 10.1s, 2 entries ("),
            "{}",
            sum(&told)
        );
        told.push(self::told("03:00:01.300", 3, REFUSED));
        assert!(sum(&told).starts_with("Total: 1.2s, 3 entries ("), "{}", sum(&told));
    }

    #[test]
    fn what_is_waited_for_ends_it() {
        let entries = entries(&refused(), Sequence::Moments);
        let last = |now: &str| {
            let totals = totals(&entries, now.parse().unwrap());
            remarks(&totals[0], Some("Order web/o: too many"), false).pop().unwrap()
        };
        let quiet = last("2026-11-21T04:42:29Z");
        assert!(quiet.starts_with("Since then: nothing for 10m9."), "{quiet}");
        assert!(quiet.ends_with("s; Order web/o: too many"), "{quiet}");
        assert_eq!(last("2026-11-21T04:32:19.9Z"), "Now: Order web/o: too many");
    }

    #[test]
    fn without_events_there_is_nothing() {
        assert_eq!(check(&[], Sequence::Moments, "2026-11-21T04:42:29Z"), "");
    }

    #[test]
    fn what_is_told_late_belongs_to_the_issuance_of_its_object() {
        let events = [
            told("03:00:00", 1, BEGUN),
            told("03:00:01", 2, KEY),
            told("03:00:01", 3, REQUESTED),
            told("03:00:02", 4, ORDERED),
            told("03:00:03", 5, FAILED),
            told("04:00:00", 6, ("Certificate/web", "Issuing", "Renewing")),
            told("04:00:01", 7, ORDER_FAILED),
        ];
        let entries = entries(&events, Sequence::Revisions);
        let late = entries.iter().find(|entry| entry.reason == "OrderFailed").unwrap();
        assert_eq!(late.issuance, 0);
        assert!(entries.iter().any(|entry| entry.issuance == 1));
    }

    #[test]
    fn a_clock_that_goes_back_within_an_issuance_measures_nothing_negative() {
        let approved = ("CertificateRequest/web-1", "cert-manager.io", "approved");
        let events = [
            told("03:00:10", 1, BEGUN),
            told("03:00:11", 2, REQUESTED),
            told("03:00:05", 3, approved),
        ];
        let entries = entries(&events, Sequence::Revisions);
        assert_eq!(entries.len(), 3);
        let is_negative = |e: &Entry| e.step.is_negative() || e.since_start.is_negative();
        assert!(!entries.iter().any(is_negative), "{entries:?}");
    }
}
