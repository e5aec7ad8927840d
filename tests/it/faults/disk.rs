//! Disks that are full, and folders that may not be written.

use std::fs;
use std::process::Command;

use super::site::Site;

/// Runs a command that may not write files of more than so many blocks of 512 bytes.
fn limited(site: &Site, blocks: u32, command: &Command) -> Command {
    let mut sh = Command::new("sh");
    sh.args(["-c", &format!("ulimit -f {blocks}; exec \"$@\""), "sh"]);
    sh.arg(command.get_program()).args(command.get_args());
    site.settle(&mut sh);
    sh
}

#[test]
fn a_disk_that_is_full_from_the_start_is_told() {
    let site = Site::new();
    site.run(limited(&site, 0, &site.order(""))).check(1, "");
}

#[test]
fn a_disk_that_is_full_in_the_middle_is_told() {
    let site = Site::new();
    site.run(limited(&site, 200, &site.order(""))).check(1, "");
}

#[test]
fn a_file_in_place_of_the_state_folder_is_told() {
    let site = Site::new();
    fs::write(site.path("state"), "").unwrap();
    site.run(site.order("")).check(1, "");
}

#[test]
fn a_state_folder_that_nobody_can_make_is_told() {
    let site = Site::new();
    site.run(site.order("--local=/proc/state")).check(1, "");
}

#[test]
fn a_file_in_place_of_the_folder_of_results_is_told() {
    let site = Site::new();
    fs::write(site.path("out"), "").unwrap();
    site.run(site.order("")).check(1, "");
}
