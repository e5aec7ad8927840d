//! Objects under numbers: a state names them, and is small and quick to compare by that.

use std::collections::HashMap;
use std::rc::Rc;

use serde::Serialize;

/// The number of an object; the same content has the same one.
pub(crate) type Id = u32;

/// Objects of one sort.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    objects: Vec<Rc<T>>,
    numbers: HashMap<String, Id>,
}

impl<T: Serialize> Shelf<T> {
    pub(crate) fn new() -> Self {
        Self { objects: Vec::new(), numbers: HashMap::new() }
    }

    pub(crate) fn put(&mut self, object: T) -> Id {
        let text = serde_json::to_string(&object).unwrap();
        let next = Id::try_from(self.objects.len()).unwrap();
        *self.numbers.entry(text).or_insert_with(|| {
            self.objects.push(Rc::new(object));
            next
        })
    }

    pub(crate) fn get(&self, id: Id) -> Rc<T> {
        Rc::clone(&self.objects[id as usize])
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }
}
