//! Candidates for shells and kubectl at TAB: names of objects, of namespaces and contexts, paths.
//!
//! Names come from the store in which the command would find its objects: read, never written, within a short time, and
//! without error messages.

pub mod paths;
mod stored;
pub mod typed;

use std::ffi::OsStr;

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};

use self::paths::Paths;
use self::typed::Typed;
use crate::context::flags::report::REPORT_FORMS;
use crate::diagnosis::catalogue;
use crate::diagnosis::catalogue::id::CauseFamily;
use crate::model::acme_server::AcmeServer;
use crate::model::text::without_steering;
use crate::model::{Kind, Record};

/// Completes `KIND[,KIND]`, `NAME` and `KIND/NAME`, whichever is due.
pub fn objects() -> ArgValueCompleter {
    completer(|current, typed| offer(&due(&typed.words, current), current, typed))
}

/// Completes the one object that a command works on: `KIND/NAME`, `KIND NAME` or the name of a Certificate.
pub fn object() -> ArgValueCompleter {
    completer(|current, typed| {
        let (due, is_first) = (due_of_one(&typed.words, current), typed.words.is_empty());
        let mut candidates = offer(&due, current, typed);
        if is_first && !current.contains('/') {
            candidates.extend(starting(names_of(Kind::Certificate, &[], typed), current));
        }
        candidates
    })
}

/// Completes names of one kind.
pub fn names(kind: Kind) -> ArgValueCompleter {
    completer(move |current, typed| {
        let before = current.find('/').map_or("", |at| &current[..=at]);
        let is_other = |word: &str| Kind::parse(word) != Some(kind);
        if before.strip_suffix('/').is_some_and(is_other) {
            return Vec::new();
        }
        let due = Due::Names { kind, before, named: &typed.words };
        offer(&due, current, typed)
    })
}

/// Completes names of Certificates, and those of files once something is typed.
pub fn certificates_and_files() -> ArgValueCompleter {
    completer(|current, typed| {
        let mut found = starting(names_of(Kind::Certificate, &typed.words, typed), current);
        if !current.is_empty() {
            found.extend(PathCompleter::any().complete(OsStr::new(current)));
        }
        found
    })
}

/// Completes namespaces.
pub fn namespaces() -> ArgValueCompleter {
    completer(|current, typed| {
        let found = stored::namespaces(typed).unwrap_or_default();
        starting(found.into_iter().map(CompletionCandidate::new), current)
    })
}

/// Completes contexts of the kubeconfig.
pub fn contexts() -> ArgValueCompleter {
    completer(|current, typed| {
        let found = typed.connection().contexts();
        starting(found.into_iter().map(CompletionCandidate::new), current)
    })
}

/// Completes names of CAs.
pub fn servers() -> ArgValueCompleter {
    completer(|current, _| starting(AcmeServer::names().map(CompletionCandidate::new), current))
}

/// Completes forms of reports, and files after `=`.
pub fn reports() -> ArgValueCompleter {
    completer(|current, _| match current.split_once('=') {
        Some((form, path)) => {
            let files = Paths::Files.offered(OsStr::new(path)).into_iter();
            files.map(|file| file.add_prefix(format!("{form}="))).collect()
        }
        None => starting(REPORT_FORMS.map(CompletionCandidate::new), current),
    })
}

/// Completes ids and families of causes, in the case that is typed.
pub fn causes() -> ArgValueCompleter {
    completer(|current, typed| {
        let is_lower = current.chars().any(char::is_lowercase);
        let cased = |word: String| if is_lower { word.to_lowercase() } else { word };
        let families = CauseFamily::ALL.iter().map(|family| {
            CompletionCandidate::new(cased(family.to_string())).help(Some(family.title().into()))
        });
        let entries = catalogue::all().iter().map(|entry| {
            let id = CompletionCandidate::new(cased(entry.id.to_string()));
            id.help(Some(entry.title.as_str().into()))
        });
        let is_new = |c: &CompletionCandidate| {
            let word = c.get_value().to_string_lossy();
            !typed.words.iter().any(|typed| typed.eq_ignore_ascii_case(&word))
        };
        let mut found = starting(families, current);
        // Ids are offered once a word has begun: there are many.
        if !current.is_empty() {
            found.extend(starting(entries, current));
        }
        found.retain(is_new);
        found
    })
}

/// Makes a completer of a function that offers candidates for a word.
pub(crate) fn completer<C>(candidates: C) -> ArgValueCompleter
where
    C: Fn(&str, &Typed) -> Vec<CompletionCandidate> + Send + Sync + 'static,
{
    ArgValueCompleter::new(move |current: &OsStr| {
        candidates(&current.to_string_lossy(), &typed::current())
    })
}

/// Keeps the candidates that begin with the typed text.
pub(crate) fn starting(
    candidates: impl IntoIterator<Item = CompletionCandidate>,
    current: &str,
) -> Vec<CompletionCandidate> {
    let starts = |c: &CompletionCandidate| c.get_value().to_string_lossy().starts_with(current);
    candidates.into_iter().filter(starts).collect()
}

/// Candidates that are due as the next word.
#[derive(Debug, PartialEq, Eq)]
enum Due<'a> {
    /// A kind, after the kinds of a list before it.
    Kind { before: &'a str },
    /// A kind, and its name after a slash.
    Pair,
    /// A name, after the part of the word before it; not a name that is given already.
    Names { kind: Kind, before: &'a str, named: &'a [String] },
    /// No known candidates.
    Nothing,
}

/// Returns the candidates after these words, as `Targets::parse` reads the words.
fn due<'a>(words: &'a [String], current: &'a str) -> Due<'a> {
    if let Some(at) = current.find('/') {
        return match Kind::parse(&current[..at]) {
            Some(kind) => Due::Names { kind, before: &current[..=at], named: words },
            None => Due::Nothing,
        };
    }
    match words.split_first() {
        None => Due::Kind { before: current.rfind(',').map_or("", |at| &current[..=at]) },
        Some((first, _)) if first.contains('/') => Due::Pair,
        Some((first, named)) => match Kind::parse(first) {
            Some(kind) => Due::Names { kind, before: "", named },
            None => Due::Nothing,
        },
    }
}

/// Returns the candidates after these words for commands that work on one object.
fn due_of_one<'a>(words: &'a [String], current: &'a str) -> Due<'a> {
    let is_whole = words.first().is_some_and(|first| first.contains('/'));
    if is_whole || words.len() > 1 || current.contains(',') {
        return Due::Nothing;
    }
    due(words, current)
}

fn offer(due: &Due<'_>, current: &str, typed: &Typed) -> Vec<CompletionCandidate> {
    match due {
        Due::Nothing => Vec::new(),
        Due::Pair => {
            let kinds = Kind::SIX.into_iter().map(|kind| describe(kind, kind.singular() + "/"));
            starting(kinds, current)
        }
        Due::Kind { before } => {
            let listed: Vec<_> = before.split(',').filter_map(Kind::parse).collect();
            let open = Kind::SIX.into_iter().filter(|kind| !listed.contains(kind));
            let called = |name: fn(Kind) -> String| {
                let kinds =
                    open.clone().map(|kind| describe(kind, before.to_string() + &name(kind)));
                starting(kinds, current)
            };
            let singular = called(Kind::singular);
            if singular.is_empty() { called(Kind::plural) } else { singular }
        }
        Due::Names { kind, before, named } => {
            let names = names_of(*kind, named, typed);
            starting(names.into_iter().map(|name| name.add_prefix(*before)), current)
        }
    }
}

fn describe(kind: Kind, word: String) -> CompletionCandidate {
    let help = match kind.short_names() {
        [] => kind.to_string(),
        short => format!("{kind} ({})", short.join(", ")),
    };
    CompletionCandidate::new(word).help(Some(help.into()))
}

/// Returns the names of a kind that are not on the command line yet.
fn names_of(kind: Kind, named: &[String], typed: &Typed) -> Vec<CompletionCandidate> {
    let is_named = |record: &Record| {
        let name = &record.key.name.name;
        named.iter().any(|word| match word.split_once('/') {
            Some((of, named)) => Kind::parse(of) == Some(kind) && named == name,
            None => word == name,
        })
    };
    let found = stored::records(kind, typed).unwrap_or_default();
    let candidates = found.iter().filter(|record| !is_named(record)).map(|record| {
        CompletionCandidate::new(&record.key.name.name).help(help(record).map(Into::into))
    });
    candidates.collect()
}

/// Returns the help that distinguishes one name from another.
fn help(record: &Record) -> Option<String> {
    let words = match record.key.kind {
        Kind::Certificate => ["/spec/dnsNames/0", "/spec/secretName"],
        Kind::Challenge => ["/spec/dnsName", "/status/state"],
        Kind::Order => ["/spec/dnsNames/0", "/status/state"],
        Kind::CertificateRequest => ["/spec/issuerRef/name", ""],
        Kind::ClusterIssuer | Kind::Issuer => ["/spec/acme/server", ""],
        Kind::Event | Kind::Gateway | Kind::Ingress | Kind::ListenerSet | Kind::Secret => {
            return None;
        }
    };
    let words = words.map(|pointer| if pointer.is_empty() { "" } else { record.text(pointer) });
    let text = without_steering(words.join(" ").trim());
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn kinds_are_due_first_and_names_after_one() {
        let names = |kind, before, named| Due::Names { kind, before, named };
        assert_eq!(due(&[], "ce"), Due::Kind { before: "" });
        assert_eq!(due(&[], "certs,or"), Due::Kind { before: "certs," });
        let order = words("orders web-1");
        assert_eq!(due(&order, ""), names(Kind::Order, "", &order[1..]));
        assert_eq!(due(&words("certs,orders"), ""), Due::Nothing);
        assert_eq!(due(&words("pods"), ""), Due::Nothing);
    }

    #[test]
    fn pairs_are_due_after_a_pair() {
        let pair = words("cert/web");
        assert_eq!(due(&pair, ""), Due::Pair);
        let expected = Due::Names { kind: Kind::Order, before: "order/", named: &pair };
        assert_eq!(due(&pair, "order/w"), expected);
        assert_eq!(due(&pair, "pod/w"), Due::Nothing);
    }

    #[test]
    fn one_object_is_named_once() {
        assert_eq!(due_of_one(&words("cert/web"), ""), Due::Nothing);
        assert_eq!(due_of_one(&words("web"), ""), Due::Nothing);
        assert_eq!(due_of_one(&[], "certs,or"), Due::Nothing);
        let cert = words("cert");
        let expected = Due::Names { kind: Kind::Certificate, before: "", named: &[] };
        assert_eq!(due_of_one(&cert, "w"), expected);
    }

    #[track_caller]
    fn check(due: &Due<'_>, current: &str, expected: &[&str]) {
        let offered = offer(due, current, &Typed::default());
        let values: Vec<_> = offered.iter().map(|c| c.get_value().to_string_lossy()).collect();
        assert_eq!(values, expected, "{current}");
    }

    #[test]
    fn a_list_of_kinds_goes_on_with_those_that_are_not_in_it() {
        check(&due(&[], "o"), "o", &["order"]);
        check(&due(&[], "orders"), "orders", &["orders"]);
        check(&due(&[], "certificates,or"), "certificates,or", &["certificates,order"]);
        check(
            &due(&[], "orders,certificate"),
            "orders,certificate",
            &["orders,certificate", "orders,certificaterequest"],
        );
        check(&due(&[], "orders,o"), "orders,o", &[]);
        check(&Due::Pair, "o", &["order/"]);
    }
}
