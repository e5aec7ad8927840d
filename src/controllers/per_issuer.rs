//! What is remembered of each issuer for as long as it is there.
//!
//! An account key must not outlive its Issuer in memory, so all that is remembered of an issuer lives here and goes
//! with it.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};

use crate::model::{Issuer, Key};

/// One value for each issuer. Another issuer that took the name since has none: it is told by its UID.
#[derive(Debug)]
pub(super) struct PerIssuer<T>(Mutex<HashMap<Key, (String, T)>>);

impl<T> Default for PerIssuer<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> PerIssuer<T> {
    /// The value of an issuer, if it has one.
    pub(super) fn get(&self, issuer: &Issuer) -> Option<T> {
        let all = self.all();
        let (uid, value) = all.get(&key(issuer))?;
        (*uid == issuer.metadata.uid).then(|| value.clone())
    }

    /// The value of an issuer if it fits, else another one that is made meanwhile by nobody else.
    ///
    /// # Errors
    /// Fails when none can be made; what was there before stays.
    pub(super) fn get_or_make<E>(
        &self,
        issuer: &Issuer,
        fits: impl FnOnce(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut all = self.all();
        let (key, uid) = (key(issuer), &issuer.metadata.uid);
        if let Some((known, value)) = all.get(&key)
            && known == uid
            && fits(value)
        {
            return Ok(value.clone());
        }
        let value = make()?;
        all.insert(key, (uid.clone(), value.clone()));
        Ok(value)
    }

    /// Gives an issuer a value.
    pub(super) fn insert(&self, issuer: &Issuer, value: T) {
        self.all().insert(key(issuer), (issuer.metadata.uid.clone(), value));
    }

    /// Forgets the value of whatever issuer bears a name.
    pub(super) fn forget(&self, key: &Key) {
        self.all().remove(key);
    }

    /// How many have one.
    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Key, (String, T)>> {
        self.0.lock()
    }
}

fn key(issuer: &Issuer) -> Key {
    Key::new(issuer.issuer_kind(), issuer.name())
}
