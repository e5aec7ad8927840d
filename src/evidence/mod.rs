//! Reads everything that may show why an issuance does not go on: objects, the state that the CA holds, names as a CA
//! sees them, and which controller drives. Writes nothing, except probe Pods if the user asks for probes from inside the
//! cluster, and spends nothing at a CA: only its directory is read, and by POST-as-GET the objects of the account.
//! All probes run concurrently with one deadline for everything outside this process. A probe that fails is reported as
//! not observed; nothing is guessed.

mod accounts;
pub mod answer_flags;
mod answering;
mod asked_once;
mod authorities;
mod authorizations;
mod belonging;
mod caa_lookups;
mod control;
mod dns;
mod exposing;
mod inside;
pub mod investigator;
mod issuers;
mod kept;
mod listed;
pub mod look;
pub mod looking;
mod lookup;
mod names;
mod orders;
mod path;
pub(crate) mod patience;
mod providers;
mod queue;
mod related_kind;
mod rivals;
pub mod targets;
pub mod verdict;
mod wanted_names;
mod web;
