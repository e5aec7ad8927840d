//! kubectl-acme: ACME certificates from manifest to Secret, with nothing hidden.
//!
//! Floors from the bottom: [`model`] (types and rules), [`reconcile`] (next step), the outside worlds [`store`],
//! [`acme`], [`dns`], [`fetch`], [`ca`], with [`serve`], [`disk`], [`programs`], [`keystores`], [`mod@surroundings`]
//! and [`mod@http`], then [`solvers`] and [`probes`], the one loop in [`controllers`], and [`diagnosis`] (causes).
//! Above them stand the rooms that verbs share: [`hints`], [`context`], [`objects`], [`permissions`], [`engine`],
//! [`lead`], [`input`], [`account`], [`inspect`], [`listing`], [`known`], [`issue`] (ordering) and [`evidence`]
//! (observations for a diagnosis); then the verbs in [`commands`], and [`cli`], [`process`] and [`mod@print`].
//! ARCHITECTURE.md has a paragraph for each, and a walk from `order -f` to newOrder.

pub mod account;
pub mod acme;
pub mod ca;
pub mod cli;
pub mod commands;
pub mod context;
pub mod controllers;
pub mod diagnosis;
pub mod disk;
pub mod dns;
pub mod engine;
pub mod evidence;
pub mod fetch;
pub mod hints;
pub mod http;
pub mod input;
pub mod inspect;
pub mod issue;
pub mod keystores;
pub mod known;
pub mod lead;
pub mod listing;
pub mod model;
pub mod objects;
pub mod permissions;
pub mod print;
pub mod probes;
pub mod process;
pub mod programs;
pub mod reconcile;
pub mod serve;
pub mod solvers;
pub mod store;
pub mod surroundings;
