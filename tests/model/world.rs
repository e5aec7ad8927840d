//! All that may happen next: steps of processes, the CA's own work, time, and what goes wrong.

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use kubectl_acme::model::{Challenge, Issuer, Order};
use kubectl_acme::reconcile::{Wake, challenge, order};

use super::apply::{Branch, End};
use super::challenge_step::Plan;
use super::objects;
use super::order_step::OrderWrites;
use super::properties::{is_as_it_should_be, is_over, was_just_asked};
use super::search::{Model, Successors};
use super::setting::Setting;
use super::shelf::{Id, Shelf};
use super::state::{
    CaState, Heard, Job, LAST, Left, NAMES, ORDERS, Objects, Poll, Process, Proof, SLOTS, State,
    Write, bit,
};

type OrderKey = (Id, [Option<Id>; SLOTS], Option<Heard>, u8);
type ChallengeKey = (Id, Id, u8, Option<Poll>, (bool, bool, bool, bool));

/// What a step comes to.
pub(crate) enum Step {
    Waits(Wake),
    Goes(Vec<Branch>),
}

/// What happened.
pub(crate) enum Label {
    Step(u8, Job, &'static str, End),
    Lands(u8, Job),
    Ca(u8, &'static str),
    Told(&'static str, u8),
    Tick(u8),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(process, job, what, End::Written) => {
                write!(f, "process {process}: {job:?}: {what}")
            }
            Self::Step(process, job, what, End::Late) => {
                write!(f, "process {process}: {job:?}: {what}, to be written later")
            }
            Self::Step(process, job, what, End::KilledAfter(writes)) => {
                write!(f, "process {process}: {job:?}: {what}, killed after {writes} writes")
            }
            Self::Lands(process, job) => {
                write!(f, "process {process}: {job:?}: what was late is written")
            }
            Self::Ca(order, what) => write!(f, "the CA: order {order}: {what}"),
            Self::Told(what, process) => write!(f, "process {process} {what}"),
            Self::Tick(now) => write!(f, "it is moment {now}"),
        }
    }
}

/// The objects that were met, and what the machines said of them.
pub(crate) struct World {
    pub(crate) setting: Setting,
    pub(crate) issuer: Issuer,
    pub(crate) orders: Shelf<Order>,
    pub(crate) challenges: Shelf<Challenge>,
    pub(crate) order_actions: HashMap<OrderKey, Rc<order::Action>>,
    pub(crate) order_records: HashMap<(Id, u8, String), Rc<OrderWrites>>,
    pub(crate) challenge_actions: HashMap<ChallengeKey, Rc<challenge::Action>>,
    pub(crate) challenge_records: HashMap<(Id, u8, String), Vec<Write>>,
    pub(crate) plans: HashMap<([Option<Id>; SLOTS], Id), Rc<Plan>>,
}

/// What may happen next, as it is gathered.
#[derive(Default)]
struct Gathered {
    all: Vec<(Label, Result<State, String>)>,
    calm: Option<usize>,
    /// Somebody has something to do.
    is_busy: bool,
    /// Somebody waits for a moment.
    waits: bool,
}

impl Gathered {
    fn add(&mut self, label: Label, result: Result<State, String>, is_calm: bool) {
        if is_calm && self.calm.is_none() {
            self.calm = Some(self.all.len());
        }
        self.all.push((label, result));
    }
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        Self {
            setting,
            issuer: objects::issuer(),
            orders: Shelf::new(),
            challenges: Shelf::new(),
            order_actions: HashMap::new(),
            order_records: HashMap::new(),
            challenge_actions: HashMap::new(),
            challenge_records: HashMap::new(),
            plans: HashMap::new(),
        }
    }

    fn works(&self, state: &State, process: u8) -> bool {
        !self.setting.is_leased || state.holder == process
    }

    /// What every process that works may do.
    fn steps(&mut self, state: &State, gathered: &mut Gathered) {
        for process in [0, 1] {
            if !self.works(state, process) {
                continue;
            }
            let lagging = state.stale.filter(|(whose, _)| *whose == process).map(|(_, view)| view);
            let challenges = (0..u8::try_from(SLOTS).unwrap()).map(Job::Challenge);
            for job in [Job::Order, Job::Scheduler].into_iter().chain(challenges) {
                let flight = state.processes[usize::from(process)].flight;
                if flight.is_some_and(|flight| flight.job == job) {
                    continue;
                }
                // A Challenge may see its Order as it was; it is woken by what it is itself.
                let order = lagging.map_or(state.store.order, |view| view.order);
                let beside = Objects { order, ..state.store };
                let step = match job {
                    Job::Order => self.order_step(state, process, &lagging.unwrap_or(state.store)),
                    Job::Scheduler => self.schedule(state, &state.store),
                    Job::Challenge(slot) => self.challenge_step(state, process, &beside, slot),
                };
                match step {
                    Step::Waits(wake) => gathered.waits |= matches!(wake, Wake::At(_)),
                    Step::Goes(branches) => self.goes(state, process, job, branches, gathered),
                }
            }
        }
    }

    fn goes(
        &mut self,
        state: &State,
        process: u8,
        job: Job,
        branches: Vec<Branch>,
        gathered: &mut Gathered,
    ) {
        gathered.is_busy = true;
        for (index, branch) in branches.into_iter().enumerate() {
            for (what, end, result) in self.endings(process, job, branch) {
                let is_calm = index == 0 && matches!(end, End::Written);
                let result = match result {
                    Ok(after) if is_calm && after == *state => {
                        Err(format!("bounds: {job:?} does the same again and again: {what}"))
                    }
                    result => result,
                };
                gathered.add(Label::Step(process, job, what, end), result, is_calm);
            }
        }
    }

    /// What the CA does by itself.
    fn ca(state: &State, gathered: &mut Gathered) {
        for number in 0..ORDERS {
            let Some(at_ca) = state.ca[number] else { continue };
            let label = |what| Label::Ca(u8::try_from(number).unwrap(), what);
            let changed = |change: &dyn Fn(&mut super::state::CaOrder)| {
                let mut after = *state;
                change(after.ca[number].as_mut().unwrap());
                after
            };
            let invalid = |cost: u8| {
                let mut after = changed(&|order| order.state = CaState::Invalid);
                after.left.answers -= cost;
                after.may_fail = true;
                after
            };
            match at_ca.state {
                CaState::Pending => {
                    for name in 0..NAMES.len() {
                        if at_ca.authorizations[name] != Proof::Looking {
                            continue;
                        }
                        let slot = u8::try_from(number * NAMES.len() + name).unwrap();
                        let is_up = state.up & bit(slot) != 0;
                        if is_up {
                            let valid = changed(&|order| {
                                order.authorizations[name] = Proof::Valid;
                                if order.authorizations == [Proof::Valid; 2] {
                                    order.state = CaState::Ready;
                                }
                            });
                            gathered.add(label("a name is proved"), Ok(valid), true);
                        }
                        if !is_up || state.left.answers > 0 {
                            let mut after = invalid(u8::from(is_up));
                            after.ca[number].as_mut().unwrap().authorizations[name] =
                                Proof::Invalid;
                            gathered.add(label("a name is not proved"), Ok(after), false);
                        }
                    }
                }
                CaState::Processing => {
                    let valid = changed(&|order| order.state = CaState::Valid);
                    gathered.add(label("the certificate is issued"), Ok(valid), true);
                    if state.left.answers > 0 {
                        gathered.add(label("the certificate is not issued"), Ok(invalid(1)), false);
                    }
                }
                CaState::Ready | CaState::Valid | CaState::Invalid | CaState::Dropped => {}
            }
        }
    }

    /// What goes wrong with processes and with what they see.
    fn mishaps(&mut self, state: &State, gathered: &mut Gathered) {
        if state.left.touches > 0 {
            let mut touched = *state;
            touched.left.touches -= 1;
            let mut order = (*self.orders.get(state.store.order)).clone();
            order.metadata.annotations.insert("a-person".to_owned(), "was here".to_owned());
            touched.store.order = self.orders.put(order);
            gathered.add(
                Label::Told("is not asked: a person writes to the Order", 0),
                Ok(touched),
                false,
            );
        }
        for process in [0, 1] {
            let works = self.works(state, process);
            let is_late = state.processes[usize::from(process)].flight.is_some();
            if works && state.left.kills > 0 {
                let killed = self.killed(*state, process);
                gathered.add(Label::Told("is killed", process), Ok(killed), false);
                if self.setting.is_leased && is_late {
                    let mut lost = *state;
                    lost.left.kills -= 1;
                    lost.holder = 1 - process;
                    lost.excused +=
                        u8::from(self.orders.get(lost.store.order).status.url.is_empty());
                    gathered.add(Label::Told("loses the Lease", process), Ok(lost), false);
                }
            }
            if state.left.stale > 0 && state.stale.is_none() {
                let mut lags = *state;
                lags.left.stale -= 1;
                lags.stale = Some((process, state.store));
                gathered.add(
                    Label::Told("sees no more of what others write", process),
                    Ok(lags),
                    false,
                );
            }
        }
    }
}

impl Model for World {
    type State = State;
    type Label = Label;

    fn first(&self) -> State {
        // The shelf has it under its first number.
        State {
            now: 0,
            store: Objects { order: 0, challenges: [None; SLOTS], ledger: [None; 4] },
            ca: [None; ORDERS],
            up: 0,
            seen: 0,
            processes: [Process::default(); 2],
            holder: 0,
            stale: None,
            left: self.setting.left,
            excused: 0,
            asked: None,
            patience: None,
            may_fail: false,
        }
    }

    fn successors(&mut self, state: &State) -> Successors<State, Label> {
        if self.orders.len() == 0 {
            assert_eq!(self.orders.put(objects::order()), 0);
        }
        let mut gathered = Gathered::default();
        for process in [0, 1] {
            if let Some(flight) = state.processes[usize::from(process)].flight {
                let landed = self.land(state, process);
                gathered.add(Label::Lands(process, flight.job), landed, true);
            }
        }
        Self::ca(state, &mut gathered);
        self.steps(state, &mut gathered);
        let is_end = is_over(self, state) && !gathered.is_busy && state.stale.is_none();
        if is_end {
            // Nobody has anything to do; what still may happen concerns nobody.
            let all = match is_as_it_should_be(self, state) {
                Ok(()) => Vec::new(),
                Err(why) => vec![(Label::Tick(state.now), Err(why))],
            };
            return Successors { all, calm: None, is_end };
        }
        if let Some((whose, _)) = state.stale {
            let caught_up = State { stale: None, ..*state };
            gathered.add(Label::Told("sees all again", whose), Ok(caught_up), true);
        }
        let is_late = state.now + 1 >= self.setting.moments;
        if state.now < LAST && (!is_late || gathered.calm.is_none() && gathered.waits) {
            let mut later = State { now: state.now + 1, ..*state };
            // What is as long ago concerns nobody any more.
            later.asked = later.asked.filter(|_| was_just_asked(&later).is_some());
            if is_late {
                later.left = Left::default();
            }
            gathered.add(Label::Tick(later.now), Ok(later), gathered.waits);
        }
        if state.now < self.setting.moments {
            self.mishaps(state, &mut gathered);
        } else if let Some(calm) = gathered.calm {
            let only = gathered.all.swap_remove(calm);
            return Successors { all: vec![only], calm: Some(0), is_end };
        }
        Successors { all: gathered.all, calm: gathered.calm, is_end }
    }

    fn show(&self, state: &State) -> String {
        let text = |value: serde_json::Value| {
            let line = value.to_string();
            line.chars().take(900).collect::<String>()
        };
        let order = self.orders.get(state.store.order);
        let mut lines = vec![format!("{state:?}")];
        let status =
            serde_json::json!({"status": order.status, "memory": order.metadata.annotations});
        lines.push(format!("Order {}", text(status)));
        for (slot, id) in state.store.challenges.iter().enumerate() {
            let Some(id) = id else { continue };
            let challenge = self.challenges.get(*id);
            let shown = serde_json::json!({"status": challenge.status, "memory": challenge.metadata.annotations});
            lines.push(format!("Challenge {slot} {}", text(shown)));
        }
        lines.join("\n")
    }
}
