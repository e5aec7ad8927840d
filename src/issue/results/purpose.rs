//! Purpose of a command: certificates, or a rehearsal.

use jiff::SignedDuration;

use super::closing;
use crate::hints::invocation;
use crate::issue::rehearsal::Rehearse;
use crate::print::Printer;

/// Text at the end of every rehearsal.
const UNSPENT: &str = "nothing was spent at the issuer's CA";

/// Purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Certificates, which are kept.
    Issue,
    /// A rehearsal, to see whether the command would work; nothing is kept.
    Rehearse(Rehearse),
    /// A rehearsal; if it succeeds, the command goes on with the real run.
    RehearseFirst(Rehearse),
}

impl Purpose {
    /// Returns whether the store outlives this process.
    pub fn is_kept(self) -> bool {
        self.rehearsed().is_none()
    }

    /// Returns how the command is rehearsed; `None` if it is not a rehearsal.
    pub fn rehearsed(self) -> Option<Rehearse> {
        match self {
            Self::Issue => None,
            Self::Rehearse(how) | Self::RehearseFirst(how) => Some(how),
        }
    }

    /// Returns whether the real run comes after this rehearsal.
    pub fn is_first(self) -> bool {
        matches!(self, Self::RehearseFirst(_))
    }

    /// Prints that a rehearsal was a rehearsal, and the real command.
    pub(super) fn say_unspent(self, printer: &Printer, is_good: bool) {
        let real = match self {
            Self::Issue => return,
            Self::Rehearse(_) => invocation::current().again_without("--rehearse"),
            Self::RehearseFirst(_) => "not begun".to_owned(),
        };
        let outcome = if is_good { "rehearsed" } else { "the rehearsal failed" };
        printer.note(&format!("{outcome}: {UNSPENT}, and nothing is kept; the real order: {real}"));
    }
}

/// Prints that a rehearsal has succeeded, which the real run follows.
pub(super) fn say_rehearsed(printer: &Printer, took: SignedDuration) {
    let took = closing::took(took);
    printer.note(&format!("rehearsed in {took}: {UNSPENT}; now the real order"));
}
