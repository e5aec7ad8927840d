//! `account rollover`: another key for an account (RFC 8555 §7.3.5).
//!
//! A kill at any moment leaves both keys in the Secret, and the same command, or the controllers, go on.

use crate::account::{AccountDesk, AskArgs, NamedAccount, WrittenParts, ask, failed, refused};
use crate::acme::{AccountKey, Acme as _, AcmeError};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::controllers::account_rollover::{self, Abandonment, RolloverEnd};
use crate::controllers::accounts;
use crate::controllers::blocking;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::input::completers;
use crate::model::{IssuerRef, Key, KeyAlgorithm, Kind, Order, Secret, State};
use crate::store::Scope;
use crate::store::local::Access;
use crate::store::resources::Resources;

/// What fails, where it does.
const DEED: &str = "cannot change the account key of";
/// What fails where that is to be given up.
const ABANDONING: &str = "cannot give up the change of the account key of";
/// What a refusal leaves.
const KEPT: &str = "the account keeps the key that it has";

/// Flags of `account rollover`.
#[derive(Clone, Debug, clap::Args)]
pub struct RolloverArgs {
    /// Name of the Issuer, or KIND/NAME
    #[arg(value_name = "ISSUER", add = completers::names(Kind::Issuer))]
    issuer: String,
    /// Kind of the new key [default: that of the old one]
    #[arg(long, value_name = "ALGORITHM", value_enum)]
    algorithm: Option<AccountAlgorithm>,
    /// Do it although orders of the account are under way
    #[arg(long)]
    force: bool,
    /// Give up a change of the key that cannot be ended; the key that the CA has stays
    #[arg(long, conflicts_with_all = ["force", "algorithm"])]
    abandon: bool,
    /// How the CA is asked
    #[command(flatten)]
    ask: AskArgs,
}

/// Kinds of account keys that ACME has signatures for.
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

/// Gives an account another key, or goes on where that was begun.
///
/// # Errors
/// Fails when the Issuer has no key, orders are under way, the CA refuses, or the store does; the account keeps a key that is
/// stored, whatever happens.
pub async fn run(args: RolloverArgs, context: &Context) -> Result<(), Failure> {
    let desk = AccountDesk::open(&args.ask, Access::ReadWrite, context).await?;
    let account = desk.named(&args.issuer, context).await?;
    if args.abandon {
        return abandon(&desk, &account, context).await;
    }
    let old = desk.key(&account)?;
    let wanted = args.algorithm.map_or_else(|| old.algorithm(), AccountAlgorithm::key);
    if desk.store.in_cluster() && !matches!(wanted, KeyAlgorithm::Rsa(_)) {
        let what = format!("{}: cert-manager can use RSA account keys only", account.key());
        return Err(Failure::usage(what).hint("--algorithm=rsa-2048 makes one of that kind"));
    }
    let secret = account.secret.as_ref();
    let is_begun = secret.is_some_and(|secret| accounts::is_being_changed(&account.acme, secret));
    // Orders wait for the end of one that is begun.
    if !args.force && !is_begun {
        nothing_under_way(&desk, &account).await?;
    }
    let written = WrittenParts { secret: &["update"], ..WrittenParts::default() };
    desk.must_be_writable(&account, &written, context).await?;
    let printer = context.printer(&OutputArgs::default());
    if is_begun {
        printer.note("another key was stored by an earlier command: going on with it");
    } else {
        can_be_changed(&desk, &account, &old, context).await?;
        store_next(&desk, &account, wanted).await?;
    }
    let ended = tokio::select! {
        ended = desk.accounts.finish_rollover(&account.issuer) => ended,
        kind = context.interrupted().wait() => return Err(Failure::interrupted(kind)),
    };
    let ended = ended.map_err(|error| {
        let give_up = format!("account rollover {} --abandon", account.issuer.metadata.name);
        let give_up = invocation::current().like_in(&account.issuer.metadata.namespace, &give_up);
        failed(error, &account, DEED)
            .hint("both keys are kept, and orders wait: the same command goes on")
            .hint(format!("{give_up} gives it up"))
    })?;
    match ended {
        RolloverEnd::Refused(error) => Err(refused(error, &account, DEED).hint(KEPT)),
        // Somebody else brought it to its end.
        RolloverEnd::Changed { .. } | RolloverEnd::Idle => {
            let mut printer = context.printer(&OutputArgs::default());
            let (key, place) = (account.key(), desk.secret_place(&account));
            printer.text(&format!("account of {key} has another key, in Secret {place}\n"))?;
            Ok(())
        }
    }
}

/// Asks whether the CA changes keys at all, and whether it knows the account, before another key is stored.
async fn can_be_changed(
    desk: &AccountDesk,
    account: &NamedAccount,
    key: &AccountKey,
    context: &Context,
) -> Result<(), Failure> {
    let session = desk.session(account, key.clone(), account.url(key))?;
    let directory = ask(session.directory(), account, DEED, context).await?;
    if directory.key_change.is_none() {
        let server = account.acme.server.clone();
        let error = AcmeError::NotOffered { server, what: "keyChange" };
        return Err(refused(error, account, DEED).hint(KEPT));
    }
    match ask(session.account_state(), account, DEED, context).await {
        Err(failure) if !is_of_reading_alone(&failure) => Err(failure),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Tells whether a CA refuses to show an account (RFC 8555 §7.3.2) for a reason that says nothing of the account itself.
fn is_of_reading_alone(failure: &Failure) -> bool {
    failure.facts.problem.as_ref().is_some_and(|problem| {
        let is_closed = matches!(problem.short_kind(), "unauthorized" | "accountDoesNotExist");
        (400..500).contains(&problem.status) && problem.status != 429 && !is_closed
    })
}

/// Gives up a roll-over that is under way.
async fn abandon(
    desk: &AccountDesk,
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
    let said = match ended.map_err(|error| failed(error, account, ABANDONING))? {
        Abandonment::Idle => format!("no change of the account key of {key} is under way\n"),
        Abandonment::Abandoned => format!("account of {key} keeps its key, in Secret {place}\n"),
        Abandonment::Changed => {
            format!("account of {key} has the other key already: it is in Secret {place} now\n")
        }
    };
    Ok(context.printer(&OutputArgs::default()).text(&said)?)
}

/// Makes a key and stores it before the CA hears of it.
async fn store_next(
    desk: &AccountDesk,
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

/// Refuses while orders of the account are under way: whoever works on them may sign with the old key in between.
async fn nothing_under_way(desk: &AccountDesk, account: &NamedAccount) -> Result<(), Failure> {
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
    let what = format!("the account of {issuer} is at work on {first}{more}: nothing was changed");
    Err(Failure::new(FailureKind::OwnedByAnother, what)
        .about(first)
        .hint("wait until they have ended; --force changes the key nevertheless"))
}
