//! Orders that the CA has taken and whose URL is not in the store yet: it was away, or somebody wrote in between.
//! Asking for them again would make second ones.
//!
//! They are written at the next try, also by the controllers that come after a lost Lease.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};

use crate::model::{ObjectName, Order};
use crate::reconcile::order::SeenOrder;

/// What the CA said of each, with the UID of the Order that asked.
#[derive(Debug, Default)]
pub struct UnwrittenOrders(Mutex<HashMap<ObjectName, (String, SeenOrder)>>);

impl UnwrittenOrders {
    /// Remembers what the CA said.
    pub fn remember(&self, order: &Order, seen: &SeenOrder) {
        self.all().insert(order.name(), (order.metadata.uid.clone(), seen.clone()));
    }

    /// What the CA said, if that is not written down yet.
    pub fn of(&self, order: &Order) -> Option<SeenOrder> {
        let all = self.all();
        let (uid, seen) = all.get(&order.name())?;
        (*uid == order.metadata.uid).then(|| seen.clone())
    }

    /// Notes that it is written down, or that the Order is gone.
    pub fn forget(&self, name: &ObjectName) {
        self.all().remove(name);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ObjectName, (String, SeenOrder)>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(uid: &str) -> Order {
        let mut order = Order::default();
        order.metadata.name = "web".to_owned();
        order.metadata.uid = uid.to_owned();
        order
    }

    #[test]
    fn what_the_ca_said_is_remembered_for_the_order_that_asked_until_it_is_written() {
        let unwritten = UnwrittenOrders::default();
        let seen =
            SeenOrder { url: "https://ca.example/order/1".to_owned(), ..SeenOrder::default() };
        assert_eq!(unwritten.of(&order("1")), None);
        unwritten.remember(&order("1"), &seen);
        assert_eq!(unwritten.of(&order("1")), Some(seen));
        assert_eq!(unwritten.of(&order("2")), None, "made anew under the same name");
        unwritten.forget(&order("1").name());
        assert_eq!(unwritten.of(&order("1")), None);
    }
}
