//! CAA records of names, from each name upwards to the first that has any (RFC 8659 §3). Each name is asked once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::diagnosis::verdict::replacement::CaaResult;
use crate::dns::Resolve;
use crate::model::caa::{CaaAccount, CaaQuestion, CaaRecordSet, upwards};

/// Longest wait for one lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest number of names of one certificate that are checked: as many as CAs put into one certificate.
const MAX_NAMES: usize = 100;
/// Number of names of one certificate that are checked concurrently.
const AT_ONCE: usize = 8;

type OwnRecords = Result<CaaRecordSet, String>;

/// CAA lookups so far, by owner name.
pub(crate) struct CaaRecords {
    resolver: Arc<dyn Resolve>,
    heard: Mutex<HashMap<String, Arc<OnceCell<OwnRecords>>>>,
}

impl CaaRecords {
    /// Builds an empty cache of lookups by a resolver.
    pub(crate) fn new(resolver: &Arc<dyn Resolve>) -> Self {
        Self { resolver: Arc::clone(resolver), heard: Mutex::default() }
    }

    /// Finds names of a certificate for which CAA forbids a CA to issue, and names whose lookup failed.
    pub(crate) async fn judge(
        &self,
        names: &[String],
        (identities, account): (&[String], Option<&str>),
    ) -> Vec<CaaResult> {
        let looks = names.iter().take(MAX_NAMES).map(|name| async move {
            let base = name.strip_prefix("*.").unwrap_or(name);
            let is_wildcard = base != name;
            let account = account.map_or(CaaAccount::Anybody, CaaAccount::Url);
            let question = CaaQuestion { is_wildcard, identities, account, method: None };
            let name = name.clone();
            match self.relevant(base).await {
                Err(why) => Some(CaaResult::Unknown { name, why }),
                Ok(None) => None,
                Ok(Some((owner, records))) => {
                    records.bar(&question).map(|_| CaaResult::Forbids { name, owner, records })
                }
            }
        });
        stream::iter(looks).buffered(AT_ONCE).filter_map(async |look| look).collect().await
    }

    /// Returns the records that decide for a name, and the name that owns them.
    async fn relevant(&self, name: &str) -> Result<Option<(String, CaaRecordSet)>, String> {
        for owner in upwards(name) {
            let records = self.own(owner).await?;
            if !records.is_empty() {
                return Ok(Some((owner.to_owned(), records)));
            }
        }
        Ok(None)
    }

    async fn own(&self, owner: &str) -> OwnRecords {
        let cell = Arc::clone(self.heard.lock().entry(owner.to_ascii_lowercase()).or_default());
        cell.get_or_init(|| self.ask(owner)).await.clone()
    }

    async fn ask(&self, owner: &str) -> OwnRecords {
        match timeout(LOOKUP_TIMEOUT, self.resolver.caa(&format!("{owner}."))).await {
            Ok(Ok(records)) => Ok(records),
            Ok(Err(error)) if error.tells_nothing() => Err(error.to_string()),
            // The name does not exist, or the target of its alias has no records.
            Ok(Err(_)) => Ok(CaaRecordSet::default()),
            Err(_) => Err(format!(
                "cannot look up {owner}: no answer within {} s",
                LOOKUP_TIMEOUT.as_secs()
            )),
        }
    }
}
