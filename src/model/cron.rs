//! Five-field cron expressions: when a renewal window opens.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// Number of days that are searched: a leap day that must fall on a given weekday comes back within 40 years.
const SEARCH_DAYS: i32 = 366 * 40;

/// Names of the months, from January.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Names of the days, from Sunday.
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A parsed expression: one bit per minute, hour, day of the month, month and day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether both day fields are restricted: a match of either is enough then.
    either_day: bool,
}

/// One field: its bounds, and names that may stand for numbers.
struct CronField {
    what: &'static str,
    low: u32,
    high: u32,
    names: &'static [&'static str],
}

const FIELDS: [CronField; 5] = [
    CronField { what: "minute", low: 0, high: 59, names: &[] },
    CronField { what: "hour", low: 0, high: 23, names: &[] },
    CronField { what: "day of the month", low: 1, high: 31, names: &[] },
    CronField { what: "month", low: 1, high: 12, names: &MONTHS },
    CronField { what: "day of the week", low: 0, high: 7, names: &WEEKDAYS },
];

impl Cron {
    /// Parses `minute hour day month weekday` with `*`, lists, ranges, steps and English names, or `@daily` and its like.
    ///
    /// # Errors
    /// Fails with the field that is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        let parts: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts[..] else {
            return Err(format!("\"{text}\" has {} fields, not 5", parts.len()));
        };
        let [of_minute, of_hour, of_day, of_month, of_weekday] = &FIELDS;
        let weekdays = of_weekday.bits(weekday)?;
        Ok(Self {
            minutes: of_minute.bits(minute)?,
            hours: of_hour.bits(hour)?,
            days: of_day.bits(day)?,
            months: of_month.bits(month)?,
            weekdays: (weekdays | weekdays >> 7) & 0x7f, // 7 is Sunday as well
            either_day: !day.starts_with('*') && !weekday.starts_with('*'),
        })
    }

    /// Returns the latest opening at or before a moment.
    pub fn at_or_before(&self, moment: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = zone.to_datetime(moment);
        self.days_from(local.date(), -1).find_map(|date| {
            self.times_of(date).rev().find_map(|time| {
                let opening = zone.to_timestamp(time).ok()?;
                (opening <= moment).then_some(opening)
            })
        })
    }

    /// Returns the earliest opening after a moment.
    pub fn after(&self, moment: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = zone.to_datetime(moment);
        self.days_from(local.date(), 1).find_map(|date| {
            self.times_of(date).find_map(|time| {
                let opening = zone.to_timestamp(time).ok()?;
                (opening > moment).then_some(opening)
            })
        })
    }

    fn days_from(&self, start: Date, step: i32) -> impl Iterator<Item = Date> {
        let dates = (0..SEARCH_DAYS).map_while(move |n| start.checked_add((n * step).days()).ok());
        dates.filter(|date| self.is_day(*date))
    }

    fn is_day(&self, date: Date) -> bool {
        let has = |bits: u64, at: i8| bits >> at & 1 == 1;
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        has(self.months, date.month())
            && if self.either_day { day || weekday } else { day && weekday }
    }

    fn times_of(&self, date: Date) -> impl DoubleEndedIterator<Item = DateTime> {
        let has = |bits: u64, at: i8| bits >> at & 1 == 1;
        let (hours, minutes) = (self.hours, self.minutes);
        let hours = (0..24).filter(move |hour| has(hours, *hour));
        hours.flat_map(move |hour| {
            let minutes = (0..60).filter(move |minute| has(minutes, *minute));
            minutes.map(move |minute| date.at(hour, minute, 0, 0))
        })
    }
}

impl CronField {
    fn bits(&self, text: &str) -> Result<u64, String> {
        text.split(',').try_fold(0, |bits, part| Ok(bits | self.part(part)?))
    }

    /// Parses `*`, `5` or `1-5`, each with an optional `/step`; `5/10` runs from 5 to the end.
    fn part(&self, part: &str) -> Result<u64, String> {
        let wrong = || format!("\"{part}\" is no {}", self.what);
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse::<u32>().ok().filter(|s| *s > 0)),
            None => (part, Some(1)),
        };
        let step = step.ok_or_else(wrong)?;
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (Some(self.low), Some(self.high)),
            Some((first, last)) => (self.number(first), self.number(last)),
            None if part.contains('/') => (self.number(range), Some(self.high)),
            None => (self.number(range), self.number(range)),
        };
        let (Some(first), Some(last)) = (first, last) else { return Err(wrong()) };
        if first > last {
            return Err(wrong());
        }
        Ok((first..=last).step_by(step as usize).fold(0, |bits, n| bits | 1 << n))
    }

    fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().zip(self.low..).find(|(n, _)| text.eq_ignore_ascii_case(n));
        let number = named.map_or_else(|| text.parse().ok(), |(_, number)| Some(number))?;
        (self.low..=self.high).contains(&number).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the openings around a moment.
    fn check(expression: &str, moment: &str, before: Option<&str>, after: Option<&str>) {
        let cron = Cron::parse(expression).unwrap();
        let moment: Timestamp = moment.parse().unwrap();
        let at = |text: Option<&str>| text.map(|t| t.parse::<Timestamp>().unwrap());
        let zone = TimeZone::UTC;
        assert_eq!(cron.at_or_before(moment, &zone), at(before), "{expression} before {moment}");
        assert_eq!(cron.after(moment, &zone), at(after), "{expression} after {moment}");
    }

    #[test]
    fn openings_are_found_on_both_sides_of_a_moment() {
        let noon = "2026-11-21T12:00:00Z"; // a Saturday
        for (expression, before, after) in [
            ("0 3 * * *", "2026-11-21T03:00:00Z", "2026-11-22T03:00:00Z"),
            ("0 12 * * *", noon, "2026-11-22T12:00:00Z"),
            ("*/15 * * * *", noon, "2026-11-21T12:15:00Z"),
            ("30 1 * * 1-5", "2026-11-20T01:30:00Z", "2026-11-23T01:30:00Z"),
            ("30 1 * * MON,Wed", "2026-11-18T01:30:00Z", "2026-11-23T01:30:00Z"),
            ("0 0 * * 7", "2026-11-15T00:00:00Z", "2026-11-22T00:00:00Z"),
            ("0 0 1 * *", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
            ("0 0 29 2 *", "2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("0 0 13 * 5", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z"),
            ("5/20 0 1 jan-mar/2 *", "2026-03-01T00:45:00Z", "2027-01-01T00:05:00Z"),
            ("@weekly", "2026-11-15T00:00:00Z", "2026-11-22T00:00:00Z"),
        ] {
            check(expression, noon, Some(before), Some(after));
        }
        check("0 0 31 2 *", noon, None, None);
    }

    #[test]
    fn what_is_no_expression_names_the_field() {
        for (text, why) in [
            ("* * * *", "\"* * * *\" has 4 fields, not 5"),
            ("60 * * * *", "\"60\" is no minute"),
            ("* 9-5 * * *", "\"9-5\" is no hour"),
            ("* * 0 * *", "\"0\" is no day of the month"),
            ("* * * smarch *", "\"smarch\" is no month"),
            ("* * * * */0", "\"*/0\" is no day of the week"),
        ] {
            assert_eq!(Cron::parse(text), Err(why.to_owned()));
        }
    }
}
