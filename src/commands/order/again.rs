//! `order retry`, `order resume` and `certificate renew`: Certificates that are in the store already.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::settle::{self, Results};
use super::supervise::Followed;
use super::work::{Job, work};
use crate::commands::chain::issuer_key;
use crate::commands::context::{Context, OutputArgs};
use crate::commands::drive::{DriveArgs, duration};
use crate::commands::failure::Failure;
use crate::commands::local::claim;
use crate::commands::renewal::mark_for_renewal;
use crate::model::common::is_true;
use crate::model::{Certificate, Duration, Key, Kind, ObjectName, Record};
use crate::store::Store;
use crate::store::local::Access;
use crate::store::resources::typed;

/// Flags of commands that go on with what is in the store.
#[derive(Clone, Debug, clap::Args)]
pub struct AgainArgs {
    /// Names
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// Write DIR/SECRETNAME/tls.crt and tls.key [default: out in the state folder]
    #[arg(long, value_name = "DIR", env = "KUBECTL_ACME_OUT")]
    pub out: Option<PathBuf>,
    /// Write DIR/SECRETNAME/secret.yaml, too
    #[arg(long)]
    pub out_secret: bool,
    /// Give up after this time
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration, env = "KUBECTL_ACME_TIMEOUT")]
    pub timeout: Duration,
    /// How challenges are answered
    #[command(flatten)]
    pub drive: DriveArgs,
    /// Output
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is wanted of the Certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A fresh order, whatever there is.
    Fresh,
    /// That what was begun goes on.
    Resumed,
}

/// Works on Certificates that are in the store until each has ended.
///
/// # Errors
/// Fails with the lowest exit code of all Certificates.
pub async fn run(
    args: AgainArgs,
    certificates: Vec<ObjectName>,
    wanted: Wanted,
    context: &Context,
) -> Result<(), Failure> {
    let started = Timestamp::now();
    let deadline = started.saturating_add(args.timeout.0).unwrap_or(Timestamp::MAX);
    let folder = context.state_folder()?;
    let store = context.store(Access::ReadWrite).await?;
    let claim = claim(&folder, context, deadline).await?;
    let (mut given, mut open, mut records) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
    for name in certificates {
        let (certificate, record) = read(&store, &name).await?;
        if wanted == Wanted::Fresh {
            mark_for_renewal(&store, &name, started).await?;
        } else if !is_true(&certificate.status.conditions, "Issuing") {
            context
                .printer(&args.output)
                .note(&format!("Certificate {name}: nothing is under way"));
            records.push(record);
            continue;
        }
        let revision = certificate.status.revision.unwrap_or(0);
        let followed = Followed::due(&store, &name, revision).await?;
        open.insert(record.key.clone(), followed);
        given.extend([record.key.clone(), issuer_key(&certificate)]);
        records.push(record);
    }
    let job = Job {
        store: Arc::clone(&store),
        claim,
        drive: &args.drive,
        rehearsal: None,
        given,
        open,
        started,
        deadline,
    };
    let ends = work(job, context).await?;
    let out = args.out.clone().unwrap_or_else(|| folder.join("out"));
    let results =
        Results { store: &store, out: Some(&out), out_secret: args.out_secret, records: &records };
    settle::settle(&results, &args.output, context, ends).await
}

async fn read(store: &Arc<dyn Store>, name: &ObjectName) -> Result<(Certificate, Record), Failure> {
    let key = Key::new(Kind::Certificate, name.clone());
    match store.get(&key).await? {
        Some(record) => Ok((typed::<Certificate>(record.clone())?, record)),
        None => Err(Failure::usage(format!("{key} not found"))
            .hint("kubectl-acme get certificates --local lists what there is")),
    }
}

/// The Certificate to which an Order belongs.
///
/// # Errors
/// Fails when there is no such Order, or no Certificate owns it.
pub async fn certificate_of_order(
    store: &Arc<dyn Store>,
    name: &ObjectName,
) -> Result<ObjectName, Failure> {
    let mut key = Key::new(Kind::Order, name.clone());
    loop {
        let Some(record) = store.get(&key).await? else {
            return Err(Failure::usage(format!("{key} not found"))
                .hint("kubectl-acme order get --local lists what there is"));
        };
        if key.kind == Kind::Certificate {
            return Ok(key.name);
        }
        let metadata = record.metadata();
        let owner = metadata.controller();
        let above =
            owner.and_then(|o| Some((Kind::of_manifest(&o.api_version, &o.kind)?, &o.name)));
        let Some((kind, owner)) = above else {
            let message = format!("{key} belongs to no Certificate");
            return Err(Failure::usage(message));
        };
        key = Key::new(kind, ObjectName::new(&metadata.namespace, owner));
    }
}
