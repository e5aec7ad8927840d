//! How things look: tables, sheets, timelines, progress, and the one writer to stdout and stderr.

pub mod age;
pub mod columns;
pub mod describe;
mod label;
pub mod table;
mod tabs;
mod value;
