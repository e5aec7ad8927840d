//! A zone at a DNS provider, as the provider lists it.

use serde::{Deserialize, Serialize};

/// One of the zones of a name at a provider: there may be several, of which the delegation leads to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderZone {
    /// Identifier of the zone at the provider.
    pub id: String,
    /// Absolute name.
    pub name: String,
    /// Whether only networks that are assigned to the zone see its records.
    pub is_private: bool,
    /// Name servers of the zone, absolute names in lower case, sorted; empty if the provider does not name them.
    pub name_servers: Vec<String>,
    /// Whether the solver writes into this zone.
    pub is_written: bool,
}

impl ProviderZone {
    /// Sets the name servers in a form that can be compared with DNS answers.
    #[must_use]
    pub fn with_servers<'a>(self, servers: impl IntoIterator<Item = &'a str>) -> Self {
        let absolute = |name: &str| format!("{}.", name.trim_end_matches('.').to_ascii_lowercase());
        let mut name_servers: Vec<String> = servers.into_iter().map(absolute).collect();
        name_servers.sort();
        Self { name_servers, ..self }
    }
}
