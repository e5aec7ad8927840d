//! Content of help and the manual for each command, beyond its flags: examples, and the codes with
//! which the command can end.

mod accounts;
mod objects;
mod page;

pub use self::page::CommandPage;
use self::page::{FINDS, PRINTS, READS, SERVES, WORKS, WRITES};
use crate::diagnosis::verdict::failure_kind::FailureKind;

/// Pages of the commands about a whole store, and of the commands without a store.
const PAGES: &[CommandPage] = &[
    CommandPage {
        path: "",
        examples: &[
            (
                "A certificate on this machine, without manifests",
                "order --domain www.example.com --local",
            ),
            ("What is in the cluster, in all namespaces", "get certificates,orders,challenges -A"),
            ("Why an order takes so long", "challenge get --local -o wide"),
        ],
        ends: &FailureKind::ALL,
    },
    CommandPage {
        path: "describe",
        examples: &[
            ("One Certificate with its events", "describe certificate/www-example-com --local"),
            ("Every challenge of a namespace", "describe challenges -n web"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "diagnose",
        examples: &[
            ("Why one certificate is not issued", "diagnose certificate/www-example-com --local"),
            ("A host, before anything is ordered for it", "diagnose www.example.com"),
            ("Everything that is not ready, in all namespaces", "diagnose -A"),
            ("Manifests, before they are applied", "diagnose -f manifests/ --local"),
            (
                "With command lines that show the same",
                "diagnose www-example-com --local --show-commands",
            ),
            ("For a program", "diagnose certificate/www-example-com --local -o json"),
        ],
        ends: FINDS,
    },
    CommandPage {
        path: "tree",
        examples: &[
            ("Every Certificate, and the objects below it", "tree --local"),
            ("One Certificate, live", "tree certificate/www-example-com -n web -w"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "wait",
        examples: &[
            (
                "Until it is issued, or can no longer be issued",
                "wait cert/web-example --for=issued",
            ),
            ("As kubectl waits", "wait cert --all --for=condition=Ready -n web"),
            ("Until a Challenge is gone", "wait challenge/web-1-5-7 --for=delete --local"),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "timeline",
        examples: &[
            ("The history of a Certificate", "timeline www-example-com --local"),
            ("For a program", "timeline certificate/www-example-com -n web -o jsonl"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "status",
        examples: &[
            ("All objects on this machine, and what is stuck", "status --local"),
            ("The same of a whole cluster", "status -A"),
            (
                "How many Certificates are not ready",
                "status -A -o jsonpath='{.certificates.notReady}'",
            ),
        ],
        ends: FINDS,
    },
    CommandPage {
        path: "schedule",
        examples: &[
            ("Which challenge waits for which", "schedule -A"),
            ("With fewer slots", "schedule --local --max-concurrent-challenges 10"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "watch",
        examples: &[
            ("All changes on this machine", "watch --local"),
            ("One Certificate and the objects below it", "watch www-example-com -n web"),
            ("For a program", "watch -A -o jsonl"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "explain",
        examples: &[
            ("Every cause that is known", "explain"),
            ("One cause, with its fixes", "explain HTTP-10"),
            ("The causes of a family", "explain DNS"),
            ("Causes that match a symptom", "explain \"connection refused\""),
        ],
        ends: PRINTS,
    },
    CommandPage {
        path: "get",
        examples: &[
            ("Several kinds, in the cluster", "get certs,orders,challenges -n web"),
            ("Two objects as YAML", "get cert/web order/web-1-123 --local -o yaml"),
            ("One label, and every change", "get challenges --local -l team=web -w"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "delete",
        examples: &[
            ("One object", "delete certificate/www-example-com --local"),
            ("All challenges of a namespace", "delete challenges --all -n web --local"),
        ],
        ends: WRITES,
    },
    CommandPage {
        path: "run",
        examples: &[
            ("Keep everything on this machine renewed", "run --local --out /etc/tls"),
            ("In a cluster, with a log for a collector", "run -v --log-format json"),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "ca",
        examples: &[
            ("A CA for tests", "ca --listen 127.0.0.1:14000 --root ca.pem"),
            ("A CA that finds every name on this machine", "ca --http01-resolve *=127.0.0.1:8080"),
            ("A CA as strict as Let's Encrypt", "ca --strict --always-valid"),
            (
                "A CA with a name, and with DNS set by tests",
                "ca --name ca.test --management 127.0.0.1:15000",
            ),
            ("Faults that clients have to survive", "ca --behaviours"),
            ("A CA that loses the answer to a new order", "ca --behave new-order-lost"),
        ],
        ends: SERVES,
    },
    CommandPage {
        path: "crds",
        examples: &[
            ("Define the six kinds in a cluster", "crds > crds.yaml"),
            ("As JSON", "crds -o json"),
        ],
        ends: PRINTS,
    },
    CommandPage {
        path: "completion",
        examples: &[("For bash", "completion bash > kubectl-acme.bash")],
        ends: PRINTS,
    },
    CommandPage {
        path: "version",
        examples: &[("For people", "version"), ("For programs", "version -o json")],
        ends: PRINTS,
    },
];

/// Returns the page of a command; `None` if help does not show the command.
pub fn page(path: &str) -> Option<&'static CommandPage> {
    all().find(|page| page.path == path)
}

/// Returns the pages of all commands that help shows.
fn all() -> impl Iterator<Item = &'static CommandPage> {
    PAGES.iter().chain(objects::PAGES).chain(accounts::PAGES)
}

/// Explanation of environment forms, for the end of help.
pub const ENVIRONMENT: &str = "Every flag has an environment form, such as KUBECTL_ACME_HTTP01_LISTEN for --http01-listen; the flag wins.";

/// Appends examples to the help of a command and of all commands below; the short form says how to see the examples.
pub(super) fn with_examples(command: clap::Command, path: &str, program: &str) -> clap::Command {
    let examples = page(path).map(|page| format!("Examples:\n{}\n\n", page.typed(program)));
    let long = format!("{}{ENVIRONMENT}", examples.unwrap_or_default());
    let all = format!("{program} {path}");
    let short = format!("All flags, with examples: {} --help", all.trim_end());
    let command = command.after_help(short).after_long_help(long);
    command.mut_subcommands(|below| {
        let way = format!("{path} {}", below.get_name());
        with_examples(below, way.trim_start(), program)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;
    use crate::hints::invocation::PROGRAM;

    /// Every command that help shows, by the words that lead to it.
    fn shown() -> Vec<(String, clap::Command)> {
        fn add(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
            found.push((path.to_owned(), command.clone()));
            for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
                add(below, format!("{path} {}", below.get_name()).trim_start(), found);
            }
        }
        let mut command = command();
        command.build();
        let mut found = Vec::new();
        add(&command, "", &mut found);
        found
    }

    #[test]
    fn every_command_has_examples_and_no_other() {
        let shown: Vec<String> = shown().into_iter().map(|(path, _)| path).collect();
        for path in &shown {
            assert!(page(path).is_some_and(|page| !page.examples.is_empty()), "{path}");
        }
        for page in all() {
            assert!(shown.iter().any(|path| path == page.path), "{}", page.path);
        }
    }

    #[test]
    fn every_example_is_a_command_line_of_its_command() {
        for page in all() {
            for (_, line) in page.examples {
                let typed = line.replace("\\\n", " ");
                let words = typed.split('>').next().unwrap_or_default().split_whitespace();
                let read = command().try_get_matches_from([PROGRAM].into_iter().chain(words));
                assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
                assert!(line.starts_with(page.path), "{line} is no example of {}", page.path);
                assert!(line.lines().all(|line| line.len() <= 64), "{line} is too long");
            }
        }
    }

    #[test]
    fn short_help_fits_a_screen_and_a_half() {
        let mut tall = Vec::new();
        for (path, command) in shown() {
            let lines = command.term_width(80).render_help().to_string().lines().count();
            let most = if path == "order" { 60 } else { 70 };
            if lines > most {
                tall.push(format!("{path}: {lines} lines, {most} at most"));
            }
        }
        assert!(tall.is_empty(), "{}", tall.join("\n"));
    }

    #[test]
    fn short_help_ends_with_the_way_to_all_of_it() {
        for (path, command) in shown() {
            let help = command.clone().term_width(80).render_help().to_string();
            let last = help.trim_end().lines().last().unwrap_or_default();
            assert!(last.ends_with(format!("{path} --help").trim_start()), "{path}: {last}");
        }
    }
}
