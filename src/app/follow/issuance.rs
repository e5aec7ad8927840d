//! Working on manifests once, from the checks before the first write to what is said at the end: for certificates, or as a
//! rehearsal in a store that is thrown away.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::finish;
use super::on_issued::OnIssued;
use super::plan::{Opening, opening, would_be_due};
use super::purpose::Purpose;
use super::results;
use super::subject::Results;
use super::tracked::{End, Tracked};
use super::unbegun::{self, Unbegun};
use super::work::{Job, WorkArgs, work};
use crate::app::asking::{self, AskedPlace};
use crate::app::context::Context;
use crate::app::engine::clients;
use crate::app::failure::Failure;
use crate::app::input::{Input, applying, overwritten};
use crate::app::lead::{Claim, claim};
use crate::app::own_request;
use crate::app::preflight::permissions::{Permissions, workplace};
use crate::app::preflight::{self, announce, provider_check};
use crate::app::rehearsal::{Rehearsal, Rehearse};
use crate::app::venue::Venue;
use crate::controllers::renewal_inquiry::RenewalInquiry;
use crate::model::{Key, Kind, Record};
use crate::print::event_log::EventLog;
use crate::store::Store;
use crate::store::local::Access;
use crate::store::memory::MemoryStore;

/// One time that manifests are worked on.
#[derive(Clone, Copy, Debug)]
pub struct Issuance<'a> {
    /// Flags of the work.
    pub work: &'a WorkArgs,
    /// The manifests.
    pub input: &'a Input,
    /// Whether they were made of names.
    pub is_of_names: bool,
    /// What for.
    pub purpose: Purpose,
    /// When the command began, and when its time is up.
    pub times: (Timestamp, Timestamp),
    /// Where every step is written for programs.
    pub events: &'a EventLog,
}

/// Where the work is done, and with what.
struct Workshop<'a> {
    store: Arc<dyn Store>,
    records: Cow<'a, [Record]>,
    rehearsal: Option<Rehearsal>,
    out: Option<PathBuf>,
    on_issued: Option<OnIssued>,
    claim: Claim,
    permit: Permissions,
}

impl Issuance<'_> {
    /// Rehearses what would be due, were the manifests applied now; nothing where nothing is.
    ///
    /// # Errors
    /// Fails as the rehearsal does; what came of it has been said.
    pub async fn rehearse_what_is_due(
        self,
        how: Rehearse,
        context: &Context,
    ) -> Result<(), Failure> {
        let due = match self.due(context).await {
            Ok(due) => due,
            Err(failure) => return self.settle_unbegun(context, failure).await,
        };
        if due.is_empty() {
            return Ok(());
        }
        let (input, purpose) = (&self.input.only(&due), Purpose::RehearseFirst(how));
        Issuance { input, purpose, ..self }.run(context).await
    }

    async fn due(&self, context: &Context) -> Result<BTreeSet<Key>, Failure> {
        let store = context.store(Access::ReadOnly).await?;
        would_be_due(self.input.records(), &store, self.times.0).await
    }

    /// Works until all has ended, and says what came of it.
    ///
    /// # Errors
    /// Fails with the lowest exit code of all Certificates.
    pub async fn run(&self, context: &Context) -> Result<(), Failure> {
        let Self { work: flags, purpose, times, events, .. } = *self;
        let begun = Box::pin(begin(self, context)).await;
        let (workshop, Begun { given, open, ends: known }) = match begun {
            Ok(begun) => begun,
            Err(failure) => return self.settle_unbegun(context, failure).await,
        };
        let (records, rehearsal) = (&*workshop.records, workshop.rehearsal.as_ref());
        let followed = open.iter().map(|(key, tracked)| (key.clone(), tracked.is_due())).collect();
        // Programs are told of what is issued, not of what is tried before.
        let steps = if purpose.is_first() { EventLog::default() } else { events.clone() };
        let job = Job {
            store: Arc::clone(&workshop.store),
            claim: workshop.claim,
            permit: workshop.permit,
            drive: &flags.drive,
            rehearsal: rehearsal.map(Rehearsal::means),
            by_hand: flags.manual.dns01_manual,
            given,
            open,
            started: times.0,
            deadline: times.1,
            events: steps,
        };
        let mut worked = work(job, context).await;
        let tidied = match rehearsal {
            Some(rehearsal) => rehearsal.end(&workshop.store, &flags.drive, context).await,
            None => Ok(()),
        };
        if let Err(failure) = &tidied {
            context.printer(&flags.output).error(&failure.message, &failure.hints);
            worked.untidy = Some(failure.kind);
        }
        worked.ends.extend(known);
        let results = Results {
            store: &workshop.store,
            out: workshop.out.as_deref(),
            out_secret: flags.out_secret,
            on_issued: workshop.on_issued.as_ref(),
            zone_file: flags.manual.dns01_zone_file.as_deref(),
            purpose,
            times,
            timeline: flags.timeline,
            records,
            places: &self.input.places(),
            followed: &followed,
            events,
        };
        finish::settle(&results, &flags.output, context, worked).await
    }

    /// Says that nothing was done, and why.
    async fn settle_unbegun(&self, context: &Context, failure: Failure) -> Result<(), Failure> {
        let Self { work: flags, purpose, times, events, .. } = *self;
        let (records, places) = (self.input.records(), &self.input.places());
        let told = Unbegun { records, places, purpose, times, events };
        unbegun::settle_unbegun(&told, &flags.output, context, failure).await
    }
}

/// What is to be worked on, when all checks have passed.
struct Begun {
    given: BTreeSet<Key>,
    open: BTreeMap<Key, Tracked>,
    ends: BTreeMap<Key, End>,
}

/// Checks everything, applies the manifests, and finds what is due.
async fn begin<'a>(
    issuance: &Issuance<'a>,
    context: &Context,
) -> Result<(Workshop<'a>, Begun), Failure> {
    let Issuance { work, input, purpose, times: (started, deadline), .. } = *issuance;
    let manual = &work.manual;
    let mut workshop = match purpose.rehearsed() {
        Some(how) => rehearsed(issuance, how, context).await?,
        None => open(work, input, context, deadline).await?,
    };
    let records = &*workshop.records;
    manual.check_turn(&workshop.claim)?;
    let venue = match purpose.rehearsed() {
        Some(_) => Venue::of_rehearsal(context),
        None => Venue::of(context, &workshop.claim).by_hand(manual.dns01_manual),
    };
    let (folder, namespace) = (workshop.out.as_deref(), &context.global.cluster_resource_namespace);
    preflight::check(records, &workshop.store, venue, folder, namespace).await?;
    if let Some(folder) = folder {
        results::expect_writable(folder, context.interrupted()).await?;
        let of_kind = |record: &&Record| record.key.kind == Kind::CertificateRequest;
        for record in records.iter().filter(of_kind) {
            let certificate = own_request::certificate_of(record)?;
            let name = own_request::folder(&certificate);
            results::expect_no_key(folder, name, context.interrupted()).await?;
        }
    }
    if issuance.is_of_names {
        overwritten::check(records, &workshop.store, &context.printer(&work.output)).await?;
    }
    let mut given: BTreeSet<Key> = records.iter().map(|record| record.key.clone()).collect();
    given.extend(preflight::certificates::issuers(records));
    if let Some(rehearsal) = &workshop.rehearsal {
        announce::rehearsal(context, rehearsal.is_in_cluster(), records)?;
    } else {
        let (Workshop { store, claim, .. }, drive) = (&workshop, Some(&work.drive));
        announce::work(context, store, &given, records, claim, drive).await?;
    }
    let printer = context.printer(&work.output);
    // In a rehearsal nobody makes what others ask for.
    let is_made = workshop.rehearsal.is_none();
    if is_made && records.iter().any(|record| input.is_asked(&record.key)) {
        workshop.records.to_mut().retain(|record| !input.is_asked(&record.key));
    }
    applying::apply(input, &workshop.records, &workshop.store, context, &printer).await?;
    if is_made {
        let place = AskedPlace { store: &workshop.store, claim: &workshop.claim, deadline };
        let asked = asking::bring_up_to_date(input, place, work, context).await?;
        given.extend(asked.iter().map(|record| record.key.clone()));
        given.extend(preflight::certificates::issuers(&asked));
        if !asked.is_empty() {
            workshop.records.to_mut().extend(asked);
        }
    }
    let records = &*workshop.records;
    let inquiry = match &workshop.rehearsal {
        Some(_) => None,
        None => Some(RenewalInquiry::new(Arc::new(clients(&work.drive.fetcher().await?.resolver)))),
    };
    let how = (work.drive.certificates.options(), inquiry);
    let Opening { open, ends } =
        opening(records, &workshop.store, &workshop.claim, how, started).await?;
    let rehearsal = workshop.rehearsal.as_ref();
    if venue.has_providers() && purpose.rehearsed() != Some(Rehearse::Loopback) {
        let due = open.iter().filter(|(_, tracked)| tracked.is_due()).map(|(key, _)| key);
        let (drive, fetcher) = (&work.drive, rehearsal.map(|r| &r.fetcher));
        let told = (context, &work.output);
        provider_check::check(due, &workshop.store, drive, fetcher, told).await?;
    }
    Ok((workshop, Begun { given, open, ends }))
}

/// Where a rehearsal works: in a store that is thrown away.
async fn rehearsed(
    issuance: &Issuance<'_>,
    how: Rehearse,
    context: &Context,
) -> Result<Workshop<'static>, Failure> {
    let Issuance { work, input, purpose, times: (_, deadline), .. } = *issuance;
    let drive = &work.drive;
    let (rehearsal, records) = Rehearsal::start(how, drive, input, deadline, context).await?;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    // Where the real certificate goes nothing else does before.
    let out = work.out.clone().filter(|_| !purpose.is_first());
    let (rehearsal, claim, permit) = (Some(rehearsal), Claim::Alone, Permissions::default());
    let records = records.into();
    Ok(Workshop { store, records, rehearsal, out, on_issued: None, claim, permit })
}

async fn open<'a>(
    work: &WorkArgs,
    input: &'a Input,
    context: &Context,
    deadline: Timestamp,
) -> Result<Workshop<'a>, Failure> {
    let records = input.records();
    let out = context.out(work.out.as_deref())?;
    let on_issued = work.on_issued.chosen(out.as_deref())?;
    let places = work.drive.places(context);
    let (store, permit) = workplace(context, records, true, places).await?;
    let claim = claim(context, deadline, &permit).await?;
    let records = records.into();
    Ok(Workshop { store, records, rehearsal: None, out, on_issued, claim, permit })
}
