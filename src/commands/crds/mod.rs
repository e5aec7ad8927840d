//! `crds`: prints this program's short definitions of the six kinds.

pub mod definitions;

use self::definitions::definition;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::{DOCUMENT_FORMATS, OutputArgs, of_documents, offered};
use crate::model::Kind;
use crate::print::document;
use crate::print::format::Format;

/// Flags of `crds`.
#[derive(Debug, clap::Args)]
pub struct CrdsArgs {
    /// Format: yaml, json or jsonpath=TEMPLATE
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        value_parser = of_documents,
        env = "KUBECTL_ACME_CRDS_OUTPUT",
        add = offered(&DOCUMENT_FORMATS)
    )]
    pub output: Option<Format>,
}

/// Runs `crds`.
///
/// # Errors
/// Fails when the output cannot be written.
pub fn run(args: CrdsArgs, context: &Context) -> Result<(), Failure> {
    let mut printer = context.printer(&OutputArgs { output: args.output, no_headers: false });
    let definitions = Kind::SIX.map(definition);
    let text = match printer.format() {
        Format::Json | Format::JsonPath(_) | Format::JsonPathAsJson(_) => {
            let list = document::list(definitions.to_vec());
            printer.format().document(&list).unwrap_or_default()
        }
        Format::Jsonl => definitions.iter().map(document::json_line).collect(),
        Format::Csv
        | Format::CustomColumns(_)
        | Format::Name
        | Format::Table
        | Format::Wide
        | Format::Yaml => definitions.map(|definition| document::yaml(&definition)).join("---\n"),
    };
    printer.data(&text)?;
    Ok(())
}
