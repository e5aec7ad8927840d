//! CAA records of names, from each name upwards. Many names have the same parents: each name is looked up once.

use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use super::asked_once::AnswerCache;
use super::lookup::looked_up;
use crate::diagnosis::case::name::{CaaLevel, LookUp};
use crate::dns::Resolve;
use crate::model::caa::{CaaRecordSet, upwards};

/// CAA lookups of one diagnosis, by name.
#[derive(Debug, Default)]
pub(super) struct CaaLookups(AnswerCache<LookUp<CaaRecordSet>>);

impl CaaLookups {
    /// Looks up CAA records from the name upwards, up to the first name that has records or whose lookup fails.
    pub(super) async fn levels(
        &self,
        resolver: &dyn Resolve,
        name: &str,
        (now, until): (Timestamp, Instant),
    ) -> Vec<CaaLevel> {
        let mut levels = Vec::new();
        for at in upwards(name) {
            let asked = async { looked_up(timeout_at(until, resolver.caa(at)).await) };
            let records = self.0.answer(at, asked).await;
            let is_last = match &records {
                LookUp::Found(records) => !records.is_empty(),
                LookUp::Code(_) | LookUp::Silence(_) => true,
                _ => false,
            };
            levels.push(CaaLevel { name: at.to_owned(), records, at: now });
            if is_last {
                break;
            }
        }
        levels
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use async_trait::async_trait;
    use futures_util::future::join_all;
    use parking_lot::Mutex;

    use super::*;
    use crate::dns::LookupError;
    use crate::model::caa::CaaProperty;

    /// Resolves CAA alone, and notes what it is asked.
    #[derive(Debug, Default)]
    struct Noting(Mutex<Vec<String>>);

    #[async_trait]
    impl Resolve for Noting {
        async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
            Err(LookupError::NoAddress { name: host.to_owned() })
        }

        async fn caa(&self, name: &str) -> Result<CaaRecordSet, LookupError> {
            self.0.lock().push(name.to_owned());
            // Others ask meanwhile.
            tokio::task::yield_now().await;
            let found = (name == "example.com").then(|| CaaProperty::new(0, "issue", ";"));
            Ok(found.into_iter().collect())
        }
    }

    #[tokio::test]
    async fn each_name_is_asked_for_once_however_many_are_below_it() {
        let (resolver, lookups) = (Noting::default(), CaaLookups::default());
        let names = ["a.example.com", "b.example.com", "b.example.com", "c.b.example.com"];
        let later = Instant::now() + std::time::Duration::from_mins(1);
        let climbed =
            names.map(|name| lookups.levels(&resolver, name, (Timestamp::UNIX_EPOCH, later)));
        let climbed = join_all(climbed).await;
        assert!(climbed.iter().all(|levels| levels.last().unwrap().name == "example.com"));
        assert_eq!(climbed.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2, 3]);
        let mut asked = resolver.0.lock().clone();
        asked.sort();
        assert_eq!(asked, ["a.example.com", "b.example.com", "c.b.example.com", "example.com"]);
    }
}
