//! Memory of the CA: accounts, orders, authorizations, certificates (RFC 8555 §7.1). The memory is gone when the CA stops.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::base_url::BaseUrl;
use super::jwk::Jwk;
use super::refusal::{Kind, Refusal};
use crate::fetch::outcome::Hop;
use crate::model::Identifier;

/// Time between two searches for expired objects.
const EXPIRY_CHECK_PERIOD: Duration = Duration::from_mins(1);

/// Number of an account, an order or an authorization; part of its URL.
pub(super) type Id = u64;

/// States of accounts, orders, authorizations and challenges (RFC 8555 §7.1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Deactivated,
    Invalid,
    Pending,
    Processing,
    Ready,
    Valid,
}

impl Status {
    /// Returns the word in JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Deactivated => "deactivated",
            Self::Invalid => "invalid",
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Ready => "ready",
            Self::Valid => "valid",
        }
    }
}

/// Challenge type by which control of a name is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Dns01,
    DnsAccount01,
    DnsPersist01,
    Http01,
    TlsAlpn01,
}

impl Method {
    /// Returns an identifier's challenge types at every CA: a wildcard by DNS alone, an address not by DNS (RFC 8738 §7).
    pub(super) fn on_offer(identifier: &Identifier) -> &'static [Self] {
        match identifier {
            Identifier::Dns(name) if name.is_wildcard() => &[Self::Dns01, Self::DnsAccount01],
            Identifier::Dns(_) => &[Self::Http01, Self::TlsAlpn01, Self::Dns01, Self::DnsAccount01],
            Identifier::Ip(_) => &[Self::Http01, Self::TlsAlpn01],
        }
    }

    /// Returns the word in JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Dns01 => "dns-01",
            Self::DnsAccount01 => "dns-account-01",
            Self::DnsPersist01 => "dns-persist-01",
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

#[derive(Debug)]
pub(super) struct Account {
    pub(super) key: Jwk,
    pub(super) contact: Vec<String>,
    pub(super) created: Timestamp,
    pub(super) deactivated: bool,
    /// Binding as sent with newAccount (§7.3.4).
    pub(super) binding: Option<Value>,
    /// Host of the last newAccount request.
    pub(super) base: BaseUrl,
}

#[derive(Debug)]
pub(super) struct Order {
    pub(super) account: Id,
    /// Identifiers, sorted, without duplicates.
    pub(super) identifiers: Vec<Identifier>,
    /// Profile as requested; `None` stands for the first profile of the configuration.
    pub(super) profile: Option<String>,
    pub(super) not_after: Option<Timestamp>,
    pub(super) expires: Timestamp,
    /// Authorizations, in the order of the identifiers.
    pub(super) authorizations: Vec<Id>,
    pub(super) issuance: Issuance,
    /// Certificate that the order's certificate replaces, as the client named it.
    pub(super) replaces: Option<String>,
}

/// Progress of an order after finalize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Issuance {
    NotAsked,
    UnderWay,
    /// Certificate issued under this serial number.
    Done(String),
    Failed,
}

#[derive(Debug)]
pub(super) struct Authorization {
    pub(super) account: Id,
    pub(super) identifier: Identifier,
    /// Profile of the order; an order with another profile does not reuse the authorization.
    pub(super) profile: Option<String>,
    /// Token of all challenges, as at Boulder.
    pub(super) token: String,
    pub(super) expires: Timestamp,
    pub(super) status: Status,
    /// Whether a validation is under way; the status is pending meanwhile, never processing, as at Boulder.
    pub(super) being_validated: bool,
    pub(super) validation: Option<Validation>,
}

/// Only validation of an authorization.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) method: Method,
    pub(super) at: Timestamp,
    pub(super) hops: Vec<Hop>,
    pub(super) refusal: Option<Refusal>,
}

#[derive(Debug)]
pub(super) struct Issued {
    pub(super) account: Id,
    pub(super) identifiers: Vec<Identifier>,
    pub(super) der: Vec<u8>,
    pub(super) at: Timestamp,
    pub(super) revoked: Option<Revocation>,
    /// Text that replaces the certificate's renewal information, if a test has set such a text.
    pub(super) renewal_info: Option<String>,
}

/// Window to which the windows of all certificates issued before were moved.
#[derive(Clone, Debug)]
pub(super) struct MovedWindow {
    /// Time of the move.
    pub(super) at: Timestamp,
    /// Start and end.
    pub(super) window: (Timestamp, Timestamp),
    /// Page with the reason; empty if there is none.
    pub(super) explanation: String,
}

/// Revocation of a certificate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Revocation {
    pub(super) at: Timestamp,
    /// Number of the reason (RFC 5280 §5.3.1).
    pub(super) reason: u8,
}

/// Memory of the CA.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) accounts: BTreeMap<Id, Account>,
    pub(super) orders: BTreeMap<Id, Order>,
    pub(super) authorizations: BTreeMap<Id, Authorization>,
    /// Certificates by serial number in hexadecimal.
    pub(super) certificates: BTreeMap<String, Issued>,
    /// Window to which the windows of earlier certificates were moved, if they were moved (RFC 9773).
    pub(super) moved_window: Option<MovedWindow>,
    last_id: Id,
    /// Time of the next search for expired objects.
    next_look: Timestamp,
}

impl State {
    /// Forgets expired orders, and expired authorizations that belong to no other order. Searches once in a while.
    pub(super) fn forget_expired(&mut self, now: Timestamp) {
        if now < self.next_look {
            return;
        }
        self.next_look = after(now, EXPIRY_CHECK_PERIOD);
        self.orders.retain(|_, order| order.expires > now || order.issuance == Issuance::UnderWay);
        let used: BTreeSet<Id> =
            self.orders.values().flat_map(|order| order.authorizations.iter().copied()).collect();
        self.authorizations.retain(|id, authorization| {
            authorization.expires > now || authorization.being_validated || used.contains(id)
        });
    }

    /// Returns a number that no object has yet.
    pub(super) fn next_id(&mut self) -> Id {
        self.last_id += 1;
        self.last_id
    }

    /// Returns the account of a key, even a deactivated account.
    pub(super) fn account_of(&mut self, key: &Jwk) -> Option<(Id, &mut Account)> {
        let (id, account) = self.accounts.iter_mut().find(|(_, account)| account.key == *key)?;
        Some((*id, account))
    }

    /// Returns an order of this account, unless the order has expired.
    pub(super) fn order(&self, id: Id, account: Id, now: Timestamp) -> Result<&Order, Refusal> {
        match self.orders.get(&id) {
            Some(order) if order.account != account => {
                Err(Refusal::not_found(format!("No order found for account ID {account}")))
            }
            Some(order) if order.expires > now => Ok(order),
            Some(_) | None => Err(Refusal::not_found(format!("No order for ID {id}"))),
        }
    }

    /// Returns an authorization of this account, unless the authorization has expired.
    pub(super) fn authorization(
        &mut self,
        id: Id,
        account: Id,
        now: Timestamp,
    ) -> Result<&mut Authorization, Refusal> {
        match self.authorizations.get_mut(&id) {
            None => Err(Refusal::not_found("No such authorization")),
            Some(authorization) if authorization.account != account => Err(Refusal::new(
                Kind::Unauthorized,
                "Account ID doesn't match ID for authorization",
            )),
            Some(authorization) if authorization.expires <= now => {
                Err(Refusal::not_found("Expired authorization"))
            }
            Some(authorization) => Ok(authorization),
        }
    }

    /// Returns the status of an order, by its own progress and its authorizations (§7.1.6).
    pub(super) fn order_status(&self, order: &Order) -> Status {
        match order.issuance {
            Issuance::Done(_) => return Status::Valid,
            Issuance::UnderWay => return Status::Processing,
            Issuance::Failed => return Status::Invalid,
            Issuance::NotAsked => {}
        }
        let mut statuses = self.authorizations_of(order).map(|authorization| authorization.status);
        if statuses.clone().all(|status| status == Status::Valid) {
            return Status::Ready;
        }
        if statuses.all(|status| matches!(status, Status::Pending | Status::Valid)) {
            return Status::Pending;
        }
        Status::Invalid
    }

    /// Returns whether the order may change soon.
    pub(super) fn is_moving(&self, order: &Order) -> bool {
        order.issuance == Issuance::UnderWay
            || self.authorizations_of(order).any(|authorization| authorization.being_validated)
    }

    /// Returns an order that newOrder gives back in place of a new one: same account, same request, pending or ready.
    pub(super) fn same_order(&self, wish: &Order, now: Timestamp) -> Option<Id> {
        let (id, _) = self.orders.iter().rev().find(|(_, order)| {
            order.account == wish.account
                && order.identifiers == wish.identifiers
                && order.replaces == wish.replaces
                && order.profile == wish.profile
                && order.not_after == wish.not_after
                && order.expires > now
                && matches!(self.order_status(order), Status::Pending | Status::Ready)
        })?;
        Some(*id)
    }

    /// Returns a valid authorization that lasts beyond `until` and may be reused in another order.
    pub(super) fn reusable_authorization(
        &self,
        account: Id,
        identifier: &Identifier,
        profile: Option<&str>,
        until: Timestamp,
    ) -> Option<Id> {
        let (id, _) = self.authorizations.iter().rev().find(|(_, authorization)| {
            authorization.account == account
                && authorization.identifier == *identifier
                && authorization.profile.as_deref() == profile
                && authorization.status == Status::Valid
                && authorization.expires > until
        })?;
        Some(*id)
    }

    /// Returns the authorizations of an order.
    pub(super) fn authorizations_of(
        &self,
        order: &Order,
    ) -> impl Iterator<Item = &Authorization> + Clone {
        order.authorizations.iter().filter_map(|id| self.authorizations.get(id))
    }
}

/// Returns the moment `duration` after `now`.
pub(super) fn after(now: Timestamp, duration: Duration) -> Timestamp {
    now.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

/// Returns a moment as RFC 8555 writes it, to the second.
pub(super) fn rfc3339(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPIRES: i64 = 1_000;

    /// Account 1 has order 3 with authorization 2; both expire at [`EXPIRES`].
    fn state(status: Status, issuance: Issuance) -> State {
        let identifier = Identifier::parse("www.bed.test").unwrap();
        let expires = Timestamp::from_second(EXPIRES).unwrap();
        let authorization = Authorization {
            account: 1,
            identifier: identifier.clone(),
            profile: None,
            token: "token".to_owned(),
            expires,
            status,
            being_validated: false,
            validation: None,
        };
        let order = Order {
            account: 1,
            identifiers: vec![identifier],
            profile: None,
            not_after: None,
            expires,
            authorizations: vec![2],
            issuance,
            replaces: None,
        };
        let mut state = State::default();
        state.authorizations.insert(2, authorization);
        state.orders.insert(3, order);
        state
    }

    fn check((status, issuance): (Status, Issuance), expected: Status) {
        let state = state(status, issuance);
        assert_eq!(state.order_status(&state.orders[&3]), expected, "{status:?}");
    }

    #[test]
    fn an_order_is_what_its_authorizations_make_of_it() {
        check((Status::Pending, Issuance::NotAsked), Status::Pending);
        check((Status::Valid, Issuance::NotAsked), Status::Ready);
        check((Status::Invalid, Issuance::NotAsked), Status::Invalid);
        check((Status::Deactivated, Issuance::NotAsked), Status::Invalid);
    }

    #[test]
    fn a_finalized_order_is_what_came_of_it() {
        check((Status::Valid, Issuance::UnderWay), Status::Processing);
        check((Status::Valid, Issuance::Failed), Status::Invalid);
        check((Status::Deactivated, Issuance::Done("7f".to_owned())), Status::Valid);
    }

    #[test]
    fn what_has_expired_is_forgotten_and_what_an_order_needs_is_kept() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let held = |state: &State| (state.orders.len(), state.authorizations.len());
        let mut past = state(Status::Valid, Issuance::NotAsked);
        past.forget_expired(at(EXPIRES - 1));
        assert_eq!(held(&past), (1, 1));
        past.forget_expired(at(EXPIRES));
        assert_eq!(held(&past), (1, 1), "it was looked a second ago");
        past.forget_expired(at(EXPIRES + 60));
        assert_eq!(held(&past), (0, 0));
        let mut used = state(Status::Valid, Issuance::NotAsked);
        used.orders.get_mut(&3).unwrap().expires = at(EXPIRES + 1);
        let mut busy = state(Status::Valid, Issuance::UnderWay);
        for kept in [&mut used, &mut busy] {
            kept.forget_expired(at(EXPIRES));
            assert_eq!(held(kept), (1, 1));
        }
    }

    #[test]
    fn what_has_expired_is_not_there_and_not_taken_over() {
        let mut state = state(Status::Valid, Issuance::NotAsked);
        for (second, is_there) in [(EXPIRES - 1, true), (EXPIRES, false)] {
            let now = Timestamp::from_second(second).unwrap();
            assert_eq!(state.order(3, 1, now).is_ok(), is_there);
            assert_eq!(state.same_order(&state.orders[&3], now).is_some(), is_there);
            assert_eq!(state.authorization(2, 1, now).is_ok(), is_there);
            let name = Identifier::parse("www.bed.test").unwrap();
            assert_eq!(state.reusable_authorization(1, &name, None, now).is_some(), is_there);
            assert_eq!(state.reusable_authorization(1, &name, Some("other"), now), None);
            assert_eq!(state.reusable_authorization(9, &name, None, now), None);
        }
    }
}
