use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::{webhooks, zones};
use crate::dns::Resolve;
use crate::dns::lookup::SystemResolver;
use crate::model::Secret;
use crate::solvers::SolveError;
use crate::solvers::dns01::factory::provider;
use crate::solvers::dns01::site::{Credentials, Hooks, Site};

/// The Secret `dns` of the namespace `web`, and tokens that say for whom they are.
#[derive(Debug)]
pub(super) struct Store;

#[async_trait]
impl Credentials for Store {
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, SolveError> {
        let secret = json!({"stringData": {"good": "value\n", "empty": "\n", "broken": "a\nb"}});
        let is_there = (namespace, name) == ("web", "dns");
        Ok(is_there.then(|| serde_json::from_value(secret).unwrap()))
    }

    async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        audiences: &[String],
    ) -> Result<Zeroizing<String>, SolveError> {
        Ok(Zeroizing::new(format!("{namespace} {name} {audiences:?}")))
    }
}

/// Works with what surrounds a provider in all tests.
pub(super) async fn site_with<T>(hooks: Hooks, work: impl AsyncFnOnce(&Site<'_>) -> T) -> T {
    site(false, hooks, work).await
}

async fn site<T>(ambient: bool, hooks: Hooks, work: impl AsyncFnOnce(&Site<'_>) -> T) -> T {
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::new());
    let zones = zones();
    let webhooks = webhooks();
    work(&Site {
        namespace: "web",
        credentials: &Store,
        ambient,
        zones: &zones,
        resolver: &resolver,
        webhooks: &webhooks,
        hooks,
        impatient: false,
    })
    .await
}

/// Builds the provider of a solver: how it shows itself, or the error.
async fn build(solver: Value, ambient: bool) -> Result<String, String> {
    let solver = serde_json::from_value(solver).unwrap();
    let built = site(ambient, Hooks::NotAllowed, async |site| provider(&solver, site).await).await;
    built.map(|provider| format!("{provider:?}")).map_err(|error| {
        assert!(error.needs_person, "{error}");
        error.to_string()
    })
}

fn key(key: &str) -> Value {
    json!({"name": "dns", "key": key})
}

#[tokio::test]
async fn every_provider_is_built_from_its_fields_and_secrets() {
    let azure = json!({"subscriptionID": "s", "resourceGroupName": "g", "clientID": "c", "tenantID": "t",
        "clientSecretSecretRef": key("good"), "environment": "AzureChinaCloud", "zoneType": "AzurePrivateZone"});
    let service_account = json!({"kubernetes": {"serviceAccountRef": {"name": "sa"}}});
    for (solver, shown) in [
        (
            json!({"akamai": {"serviceConsumerDomain": "akab.example", "clientTokenSecretRef": key("good"),
                "clientSecretSecretRef": key("good"), "accessTokenSecretRef": key("good")}}),
            "Akamai { api: Api(https://akab.example/)",
        ),
        (json!({"azureDNS": azure}), "AzureDns { api: Api(https://management.chinacloudapi.cn/)"),
        (
            json!({"cloudDNS": {"project": "p", "serviceAccountSecretRef": key("good")}}),
            "CloudDns { api: Api(https://dns.googleapis.com/)",
        ),
        (
            json!({"cloudflare": {"apiTokenSecretRef": key("good")}}),
            "Cloudflare { api: Api(https://api.cloudflare.com/client/v4), login: Token(",
        ),
        (
            json!({"cloudflare": {"email": "me@example.com", "apiKeySecretRef": key("good")}}),
            "Cloudflare { api: Api(https://api.cloudflare.com/client/v4), login: Key { email: \"me@",
        ),
        (
            json!({"digitalocean": {"tokenSecretRef": key("good")}}),
            "DigitalOcean { api: Api(https://api.digitalocean.com/)",
        ),
        (
            json!({"route53": {"accessKeyID": "AKID", "secretAccessKeySecretRef": key("good")}}),
            "Route53 { api: Api(https://route53.amazonaws.com/)",
        ),
        (
            json!({"route53": {"accessKeyIDSecretRef": key("good"), "region": "us-gov-west-1",
                "secretAccessKeySecretRef": key("good")}}),
            "Route53 { api: Api(https://route53.us-gov.amazonaws.com/)",
        ),
        (
            json!({"route53": {"role": "r", "auth": service_account}}),
            "Route53 { api: Api(https://route53.amazonaws.com/)",
        ),
    ] {
        let built = build(solver, false).await.unwrap();
        assert!(built.starts_with(shown), "{built}");
        assert!(!built.contains("value") && !built.contains("sts.amazonaws.com"), "{built}");
    }
}

#[tokio::test]
async fn ambient_credentials_are_for_those_who_may_use_them() {
    let azure = json!({"azureDNS": {"subscriptionID": "s", "resourceGroupName": "g"}});
    for (solver, why) in [
        (
            azure,
            "unable to construct azuredns provider: ClientID is not set but neither `--cluster-issuer-ambient-credentials` \
                nor `--issuer-ambient-credentials` are set. These are necessary to enable Azure Managed Identities",
        ),
        (
            json!({"cloudDNS": {"project": "p"}}),
            "unable to construct clouddns provider: empty credentials; perhaps you meant to enable ambient credentials?",
        ),
        (
            json!({"route53": {"region": "eu-central-1"}}),
            "unable to construct route53 provider: empty credentials; perhaps you meant to enable ambient credentials?",
        ),
    ] {
        assert_eq!(build(solver.clone(), false).await.unwrap_err(), why);
        build(solver, true).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let secret = "cannot read the credentials in Secret \"dns\": ";
    let other = json!({"name": "other", "key": "good"});
    let construct = "unable to construct ";
    for (solver, why) in [
        (
            json!({"cloudflare": {"apiTokenSecretRef": other}}),
            "cannot read the credentials in Secret \"other\": secrets \"other\" not found in namespace \"web\"".to_owned(),
        ),
        (
            json!({"digitalocean": {"tokenSecretRef": key("none")}}),
            format!("{secret}it has no key \"none\""),
        ),
        (
            json!({"digitalocean": {"tokenSecretRef": key("empty")}}),
            format!("{secret}the value of \"empty\" is empty"),
        ),
        (
            json!({"cloudflare": {"apiTokenSecretRef": key("broken")}}),
            "the Cloudflare API token is invalid: it has characters that no API token has".to_owned(),
        ),
        (
            json!({"cloudflare": {"apiTokenSecretRef": key("good"), "apiKeySecretRef": key("good")}}),
            format!("{construct}cloudflare provider: API key and API token secret references are both present"),
        ),
        (
            json!({"cloudflare": {"apiKeySecretRef": key("good")}}),
            format!("{construct}cloudflare provider: apiKeySecretRef is set, email is not"),
        ),
        (
            json!({"cloudflare": {}}),
            format!("{construct}cloudflare provider: no Cloudflare credential has been given (can be either an API key or an API token)"),
        ),
        (
            json!({"route53": {"accessKeyID": "AKID"}}),
            format!("{construct}route53 provider: only one of access and secret key was provided"),
        ),
        (
            json!({"route53": {"auth": {"kubernetes": {"serviceAccountRef": {"name": "sa"}}}}}),
            format!("{construct}route53 provider: role must be set when web identity token is set"),
        ),
        (
            json!({"route53": {"region": "evil.com/#", "role": "r",
                "auth": {"kubernetes": {"serviceAccountRef": {"name": "sa"}}}}}),
            format!("{construct}route53 provider: route53.region is \"evil.com/#\", which is no region of AWS"),
        ),
        (
            json!({"azureDNS": {"subscriptionID": "s", "resourceGroupName": "g", "clientID": "c"}}),
            format!("{construct}azuredns provider: clientID is set, clientSecretSecretRef is not"),
        ),
        (
            json!({"azureDNS": {"subscriptionID": "s", "resourceGroupName": "g", "clientID": "c", "tenantID": "t",
                "clientSecretSecretRef": key("good"), "environment": "AzureGermanCloud"}}),
            "unknown cloud configuration name: AzureGermanCloud".to_owned(),
        ),
    ] {
        assert_eq!(build(solver, true).await.unwrap_err(), why);
    }
}
