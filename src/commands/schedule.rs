//! `schedule`: lists the running and the waiting challenges, with queue positions and the reasons of waits.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::ReportArgs;
use crate::context::flags::slots::SlotArgs;
use crate::diagnosis::verdict::waits::Wait;
use crate::input::target;
use crate::lead;
use crate::listing::waiting_orders;
use crate::model::{Challenge, Kind, ObjectName, Time};
use crate::print::Printer;
use crate::print::age::age;
use crate::print::table::{Headers, NONE, Table};
use crate::reconcile::schedule::{self, Limits, Obstacle, Plan, Queued};
use crate::store::Scope;
use crate::store::resources::Resources;

/// Flags of `schedule`.
#[derive(Debug, clap::Args)]
pub struct ScheduleArgs {
    /// Show the challenges of all namespaces; all namespaces always share the slots
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// Number of slots
    #[command(flatten)]
    pub slots: SlotArgs,
    /// Flags of the output
    #[command(flatten)]
    pub output: ReportArgs,
}

/// Runs `schedule`.
///
/// # Errors
/// Fails when the store cannot be read.
pub async fn run(args: ScheduleArgs, context: &mut Context) -> Result<(), Failure> {
    let store = context.existing_store().await?;
    let challenges = Resources::<Challenge>::new(Arc::clone(&store), Kind::Challenge);
    let mut printer = context.printer(&(&args.output).into());
    let challenges = match challenges.list(&Scope::all()).await {
        Err(error) if error.lacks_permission() && !args.all_namespaces => {
            printer.note(
                "no permission to read other namespaces: the slots they take are not counted",
            );
            challenges.list(&Scope::namespace(context.namespace())).await?
        }
        listed => listed?,
    };
    let limits = args.slots.limits();
    let is_cert_managers = store.in_cluster() && lead::is_cert_managers(context).await?;
    let plan = if is_cert_managers {
        schedule::plan_of_cert_manager(&challenges, limits)
    } else {
        schedule::plan(&challenges, limits)
    };
    let all = slots(&challenges, plan);
    let running = all.iter().filter(|slot| slot.place == SlotState::Running).count();
    let is_shown = |slot: &&Slot<'_>| {
        args.all_namespaces || slot.challenge.metadata.namespace == context.namespace()
    };
    let shown: Vec<&Slot<'_>> = all.iter().filter(is_shown).collect();
    let now = context.now();
    let people = printer.format().is_for_people();
    if shown.is_empty() && people {
        printer.nothing_found((!args.all_namespaces).then(|| context.namespace()));
    } else {
        let headers = if args.output.no_headers { Headers::Hidden } else { Headers::Shown };
        let report = report(&shown, limits, running, now);
        let table = table(&shown, args.all_namespaces, now);
        printer.report(&report, |colour| table.render(headers, colour))?;
    }
    if people {
        let driven = lead::is_driven(context).await?;
        conclude(&printer, &all, shown.len(), limits, driven);
        let scope = target::scope(Kind::Order, (!args.all_namespaces).then(|| context.namespace()));
        waiting_orders::tell(&store, scope, &printer).await?;
    }
    Ok(())
}

fn conclude(printer: &Printer, all: &[Slot<'_>], shown: usize, limits: Limits, driven: bool) {
    let running = all.iter().filter(|slot| slot.place == SlotState::Running).count();
    let queued = all.len() - running;
    let elsewhere = match all.len() - shown {
        0 => String::new(),
        more => format!(", {more} of them in other namespaces (-A)"),
    };
    let slots = limits.max_in_flight;
    printer.note(&format!("{running} of {slots} slots taken, {queued} queued{elsewhere}"));
    if !driven && !all.is_empty() {
        printer.note(lead::NO_CONTROLLER);
    }
}

/// One line of the schedule.
#[derive(Debug)]
struct Slot<'a> {
    challenge: &'a Challenge,
    place: SlotState,
    waits: Wait<'a>,
}

#[derive(Debug, PartialEq, Eq)]
enum SlotState {
    Running,
    /// Position among the challenges that wait for the same obstacle, from 1; `None` for challenges that start next.
    Queued(Option<usize>),
}

/// Running challenges, oldest first, then the challenges that start next, then the queue in order.
fn slots<'a>(challenges: &'a [Challenge], plan: Plan<'a>) -> Vec<Slot<'a>> {
    let mut running: Vec<&Challenge> = challenges.iter().filter(|c| c.status.processing).collect();
    running.sort_by_key(|c| (c.metadata.creation_timestamp, c.name()));
    let running = running.into_iter().map(|challenge| Slot {
        challenge,
        place: SlotState::Running,
        waits: Wait::of_running(challenge),
    });
    let Plan { admitted, queue } = plan;
    let next = admitted.into_iter().map(|challenge| Slot {
        challenge,
        place: SlotState::Queued(None),
        waits: Wait::Queue(Obstacle::Nothing),
    });
    let queue = queue.into_iter().map(|Queued { challenge, position, waits }| Slot {
        challenge,
        place: SlotState::Queued(Some(position)),
        waits: Wait::Queue(waits),
    });
    running.chain(next).chain(queue).collect()
}

impl Slot<'_> {
    fn name(&self) -> ObjectName {
        self.challenge.name()
    }

    fn state(&self) -> &'static str {
        match self.place {
            SlotState::Running => "running",
            SlotState::Queued(_) => "queued",
        }
    }

    fn position(&self) -> Option<usize> {
        match self.place {
            SlotState::Running => None,
            SlotState::Queued(position) => position,
        }
    }
}

fn table(slots: &[&Slot<'_>], namespaces: bool, now: Timestamp) -> Table {
    let titles = ["NAME", "DOMAIN", "TYPE", "STATE", "POSITION", "WAITS FOR", "AGE"];
    let mut table = Table::new(namespaces.then_some("NAMESPACE").into_iter().chain(titles));
    for slot in slots {
        let metadata = &slot.challenge.metadata;
        let cells = [
            metadata.name.clone(),
            slot.challenge.spec.dns_name.clone(),
            slot.challenge.spec.kind.to_string(),
            slot.state().to_owned(),
            slot.position().map_or_else(|| NONE.to_owned(), |position| position.to_string()),
            slot.waits.to_string(),
            age(metadata.creation_timestamp.map(Time::timestamp), now),
        ];
        table.row(namespaces.then(|| metadata.namespace.clone()).into_iter().chain(cells));
    }
    table
}

fn report(slots: &[&Slot<'_>], limits: Limits, running: usize, now: Timestamp) -> Value {
    let challenges = slots.iter().map(|slot| {
        let ObjectName { namespace, name } = slot.name();
        let mut waits_for = json!({ "text": slot.waits.to_string() });
        match &slot.waits {
            Wait::Queue(Obstacle::Slot { .. }) => waits_for["kind"] = "Slot".into(),
            Wait::Queue(Obstacle::Lock { holder }) => {
                waits_for["kind"] = "Challenge".into();
                waits_for["namespace"] = holder.namespace.as_str().into();
                waits_for["name"] = holder.name.as_str().into();
            }
            _ => {}
        }
        let mut fields = json!({
            "namespace": namespace,
            "name": name,
            "domain": slot.challenge.spec.dns_name,
            "type": slot.challenge.spec.kind,
            "state": slot.state(),
            "waitsFor": waits_for,
            "creationTimestamp": slot.challenge.metadata.creation_timestamp,
        });
        if let Some(position) = slot.position() {
            fields["position"] = position.into();
        }
        fields
    });
    json!({
        "apiVersion": "kubectl-acme/v1alpha1",
        "kind": "Schedule",
        "at": Time::new(now),
        "slots": limits.max_in_flight,
        "slotsTaken": running,
        "challenges": challenges.collect::<Vec<_>>(),
    })
}
