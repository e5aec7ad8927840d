//! What a run has left behind: objects in local state, files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kubectl_acme::model::Kind;
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Scope, Store as _};
use serde_json::Value;

/// Objects of a kind in a folder of local state; none where there is no such folder.
pub fn stored(folder: &Path, kind: Kind) -> Vec<Value> {
    if !folder.exists() {
        return Vec::new();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = LocalStore::open(folder, Access::ReadOnly).unwrap();
    let listed = runtime.block_on(store.list(kind, &Scope::all())).unwrap();
    listed.into_iter().map(|record| record.object).collect()
}

/// Every file below a folder, by its path there.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(within) = folders.pop() {
        let Ok(entries) = fs::read_dir(&within) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let below = path.strip_prefix(folder).unwrap();
                found.insert(below.display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    found
}
