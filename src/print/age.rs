//! Ages in kubectl's short form.

use jiff::{SignedDuration, Timestamp};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the age at `now` of an event at the moment `at`; `<unknown>` if `at` is `None`.
pub fn age(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map_or_else(|| "<unknown>".to_owned(), |at| short(now.duration_since(at)))
}

/// Returns the time from `now` to a moment: `expired` if the moment is past, empty if the moment is `None`.
pub fn until(at: Option<Timestamp>, now: Timestamp) -> String {
    match at.map(|at| at.duration_since(now)) {
        None => String::new(),
        Some(left) if left.is_positive() => short(left),
        Some(_) => "expired".to_owned(),
    }
}

/// Writes a length of time as kubectl does: two units for small multiples of the larger unit, else one unit.
///
/// A negative length below two seconds counts as zero, since clocks differ; a longer negative length is `<invalid>`.
pub fn short(length: SignedDuration) -> String {
    let seconds = length.as_secs();
    let two = |unit: i64, name: &str, part: i64, part_name: &str| {
        let rest = seconds % unit / part;
        let head = format!("{}{name}", seconds / unit);
        if rest == 0 { head } else { format!("{head}{rest}{part_name}") }
    };
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(MINUTE, "m", 1, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(HOUR, "h", MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(DAY, "d", HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(YEAR, "y", DAY, "d"),
        s => format!("{}y", s / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seconds: i64, expected: &str) {
        assert_eq!(short(SignedDuration::from_secs(seconds)), expected, "{seconds} s");
    }

    #[test]
    fn ages_are_as_short_as_kubectls() {
        check(0, "0s");
        check(22, "22s");
        check(119, "119s");
        check(120, "2m");
        check(310, "5m10s");
        check(599, "9m59s");
        check(605, "10m");
        check(3 * HOUR - 1, "179m");
        check(3 * HOUR, "3h");
        check(3 * HOUR + 4 * MINUTE + 59, "3h4m");
        check(8 * HOUR - 1, "7h59m");
        check(8 * HOUR + 30 * MINUTE, "8h");
        check(47 * HOUR, "47h");
        check(2 * DAY, "2d");
        check(2 * DAY + 3 * HOUR, "2d3h");
        check(8 * DAY + 5 * HOUR, "8d");
        check(38 * DAY, "38d");
        check(2 * YEAR - 1, "729d");
        check(2 * YEAR, "2y");
        check(2 * YEAR + 10 * DAY, "2y10d");
        check(9 * YEAR + 10 * DAY, "9y");
    }

    #[test]
    fn the_future_is_invalid_and_a_second_of_it_is_now() {
        check(-1, "0s");
        check(-2, "<invalid>");
        check(-DAY, "<invalid>");
    }

    #[test]
    fn parts_of_a_second_are_cut_towards_now() {
        assert_eq!(short(SignedDuration::from_millis(1999)), "1s");
        assert_eq!(short(SignedDuration::from_millis(-1999)), "0s");
    }

    #[test]
    fn an_unknown_moment_has_an_unknown_age() {
        assert_eq!(age(None, Timestamp::UNIX_EPOCH), "<unknown>");
        assert_eq!(age(Some(Timestamp::UNIX_EPOCH), Timestamp::UNIX_EPOCH), "0s");
    }
}
