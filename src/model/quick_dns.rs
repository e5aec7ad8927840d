//! Solvers for DNS providers from the variables that their own tools, lego and certbot read.
//!
//! A variable may be given as a file, by its name with `_FILE` at the end, as in lego. An empty variable counts as not set.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::dns_provider::DnsProvider;
use super::secret::Credentials;

/// Environment of the process.
pub trait ProcessEnvironment {
    /// Returns a variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the content of a file.
    ///
    /// # Errors
    /// Fails with the reason if the file cannot be read.
    fn file(&self, path: &str) -> Result<String, String>;
}

/// A `dns01` solver, and the Secret that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSolver {
    /// Provider of the solver.
    pub provider: DnsProvider,
    /// The solver, as a manifest has it.
    pub solver: Value,
    /// Content of the Secret; empty if no Secret is needed.
    pub credentials: Credentials,
}

/// Reasons why the environment gives no solver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentFault {
    /// Some variables are missing; each is listed with its alternatives.
    #[error("{} not set", enumerated(.0))]
    Missing(Vec<String>),
    /// A file cannot be read.
    #[error("cannot read {path}, which {variable} names: {why}")]
    Unreadable {
        /// The variable.
        variable: String,
        /// The file.
        path: String,
        /// Reason why the file cannot be read.
        why: String,
    },
    /// A value cannot be used.
    #[error("{variable} {why}")]
    Unusable {
        /// The variable.
        variable: String,
        /// Reason why the value cannot be used.
        why: String,
    },
}

fn enumerated(missing: &[String]) -> String {
    let verb = if missing.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", missing.join(", "))
}

/// Builds the solver of a provider, whose credentials will be in the Secret of the given name.
///
/// # Errors
/// Fails when a variable is missing or cannot be used.
pub fn answers(
    provider: DnsProvider,
    secret: &str,
    around: &dyn ProcessEnvironment,
) -> Result<DnsSolver, EnvironmentFault> {
    let mut reading =
        Reading { around, secret, fields: Map::new(), data: BTreeMap::new(), missing: Vec::new() };
    let fields = &mut reading;
    let mut own = None;
    let field = match provider {
        DnsProvider::AcmeDns => {
            fields.text("host", &["ACME_DNS_API_BASE"])?;
            fields.accounts()?;
            "acmeDNS"
        }
        DnsProvider::Akamai => {
            fields.text("serviceConsumerDomain", &["AKAMAI_HOST"])?;
            fields.secret("clientTokenSecretRef", "client-token", &["AKAMAI_CLIENT_TOKEN"])?;
            fields.secret("clientSecretSecretRef", "client-secret", &["AKAMAI_CLIENT_SECRET"])?;
            fields.secret("accessTokenSecretRef", "access-token", &["AKAMAI_ACCESS_TOKEN"])?;
            "akamai"
        }
        DnsProvider::AzureDns => {
            fields.azure()?;
            "azureDNS"
        }
        DnsProvider::CloudDns => {
            fields.google()?;
            "cloudDNS"
        }
        DnsProvider::Cloudflare => {
            fields.cloudflare()?;
            "cloudflare"
        }
        DnsProvider::DigitalOcean => {
            let names = ["DO_AUTH_TOKEN", "DIGITALOCEAN_TOKEN", "DIGITALOCEAN_ACCESS_TOKEN"];
            fields.secret("tokenSecretRef", "access-token", &names)?;
            "digitalocean"
        }
        DnsProvider::Exec => {
            if let Some(program) = fields.value(&["EXEC_PATH"])? {
                own = Some(json!({
                    "groupName": "kubectl-acme",
                    "solverName": "exec",
                    "config": {"command": [program]},
                }));
            }
            "webhook"
        }
        DnsProvider::Rfc2136 => {
            fields.dynamic_updates()?;
            "rfc2136"
        }
        DnsProvider::Route53 => {
            fields.route53()?;
            "route53"
        }
    };
    if !reading.missing.is_empty() {
        return Err(EnvironmentFault::Missing(reading.missing));
    }
    let fields = own.unwrap_or(Value::Object(reading.fields));
    let mut solver = Map::new();
    solver.insert(field.to_owned(), fields);
    let credentials = Credentials(reading.data);
    Ok(DnsSolver { provider, solver: Value::Object(solver), credentials })
}

/// Fields and a Secret that are filled while variables are read.
struct Reading<'a> {
    around: &'a dyn ProcessEnvironment,
    secret: &'a str,
    fields: Map<String, Value>,
    data: BTreeMap<String, String>,
    missing: Vec<String>,
}

impl Reading<'_> {
    /// Returns the first of the given variables that is set; a missing variable is recorded.
    fn value(&mut self, names: &[&str]) -> Result<Option<String>, EnvironmentFault> {
        let found = self.optional(names)?;
        if found.is_none() {
            self.missing.push(names.join(" or "));
        }
        Ok(found)
    }

    fn optional(&self, names: &[&str]) -> Result<Option<String>, EnvironmentFault> {
        for name in names {
            if let Some(value) = self.set(name) {
                return Ok(Some(value));
            }
            let variable = format!("{name}_FILE");
            if let Some(path) = self.set(&variable) {
                let text = self.file(&variable, path)?;
                return Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()));
            }
        }
        Ok(None)
    }

    fn set(&self, name: &str) -> Option<String> {
        let value = self.around.variable(name)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    }

    fn file(&self, variable: &str, path: String) -> Result<String, EnvironmentFault> {
        let variable = variable.to_owned();
        let read = self.around.file(&path);
        read.map_err(|why| EnvironmentFault::Unreadable { variable, path, why })
    }

    fn text(&mut self, field: &str, names: &[&str]) -> Result<(), EnvironmentFault> {
        if let Some(value) = self.value(names)? {
            self.put(field, value);
        }
        Ok(())
    }

    fn text_if_any(&mut self, field: &str, names: &[&str]) -> Result<(), EnvironmentFault> {
        if let Some(value) = self.optional(names)? {
            self.put(field, value);
        }
        Ok(())
    }

    fn put(&mut self, field: &str, value: String) {
        self.fields.insert(field.to_owned(), Value::String(value));
    }

    fn secret(&mut self, field: &str, key: &str, names: &[&str]) -> Result<(), EnvironmentFault> {
        if let Some(value) = self.value(names)? {
            self.keep(field, key, value);
        }
        Ok(())
    }

    /// Stores a credential in the Secret, and refers to the credential from a field.
    fn keep(&mut self, field: &str, key: &str, value: String) {
        let reference = json!({"name": self.secret, "key": key});
        self.fields.insert(field.to_owned(), reference);
        self.data.insert(key.to_owned(), value);
    }

    fn cloudflare(&mut self) -> Result<(), EnvironmentFault> {
        let token = [
            "CLOUDFLARE_DNS_API_TOKEN",
            "CF_DNS_API_TOKEN",
            "CLOUDFLARE_API_TOKEN",
            "CF_API_TOKEN",
        ];
        let (email, key) =
            (["CLOUDFLARE_EMAIL", "CF_API_EMAIL"], ["CLOUDFLARE_API_KEY", "CF_API_KEY"]);
        let has_other = self.optional(&email)?.is_some() || self.optional(&key)?.is_some();
        if self.optional(&token)?.is_some() || !has_other {
            return self.secret("apiTokenSecretRef", "api-token", &token);
        }
        self.text("email", &email)?;
        self.secret("apiKeySecretRef", "api-key", &key)
    }

    fn route53(&mut self) -> Result<(), EnvironmentFault> {
        if self.set("AWS_SESSION_TOKEN").is_some() {
            let why =
                "is set: keys that hold for a few hours only have no place in a route53 solver";
            return Err(unusable("AWS_SESSION_TOKEN", why.to_owned()));
        }
        self.secret("accessKeyIDSecretRef", "access-key-id", &["AWS_ACCESS_KEY_ID"])?;
        self.secret("secretAccessKeySecretRef", "secret-access-key", &["AWS_SECRET_ACCESS_KEY"])?;
        self.text_if_any("region", &["AWS_REGION", "AWS_DEFAULT_REGION"])?;
        self.text_if_any("hostedZoneID", &["AWS_HOSTED_ZONE_ID"])?;
        self.text_if_any("role", &["AWS_ASSUME_ROLE_ARN"])
    }

    fn azure(&mut self) -> Result<(), EnvironmentFault> {
        self.text("subscriptionID", &["AZURE_SUBSCRIPTION_ID"])?;
        self.text("resourceGroupName", &["AZURE_RESOURCE_GROUP"])?;
        self.text("tenantID", &["AZURE_TENANT_ID"])?;
        self.text("clientID", &["AZURE_CLIENT_ID"])?;
        self.secret("clientSecretSecretRef", "client-secret", &["AZURE_CLIENT_SECRET"])?;
        self.text_if_any("hostedZoneName", &["AZURE_ZONE_NAME", "AZURE_ZONE"])?;
        if let Some(name) = self.set("AZURE_ENVIRONMENT") {
            let cloud = match name.to_ascii_lowercase().as_str() {
                "public" | "azurepubliccloud" => "AzurePublicCloud",
                "usgovernment" | "azureusgovernmentcloud" => "AzureUSGovernmentCloud",
                "china" | "azurechinacloud" => "AzureChinaCloud",
                _ => {
                    let why = format!("is \"{name}\", not one of public, usgovernment, china");
                    return Err(unusable("AZURE_ENVIRONMENT", why));
                }
            };
            self.put("environment", cloud.to_owned());
        }
        let is_private = self.set("AZURE_PRIVATE_ZONE");
        if is_private.is_some_and(|said| ["true", "1"].contains(&said.as_str())) {
            self.put("zoneType", "AzurePrivateZone".to_owned());
        }
        Ok(())
    }

    fn google(&mut self) -> Result<(), EnvironmentFault> {
        let (inline, path) = ("GCE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS");
        let key = match (self.optional(&[inline])?, self.set(path)) {
            (Some(key), _) => Some((inline, key)),
            (None, Some(place)) => Some((path, self.file(path, place)?)),
            (None, None) => None,
        };
        let mut project = self.optional(&["GCE_PROJECT", "GOOGLE_CLOUD_PROJECT"])?;
        match key {
            None => self.missing.push(format!("{path} or {inline}_FILE")),
            Some((variable, key)) => {
                let read: Value = serde_json::from_str(&key).unwrap_or_default();
                if read["type"] != "service_account" {
                    let why = "leads to no key of a service account (type: service_account)";
                    return Err(unusable(variable, why.to_owned()));
                }
                project = project.or_else(|| Some(read["project_id"].as_str()?.to_owned()));
                self.keep("serviceAccountSecretRef", "key.json", key);
            }
        }
        match project {
            Some(project) => self.put("project", project),
            None => self.missing.push("GCE_PROJECT or GOOGLE_CLOUD_PROJECT".to_owned()),
        }
        self.text_if_any("hostedZoneName", &["GCE_ZONE_ID"])
    }

    fn accounts(&mut self) -> Result<(), EnvironmentFault> {
        let variable = "ACME_DNS_STORAGE_PATH";
        let Some(path) = self.set(variable) else {
            self.missing.push(variable.to_owned());
            return Ok(());
        };
        let accounts = self.file(variable, path)?;
        if serde_json::from_str::<Map<String, Value>>(&accounts).is_err() {
            let why = "leads to no JSON object of accounts by name".to_owned();
            return Err(unusable(variable, why));
        }
        self.keep("accountSecretRef", "accounts.json", accounts);
        Ok(())
    }

    fn dynamic_updates(&mut self) -> Result<(), EnvironmentFault> {
        const KEY: [&str; 2] = ["RFC2136_TSIG_KEY", "RFC2136_TSIG_SECRET"];
        self.text("nameserver", &["RFC2136_NAMESERVER"])?;
        let [name, secret] = KEY;
        if self.optional(&[name])?.is_none() && self.optional(&[secret])?.is_none() {
            return Ok(());
        }
        self.text("tsigKeyName", &[name])?;
        self.secret("tsigSecretSecretRef", "secret", &[secret])?;
        // The default of tsig-keygen, if no algorithm is given.
        let algorithm =
            self.set("RFC2136_TSIG_ALGORITHM").unwrap_or_else(|| "hmac-sha256".to_owned());
        let algorithm = algorithm.trim_end_matches('.').replace('-', "").to_ascii_uppercase();
        self.put("tsigAlgorithm", algorithm);
        Ok(())
    }
}

fn unusable(variable: &str, why: String) -> EnvironmentFault {
    EnvironmentFault::Unusable { variable: variable.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variables, and one file whose path is its content.
    struct Around<'a>(&'a str);

    impl ProcessEnvironment for Around<'_> {
        fn variable(&self, name: &str) -> Option<String> {
            let set = self.0.lines().filter_map(|line| line.trim().split_once('='));
            set.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        }

        fn file(&self, path: &str) -> Result<String, String> {
            if path == "/none" { Err("no such file".to_owned()) } else { Ok(path.to_owned()) }
        }
    }

    /// The solver and the keys of the Secret with their values, or why there is none.
    fn check(provider: DnsProvider, variables: &str) -> String {
        match answers(provider, "ca-dns", &Around(variables)) {
            Ok(answers) => {
                let parsed = serde_json::from_value(answers.solver.clone());
                let _solver: crate::model::solver::Dns01Solver = parsed.unwrap();
                assert!(!format!("{answers:?}").contains("hidden"), "{answers:?}");
                let (provider, fields) = answers.solver.as_object().unwrap().iter().next().unwrap();
                let mut lines = vec![provider.clone()];
                lines.extend(fields.as_object().unwrap().iter().map(|(k, v)| format!("{k}={v}")));
                lines.extend(answers.credentials.0.iter().map(|(k, v)| format!("{k}: {v}")));
                lines.join("\n")
            }
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn tokens_are_found_by_each_of_their_names() {
        let expected = |provider: &str, field: &str, key: &str| {
            let reference = format!("{{\"key\":\"{key}\",\"name\":\"ca-dns\"}}");
            format!("{provider}\n{field}={reference}\n{key}: hidden")
        };
        for variable in [
            "CLOUDFLARE_DNS_API_TOKEN=hidden",
            "CF_DNS_API_TOKEN=hidden",
            "CF_API_TOKEN=hidden",
            "CF_API_TOKEN= \nCF_API_TOKEN_FILE=hidden\n",
        ] {
            let expected = expected("cloudflare", "apiTokenSecretRef", "api-token");
            assert_eq!(check(DnsProvider::Cloudflare, variable), expected, "{variable}");
        }
        for variable in ["DO_AUTH_TOKEN=hidden", "DIGITALOCEAN_TOKEN=hidden"] {
            let expected = expected("digitalocean", "tokenSecretRef", "access-token");
            assert_eq!(check(DnsProvider::DigitalOcean, variable), expected, "{variable}");
        }
        let key = check(DnsProvider::Cloudflare, "CF_API_EMAIL=me@example.com\nCF_API_KEY=hidden");
        assert!(key.contains("email=\"me@example.com\"") && key.ends_with("api-key: hidden"));
    }

    #[test]
    fn every_provider_has_a_solver_as_cert_manager_reads_it() {
        let google = r#"{"type":"service_account","project_id":"p"}"#;
        let google = format!("GOOGLE_APPLICATION_CREDENTIALS={google}");
        let all = [
            (DnsProvider::AcmeDns, "ACME_DNS_API_BASE=https://a\nACME_DNS_STORAGE_PATH={\"b\":{}}"),
            (
                DnsProvider::Akamai,
                "AKAMAI_HOST=h\nAKAMAI_CLIENT_TOKEN=a\nAKAMAI_CLIENT_SECRET=b\nAKAMAI_ACCESS_TOKEN=c",
            ),
            (
                DnsProvider::AzureDns,
                "AZURE_CLIENT_ID=a\nAZURE_CLIENT_SECRET=b\nAZURE_TENANT_ID=c\nAZURE_SUBSCRIPTION_ID=d\n\
                 AZURE_RESOURCE_GROUP=e\nAZURE_ZONE_NAME=f\nAZURE_ENVIRONMENT=china\nAZURE_PRIVATE_ZONE=true",
            ),
            (DnsProvider::CloudDns, google.as_str()),
            (DnsProvider::Exec, "EXEC_PATH=./hook.sh"),
            (DnsProvider::Rfc2136, "RFC2136_NAMESERVER=192.0.2.53"),
            (
                DnsProvider::Rfc2136,
                "RFC2136_NAMESERVER=ns:53\nRFC2136_TSIG_KEY=k\nRFC2136_TSIG_SECRET=s\n\
                 RFC2136_TSIG_ALGORITHM=hmac-sha512.",
            ),
            (
                DnsProvider::Route53,
                "AWS_ACCESS_KEY_ID=a\nAWS_SECRET_ACCESS_KEY=b\nAWS_REGION=eu\nAWS_HOSTED_ZONE_ID=Z",
            ),
        ];
        let all: Vec<_> = all.into_iter().map(|(p, variables)| check(p, variables)).collect();
        insta::assert_snapshot!(all.join("\n\n"), @r#"
        acmeDNS
        accountSecretRef={"key":"accounts.json","name":"ca-dns"}
        host="https://a"
        accounts.json: {"b":{}}

        akamai
        accessTokenSecretRef={"key":"access-token","name":"ca-dns"}
        clientSecretSecretRef={"key":"client-secret","name":"ca-dns"}
        clientTokenSecretRef={"key":"client-token","name":"ca-dns"}
        serviceConsumerDomain="h"
        access-token: c
        client-secret: b
        client-token: a

        azureDNS
        clientID="a"
        clientSecretSecretRef={"key":"client-secret","name":"ca-dns"}
        environment="AzureChinaCloud"
        hostedZoneName="f"
        resourceGroupName="e"
        subscriptionID="d"
        tenantID="c"
        zoneType="AzurePrivateZone"
        client-secret: b

        cloudDNS
        project="p"
        serviceAccountSecretRef={"key":"key.json","name":"ca-dns"}
        key.json: {"type":"service_account","project_id":"p"}

        webhook
        config={"command":["./hook.sh"]}
        groupName="kubectl-acme"
        solverName="exec"

        rfc2136
        nameserver="192.0.2.53"

        rfc2136
        nameserver="ns:53"
        tsigAlgorithm="HMACSHA512"
        tsigKeyName="k"
        tsigSecretSecretRef={"key":"secret","name":"ca-dns"}
        secret: s

        route53
        accessKeyIDSecretRef={"key":"access-key-id","name":"ca-dns"}
        hostedZoneID="Z"
        region="eu"
        secretAccessKeySecretRef={"key":"secret-access-key","name":"ca-dns"}
        access-key-id: a
        secret-access-key: b
        "#);
    }

    #[test]
    fn what_is_missing_is_named_as_a_whole() {
        let all: Vec<_> =
            DnsProvider::ALL.into_iter().map(|p| check(p, "AKAMAI_HOST=\n")).collect();
        insta::assert_snapshot!(all.join("\n"), @r#"
        ACME_DNS_API_BASE, ACME_DNS_STORAGE_PATH are not set
        AKAMAI_HOST, AKAMAI_CLIENT_TOKEN, AKAMAI_CLIENT_SECRET, AKAMAI_ACCESS_TOKEN are not set
        AZURE_SUBSCRIPTION_ID, AZURE_RESOURCE_GROUP, AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET are not set
        GOOGLE_APPLICATION_CREDENTIALS or GCE_SERVICE_ACCOUNT_FILE, GCE_PROJECT or GOOGLE_CLOUD_PROJECT are not set
        CLOUDFLARE_DNS_API_TOKEN or CF_DNS_API_TOKEN or CLOUDFLARE_API_TOKEN or CF_API_TOKEN is not set
        DO_AUTH_TOKEN or DIGITALOCEAN_TOKEN or DIGITALOCEAN_ACCESS_TOKEN is not set
        EXEC_PATH is not set
        RFC2136_NAMESERVER is not set
        AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY are not set
        "#);
    }

    #[test]
    fn what_cannot_be_used_is_told_without_its_value() {
        let session = "AWS_SESSION_TOKEN=hidden\nAWS_ACCESS_KEY_ID=a";
        let all = [
            check(DnsProvider::Route53, session),
            check(DnsProvider::CloudDns, "GCE_SERVICE_ACCOUNT={\"type\":\"external_account\"}"),
            check(DnsProvider::CloudDns, "GOOGLE_APPLICATION_CREDENTIALS=/none"),
            check(DnsProvider::AcmeDns, "ACME_DNS_API_BASE=a\nACME_DNS_STORAGE_PATH=hidden"),
            check(DnsProvider::AzureDns, "AZURE_ENVIRONMENT=moon"),
            check(DnsProvider::Rfc2136, "RFC2136_NAMESERVER=ns\nRFC2136_TSIG_KEY=k"),
        ];
        assert!(!all.join("").contains("hidden"), "{all:?}");
        insta::assert_snapshot!(all.join("\n"), @r#"
        AWS_SESSION_TOKEN is set: keys that hold for a few hours only have no place in a route53 solver
        GCE_SERVICE_ACCOUNT leads to no key of a service account (type: service_account)
        cannot read /none, which GOOGLE_APPLICATION_CREDENTIALS names: no such file
        ACME_DNS_STORAGE_PATH leads to no JSON object of accounts by name
        AZURE_ENVIRONMENT is "moon", not one of public, usgovernment, china
        RFC2136_TSIG_SECRET is not set
        "#);
    }
}
