//! Tests of the rooms together, through their public doors.

mod store;
