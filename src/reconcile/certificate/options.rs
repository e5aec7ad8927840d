//! Settings for Certificates from flags, which are named as in cert-manager.

use jiff::{SignedDuration, Timestamp};

use crate::model::CertificateStatus;
use crate::reconcile::renewal_info::Interval;

/// Settings that hold for every Certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether a Certificate owns its Secret, so that both go together.
    pub owns_secret: bool,
    /// Annotations that requests copy.
    pub annotations: CopiedAnnotations,
    /// Pauses before a failed issuance is tried again.
    pub backoff: Backoff,
    /// Pause between two questions to a CA about renewal.
    pub renewal_interval: Interval,
}

/// Annotations that a CertificateRequest copies from its Certificate: prefixes, `*` for all, `-` for exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedAnnotations(pub Vec<String>);

impl CopiedAnnotations {
    /// Prefixes that cert-manager uses by default.
    pub const USUAL: [&str; 4] =
        ["*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"];

    /// Returns whether an annotation is copied. As in cert-manager, the list is read in its order, and beside a `*`
    /// every prefix without `-` means all.
    pub fn take(&self, annotation: &str) -> bool {
        let is_all = self.0.iter().any(|prefix| prefix == "*");
        self.0.iter().fold(false, |is_taken, prefix| match prefix.strip_prefix('-') {
            Some(prefix) => is_taken && !annotation.starts_with(prefix),
            None => is_taken || is_all || annotation.starts_with(prefix.as_str()),
        })
    }
}

impl Default for CopiedAnnotations {
    fn default() -> Self {
        Self(Self::USUAL.map(str::to_owned).to_vec())
    }
}

/// Pauses after failures: the first, doubled by each further failure, up to the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Pause after the first failure; no pauses if not positive.
    pub shortest: SignedDuration,
    /// Longest pause between two tries.
    pub longest: SignedDuration,
}

impl Backoff {
    /// Returns the pause after `failures` failures in a row.
    pub fn after(self, failures: i64) -> SignedDuration {
        if !self.shortest.is_positive() {
            return SignedDuration::ZERO;
        }
        let doublings = u32::try_from(failures - 1).unwrap_or(0);
        if doublings == 0 {
            return self.shortest;
        }
        let factor = 2_i32.checked_pow(doublings);
        let pause = factor.and_then(|factor| self.shortest.checked_mul(factor));
        pause.filter(|pause| *pause <= self.longest).unwrap_or(self.longest)
    }

    /// Returns when to try again after the failure in a status; `None` if the status has none.
    pub fn next_try(self, status: &CertificateStatus) -> Option<Timestamp> {
        let failed_at = status.last_failure_time?.timestamp();
        let pause = self.after(status.failed_issuance_attempts.unwrap_or(1));
        failed_at.checked_add(pause).ok()
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { shortest: SignedDuration::from_hours(1), longest: SignedDuration::from_hours(32) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_taken_over_as_the_list_says() {
        let usual: Vec<&str> = CopiedAnnotations::USUAL.to_vec();
        for (list, annotation, expected) in [
            (usual.clone(), "example.com/note", true),
            (usual.clone(), "kubectl.kubernetes.io/last-applied-configuration", false),
            (usual, "argocd.argoproj.io/sync-wave", false),
            (vec!["example.com/"], "example.com/note", true),
            (vec!["example.com/"], "example.org/note", false),
            (vec!["example.com/", "-example.com/secret"], "example.com/secret-note", false),
            (vec!["-example.com/secret", "example.com/"], "example.com/secret-note", true),
            (vec!["*", "-example.com/", "example.org/"], "example.com/note", true),
            (vec![], "example.com/note", false),
        ] {
            let copied = CopiedAnnotations(list.into_iter().map(str::to_owned).collect());
            assert_eq!(copied.take(annotation), expected, "{copied:?} {annotation}");
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let minutes = SignedDuration::from_mins;
        let (usual, short) = (Backoff::default(), minutes(10));
        let quick = Backoff { shortest: short, longest: minutes(30) };
        let none = Backoff { shortest: SignedDuration::ZERO, ..usual };
        for (backoff, failures, expected) in [
            (usual, 1, minutes(60)),
            (usual, 2, minutes(120)),
            (usual, 6, minutes(32 * 60)),
            (usual, 1_000_000, minutes(32 * 60)),
            (usual, 0, minutes(60)),
            (usual, -1, minutes(60)),
            (quick, 1, short),
            (quick, 2, minutes(20)),
            (quick, 3, minutes(30)),
            (Backoff { longest: minutes(1), ..quick }, 1, short),
            (none, 3, SignedDuration::ZERO),
        ] {
            assert_eq!(backoff.after(failures), expected, "{backoff:?} {failures}");
        }
    }
}
