//! `--on-issued`: a command of the user that is run for each issued certificate.

use clap::builder::NonEmptyStringValueParser;

use crate::context::flags::duration;
use crate::model::Duration;

/// Flags of the command that is run for each issued certificate.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OnIssuedArgs {
    /// Run this shell command once for each certificate that was written, for example to reload a server
    ///
    /// The environment has ISSUED_CERTIFICATE (NAMESPACE/NAME), ISSUED_NAMES (with blanks between), ISSUED_SERIAL,
    /// ISSUED_NOT_AFTER, ISSUED_FOLDER, ISSUED_CERT_FILE and, if we have the key, ISSUED_KEY_FILE. The output is kept in
    /// on-issued.log beside the files. After a failure or a kill, the same command of kubectl-acme, or run, tries again.
    #[arg(
        long,
        hide_short_help = true,
        value_name = "COMMAND",
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub on_issued: Option<String>,
    /// Longest time that the command of --on-issued may run before it is ended
    #[arg(
        long,
        hide_short_help = true,
        value_name = "DURATION",
        default_value = "1m",
        value_parser = duration
    )]
    pub on_issued_timeout: Duration,
}
