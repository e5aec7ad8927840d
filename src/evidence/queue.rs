//! Challenges that wait for their turn, the Challenges ahead of them, and Challenges whose Certificate is gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::investigator::Investigator;
use crate::context::failure::Failure;
use crate::diagnosis::case::control::ControllerCase;
use crate::diagnosis::case::{Case, DriverCase, QueuedCase, RunningCase};
use crate::input::lookup;
use crate::model::{Challenge, Key, Kind, ObjectName};
use crate::reconcile::schedule::{Limits, Obstacle, Plan, plan, plan_of_cert_manager};
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::{Resources, typed};
use crate::store::{Scope, Store};

/// Largest number of running Challenges that are reported.
const MAX_RUNNING: usize = 10;
/// Flag of cert-manager's controller for the limit of running challenges.
const SLOTS_FLAG: &str = "max-concurrent-challenges";

impl Investigator {
    /// Reads a Challenge that belongs to no Certificate any more.
    pub(super) async fn orphan(&self, name: &ObjectName) -> Result<Challenge, Failure> {
        let key = Key::new(Kind::Challenge, name.clone());
        match &self.store {
            Some(store) => Ok(typed(lookup::read(store, &key).await?)?),
            None => Err(Failure::usage(format!("{key} not found: there is no store"))),
        }
    }

    /// Finds the Challenges of the case that wait for their turn behind any Challenge that may be listed.
    pub(super) async fn read_queue(
        &self,
        store: &Arc<dyn Store>,
        case: &mut Case,
    ) -> Result<(), StoreError> {
        let asked: BTreeSet<ObjectName> =
            case.certificates.iter().flat_map(|of| &of.challenges).map(Challenge::name).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let all = Resources::<Challenge>::new(Arc::clone(store), Kind::Challenge);
        let Some(all) = unless_forbidden(all.list(&Scope::all().brief()).await)? else {
            // Few users may list all namespaces; the reasons of Challenges also say what they wait for.
            return Ok(());
        };
        let told = Some(&case.control).filter(|_| case.driver == DriverCase::CertManager);
        let controller = told.and_then(|control| match &control.controllers[..] {
            [controller] => Some(controller),
            _ => None,
        });
        let limits = controller.and_then(flag_limits).unwrap_or(self.limits);
        // A controller that works on one namespace counts no other.
        let confined = controller.and_then(|of| of.flags.get("namespace"));
        let confined = confined.filter(|namespace| !namespace.is_empty());
        let is_counted = |challenge: &Challenge| {
            confined.is_none_or(|namespace| challenge.metadata.namespace == *namespace)
        };
        let all: Vec<Challenge> = all.into_iter().filter(is_counted).collect();
        let Plan { queue, .. } = match case.driver {
            DriverCase::CertManager => plan_of_cert_manager(&all, limits),
            _ => plan(&all, limits),
        };
        let own = queue.into_iter().filter(|queued| asked.contains(&queued.challenge.name()));
        let order_of = |name: &ObjectName| {
            let challenge = all.iter().find(|challenge| challenge.name() == *name);
            challenge.and_then(|c| c.metadata.controller()).map(|order| order.uid.clone())
        };
        case.queue = own
            .map(|queued| {
                let challenge = queued.challenge.name();
                let is_of_same_order = match &queued.waits {
                    Obstacle::Lock { holder } => order_of(holder) == order_of(&challenge),
                    Obstacle::Slot { .. } | Obstacle::Nothing => false,
                };
                let domain = queued.challenge.spec.shown_domain();
                QueuedCase { challenge, domain, waits: queued.waits, is_of_same_order }
            })
            .collect();
        case.running = list_running(&all, &case.queue);
        Ok(())
    }
}

/// Limit of running challenges, by the flags of cert-manager's controller.
fn flag_limits(controller: &ControllerCase) -> Option<Limits> {
    let slots = controller.flags.get(SLOTS_FLAG)?.parse().ok()?;
    Some(Limits { max_in_flight: slots })
}

/// Lists the Challenges that others wait for: holders of a name and, if slots are short, the oldest holders of a slot.
fn list_running(all: &[Challenge], queue: &[QueuedCase]) -> Vec<RunningCase> {
    let is_slot = |queued: &QueuedCase| matches!(queued.waits, Obstacle::Slot { .. });
    let waits_for_slot = queue.iter().any(is_slot);
    let is_holder = |challenge: &&Challenge| {
        let name = challenge.name();
        let is_it = |queued: &QueuedCase| matches!(&queued.waits, Obstacle::Lock { holder } if *holder == name);
        queue.iter().any(is_it) || (waits_for_slot && challenge.status.processing)
    };
    let mut running: Vec<&Challenge> = all.iter().filter(is_holder).collect();
    running.sort_by_key(|challenge| challenge.metadata.creation_timestamp);
    let of = |challenge: &Challenge| {
        let Challenge { metadata, spec, status, .. } = challenge;
        // Tokens of other users' challenges are not shown.
        let reason = match spec.token.as_str() {
            "" => status.reason.clone(),
            token => status.reason.replace(token, "…"),
        };
        let (domain, since) = (spec.shown_domain(), metadata.creation_timestamp);
        RunningCase { challenge: challenge.name(), domain, reason, since }
    };
    running.into_iter().take(MAX_RUNNING).map(of).collect()
}
