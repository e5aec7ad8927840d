//! Queue of the objects to reconcile: queued, running and sleeping jobs, and changes that arrive meanwhile.

use std::collections::{BTreeMap, HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use crate::model::{Key, Kind};
use crate::reconcile::Wake;

/// Longest rest of an object after a reconcile, in which changes of other objects do not start another one.
const REST_MAX: SignedDuration = SignedDuration::from_millis(30);
/// Largest number of steps of one object in a row; then it pauses, so that no bug asks a CA without end.
pub(super) const STEPS_IN_A_ROW_MAX: u32 = 100;

/// Period, in started jobs, after which one job farthest from a certificate is started.
const FARTHEST_PERIOD: u64 = 8;

/// Job: index of a controller, and an object.
pub(super) type Job = (usize, Key);

/// News about an object; the greater value counts more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum News {
    /// No news.
    #[default]
    Nothing,
    /// Another object has changed: many may change together.
    Neighbour,
    /// The object has changed as a reconcile may change it.
    Progress,
    /// The object has changed as no reconcile does: others want something else of it, or it is gone.
    Wish,
}

/// Reconcile that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedStep {
    /// News about the object that arrived during the reconcile.
    pub(super) heard: News,
    /// End of the rest, in which changes of others wait: three times as long as the reconcile took. An Order of a
    /// hundred Challenges changes with each of them, and reads all of them.
    rest: Timestamp,
}

/// Phase of a job.
#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    /// Waits for news.
    #[default]
    Idle,
    /// Starts as soon as there is room.
    Queued,
    /// Is being reconciled.
    Running { since: Timestamp, heard: News },
    /// Is reconciled again at this moment.
    Asleep(Alarm),
}

/// Moment, and a number that keeps alarms of the same moment apart.
type Alarm = (Timestamp, u64);

/// State of one job.
#[derive(Debug, Default)]
struct Work {
    phase: Phase,
    /// Failed reconciles in a row.
    failures: u32,
    /// Reconciles in a row in which another writer was quicker.
    races: u32,
    /// Steps in a row.
    steps: u32,
}

/// All jobs with a state.
#[derive(Debug, Default)]
pub(super) struct WorkQueue {
    work: HashMap<Job, Work>,
    queue: Queue,
    alarms: BTreeMap<Alarm, Job>,
    serial: u64,
    rests: HashMap<Job, Timestamp>,
}

/// Jobs to start, by nearness to a certificate, and within each sort oldest first. Work that has begun is completed
/// before more is begun: of thousands of Certificates the first is ready at once, not when the last has its order.
#[derive(Debug, Default)]
struct Queue {
    sorts: [VecDeque<Job>; 4],
    started: u64,
}

impl Queue {
    fn push(&mut self, job: Job) {
        let sort = match job.1.kind {
            Kind::Challenge | Kind::Issuer | Kind::ClusterIssuer => 0,
            Kind::Order => 1,
            Kind::CertificateRequest => 2,
            _ => 3,
        };
        self.sorts[sort].push_back(job);
    }

    fn pop(&mut self) -> Option<Job> {
        self.started += 1;
        let mut sorts = self.sorts.iter_mut();
        if self.started.is_multiple_of(FARTHEST_PERIOD) {
            sorts.rev().find_map(VecDeque::pop_front)
        } else {
            sorts.find_map(VecDeque::pop_front)
        }
    }
}

impl WorkQueue {
    /// Returns when the next job wakes by itself.
    pub(super) fn next_alarm(&self) -> Option<Timestamp> {
        self.alarms.keys().next().map(|(at, _)| *at)
    }

    /// Returns whether a job is running, or will run by itself.
    pub(super) fn goes_on(&self, job: &Job) -> bool {
        let phase = self.work.get(job).map(|work| work.phase);
        matches!(phase, Some(Phase::Running { .. } | Phase::Asleep(_)))
    }

    /// Queues a job because of news about its object; during a rest, news about others is delayed.
    pub(super) fn hear(&mut self, job: Job, news: News, now: Timestamp) {
        let work = self.work.entry(job.clone()).or_default();
        if let Phase::Running { heard, .. } = &mut work.phase {
            *heard = news.max(*heard);
            return;
        }
        let rest = self.rests.get(&job).copied().filter(|rest| *rest > now);
        match (rest.filter(|_| news == News::Neighbour), work.phase) {
            (None, _) => self.enqueue(job),
            (Some(_), Phase::Queued) => {}
            (Some(rest), Phase::Asleep((at, _))) if at <= rest => {}
            (Some(rest), _) => self.sleep_until(job, rest),
        }
    }

    /// Queues the jobs whose alarm is due.
    pub(super) fn wake_due(&mut self, now: Timestamp) {
        while let Some(entry) = self.alarms.first_entry().filter(|entry| entry.key().0 <= now) {
            let job = entry.get().clone();
            self.enqueue(job);
        }
    }

    /// Lets a job sleep until this moment, unless news arrives.
    pub(super) fn sleep_until(&mut self, job: Job, at: Timestamp) {
        self.serial += 1;
        let alarm = (at, self.serial);
        self.enter(&job, Phase::Asleep(alarm));
        self.alarms.insert(alarm, job);
    }

    /// Returns the jobs to start, those nearest to a certificate first, as many as there is room for.
    pub(super) fn start(&mut self, room: usize, now: Timestamp) -> Vec<Job> {
        let jobs: Vec<Job> = std::iter::from_fn(|| self.queue.pop()).take(room).collect();
        for job in &jobs {
            self.enter(job, Phase::Running { since: now, heard: News::Nothing });
        }
        jobs
    }

    /// Ends a reconcile; the caller says next how its job goes on.
    pub(super) fn ended(&mut self, job: &Job, now: Timestamp) -> EndedStep {
        match self.enter(job, Phase::Idle) {
            Phase::Running { since, heard } => {
                EndedStep { heard, rest: now + (now.duration_since(since) * 3).min(REST_MAX) }
            }
            Phase::Idle | Phase::Queued | Phase::Asleep(_) => {
                EndedStep { heard: News::Nothing, rest: now }
            }
        }
    }

    /// Goes on after a successful reconcile.
    pub(super) fn went_well(&mut self, job: Job, wake: Wake, look: EndedStep, now: Timestamp) {
        let work = self.work.entry(job.clone()).or_default();
        work.failures = 0;
        work.races = 0;
        // A write that each reconcile makes anew would start the next reconcile, too.
        let goes_on = wake == Wake::Now || look.heard > News::Neighbour;
        work.steps = if goes_on { work.steps.saturating_add(1) } else { 0 };
        let is_restless = work.steps > STEPS_IN_A_ROW_MAX;
        self.rests.retain(|_, rest| *rest > now);
        self.rests.insert(job.clone(), look.rest);
        match (wake, look.heard) {
            _ if is_restless => self.sleep_until(job, now + SHORT_PAUSE),
            (Wake::Now, _) | (_, News::Progress | News::Wish) => self.enqueue(job),
            (Wake::At(at), News::Neighbour) => self.sleep_until(job, at.min(look.rest)),
            (Wake::At(at), News::Nothing) => self.sleep_until(job, at),
            (Wake::OnChange, News::Neighbour) => self.sleep_until(job, look.rest),
            (Wake::OnChange, News::Nothing) => {
                self.work.remove(&job);
            }
        }
    }

    /// Counts a failed reconcile; returns the number of failures in a row. Changes of others wait for a second, since
    /// they may be reactions to what the failed reconcile did.
    pub(super) fn failed(&mut self, job: &Job, now: Timestamp) -> u32 {
        self.rests.insert(job.clone(), now + SHORT_PAUSE);
        let work = self.work.entry(job.clone()).or_default();
        work.races = 0;
        work.failures = work.failures.saturating_add(1);
        work.failures
    }

    /// Counts a reconcile in which another writer was quicker; returns how many times in a row.
    pub(super) fn outrun(&mut self, job: &Job) -> u32 {
        let work = self.work.entry(job.clone()).or_default();
        work.races = work.races.saturating_add(1);
        work.races
    }

    fn enqueue(&mut self, job: Job) {
        if !matches!(self.enter(&job, Phase::Queued), Phase::Queued) {
            self.queue.push(job);
        }
    }

    /// Changes the phase of a job and removes its alarm; returns the phase before.
    fn enter(&mut self, job: &Job, phase: Phase) -> Phase {
        let work = self.work.entry(job.clone()).or_default();
        let before = std::mem::replace(&mut work.phase, phase);
        if let Phase::Asleep(alarm) = before {
            self.alarms.remove(&alarm);
        }
        before
    }
}

/// Short pause, for conditions that pass by themselves.
pub(crate) const SHORT_PAUSE: SignedDuration = SignedDuration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, ObjectName};
    use crate::reconcile::testing::at;

    fn job() -> Job {
        (0, Key::new(Kind::Order, ObjectName::new("web", "web")))
    }

    /// Checks when a job runs next whose reconcile ends with this wake after this news.
    fn check(wake: Wake, heard: &[News], expected: Option<Timestamp>) {
        let mut work_queue = WorkQueue::default();
        work_queue.hear(job(), News::Progress, at(0));
        assert_eq!(work_queue.start(1, at(0)), [job()]);
        for news in heard {
            work_queue.hear(job(), *news, at(1));
        }
        assert!(work_queue.start(1, at(1)).is_empty(), "it is looked at once at a time");
        let look = work_queue.ended(&job(), at(2));
        work_queue.went_well(job(), wake, look, at(2));
        let next = if work_queue.start(1, at(2)).is_empty() {
            work_queue.next_alarm()
        } else {
            Some(at(2))
        };
        assert_eq!(next, expected, "{wake:?} {heard:?}");
    }

    #[test]
    fn what_is_heard_during_a_look_counts_after_it() {
        let rested = Some(at(2) + REST_MAX);
        check(Wake::OnChange, &[], None);
        check(Wake::OnChange, &[News::Neighbour], rested);
        check(Wake::OnChange, &[News::Progress, News::Neighbour], Some(at(2)));
        check(Wake::At(at(9)), &[], Some(at(9)));
        check(Wake::At(at(9)), &[News::Neighbour], rested);
        check(Wake::At(at(9)), &[News::Wish], Some(at(2)));
        check(Wake::Now, &[], Some(at(2)));
    }

    #[test]
    fn who_changes_at_each_look_is_made_to_pause() {
        let mut work_queue = WorkQueue::default();
        for step in 0..=STEPS_IN_A_ROW_MAX {
            work_queue.hear(job(), News::Progress, at(0));
            assert_eq!(work_queue.start(1, at(0)), [job()], "{step}");
            work_queue.hear(job(), News::Progress, at(0));
            let look = work_queue.ended(&job(), at(0));
            work_queue.went_well(job(), Wake::At(at(9)), look, at(0));
        }
        assert!(work_queue.start(1, at(0)).is_empty());
        assert_eq!(work_queue.next_alarm(), Some(at(1)));
    }

    #[test]
    fn changes_of_others_wait_after_a_look_that_failed() {
        for (news, expected) in [(News::Neighbour, Some(at(1))), (News::Wish, None)] {
            let mut work_queue = WorkQueue::default();
            work_queue.failed(&job(), at(0));
            work_queue.sleep_until(job(), at(30));
            work_queue.hear(job(), news, at(0));
            assert_eq!(work_queue.next_alarm(), expected);
            assert_eq!(work_queue.start(1, at(0)).is_empty(), expected.is_some());
        }
    }

    #[test]
    fn what_is_nearest_to_a_certificate_starts_first_and_nothing_is_forgotten() {
        let mut work_queue = WorkQueue::default();
        let job = |kind, name: &str| (0, Key::new(kind, ObjectName::new("web", name)));
        let kinds = [Kind::Certificate, Kind::CertificateRequest, Kind::Order, Kind::Challenge];
        for kind in kinds {
            for number in 0..4 {
                work_queue.hear(job(kind, &format!("n{number}")), News::Progress, at(0));
            }
        }
        let mut started = Vec::new();
        for _ in 0..16 {
            let next = work_queue.start(1, at(0));
            started.extend(next.iter().map(|(_, key)| format!("{} {}", key.kind, key.name.name)));
        }
        assert_eq!(started[..4], ["Challenge n0", "Challenge n1", "Challenge n2", "Challenge n3"]);
        assert_eq!(started[4..8], ["Order n0", "Order n1", "Order n2", "Certificate n0"]);
        assert_eq!(started[8..10], ["Order n3", "CertificateRequest n0"]);
        assert!(work_queue.start(1, at(0)).is_empty());
        assert_eq!(started.len(), 16);
    }

    #[test]
    fn one_who_sleeps_is_woken_once() {
        let mut work_queue = WorkQueue::default();
        work_queue.sleep_until(job(), at(5));
        work_queue.sleep_until(job(), at(9));
        work_queue.wake_due(at(5));
        assert!(work_queue.start(1, at(5)).is_empty());
        work_queue.hear(job(), News::Neighbour, at(6));
        work_queue.wake_due(at(9));
        assert_eq!(work_queue.start(2, at(9)), [job()]);
        assert_eq!(work_queue.next_alarm(), None);
    }
}
