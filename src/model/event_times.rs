//! Times at which an Event was recorded. A repeated Event of core/v1 keeps the first and the last time in whole seconds
//! and counts the rest; Events that this program repeats keep more times in an annotation, read and written here only.

use jiff::Timestamp;

use super::common::Time;
use super::event::Event;

/// Annotation with the times of a repeated Event, oldest first, divided by commas: each moment with the Event's
/// revision at that time; the last revision is in the metadata.
const EVENT_TIMES: &str = "kubectl-acme/event-told";
/// Most times that are kept in the annotation.
const MAX_KEPT_TIMES: usize = 32;

/// Precision of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePrecision {
    /// To the microsecond or better.
    Fine,
    /// To the second: somewhere in that second.
    Second,
}

/// One time at which an Event was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occasion {
    /// Moment of the recording.
    pub at: Timestamp,
    /// Precision of the moment.
    pub grain: TimePrecision,
    /// Store's revision of the Event at that time, if known.
    pub revision: Option<u64>,
}

impl Event {
    /// Returns the times at which the Event was recorded, as far as known, oldest first; empty if no moment is known.
    pub fn occasions(&self) -> Vec<Occasion> {
        let stamps = [self.first_timestamp, self.last_timestamp];
        let Some(first) = stamps[0].or(stamps[1]).map(Time::timestamp) else { return Vec::new() };
        let last = stamps[1].map_or(first, Time::timestamp);
        let mut occasions = self.read_annotation();
        if occasions.first().is_none_or(|known| is_before(first, known.at)) {
            occasions.insert(0, first_occasion(&self.metadata.name, first));
        }
        let is_told_again = self.count.is_some_and(|count| count > 1) && occasions.len() == 1;
        if is_told_again || occasions.iter().all(|known| is_before(known.at, last)) {
            let revision = None;
            occasions.push(Occasion { at: last, grain: TimePrecision::Second, revision });
        }
        if let Some(last) = occasions.last_mut() {
            last.revision = self.metadata.resource_version.parse().ok();
        }
        occasions
    }

    /// Records that the Event happened again.
    pub fn tell_again(&mut self, now: Timestamp) {
        let mut occasions = self.occasions();
        occasions.push(Occasion { at: now, grain: TimePrecision::Fine, revision: None });
        let surplus = occasions.len().saturating_sub(MAX_KEPT_TIMES);
        let told: Vec<String> =
            occasions.drain(surplus..).map(|occasion| text(&occasion)).collect();
        self.metadata.annotations.insert(EVENT_TIMES.to_owned(), told.join(","));
        self.count = Some(self.count.unwrap_or(1).saturating_add(1));
        self.last_timestamp = self.last_timestamp.max(Some(now.into()));
    }

    fn read_annotation(&self) -> Vec<Occasion> {
        let told = self.metadata.annotations.get(EVENT_TIMES);
        told.iter().flat_map(|told| told.split(',')).filter_map(parse).collect()
    }
}

fn text(occasion: &Occasion) -> String {
    let at = match occasion.grain {
        TimePrecision::Fine => format!("{:.6}", occasion.at),
        TimePrecision::Second => format!("{:.0}", occasion.at),
    };
    match occasion.revision {
        Some(revision) => format!("{at}@{revision}"),
        None => at,
    }
}

fn parse(text: &str) -> Option<Occasion> {
    let (at, revision) = text.split_once('@').unwrap_or((text, ""));
    let grain = if at.contains('.') { TimePrecision::Fine } else { TimePrecision::Second };
    Some(Occasion { at: at.parse().ok()?, grain, revision: revision.parse().ok() })
}

/// Returns the first time. client-go names Events `OBJECT.NANOSECONDS` in hexadecimal; used if equal to the written second.
fn first_occasion(name: &str, second: Timestamp) -> Occasion {
    let fine = name.rsplit_once('.').and_then(|(_, suffix)| {
        Timestamp::from_nanosecond(i128::from_str_radix(suffix, 16).ok()?).ok()
    });
    let (at, grain) = match fine.filter(|at| at.as_second() == second.as_second()) {
        Some(at) => (at, TimePrecision::Fine),
        None => (second, TimePrecision::Second),
    };
    Occasion { at, grain, revision: None }
}

/// Reports whether a moment is earlier than another, by the second.
fn is_before(earlier: Timestamp, later: Timestamp) -> bool {
    earlier.as_second() < later.as_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-11-21T{text}Z").parse().unwrap()
    }

    /// One told at that moment, in the way its name says when.
    fn told_at(text: &str) -> Event {
        let mut event = Event { count: Some(1), ..Event::default() };
        event.metadata.name = format!("web.{:016x}", at(text).as_nanosecond());
        event.first_timestamp = Some(at(text).into());
        event.last_timestamp = event.first_timestamp;
        event
    }

    fn check(event: &Event, expected: &[&str]) {
        let occasions: Vec<String> = event.occasions().iter().map(text).collect();
        assert_eq!(occasions, expected);
    }

    #[test]
    fn the_name_tells_the_moment_of_the_first_time() {
        check(&told_at("04:32:10.123456"), &["2026-11-21T04:32:10.123456Z"]);
        for name in ["web", "web.ev-1", "web.00000000deadbeef"] {
            let mut event = told_at("04:32:10.5");
            name.clone_into(&mut event.metadata.name);
            check(&event, &["2026-11-21T04:32:10Z"]);
        }
        check(&Event::default(), &[]);
    }

    #[test]
    fn each_further_time_is_remembered_with_the_revision_it_had() {
        let mut event = told_at("04:32:10.5");
        "7".clone_into(&mut event.metadata.resource_version);
        event.tell_again(at("04:32:10.75"));
        "9".clone_into(&mut event.metadata.resource_version);
        event.tell_again(at("05:00:00.000001"));
        "12".clone_into(&mut event.metadata.resource_version);
        let last = "2026-11-21T05:00:00.000001Z@12";
        check(&event, &["2026-11-21T04:32:10.500000Z@7", "2026-11-21T04:32:10.750000Z@9", last]);
        assert_eq!((event.count, event.last_timestamp), (Some(3), Some(at("05:00:00").into())));
    }

    #[test]
    fn what_others_count_up_has_a_first_and_a_last_time() {
        let mut event = told_at("04:32:10.5");
        event.count = Some(3);
        check(&event, &["2026-11-21T04:32:10.500000Z", "2026-11-21T04:32:10Z"]);
        event.last_timestamp = Some(at("04:35:10").into());
        check(&event, &["2026-11-21T04:32:10.500000Z", "2026-11-21T04:35:10Z"]);
        event.tell_again(at("04:36:00.25"));
        let times = ["2026-11-21T04:32:10.500000Z", "2026-11-21T04:35:10Z"];
        check(&event, &[times[0], times[1], "2026-11-21T04:36:00.250000Z"]);
        // cert-manager counts it up once more, and knows nothing of our annotation.
        event.last_timestamp = Some(at("04:37:00").into());
        let last = "2026-11-21T04:37:00Z";
        check(&event, &[times[0], times[1], "2026-11-21T04:36:00.250000Z", last]);
    }

    #[test]
    fn the_first_and_the_newest_times_are_remembered() {
        let mut event = told_at("04:00:00.5");
        for second in 1..=100_i64 {
            event.tell_again(at("04:00:00.5") + jiff::SignedDuration::from_secs(second));
        }
        let occasions = event.occasions();
        assert_eq!((occasions.len(), occasions[0].at), (MAX_KEPT_TIMES + 1, at("04:00:00.5")));
        assert_eq!(occasions[1].at, at("04:01:09.5"));
        assert_eq!(event.count, Some(101));
    }

    #[test]
    fn a_clock_that_goes_back_takes_no_time_away() {
        let mut event = told_at("04:32:10.5");
        event.tell_again(at("03:00:00.5"));
        check(&event, &["2026-11-21T04:32:10.500000Z", "2026-11-21T03:00:00.500000Z"]);
        assert_eq!(event.last_timestamp, Some(at("04:32:10").into()));
    }
}
