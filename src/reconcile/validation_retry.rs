//! Challenge: when an answer is offered to the CA again, and when that is given up.
//!
//! A CA may validate again by itself, or only when it is sent the answer again (RFC 8555 §8.2): step-ca, Caddy, acmeeh
//! and serles validate once at each POST and leave the challenge pending. An error in a challenge that is not over
//! proves that a validation has ended. Without an error the CA may still be at work: Boulder and Pebble show nothing
//! until they are done, and a second POST could cost a second failed validation. So nothing is sent again to a silent
//! public CA (all of them end each validation by themselves), nor to a CA that reports work (`processing`, no error).
//!
//! Moments count from when this process first saw the challenge accepted: a later process starts anew.

use jiff::{SignedDuration, Timestamp};

use super::pauses::Polled;
use crate::model::cause::Cause;
use crate::model::memory::Memory;
use crate::model::{Challenge, Problem};

/// First pause after a failed validation; each further one is as long as all of the time before.
const FAILED_PAUSE: SignedDuration = SignedDuration::from_secs(2);
/// Period in which answers are sent again to a CA that reports that it does not see them.
const FAILED_WITHIN: SignedDuration = SignedDuration::from_secs(16);
/// First pause after an answer without a reaction of the CA.
const SILENT_PAUSE: SignedDuration = SignedDuration::from_secs(7);
/// Period in which answers are sent again to a CA that reports nothing.
const SILENT_WITHIN: SignedDuration = SignedDuration::from_secs(45);
/// Longest wait for a result of such a CA.
const SILENT_END: SignedDuration = SignedDuration::from_secs(90);

/// Facts of one process about a validation that it follows, which are not stored; another process starts anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// First time the Challenge was seen accepted; `None` before, and if answers are sent once only.
    pub accepted_since: Option<Timestamp>,
    /// Last time this process sent the CA an answer of the same order, if it sent one.
    pub order_accepted_last: Option<Timestamp>,
    /// Whether the CA reported last that it is at work on the validation.
    pub is_at_work: bool,
    /// Whether the CA is known to end every validation by itself.
    pub is_ended_by_ca: bool,
}

/// Decision about an accepted Challenge that the CA has not settled.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Retry {
    /// Does nothing: the CA is at work, as far as is known.
    Nothing,
    /// Acts from this moment on.
    At(Timestamp),
    /// Runs the self-check, and sends the answer to the CA again if it is seen.
    Now,
    /// Takes this problem as the CA's final result.
    GiveUp(Box<Problem>),
}

/// Returns the error that the CA has shown in a challenge, if the reason is about one.
pub(super) fn validation_error<'a>(
    challenge: &Challenge,
    memory: &'a Memory,
) -> Option<&'a Problem> {
    match memory.cause.as_ref()?.of(&challenge.status.reason)? {
        Cause::Validation(problem) => Some(problem),
        Cause::Denied(_)
        | Cause::NoIngress
        | Cause::Provider(_)
        | Cause::Refused(_)
        | Cause::Seen(_) => None,
    }
}

/// Decides what to do about a Challenge that was accepted at `accepted_at` and is not over.
pub(super) fn next_retry(
    challenge: &Challenge,
    memory: &Memory,
    accepted_at: Timestamp,
    (followed, polled): (&Followed, Option<Polled>),
    now: Timestamp,
) -> Retry {
    let Some(since) = followed.accepted_since else { return Retry::Nothing };
    let after = |at: Timestamp, pause| at.saturating_add(pause).unwrap_or(at);
    let named = polled.and_then(|polled| polled.retry_after).max(memory.next_try);
    let named = named.filter(|at| *at > now);
    let gone = accepted_at.duration_since(since).max(SignedDuration::ZERO);
    if let Some(problem) = validation_error(challenge, memory) {
        let due = after(accepted_at, FAILED_PAUSE.max(gone));
        // If the CA validates again by itself, the result of that has to be read before anything else.
        let was_read = |at: Timestamp| polled.is_some_and(|polled| polled.at >= at);
        if memory.next_try.is_some_and(|at| at <= now && at > accepted_at && !was_read(at)) {
            return Retry::Nothing;
        }
        return match (named, after(since, FAILED_WITHIN)) {
            (Some(named), end) => Retry::At(named.max(due.min(end))),
            (None, end) if end <= now => Retry::GiveUp(Box::new(problem.clone())),
            (None, _) if due <= now => Retry::Now,
            (None, end) => Retry::At(due.min(end)),
        };
    }
    let was_read = polled.is_some_and(|polled| polled.at > accepted_at);
    if followed.is_ended_by_ca || followed.is_at_work || !was_read {
        return Retry::Nothing;
    }
    let due = after(accepted_at, SILENT_PAUSE.max(gone / 2));
    let due = Some(due).filter(|due| *due <= after(since, SILENT_WITHIN));
    match (named, due, after(since, SILENT_END)) {
        (Some(named), due, end) => Retry::At(named.max(due.unwrap_or(end))),
        (None, Some(due), _) if due <= now => Retry::Now,
        (None, Some(due), _) => Retry::At(due),
        (None, None, end) if end <= now => Retry::GiveUp(Box::new(silence(since, now))),
        (None, None, end) => Retry::At(end),
    }
}

fn silence(since: Timestamp, now: Timestamp) -> Problem {
    let seconds = now.duration_since(since).as_secs();
    let detail = format!(
        "the CA leaves the authorization pending without a word, {seconds} s after it was first given the answer"
    );
    Problem { detail, ..Problem::default() }
}

#[cfg(test)]
mod tests {
    use super::super::challenge::{
        Action, Observed, Outcome, Readiness, SeenChallenge, next_action, record,
    };
    use super::*;
    use crate::model::challenge::FINALIZER;
    use crate::model::memory::Holder;
    use crate::model::{Duration, Order, State};
    use crate::reconcile::record_values::RecordState;
    use crate::reconcile::testing::{at, challenge, order};
    use crate::reconcile::{Refusal, Wake};

    /// A CA that answers as `said` does to each answer and each reading, and a process that was started anew at some seconds.
    struct Ca<'a> {
        /// Replies to an answer and to a reading of the authorization, each at a second.
        posted: &'a dyn Fn(i64) -> SeenChallenge,
        read: &'a dyn Fn(i64) -> SeenChallenge,
        sees: &'a dyn Fn(i64) -> bool,
        ends_itself: bool,
        restarts: &'a [i64],
    }

    fn pending() -> SeenChallenge {
        SeenChallenge { state: Some(State::Pending), ..SeenChallenge::default() }
    }

    fn failing() -> SeenChallenge {
        let kind = "urn:ietf:params:acme:error:connection".to_owned();
        let problem = Problem { kind, detail: "no way".to_owned(), ..Problem::default() };
        SeenChallenge { problem: Some(problem), ..pending() }
    }

    const QUIET: Ca<'static> = Ca {
        posted: &|_| pending(),
        read: &|_| pending(),
        sees: &|_| true,
        ends_itself: false,
        restarts: &[],
    };

    /// Runs a Challenge that was accepted at second 0 for so many seconds; returns when answers were given, when the authorization was
    /// read, and the Challenge.
    fn run(ca: &Ca<'_>, seconds: i64) -> (Vec<i64>, Vec<i64>, Challenge) {
        let mut challenge = challenge("www.example.com").running(true).build();
        challenge.metadata.finalizers = vec![FINALIZER.to_owned()];
        challenge.status.state = Some(State::Pending);
        challenge.status.presented = true;
        challenge.status.presented_at = Some(at(0).into());
        let order: Order =
            order("web-1-42").state(State::Pending).authorization("www.example.com").build();
        let keep = |challenge: &mut Challenge, outcome: Outcome, second: i64| {
            let new = record(challenge, outcome, at(second));
            new.memory.write(Holder::Challenge, &mut challenge.metadata.annotations);
            challenge.status = new.status;
        };
        keep(&mut challenge, Outcome::Accepted((ca.posted)(0)), 0);
        let (mut posts, mut reads) = (vec![0], Vec::new());
        let (mut polled, mut since, mut is_at_work) = (None, at(0), false);
        for second in 0..=seconds {
            if ca.restarts.contains(&second) {
                (polled, since, is_at_work) = (None, at(second), false);
            }
            let mut visible = None;
            for _ in 0..10 {
                let observed = Observed {
                    order: Some(&order),
                    contended: false,
                    beside: false,
                    polled,
                    answer_stands: true,
                    by_hand: false,
                    visible: visible.as_ref(),
                    lingering: None,
                    record: &RecordState::Complete(None),
                    followed: Followed {
                        accepted_since: Some(since),
                        order_accepted_last: None,
                        is_at_work,
                        is_ended_by_ca: ca.ends_itself,
                    },
                };
                match next_action(&challenge, &observed, at(second)) {
                    Action::SelfCheck if (ca.sees)(second) => visible = Some(Readiness::Ready),
                    Action::SelfCheck => {
                        let reason = "connection refused".to_owned();
                        visible = Some(Readiness::NotYet { reason, cause: None });
                    }
                    Action::Report(why, cause) => {
                        keep(&mut challenge, Outcome::NotVisible(why, cause), second);
                        break;
                    }
                    Action::Accept => {
                        posts.push(second);
                        keep(&mut challenge, Outcome::Accepted((ca.posted)(second)), second);
                        visible = None;
                    }
                    Action::FetchState => {
                        reads.push(second);
                        let said = (ca.read)(second);
                        polled = Some(Polled { at: at(second), retry_after: said.retry_after });
                        is_at_work = said.is_at_work;
                        keep(&mut challenge, Outcome::StateFetched(said), second);
                    }
                    Action::Fail(problem) => {
                        keep(&mut challenge, Outcome::Unproven(problem), second);
                        return (posts, reads, challenge);
                    }
                    Action::Wait(Wake::At(moment)) => {
                        assert!(moment > at(second), "a wait for what is past");
                        break;
                    }
                    Action::Abandon
                    | Action::Adopt
                    | Action::AddFinalizer
                    | Action::CleanUp
                    | Action::Defer(_)
                    | Action::HoldBack(_)
                    | Action::Present
                    | Action::Settle
                    | Action::TakeState(_)
                    | Action::Wait(_) => break,
                }
            }
            if challenge.has_ended() {
                break;
            }
        }
        (posts, reads, challenge)
    }

    #[test]
    fn a_ca_that_looks_once_for_each_answer_is_given_it_again_and_again_and_its_words_are_the_end()
    {
        let (posts, _, failed) =
            run(&Ca { posted: &|_| failing(), read: &|_| failing(), ..QUIET }, 100);
        assert_eq!(posts, [0, 2, 4, 8]);
        assert_eq!(failed.status.state, Some(State::Invalid));
        assert_eq!(
            failed.status.reason,
            "Error accepting authorization: acme: authorization error for www.example.com: \
             urn:ietf:params:acme:error:connection: no way"
        );
        // What is seen by nobody is not given again, and ends as soon.
        let (posts, _, failed) = run(
            &Ca { posted: &|_| failing(), read: &|_| failing(), sees: &|_| false, ..QUIET },
            16,
        );
        assert_eq!((posts, failed.status.state), (vec![0], Some(State::Invalid)));
        let said = failed.status.reason;
        assert!(said.ends_with("no way"), "{said}");
    }

    #[test]
    fn an_answer_that_is_seen_later_is_taken() {
        let valid = || SeenChallenge { state: Some(State::Valid), ..SeenChallenge::default() };
        let posted = |second| if second < 3 { failing() } else { valid() };
        let (posts, reads, done) = run(&Ca { posted: &posted, ..QUIET }, 100);
        assert_eq!((posts, reads.len()), (vec![0, 2, 4], 0));
        assert_eq!(done.status.state, Some(State::Valid));
        let sees = |second| second >= 6;
        let (posts, _, done) =
            run(&Ca { posted: &posted, read: &|_| failing(), sees: &sees, ..QUIET }, 100);
        assert_eq!((posts, done.status.state), (vec![0, 6], Some(State::Valid)));
    }

    #[test]
    fn an_error_that_only_the_authorization_shows_counts_as_well() {
        let (posts, reads, failed) = run(&Ca { read: &|_| failing(), ..QUIET }, 100);
        assert_eq!((reads[0], failed.status.state), (5, Some(State::Invalid)));
        assert!(posts.len() > 1 && posts[1] == 5, "{posts:?}");
    }

    #[test]
    fn a_ca_that_says_nothing_is_given_the_answer_again_after_a_longer_while() {
        let (posts, reads, failed) = run(&QUIET, 100);
        assert_eq!(posts, [0, 7, 14, 21, 32]);
        assert_eq!(reads[0], 5);
        assert_eq!(failed.status.state, Some(State::Invalid));
        let said = failed.status.reason;
        assert!(said.contains("without a word, 90 s after"), "{said}");
        // The fourth look ends it at acmeeh.
        let invalid = || SeenChallenge { state: Some(State::Invalid), ..failing() };
        let posted = |second| if second < 20 { pending() } else { invalid() };
        let (posts, _, failed) = run(&Ca { posted: &posted, ..QUIET }, 100);
        assert_eq!((posts, failed.status.state), (vec![0, 7, 14, 21], Some(State::Invalid)));
    }

    #[test]
    fn a_ca_that_works_or_that_ends_by_itself_is_left_alone() {
        let (posts, _, waits) = run(&Ca { ends_itself: true, ..QUIET }, 600);
        assert_eq!((posts, waits.status.state), (vec![0], Some(State::Pending)));
        let working = || SeenChallenge { is_at_work: true, ..pending() };
        let (posts, reads, waits) = run(&Ca { read: &|_| working(), ..QUIET }, 600);
        assert_eq!((posts, waits.status.state), (vec![0], Some(State::Pending)));
        assert!(reads.len() < 40, "{reads:?}");
    }

    #[test]
    fn a_moment_that_the_ca_names_is_waited_for() {
        let later = |second: i64, by: i64, said: SeenChallenge| SeenChallenge {
            retry_after: Some(at(second + by)),
            ..said
        };
        // Short ones do not move the next answer on and on.
        let read = |second| later(second, 3, pending());
        let (posts, ..) = run(&Ca { read: &read, ..QUIET }, 30);
        assert_eq!(posts[..3], [0, 8, 16]);
        let read = |second| later(second, 40, pending());
        let (posts, ..) = run(&Ca { read: &read, ..QUIET }, 50);
        assert_eq!(posts, [0, 45]);
        // It looks by itself then.
        let posted = |second| later(second, 30, failing());
        let (posts, _, failed) = run(&Ca { posted: &posted, read: &|_| failing(), ..QUIET }, 29);
        assert_eq!((posts, failed.status.state), (vec![0], Some(State::Pending)));
        let (posts, reads, failed) =
            run(&Ca { posted: &posted, read: &|_| failing(), ..QUIET }, 31);
        assert_eq!((posts, reads), (vec![0], vec![30]));
        assert_eq!(failed.status.state, Some(State::Invalid));
    }

    #[test]
    fn another_process_begins_anew() {
        let (posts, ..) =
            run(&Ca { posted: &|_| failing(), read: &|_| failing(), restarts: &[15], ..QUIET }, 15);
        assert_eq!(posts, [0, 2, 4, 8, 15]);
        let (posts, _, failed) =
            run(&Ca { posted: &|_| failing(), read: &|_| failing(), restarts: &[15], ..QUIET }, 40);
        assert_eq!((posts.len(), failed.status.state), (8, Some(State::Invalid)));
    }

    #[test]
    fn the_error_of_a_challenge_is_shown_in_every_state_and_goes_with_it() {
        let (_, _, waits) = run(&Ca { posted: &|_| failing(), read: &|_| failing(), ..QUIET }, 1);
        assert_eq!(
            waits.status.reason,
            "The CA reports: urn:ietf:params:acme:error:connection: no way"
        );
        let memory = Memory::read(Holder::Challenge, &waits.metadata.annotations);
        assert_eq!(validation_error(&waits, &memory), failing().problem.as_ref());
        let new = record(&waits, Outcome::StateFetched(pending()), at(2));
        assert_eq!((new.status.reason.as_str(), new.status.state), ("", Some(State::Pending)));
        let valid = SeenChallenge { state: Some(State::Valid), ..failing() };
        let new = record(&waits, Outcome::StateFetched(valid), at(2));
        assert_eq!(new.status.reason, "Successfully authorized domain");
        let cause = new.memory.cause.as_ref().and_then(|about| about.of(&new.status.reason));
        assert_eq!(cause, None);
        // A refused reading is no error of the challenge.
        let problem = Box::new(Problem { status: 429, ..Problem::default() });
        let new = record(&waits, Outcome::Refused(Refusal::Until(problem, at(60))), at(2));
        let refused = Challenge { status: new.status, ..waits };
        assert_eq!(validation_error(&refused, &new.memory), None);
    }

    #[test]
    fn a_wait_that_stands_in_for_the_self_check_is_over_when_the_answer_is_given_again() {
        let (_, _, mut waits) =
            run(&Ca { posted: &|_| failing(), read: &|_| failing(), ..QUIET }, 1);
        waits.spec.solver.wait_instead_of_self_check = Some(Duration::from_secs(1));
        let order = order("o").state(State::Pending).authorization("www.example.com").build();
        let observed = Observed {
            order: Some(&order),
            contended: false,
            beside: false,
            polled: None,
            answer_stands: true,
            by_hand: false,
            visible: None,
            lingering: None,
            record: &RecordState::Complete(None),
            followed: Followed { accepted_since: Some(at(0)), ..Followed::default() },
        };
        assert_eq!(next_action(&waits, &observed, at(2)), Action::Accept);
    }
}
