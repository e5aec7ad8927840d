//! How things look: tables, sheets, timelines, progress, and the one writer to stdout and stderr.

pub mod age;
pub mod describe;
mod label;
mod tabs;
mod value;
