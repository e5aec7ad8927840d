//! What help and the pages of the manual say of each command beyond its flags: examples, and the codes with which it
//! can end.

use crate::diagnosis::failure_kind::FailureKind;

/// What is known of a command beyond its flags.
#[derive(Clone, Copy, Debug)]
pub struct CommandPage {
    /// The words that lead to it, such as `order create`; none for the program itself.
    pub path: &'static str,
    /// What it is good for, and the line for that, without the program.
    pub examples: &'static [(&'static str, &'static str)],
    /// How it can fail.
    pub ends: &'static [FailureKind],
}

/// Of commands that only print.
const PRINTS: &[FailureKind] = &[FailureKind::Unexpected, FailureKind::Usage];
/// Of commands that serve until they are ended.
const SERVES: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of commands that work until certificates are there.
const WORKS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Validation,
    FailureKind::RateLimited,
    FailureKind::CaUnreachable,
    FailureKind::Account,
    FailureKind::Cluster,
    FailureKind::Solver,
    FailureKind::OwnedByAnother,
    FailureKind::Person,
    FailureKind::Timeout,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of `diagnose`.
const FINDS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::CausesFound,
    FailureKind::WarningsFound,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of commands that read what is in a store.
const READS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of commands that look at an answer.
const LOOKS: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::Solver,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];
/// Of commands that write what is in a store.
const WRITES: &[FailureKind] = &[
    FailureKind::Unexpected,
    FailureKind::Usage,
    FailureKind::Cluster,
    FailureKind::Solver,
    FailureKind::OwnedByAnother,
    FailureKind::Person,
    FailureKind::Timeout,
    FailureKind::Interrupted,
    FailureKind::Terminated,
];

/// Every command that help shows.
pub const PAGES: &[CommandPage] = &[
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
        path: "order",
        examples: &[
            (
                "Issue in the cluster what is due, and wait",
                "order -f issuer.yaml -f certificate.yaml",
            ),
            ("The same on this machine", "order -f issuer.yaml -f certificate.yaml --local"),
            (
                "Try it out: no DNS, no root, nothing spent",
                "order -f manifests/ --local --rehearse=loopback",
            ),
            ("Without manifests", "order --domain www.example.com --local"),
            ("What becomes of orders", "order get --local -w"),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "order create",
        examples: &[
            ("Every manifest of a folder", "order create -f manifests/ -R --local"),
            (
                "Rehearse what is due, and issue it only when that has worked",
                "order create -f manifests/ --local --rehearse-first",
            ),
            (
                "Several names from a test CA, answered by files of a web server",
                "order create --domain a.example,b.example --local \\\n    --server letsencrypt-staging --http01-webroot /var/www/html",
            ),
            (
                "The manifests for a name",
                "order create --domain a.example --dry-run=client -o yaml",
            ),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "order get",
        examples: &[
            ("Orders of a namespace, and every change", "order get -n web -w"),
            ("One order as YAML", "order get web-1-2960432719 --local -o yaml"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "order retry",
        examples: &[("A fresh order for one that failed", "order retry web-1-2960432719 --local")],
        ends: WORKS,
    },
    CommandPage {
        path: "order resume",
        examples: &[("Go on after an interruption", "order resume web-1-2960432719 --local")],
        ends: WORKS,
    },
    CommandPage {
        path: "order delete",
        examples: &[("An order with its challenges", "order delete web-1-2960432719 --local")],
        ends: WRITES,
    },
    CommandPage {
        path: "challenge",
        examples: &[
            ("All challenges with their reasons", "challenge get -A -o wide"),
            (
                "Look at one answer as the CA would",
                "challenge check web-1-2960432719-4128531 --local",
            ),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "challenge get",
        examples: &[
            ("All challenges, and every change", "challenge get -n web -w"),
            ("One as JSON", "challenge get web-1-2960432719-4128531 --local -o json"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "challenge check",
        examples: &[
            (
                "Look at one answer, with the command line that looks the same way",
                "challenge check web-1-2960432719-4128531 \\\n    --local --show-commands",
            ),
            ("Ask another resolver", "challenge check web-1-2960432719-4128531 --dns 9.9.9.9:53"),
        ],
        ends: LOOKS,
    },
    CommandPage {
        path: "challenge present",
        examples: &[(
            "Put up one answer on another port, behind a proxy",
            "challenge present web-1-2960432719-4128531 \\\n    --local --http01-listen 127.0.0.1:8080",
        )],
        ends: WRITES,
    },
    CommandPage {
        path: "challenge cleanup",
        examples: &[("Take one answer down", "challenge cleanup web-1-2960432719-4128531 --local")],
        ends: WRITES,
    },
    CommandPage {
        path: "certificate",
        examples: &[("Renew now", "certificate renew www-example-com --local")],
        ends: WORKS,
    },
    CommandPage {
        path: "certificate get",
        examples: &[("When certificates expire", "certificate get -A")],
        ends: READS,
    },
    CommandPage {
        path: "certificate show",
        examples: &[
            (
                "What was issued, and whether it is what the Certificate asks for",
                "certificate show web -n shop",
            ),
            (
                "The certificate in a Secret, and one in a file",
                "certificate show secret/web-tls ./tls.crt",
            ),
            ("A folder that --out has written", "certificate show out/web-tls/"),
            (
                "What a server shows, and whether clients trust it",
                "certificate show www.example.com:443",
            ),
        ],
        ends: READS,
    },
    CommandPage {
        path: "certificate renew",
        examples: &[
            ("Renew now, due or not", "certificate renew www-example-com --local"),
            ("Several of a namespace", "certificate renew web mail -n shop --timeout 5m"),
        ],
        ends: WORKS,
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
            ("Why one certificate does not arrive", "diagnose certificate/www-example-com --local"),
            ("A host, before anything is ordered for it", "diagnose www.example.com"),
            ("Everything that is not ready, in all namespaces", "diagnose -A"),
            ("Manifests, before they are applied", "diagnose -f manifests/ --local"),
            (
                "With the lines that show the same",
                "diagnose www-example-com --local --show-commands",
            ),
            ("For a program", "diagnose certificate/www-example-com --local -o json"),
        ],
        ends: FINDS,
    },
    CommandPage {
        path: "tree",
        examples: &[
            ("Every Certificate, and what hangs below it", "tree --local"),
            ("One of them, live", "tree certificate/www-example-com -n web -w"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "wait",
        examples: &[
            ("Until it is there, or cannot come any more", "wait cert/web-example --for=issued"),
            ("As kubectl waits", "wait cert --all --for=condition=Ready -n web"),
            ("Until a Challenge is gone", "wait challenge/web-1-5-7 --for=delete --local"),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "timeline",
        examples: &[
            ("What has become of a Certificate", "timeline www-example-com --local"),
            ("The same for a program", "timeline certificate/www-example-com -n web -o jsonl"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "schedule",
        examples: &[
            ("Who waits for whom", "schedule -A"),
            ("With fewer slots", "schedule --local --max-concurrent-challenges 10"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "watch",
        examples: &[
            ("All that changes here", "watch --local"),
            ("One Certificate and all that hangs below it", "watch www-example-com -n web"),
            ("For a program", "watch -A -o jsonl"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "explain",
        examples: &[
            ("Every cause that is known", "explain"),
            ("One of them, with what helps", "explain HTTP-10"),
            ("Those of a family", "explain DNS"),
            ("Those that look like this", "explain \"connection refused\""),
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
            ("It finds every name here", "ca --http01-resolve *=127.0.0.1:8080"),
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

/// The page of a command; nothing is known of those that help does not show.
pub fn page(path: &str) -> Option<&'static CommandPage> {
    PAGES.iter().find(|page| page.path == path)
}

impl CommandPage {
    /// The examples as they are typed, each below what it is good for.
    pub fn typed(&self, program: &str) -> String {
        let shown = |(does, line): &(&str, &str)| format!("  # {does}\n  {program} {line}");
        self.examples.iter().map(shown).collect::<Vec<_>>().join("\n\n")
    }
}

/// Where environment forms are explained.
pub const ENVIRONMENT: &str = "Every flag has an environment form, such as KUBECTL_ACME_HTTP01_LISTEN for --http01-listen; the flag wins.";

/// Has the help of a command and of all below it end with examples; the short form says how to see them.
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
    use crate::app::invocation::PROGRAM;
    use crate::cli::command;

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
        for page in PAGES {
            assert!(shown.iter().any(|path| path == page.path), "{}", page.path);
        }
    }

    #[test]
    fn every_example_is_a_command_line_of_its_command() {
        for page in PAGES {
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
