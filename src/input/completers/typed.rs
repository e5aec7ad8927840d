//! Words and flags before the word that is completed; they show completers the store to read and the names given already.

use std::cell::RefCell;
use std::path::PathBuf;

use crate::store::cluster::Connection;

/// Flags that name a cluster, or the user in it.
const CLUSTER_FLAGS: [&str; 4] = ["kubeconfig", "context", "as", "as-group"];

/// Words and flags of a command line so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// Kinds and names: words that are neither commands nor belong to a flag.
    pub words: Vec<String>,
    /// Flags in the order in which they stand.
    pub flags: Vec<TypedFlag>,
}

/// Flag on the command line, or in its environment form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedFlag {
    /// Long name.
    pub name: String,
    /// Value; empty for a flag without a value.
    pub value: String,
    /// Whether the flag is on the command line.
    pub is_typed: bool,
}

/// Place where the command would find its objects.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// On this machine, in a folder as the flag names it, and in a namespace.
    Local(String, Option<String>),
    /// In a cluster.
    Cluster(Connection),
}

thread_local! {
    static TYPED: RefCell<Typed> = RefCell::default();
}

/// Stores the typed words for the completers, which get the last word only.
pub fn remember(typed: Typed) {
    TYPED.set(typed);
}

/// Returns the typed words of the command line that is completed.
pub(super) fn current() -> Typed {
    TYPED.with_borrow(Clone::clone)
}

impl Typed {
    fn typed_value(&self, name: &str) -> Option<&str> {
        let mut typed = self.flags.iter().rev().filter(|flag| flag.is_typed && flag.name == name);
        typed.next().map(|flag| flag.value.as_str())
    }

    /// Returns the value of a flag; a typed value beats the environment.
    fn value(&self, name: &str) -> Option<String> {
        let given = || self.flags.iter().rev().find(|flag| flag.name == name);
        self.typed_value(name).map(str::to_owned).or_else(|| given().map(|flag| flag.value.clone()))
    }

    /// Returns the place where the command would find its objects.
    pub(super) fn place(&self) -> Whereabouts {
        let names_cluster = CLUSTER_FLAGS.iter().any(|name| self.typed_value(name).is_some());
        let local = if names_cluster { None } else { self.value("local") };
        let local = self.typed_value("local").map(str::to_owned).or(local);
        match local {
            Some(folder) => Whereabouts::Local(folder, self.value("namespace")),
            None => Whereabouts::Cluster(self.connection()),
        }
    }

    /// Returns the settings of the connection to the cluster.
    pub(super) fn connection(&self) -> Connection {
        let groups = self.flags.iter().filter(|flag| flag.name == "as-group");
        Connection {
            kubeconfig: self.value("kubeconfig").map(PathBuf::from),
            context: self.value("context"),
            namespace: self.value("namespace"),
            user: self.value("as"),
            groups: groups.map(|flag| flag.value.clone()).collect(),
            request_timeout: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads flags as `name=value`; flags of the environment begin with `$`.
    fn check(flags: &str, expected: &Whereabouts) {
        let flag = |text: &str| {
            let name = text.trim_start_matches('$');
            let (name, value) = name.split_once('=').unwrap();
            let is_typed = !text.starts_with('$');
            TypedFlag { name: name.to_owned(), value: value.to_owned(), is_typed }
        };
        let flags = flags.split_whitespace().map(flag).collect();
        assert_eq!(Typed { words: Vec::new(), flags }.place(), *expected);
    }

    fn local(folder: &str, namespace: Option<&str>) -> Whereabouts {
        Whereabouts::Local(folder.to_owned(), namespace.map(str::to_owned))
    }

    #[test]
    fn the_last_flag_counts_and_what_is_typed_beats_the_environment() {
        check("local=a local=b namespace=shop $local=c", &local("b", Some("shop")));
        check("$local=c $namespace=shop", &local("c", Some("shop")));
        check("local= $context=work", &local("", None));
    }

    #[test]
    fn a_cluster_that_is_typed_beats_a_folder_of_the_environment() {
        let connection = Connection {
            kubeconfig: Some("k".into()),
            context: Some("work".to_owned()),
            user: Some("ann".to_owned()),
            groups: vec!["a".to_owned(), "b".to_owned()],
            ..Connection::default()
        };
        let words = "context=work as=ann as-group=a as-group=b $kubeconfig=k $local=c";
        check(words, &Whereabouts::Cluster(connection));
    }
}
