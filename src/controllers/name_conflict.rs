//! Names of our objects that another object has already.
//!
//! Such a name is reported and checked again after 30 s, and nothing is made for it before: each try would cost a key
//! and a signature.

use crate::model::{Certificate, Key, Kind, Metadata, ObjectName};
use crate::store::error::StoreError;
use crate::store::resources::{Resources, Stored};

/// Object in the place of one of ours.
#[derive(Debug, thiserror::Error)]
#[error("cannot create {key} for {ours}: there is one already, {whose}")]
pub struct NameConflict {
    /// Key of the object.
    pub key: Key,
    /// Owner that it should have.
    pub ours: Key,
    whose: String,
    /// Whether the conflict ends by itself: the object is being deleted, or is left from an earlier owner of our name.
    pub passes: bool,
}

impl NameConflict {
    /// Returns a conflict if an object is not controlled by the owner with this UID.
    pub fn by(other: &Metadata, key: Key, ours: &Key, uid: &str) -> Option<Self> {
        if other.is_controlled_by(uid) {
            return None;
        }
        let is_earlier =
            |kind: &str, name: &str| kind == ours.kind.as_str() && name == ours.name.name;
        let (whose, passes) = match other.controller() {
            _ if other.is_deleted() => ("which is being deleted".to_owned(), true),
            Some(owner) if is_earlier(&owner.kind, &owner.name) => {
                (format!("of an earlier {} {}", owner.kind, owner.name), true)
            }
            Some(owner) => (format!("which {} {} owns", owner.kind, owner.name), false),
            None => ("which nobody owns".to_owned(), false),
        };
        Some(Self { key, ours: ours.clone(), whose, passes })
    }
}

/// Checks that no object of another owner has the name of an object to be made for a Certificate.
///
/// # Errors
/// Fails if the store does; the inner error is the object with the name.
pub(super) async fn expect_free<R: Stored>(
    resources: &Resources<R>,
    name: &str,
    certificate: &Certificate,
) -> Result<Result<(), Box<NameConflict>>, StoreError> {
    let Metadata { namespace, uid, .. } = &certificate.metadata;
    let key = resources.key(&ObjectName::new(namespace, name));
    let ours = Key::new(Kind::Certificate, certificate.name());
    check_free(resources, key, &ours, uid).await
}

/// Checks that a name is free for an object of this owner, or has its object already.
///
/// # Errors
/// Fails if the store does; the inner error is the object with the name.
pub(super) async fn check_free<R: Stored>(
    resources: &Resources<R>,
    key: Key,
    ours: &Key,
    uid: &str,
) -> Result<Result<(), Box<NameConflict>>, StoreError> {
    let known = resources.get_known(&key.name).await?;
    if known.is_none_or(|known| known.metadata().is_controlled_by(uid)) {
        return Ok(Ok(()));
    }
    // The object may be gone, and the change has not arrived yet.
    let Some(other) = resources.get_anew(&key.name).await? else { return Ok(Ok(())) };
    Ok(NameConflict::by(other.metadata(), key, ours, uid)
        .map_or(Ok(()), |taken| Err(Box::new(taken))))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::{Kind, ObjectName, OwnerReference};

    /// Checks the conflict with a request in the place of ours, with this owner and its UID, or with none.
    fn check(owner: Option<(&str, &str)>, is_deleted: bool, expected: Option<(&str, bool)>) {
        let reference = |(name, uid): (&str, &str)| OwnerReference {
            kind: "Certificate".to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        let other = Metadata {
            owner_references: owner.map(reference).into_iter().collect(),
            deletion_timestamp: is_deleted.then(|| Timestamp::UNIX_EPOCH.into()),
            ..Metadata::default()
        };
        let key = Key::new(Kind::CertificateRequest, ObjectName::new("default", "web-1"));
        let ours = Key::new(Kind::Certificate, ObjectName::new("default", "web"));
        let taken = NameConflict::by(&other, key, &ours, "uid");
        let said = taken.map(|taken| (taken.to_string(), taken.passes));
        let said = said.as_ref().map(|(text, passes)| (text.as_str(), *passes));
        let expected = expected.map(|(whose, passes)| {
            let start =
                "cannot create CertificateRequest default/web-1 for Certificate default/web";
            (format!("{start}: there is one already, {whose}"), passes)
        });
        assert_eq!(said, expected.as_ref().map(|(text, passes)| (text.as_str(), *passes)));
    }

    #[test]
    fn whoever_has_the_name_is_told() {
        check(Some(("web", "uid")), false, None);
        check(None, false, Some(("which nobody owns", false)));
        check(Some(("other", "u")), false, Some(("which Certificate other owns", false)));
        check(Some(("web", "before")), false, Some(("of an earlier Certificate web", true)));
        check(None, true, Some(("which is being deleted", true)));
    }
}
