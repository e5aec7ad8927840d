//! State that is kept beyond the CRDs' schema: annotations under `kubectl-acme/`, read and written by this module only.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Problem;
use super::cause::{About, Cause, OrderWait};
use super::issuer::CHALLENGE_TYPE;
use super::renewal_info::RenewalMemory;

/// Annotations under this program's prefix that people write: manifests give them, like any other field.
pub const USER_ANNOTATIONS: [&str; 1] = [CHALLENGE_TYPE];

/// Time at which a Challenge's answer was handed to the CA.
const CHALLENGE_ACCEPTED_AT: &str = "kubectl-acme/challenge-accepted-at";
/// Mark that a person presents and removes the Challenge's answer.
const CHALLENGE_BY_HAND: &str = "kubectl-acme/challenge-by-hand";
/// Document root in which the Challenge's answer is written as a file.
const CHALLENGE_WEBROOT: &str = "kubectl-acme/challenge-webroot";
/// Addresses at which this machine gave the Challenge's answer.
const CHALLENGE_LISTENS_AT: &str = "kubectl-acme/challenge-listens-at";
/// Time at which an Order was finalized.
const ORDER_FINALIZED_AT: &str = "kubectl-acme/order-finalized-at";
/// Time before which the Order does not ask the CA again.
const ORDER_NEXT_TRY: &str = "kubectl-acme/order-next-try";
/// Time before which the Issuer does not ask the CA again.
const ISSUER_NEXT_TRY: &str = "kubectl-acme/issuer-next-try";
/// Time since which the Issuer's CA does not answer, or not usefully.
const ISSUER_UNREACHABLE_SINCE: &str = "kubectl-acme/issuer-unreachable-since";
/// Directory URL of the CA that has the Issuer's account, if the account's URL does not show the CA.
const ISSUER_ACCOUNT_OF: &str = "kubectl-acme/issuer-account-of";
/// Time before which the Challenge does not ask the CA again.
const CHALLENGE_NEXT_TRY: &str = "kubectl-acme/challenge-next-try";
/// Cause, as data, why the Challenge makes no progress.
const CHALLENGE_CAUSE: &str = "kubectl-acme/challenge-cause";
/// Problem of the CA that the Order's reason is about.
const ORDER_PROBLEM: &str = "kubectl-acme/order-problem";
/// Cause for which an Order that has not ended waits.
const ORDER_WAITS_FOR: &str = "kubectl-acme/order-waits-for";
/// Problem of the CA that the Issuer's message is about.
const ISSUER_PROBLEM: &str = "kubectl-acme/issuer-problem";
/// Time at which the order or its authorizations expire at the CA.
const ORDER_EXPIRES: &str = "kubectl-acme/order-expires";
/// Certificate of a Certificate resource that this program has had revoked.
const CERTIFICATE_REVOKED: &str = "kubectl-acme/certificate-revoked";
/// Names that a Certificate's manifest asks for and that the certificate was issued without, with commas between.
pub const NAMES_LEFT_OUT: &str = "kubectl-acme/names-left-out";
/// Statement of the CA about the renewal of the certificate in a Certificate's Secret.
const CERTIFICATE_RENEWAL_INFO: &str = "kubectl-acme/certificate-renewal-info";

/// The memory of one object. Each kind uses the fields that concern it; moments are kept to the microsecond.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Challenge: time at which the CA was asked to validate; the CA's state may still be pending.
    pub accepted_at: Option<Timestamp>,
    /// Challenge: whether a person presents the answer, so that nobody else removes the answer.
    pub by_hand: bool,
    /// Challenge: document root, as an absolute path, below which the answer is a file that outlives its writer.
    pub webroot: Option<String>,
    /// Challenge: addresses at which this machine took connections for the answer, if they were chosen.
    pub listens_at: Vec<SocketAddr>,
    /// Order: time at which the signing request was sent.
    pub finalized_at: Option<Timestamp>,
    /// Order, Challenge, Issuer: time until which the CA asked this program to wait.
    pub next_try: Option<Timestamp>,
    /// Order: time at which the order ends at the CA (RFC 8555 §7.1.3).
    pub expires: Option<Timestamp>,
    /// Issuer: time since which the CA does not answer. Silence may pass; any other fault of an Issuer needs a person.
    pub unreachable_since: Option<Timestamp>,
    /// Issuer: directory URL of the CA that has the account, if the account's URL is on another host.
    pub account_of: Option<String>,
    /// Challenge: cause why the challenge makes no progress.
    pub cause: Option<About<Cause>>,
    /// Order, Issuer: problem of the CA that the reason, or the condition's message, is about.
    pub problem: Option<About<Problem>>,
    /// Order: cause of the wait.
    pub waits_for: Option<About<OrderWait>>,
    /// Certificate: statement of the CA about the renewal.
    pub renewal: Option<RenewalMemory>,
    /// Certificate: the last of its certificates that this program has had revoked.
    pub revoked: Option<RevokedMemory>,
}

/// A certificate that this program has had revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedMemory {
    /// Serial number in lower-case hexadecimal.
    pub serial: String,
    /// Time at which the CA confirmed the revocation.
    pub at: Timestamp,
}

/// Kind of object that has a memory; each kind has its own keys, because cert-manager copies annotations down the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A Certificate.
    Certificate,
    /// A Challenge.
    Challenge,
    /// An Issuer or ClusterIssuer.
    Issuer,
    /// An Order.
    Order,
}

impl Holder {
    fn problem(self) -> Option<&'static str> {
        match self {
            Self::Certificate | Self::Challenge => None,
            Self::Issuer => Some(ISSUER_PROBLEM),
            Self::Order => Some(ORDER_PROBLEM),
        }
    }

    fn next_try(self) -> Option<&'static str> {
        match self {
            Self::Certificate => None,
            Self::Challenge => Some(CHALLENGE_NEXT_TRY),
            Self::Issuer => Some(ISSUER_NEXT_TRY),
            Self::Order => Some(ORDER_NEXT_TRY),
        }
    }
}

impl Memory {
    /// Reads the memory from an object's annotations; an annotation that cannot be read counts as absent.
    pub fn read(holder: Holder, annotations: &BTreeMap<String, String>) -> Self {
        let at = |key: &str| annotations.get(key).and_then(|text| text.parse().ok());
        Self {
            accepted_at: at(CHALLENGE_ACCEPTED_AT),
            by_hand: annotations.get(CHALLENGE_BY_HAND).is_some_and(|text| text == "true"),
            webroot: annotations
                .get(CHALLENGE_WEBROOT)
                .filter(|_| holder == Holder::Challenge)
                .cloned(),
            listens_at: annotations
                .get(CHALLENGE_LISTENS_AT)
                .filter(|_| holder == Holder::Challenge)
                .map(|text| text.split(',').filter_map(|one| one.parse().ok()).collect())
                .unwrap_or_default(),
            finalized_at: at(ORDER_FINALIZED_AT),
            next_try: holder.next_try().and_then(at),
            expires: at(ORDER_EXPIRES),
            unreachable_since: at(ISSUER_UNREACHABLE_SINCE),
            account_of: annotations
                .get(ISSUER_ACCOUNT_OF)
                .filter(|_| holder == Holder::Issuer)
                .cloned(),
            cause: fact(annotations, CHALLENGE_CAUSE).filter(|_| holder == Holder::Challenge),
            problem: holder.problem().and_then(|key| fact(annotations, key)),
            waits_for: fact(annotations, ORDER_WAITS_FOR).filter(|_| holder == Holder::Order),
            renewal: fact(annotations, CERTIFICATE_RENEWAL_INFO)
                .filter(|_| holder == Holder::Certificate),
            revoked: fact(annotations, CERTIFICATE_REVOKED)
                .filter(|_| holder == Holder::Certificate),
        }
    }

    /// Returns the next try that an object that has ended keeps: a moment that has passed means nothing, and its
    /// removal would be a write of its own.
    pub fn passed_try(&self, now: Timestamp) -> Option<Timestamp> {
        self.next_try.filter(|at| *at <= now)
    }

    /// Returns the cause of an Order's wait; `None` if the fact is about another reason than the given one.
    pub fn wait_of(&self, reason: &str) -> Option<OrderWait> {
        self.waits_for.as_ref()?.of(reason).copied()
    }

    /// Writes the memory into annotations; returns whether anything changed.
    pub fn write(&self, holder: Holder, annotations: &mut BTreeMap<String, String>) -> bool {
        let before = annotations.clone();
        let fields: &[(&str, Option<Timestamp>)] = match holder {
            Holder::Certificate => &[],
            Holder::Challenge => &[(CHALLENGE_ACCEPTED_AT, self.accepted_at)],
            Holder::Issuer => &[(ISSUER_UNREACHABLE_SINCE, self.unreachable_since)],
            Holder::Order => {
                &[(ORDER_FINALIZED_AT, self.finalized_at), (ORDER_EXPIRES, self.expires)]
            }
        };
        let next_try = holder.next_try().map(|key| (key, self.next_try));
        for (key, value) in fields.iter().copied().chain(next_try) {
            match value {
                Some(at) => {
                    annotations.insert(key.to_owned(), format!("{at:.6}"));
                }
                None => {
                    annotations.remove(key);
                }
            }
        }
        if let Some(key) = holder.problem() {
            keep(annotations, key, self.problem.as_ref());
        }
        if holder == Holder::Certificate {
            keep(annotations, CERTIFICATE_RENEWAL_INFO, self.renewal.as_ref());
            keep(annotations, CERTIFICATE_REVOKED, self.revoked.as_ref());
        }
        if holder == Holder::Order {
            keep(annotations, ORDER_WAITS_FOR, self.waits_for.as_ref());
        }
        if holder == Holder::Challenge {
            keep(annotations, CHALLENGE_CAUSE, self.cause.as_ref());
            annotations.remove(CHALLENGE_BY_HAND);
            let mark = self.by_hand.then(|| (CHALLENGE_BY_HAND.to_owned(), "true".to_owned()));
            annotations.extend(mark);
            annotations.remove(CHALLENGE_WEBROOT);
            let webroot = self.webroot.clone();
            annotations.extend(webroot.map(|folder| (CHALLENGE_WEBROOT.to_owned(), folder)));
            annotations.remove(CHALLENGE_LISTENS_AT);
            let places: Vec<String> = self.listens_at.iter().map(ToString::to_string).collect();
            let places = Some(places.join(",")).filter(|places| !places.is_empty());
            annotations.extend(places.map(|places| (CHALLENGE_LISTENS_AT.to_owned(), places)));
        }
        if holder == Holder::Issuer {
            match &self.account_of {
                Some(server) => annotations.insert(ISSUER_ACCOUNT_OF.to_owned(), server.clone()),
                None => annotations.remove(ISSUER_ACCOUNT_OF),
            };
        }
        before != *annotations
    }
}

fn fact<T: DeserializeOwned>(annotations: &BTreeMap<String, String>, key: &str) -> Option<T> {
    annotations.get(key).and_then(|text| serde_json::from_str(text).ok())
}

fn keep<T: Serialize>(annotations: &mut BTreeMap<String, String>, key: &str, fact: Option<&T>) {
    match fact.and_then(|fact| serde_json::to_string(fact).ok()) {
        Some(text) => annotations.insert(key.to_owned(), text),
        None => annotations.remove(key),
    };
}

/// Returns the names that a Certificate was issued without, though its manifest asks for them.
pub fn names_left_out(annotations: &BTreeMap<String, String>) -> BTreeSet<String> {
    let text = annotations.get(NAMES_LEFT_OUT).map_or("", String::as_str);
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Reports whether an annotation is this program's: no manifest sets or removes it, and it is not copied to other objects.
pub fn is_ours(annotation: &str) -> bool {
    annotation.starts_with("kubectl-acme/") && !USER_ANNOTATIONS.contains(&annotation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_not_ours() {
        for (annotation, expected) in [
            (CHALLENGE_TYPE, false),
            (CHALLENGE_CAUSE, true),
            (CERTIFICATE_RENEWAL_INFO, true),
            ("kubectl-acme/of-a-later-version", true),
            ("cert-manager.io/issue-temporary-certificate", false),
        ] {
            assert_eq!(is_ours(annotation), expected, "{annotation}");
        }
    }

    #[test]
    fn memory_survives_a_round_trip_and_says_when_it_changed() {
        let at = |text: &str| Some(text.parse().unwrap());
        let memory = Memory {
            finalized_at: at("2026-11-21T04:30:25.123456Z"),
            next_try: at("2026-11-21T04:30:26Z"),
            problem: Some(About::new("no", Problem::no_profile("no"))),
            waits_for: Some(About::new("no", OrderWait::Authority)),
            ..Memory::default()
        };
        let mut annotations = BTreeMap::from([("other".to_owned(), "kept".to_owned())]);
        assert!(memory.write(Holder::Order, &mut annotations));
        assert!(!memory.write(Holder::Order, &mut annotations));
        assert_eq!(Memory::read(Holder::Order, &annotations), memory);
        assert!(Memory::default().write(Holder::Order, &mut annotations));
        assert_eq!(annotations.len(), 1);
        let webroot = Some("/srv/www".to_owned());
        let cause = Some(About::new("no", Cause::NoIngress));
        let listens_at = vec!["127.0.0.1:8080".parse().unwrap(), "[::1]:8080".parse().unwrap()];
        let memory = Memory { by_hand: true, webroot, listens_at, cause, ..Memory::default() };
        memory.write(Holder::Challenge, &mut annotations);
        assert_eq!(Memory::read(Holder::Challenge, &annotations), memory);
        Memory::default().write(Holder::Challenge, &mut annotations);
        assert_eq!(annotations.len(), 1);
        let memory =
            Memory { account_of: Some("https://ca.example/dir".to_owned()), ..Memory::default() };
        memory.write(Holder::Issuer, &mut annotations);
        assert_eq!(Memory::read(Holder::Issuer, &annotations).account_of, memory.account_of);
        let (mut annotations, next) = (BTreeMap::new(), at("2026-11-21T04:30:26.5Z"));
        let renewal = RenewalMemory { next, hastened: 1, ..RenewalMemory::default() };
        let revoked = RevokedMemory { serial: "0a".into(), at: next.unwrap() };
        let memory = Memory { renewal: Some(renewal), revoked: Some(revoked), ..Memory::default() };
        memory.write(Holder::Certificate, &mut annotations);
        assert_eq!(Memory::read(Holder::Certificate, &annotations), memory);
    }
}
