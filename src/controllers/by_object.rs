//! When what changes at a CA by itself was read last: no reading that brings nothing new is written down.
//!
//! A Retry-After beyond our own pause is written down all the same, because another process heeds it as well.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};

use crate::model::{Metadata, ObjectName};

/// The last reading for each object, with the UID of the object.
#[derive(Debug)]
pub(super) struct Polls<T>(Mutex<HashMap<ObjectName, (String, T)>>);

impl<T> Default for Polls<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Copy> Polls<T> {
    /// Notes a reading.
    pub(super) fn note(&self, object: &Metadata, reading: T) {
        self.all().insert(name(object), (object.uid.clone(), reading));
    }

    /// The last reading.
    pub(super) fn of(&self, object: &Metadata) -> Option<T> {
        let all = self.all();
        let (uid, reading) = all.get(&name(object))?;
        (*uid == object.uid).then_some(*reading)
    }

    /// Notes that an object has ended, or is gone.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.all().remove(name);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ObjectName, (String, T)>> {
        self.0.lock()
    }
}

fn name(object: &Metadata) -> ObjectName {
    ObjectName::new(&object.namespace, &object.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_remembered_for_the_object_that_it_was_for() {
        let object = |uid: &str| Metadata {
            name: "web".to_owned(),
            uid: uid.to_owned(),
            ..Metadata::default()
        };
        let polls = Polls::default();
        polls.note(&object("1"), 7);
        assert_eq!((polls.of(&object("1")), polls.of(&object("2"))), (Some(7), None));
        polls.forget(&ObjectName::new("", "web"));
        assert_eq!(polls.of(&object("1")), None);
    }
}
