//! Progress while people wait: rows on a terminal, lines elsewhere.
//!
//! Time is an argument and nothing runs by itself: the waiting caller calls [`Progress::heartbeat`]
//! several times a second, and only then rows are drawn or lines written. Short waits are not
//! reported at all, and many objects only as a sum: a good run of a hundred names is a few lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use super::age::short;
use super::colour::Colour;
use super::escape::escape;
use super::event_log::EventLog;
use super::fold::{columns, cut, cut_middle, fold};
use super::palette::Ink;
use super::spinner::Spinner;
use super::table::paint;
use super::talk::MessageStream;
use super::wait::{Group, MAX_NAMES_LISTED, Wait, WaitEnd};
use crate::model::{Key, Kind, Time};

/// Most rows on a terminal, whatever the terminal's height.
const MAX_ROWS: usize = 16;
/// Most objects that are reported one by one; lines report the sum of more objects.
const MAX_SINGLE_WAITS: usize = 12;
/// Shortest life of a state that is reported; a shorter state is not.
const MIN_STATE_LIFE: SignedDuration = SignedDuration::from_millis(300);
/// Shortest time between two reports of the sum of many objects.
const SUM_PERIOD: SignedDuration = SignedDuration::from_secs(5);
/// Longest silence of the log while there are waits.
const MAX_SILENCE: SignedDuration = SignedDuration::from_mins(1);
/// Most sorts of waits that a line lists for one state.
const MAX_SORTS: usize = 4;
/// Most columns of a label in aligned rows.
const MAX_LABEL_COLUMNS: usize = 40;

/// Display of waits, each under the name of its object.
#[derive(Debug)]
pub struct Progress {
    talk: MessageStream,
    colour: Colour,
    spinner: Option<Spinner>,
    waits: BTreeMap<String, Followed>,
    /// Number of ended objects, by kind and state.
    ended: BTreeMap<(Kind, String), usize>,
    /// Start of the whole run, and the time limit in words.
    limit: Option<(Timestamp, String)>,
    events: EventLog,
    spoke: Option<Timestamp>,
    /// Time and text of the last report of the sum.
    summed: Option<(Timestamp, String)>,
}

#[derive(Debug)]
struct Followed {
    wait: Wait,
    changed: Timestamp,
    is_said: bool,
}

impl Progress {
    /// Shows progress by rows on a terminal that can draw over rows, else by lines; lines are also
    /// used if `talk` hides rows, since otherwise nothing at all would be reported.
    pub fn new(talk: MessageStream, is_terminal: bool, colour: Colour) -> Self {
        let spinner =
            (is_terminal && talk.takes_rows()).then(|| Spinner::on_stderr(&talk)).flatten();
        Self::drawing_to(talk, spinner, colour)
    }

    /// Shows progress by lines.
    pub fn lines(talk: MessageStream) -> Self {
        Self::drawing_to(talk, None, Colour::Off)
    }

    fn drawing_to(talk: MessageStream, spinner: Option<Spinner>, colour: Colour) -> Self {
        talk.show(spinner.as_ref().map(Spinner::bar));
        let (waits, ended, events) = (BTreeMap::new(), BTreeMap::new(), EventLog::default());
        let (limit, spoke, summed) = (None, None, None);
        Self { talk, colour, spinner, waits, ended, limit, events, spoke, summed }
    }

    /// Sets the start and the time limit of the whole run, with the limit's source: `10m (--timeout)`.
    #[must_use]
    pub fn limited(mut self, started: Timestamp, limit: String) -> Self {
        self.limit = Some((started, limit));
        self
    }

    /// Writes every step to `events` as well, for programs.
    #[must_use]
    pub fn with_events(mut self, events: EventLog) -> Self {
        self.events = events;
        self
    }

    /// Returns the log of steps for programs, which includes steps that people do not see.
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// Records the state of a wait.
    pub fn waiting(&mut self, name: &str, wait: Wait, now: Timestamp) {
        if let Some(object) = &wait.object {
            let key = Key::new(wait.kind, object.clone());
            self.events.step(
                &key,
                domain(wait.kind, &wait.label),
                (&wait.state, &wait.waits_for),
                now,
            );
        }
        let before = self.waits.get(name);
        let same = before.filter(|before| before.wait.says_the_same(&wait));
        let (changed, is_said) =
            same.map_or((now, false), |before| (before.changed, before.is_said));
        self.waits.insert(name.to_owned(), Followed { wait, changed, is_said });
        if self.spinner.is_none() && !self.are_many() {
            self.say_each(now);
        }
    }

    /// Removes a wait without a message.
    pub fn forget(&mut self, name: &str) {
        self.waits.remove(name);
    }

    /// Returns whether there is a wait under this name.
    pub fn is_waiting(&self, name: &str) -> bool {
        self.waits.contains_key(name)
    }

    /// Reports the end of a wait and removes the wait; the good ends of many waits are reported as a sum.
    pub fn done(&mut self, name: &str, end: &WaitEnd<'_>, now: Timestamp) {
        self.waits.remove(name);
        if let Some(object) = end.object {
            let key = Key::new(end.kind, object.clone());
            self.events.end(&key, domain(end.kind, end.label), (end.state, end.why), now);
        } else {
            self.events.message(&format!("{} {}", end.label, end.state), now);
        }
        *self.ended.entry((end.kind, end.state.to_owned())).or_default() += 1;
        if !end.is_good || !self.are_many() {
            // The rows drawn below the line no longer show this wait.
            if let Some(spinner) = &self.spinner {
                spinner.draw(&self.picture(now, spinner.size()));
            }
            let gap = if end.why.is_empty() { "" } else { ": " };
            self.say(&format!("{} {}{gap}{}", end.label, end.state, end.why), now);
        }
    }

    /// Writes a line; without a terminal the time comes first.
    pub fn line(&mut self, text: &str, now: Timestamp) {
        self.events.message(text, now);
        self.say(text, now);
    }

    fn say(&mut self, text: &str, now: Timestamp) {
        self.spoke = Some(now);
        match self.spinner {
            Some(_) => self.talk.line(text),
            None => self.talk.line(&format!("{} {text}", Time::new(now))),
        }
    }

    /// Writes a hint against an obstacle.
    pub fn hint(&mut self, text: &str, now: Timestamp) {
        self.events.message(&format!("hint: {text}"), now);
        self.spoke = Some(now);
        self.talk.labelled("hint", Ink::Cyan, text, self.colour);
    }

    /// Redraws the changed rows of a terminal. Without a terminal, reports the current waits, and
    /// after a minute of silence the waits that still last.
    pub fn heartbeat(&mut self, now: Timestamp) {
        if let Some(spinner) = &self.spinner {
            spinner.draw(&self.picture(now, spinner.size()));
            return;
        }
        if self.are_many() {
            self.say_sum(now);
        } else {
            self.say_each(now);
        }
        let spoke = *self.spoke.get_or_insert(now);
        let silent = now.duration_since(spoke) >= MAX_SILENCE;
        if silent && !self.waits.is_empty() {
            let text = self.still_waiting(now);
            self.say(&text, now);
        }
    }

    /// Removes the rows from the screen.
    pub fn finish(&mut self) {
        self.waits.clear();
        self.talk.show(None);
        self.spinner = None;
    }

    fn are_many(&self) -> bool {
        self.waits.len() + self.ended.values().sum::<usize>() > MAX_SINGLE_WAITS
    }

    fn say_each(&mut self, now: Timestamp) {
        let mut lines = Vec::new();
        for followed in self.waits.values_mut() {
            let has_settled = now.duration_since(followed.changed) >= MIN_STATE_LIFE;
            if followed.is_said || !(has_settled || followed.wait.is_obstacle) {
                continue;
            }
            followed.is_said = true;
            let Wait { label, state, waits_for, .. } = &followed.wait;
            lines.push(format!("{label} {state}{}: {waits_for}", followed.wait.until()));
        }
        for line in lines {
            self.say(&line, now);
        }
    }

    fn say_sum(&mut self, now: Timestamp) {
        let sum = self.sum(true);
        let is_time = |(said, before): &(Timestamp, String)| {
            *before != sum && now.duration_since(*said) >= SUM_PERIOD
        };
        let began = self.waits.values().map(|followed| followed.changed).min();
        let is_first = || began.is_some_and(|began| now.duration_since(began) >= MIN_STATE_LIFE);
        if self.summed.as_ref().map_or_else(is_first, is_time) {
            self.say(&sum, now);
            self.summed = Some((now, sum));
        }
    }

    /// Counts the objects of each kind and state, with the reasons for waiting if `with_reasons` is set.
    fn sum(&self, with_reasons: bool) -> String {
        let mut kinds: BTreeMap<Kind, (usize, Vec<String>)> = BTreeMap::new();
        for ((kind, state), count) in &self.ended {
            let (total, parts) = kinds.entry(*kind).or_default();
            *total += count;
            parts.push(format!("{count} {state}"));
        }
        for (kind, state, groups) in self.groups() {
            let (total, parts) = kinds.entry(kind).or_default();
            let count: usize = groups.iter().map(|group| group.labels.len()).sum();
            *total += count;
            let mut part = format!("{count} {state}");
            if with_reasons {
                let mut reasons: Vec<String> =
                    groups.iter().take(MAX_SORTS).map(Group::in_words).collect();
                if groups.len() > MAX_SORTS {
                    reasons.push(format!("and {} more kinds of waits", groups.len() - MAX_SORTS));
                }
                let _written = write!(part, " ({})", reasons.join("; "));
            }
            parts.push(part);
        }
        let sums = kinds.iter().map(|(kind, (total, parts))| {
            let noun = if *total == 1 { kind.singular() } else { kind.plural() };
            format!("{total} {noun}: {}", parts.join(", "))
        });
        sums.collect::<Vec<_>>().join("; ")
    }

    /// Groups waits by kind and state, and by the reason for waiting, with the largest group first.
    fn groups(&self) -> Vec<(Kind, &str, Vec<Group<'_>>)> {
        let mut all: BTreeMap<(Kind, &str), BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
        for Followed { wait, .. } in self.waits.values() {
            let of_state = all.entry((wait.kind, &wait.state)).or_default();
            of_state.entry(&wait.in_short).or_default().push(&wait.label);
        }
        let groups = all.into_iter().map(|((kind, state), reasons)| {
            let group = |(waits_for, mut labels): (_, Vec<_>)| {
                labels.sort_unstable();
                Group { waits_for, labels }
            };
            let mut groups: Vec<_> = reasons.into_iter().map(group).collect();
            groups.sort_by_key(|group| std::cmp::Reverse(group.labels.len()));
            (kind, state, groups)
        });
        groups.collect()
    }

    /// Renders the rows of a terminal: the sum in the first row, below as much as fits.
    fn picture(&self, now: Timestamp, (height, width): (usize, usize)) -> String {
        if self.waits.is_empty() {
            return String::new();
        }
        let room = height.saturating_sub(3).clamp(1, MAX_ROWS);
        let gone = self.time_gone(now).map(|gone| format!("; {gone}")).unwrap_or_default();
        let first = escape(&format!("{}{gone}", self.sum(false)));
        // The spinner stands before the first row.
        let mut picture = vec![cut(&first, width.saturating_sub(3))];
        let whole = self.whole_rows(width);
        let rows = if whole.len() <= room { whole } else { self.short_rows(room, width) };
        picture.extend(rows.iter().map(|row| cut(row, width.saturating_sub(1))));
        picture.join("\n")
    }

    /// Renders each wait with its whole reason, folded.
    fn whole_rows(&self, width: usize) -> Vec<String> {
        let mut rows = Vec::new();
        for wait in self.sort_waits() {
            let since = Time::new(wait.since);
            let state = self.colour_state(&wait.state);
            rows.push(format!("  {} {state} since {since}{}", escape(&wait.label), wait.until()));
            let reason = fold(&escape(&wait.waits_for), width.saturating_sub(5));
            rows.extend(reason.into_iter().map(|line| format!("    {line}")));
        }
        rows
    }

    /// Renders one row for each wait if the rows fit, else one row for each sort of wait.
    fn short_rows(&self, room: usize, width: usize) -> Vec<String> {
        let mut rows = Vec::new();
        if self.waits.len() <= room {
            let all = self.sort_waits();
            let label = all
                .iter()
                .map(|wait| columns(&wait.label))
                .max()
                .unwrap_or(0)
                .min(MAX_LABEL_COLUMNS);
            for wait in all {
                let gap = " ".repeat(label.saturating_sub(columns(&wait.label)));
                let state = self.colour_state(&wait.state);
                let head = format!("  {}{gap}   {state}   ", escape(&wait.label));
                let waits_for = escape(&wait.waits_for.replace('\n', " "));
                let left = width.saturating_sub(columns(&head) + 1);
                rows.push(head + &cut_middle(&waits_for, left));
            }
            return rows;
        }
        for (_, state, groups) in self.groups() {
            for group in groups {
                let state = self.colour_state(state);
                rows.push(format!("  {state}   {}", escape(&group.in_words())));
            }
        }
        if rows.len() > room {
            let left = rows.len() - (room - 1);
            rows.truncate(room - 1);
            rows.push(format!("  and {left} more kinds of waits"));
        }
        rows
    }

    /// Describes the elapsed time and the time limit of the run: `12s of 10m (--timeout)`.
    fn time_gone(&self, now: Timestamp) -> Option<String> {
        let (started, limit) = self.limit.as_ref()?;
        Some(format!("{} of {limit}", short(now.duration_since(*started))))
    }

    fn colour_state(&self, state: &str) -> String {
        let state = escape(state);
        if self.colour == Colour::On { paint(&state) } else { state }
    }

    fn sort_waits(&self) -> Vec<&Wait> {
        let mut all: Vec<&Wait> = self.waits.values().map(|followed| &followed.wait).collect();
        all.sort_by(|a, b| (a.kind, &a.label).cmp(&(b.kind, &b.label)));
        all
    }

    /// Renders the message of the heartbeat, which names three waits and counts the rest.
    fn still_waiting(&self, now: Timestamp) -> String {
        let gone = self.time_gone(now).map(|gone| format!(", {gone}")).unwrap_or_default();
        if self.are_many() {
            return format!("still waiting{gone}: {}", self.sum(true));
        }
        let mut parts: Vec<String> = Vec::new();
        for wait in self.sort_waits().into_iter().take(MAX_NAMES_LISTED) {
            let length = short(now.duration_since(wait.since));
            parts.push(format!("{} for {length}{}: {}", wait.label, wait.until(), wait.bare()));
        }
        if self.waits.len() > MAX_NAMES_LISTED {
            parts.push(format!("and {} more", self.waits.len() - MAX_NAMES_LISTED));
        }
        format!("still waiting{gone}: {}", parts.join("; "))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Returns the domain that a Challenge has as its label; `None` for other kinds.
fn domain(kind: Kind, label: &str) -> Option<&str> {
    (kind == Kind::Challenge).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::talk::Memory;

    fn at(time: &str) -> Timestamp {
        format!("2026-11-21T{time}Z").parse().unwrap()
    }

    fn wait(label: &str, state: &str, waits_for: &str) -> Wait {
        Wait {
            kind: Kind::Challenge,
            object: None,
            label: label.to_owned(),
            state: state.to_owned(),
            waits_for: waits_for.to_owned(),
            in_short: waits_for.replace(label, "…"),
            is_obstacle: false,
            since: at("04:30:25"),
            until: None,
        }
    }

    fn ended<'a>(label: &'a str, state: &'a str, is_good: bool) -> WaitEnd<'a> {
        WaitEnd { kind: Kind::Challenge, object: None, label, state, why: "", is_good }
    }

    fn limited(progress: Progress) -> Progress {
        progress.limited(at("04:30:25"), "10m (--timeout)".to_owned())
    }

    /// Returns the output of a run without a terminal.
    fn check(run: impl FnOnce(&mut Progress)) -> String {
        let err = Memory::default();
        let mut progress = limited(Progress::lines(MessageStream::new(Box::new(err.clone()))));
        run(&mut progress);
        progress.finish();
        err.text()
    }

    #[test]
    fn a_pipe_gets_one_line_for_each_change_that_lasts() {
        let text = check(|progress| {
            let wait = |state, waits_for| wait("www.example.com", state, waits_for);
            progress.waiting("c", wait("queued", "waiting for its turn"), at("04:30:25"));
            progress.heartbeat(at("04:30:25"));
            progress.waiting("c", wait("pending", "port 80 is closed"), at("04:30:25"));
            progress.heartbeat(at("04:30:26"));
            progress.waiting("c", wait("pending", "port 80 is closed"), at("04:30:27"));
            progress.heartbeat(at("04:30:28"));
            progress.waiting("c", wait("pending", "waiting for the CA"), at("04:30:29"));
            progress.heartbeat(at("04:30:29"));
            progress.done("c", &ended("www.example.com", "valid", true), at("04:30:29"));
            let failed = WaitEnd { why: "no answer", ..ended("example.com", "invalid", false) };
            progress.done("d", &failed, at("04:30:30"));
        });
        insta::assert_snapshot!(text, @"
        2026-11-21T04:30:26Z www.example.com pending: port 80 is closed
        2026-11-21T04:30:29Z www.example.com valid
        2026-11-21T04:30:30Z example.com invalid: no answer
        ");
    }

    #[test]
    fn after_a_minute_of_silence_a_pipe_hears_what_is_still_waited_for() {
        let text = check(|progress| {
            let until = Some(at("05:00:00"));
            let held_up =
                Wait { until, is_obstacle: true, ..wait("web", "held up", "too many orders") };
            progress.waiting("web", held_up, at("04:30:25"));
            for name in ["a", "b", "c"] {
                progress.waiting(
                    name,
                    wait(name, "pending", "Waiting for port 80"),
                    at("04:31:30"),
                );
            }
            for time in ["04:30:26", "04:31:24", "04:31:26", "04:31:27"] {
                progress.heartbeat(at(time));
            }
        });
        insta::assert_snapshot!(text, @"
        2026-11-21T04:30:25Z web held up until 2026-11-21T05:00:00Z: too many orders
        2026-11-21T04:31:26Z still waiting, 61s of 10m (--timeout): a for 61s: port 80; b for 61s: port 80; c for 61s: port 80; and 1 more
        ");
    }

    /// Adds forty names: some valid, most waiting for the same reason.
    fn forty(progress: &mut Progress, now: Timestamp) {
        for number in 10..50 {
            let name = format!("n{number}.example.com");
            let why = if number < 46 { "connection refused" } else { "no address" };
            progress.waiting(&name, wait(&name, "pending", &format!("{name}: {why}")), now);
        }
    }

    #[test]
    fn of_many_a_pipe_gets_the_sum_now_and_then() {
        let text = check(|progress| {
            forty(progress, at("04:30:25"));
            progress.heartbeat(at("04:30:25"));
            progress.heartbeat(at("04:30:26"));
            for number in 10..13 {
                let name = format!("n{number}.example.com");
                progress.done(&name, &ended(&name, "valid", true), at("04:30:27"));
            }
            progress.heartbeat(at("04:30:28"));
            progress.heartbeat(at("04:30:31"));
            progress.heartbeat(at("04:30:40"));
            progress.done("x", &ended("x.example.com", "invalid", false), at("04:30:41"));
        });
        insta::assert_snapshot!(text, @"
        2026-11-21T04:30:26Z 40 challenges: 40 pending (…: connection refused: n10.example.com, n11.example.com, n12.example.com and 33 more; …: no address: n46.example.com, n47.example.com, n48.example.com and 1 more)
        2026-11-21T04:30:31Z 40 challenges: 3 valid, 37 pending (…: connection refused: n13.example.com, n14.example.com, n15.example.com and 30 more; …: no address: n46.example.com, n47.example.com, n48.example.com and 1 more)
        2026-11-21T04:30:41Z x.example.com invalid
        ");
    }

    /// Returns the rows on a terminal of that size.
    fn picture(size: (usize, usize), colour: Colour, fill: impl FnOnce(&mut Progress)) -> String {
        let talk = MessageStream::new(Box::new(Memory::default()));
        let mut progress = limited(Progress::drawing_to(talk, None, colour));
        fill(&mut progress);
        progress.picture(at("04:30:37"), size)
    }

    #[test]
    fn a_terminal_shows_each_reason_whole_where_that_fits() {
        let fill = |progress: &mut Progress| {
            let reason = "Waiting for DNS-01 challenge propagation: 2 of 4 nameservers answer";
            progress.waiting("b", wait("www.example.com", "pending", reason), at("04:30:25"));
            progress.waiting(
                "a",
                wait("*.example.com", "queued", "waiting for its turn"),
                at("04:30:25"),
            );
        };
        insta::assert_snapshot!(picture((24, 60), Colour::Off, fill), @"
        2 challenges: 1 pending, 1 queued; 12s of 10m (--timeout)
          *.example.com queued since 2026-11-21T04:30:25Z
            waiting for its turn
          www.example.com pending since 2026-11-21T04:30:25Z
            Waiting for DNS-01 challenge propagation: 2 of 4
            nameservers answer
        ");
        insta::assert_snapshot!(picture((6, 60), Colour::Off, fill), @"
        2 challenges: 1 pending, 1 queued; 12s of 10m (--timeout)
          *.example.com     queued   waiting for its turn
          www.example.com   pending   Waiting f… nameservers answer
        ");
        let coloured = picture((24, 60), Colour::On, fill);
        assert!(coloured.contains("\u{1b}[33mpending\u{1b}[0m since"), "{coloured:?}");
    }

    #[test]
    fn forty_names_are_summed_up_by_what_they_wait_for() {
        let text = picture((24, 100), Colour::Off, |progress| forty(progress, at("04:30:25")));
        insta::assert_snapshot!(text, @"
        40 challenges: 40 pending; 12s of 10m (--timeout)
          pending   …: connection refused: n10.example.com, n11.example.com, n12.example.com and 33 more
          pending   …: no address: n46.example.com, n47.example.com, n48.example.com and 1 more
        ");
        let text = picture((5, 100), Colour::Off, |progress| {
            forty(progress, at("04:30:25"));
            for name in ["x", "y"] {
                progress.waiting(name, wait(name, "queued", name), at("04:30:25"));
            }
        });
        assert!(text.ends_with("\n  and 2 more kinds of waits"), "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
    }

    #[test]
    fn nothing_is_shown_once_nothing_is_waited_for() {
        let text = picture((24, 80), Colour::Off, |progress| {
            progress.waiting("a", wait("a", "pending", "x"), at("04:30:25"));
            progress.forget("a");
            assert!(!progress.is_waiting("a"));
        });
        assert_eq!(text, "");
    }

    #[test]
    fn words_of_others_steer_no_terminal() {
        let rude = "\u{1b}[2J\u{9b}31m";
        let fill = |progress: &mut Progress| {
            progress.waiting("a", wait(rude, rude, rude), at("04:30:25"));
        };
        for size in [(24, 80), (4, 80)] {
            assert!(!picture(size, Colour::On, fill).contains(['\u{1b}', '\u{9b}']));
        }
    }
}
