//! The objects in the database: the [`Transaction`] of one transaction, and the queries of readers.
//!
//! Objects without the fields that tables never show lie in a table of their own (`brief`), which lists for tables
//! read: ten thousand Orders are listed in 0.2 s.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
use serde_json::Value;

use super::fault::{self, unusable};
use crate::model::{Key, Kind, ObjectName, Record};
use crate::store::error::StoreError;
use crate::store::object::without_bulk;
use crate::store::rules::Transaction;
use crate::store::watch::{JOURNAL_LENGTH, JournalEntry};
use crate::store::{Scope, rules};
use crate::surroundings::Environment;

/// Revisions for which the journal keeps gone objects, except Events; other objects show their changes themselves.
const GONE_KEPT: i64 = 20_000;

/// Query for whole objects.
const WHOLE: &str = "SELECT namespace, name, body FROM object";
/// Query for objects without the bulk. An object without bulk, or of an older version, has no brief form.
const BRIEF: &str = "SELECT namespace, name, coalesce(brief.body, object.body)
    FROM object LEFT JOIN brief ON brief.object = object.id";

/// The database within one transaction or one read.
pub(super) struct Rows<'a> {
    connection: &'a Connection,
    file: &'a Path,
    surroundings: Environment,
}

impl<'a> Rows<'a> {
    /// Reads and writes the database through a connection.
    pub(super) fn new(connection: &'a Connection, file: &'a Path) -> Self {
        Self { connection, file, surroundings: Environment::default() }
    }

    /// Reads the revision of the last write.
    pub(super) fn revision(&self) -> Result<i64, StoreError> {
        self.one("SELECT revision FROM counter", &[], |row| row.get(0))
            .map(Option::unwrap_or_default)
    }

    /// Reads the objects of a kind, ordered by namespace and name, as JSON.
    pub(super) fn list(
        &self,
        kind: Kind,
        scope: &Scope,
    ) -> Result<Vec<(ObjectName, String)>, StoreError> {
        let kind_name = kind.as_str();
        let (text, values) = listing(&kind_name, scope);
        self.all(&text, &values, |row| Ok((name(row)?, row.get(2)?)))
    }

    /// Reads the names and revisions of all objects of a kind, ordered by namespace and name, without their contents.
    pub(super) fn revisions(&self, kind: Kind) -> Result<Vec<(ObjectName, String)>, StoreError> {
        let text = "SELECT namespace, name, coalesce(revision, '') FROM object WHERE kind = ?
             ORDER BY namespace, name";
        self.all(text, params![kind.as_str()], |row| Ok((name(row)?, row.get(2)?)))
    }

    /// Reads the changes after a revision, oldest first; `None` if some of them have been removed.
    pub(super) fn since(&self, revision: i64) -> Result<Option<Vec<Line>>, StoreError> {
        if revision < self.revision()? - JOURNAL_LENGTH {
            return Ok(None);
        }
        let text =
            "SELECT revision, kind, gone, body FROM change WHERE revision > ? ORDER BY revision";
        self.all(text, params![revision], Line::read).map(Some)
    }

    /// Reads the objects of a kind that changed after a revision, as they are now, or were when they went: at most
    /// `most`, in the order of their last changes. `None` if some objects that have gone may have been removed.
    pub(super) fn changed(
        &self,
        kind: Kind,
        revision: i64,
        most: usize,
    ) -> Result<Option<Vec<Line>>, StoreError> {
        if revision < self.revision()? - GONE_KEPT {
            return Ok(None);
        }
        // The index alone finds these objects.
        let text = "SELECT CAST(revision AS INTEGER) AS at, kind, 0, body FROM object
             WHERE id IN (SELECT id FROM object INDEXED BY object_revision
                 WHERE kind = ?1 AND CAST(revision AS INTEGER) > ?2
                 ORDER BY CAST(revision AS INTEGER) LIMIT ?3)
             UNION ALL
             SELECT * FROM (SELECT revision, kind, gone, body FROM change
                 WHERE kind = ?1 AND revision > ?2 AND gone ORDER BY revision LIMIT ?3)
             ORDER BY 1 LIMIT ?3";
        let values = params![kind.as_str(), revision, i64::try_from(most).unwrap_or(i64::MAX)];
        self.all(text, values, Line::read).map(Some)
    }

    fn record(&self, key: Key, object: Option<Value>) -> Result<Record, StoreError> {
        match object {
            Some(object) => Ok(Record { key, object }),
            None => Err(self.damaged(&key.to_string())),
        }
    }

    fn damaged(&self, what: &str) -> StoreError {
        fault::damaged(self.file, what)
    }

    fn log(
        &self,
        record: &Record,
        revision: i64,
        gone: bool,
        body: &str,
    ) -> Result<(), StoreError> {
        let text = "INSERT INTO change(revision, kind, gone, body) VALUES(?, ?, ?, ?)";
        self.run(text, params![revision, record.key.kind.as_str(), gone, body])?;
        let text = "DELETE FROM change WHERE revision = ? AND NOT (gone AND kind <> 'Event')";
        self.run(text, params![revision - JOURNAL_LENGTH])?;
        self.run("DELETE FROM change WHERE revision <= ?", params![revision - GONE_KEPT])
    }

    fn run(&self, text: &str, values: &[&dyn ToSql]) -> Result<(), StoreError> {
        let run = || self.connection.prepare_cached(text)?.execute(values).map(drop);
        run().map_err(|error| unusable(self.file, &error))
    }

    fn one<T>(
        &self,
        text: &str,
        values: &[&dyn ToSql],
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let run = || self.connection.prepare_cached(text)?.query_row(values, read).optional();
        run().map_err(|error| unusable(self.file, &error))
    }

    fn all<T>(
        &self,
        text: &str,
        values: &[&dyn ToSql],
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let run = || {
            let mut statement = self.connection.prepare_cached(text)?;
            statement.query_map(values, read)?.collect::<rusqlite::Result<_>>()
        };
        run().map_err(|error| unusable(self.file, &error))
    }
}

impl Transaction for Rows<'_> {
    fn surroundings(&self) -> &Environment {
        &self.surroundings
    }

    fn read(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let text = "SELECT body FROM object WHERE kind = ? AND namespace = ? AND name = ?";
        let values = params![key.kind.as_str(), key.name.namespace, key.name.name];
        let object = self.one(text, values, |row| parse(row, 0))?;
        object.map(|object| self.record(key.clone(), object)).transpose()
    }

    fn next_revision(&mut self) -> Result<i64, StoreError> {
        let text = "UPDATE counter SET revision = revision + 1 RETURNING revision";
        let revision = self.one(text, &[], |row| row.get(0))?;
        revision.ok_or_else(|| self.damaged("its counter"))
    }

    fn put(&mut self, record: &Record, revision: i64) -> Result<(), StoreError> {
        let body = record.object.to_string();
        self.log(record, revision, false, &body)?;
        let Key { kind, name } = &record.key;
        let involved = Some(record.text("/involvedObject/uid")).filter(|uid| !uid.is_empty());
        let text = "INSERT INTO object(kind, namespace, name, uid, involved, told, revision, body)
             VALUES(?, ?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT(kind, namespace, name) DO UPDATE
             SET uid = excluded.uid, involved = excluded.involved, told = excluded.told,
                 revision = excluded.revision, body = excluded.body
             RETURNING id";
        let (uid, told) = (record.uid(), rules::last_occurrence(record));
        let (place, version) = (&name.namespace, record.resource_version());
        let values = params![kind.as_str(), place, name.name, uid, involved, told, version, body];
        let id: Option<i64> = self.one(text, values, |row| row.get(0))?;
        self.run("DELETE FROM owner WHERE object = ?", params![id])?;
        match without_bulk(&record.object) {
            Some(brief) => {
                let text = "INSERT OR REPLACE INTO brief(object, body) VALUES(?, ?)";
                self.run(text, params![id, brief.to_string()])?;
            }
            None => self.run("DELETE FROM brief WHERE object = ?", params![id])?,
        }
        for owner in record.metadata().owner_references {
            let text = "INSERT OR REPLACE INTO owner(object, uid, manages) VALUES(?, ?, ?)";
            self.run(text, params![id, owner.uid, owner.controller == Some(true)])?;
        }
        Ok(())
    }

    fn remove(&mut self, record: &Record, revision: i64) -> Result<(), StoreError> {
        self.log(record, revision, true, &record.object.to_string())?;
        self.run("DELETE FROM object WHERE uid = ?", params![record.uid()])
    }

    fn is_there(&self, uid: &str) -> Result<bool, StoreError> {
        let found = self.one("SELECT 1 FROM object WHERE uid = ?", params![uid], |_| Ok(()))?;
        Ok(found.is_some())
    }

    fn dependents(&self, uid: &str) -> Result<Vec<Key>, StoreError> {
        let text = "SELECT namespace, name, kind FROM object
             WHERE id IN (SELECT object FROM owner WHERE uid = ?) ORDER BY kind, namespace, name";
        let rows =
            self.all(text, params![uid], |row| Ok((row.get::<_, String>(2)?, name(row)?)))?;
        let key = |(kind, name): (String, ObjectName)| match Kind::parse(&kind) {
            Some(kind) => Ok(Key::new(kind, name)),
            None => Err(self.damaged(&format!("{kind} {name}"))),
        };
        rows.into_iter().map(key).collect()
    }

    fn told_before(&self, moment: &str, most: u32) -> Result<Vec<Key>, StoreError> {
        let text = "SELECT namespace, name FROM object WHERE told < ? ORDER BY told LIMIT ?";
        self.all(text, params![moment, most], event)
    }

    fn told_beyond(&self, about: &str, kept: u32, most: u32) -> Result<Vec<Key>, StoreError> {
        let text = "SELECT namespace, name FROM object WHERE involved = ?
             ORDER BY told DESC, namespace DESC, name DESC LIMIT ? OFFSET ?";
        self.all(text, params![about, most, kept], event)
    }
}

/// Query for the objects of a scope, ordered by namespace and name, with the values for its question marks.
fn listing<'a>(kind: &'a &str, scope: &'a Scope) -> (String, Vec<&'a dyn ToSql>) {
    let mut text = String::from(if scope.brief { BRIEF } else { WHOLE });
    let mut values: Vec<&dyn ToSql> = vec![kind];
    // Otherwise SQLite goes through all objects of the kind, since the index by name is in order: the plus keeps SQLite
    // from that index if owner or subject leads to a few.
    let leads_to_few = scope.owner_uid.is_some() || scope.involved_uid.is_some();
    let (kind_is, namespace_is) = if leads_to_few {
        (" WHERE +kind = ?", " AND +namespace = ?")
    } else {
        (" WHERE kind = ?", " AND namespace = ?")
    };
    text.push_str(kind_is);
    let wanted = [
        (&scope.namespace, namespace_is),
        (&scope.owner_uid, " AND id IN (SELECT object FROM owner WHERE uid = ? AND manages)"),
        (&scope.involved_uid, " AND involved = ?"),
    ];
    for (value, condition) in wanted {
        if let Some(value) = value {
            text.push_str(condition);
            values.push(value);
        }
    }
    text.push_str(" ORDER BY namespace, name");
    (text, values)
}

fn event(row: &Row<'_>) -> rusqlite::Result<Key> {
    Ok(Key::new(Kind::Event, name(row)?))
}

fn name(row: &Row<'_>) -> rusqlite::Result<ObjectName> {
    Ok(ObjectName { namespace: row.get(0)?, name: row.get(1)? })
}

/// Parses a stored object in place; `None` if it is no JSON.
fn parse(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Value>> {
    Ok(serde_json::from_str(row.get_ref(column)?.as_str()?).ok())
}

/// One line of the journal in the database.
pub(crate) struct Line {
    /// Revision of the change.
    pub revision: i64,
    /// Kind of the object.
    pub kind: String,
    /// Whether the object is gone.
    pub gone: bool,
    /// The object, or its last state, as JSON.
    pub body: String,
    /// The object parsed, once it is needed; `None` inside if it is damaged.
    pub parsed: OnceLock<Option<Arc<JournalEntry>>>,
}

impl Line {
    /// Reads a line from four columns: revision, kind, whether the object is gone, and the object.
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            revision: row.get(0)?,
            kind: row.get(1)?,
            gone: row.get(2)?,
            body: row.get(3)?,
            parsed: OnceLock::new(),
        })
    }

    pub(crate) fn logged(&self) -> Option<Arc<JournalEntry>> {
        let parse = || {
            let object: Value = serde_json::from_str(&self.body).ok()?;
            Some(Arc::new(JournalEntry { record: Record::new(object)?, gone: self.gone }))
        };
        self.parsed.get_or_init(parse).clone()
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::store::local::schema;

    #[test]
    fn what_belongs_to_one_object_is_found_without_a_look_at_all_of_its_kind() {
        let folder = TempDir::new().unwrap();
        let connection = schema::open(&folder.path().join("state.db")).unwrap();
        for (scope, index) in [
            (Scope::owned_by("web", "uid"), "USING INTEGER PRIMARY KEY (rowid=?)"),
            (Scope::about("uid"), "USING INDEX object_involved (involved=?)"),
            (Scope::about("uid").within("web"), "USING INDEX object_involved (involved=?)"),
            (Scope::namespace("web"), "(kind=? AND namespace=?)"),
        ] {
            for scope in [scope.clone(), scope.brief()] {
                let (text, values) = listing(&"Order", &scope);
                let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
                let steps = plan.query_map(&values[..], |row| row.get::<_, String>(3)).unwrap();
                let steps: Vec<String> = steps.map(Result::unwrap).collect();
                let is_told = |step: &String| step.contains("object") && step.contains(index);
                assert!(steps.iter().any(is_told), "{scope:?}: {steps:#?}");
            }
        }
    }
}
