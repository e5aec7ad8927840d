//! The kit: every behaviour, and what several of them need.

mod accounts;
mod answers;
mod authorizations;
mod chains;
mod orders;
mod requests;
mod state;
mod transport;
mod urls;

use super::definition::Behaviour;

/// Everything, by rows.
pub(super) const ALL: &[&[Behaviour]] = &[
    requests::KIT,
    orders::KIT,
    authorizations::KIT,
    accounts::KIT,
    urls::KIT,
    chains::KIT,
    transport::KIT,
];
