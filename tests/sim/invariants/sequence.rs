//! What has to hold of one deed after another: what is used once, what is waited for, what is written first.

use std::collections::{BTreeMap, BTreeSet};

use kubectl_acme::model::memory::{Holder, Memory};
use kubectl_acme::model::{Key, Kind, ObjectName, Order, Record};

use super::super::events::Asked;
use super::super::people::NAMESPACE;
use super::super::world::World;
use super::Holds;

/// So often one path may be asked for, or one object read or written, within so many milliseconds.
const BOUNDS: [(usize, u64); 2] = [(25, 10_000), (120, 600_000)];

/// When what was done, within the longest of these.
pub(super) type Times = BTreeMap<String, Vec<u64>>;

/// What was seen of deeds that others have to follow.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    nonces: BTreeSet<String>,
    /// The signing request that the CA took from a process for each order.
    finalized: BTreeMap<(u32, String), String>,
    /// Until when who may not read what again.
    polls: BTreeMap<(u32, String), u64>,
    /// UIDs of Orders for which a process has heard of an order that it has not written down.
    unwritten: BTreeSet<(usize, String)>,
    /// UIDs of Orders over which a process has heard last that the CA has failed, where a certificate was to be replaced.
    failed: BTreeSet<(u32, String)>,
    /// Certificates that are to be issued once more, and have no request for that yet.
    unrequested: BTreeSet<ObjectName>,
}

impl Sequence {
    /// A nonce is sent once (RFC 8555 §6.5).
    pub(super) fn nonce_is_new(&mut self, asked: &Asked) -> Holds {
        match asked.header["nonce"].as_str() {
            Some(nonce) if !self.nonces.insert(nonce.to_owned()) => {
                Err(format!("nonces: {} {} is sent with one that was used", asked.what, asked.path))
            }
            _ => Ok(()),
        }
    }

    /// An order is finalized for one key as long as several Orders have it; of one that has ended the others hear by the CA's word.
    pub(super) fn order_has_one_key(&self, world: &World, asked: &Asked) -> Holds {
        let taken = self.finalized.get(&(asked.life, asked.path.clone()));
        if taken.is_none_or(|taken| asked.payload["csr"] == **taken) {
            return Ok(());
        }
        let orders = world.typed::<Order>(Kind::Order);
        let has_it = |order: &&Order| order.status.finalize_url.ends_with(&asked.path);
        if orders.iter().filter(has_it).filter(|order| !order.has_ended()).count() < 2 {
            return Ok(());
        }
        Err(format!("one key: {} is finalized for another one, too", asked.path))
    }

    /// An order that the CA asks to be read again after a while is not read before (RFC 8555 §7.4).
    pub(super) fn poll_is_kept(&self, at: u64, asked: &Asked) -> Holds {
        match self.polls.get(&(asked.life, asked.path.clone())) {
            Some(until) if asked.is_read && at < *until => Err(format!(
                "Retry-After: {} {} is read {} ms before its time",
                asked.what,
                asked.path,
                until - at
            )),
            _ => Ok(()),
        }
    }

    /// Notes what a process heard: the seconds after which it may read that again, and what was taken.
    pub(super) fn hears(&mut self, at: u64, asked: &Asked, status: u16, pause: Option<u64>) {
        if status == 200 && asked.what == "order" {
            let until = at + (pause.unwrap_or(0) * 1000).saturating_sub(1_100);
            self.polls.insert((asked.life, asked.path.clone()), until);
        }
        if asked.what == "finalize" && status == 200 {
            let request = asked.payload["csr"].as_str().unwrap_or_default();
            self.finalized.insert((asked.life, asked.path.clone()), request.to_owned());
        }
    }

    /// Notes that a process hears of an order that only one Order can have asked for.
    pub(super) fn order_is_made(&mut self, place: usize, orders: &[String]) {
        if let [order] = orders {
            self.unwritten.insert((place, order.clone()));
        }
    }

    /// Notes that the CA has failed over an order that only one Order can have asked for.
    pub(super) fn order_fails(&mut self, asked: &Asked, orders: &[String]) {
        if let [order] = orders
            && !asked.payload["replaces"].is_null()
        {
            self.failed.insert((asked.life, order.clone()));
        }
    }

    /// Whoever has heard that a CA has failed over an order that replaces a certificate asks for one that replaces nothing: it may
    /// fail each time.
    pub(super) fn fault_is_asked_over_otherwise(
        &mut self,
        asked: &Asked,
        orders: &[String],
    ) -> Holds {
        let [order] = orders else { return Ok(()) };
        if self.failed.remove(&(asked.life, order.clone())) && !asked.payload["replaces"].is_null()
        {
            return Err(format!(
                "replaces: Order {order} asks again for what the CA has failed over"
            ));
        }
        Ok(())
    }

    /// Notes that somebody wants a Certificate to be issued once more.
    pub(super) fn somebody_renews(&mut self, world: &World, certificate: &str) {
        let name = ObjectName::new(NAMESPACE, certificate);
        let certificate = world.peek(&Key::new(Kind::Certificate, name.clone()));
        if certificate.is_some_and(|certificate| issuing(&certificate) != "True") {
            self.unrequested.insert(name);
        }
    }

    /// A try fails by a request of its own, and by none of the try before it.
    pub(super) fn failure_is_of_its_own(
        &mut self,
        (before, after): (Option<&Record>, Option<&Record>),
    ) -> Holds {
        let Some(record) = after.or(before) else { return Ok(()) };
        let name = &record.key.name;
        match (record.key.kind, after) {
            (Kind::Certificate, None) => _ = self.unrequested.remove(name),
            (Kind::Certificate, Some(after)) => {
                match (before.map_or("", issuing), issuing(after)) {
                    ("True", "False") if self.unrequested.contains(name) => {
                        return Err(format!("own failure: {name} fails before it has a request"));
                    }
                    ("True", _) => {}
                    (_, "True") => _ = self.unrequested.insert(name.clone()),
                    _ => {}
                }
            }
            (Kind::CertificateRequest, Some(after)) if before.is_none() => {
                if let Some(owner) = after.metadata().controller() {
                    self.unrequested.remove(&ObjectName::new(&name.namespace, &owner.name));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What is made anew knows nothing of what was to be waited for.
    pub(super) fn begins_anew(&mut self) {
        self.polls.clear();
    }

    /// Whoever has lost its memory writes nothing down.
    pub(super) fn forget(&mut self, place: usize) {
        self.unwritten.retain(|(whose, _)| *whose != place);
    }

    /// The URL of a new order is written before anything else of its Order.
    pub(super) fn url_comes_first(
        &mut self,
        place: usize,
        (_, after): (Option<&Record>, Option<&Record>),
    ) -> Holds {
        let Some(after) = after.filter(|after| after.key.kind == Kind::Order) else {
            return Ok(());
        };
        let is_awaited = self.unwritten.remove(&(place, after.uid().to_owned()));
        if is_awaited && after.text("/status/url").is_empty() {
            return Err(format!("URL first: something else of {} is written", after.key));
        }
        Ok(())
    }
}

/// The status of condition Issuing; empty where there is none.
fn issuing(certificate: &Record) -> &str {
    issuing_says(certificate, "status")
}

fn issuing_says<'a>(certificate: &'a Record, field: &str) -> &'a str {
    let conditions = certificate.object["status"]["conditions"].as_array();
    let issuing = conditions.into_iter().flatten().find(|condition| condition["type"] == "Issuing");
    issuing.and_then(|condition| condition[field].as_str()).unwrap_or_default()
}

/// Whether a Certificate is to be issued from now on because its renewal is due.
pub(super) fn is_due_again((before, after): (Option<&Record>, Option<&Record>)) -> bool {
    let of_kind = |record: &&Record| record.key.kind == Kind::Certificate;
    let (Some(before), Some(after)) = (before.filter(of_kind), after) else { return false };
    issuing(before) != "True"
        && issuing(after) == "True"
        && issuing_says(after, "reason") == "Renewing"
}

/// A moment that a status names stands in the memory of that object, which is written before.
pub(super) fn memory_comes_first(change: (Option<&Record>, Option<&Record>)) -> Holds {
    let (Some(before), Some(after)) = change else { return Ok(()) };
    let holder = match after.key.kind {
        Kind::Order => Holder::Order,
        Kind::Challenge => Holder::Challenge,
        _ => return Ok(()),
    };
    let reason = after.text("/status/reason");
    if reason == before.text("/status/reason") {
        return Ok(());
    }
    let Some((_, named)) = reason.rsplit_once("; next try at ") else { return Ok(()) };
    let kept = Memory::read(holder, &after.metadata().annotations).next_try;
    if kept.is_some_and(|at| format!("{at:.0}") == named) {
        return Ok(());
    }
    Err(format!("memory first: {} names {named}, its memory has {kept:?}", after.key))
}

/// Requests, reads and writes within bounds: nothing is done again and again without a pause, but for so many as share it, and those
/// that have to be. How many share it is said for each of [`BOUNDS`].
pub(super) fn no_burst(
    all: &mut Times,
    what: &str,
    at: u64,
    (sharing, excused): ([usize; BOUNDS.len()], usize),
) -> Holds {
    let times = all.entry(what.to_owned()).or_default();
    let [.., (_, longest)] = BOUNDS;
    times.retain(|time| *time + longest > at);
    times.push(at);
    for ((most, window), sharing) in BOUNDS.into_iter().zip(sharing) {
        let within = times.iter().rev().take_while(|time| **time + window > at).count();
        if within > excused + most * sharing {
            return Err(format!("bounds: {what} {within} times within {} s", window / 1000));
        }
    }
    Ok(())
}
