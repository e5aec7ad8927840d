//! Progress while people wait: spinners on a terminal, one line per change elsewhere.
//!
//! Time is an argument and nothing runs by itself: whoever waits calls [`Progress::heartbeat`] several times a second.

use std::collections::BTreeMap;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::{SignedDuration, Timestamp};

use super::age::short;
use super::escape::escape;
use super::talk::Talk;
use super::terminal;
use crate::model::Time;

/// Lines of spinners at most; what does not fit is counted in one more.
const ROWS: usize = 12;
/// How long a log stays silent while something is waited for.
const SILENCE: SignedDuration = SignedDuration::from_mins(1);

/// Where something stands and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The state in one word: `pending`.
    pub state: String,
    /// What is waited for, `waiting for a free slot`, or what stands in the way, in its own words.
    pub waits_for: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when it is waited for; absent where nobody set an end.
    pub until: Option<Timestamp>,
}

/// Shows what is waited for, by the name of the thing (`challenge/web-1-123-456`).
#[derive(Debug)]
pub struct Progress {
    talk: Talk,
    screen: Option<Screen>,
    waits: BTreeMap<String, Wait>,
    spoke: Option<Timestamp>,
}

#[derive(Debug)]
struct Screen {
    spinners: MultiProgress,
    rows: Vec<ProgressBar>,
}

impl Progress {
    /// Shows progress by spinners on a terminal that can draw over them, else by lines: where spinners would be hidden, nothing
    /// at all would be said.
    pub fn new(talk: Talk, is_terminal: bool) -> Self {
        let draws = is_terminal && talk.takes_spinners() && terminal::is_capable();
        let target = draws.then(ProgressDrawTarget::stderr);
        Self::drawing_to(talk, target.filter(|target| !target.is_hidden()))
    }

    fn drawing_to(talk: Talk, target: Option<ProgressDrawTarget>) -> Self {
        let spinners = target.map(MultiProgress::with_draw_target);
        talk.show(spinners.clone());
        let screen = spinners.map(|spinners| Screen { spinners, rows: Vec::new() });
        Self { talk, screen, waits: BTreeMap::new(), spoke: None }
    }

    /// Notes where something stands. Without a terminal, a line is written when state or reason are new.
    pub fn waiting(&mut self, name: &str, wait: Wait, now: Timestamp) {
        let before = self.waits.get(name);
        let is_new = before.is_none_or(|b| b.state != wait.state || b.waits_for != wait.waits_for);
        if is_new && self.screen.is_none() {
            let until = until(&wait);
            self.line(&format!("{name} {}{until}: {}", wait.state, wait.waits_for), now);
        }
        self.waits.insert(name.to_owned(), wait);
        self.draw(now);
    }

    /// Waits for something no more, without a word.
    pub fn forget(&mut self, name: &str, now: Timestamp) {
        if self.waits.remove(name).is_some() {
            self.draw(now);
        }
    }

    /// Tells whether something is waited for.
    pub fn is_waiting(&self, name: &str) -> bool {
        self.waits.contains_key(name)
    }

    /// Says how something ended, and waits for it no more.
    pub fn done(&mut self, name: &str, outcome: &str, now: Timestamp) {
        self.waits.remove(name);
        self.line(&format!("{name} {outcome}"), now);
        self.draw(now);
    }

    /// Says something; without a terminal the time comes first.
    pub fn line(&mut self, text: &str, now: Timestamp) {
        self.spoke = Some(now);
        match self.screen {
            Some(_) => self.talk.line(text),
            None => self.talk.line(&format!("{} {text}", Time::new(now))),
        }
    }

    /// Turns the spinners; without a terminal, says after a minute of silence what is still waited for.
    pub fn heartbeat(&mut self, now: Timestamp) {
        if self.screen.is_some() {
            self.draw(now);
            return;
        }
        let silent = self.spoke.is_none_or(|spoke| now.duration_since(spoke) >= SILENCE);
        if silent && !self.waits.is_empty() {
            let text = still_waiting(&self.waits, now);
            self.line(&text, now);
        }
    }

    /// Takes the spinners off the screen.
    pub fn finish(&mut self) {
        self.waits.clear();
        self.talk.show(None);
        if let Some(screen) = self.screen.take() {
            for row in screen.rows {
                row.finish_and_clear();
            }
        }
    }

    fn draw(&mut self, now: Timestamp) {
        let Some(screen) = &mut self.screen else { return };
        let lines = lines(&self.waits, now);
        while screen.rows.len() > lines.len() {
            if let Some(row) = screen.rows.pop() {
                row.finish_and_clear();
                screen.spinners.remove(&row);
            }
        }
        while screen.rows.len() < lines.len() {
            screen.rows.push(screen.spinners.add(ProgressBar::new_spinner().with_style(style())));
        }
        for (row, line) in screen.rows.iter().zip(lines) {
            row.set_message(line);
            row.tick();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// What a terminal shows: who, in which state, since when, until when, and for what.
fn lines(waits: &BTreeMap<String, Wait>, now: Timestamp) -> Vec<String> {
    let shown = if waits.len() > ROWS { ROWS - 1 } else { ROWS };
    let mut lines: Vec<String> = waits
        .iter()
        .take(shown)
        .map(|(name, wait)| {
            let (state, length) = (&wait.state, length(wait, now));
            // Each has one row.
            let waits_for = wait.waits_for.replace('\n', " ");
            escape(&format!("{name} {state} {length}: {waits_for}"))
        })
        .collect();
    if waits.len() > shown {
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for wait in waits.values().skip(shown) {
            *states.entry(&wait.state).or_default() += 1;
        }
        let counts = states.iter().map(|(state, count)| format!("{count} {state}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        lines.push(escape(&format!("and {} more: {counts}", waits.len() - shown)));
    }
    lines
}

/// The heartbeat names three, and counts the rest.
fn still_waiting(waits: &BTreeMap<String, Wait>, now: Timestamp) -> String {
    const NAMED: usize = 3;
    let named = waits.iter().take(NAMED).map(|(name, wait)| {
        // cert-manager's reasons begin with a capital.
        let waits_for = ["Waiting for ", "waiting for "]
            .iter()
            .find_map(|start| wait.waits_for.strip_prefix(start))
            .unwrap_or(&wait.waits_for);
        format!("{name} {}: {waits_for}", length(wait, now))
    });
    let mut parts: Vec<String> = named.collect();
    if waits.len() > NAMED {
        parts.push(format!("and {} more", waits.len() - NAMED));
    }
    format!("still waiting: {}", parts.join("; "))
}

fn length(wait: &Wait, now: Timestamp) -> String {
    let length = short(now.duration_since(wait.since));
    format!("for {length} (since {}{})", Time::new(wait.since), until(wait))
}

fn until(wait: &Wait) -> String {
    wait.until.map(|until| format!(" until {}", Time::new(until))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io;

    use indicatif::TermLike;

    use super::*;
    use crate::print::talk::Memory;

    fn at(time: &str) -> Timestamp {
        format!("2026-11-21T{time}Z").parse().unwrap()
    }

    fn wait(state: &str, waits_for: &str) -> Wait {
        let (since, until) = (at("04:30:25"), Some(at("04:40:25")));
        Wait { state: state.to_owned(), waits_for: waits_for.to_owned(), since, until }
    }

    /// What a run without a terminal writes.
    fn check(run: impl FnOnce(&mut Progress)) -> String {
        let err = Memory::default();
        let mut progress = Progress::new(Talk::new(Box::new(err.clone())), false);
        run(&mut progress);
        progress.finish();
        err.text()
    }

    #[test]
    fn a_pipe_gets_one_line_for_each_change() {
        let text = check(|progress| {
            progress.waiting(
                "challenge/web-1",
                wait("pending", "waiting for port 80 to answer"),
                at("04:30:25"),
            );
            progress.waiting(
                "challenge/web-1",
                wait("pending", "waiting for port 80 to answer"),
                at("04:30:27"),
            );
            progress.waiting(
                "challenge/web-1",
                wait("processing", "waiting for the CA"),
                at("04:30:29"),
            );
            progress.done("challenge/web-1", "valid", at("04:30:31"));
        });
        insta::assert_snapshot!(text, @"
        2026-11-21T04:30:25Z challenge/web-1 pending until 2026-11-21T04:40:25Z: waiting for port 80 to answer
        2026-11-21T04:30:29Z challenge/web-1 processing until 2026-11-21T04:40:25Z: waiting for the CA
        2026-11-21T04:30:31Z challenge/web-1 valid
        ");
    }

    #[test]
    fn what_stands_in_the_way_is_told_in_its_own_words() {
        let text = check(|progress| {
            let reason = "cannot write to /srv/www: permission denied";
            progress.waiting("challenge/web-1", wait("pending", reason), at("04:30:25"));
            progress.heartbeat(at("04:31:26"));
        });
        insta::assert_snapshot!(text, @"
        2026-11-21T04:30:25Z challenge/web-1 pending until 2026-11-21T04:40:25Z: cannot write to /srv/www: permission denied
        2026-11-21T04:31:26Z still waiting: challenge/web-1 for 61s (since 2026-11-21T04:30:25Z until 2026-11-21T04:40:25Z): cannot write to /srv/www: permission denied
        ");
    }

    #[test]
    fn after_a_minute_of_silence_a_pipe_hears_what_is_still_waited_for() {
        let text = check(|progress| {
            progress.heartbeat(at("04:30:20"));
            progress.waiting(
                "challenge/web-1",
                wait("pending", "waiting for port 80 to answer"),
                at("04:30:25"),
            );
            progress.heartbeat(at("04:31:24"));
            progress.heartbeat(at("04:31:25"));
            progress.heartbeat(at("04:31:26"));
            progress.heartbeat(at("04:32:25"));
        });
        insta::assert_snapshot!(text, @"
        2026-11-21T04:30:25Z challenge/web-1 pending until 2026-11-21T04:40:25Z: waiting for port 80 to answer
        2026-11-21T04:31:25Z still waiting: challenge/web-1 for 60s (since 2026-11-21T04:30:25Z until 2026-11-21T04:40:25Z): port 80 to answer
        2026-11-21T04:32:25Z still waiting: challenge/web-1 for 2m (since 2026-11-21T04:30:25Z until 2026-11-21T04:40:25Z): port 80 to answer
        ");
    }

    #[test]
    fn a_heartbeat_names_three_and_counts_the_rest() {
        let waits = (0..5)
            .map(|n| (format!("challenge/{n}"), wait("pending", "waiting for its slot")))
            .collect();
        insta::assert_snapshot!(still_waiting(&waits, at("04:31:25")), @"still waiting: challenge/0 for 60s (since 2026-11-21T04:30:25Z until 2026-11-21T04:40:25Z): its slot; challenge/1 for 60s (since 2026-11-21T04:30:25Z until 2026-11-21T04:40:25Z): its slot; challenge/2 for 60s (since 2026-11-21T04:30:25Z until 2026-11-21T04:40:25Z): its slot; and 2 more");
    }

    #[test]
    fn a_spinner_says_what_for_since_when_and_until_when() {
        let waits = [
            (
                "challenge/web-1".to_owned(),
                wait(
                    "pending",
                    "Waiting for DNS-01 challenge propagation: 2 of 4 nameservers answer",
                ),
            ),
            (
                "order/web".to_owned(),
                Wait { until: None, ..wait("ready", "waiting for the CA to issue") },
            ),
        ];
        let lines = lines(&waits.into(), at("04:30:37")).join("\n");
        insta::assert_snapshot!(lines, @"
        challenge/web-1 pending for 12s (since 2026-11-21T04:30:25Z until 2026-11-21T04:40:25Z): Waiting for DNS-01 challenge propagation: 2 of 4 nameservers answer
        order/web ready for 12s (since 2026-11-21T04:30:25Z): waiting for the CA to issue
        ");
    }

    #[test]
    fn a_hundred_challenges_fit_on_a_terminal() {
        let state = |n| if n % 2 == 0 { "pending" } else { "processing" };
        let waits = (0..100).map(|n| (format!("challenge/{n:02}"), wait(state(n), "x"))).collect();
        let lines = lines(&waits, at("04:31:25"));
        assert_eq!(lines.len(), ROWS);
        assert_eq!(lines[ROWS - 1], "and 89 more: 44 pending, 45 processing");
    }

    /// A terminal that keeps what is written to it.
    #[derive(Debug)]
    struct Paper(Memory);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(&format!("{text}\n"))
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            io::Write::write_all(&mut self.0.clone(), text.as_bytes())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_terminal_sees_spinners_and_plain_lines_above_them() {
        let (err, screen) = (Memory::default(), Memory::default());
        let target = ProgressDrawTarget::term_like(Box::new(Paper(screen.clone())));
        let mut progress = Progress::drawing_to(Talk::new(Box::new(err.clone())), Some(target));
        progress.waiting(
            "challenge/web-1",
            wait("pending", "waiting for port 80 to answer"),
            at("04:30:25"),
        );
        progress.heartbeat(at("04:31:26"));
        progress.done("challenge/web-1", "valid", at("04:31:27"));
        progress.finish();
        assert!(
            screen.text().contains("challenge/web-1 pending for 0s (since"),
            "{}",
            screen.text()
        );
        assert_eq!(err.text(), "challenge/web-1 valid\n");
    }
}
