//! Tests of the rooms together, through their public doors.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod store;
