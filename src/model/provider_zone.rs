//! A zone at a DNS provider, as the provider lists it.

use serde::{Deserialize, Serialize};

/// One of the zones of a name at a provider: there may be several, of which the delegation leads to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderZone {
    /// What the provider calls it.
    pub id: String,
    /// Absolute name.
    pub name: String,
    /// Whether only networks that it is given to see it.
    pub is_private: bool,
    /// Its name servers, absolute names in lower case, sorted; none where the provider does not tell.
    pub name_servers: Vec<String>,
    /// Whether the solver writes into this one.
    pub is_written: bool,
}

impl ProviderZone {
    /// Makes its name servers comparable with what DNS says.
    #[must_use]
    pub fn with_servers<'a>(self, servers: impl IntoIterator<Item = &'a str>) -> Self {
        let absolute = |name: &str| format!("{}.", name.trim_end_matches('.').to_ascii_lowercase());
        let mut name_servers: Vec<String> = servers.into_iter().map(absolute).collect();
        name_servers.sort();
        Self { name_servers, ..self }
    }
}
