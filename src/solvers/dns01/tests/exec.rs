use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::factory::site_with;
use super::{NAME, record};
use crate::solvers::SolveError;
use crate::solvers::dns01::site::Hooks;
use crate::solvers::dns01::{Provider, factory};
use crate::solvers::remedy::Remedy;
use crate::solvers::testing::advice;

/// Longest time for a process to end, on a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// Builds the solver `exec` with that config.
async fn hook(config: Value, hooks: Hooks) -> Result<Arc<dyn Provider>, SolveError> {
    let solver =
        json!({"webhook": {"groupName": "kubectl-acme", "solverName": "exec", "config": config}});
    let solver = serde_json::from_value(solver).unwrap();
    site_with(hooks, async |site| factory::provider(&solver, site).await).await
}

/// Builds the provider of a script, which gets the folder as its first argument, and lego's three after it.
async fn script(text: &str, folder: &TempDir, seconds: u64) -> Arc<dyn Provider> {
    let path = folder.path().join("hook.sh");
    fs::write(&path, text).unwrap();
    let config = json!({
        "command": ["sh", path],
        "args": [folder.path()],
        "env": [
            {"name": "EXTRA", "value": "extra"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "dns", "key": "good"}}},
        ],
        "timeoutSeconds": seconds,
    });
    hook(config, Hooks::Allowed).await.unwrap()
}

/// Returns the error of a script that fails, with the folder's name replaced.
async fn failure(text: &str, seconds: u64) -> SolveError {
    let folder = TempDir::new().unwrap();
    let error = script(text, &folder, seconds).await.add(&record("one")).await.unwrap_err();
    let shown = |text: String| text.replace(&folder.path().display().to_string(), "DIR");
    let remedy = error.remedy.as_ref().map(|_| Box::new(shown(advice(&error)).into()));
    SolveError { what: shown(error.what), why: shown(error.why), remedy, ..error }
}

#[tokio::test]
async fn a_hook_is_told_what_to_do_as_lego_tells_it() {
    let folder = TempDir::new().unwrap();
    let text = "dir=$1; shift; echo \"$@ | $DNS01_ACTION $DNS01_DOMAIN $DNS01_RECORD $DNS01_VALUE $DNS01_ZONE | \
                $EXTRA $TOKEN ${PATH:+inherited}\" >>$dir/calls";
    let hook = script(text, &folder, 60).await;
    hook.check(NAME).await.unwrap();
    hook.add(&record("one")).await.unwrap();
    hook.remove(&record("one")).await.unwrap();
    let nobodys = super::super::TxtRecord {
        name: "_acme-challenge.example.org.".to_owned(),
        ..record("two")
    };
    hook.add(&nobodys).await.expect("a zone that nobody finds is none of its matters");
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    let expected = format!(
        "present {NAME} one | present www.example.com {NAME} one example.com. | extra value inherited\n\
         cleanup {NAME} one | cleanup www.example.com {NAME} one example.com. | extra value inherited\n\
         present _acme-challenge.example.org. two | present www.example.com _acme-challenge.example.org. two  | \
         extra value inherited\n"
    );
    assert_eq!(calls, expected);
}

#[tokio::test]
async fn a_hook_that_fails_is_quoted_without_its_credentials() {
    let text =
        "echo first; echo second >&2; echo; echo \"no $EXTRA zone for $TOKEN\"; echo last; exit 3";
    let error = failure(text, 60).await;
    assert_eq!(error.what, format!("the hook `sh DIR/hook.sh DIR present {NAME}` fails"));
    assert_eq!(error.why, "it ended with exit status 3: second / no extra zone for *** / last");
    let hint = format!(
        "run it by hand: sh DIR/hook.sh DIR present {NAME} TEXT; it has to end with 0 once the TXT record is published"
    );
    assert!(error.needs_person && advice(&error) == hint);
    let error = failure("exit 75", 60).await;
    assert_eq!(error.why, "it ended with exit status 75");
    assert!(!error.needs_person, "it asks for another try");
    let error = failure("kill -9 $$", 60).await;
    assert_eq!(error.why, "it was ended by signal: 9 (SIGKILL)");
}

#[tokio::test]
async fn one_that_says_a_lot_neither_blocks_nor_fills_the_status() {
    let text = "i=0; while [ $i -lt 3000 ]; do echo \"line $i of very many words that nobody wants to read\"; i=$((i+1)); done; exit 1";
    let error = failure(text, 600).await;
    assert!(error.why.contains("line 2999 of") && error.why.chars().count() < 400, "{error}");
    // One line that is longer than what is kept may begin in the middle of a credential.
    let text = "i=0; while [ $i -lt 1000 ]; do printf '%s' \"$TOKEN\"; i=$((i+1)); done; exit 1";
    assert_eq!(failure(text, 600).await.why, "it ended with exit status 1");
}

#[tokio::test]
async fn one_that_takes_too_long_is_ended_with_all_that_it_has_started() {
    let folder = TempDir::new().unwrap();
    let text = "sleep 600 & echo $! >$1/pid; echo waiting; wait";
    // Its own sleep may only begin when the time is up, on a busy machine.
    let error = script(text, &folder, 5).await.add(&record("one")).await.unwrap_err();
    assert_eq!(error.why, "it was still running after 5 s, and was ended: waiting");
    assert!(error.needs_person && advice(&error).contains("timeoutSeconds"));
    let child = fs::read_to_string(folder.path().join("pid")).unwrap();
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    loop {
        let shown = Command::new("ps").args(["-o", "stat=", "-p", child.trim()]).output().unwrap();
        let state = String::from_utf8(shown.stdout).unwrap();
        // Those that nobody has waited for yet are shown as Z.
        if state.trim().is_empty() || state.starts_with('Z') {
            break;
        }
        assert!(Instant::now() < deadline, "{child} is still {state}");
        sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_told_before_an_order() {
    let folder = TempDir::new().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    for (program, expected) in [
        ("/nowhere/hook", Some("cannot run the hook /nowhere/hook: there is no such program")),
        (
            "no-such-program-anywhere",
            Some("cannot run the hook no-such-program-anywhere: there is no such program"),
        ),
        (plain.to_str().unwrap(), Some("the file is not executable")),
        ("sh", None),
        ("/bin/sh", None),
    ] {
        let hook = hook(json!({"command": [program]}), Hooks::Allowed).await.unwrap();
        let checked = hook.check(NAME).await;
        match expected {
            None => checked.unwrap(),
            Some(expected) => {
                let error = checked.unwrap_err();
                assert!(error.to_string().ends_with(expected) && error.needs_person, "{error}");
                let started = hook.add(&record("one")).await.unwrap_err();
                assert!(started.why.starts_with("it cannot be started: "), "{started}");
            }
        }
    }
}

#[tokio::test]
async fn nothing_is_run_unless_a_person_says_so() {
    for (hooks, why, remedy) in [
        (Hooks::NotAllowed, "touch is run only where that is allowed", Remedy::AllowPrograms),
        (
            Hooks::Never,
            "in a cluster no program is run that an Issuer names: whoever may write one would run programs here",
            Remedy::ProgramsOnThisMachine,
        ),
    ] {
        let error = hook(json!({"command": ["touch"]}), hooks).await.unwrap_err();
        assert_eq!((error.why.as_str(), advice(&error)), (why, format!("{remedy:?}")));
        assert!(error.needs_person);
    }
}
