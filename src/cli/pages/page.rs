//! Content of help and the manual for one command, and the ways in which commands can fail.

use crate::diagnosis::verdict::failure_kind::FailureKind;

/// Facts about a command beyond its flags.
#[derive(Clone, Copy, Debug)]
pub struct CommandPage {
    /// Words that lead to the command, such as `order create`; empty for the program itself.
    pub path: &'static str,
    /// Examples: the purpose, and the command line without the program.
    pub examples: &'static [(&'static str, &'static str)],
    /// Kinds of failure with which the command can end.
    pub ends: &'static [FailureKind],
}

/// Failures of commands that only print.
pub(super) const PRINTS: &[FailureKind] = &[FailureKind::Unexpected, FailureKind::Usage];
/// Failures of commands that serve until they are ended.
pub(super) const SERVES: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Failures of commands that work until certificates are issued.
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
/// Failures of `diagnose`.
pub(super) const FINDS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::CausesFound,
    FailureKind::WarningsFound,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Failures of `certificate check`, which can renew certificates.
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
/// Failures of commands that read objects of a store.
pub(super) const READS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Failures of commands that ask a CA for one thing.
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
/// Failures of commands that check an answer.
pub(super) const LOOKS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::Solver,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Failures of commands that write objects of a store.
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
    /// Returns the examples as typed, each below a line with its purpose.
    pub fn typed(&self, program: &str) -> String {
        let shown = |(does, line): &(&str, &str)| format!("  # {does}\n  {program} {line}");
        self.examples.iter().map(shown).collect::<Vec<_>>().join("\n\n")
    }
}
