//! Invocations, read by the real command tree, and the command lines that hints make of an invocation.

use std::env;
use std::ffi::OsStr;
use std::iter;
use std::path::Path;

use crate::cli;
use crate::diagnosis::catalogue::{self, LabNote};
use crate::hints::invocation::{Invocation, PROGRAM, is_plugin, quoted};

/// Reads this line as the command line of the process.
fn called(line: &str) -> Invocation {
    read(cli::command(), line)
}

fn read(command: clap::Command, line: &str) -> Invocation {
    let words: Vec<_> = iter::once(PROGRAM).chain(line.split(' ')).map(Into::into).collect();
    let matches = command.try_get_matches_from(&words).unwrap();
    Invocation::new(PROGRAM, &words, &matches)
}

#[test]
fn names_in_place_of_manifests_are_seen_wherever_they_come_from() {
    for (line, expected) in [
        ("order --domain www.example.com", true),
        ("order create --domain=www.example.com", true),
        ("order -f web.yaml", false),
        ("get -- --domain", false),
        ("get certs", false),
    ] {
        assert_eq!(called(line).is_given_names(), expected, "{line}");
    }
    // Any variable that is there stands for its environment form.
    let of_order = |order: clap::Command| order.mut_arg("domain", |domain| domain.env("PATH"));
    let command = cli::command().mut_subcommand("order", of_order);
    assert!(read(command, "order --local").is_given_names());
}

#[test]
fn hints_name_the_same_state_and_namespace() {
    for (typed, expected) in [
        ("order -f x.yaml", "kubectl-acme get certs"),
        ("order --local -f x", "kubectl-acme get certs --local"),
        ("order --local=st -n web -f x", "kubectl-acme get certs --local=st -n web"),
        ("order -n web --local=st -f x", "kubectl-acme get certs -n web --local=st"),
        ("order --namespace=web -f x", "kubectl-acme get certs --namespace=web"),
        ("order --namespace web -f x", "kubectl-acme get certs --namespace web"),
        ("order -n=web -f x", "kubectl-acme get certs -n web"),
        ("order -nweb -f x", "kubectl-acme get certs -n web"),
        ("get -wn web certs", "kubectl-acme get certs -n web"),
        ("get -wnweb certs --local", "kubectl-acme get certs --local -n web"),
        ("order --context a --as=b -f x", "kubectl-acme get certs --context a --as=b"),
        ("get --as-group a --as-group=b x", "kubectl-acme get certs --as-group a --as-group=b"),
        ("get -- -n web", "kubectl-acme get certs"),
    ] {
        assert_eq!(called(typed).like("get certs"), expected, "{typed}");
    }
}

#[test]
fn hints_about_an_object_name_its_namespace_where_it_is_not_the_usual_one() {
    for (typed, home, namespace, expected) in [
        ("get x --local", "default", "default", "kubectl-acme describe x --local"),
        ("get x --local", "default", "web", "kubectl-acme describe x --local -n web"),
        ("get x -nweb", "web", "web", "kubectl-acme describe x -n web"),
        ("get x -nweb --local", "web", "shop", "kubectl-acme describe x --local -n shop"),
        ("get x", "team", "default", "kubectl-acme describe x -n default"),
        ("get x -n web", "web", "", "kubectl-acme describe x -n web"),
    ] {
        let invocation = called(typed);
        invocation.is_at_home_in(home);
        assert_eq!(invocation.like_in(namespace, "describe x"), expected, "{typed}");
    }
}

#[test]
fn commands_for_all_namespaces_name_none() {
    let invocation = called("get -wnweb certs --local=st");
    assert_eq!(invocation.like_in_all("get certs"), "kubectl-acme get certs -A --local=st");
    assert_eq!(invocation.like_run(), "kubectl-acme run --local=st");
}

#[test]
fn a_namespace_is_given_in_each_of_its_forms() {
    for (typed, expected) in [
        ("run -n web", true),
        ("run -nweb", true),
        ("get -Anweb certs", true),
        ("run --namespace web", true),
        ("run --namespace=web", true),
        ("run --local=st", false),
        ("get -- -n web", false),
    ] {
        assert_eq!(called(typed).is_given_namespace(), expected, "{typed}");
    }
}

#[test]
fn lines_for_kubectl_name_the_same_cluster() {
    let line = ["run", "look", "--namespace=web", "--overrides={\"a\": \"it's\"}"];
    for (typed, expected) in [
        ("challenge check a --local=st -n web", "kubectl run look"),
        ("challenge check a --context a -n x --as=b", "kubectl --context a --as=b run look"),
    ] {
        let expected = format!("{expected} --namespace=web '--overrides={{\"a\": \"it'\\''s\"}}'");
        assert_eq!(called(typed).kubectl(&line.map(str::to_owned)), expected, "{typed}");
    }
}

#[test]
fn a_command_line_is_typed_again_as_it_was() {
    let again = called("order -nweb --domain *.example.com").again();
    assert_eq!(again, "kubectl-acme order -nweb --domain '*.example.com'");
}

#[test]
fn the_manifests_of_a_command_line_are_asked_for_once() {
    let expected = "kubectl-acme order --domain a.example --dry-run=client -o yaml";
    for format in ["", " -o name", " -oname", " -o=json", " --output yaml", " --output=wide"] {
        let line = format!("order --domain a.example{format}");
        assert_eq!(called(&line).as_manifests(), expected, "{line}");
    }
}

#[test]
fn nobody_is_told_to_type_a_command_that_waits_for_standard_input() {
    for (line, expected) in [
        ("order -f a.yaml", "go on with: kubectl-acme order -f a.yaml"),
        (
            "order -f a.yaml,- --local",
            "go on by giving the same manifests on standard input again: kubectl-acme order -f a.yaml,- --local < FILE.yaml",
        ),
        (
            "order create -f -",
            "go on by giving the same manifests on standard input again: kubectl-acme order create -f - < FILE.yaml",
        ),
    ] {
        assert_eq!(called(line).go_on(), expected);
    }
}

#[test]
fn whoever_gives_permissions_is_somebody_else_in_the_same_cluster() {
    for (line, own, others) in [
        ("order -f x", "kubectl", "kubectl"),
        (
            "get x --context a --as=b --as-group c --kubeconfig k",
            "kubectl --context a --as=b --as-group c --kubeconfig k",
            "kubectl --context a --kubeconfig k",
        ),
    ] {
        let invocation = called(line);
        assert_eq!(invocation.kubectl_program(), own);
        assert_eq!(invocation.kubectl_of_others(), others);
    }
}

#[test]
fn kubectl_does_not_read_our_environment_forms() {
    // Any variable that is there stands for its environment form.
    let command = cli::command().mut_arg("context", |context| context.env("PATH"));
    let invocation = read(command, "get certs --as b");
    let context = quoted(&env::var("PATH").unwrap());
    assert_eq!(invocation.kubectl_program(), format!("kubectl --as b --context {context}"));
    assert_eq!(invocation.like("get certs"), "kubectl-acme get certs --as b");
}

#[test]
fn words_are_quoted_where_a_shell_would_change_them() {
    for (word, expected) in [
        ("--local=st", "--local=st"),
        ("*=[::1]:80", "'*=[::1]:80'"),
        ("", "''"),
        ("it's", "'it'\\''s'"),
    ] {
        assert_eq!(quoted(word), expected);
    }
}

#[test]
fn kubectl_starts_plugins_by_the_path_at_which_it_found_them() {
    let path = OsStr::new("/usr/bin:/opt/krew/bin");
    for (program, expected) in [
        ("/opt/krew/bin/kubectl-acme", true),
        ("kubectl-acme", false),
        ("./kubectl-acme", false),
        ("/home/me/target/debug/kubectl-acme", false),
        ("/usr/bin/acme", false),
    ] {
        assert_eq!(is_plugin(Path::new(program), path), expected, "{program}");
    }
}

/// The command lines of this program in a text to copy, and between backticks in one to read.
fn own_lines(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).chain(joined.split('`').skip(1).step_by(2));
    let own = lines.filter_map(|line| {
        let rest =
            line.strip_prefix("kubectl acme ").or_else(|| line.strip_prefix("kubectl-acme "));
        // What a shell does with the output is not ours.
        rest.map(|rest| rest.split(['>', '|']).next().unwrap_or_default().to_owned())
    });
    own.collect()
}

#[test]
fn every_command_line_of_the_catalogue_is_one_that_this_program_takes() {
    let mut read = 0;
    for entry in catalogue::all() {
        let steps = entry.fix.iter().flat_map(|step| [Some(&step.does), step.run.as_ref()]);
        let texts = steps.flatten().chain([&entry.why, &entry.shows]).chain(&entry.looks);
        for line in texts.flat_map(|text| own_lines(text)) {
            let words = iter::once(PROGRAM).chain(line.split_whitespace());
            let matches = cli::command().try_get_matches_from(words);
            let matches = matches.unwrap_or_else(|why| panic!("{}: {line}: {why}", entry.id));
            let refused = [cli::describe_misplaced(&matches), cli::idle(&cli::command(), &matches)];
            assert!(!line.contains("--local") || refused[1].is_none(), "{}: {line}", entry.id);
            assert!(refused[0].is_none(), "{}: {line}: {refused:?}", entry.id);
            read += 1;
        }
    }
    assert!(read > 50, "only {read} lines were found");
}

#[test]
fn every_behaviour_that_the_catalogue_names_is_one_of_our_ca() {
    for entry in catalogue::all() {
        let (LabNote::Reproduce(lab) | LabNote::Unseen(lab)) = &entry.lab;
        for line in lab.split('`').skip(1).step_by(2).filter(|line| line.contains("--behave ")) {
            let words = [PROGRAM].into_iter().chain(line.split_whitespace());
            assert!(cli::command().try_get_matches_from(words).is_ok(), "{}: {line}", entry.id);
        }
    }
}
