//! What has to hold, whatever happens: each is a function with its sentence, asked after every event or at the end.

mod at_once;
mod ending;
mod sequence;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kubectl_acme::model::order_ledger::{Entry, Ledger, RequestOutcome, names_of};
use kubectl_acme::model::{
    Blob, Certificate, Challenge, Identifier, Key, Kind, ObjectName, Order, Record,
};
use kubectl_acme::reconcile::record_values::may_stand_together;

use self::at_once::{
    account_key_is_stored, finalizer_comes_first, key_is_stored, renewal_has_its_time,
    secret_is_whole, status_moves_as_it_may,
};
pub(crate) use self::ending::{at_the_end, is_done, remains};
use self::sequence::{Sequence, Times, is_due_again, memory_comes_first, no_burst};
use super::events::{Asked, Event};
use super::lease::USURPER;
use super::people::NAMESPACE;
use super::plan::{CaFault, Deed, Fault, Setting, Side, Wish};
use super::world::World;

type Holds = Result<(), String>;

/// How often an object is written from its making to its end, at most.
const WRITES_OF_A_LIFE: usize = 12;

/// How many nonces the plan refuses: each request goes out again then.
fn refused_nonces(world: &World) -> usize {
    let refused = world.faults.iter().map(|fault| match fault {
        Fault::Ca { what: CaFault::BadNonce(times), .. } => *times,
        _ => 0,
    });
    refused.sum::<u32>().try_into().unwrap()
}

/// What was seen so far.
#[derive(Debug)]
pub(crate) struct Observer {
    cap: usize,
    /// By the set of names: Orders that asked, newOrders that the CA has acted on, and what excuses another one.
    orders: BTreeMap<String, BTreeSet<String>>,
    made: BTreeMap<String, u32>,
    /// When the CA made orders within the last hour, by the set of names.
    hourly: BTreeMap<String, Vec<u64>>,
    excused: BTreeMap<String, u32>,
    /// The set of names that is asked for, and UIDs of the Orders that may be asking, by the number of the request.
    askers: BTreeMap<u64, (String, Vec<String>)>,
    /// How many accounts the CA has made, and how often it has forgotten all.
    accounts: (u32, u32),
    /// URLs of all orders.
    given: BTreeSet<String>,
    /// Whatever excuses any order.
    incidents: u32,
    /// How often a Certificate was to be renewed because it was time.
    renewals: u32,
    dead: BTreeSet<u32>,
    /// UIDs of Orders that came to a bad end: another try may follow each.
    failed: BTreeSet<String>,
    /// When which process asked for an order last, by the set of names, and whether that was to replace a certificate.
    last: BTreeMap<(u32, String), (u64, bool)>,
    /// UIDs of Challenges whose answers were seen where the CA looks.
    seen: BTreeSet<String>,
    /// Until when a process may not ask for an order of those names, whatever else it asks for with them.
    pauses: BTreeMap<(u32, String), u64>,
    /// The same of one request, whoever asks within a process: when that was heard, and until when it holds.
    refused: BTreeMap<(u32, String), (u64, u64)>,
    asked: Times,
    read: Times,
    wrote: Times,
    looked: Times,
    usurped: Option<u64>,
    /// Keys that a Secret has had.
    keys: HashSet<Blob>,
    /// When somebody deleted a Certificate last that had asked for an order, by the set of names: with it goes its ledger.
    deleted: BTreeMap<String, u64>,
    sequence: Sequence,
    requests: u64,
    writes: u64,
}

impl Observer {
    pub(crate) fn new(setting: &Setting) -> Self {
        Self {
            cap: setting.cap,
            made: BTreeMap::new(),
            hourly: BTreeMap::new(),
            excused: BTreeMap::new(),
            accounts: (0, 0),
            given: BTreeSet::new(),
            orders: BTreeMap::new(),
            askers: BTreeMap::new(),
            incidents: 0,
            renewals: 0,
            seen: BTreeSet::new(),
            dead: BTreeSet::new(),
            failed: BTreeSet::new(),
            last: BTreeMap::new(),
            pauses: BTreeMap::new(),
            refused: BTreeMap::new(),
            asked: Times::new(),
            read: Times::new(),
            wrote: Times::new(),
            looked: Times::new(),
            usurped: None,
            keys: HashSet::new(),
            deleted: BTreeMap::new(),
            sequence: Sequence::default(),
            requests: 0,
            writes: 0,
        }
    }

    /// Requests to the CA, and writes.
    pub(crate) fn spent(&self) -> (u64, u64) {
        (self.requests, self.writes)
    }

    pub(crate) fn saw(&mut self, world: &World, at: u64, event: Event) -> Holds {
        match event {
            Event::Asks(asked) => {
                self.requests += 1;
                let is_shared = matches!(asked.what, "directory" | "newNonce" | "newOrder");
                let again = if world.setting.refuse_nonces > 0 { 2 } else { 1 };
                let sharing = again * if is_shared { 4 } else { 1 };
                no_burst(&mut self.asked, &asked.path, at, ([sharing; 2], refused_nonces(world)))?;
                self.one_driver(world, at, asked.identity.as_deref(), asked.what, asked.is_read)?;
                self.sequence.nonce_is_new(&asked)?;
                self.pause_is_kept(world, at, &asked)?;
                match asked.what {
                    "newAccount" => account_key_is_stored(world, &asked),
                    "newOrder" => self.order_is_in_its_ledger(world, at, &asked),
                    "finalize" if !asked.is_read => {
                        self.sequence.order_has_one_key(world, &asked)?;
                        let gone =
                            if self.deleted.is_empty() { &HashSet::new() } else { &self.keys };
                        key_is_stored(world, &asked, gone)
                    }
                    "challenge" if !asked.is_read => self.answer_was_seen(world, &asked),
                    _ => Ok(()),
                }
            }
            Event::Acted { asked, status, location } => {
                self.acted(world, at, (&asked, status, location))
            }
            Event::Hears { asked, status, retry_after } => {
                self.hears(world, at, &asked, (status, retry_after));
                Ok(())
            }
            Event::Wrote { place, identity, key, before, after, deed } => {
                self.one_driver(world, at, identity.as_deref(), &deed, false)?;
                self.wrote(world, at, (place, &key), (before.as_ref(), after.as_ref()))
            }
            Event::Presents { key, uid, .. } => finalizer_comes_first(world, &key, &uid),
            // Whoever needs it reads it as long as no watch has told of its kind.
            Event::Reads { key } => no_burst(&mut self.read, &key.to_string(), at, ([8; 2], 0)),
            Event::Sees { uid, is_there, at: place } => {
                no_burst(&mut self.looked, &format!("{uid} {place}"), at, ([1; 2], 0))?;
                if is_there {
                    self.seen.insert(uid);
                }
                Ok(())
            }
            Event::Killed { .. } | Event::Lost { .. } => {
                if let Event::Killed { life, place } = event {
                    self.dead.insert(life);
                    self.sequence.forget(place);
                }
                // What the CA was asked just now nobody has written down.
                let orders: Vec<Order> = world.typed(Kind::Order);
                let unread = orders.iter().filter(|order| order.status.url.is_empty()).count();
                self.incidents += u32::try_from(unread).unwrap().max(1);
                if unread > 0 {
                    self.excuse_all();
                }
                Ok(())
            }
            Event::Strikes { fault } => {
                self.strikes(world, &fault);
                Ok(())
            }
            Event::Person { deed, certificate } => {
                self.somebody_does();
                match deed {
                    Deed::DeletesCertificate => self.deletes(world, at, &certificate),
                    Deed::Renews => self.sequence.somebody_renews(world, &certificate),
                    _ => {}
                }
                Ok(())
            }
            Event::Usurps => {
                self.somebody_does();
                self.usurped = Some(at);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A process has written: what may be said of that object alone, and what has to come before.
    fn wrote(
        &mut self,
        world: &World,
        at: u64,
        (place, key): (usize, &Key),
        change: (Option<&Record>, Option<&Record>),
    ) -> Holds {
        let (_, after) = change;
        self.writes += 1;
        self.sequence.url_comes_first(place, change)?;
        memory_comes_first(change)?;
        let about = match after {
            Some(event) if key.kind == Kind::Event => {
                format!("{} of {}", event.text("/reason"), event.text("/involvedObject/name"))
            }
            _ => key.to_string(),
        };
        let people = world.faults.iter().filter_map(|fault| match fault {
            Fault::Person { deed, .. } => Some(*deed),
            _ => None,
        });
        // Twelve orders an hour, and twelve more after a deletion.
        let is_fought_over = people.clone().any(|deed| deed == Deed::FightsOverSecret);
        let sharing = [1, if is_fought_over { 2 } else { 1 }];
        // What somebody deletes is made, and goes its way, once more; what another spec takes the place of is deleted, too.
        let lives = people.filter(|deed| *deed != Deed::Renews).count();
        no_burst(&mut self.wrote, &about, at, (sharing, WRITES_OF_A_LIFE * lives))?;
        match after {
            Some(order)
                if key.kind == Kind::Order
                    && matches!(order.text("/status/state"), "invalid" | "errored" | "expired") =>
            {
                self.failed.insert(order.uid().to_owned());
            }
            Some(secret) if key.kind == Kind::Secret => {
                let key = secret.object["data"]["tls.key"].clone();
                self.keys.extend(serde_json::from_value::<Blob>(key));
            }
            _ => {}
        }
        if is_due_again(change) {
            self.renewals += 1;
            renewal_has_its_time(world, change)?;
        }
        secret_is_whole(world, change)?;
        self.sequence.failure_is_of_its_own(change)?;
        self.slots_are_kept(world, key)?;
        status_moves_as_it_may(change)
    }

    /// Somebody deletes a Certificate: what it has asked for just now goes out all the same.
    fn deletes(&mut self, world: &World, at: u64, certificate: &str) {
        let name = ObjectName::new(NAMESPACE, certificate);
        if let Some(certificate) = world.peek(&Key::new(Kind::Certificate, name)) {
            let open = open_entries(&certificate.metadata().annotations);
            self.deleted.extend(open.map(|entry| (entry.names, at)));
        }
    }

    /// The CA has acted: it may have made an order.
    fn acted(
        &mut self,
        world: &World,
        at: u64,
        (asked, status, location): (&Asked, u16, Option<String>),
    ) -> Holds {
        let names = self.askers.get(&asked.number).filter(|_| status == 201);
        if let Some((names, _)) = names.cloned() {
            if !self.given.insert(location.unwrap_or_default()) {
                // Several have it, and one uses it.
                self.incidents += 1;
                *self.excused.entry(names.clone()).or_default() += 1;
            }
            // Nobody hears of what one who is dead had asked for.
            if self.dead.contains(&asked.life) {
                *self.excused.entry(names.clone()).or_default() += 1;
            }
            *self.made.entry(names.clone()).or_default() += 1;
            self.orders_are_few(world, at, &names)?;
        }
        if asked.what == "newAccount" && status == 201 {
            self.accounts.0 += 1;
            let (made, forgotten) = self.accounts;
            if made > forgotten + 1 {
                return Err(format!("one account: {made} were made"));
            }
        }
        Ok(())
    }

    /// A fault strikes: it may cost orders.
    fn strikes(&mut self, world: &World, fault: &Fault) {
        self.incidents += 1;
        let Fault::Ca { what, .. } = fault else { return };
        if matches!(what, CaFault::ForgetsAccounts) {
            self.accounts.1 += 1;
        }
        match what {
            CaFault::Spoils | CaFault::ForgetsOrders | CaFault::ForgetsAccounts => {
                // All orders at once.
                self.incidents += u32::try_from(world.setting.wishes.len()).unwrap();
                self.excuse_all();
            }
            CaFault::Says { .. } => self.excuse_all(),
            _ => {}
        }
    }

    /// Somebody does something: it may cost an order, and what is made anew knows nothing of what was refused before.
    fn somebody_does(&mut self) {
        self.incidents += 1;
        self.pauses.clear();
        self.sequence.begins_anew();
    }

    /// Whether somebody has just deleted a Certificate that had asked for an order, of which whoever asks the CA cannot have heard:
    /// an answer of the store and a request were under way.
    fn may_not_know(&self, world: &World, at: u64, names: &str) -> bool {
        // Nonces that are refused, and slow ones where another one may take what was read before, keep a newOrder under way for longer.
        let is_alone = world.setting.wishes.len() == 1;
        let is_delayed = world.setting.refuse_nonces > 0
            || world.faults.iter().any(|fault| match fault {
                Fault::Ca { what: CaFault::BadNonce(_), .. } => true,
                Fault::Ca { what: CaFault::Slow(_), .. } => !is_alone,
                _ => false,
            });
        let delay = if is_delayed { 60_000 } else { 10 };
        let deleted = self.deleted.get(names);
        deleted.is_some_and(|deleted| at <= deleted + 4 * world.setting.latency + delay)
    }

    /// Notes what a process hears of the CA.
    fn hears(
        &mut self,
        world: &World,
        at: u64,
        asked: &Asked,
        (status, pause): (Option<u16>, Option<u64>),
    ) {
        // Whoever was told may be gone by then, and what is made anew knows nothing of that.
        let is_gone = self.askers.get(&asked.number).is_some_and(|(_, orders)| {
            let there: Vec<Order> = world.typed(Kind::Order);
            !there.iter().any(|order| orders.contains(&order.metadata.uid))
        });
        if let Some((names, orders)) = self.askers.get(&asked.number) {
            match status {
                Some(201) => self.sequence.order_is_made(asked.place, orders),
                status => {
                    if status.is_some_and(|status| status >= 500 && status != 503) {
                        self.sequence.order_fails(asked, orders);
                    }
                    *self.excused.entry(names.clone()).or_default() += 1;
                }
            }
        }
        // An Order that is gone is told nothing, and the next one may have the same order.
        let is_told = asked.what != "order"
            || world
                .typed::<Order>(Kind::Order)
                .iter()
                .any(|o| o.status.url.ends_with(&asked.path));
        if let Some(status) = status.filter(|_| is_told) {
            self.sequence.hears(at, asked, status, pause);
        }
        if let (Some(429 | 503), Some(seconds)) = (status, pause)
            && !matches!(asked.what, "directory" | "newNonce")
        {
            // A date is cut to the second.
            let until = at + (seconds * 1000).saturating_sub(1_100);
            self.refused.insert((asked.life, request(asked)), (at, until));
            if asked.what == "newOrder" && !is_gone {
                self.pauses.insert((asked.life, identifiers(asked)), until);
            }
        }
    }

    /// One driver at a time: whoever writes, or asks a CA for more than to tell, stands in the Lease, or nobody does. A name that
    /// somebody puts there in between is seen at the next look.
    fn one_driver(
        &self,
        world: &World,
        at: u64,
        identity: Option<&str>,
        deed: &str,
        is_read: bool,
    ) -> Holds {
        if !world.setting.cluster || is_read {
            return Ok(());
        }
        let holder = world.lease.holder();
        let is_fresh = self.usurped.is_some_and(|usurped| at < usurped + 15_000);
        match (holder.as_deref(), identity) {
            (Some(USURPER), _) if is_fresh => Ok(()),
            (Some(holder), Some(identity)) if holder != identity => {
                Err(format!("one driver: {identity} does {deed} while {holder} holds the Lease"))
            }
            _ => Ok(()),
        }
    }

    /// Retry-After is heeded: the same process does not ask for the same before.
    fn pause_is_kept(&mut self, world: &World, at: u64, asked: &Asked) -> Holds {
        // Within a process the time goes on when the clock is set back, up to a minute.
        let moved = world.faults.iter().filter_map(|fault| match fault {
            Fault::Clock { place, by, .. } if *place == asked.place => Some(*by),
            _ => None,
        });
        let jumps = moved.clone().any(|by| by > 0) || moved.sum::<i64>() < -60;
        if jumps {
            return Ok(());
        }
        let early = |until: u64| {
            Err(format!(
                "Retry-After: {} {} is asked for {} ms before its time",
                asked.what,
                asked.path,
                until - at
            ))
        };
        // Another one may have been under way when that was heard.
        let under_way = 4 * world.setting.latency + 10;
        match self.refused.get(&(asked.life, request(asked))) {
            Some((heard, until)) if at > heard + under_way && at < *until => return early(*until),
            _ => {}
        }
        // Several Orders that share an order or an authorization are told each for itself.
        let setting = &world.setting;
        let shares =
            setting.wishes.len() > 1 && (setting.reuse_orders || setting.reuse_authorizations);
        if shares {
            return Ok(());
        }
        // What could not be written down is asked again.
        let is_written = |fault: &Fault| match fault {
            Fault::Store { point, .. } => !point.ends_with(" Order"),
            Fault::Outage { of, .. } => *of != Side::ApiServer,
            _ => true,
        };
        if world.faults.iter().all(is_written) {
            self.sequence.poll_is_kept(at, asked)?;
        }
        match self.pauses.get(&(asked.life, identifiers(asked))) {
            Some(until) if asked.what == "newOrder" && at < *until => early(*until),
            _ => Ok(()),
        }
    }

    /// At most one order for each Certificate and try: what is asked for stands in the ledger of a Certificate before, and an Order
    /// that has one asks for no other, save where the answer was lost or the CA has dropped it.
    fn order_is_in_its_ledger(&mut self, world: &World, at: u64, asked: &Asked) -> Holds {
        let (names, asking) = askers(world, asked);
        if self.may_not_know(world, at, &names) {
            // Its ledger may be gone, and another one's may be taken for it.
            *self.excused.entry(names.clone()).or_default() += 1;
            self.incidents += 1;
        } else if asking.is_empty() {
            return Err("one order: a newOrder goes out that stands in no ledger".to_owned());
        }
        self.askers.insert(asked.number, (names.clone(), asking.clone()));
        self.sequence.fault_is_asked_over_otherwise(asked, &asking)?;
        self.orders_are_apart(world, at, &names, asked)?;
        let orders = self.orders.entry(names.clone()).or_default();
        orders.extend(asking);
        let each = u32::try_from(orders.len()).unwrap();
        let count = |of: &BTreeMap<String, u32>| of.get(&names).copied().unwrap_or(0);
        let (made, excused) = (count(&self.made), count(&self.excused));
        if made >= each + excused {
            return Err(format!(
                "one order: {each} Orders for {} ask for another one after {made}, {excused} excused",
                asked.payload["identifiers"]
            ));
        }
        let all: u32 = self.made.values().sum();
        let most = u32::try_from(world.setting.wishes.len()).unwrap()
            + self.renewals
            + 2 * self.incidents
            + 2 * u32::try_from(self.failed.len()).unwrap();
        if all > most {
            return Err(format!(
                "one order: {all} orders were made, {most} at most can be explained"
            ));
        }
        Ok(())
    }

    /// Two newOrders of one process for one set of names are ten seconds apart, save where a nonce was refused, or where the CA does
    /// not take it that a certificate is replaced: the same goes out once more without that.
    fn orders_are_apart(&mut self, world: &World, at: u64, names: &str, asked: &Asked) -> Holds {
        let replaces = !asked.payload["replaces"].is_null();
        let last = self.last.insert((asked.life, names.to_owned()), (at, replaces));
        let last = last.filter(|(_, replaced)| replaces || !replaced).map(|(at, _)| at);
        let refuses = world.setting.refuse_nonces > 0
            || world.faults.iter().any(|fault| {
                matches!(
                    fault,
                    Fault::Ca {
                        what: CaFault::BadNonce(_) | CaFault::Page | CaFault::ForgetsAccounts,
                        ..
                    }
                )
            });
        match last.filter(|last| !refuses && last + 10_000 > at) {
            Some(last) => {
                Err(format!("one order: another one {} ms after the last one", at - last))
            }
            None => Ok(()),
        }
    }

    /// Twelve orders an hour at most for each Certificate and its names, whatever brings it to ask.
    fn orders_are_few(&mut self, world: &World, at: u64, names: &str) -> Holds {
        // What is deleted takes its ledger along, and whoever has only that counts by its own clock.
        let is_counted = |fault: &Fault| match fault {
            Fault::Person { deed, .. } => *deed != Deed::DeletesCertificate,
            Fault::Clock { .. } => false,
            _ => true,
        };
        let setting = &world.setting;
        let is_same = |given: &[String]| {
            let given = given.iter().filter_map(|name| Identifier::parse(name).ok());
            names_of(&given.collect::<Vec<_>>()) == names
        };
        let asks = |wish: &&Wish| is_same(&wish.names) || is_same(&wish.changed_names());
        let certificates = setting.wishes.iter().filter(asks).count();
        let within = self.hourly.entry(names.to_owned()).or_default();
        within.retain(|made| made + 3_600_000 > at);
        within.push(at);
        let is_exact = setting.skews.iter().all(|skew| *skew == 0);
        if within.len() > 12 * certificates + world.faults.len()
            && is_exact
            && world.faults.iter().all(is_counted)
        {
            return Err(format!("one order: {} for the same names within an hour", within.len()));
        }
        Ok(())
    }

    /// One more order for each Order that has asked has its reason.
    fn excuse_all(&mut self) {
        for (names, asking) in &self.orders {
            let each = u32::try_from(asking.len()).unwrap();
            *self.excused.entry(names.clone()).or_default() += each;
        }
    }

    /// No acceptance before the answer was seen.
    fn answer_was_seen(&self, world: &World, asked: &Asked) -> Holds {
        let challenges: Vec<Challenge> = world.typed(Kind::Challenge);
        let url = super::ca::url(&asked.path).to_string();
        // Those of Orders that share an order have one answer. None is left where all were deleted meanwhile.
        let mut sharing =
            challenges.iter().filter(|challenge| challenge.spec.url == url).peekable();
        let Some(first) = sharing.peek().map(|challenge| challenge.name()) else { return Ok(()) };
        if sharing.any(|challenge| self.seen.contains(&challenge.metadata.uid)) {
            return Ok(());
        }
        Err(format!("acceptance: the answer of {first} was never seen"))
    }

    /// Never more challenges under way than the cap, and two for one name and type only where their values may stand together.
    fn slots_are_kept(&self, world: &World, written: &Key) -> Holds {
        if written.kind != Kind::Challenge {
            return Ok(());
        }
        let challenges: Vec<Challenge> = world.typed(Kind::Challenge);
        let running: Vec<&Challenge> = challenges.iter().filter(|c| c.status.processing).collect();
        if running.len() > self.cap {
            return Err(format!(
                "cap: {} challenges under way, {} may be",
                running.len(),
                self.cap
            ));
        }
        for (place, challenge) in running.iter().enumerate() {
            let name = |of: &Challenge| (of.spec.dns_name.clone(), of.spec.kind);
            let mut others = running[..place].iter();
            if others.any(|o| name(o) == name(challenge) && !may_stand_together(o, challenge)) {
                return Err(format!(
                    "lock: two challenges for {} under way",
                    challenge.spec.dns_name
                ));
            }
        }
        Ok(())
    }
}

/// A request as it is the same again, but for its nonce and its signature.
fn request(asked: &Asked) -> String {
    format!("{} {}", asked.path, asked.payload)
}

/// The names that an order is asked for with.
fn identifiers(asked: &Asked) -> String {
    asked.payload["identifiers"].to_string()
}

/// The set of names of a newOrder as ledgers have it, and UIDs of the Orders whose entry in one may be for it.
fn askers(world: &World, asked: &Asked) -> (String, Vec<String>) {
    let wanted = asked.payload["identifiers"].as_array().into_iter().flatten();
    let wanted = wanted.filter_map(|i| Identifier::parse(i["value"].as_str()?).ok());
    let names = names_of(&wanted.collect::<Vec<_>>());
    let certificates: Vec<Certificate> = world.typed(Kind::Certificate);
    let open = certificates.iter().flat_map(|c| open_entries(&c.metadata.annotations));
    let open = open.filter(|entry| entry.names == names).map(|entry| entry.uid).collect();
    (names, open)
}

/// What a ledger has of orders that may be asked for just now.
fn open_entries(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = Entry> + use<> {
    let entries = Ledger::read(annotations).0.into_iter();
    entries.filter(|entry| matches!(entry.became, RequestOutcome::Asked | RequestOutcome::NotMade))
}
