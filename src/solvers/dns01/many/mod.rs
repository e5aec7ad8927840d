//! The many providers, by the library dns-update: the library calls their APIs, and everything else is this program's.
//!
//! The library is optional because of its size, is named in this folder only, and serves only
//! providers that keep other texts at a record: no foreign record may be lost.

mod fault;
mod make;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use dns_update::{DnsRecord, DnsRecordType, DnsUpdater};

use super::credential::Credential;
use super::memory::SharedCache;
use super::site::{Site, zone_of};
use super::text::{quoted, relative, unquoted};
use super::{Connection, Provider, TxtRecord};
use crate::dns::FindZone;
use crate::model::own_solver::provider::Settings;
use crate::solvers::SolveError;

/// TTL in seconds; providers with a longer minimum use their minimum.
const TTL: u32 = 60;

/// Cached clients of the library, which keep good tokens and sessions.
static CLIENTS: SharedCache<DnsUpdater> = SharedCache::new();

/// Provider served by the library.
pub(super) struct LibraryProvider {
    name: &'static str,
    client: DnsUpdater,
    /// Credentials that must not appear in an error.
    secrets: Vec<Credential>,
    zones: Arc<dyn FindZone>,
}

impl fmt::Debug for LibraryProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Many({})", self.name)
    }
}

/// Builds the client of a provider, with its Secrets.
pub(super) async fn provider(
    settings: Settings,
    site: &Site<'_>,
) -> Result<Arc<dyn Provider>, SolveError> {
    let mut secrets = BTreeMap::new();
    for (field, selector) in &settings.secrets {
        secrets.insert(*field, Credential::new(&site.secret(selector).await?));
    }
    let name = settings.provider.name;
    let parts = settings.texts.iter().map(|(field, text)| (*field, text.as_str()));
    let parts = parts.chain(secrets.iter().map(|(field, secret)| (*field, secret.expose())));
    let owner = [name].into_iter().chain(parts.flat_map(|(field, text)| [field, text]));
    let place = CLIENTS.place(owner);
    let mut kept = place.lock().await;
    let client = if let Some(client) = &*kept {
        client.clone()
    } else {
        // Without roots the library would take a client that cannot be made, and panic.
        Connection::usable()?;
        let made = make::client(name, &settings.texts, &secrets);
        let what = format!("unable to construct {name} provider");
        let made = made.map_err(|error| fault::error(error, what, name, secrets.values()))?;
        kept.insert(made).clone()
    };
    let secrets = secrets.into_values().collect();
    Ok(Arc::new(LibraryProvider { name, client, secrets, zones: Arc::clone(site.zones) }))
}

impl LibraryProvider {
    /// Returns name and zone in the library's form: without final dots, in lower case.
    async fn place(&self, name: &str) -> Result<(String, String), SolveError> {
        let zone = zone_of(&*self.zones, name).await?;
        Ok((relative(name).to_ascii_lowercase(), relative(&zone).to_ascii_lowercase()))
    }

    /// Reads the texts at a name.
    async fn texts(&self, name: &str) -> Result<Vec<String>, SolveError> {
        let (host, zone) = self.place(name).await?;
        // One future that knows all providers is large.
        let listed = Box::pin(self.client.list_rrset(&host, DnsRecordType::TXT, &zone)).await;
        let listed = listed.map_err(|error| self.solve_error(error, "look at", &host))?;
        let text = |record| match record {
            DnsRecord::TXT(text) => Some(unquoted(&text)),
            _ => None,
        };
        Ok(listed.into_iter().filter_map(text).collect())
    }

    fn solve_error(&self, error: dns_update::Error, deed: &str, host: &str) -> SolveError {
        let what = format!("cannot {deed} the TXT record {host} at {}", self.name);
        fault::error(error, what, self.name, self.secrets.iter())
    }
}

#[async_trait]
impl Provider for LibraryProvider {
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError> {
        if self.texts(&record.name).await?.contains(&record.value) {
            return Ok(());
        }
        let (host, zone) = self.place(&record.name).await?;
        let ours = vec![DnsRecord::TXT(record.value.clone())];
        let added = self.client.add_to_rrset(&host, DnsRecordType::TXT, TTL, ours, &zone);
        Box::pin(added).await.map_err(|error| self.solve_error(error, "add", &host))
    }

    /// Removes the text, without and with quotes. Some clients of the library compare texts as the API writes
    /// them, maybe with quotes: such clients find nothing to remove, and report no error.
    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError> {
        let (host, zone) = self.place(&record.name).await?;
        for text in [record.value.clone(), quoted(&record.value)] {
            let ours = vec![DnsRecord::TXT(text)];
            let removed = self.client.remove_from_rrset(&host, DnsRecordType::TXT, ours, &zone);
            Box::pin(removed).await.map_err(|error| self.solve_error(error, "remove", &host))?;
            if !self.texts(&record.name).await?.contains(&record.value) {
                return Ok(());
            }
        }
        Err(SolveError::passing(
            format!("cannot remove the TXT record {host} at {}", self.name),
            "it is still there after its removal",
        )
        .advised(format!("remove the text {} at the provider by hand", record.value)))
    }

    async fn check(&self, name: &str) -> Result<(), SolveError> {
        self.texts(name).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::own_solver::provider::{ALL, FieldKind};

    /// A key of the kind that some providers sign with.
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\n";

    #[test]
    fn every_provider_is_made_from_its_fields() {
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap().serialize_pem();
        assert!(key.starts_with(KEY));
        for listed in ALL {
            let (mut texts, mut secrets) = (BTreeMap::new(), BTreeMap::new());
            for field in listed.fields {
                let text = match (field.name, field.sort) {
                    ("privateKey", _) => key.as_str(),
                    ("endpoint", FieldKind::Text) => "ovh-eu",
                    ("context", _) => "4",
                    (_, FieldKind::Flag) => "true",
                    (_, FieldKind::Url) => "https://dns.example.com",
                    (_, FieldKind::Secret | FieldKind::Text) => "value",
                };
                match field.sort {
                    FieldKind::Secret => drop(secrets.insert(field.name, Credential::new(text))),
                    FieldKind::Flag | FieldKind::Text | FieldKind::Url => {
                        drop(texts.insert(field.name, text.to_owned()));
                    }
                }
            }
            let made = make::client(listed.name, &texts, &secrets);
            assert!(made.is_ok(), "{}: {:?}", listed.name, made.err());
        }
    }
}
