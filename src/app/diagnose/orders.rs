//! The CA's word on orders that have not succeeded, read by POST-as-GET: the status of an object need not have it. cert-manager
//! leaves out of it what a CA has said since 1.21.2.

use futures_util::stream::{self, StreamExt as _};
use tokio::time::timeout;

use super::investigator::{Investigator, MOST_NAMES, PROBE_TIMEOUT};
use super::look::{AT_ONCE, answers};
use crate::acme::error::AcmeError;
use crate::app::inspect::authority;
use crate::controllers::ReconcileError;
use crate::diagnosis::authority_case::HeldOrder;
use crate::diagnosis::case::{Case, Unseen};
use crate::model::State;

impl Investigator {
    /// Asks for the newest order of each Certificate that has to be issued.
    pub(super) async fn ask_orders(&self, case: &mut Case) {
        let Some(store) = &self.store else { return };
        let (resolver, namespace) = (&self.fetcher.resolver, &self.cluster_resource_namespace);
        let accounts = &authority::accounts(store, resolver, namespace);
        let asked = case.certificates.iter().enumerate().filter_map(|(index, of)| {
            let order = of.order().filter(|order| order.status.state != Some(State::Valid))?;
            let is_asked = of.is_open() && !order.status.url.is_empty() && answers(case, of);
            is_asked.then(|| (index, order.clone()))
        });
        let asked: Vec<_> = asked.take(MOST_NAMES).collect();
        let asked = asked.into_iter().map(|(index, order)| async move {
            let issuer = (order.metadata.namespace.as_str(), &order.spec.issuer_ref);
            let asked = authority::ask_order(&order.status.url, issuer, accounts);
            let reply = timeout(PROBE_TIMEOUT, asked).await;
            (index, order, reply)
        });
        let replies: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        for (index, order, reply) in replies {
            let blank = HeldOrder {
                url: order.status.url.clone(),
                status: String::new(),
                expires: None,
                problem: None,
                at: self.now,
            };
            let why = match reply {
                Ok(Ok(reply)) => {
                    case.certificates[index].held_order = Some(HeldOrder {
                        status: reply.status,
                        expires: reply.expires,
                        problem: reply.error,
                        ..blank
                    });
                    continue;
                }
                Ok(Err(ReconcileError::Acme(AcmeError::Refused { problem, .. }))) => {
                    case.certificates[index].held_order =
                        Some(HeldOrder { problem: Some(*problem), ..blank });
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {} s", PROBE_TIMEOUT.as_secs()),
            };
            let what = format!("Order {} at the CA", order.name());
            case.unseen.push(Unseen { what, why, is_forbidden: false });
        }
    }
}
