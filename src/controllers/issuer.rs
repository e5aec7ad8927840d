//! Issuers: gathers key and Secrets, registers the account, and records the outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use tracing::warn;
use zeroize::Zeroizing;

use super::account_rollover::RolloverEnd;
use super::accounts::{self, Accounts};
use super::blocking::KeysAside;
use super::per_issuer::PerIssuer;
use super::recorder::Recorder;
use super::{Controller, ReconcileError, ReconcileFailure, account_secrets};
use crate::acme::error::{AcmeError, Retry};
use crate::acme::{AccountKey, AccountReply, ExternalAccount, KeyMaker, Registration};
use crate::model::event::source;
use crate::model::issuer::AcmeIssuer;
use crate::model::memory::Holder;
use crate::model::solver::Dns01Solver;
use crate::model::{Blob, Issuer, Key, KeyAlgorithm, Kind, ObjectName, Record, Secret};
use crate::reconcile::issuer::faults::Observed;
use crate::reconcile::issuer::{self, AccountRequest, Action, Outcome};
use crate::reconcile::{Refusal, Wake};
use crate::store::Scope;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Registers accounts and keeps them registered.
#[derive(Debug)]
pub struct IssuerController {
    issuers: Resources<Issuer>,
    cluster_issuers: Resources<Issuer>,
    secrets: Resources<Secret>,
    accounts: Arc<Accounts>,
    /// Algorithm of account keys that this controller makes; given keys may be of any kind.
    new_keys: KeyAlgorithm,
    /// Whether a person replaces the providers of DNS-01, so that their Secrets are not needed.
    by_hand: bool,
    recorder: Recorder,
    keys: Arc<dyn KeyMaker>,
    /// Registrations that the CA refused: an equal request is useless.
    refused: PerIssuer<RegistrationBasis>,
    /// Revision of the Secret with a key that was made here and that no CA has seen before.
    made: PerIssuer<String>,
}

/// Basis of a registration: generation of the issuer, revisions of its Secrets.
type RegistrationBasis = (Option<i64>, Vec<String>);

/// Data gathered for one step.
struct Gathered {
    observed: Observed,
    key_secret: Option<Secret>,
    external_account: Option<ExternalAccount>,
    asked: RegistrationBasis,
}

impl IssuerController {
    /// Builds the controller; `new_keys` is the algorithm of the account keys that it makes.
    pub fn new(recorder: Recorder, accounts: Arc<Accounts>, new_keys: KeyAlgorithm) -> Self {
        let store = recorder.store();
        Self {
            issuers: Resources::new(Arc::clone(store), Kind::Issuer).written_by(source::ISSUERS),
            cluster_issuers: Resources::new(Arc::clone(store), Kind::ClusterIssuer)
                .written_by(source::CLUSTER_ISSUERS),
            secrets: Resources::new(Arc::clone(store), Kind::Secret),
            accounts,
            new_keys,
            by_hand: false,
            recorder,
            keys: Arc::new(KeysAside),
            refused: PerIssuer::default(),
            made: PerIssuer::default(),
        }
    }

    /// Returns the controller, with a person in place of the providers of DNS-01 if `by_hand` is true.
    #[must_use]
    pub fn by_hand(self, by_hand: bool) -> Self {
        Self { by_hand, ..self }
    }

    /// Returns the controller with another maker of account keys.
    #[must_use]
    pub fn making(self, keys: Arc<dyn KeyMaker>) -> Self {
        Self { keys, ..self }
    }

    fn of_kind(&self, kind: Kind) -> &Resources<Issuer> {
        if kind == Kind::ClusterIssuer { &self.cluster_issuers } else { &self.issuers }
    }

    async fn gather(&self, issuer: &Issuer, acme: &AcmeIssuer) -> Result<Gathered, StoreError> {
        let name = &acme.private_key_secret_ref.name;
        let key_secret = self.accounts.secret(issuer, name).await?;
        let key = match &key_secret {
            None => issuer::faults::AccountKey::Missing,
            Some(secret) => match accounts::account_key(acme, secret) {
                Ok(key) => issuer::faults::AccountKey::Usable(key.hash()),
                Err(why) => issuer::faults::AccountKey::Unusable(why),
            },
        };
        let mut revisions: Vec<String> = key_secret.iter().map(revision).collect();
        let mut secrets = BTreeMap::new();
        let named = acme.solvers.iter().filter_map(|solver| solver.dns01.as_deref());
        for selector in named.flat_map(Dns01Solver::secrets) {
            if self.by_hand {
                let keys = secrets.entry(selector.name.clone()).or_insert_with(BTreeSet::new);
                keys.insert(selector.key.clone());
            } else if let Some(secret) = self.accounts.secret(issuer, &selector.name).await? {
                let keys: BTreeSet<String> =
                    secret.data.into_keys().chain(secret.string_data.into_keys()).collect();
                secrets.insert(selector.name.clone(), keys);
            }
        }
        let mut external_account = Ok(None);
        if let Some(binding) = &acme.external_account_binding {
            let secret = self.accounts.secret(issuer, &binding.key_secret_ref.name).await?;
            revisions.extend(secret.iter().map(revision));
            let namespace = self.accounts.secret_namespace(issuer);
            let selector = &binding.key_secret_ref;
            external_account = account_secrets::mac_key(secret.as_ref(), selector, namespace)
                .map(|mac_key| Some(ExternalAccount { key_id: binding.key_id.clone(), mac_key }));
        }
        let asked = (issuer.metadata.generation, revisions);
        let refused = self.refused.get(issuer).as_ref() == Some(&asked);
        let (external_account, fault) = match external_account {
            Ok(account) => (account, Ok(())),
            Err(why) => (None, Err(why)),
        };
        let observed = Observed { key, external_account: fault, secrets, refused };
        Ok(Gathered { observed, key_secret, external_account, asked })
    }

    /// Makes an account key, PEM.
    async fn new_key(&self, algorithm: KeyAlgorithm) -> Result<Zeroizing<String>, ReconcileError> {
        let made = self.keys.make(algorithm).await;
        let pem = made.and_then(AccountKey::from_key).and_then(|key| key.to_pem());
        pem.map_err(|why| ReconcileError::Missing(format!("cannot make account key: {why}")))
    }

    async fn generate_key(
        &self,
        issuer: &Issuer,
        acme: &AcmeIssuer,
    ) -> Result<Outcome, ReconcileError> {
        let pem = self.new_key(self.new_keys).await?;
        let namespace = self.accounts.secret_namespace(issuer);
        let secret = account_secrets::new_secret(acme, namespace, &pem);
        let made = self.secrets_of(issuer).create(&secret).await?;
        self.made.insert(issuer, revision(&made));
        Ok(Outcome::KeyStored)
    }

    /// Replaces a key that was made here by one of another algorithm, if the CA's refusal names the accepted ones. Only
    /// once: any further refusal is reported.
    async fn replace_key(
        &self,
        issuer: &Issuer,
        acme: &AcmeIssuer,
        secret: Option<&Secret>,
        refusal: &AcmeError,
    ) -> Result<Option<Outcome>, ReconcileError> {
        let (Some(secret), Some(problem)) = (secret, refusal.problem()) else { return Ok(None) };
        let is_made_here = self.made.get(issuer).as_ref() == Some(&revision(secret));
        let is_of_key = matches!(problem.short_kind(), "badPublicKey" | "badSignatureAlgorithm");
        let Some(taken) = AccountKey::algorithm_among(&problem.algorithms) else { return Ok(None) };
        let known = accounts::account_key(acme, secret).map(|key| key.algorithm());
        if !is_made_here || !is_of_key || known == Ok(taken) {
            return Ok(None);
        }
        let pem = self.new_key(taken).await?;
        let mut changed = secret.clone();
        changed.data.insert(accounts::key_in_secret(acme), Blob(pem.as_bytes().to_vec()));
        self.secrets_of(issuer).replace(&changed).await?;
        Ok(Some(Outcome::KeyStored))
    }

    /// Returns the Secrets, written in the name of an issuer's controller.
    fn secrets_of(&self, issuer: &Issuer) -> Resources<Secret> {
        self.secrets.clone().written_by(issuer::writer(issuer))
    }

    async fn register(
        &self,
        issuer: &Issuer,
        gathered: &Gathered,
        contact: Vec<String>,
        now: Timestamp,
    ) -> Result<Result<AccountReply, AcmeError>, ReconcileError> {
        let Some(secret) = &gathered.key_secret else {
            return Err(ReconcileError::Missing("the account key is gone".to_owned()));
        };
        let session = self.accounts.open(issuer, secret)?;
        match session.directory().await {
            // A refusal of the directory says nothing about the account, and the next directory may be another.
            Err(error) if error.retry() == Retry::Never && is_refused_otherwise(&error) => {
                let outcome = Outcome::Unreachable(AccountRequest::Register, error.to_string());
                self.keep(issuer, outcome, now).await?;
                return Err(error.into());
            }
            Err(error) => return Ok(Err(error)),
            Ok(_) => {}
        }
        let external_account = gathered.external_account.clone();
        let registration = Registration { contact, external_account, only_return_existing: false };
        Ok(session.register(&registration).await)
    }

    /// Finishes a key roll-over that was begun earlier.
    async fn finish_rollover(&self, issuer: &Issuer) -> Result<Wake, ReconcileError> {
        if let RolloverEnd::Refused(error) = self.accounts.finish_rollover(issuer).await? {
            let (kind, name) = (issuer.issuer_kind(), issuer.name());
            warn!("{kind} {name} keeps its account key: {error}");
        }
        Ok(Wake::Now)
    }

    /// Records an outcome.
    async fn keep(
        &self,
        issuer: &Issuer,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<Wake, StoreError> {
        let recorded = issuer::record(issuer, outcome, now);
        let resources = self.of_kind(issuer.issuer_kind());
        self.recorder.keep(resources, issuer, Some(Holder::Issuer), recorded, now).await?;
        Ok(Wake::Now)
    }

    /// Records the outcome of a failed request; a transport error is left for the driver to try again.
    async fn record_failure(
        &self,
        issuer: &Issuer,
        deed: AccountRequest,
        error: AcmeError,
        asked: RegistrationBasis,
        now: Timestamp,
    ) -> Result<Wake, ReconcileError> {
        match (error.retry(), error) {
            (Retry::Never, AcmeError::Refused { problem, .. }) => {
                let refusal = Refusal::Final(problem);
                let wake = self.keep(issuer, Outcome::Refused(deed, refusal), now).await?;
                // Only now: a refusal that was not stored has to be received again.
                self.refused.insert(issuer, asked);
                Ok(wake)
            }
            (Retry::At(at), AcmeError::Refused { problem, .. }) => {
                let refusal = Refusal::Until(problem, at);
                Ok(self.keep(issuer, Outcome::Refused(deed, refusal), now).await?)
            }
            (_, error) => {
                self.keep(issuer, Outcome::Unreachable(deed, error.to_string()), now).await?;
                Err(error.into())
            }
        }
    }
}

/// Returns whether a directory request is refused, but not with 404: then its URL is wrong, for a person to mend.
fn is_refused_otherwise(error: &AcmeError) -> bool {
    error.problem().is_some_and(|problem| problem.status != 404)
}

#[async_trait]
impl Controller for IssuerController {
    fn watches(&self) -> &'static [Kind] {
        &[Kind::Issuer, Kind::ClusterIssuer, Kind::Secret]
    }

    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
        if changed.key.kind != Kind::Secret {
            return Ok(vec![changed.key.clone()]);
        }
        let ObjectName { namespace, name } = &changed.key.name;
        let mut issuers = self.issuers.list(&Scope::namespace(namespace)).await?;
        issuers.extend(self.cluster_issuers.list(&Scope::all()).await?);
        issuers.retain(|issuer| {
            self.accounts.secret_namespace(issuer) == namespace
                && account_secrets::names_secret(issuer, name)
        });
        Ok(issuers.iter().map(|issuer| Key::new(issuer.issuer_kind(), issuer.name())).collect())
    }

    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileFailure> {
        let known = self.of_kind(key.kind).get_known(&key.name).await?;
        let Some((issuer, acme)) = known.as_ref().and_then(|i| Some((i, i.spec.acme.as_ref()?)))
        else {
            self.accounts.forget(key);
            self.refused.forget(key);
            self.made.forget(key);
            return Ok(Wake::OnChange);
        };
        let gathered = self.gather(issuer, acme).await?;
        let key_secret = gathered.key_secret.as_ref();
        if key_secret.is_some_and(|secret| accounts::is_being_changed(acme, secret)) {
            return Ok(self.finish_rollover(issuer).await?);
        }
        let outcome = match issuer::next_action(issuer, &gathered.observed, now) {
            Action::Wait(wake) => return Ok(wake),
            Action::Conclude(outcome) => outcome,
            Action::GenerateKey => self.generate_key(issuer, acme).await?,
            Action::Register(contact) => {
                match self.register(issuer, &gathered, contact, now).await? {
                    Ok(AccountReply { url, contact, .. }) => {
                        let issuer::faults::AccountKey::Usable(key_hash) = gathered.observed.key
                        else {
                            return Ok(Wake::Now);
                        };
                        Outcome::Registered { url, contact, key_hash }
                    }
                    Err(error) => {
                        let secret = gathered.key_secret.as_ref();
                        let replaced = self.replace_key(issuer, acme, secret, &error).await?;
                        let Some(outcome) = replaced else {
                            let asked = gathered.asked;
                            return Ok(self
                                .record_failure(issuer, AccountRequest::Register, error, asked, now)
                                .await?);
                        };
                        outcome
                    }
                }
            }
            Action::UpdateContact(contact) => {
                let session = self.accounts.session(issuer).await?;
                match session.update_contact(&contact).await {
                    Ok(_) => Outcome::ContactUpdated,
                    Err(error) => {
                        let asked = gathered.asked;
                        return Ok(self
                            .record_failure(
                                issuer,
                                AccountRequest::UpdateContact,
                                error,
                                asked,
                                now,
                            )
                            .await?);
                    }
                }
            }
        };
        Ok(self.keep(issuer, outcome, now).await?)
    }
}

fn revision(secret: &Secret) -> String {
    format!("{}/{}", secret.metadata.uid, secret.metadata.resource_version)
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controllers::testing::{Desk, account, refusal, unreachable_ca};
    use crate::model::Problem;
    use crate::model::common::condition;

    fn now() -> Timestamp {
        "2026-11-21T04:30:25Z".parse().unwrap()
    }

    fn issuer(acme: Value) -> Value {
        let mut plain = json!({
            "server": "https://ca.example/dir", "email": "ops@example.com",
            "privateKeySecretRef": {"name": "acme-account"},
        });
        for (key, value) in acme.as_object().unwrap() {
            plain[key] = value.clone();
        }
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "acme", "namespace": "web"}, "spec": {"acme": plain},
        })
    }

    struct Bench {
        desk: Desk,
        controller: IssuerController,
    }

    async fn bench(acme: Value) -> Bench {
        bench_making(KeyAlgorithm::Ecdsa(256), acme).await
    }

    async fn bench_making(new_keys: KeyAlgorithm, acme: Value) -> Bench {
        let desk = Desk::new();
        let accounts = Arc::clone(&desk.accounts);
        let controller = IssuerController::new(desk.recorder(), accounts, new_keys);
        desk.create(issuer(acme)).await;
        Bench { desk, controller }
    }

    impl Bench {
        fn will_answer(&self, answer: Result<AccountReply, AcmeError>) {
            self.desk.ca.answers.lock().push_back(answer);
        }

        async fn settle(&self) -> Result<Wake, ReconcileError> {
            self.desk.settle(&self.controller, Kind::Issuer, "acme", now()).await
        }

        /// Checks the requests to the CA, and the Issuer's condition after them.
        async fn check(&self, asked: &[&str], ready: &str) {
            assert_eq!(*self.desk.ca.asked.lock(), asked);
            let issuer: Issuer = self.desk.get(Kind::Issuer, "acme").await.unwrap();
            let shown = condition(&issuer.status.conditions, "Ready");
            assert_eq!(
                shown.map(|c| format!("{} {}", c.reason, c.message)).as_deref(),
                Some(ready)
            );
        }
    }

    const REGISTERED: &str =
        "ACMEAccountRegistered The ACME account was registered with the ACME server";
    const ONCE: [&str; 1] = ["register mailto:ops@example.com"];

    #[tokio::test]
    async fn a_new_issuer_has_its_key_stored_and_is_registered_once() {
        let bench = bench(json!({})).await;
        bench.will_answer(Ok(account("mailto:ops@example.com")));
        assert_eq!(bench.settle().await.unwrap(), Wake::OnChange);
        assert_eq!(bench.settle().await.unwrap(), Wake::OnChange);
        bench.check(&ONCE, REGISTERED).await;
        let issuer: Issuer = bench.desk.get(Kind::Issuer, "acme").await.unwrap();
        let session = bench.desk.accounts.session(&issuer).await.unwrap();
        assert_eq!(session.account_url().as_deref(), Some("https://ca.example/account/1"));
    }

    #[tokio::test]
    async fn nothing_is_remembered_of_an_issuer_that_is_gone() {
        let bench = bench(json!({})).await;
        bench.will_answer(Ok(account("mailto:ops@example.com")));
        bench.settle().await.unwrap();
        let remembered = || format!("{:?}", bench.desk.accounts);
        assert_eq!(remembered(), "Accounts(1 sessions)");
        let key = Key::new(Kind::Issuer, ObjectName::new("web", "acme"));
        bench.desk.store.delete(&key).await.unwrap();
        assert_eq!(bench.settle().await.unwrap(), Wake::OnChange);
        assert_eq!(remembered(), "Accounts(0 sessions)");
    }

    #[tokio::test]
    async fn account_keys_are_of_the_sort_that_this_place_wants() {
        for (new_keys, header) in [
            (KeyAlgorithm::Ecdsa(256), "-----BEGIN EC PRIVATE KEY-----"),
            (KeyAlgorithm::Rsa(2048), "-----BEGIN RSA PRIVATE KEY-----"),
        ] {
            let bench = bench_making(new_keys, json!({})).await;
            bench.will_answer(Ok(account("mailto:ops@example.com")));
            bench.settle().await.unwrap();
            bench.check(&ONCE, REGISTERED).await;
            let secret: Secret = bench.desk.get(Kind::Secret, "acme-account").await.unwrap();
            assert!(secret.value("tls.key").unwrap().starts_with(header.as_bytes()), "{new_keys}");
        }
    }

    #[tokio::test]
    async fn a_forgotten_account_is_registered_again_with_the_same_key() {
        let bench = bench(json!({})).await;
        bench.will_answer(Ok(account("mailto:ops@example.com")));
        bench.settle().await.unwrap();
        let before: Secret = bench.desk.get(Kind::Secret, "acme-account").await.unwrap();
        let issuer: Issuer = bench.desk.get(Kind::Issuer, "acme").await.unwrap();
        bench.desk.accounts.account_is_gone(&issuer, now()).await.unwrap();
        bench.will_answer(Ok(account("mailto:ops@example.com")));
        bench.settle().await.unwrap();
        bench.check(&[ONCE[0], ONCE[0]], REGISTERED).await;
        assert!(bench.desk.get::<Secret>(Kind::Secret, "acme-account").await == Some(before));
    }

    #[tokio::test]
    async fn those_who_asked_in_the_name_of_a_forgotten_account_look_again() {
        let bench = bench(json!({})).await;
        bench.will_answer(Ok(account("mailto:ops@example.com")));
        bench.settle().await.unwrap();
        let first: Issuer = bench.desk.get(Kind::Issuer, "acme").await.unwrap();
        let is_gone = async |issuer: &Issuer, now| match bench
            .desk
            .accounts
            .account_is_gone(issuer, now)
            .await
        {
            Err(StoreError::Conflict { .. }) => None,
            known => Some(known.unwrap()),
        };
        assert_eq!(is_gone(&first, now()).await, Some(true));
        assert_eq!(is_gone(&first, now()).await, None);
        bench.will_answer(Ok(account("mailto:ops@example.com")));
        bench.settle().await.unwrap();
        let second: Issuer = bench.desk.get(Kind::Issuer, "acme").await.unwrap();
        assert_eq!(is_gone(&first, now()).await, None);
        let mut between = first.clone();
        between.metadata.resource_version = "0".into();
        assert_eq!(is_gone(&between, now()).await, None);
        // The account that was registered since is not known either.
        assert_eq!(is_gone(&second, now()).await, Some(false));
        let later = now() + jiff::SignedDuration::from_secs(61);
        assert_eq!(is_gone(&second, later).await, Some(true));
    }

    #[tokio::test]
    async fn a_refusal_is_told_and_asked_again_only_after_a_change() {
        let bench = bench(json!({})).await;
        bench.will_answer(refusal(400, None));
        assert_eq!(bench.settle().await.unwrap(), Wake::OnChange);
        bench
            .check(&ONCE, "ErrRegisterACMEAccount Failed to register ACME account: 400 urn:x: no")
            .await;
        assert_eq!(bench.desk.events().await, ["ErrRegisterACMEAccount"]);

        let mut changed: Issuer = bench.desk.get(Kind::Issuer, "acme").await.unwrap();
        changed.spec.acme.as_mut().unwrap().email = "new@example.com".into();
        bench.controller.issuers.replace(&changed).await.unwrap();
        bench.will_answer(Ok(account("mailto:new@example.com")));
        bench.settle().await.unwrap();
        bench.check(&[ONCE[0], "register mailto:new@example.com"], REGISTERED).await;
    }

    /// The CA's refusal of an account key, with the signature algorithms that it takes.
    fn refused_key(taken: &[&str]) -> Result<AccountReply, AcmeError> {
        let problem = Problem {
            kind: "urn:ietf:params:acme:error:badSignatureAlgorithm".into(),
            status: 400,
            detail: "no".into(),
            algorithms: taken.iter().map(|name| (*name).to_owned()).collect(),
            ..Problem::default()
        };
        Err(AcmeError::Refused { problem: Box::new(problem), retry_after: None, location: None })
    }

    /// The kind of the account key that is stored.
    async fn stored_key(bench: &Bench) -> KeyAlgorithm {
        let secret: Secret = bench.desk.get(Kind::Secret, "acme-account").await.unwrap();
        AccountKey::from_pem(secret.value("tls.key").unwrap()).unwrap().algorithm()
    }

    #[tokio::test]
    async fn a_new_account_gets_a_key_of_a_kind_that_the_ca_takes() {
        let bench = bench(json!({})).await;
        bench.will_answer(refused_key(&["EdDSA", "RS256"]));
        bench.will_answer(Ok(account("mailto:ops@example.com")));
        assert_eq!(bench.settle().await.unwrap(), Wake::OnChange);
        bench.check(&[ONCE[0], ONCE[0]], REGISTERED).await;
        assert_eq!(stored_key(&bench).await, KeyAlgorithm::Rsa(2048));
    }

    #[tokio::test]
    async fn a_key_is_replaced_once_and_only_one_that_was_made_here() {
        const REFUSED: &str = "ErrRegisterACMEAccount Failed to register ACME account: \
                               400 urn:ietf:params:acme:error:badSignatureAlgorithm: no (the CA takes ";
        let fresh = bench(json!({})).await;
        fresh.will_answer(refused_key(&["RS256"]));
        fresh.will_answer(refused_key(&["ES384"]));
        fresh.settle().await.unwrap();
        fresh.check(&[ONCE[0], ONCE[0]], &format!("{REFUSED}ES384)")).await;
        let given = bench(json!({})).await;
        let pem = account_secrets::make_key(KeyAlgorithm::Ecdsa(256)).unwrap();
        given
            .desk
            .create(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "acme-account", "namespace": "web"},
                "stringData": {"tls.key": pem.as_str()},
            }))
            .await;
        given.will_answer(refused_key(&["RS256"]));
        given.settle().await.unwrap();
        given.check(&ONCE, &format!("{REFUSED}RS256)")).await;
        assert_eq!(stored_key(&given).await, KeyAlgorithm::Ecdsa(256));
    }

    #[tokio::test]
    async fn a_ca_that_asks_for_patience_gets_it() {
        let bench = bench(json!({})).await;
        let later = now() + jiff::SignedDuration::from_secs(20);
        bench.will_answer(refusal(429, Some(later)));
        assert_eq!(bench.settle().await.unwrap(), Wake::At(later));
        let message =
            "Failed to register ACME account: 429 urn:x: no; next try at 2026-11-21T04:30:45Z";
        bench.check(&ONCE, &format!("ErrRegisterACMEAccount {message}")).await;
    }

    #[tokio::test]
    async fn a_ca_that_does_not_answer_is_told_and_left_to_the_driver() {
        let bench = bench(json!({})).await;
        bench.will_answer(unreachable_ca());
        let error = bench.settle().await.unwrap_err();
        assert_eq!(error.retry(), Retry::Backoff);
        bench
            .check(
                &ONCE,
                &format!("ErrRegisterACMEAccount Failed to register ACME account: {error}"),
            )
            .await;
        assert_eq!(bench.desk.events().await, ["ErrInitIssuer"]);
    }

    #[tokio::test]
    async fn an_external_account_needs_its_key_and_wakes_by_it() {
        let binding = json!({"keyID": "kid-1", "keySecretRef": {"name": "eab", "key": "hmac"}});
        let bench = bench(json!({"externalAccountBinding": binding})).await;
        bench.settle().await.unwrap();
        let message = "ErrRegisterACMEAccount Failed to register ACME account: secrets \"eab\" not found in namespace \"web\"";
        bench.check(&[], message).await;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "eab", "namespace": "web"},
            "stringData": {"hmac": "c2VjcmV0LWhtYWM\n"},
        });
        let woken = bench.controller.wakes(&Record::new(secret.clone()).unwrap()).await.unwrap();
        assert_eq!(woken.len(), 1);
        bench.desk.create(secret).await;
        bench.will_answer(Ok(account("mailto:ops@example.com")));
        bench.settle().await.unwrap();
        bench.check(&["register mailto:ops@example.com as kid-1"], REGISTERED).await;
    }
}
