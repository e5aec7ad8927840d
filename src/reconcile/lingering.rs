//! Time for which the CA's resolver may cache a record's texts from before our text was added.
//!
//! An apex and its wildcard share a record, one after the other; so do names whose aliases lead to one place. A
//! resolver that looked up the first text caches the answer for the record's TTL, and does not see the second text
//! before (RFC 1035 §3.2.1).
//!
//! Acceptance waits for the cache if the CA looked up the record for another challenge before our text was there. Some
//! resolvers cache a TTL of 0 for seconds: acceptance waits for that as well. No wait is needed if both texts are at
//! the record from the beginning (`record_values`).

use jiff::{SignedDuration, Timestamp};

use crate::model::Challenge;

/// Precision of moments: a status has no fractions of a second, and a resolver's clock may have none either.
const TIMESTAMP_PRECISION: SignedDuration = SignedDuration::from_secs(1);

/// Shortest time, in seconds, that resolvers cache a record, whatever its TTL (knot-resolver 5.6, CoreDNS 1.12 cache).
const MIN_CACHE_SECONDS: u32 = 5;

/// Period in which the CA may have looked up a record for another challenge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlierLookup {
    /// Moment at which the other challenge was accepted, if known.
    pub accepted_at: Option<Timestamp>,
    /// Moment by which the CA had its answer; `None` while the CA may still look the record up, or if unknown.
    pub finished_at: Option<Timestamp>,
}

impl EarlierLookup {
    /// Returns the last moment of the lookup before our own text was there.
    fn at_the_latest(&self, presented_at: Timestamp) -> Timestamp {
        let ours = presented_at.saturating_add(TIMESTAMP_PRECISION).unwrap_or(presented_at);
        let begun = self.accepted_at.map_or(ours, |at| at.max(ours));
        self.finished_at.map_or(begun, |at| at.min(begun))
    }
}

/// Old answer that the CA's resolver may cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedRecord {
    /// Absolute name of the record.
    pub record: String,
    /// TTL of the record, in seconds.
    pub ttl: u32,
    /// Moment at which the answer is gone from every cache.
    pub until: Timestamp,
}

impl CachedRecord {
    /// Returns the cached answer that a text put up at `presented_at` waits for; `None` if no resolver may cache any.
    pub fn of(
        record: &str,
        ttl: u32,
        looks: impl IntoIterator<Item = EarlierLookup>,
        presented_at: Timestamp,
    ) -> Option<Self> {
        let last = looks.into_iter().map(|look| look.at_the_latest(presented_at)).max()?;
        let kept =
            SignedDuration::from_secs(ttl.max(MIN_CACHE_SECONDS).into()) + TIMESTAMP_PRECISION;
        let until = last.saturating_add(kept).ok()?;
        Some(Self { record: record.to_owned(), ttl, until })
    }

    /// Returns the sentence kept in `status.reason`.
    pub fn reason(&self, challenge: &Challenge) -> String {
        let Self { record, ttl, until } = self;
        let kind = challenge.spec.kind;
        let kept = if *ttl < MIN_CACHE_SECONDS {
            format!("{MIN_CACHE_SECONDS} s, although the record's TTL is {ttl}")
        } else {
            format!("{ttl} s, the record's TTL")
        };
        format!(
            "Waiting until {until:.0} before accepting {kind} challenge: the CA has asked for {record} before, and its \
             resolver may keep that answer for {kept}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::testing::{at, challenge};

    /// Until when a text waits that was put up at second 100, with a TTL of a minute.
    #[track_caller]
    fn check(looks: &[(Option<i64>, Option<i64>)], expected: Option<i64>) {
        let looks = looks.iter().map(|(accepted, finished)| EarlierLookup {
            accepted_at: accepted.map(at),
            finished_at: finished.map(at),
        });
        let lingering = CachedRecord::of("_acme-challenge.example.com.", 60, looks, at(100));
        assert_eq!(lingering.map(|lingering| lingering.until), expected.map(at));
    }

    #[test]
    fn what_the_ca_saw_before_is_waited_out() {
        check(&[], None);
        check(&[(Some(80), Some(90))], Some(151));
        check(&[(Some(80), Some(90)), (Some(10), Some(20))], Some(151));
        check(&[(None, Some(90))], Some(151));
    }

    #[test]
    fn a_look_whose_end_is_not_known_may_have_gone_on_until_our_text_was_there() {
        check(&[(Some(80), None)], Some(162));
        check(&[(None, None)], Some(162));
        check(&[(Some(120), None)], Some(181));
        check(&[(Some(80), Some(500))], Some(162));
    }

    #[test]
    fn a_ttl_of_nothing_is_kept_for_some_seconds() {
        let look = EarlierLookup { accepted_at: Some(at(80)), finished_at: Some(at(90)) };
        for ttl in [0, 1, 5] {
            let kept =
                CachedRecord::of("_acme-challenge.example.com.", ttl, [look], at(100)).unwrap();
            assert_eq!(kept.until, at(96), "{ttl}");
        }
        let kept = CachedRecord::of("_acme-challenge.example.com.", 0, [look], at(100)).unwrap();
        let reason = kept.reason(&challenge("example.com").dns01().build());
        assert!(reason.ends_with("for 5 s, although the record's TTL is 0"), "{reason}");
    }

    #[test]
    fn the_reason_says_what_is_waited_for_and_until_when() {
        let lingering =
            CachedRecord::of("_acme-challenge.example.com.", 60, [EarlierLookup::default()], at(9));
        assert_eq!(
            lingering.unwrap().reason(&challenge("example.com").dns01().build()),
            "Waiting until 2027-01-15T08:01:11Z before accepting DNS-01 challenge: the CA has asked for \
             _acme-challenge.example.com. before, and its resolver may keep that answer for 60 s, the record's TTL"
        );
    }
}
