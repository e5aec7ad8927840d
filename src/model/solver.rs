//! Solver configuration and selectors, with every provider's fields.
//!
//! Fields stand in the order in which cert-manager declares them, because names of Challenges are hashed from the fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::common::{Duration, SecretKeySelector};

/// One entry of `spec.acme.solvers`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChallengeSolver {
    /// Names that the solver serves; absent and `{}` differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// HTTP-01.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http01: Option<Http01Solver>,
    /// DNS-01; boxed, since the solver has room for every provider, and thousands of Challenges without DNS-01 are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns01: Option<Box<Dns01Solver>>,
    /// Time to wait after presenting, in place of the self-check (cert-manager 1.21).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_instead_of_self_check: Option<Duration>,
}

/// Selection of the names that a solver serves; an empty part matches everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// Labels of the Order.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Exact names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns_names: Vec<String>,
    /// Zones; the longest one wins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns_zones: Vec<String>,
}

/// HTTP-01: exactly one of the two fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Http01Solver {
    /// Through an Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressSolver>,
    /// Through a Gateway API HTTPRoute.
    #[serde(default, rename = "gatewayHTTPRoute", skip_serializing_if = "Option::is_none")]
    pub gateway_http_route: Option<GatewaySolver>,
}

/// HTTP-01 through an Ingress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressSolver {
    /// `ClusterIP` or `NodePort` (default).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_type: String,
    /// `spec.ingressClassName` of the Ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_class_name: Option<String>,
    /// Annotation `kubernetes.io/ingress.class`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Existing Ingress to edit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Solver Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
    /// Solver Ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_template: Option<IngressTemplate>,
}

/// HTTP-01 through a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySolver {
    /// `ClusterIP` or `NodePort` (default).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_type: String,
    /// Labels of the HTTPRoute.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Gateways the route attaches to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parent_refs: Vec<ParentReference>,
    /// Solver Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
}

/// Gateway API ParentReference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentReference {
    /// API group; `gateway.networking.k8s.io` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind; `Gateway` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Namespace; the route's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
    /// Port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// Labels and annotations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateMetadata {
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Template of the solver Ingress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressTemplate {
    /// Labels and annotations; always serialised, as in cert-manager.
    pub metadata: TemplateMetadata,
}

/// Template of the solver Pod; both parts are always serialised, as in cert-manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    /// Labels and annotations.
    pub metadata: TemplateMetadata,
    /// The part of a Pod spec that may be set.
    pub spec: PodSpec,
}

/// The part of a Pod spec that may be set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Node labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Affinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Value>,
    /// Tolerations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Value>,
    /// Priority class.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub priority_class_name: String,
    /// Service account.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_account_name: String,
    /// Pull secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<Value>,
    /// Security context; replaces this program's own as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<Value>,
    /// Requests and limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Value>,
}

/// DNS-01: exactly one provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dns01Solver {
    /// `None` (default) or `Follow`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cname_strategy: String,
    /// Akamai.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub akamai: Option<Akamai>,
    /// Google Cloud DNS.
    #[serde(rename = "cloudDNS", skip_serializing_if = "Option::is_none")]
    pub cloud_dns: Option<CloudDns>,
    /// Cloudflare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloudflare: Option<Cloudflare>,
    /// AWS Route 53.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route53: Option<Route53>,
    /// Azure DNS.
    #[serde(rename = "azureDNS", skip_serializing_if = "Option::is_none")]
    pub azure_dns: Option<AzureDns>,
    /// DigitalOcean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digitalocean: Option<DigitalOcean>,
    /// acme-dns.
    #[serde(rename = "acmeDNS", skip_serializing_if = "Option::is_none")]
    pub acme_dns: Option<AcmeDns>,
    /// Dynamic updates (RFC 2136).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rfc2136: Option<Rfc2136>,
    /// cert-manager's webhook protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// Resolvers of this solver; setting them turns the authoritative check off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nameservers: Vec<String>,
}

/// Akamai Edge DNS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Akamai {
    /// Host of the API.
    pub service_consumer_domain: String,
    /// Client token.
    pub client_token_secret_ref: SecretKeySelector,
    /// Client secret.
    pub client_secret_secret_ref: SecretKeySelector,
    /// Access token.
    pub access_token_secret_ref: SecretKeySelector,
}

/// Google Cloud DNS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudDns {
    /// Service account key; absent means ambient credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_secret_ref: Option<SecretKeySelector>,
    /// Project.
    pub project: String,
    /// Managed zone's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hosted_zone_name: String,
}

/// Cloudflare.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cloudflare {
    /// Account e-mail, needed with an API key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// Global API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_secret_ref: Option<SecretKeySelector>,
    /// API token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_token_secret_ref: Option<SecretKeySelector>,
}

/// AWS Route 53.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route53 {
    /// Identity of a Kubernetes service account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Value>,
    /// Access key.
    #[serde(default, rename = "accessKeyID", skip_serializing_if = "String::is_empty")]
    pub access_key_id: String,
    /// Access key in a Secret.
    #[serde(default, rename = "accessKeyIDSecretRef", skip_serializing_if = "Option::is_none")]
    pub access_key_id_secret_ref: Option<SecretKeySelector>,
    /// Secret access key; serialised even when unset, as in cert-manager.
    #[serde(default)]
    pub secret_access_key_secret_ref: SecretKeySelector,
    /// Role to assume.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Hosted zone.
    #[serde(default, rename = "hostedZoneID", skip_serializing_if = "String::is_empty")]
    pub hosted_zone_id: String,
    /// Region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
}

/// Azure DNS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AzureDns {
    /// Client.
    #[serde(default, rename = "clientID", skip_serializing_if = "String::is_empty")]
    pub client_id: String,
    /// Client secret.
    #[serde(default, rename = "clientSecretSecretRef", skip_serializing_if = "Option::is_none")]
    pub client_secret_secret_ref: Option<SecretKeySelector>,
    /// Subscription.
    #[serde(rename = "subscriptionID")]
    pub subscription_id: String,
    /// Tenant.
    #[serde(default, rename = "tenantID", skip_serializing_if = "String::is_empty")]
    pub tenant_id: String,
    /// Resource group.
    pub resource_group_name: String,
    /// Zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hosted_zone_name: String,
    /// Cloud.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub environment: String,
    /// Managed identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_identity: Option<Value>,
    /// `AzurePublicZone` (default) or `AzurePrivateZone`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone_type: String,
}

/// DigitalOcean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DigitalOcean {
    /// API token.
    pub token_secret_ref: SecretKeySelector,
}

/// acme-dns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcmeDns {
    /// URL of the server.
    pub host: String,
    /// Accounts, as JSON.
    pub account_secret_ref: SecretKeySelector,
}

/// Dynamic updates (RFC 2136) with TSIG (RFC 8945).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rfc2136 {
    /// Server, port 53 when not given.
    pub nameserver: String,
    /// TSIG key; serialised even when unset, as in cert-manager.
    #[serde(default)]
    pub tsig_secret_secret_ref: SecretKeySelector,
    /// TSIG key name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tsig_key_name: String,
    /// `HMACMD5` (default), `HMACSHA1`, `HMACSHA256`, `HMACSHA512`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tsig_algorithm: String,
    /// `UDP` (default) or `TCP`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
}

/// cert-manager's webhook protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// API group of the webhook.
    pub group_name: String,
    /// Resource of the webhook.
    pub solver_name: String,
    /// Any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
}
