//! `examples/ci` as pipelines run it, each time on an empty machine that has nothing but the manifests and the state of the run
//! before.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::program;
use crate::support::terminal::{Said, certificate, issuer};

const NAME: &str = "www.example.com";
/// What the pipelines call their secrets, and what they are.
const SECRETS: [(&str, &str); 2] =
    [("ACME_STATE_PASSWORD", "correct horse"), ("DNS_API_TOKEN", "")];

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ci").join(name)
}

fn pipeline(name: &str) -> Value {
    serde_yaml::from_str(&fs::read_to_string(example(name)).unwrap()).unwrap()
}

/// A machine of one run: a checkout with the script and the manifests.
struct Runner {
    checkout: TempDir,
    environment: Vec<(String, String)>,
}

impl Runner {
    fn new(pebble: &Pebble) -> Self {
        let checkout = tempfile::tempdir().unwrap();
        let script = checkout.path().join("issue.sh");
        fs::copy(example("issue.sh"), &script).unwrap();
        assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o111, 0o111);
        fs::create_dir(checkout.path().join("certificates")).unwrap();
        let here = format!("127.0.0.1:{}", pebble.http_port());
        let environment = [
            ("KUBECTL_ACME_HTTP01_LISTEN", here.clone()),
            ("KUBECTL_ACME_HTTP01_RESOLVE", format!("*={here}")),
            ("KUBECTL_ACME_TIMEOUT", "60s".to_owned()),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let runner = Self { checkout, environment };
        let issuer = issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({}));
        runner.give(&[issuer, certificate("web", &[NAME], json!({}))]);
        runner
    }

    /// The next run, which has what the pipeline keeps.
    fn after(self, pebble: &Pebble) -> Self {
        let next = Self::new(pebble);
        fs::copy(self.path("state.enc"), next.path("state.enc")).unwrap();
        Self { environment: self.environment, ..next }
    }

    fn give(&self, documents: &[Value]) {
        let documents: Vec<String> = documents.iter().map(Value::to_string).collect();
        fs::write(self.path("certificates/manifests.yaml"), documents.join("\n---\n")).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.checkout.path().join(name)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Runs one step as a pipeline does.
    fn step(&self, script: &str, environment: &[(String, String)]) -> Said {
        let programs = Path::new(program::PATH).parent().unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
        let mut shell = Command::new("bash");
        shell.args(["-eo", "pipefail", "-c", script]).env_clear().env("PATH", path);
        let environment = self.environment.iter().chain(environment);
        shell.envs(environment.map(|(name, value)| (name, value)));
        shell.current_dir(self.checkout.path()).output().unwrap().into()
    }

    /// Runs the steps of the workflow up to the one that hands out; GitHub's own are not here.
    fn workflow(&mut self) -> Vec<Said> {
        self.set("GITHUB_ACTIONS", "true");
        for name in ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"] {
            let path = self.path(name);
            fs::write(&path, "").unwrap();
            self.set(name, path.to_str().unwrap());
        }
        let workflow = pipeline("github-actions.yaml");
        let steps = workflow["jobs"]["issue"]["steps"].as_array().unwrap();
        let run = |step: &Value| {
            let environment = step["env"].as_object().into_iter().flatten();
            let environment: Vec<_> =
                environment.map(|(name, value)| (name.clone(), secret(value))).collect();
            Some(self.step(step["run"].as_str()?, &environment))
        };
        steps.iter().filter_map(run).collect()
    }

    /// What the workflow was told of the step.
    fn output(&self) -> String {
        fs::read_to_string(self.path("GITHUB_OUTPUT")).unwrap()
    }
}

/// What GitHub puts in place of an expression.
fn secret(expression: &Value) -> String {
    let name = expression.as_str().unwrap();
    let name = name.strip_prefix("${{ secrets.").and_then(|rest| rest.strip_suffix(" }}")).unwrap();
    SECRETS.iter().find(|(known, _)| *known == name).unwrap().1.to_owned()
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn the_workflow_of_github_issues_once_and_takes_its_state_along() {
    let pebble = Pebble::start(&PebbleOptions::default());
    let mut first = Runner::new(&pebble);
    let [issue, hand_out] = &first.workflow()[..] else { panic!("two steps") };
    assert_eq!((issue.code, hand_out.code), (Some(0), Some(0)), "{issue:?}{hand_out:?}");
    assert_eq!(first.output(), "changed=1\n");
    assert!(hand_out.stdout.contains("notAfter="), "{hand_out:?}");
    assert!(issue.stderr.contains("::notice "), "{issue:?}");
    let summary = fs::read_to_string(first.path("GITHUB_STEP_SUMMARY")).unwrap();
    assert!(summary.contains(NAME), "{summary}");
    assert!(
        !fs::read_to_string(first.path("state.enc")).is_ok_and(|text| text.contains("PRIVATE KEY"))
    );

    let mut second = first.after(&pebble);
    let said = second.workflow();
    assert_eq!(said[0].code, Some(0), "{said:?}");
    assert_eq!(second.output(), "changed=0\n");
    assert_eq!((pebble.orders(), pebble.accounts()), (1, 1));

    let mut wrong = second.after(&pebble);
    wrong.give(&[certificate("web", &[NAME], json!({"dnsName": [NAME]}))]);
    let said = wrong.workflow();
    assert_eq!(said[0].code, Some(2), "{said:?}");
    assert!(said[0].stderr.contains("::error file=certificates/manifests.yaml,line=1"), "{said:?}");
    assert!(wrong.path("state.enc").exists());
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn the_jobs_of_gitlab_leave_what_they_name() {
    let pebble = Pebble::start(&PebbleOptions::default());
    let mut runner = Runner::new(&pebble);
    runner.set("STATE_PASSWORD", SECRETS[0].1);
    let pipeline = pipeline("gitlab-ci.yaml");
    for stage in pipeline["stages"].as_array().unwrap() {
        let jobs = pipeline.as_object().unwrap().values();
        for job in jobs.filter(|job| job["stage"] == *stage) {
            let lines = job["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
            let said = runner.step(&lines.collect::<Vec<_>>().join("\n"), &[]);
            assert_eq!(said.code, Some(0), "{said:?}");
        }
    }
    let job = &pipeline["certificates"];
    let strings = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect()
    };
    let junit = job["artifacts"]["reports"]["junit"].as_str().unwrap().to_owned();
    let kept =
        strings(&job["artifacts"]["paths"]).into_iter().chain(strings(&job["cache"]["paths"]));
    for path in kept.chain([junit]) {
        assert!(runner.path(&path).exists(), "{path}");
    }
    assert_eq!(pebble.orders(), 1);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn the_script_spends_nothing_where_the_rehearsal_fails_and_passes_its_code_on() {
    let pebble = Pebble::start(&PebbleOptions::default());
    let mut runner = Runner::new(&pebble);
    runner.set("STATE_PASSWORD", SECRETS[0].1);
    runner.set("KUBECTL_ACME_TIMEOUT", "3s");
    runner.set("KUBECTL_ACME_HTTP01_RESOLVE", "*=127.0.0.1:1");
    let said = runner.step("./issue.sh", &[]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert_eq!((pebble.orders(), pebble.accounts()), (0, 0));
    let without = Runner::new(&pebble).step("./issue.sh", &[]);
    assert!(without.code != Some(0) && without.stderr.contains("STATE_PASSWORD"), "{without:?}");
}
