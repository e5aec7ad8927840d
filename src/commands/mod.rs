//! One file per verb, or one room: its flags and what it does. Rooms that verbs share: what is given (`intake`), what has to
//! be permitted (`permissions`), whose turn it is (`claim`), how the work is done (`drive`, `dns01`), how far it has come
//! (`verdict`), and what helps (`advice`).

pub mod ca;
pub mod certificate;
pub mod challenge;
pub mod crds;
pub mod delete;
pub mod describe;
pub mod get;
pub mod order;
pub mod probe;
pub mod run;
pub mod schedule;
pub mod solve;
pub mod timeline;
pub mod version;
pub mod watch;
