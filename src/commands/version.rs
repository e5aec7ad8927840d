//! `version`: prints the version and the platform of this program.

use serde_json::json;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::ReportArgs;

/// Flags of `version`.
#[derive(Debug, clap::Args)]
pub struct VersionArgs {
    /// Flags of the output
    #[command(flatten)]
    pub output: ReportArgs,
}

/// Runs `version`.
///
/// # Errors
/// Fails when the output cannot be written.
pub fn run(args: &VersionArgs, context: &Context) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let report = json!({
        "apiVersion": "kubectl-acme/v1alpha1",
        "kind": "Version",
        "version": version,
        "platform": platform,
    });
    let text = format!("kubectl-acme {version} {platform}\n");
    context.printer(&(&args.output).into()).report(&report, |_| text)?;
    Ok(())
}
