//! What holds for every Certificate: cert-manager's flags.

use jiff::SignedDuration;

use crate::context::flags::duration;
use crate::model::Duration;
use crate::reconcile::certificate::options::{Backoff, CopiedAnnotations, Options};
use crate::reconcile::renewal_info::Interval;

/// What holds for every Certificate.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Certificates")]
pub struct CertificateArgs {
    /// Whether Certificates own their Secrets: whoever deletes one deletes the other
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
    /// Which annotations of a Certificate its CertificateRequests take over: prefixes, * for all, - before those left out
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
    /// How often a CA is asked when to renew a certificate, unless it wants that otherwise
    #[arg(long, hide = true, value_name = "DURATION", default_value = "6h", value_parser = pause)]
    pub renewal_info_interval: Duration,
}

impl CertificateArgs {
    /// What controllers are told.
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

/// Reads how often somebody is asked: not without a pause.
fn pause(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|pause| {
        let is_one = pause.0 >= SignedDuration::from_secs(1);
        if is_one { Ok(pause) } else { Err(format!("\"{text}\" is no pause: 1s is the shortest")) }
    })
}
