//! Order: one request to a CA and its progress.

use serde::{Deserialize, Serialize};

use super::common::{Blob, Duration, IssuerRef, Other, Time};
use super::metadata::Resource;
use super::persist;
use super::state::State;

/// `acme.cert-manager.io/v1` Order.
pub type Order = Resource<OrderSpec, OrderStatus>;

impl Order {
    /// Reports whether the order has a final state.
    pub fn has_ended(&self) -> bool {
        self.status.state.is_some_and(State::is_final)
    }
}

/// Spec of an Order. The fields stand in the order in which cert-manager declares them: names are hashed from the spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderSpec {
    /// Signing request, PEM (old data: DER).
    pub request: Blob,
    /// Issuer.
    pub issuer_ref: IssuerRef,
    /// Common name of the signing request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub common_name: String,
    /// DNS names of the signing request, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns_names: Vec<String>,
    /// IP addresses of the signing request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<String>,
    /// Asked-for life time, only when the issuer has `enableDurationFeature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// Profile of the CA.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// ARI identifier of the certificate that the new certificate replaces (RFC 9773 §5).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replaces: String,
}

/// Status of an Order: the progress of the order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderStatus {
    /// URL of the order at the CA.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// URL to which the signing request goes.
    #[serde(default, rename = "finalizeURL", skip_serializing_if = "String::is_empty")]
    pub finalize_url: String,
    /// Authorizations, one for each identifier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authorizations: Vec<Authorization>,
    /// The chain, PEM, leaf first.
    #[serde(default, skip_serializing_if = "Blob::is_empty")]
    pub certificate: Blob,
    /// State, absent until the CA has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Reason for the state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Time at which the order failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_time: Option<Time>,
    /// Fields that this program does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// One authorization as first read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Authorization {
    /// URL at the CA.
    pub url: String,
    /// Identifier without `*.`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub identifier: String,
    /// Whether the name ordered is a wildcard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wildcard: Option<bool>,
    /// State when first read; never refreshed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_state: Option<State>,
    /// Challenges that the CA offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub challenges: Vec<OfferedChallenge>,
    /// Fields that this program does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// One challenge that the CA offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfferedChallenge {
    /// URL at the CA.
    pub url: String,
    /// Token; empty for types that have none.
    pub token: String,
    /// Type in the RFC's spelling, such as `http-01`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Content for the record of dns-persist-01, if the issuer asks for that type; the CRD has no field for such content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<persist::Offer>,
}
