//! ACC: the account at the CA, its key and its bindings.

use url::Url;

use super::manifest::present;
use super::problem;
use crate::diagnosis::case::issuer::{
    DirectoryAnswer, IssuerCase, SecretCase, SecretState, SecretUse,
};
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{FaultRule, Finding, Grade, evidence_of_answer, stored};
use crate::diagnosis::words::facts;
use crate::model::common::{condition, is_true};
use crate::model::memory::{Holder, Memory};
use crate::model::{ChallengeType, Issuer, Order, Problem, State, Time};

pub(super) const RULES: &[FaultRule] = &[
    issuer_was_refused,
    contact_is_no_address,
    account_is_of_another_ca,
    order_is_of_another_ca,
    answer_is_of_another_key,
    key_is_unusable,
    key_is_being_changed,
    binding_is_missing,
    provider_secret_is_missing,
    key_is_of_another_account,
    orders_are_left_at_the_ca,
    orders_are_left_here,
];

/// Domains that have no mailbox (RFC 2606, RFC 6761).
const NO_MAIL: [&str; 7] =
    ["example.com", "example.net", "example.org", "example", "test", "invalid", "localhost"];

/// Finds issuers that the CA refused when the account was made or looked up.
fn issuer_was_refused(case: &Case, found: &mut Vec<Finding>) {
    for (of, issuer) in present(case) {
        let Some((message, problem)) = refusal(issuer) else { continue };
        // A bare status says nothing of an account: the directory's answer says more about the status.
        let is_bare = problem.short_kind().is_empty() && problem.status != 429;
        let Some((cause, grade)) = problem::cause_of(&problem).filter(|_| !is_bare) else {
            continue;
        };
        let shown = stored(format!("{}: condition Ready", of.key), case.at, message);
        found.push(
            Finding::new(cause, grade, of.key.to_string(), shown)
                .with("ISSUER", of.key.to_string())
                .with("DETAIL", problem.detail),
        );
    }
}

/// Returns the message and the problem with which the CA refused an issuer, if the issuer is not ready.
pub(super) fn refusal(issuer: &Issuer) -> Option<(&str, Problem)> {
    let ready = condition(&issuer.status.conditions, "Ready")?;
    let problem = facts::problem_of_issuer(issuer, &ready.message)?;
    (ready.status != crate::model::ConditionStatus::True).then_some((&ready.message, problem))
}

fn contact_is_no_address(case: &Case, found: &mut Vec<Finding>) {
    for (of, issuer) in present(case) {
        let Some(acme) = issuer.spec.acme.as_ref().filter(|acme| !acme.email.is_empty()) else {
            continue;
        };
        let domain = acme.email.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
        let is_reserved =
            NO_MAIL.iter().any(|known| domain == *known || domain.ends_with(&format!(".{known}")));
        if acme.email.contains('@') && !is_reserved {
            continue;
        }
        // A private CA may take the address.
        let is_public = super::manifest::is_lets_encrypt(&acme.server);
        if !is_public {
            continue;
        }
        let shown = stored(format!("{}: spec.acme.email", of.key), case.at, &acme.email);
        found.push(
            Finding::new(CauseId::Acc01, Grade::Certain, of.key.to_string(), shown)
                .with("ISSUER", of.key.to_string())
                .with("DETAIL", format!("{} has no mailbox", acme.email)),
        );
    }
}

/// Host and port of a URL.
fn origin(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

fn account_is_of_another_ca(case: &Case, found: &mut Vec<Finding>) {
    for (of, issuer) in present(case) {
        let (Some(acme), Some(status)) = (&issuer.spec.acme, &issuer.status.acme) else { continue };
        let (Some(server), Some(account)) = (origin(&acme.server), origin(&status.uri)) else {
            continue;
        };
        // A CA may keep its accounts at another host than its directory's; the directory then says so.
        if server == account || accounts_at(of).is_none_or(|place| place == account) {
            continue;
        }
        let shown = stored(format!("{}: status.acme.uri", of.key), case.at, &status.uri);
        let more = stored(format!("{}: spec.acme.server", of.key), case.at, &acme.server);
        found.push(
            Finding::new(CauseId::Acc03, Grade::Likely, of.key.to_string(), shown)
                .shown_by([more])
                .with("ISSUER", of.key.to_string())
                .with("DETAIL", format!("its account is at {account}, its server {server}")),
        );
    }
}

/// Returns the host and port where the CA keeps accounts; `None` if the CA did not give them.
fn accounts_at(of: &IssuerCase) -> Option<String> {
    match &of.directory.as_ref()?.answer {
        DirectoryAnswer::Directory { new_account, .. } => origin(new_account),
        _ => None,
    }
}

fn order_is_of_another_ca(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        let Some(order) = of.order().filter(|order| !order.status.url.is_empty()) else { continue };
        let key = order.spec.issuer_ref.key(&order.metadata.namespace);
        let Some(issuer) = key.as_ref().and_then(|key| case.issuer(key)) else { continue };
        let (Some(server), Some(at)) = (accounts_at(issuer), origin(&order.status.url)) else {
            continue;
        };
        let is_over = order.status.state.is_some_and(State::is_final);
        if server == at || is_over {
            continue;
        }
        let name = order.name();
        let shown = stored(format!("Order {name}: status.url"), case.at, &order.status.url);
        found.push(
            Finding::new(CauseId::Acc03, Grade::Likely, format!("Order {name}"), shown)
                .with("ISSUER", key.map(|key| key.to_string()).unwrap_or_default())
                .with("DETAIL", format!("Order {name} is at {at}, the issuer's CA at {server}")),
        );
    }
}

/// Returns the Secret with an issuer's account key.
fn account_key<'a>(case: &'a Case, key: &crate::model::Key) -> Option<&'a SecretCase> {
    case.issuer(key)?.secrets.iter().find(|secret| secret.purpose == SecretUse::AccountKey)
}

fn answer_is_of_another_key(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        for challenge in of.current_challenges().filter(|challenge| !challenge.has_ended()) {
            let Some(key) = challenge.spec.issuer_ref.key(&challenge.metadata.namespace) else {
                continue;
            };
            let Some(secret) = account_key(case, &key) else { continue };
            let SecretState::AccountKey { thumbprint, .. } = &secret.state else { continue };
            // A DNS-PERSIST-01 record is no key authorization.
            if challenge.spec.kind == ChallengeType::DnsPersist01 {
                continue;
            }
            let Some((_, used)) = challenge.spec.key.split_once('.') else { continue };
            if used == thumbprint {
                continue;
            }
            let name = challenge.name();
            let shown = stored(
                format!("Challenge {name}: spec.key"),
                case.at,
                format!("a key authorization of the key {}", short(used)),
            );
            let other = stored(
                format!("Secret {}", secret.name),
                case.at,
                format!("the account key {}", short(thumbprint)),
            );
            found.push(
                Finding::new(CauseId::Acc05, Grade::Certain, format!("Challenge {name}"), shown)
                    .shown_by([other])
                    .with("NAME", &name.name)
                    .with("NAMESPACE", &name.namespace)
                    .with("ISSUER", key.to_string()),
            );
        }
    }
}

/// Shortens a thumbprint to its beginning, which distinguishes two thumbprints.
fn short(thumbprint: &str) -> String {
    let start: String = thumbprint.chars().take(8).collect();
    format!("{start}…")
}

fn key_is_unusable(case: &Case, found: &mut Vec<Finding>) {
    for (of, issuer) in present(case) {
        let Some(acme) = &issuer.spec.acme else { continue };
        let keys = of.secrets.iter().filter(|secret| secret.purpose == SecretUse::AccountKey);
        for secret in keys {
            let why = match &secret.state {
                SecretState::Missing if acme.disable_account_key_generation => {
                    "it does not exist, and disableAccountKeyGeneration keeps it from being made"
                        .to_owned()
                }
                SecretState::NoEntry(_) => format!("it has no entry {}", secret.entry),
                SecretState::Empty => format!("its entry {} is empty", secret.entry),
                SecretState::Unusable(why) => why.clone(),
                SecretState::AccountKey { algorithm, .. }
                    if !algorithm.starts_with("RSA") && case.driver == DriverCase::CertManager =>
                {
                    format!("its key is {algorithm}, and cert-manager takes RSA only")
                }
                SecretState::Missing | SecretState::AccountKey { .. } | SecretState::Present => {
                    continue;
                }
            };
            let shown = stored(format!("Secret {}", secret.name), case.at, &why);
            found.push(
                Finding::new(CauseId::Acc06, Grade::Certain, of.key.to_string(), shown)
                    .with("ISSUER", of.key.to_string())
                    .with("SECRET", &secret.name.name)
                    .with("NAMESPACE", &secret.name.namespace)
                    .with("WHY", why),
            );
        }
    }
}

/// ACC-12.
fn key_is_being_changed(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.issuers {
        for secret in &of.secrets {
            if !matches!(secret.state, SecretState::AccountKey { is_being_changed: true, .. }) {
                continue;
            }
            let second = format!("a second key, {}.next", secret.entry);
            let shown = stored(format!("Secret {}", secret.name), case.at, second);
            found.push(
                Finding::new(CauseId::Acc12, Grade::Certain, of.key.to_string(), shown)
                    .with("ISSUER", of.key.to_string())
                    .with("NAME", &of.key.name.name)
                    .with("SECRET", &secret.name.name)
                    .with("NAMESPACE", &secret.name.namespace),
            );
        }
    }
}

fn binding_is_missing(case: &Case, found: &mut Vec<Finding>) {
    for (of, issuer) in present(case) {
        let Some(acme) = &issuer.spec.acme else { continue };
        // An existing account was bound to the external account when it was made.
        let has_account = issuer.status.acme.as_ref().is_some_and(|status| !status.uri.is_empty());
        if has_account && is_true(&issuer.status.conditions, "Ready") {
            continue;
        }
        if let (None, Some(directory)) = (&acme.external_account_binding, &of.directory)
            && let DirectoryAnswer::Directory { external_account_required: true, .. } =
                &directory.answer
        {
            let asked = format!("GET {}: meta.externalAccountRequired", directory.url);
            let shown = evidence_of_answer(asked, directory.at, "true");
            found.push(
                Finding::new(CauseId::Acc07, Grade::Certain, of.key.to_string(), shown)
                    .with("ISSUER", of.key.to_string())
                    .with("DETAIL", "spec.acme.externalAccountBinding is absent"),
            );
        }
        for secret in of.secrets.iter().filter(|secret| secret.purpose == SecretUse::Binding) {
            let Some(why) = lack(secret) else { continue };
            let shown = stored(format!("Secret {}", secret.name), case.at, &why);
            found.push(
                Finding::new(CauseId::Acc07, Grade::Certain, of.key.to_string(), shown)
                    .with("ISSUER", of.key.to_string())
                    .with("DETAIL", format!("Secret {}: {why}", secret.name)),
            );
        }
    }
}

/// Returns what a Secret lacks, if it lacks something.
fn lack(secret: &SecretCase) -> Option<String> {
    match &secret.state {
        SecretState::Missing => Some(match &secret.elsewhere[..] {
            [] => "it does not exist".to_owned(),
            others => format!("it does not exist there, but in {}", others.join(", ")),
        }),
        SecretState::NoEntry(entries) => {
            Some(format!("it has no entry {}, it has {}", secret.entry, entries.join(", ")))
        }
        SecretState::Empty => Some(format!("its entry {} is empty", secret.entry)),
        SecretState::Unusable(why) => Some(why.clone()),
        SecretState::AccountKey { .. } | SecretState::Present => None,
    }
}

/// ACC-11.
fn key_is_of_another_account(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.issuers {
        let Some(account) = &of.account else { continue };
        let Some(other) = account.of_key.as_ref().filter(|url| **url != account.recorded) else {
            continue;
        };
        let secret = of.secrets.iter().find(|secret| secret.purpose == SecretUse::AccountKey);
        let Some(secret) = secret else { continue };
        let asked = format!("newAccount with the key in Secret {}", secret.name);
        let came = format!("the key belongs to account {other}");
        let own = stored(format!("{}: status.acme.uri", of.key), case.at, &account.recorded);
        found.push(
            Finding::new(
                CauseId::Acc11,
                Grade::Certain,
                of.key.to_string(),
                evidence_of_answer(asked, account.at, came),
            )
            .shown_by([own])
            .with("ISSUER", of.key.to_string())
            .with("NAMESPACE", &secret.name.namespace)
            .with("SECRET", &secret.name.name)
            .with("OTHER", other)
            .with("OWN", &account.recorded),
        );
    }
}

/// HYG-04, by the CA's list of orders.
fn orders_are_left_at_the_ca(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.issuers {
        let left = of.account.iter().flat_map(|account| &account.left_orders);
        let left: Vec<_> = left.filter(|held| held.expires.is_none_or(|at| at > case.at)).collect();
        let shown = left.iter().map(|held| {
            let until = held.expires.map(|at| format!(", until {}", Time::new(at)));
            evidence_of_answer(
                format!("order {}", held.url),
                held.at,
                held.status.clone() + &until.unwrap_or_default(),
            )
        });
        let mut shown = shown.collect::<Vec<_>>().into_iter();
        let Some(first) = shown.next() else { continue };
        let last = left.iter().filter_map(|held| held.expires).max();
        let until =
            last.map_or_else(|| "an unknown time".to_owned(), |at| Time::new(at).to_string());
        found.push(
            Finding::new(CauseId::Hyg04, Grade::Certain, of.key.to_string(), first)
                .shown_by(shown)
                .with("SUBJECT", of.key.to_string())
                .with("COUNT", left.len().to_string())
                .with("UNTIL", until),
        );
    }
}

/// HYG-04, by Orders of earlier requests that have not ended.
fn orders_are_left_here(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        let current = of.order().map(|order| &order.metadata.uid);
        let left = of.orders.iter().filter(|order| {
            let is_over = order.status.state.is_some_and(State::is_final);
            !is_over && !order.status.url.is_empty() && Some(&order.metadata.uid) != current
        });
        let expiry = |order: &Order| {
            Memory::read(Holder::Order, &order.metadata.annotations)
                .expires
                .filter(|at| *at > case.at)
        };
        let left: Vec<_> = left.filter_map(|order| Some((order, expiry(order)?))).collect();
        let Some(last) = left.iter().map(|(_, until)| *until).max() else { continue };
        let shown = left.iter().map(|(order, until)| {
            let came = format!("{}, until {}", order.status.url, Time::new(*until));
            stored(format!("Order {}: status.url", order.name()), case.at, came)
        });
        let mut shown = shown.collect::<Vec<_>>().into_iter();
        let Some(first) = shown.next() else { continue };
        let subject = format!("Certificate {}", of.certificate.name());
        found.push(
            Finding::new(CauseId::Hyg04, Grade::Certain, &subject, first)
                .shown_by(shown)
                .with("SUBJECT", subject)
                .with("COUNT", left.len().to_string())
                .with("UNTIL", Time::new(last).to_string()),
        );
    }
}

/// PRV-01: the credentials of a DNS provider are not where the solver looks.
fn provider_secret_is_missing(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.issuers {
        for secret in of.secrets.iter().filter(|secret| secret.purpose == SecretUse::Provider) {
            let Some(why) = lack(secret) else { continue };
            let shown = stored(format!("Secret {}", secret.name), case.at, &why);
            found.push(
                Finding::new(CauseId::Prv01, Grade::Certain, of.key.to_string(), shown)
                    .with("ISSUER", of.key.to_string())
                    .with("SECRET", &secret.name.name)
                    .with("NAMESPACE", &secret.name.namespace)
                    .with("KEY", &secret.entry)
                    .with("WHY", why),
            );
        }
    }
}
