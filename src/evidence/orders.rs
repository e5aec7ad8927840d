//! Orders at the CA that have not succeeded, read by POST-as-GET: the status of an Order object has one sentence of the
//! problem, without subproblems, and a deleted object has none.

use futures_util::stream::{self, StreamExt as _};
use tokio::time::error::Elapsed;

use super::authorizations::answers;
use super::investigator::{Investigator, MAX_CONCURRENT, MAX_NAMES};
use super::patience::no_answer;
use crate::acme::OrderReply;
use crate::acme::error::AcmeError;
use crate::controllers::ReconcileError;
use crate::diagnosis::case::authority::AuthorityOrder;
use crate::diagnosis::case::{Case, Unobserved};
use crate::inspect::authority;
use crate::model::{Order, State};

impl Investigator {
    /// Reads at the CA the newest order of each Certificate that has to be issued, with the index of the Certificate; an
    /// error gives the reason why an order could not be read.
    pub(super) async fn held_orders(
        &self,
        case: &Case,
    ) -> Vec<(usize, Result<AuthorityOrder, Unobserved>)> {
        let Some(store) = &self.store else { return Vec::new() };
        let (resolver, namespace) = (&self.fetcher.resolver, &self.cluster_resource_namespace);
        let accounts = &authority::accounts(store, resolver, namespace);
        let asked = case.certificates.iter().enumerate().filter_map(|(index, of)| {
            let order = of.order().filter(|order| order.status.state != Some(State::Valid))?;
            let is_asked = of.is_open() && !order.status.url.is_empty() && answers(case, of);
            is_asked.then_some((index, order))
        });
        let asked: Vec<(usize, &Order)> = asked.take(MAX_NAMES).collect();
        let asked = asked.into_iter().map(|(index, order)| async move {
            let issuer = (order.metadata.namespace.as_str(), &order.spec.issuer_ref);
            let asked = authority::ask_order(&order.status.url, issuer, accounts);
            let reply = self.outside(asked).await;
            (index, self.held(order, reply))
        });
        stream::iter(asked).buffered(MAX_CONCURRENT).collect().await
    }

    fn held(
        &self,
        order: &Order,
        reply: Result<Result<OrderReply, ReconcileError>, Elapsed>,
    ) -> Result<AuthorityOrder, Unobserved> {
        let (status, expires, problem) = match reply {
            Ok(Ok(reply)) => (reply.status, reply.expires, reply.error),
            // A refusal is evidence too.
            Ok(Err(ReconcileError::Acme(AcmeError::Refused { problem, .. }))) => {
                (String::new(), None, Some(*problem))
            }
            other => {
                let why = match other {
                    Ok(Err(error)) => error.to_string(),
                    _ => no_answer(),
                };
                let what = format!("Order {} at the CA", order.name());
                return Err(Unobserved { what, why, is_forbidden: false });
            }
        };
        Ok(AuthorityOrder { url: order.status.url.clone(), status, expires, problem, at: self.now })
    }
}
