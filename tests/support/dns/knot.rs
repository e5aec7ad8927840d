//! Knot's configuration.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::{Setup, Updates, copied};

/// The command for a server of zones, whose files are in the folder.
pub(super) fn command(folder: &Path, port: u16, setup: &Setup) -> Command {
    let place = folder.display();
    std::fs::create_dir(folder.join("database")).unwrap();
    let list = |items: Vec<String>| format!("[ {} ]", items.join(", "));
    let mut text = format!(
        r#"server:
    rundir: "{place}"
    listen: "127.0.0.1@{port}"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: stdout
    any: info
database:
    storage: "{place}/database"
    journal-db-max-size: 16M
    kasp-db-max-size: 16M
    timer-db-max-size: 16M
template:
  - id: default
    storage: "{place}"
    file: "%s.zone"
    zonefile-sync: -1
"#
    );
    if !setup.keys.is_empty() {
        text += "key:\n";
    }
    for key in &setup.keys {
        let (name, algorithm, secret) = (&key.name, key.algorithm, &key.secret);
        writeln!(text, "  - id: \"{name}\"\n    algorithm: {algorithm}\n    secret: \"{secret}\"")
            .unwrap();
    }
    let keys = list(setup.keys.iter().map(|key| format!("\"{}\"", key.name)).collect());
    text += "acl:\n  - id: unsigned\n    action: update\n";
    let mut signed = |id: &str, keys: &str| {
        let rule = "action: update\n    update-type: [ TXT ]";
        writeln!(text, "  - id: \"{id}\"\n    {rule}\n    key: {keys}").unwrap();
    };
    signed("signed", &keys);
    for key in &setup.keys {
        signed(&key.name, &format!("\"{}\"", key.name));
    }
    let copies = || setup.zones.iter().filter_map(|zone| Some((&zone.name, zone.primary?)));
    if copies().next().is_some() {
        text += "remote:\n";
    }
    for (name, at) in copies() {
        writeln!(text, "  - id: \"of-{name}\"\n    address: {}@{}", at.ip(), at.port()).unwrap();
    }
    text += "zone:\n";
    for zone in &setup.zones {
        writeln!(text, "  - domain: \"{}\"", zone.name).unwrap();
        if zone.primary.is_some() {
            writeln!(text, "    master: \"of-{}\"\n    refresh-min-interval: 2", zone.name)
                .unwrap();
        }
        match &zone.updates {
            Updates::Refused => {}
            Updates::Signed => text += "    acl: signed\n",
            Updates::SignedBy(key) => writeln!(text, "    acl: \"{key}\"").unwrap(),
            Updates::Unsigned => text += "    acl: unsigned\n",
        }
    }
    let path = folder.join("knot.conf");
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new(copied("knotd", folder));
    command.arg("-c").arg(path);
    command
}
