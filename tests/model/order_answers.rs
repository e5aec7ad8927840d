//! What the CA is asked for an order, and what it answers: the truth, or one of the ways in which it may go wrong.

use kubectl_acme::model::Order;
use kubectl_acme::model::order_ledger::RequestOutcome;
use kubectl_acme::reconcile::order::{Action, OrderRequest, Outcome};
use kubectl_acme::reconcile::{Refusal, Wake};

use super::apply::Branch;
use super::budget;
use super::objects::{self, number_of, problem, seen};
use super::order_step::one;
use super::properties::{self, PATIENCE};
use super::setting::Mutant;
use super::state::{CaOrder, CaState, Job, NAMES, Objects, Proof, State, moment};
use super::world::{Step, World};

/// What the CA answers in place of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Bad {
    /// No, for good.
    Refuses,
    /// Not before a moment.
    Later,
    /// An error of its own, or no connection: nothing was done.
    Nothing,
    /// It did what was asked, and nobody hears of it.
    Lost,
    /// The truth, in a word that nobody knows.
    OddWord,
    /// The truth, and when to ask again.
    Names,
    /// It has dropped the order.
    Drops,
}

impl Bad {
    fn word(self) -> &'static str {
        match self {
            Self::Refuses => "refuses for good",
            Self::Later => "says 429",
            Self::Nothing => "says 503, or nothing",
            Self::Lost => "does it, and the answer is lost",
            Self::OddWord => "says a word that nobody knows",
            Self::Names => "names a moment",
            Self::Drops => "has dropped the order",
        }
    }
}

impl World {
    /// newOrder, by the budget; or what the CA has said of it before.
    pub(crate) fn create(
        &mut self,
        state: &State,
        process: u8,
        view: &Objects,
        order: &Order,
    ) -> Step {
        let ours = &state.processes[usize::from(process)];
        if let Some(number) = ours.unwritten.filter(|_| !self.setting.has(Mutant::Unwritten)) {
            let outcome = Outcome::Created(seen(number, fresh()));
            let recorded = self.recorded(state, view.order, outcome);
            return one("the order is written down", *state, recorded.writes.clone());
        }
        // Whoever asked before may have written down what came of it, and we have not seen that yet.
        let is_behind = view.order != state.store.order && !self.setting.has(Mutant::Anew);
        if is_behind && budget::is_asked_by_others(state, process) {
            return one("the Order is read anew before another newOrder", *state, Vec::new());
        }
        let mut asked = *state;
        if !self.setting.has(Mutant::Ledger) {
            asked = match budget::ask(state, process, self.setting.has(Mutant::AskedAgain)) {
                Ok(asked) => asked,
                Err(Some(pause)) => return Step::Waits(Wake::At(moment(state.now) + pause)),
                Err(None) => {
                    let over = Outcome::Unanswered(OrderRequest::Create, None, "over".to_owned());
                    return self.conclude(state, process, view, over);
                }
            };
        }
        let checked = properties::order_is_in_its_ledger(&asked)
            .and_then(|()| properties::orders_are_apart(&mut asked))
            .and_then(|()| properties::pause_is_kept(self, &asked, process, Job::Order));
        if let Err(why) = checked {
            return Step::Goes(vec![Branch { what: "newOrder", result: Err(why), writes: vec![] }]);
        }
        let mut branches = Vec::new();
        if asked.left.kills > 0 && asked.store.ledger != state.store.ledger {
            let result = Ok(self.killed(asked, process));
            branches.push(Branch { what: "killed before newOrder", result, writes: vec![] });
        }
        let good = made(asked).map(|(mut made, number)| {
            budget::note(made.process(process), RequestOutcome::Made);
            made.process(process).unwritten = Some(number);
            (made, number)
        });
        branches.insert(
            0,
            match good {
                Err(why) => Branch { what: "newOrder", result: Err(why), writes: vec![] },
                Ok((made, number)) => {
                    let outcome = Outcome::Created(seen(number, fresh()));
                    let writes = self.recorded(state, view.order, outcome).writes.clone();
                    Branch { what: "newOrder", result: Ok(made), writes }
                }
            },
        );
        if state.left.answers > 0 {
            for bad in [Bad::Refuses, Bad::Later, Bad::Nothing, Bad::Lost] {
                branches.push(self.bad_order(asked, process, view, order, bad));
            }
        }
        Step::Goes(branches)
    }

    fn bad_order(
        &mut self,
        mut asked: State,
        process: u8,
        view: &Objects,
        order: &Order,
        bad: Bad,
    ) -> Branch {
        asked.left.answers -= 1;
        asked.excused += 1;
        if bad == Bad::Lost {
            asked = match made(asked) {
                Ok((made, _)) => made,
                Err(why) => return Branch { what: bad.word(), result: Err(why), writes: vec![] },
            };
        }
        let (outcome, after) = self.bad_outcome(asked, process, OrderRequest::Create, bad);
        let mut after = after;
        if bad == Bad::Later {
            budget::note(after.process(process), RequestOutcome::NotMade);
        }
        let writes = self.kept(&mut after, process, view, order, outcome);
        Branch { what: bad.word(), result: Ok(after), writes }
    }

    /// What comes of an answer that is none.
    fn bad_outcome(
        &self,
        mut state: State,
        process: u8,
        deed: OrderRequest,
        bad: Bad,
    ) -> (Outcome, State) {
        let outcome = match bad {
            Bad::Refuses => {
                state.may_fail = true;
                Outcome::Refused(deed, Refusal::Final(Box::new(problem(400, "rejectedIdentifier"))))
            }
            Bad::Later => {
                let until = moment(state.now) + PATIENCE;
                if !self.setting.has(Mutant::Patience) {
                    state.patience = Some((process, Job::Order, state.now));
                    let problem = Box::new(problem(429, "rateLimited"));
                    return (Outcome::Refused(deed, Refusal::Until(problem, until)), state);
                }
                state.patience = Some((process, Job::Order, state.now));
                Outcome::Unanswered(deed, None, "429".to_owned())
            }
            Bad::Nothing | Bad::Lost | Bad::OddWord | Bad::Names | Bad::Drops => {
                Outcome::Unanswered(deed, None, "the CA does not answer".to_owned())
            }
        };
        (outcome, state)
    }

    /// Everything that is asked for an order that there is.
    pub(crate) fn ask_of_order(
        &mut self,
        state: &State,
        process: u8,
        view: &Objects,
        order: &Order,
        action: &Action,
    ) -> Vec<Branch> {
        let number = number_of(order);
        let (deed, what) = match action {
            Action::Finalize => (OrderRequest::Finalize, "finalize"),
            Action::FetchAuthorizations(_) => {
                (OrderRequest::FetchAuthorizations, "the authorizations are read")
            }
            _ => (OrderRequest::Fetch, "the order is read"),
        };
        if let Err(why) = properties::pause_is_kept(self, state, process, Job::Order) {
            return vec![Branch { what, result: Err(why), writes: vec![] }];
        }
        let at_ca = state.ca[usize::from(number)].expect("an Order has what the CA has made");
        let mut truths = vec![(what, *state, at_ca, false)];
        if deed == OrderRequest::Finalize && at_ca.state == CaState::Ready {
            truths = vec![(what, CaState::Processing), ("finalize, done at once", CaState::Valid)]
                .into_iter()
                .map(|(what, becomes)| {
                    let mut after = *state;
                    let taken = CaOrder { state: becomes, finalized: at_ca.finalized + 1, ..at_ca };
                    after.ca[usize::from(number)] = Some(taken);
                    (what, after, taken, true)
                })
                .collect();
        }
        let mut branches = Vec::new();
        for (what, after, at_ca, is_taken) in &truths {
            let result = properties::one_finalize(*at_ca).map(|()| *after);
            branches.push(self.truth(
                result,
                process,
                view,
                order,
                (*what, deed, *at_ca, None, *is_taken),
            ));
        }
        if state.left.answers == 0 {
            return branches;
        }
        let mut bads = vec![Bad::Later, Bad::Nothing];
        match deed {
            OrderRequest::Finalize => bads.extend([Bad::Refuses, Bad::Lost]),
            OrderRequest::Fetch if at_ca.state == CaState::Pending => {
                bads.extend([Bad::OddWord, Bad::Names, Bad::Drops]);
            }
            OrderRequest::Fetch if at_ca.state == CaState::Processing => bads.push(Bad::Names),
            OrderRequest::FetchAuthorizations => bads.push(Bad::Drops),
            _ => {}
        }
        for bad in bads {
            let mut after = if bad == Bad::Lost { truths[0].1 } else { *state };
            after.left.answers -= 1;
            let branch = match bad {
                Bad::Drops => {
                    let dropped = CaOrder { state: CaState::Dropped, ..at_ca };
                    after.ca[usize::from(number)] = Some(dropped);
                    after.excused += 1;
                    // What was used is not asked for again.
                    after.may_fail |= at_ca.finalized > 0;
                    self.truth(
                        Ok(after),
                        process,
                        view,
                        order,
                        (bad.word(), deed, dropped, None, false),
                    )
                }
                Bad::OddWord | Bad::Names => {
                    let odd = (bad.word(), deed, at_ca, Some(bad), false);
                    self.truth(Ok(after), process, view, order, odd)
                }
                Bad::Refuses | Bad::Later | Bad::Nothing | Bad::Lost => {
                    let is_download = deed == OrderRequest::Fetch && at_ca.state == CaState::Valid;
                    let deed = if is_download { OrderRequest::Download } else { deed };
                    let (outcome, mut after) = self.bad_outcome(after, process, deed, bad);
                    let writes = self.kept(&mut after, process, view, order, outcome);
                    Branch { what: bad.word(), result: Ok(after), writes }
                }
            };
            branches.push(branch);
        }
        branches
    }

    /// The CA says how things are.
    fn truth(
        &mut self,
        result: Result<State, String>,
        process: u8,
        view: &Objects,
        order: &Order,
        (what, deed, at_ca, bad, is_taken): (
            &'static str,
            OrderRequest,
            CaOrder,
            Option<Bad>,
            bool,
        ),
    ) -> Branch {
        let mut after = match result {
            Ok(after) => after,
            Err(why) => return Branch { what, result: Err(why), writes: vec![] },
        };
        let number = number_of(order);
        let is_gone = at_ca.state == CaState::Dropped;
        let gone =
            |deed| Outcome::Refused(deed, Refusal::Final(Box::new(problem(404, "malformed"))));
        let mut seen = seen(number, at_ca);
        match bad {
            Some(Bad::OddWord) => seen.state = None,
            Some(Bad::Names) => seen.retry_after = Some(moment(after.now) + PATIENCE),
            _ => {}
        }
        let outcome = match deed {
            OrderRequest::FetchAuthorizations if is_gone => {
                Outcome::AuthorizationLost(NAMES[0].to_owned(), "revoked")
            }
            OrderRequest::FetchAuthorizations => {
                Outcome::AuthorizationsFetched(objects::authorizations(number, at_ca), None)
            }
            OrderRequest::Finalize if is_gone => gone(OrderRequest::Fetch),
            _ if is_gone => gone(deed),
            // It was taken just now, else the refusal is settled by a read.
            OrderRequest::Finalize if is_taken => Outcome::Finalized(seen),
            _ => Outcome::Fetched(seen),
        };
        let writes = self.kept(&mut after, process, view, order, outcome);
        Branch { what, result: Ok(after), writes }
    }
}

/// An order as the CA makes it.
fn fresh() -> CaOrder {
    CaOrder { state: CaState::Pending, authorizations: [Proof::Pending; 2], finalized: 0 }
}

/// The CA makes an order.
fn made(mut state: State) -> Result<(State, u8), String> {
    let free = state.ca.iter().position(Option::is_none);
    let free = free.ok_or("one order: one after the other is made")?;
    state.ca[free] = Some(fresh());
    properties::one_order(&state)?;
    Ok((state, u8::try_from(free).unwrap()))
}
