//! Issuer: registration of the account, and its upkeep.

pub mod faults;

use jiff::Timestamp;
use url::Url;

use self::faults::{AccountKey, Fault, Observed};
use super::{NEXT_TRY, Note, Recorded, Refusal, Wake};
use crate::model::cause::About;
use crate::model::common::{condition, is_true, set_condition};
use crate::model::event::{reason, source};
use crate::model::issuer::{AcmeIssuer, AcmeIssuerStatus};
use crate::model::memory::{Holder, Memory};
use crate::model::{Condition, ConditionStatus, Issuer, IssuerStatus};

/// Next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Records this outcome, and does nothing else.
    Conclude(Outcome),
    /// Generates an account key and stores it.
    GenerateKey,
    /// Registers an account with this contact (newAccount, RFC 8555 §7.3).
    Register(Vec<String>),
    /// Replaces the account's contact (RFC 8555 §7.3.2).
    UpdateContact(Vec<String>),
    /// Waits.
    Wait(Wake),
}

/// Outcome of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The CA no longer knows the account.
    AccountGone,
    /// The account in the status is the wanted one.
    Confirmed,
    /// The account has the contact of the spec.
    ContactUpdated,
    /// A new key is stored, which no CA knows.
    KeyStored,
    /// The CA refused a request.
    Refused(AccountRequest, Refusal),
    /// The CA has this account.
    Registered {
        /// Account URL; empty if the reply has none.
        url: String,
        /// Contact that the CA keeps; `None` if it keeps none.
        contact: Option<Vec<String>>,
        /// Hash of the key that the account was registered with.
        key_hash: String,
    },
    /// The CA did not reply: why, in words that stay the same from try to try.
    Unreachable(AccountRequest, String),
    /// Only a change of the Issuer or of a Secret helps.
    Unusable(Fault),
}

/// Request to the CA about an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountRequest {
    /// newAccount.
    Register,
    /// Update of the account.
    UpdateContact,
}

/// Decides what to do next.
pub fn next_action(issuer: &Issuer, observed: &Observed, now: Timestamp) -> Action {
    let Some(acme) = issuer.spec.acme.as_ref().filter(|_| !issuer.metadata.is_deleted()) else {
        return Action::Wait(Wake::OnChange);
    };
    if let Some(fault) = faults::outdated_endpoint(acme) {
        return conclude_once(issuer, Outcome::Unusable(fault), now);
    }
    if observed.key == AccountKey::Missing && !acme.disable_account_key_generation {
        return Action::GenerateKey;
    }
    if let Some(fault) = faults::of_set_up(acme, observed) {
        return conclude_once(issuer, Outcome::Unusable(fault), now);
    }
    let registered = has_account(issuer, acme, observed);
    if registered && registered_email(issuer) == acme.email {
        return conclude_once(issuer, Outcome::Confirmed, now);
    }
    let binding = faults::of_external_account(observed).filter(|_| !registered);
    if let Some(fault) = binding {
        return conclude_once(issuer, Outcome::Unusable(fault), now);
    }
    // A missing condition means that another attempt was asked for.
    if observed.refused && condition(&issuer.status.conditions, "Ready").is_some() {
        return Action::Wait(Wake::OnChange);
    }
    match next_try(issuer).filter(|at| *at > now) {
        Some(at) => Action::Wait(Wake::At(at)),
        None if registered => Action::UpdateContact(contact(&acme.email)),
        None => Action::Register(contact(&acme.email)),
    }
}

/// Returns when the CA wants to be asked again; a changed spec need not wait.
fn next_try(issuer: &Issuer) -> Option<Timestamp> {
    let ready = condition(&issuer.status.conditions, "Ready")?;
    let asked_for_this = ready.observed_generation == issuer.metadata.generation;
    Memory::read(Holder::Issuer, &issuer.metadata.annotations).next_try.filter(|_| asked_for_this)
}

/// Returns whether the status names an account of this key at this CA.
fn has_account(issuer: &Issuer, acme: &AcmeIssuer, observed: &Observed) -> bool {
    let Some(account) = issuer.status.acme.as_ref().filter(|account| !account.uri.is_empty())
    else {
        return false;
    };
    let memory = Memory::read(Holder::Issuer, &issuer.metadata.annotations);
    let at_this_ca = is_on_one_host(&account.uri, &acme.server)
        || memory.account_of.as_ref() == Some(&acme.server);
    let hash = &account.last_private_key_hash;
    at_this_ca && observed.key == AccountKey::Usable(hash.clone())
}

/// Returns whether an account is at this CA by cert-manager's rule, the same host and port; some CAs have another host.
fn is_on_one_host(uri: &str, server: &str) -> bool {
    let host = |text: &str| {
        let url = Url::parse(text).ok()?;
        Some((url.host_str()?.to_owned(), url.port_or_known_default()))
    };
    host(uri).is_some_and(|of| Some(of) == host(server))
}

fn registered_email(issuer: &Issuer) -> &str {
    issuer.status.acme.as_ref().map_or("", |account| &account.last_registered_email)
}

/// Returns the contact as sent to the CA; addresses are lower-cased, as in cert-manager.
pub fn contact(email: &str) -> Vec<String> {
    if email.is_empty() { Vec::new() } else { vec![format!("mailto:{}", email.to_lowercase())] }
}

/// Concludes with an outcome, or waits if recording it would change nothing.
fn conclude_once(issuer: &Issuer, outcome: Outcome, now: Timestamp) -> Action {
    if record(issuer, outcome.clone(), now).status == issuer.status {
        return Action::Wait(Wake::OnChange);
    }
    Action::Conclude(outcome)
}

/// Returns whether the status calls the Issuer ready for its present spec.
pub fn is_ready(issuer: &Issuer) -> bool {
    condition(&issuer.status.conditions, "Ready").is_some_and(|ready| {
        ready.status == ConditionStatus::True
            && ready.observed_generation == issuer.metadata.generation
    })
}

/// Returns whether the status calls the Issuer ready and names the account of its spec. cert-manager checks no more
/// than that and then leaves the generation of its condition behind.
pub fn is_ready_to_cert_manager(issuer: &Issuer) -> bool {
    let has_account = |acme: &AcmeIssuer| {
        let account = issuer.status.acme.as_ref();
        account.is_some_and(|account| is_on_one_host(&account.uri, &acme.server))
            && registered_email(issuer) == acme.email
    };
    is_ready(issuer)
        || is_true(&issuer.status.conditions, "Ready")
            && issuer.spec.acme.as_ref().is_some_and(has_account)
}

/// Folds an outcome into status, memory and notes.
pub fn record(issuer: &Issuer, outcome: Outcome, now: Timestamp) -> Recorded<IssuerStatus> {
    let mut new = Recorded {
        status: issuer.status.clone(),
        memory: Memory::read(Holder::Issuer, &issuer.metadata.annotations),
        notes: Vec::new(),
    };
    let unreachable_since = new.memory.unreachable_since.take();
    let email = issuer.spec.acme.as_ref().map_or("", |acme| &acme.email);
    match outcome {
        Outcome::Confirmed => set_registered(issuer, &mut new, now),
        Outcome::ContactUpdated => {
            email.clone_into(&mut account(&mut new.status).last_registered_email);
            set_registered(issuer, &mut new, now);
        }
        Outcome::AccountGone => {
            forget_account(&mut new.status);
            // No request is made for this account until it is registered again.
            new.status.conditions.retain(|condition| condition.kind != "Ready");
        }
        Outcome::KeyStored => forget_account(&mut new.status),
        Outcome::Registered { url, contact: kept, key_hash } => {
            let server = issuer.spec.acme.as_ref().map_or("", |acme| &acme.server);
            let account = account(&mut new.status);
            if !url.is_empty() {
                account.uri = url;
            }
            let elsewhere = !is_on_one_host(&account.uri, server);
            new.memory.account_of = elsewhere.then(|| server.to_owned());
            account.last_private_key_hash = key_hash;
            let same = kept.as_ref().is_none_or(|kept| lower(kept) == contact(email));
            let kept = kept.unwrap_or_default();
            account.last_registered_email = if same { email.to_owned() } else { address(&kept) };
            if same {
                set_registered(issuer, &mut new, now);
            }
        }
        Outcome::Refused(deed, Refusal::Final(problem)) => {
            let message = format!("{}{problem}", deed.failure_prefix());
            new.memory.problem = Some(About::new(&message, problem.kept()));
            new.notes.push(warning(issuer, deed.reason(), message.clone()));
            set_ready(issuer, &mut new, ConditionStatus::False, deed.reason(), message, now);
        }
        Outcome::Refused(deed, Refusal::Until(problem, at)) => {
            // The event has equal words each time, so that a repeat is counted.
            let (reason, told) = match problem.status {
                500.. => (reason::ERR_INIT_ISSUER, format!("Error initializing issuer: {problem}")),
                _ => (deed.reason(), format!("{}{problem}", deed.failure_prefix())),
            };
            new.notes.push(warning(issuer, reason, told));
            let message = format!("{}{problem}{NEXT_TRY}{at:.0}", deed.failure_prefix());
            new.memory.problem = Some(About::new(&message, problem.kept()));
            set_ready(issuer, &mut new, ConditionStatus::False, deed.reason(), message, now);
            new.memory.next_try = Some(at);
        }
        Outcome::Unreachable(deed, why) => {
            let event = format!("Error initializing issuer: {why}");
            new.notes.push(warning(issuer, reason::ERR_INIT_ISSUER, event));
            let message = format!("{}{why}", deed.failure_prefix());
            set_ready(issuer, &mut new, ConditionStatus::False, deed.reason(), message, now);
            new.memory.unreachable_since = unreachable_since.or(Some(now));
        }
        Outcome::Unusable(Fault { reason, message, event }) => {
            new.notes.extend(event.map(|(reason, text)| warning(issuer, reason, text)));
            set_ready(issuer, &mut new, ConditionStatus::False, reason, message, now);
        }
    }
    new
}

impl AccountRequest {
    /// Returns the start of the message of a failure; the missing space is cert-manager's.
    fn failure_prefix(self) -> &'static str {
        match self {
            Self::Register => "Failed to register ACME account: ",
            Self::UpdateContact => "Failed to update ACME account:",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Register => reason::ERR_REGISTER_ACME_ACCOUNT,
            Self::UpdateContact => reason::ERR_UPDATE_ACME_ACCOUNT,
        }
    }
}

fn account(status: &mut IssuerStatus) -> &mut AcmeIssuerStatus {
    status.acme.get_or_insert_default()
}

fn forget_account(status: &mut IssuerStatus) {
    if let Some(account) = &mut status.acme {
        account.uri.clear();
    }
}

fn lower(contact: &[String]) -> Vec<String> {
    contact.iter().map(|url| url.to_lowercase()).collect()
}

/// Returns the first address of a contact, in the form of `lastRegisteredEmail`.
fn address(contact: &[String]) -> String {
    let first = contact.first().map_or("", String::as_str);
    first.strip_prefix("mailto:").unwrap_or(first).to_owned()
}

/// Returns the controller name under which an Issuer and its account key are written, from [`source`].
pub fn writer(issuer: &Issuer) -> &'static str {
    if issuer.is_cluster() { source::CLUSTER_ISSUERS } else { source::ISSUERS }
}

fn warning(issuer: &Issuer, reason: &'static str, message: String) -> Note {
    Note::warning(writer(issuer), reason, message)
}

fn set_registered(issuer: &Issuer, new: &mut Recorded<IssuerStatus>, now: Timestamp) {
    let message = "The ACME account was registered with the ACME server".to_owned();
    let reason = reason::ACME_ACCOUNT_REGISTERED;
    set_ready(issuer, new, ConditionStatus::True, reason, message, now);
    new.memory.next_try = None;
}

fn set_ready(
    issuer: &Issuer,
    new: &mut Recorded<IssuerStatus>,
    status: ConditionStatus,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let ready = Condition {
        kind: "Ready".to_owned(),
        status,
        reason: reason.to_owned(),
        message,
        last_transition_time: None,
        observed_generation: issuer.metadata.generation,
    };
    set_condition(&mut new.status.conditions, ready, now);
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::{Value, json};

    use super::*;
    use crate::model::Problem;
    use crate::reconcile::testing::at;

    const REGISTERED: &str =
        "True ACMEAccountRegistered The ACME account was registered with the ACME server";

    /// An Issuer `acme` whose `spec.acme` was changed like that.
    fn issuer(change: Value) -> Issuer {
        let mut acme = json!({
            "server": "https://ca.example/dir", "email": "ops@example.com",
            "privateKeySecretRef": {"name": "acme-account"},
        });
        for (key, value) in change.as_object().unwrap() {
            acme[key] = value.clone();
        }
        serde_json::from_value(json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "acme", "namespace": "web", "generation": 1},
            "spec": {"acme": acme},
        }))
        .unwrap()
    }

    fn has_key() -> Observed {
        Observed {
            key: AccountKey::Usable("hash".into()),
            external_account: Ok(()),
            secrets: BTreeMap::new(),
            refused: false,
        }
    }

    fn without_key() -> Observed {
        Observed { key: AccountKey::Missing, ..has_key() }
    }

    fn registered_as(contact: &[&str]) -> Outcome {
        Outcome::Registered {
            url: "https://ca.example/account/1".into(),
            contact: Some(contact.iter().map(|url| (*url).into()).collect()),
            key_hash: "hash".into(),
        }
    }

    fn refused(until: Option<Timestamp>) -> Outcome {
        let problem = Box::new(Problem {
            kind: "urn:ietf:params:acme:error:rateLimited".into(),
            status: 429,
            detail: "slow down".into(),
            ..Problem::default()
        });
        let refusal = match until {
            Some(at) => Refusal::Until(problem, at),
            None => Refusal::Final(problem),
        };
        Outcome::Refused(AccountRequest::Register, refusal)
    }

    /// Folds outcomes into an Issuer, one after the other.
    fn after(mut issuer: Issuer, outcomes: &[Outcome]) -> Issuer {
        for outcome in outcomes {
            let new = record(&issuer, outcome.clone(), at(0));
            new.memory.write(Holder::Issuer, &mut issuer.metadata.annotations);
            issuer.status = new.status;
        }
        issuer
    }

    fn ready(issuer: &Issuer) -> String {
        let ready = condition(&issuer.status.conditions, "Ready");
        ready.map_or_else(String::new, |c| format!("{:?} {} {}", c.status, c.reason, c.message))
    }

    /// Next action for an Issuer; of a conclusion the condition it leads to, and whether there is an event about it.
    fn check(issuer: &Issuer, observed: &Observed, expected: &str) {
        let shown = match next_action(issuer, observed, at(0)) {
            Action::Conclude(outcome) => {
                let new = record(issuer, outcome, at(0));
                let told = if new.notes.is_empty() { "" } else { "(event) " };
                format!("{told}{}", ready(&Issuer { status: new.status, ..issuer.clone() }))
            }
            Action::GenerateKey => "generate a key".to_owned(),
            Action::Register(contact) => format!("register {contact:?}"),
            Action::UpdateContact(contact) => format!("update {contact:?}"),
            Action::Wait(wake) => format!("wait {wake:?}"),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_new_issuer_stores_its_key_and_then_registers_once() {
        let fresh = issuer(json!({}));
        check(&fresh, &without_key(), "generate a key");
        check(
            &after(fresh.clone(), &[Outcome::KeyStored]),
            &has_key(),
            "register [\"mailto:ops@example.com\"]",
        );
        let registered =
            after(fresh, &[Outcome::KeyStored, registered_as(&["mailto:ops@example.com"])]);
        assert_eq!(ready(&registered), REGISTERED);
        let account = registered.status.acme.clone().unwrap();
        assert_eq!(account.uri, "https://ca.example/account/1");
        assert_eq!(
            (account.last_registered_email.as_str(), account.last_private_key_hash.as_str()),
            ("ops@example.com", "hash")
        );
        check(&registered, &has_key(), "wait OnChange");
    }

    #[test]
    fn an_upper_case_address_is_sent_in_lower_case_and_kept_as_written() {
        let fresh = issuer(json!({"email": "Ops@Example.com"}));
        check(&fresh, &has_key(), "register [\"mailto:ops@example.com\"]");
        let registered = after(fresh, &[registered_as(&["mailto:ops@example.com"])]);
        assert_eq!(
            registered.status.acme.as_ref().unwrap().last_registered_email,
            "Ops@Example.com"
        );
        check(&registered, &has_key(), "wait OnChange");
    }

    #[test]
    fn an_account_that_was_there_gets_the_address_of_the_spec() {
        let found = after(issuer(json!({})), &[registered_as(&["mailto:old@example.com"])]);
        assert_eq!(ready(&found), "");
        check(&found, &has_key(), "update [\"mailto:ops@example.com\"]");
        let updated = after(found, &[Outcome::ContactUpdated]);
        assert_eq!(ready(&updated), REGISTERED);
        assert_eq!(updated.status.acme.as_ref().unwrap().uri, "https://ca.example/account/1");
        check(&updated, &has_key(), "wait OnChange");
    }

    #[test]
    fn a_ca_that_keeps_no_contact_is_not_told_twice() {
        let outcome = Outcome::Registered {
            url: "https://ca.example/account/1".into(),
            contact: None,
            key_hash: "hash".into(),
        };
        check(&after(issuer(json!({})), &[outcome]), &has_key(), "wait OnChange");
    }

    #[test]
    fn what_concerns_the_account_asks_the_ca_and_the_rest_does_not() {
        let change = |spec: Value| {
            let mut changed =
                after(issuer(json!({})), &[registered_as(&["mailto:ops@example.com"])]);
            changed.spec = issuer(spec).spec;
            changed.metadata.generation = Some(2);
            changed
        };
        for (spec, expected) in [
            (json!({"email": "new@example.com"}), "update [\"mailto:new@example.com\"]"),
            (json!({"email": ""}), "update []"),
            (
                json!({"server": "https://other.example/dir"}),
                "register [\"mailto:ops@example.com\"]",
            ),
            (
                json!({"server": "https://ca.example:444/dir"}),
                "register [\"mailto:ops@example.com\"]",
            ),
            (json!({"solvers": [{"http01": {"ingress": {}}}]}), REGISTERED),
        ] {
            check(&change(spec), &has_key(), expected);
        }
        let other_key = Observed { key: AccountKey::Usable("other".into()), ..has_key() };
        check(&change(json!({})), &other_key, "register [\"mailto:ops@example.com\"]");
        check(
            &after(change(json!({})), &[Outcome::KeyStored]),
            &has_key(),
            "register [\"mailto:ops@example.com\"]",
        );
    }

    #[test]
    fn what_only_a_person_can_change_is_said_without_asking_the_ca() {
        let not_found = "Failed to verify ACME account: the ACME issuer config has 'disableAccountKeyGeneration' \
             set to true, but the secret was not found: secrets \"acme-account\" not found";
        check(
            &issuer(json!({"disableAccountKeyGeneration": true})),
            &without_key(),
            &format!("(event) False ErrVerifyACMEAccount {not_found}"),
        );
        check(
            &issuer(json!({"server": "https://acme-v01.api.letsencrypt.org/directory/"})),
            &without_key(),
            "False InvalidConfig Your ACME server URL is set to a v1 endpoint \
             (https://acme-v01.api.letsencrypt.org/directory/). You should update the spec.acme.server field to \
             \"https://acme-v02.api.letsencrypt.org/directory\"",
        );
        check(
            &issuer(json!({"server": "ca.example"})),
            &has_key(),
            "(event) False InvalidURL Failed to parse existing ACME server URI \"ca.example\": relative URL without a base",
        );
        check(
            &issuer(json!({})),
            &Observed { key: AccountKey::Unusable("no PEM".into()), ..has_key() },
            "False ErrVerifyACMEAccount Account private key is invalid: no PEM",
        );
        check(
            &issuer(json!({})),
            &Observed { external_account: Err("secrets \"eab\" not found".into()), ..has_key() },
            "(event) False ErrRegisterACMEAccount Failed to register ACME account: secrets \"eab\" not found",
        );
    }

    #[test]
    fn every_secret_of_a_dns_01_solver_must_be_there() {
        let dns01 = |name: &str| json!({"dns01": {"rfc2136": {"nameserver": "192.0.2.1", "tsigSecretSecretRef": {"name": name, "key": "k"}}}});
        let issuer = issuer(json!({"solvers": [dns01("gone"), dns01("other"), dns01("good")]}));
        let keys = |key: &str| BTreeSet::from([key.to_owned()]);
        let secrets =
            BTreeMap::from([("other".to_owned(), keys("x")), ("good".to_owned(), keys("k"))]);
        let observed = Observed { secrets, ..has_key() };
        let message = "failed to get secret \"gone\": secrets \"gone\" not found; \
             the secret \"other\" does not have key \"k\"";
        check(&issuer, &observed, &format!("False InvalidSolver {message}"));
        let fault = Fault { reason: reason::INVALID_SOLVER, message: message.into(), event: None };
        check(&after(issuer, &[Outcome::Unusable(fault)]), &observed, "wait OnChange");
    }

    #[test]
    fn a_refusal_is_told_and_not_repeated_in_this_process() {
        let refusal = after(issuer(json!({})), &[refused(None)]);
        let text = "Failed to register ACME account: 429 urn:ietf:params:acme:error:rateLimited: slow down";
        assert_eq!(ready(&refusal), format!("False ErrRegisterACMEAccount {text}"));
        let notes = record(&issuer(json!({})), refused(None), at(0)).notes;
        assert_eq!(
            notes,
            [Note::warning(source::ISSUERS, reason::ERR_REGISTER_ACME_ACCOUNT, text)]
        );
        check(&refusal, &Observed { refused: true, ..has_key() }, "wait OnChange");
        let asked_anew = issuer(json!({}));
        let again = "register [\"mailto:ops@example.com\"]";
        check(&asked_anew, &Observed { refused: true, ..has_key() }, again);
        check(&refusal, &has_key(), "register [\"mailto:ops@example.com\"]");
    }

    #[test]
    fn patience_asked_for_is_remembered_until_the_spec_changes() {
        let mut waiting = after(issuer(json!({})), &[refused(Some(at(20)))]);
        assert!(ready(&waiting).ends_with("slow down; next try at 2027-01-15T08:00:20Z"));
        let told = record(&issuer(json!({})), refused(Some(at(20))), at(0)).notes;
        assert!(told[0].message.ends_with("rateLimited: slow down"), "{told:?}");
        check(&waiting, &has_key(), &format!("wait {:?}", Wake::At(at(20))));
        waiting.metadata.generation = Some(2);
        check(&waiting, &has_key(), "register [\"mailto:ops@example.com\"]");
    }

    #[test]
    fn a_ca_that_cannot_be_reached_is_a_condition_and_an_event() {
        let fault = Outcome::Unreachable(
            AccountRequest::Register,
            "cannot read https://ca.example/dir: refused".into(),
        );
        let new = record(&issuer(json!({})), fault.clone(), at(0));
        assert_eq!(
            new.notes[0].message,
            "Error initializing issuer: cannot read https://ca.example/dir: refused"
        );
        let unreachable = after(issuer(json!({})), &[fault]);
        assert!(
            ready(&unreachable).starts_with(
                "False ErrRegisterACMEAccount Failed to register ACME account: cannot"
            )
        );
        check(&unreachable, &has_key(), "register [\"mailto:ops@example.com\"]");
    }
}
