//! `account show`: the account as the CA has it, beside the Issuer's data.

use serde_json::json;

use crate::account::{AccountClient, AskArgs, NamedAccount, ask};
use crate::acme::{Acme as _, Session};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::ReportArgs;
use crate::controllers::accounts;
use crate::input::completers;
use crate::model::Kind;
use crate::model::account_report::{AccountReport, AccountUser, ReportedAccount, ReportedKey};
use crate::print::account;
use crate::store::local::Access;

/// Flags of `account show`.
#[derive(Clone, Debug, clap::Args)]
pub struct ShowAccountArgs {
    /// Names of Issuers, or KIND/NAME; without any, all Issuers
    #[arg(value_name = "ISSUER", add = completers::names(Kind::Issuer))]
    issuers: Vec<String>,
    /// Ask for the list of each account's orders as well
    ///
    /// Current step-ca accepts no more orders of an account whose list is read while none of its orders is pending.
    #[arg(long)]
    orders: bool,
    /// Flags of requests to CAs
    #[command(flatten)]
    ask: AskArgs,
    /// Flags of the output
    #[command(flatten)]
    output: ReportArgs,
}

/// Shows accounts. If a CA does not show an account, the report has the error instead.
///
/// # Errors
/// Fails when an Issuer is not found, and when a CA does not show an account.
pub async fn run(args: ShowAccountArgs, context: &Context) -> Result<(), Failure> {
    let desk = AccountClient::open(&args.ask, Access::ReadOnly, context).await?;
    let mut named = Vec::new();
    for word in &args.issuers {
        named.push(desk.named(word, context).await?);
    }
    if args.issuers.is_empty() {
        named = desk.all(context.namespace()).await?;
    }
    let mut printer = context.printer(&(&args.output).into());
    if named.is_empty() {
        printer.nothing_found(Some(context.namespace()));
        return Ok(());
    }
    let (mut accounts, mut failures) = (Vec::new(), Vec::new());
    for account in &named {
        let (reported, failure) = report_account(&desk, account, args.orders, context).await?;
        accounts.push(reported);
        failures.extend(failure);
    }
    let report = AccountReport::new(accounts);
    printer.report(&json!(report), |_| account::sheets(&report.accounts))?;
    for failure in &failures {
        printer.error(&failure.message, &failure.hints);
    }
    match Failure::of_all(&failures) {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Reports an account; returns also the failure if the report is incomplete.
async fn report_account(
    desk: &AccountClient,
    account: &NamedAccount,
    with_orders: bool,
    context: &Context,
) -> Result<(ReportedAccount, Option<Failure>), Failure> {
    let (acme, issuer) = (&account.acme, &account.issuer);
    let mut reported = ReportedAccount {
        issuer: AccountUser {
            kind: issuer.issuer_kind().to_string(),
            namespace: issuer.metadata.namespace.clone(),
            name: issuer.metadata.name.clone(),
        },
        server: acme.server.clone(),
        external_account: acme.external_account_binding.as_ref().map(|b| b.key_id.clone()),
        ..ReportedAccount::default()
    };
    let asked = fill_report(desk, account, with_orders, &mut reported, context).await;
    match asked {
        Ok(()) => Ok((reported, None)),
        Err(failure) if failure.message.is_empty() => Err(failure),
        Err(failure) => {
            reported.error = Some(failure.message.clone());
            Ok((reported, Some(failure)))
        }
    }
}

async fn fill_report(
    desk: &AccountClient,
    account: &NamedAccount,
    with_orders: bool,
    reported: &mut ReportedAccount,
    context: &Context,
) -> Result<(), Failure> {
    let status = account.issuer.status.acme.as_ref();
    reported.url = status.map(|status| status.uri.clone()).filter(|url| !url.is_empty());
    let key = desk.key(account)?;
    let secret = account.secret.as_ref();
    reported.key = Some(ReportedKey {
        algorithm: key.algorithm().to_string(),
        thumbprint: key.thumbprint().to_owned(),
        secret: desk.secret_place(account),
        is_being_changed: secret.is_some_and(|s| accounts::is_being_changed(&account.acme, s)),
    });
    let url = account.url(&key);
    let session: Session = desk.session(account, key, url)?;
    let what = "cannot read the account of";
    let directory = ask(session.directory(), account, what, context).await?;
    reported.terms_of_service.clone_from(&directory.terms_of_service);
    let state = ask(session.account_state(), account, what, context).await?;
    reported.url = Some(state.url);
    reported.status = Some(state.status);
    reported.contact = state.contact;
    if with_orders && let Some(orders) = &state.orders {
        // Some CAs name a list of orders and do not serve the list.
        reported.orders = ask(session.orders(orders), account, what, context).await.ok();
    }
    Ok(())
}
