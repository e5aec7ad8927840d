//! Notes of a process on each object that are not in its status: by name, and only for the object that had that UID.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};

use crate::model::{Metadata, ObjectName};

/// Last note of each object, with the UID of the object.
#[derive(Debug)]
pub struct ByObject<T>(Mutex<HashMap<ObjectName, (String, T)>>);

impl<T> Default for ByObject<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> ByObject<T> {
    /// Stores a note in place of the one before.
    pub(super) fn note(&self, object: &Metadata, note: T) {
        self.all().insert(name(object), (object.uid.clone(), note));
    }

    /// Returns the last note.
    pub(super) fn of(&self, object: &Metadata) -> Option<T> {
        let all = self.all();
        let (uid, note) = all.get(&name(object))?;
        (*uid == object.uid).then(|| note.clone())
    }

    /// Drops the note, because it counts no more, or the object is gone.
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
    fn a_note_is_of_the_object_that_it_was_made_of() {
        let object = |uid: &str| Metadata {
            name: "web".to_owned(),
            uid: uid.to_owned(),
            ..Metadata::default()
        };
        let notes = ByObject::default();
        notes.note(&object("1"), 7);
        assert_eq!((notes.of(&object("1")), notes.of(&object("2"))), (Some(7), None));
        notes.forget(&ObjectName::new("", "web"));
        assert_eq!(notes.of(&object("1")), None);
    }
}
