//! kubectl-acme: ACME certificates from manifest to Secret, with nothing hidden.
//!
//! Floors from the bottom: [`model`] (types and rules), [`reconcile`] (next step), the outside worlds [`store`],
//! [`acme`], [`dns`], [`fetch`], [`ca`], with [`serve`], [`disk`], [`programs`], [`keystores`], [`mod@surroundings`]
//! and [`mod@http`], then [`solvers`] and [`probes`], the one loop in [`controllers`], the code that verbs share in
//! [`app`] and [`diagnosis`], and the user interface: [`process`], [`cli`], [`commands`] and [`mod@print`].
//! ARCHITECTURE.md has a paragraph for each, and a walk from `order -f` to newOrder.

pub mod acme;
pub mod app;
pub mod ca;
pub mod cli;
pub mod commands;
pub mod controllers;
pub mod diagnosis;
pub mod disk;
pub mod dns;
pub mod fetch;
pub mod http;
pub mod keystores;
pub mod model;
pub mod print;
pub mod probes;
pub mod process;
pub mod programs;
pub mod reconcile;
pub mod serve;
pub mod solvers;
pub mod store;
pub mod surroundings;
