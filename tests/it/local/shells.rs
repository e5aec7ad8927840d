//! TAB in real shells, with the scripts that the program prints: bash and zsh at a terminal, fish by the command that says what
//! TAB would offer.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use kubectl_acme::model::Record;
use kubectl_acme::store::Store as _;
use kubectl_acme::store::local::{Access, LocalStore};
use serde_json::{Value, json};

use crate::support::cluster::eventually;
use crate::support::program;

/// What is typed before TAB and behind it, and the word that comes of it.
const PRESSED: [(&str, &str, &str); 22] = [
    // The default store holds www-example-com.
    ("get certs --local=ci2 www", "", "www-acme-test"),
    ("get certs --local www", "", "www-example-com"),
    ("get --local=ci2 certs mail -n shop ", "", "post"),
    ("get certs --local='my store' ", "", "web"),
    ("get certs --local=my", "", "--local=my store/"),
    ("get certs --local=ci", "", "--local=ci2/"),
    ("challenge check --local=ci2 ", "", "www-acme-test-1-2-3"),
    ("certificate renew --local=ci2 ", "", "www-acme-test"),
    ("order retry --local=ci2 ", "", "www-acme-test-1-2"),
    ("order resume --local=ci2 order/", "", "order/www-acme-test-1-2"),
    ("get --local=ci2 order/", "", "order/www-acme-test-1-2"),
    ("get certificates,or", "", "certificates,order"),
    ("get certs --local=ci2 --namespace=sh", "", "--namespace=shop"),
    ("get certs --kubeconfig=places --context=user@w", "", "--context=user@work:1"),
    ("order -f wi", "", "wide.yaml"),
    ("order -f ./wi", "", "./wide.yaml"),
    ("order -f wide.yaml wi", "", "wide.yaml"),
    ("order -f wide.yaml,wi", "", "wide.yaml,wide.yaml"),
    ("order --out ma", "", "manifests/"),
    ("order --server letsencrypt-", "", "letsencrypt-staging"),
    ("get certs -o custom", "A:.a", "custom-columns=A:.a"),
    ("ord", "", "order"),
];

/// What bash and zsh show when the line is run: the words, each in angle brackets.
const SHOW: &str = "printf '<%s>' ";
/// What ends the line, and how that looks when it has been run.
const END: (&str, &str) = ("; echo the''-end", "the-end");
const PROMPT: &str = "ready> ";

/// A person with our program, stores and files in a folder.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    async fn new() -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["bin", "manifests"] {
            fs::create_dir(desk.path(folder)).unwrap();
        }
        symlink(program::PATH, desk.path("bin/kubectl-acme")).unwrap();
        fs::write(desk.path("wide.yaml"), "").unwrap();
        let contexts = json!([{"name": "user@home"}, {"name": "user@work:1"}]);
        fs::write(desk.path("places"), json!({"contexts": contexts}).to_string()).unwrap();
        desk.fill("kubectl-acme", &[certificate("default", "www-example-com")]).await;
        desk.fill("my store", &[certificate("default", "web")]).await;
        let work = [
            certificate("default", "www-acme-test"),
            certificate("shop", "mail"),
            certificate("shop", "post"),
            of_acme("Order", "www-acme-test-1-2"),
            of_acme("Challenge", "www-acme-test-1-2-3"),
        ];
        desk.fill("ci2", &work).await;
        desk
    }

    async fn fill(&self, folder: &str, objects: &[Value]) {
        let store = LocalStore::open(&self.path(folder), Access::ReadWrite).unwrap();
        for object in objects {
            store.create(Record::new(object.clone()).unwrap()).await.unwrap();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command that knows nothing but this folder.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let path = [self.path("bin"), "/usr/bin".into(), "/bin".into()];
        command
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HOME", self.folder.path())
            .env("ZDOTDIR", self.folder.path())
            .env("XDG_STATE_HOME", self.folder.path())
            .env("LANG", "C.UTF-8")
            .current_dir(self.folder.path());
        command
    }

    /// What kubectl's helper answers.
    fn helper(&self, words: &[&str]) -> String {
        let mut command = self.command(program::PATH);
        let output = command.arg("__complete").args(words).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn certificate(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"secretName": name, "dnsNames": ["a.example"], "issuerRef": {"name": "a"}},
    })
}

fn of_acme(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "acme.cert-manager.io/v1",
        "kind": kind,
        "metadata": {"namespace": "default", "name": name},
        "spec": {"issuerRef": {"name": "a"}},
    })
}

/// A shell at a terminal.
struct Session<'d> {
    desk: &'d Desk,
    terminal: Child,
    keyboard: ChildStdin,
}

impl<'d> Session<'d> {
    fn start(desk: &'d Desk, shell: &str) -> Self {
        let named = Path::new("/usr/bin").join(shell.split(' ').next().unwrap());
        assert!(named.exists(), "{} is missing: run tests/run once", named.display());
        let mut terminal = desk.command("/usr/bin/script");
        terminal.args(["--quiet", "--flush", "--return", "--command", shell, "shown"]);
        terminal.env("SHELL", "/bin/sh").env("TERM", "xterm").stdin(Stdio::piped());
        let mut terminal = terminal.stdout(Stdio::null()).spawn().expect("script(1)");
        let keyboard = terminal.stdin.take().unwrap();
        let session = Self { desk, terminal, keyboard };
        session.shows(0, PROMPT);
        session
    }

    fn shown(&self) -> String {
        let bytes = fs::read(self.desk.path("shown")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until these words are shown, and returns what is, both from there on.
    #[track_caller]
    fn shows(&self, from: usize, words: &str) -> String {
        eventually(words, || {
            let shown = self.shown().split_off(from);
            shown.contains(words).then_some(shown)
        })
    }

    /// The last word of a command of ours after TAB.
    fn press(&mut self, before: &str, behind: &str) -> String {
        let from = self.shown().len();
        // To the beginning of the line, and to its end.
        let (typed, end) = (format!("kubectl-acme {before}\t{behind}"), END.0);
        write!(self.keyboard, "{typed}\x01{SHOW}\x05{end}\r").unwrap();
        self.shows(from, &format!("{}\r\n", END.1));
        let shown = self.shows(from, "<kubectl-acme>");
        let words = shown.split("<kubectl-acme>").nth(1).unwrap();
        let words = words.split(&format!("{}\r\n", END.1)).next().unwrap();
        words
            .trim_end_matches('>')
            .rsplit("><")
            .next()
            .unwrap_or_default()
            .trim_start_matches('<')
            .to_owned()
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // One that has ended needs no end.
        self.terminal.kill().ok();
        self.terminal.wait().ok();
    }
}

/// Presses TAB at the end of every line; on a busy machine names may come too late for whoever waits, who presses once more.
#[track_caller]
fn check(desk: &Desk, shell: &str) {
    let mut session = Session::start(desk, shell);
    for (before, behind, expected) in PRESSED {
        let mut found = String::new();
        eventually(&format!("{expected} after {before}"), || {
            found = session.press(before, behind);
            // zsh takes the slash off again where a folder is the end of a line.
            (found == expected || format!("{found}/") == expected).then_some(())
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_completes_what_a_person_types() {
    let desk = Desk::new().await;
    let rc = format!("PS1='{PROMPT}'\nsource <(kubectl-acme completion bash)\n");
    fs::write(desk.path("rc"), rc).unwrap();
    check(&desk, "bash --noprofile --rcfile rc -i");
}

#[tokio::test(flavor = "multi_thread")]
async fn zsh_completes_what_a_person_types() {
    let desk = Desk::new().await;
    let rc = "autoload -Uz compinit && compinit -u -D\nsource <(kubectl-acme completion zsh)\n";
    fs::write(desk.path(".zshrc"), format!("{rc}PS1='{PROMPT}'\n")).unwrap();
    check(&desk, "zsh -d -i");
}

#[tokio::test(flavor = "multi_thread")]
async fn zsh_finds_the_script_in_a_folder_of_functions() {
    let desk = Desk::new().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions/_kubectl-acme");
    fs::create_dir(desk.path("functions")).unwrap();
    fs::copy(script, desk.path("functions/_kubectl-acme")).unwrap();
    let rc = "fpath=($HOME/functions $fpath)\nautoload -Uz compinit && compinit -u -D\n";
    fs::write(desk.path(".zshrc"), format!("{rc}PS1='{PROMPT}'\n")).unwrap();
    let mut session = Session::start(&desk, "zsh -d -i");
    // From the first TAB on.
    let (before, _, expected) = PRESSED[0];
    eventually(expected, || (session.press(before, "") == expected).then_some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn fish_completes_what_a_person_types() {
    let desk = Desk::new().await;
    let ask = "kubectl-acme completion fish | source; complete --do-complete=\"$argv\"";
    for (before, behind, expected) in PRESSED {
        let expected = expected.strip_suffix(behind).unwrap();
        eventually(&format!("{expected} after {before}"), || {
            let mut fish = desk.command("/usr/bin/fish");
            fish.args(["--no-config", "--private", "--command", ask]);
            let offered = fish.arg(format!("kubectl-acme {before}")).output().unwrap();
            let offered = String::from_utf8(offered.stdout).unwrap();
            let words: Vec<_> =
                offered.lines().filter_map(|line| line.split('\t').next()).collect();
            (words == [expected]).then_some(())
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_says_where_to_look_and_what_is_typed_beats_it() {
    let desk = Desk::new().await;
    for (variables, words, expected) in [
        (&[("LOCAL", "ci2")][..], &["get", "certs", ""][..], "www-acme-test"),
        (&[("LOCAL", "ci2"), ("NAMESPACE", "shop")], &["get", "certs", "m"], "mail"),
        (&[("LOCAL", "ci2")], &["get", "certs", "--local=my store", ""], "web"),
        (&[("LOCAL", "0")], &["get", "certs", ""], ":4"),
        (&[("KUBECONFIG", "places")], &["get", "certs", "--context", "user@h"], "user@home"),
    ] {
        eventually(expected, || {
            let mut command = desk.command(program::PATH);
            let variables =
                variables.iter().map(|(name, value)| (format!("KUBECTL_ACME_{name}"), value));
            let output = command.envs(variables).arg("__complete").args(words).output().unwrap();
            let answer = String::from_utf8(output.stdout).unwrap();
            (answer.split(['\t', '\n']).next() == Some(expected)).then_some(())
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completing_writes_nothing() {
    let desk = Desk::new().await;
    // What SQLite's readers share among themselves is no state.
    let parts = "-type d -printf %p\\n -o ! -name *-shm ! -name *-wal -printf %p:%s:%T@\\n";
    let listed = || {
        let mut find = Command::new("find");
        let found = find.arg(desk.path("")).args(parts.split(' ')).output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        found.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let before = listed();
    for words in [
        &["get", "certs", "--local=ci2", ""][..],
        &["get", "certs", "--local=new", ""],
        &["get", "certs", "--local=ci2", "-n", ""],
        &["get", "certs", "--local=wide.yaml", ""],
    ] {
        assert!(desk.helper(words).ends_with(":4\n"), "{words:?}");
    }
    assert_eq!(listed(), before);
}
