//! Every provider against a stub of its API: the contract of all, then each one's exact requests.

mod acme_dns;
mod akamai;
mod azure_dns;
mod cloud_dns;
mod cloudflare;
mod digitalocean;
mod exec;
mod factory;
mod google_federation;
mod log;
#[cfg(feature = "many-providers")]
mod many;
mod rfc2136;
mod route53;
mod stub;
mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use self::stub::{Fake, Stub};
use super::site::Webhooks;
use super::webhook::DirectWebhooks;
use super::{Provider, TxtRecord};
use crate::dns::lookup::SystemResolver;
use crate::dns::{FindZone, LookupError};

/// The name that all tests write to.
const NAME: &str = "_acme-challenge.www.example.com.";

/// A text at that name.
fn record(value: &str) -> TxtRecord {
    TxtRecord {
        domain: "www.example.com".to_owned(),
        name: NAME.to_owned(),
        value: value.to_owned(),
    }
}

/// Knows one zone.
#[derive(Debug)]
struct OneZone;

#[async_trait]
impl FindZone for OneZone {
    async fn zone_of(&self, name: &str) -> Result<String, LookupError> {
        if name.ends_with("example.com.") {
            return Ok("example.com.".to_owned());
        }
        Err(LookupError::NoSuchName { name: name.to_owned() })
    }
}

/// Every name is a zone of its own, as where a zone is delegated for it.
#[derive(Debug)]
struct OwnZone;

#[async_trait]
impl FindZone for OwnZone {
    async fn zone_of(&self, name: &str) -> Result<String, LookupError> {
        Ok(name.to_owned())
    }
}

fn zones() -> Arc<dyn FindZone> {
    Arc::new(OneZone)
}

/// Knows no webhook.
fn webhooks() -> Arc<dyn Webhooks> {
    let resolver = Arc::new(SystemResolver::new());
    Arc::new(DirectWebhooks { urls: BTreeMap::new(), resolver, others: None })
}

/// Checks the contract of every provider. The stub holds the text `theirs` of another client at the name.
async fn keeps_the_contract<F: Fake>(provider: &dyn Provider, stub: &Stub<F>) {
    let there = || {
        let mut values = stub.values(NAME);
        values.sort();
        values.join(" ")
    };
    assert_eq!(there(), "theirs");
    provider.check(NAME).await.unwrap();
    provider.remove(&record("one")).await.expect("it is not there, which is as good");
    assert_eq!(there(), "theirs", "checks and removals of nothing write nothing");
    provider.add(&record("one")).await.unwrap();
    provider.add(&record("one")).await.expect("add is safe to repeat");
    assert_eq!(there(), "one theirs");
    provider.add(&record("two")).await.unwrap();
    assert_eq!(there(), "one theirs two");
    provider.remove(&record("one")).await.unwrap();
    provider.remove(&record("one")).await.expect("remove is safe to repeat");
    assert_eq!(there(), "theirs two");
    provider.remove(&record("two")).await.unwrap();
    assert_eq!(there(), "theirs");
    provider.remove(&record("theirs")).await.unwrap();
    assert_eq!(there(), "", "the last text may go, too");
    provider.add(&record("three")).await.unwrap();
    assert_eq!(there(), "three", "the first text may come");
    provider.remove(&record("three")).await.unwrap();
    assert_eq!(there(), "");
}
