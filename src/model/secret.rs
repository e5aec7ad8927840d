//! Secret: account keys, key pairs, credentials; never printed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::common::{Blob, Other};
use super::metadata::Metadata;

/// Key of the private key in a Secret.
pub const TLS_KEY: &str = "tls.key";

/// Key of the chain in a Secret.
pub const TLS_CRT: &str = "tls.crt";

/// Key of the CA's certificates in a Secret, if the issuer names them.
pub const CA_CRT: &str = "ca.crt";

/// `v1` Secret.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Secret {
    /// `v1`.
    #[serde(default)]
    pub api_version: String,
    /// `Secret`.
    #[serde(default)]
    pub kind: String,
    /// Name, labels and the like.
    #[serde(default)]
    pub metadata: Metadata,
    /// `kubernetes.io/tls`, `Opaque`.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub secret_type: String,
    /// The data.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, Blob>,
    /// Data as text, in manifests only; merged into `data` when stored.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub string_data: BTreeMap<String, String>,
    /// Fields that this program does not know.
    #[serde(flatten)]
    pub other: Other,
}

impl Secret {
    /// Returns a value, whichever way the value was written.
    pub fn value(&self, key: &str) -> Option<&[u8]> {
        match self.string_data.get(key) {
            Some(text) => Some(text.as_bytes()),
            None => self.data.get(key).map(|b| b.0.as_slice()),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&String> = self.data.keys().chain(self.string_data.keys()).collect();
        write!(f, "Secret({}, keys {keys:?})", self.metadata.object_name())
    }
}

/// Content of a Secret; never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials(pub BTreeMap<String, String>);

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials(keys {:?})", self.0.keys())
    }
}
