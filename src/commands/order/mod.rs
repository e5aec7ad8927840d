//! `order`: issues certificates from manifests, and lists, retries, resumes and deletes the orders.

pub mod create;
pub mod delete;
pub mod request_numbers;

use clap::Subcommand;

use self::create::CreateArgs;
use self::delete::DeleteOrderArgs;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::input::lookup::certificate_and_order;
use crate::input::{completers, target};
use crate::issue::again::{Named, Rerun, RerunArgs};
use crate::issue::follow::work::WorkArgs;
use crate::issue::plan::chosen::ChosenFor;
use crate::listing::{self, ListArgs};
use crate::model::{Kind, ObjectName};
use crate::permissions::all_that_is_missing;
use crate::store::local::Access;

/// Flags of `order`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct OrderArgs {
    /// Subcommand; the default is `create`
    #[command(subcommand)]
    command: Option<OrderCommand>,
    /// Flags of `create`
    #[command(flatten)]
    create: CreateArgs,
}

/// Flags of `order get`.
#[derive(Debug, clap::Args)]
struct NamesArgs {
    /// Names of orders, of their Certificates, or domains; all orders when there are none
    #[arg(value_name = "NAME", add = completers::names(Kind::Order))]
    names: Vec<String>,
    /// Flags of every listing
    #[command(flatten)]
    list: ListArgs,
}

/// Subcommands of `order`.
#[derive(Debug, Subcommand)]
enum OrderCommand {
    /// Issue every certificate of the manifests that is due, and wait
    Create(Box<CreateArgs>),
    /// List orders
    Get(Box<NamesArgs>),
    /// Make a fresh order for a certificate whose order failed, and wait
    #[command(mut_arg("names", |names| names.add(completers::names(Kind::Order))))]
    Retry(Box<RerunArgs>),
    /// Go on with an order that was interrupted, and wait
    #[command(mut_arg("names", |names| names.add(completers::names(Kind::Order))))]
    Resume(Box<RerunArgs>),
    /// Delete orders with their challenges, cleaning up
    Delete(Box<DeleteOrderArgs>),
}

impl OrderArgs {
    /// Returns whether the command needs a store: a rehearsal has a store of its own, and a client dry run needs none.
    pub fn needs_store(&self) -> bool {
        match &self.command {
            None => self.create.needs_store(),
            Some(OrderCommand::Create(create)) => create.needs_store(),
            Some(_) => true,
        }
    }

    /// Flags of the work; `None` for subcommands that do not issue.
    fn work(&self) -> Option<&WorkArgs> {
        match &self.command {
            None => Some(&self.create.work),
            Some(OrderCommand::Create(create)) => Some(&create.work),
            Some(OrderCommand::Retry(again) | OrderCommand::Resume(again)) => Some(&again.work),
            Some(OrderCommand::Get(_) | OrderCommand::Delete(_)) => None,
        }
    }

    /// Returns whether the same command can go on after an interruption; a rehearsal keeps nothing.
    pub fn goes_on(&self) -> bool {
        match &self.command {
            None => self.create.rehearse.is_none(),
            Some(OrderCommand::Create(create)) => create.rehearse.is_none(),
            Some(OrderCommand::Retry(_) | OrderCommand::Resume(_)) => true,
            Some(OrderCommand::Get(_) | OrderCommand::Delete(_)) => false,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Fails with the error of the subcommand, which `main` prints.
pub async fn run(args: OrderArgs, context: &mut Context) -> Result<(), Failure> {
    if let Some(work) = args.work() {
        context.global.cluster.terms = work.drive.lease.terms()?;
    }
    match args.command {
        None => Box::pin(create::run(args.create, context)).await,
        Some(OrderCommand::Create(create)) => Box::pin(create::run(*create, context)).await,
        Some(OrderCommand::Get(args)) => {
            let wanted = target::Targets::of_kind(Kind::Order, &args.names)?;
            listing::show(&wanted, &args.list, context).await
        }
        Some(OrderCommand::Retry(again)) => go_on(*again, Rerun::Retried, context).await,
        Some(OrderCommand::Resume(again)) => go_on(*again, Rerun::Resumed, context).await,
        Some(OrderCommand::Delete(delete)) => delete::run(*delete, context).await,
    }
}

async fn go_on(args: RerunArgs, wanted: Rerun, context: &Context) -> Result<(), Failure> {
    let store = context.store(Access::ReadWrite).await?;
    let mut named = Named::new();
    let mut orders = Vec::new();
    for word in &args.names {
        orders.push(ObjectName::new(context.namespace(), target::name_of(Kind::Order, word)?));
    }
    if args.chosen.is_given() {
        orders = args.chosen.certificates(ChosenFor::Unready, &store, context).await?;
        if orders.is_empty() {
            context.talk().line("nothing to do: every Certificate is ready");
            return Ok(());
        }
    }
    for order in orders {
        match certificate_and_order(&store, order).await {
            Ok((certificate, order)) => named.entry(certificate).or_default().extend(order),
            Err(failure) => return Err(all_that_is_missing(context, failure).await),
        }
    }
    Box::pin(crate::issue::again::run(args, named, wanted, context)).await
}
