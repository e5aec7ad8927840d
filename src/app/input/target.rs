//! Which objects a command line names, as kubectl takes it: `KIND[,KIND] [NAME…]` or `KIND/NAME…`.

use std::sync::Arc;

use crate::app::failure::Failure;
use crate::app::{chain, invocation};
use crate::diagnosis::failure_kind::FailureKind;
use crate::model::{Key, Kind, ObjectName, Record};
use crate::store::error::StoreError;
use crate::store::{Scope, Store};

/// Namespace in which Events about objects without one are kept.
const DEFAULT_NAMESPACE: &str = "default";

/// What a command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Every object of these kinds.
    Kinds(Vec<Kind>),
    /// These objects, in this order.
    Named(Vec<(Kind, String)>),
}

impl Targets {
    /// Reads the words of a command line.
    ///
    /// # Errors
    /// Fails when there are none, a kind is unknown, or the two forms are mixed.
    pub fn parse(words: &[String]) -> Result<Self, Failure> {
        let Some((first, names)) = words.split_first() else {
            return Err(Failure::usage("no kind is given").hint(known_kinds()));
        };
        if words.iter().any(|word| word.contains('/')) {
            return words.iter().map(|word| pair(word)).collect::<Result<_, _>>().map(Self::Named);
        }
        let kinds = kinds(first)?;
        match (kinds.as_slice(), names) {
            (_, []) => Ok(Self::Kinds(kinds)),
            ([kind], names) => {
                Ok(Self::Named(names.iter().map(|name| (*kind, name.clone())).collect()))
            }
            _ => Err(Failure::usage(format!("cannot find names among several kinds: {first}"))
                .hint("name one kind, or write KIND/NAME for each object")),
        }
    }

    /// Names objects of one kind, or all of it.
    ///
    /// # Errors
    /// Fails when an object of another kind is named.
    pub fn of_kind(kind: Kind, words: &[String]) -> Result<Self, Failure> {
        if words.is_empty() {
            return Ok(Self::Kinds(vec![kind]));
        }
        let named = words.iter().map(|word| Ok((kind, name_of(kind, word)?)));
        named.collect::<Result<_, _>>().map(Self::Named)
    }

    /// Reads the one object that a command works on: `KIND/NAME`, `KIND NAME` or the name of a Certificate.
    ///
    /// # Errors
    /// Fails when the words name none or several.
    pub fn parse_one(words: &[String]) -> Result<(Kind, String), Failure> {
        if let [name] = words
            && !name.contains('/')
        {
            return Ok((Kind::Certificate, name.clone()));
        }
        match Self::parse(words)? {
            Self::Named(mut named) if named.len() == 1 => Ok(named.remove(0)),
            Self::Named(_) | Self::Kinds(_) => {
                Err(Failure::usage("more than one object is named").hint("write one KIND/NAME"))
            }
        }
    }

    /// The kinds, each once, in the order in which they are named.
    pub fn kinds(&self) -> Vec<Kind> {
        let named: Vec<Kind> = match self {
            Self::Kinds(kinds) => kinds.clone(),
            Self::Named(named) => named.iter().map(|(kind, _)| *kind).collect(),
        };
        let mut kinds = Vec::new();
        for kind in named {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }
}

/// Reads the name of an object whose kind is known: `NAME`, or `KIND/NAME` as `-o name` prints it.
///
/// # Errors
/// Fails when an object of another kind is named.
pub fn name_of(kind: Kind, word: &str) -> Result<String, Failure> {
    if !word.contains('/') {
        return Ok(word.to_owned());
    }
    let (named, name) = pair(word)?;
    if named != kind {
        return Err(Failure::usage(format!("\"{word}\" is no {}", kind.singular())));
    }
    Ok(name)
}

/// The key of an object named on the command line; kinds without namespaces have none.
pub fn key(kind: Kind, name: &str, namespace: &str) -> Key {
    let namespace = if kind.is_namespaced() { namespace } else { "" };
    Key::new(kind, ObjectName::new(namespace, name))
}

/// Which objects of a kind a listing is about: one namespace, or all of them.
pub fn scope(kind: Kind, namespace: Option<&str>) -> Scope {
    match namespace {
        Some(namespace) if kind.is_namespaced() => Scope::namespace(namespace),
        _ => Scope::all(),
    }
}

/// Where the Events about objects of a namespace are.
pub fn events_scope(namespace: &str) -> Scope {
    Scope::namespace(if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace })
}

/// Reads an object that has to be there.
///
/// # Errors
/// Fails when it is not, or the store fails.
pub async fn read(store: &Arc<dyn Store>, key: &Key) -> Result<Record, Failure> {
    match store.get(key).await? {
        Some(record) => Ok(record),
        None => Err(not_found(store, key).await?),
    }
}

/// Says that an object is not there, and what may have been meant: one of that name elsewhere, what hangs below a Certificate
/// of that name, or any that are there.
///
/// # Errors
/// Fails when the store does.
pub async fn not_found(store: &Arc<dyn Store>, key: &Key) -> Result<Failure, StoreError> {
    let Key { kind, name } = key;
    let place = match name.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" in namespace {namespace}"),
    };
    let what = format!("{}.{} \"{}\" not found{place}", kind.plural(), kind.group(), name.name);
    let failure = Failure::new(FailureKind::Unexpected, what);
    // Whoever may look into one namespace only is not told of others.
    let listed = unless_forbidden(store.list(*kind, &Scope::all()).await)?;
    let known = listed.as_deref().unwrap_or_default();
    let namesakes = known.iter().filter(|record| record.key.name.name == name.name);
    let namesakes = namesakes.map(|record| {
        let namespace = &record.key.name.namespace;
        format!("there is one in namespace {namespace}: -n {namespace}")
    });
    let namesakes: Vec<_> = namesakes.collect();
    if !namesakes.is_empty() {
        return Ok(namesakes.into_iter().fold(failure, Failure::hint));
    }
    let below = unless_forbidden(below_certificate(store, key).await)?.unwrap_or_default();
    if !below.is_empty() {
        return Ok(below.into_iter().fold(failure, Failure::hint));
    }
    let is_here = |record: &Record| record.key.name.namespace == name.namespace;
    let list = format!("get {}", kind.plural());
    let list = match listed {
        Some(all) if all.is_empty() => return Ok(failure),
        Some(all) if !all.iter().any(is_here) => invocation::current().like_in_all(&list),
        Some(_) | None => invocation::current().like_in(&name.namespace, &list),
    };
    Ok(failure.hint(format!("{list} lists those there are")))
}

/// What of that kind hangs below a Certificate of that name, whose name people take for that of all that belongs to it.
async fn below_certificate(store: &Arc<dyn Store>, key: &Key) -> Result<Vec<String>, StoreError> {
    let Key { kind, name } = key;
    if !matches!(kind, Kind::CertificateRequest | Kind::Order | Kind::Challenge) {
        return Ok(Vec::new());
    }
    let Some(chain) = chain::read(store, name).await? else { return Ok(Vec::new()) };
    let keys = chain.keys().into_iter().filter(|key| key.kind == *kind);
    let names: Vec<_> = keys.map(|key| key.name.name).collect();
    let has = match names.len() {
        0 => format!("no {kind} belongs to it now"),
        1 => format!("its {kind} is {}", names[0]),
        _ => format!("its {kind}s are {}", names.join(", ")),
    };
    let renew = invocation::current().renewal(name);
    Ok(vec![
        format!("there is a Certificate of that name: {has}"),
        format!("a fresh certificate for it: {renew}"),
    ])
}

/// What may not be read is left out.
fn unless_forbidden<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Err(error) if error.lacks_permission() => Ok(None),
        read => read.map(Some),
    }
}

fn kinds(text: &str) -> Result<Vec<Kind>, Failure> {
    let mut kinds = Vec::new();
    for word in text.split(',').filter(|word| !word.is_empty()) {
        let found = category(word).map_or_else(|| kind(word).map(|kind| vec![kind]), Ok)?;
        kinds.extend(found.into_iter().filter(|kind| !kinds.contains(kind)).collect::<Vec<_>>());
    }
    if kinds.is_empty() {
        return Err(Failure::usage("no kind is given").hint(known_kinds()));
    }
    Ok(kinds)
}

fn pair(word: &str) -> Result<(Kind, String), Failure> {
    let mixed = || {
        Failure::usage(format!("cannot read \"{word}\" as KIND/NAME"))
            .hint("write either KIND NAME… or KIND/NAME for each object")
    };
    let (kind_word, name) = word.split_once('/').ok_or_else(mixed)?;
    if name.is_empty() || name.contains('/') || kind_word.contains(',') {
        return Err(mixed());
    }
    Ok((kind(kind_word)?, name.to_owned()))
}

/// The categories that the kinds have in a cluster, and `all`.
fn category(word: &str) -> Option<Vec<Kind>> {
    match word.to_ascii_lowercase().as_str() {
        "all" | "cert-manager" => Some(Kind::SIX.to_vec()),
        "cert-manager-acme" => Some(vec![Kind::Order, Kind::Challenge]),
        _ => None,
    }
}

fn kind(word: &str) -> Result<Kind, Failure> {
    match Kind::parse(word) {
        Some(kind) if Kind::SIX.contains(&kind) => Ok(kind),
        Some(Kind::Secret) => Err(Failure::usage("Secrets are not shown")
            .hint("the certificate in one: certificate show secret/NAME")
            .hint("certificate and key as files: order … --out DIR")),
        Some(Kind::Event) => Err(Failure::usage("Events are not listed by themselves")
            .hint("they stand in describe KIND/NAME and in timeline KIND/NAME")),
        Some(_) | None => {
            Err(Failure::usage(format!("unknown kind \"{word}\"")).hint(known_kinds()))
        }
    }
}

fn known_kinds() -> String {
    let names = Kind::SIX.map(|kind| match kind.short_names() {
        [] => kind.singular(),
        short => format!("{} ({})", kind.singular(), short[0]),
    });
    format!("kinds are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// What the line names, or the error.
    fn check(line: &str, expected: &str) {
        let named = match Targets::parse(&words(line)) {
            Ok(Targets::Kinds(kinds)) => {
                kinds.iter().map(|k| k.singular()).collect::<Vec<_>>().join(" ")
            }
            Ok(Targets::Named(named)) => {
                let named = named.iter().map(|(kind, name)| format!("{}/{name}", kind.singular()));
                named.collect::<Vec<_>>().join(" ")
            }
            Err(failure) => format!("error: {failure}"),
        };
        assert_eq!(named, expected, "{line}");
    }

    #[test]
    fn kinds_are_taken_as_kubectl_takes_them() {
        check("certs", "certificate");
        check("cert,order,Cert", "certificate order");
        check("challenges.acme.cert-manager.io", "challenge");
        check("cert-manager-acme", "order challenge");
        check("all", "certificate certificaterequest order challenge issuer clusterissuer");
    }

    #[test]
    fn names_follow_their_kind_or_a_slash() {
        check("cert web mail", "certificate/web certificate/mail");
        check("cert/web ciss/le", "certificate/web clusterissuer/le");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        check("", "error: no kind is given");
        check(",", "error: no kind is given");
        check("pods", "error: unknown kind \"pods\"");
        check("secret", "error: Secrets are not shown");
        check("ev", "error: Events are not listed by themselves");
        check("cert,order web", "error: cannot find names among several kinds: cert,order");
        check("cert order/web", "error: cannot read \"cert\" as KIND/NAME");
        check("cert/", "error: cannot read \"cert/\" as KIND/NAME");
        check("cert/a/b", "error: cannot read \"cert/a/b\" as KIND/NAME");
        check("cert,order/web", "error: cannot read \"cert,order/web\" as KIND/NAME");
    }

    #[test]
    fn where_the_kind_is_known_it_may_be_named_as_well() {
        for (word, expected) in [
            ("web-1", Ok("web-1")),
            ("order/web-1", Ok("web-1")),
            ("order.acme.cert-manager.io/web-1", Ok("web-1")),
            ("cert/web", Err("\"cert/web\" is no order")),
            ("order/", Err("cannot read \"order/\" as KIND/NAME")),
        ] {
            let name = name_of(Kind::Order, word).map_err(|failure| failure.to_string());
            assert_eq!(name.as_deref().map_err(String::as_str), expected, "{word}");
        }
    }

    #[test]
    fn a_bare_name_is_a_certificates_where_one_object_is_wanted() {
        for (line, kind) in
            [("web", Kind::Certificate), ("order/web", Kind::Order), ("order web", Kind::Order)]
        {
            let one = Targets::parse_one(&words(line)).map_err(|f| f.to_string());
            assert_eq!(one, Ok((kind, "web".to_owned())), "{line}");
        }
        assert!(Targets::parse_one(&words("cert web mail")).is_err());
    }
}
