//! Views of a name over HTTP: from this machine, and from a Pod inside the cluster.

use crate::diagnosis::case::name::{AddressProbe, NameCase};
use crate::model::observation::{CheckResult, Observation, Vantage};

/// View from one vantage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpViewRow<'a> {
    /// The vantage.
    pub from: &'a Vantage,
    /// Address that was asked, as text; empty if no address was asked.
    pub address: String,
    /// Result, in words.
    pub came: String,
    /// Whether the result is not as expected; `None` if nothing was expected.
    pub is_wrong: Option<bool>,
}

/// Returns the views of this machine and of the Pod, if the views differ.
pub fn disagreement(name: &NameCase) -> Option<Vec<HttpViewRow<'_>>> {
    let inside = name.inside.as_ref()?;
    let is_up = name.looks.iter().any(|look| look.is_expected);
    let differs = |look: &AddressProbe| {
        outcome(&look.observation, look.is_answer) != outcome(&inside.observation, inside.is_answer)
    };
    let has_looked = !matches!(inside.observation.seen, CheckResult::NoLook { .. });
    if !has_looked || !name.looks.iter().any(differs) {
        return None;
    }
    let outside = name.looks.iter().map(|look| HttpViewRow {
        from: &look.observation.vantage,
        address: look.address.to_string(),
        came: came(&look.observation, look.is_answer),
        is_wrong: is_up.then_some(!look.is_answer),
    });
    let inside = HttpViewRow {
        from: &inside.observation.vantage,
        address: probed_address(&inside.observation),
        came: came(&inside.observation, inside.is_answer),
        is_wrong: is_up.then_some(!inside.is_answer),
    };
    Some(outside.chain([inside]).collect())
}

/// Returns whether a probe got the answer, and the status if any: the result without its text, which names addresses.
fn outcome(observation: &Observation, is_answer: bool) -> (bool, Option<u16>) {
    match &observation.seen {
        CheckResult::Reply { status, .. } => (is_answer, Some(*status)),
        _ => (is_answer, None),
    }
}

/// Returns the address that a probe went to first; empty if unknown.
pub fn probed_address(observation: &Observation) -> String {
    let address = observation.hops.first().and_then(|hop| hop.address);
    address.map(|address| address.to_string()).unwrap_or_default()
}

/// Describes the result of a probe in a few words.
pub fn came(observation: &Observation, is_answer: bool) -> String {
    match &observation.seen {
        _ if is_answer => "the answer".to_owned(),
        CheckResult::Nothing { why, .. } | CheckResult::NoLook { why, .. } => why.clone(),
        CheckResult::Redirect { to, why } => format!("a redirect to {to}: {why}"),
        CheckResult::Reply { status, .. } => format!("status {status}"),
        CheckResult::Handshake { .. } | CheckResult::Records { .. } => "nothing of HTTP".to_owned(),
    }
}
