//! Where a set of resources is worked on, and by whom.

use super::Claim;
use crate::context::Context;
use crate::model::Issuer;

/// Where a set is to be worked on, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Venue {
    /// On this machine.
    Local,
    /// On this machine, with a person who makes the records of DNS-01.
    ByHand,
    /// In a cluster, by this process.
    Cluster,
    /// In the cluster, by this process, against a CA of our own.
    Rehearsal,
    /// In a cluster, by somebody else, who may serve what we do not.
    Elsewhere,
    /// In a cluster, by cert-manager, which does not serve all that we do.
    CertManager,
}

impl Venue {
    /// The venue of a rehearsal: that of the store in which the real thing would be done.
    pub fn of_rehearsal(context: &Context) -> Self {
        match Self::of(context, &Claim::Alone) {
            Self::Local => Self::Local,
            _ => Self::Rehearsal,
        }
    }

    /// The venue of a command that has this claim.
    pub fn of(context: &Context, claim: &Claim) -> Self {
        match (context.cluster(), claim) {
            (None, _) => Self::Local,
            (Some(_), Claim::Watches(_)) if claim.is_cert_manager() => Self::CertManager,
            (Some(_), Claim::Watches(_)) => Self::Elsewhere,
            (Some(_), Claim::Alone | Claim::Drives(_)) => Self::Cluster,
        }
    }

    /// The same, with a person in place of every provider where that is asked for.
    #[must_use]
    pub fn by_hand(self, by_hand: bool) -> Self {
        if by_hand { Self::ByHand } else { self }
    }

    /// Tells whether the resources are in a cluster, or are to be.
    pub fn is_in_cluster(self) -> bool {
        !matches!(self, Self::Local | Self::ByHand)
    }

    /// Tells whether this process has records published by providers.
    pub fn has_providers(self) -> bool {
        matches!(self, Self::Local | Self::Cluster | Self::Rehearsal)
    }

    /// Tells whether it is known where the Secrets of the issuer's providers are: only whoever drives knows that of ClusterIssuers.
    pub(crate) fn knows_the_secrets_of(self, issuer: &Issuer) -> bool {
        self.has_providers() || (self != Self::ByHand && !issuer.is_cluster())
    }

    /// Tells whether nobody else serves what we do not.
    pub(crate) fn is_ours_alone(self) -> bool {
        matches!(self, Self::Local | Self::ByHand | Self::Rehearsal)
    }
}
