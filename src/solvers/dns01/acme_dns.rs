//! acme-dns: a server that only holds the texts of challenges; a CNAME leads to the server.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::{HeaderName, Method};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use zeroize::Zeroizing;

use super::api::{Api, Explanation};
use super::credential::Credential;
use super::site::Site;
use super::{Provider, TxtRecord};
use crate::model::provider_refusal::{ProviderFault, ProviderRefusal};
use crate::model::solver;
use crate::solvers::SolveError;

/// acme-dns server, with the accounts on that server.
#[derive(Debug)]
pub struct AcmeDns {
    api: Api,
    host: String,
    secret: String,
    accounts: BTreeMap<String, AcmeDnsAccount>,
}

/// Account for the texts of one name (goacmedns' layout).
#[derive(Deserialize)]
struct AcmeDnsAccount {
    subdomain: String,
    #[serde(default)]
    fulldomain: String,
    username: String,
    #[serde(deserialize_with = "credential")]
    password: Credential,
}

impl std::fmt::Debug for AcmeDnsAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({})", self.subdomain)
    }
}

impl AcmeDns {
    /// Reads the accounts.
    pub(super) async fn of(fields: &solver::AcmeDns, site: &Site<'_>) -> Result<Self, SolveError> {
        let selector = &fields.account_secret_ref;
        let text = site.secret(selector).await?;
        let accounts = serde_json::from_str(&text).map_err(|_| {
            let what =
                format!("cannot use the key \"{}\" of Secret \"{}\"", selector.key, selector.name);
            let why = "it is not the JSON of acme-dns accounts";
            let call = format!("Secret {}/{}: {}", site.namespace, selector.name, selector.key);
            let hint = r#"write {"example.com": {"fulldomain": "…", "subdomain": "…", "username": "…", "password": "…"}}"#;
            SolveError::lasting(what, why)
                .advised(hint)
                .refused(ProviderRefusal::new(ProviderFault::NotRegistered, call, why))
        })?;
        let api = Api::new(&fields.host, &site.connection(), explain)?;
        Ok(Self { api, host: fields.host.clone(), secret: selector.name.clone(), accounts })
    }

    /// Returns the account of exactly that name; accounts of parent names do not count, as with cert-manager.
    fn account(&self, domain: &str) -> Result<&AcmeDnsAccount, SolveError> {
        self.accounts.get(domain).ok_or_else(|| {
            let why = format!("account credentials not found for domain {domain}");
            let call = format!("accounts in Secret {}", self.secret);
            let refusal = ProviderRefusal::new(ProviderFault::NotRegistered, call, &*why)
                .knowing(self.accounts.keys().cloned());
            let hint = format!(
                "register at {}/register, add what it says under \"{domain}\" to Secret \"{}\", and lead \
                 _acme-challenge.{domain} to its fulldomain by a CNAME",
                self.host.trim_end_matches('/'),
                self.secret
            );
            SolveError::lasting("cannot publish the record", why).advised(hint).refused(refusal)
        })
    }
}

#[async_trait]
impl Provider for AcmeDns {
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError> {
        let account = self.account(&record.domain)?;
        let request = self
            .api
            .request(Method::POST, "/update")
            .header(HeaderName::from_static("x-api-user"), &account.username)
            .secret_header(HeaderName::from_static("x-api-key"), account.password.expose())
            .json(&json!({ "subdomain": account.subdomain, "txt": record.value }));
        let sent = self.api.send(request).await;
        let what = || format!("cannot update {} at {}", account.target(), self.host);
        let hint =
            format!("register anew: the account in Secret \"{}\" is not known there", self.secret);
        sent.map(drop).map_err(|refusal| refusal.into_error(what(), &hint))
    }

    /// Does nothing: acme-dns cannot remove texts, and later texts push old texts out.
    async fn remove(&self, _: &TxtRecord) -> Result<(), SolveError> {
        Ok(())
    }

    /// Succeeds: acme-dns has no read request.
    async fn check(&self, _: &str) -> Result<(), SolveError> {
        Ok(())
    }

    fn knows(&self, domain: &str) -> Result<(), SolveError> {
        self.account(domain).map(drop)
    }
}

impl AcmeDnsAccount {
    /// Returns the target of the CNAME.
    fn target(&self) -> &str {
        if self.fulldomain.is_empty() { &self.subdomain } else { &self.fulldomain }
    }
}

fn credential<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Credential, D::Error> {
    Ok(Credential::new(&Zeroizing::new(String::deserialize(deserializer)?)))
}

fn explain(body: &[u8]) -> Option<Explanation> {
    #[derive(Deserialize)]
    struct AcmeDnsError {
        error: String,
    }
    let AcmeDnsError { error } = serde_json::from_slice(body).ok()?;
    Some(Explanation { code: error.clone(), message: error })
}
