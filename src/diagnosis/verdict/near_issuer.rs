//! Issuers that a reference may have meant if the issuer that it names does not exist.

use crate::model::text::closest;
use crate::model::{Key, Kind};

/// Maximum number of issuers that are named if none has a similar name.
const MAX_NAMED: usize = 3;

/// Returns the known issuers that a key may have meant: of the same name and another kind or namespace, or of a similar
/// name; else a few issuers that objects of the key's namespace can refer to.
pub fn near_issuers(key: &Key, known: &[Key]) -> Vec<Key> {
    let same_name = known.iter().filter(|other| other.name.name == key.name.name);
    let same_name: Vec<Key> = same_name.cloned().collect();
    if !same_name.is_empty() {
        return same_name;
    }
    match similar_issuer(key, known) {
        Some(similar) => vec![similar.clone()],
        None => reachable(key, known).take(MAX_NAMED).cloned().collect(),
    }
}

/// Returns the issuer most likely meant: the only one of the key's name, else one of a similar name; `None` if none.
pub fn meant_issuer<'a>(key: &Key, known: &'a [Key]) -> Option<&'a Key> {
    let mut same_name = reachable(key, known).filter(|other| other.name.name == key.name.name);
    match (same_name.next(), same_name.next()) {
        (Some(only), None) => Some(only),
        (Some(_), Some(_)) => None,
        (None, _) => similar_issuer(key, known),
    }
}

fn similar_issuer<'a>(key: &Key, known: &'a [Key]) -> Option<&'a Key> {
    let names = reachable(key, known).map(|other| other.name.name.as_str());
    let meant = closest(&key.name.name, names)?;
    reachable(key, known).find(|other| other.name.name == meant)
}

fn reachable<'a>(key: &Key, known: &'a [Key]) -> impl Iterator<Item = &'a Key> {
    let namespace = key.name.namespace.clone();
    known
        .iter()
        .filter(move |other| other.kind == Kind::ClusterIssuer || other.name.namespace == namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ObjectName;

    fn issuer(namespace: &str, name: &str) -> Key {
        let kind = if namespace.is_empty() { Kind::ClusterIssuer } else { Kind::Issuer };
        Key::new(kind, ObjectName::new(namespace, name))
    }

    #[test]
    fn the_same_name_elsewhere_comes_before_a_similar_one() {
        let asked = issuer("web", "pebble");
        let known = [issuer("web", "peble"), issuer("", "pebble"), issuer("shop", "pebble")];
        assert_eq!(near_issuers(&asked, &known), known[1..]);
        assert_eq!(meant_issuer(&asked, &known), Some(&known[1]), "the other is out of reach");
        assert_eq!(near_issuers(&asked, &known[..1]), known[..1]);
        assert_eq!(meant_issuer(&asked, &known[..2]), Some(&known[1]));
        let others = [issuer("web", "zerossl"), issuer("shop", "le")];
        assert_eq!(
            near_issuers(&asked, &others),
            others[..1],
            "what cannot be referred to is none"
        );
        assert_eq!(meant_issuer(&asked, &others), None);
    }
}
