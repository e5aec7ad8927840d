//! Work of a command, followed until each Certificate has its certificate or its failure.

pub(crate) mod answer_removal;
pub mod events;
pub mod supervise;
pub mod work;
