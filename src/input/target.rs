//! Objects that a command line names, in the forms of kubectl: `KIND[,KIND] [NAME…]` or `KIND/NAME…`.

use crate::context::failure::Failure;
use crate::hints::invocation;
use crate::model::text::closest;
use crate::model::{Key, Kind, ObjectName};
use crate::store::Scope;

/// Namespace in which Events about objects without a namespace are kept.
const DEFAULT_NAMESPACE: &str = "default";

/// Objects that a command line names.
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
    /// Fails if there are no words, a kind is unknown, or the two forms are mixed.
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

    /// Reads the names of objects of one kind; without words, all objects of the kind.
    ///
    /// # Errors
    /// Fails if an object of another kind is named.
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
    /// Fails if the words name no object or several.
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

    /// Returns the kinds, each once, in the order in which they are named.
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
/// Fails if an object of another kind is named.
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

/// Returns the key of an object named on the command line; without a namespace if the kind has none.
pub fn key(kind: Kind, name: &str, namespace: &str) -> Key {
    let namespace = if kind.is_namespaced() { namespace } else { "" };
    Key::new(kind, ObjectName::new(namespace, name))
}

/// Returns the scope of a listing: one namespace, or all namespaces.
pub fn scope(kind: Kind, namespace: Option<&str>) -> Scope {
    match namespace {
        Some(namespace) if kind.is_namespaced() => Scope::namespace(namespace),
        _ => Scope::all(),
    }
}

/// Returns the scope of the Events about objects of a namespace.
pub fn events_scope(namespace: &str) -> Scope {
    Scope::namespace(if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace })
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
    let mixed =
        || {
            let failure = Failure::usage(format!("cannot read \"{word}\" as KIND/NAME"));
            failure.hint(folder_hint(word).unwrap_or_else(|| {
                "write either KIND NAME… or KIND/NAME for each object".to_owned()
            }))
        };
    let (kind_word, name) = word.split_once('/').ok_or_else(mixed)?;
    if name.is_empty() || name.contains('/') || kind_word.contains(',') {
        return Err(mixed());
    }
    Ok((kind(kind_word)?, name.to_owned()))
}

/// Returns the Ingress, Gateway or ListenerSet that words name: `KIND/NAME` or `KIND NAME`.
pub fn asking(words: &[String], namespace: &str) -> Option<Key> {
    let (kind, name) = match words {
        [word] => word.split_once('/')?,
        [kind, name] => (kind.as_str(), name.as_str()),
        _ => return None,
    };
    let kind = Kind::parse(kind).filter(|kind| Kind::ASKING.contains(kind))?;
    let is_name = !name.is_empty() && !name.contains('/');
    is_name.then(|| key(kind, name, namespace))
}

/// Returns the kinds of a category, which is one that the kinds have in a cluster, or `all`.
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
            .hint("see them with describe KIND/NAME or timeline KIND/NAME")),
        Some(_) | None => {
            let failure = Failure::usage(format!("unknown kind \"{word}\""));
            let words: Vec<String> = Kind::SIX.into_iter().flat_map(words).collect();
            let meant = closest(word, words.iter().map(String::as_str));
            let meant = meant.map(|meant| format!("did you mean {meant}?"));
            let domain = word.contains('.').then(|| {
                format!("write a domain after a kind: certificate/{word}, challenge/{word}")
            });
            let hints = folder_hint(word).or(meant).or(domain).into_iter().chain([known_kinds()]);
            Err(hints.fold(failure, Failure::hint))
        }
    }
}

/// Returns the words for a kind.
fn words(kind: Kind) -> impl Iterator<Item = String> {
    let short = kind.short_names().iter().map(|&short| short.to_owned());
    [kind.singular(), kind.plural()].into_iter().chain(short)
}

/// Returns the hint for a word after `--local` that was meant as its folder; `None` for other words.
pub fn folder_hint(word: &str) -> Option<String> {
    let flag = invocation::current().with_folder(word)?;
    Some(format!("write the folder after =: {flag}"))
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

    /// Returns the objects that the line names, or the error.
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
    fn what_was_meant_by_an_unknown_kind_is_told() {
        for (word, expected) in [
            ("border", Some("did you mean order?")),
            ("insurer", Some("did you mean issuer?")),
            ("cart", Some("did you mean cert?")),
            (
                "www.example.com",
                Some(
                    "write a domain after a kind: certificate/www.example.com, challenge/www.example.com",
                ),
            ),
            ("pods", None),
        ] {
            let failure = Targets::parse(&words(word)).unwrap_err();
            let told = failure.hints.len() > 1;
            assert_eq!(failure.hints.first().filter(|_| told).map(String::as_str), expected);
        }
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
