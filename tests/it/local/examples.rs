//! What `examples/` hands out: every folder is listed, every manifest is read, every unit of systemd fits the others.

use crate::support::program;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(examples().join(path)).unwrap()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

/// Reads manifests as a user would before anything is done, with these words more.
fn read(manifests: &Path, more: &[&str]) -> Output {
    let state = tempfile::tempdir().unwrap();
    let mut program = program::command();
    program.args(["order", "--dry-run=client", "-o", "name", "-f"]).arg(manifests).args(more);
    program.env("KUBECTL_ACME_LOCAL", state.path()).output().unwrap()
}

#[test]
fn every_folder_is_listed() {
    let mut folders = names(&examples());
    assert!(folders.remove("README.md"));
    let listed = text("README.md");
    let rows = listed.lines().filter_map(|line| line.strip_prefix("| ["));
    let rows: BTreeMap<&str, &str> = rows.map(|row| row.split_once("](").unwrap()).collect();
    assert_eq!(folders.iter().collect::<Vec<_>>(), rows.keys().collect::<Vec<_>>());
    for (folder, rest) in rows {
        assert_eq!(rest.split_once(')').unwrap().0, folder, "the link leads elsewhere");
    }
}

#[test]
fn every_manifest_is_read_without_a_complaint() {
    let all = names(&examples());
    let folders = all.iter().map(|name| examples().join(name)).filter(|path| path.is_dir());
    // Flags, no manifests.
    let folders = folders.filter(|folder| !folder.ends_with("config"));
    let folders = folders
        .map(|folder| if folder.ends_with("ci") { folder.join("certificates") } else { folder });
    let folders: Vec<_> =
        folders.filter(|folder| names(folder).iter().any(|name| name.contains(".yaml"))).collect();
    assert!(folders.len() > 15, "{folders:?}");
    for folder in folders {
        let output = read(&folder, &[]);
        let (said, complaints) = (output.stdout, String::from_utf8(output.stderr).unwrap());
        assert_eq!((output.status.code(), &*complaints), (Some(0), ""), "{}", folder.display());
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("issuer.cert-manager.io/"), "{}: {said}", folder.display());
        let asks = ["certificate.cert-manager.io/", "ingress.networking.k8s.io/"];
        assert!(asks.iter().any(|kind| said.contains(kind)), "{}: {said}", folder.display());
    }
}

#[test]
fn the_flags_of_the_configuration_count_until_somebody_types_others() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("kubectl-acme");
    fs::create_dir(&folder).unwrap();
    let state = home.path().join("state");
    let text = text("config/config.yaml").replace("/var/lib/kubectl-acme", state.to_str().unwrap());
    fs::write(folder.join("config.yaml"), text.replace("wide", "name")).unwrap();
    let run = |words: &[&str]| {
        let mut program = program::command();
        program.args(words).env_clear().env("XDG_CONFIG_HOME", home.path());
        program.output().unwrap()
    };
    // There is a store: nobody had to name one.
    let listed = run(&["get", "certificates"]);
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    let elsewhere = run(&["get", "certificates", "--kubeconfig", "/nowhere"]);
    assert_eq!(elsewhere.status.code(), Some(8), "what is typed wins: {elsewhere:?}");
    fs::write(folder.join("config.yaml"), "timeouts: 5m\n").unwrap();
    let wrong = run(&["get", "certificates"]);
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{said}");
    let complaint = "config.yaml: timeouts: there is no such flag, did you mean timeout?";
    assert!(said.contains(complaint), "{said}");
    let without = run(&["version", "--config=/dev/null"]);
    assert_eq!(without.status.code(), Some(0), "{without:?}");
}

/// The values of a setting in a unit.
fn values(unit: &str, setting: &str) -> Vec<String> {
    let unit = text(format!("systemd/{unit}"));
    let values = unit.lines().filter_map(|line| line.strip_prefix(setting)?.strip_prefix('='));
    values.map(str::to_owned).collect()
}

#[test]
fn the_units_of_systemd_start_what_there_is_and_hand_out_what_it_writes() {
    let [start] = &values("kubectl-acme.service", "ExecStart")[..] else { panic!("one command") };
    let words: Vec<&str> = start.split(' ').collect();
    let ["/usr/local/bin/kubectl-acme", "order", "-f", "/etc/kubectl-acme", local] = words[..]
    else {
        panic!("{start}")
    };
    let manifests = examples().join("http01-single");
    assert_eq!(read(&manifests, &[local]).status.code(), Some(0));
    let state = local.strip_prefix("--local=").unwrap();
    let folder = values("kubectl-acme.service", "StateDirectory").concat();
    assert_eq!(state, format!("/var/lib/{folder}"));
    // The Secret of the manifest, in the state's own folder for results.
    let certificate = text("http01-single/certificate.yaml");
    let secret = certificate.lines().find_map(|line| line.strip_prefix("  secretName: ")).unwrap();
    let written = |file: &str| format!("{state}/out/{secret}/{file}");
    assert_eq!(values("www-example-com.path", "PathChanged"), [written("tls.crt")]);
    let commands = values("www-example-com.service", "ExecStart");
    for file in ["tls.crt", "tls.key"] {
        let copies = commands.iter().filter(|command| command.contains(&written(file)));
        assert_eq!(copies.count(), 1, "{file}: {commands:?}");
    }
}
