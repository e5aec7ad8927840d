//! The pages of the manual: what clap tells of flags, and what is known of each command beside them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

use clap_mangen::Man;
use kubectl_acme::cli;
use kubectl_acme::cli::pages::{CommandPage, ENVIRONMENT, page};
use kubectl_acme::diagnosis::verdict::failure_kind::FailureKind;
use kubectl_acme::hints::invocation::{PROGRAM, variable};

/// What every page has.
const SECTIONS: [&str; 9] = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "EXIT STATUS",
    "ENVIRONMENT",
    "FILES",
    "EXAMPLES",
    "SEE ALSO",
];
/// What a page begins with, and each section that clap_mangen writes by itself.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// One page per command, named as git and kubectl name theirs: `kubectl-acme-order-create.1`.
pub(super) fn pages() -> BTreeMap<String, String> {
    let mut command = cli::command();
    command.build();
    let mut pages = BTreeMap::new();
    add(&command, None, &mut pages);
    pages
}

fn add(command: &clap::Command, parent: Option<&str>, pages: &mut BTreeMap<String, String>) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    for below in shown(command) {
        add(below, Some(name), pages);
    }
    pages.insert(format!("{name}.1"), whole(command, name, parent));
}

/// The commands below one that help shows.
fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

fn whole(command: &clap::Command, name: &str, parent: Option<&str>) -> String {
    let path = command.get_bin_name().unwrap_or_default().trim_start_matches(PROGRAM).trim();
    let known = page(path).expect("cli/pages knows every command");
    // Without a date: a page changes only with the command it tells of.
    // A page is long help: clap_mangen leaves out the first line of what short help does not list.
    let listed = command.clone().mut_args(|arg| arg.hide_short_help(false));
    let man = Man::new(listed.name(name.to_owned()));
    let man = man.source(PROGRAM).manual(PROGRAM).date(" ");
    let part = |render: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut part = Vec::new();
        render(&mut part).unwrap();
        String::from_utf8(part).unwrap().replace(PREAMBLE, "")
    };
    let mut text = PREAMBLE.to_owned();
    text += &part(&|out| man.render_title(out));
    text += &part(&|out| man.render_name_section(out));
    text += &synopsis(command);
    text += &part(&|out| man.render_description_section(out));
    if shown(command).next().is_some() {
        text +=
            &part(&|out| man.render_subcommands_section(out)).replace("SUBCOMMANDS", "COMMANDS");
    }
    text += &part(&|out| man.render_options_section(out));
    text += &exit_status(known);
    text += &environment(command, known);
    text += &files(command, path, known);
    text += &examples(known);
    text + &see_also(command, parent)
}

/// The line of usage, which names no flags.
fn synopsis(command: &clap::Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let lines = usage.trim_start_matches("Usage: ").lines().map(|line| {
        let line = line.trim();
        let at = line.find(['[', '<']).unwrap_or(line.len());
        let (words, rest) = line.split_at(at);
        format!("\\fB{}\\fR {}\n", typed(words.trim()), typed(rest))
    });
    format!(".SH SYNOPSIS\n{}", lines.collect::<Vec<_>>().join(".br\n"))
}

fn exit_status(known: &CommandPage) -> String {
    let mut text = ".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\nDone, or nothing was due.\n".to_owned();
    for kind in FailureKind::ALL.iter().filter(|kind| known.ends.contains(kind)) {
        writeln!(text, ".TP\n\\fB{}\\fR\n{}", kind.exit_code(), typed(kind.meaning())).unwrap();
    }
    text
}

fn environment(command: &clap::Command, known: &CommandPage) -> String {
    let mut list = vec![("KUBECTL_ACME_*".to_owned(), ENVIRONMENT.to_owned())];
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let (Some(flag), Some(own)) = (arg.get_long(), arg.get_env()) else { continue };
        let own = own.to_string_lossy();
        if own != variable(flag) {
            list.push((own.into_owned(), format!("Stands for --{flag} of this command.")));
        }
    }
    let ends = |kind| known.ends.contains(&kind);
    if ends(FailureKind::Cluster) {
        list.push((
            "KUBECONFIG".to_owned(),
            "Kubeconfigs in place of ~/.kube/config, with colons between them.".to_owned(),
        ));
        list.push((
            "XDG_STATE_HOME".to_owned(),
            "The folder of the local state's folder, where --local names none; else ~/.local/state."
                .to_owned(),
        ));
    }
    if ends(FailureKind::CaUnreachable) || ends(FailureKind::Solver) {
        list.push((
            "HTTPS_PROXY, HTTP_PROXY, NO_PROXY".to_owned(),
            "Proxies to CAs and to the APIs of DNS providers, but for those on this machine."
                .to_owned(),
        ));
        list.push((
            "SSL_CERT_FILE, SSL_CERT_DIR".to_owned(),
            "CAs that are trusted in place of those of the system.".to_owned(),
        ));
    }
    if command.get_arguments().any(|arg| arg.get_long() == Some("eab-kid")) {
        list.push((
            "KUBECTL_ACME_EAB_HMAC".to_owned(),
            "The HMAC key that belongs to --eab-kid, where --eab-hmac-file names no file."
                .to_owned(),
        ));
    }
    list.push((
        "NO_COLOR, CLICOLOR_FORCE, TERM".to_owned(),
        "Whether there is colour, where --color does not say it.".to_owned(),
    ));
    items("ENVIRONMENT", &list)
}

fn files(command: &clap::Command, path: &str, known: &CommandPage) -> String {
    let mut list = Vec::new();
    let mut add = |name: &str, says: &str| list.push((name.to_owned(), says.to_owned()));
    if known.ends.contains(&FailureKind::Cluster) {
        add(
            "$XDG_STATE_HOME/kubectl-acme/state.db",
            "The local state: objects, Secrets and account keys, all of them secret. The file has mode 0600, its folder 0700.",
        );
    }
    if known.ends.contains(&FailureKind::CaUnreachable) {
        add("DIR/SECRETNAME/tls.key", "The private key, below --out: secret, mode 0600.");
        add("DIR/SECRETNAME/tls.crt", "The certificate with its chain, below --out.");
        add(
            "DIR/SECRETNAME/keystore.jks, keystore.p12, tls-combined.pem, key.der",
            "Key and chain in the other forms that the Certificate asks for: secret, mode 0600.",
        );
    }
    if command.get_arguments().any(|arg| arg.get_long() == Some("out-secret")) {
        add(
            "DIR/SECRETNAME/secret.yaml",
            "With --out-secret, the whole Secret: secret, mode 0600.",
        );
    }
    if known.ends.contains(&FailureKind::Cluster) {
        add("~/.kube/config", "The kubeconfig, without KUBECONFIG and --kubeconfig.");
    }
    if path == "ca" {
        add("kubectl-acme-ca.pem", "The root of the server's own certificate, without --root.");
    }
    if list.is_empty() {
        return ".SH FILES\nIt reads and writes none.\n".to_owned();
    }
    items("FILES", &list)
}

/// The lines as they are typed, which a reader may copy.
fn examples(known: &CommandPage) -> String {
    let mut text = ".SH EXAMPLES\n".to_owned();
    for (does, line) in known.examples {
        let line = typed(&format!("{PROGRAM} {line}"));
        writeln!(text, ".PP\n{}:\n.PP\n.nf\n.RS 4\n{line}\n.RE\n.fi", typed(does)).unwrap();
    }
    text
}

fn see_also(command: &clap::Command, parent: Option<&str>) -> String {
    let below = shown(command).filter_map(clap::Command::get_display_name);
    let pages: Vec<&str> = parent.into_iter().chain(below).collect();
    let root = (!pages.contains(&PROGRAM) && parent.is_some()).then_some(PROGRAM);
    let pages = root.into_iter().chain(pages).chain(["kubectl"]);
    let pages: Vec<String> = pages.map(|page| format!("\\fB{}\\fR(1)", typed(page))).collect();
    format!(".SH \"SEE ALSO\"\n{}\n", pages.join(", "))
}

fn items(section: &str, list: &[(String, String)]) -> String {
    let items =
        list.iter().map(|(name, says)| format!(".TP\n\\fB{}\\fR\n{}\n", typed(name), typed(says)));
    format!(".SH {section}\n{}", items.collect::<String>())
}

/// A text that comes out as it is.
fn typed(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    let text = text.replace('`', "\\(ga").replace('~', "\\(ti").replace('^', "\\(ha");
    let lines = text.lines().map(|line| match line.chars().next() {
        Some('.') => format!("\\&{line}"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_page_has_every_section() {
    for (name, page) in pages() {
        let heads = page.lines().filter_map(|line| line.strip_prefix(".SH "));
        let heads: Vec<&str> = heads.map(|head| head.trim_matches('"')).collect();
        let found: Vec<&str> =
            heads.iter().copied().filter(|head| SECTIONS.contains(head)).collect();
        assert_eq!(found, SECTIONS, "{name}");
        let synopsis = page.split(".SH ").find(|part| part.starts_with("SYNOPSIS")).unwrap();
        assert!(synopsis.lines().count() <= 4, "{name}: {synopsis}");
    }
}

/// What groff says of a page; nothing where there is no groff.
fn formatted(page: &str) -> Option<(String, String)> {
    let mut command = Command::new("groff");
    command.args(["-Kutf8", "-ww", "-man", "-Tutf8", "-rLL=200n"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), page.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).replace(['\u{2010}', '\u{2212}'], "-");
    Some((text(&ended.stdout), text(&ended.stderr)))
}

#[test]
fn pages_come_out_without_a_warning_and_examples_as_they_are_typed() {
    for (name, text) in pages() {
        let Some((shown, warnings)) = formatted(&text) else { return };
        assert_eq!(warnings, "", "{name}");
        let path = name.trim_end_matches(".1").trim_start_matches(PROGRAM).trim_start_matches('-');
        let known = page(&path.replace('-', " ")).unwrap();
        for line in known.examples.iter().flat_map(|(_, line)| line.lines()) {
            assert!(shown.contains(line.trim_end()), "{name}: {line} is not in\n{shown}");
        }
    }
}
