//! What the user sees when something is not as it should be: the exit code, one line that names object and reason, and the
//! next step; and that nothing is half-written then. The real program runs against our own CA, behind a proxy that misbehaves.

mod account;
mod answers;
mod away;
mod by_hand;
mod challenges;
mod disk;
mod first_screen;
mod manifests;
mod nothing_due;
mod on_issued;
mod polls;
mod processes;
mod rehearse_first;
mod run_says;
mod screen;
mod sharing;
mod silent;
mod site;
mod unreadable;
mod verbosity;
mod verdicts;
mod waiting;
mod wishes;
