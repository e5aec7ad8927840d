//! What is searched: how much may go wrong, and which fault of ours is built in to show that it is found.

use super::state::Left;

/// What is searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) left: Left,
    /// So many moments go by while things go wrong.
    pub(crate) moments: u8,
    /// Most challenges under way.
    pub(crate) cap: usize,
    /// One process at a time, by the Lease; else both work.
    pub(crate) is_leased: bool,
    /// Answers end with the process that serves them.
    pub(crate) serves: bool,
    pub(crate) mutant: Option<Mutant>,
}

/// A fault of ours: something that a process forgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// To write down that a newOrder goes out.
    Ledger,
    /// To write down that one is asked for again, after a process that is no more.
    AskedAgain,
    /// That an order was made which it could not write down.
    Unwritten,
    /// To read an Order anew of which others have asked already.
    Anew,
    /// To look for the answer before the CA does.
    SelfCheck,
    /// To mark a Challenge before its answer is put up.
    Finalizer,
    /// To take the answer down.
    CleanUp,
    /// That the CA has asked for patience.
    Patience,
    /// How many are under way.
    Cap,
    /// That the order is waited for, once all is told to the CA.
    Poll,
    /// That somebody has written in between.
    Conflict,
}

impl Setting {
    pub(crate) fn with(self, mutant: Mutant) -> Self {
        Self { mutant: Some(mutant), ..self }
    }

    pub(crate) fn has(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
