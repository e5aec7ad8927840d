//! `run` prints the time of the next renewal when nothing is being issued, and again when the time has changed.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::model::common::is_true;
use crate::model::{Certificate, ObjectName, Record, Time};
use crate::print::age::short;
use crate::store::Change;
use crate::store::resources::typed;

/// Interval at which `news` is called: a line waits until issuances that follow one another have passed.
pub(super) const NEWS_INTERVAL: Duration = Duration::from_secs(2);

/// Renewal times of the Certificates.
#[derive(Debug, Default)]
pub(super) struct Renewals {
    plans: BTreeMap<ObjectName, RenewalPlan>,
    /// Whether something has changed since the last call of `news`.
    is_moving: bool,
    is_known: bool,
    /// Renewal that was printed last; empty if the line said that there is no renewal.
    told: Option<Vec<(Timestamp, ObjectName)>>,
}

/// Renewal time of one Certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RenewalPlan {
    /// The Certificate is being issued.
    Now,
    /// The Certificate is renewed at this time.
    At(Timestamp),
    /// The Certificate is never renewed, or waits for the next try.
    None,
}

impl Renewals {
    /// Takes in a change of Certificates.
    pub(super) fn saw(&mut self, change: &Change) {
        self.is_moving = true;
        match change {
            Change::Applied(record) => self.take(record),
            Change::Deleted(record) => drop(self.plans.remove(&record.key.name)),
            Change::Resynced(records) => {
                self.is_known = true;
                self.plans.clear();
                for record in records {
                    self.take(record);
                }
            }
        }
    }

    fn take(&mut self, record: &Record) {
        // A Certificate that cannot be parsed is reported with the obstacles.
        let Ok(certificate) = typed::<Certificate>(record.clone()) else { return };
        let status = &certificate.status;
        let is = |condition| is_true(&status.conditions, condition);
        let plan = match status.renewal_time {
            _ if is("Issuing") => RenewalPlan::Now,
            Some(at) if is("Ready") => RenewalPlan::At(at.timestamp()),
            Some(_) | None => RenewalPlan::None,
        };
        self.plans.insert(certificate.name(), plan);
    }

    /// Line with the next renewal; `None` while something is being issued, or if the renewal was printed last.
    pub(super) fn news(&mut self, now: Timestamp) -> Option<String> {
        if std::mem::take(&mut self.is_moving) || !self.is_known {
            return None;
        }
        let mut next: Option<(Timestamp, ObjectName)> = None;
        for (name, plan) in &self.plans {
            match plan {
                RenewalPlan::At(at) if *at > now => {
                    let first = next.get_or_insert_with(|| (*at, name.clone()));
                    if *at < first.0 {
                        *first = (*at, name.clone());
                    }
                }
                // An issuance that is under way or begins now is reported elsewhere.
                RenewalPlan::At(_) | RenewalPlan::Now => return None,
                RenewalPlan::None => {}
            }
        }
        let next: Vec<_> = next.into_iter().collect();
        if self.told.as_ref() == Some(&next) {
            return None;
        }
        let line = match next.first() {
            Some((at, name)) => {
                let length = short(at.duration_since(now));
                format!("next renewal: Certificate {name} at {}, in {length}", Time::new(*at))
            }
            None if self.plans.is_empty() => {
                "next renewal: none, as there is no Certificate yet".to_owned()
            }
            None => return None,
        };
        self.told = Some(next);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-11-21T00:00:00Z";

    fn certificate(name: &str, status: &Value) -> Record {
        let object = json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": name, "namespace": "web"},
            "spec": {"secretName": "tls", "issuerRef": {"name": "acme"}},
            "status": status,
        });
        Record::new(object).unwrap()
    }

    fn good(renewal: &str) -> Value {
        json!({"conditions": [{"type": "Ready", "status": "True"}], "renewalTime": renewal})
    }

    /// Checks the line after a change, at the second call.
    #[track_caller]
    fn check(renewals: &mut Renewals, change: &Change, expected: Option<&str>) {
        let now = NOW.parse().unwrap();
        renewals.saw(change);
        assert_eq!(renewals.news(now), None, "it may go on");
        assert_eq!(renewals.news(now).as_deref(), expected);
        assert_eq!(renewals.news(now), None, "it was said");
    }

    #[test]
    fn the_next_renewal_is_told_whenever_it_is_another_one() {
        let mut renewals = Renewals::default();
        assert_eq!(renewals.news(NOW.parse().unwrap()), None, "nothing is known yet");
        let none = "next renewal: none, as there is no Certificate yet";
        check(&mut renewals, &Change::Resynced(Vec::new()), Some(none));
        let applied = |name, status| Change::Applied(certificate(name, &status));
        let later = good("2027-01-20T00:00:00Z");
        let issuing = json!({"conditions": [{"type": "Issuing", "status": "True"}]});
        check(&mut renewals, &applied("a", issuing.clone()), None);
        let first = "next renewal: Certificate web/a at 2027-01-20T00:00:00Z, in 60d";
        check(&mut renewals, &applied("a", later.clone()), Some(first));
        check(&mut renewals, &applied("b", issuing), None);
        check(&mut renewals, &applied("b", later.clone()), None);
        let sooner = "next renewal: Certificate web/b at 2026-12-01T00:00:00Z, in 10d";
        check(&mut renewals, &applied("b", good("2026-12-01T00:00:00Z")), Some(sooner));
        check(&mut renewals, &applied("b", good("2026-11-20T00:00:00Z")), None);
        check(&mut renewals, &Change::Deleted(certificate("b", &later)), Some(first));
    }
}
