//! What holds for every Ingress, Gateway and ListenerSet that asks for Certificates: cert-manager's flags.

use crate::model::IssuerRef;
use crate::reconcile::ingress_shim::{Defaults, TLS_ACME};

/// Which Certificates Ingresses ask for.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Ingresses")]
pub struct IngressShimArgs {
    /// Issuer of Ingresses that ask for a certificate and name none
    #[arg(
        long,
        hide_short_help = true,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub default_issuer_name: String,
    /// Kind of that issuer
    #[arg(long, hide_short_help = true, value_name = "KIND", default_value = "Issuer")]
    pub default_issuer_kind: String,
    /// API group of that issuer
    #[arg(long, hide_short_help = true, value_name = "GROUP", default_value = "cert-manager.io")]
    pub default_issuer_group: String,
    /// Annotations that make an Ingress ask for a certificate of that issuer when they are true
    #[arg(
        long,
        hide_short_help = true,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = TLS_ACME
    )]
    pub auto_certificate_annotations: Vec<String>,
    /// Annotations of Ingresses and Gateways that their Certificates take over
    #[arg(long, hide_short_help = true, value_name = "NAME", value_delimiter = ',')]
    pub extra_certificate_annotations: Vec<String>,
}

impl IngressShimArgs {
    /// What controllers are told.
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
