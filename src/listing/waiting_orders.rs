//! Orders that wait for their CA or for their turn and have no challenges yet, so that no table of challenges shows them.

use std::sync::Arc;

use crate::context::failure::Failure;
use crate::model::cause::OrderWait;
use crate::model::{Challenge, Key, Kind, Order, State};
use crate::print::Printer;
use crate::reconcile::order::waits_for;
use crate::store::error::StoreError;
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Most Orders that are named; the others are counted.
const MAX_NAMED_ORDERS: usize = 3;

/// Prints which Orders within a scope wait for their CA, and how many for their turn; nothing if Orders may not be read.
///
/// # Errors
/// Fails if the store fails.
pub(crate) async fn tell(
    store: &Arc<dyn Store>,
    scope: Scope,
    printer: &Printer,
) -> Result<(), Failure> {
    match find(store, scope).await {
        Err(error) if error.lacks_permission() => {}
        found => {
            let (for_turn, for_ca): (Vec<Order>, Vec<Order>) =
                found?.into_iter().partition(|order| waits_for(order) == Some(OrderWait::Turn));
            let lines = [line(&for_ca, Waits::ForCa), line(&for_turn, Waits::ForTurn)];
            lines.iter().flatten().for_each(|line| printer.note(line));
        }
    }
    Ok(())
}

async fn find(store: &Arc<dyn Store>, scope: Scope) -> Result<Vec<Order>, StoreError> {
    let orders = Resources::<Order>::new(Arc::clone(store), Kind::Order);
    let mut orders = orders.list(&scope.clone().brief()).await?;
    orders.retain(|order| {
        let status = &order.status;
        let waits = matches!(waits_for(order), Some(OrderWait::Authority | OrderWait::Turn));
        waits && !status.state.is_some_and(State::is_final)
    });
    if !orders.is_empty() {
        let challenges = Resources::<Challenge>::new(Arc::clone(store), Kind::Challenge);
        let challenges = challenges.list(&scope.brief()).await?;
        let has_none = |order: &Order| {
            let uid = &order.metadata.uid;
            !challenges.iter().any(|challenge| challenge.metadata.is_controlled_by(uid))
        };
        orders.retain(has_none);
    }
    orders.sort_by_key(|order| (order.metadata.creation_timestamp, order.name()));
    Ok(orders)
}

/// Reason of a wait.
#[derive(Clone, Copy)]
enum Waits {
    ForCa,
    ForTurn,
}

fn line(orders: &[Order], waits: Waits) -> Option<String> {
    let what = match waits {
        Waits::ForCa => "CA",
        Waits::ForTurn => "turn",
    };
    let who = match orders.len() {
        0 => return None,
        1 => format!("1 order waits for its {what}"),
        count => format!("{count} orders wait for their {what}"),
    };
    let of_order = |order: &Order| {
        let key = Key::new(Kind::Order, order.name());
        format!("{key}: {}", order.status.reason)
    };
    let mut named: Vec<String> = orders.iter().take(MAX_NAMED_ORDERS).map(of_order).collect();
    if orders.len() > MAX_NAMED_ORDERS {
        named.push(format!("and {} more", orders.len() - MAX_NAMED_ORDERS));
    }
    Some(format!("{who}: {}", named.join("; ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::Record;
    use crate::model::cause::About;
    use crate::model::memory::{Holder, Memory};
    use crate::store::Part;
    use crate::store::memory::MemoryStore;

    const REASON: &str = "Failed to create Order: 429 urn:ietf:params:acme:error:rateLimited: too many; \
                          next try at 2026-11-22T18:00:00Z";

    /// Puts an order into the store; returns its UID.
    async fn order(store: &Arc<dyn Store>, name: &str, status: Value) -> String {
        let waits_for = Some(About::new(REASON, OrderWait::Authority));
        let mut annotations = BTreeMap::new();
        Memory { waits_for, ..Memory::default() }.write(Holder::Order, &mut annotations);
        let object = json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Order",
            "metadata": {"name": name, "namespace": "web", "annotations": annotations},
            "spec": {"request": "", "issuerRef": {"name": "acme"}},
        });
        let mut record = store.create(Record::new(object).unwrap()).await.unwrap();
        record.object["status"] = status;
        store.replace(record, Part::Status).await.unwrap().uid().to_owned()
    }

    /// Returns the lines about orders with these statuses, named a, b, and so on.
    async fn check(statuses: &[Value], expected: Option<&str>) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        for (letter, status) in ('a'..).zip(statuses) {
            order(&store, &letter.to_string(), status.clone()).await;
        }
        let said = line(&find(&store, Scope::namespace("web")).await.unwrap(), Waits::ForCa);
        assert_eq!(said.as_deref(), expected);
    }

    #[tokio::test]
    async fn only_what_waits_for_its_ca_is_told() {
        let waits = || json!({"reason": REASON});
        let one = format!("1 order waits for its CA: Order web/a: {REASON}");
        check(&[waits()], Some(&one)).await;
        let rest = [
            json!({"state": "pending"}),
            json!({"state": "errored", "reason": REASON}),
            json!({"reason": "Failed to determine a valid solver configuration for the set of domains on the Order: none"}),
        ];
        check(&rest, None).await;
        let all = [waits(), waits(), waits(), waits()];
        let names = ["a", "b", "c"].map(|name| format!("Order web/{name}: {REASON}")).join("; ");
        let several = format!("4 orders wait for their CA: {names}; and 1 more");
        check(&all, Some(&several)).await;
    }

    #[test]
    fn orders_that_wait_for_their_turn_are_counted_apart() {
        let order = |name| crate::reconcile::testing::order(name).build();
        let mut waiting = [order("a"), order("b"), order("c"), order("d")];
        for order in &mut waiting {
            order.status.reason = "Waiting for its turn: 120 orders are under way".to_owned();
        }
        let told = line(&waiting, Waits::ForTurn).unwrap();
        assert!(told.starts_with("4 orders wait for their turn: Order "), "{told}");
        assert!(told.ends_with("; and 1 more"), "{told}");
    }

    #[tokio::test]
    async fn an_order_with_challenges_is_in_their_table() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let uid = order(&store, "a", json!({"reason": REASON})).await;
        assert_eq!(find(&store, Scope::all()).await.unwrap().len(), 1);
        let owner = json!({"apiVersion": "acme.cert-manager.io/v1", "kind": "Order", "name": "a", "uid": uid, "controller": true});
        let challenge = json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge",
            "metadata": {"name": "a-1", "namespace": "web", "ownerReferences": [owner]},
            "spec": {
                "url": "", "authorizationURL": "", "dnsName": "www.example.com", "type": "HTTP-01", "token": "",
                "key": "", "solver": {"http01": {}}, "issuerRef": {"name": "acme"},
            },
        });
        store.create(Record::new(challenge).unwrap()).await.unwrap();
        assert!(find(&store, Scope::all()).await.unwrap().is_empty());
    }
}
