//! Flags for all Certificates, with cert-manager's names.

use jiff::SignedDuration;

use crate::context::flags::duration;
use crate::model::Duration;
use crate::reconcile::certificate::options::{Backoff, CopiedAnnotations, Options};
use crate::reconcile::renewal_info::Interval;

/// Flags for all Certificates.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Certificates")]
pub struct CertificateArgs {
    /// Whether Certificates own their Secrets: deleting a Certificate then deletes its Secret
    #[arg(
        long,
        hide_short_help = true,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub enable_certificate_owner_ref: bool,
    /// Prefixes of Certificate annotations to copy to CertificateRequests: * for all, - before a prefix to leave out
    #[arg(
        long,
        hide_short_help = true,
        value_name = "PREFIX",
        value_delimiter = ',',
        allow_hyphen_values = true,
        default_values_t = CopiedAnnotations::USUAL.map(str::to_owned)
    )]
    pub copied_annotation_prefixes: Vec<String>,
    /// Pause after a failed issuance; each further failure doubles it
    #[arg(
        long,
        hide_short_help = true,
        value_name = "DURATION",
        default_value = "1h",
        value_parser = duration
    )]
    pub certificate_request_minimum_backoff_duration: Duration,
    /// Longest pause after failed issuances
    #[arg(
        long,
        hide_short_help = true,
        value_name = "DURATION",
        default_value = "32h",
        value_parser = duration
    )]
    pub certificate_request_maximum_backoff_duration: Duration,
    /// Pause between two requests for a CA's renewal information, unless the CA names another pause
    #[arg(long, hide = true, value_name = "DURATION", default_value = "6h", value_parser = pause)]
    pub renewal_info_interval: Duration,
}

impl CertificateArgs {
    /// Returns these flags as options of the controllers.
    pub fn options(&self) -> Options {
        Options {
            owns_secret: self.enable_certificate_owner_ref,
            annotations: CopiedAnnotations(self.copied_annotation_prefixes.clone()),
            backoff: Backoff {
                shortest: self.certificate_request_minimum_backoff_duration.0,
                longest: self.certificate_request_maximum_backoff_duration.0,
            },
            renewal_interval: Interval(self.renewal_info_interval.0),
        }
    }
}

/// Reads the pause between two requests: at least 1 s.
fn pause(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|pause| {
        let is_one = pause.0 >= SignedDuration::from_secs(1);
        if is_one { Ok(pause) } else { Err(format!("\"{text}\" is too short: at least 1s")) }
    })
}
