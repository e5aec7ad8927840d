//! BIND's configuration.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::{Setup, Updates, copied};

/// The command for a server of zones, whose files are in the folder.
pub(super) fn command(folder: &Path, port: u16, setup: &Setup) -> Command {
    let mut text = options(folder, port, "recursion no;");
    for key in &setup.keys {
        let (name, algorithm, secret) = (&key.name, key.algorithm, &key.secret);
        writeln!(text, "key \"{name}\" {{ algorithm {algorithm}; secret \"{secret}\"; }};")
            .unwrap();
    }
    for zone in &setup.zones {
        let name = &zone.name;
        let grant = |key: &String| format!("grant \"{key}\" zonesub TXT;");
        let updates = match &zone.updates {
            Updates::Refused => String::new(),
            Updates::Unsigned => "allow-update { any; };".to_owned(),
            Updates::Signed => {
                let grants = setup.keys.iter().map(|key| grant(&key.name));
                format!("update-policy {{ {} }};", grants.collect::<Vec<_>>().join(" "))
            }
            Updates::SignedBy(key) => format!("update-policy {{ {} }};", grant(key)),
        };
        let file = folder.join(format!("{name}zone")).display().to_string();
        let kind = match zone.primary {
            None => "type primary;".to_owned(),
            Some(at) => {
                format!("type secondary; primaries {{ {} port {}; }};", at.ip(), at.port())
            }
        };
        let asked = if zone.is_refused { "allow-query { none; };" } else { "" };
        writeln!(text, "zone \"{name}\" {{ {kind} file \"{file}\"; {updates} {asked} }};").unwrap();
    }
    started(folder, &text)
}

/// The command for a server that resolves names from the root zone in the folder on.
pub(super) fn recursive(folder: &Path, port: u16) -> Command {
    let mut text = options(
        folder,
        port,
        "recursion yes; allow-recursion { any; }; allow-query-cache { any; };",
    );
    let file = folder.join("root.zone").display().to_string();
    writeln!(text, "zone \".\" {{ type primary; file \"{file}\"; }};").unwrap();
    started(folder, &text)
}

fn options(folder: &Path, port: u16, more: &str) -> String {
    let folder = folder.display();
    format!(
        r#"options {{
  directory "{folder}"; pid-file "{folder}/pid"; session-keyfile "{folder}/session"; lock-file none;
  listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
  notify no; check-names primary ignore; allow-transfer {{ any; }}; min-refresh-time 1; dnssec-validation no; empty-zones-enable no; max-cache-size 16M;
  {more}
}};
controls {{ }};
"#
    )
}

fn started(folder: &Path, configuration: &str) -> Command {
    let path = folder.join("named.conf");
    std::fs::write(&path, configuration).unwrap();
    let mut command = Command::new(copied("named", folder));
    command.args(["-g", "-n", "1", "-c"]).arg(path);
    command
}
