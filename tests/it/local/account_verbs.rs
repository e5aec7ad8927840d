//! `account` and its verbs at CAs that claim more than they do, and the end of an account key on one machine.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::bed::{PATIENCE, free_port};
use crate::support::program;

/// A folder with a CA that behaves in some way, and a store.
struct Site {
    folder: TempDir,
    ca: Child,
    directory: String,
    listen: String,
}

impl Site {
    fn new(behave: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = format!("127.0.0.1:{}", free_port());
        let talk: PathBuf = folder.path().join("ca.talk");
        let mut command = program::command();
        command.args(["ca", "--listen", "127.0.0.1:0", "--root", "root.pem", "--behave", behave]);
        command.env("KUBECTL_ACME_HTTP01_RESOLVE", format!("*={listen}"));
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let ca = command.stderr(File::create(&talk).unwrap()).spawn().unwrap();
        let mut site = Self { folder, ca, directory: String::new(), listen };
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let said = fs::read_to_string(&talk).unwrap();
            if said.contains("everything is kept in memory") {
                let line = said.lines().find_map(|line| line.split_once("directory: "));
                line.unwrap().1.clone_into(&mut site.directory);
                return site;
            }
            assert!(std::time::Instant::now() < deadline, "the CA: {said}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Runs a command line; its exit code and what it said.
    fn run(&self, words: &[&str]) -> (i32, String) {
        let mut command: Command = program::command();
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null()).envs([
            ("KUBECTL_ACME_LOCAL", "state".to_owned()),
            ("KUBECTL_ACME_OUT", "out".to_owned()),
            ("KUBECTL_ACME_HTTP01_LISTEN", self.listen.clone()),
            ("KUBECTL_ACME_HTTP01_RESOLVE", format!("*={}", self.listen)),
        ]);
        let ended = command.output().unwrap();
        let said = [ended.stdout, ended.stderr].concat();
        (ended.status.code().unwrap(), String::from_utf8_lossy(&said).into_owned())
    }

    #[track_caller]
    fn ends(&self, words: &[&str], code: i32, says: &str) -> String {
        let (ended, said) = self.run(words);
        assert!(ended == code && said.contains(says), "{words:?} [{ended}]: {said}");
        said
    }

    #[track_caller]
    fn orders(&self, name: &str, code: i32, says: &str) {
        let ca = ["--server", &self.directory, "--ca-bundle", "root.pem", "--timeout", "60s"];
        self.ends(&[&["order", "--domain", name], &ca[..]].concat(), code, says);
    }

    /// The name of the Issuer that was made.
    fn issuer(&self) -> String {
        let (_, said) = self.run(&["get", "issuer", "-o", "name"]);
        said.trim().rsplit('/').next().unwrap().to_owned()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.ca.kill().ok();
        self.ca.wait().ok();
    }
}

#[test]
fn a_ca_that_cannot_change_keys_keeps_the_account_at_work() {
    let site = Site::new("key-change-501");
    site.orders("a.example.com", 0, "");
    let issuer = site.issuer();
    site.ends(&["account", "rollover", &issuer], 7, "the account keeps the key");
    site.orders("b.example.com", 0, "");
}

#[test]
fn a_change_of_the_key_that_cannot_be_ended_is_named_and_given_up() {
    let site = Site::new("key-change-500");
    site.orders("a.example.com", 0, "");
    let issuer = site.issuer();
    site.ends(&["account", "rollover", &issuer], 6, "--abandon");
    site.ends(&["diagnose", &format!("issuer/{issuer}")], 10, "ACC-12");
    // Its Certificate is ready, and is not renewed once the CA wants the other key.
    site.ends(&["diagnose", "-A"], 10, "ACC-12");
    site.ends(&["account", "rollover", &issuer, "--abandon"], 0, "keeps its key");
    site.ends(&["account", "rollover", &issuer, "--abandon"], 0, "no change");
    site.orders("b.example.com", 0, "");
}

#[test]
fn an_account_that_the_ca_keeps_is_not_called_deactivated() {
    let site = Site::new("deactivation-ignored");
    site.orders("a.example.com", 0, "");
    let issuer = site.issuer();
    site.ends(&["account", "deactivate", &issuer, "--yes"], 7, "keeps the account as valid");
    site.orders("b.example.com", 0, "");
}

#[test]
fn an_account_that_cannot_be_read_gets_another_key_all_the_same() {
    let site = Site::new("account-unreadable");
    site.orders("a.example.com", 0, "");
    let issuer = site.issuer();
    site.ends(&["account", "show", &issuer], 7, "jwk");
    site.ends(&["account", "rollover", &issuer], 0, "has a new key");
    site.orders("b.example.com", 0, "");
}

#[test]
fn after_the_end_of_an_account_its_secret_is_deleted_for_another_one() {
    let site = Site::new("contact-null");
    site.orders("a.example.com", 0, "");
    let issuer = site.issuer();
    let said = site.ends(&["account", "deactivate", &issuer, "--yes"], 0, "is deactivated");
    let hint = said.lines().find_map(|line| line.split_once("delete secret ")).unwrap().1;
    let secret = hint.split_whitespace().next().unwrap();
    let cure = format!("delete secret {secret} deletes its key");
    site.orders("b.example.com", 7, &cure);
    site.ends(&["delete", "secret", secret], 2, "--yes");
    site.ends(&["delete", "secret", "a-example-com-tls", "--yes"], 2, "holds no account key");
    site.ends(&["delete", "secret", secret, "--yes"], 0, "deleted");
    site.orders("b.example.com", 0, "");
}
