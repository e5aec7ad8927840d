//! Disks that are full, and folders that may not be written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::site::Site;

/// Runs a command that cannot do its work; once that is mended, the same command ends well.
#[track_caller]
fn check(site: &Site, command: Command, code: i32, complaint: &str, mend: impl FnOnce(&Site)) {
    site.run(command).check(code, complaint);
    assert_eq!(site.results(), [""; 0]);
    mend(site);
    site.issues();
}

/// A command that may not write files of more than so many blocks of 512 bytes: a disk as full as that.
fn limited(site: &Site, blocks: u32) -> Command {
    let command = site.order("");
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -f {blocks}; exec \"$@\""), "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    site.settle(&mut limited);
    limited
}

#[test]
fn a_disk_that_is_full_from_the_start_is_told_before_the_ca_is_asked() {
    let site = Site::new();
    site.run(limited(&site, 0)).check(1, "\
error: cannot use the state in state/state.db: it cannot be written: the disk failed, or the file-size limit of this process is reached
hint: put that right, or choose another state folder with --local=DIR
");
    assert_eq!(site.proxy.counts().total(), 0);
    site.issues();
}

#[test]
fn a_disk_that_is_full_in_the_middle_is_told_and_loses_nothing() {
    let site = Site::new();
    check(&site, limited(&site, 200), 1, "\
error: Certificate default/web: cannot use the state in state/state.db: it cannot be written: the disk failed, or the file-size limit of this process is reached
hint: put that right, or choose another state folder with --local=DIR
", |_| {});
    assert!(site.orders() <= 1, "{}", site.orders());
}

#[test]
fn a_file_in_place_of_the_state_folder_is_told() {
    let site = Site::new();
    fs::write(site.path("state"), "").unwrap();
    check(
        &site,
        site.order(""),
        1,
        "\
error: cannot use the state in state: it is not a folder
hint: put that right, or choose another state folder with --local=DIR
",
        |site| fs::remove_file(site.path("state")).unwrap(),
    );
}

#[test]
fn a_state_folder_that_cannot_be_made_is_told() {
    let site = Site::new();
    check(
        &site,
        site.order("--local=/proc/state"),
        1,
        "\
error: cannot use the state in /proc/state: nothing can be made there
hint: put that right, or choose another state folder with --local=DIR
",
        |_| {},
    );
}

#[test]
fn a_state_folder_that_may_not_be_written_is_told() {
    let site = Site::new();
    let state = site.path("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o500)).unwrap();
    check(
        &site,
        site.order_of_nobody(""),
        1,
        "\
error: cannot use the state in state/open.lock: this user may not write there
hint: put that right, or choose another state folder with --local=DIR
",
        |site| {
            fs::remove_dir(site.path("state")).unwrap();
        },
    );
}

#[test]
fn a_folder_of_results_that_cannot_be_written_is_told_and_written_later() {
    let site = Site::new();
    fs::create_dir_all(site.path("out/web-tls/tls.key")).unwrap();
    check(
        &site,
        site.order(""),
        1,
        "\
error: cannot write out/web-tls/tls.key: it is a folder, not a file
hint: the certificate is safe in the store; run the same command again to write it out
",
        |site| fs::remove_dir(site.path("out/web-tls/tls.key")).unwrap(),
    );
    assert_eq!(site.orders(), 1);
}

#[test]
fn a_place_of_results_that_is_no_folder_is_told_before_anything_is_spent() {
    let site = Site::new();
    fs::write(site.path("out"), "").unwrap();
    for flags in ["", "--rehearse=loopback"] {
        site.run(site.order(flags)).check(
            2,
            "\
error: cannot write to out: it is not a folder
hint: name a folder that this user may write to: --out DIR
",
        );
    }
    assert_eq!(site.proxy.counts().total(), 0);
}

#[test]
fn results_of_a_rehearsal_that_cannot_be_written_are_lost() {
    let site = Site::new();
    fs::create_dir(site.path("out")).unwrap();
    fs::write(site.path("out/web-tls"), "").unwrap();
    site.run(site.order("--rehearse=loopback")).check(
        1,
        "\
error: cannot write out/web-tls: it is not a folder
hint: nothing is kept of a rehearsal: put that right, and rehearse again
",
    );
}

/// Renews while a folder stands where a file is to be written: the pair stays as it was. Without the folder, the same works.
#[track_caller]
fn check_renewal(obstacle: &str) {
    let site = Site::new();
    site.issues();
    // A folder cannot be replaced by a file, not even by root.
    let path = site.path("out/web-tls").join(obstacle);
    fs::remove_file(&path).ok();
    fs::create_dir(&path).unwrap();
    let files = || {
        let results = site.results().into_iter();
        results.map(|name| fs::read(site.path("out").join(name)).unwrap()).collect::<Vec<_>>()
    };
    let (names, before) = (site.results(), files());
    let mut renew = site.program("certificate renew web");
    renew.env("KUBECTL_ACME_NAMESPACE", "default");
    let complaint = format!(
        "\
error: cannot write out/web-tls/{obstacle}: it is a folder, not a file
hint: the certificate is safe in the store; run the same command again to write it out
"
    );
    site.run(renew).check(1, &complaint);
    assert_eq!((site.results(), files()), (names, before));
    fs::remove_dir(path).unwrap();
    site.issues();
}

#[test]
fn results_that_may_not_be_replaced_stay_as_they_are() {
    check_renewal("tls.key");
}

#[test]
fn a_certificate_that_cannot_be_written_leaves_the_old_pair() {
    check_renewal("tls.crt.new");
}
