//! Judgment of chains, obstacles and observations: why something does not go on, and what helps. As on floor 0 there are
//! no clocks, files and sockets here, and nothing waits; steps that help are data, which `app::hints` puts into words.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod advice;
pub mod authority_case;
pub mod awaited;
pub mod blocker;
pub mod caa;
pub mod case;
pub mod catalogue;
pub mod chain;
pub mod control_case;
pub mod controller_words;
pub mod dns_case;
pub mod facts;
pub mod failed;
pub mod failure_kind;
pub mod finding;
pub mod foreign;
pub mod gateway_objects;
mod http_words;
pub mod issuer_words;
pub mod name_case;
pub mod near_issuer;
pub mod network_policy;
pub mod next_step;
pub mod node_state;
pub mod path_case;
pub mod path_objects;
pub mod plugin_policy;
pub mod provider_case;
pub mod provider_words;
pub mod public_name;
pub mod refusal_words;
pub mod replacement;
pub mod rules;
pub mod sights;
pub mod update_words;
pub mod verdict;
pub mod web_case;
