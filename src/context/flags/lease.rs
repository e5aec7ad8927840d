//! Flags of the commands that may hold the Lease: the times of the Lease, and the wait before a takeover.

use std::time::Duration;

use super::duration;
use crate::context::failure::Failure;
use crate::model;
use crate::store::cluster::lease;

/// Heading of the Lease flags, which have no effect without a cluster.
pub const HEADING: &str = "Lease of a cluster";

/// Flags of the commands that may hold the Lease, as cert-manager has them.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = HEADING)]
pub struct LeaseArgs {
    /// Time for which the Lease is valid after each renewal, in whole seconds
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration, hide_short_help = true)]
    pub leader_election_lease_duration: model::Duration,
    /// Longest time that work goes on without a renewal of the Lease
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration, hide_short_help = true)]
    pub leader_election_renew_deadline: model::Duration,
    /// Time between two renewals of the Lease
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration, hide_short_help = true)]
    pub leader_election_retry_period: model::Duration,
    /// Time without a leader before a command that watches takes over
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = duration, hide = true)]
    pub patience: model::Duration,
}

/// Times by which a command takes the Lease of a cluster and holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Times of the Lease itself.
    pub lease: lease::LeaseTimes,
    /// Time without a leader before this command drives: cert-manager's replicas look for the Lease every 15 s.
    pub patience: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self { lease: lease::LeaseTimes::default(), patience: Duration::from_secs(20) }
    }
}

impl Terms {
    /// Returns the time without progress under another leader after which a message says so.
    pub fn standstill(&self) -> Duration {
        self.patience * 3 / 2
    }
}

impl LeaseArgs {
    /// Returns the times, checked against each other.
    ///
    /// # Errors
    /// Fails if a holder would lose the Lease before renewing it, or others could take the Lease before work has stopped.
    pub fn terms(&self) -> Result<Terms, Failure> {
        let terms = Terms {
            lease: lease::LeaseTimes {
                duration: self.leader_election_lease_duration.0.unsigned_abs(),
                renew_deadline: self.leader_election_renew_deadline.0.unsigned_abs(),
                retry_period: self.leader_election_retry_period.0.unsigned_abs(),
            },
            patience: self.patience.0.unsigned_abs(),
        };
        let lease::LeaseTimes { duration, renew_deadline, retry_period } = terms.lease;
        let why = if duration.subsec_nanos() != 0 {
            "--leader-election-lease-duration must be whole seconds: a Lease holds nothing finer"
        } else if duration <= renew_deadline {
            "--leader-election-lease-duration must be longer than --leader-election-renew-deadline: others could work before this \
             process has stopped"
        } else if renew_deadline <= retry_period || retry_period.is_zero() {
            "--leader-election-renew-deadline must be longer than --leader-election-retry-period, and that longer than \
             zero: the Lease would be lost before it is renewed"
        } else {
            return Ok(terms);
        };
        Err(Failure::usage(why))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        lease: LeaseArgs,
    }

    /// Reads durations of Lease, deadline and period; checks the beginning of the refusal, or that there is none.
    #[track_caller]
    fn check([duration, deadline, period]: [&str; 3], refused: Option<&str>) {
        let words = [
            "run".to_owned(),
            format!("--leader-election-lease-duration={duration}"),
            format!("--leader-election-renew-deadline={deadline}"),
            format!("--leader-election-retry-period={period}"),
        ];
        match (Flags::parse_from(words).lease.terms(), refused) {
            (Ok(_), None) => {}
            (Err(failure), Some(why)) => assert!(failure.message.starts_with(why), "{failure:?}"),
            (terms, _) => panic!("{terms:?}"),
        }
    }

    #[test]
    fn the_flags_begin_with_what_holds_without_them() {
        assert_eq!(Flags::parse_from(["run"]).lease.terms().ok(), Some(Terms::default()));
    }

    #[test]
    fn terms_under_which_two_could_work_are_refused() {
        let (duration, deadline) =
            ("--leader-election-lease-duration", "--leader-election-renew-deadline");
        check(["15s", "10s", "5s"], None);
        check(["2s", "1500ms", "500ms"], None);
        check(["1500ms", "1s", "500ms"], Some(&format!("{duration} must be whole seconds")));
        check(["10s", "10s", "5s"], Some(&format!("{duration} must be longer than")));
        check(["15s", "5s", "5s"], Some(&format!("{deadline} must be longer than")));
        check(["15s", "5s", "0s"], Some(&format!("{deadline} must be longer than")));
    }
}
