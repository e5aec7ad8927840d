//! `account update` and `account deactivate`: change an account at the CA, and then the account's data in the store.
//!
//! The CA is asked first: a request that the CA refuses changes nothing in the store.

use jiff::Timestamp;

use crate::account::{AccountClient, AskArgs, NamedAccount, WrittenParts, ask};
use crate::acme::Acme as _;
use crate::acme::session::closed;
use crate::context::Context;
use crate::context::confirm::{ConfirmArgs, confirm};
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::controllers::recorder::Recorder;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::without_secret;
use crate::input::completers;
use crate::model::memory::Holder;
use crate::model::{Issuer, Kind};
use crate::reconcile::Refusal;
use crate::reconcile::issuer::{self, AccountRequest, Outcome};
use crate::store::error::StoreError;
use crate::store::local::Access;
use crate::store::resources::Resources;

/// Flags of `account update`.
#[derive(Clone, Debug, clap::Args)]
pub struct UpdateArgs {
    /// Name of the Issuer, or KIND/NAME
    #[arg(value_name = "ISSUER", add = completers::names(Kind::Issuer))]
    issuer: String,
    /// New contact of the account and of the Issuer
    #[arg(long, value_name = "ADDRESS", required_unless_present = "no_email")]
    email: Option<String>,
    /// Remove the contact
    #[arg(long, conflicts_with = "email")]
    no_email: bool,
    /// Flags of requests to the CA
    #[command(flatten)]
    ask: AskArgs,
}

/// Flags of `account deactivate`.
#[derive(Clone, Debug, clap::Args)]
pub struct DeactivateArgs {
    /// Name of the Issuer, or KIND/NAME
    #[arg(value_name = "ISSUER", add = completers::names(Kind::Issuer))]
    issuer: String,
    /// Flag that answers the confirmation question
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// Flags of requests to the CA
    #[command(flatten)]
    ask: AskArgs,
}

/// Changes the contact of an account (RFC 8555 §7.3.2).
///
/// # Errors
/// Fails when the CA refuses, or the store fails.
pub async fn update(args: UpdateArgs, context: &Context) -> Result<(), Failure> {
    let desk = AccountClient::open(&args.ask, Access::ReadWrite, context).await?;
    let account = desk.named(&args.issuer, context).await?;
    let email = args.email.clone().unwrap_or_default();
    if args.email.is_some() && !email.contains('@') {
        return Err(Failure::usage(format!("--email {email:?} is not an e-mail address")));
    }
    let mut changed = account.issuer.clone();
    if let Some(acme) = &mut changed.spec.acme {
        acme.email.clone_from(&email);
    }
    let key = desk.key(&account)?;
    let is_other = changed.spec != account.issuer.spec;
    let issuer = if is_other { &["patch", "update"][..] } else { &["patch"] };
    let written = WrittenParts { issuer, secret: &[], is_told: true };
    desk.must_be_writable(&account, &written, context).await?;
    let url = account.url(&key);
    let session = desk.session(&account, key, url)?;
    let contact = issuer::contact(&email);
    let what = "cannot change the contact of the account of";
    let asked = ask(session.update_contact(&contact), &account, what, context).await;
    let reply = asked.map_err(|failure| {
        let kind = failure.facts.problem.as_ref().map(|problem| problem.short_kind());
        let is_contact = kind.is_some_and(|kind| kind.ends_with("Contact"));
        let hint = "use another --email, or --no-email; the contact is unchanged";
        if is_contact { failure.hint(hint) } else { failure }
    })?;
    if let Some(kept) = reply.contact.filter(|kept| !is_same_contact(kept, &contact)) {
        let kept = if kept.is_empty() { "no contact".to_owned() } else { kept.join(", ") };
        let why = format!("{what} {}: the CA answered that it keeps {kept}", account.key());
        return Err(Failure::new(FailureKind::Account, why).about(&account.key()));
    }
    if is_other {
        changed = desk.issuers(&account).replace(&changed).await?;
    }
    desk.record(&changed, Outcome::ContactUpdated).await?;
    let told = if email.is_empty() { "no contact any more" } else { &email };
    say(context, &format!("contact of the account of {}: {told}\n", account.key()))
}

/// Deactivates an account for ever (RFC 8555 §7.3.6), after a person has confirmed.
///
/// # Errors
/// Fails when the person declines, the CA refuses, or the store fails.
pub async fn deactivate(args: DeactivateArgs, context: &Context) -> Result<(), Failure> {
    let desk = AccountClient::open(&args.ask, Access::ReadWrite, context).await?;
    let account = desk.named(&args.issuer, context).await?;
    let key = desk.key(&account)?;
    let written = WrittenParts { issuer: &["patch"], secret: &[], is_told: true };
    desk.must_be_writable(&account, &written, context).await?;
    let url = account.url(&key);
    let session = desk.session(&account, key, url)?;
    let named = account.key();
    let wish = format!("deactivate the account of {named} at {} for ever", account.acme.server);
    confirm(args.confirm, &wish, context).await?;
    let what = "cannot deactivate the account of";
    let ended = ask(session.deactivate(), &account, what, context).await?;
    if !is_over(&ended.status) {
        // Some CAs answer without a status; a CA that has closed the account refuses to show the account.
        let kept = match ask(session.account_state(), &account, what, context).await {
            Ok(read) if !is_over(&read.status) => Some(read.status),
            Err(failure) if !is_closed(&failure) => Some(ended.status),
            Ok(_) | Err(_) => None,
        };
        if let Some(status) = kept {
            let why = format!("{what} {named}: the CA keeps the account as {status}");
            return Err(Failure::new(FailureKind::Account, why).about(&named));
        }
    }
    // The refusal that the next request would get, recorded before a request is sent.
    let problem = match closed(&ended.url, "deactivated") {
        crate::acme::AcmeError::Refused { problem, .. } => problem,
        _ => Box::default(),
    };
    let outcome = Outcome::Refused(AccountRequest::Register, Refusal::Final(problem));
    desk.record(&account.issuer, outcome).await?;
    let place = desk.secret_place(&account);
    context.printer(&OutputArgs::default()).hint(&format!(
        "certificates of the account stay valid; delete Secret {place} to give {named} a new account: {}",
        without_secret(&account.acme.private_key_secret_ref.name, &named)
    ));
    say(context, &format!("account {} of {named} is deactivated\n", ended.url))
}

/// Returns whether a status means that the account has ended (RFC 8555 §7.1.6).
fn is_over(status: &str) -> bool {
    matches!(status, "deactivated" | "revoked")
}

/// Returns whether the CA answered that the account has ended (RFC 8555 §7.3.6).
fn is_closed(failure: &Failure) -> bool {
    let kind = failure.facts.problem.as_ref().map(|problem| problem.short_kind());
    matches!(kind, Some("unauthorized" | "accountDoesNotExist"))
}

/// Returns whether the contact that a CA keeps is the requested contact; some CAs leave `mailto:` out.
fn is_same_contact(kept: &[String], wanted: &[String]) -> bool {
    let address = |contact: &String| {
        let contact = contact.to_ascii_lowercase();
        contact.strip_prefix("mailto:").unwrap_or(&contact).to_owned()
    };
    kept.iter().map(address).eq(wanted.iter().map(address))
}

fn say(context: &Context, text: &str) -> Result<(), Failure> {
    Ok(context.printer(&OutputArgs::default()).text(text)?)
}

impl AccountClient {
    /// Resources of the kind of the account's issuer: Issuers or ClusterIssuers.
    pub(super) fn issuers(&self, account: &NamedAccount) -> Resources<Issuer> {
        let issuers = Resources::new(self.store.clone(), account.issuer.issuer_kind());
        issuers.written_by(issuer::writer(&account.issuer))
    }

    /// Records the outcome of a request in the Issuer's status, as the Issuer's controller would.
    ///
    /// # Errors
    /// Fails when the store fails; after a conflicting write of another process the Issuer is read again.
    pub(super) async fn record(&self, issuer: &Issuer, outcome: Outcome) -> Result<(), StoreError> {
        let issuers = Resources::<Issuer>::new(self.store.clone(), issuer.issuer_kind())
            .written_by(issuer::writer(issuer));
        let recorder = Recorder::new(self.store.clone());
        let mut current = issuer.clone();
        loop {
            let now = Timestamp::now();
            let outcome = issuer::record(&current, outcome.clone(), now);
            match recorder.keep(&issuers, &current, Some(Holder::Issuer), outcome, now).await {
                Err(StoreError::Conflict { .. }) => match issuers.get_anew(&issuer.name()).await? {
                    Some(found) => current = found,
                    None => return Ok(()),
                },
                kept => return kept,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_the_same_with_or_without_its_scheme() {
        let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        let check = |kept: &[&str], wanted: &[&str], expected: bool| {
            assert_eq!(is_same_contact(&texts(kept), &texts(wanted)), expected, "{kept:?}");
        };
        check(&["mailto:a@b.example"], &["mailto:a@b.example"], true);
        check(&["A@b.example"], &["mailto:a@b.example"], true);
        check(&[], &[], true);
        check(&["mailto:old@b.example"], &["mailto:a@b.example"], false);
        check(&[], &["mailto:a@b.example"], false);
        check(&["mailto:old@b.example"], &[], false);
    }
}
