//! The kit: every behaviour, and helpers of several behaviours.

mod accounts;
mod answers;
mod authorizations;
mod chains;
mod orders;
mod requests;
mod state;
mod transport;
mod urls;

use super::rule::Behaviour;

/// All behaviours, by rows.
pub(super) const ALL: &[&[Behaviour]] = &[
    requests::KIT,
    orders::KIT,
    authorizations::KIT,
    accounts::KIT,
    urls::KIT,
    chains::KIT,
    transport::KIT,
];
