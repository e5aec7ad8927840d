//! Answers of challenges as they are published, the state that a CA holds of them, and CAA records.

pub mod answer;
pub mod authority;
pub(crate) mod caa_records;
pub(crate) mod check_report;
