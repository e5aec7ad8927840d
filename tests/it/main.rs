//! Tests of the rooms together, through their public doors.

mod pairs;
mod store;
