//! Flags for all Ingresses, Gateways and ListenerSets that ask for Certificates, with cert-manager's names.

use crate::model::IssuerRef;
use crate::reconcile::ingress_shim::{Defaults, TLS_ACME};

/// Flags for the Certificates that Ingresses ask for.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Ingresses")]
pub struct IngressShimArgs {
    /// Default issuer: that of Ingresses that ask for a certificate and name no issuer
    #[arg(
        long,
        hide_short_help = true,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub default_issuer_name: String,
    /// Kind of the default issuer
    #[arg(long, hide_short_help = true, value_name = "KIND", default_value = "Issuer")]
    pub default_issuer_kind: String,
    /// API group of the default issuer
    #[arg(long, hide_short_help = true, value_name = "GROUP", default_value = "cert-manager.io")]
    pub default_issuer_group: String,
    /// Annotations that, if true, make an Ingress ask for a certificate of the default issuer
    #[arg(
        long,
        hide_short_help = true,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = TLS_ACME
    )]
    pub auto_certificate_annotations: Vec<String>,
    /// Annotations of Ingresses and Gateways to copy to their Certificates
    #[arg(long, hide_short_help = true, value_name = "NAME", value_delimiter = ',')]
    pub extra_certificate_annotations: Vec<String>,
}

impl IngressShimArgs {
    /// Returns these flags as defaults of the controllers.
    pub fn defaults(&self) -> Defaults {
        Defaults {
            issuer: IssuerRef {
                name: self.default_issuer_name.clone(),
                kind: self.default_issuer_kind.clone(),
                group: self.default_issuer_group.clone(),
            },
            asking: self.auto_certificate_annotations.clone(),
            copied: self.extra_certificate_annotations.clone(),
            ..Defaults::default()
        }
    }
}
