//! Every event of a Certificate and all below it, in order, with durations.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::age::short;
use super::escape::{escape, set_off};
use super::table::{Colour, Headers, Table};
use crate::model::event::reason;
use crate::model::{Event, Kind, Severity, Time};

/// What happened at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When; of a repeated event the last time.
    pub at: Timestamp,
    /// When first; the same as `at` unless repeated.
    pub first: Timestamp,
    /// How often.
    pub count: u32,
    /// To what kind of object.
    pub kind: String,
    /// To which object.
    pub name: String,
    /// As it should be, or not.
    pub severity: Severity,
    /// The word for it.
    pub reason: String,
    /// The sentence.
    pub message: String,
    /// Who wrote it; several where controllers said the same in one second.
    pub sources: Vec<String>,
    /// Time since the issuance it belongs to began.
    pub since_start: SignedDuration,
    /// Time since the entry before, zero at the beginning of an issuance.
    pub step: SignedDuration,
    /// Which issuance it belongs to, from 0: a renewal starts another.
    pub issuance: usize,
}

/// Puts events in order and measures the time between them; events without any time are left out.
pub fn entries<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Entry> {
    let timed = events.into_iter().filter_map(|event| moments(event).map(|(f, l)| (f, l, event)));
    let mut events: Vec<(Timestamp, Timestamp, &Event)> = timed.collect();
    events.sort_by_key(|(first, last, event)| order(*first, *last, event));
    let mut entries: Vec<Entry> = Vec::new();
    for (first, at, event) in events {
        if let Some(same) =
            entries.iter_mut().rev().take_while(|e| near(e.at, at)).find(|e| says(e, event))
        {
            same.sources.push(event.source.component.clone());
            continue;
        }
        entries.push(Entry {
            at,
            first,
            count: event.count.unwrap_or(1).max(1),
            kind: event.involved_object.kind.clone(),
            name: event.involved_object.name.clone(),
            severity: event.severity,
            reason: event.reason.clone(),
            message: event.message.trim().to_owned(),
            sources: vec![event.source.component.clone()],
            since_start: SignedDuration::ZERO,
            step: SignedDuration::ZERO,
            issuance: 0,
        });
    }
    measure(&mut entries);
    entries
}

/// A renewal begins with `Issuing`, or with another private key where somebody asked for it by hand.
fn measure(entries: &mut [Entry]) {
    let (mut issuance, mut start, mut before, mut has_key) = (0, None, None, false);
    for entry in entries {
        let key =
            entry.is_certificate() && [reason::GENERATED, reason::REUSED].contains(&&*entry.reason);
        if start.is_some() && (entry.begins_issuance() || (key && has_key)) {
            issuance += 1;
            (start, before, has_key) = (None, None, false);
        }
        has_key |= key;
        entry.issuance = issuance;
        entry.since_start = entry.at.duration_since(*start.get_or_insert(entry.at));
        entry.step = entry.at.duration_since(before.unwrap_or(entry.at));
        before = Some(entry.at);
    }
}

/// First and last moment, the first one finer than a second where the event's name tells.
fn moments(event: &Event) -> Option<(Timestamp, Timestamp)> {
    let stamps = [event.first_timestamp, event.last_timestamp];
    let first = stamps[0].or(stamps[1]).map(Time::timestamp)?;
    let last = stamps[1].unwrap_or_else(|| Time::new(first)).timestamp();
    let fine = fine_moment(&event.metadata.name, first).unwrap_or(first);
    Some((fine, if last <= first { fine } else { last }))
}

/// client-go names events `OBJECT.NANOSECONDS` in hexadecimal; believed when it agrees with the second written.
fn fine_moment(name: &str, second: Timestamp) -> Option<Timestamp> {
    let (_, suffix) = name.rsplit_once('.')?;
    let moment = Timestamp::from_nanosecond(i128::from_str_radix(suffix, 16).ok()?).ok()?;
    (moment.as_second() == second.as_second()).then_some(moment)
}

/// Sorts by moment. In one moment, what was made earlier in the chain comes first. Of a repeated event only the second
/// is known; what repeats is mostly the good end, which comes back up the chain when that second is over.
fn order(first: Timestamp, last: Timestamp, event: &Event) -> (i64, i32, isize, &str) {
    let depth = isize::try_from(depth(&event.involved_object.kind)).unwrap_or(isize::MAX);
    let (within, depth) =
        if last > first { (i32::MAX, -depth) } else { (last.subsec_nanosecond(), depth) };
    (last.as_second(), within, depth, &event.metadata.name)
}

/// How far down the chain a kind is.
fn depth(kind: &str) -> usize {
    Kind::SIX.iter().position(|known| known.as_str() == kind).unwrap_or(Kind::SIX.len())
}

fn near(earlier: Timestamp, later: Timestamp) -> bool {
    later.as_second() - earlier.as_second() <= 1
}

/// Several controllers say the same of one object (five times `WaitingForApproval`).
fn says(entry: &Entry, event: &Event) -> bool {
    entry.kind == event.involved_object.kind
        && entry.name == event.involved_object.name
        && entry.reason == event.reason
        && entry.message == event.message.trim()
        && entry.count == event.count.unwrap_or(1).max(1)
        && !entry.sources.contains(&event.source.component)
}

impl Entry {
    fn is_certificate(&self) -> bool {
        self.kind == Kind::Certificate.as_str()
    }

    fn begins_issuance(&self) -> bool {
        self.is_certificate() && self.reason == reason::ISSUING && !self.is_issued()
    }

    fn is_issued(&self) -> bool {
        self.is_certificate()
            && self.reason == reason::ISSUING
            && self.message.contains("successfully issued")
    }
}

/// Renders the timeline for people, and below it what to make of it; nothing where there are no entries.
pub fn text(
    entries: &[Entry],
    awaited: Option<&str>,
    now: Timestamp,
    (headers, colour): (Headers, Colour),
) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new(["TIME", "SINCE START", "STEP", "OBJECT", "TYPE", "REASON", "MESSAGE"]);
    for (number, entry) in entries.iter().enumerate() {
        let is_first = number == 0 || entries[number - 1].issuance != entry.issuance;
        if is_first && number > 0 {
            table.row([""; 7]);
        }
        table.row([
            second(entry.at),
            short(entry.since_start),
            step(entry),
            format!("{}/{}", entry.kind.to_ascii_lowercase(), entry.name),
            severity(entry.severity).to_owned(),
            entry.reason.clone(),
            entry.message.clone() + &repeats(entry),
        ]);
    }
    let mut out = table.render(headers, colour);
    out.push('\n');
    for remark in remarks(entries, awaited, now) {
        out.push_str(&set_off(&escape(&remark)));
        out.push('\n');
    }
    out
}

/// `(x3 over 2m)` after a repeated event, `(said by 5 controllers)` after one that several wrote.
fn repeats(entry: &Entry) -> String {
    if entry.count > 1 {
        return format!(" (x{} over {})", entry.count, short(entry.at.duration_since(entry.first)));
    }
    match entry.sources.len() {
        0 | 1 => String::new(),
        several => format!(" (said by {several} controllers)"),
    }
}

/// Empty below a second, so that the steps that took their time stand out.
fn step(entry: &Entry) -> String {
    if entry.step.as_secs() > 0 { format!("+{}", short(entry.step)) } else { String::new() }
}

/// The totals of the last issuance: how long, where the time went, what went wrong, how long nothing has happened, and
/// what is waited for meanwhile.
fn remarks(entries: &[Entry], awaited: Option<&str>, now: Timestamp) -> Vec<String> {
    let Some(last) = entries.last() else { return Vec::new() };
    let run: Vec<&Entry> = entries.iter().filter(|e| e.issuance == last.issuance).collect();
    let issued = run.iter().rev().find(|entry| entry.is_issued());
    let end = issued.unwrap_or(&last);
    let outcome = match issued {
        Some(_) => "issued after ",
        None if run.iter().any(|entry| entry.is_certificate()) => "not issued after ",
        None => "",
    };
    let entries = if run.len() == 1 { "entry" } else { "entries" };
    let mut remarks = vec![format!(
        "Total: {outcome}{}, {} {entries} ({} to {})",
        short(end.since_start),
        run.len(),
        second(run[0].at),
        second(end.at),
    )];
    let longest = run.iter().rev().max_by_key(|entry| entry.step);
    if let Some(entry) = longest.filter(|entry| entry.step.as_secs() > 0) {
        remarks.push(format!("Longest step: {} before {}", short(entry.step), headline(entry)));
    }
    if issued.is_some() {
        remarks.extend(awaited.map(|awaited| format!("Now: {awaited}")));
        return remarks;
    }
    // The deepest object knows best: those above it repeat that something failed below.
    let warnings = run.iter().filter(|entry| entry.severity == Severity::Warning);
    if let Some(entry) = warnings.max_by_key(|entry| (depth(&entry.kind), entry.at)) {
        remarks.push(format!("Warning: {}: {}", headline(entry), entry.message));
    }
    let quiet = now.duration_since(last.at);
    let quiet = (quiet.as_secs() > 0).then(|| format!("Since then: nothing for {}", short(quiet)));
    remarks.extend(match (quiet, awaited) {
        (Some(quiet), Some(awaited)) => Some(format!("{quiet}; {awaited}")),
        (None, Some(awaited)) => Some(format!("Now: {awaited}")),
        (quiet, None) => quiet,
    });
    remarks
}

fn headline(entry: &Entry) -> String {
    format!("{} of {}/{}", entry.reason, entry.kind.to_ascii_lowercase(), entry.name)
}

fn second(at: Timestamp) -> String {
    Time::new(at).to_string()
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    }
}

/// The timeline as a report of our own (`-o json`).
pub fn report(
    (object, namespace): (&str, &str),
    entries: &[Entry],
    awaited: Option<&str>,
    now: Timestamp,
) -> Value {
    let mut report = json!({
        "apiVersion": "kubectl-acme/v1alpha1",
        "kind": "Timeline",
        "object": object,
        "namespace": namespace,
        "at": second(now),
        "entries": entries.iter().map(fields).collect::<Vec<_>>(),
    });
    if let Some(awaited) = awaited {
        report["waitsFor"] = awaited.into();
    }
    report
}

/// The timeline as a stream of entries (`-o jsonl`).
pub fn stream(entries: &[Entry]) -> Vec<Value> {
    let marked = entries.iter().map(|entry| {
        let mut value = fields(entry);
        value["apiVersion"] = "kubectl-acme/v1alpha1".into();
        value["kind"] = "TimelineEntry".into();
        value
    });
    marked.collect()
}

fn fields(entry: &Entry) -> Value {
    let seconds = |length: SignedDuration| json!(length.as_secs());
    json!({
        "time": second(entry.at),
        "firstTime": second(entry.first),
        "count": entry.count,
        "issuance": entry.issuance,
        "secondsSinceStart": seconds(entry.since_start),
        "secondsSinceLast": seconds(entry.step),
        "object": {"kind": entry.kind, "name": entry.name},
        "type": severity(entry.severity),
        "reason": entry.reason,
        "message": entry.message,
        "sources": entry.sources,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events recorded at a moment, in the order of the API server's lists.
    fn recorded(files: &[&str]) -> Vec<Event> {
        files.iter().flat_map(|file| serde_json::from_str::<Vec<Event>>(file).unwrap()).collect()
    }

    fn check(events: &[Event], now: &str) -> String {
        text(&entries(events), None, now.parse().unwrap(), (Headers::Shown, Colour::Off))
    }

    fn refused() -> Vec<Event> {
        recorded(&[
            include_str!(
                "../../tests/fixtures/pairs/04-http01-ca-refuses/invalid/certificate.web.events.json"
            ),
            include_str!(
                "../../tests/fixtures/pairs/04-http01-ca-refuses/invalid/certificaterequest.web-1.events.json"
            ),
            include_str!(
                "../../tests/fixtures/pairs/04-http01-ca-refuses/invalid/challenge.web-1-2726938748-762612507.events.json"
            ),
            include_str!(
                "../../tests/fixtures/pairs/04-http01-ca-refuses/invalid/order.web-1-2726938748.events.json"
            ),
        ])
    }

    fn renewed() -> Vec<Event> {
        recorded(&[
            include_str!(
                "../../tests/fixtures/pairs/09-renewal/renewed/certificate.web.events.json"
            ),
            include_str!(
                "../../tests/fixtures/pairs/09-renewal/renewed/certificaterequest.web-2.events.json"
            ),
        ])
    }

    #[test]
    fn a_certificate_that_did_not_arrive_tells_where_it_stopped() {
        insta::assert_snapshot!(check(&refused(), "2026-11-21T04:42:29Z"), @r#"
        TIME                   SINCE START   STEP   OBJECT                                 TYPE      REASON               MESSAGE
        2026-11-21T04:32:10Z   0s                   certificate/web                        Normal    Issuing              Issuing certificate as Secret does not exist
        2026-11-21T04:32:10Z   0s                   certificate/web                        Normal    Generated            Stored new private key in temporary Secret resource "web-vr5m8"
        2026-11-21T04:32:10Z   0s                   certificaterequest/web-1               Normal    WaitingForApproval   Not signing CertificateRequest until it is Approved (said by 5 controllers)
        2026-11-21T04:32:10Z   0s                   certificate/web                        Normal    Requested            Created new CertificateRequest resource "web-1"
        2026-11-21T04:32:10Z   0s                   certificaterequest/web-1               Normal    cert-manager.io      Certificate request has been approved by cert-manager.io
        2026-11-21T04:32:10Z   0s                   certificaterequest/web-1               Normal    OrderCreated         Created Order resource trace-04/web-1-2726938748
        2026-11-21T04:32:10Z   0s                   order/web-1-2726938748                 Normal    Created              Created Challenge resource "web-1-2726938748-762612507" for domain "www.t04.example.test"
        2026-11-21T04:32:11Z   0s                   challenge/web-1-2726938748-762612507   Normal    Started              Challenge scheduled for processing
        2026-11-21T04:32:11Z   0s                   challenge/web-1-2726938748-762612507   Normal    Presented            Presented challenge using HTTP-01 challenge mechanism
        2026-11-21T04:32:19Z   8s            +8s    challenge/web-1-2726938748-762612507   Warning   Failed               Accepting challenge authorization failed: acme: authorization error for www.t04.example.test: 403 urn:ietf:params:acme:error:unauthorized: The key authorization file from the server did not match this challenge "4ROOn77-1rxfDJpr4tayEQnbff3z8RC-YGmobiSfwcY.nYRBFXkRb2CfKdrTfy0R2G-wIYOaE6kztK1O0uazGXU" != "wrong.answer"
        2026-11-21T04:32:19Z   8s                   certificaterequest/web-1               Warning   OrderFailed          Failed to wait for order resource "web-1-2726938748" to become ready: order is in "invalid" state:
        2026-11-21T04:32:19Z   8s                   certificate/web                        Warning   Failed               The certificate request has failed to complete and will be retried: Failed to wait for order resource "web-1-2726938748" to become ready: order is in "invalid" state:

        Total: not issued after 8s, 12 entries (2026-11-21T04:32:10Z to 2026-11-21T04:32:19Z)
        Longest step: 8s before Failed of challenge/web-1-2726938748-762612507
        Warning: Failed of challenge/web-1-2726938748-762612507: Accepting challenge authorization failed: acme: authorization error for www.t04.example.test: 403 urn:ietf:params:acme:error:unauthorized: The key authorization file from the server did not match this challenge "4ROOn77-1rxfDJpr4tayEQnbff3z8RC-YGmobiSfwcY.nYRBFXkRb2CfKdrTfy0R2G-wIYOaE6kztK1O0uazGXU" != "wrong.answer"
        Since then: nothing for 10m
        "#);
    }

    #[test]
    fn a_renewal_starts_the_clock_again() {
        insta::assert_snapshot!(check(&renewed(), "2026-11-21T04:42:29Z"), @r#"
        TIME                   SINCE START   STEP   OBJECT                     TYPE     REASON               MESSAGE
        2026-11-21T04:33:38Z   0s                   certificate/web            Normal   Issuing              Issuing certificate as Secret does not exist
        2026-11-21T04:33:38Z   0s                   certificate/web            Normal   Generated            Stored new private key in temporary Secret resource "web-8rgbc"
        2026-11-21T04:33:38Z   0s                   certificate/web            Normal   Requested            Created new CertificateRequest resource "web-1"

        2026-11-21T04:33:50Z   0s                   certificate/web            Normal   Generated            Stored new private key in temporary Secret resource "web-t6nxn"
        2026-11-21T04:33:50Z   0s                   certificaterequest/web-2   Normal   WaitingForApproval   Not signing CertificateRequest until it is Approved (said by 5 controllers)
        2026-11-21T04:33:50Z   0s                   certificate/web            Normal   Requested            Created new CertificateRequest resource "web-2"
        2026-11-21T04:33:50Z   0s                   certificaterequest/web-2   Normal   cert-manager.io      Certificate request has been approved by cert-manager.io
        2026-11-21T04:33:50Z   0s                   certificaterequest/web-2   Normal   OrderCreated         Created Order resource trace-09/web-2-1182851421
        2026-11-21T04:33:51Z   0s                   certificaterequest/web-2   Normal   CertificateIssued    Certificate fetched from issuer successfully (x2 over 0s)
        2026-11-21T04:33:51Z   0s                   certificate/web            Normal   Issuing              The certificate has been successfully issued (x2 over 3s)

        Total: issued after 0s, 7 entries (2026-11-21T04:33:50Z to 2026-11-21T04:33:51Z)
        "#);
    }

    #[test]
    fn repeated_events_say_how_often() {
        let mut events = refused();
        events.truncate(1);
        events[0].count = Some(3);
        events[0].last_timestamp = Some(Time::new("2026-11-21T04:35:10Z".parse().unwrap()));
        insta::assert_snapshot!(check(&events, "2026-11-21T04:42:29Z"), @"
        TIME                   SINCE START   STEP   OBJECT            TYPE     REASON    MESSAGE
        2026-11-21T04:35:10Z   0s                   certificate/web   Normal   Issuing   Issuing certificate as Secret does not exist (x3 over 2m59s)

        Total: not issued after 0s, 1 entry (2026-11-21T04:35:10Z to 2026-11-21T04:35:10Z)
        Since then: nothing for 7m19s
        ");
    }

    #[test]
    fn what_is_waited_for_ends_it() {
        let entries = entries(&refused());
        let last = |now: &str| {
            remarks(&entries, Some("Order web/o: too many"), now.parse().unwrap()).pop().unwrap()
        };
        let quiet = "Since then: nothing for 10m; Order web/o: too many";
        assert_eq!(last("2026-11-21T04:42:29Z"), quiet);
        assert_eq!(last("2026-11-21T04:32:19Z"), "Now: Order web/o: too many");
    }

    #[test]
    fn without_events_there_is_nothing() {
        assert_eq!(check(&[], "2026-11-21T04:42:29Z"), "");
    }

    #[test]
    fn names_that_are_no_times_are_not_believed() {
        let at: Timestamp = "2026-11-21T04:32:10Z".parse().unwrap();
        assert_eq!(fine_moment("web.18e9f53424e4f4e9", at).unwrap().subsec_millisecond(), 789);
        assert_eq!(fine_moment("web.00000000deadbeef", at), None);
        assert_eq!(fine_moment("web", at), None);
    }

    #[test]
    fn programs_get_seconds() {
        let entries = entries(&refused());
        let report = report(
            ("certificate/web", "trace-04"),
            &entries,
            Some("Order web/web-1: too many"),
            "2026-11-21T04:42:29Z".parse().unwrap(),
        );
        assert_eq!(report["entries"].as_array().unwrap().len(), entries.len());
        assert_eq!(report["waitsFor"], "Order web/web-1: too many");
        insta::assert_json_snapshot!(stream(&entries).last().unwrap(), @r#"
        {
          "apiVersion": "kubectl-acme/v1alpha1",
          "count": 1,
          "firstTime": "2026-11-21T04:32:19Z",
          "issuance": 0,
          "kind": "TimelineEntry",
          "message": "The certificate request has failed to complete and will be retried: Failed to wait for order resource \"web-1-2726938748\" to become ready: order is in \"invalid\" state:",
          "object": {
            "kind": "Certificate",
            "name": "web"
          },
          "reason": "Failed",
          "secondsSinceLast": 0,
          "secondsSinceStart": 8,
          "sources": [
            "cert-manager-certificates-issuing"
          ],
          "time": "2026-11-21T04:32:19Z",
          "type": "Warning"
        }
        "#);
    }
}
