//! `account rollover`: another key for an account (RFC 8555 §7.3.5).
//!
//! If the process is killed at any moment, both keys stay in the Secret, and the same command or the controllers go on.

use crate::account::{AccountClient, AskArgs, NamedAccount, WrittenParts, ask, failed, refused};
use crate::acme::{AccountKey, Acme as _, AcmeError};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::controllers::account_rollover::{self, Abandonment, RolloverEnd};
use crate::controllers::{accounts, blocking};
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::input::completers;
use crate::model::{IssuerRef, Key, KeyAlgorithm, Kind, Order, Secret, State};
use crate::store::Scope;
use crate::store::local::Access;
use crate::store::resources::Resources;

/// Message prefix when the key cannot be changed.
const CANNOT_CHANGE: &str = "cannot change the account key of";
/// Message prefix when the change cannot be abandoned.
const CANNOT_ABANDON: &str = "cannot give up the change of the account key of";
/// Hint after a refusal.
const KEY_STAYS: &str = "the account keeps the key that it has";

/// Flags of `account rollover`.
#[derive(Clone, Debug, clap::Args)]
pub struct RolloverArgs {
    /// Name of the Issuer, or KIND/NAME
    #[arg(value_name = "ISSUER", add = completers::names(Kind::Issuer))]
    issuer: String,
    /// Algorithm of the new key [default: that of the old key]
    #[arg(long, value_name = "ALGORITHM", value_enum)]
    algorithm: Option<AccountAlgorithm>,
    /// Change the key even if orders of the account are under way
    #[arg(long)]
    force: bool,
    /// Abandon a key change that cannot be finished; the key that the CA has stays
    #[arg(long, conflicts_with_all = ["force", "algorithm"])]
    abandon: bool,
    /// Flags of requests to the CA
    #[command(flatten)]
    ask: AskArgs,
}

/// Algorithms of account keys that ACME has signatures for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum AccountAlgorithm {
    /// ECDSA P-256
    #[value(name = "ecdsa-p256")]
    P256,
    /// ECDSA P-384
    #[value(name = "ecdsa-p384")]
    P384,
    /// RSA 2048, which cert-manager needs
    #[value(name = "rsa-2048")]
    Rsa2048,
    /// RSA 4096
    #[value(name = "rsa-4096")]
    Rsa4096,
}

impl AccountAlgorithm {
    fn key(self) -> KeyAlgorithm {
        match self {
            Self::P256 => KeyAlgorithm::Ecdsa(256),
            Self::P384 => KeyAlgorithm::Ecdsa(384),
            Self::Rsa2048 => KeyAlgorithm::Rsa(2048),
            Self::Rsa4096 => KeyAlgorithm::Rsa(4096),
        }
    }
}

/// Changes the key of an account, or goes on with a change that was begun.
///
/// # Errors
/// Fails when the Issuer has no key, orders are under way, the CA refuses, or the store fails; in each case the
/// account's current key is in the store.
pub async fn run(args: RolloverArgs, context: &Context) -> Result<(), Failure> {
    let desk = AccountClient::open(&args.ask, Access::ReadWrite, context).await?;
    let account = desk.named(&args.issuer, context).await?;
    if args.abandon {
        return abandon(&desk, &account, context).await;
    }
    let old = desk.key(&account)?;
    let wanted = args.algorithm.map_or_else(|| old.algorithm(), AccountAlgorithm::key);
    if desk.store.in_cluster() && !matches!(wanted, KeyAlgorithm::Rsa(_)) {
        let what = format!("{}: cert-manager can use RSA account keys only", account.key());
        return Err(Failure::usage(what).hint("make an RSA key with --algorithm=rsa-2048"));
    }
    let secret = account.secret.as_ref();
    let is_begun = secret.is_some_and(|secret| accounts::is_being_changed(&account.acme, secret));
    // Orders wait for the end of a key change that is begun.
    if !args.force && !is_begun {
        refuse_open_orders(&desk, &account).await?;
    }
    let written = WrittenParts { secret: &["update"], ..WrittenParts::default() };
    desk.must_be_writable(&account, &written, context).await?;
    let printer = context.printer(&OutputArgs::default());
    if is_begun {
        printer.note("an earlier command stored another key: going on with that change");
    } else {
        check_changeable(&desk, &account, &old, context).await?;
        store_next(&desk, &account, wanted).await?;
    }
    let ended = tokio::select! {
        ended = desk.accounts.finish_rollover(&account.issuer) => ended,
        kind = context.interrupted().wait() => return Err(Failure::interrupted(kind)),
    };
    let ended = ended.map_err(|error| {
        let give_up = format!("account rollover {} --abandon", account.issuer.metadata.name);
        let give_up = invocation::current().like_in(&account.issuer.metadata.namespace, &give_up);
        failed(error, &account, CANNOT_CHANGE)
            .hint("both keys are kept, and orders wait: run the same command again")
            .hint(format!("or abandon the change: {give_up}"))
    })?;
    match ended {
        RolloverEnd::Refused(error) => Err(refused(error, &account, CANNOT_CHANGE).hint(KEY_STAYS)),
        // Another process finished the change.
        RolloverEnd::Changed { .. } | RolloverEnd::Idle => {
            let mut printer = context.printer(&OutputArgs::default());
            let (key, place) = (account.key(), desk.secret_place(&account));
            printer.text(&format!("account of {key} has a new key, in Secret {place}\n"))?;
            Ok(())
        }
    }
}

/// Checks that the CA offers key changes and knows the account, before a new key is stored.
async fn check_changeable(
    desk: &AccountClient,
    account: &NamedAccount,
    key: &AccountKey,
    context: &Context,
) -> Result<(), Failure> {
    let session = desk.session(account, key.clone(), account.url(key))?;
    let directory = ask(session.directory(), account, CANNOT_CHANGE, context).await?;
    if directory.key_change.is_none() {
        let server = account.acme.server.clone();
        let error = AcmeError::NotOffered { server, what: "keyChange" };
        return Err(refused(error, account, CANNOT_CHANGE).hint(KEY_STAYS));
    }
    match ask(session.account_state(), account, CANNOT_CHANGE, context).await {
        Err(failure) if !is_of_reading_alone(&failure) => Err(failure),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns whether a CA refuses to show an account (RFC 8555 §7.3.2) for a reason that does not concern the account.
fn is_of_reading_alone(failure: &Failure) -> bool {
    failure.facts.problem.as_ref().is_some_and(|problem| {
        let is_closed = matches!(problem.short_kind(), "unauthorized" | "accountDoesNotExist");
        (400..500).contains(&problem.status) && problem.status != 429 && !is_closed
    })
}

/// Abandons a roll-over that is under way.
async fn abandon(
    desk: &AccountClient,
    account: &NamedAccount,
    context: &Context,
) -> Result<(), Failure> {
    let written = WrittenParts { secret: &["update"], ..WrittenParts::default() };
    desk.must_be_writable(account, &written, context).await?;
    let ended = tokio::select! {
        ended = desk.accounts.abandon_rollover(&account.issuer) => ended,
        kind = context.interrupted().wait() => return Err(Failure::interrupted(kind)),
    };
    let (key, place) = (account.key(), desk.secret_place(account));
    let said = match ended.map_err(|error| failed(error, account, CANNOT_ABANDON))? {
        Abandonment::Idle => format!("no change of the account key of {key} is under way\n"),
        Abandonment::Abandoned => format!("account of {key} keeps its key, in Secret {place}\n"),
        Abandonment::Changed => {
            format!("account of {key} already has the new key, in Secret {place}\n")
        }
    };
    Ok(context.printer(&OutputArgs::default()).text(&said)?)
}

/// Generates a key and stores the key before the CA gets it.
async fn store_next(
    desk: &AccountClient,
    account: &NamedAccount,
    algorithm: KeyAlgorithm,
) -> Result<(), Failure> {
    let key = account.key();
    let cannot = |why: String| {
        Failure::new(
            FailureKind::Unexpected,
            format!("cannot make an account key for {key}: {why}"),
        )
    };
    let made = blocking::compute(move || AccountKey::generate(algorithm)).await;
    let made = made.map_err(|error| cannot(error.to_string()))?;
    let made = made.map_err(|error| cannot(error.to_string()))?;
    let Some(secret) = &account.secret else { return Ok(()) };
    let changed = account_rollover::with_next_key(&account.acme, secret, &made).map_err(cannot)?;
    let secrets = Resources::<Secret>::new(desk.store.clone(), Kind::Secret);
    secrets.written_by(crate::reconcile::issuer::writer(&account.issuer)).replace(&changed).await?;
    Ok(())
}

/// Refuses while orders of the account are under way: a controller may sign their requests with the old key meanwhile.
async fn refuse_open_orders(desk: &AccountClient, account: &NamedAccount) -> Result<(), Failure> {
    let orders = Resources::<Order>::new(desk.store.clone(), Kind::Order);
    let issuer = account.key();
    let scope = match issuer.kind {
        Kind::ClusterIssuer => Scope::all(),
        _ => Scope::namespace(&issuer.name.namespace),
    };
    let is_of = |order: &Order| {
        let reference: &IssuerRef = &order.spec.issuer_ref;
        reference.key(&order.metadata.namespace).as_ref() == Some(&issuer)
    };
    let is_open = |order: &Order| !order.status.state.is_some_and(State::is_final);
    let all = orders.list(&scope).await?;
    let open: Vec<Key> = (all.iter())
        .filter(|order| is_of(order) && is_open(order))
        .map(|order| Key::new(Kind::Order, order.name()))
        .collect();
    let Some(first) = open.first() else { return Ok(()) };
    let more = match open.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = format!("the account of {issuer} is used by {first}{more}: nothing was changed");
    Err(Failure::new(FailureKind::OwnedByAnother, what)
        .about(first)
        .hint("wait until these orders have ended, or change the key nevertheless with --force"))
}
