//! placeholder

pub mod files;
