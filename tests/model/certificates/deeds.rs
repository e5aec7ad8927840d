//! One step for the Certificate, and one for its request, as their controllers take them.

use std::rc::Rc;

use kubectl_acme::model::Blob;
use kubectl_acme::model::memory::Holder;
use kubectl_acme::reconcile::Wake;
use kubectl_acme::reconcile::certificate::types::{Action, Outcome};
use kubectl_acme::reconcile::{certificate, request};

use super::facts::{key_of, number_of, secret_of, slot_of};
use super::{Below, Forgets, KEYS, Progress, State, Step, Stored, World, Write, holds, moment};
use crate::objects::written;

/// More than all tries may need.
const MOST_REQUESTS: u8 = 12;

impl World {
    pub(crate) fn certificate_step(&mut self, state: &State, view: &Stored) -> Step {
        let action = self.certificate_action(state, view);
        let mut after = *state;
        let mut deed: Option<Write> = None;
        let (what, outcome) = match &*action {
            Action::Wait(wake) => return Step::Waits(*wake),
            Action::Conclude(outcome) => {
                // The Secret is read itself before an issuance begins.
                if matches!(outcome, Outcome::Due { .. }) && view.secret != state.store.secret {
                    return Step::Goes("the Secret is looked at again", after, Vec::new());
                }
                ("the Certificate is written", outcome.clone())
            }
            Action::CreateRequest(request, secret) => {
                let Some(key) = state.store.keys[usize::from(slot_of(secret))] else {
                    return Step::Goes("the key is gone", after, Vec::new());
                };
                if state.requests_made > MOST_REQUESTS {
                    return Step::Fails("bounds: one request after the other".to_owned());
                }
                let is_fresh = self.bounds.forgets == Some(Forgets::Key);
                let key = if is_fresh { key + 50 } else { key };
                let mut request = (**request).clone();
                after.requests_made += 1;
                request.metadata.uid = after.requests_made.to_string();
                request.metadata.creation_timestamp = Some(moment(state.now).into());
                request.spec.request = Blob(vec![key]);
                let name = request.metadata.name.clone();
                deed = Some(Write::NewRequest(self.requests.put(request)));
                ("a request is made", Outcome::RequestCreated(name))
            }
            Action::DeleteNextKey(secret, fields) => {
                let keeps = self.bounds.forgets == Some(Forgets::NextKey);
                deed = (!keeps).then(|| Write::KeyGone { slot: slot_of(secret) });
                let outcome = if fields.is_empty() {
                    Outcome::Deleted
                } else {
                    Outcome::KeyOutdated(fields.clone())
                };
                ("a temporary Secret is deleted", outcome)
            }
            Action::DeleteRequest(request) => {
                deed = Some(Write::RequestGone { number: number_of(request) });
                ("the request is deleted", Outcome::Deleted)
            }
            Action::StoreNextKey(name, origin) => {
                let slot = name.as_ref().map_or(state.secrets_made, |name| slot_of(name));
                if usize::from(slot) >= KEYS {
                    return Step::Fails("bounds: one key after the other".to_owned());
                }
                after.secrets_made += u8::from(name.is_none());
                if after.keys_made > MOST_REQUESTS {
                    return Step::Fails("bounds: one key after the other".to_owned());
                }
                after.keys_made += 1;
                deed = Some(Write::NewKey { slot, key: after.keys_made });
                ("a key is stored", Outcome::NextKeyStored(secret_of(slot), *origin))
            }
            Action::StoreSecret(delivery) => {
                let key = state.store.keys[usize::from(slot_of(&delivery.next_key))];
                let request = state.store.request.map(|id| self.requests.get(id));
                let issued = request.and_then(|r| r.status.certificate.0.first().copied());
                let (Some(key), Some(issued)) = (key, issued) else {
                    return Step::Goes("what is to be stored is gone", after, Vec::new());
                };
                if key != issued {
                    return Step::Goes("another request has its name", after, Vec::new());
                }
                deed = Some(Write::Secret { base: view.secret, new: (key, issued) });
                ("the Secret is written", Outcome::Issued(delivery.revision))
            }
            Action::RepairSecret(_) => ("the Secret is put right", Outcome::SecretRepaired),
            Action::StoreTemporary(_) => unreachable!("nobody asks for a temporary certificate"),
        };
        let base = view.certificate;
        let before = self.certificates.get(base);
        let new = certificate::record(&before, outcome, moment(state.now));
        let mut writes: Vec<Write> = deed.into_iter().collect();
        let mut current = base;
        for object in written(&before, Holder::Certificate, &new.memory, new.status) {
            let next = self.certificates.put(object);
            writes.push(Write::Certificate { base: current, new: next });
            current = next;
        }
        Step::Goes(what, after, writes)
    }

    fn certificate_action(&mut self, state: &State, view: &Stored) -> Rc<Action> {
        let key = (*view, state.now);
        if let Some(known) = self.actions.get(&key) {
            return Rc::clone(known);
        }
        let certificate = self.certificates.get(view.certificate);
        let mut observed = self.observed(view);
        if self.bounds.forgets == Some(Forgets::Pause) {
            observed.options.backoff.shortest = jiff::SignedDuration::ZERO;
        }
        let action = certificate::next_action(&certificate, &observed, moment(state.now));
        let action = Rc::new(action);
        self.actions.insert(key, Rc::clone(&action));
        action
    }

    pub(crate) fn request_step(&mut self, state: &State, view: &Stored) -> Step {
        let Some(base) = view.request else { return Step::Waits(Wake::OnChange) };
        let before = self.requests.get(base);
        let key = (base, view.order, state.now);
        let known = self.answers.get(&key).cloned();
        let action = known.unwrap_or_else(|| {
            let observed = self.observed_by_request(&before, view.order);
            Rc::new(request::next_action(&before, &observed, moment(state.now)))
        });
        self.answers.insert(key, Rc::clone(&action));
        let mut writes = Vec::new();
        let (what, outcome) = match &*action {
            request::Action::Wait(wake) => return Step::Waits(*wake),
            request::Action::AwaitApproval | request::Action::YieldName => {
                unreachable!("we approve, and nobody else makes Orders")
            }
            request::Action::Conclude(outcome) => ("the request is written", outcome.clone()),
            request::Action::CreateOrder(order) => {
                let key = key_of(&before);
                let below =
                    Below { number: 0, owner: number_of(&before), key, state: Progress::UnderWay };
                writes.push(Write::NewOrder(below));
                ("an Order is made", request::Outcome::OrderCreated(order.name()))
            }
            request::Action::DeleteOrder => {
                writes.extend(view.order.map(|order| Write::OrderGone { number: order.number }));
                ("the Order is deleted", request::Outcome::OrderDeleted)
            }
        };
        let new = request::record(&before, outcome, moment(state.now));
        if new.status != before.status {
            let mut after = (*before).clone();
            after.status = new.status;
            writes.push(Write::Request { base, new: self.requests.put(after) });
        }
        if let Err(why) = holds::request_moves_as_it_may(&before, writes.last(), self) {
            panic!("{why}");
        }
        Step::Goes(what, *state, writes)
    }
}
