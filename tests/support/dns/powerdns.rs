//! PowerDNS' configuration: its server keeps zones in a database, which its tool fills.

use std::path::Path;
use std::process::Command;

use super::{Setup, Updates, program};

/// The command for a server of zones, whose files are in the folder.
pub(super) fn command(folder: &Path, port: u16, setup: &Setup) -> Command {
    let place = folder.display();
    let text = format!(
        "launch=lmdb\nlmdb-filename={place}/zones.lmdb\nlmdb-shards=1\nsocket-dir={place}\n\
         local-address=127.0.0.1\nlocal-port={port}\nreceiver-threads=1\ndistributor-threads=1\n\
         dnsupdate=yes\nallow-dnsupdate-from=\ndisable-axfr=yes\ndisable-syslog=yes\nloglevel=5\n\
         cache-ttl=0\nquery-cache-ttl=0\nnegquery-cache-ttl=0\nzone-cache-refresh-interval=0\n"
    );
    std::fs::write(folder.join("pdns.conf"), text).unwrap();
    let tool = |words: &[&str]| {
        let mut command = Command::new(program("pdnsutil"));
        let done = command.arg(format!("--config-dir={place}")).args(words).output().unwrap();
        assert!(done.status.success(), "pdnsutil {words:?}: {done:?}");
    };
    for key in &setup.keys {
        tool(&["import-tsig-key", bare(&key.name), key.algorithm, &key.secret]);
    }
    for zone in &setup.zones {
        let name = bare(&zone.name);
        tool(&[
            "load-zone",
            name,
            &folder.join(format!("{}zone", zone.name)).display().to_string(),
        ]);
        let keys: Vec<&str> = match &zone.updates {
            Updates::Refused => continue,
            Updates::Unsigned => Vec::new(),
            Updates::Signed => setup.keys.iter().map(|key| bare(&key.name)).collect(),
            Updates::SignedBy(key) => vec![bare(key)],
        };
        tool(&["set-meta", name, "ALLOW-DNSUPDATE-FROM", "127.0.0.0/8"]);
        if !keys.is_empty() {
            tool(&[&["set-meta", name, "TSIG-ALLOW-DNSUPDATE"], &keys[..]].concat());
        }
    }
    let mut command = Command::new(program("pdns_server"));
    command.arg(format!("--config-dir={place}")).args(["--daemon=no", "--guardian=no"]);
    command
}

fn bare(name: &str) -> &str {
    name.trim_end_matches('.')
}
