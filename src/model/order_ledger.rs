//! Order ledger: the requests to a CA for one Certificate, and their outcomes. The ledger is kept beside the
//! Certificate, and written before a request goes out.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Identifier, hashed_names};

/// Annotation with the ledger of a Certificate, as JSON; also on a CertificateRequest or an Order without an owner.
pub const LEDGER_ANNOTATION: &str = "kubectl-acme/certificate-orders";
/// Most entries that are kept in the store.
pub const MAX_KEPT_ENTRIES: usize = 20;

/// Outcome of a newOrder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOutcome {
    /// The request went out, and its answer is not read yet, or never will be: process killed, or connection cut.
    Asked,
    /// The CA made no order, for a reason that passes: a limit, or an account that the CA has forgotten.
    NotMade,
    /// The CA made an order.
    Made,
    /// The CA refused for good.
    Refused,
    /// The order failed.
    Failed,
    /// The order was used by another Order.
    LostToAnother,
    /// The CA has dropped the order, or something that the order depends on, before anything was finalized.
    Dropped,
    /// The certificate was issued.
    Issued,
    /// An outcome of a later version.
    #[serde(other)]
    Unknown,
}

/// One newOrder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number that counts up within a ledger.
    pub number: u64,
    /// Time of the request, by the clock of the asking process.
    pub at: Timestamp,
    /// Name of the Order that asked.
    pub order: String,
    /// UID of the Order that asked.
    pub uid: String,
    /// Number of the issuance that the request belongs to; 0 if there is none.
    #[serde(default)]
    pub revision: i64,
    /// URL of the account.
    pub account: String,
    /// Set of names: a hash, see [`names_of`].
    pub names: String,
    /// Outcome of the request.
    pub became: RequestOutcome,
}

/// Requests for one Certificate, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger(pub Vec<Entry>);

impl Ledger {
    /// Reads the ledger of an object; a ledger that cannot be read counts as empty.
    pub fn read(annotations: &BTreeMap<String, String>) -> Self {
        let text = annotations.get(LEDGER_ANNOTATION);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Writes the newest entries into annotations.
    pub fn write(&self, annotations: &mut BTreeMap<String, String>) {
        let newest = &self.0[self.0.len().saturating_sub(MAX_KEPT_ENTRIES)..];
        if let Ok(text) = serde_json::to_string(newest) {
            annotations.insert(LEDGER_ANNOTATION.to_owned(), text);
        }
    }
}

/// Returns a set of names as ledgers compare sets: a hash that does not depend on the order of the names.
pub fn names_of(identifiers: &[Identifier]) -> String {
    let mut names: Vec<String> = identifiers.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    names.dedup();
    format!("{:08x}", hashed_names::fnv1(names.join(" ").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_names_is_the_same_whatever_its_order() {
        let name = |text: &str| Identifier::parse(text).unwrap();
        let [a, b] = ["a.example", "b.example"].map(name);
        assert_eq!(names_of(&[a.clone(), b.clone()]), names_of(&[b.clone(), a.clone(), b.clone()]));
        assert_ne!(names_of(std::slice::from_ref(&a)), names_of(&[a.clone(), b]));
    }

    #[test]
    fn a_ledger_survives_a_round_trip_and_stays_small() {
        let entry = |number| Entry {
            number,
            at: "2026-11-23T06:00:00.000001Z".parse().unwrap(),
            order: "web-1-1".to_owned(),
            uid: "u".to_owned(),
            revision: 1,
            account: "a".to_owned(),
            names: "n".to_owned(),
            became: RequestOutcome::LostToAnother,
        };
        let mut annotations = BTreeMap::new();
        Ledger((1..=30).map(entry).collect()).write(&mut annotations);
        assert_eq!(Ledger::read(&annotations), Ledger((11..=30).map(entry).collect()));
        let later = annotations[LEDGER_ANNOTATION].replace("lost-to-another", "a-later-word");
        annotations.insert(LEDGER_ANNOTATION.to_owned(), later);
        assert_eq!(Ledger::read(&annotations).0[0].became, RequestOutcome::Unknown);
        annotations.insert(LEDGER_ANNOTATION.to_owned(), "nonsense".to_owned());
        assert_eq!(Ledger::read(&annotations), Ledger::default());
    }
}
