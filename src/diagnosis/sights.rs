//! Who sees what of a name over HTTP: this machine, and a Pod inside the cluster.

use super::name_case::{AddressLook, NameCase};
use crate::model::observation::{Observation, Seen, Vantage};

/// What one of those who look sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SightRow<'a> {
    /// Who looks.
    pub from: &'a Vantage,
    /// The address that was asked, as text; empty where none was.
    pub address: String,
    /// What came.
    pub came: String,
    /// Whether it is not what it has to be; nothing where nothing had to be there.
    pub is_wrong: Option<bool>,
}

/// What this machine and the Pod see, where that is not the same.
pub fn disagreement(name: &NameCase) -> Option<Vec<SightRow<'_>>> {
    let inside = name.inside.as_ref()?;
    let is_up = name.looks.iter().any(|look| look.is_expected);
    let differs = |look: &AddressLook| {
        outcome(&look.observation, look.is_answer) != outcome(&inside.observation, inside.is_answer)
    };
    let has_looked = !matches!(inside.observation.seen, Seen::NoLook { .. });
    if !has_looked || !name.looks.iter().any(differs) {
        return None;
    }
    let outside = name.looks.iter().map(|look| SightRow {
        from: &look.observation.vantage,
        address: look.address.to_string(),
        came: came(&look.observation, look.is_answer),
        is_wrong: is_up.then_some(!look.is_answer),
    });
    let inside = SightRow {
        from: &inside.observation.vantage,
        address: asked(&inside.observation),
        came: came(&inside.observation, inside.is_answer),
        is_wrong: is_up.then_some(!inside.is_answer),
    };
    Some(outside.chain([inside]).collect())
}

/// What came of a look without the words, which name addresses: whether it was the answer, and the status where there was one.
fn outcome(observation: &Observation, is_answer: bool) -> (bool, Option<u16>) {
    match &observation.seen {
        Seen::Reply { status, .. } => (is_answer, Some(*status)),
        _ => (is_answer, None),
    }
}

/// The address that a look went to first, as far as it says.
pub fn asked(observation: &Observation) -> String {
    let address = observation.hops.first().and_then(|hop| hop.address);
    address.map(|address| address.to_string()).unwrap_or_default()
}

/// What came of a look, in a few words.
pub fn came(observation: &Observation, is_answer: bool) -> String {
    match &observation.seen {
        _ if is_answer => "the answer".to_owned(),
        Seen::Nothing { why, .. } | Seen::NoLook { why, .. } => why.clone(),
        Seen::Redirect { to, why } => format!("a redirect to {to}: {why}"),
        Seen::Reply { status, .. } => format!("status {status}"),
        Seen::Handshake { .. } | Seen::Records { .. } => "nothing of HTTP".to_owned(),
    }
}
