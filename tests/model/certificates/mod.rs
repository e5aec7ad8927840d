//! A Certificate with its request, its keys and its Secret, and an Order below that is good or bad. No process knows anything of
//! these beyond the store, so that two of them are one that reads what was, or that writes late.

mod deeds;
mod facts;
mod holds;

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use jiff::Timestamp;
use kubectl_acme::model::{Certificate, CertificateRequest, Issuer};
use kubectl_acme::reconcile::Wake;
use kubectl_acme::reconcile::{certificate, request};

use super::search::{Model, Successors};
use super::shelf::{Id, Shelf};

/// Places for temporary Secrets.
pub(crate) const KEYS: usize = 6;
/// Seconds.
const MOMENTS: [i64; 7] = [0, 30, 3_700, 11_500, 30_000, 60_000, 100_000];

pub(crate) fn moment(number: u8) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + MOMENTS[usize::from(number)]).unwrap()
}

/// A fault of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgets {
    /// Which key it has stored, and signs with a fresh one.
    Key,
    /// To take the temporary Secret away.
    NextKey,
    /// That a try has failed just now.
    Pause,
    /// Which of the requests of one name it is to delete.
    WhichRequest,
}

/// What is searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) left: Left,
    pub(crate) moments: u8,
    pub(crate) forgets: Option<Forgets>,
}

/// How much may still go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) kills: u8,
    pub(crate) stale: u8,
    pub(crate) late: u8,
    /// Orders that fail, or bring something else.
    pub(crate) failures: u8,
}

/// What the store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    pub(crate) certificate: Id,
    pub(crate) request: Option<Id>,
    /// Temporary Secrets, and the key in each.
    pub(crate) keys: [Option<u8>; KEYS],
    /// The Secret: its key, and that of its certificate.
    pub(crate) secret: Option<(u8, u8)>,
    pub(crate) order: Option<Below>,
}

/// The Order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Below {
    pub(crate) number: u8,
    /// Which request made it.
    pub(crate) owner: u8,
    pub(crate) key: u8,
    pub(crate) state: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Progress {
    UnderWay,
    Valid,
    /// It brought a certificate for that key.
    Another(u8),
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Write {
    Certificate {
        base: Id,
        new: Id,
    },
    NewKey {
        slot: u8,
        key: u8,
    },
    KeyGone {
        slot: u8,
    },
    NewRequest(Id),
    Request {
        base: Id,
        new: Id,
    },
    /// That very request.
    RequestGone {
        number: u8,
    },
    Secret {
        base: Option<(u8, u8)>,
        new: (u8, u8),
    },
    NewOrder(Below),
    /// That very Order.
    OrderGone {
        number: u8,
    },
}

/// Everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) now: u8,
    pub(crate) store: Stored,
    pub(crate) keys_made: u8,
    pub(crate) secrets_made: u8,
    pub(crate) requests_made: u8,
    pub(crate) orders_made: u8,
    /// What excuses another Order.
    pub(crate) excused: u8,
    /// What the next step sees in place of what is there.
    pub(crate) stale: Option<Stored>,
    /// Writes that come late.
    pub(crate) flight: Option<[Option<Write>; 3]>,
    pub(crate) left: Left,
}

/// What comes of a step, before its writes.
pub(crate) enum Step {
    Waits(Wake),
    Goes(&'static str, State, Vec<Write>),
    /// It must not come to that.
    Fails(String),
}

pub(crate) struct World {
    pub(crate) bounds: Bounds,
    pub(crate) issuer: Issuer,
    pub(crate) certificates: Shelf<Certificate>,
    pub(crate) requests: Shelf<CertificateRequest>,
    pub(crate) actions: HashMap<(Stored, u8), Rc<certificate::types::Action>>,
    pub(crate) answers: HashMap<(Id, Option<Below>, u8), Rc<request::Action>>,
}

#[derive(Debug)]
pub(crate) struct Label(&'static str, &'static str);

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

type Next = (Label, Result<State, String>);

impl World {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let mut certificates = Shelf::new();
        certificates.put(facts::certificate());
        let (actions, answers) = (HashMap::new(), HashMap::new());
        let (requests, issuer) = (Shelf::new(), facts::issuer());
        Self { bounds, issuer, certificates, requests, actions, answers }
    }

    /// All ways in which a step may end.
    fn endings(&mut self, what: &'static str, mut after: State, writes: &[Write]) -> Vec<Next> {
        after.stale = None;
        let mut endings = vec![(Label(what, ""), self.write_all(after, writes))];
        if after.left.kills > 0 {
            after.left.kills -= 1;
            for number in 0..writes.len() {
                let killed = self.write_all(after, &writes[..number]);
                endings.push((Label(what, "and is killed before it is all written"), killed));
            }
            after.left.kills += 1;
        }
        if after.left.late > 0 && after.flight.is_none() && !writes.is_empty() {
            after.left.late -= 1;
            let mut late = [None; 3];
            late.iter_mut().zip(writes).for_each(|(place, write)| *place = Some(*write));
            after.flight = Some(late);
            endings.push((Label(what, "and writes late"), Ok(after)));
        }
        endings
    }

    fn write_all(&self, mut state: State, writes: &[Write]) -> Result<State, String> {
        for write in writes {
            if !self.write(&mut state, *write)? {
                break;
            }
        }
        Ok(state)
    }

    /// Writes once; returns whether the store took it.
    fn write(&self, state: &mut State, write: Write) -> Result<bool, String> {
        let before = state.store;
        let store = &mut state.store;
        match write {
            Write::Certificate { base, new } if store.certificate == base => {
                store.certificate = new;
            }
            Write::Request { base, new } if store.request == Some(base) => {
                store.request = Some(new);
            }
            Write::NewRequest(id) if store.request.is_none() => store.request = Some(id),
            Write::Secret { base, new } if store.secret == base => store.secret = Some(new),
            Write::NewOrder(order) if store.order.is_none() => {
                state.orders_made += 1;
                store.order = Some(Below { number: state.orders_made, ..order });
                holds::one_order(state)?;
            }
            Write::NewKey { slot, key } => {
                let place = &mut store.keys[usize::from(slot)];
                if place.is_some() {
                    return Ok(false);
                }
                *place = Some(key);
            }
            Write::KeyGone { slot } => store.keys[usize::from(slot)] = None,
            Write::RequestGone { number } => {
                let is_that = |id: Id| facts::number_of(&self.requests.get(id)) == number;
                if self.bounds.forgets == Some(Forgets::WhichRequest) {
                    store.request = None;
                } else if store.request.is_some_and(|id| !is_that(id)) {
                    return Ok(false);
                } else {
                    store.request = None;
                }
            }
            Write::OrderGone { number } => store.order = store.order.filter(|o| o.number != number),
            Write::Certificate { .. }
            | Write::Request { .. }
            | Write::NewRequest(_)
            | Write::Secret { .. }
            | Write::NewOrder(_) => return Ok(false),
        }
        holds::after_write(self, &before, state, write)?;
        Ok(true)
    }

    /// What is below works by itself: the Order ends, and what nobody owns is collected.
    fn below(&self, state: &State, next: &mut Vec<Next>) {
        let Some(order) = state.store.order else { return };
        let owner = state.store.request.map(|id| facts::number_of(&self.requests.get(id)));
        if owner != Some(order.owner) {
            let mut after = *state;
            after.store.order = None;
            next.push((
                Label("the store", "collects the Order of a request that is gone"),
                Ok(after),
            ));
        }
        if order.state != Progress::UnderWay {
            return;
        }
        let ends = |state: Progress, cost: u8, from: &State| {
            let mut after = *from;
            after.store.order = Some(Below { state, ..order });
            after.left.failures -= cost;
            after.excused += cost;
            after
        };
        let good = holds::key_is_stored(&state.store, order.key);
        next.push((Label("the Order", "is valid"), good.map(|()| ends(Progress::Valid, 0, state))));
        if state.left.failures > 0 {
            next.push((Label("the Order", "fails"), Ok(ends(Progress::Failed, 1, state))));
            let another = ends(Progress::Another(99), 1, state);
            next.push((Label("the Order", "brings a certificate for another key"), Ok(another)));
        }
    }
}

impl Model for World {
    type State = State;
    type Label = Label;

    fn first(&self) -> State {
        let store =
            Stored { certificate: 0, request: None, keys: [None; KEYS], secret: None, order: None };
        State {
            now: 0,
            store,
            keys_made: 0,
            secrets_made: 0,
            requests_made: 0,
            orders_made: 0,
            excused: 0,
            stale: None,
            flight: None,
            left: self.bounds.left,
        }
    }

    fn successors(&mut self, state: &State) -> Successors<State, Label> {
        let (mut next, mut calm, mut waits): (Vec<Next>, Option<usize>, bool) =
            (vec![], None, false);
        if let Some(flight) = state.flight {
            let writes: Vec<Write> = flight.into_iter().flatten().collect();
            let landed = self.write_all(State { flight: None, ..*state }, &writes);
            calm = Some(0);
            next.push((Label("what was late", "is written"), landed));
        }
        let quiet = next.len();
        self.below(state, &mut next);
        if next.len() > quiet {
            calm = calm.or(Some(quiet));
        }
        let view = state.stale.unwrap_or(state.store);
        let mut is_busy = false;
        for step in [self.certificate_step(state, &view), self.request_step(state, &view)] {
            match step {
                Step::Waits(wake) => waits |= matches!(wake, Wake::At(_)),
                Step::Fails(why) => next.push((Label("a step", "too many"), Err(why))),
                Step::Goes(what, after, writes) => {
                    is_busy = true;
                    calm = calm.or(Some(next.len()));
                    next.extend(self.endings(what, after, &writes));
                }
            }
        }
        if !is_busy && state.stale.is_none() && next.is_empty() && holds::is_over(self, state) {
            return Successors { all: Vec::new(), calm: None, is_end: true };
        }
        if state.stale.is_some() {
            calm = calm.or(Some(next.len()));
            next.push((Label("all is seen", "as it is"), Ok(State { stale: None, ..*state })));
        }
        let is_late = state.now + 1 >= self.bounds.moments;
        let is_last = usize::from(state.now) + 1 == MOMENTS.len();
        // No write is on its way for so long.
        let may_go_by = !is_last && state.flight.is_none();
        if may_go_by && (!is_late || calm.is_none() && waits) {
            let mut later = State { now: state.now + 1, ..*state };
            if is_late {
                later.left = Left::default();
            }
            if waits {
                calm = calm.or(Some(next.len()));
            }
            next.push((Label("time", "goes by"), Ok(later)));
        }
        if state.left.stale > 0 && state.stale.is_none() {
            let mut lags = *state;
            lags.left.stale -= 1;
            lags.stale = Some(state.store);
            next.push((Label("the next step", "will see what is there now"), Ok(lags)));
        }
        Successors { all: next, calm, is_end: false }
    }

    fn show(&self, state: &State) -> String {
        let certificate = self.certificates.get(state.store.certificate);
        let request = state.store.request.map(|id| self.requests.get(id));
        let status = request.map(|request| request.status.clone());
        format!("{state:?}\n{:#?}\n{status:#?}", certificate.status)
    }
}
