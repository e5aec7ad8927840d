//! `get`: tables of any of the six kinds, and every other format.

use crate::context::Context;
use crate::context::failure::Failure;
use crate::input::completers;
use crate::input::target::Targets;
use crate::listing::{ListArgs, show};

/// Flags of `get`.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// Kinds, with names if only some are wanted: KIND or KIND,KIND, then NAME…, or KIND/NAME…
    #[arg(required = true, value_name = "KIND|KIND/NAME", add = completers::objects())]
    pub objects: Vec<String>,
    /// Flags of every listing
    #[command(flatten)]
    pub list: ListArgs,
}

/// Runs `get`.
///
/// # Errors
/// Fails when the kinds are unknown, an object is not there, or the store cannot be read.
pub async fn run(args: GetArgs, context: &mut Context) -> Result<(), Failure> {
    show(&Targets::parse(&args.objects)?, &args.list, context).await
}
