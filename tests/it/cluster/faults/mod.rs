//! What the user sees when a cluster is not as it should be: the exit code, a line that names object and reason, and the next
//! step; and that nothing was applied then. The real program runs against real servers.

mod answers;
mod connecting;
pub(crate) mod definitions;
mod middle;
mod refusals;
mod site;
mod webhook;
