//! Change of an account's key (roll-over, RFC 8555 §7.3.5), which can be resumed after a kill at any moment.
//!
//! The new key is stored beside the old one in the Secret before the CA is sent it, and replaces the old one once the
//! CA has it. While both are there it is unknown which one the CA accepts, so no other request is signed with either.
//! The Issuer's controller or a person's command resumes by the same function; several at once come to the same end.

use super::ReconcileError;
use super::accounts::{
    Accounts, NEXT_KEY_SUFFIX, account_key, acme_of, beside, key_in_secret, shown,
};
use crate::acme::error::{AcmeError, Retry};
use crate::acme::{AccountKey, Registration};
use crate::model::issuer::{AcmeIssuer, AcmeIssuerStatus};
use crate::model::{Blob, Issuer, Secret};
use crate::reconcile::issuer;
use crate::store::error::StoreError;

/// Suffix for a new key that turned out to have an account of its own.
const UNUSED_KEY_SUFFIX: &str = "unused";
/// Largest number of conflicts with other writers of the Secret or the Issuer.
const CONFLICTS_MAX: usize = 5;

/// Result of a roll-over.
#[derive(Debug)]
pub enum RolloverEnd {
    /// No roll-over is under way.
    Idle,
    /// The account has the new key.
    Changed {
        /// Account URL.
        account: String,
    },
    /// The CA refused; the account keeps its key.
    Refused(AcmeError),
}

/// Returns the Secret with a new key beside the old one.
///
/// # Errors
/// Fails with the reason if the crypto library fails.
pub fn with_next_key(
    acme: &AcmeIssuer,
    secret: &Secret,
    next: &AccountKey,
) -> Result<Secret, String> {
    let pem = next.to_pem().map_err(|error| error.to_string())?;
    let mut changed = secret.clone();
    changed.data.insert(beside(acme, NEXT_KEY_SUFFIX), Blob(pem.as_bytes().to_vec()));
    Ok(changed)
}

/// Result of abandoning a roll-over.
#[derive(Debug)]
pub enum Abandonment {
    /// No roll-over is under way.
    Idle,
    /// The account keeps its key.
    Abandoned,
    /// The CA has the new key already, which is in place now.
    Changed,
}

impl Accounts {
    /// Gives up a roll-over that is under way: the key that the CA has is kept.
    ///
    /// # Errors
    /// Fails if the store cannot be asked, or the CA does not say which key it has: both keys stay.
    pub async fn abandon_rollover(&self, issuer: &Issuer) -> Result<Abandonment, ReconcileError> {
        let acme = acme_of(issuer)?;
        let name = &acme.private_key_secret_ref.name;
        let Some(secret) = self.secret(issuer, name).await? else { return Ok(Abandonment::Idle) };
        let Some(pem) = secret.value(&beside(acme, NEXT_KEY_SUFFIX)) else {
            return Ok(Abandonment::Idle);
        };
        let Ok(next) = AccountKey::from_pem(pem) else {
            // An unparsable key cannot have been accepted by a CA.
            let mut changed = secret.clone();
            changed.data.remove(&beside(acme, NEXT_KEY_SUFFIX));
            let secrets = self.secrets().clone().written_by(issuer::writer(issuer));
            secrets.replace(&changed).await?;
            return Ok(Abandonment::Abandoned);
        };
        // The old key is tried first: most CAs that cannot change keys do not know the new one.
        let old = account_key(acme, &secret).ok();
        let has_old = match old {
            Some(old) => self.account_of(issuer, &old).await?.is_some(),
            None => false,
        };
        if !has_old && let Some(account) = self.account_of(issuer, &next).await? {
            self.promote(issuer, &next).await?;
            self.record_key(issuer, &account, &next).await?;
            return Ok(Abandonment::Changed);
        }
        self.keep_old_key(issuer, &next, None).await?;
        Ok(Abandonment::Abandoned)
    }

    /// Completes a roll-over that is under way.
    ///
    /// # Errors
    /// Fails if the store or the CA cannot be asked, or gives no final answer: both keys stay where they are.
    pub async fn finish_rollover(&self, issuer: &Issuer) -> Result<RolloverEnd, ReconcileError> {
        let acme = acme_of(issuer)?;
        let name = &acme.private_key_secret_ref.name;
        let Some(secret) = self.secret(issuer, name).await? else { return Ok(RolloverEnd::Idle) };
        let Some(pem) = secret.value(&beside(acme, NEXT_KEY_SUFFIX)) else {
            return Ok(RolloverEnd::Idle);
        };
        let unusable = |why: String| {
            ReconcileError::Missing(format!("account key of {}: {why}", shown(issuer)))
        };
        let next = AccountKey::from_pem(pem).map_err(|error| unusable(error.to_string()))?;
        let old = account_key(acme, &secret).map_err(unusable)?;
        let known = issuer.status.acme.as_ref().map(|account| account.uri.clone());
        let known = known.filter(|url| !url.is_empty());
        let session = self.open_with(issuer, old, known.clone())?;
        let refusal = match session.change_key(&next).await {
            Ok(()) => None,
            Err(error) if error.retry() == Retry::Never => Some(error),
            Err(error) => return Err(error.into()),
        };
        let known = known.or_else(|| session.account_url());
        let account = match refusal {
            None => known.unwrap_or_default(),
            // The CA may have the new key already, by a reply that was not read.
            Some(refusal) => match self.account_of(issuer, &next).await? {
                Some(account) if known.as_ref().is_none_or(|known| *known == account) => account,
                owner => {
                    let word = owner.map(|_| UNUSED_KEY_SUFFIX);
                    self.keep_old_key(issuer, &next, word).await?;
                    return Ok(RolloverEnd::Refused(refusal));
                }
            },
        };
        self.promote(issuer, &next).await?;
        self.record_key(issuer, &account, &next).await?;
        Ok(RolloverEnd::Changed { account })
    }

    /// Returns the account that a key has at the CA, if it has one.
    async fn account_of(
        &self,
        issuer: &Issuer,
        key: &AccountKey,
    ) -> Result<Option<String>, ReconcileError> {
        let session = self.open_with(issuer, key.clone(), None)?;
        let existing = Registration { only_return_existing: true, ..Registration::default() };
        match session.register(&existing).await {
            Ok(reply) => Ok(Some(reply.url)),
            Err(error) if error.retry() == Retry::Never => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the old key with the new one, unless that is done already.
    async fn promote(&self, issuer: &Issuer, next: &AccountKey) -> Result<(), ReconcileError> {
        let acme = acme_of(issuer)?;
        let (place, beside) = (key_in_secret(acme), beside(acme, NEXT_KEY_SUFFIX));
        self.change_secret(issuer, next, |secret| {
            let pem = secret.data.remove(&beside);
            secret.data.extend(pem.map(|pem| (place.clone(), pem)));
        })
        .await
    }

    /// Removes the new key; one that has an account of its own is kept under another name.
    async fn keep_old_key(
        &self,
        issuer: &Issuer,
        next: &AccountKey,
        word: Option<&str>,
    ) -> Result<(), ReconcileError> {
        let acme = acme_of(issuer)?;
        self.change_secret(issuer, next, |secret| {
            let pem = secret.data.remove(&beside(acme, NEXT_KEY_SUFFIX));
            secret.data.extend(pem.and_then(|pem| Some((beside(acme, word?), pem))));
        })
        .await
    }

    /// Changes the Secret of the account key, as long as that new key waits in it.
    async fn change_secret(
        &self,
        issuer: &Issuer,
        next: &AccountKey,
        change: impl Fn(&mut Secret),
    ) -> Result<(), ReconcileError> {
        let acme = acme_of(issuer)?;
        let secrets = self.secrets().clone().written_by(issuer::writer(issuer));
        let mut last = None;
        for _ in 0..CONFLICTS_MAX {
            let Some(mut secret) = self.secret(issuer, &acme.private_key_secret_ref.name).await?
            else {
                return Ok(());
            };
            let waiting = secret.value(&beside(acme, NEXT_KEY_SUFFIX)).map(AccountKey::from_pem);
            let is_it = matches!(waiting, Some(Ok(key)) if key.hash() == next.hash());
            if !is_it {
                return Ok(());
            }
            change(&mut secret);
            match secrets.replace(&secret).await {
                Err(error @ StoreError::Conflict { .. }) => last = Some(error),
                written => return Ok(written.map(drop)?),
            }
        }
        last.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Stores the key that the account now has, so that no further request to the CA is needed.
    async fn record_key(
        &self,
        issuer: &Issuer,
        account: &str,
        key: &AccountKey,
    ) -> Result<(), ReconcileError> {
        let issuers = self.issuers_of(issuer.issuer_kind());
        let mut last = None;
        for _ in 0..CONFLICTS_MAX {
            let Some(found) = issuers.get_anew(&issuer.name()).await? else { return Ok(()) };
            let mut status = found.status.clone();
            let recorded: &mut AcmeIssuerStatus = status.acme.get_or_insert_default();
            if recorded.last_private_key_hash == key.hash() {
                return Ok(());
            }
            account.clone_into(&mut recorded.uri);
            recorded.last_private_key_hash = key.hash();
            match issuers.replace_status(&found, &status).await {
                Err(error @ StoreError::Conflict { .. }) => last = Some(error),
                written => return Ok(written.map(drop)?),
            }
        }
        last.map_or(Ok(()), |error| Err(error.into()))
    }
}
