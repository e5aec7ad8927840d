//! Disks that are full, and folders that may not be written.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, chown, symlink};
use std::process::Command;

use super::site::{Site, wait_until};

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
    let mut said = site.run(limited(&site, 240));
    // Whoever writes when the disk is full tells of it: several controllers work side by side.
    said.talk =
        said.talk.replace("error: Issuer default/acme: ", "error: Certificate default/web: ");
    said.check(1, "\
error: Certificate default/web: cannot use the state in state/state.db: it cannot be written: the disk failed, or the file-size limit of this process is reached
hint: put that right, or choose another state folder with --local=DIR
");
    assert_eq!(site.results(), [""; 0]);
    site.issues();
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
    for flags in ["", "--rehearse=loopback", "--dry-run=server"] {
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
hint: nothing is kept of a rehearsal: correct that, and rehearse again
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

/// A pair is written although others have put something else in the place of its files.
#[track_caller]
fn check_planted(plant: impl Fn(&Site)) {
    let site = Site::new();
    plant(&site);
    // Not `run`, which would wait for ever.
    site.start("order", site.order("")).end().check(0, "");
    site.has_pair();
}

#[test]
fn pipes_in_a_folder_of_results_hold_nobody_up() {
    for file in ["tls.key", "tls.crt", "tls.key.new"] {
        check_planted(|site| site.plant_pipe(&format!("out/web-tls/{file}")));
    }
}

#[test]
fn links_in_a_folder_of_results_lead_nowhere() {
    for (file, target) in
        [("tls.key", "/dev/zero"), ("tls.crt", "../../victim"), ("tls.key.new", "../../victim")]
    {
        check_planted(|site| {
            fs::write(site.path("victim"), "theirs").unwrap();
            fs::create_dir_all(site.path("out/web-tls")).unwrap();
            symlink(target, site.path("out/web-tls").join(file)).unwrap();
        });
    }
}

#[test]
fn a_folder_that_is_a_link_of_somebody_else_is_not_written_to() {
    let site = Site::new();
    fs::create_dir_all(site.path("out")).unwrap();
    fs::create_dir(site.path("theirs")).unwrap();
    let link = site.path("out/web-tls");
    symlink("../theirs", &link).unwrap();
    if std::os::unix::fs::lchown(&link, Some(65_534), None).is_err() {
        // Only root can give a link away.
        return;
    }
    site.run(site.order("")).check(
        1,
        "\
error: cannot write out/web-tls: it is a link that user 65534 has made
hint: the certificate is safe in the store; run the same command again to write it out
",
    );
    assert_eq!(fs::read_dir(site.path("theirs")).unwrap().count(), 0);
}

#[test]
fn run_is_neither_held_up_nor_kept_from_its_end_by_a_pipe() {
    let site = Site::new();
    let one = site.manifest();
    let (_, certificate) = one.split_once("---\n").unwrap();
    let second = certificate.replace("name: web\n", "name: api\n").replace("web-tls", "api-tls");
    site.give(&format!("{one}---\n{}", second.replace("www.", "api.")));
    site.plant_pipe("out/api-tls/tls.key");
    let run = site.start("run", site.program("run"));
    run.says("driver: kubectl-acme");
    let order = site.start("order", site.order(""));
    order.end().check(0, "");
    wait_until(|| site.results().len() == 4, "both pairs");
    site.has_pairs(&["api-tls", "web-tls"]);
    run.says("Certificate default/api: up to date");
    run.signal("TERM");
    run.end().check(143, "");
}

#[test]
fn a_signal_ends_the_wait_for_manifests_that_never_come() {
    for name in ["INT", "TERM"] {
        let site = Site::new();
        site.plant_pipe("pipe");
        let order = site.start("order", site.program("order -f pipe"));
        // A pipe can be opened for writing like that once somebody reads.
        let mut open = OpenOptions::new();
        open.write(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let mut never = None;
        let has_reader = || {
            never = open.open(site.path("pipe")).ok();
            never.is_some()
        };
        wait_until(has_reader, "somebody who reads");
        order.hears_signals();
        order.signal(name);
        let code = if name == "INT" { 130 } else { 143 };
        order.end().check(
            code,
            "\
error: interrupted; everything so far is kept
hint: go on with: kubectl-acme order -f pipe
",
        );
        drop(never);
    }
}

/// Refuses to work in a state folder to which something was done; what was there stays as it is, and nobody is asked anything.
#[track_caller]
fn check_exposed(spoil: impl Fn(&Site), told: &str, mend: &str) {
    let site = Site::new();
    let state = site.path("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(site.path("victim"), "theirs").unwrap();
    fs::set_permissions(site.path("victim"), fs::Permissions::from_mode(0o600)).unwrap();
    spoil(&site);
    let complaint = format!(
        "\
error: cannot use the state in {told}
hint: {mend}
hint: put that right, or choose another state folder with --local=DIR
"
    );
    // Not `run`, which would wait for ever where a pipe is opened.
    site.start("order", site.order("")).end().check(2, &complaint);
    assert_eq!(fs::read_to_string(site.path("victim")).unwrap(), "theirs");
    assert_eq!(site.results(), [""; 0]);
    assert_eq!(site.proxy.counts().total(), 0);
}

#[test]
fn what_others_have_put_into_a_state_folder_is_not_used() {
    check_exposed(
        |site| symlink("../victim", site.path("state/driver.lock")).unwrap(),
        "state/driver.lock: it is a link",
        "remove the link: rm state/driver.lock; or name its target",
    );
    for file in ["state.db", "open.lock"] {
        check_exposed(
            |site| site.plant_pipe(&format!("state/{file}")),
            &format!("state/{file}: it is not a regular file"),
            &format!("see what it is: ls -ld state/{file}; and remove it"),
        );
    }
    check_exposed(
        |site| {
            fs::write(site.path("state/state.db"), "").unwrap();
            let open = fs::Permissions::from_mode(0o666);
            fs::set_permissions(site.path("state/state.db"), open).unwrap();
        },
        "state/state.db: it is open to other users (mode 666)",
        "if nobody has changed the file, make it private: chmod 600 state/state.db",
    );
}

#[test]
fn a_state_folder_that_is_not_ours_alone_is_not_used() {
    let open = |mode| {
        move |site: &Site| {
            let open = fs::Permissions::from_mode(mode);
            fs::set_permissions(site.path("state"), open).unwrap();
        }
    };
    check_exposed(
        open(0o770),
        "state: other users may write to it (mode 770)",
        "if all its contents are yours, make it private: chmod 700 state",
    );
    check_exposed(
        open(0o1777),
        "state: other users may write to it (mode 1777)",
        "make a folder of your own in it: mkdir -m 700 state/kubectl-acme; and name that folder",
    );
    check_exposed(
        |site| {
            fs::rename(site.path("state"), site.path("elsewhere")).unwrap();
            symlink("elsewhere", site.path("state")).unwrap();
        },
        "state: it is a link",
        "remove the link: rm state; or name its target",
    );
    let probe = Site::new();
    fs::write(probe.path("probe"), "").unwrap();
    if chown(probe.path("probe"), Some(65_534), None).is_ok() {
        check_exposed(
            |site| {
                fs::write(site.path("state/state.db"), "").unwrap();
                for path in ["state", "state/state.db"] {
                    chown(site.path(path), Some(65_534), None).unwrap();
                }
            },
            "state: it belongs to user 65534, and this is user 0",
            "work as that user (sudo -u '#65534'); or, if the contents are yours, take them over: chown -R 0 state",
        );
    }
}

mod cluster {
    use super::*;
    use crate::support::cluster::Cluster;

    #[test]
    #[ignore = "needs a cluster: run by just cluster"]
    fn a_cluster_takes_a_secret_as_it_was_written() {
        let namespace = Cluster::shared().namespace("out-secret");
        let (kubectl, name) = (namespace.kubectl(), namespace.name());
        let site = Site::new();
        site.run(site.order(&format!("--out-secret -n {name}"))).check(0, "");
        let manifest = site.path("out/web-tls/secret.yaml");
        let manifest = manifest.to_str().unwrap();
        kubectl.run(&["create", "-f", manifest]);
        // Again, as a renewal would.
        kubectl.run(&["apply", "-f", manifest]);
        kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", manifest]);
        assert_eq!(kubectl.object("secret/web-tls")["type"], "kubernetes.io/tls");
    }
}

#[test]
fn a_secret_that_is_written_says_nothing_that_only_the_local_store_may_say() {
    let site = Site::new();
    site.run(site.order("--out-secret")).check(0, "");
    let text = fs::read_to_string(site.path("out/web-tls/secret.yaml")).unwrap();
    assert!(text.contains("kind: Secret") && text.contains("name: web-tls"), "{text}");
    for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"] {
        assert!(!text.contains(&format!("{field}:")), "{field}: {text}");
    }
}

#[test]
fn a_folder_of_results_is_tried_before_a_renewal_is_ordered() {
    let site = Site::new();
    site.issues();
    let renewal = site.program("certificate renew web --out=/proc/out");
    site.run(renewal).check(
        2,
        "\
error: cannot write to /proc/out: nothing can be made there
hint: name a folder that this user may write to: --out DIR
",
    );
    assert_eq!(site.orders(), 1);
}
