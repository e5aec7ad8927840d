//! Order: create, authorize, finalize, download.

use jiff::{SignedDuration, Timestamp};

use super::Wake;
pub use super::order_outcome::{Outcome, Seen, record, solver_message};
use super::pauses::poll_at;
use super::required::wanted;
use super::shared_order::{Sharer, ahead, stands_back, waiting_message};
use crate::model::memory::{Holder, Memory};
use crate::model::order::Authorization;
use crate::model::{Challenge, ChallengeSpec, Identifier, Order, OrderStatus, State, Time};

/// How long an order may stay pending although every challenge is final.
const AGREE_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// How long after its end an order is given up without asking: clocks differ.
const EXPIRED_FOR: SignedDuration = SignedDuration::from_secs(60);
/// When that is looked at.
const GIVEN_UP_AFTER: SignedDuration = SignedDuration::from_secs(61);

/// What the machine looks at beside the Order.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// Challenges that this Order owns.
    pub challenges: &'a [Challenge],
    /// The Challenges that its authorizations call for, or why none can be made; empty before the authorizations are read.
    pub required: Result<&'a [Required], &'a str>,
    /// Other Orders under way here that got the same order from the CA.
    pub sharers: &'a [Sharer],
}

/// A Challenge that an authorization calls for.
#[derive(Clone, Debug, PartialEq)]
pub struct Required {
    /// Its name: a hash over the spec, so that a repeat finds the first.
    pub name: String,
    /// Its spec.
    pub spec: ChallengeSpec,
}

/// What is asked for at newOrder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Names, each once, DNS names before addresses.
    pub identifiers: Vec<Identifier>,
    /// Wanted end of the certificate.
    pub not_after: Option<Timestamp>,
    /// Profile.
    pub profile: Option<String>,
    /// ARI identifier of the predecessor.
    pub replaces: Option<String>,
}

/// The next deed.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// newOrder.
    Create(Wanted),
    /// Make these Challenges.
    CreateChallenges(Vec<Required>),
    /// Delete Challenges by name.
    DeleteChallenges(Vec<String>),
    /// Say that the order is too old to go on.
    Expire(Timestamp),
    /// Say why nothing can go on.
    Explain(String),
    /// Read the order, and once it is valid download the chain; what it is polled for began at that moment.
    Fetch(Timestamp),
    /// Read these authorizations, side by side.
    FetchAuthorizations(Vec<String>),
    /// Send the signing request.
    Finalize,
    /// Forget the order that another Order has used, and ask for one again.
    Forget,
    /// Give up, for a reason of ours.
    GiveUp(String),
    /// Say that another Order goes first.
    StandBack(String),
    /// Wait.
    Wait(Wake),
}

/// Decides what to do next; no wait lasts beyond the end of the order.
pub fn next_action(order: &Order, observed: &Observed<'_>, now: Timestamp) -> Action {
    let action = decide(order, observed, now);
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    let expires = memory.expires.filter(|_| !order.status.state.is_some_and(State::is_final));
    match (action, expires.and_then(|at| at.checked_add(GIVEN_UP_AFTER).ok())) {
        (Action::Wait(Wake::OnChange), Some(end)) if end > now => Action::Wait(Wake::At(end)),
        (Action::Wait(Wake::At(at)), Some(end)) => Action::Wait(Wake::At(at.min(end))),
        // Somebody else began it, or we were killed before its end could be written down: the CA tells it again.
        (Action::Wait(Wake::OnChange), None) if is_endless(order, &memory) => {
            Action::Fetch(a_second_ago(now))
        }
        (action, _) => action,
    }
}

/// Tells whether nothing bounds the wait for the challenges of an order.
fn is_endless(order: &Order, memory: &Memory) -> bool {
    let Order { status, metadata, .. } = order;
    let is_pending = status.state == Some(State::Pending) && !status.url.is_empty();
    is_pending && memory.expires.is_none() && !metadata.is_deleted()
}

fn decide(order: &Order, observed: &Observed<'_>, now: Timestamp) -> Action {
    let status = &order.status;
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    if order.metadata.is_deleted() || status.state.is_some_and(State::is_failure) {
        return Action::Wait(Wake::OnChange);
    }
    if status.state == Some(State::Valid) && !status.certificate.is_empty() {
        return clear_away(observed.challenges);
    }
    if let Some(at) = memory.expires.filter(|at| now.duration_since(*at) > EXPIRED_FOR) {
        return Action::Expire(at);
    }
    if let Some(at) = memory.next_try.filter(|at| *at > now) {
        // The CA asked for patience; what concerns our own objects goes on meanwhile.
        return own_deeds(order, observed).unwrap_or(Action::Wait(Wake::At(at)));
    }
    if status.url.is_empty() {
        return match wanted(order, now) {
            Ok(wanted) => Action::Create(wanted),
            Err(why) => Action::GiveUp(why),
        };
    }
    if status.finalize_url.is_empty() || status.state == Some(State::Valid) {
        return Action::Fetch(a_second_ago(now));
    }
    if let Some(deed) = share(order, observed.sharers) {
        return deed;
    }
    let unread = unread(status);
    // An order that is ready or further needs no authorization: nothing is left to prove.
    if !unread.is_empty() && status.state == Some(State::Pending) {
        return Action::FetchAuthorizations(unread);
    }
    if let Some(deed) = own_deeds(order, observed) {
        return deed;
    }
    match status.state {
        Some(State::Ready) if memory.finalized_at.is_none() => Action::Finalize,
        Some(State::Ready | State::Processing) => poll(memory.finalized_at, &memory, now),
        Some(State::Pending) | None => pending(order, observed, &memory, now),
        Some(State::Valid | State::Invalid | State::Expired | State::Errored) => {
            Action::Fetch(a_second_ago(now))
        }
    }
}

/// Lets another Order go first that has the same order, and asks for a new one afterwards. Nothing is lost: what the other one
/// left pending is given back, and what it has proved needs no second proof.
fn share(order: &Order, sharers: &[Sharer]) -> Option<Action> {
    let Some(first) = ahead(order, sharers) else {
        return stands_back(order).then_some(Action::Forget);
    };
    let why = waiting_message(&first.name());
    let told = order.status.reason == why;
    Some(if told { Action::Wait(Wake::OnChange) } else { Action::StandBack(why) })
}

/// Makes missing Challenges and deletes those that are no longer called for.
fn own_deeds(order: &Order, observed: &Observed<'_>) -> Option<Action> {
    if order.status.url.is_empty() || order.status.state != Some(State::Pending) {
        return None;
    }
    let required = match observed.required {
        Ok(required) => required,
        Err(why) => {
            let why = solver_message(why);
            let told = order.status.reason == why;
            return Some(if told { Action::Wait(Wake::OnChange) } else { Action::Explain(why) });
        }
    };
    let exists = |name: &str| observed.challenges.iter().any(|c| c.metadata.name == name);
    let missing: Vec<Required> = required.iter().filter(|r| !exists(&r.name)).cloned().collect();
    if !missing.is_empty() {
        return Some(Action::CreateChallenges(missing));
    }
    let surplus: Vec<String> = observed
        .challenges
        .iter()
        .filter(|c| !c.metadata.is_deleted())
        .map(|c| c.metadata.name.clone())
        .filter(|name| !required.iter().any(|r| r.name == *name))
        .collect();
    if !surplus.is_empty() && unread(&order.status).is_empty() {
        return Some(Action::DeleteChallenges(surplus));
    }
    // Solvers have been found since.
    order.status.reason.starts_with(&solver_message("")).then(|| Action::Explain(String::new()))
}

/// While challenges are under way the order waits for them; once all are accepted it is polled in their place.
fn pending(order: &Order, observed: &Observed<'_>, memory: &Memory, now: Timestamp) -> Action {
    let mut last_deed = order.metadata.creation_timestamp.map_or(now, Time::timestamp);
    let mut patience = None;
    let mut failed: Option<&Challenge> = None;
    for challenge in observed.challenges {
        let remembered = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        let is_final = challenge.status.state.is_some_and(State::is_final);
        if challenge.status.state.is_some_and(State::is_failure) {
            failed = failed.or(Some(challenge));
        } else if !is_final && remembered.accepted_at.is_none() {
            // Not everything is told yet; its change wakes us.
            patience = Some(Action::Wait(Wake::OnChange));
        }
        if let Some(at) = remembered.accepted_at {
            last_deed = last_deed.max(at);
        }
    }
    if let Some(challenge) = failed {
        return after_failure(challenge, memory, now);
    }
    patience.unwrap_or_else(|| poll_since(last_deed, memory, now))
}

/// A challenge failed: the order's own word is read; a CA that keeps it pending does not hold us for ever.
fn after_failure(challenge: &Challenge, memory: &Memory, now: Timestamp) -> Action {
    let told = challenge.status.state == Some(State::Invalid);
    let since = Memory::read(Holder::Challenge, &challenge.metadata.annotations).accepted_at;
    let long_ago = since.is_none_or(|at| now.duration_since(at) > AGREE_WITHIN);
    let fetched = memory.next_try.is_some();
    if fetched && (!told || long_ago) {
        let name = &challenge.spec.dns_name;
        return Action::GiveUp(format!("challenge for {name}: {}", challenge.status.reason));
    }
    Action::Fetch(a_second_ago(now))
}

fn poll(since: Option<Timestamp>, memory: &Memory, now: Timestamp) -> Action {
    poll_since(since.unwrap_or_else(|| a_second_ago(now)), memory, now)
}

/// The beginning of a wait whose beginning nobody noted.
fn a_second_ago(now: Timestamp) -> Timestamp {
    now.saturating_add(SignedDuration::from_secs(-1)).unwrap_or(now)
}

fn poll_since(since: Timestamp, memory: &Memory, now: Timestamp) -> Action {
    match poll_at(since, memory.next_try, now) {
        Some(at) => Action::Wait(Wake::At(at)),
        None => Action::Fetch(since),
    }
}

/// The certificate is there: Challenges that have recorded their end are deleted, the others first record it.
fn clear_away(challenges: &[Challenge]) -> Action {
    let done: Vec<String> = challenges
        .iter()
        .filter(|c| !c.metadata.is_deleted() && c.status.state.is_some_and(State::is_final))
        .map(|c| c.metadata.name.clone())
        .collect();
    if done.is_empty() { Action::Wait(Wake::OnChange) } else { Action::DeleteChallenges(done) }
}

fn unread(status: &OrderStatus) -> Vec<String> {
    let bare = |a: &&Authorization| a.identifier.is_empty();
    status.authorizations.iter().filter(bare).map(|a| a.url.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::reason;
    use crate::model::{Blob, Problem};
    use crate::reconcile::Refusal;
    use crate::reconcile::order_outcome::LIFE;
    use crate::reconcile::testing::{at, challenge, order};

    const NAME: &str = "www.example.com";

    fn required() -> Vec<Required> {
        let spec = challenge(NAME).build().spec;
        vec![Required { name: NAME.to_owned(), spec }]
    }

    fn remember(order: &mut Order, memory: &Memory) {
        memory.write(Holder::Order, &mut order.metadata.annotations);
    }

    /// As the CA has told its end.
    fn ending(mut order: Order) -> Order {
        let memory = Memory::read(Holder::Order, &order.metadata.annotations);
        remember(&mut order, &Memory { expires: Some(at(1000)), ..memory });
        order
    }

    /// Until the end of that.
    fn wait() -> Action {
        Action::Wait(Wake::At(at(1000) + GIVEN_UP_AFTER))
    }

    fn accepted(second: i64) -> Challenge {
        let memory = Memory { accepted_at: Some(at(second)), ..Memory::default() };
        challenge(NAME)
            .running(true)
            .state(State::Pending)
            .change(|c| {
                memory.write(Holder::Challenge, &mut c.metadata.annotations);
            })
            .build()
    }

    fn check(order: &Order, challenges: &[Challenge], second: i64, expected: &Action) {
        let required = required();
        let observed = Observed { challenges, required: Ok(&required), sharers: &[] };
        assert_eq!(next_action(order, &observed, at(second)), *expected);
    }

    fn problem(status: u16, kind: &str) -> Problem {
        let kind = format!("urn:ietf:params:acme:error:{kind}");
        Problem { kind, status, detail: "no".to_owned(), ..Problem::default() }
    }

    #[test]
    fn names_are_ordered_once_and_sorted() {
        let new = order("o")
            .change(|o| {
                o.spec.dns_names =
                    ["b.example", "A.example", "b.example"].map(str::to_owned).to_vec();
                o.spec.ip_addresses = vec!["192.0.2.1".to_owned()];
                "c.example".clone_into(&mut o.spec.common_name);
            })
            .build();
        let names: Vec<String> =
            wanted(&new, at(0)).unwrap().identifiers.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["a.example", "b.example", "c.example", "192.0.2.1"]);
        let odd = order("o").change(|o| "My Site".clone_into(&mut o.spec.common_name)).build();
        assert_eq!(wanted(&odd, at(0)).unwrap().identifiers.len(), 1);
    }

    #[test]
    fn a_new_order_is_created_then_its_authorizations_are_read() {
        let fresh = order("o").build();
        let identifiers = vec![Identifier::parse(NAME).unwrap()];
        check(&fresh, &[], 1, &Action::Create(Wanted { identifiers, ..Wanted::default() }));
        let seen = Seen {
            url: "https://ca.example/order/1".to_owned(),
            finalize_url: "https://ca.example/f".to_owned(),
            authorizations: vec!["https://ca.example/authz/1".to_owned()],
            state: Some(State::Pending),
            ..Seen::default()
        };
        let status = record(&fresh, Outcome::Created(seen), at(1)).status;
        let created = order("o").change(|o| o.status = status).build();
        let urls = vec!["https://ca.example/authz/1".to_owned()];
        check(&created, &[], 2, &Action::FetchAuthorizations(urls));
    }

    #[test]
    fn challenges_follow_the_authorizations() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        check(&read, &[], 1, &Action::CreateChallenges(required()));
        let stranger = challenge("other.example").build();
        let ours = challenge(NAME).build();
        let surplus = Action::DeleteChallenges(vec!["other.example".to_owned()]);
        check(&read, &[ours.clone(), stranger], 1, &surplus);
        check(&ending(read), &[ours], 1, &wait());
    }

    #[test]
    fn the_end_of_an_order_that_others_began_is_read_once() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let ours = [challenge(NAME).build()];
        check(&read, &ours, 10, &Action::Fetch(at(9)));
        for (told, end) in [(Some(at(90)), at(90)), (None, at(10) + LIFE)] {
            let retry_after = Some(at(15));
            let state = Some(State::Pending);
            let seen = Seen { state, expires: told, retry_after, ..Seen::default() };
            let new = record(&read, Outcome::Fetched(seen, at(9)), at(10));
            assert_eq!((new.memory.expires, new.memory.next_try), (Some(end), None));
            let mut known = read.clone();
            remember(&mut known, &new.memory);
            check(&known, &ours, 11, &Action::Wait(Wake::At(end + GIVEN_UP_AFTER)));
        }
    }

    #[test]
    fn when_no_solver_fits_it_is_said_once() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let observed = Observed { challenges: &[], required: Err("none"), sharers: &[] };
        let why = solver_message("none");
        assert_eq!(next_action(&read, &observed, at(1)), Action::Explain(why.clone()));
        let new = record(&read, Outcome::Explained(why), at(1));
        assert_eq!(new.notes[0].reason, reason::SOLVER);
        let told = order("o").change(|o| o.status = new.status).build();
        let told =
            Order { status: OrderStatus { state: Some(State::Pending), ..told.status }, ..told };
        let told = ending(told);
        assert_eq!(next_action(&told, &observed, at(1)), wait());

        let ours = challenge(NAME).build();
        check(&told, std::slice::from_ref(&ours), 1, &Action::Explain(String::new()));
        let mended = record(&told, Outcome::Explained(String::new()), at(1));
        assert_eq!((mended.status.reason.as_str(), mended.notes.len()), ("", 0));
        let mended = ending(order("o").change(|o| o.status = mended.status).build());
        check(&mended, &[ours], 1, &wait());
    }

    #[test]
    fn a_refusal_is_forgotten_with_the_next_answer() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let refusal = Refusal::Until(Box::new(problem(429, "rateLimited")), at(20));
        let refused = record(&read, Outcome::Refused("retrieve Order", refusal), at(5));
        assert!(super::super::names_a_moment(&refused.status.reason));
        let away = Outcome::Unanswered("retrieve Order", "cut off".to_owned());
        let away = record(&read, away, at(5));
        assert_eq!(away.status.reason, "Failed to retrieve Order: cut off");
        for waiting in [refused, away] {
            let waiting = order("o").change(|o| o.status = waiting.status).build();
            let seen = || Seen { state: Some(State::Pending), ..Seen::default() };
            for answer in [
                Outcome::Fetched(seen(), at(19)),
                Outcome::Finalized(seen()),
                Outcome::AuthorizationsFetched(Vec::new()),
            ] {
                assert_eq!(record(&waiting, answer, at(21)).status.reason, "");
            }
        }
        let shared = order("o").change(|o| "Waiting for order".clone_into(&mut o.status.reason));
        let shared = shared.state(State::Pending).build();
        let seen = Seen { state: Some(State::Pending), ..Seen::default() };
        let told = record(&shared, Outcome::Fetched(seen, at(19)), at(21));
        assert_eq!(told.status.reason, "Waiting for order");
    }

    #[test]
    fn the_order_is_polled_once_every_challenge_is_accepted() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let soon = at(10) + SignedDuration::from_millis(50);
        check(&read, &[accepted(10)], 10, &Action::Wait(Wake::At(soon)));
        check(&read, &[accepted(10)], 11, &Action::Fetch(at(10)));
    }

    #[test]
    fn of_two_with_the_same_order_one_waits_and_then_asks_for_its_own() {
        let first = order("first").state(State::Pending).authorization(NAME).build();
        let second = order("second").state(State::Pending).authorization(NAME).build();
        let next = |order: &Order, sharers: &[Sharer]| {
            let observed = Observed { challenges: &[], required: Ok(&[]), sharers };
            next_action(order, &observed, at(1))
        };
        let later = Sharer { order: second.clone(), came_first: false };
        assert_eq!(next(&first, &[later]), Action::Fetch(at(0)));
        let why = waiting_message(&first.name());
        let sharers = &[Sharer { order: first.clone(), came_first: true }];
        assert_eq!(next(&second, sharers), Action::StandBack(why.clone()));
        let new = record(&second, Outcome::StoodBack(why), at(1));
        assert_eq!(new.notes, []);
        let waiting = ending(Order { status: new.status, ..second });
        assert_eq!(next(&waiting, sharers), wait());
        assert_eq!(next(&waiting, &[]), Action::Forget);
        let new = record(&waiting, Outcome::Forgotten, at(2));
        assert_eq!((new.status, new.memory), (OrderStatus::default(), Memory::default()));
    }

    #[test]
    fn an_order_that_somebody_else_finalized_is_asked_for_again_after_a_moment() {
        let why = "it is for another key".to_owned();
        let ready = order("o").state(State::Ready).authorization(NAME).build();
        let new = record(&ready, Outcome::OtherKey(why.clone()), at(5));
        assert_eq!((&new.status, new.memory.next_try), (&OrderStatus::default(), Some(at(6))));
        let sent = Memory { finalized_at: Some(at(4)), ..Memory::default() };
        let ours = order("o").state(State::Processing).change(|o| remember(o, &sent)).build();
        let new = record(&ours, Outcome::OtherKey(why.clone()), at(5)).status;
        assert_eq!((new.state, new.reason), (Some(State::Errored), why));
        // And a CA that gives back what is used up is not asked without end.
        let seen = Seen { state: Some(State::Pending), ..Seen::default() };
        let new = record(&order("o").build(), Outcome::Created(seen), at(6)).status;
        assert_eq!(new.state, Some(State::Errored));
        let used = Seen { state: Some(State::Valid), url: ready.status.url, ..Seen::default() };
        let new = record(&order("o").build(), Outcome::Created(used), at(6)).status;
        assert_eq!(new.state, Some(State::Errored));
    }

    #[test]
    fn retry_after_is_waited_for() {
        let patient = Memory { next_try: Some(at(30)), ..Memory::default() };
        let read = order("o")
            .state(State::Pending)
            .authorization(NAME)
            .change(|o| remember(o, &patient))
            .build();
        check(&read, &[accepted(10)], 11, &Action::Wait(Wake::At(at(30))));
        check(&read, &[accepted(10)], 30, &Action::Fetch(at(10)));
    }

    #[test]
    fn no_wait_lasts_beyond_the_end_of_the_order() {
        let memory = Memory { expires: Some(at(100)), ..Memory::default() };
        let read = order("o")
            .state(State::Pending)
            .authorization(NAME)
            .change(|o| remember(o, &memory))
            .build();
        let unanswered = [challenge(NAME).running(true).state(State::Pending).build()];
        check(&read, &unanswered, 1, &Action::Wait(Wake::At(at(161))));
        check(&read, &unanswered, 161, &Action::Expire(at(100)));
        // However patient the CA wants us to be.
        let memory = Memory { expires: Some(at(100)), next_try: Some(at(9000)), ..memory };
        let asked = order("o")
            .state(State::Processing)
            .authorization(NAME)
            .change(|o| remember(o, &memory))
            .build();
        check(&asked, &[], 1, &Action::Wait(Wake::At(at(161))));
        check(&asked, &[], 161, &Action::Expire(at(100)));
    }

    #[test]
    fn an_order_whose_end_the_ca_does_not_name_ends_after_a_week() {
        let url = "https://ca.example/order/1".to_owned();
        let seen = Seen { url, state: Some(State::Pending), ..Seen::default() };
        let new = record(&order("o").build(), Outcome::Created(seen.clone()), at(0));
        assert_eq!(new.memory.expires, Some(at(7 * 24 * 3600)));
        let seen = Seen { expires: Some(at(9)), ..seen };
        let new = record(&order("o").build(), Outcome::Created(seen), at(0));
        assert_eq!(new.memory.expires, Some(at(9)));
    }

    #[test]
    fn authorizations_that_do_not_fit_the_order_end_it() {
        let authorization = |identifier: &str, wildcard: bool, state: State| Authorization {
            url: format!("https://ca.example/authz/{identifier}/{wildcard}"),
            identifier: identifier.to_owned(),
            wildcard: Some(wildcard),
            initial_state: Some(state),
            ..Authorization::default()
        };
        let (pending, valid) = (State::Pending, State::Valid);
        for (names, read, fault) in [
            (vec!["a.example"], vec![authorization("A.example", false, pending)], None),
            (vec!["*.a.example"], vec![authorization("a.example", true, pending)], None),
            (vec!["2001:DB8::1"], vec![authorization("2001:db8:0::1", false, pending)], None),
            // A CA that knows the owner of the domain proves it once.
            (vec!["w.a.example"], vec![authorization("a.example", false, valid)], None),
            (
                vec!["a.example"],
                vec![authorization("b.example", false, pending)],
                Some(
                    "an authorization of b.example, which was not ordered: the order is for a.example",
                ),
            ),
            (
                vec!["a.example"],
                vec![authorization("a.example", true, pending)],
                Some("*.a.example, which was not ordered"),
            ),
            (
                vec!["a.example", "b.example"],
                vec![authorization("a.example", false, pending)],
                Some("no authorization for b.example: it has a.example"),
            ),
        ] {
            let bare = |a: &Authorization| Authorization {
                url: a.url.clone(),
                ..Authorization::default()
            };
            let unread = order("o")
                .state(State::Pending)
                .change(|o| {
                    o.spec.dns_names = names.iter().map(|name| (*name).to_owned()).collect();
                    o.status.authorizations = read.iter().map(bare).collect();
                })
                .build();
            let new = record(&unread, Outcome::AuthorizationsFetched(read), at(1)).status;
            let ended = (new.state == Some(State::Errored)).then_some(new.reason);
            match (ended, fault) {
                (None, None) => {}
                (Some(why), Some(fault)) => assert!(why.contains(fault), "{why}"),
                (ended, fault) => panic!("{names:?}: {ended:?} in place of {fault:?}"),
            }
        }
    }

    #[test]
    fn a_ready_order_is_finalized_once() {
        let ready = order("o").state(State::Ready).authorization(NAME).build();
        check(&ready, &[accepted(10)], 11, &Action::Finalize);
        let sent = Memory { finalized_at: Some(at(11)), ..Memory::default() };
        let processing = order("o").state(State::Processing).change(|o| remember(o, &sent)).build();
        check(&processing, &[], 12, &Action::Fetch(at(11)));
        let still = order("o").state(State::Ready).change(|o| remember(o, &sent)).build();
        check(&still, &[], 12, &Action::Fetch(at(11)));
        let seen = Seen { state: Some(State::Ready), ..Seen::default() };
        let later = record(&still, Outcome::Fetched(seen.clone(), at(11)), at(12));
        assert_eq!(later.memory.finalized_at, Some(at(11)));
        let later = record(&still, Outcome::Fetched(seen, at(11)), at(30));
        assert_eq!(later.memory.finalized_at, None);
    }

    #[test]
    fn an_order_found_ready_is_finalized_at_once() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let seen = Seen { state: Some(State::Ready), ..Seen::default() };
        assert_eq!(record(&read, Outcome::Fetched(seen, at(10)), at(11)).memory.next_try, None);
    }

    #[test]
    fn pauses_between_polls_are_half_of_the_time_gone_by() {
        let read = ending(order("o").state(State::Pending).authorization(NAME).build());
        for (seconds, milliseconds) in [(0, 50), (1, 500), (3, 1500), (20, 2000)] {
            let seen = Seen { state: Some(State::Pending), ..Seen::default() };
            let now = at(10 + seconds);
            let new = record(&read, Outcome::Fetched(seen, at(10)), now);
            let expected = now + SignedDuration::from_millis(milliseconds);
            assert_eq!(new.memory.next_try, Some(expected));
        }
    }

    #[test]
    fn challenges_of_a_finished_order_go_when_they_have_recorded_their_end() {
        let done = order("o")
            .state(State::Valid)
            .change(|o| o.status.certificate = Blob(b"PEM".to_vec()))
            .build();
        check(&done, &[accepted(10)], 12, &Action::Wait(Wake::OnChange));
        let valid = challenge(NAME).state(State::Valid).build();
        check(&done, &[valid], 12, &Action::DeleteChallenges(vec![NAME.to_owned()]));
    }

    #[test]
    fn a_refusal_ends_the_order_and_a_limit_only_delays_it() {
        let fresh = order("o").build();
        let outcome = Outcome::Refused(
            "create Order",
            Refusal::Final(Box::new(problem(400, "rejectedIdentifier"))),
        );
        let new = record(&fresh, outcome, at(5));
        assert_eq!(new.status.state, Some(State::Errored));
        assert_eq!(new.status.failure_time, Some(at(5).into()));
        assert_eq!(
            new.status.reason,
            "Failed to create Order: 400 urn:ietf:params:acme:error:rejectedIdentifier: no"
        );
        let outcome = Outcome::Refused(
            "create Order",
            Refusal::Until(Box::new(problem(429, "rateLimited")), at(3600)),
        );
        let new = record(&fresh, outcome, at(5));
        assert_eq!((new.status.state, new.memory.next_try), (None, Some(at(3600))));
        let waiting = order("o").change(|o| remember(o, &new.memory)).build();
        check(&waiting, &[], 6, &Action::Wait(Wake::At(at(3600))));
    }

    #[test]
    fn an_invalid_order_says_which_name_failed_and_why() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let problems = vec![(NAME.to_owned(), problem(403, "unauthorized"))];
        let seen = Seen { state: Some(State::Invalid), problems, ..Seen::default() };
        let new = record(&read, Outcome::Fetched(seen, at(4)), at(5));
        assert_eq!(
            new.status.reason,
            "acme: authorization error for www.example.com: 403 \
             urn:ietf:params:acme:error:unauthorized: no"
        );
    }

    #[test]
    fn a_challenge_given_up_does_not_hold_the_order_for_ever() {
        let read = ending(order("o").state(State::Pending).authorization(NAME).build());
        let errored = challenge(NAME)
            .state(State::Errored)
            .change(|c| "refused".clone_into(&mut c.status.reason))
            .build();
        check(&read, std::slice::from_ref(&errored), 5, &Action::Fetch(at(4)));
        let seen = Seen { state: Some(State::Pending), ..Seen::default() };
        let memory = record(&read, Outcome::Fetched(seen, at(4)), at(5)).memory;
        let polled = order("o")
            .state(State::Pending)
            .authorization(NAME)
            .change(|o| remember(o, &memory))
            .build();
        let given_up = Action::GiveUp("challenge for www.example.com: refused".to_owned());
        check(&polled, &[errored], 9, &given_up);
    }

    #[test]
    fn an_order_past_its_end_is_expired() {
        let old = Memory { expires: Some(at(100)), ..Memory::default() };
        let read = order("o")
            .state(State::Pending)
            .authorization(NAME)
            .change(|o| remember(o, &old))
            .build();
        check(&read, &[], 200, &Action::Expire(at(100)));
        let new = record(&read, Outcome::Expired(at(100)), at(200));
        assert_eq!(new.status.state, Some(State::Expired));
    }
}
