//! Following what was asked for until each has ended: what is watched, what it waits for, and what is left on disk.

pub mod again;
pub mod chosen;
pub mod closing;
pub mod due;
pub mod events;
pub mod finish;
pub mod folder_turn;
pub mod issuance;
pub mod leftovers;
pub mod manual;
pub mod on_issued;
pub mod pipeline;
pub mod plan;
pub mod purpose;
pub mod renewal;
pub mod replacement;
pub mod report;
pub mod required_types;
pub mod results;
pub mod subject;
pub mod subset;
pub mod supervise;
pub mod tracked;
pub mod unbegun;
pub mod work;
pub mod write_out;
