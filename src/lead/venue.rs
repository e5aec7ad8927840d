//! Place of the work on a set of resources, and the program that does the work.

use super::Claim;
use crate::context::Context;
use crate::model::Issuer;

/// Place of the work on a set of resources, and the program that does the work.
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
    /// In a cluster, by another controller, which may serve what we do not.
    Elsewhere,
    /// In a cluster, by cert-manager, which does not serve all that we do.
    CertManager,
}

impl Venue {
    /// Returns the venue of a rehearsal: that of the store in which the real work would be done.
    pub fn of_rehearsal(context: &Context) -> Self {
        match Self::of(context, &Claim::Alone) {
            Self::Local => Self::Local,
            _ => Self::Rehearsal,
        }
    }

    /// Returns the venue of a command that has this claim.
    pub fn of(context: &Context, claim: &Claim) -> Self {
        match (context.cluster(), claim) {
            (None, _) => Self::Local,
            (Some(_), Claim::Watches(_)) if claim.is_cert_manager() => Self::CertManager,
            (Some(_), Claim::Watches(_)) => Self::Elsewhere,
            (Some(_), Claim::Alone | Claim::Drives(_)) => Self::Cluster,
        }
    }

    /// Puts a person in place of every provider, if that is asked for.
    #[must_use]
    pub fn by_hand(self, by_hand: bool) -> Self {
        if by_hand { Self::ByHand } else { self }
    }

    /// Returns whether the resources are in a cluster, or are to be.
    pub fn is_in_cluster(self) -> bool {
        !matches!(self, Self::Local | Self::ByHand)
    }

    /// Returns whether this process has records published by providers.
    pub fn has_providers(self) -> bool {
        matches!(self, Self::Local | Self::Cluster | Self::Rehearsal)
    }

    /// Returns whether the place of the Secrets of the issuer's providers is known: of ClusterIssuers only the driver knows it.
    pub(crate) fn knows_the_secrets_of(self, issuer: &Issuer) -> bool {
        self.has_providers() || (self != Self::ByHand && !issuer.is_cluster())
    }

    /// Returns whether no other controller serves what we do not.
    pub(crate) fn is_ours_alone(self) -> bool {
        matches!(self, Self::Local | Self::ByHand | Self::Rehearsal)
    }
}
