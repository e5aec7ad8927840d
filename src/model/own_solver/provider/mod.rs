//! DNS providers for which cert-manager has no field: their names and fields, beside the names of this program's other
//! solvers. One library serves all of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use strsim::osa_distance;
use url::Url;

use crate::model::SecretKeySelector;
use crate::model::field::{FieldPath, Remark, secret_key_faults};

mod listed;

pub use self::listed::ALL;

/// `groupName` by which manifests refer to this program's solvers.
pub const GROUP: &str = "kubectl-acme";
/// `solverName` of programs that publish.
pub(super) const EXEC: &str = "exec";
/// `solverName` of people who publish (`--dns01-manual`).
pub const MANUAL: &str = "manual";

/// Provider, and its settings.
#[derive(Debug, PartialEq, Eq)]
pub struct Provider {
    /// `solverName` of the provider.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Fields of the provider, required ones first.
    pub fields: &'static [Field],
    /// Fields of which one at least is required.
    pub any_of: &'static [&'static str],
}

/// A field of `config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field; in manifests `SecretRef` follows if the field is a credential.
    pub name: &'static str,
    /// Sort of value.
    pub sort: FieldKind,
    /// Whether the field must be there.
    pub required: bool,
}

/// Sorts of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// `true` or `false`.
    Flag,
    /// A key of a Secret.
    Secret,
    /// Text, or a number.
    Text,
    /// URL of an API.
    Url,
}

/// Support of a provider, by its name.
#[derive(Debug, PartialEq, Eq)]
pub enum ProviderSupport {
    /// The provider is served.
    Served(&'static Provider),
    /// The provider is not served, for a reason.
    NotServed {
        /// Reason why the provider is not served.
        why: &'static str,
        /// Text to write instead.
        instead: String,
    },
    /// The name is not known.
    Unknown {
        /// All names, the most similar first.
        nearest: Vec<&'static str>,
    },
}

/// Providers with a field of their own in cert-manager's schema, by the names that people know.
const OWN_FIELDS: [(&str, &str); 15] = [
    ("acme-dns", "acmeDNS"),
    ("acmedns", "acmeDNS"),
    ("akamai", "akamai"),
    ("azure", "azureDNS"),
    ("azuredns", "azureDNS"),
    ("clouddns", "cloudDNS"),
    ("cloudflare", "cloudflare"),
    ("digitalocean", "digitalocean"),
    ("edgedns", "akamai"),
    ("gcloud", "cloudDNS"),
    ("gcp", "cloudDNS"),
    ("google", "cloudDNS"),
    ("rfc2136", "rfc2136"),
    ("route53", "route53"),
    ("webhook", "webhook"),
];

/// Providers that the library serves and this program does not: other records at the name would be lost.
const NOT_SERVED: [(&str, &str); 6] = [
    ("ddnss", ONE_TEXT),
    ("duckdns", ONE_TEXT),
    ("freemyip", ONE_TEXT),
    ("hurricane", ONE_TEXT),
    ("joker", WHOLE_ZONE),
    ("namecheap", WHOLE_ZONE),
];
const ONE_TEXT: &str = "it keeps one text at a name, and a second one replaces it";
const WHOLE_ZONE: &str =
    "it takes only the whole zone, and what others change meanwhile would be lost";

/// Looks up a provider by name.
pub fn known(name: &str) -> ProviderSupport {
    if let Some(listed) = ALL.iter().find(|listed| listed.name == name) {
        return ProviderSupport::Served(listed);
    }
    let find = |list: &[(&str, &'static str)]| list.iter().find(|(n, _)| *n == name).map(|f| f.1);
    if let Some(field) = find(&OWN_FIELDS) {
        return ProviderSupport::NotServed {
            why: "cert-manager has a field of its own for it",
            instead: format!("write dns01.{field} in place of dns01.webhook"),
        };
    }
    if let Some(why) = find(&NOT_SERVED) {
        let instead =
            format!("use solverName: {EXEC}, with a program that knows what else is there");
        return ProviderSupport::NotServed { why, instead };
    }
    let mut nearest: Vec<&str> = ALL.iter().map(|listed| listed.name).collect();
    nearest.extend([EXEC, MANUAL]);
    nearest.sort_by_key(|known| osa_distance(name, known));
    ProviderSupport::Unknown { nearest }
}

impl Field {
    /// Returns the field's name in manifests.
    pub fn key(&self) -> String {
        match self.sort {
            FieldKind::Secret => format!("{}SecretRef", self.name),
            FieldKind::Flag | FieldKind::Text | FieldKind::Url => self.name.to_owned(),
        }
    }

    /// Returns the value as text, or the fault of the value.
    fn text(&self, value: &Value) -> Result<String, String> {
        let text = match value {
            Value::Bool(flag) => return self.flag(*flag),
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                return Err(self.words().to_owned());
            }
        };
        match self.sort {
            FieldKind::Flag => Err(self.words().to_owned()),
            FieldKind::Url if !is_url(&text) => {
                Err(format!("\"{text}\" is not an http or https URL"))
            }
            FieldKind::Text | FieldKind::Url | FieldKind::Secret => Ok(text),
        }
    }

    fn flag(&self, flag: bool) -> Result<String, String> {
        match self.sort {
            FieldKind::Flag => Ok(flag.to_string()),
            FieldKind::Text | FieldKind::Url | FieldKind::Secret => Err(self.words().to_owned()),
        }
    }

    fn words(&self) -> &'static str {
        match self.sort {
            FieldKind::Flag => "must be true or false",
            FieldKind::Secret => "must be an object with name and key",
            FieldKind::Text | FieldKind::Url => "must be text",
        }
    }
}

impl Provider {
    /// Reads the `config` of a solver.
    pub(super) fn read(
        &'static self,
        config: Option<&Value>,
        at: &FieldPath,
    ) -> Result<Settings, Vec<Remark>> {
        let none = Map::new();
        let config = match config {
            None | Some(Value::Null) => &none,
            Some(Value::Object(config)) => config,
            Some(_) => return Err(vec![Remark::new(at.clone(), "must be an object")]),
        };
        let mut settings =
            Settings { provider: self, texts: BTreeMap::new(), secrets: BTreeMap::new() };
        let mut faults = Vec::new();
        for field in self.fields {
            faults.extend(field.read(config, at, &mut settings));
        }
        let is_there = |name: &&str| config.get(*name).is_some_and(|value| !value.is_null());
        if !self.any_of.is_empty() && !self.any_of.iter().any(is_there) {
            let message = format!("one of {} is required", self.any_of.join(", "));
            faults.push(Remark::new(at.clone(), message));
        }
        faults.extend(self.unknown_fields(config, at));
        if faults.is_empty() { Ok(settings) } else { Err(faults) }
    }

    /// Returns remarks on fields that the provider does not have.
    fn unknown_fields(&self, config: &Map<String, Value>, at: &FieldPath) -> Vec<Remark> {
        let keys: Vec<String> = self.fields.iter().map(Field::key).collect();
        // A credential in plain text is reported with its own field.
        let is_plain = |name: &String| self.fields.iter().any(|field| field.name == name);
        let strange = config.keys().filter(|name| !keys.contains(name) && !is_plain(name));
        let hint = format!("{} has: {}", self.name, keys.join(", "));
        strange.map(|name| Remark::on_name(at.key(name), "unknown field").hint(&hint)).collect()
    }
}

impl Field {
    /// Reads the field into the settings, and returns its faults.
    fn read(
        &self,
        config: &Map<String, Value>,
        at: &FieldPath,
        settings: &mut Settings,
    ) -> Vec<Remark> {
        let key = self.key();
        let at_key = at.key(&key);
        let mut faults = Vec::new();
        if self.sort == FieldKind::Secret && config.contains_key(self.name) {
            let remark = Remark::new(at.key(self.name), "a credential belongs in a Secret");
            faults.push(remark.hint(format!("write {key}: {{name: …, key: …}}")));
        }
        let Some(value) = config.get(&key).filter(|value| !value.is_null()) else {
            faults.extend(self.required.then(|| Remark::new(at_key, "is required")));
            return faults;
        };
        if self.sort == FieldKind::Secret {
            match serde_json::from_value::<SecretKeySelector>(value.clone()) {
                Ok(selector) => {
                    faults.extend(secret_key_faults(&at_key, &selector));
                    settings.secrets.insert(self.name, selector);
                }
                Err(_) => faults.push(Remark::new(at_key, self.words())),
            }
            return faults;
        }
        match self.text(value) {
            Ok(text) if text.is_empty() && self.required => {
                faults.push(Remark::new(at_key, "is required"));
            }
            Ok(text) => drop(settings.texts.insert(self.name, text)),
            Err(why) => faults.push(Remark::new(at_key, why)),
        }
        faults
    }
}

fn is_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
}

/// Fields of a provider with the values of the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The provider.
    pub provider: &'static Provider,
    /// Plain fields; numbers and flags as they are written.
    pub texts: BTreeMap<&'static str, String>,
    /// Credentials, by the field's name without `SecretRef`.
    pub secrets: BTreeMap<&'static str, SecretKeySelector>,
}
