//! Looking at everything that may say why issuance does not go on: objects, the CA's word, names as a CA sees them, and who
//! drives. Nothing is written, but for Pods that look from inside a cluster where somebody asks for that, and nothing is spent at a CA: it
//! is asked for its directory, and by POST-as-GET for what it holds.
//! All probes run side by side, and share one time for whoever is outside; what one of them could not see is told, not
//! guessed.

mod accounts;
mod admission;
mod answering;
mod asked_once;
mod authorities;
mod authorizations;
mod belonging;
pub mod bundle;
mod caa;
pub mod commands;
mod control;
mod control_objects;
mod control_parts;
mod control_webhooks;
mod dns;
pub mod ending;
mod exposing;
mod inside;
pub mod investigator;
mod issuers;
mod kept;
pub mod known;
mod listed;
pub mod look;
pub mod looking;
mod lookup;
mod names;
mod orders;
mod path;
mod path_gateways;
mod patience;
mod plugin_policies;
mod providers;
mod queue;
mod related_kind;
pub mod report;
mod rivals;
pub mod targets;
pub mod undefined;
pub mod verdict;
mod wanted_names;
pub mod watched_looks;
mod web;
