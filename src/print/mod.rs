//! How things look: tables, sheets, timelines, progress, and the one writer to stdout and stderr.

pub mod age;
pub mod columns;
pub mod custom_columns;
pub mod describe;
pub mod document;
pub mod format;
pub mod jsonpath;
mod label;
mod paths;
pub mod table;
mod tabs;
mod value;
