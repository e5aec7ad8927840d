//! Knot Resolver, which keeps every answer for five seconds at least, whatever its TTL.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::copied;

/// The command for a resolver that asks another one.
pub(super) fn command(folder: &Path, port: u16, upstream: SocketAddr) -> Command {
    let (address, at) = (upstream.ip(), upstream.port());
    let text = format!(
        "net.listen('127.0.0.1', {port}, {{ kind = 'dns' }})\ntrust_anchors.remove('.')\ncache.size = 4 * MB\n\
         policy.add(policy.all(policy.FORWARD('{address}@{at}')))\n"
    );
    let path = folder.join("kresd.conf");
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new(copied("kresd", folder));
    command.arg("-n").arg("-c").arg(path).arg(folder);
    command
}
