//! What help and the manual say of one command, and the ways in which commands can fail.

use crate::diagnosis::failure_kind::FailureKind;

/// What is known of a command beyond its flags.
#[derive(Clone, Copy, Debug)]
pub struct CommandPage {
    /// The words that lead to it, such as `order create`; none for the program itself.
    pub path: &'static str,
    /// What it is good for, and the line for that, without the program.
    pub examples: &'static [(&'static str, &'static str)],
    /// How it can fail.
    pub ends: &'static [FailureKind],
}

/// Of commands that only print.
pub(super) const PRINTS: &[FailureKind] = &[FailureKind::Unexpected, FailureKind::Usage];
/// Of commands that serve until they are ended.
pub(super) const SERVES: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of commands that work until certificates are there.
pub(super) const WORKS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Validation,
    FailureKind::RateLimited,
    FailureKind::CaUnreachable,
    FailureKind::Account,
    FailureKind::Cluster,
    FailureKind::Solver,
    FailureKind::OwnedByAnother,
    FailureKind::Person,
    FailureKind::Timeout,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of `diagnose`.
pub(super) const FINDS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::CausesFound,
    FailureKind::WarningsFound,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of `certificate check`, which may work.
pub(super) const CHECKS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Validation,
    FailureKind::RateLimited,
    FailureKind::CaUnreachable,
    FailureKind::Account,
    FailureKind::Cluster,
    FailureKind::Solver,
    FailureKind::CausesFound,
    FailureKind::WarningsFound,
    FailureKind::OwnedByAnother,
    FailureKind::Person,
    FailureKind::Timeout,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of commands that read what is in a store.
pub(super) const READS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of commands that ask a CA for one thing.
pub(super) const ASKS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::RateLimited,
    FailureKind::CaUnreachable,
    FailureKind::Account,
    FailureKind::Cluster,
    FailureKind::OwnedByAnother,
    FailureKind::Person,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of commands that look at an answer.
pub(super) const LOOKS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::Solver,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of commands that write what is in a store.
pub(super) const WRITES: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::Solver,
    FailureKind::OwnedByAnother,
    FailureKind::Person,
    FailureKind::Timeout,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];

impl CommandPage {
    /// The examples as they are typed, each below what it is good for.
    pub fn typed(&self, program: &str) -> String {
        let shown = |(does, line): &(&str, &str)| format!("  # {does}\n  {program} {line}");
        self.examples.iter().map(shown).collect::<Vec<_>>().join("\n\n")
    }
}
