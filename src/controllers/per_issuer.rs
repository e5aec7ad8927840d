//! Values remembered of each issuer for as long as it exists.
//!
//! An account key must not outlive its Issuer in memory, so all that is remembered of an issuer is kept here and goes
//! with it.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};

use crate::model::{Issuer, Key};

/// One value for each issuer. Another issuer that took the name since has none: issuers are distinguished by UID.
#[derive(Debug)]
pub(super) struct PerIssuer<T>(Mutex<HashMap<Key, (String, T)>>);

impl<T> Default for PerIssuer<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> PerIssuer<T> {
    /// Returns the value of an issuer, if it has one.
    pub(super) fn get(&self, issuer: &Issuer) -> Option<T> {
        let all = self.all();
        let (uid, value) = all.get(&key(issuer))?;
        (*uid == issuer.metadata.uid).then(|| value.clone())
    }

    /// Returns the value of an issuer if it fits, else a new value; no other thread makes one meanwhile.
    ///
    /// # Errors
    /// Fails if no value can be made; the value from before stays.
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

    /// Sets the value of an issuer.
    pub(super) fn insert(&self, issuer: &Issuer, value: T) {
        self.all().insert(key(issuer), (issuer.metadata.uid.clone(), value));
    }

    /// Forgets the value of any issuer with this name.
    pub(super) fn forget(&self, key: &Key) {
        self.all().remove(key);
    }

    /// Returns the number of issuers with a value.
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
