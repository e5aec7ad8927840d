//! Hints for a keystore that cannot be written.

use crate::model::keystore::{KeystoreFormat, NoKeystore};

/// Returns the hint, in one line.
pub(super) fn line(why: &NoKeystore) -> String {
    let field = |format: &KeystoreFormat| format!("spec.keystores.{}", format.field());
    match why {
        NoKeystore::SecretNotFound { place, entry, .. } => format!(
            "apply a manifest of Secret {} with the password under the key {entry}, in namespace {}",
            place.name, place.namespace
        ),
        NoKeystore::NoEntry { format, place, entry } => format!(
            "put the password under the key \"{entry}\" of Secret {place}, or name another key in {}.passwordSecretRef.key",
            field(format)
        ),
        NoKeystore::NoText { place, entry, .. } => {
            format!("put a password that is UTF-8 text under the key \"{entry}\" of Secret {place}")
        }
        NoKeystore::NoPassword(format) => {
            format!("write passwordSecretRef or password below {}", field(format))
        }
        NoKeystore::Unwritable(format, _) => format!("change {}", field(format)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ObjectName;

    #[test]
    fn who_lacks_a_password_is_told_where_it_belongs() {
        let (format, entry) = (KeystoreFormat::Pkcs12, "password".to_owned());
        let place = ObjectName::new("shop", "pw");
        for (why, expected) in [
            (
                NoKeystore::SecretNotFound { format, place: place.clone(), entry: entry.clone() },
                "apply a manifest of Secret pw with the password under the key password, in namespace shop",
            ),
            (
                NoKeystore::NoEntry { format, place, entry },
                "put the password under the key \"password\" of Secret shop/pw, or name another key in \
                 spec.keystores.pkcs12.passwordSecretRef.key",
            ),
            (
                NoKeystore::NoPassword(format),
                "write passwordSecretRef or password below spec.keystores.pkcs12",
            ),
        ] {
            assert_eq!(line(&why), expected);
        }
    }
}
