//! Order budget: decides whether one more newOrder may go out after the earlier ones to a CA for a set of names.
//!
//! An order uses up a CA's limits, and a mistake in any module above could ask for orders again and again. So every
//! newOrder takes a [`Permit`], and only [`Budget::judge`] makes one. The rule reads a ledger and nothing else: no
//! states, conditions or reasons, which such a mistake would get wrong. Ages are lengths of time, measured by the
//! asking process on a clock that never steps back; moments in the ledger are for other processes and for people.
//!
//! The budget stands on this floor because `acme` takes the permit and may import no other module of this crate.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::Key;
use super::order_ledger::{Entry, RequestOutcome};

/// Time for which an entry counts.
pub const ENTRY_COUNTS_FOR: SignedDuration = SignedDuration::from_hours(1);
/// Most orders for one set of names that may fail within [`ENTRY_COUNTS_FOR`] unattended; Let's Encrypt has the same limit.
const MAX_FAILURES: usize = 5;
/// Most newOrders of one Certificate for one set of names within [`ENTRY_COUNTS_FOR`] unattended, whatever their outcome, except
/// those that the CA put off: one every five minutes, as often as the shortest life that cert-manager takes can be renewed.
const MAX_ORDERS: usize = 12;
/// Most orders of one run that may be lost to other Orders.
const MAX_LOST: usize = 16;
/// Most orders dropped by the CA that are replaced, in one run or within [`ENTRY_COUNTS_FOR`].
const MAX_REPLACED: usize = 1;
/// Shortest pause between two newOrders for one set of names, unattended.
const MIN_PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// Shortest pause between two newOrders for one Certificate, in a run that a person waits for.
const MIN_PAUSE_ONE_SHOT: SignedDuration = SignedDuration::from_secs(1);

/// Right to send one newOrder. A permit cannot be copied, and only [`Budget::judge`] makes permits.
#[derive(Debug)]
pub struct Permit(());

/// Rule for the number of orders that may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// A person or a pipeline waits: one order for each Certificate and run, one more for each order that was lost to
    /// others, and one for the first order that the CA has dropped.
    OneShot,
    /// Unattended: orders go out as long as few of them fail, and never two at once.
    Standing,
}

/// Entry of a ledger, seen by the process that wants to ask.
#[derive(Clone, Debug)]
pub struct PastRequest {
    /// The entry.
    pub entry: Entry,
    /// UID of the object whose ledger has the entry.
    pub holder: String,
    /// Time since the request went out.
    pub ago: SignedDuration,
    /// Whether this process has sent the request.
    pub is_ours: bool,
}

/// Question whether an order may be asked for: the asking objects and the names.
#[derive(Clone, Debug)]
pub struct Budget<'a> {
    /// Rule for the number of orders.
    pub allowance: Allowance,
    /// UID of the object whose ledger counts.
    pub holder: &'a str,
    /// UID of the Order that asks.
    pub order: &'a str,
    /// URL of the account.
    pub account: &'a str,
    /// The set of names, see [`super::order_ledger::names_of`].
    pub names: &'a str,
    /// Number of the holder's last issuance that succeeded.
    pub issued: i64,
}

/// Permission for a newOrder.
#[derive(Debug)]
pub struct Grant {
    /// Right to send the newOrder.
    pub permit: Permit,
    /// Reason for another order after an earlier one, if there is an earlier one.
    pub excuse: Option<ReorderReason>,
    /// Number of the entry under which the newOrder goes out, if there is an entry of the same try.
    pub again: Option<u64>,
}

/// Reasons why another order is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReorderReason {
    /// The CA's answer to the earlier request was never read, so the CA may have made an order that nobody knows.
    Unread,
    /// The CA gave the earlier order to another Order, too, which has used the order.
    LostToAnother,
    /// The CA has dropped the earlier order.
    Dropped,
}

impl fmt::Display for ReorderReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unread => "nothing says what became of the order before",
            Self::LostToAnother => {
                "the order before was given to another Order, too, and used there"
            }
            Self::Dropped => "the CA has dropped the order before",
        })
    }
}

/// Reasons why no newOrder may go out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// This run has had its order.
    Spent {
        /// Name of the Order that used up the run's order.
        order: String,
        /// Time of the request that used up the run's order.
        at: Timestamp,
    },
    /// Too many orders of this run were lost to others.
    Lost,
    /// Too many orders have failed; after the pause one of them no longer counts.
    Failures {
        /// Time until one failure no longer counts.
        pause: SignedDuration,
    },
    /// More orders have gone out than can be right, whatever their outcome; after the pause one of them no longer counts.
    TooMany {
        /// Time until one order no longer counts.
        pause: SignedDuration,
    },
    /// The last order went out just now; the next may go out after the pause.
    TooSoon {
        /// Time until the next order may go out.
        pause: SignedDuration,
    },
}

impl Denial {
    /// Returns how long to wait; `None` if waiting changes nothing in this run.
    pub fn pause(&self) -> Option<SignedDuration> {
        match self {
            Self::Spent { .. } | Self::Lost => None,
            Self::Failures { pause } | Self::TooMany { pause } | Self::TooSoon { pause } => {
                Some(*pause)
            }
        }
    }
}

impl Budget<'_> {
    /// Decides whether a newOrder may go out, given all that is known of earlier ones.
    ///
    /// # Errors
    /// Fails with the reason if no newOrder may go out.
    pub fn judge(&self, past: &[PastRequest]) -> Result<Grant, Denial> {
        let of_set = |past: &&PastRequest| {
            past.entry.account == self.account && past.entry.names == self.names
        };
        let of_set: Vec<&PastRequest> = past.iter().filter(of_set).collect();
        let of_holder: Vec<&PastRequest> =
            of_set.iter().filter(|past| past.holder == self.holder).copied().collect();
        let last = of_holder.last().copied();
        match self.allowance {
            Allowance::OneShot => check_one_shot(&of_holder)?,
            Allowance::Standing => self.check_standing(&of_set, past)?,
        }
        // One try asks again under its own entry until it is answered; that never yields another order.
        let again = last.filter(|last| last.entry.uid == self.order).filter(|last| {
            matches!(last.entry.became, RequestOutcome::Asked | RequestOutcome::NotMade)
        });
        let excuse = last.and_then(|last| match last.entry.became {
            // If this process has not read the answer, the Order says so.
            RequestOutcome::Asked if last.is_ours => None,
            // A certificate has come of the order; only the ledger was not updated.
            RequestOutcome::Asked if last.entry.revision <= self.issued => None,
            RequestOutcome::Asked => Some(ReorderReason::Unread),
            RequestOutcome::LostToAnother => Some(ReorderReason::LostToAnother),
            RequestOutcome::Dropped => Some(ReorderReason::Dropped),
            RequestOutcome::NotMade
            | RequestOutcome::Made
            | RequestOutcome::Refused
            | RequestOutcome::Failed
            | RequestOutcome::Issued
            | RequestOutcome::Unknown => None,
        });
        Ok(Grant { permit: Permit(()), excuse, again: again.map(|last| last.entry.number) })
    }

    /// Reports whether an order that the CA has dropped may be replaced: the first may, no other. The dropped order is
    /// the last of its Order; the ledger may call it dropped already, if the Order could not be written then.
    pub fn replaces(&self, past: &[PastRequest]) -> bool {
        let of_holder = || past.iter().filter(|past| past.holder == self.holder);
        let this = of_holder().rfind(|past| past.entry.uid == self.order);
        let this = this.map(|past| past.entry.number);
        let counts = |past: &&PastRequest| {
            Some(past.entry.number) != this
                && past.entry.became == RequestOutcome::Dropped
                && match self.allowance {
                    Allowance::OneShot => past.is_ours,
                    Allowance::Standing => past.ago < ENTRY_COUNTS_FOR,
                }
        };
        of_holder().filter(counts).count() < MAX_REPLACED
    }

    /// Checks the limits of unattended operation: few failures, never two orders at once, and no more than can be right.
    fn check_standing(&self, of_set: &[&PastRequest], past: &[PastRequest]) -> Result<(), Denial> {
        if let Some(pause) = until_fewer(of_set, MAX_FAILURES, |past| self.has_failed(past)) {
            return Err(Denial::Failures { pause });
        }
        // Whatever the account: a CA that forgets one gives another each time.
        let of_names =
            past.iter().filter(|p| p.holder == self.holder && p.entry.names == self.names);
        let of_names: Vec<&PastRequest> = of_names.collect();
        if let Some(pause) = until_fewer(&of_names, MAX_ORDERS, |past| self.has_cost(past)) {
            return Err(Denial::TooMany { pause });
        }
        apart(of_set.iter().map(|past| past.ago), MIN_PAUSE)
    }

    /// Reports whether an order has cost a CA something, or may have.
    fn has_cost(&self, past: &PastRequest) -> bool {
        match past.entry.became {
            RequestOutcome::NotMade => false,
            RequestOutcome::Asked => past.entry.uid != self.order,
            RequestOutcome::Made
            | RequestOutcome::Refused
            | RequestOutcome::Failed
            | RequestOutcome::LostToAnother
            | RequestOutcome::Dropped
            | RequestOutcome::Issued
            | RequestOutcome::Unknown => true,
        }
    }

    /// Reports whether an order failed, or may have.
    fn has_failed(&self, past: &PastRequest) -> bool {
        match past.entry.became {
            RequestOutcome::Refused | RequestOutcome::Failed | RequestOutcome::Dropped => true,
            RequestOutcome::NotMade | RequestOutcome::LostToAnother | RequestOutcome::Issued => {
                false
            }
            RequestOutcome::Asked if past.entry.uid == self.order => false,
            // The orders that another Certificate has under way in this process are limited by its own budget.
            RequestOutcome::Asked | RequestOutcome::Made | RequestOutcome::Unknown
                if past.holder != self.holder =>
            {
                !past.is_ours
            }
            RequestOutcome::Asked | RequestOutcome::Made | RequestOutcome::Unknown => {
                past.entry.revision > self.issued
            }
        }
    }
}

/// Returns the time until fewer than `many` counted entries are within [`ENTRY_COUNTS_FOR`]; `None` if there are fewer now.
fn until_fewer(
    past: &[&PastRequest],
    many: usize,
    counts: impl Fn(&PastRequest) -> bool,
) -> Option<SignedDuration> {
    let recent = past.iter().filter(|past| past.ago < ENTRY_COUNTS_FOR && counts(past));
    let mut lengths: Vec<SignedDuration> = recent.map(|past| past.ago).collect();
    lengths.sort_unstable();
    lengths.get(many - 1).map(|oldest| ENTRY_COUNTS_FOR - *oldest)
}

/// Checks the limit of one order for each Certificate and run.
fn check_one_shot(of_holder: &[&PastRequest]) -> Result<(), Denial> {
    let ours = || of_holder.iter().filter(|past| past.is_ours);
    let dropped =
        ours().filter(|past| past.entry.became == RequestOutcome::Dropped).nth(MAX_REPLACED);
    let spent = ours().find(|past| match past.entry.became {
        RequestOutcome::Made
        | RequestOutcome::Refused
        | RequestOutcome::Failed
        | RequestOutcome::Issued
        | RequestOutcome::Unknown => true,
        RequestOutcome::Asked
        | RequestOutcome::NotMade
        | RequestOutcome::LostToAnother
        | RequestOutcome::Dropped => false,
    });
    let spent = spent.or(dropped);
    if let Some(PastRequest { entry, .. }) = spent {
        return Err(Denial::Spent { order: entry.order.clone(), at: entry.at });
    }
    if ours().filter(|past| past.entry.became == RequestOutcome::LostToAnother).count() >= MAX_LOST
    {
        return Err(Denial::Lost);
    }
    apart(ours().map(|past| past.ago), MIN_PAUSE_ONE_SHOT)
}

fn apart(
    lengths: impl Iterator<Item = SignedDuration>,
    least: SignedDuration,
) -> Result<(), Denial> {
    match lengths.min().filter(|ago| *ago < least) {
        Some(ago) => Err(Denial::TooSoon { pause: least - ago }),
        None => Ok(()),
    }
}

/// Error: no order may be asked for now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct OverBudget {
    /// Object that has the budget.
    pub holder: Key,
    /// Reason of the denial.
    pub denial: Denial,
    /// Time from which the next order may be asked for; `None` if that takes another run.
    pub until: Option<Timestamp>,
}

impl OverBudget {
    /// Reports whether the denial is only the pause after an order.
    pub fn is_pause(&self) -> bool {
        matches!(self.denial, Denial::TooSoon { .. })
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holder, denial, .. } = self;
        match denial {
            Denial::Spent { order, at } => write!(
                f,
                "no other order is asked for in this run: {holder} has had its one, at {at:.0} by Order {order}"
            ),
            Denial::Lost => write!(
                f,
                "no other order is asked for in this run: {MAX_LOST} orders of {holder} were used by others"
            ),
            Denial::Failures { .. } => write!(
                f,
                "no other order is asked for: {MAX_FAILURES} for the names of {holder} have failed within an hour"
            ),
            Denial::TooMany { .. } => write!(
                f,
                "no other order is asked for: {MAX_ORDERS} of {holder} went out within an hour for the same names"
            ),
            Denial::TooSoon { .. } => {
                write!(
                    f,
                    "no other order is asked for so soon after the last one for the names of {holder}"
                )
            }
        }?;
        match self.until {
            Some(until) => write!(f, "; the next one not before {until:.0}"),
            None => Ok(()),
        }
    }
}

/// Makes a permit for the tests of sessions, which have no ledger.
#[cfg(test)]
pub(crate) fn permit() -> Permit {
    Permit(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Request, listed from the oldest on: seconds ago, its outcome, whether this run asked, and the Order that asked.
    type Row = (i64, RequestOutcome, bool, &'static str);

    fn scene(allowance: Allowance, rows: &[Row]) -> (Budget<'static>, Vec<PastRequest>) {
        let past = |(index, (ago, became, is_ours, uid)): (usize, &Row)| PastRequest {
            entry: Entry {
                number: index as u64 + 1,
                at: Timestamp::UNIX_EPOCH,
                order: format!("web-{uid}"),
                uid: (*uid).to_owned(),
                revision: 1,
                account: "https://ca.example/account/1".to_owned(),
                names: "n".to_owned(),
                became: *became,
            },
            holder: "certificate".to_owned(),
            ago: SignedDuration::from_secs(*ago),
            is_ours: *is_ours,
        };
        let past: Vec<PastRequest> = rows.iter().enumerate().map(past).collect();
        let budget = Budget {
            allowance,
            holder: "certificate",
            order: "new",
            account: "https://ca.example/account/1",
            names: "n",
            issued: 0,
        };
        (budget, past)
    }

    fn judge(allowance: Allowance, rows: &[Row]) -> Result<Grant, Denial> {
        let (budget, past) = scene(allowance, rows);
        budget.judge(&past)
    }

    /// The excuse and whether it is the same try, or the sort of denial and its pause in seconds.
    fn check(allowance: Allowance, rows: &[Row], expected: &str) {
        let found = match judge(allowance, rows) {
            Ok(Grant { excuse, again, .. }) => format!("{excuse:?} {again:?}"),
            Err(Denial::Spent { order, .. }) => format!("spent by {order}"),
            Err(Denial::Lost) => "lost".to_owned(),
            Err(Denial::Failures { pause }) => format!("failures {}", pause.as_secs()),
            Err(Denial::TooMany { pause }) => format!("too many {}", pause.as_secs()),
            Err(Denial::TooSoon { pause }) => format!("too soon {}", pause.as_secs()),
        };
        assert_eq!(found, expected, "{rows:?}");
    }

    #[test]
    fn what_has_brought_a_certificate_is_no_order_of_which_nobody_knows() {
        let (mut budget, past) =
            scene(Allowance::OneShot, &[(60, RequestOutcome::Asked, false, "old")]);
        assert_eq!(budget.judge(&past).unwrap().excuse, Some(ReorderReason::Unread));
        budget.issued = 1;
        assert_eq!(budget.judge(&past).unwrap().excuse, None);
    }

    #[test]
    fn a_run_has_one_order_for_a_certificate_whatever_earlier_runs_had() {
        use RequestOutcome::{Failed, Issued, Made, Refused, Unknown};
        let check = |rows: &[Row], expected| check(Allowance::OneShot, rows, expected);
        check(&[], "None None");
        for became in [Made, Refused, Failed, Issued, Unknown] {
            check(&[(0, became, false, "other")], "None None");
            check(&[(9, became, true, "other")], "spent by web-other");
            check(&[(9, became, true, "new")], "spent by web-new");
            check(&[(7200, became, true, "other")], "spent by web-other");
        }
        check(&[(1, Failed, false, "a"); 50], "None None");
    }

    #[test]
    fn what_brought_no_order_is_asked_again_and_what_nobody_knows_is_told() {
        use RequestOutcome::{Asked, LostToAnother, NotMade};
        let check = |rows: &[Row], expected| check(Allowance::OneShot, rows, expected);
        check(&[(1, Asked, true, "new")], "None Some(1)");
        check(&[(1, NotMade, true, "new")], "None Some(1)");
        check(&[(1, Asked, false, "new")], "Some(Unread) Some(1)");
        check(&[(1, Asked, false, "killed")], "Some(Unread) None");
        check(&[(1, LostToAnother, true, "new")], "Some(LostToAnother) None");
        check(&[(0, Asked, true, "new")], "too soon 1");
        check(&[(0, Asked, false, "new")], "Some(Unread) Some(1)");
        check(&[(1, LostToAnother, true, "new"); MAX_LOST], "lost");
    }

    #[test]
    fn one_order_that_the_ca_has_dropped_is_replaced() {
        use RequestOutcome::{Dropped, Made};
        let replaces = |allowance, rows: &[Row]| {
            let (budget, past) = scene(allowance, rows);
            budget.replaces(&past)
        };
        for allowance in [Allowance::OneShot, Allowance::Standing] {
            assert!(replaces(allowance, &[]));
            assert!(replaces(allowance, &[(20, Made, true, "new")]));
            assert!(replaces(allowance, &[(20, Dropped, true, "new")]), "it is known as dropped");
            assert!(!replaces(allowance, &[(20, Dropped, true, "new"), (10, Made, true, "new")]));
            assert!(!replaces(
                allowance,
                &[(20, Dropped, true, "new"), (10, Dropped, true, "new")]
            ));
            assert!(!replaces(allowance, &[(20, Dropped, true, "other")]));
            check(allowance, &[(20, Dropped, true, "new")], "Some(Dropped) None");
        }
        assert!(replaces(Allowance::OneShot, &[(20, Dropped, false, "other")]));
        assert!(!replaces(Allowance::Standing, &[(20, Dropped, false, "other")]));
        assert!(replaces(Allowance::Standing, &[(3600, Dropped, false, "other")]));
        // Whoever replaced the second, too, gets no third.
        check(Allowance::OneShot, &[(20, Dropped, true, "new"); 2], "spent by web-new");
        check(Allowance::Standing, &[(20, Dropped, true, "new"); 5], "failures 3580");
    }

    #[test]
    fn nobody_who_is_not_watched_fails_more_than_five_times_an_hour() {
        use RequestOutcome::{Asked, Failed, Issued, LostToAnother, Made, NotMade, Refused};
        let check = |rows: &[Row], expected| check(Allowance::Standing, rows, expected);
        check(&[], "None None");
        check(&[(3601, Failed, false, "a"); 5], "None None");
        check(&[(600, Failed, false, "a"); 4], "None None");
        check(&[(600, Failed, false, "a"); 5], "failures 3000");
        let rows = [3000, 2000, 1000, 500, 400, 300].map(|ago| (ago, Refused, true, "a"));
        check(&rows, "failures 1600");
        // A process that is killed each time cannot say that it failed.
        check(&[(60, Asked, false, "killed"); 5], "failures 3540");
        check(&[(60, Made, false, "killed"); 5], "failures 3540");
        check(&[(60, Issued, true, "a"); 9], "None None");
        check(&[(60, NotMade, true, "a"); 9], "None None");
        check(&[(60, LostToAnother, true, "a"); 9], "Some(LostToAnother) None");
        check(&[(9, Issued, true, "a")], "too soon 1");
        check(&[(0, NotMade, true, "new")], "too soon 10");
        check(&[(10, Asked, true, "new")], "None Some(1)");
    }

    #[test]
    fn nobody_who_is_not_watched_orders_more_than_twelve_times_an_hour() {
        use RequestOutcome::{Issued, LostToAnother, NotMade};
        check(Allowance::OneShot, &[(60, Issued, false, "a"); 20], "None None");
        let check = |rows: &[Row], expected| check(Allowance::Standing, rows, expected);
        check(&[(60, Issued, true, "a"); 11], "None None");
        check(&[(60, Issued, true, "a"); 12], "too many 3540");
        check(&[(60, Issued, false, "a"); 12], "too many 3540");
        check(&[(60, LostToAnother, true, "a"); 12], "too many 3540");
        check(&[(3600, Issued, true, "a"); 12], "None None");
        check(&[(60, NotMade, true, "a"); 20], "None None");
        let rows: Vec<Row> = (1..=12).rev().map(|n| (n * 300, Issued, true, "a")).collect();
        check(&rows, "None None");
        let (budget, past) = scene(Allowance::Standing, &[(60, Issued, true, "a"); 12]);
        for (names, account, denied) in [("n", "another", true), ("other", budget.account, false)] {
            let budget = Budget { account, names, ..budget.clone() };
            let found = budget.judge(&past);
            assert_eq!(matches!(found, Err(Denial::TooMany { .. })), denied, "{found:?}");
        }
    }
}
