//! The real openssl, as a second opinion in tests.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Runs openssl with that input and returns its standard output. Fails the test if openssl is missing or disagrees.
pub(super) fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tests need openssl on the PATH");
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments:?}: {said}");
    output.stdout
}

/// Makes a file for openssl to read; the file is gone with its guard.
pub(super) fn file(content: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content).unwrap();
    file
}
