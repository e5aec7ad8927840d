//! PowerDNS' resolver, which validates, and which a script can have withhold answers.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::program;

/// A zone of its own, by which it is seen to run.
pub(super) const READY: &str = "ready.test.";
/// While this file is in its folder, it gives no SOA record away; with a name in it, none of that name.
pub const WITHHOLDS_SOA: &str = "withholds-soa";

/// The command for a resolver that asks another one and trusts these DS records: name and content.
pub(super) fn command(
    folder: &Path,
    port: u16,
    upstream: SocketAddr,
    anchors: &[(String, String)],
) -> Command {
    let place = folder.display();
    let text = format!(
        "local-address=127.0.0.1\nlocal-port={port}\nsocket-dir={place}\nthreads=1\n\
         forward-zones-recurse=.={upstream}\nauth-zones={READY}={place}/ready.zone\n\
         lua-config-file={place}/anchors.lua\nlua-dns-script={place}/answers.lua\n\
         dont-query=\nquery-local-address=127.0.0.1\nallow-from=127.0.0.0/8\nsecurity-poll-suffix=\n\
         dnssec=validate\nextended-resolution-errors=yes\nqname-minimization=no\n\
         disable-packetcache=yes\nmax-cache-ttl=1\nmax-cache-bogus-ttl=1\nmax-negative-ttl=1\n\
         disable-syslog=yes\nloglevel=5\n"
    );
    let ready = "$TTL 2\n@ SOA ns hostmaster 1 3600 600 86400 2\n@ NS ns\nns A 127.0.0.1\n";
    let mut trust = "clearTA(\".\")\n".to_owned();
    for (zone, content) in anchors {
        writeln!(trust, "addTA(\"{zone}\", \"{content}\")").unwrap();
    }
    let answers = format!(
        "function postresolve(dq)\n  local found = io.open(\"{place}/{WITHHOLDS_SOA}\")\n\
         \x20 if not found then return false end\n\
         \x20 local only = found:read(\"*l\")\n  found:close()\n\
         \x20 if only and only ~= dq.qname:toString() then return false end\n\
         \x20 if dq.qtype ~= pdns.SOA then return false end\n  dq:setRecords({{}})\n  return true\nend\n"
    );
    let files = [
        ("recursor.conf", text.as_str()),
        ("ready.zone", ready),
        ("anchors.lua", &trust),
        ("answers.lua", &answers),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let mut command = Command::new(program("pdns_recursor"));
    command.arg(format!("--config-dir={place}")).args(["--daemon=no", "--write-pid=no"]);
    command
}
