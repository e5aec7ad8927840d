//! `probe`: the entry point of the probe Pod: makes one probe, and prints the observation as one line of JSON.

use std::path::PathBuf;

use url::Url;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::look::LookArgs;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::observation::{CheckResult, Observation};
use crate::probes::http::HttpProbe;

/// Maximum number of bytes of a termination message that a kubelet keeps.
const MAX_MESSAGE_BYTES: usize = 4096;
/// Maximum number of characters of a text in a shortened report.
const EXCERPT_CHARS: usize = 500;

/// Flags of `probe`.
#[derive(Clone, Debug, clap::Args)]
pub struct ProbeArgs {
    /// URL to probe
    #[arg(value_name = "URL")]
    pub url: Url,
    /// Also write the observation to FILE
    #[arg(long, value_name = "FILE", env = "KUBECTL_ACME_PROBE_REPORT")]
    pub report: Option<PathBuf>,
    /// Flags of lookups and connections
    #[command(flatten)]
    pub look: LookArgs,
}

/// Probes the URL once; no observation is a failure of the command.
///
/// # Errors
/// Fails when the report cannot be written.
pub async fn run(args: ProbeArgs, context: &Context) -> Result<(), Failure> {
    let probe = HttpProbe { fetcher: args.look.fetcher().await? };
    let line = report_line(probe.look_at(args.url.as_str()).await);
    if let Some(file) = &args.report {
        tokio::fs::write(file, &line).await.map_err(|why| {
            Failure::new(FailureKind::Unexpected, format!("cannot write {}: {why}", file.display()))
        })?;
    }
    Ok(context.printer(&OutputArgs::default()).data(&format!("{line}\n"))?)
}

/// Observation as a line of JSON; if too long for a termination message, with the last hop only, and with cut texts.
fn report_line(mut observation: Observation) -> String {
    let whole = serde_json::to_string(&observation).unwrap_or_default();
    if whole.len() <= MAX_MESSAGE_BYTES {
        return whole;
    }
    let cut = |text: &mut String| *text = text.chars().take(EXCERPT_CHARS).collect();
    observation.hops.drain(..observation.hops.len().saturating_sub(1));
    observation.hops.iter_mut().for_each(|hop| cut(&mut hop.url));
    match &mut observation.seen {
        CheckResult::Redirect { to, why } => {
            cut(to);
            cut(why);
        }
        CheckResult::Nothing { why, .. } | CheckResult::NoLook { why, .. } => cut(why),
        CheckResult::Handshake { .. } | CheckResult::Reply { .. } | CheckResult::Records { .. } => {
        }
    }
    serde_json::to_string(&observation).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::observation::{Hop, Vantage};

    #[test]
    fn a_report_always_fits_into_last_words() {
        let long = format!("http://www.example.com/{}", "x".repeat(3000));
        let hop = Hop { url: long.clone(), address: None, status: Some(302) };
        let why = "Too many hops".to_owned();
        let mut seen = Observation {
            vantage: Vantage::ThisMachine,
            at: Timestamp::UNIX_EPOCH,
            url: "http://www.example.com/".to_owned(),
            hops: vec![hop; 10],
            seen: CheckResult::Redirect { to: long, why },
        };
        let read: Observation = serde_json::from_str(&report_line(seen.clone())).unwrap();
        assert!(report_line(seen.clone()).len() <= MAX_MESSAGE_BYTES);
        assert_eq!((read.hops.len(), &read.url), (1, &seen.url));
        seen.seen = CheckResult::Reply {
            status: 200,
            body: "\u{1}".repeat(128),
            truncated: true,
            is_declined: false,
        };
        assert!(report_line(seen.clone()).len() <= MAX_MESSAGE_BYTES, "a body is short");
        seen.hops.clear();
        assert_eq!(serde_json::from_str::<Observation>(&report_line(seen.clone())).unwrap(), seen);
    }
}
