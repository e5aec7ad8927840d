//! `--on-issued`: a command of the user that is run for each certificate that came.

use clap::builder::NonEmptyStringValueParser;

use crate::context::flags::duration;
use crate::model::Duration;

/// What is run when a certificate came.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OnIssuedArgs {
    /// Run this command of the shell once for each certificate that was written: to reload a server
    ///
    /// It finds ISSUED_CERTIFICATE (NAMESPACE/NAME), ISSUED_NAMES (with blanks between), ISSUED_SERIAL, ISSUED_NOT_AFTER,
    /// ISSUED_FOLDER, ISSUED_CERT_FILE and, where we have the key, ISSUED_KEY_FILE in its environment. What it says is kept in on-issued.log
    /// beside the files. One that fails, or that a kill came before, is run again: by the same command, or by run.
    #[arg(
        long,
        hide_short_help = true,
        value_name = "COMMAND",
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub on_issued: Option<String>,
    /// Longest time that the command of --on-issued may take; it is ended then
    #[arg(
        long,
        hide_short_help = true,
        value_name = "DURATION",
        default_value = "1m",
        value_parser = duration
    )]
    pub on_issued_timeout: Duration,
}
