//! What a command works for: certificates, or to see whether it would work.

use jiff::SignedDuration;

use super::closing;
use crate::hints::invocation;
use crate::issue::rehearsal::Rehearse;
use crate::print::Printer;

/// What every rehearsal is for.
const UNSPENT: &str = "nothing was spent at the issuer's CA";

/// What a command works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Certificates, which are kept.
    Issue,
    /// To see whether it would work; nothing is kept.
    Rehearse(Rehearse),
    /// The same, and when it works the command goes on with the real thing.
    RehearseFirst(Rehearse),
}

impl Purpose {
    /// Whether the store outlives this process.
    pub fn is_kept(self) -> bool {
        self.rehearsed().is_none()
    }

    /// How it is rehearsed, where it is.
    pub fn rehearsed(self) -> Option<Rehearse> {
        match self {
            Self::Issue => None,
            Self::Rehearse(how) | Self::RehearseFirst(how) => Some(how),
        }
    }

    /// Whether something else comes after it.
    pub fn is_first(self) -> bool {
        matches!(self, Self::RehearseFirst(_))
    }

    /// Says of a rehearsal that it was one, and what the real thing is.
    pub(super) fn say_unspent(self, printer: &Printer, is_good: bool) {
        let real = match self {
            Self::Issue => return,
            Self::Rehearse(_) => invocation::current().again_without("--rehearse"),
            Self::RehearseFirst(_) => "not begun".to_owned(),
        };
        let outcome = if is_good { "rehearsed" } else { "the rehearsal failed" };
        printer.note(&format!("{outcome}: {UNSPENT}, and nothing is kept; the real thing: {real}"));
    }
}

/// Says that a rehearsal has worked, which the real thing follows.
pub(super) fn say_rehearsed(printer: &Printer, took: SignedDuration) {
    let took = closing::took(took);
    printer.note(&format!("rehearsed in {took}: {UNSPENT}; now the real thing"));
}
