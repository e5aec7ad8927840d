//! Results of a command: files, reports, lines at its end, and programs that it runs for each certificate.

pub mod closing;
pub mod files;
pub mod finish;
pub mod folder_turn;
pub mod on_issued;
pub mod purpose;
pub mod report;
pub mod subject;
pub mod temporary;
pub mod unbegun;
pub mod write_out;
