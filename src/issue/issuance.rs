//! One run over manifests, from the checks before the first write to the results at the end: to issue certificates, or as a
//! rehearsal in a temporary store.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::asking::{self, AskedPlace};
use super::follow::work::{Job, WorkArgs, work};
use super::plan::opening::{Opening, opening, would_be_due};
use super::plan::subset::{self, LeftOut};
use super::preflight::{self, announce, provider_check};
use super::rehearsal::{Rehearsal, Rehearse};
use super::results::folder_turn::WriteWait;
use super::results::on_issued::OnIssued;
use super::results::purpose::Purpose;
use super::results::subject::Results;
use super::results::temporary::TemporaryFiles;
use super::results::unbegun::{self, RefusedCommand};
use super::results::{files, finish};
use super::tracked::{End, Tracked};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::controllers::renewal_inquiry::RenewalInquiry;
use crate::engine::clients;
use crate::input::{Input, applying, overwritten};
use crate::lead::venue::Venue;
use crate::lead::{Claim, claim};
use crate::model::{Key, Kind, Record};
use crate::objects::own_request;
use crate::permissions::{Permissions, workplace};
use crate::print::Printer;
use crate::print::event_log::EventLog;
use crate::store::Store;
use crate::store::local::Access;
use crate::store::memory::MemoryStore;

/// One run over manifests.
#[derive(Clone, Copy, Debug)]
pub struct Issuance<'a> {
    /// Flags of the work.
    pub work: &'a WorkArgs,
    /// The manifests.
    pub input: &'a Input,
    /// Purpose of the run.
    pub purpose: Purpose,
    /// Start of the command, and its deadline.
    pub times: (Timestamp, Timestamp),
    /// Most rounds in which failed names may be left out of Certificates that have other names.
    pub rounds: usize,
    /// Event log that gets every step, for programs.
    pub events: &'a EventLog,
}

/// Results of earlier rounds of one command.
#[derive(Default)]
struct Earlier {
    /// Ends of the objects that are not tried again.
    ends: BTreeMap<Key, End>,
    /// Objects that were followed, and whether each was due.
    followed: BTreeMap<Key, bool>,
    /// Names that were left out.
    left_out: LeftOut,
}

impl Earlier {
    /// Keeps the ends of a round, except of Certificates that are tried again without failed names; warns of these names.
    fn put_aside(
        &mut self,
        ends: BTreeMap<Key, End>,
        known: BTreeMap<Key, End>,
        failed: &LeftOut,
        printer: &Printer,
    ) {
        for (key, end) in ends.into_iter().chain(known) {
            let (Some(names), End::Failed(failure)) = (failed.get(&key), &end) else {
                self.ends.insert(key, end);
                continue;
            };
            let list: Vec<&str> = names.iter().map(String::as_str).collect();
            printer.warning(&format!("{}; retrying without {}", failure.message, list.join(", ")));
            self.left_out.entry(key).or_default().extend(names.iter().cloned());
        }
    }
}

/// Store and means of one round.
struct WorkSetup<'a> {
    store: Arc<dyn Store>,
    records: Cow<'a, [Record]>,
    rehearsal: Option<Rehearsal>,
    out: Option<PathBuf>,
    on_issued: Option<OnIssued>,
    claim: Claim,
    permit: Permissions,
}

impl Issuance<'_> {
    /// Rehearses the Certificates that would be due if the manifests were applied now; does nothing if none would be due.
    ///
    /// # Errors
    /// Fails as the rehearsal does; its results are printed by then.
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
        Box::pin(Issuance { input, purpose, ..self }.run(context)).await
    }

    async fn due(&self, context: &Context) -> Result<BTreeSet<Key>, Failure> {
        let store = context.store(Access::ReadOnly).await?;
        would_be_due(self.input.records(), &store, self.times.0).await
    }

    /// Works until every object has ended, and prints the results.
    ///
    /// # Errors
    /// Fails with the lowest exit code of all Certificates.
    pub async fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut fewer = Cow::Borrowed(self.input);
        let mut before = Earlier::default();
        for round in 0.. {
            let (started, mut deadline) = self.times;
            if round > 0 {
                let timeout = self.work.timeout.0;
                deadline = Timestamp::now().saturating_add(timeout).unwrap_or(Timestamp::MAX);
            }
            let this = Issuance { input: &fewer, times: (started, deadline), ..*self };
            let is_last = round >= self.rounds;
            match Box::pin(this.run_once(&mut before, is_last, context)).await? {
                None => break,
                Some(left_out) => {
                    let mut input = fewer.into_owned();
                    for (key, names) in &left_out {
                        input.change(key, |record| subset::without(record, names));
                    }
                    fewer = Cow::Owned(input);
                }
            }
        }
        Ok(())
    }

    /// Works until every object has ended. Returns failed names to leave out in a next round, or prints the results.
    async fn run_once(
        &self,
        before: &mut Earlier,
        is_last: bool,
        context: &Context,
    ) -> Result<Option<LeftOut>, Failure> {
        let Self { work: flags, purpose, times, events, .. } = *self;
        let begun = Box::pin(begin(self, &before.ends, context)).await;
        let (setup, Begun { given, open, ends: known }) = match begun {
            Ok(begun) => begun,
            Err(failure) => {
                return self.settle_unbegun(context, failure).await.map(|()| None);
            }
        };
        let (records, rehearsal) = (&*setup.records, setup.rehearsal.as_ref());
        before.followed.extend(open.iter().map(|(key, tracked)| (key.clone(), tracked.is_due())));
        // Programs read the steps of the real run, not of the rehearsal before it.
        let steps = if purpose.is_first() { EventLog::default() } else { events.clone() };
        let job = Job {
            store: Arc::clone(&setup.store),
            claim: setup.claim,
            permit: setup.permit,
            drive: &flags.drive,
            rehearsal: rehearsal.map(Rehearsal::means),
            leaves_names_out: self.rounds > 0,
            by_hand: flags.manual.dns01_manual,
            given,
            open,
            started: times.0,
            deadline: times.1,
            events: steps,
        };
        let files = TemporaryFiles::default();
        let mut worked = {
            let folder = setup.out.as_deref().filter(|_| rehearsal.is_none());
            let patience = WriteWait::until(times.1, context.interrupted());
            let given = job.given.clone();
            let temporary = files.write_as_they_come(&setup.store, folder, &given, &patience);
            tokio::select! {
                worked = work(job, context) => worked,
                never = temporary => match never {},
            }
        };
        let tidied = match rehearsal {
            Some(rehearsal) => rehearsal.end(&setup.store, &flags.drive, context).await,
            None => Ok(()),
        };
        let printer = context.printer(&flags.output);
        let unfinished = worked.ends.iter().filter(|(_, end)| !end.is_good());
        for (key, path) in files.of(unfinished.map(|(key, _)| key)) {
            let path = path.display();
            printer.note(&format!("{key}: {path} is a temporary certificate, and not trusted"));
        }
        if let Err(failure) = &tidied {
            printer.error(&failure.message, &failure.hints);
            worked.untidy = Some(failure.kind);
        }
        if !is_last && worked.stopped.is_none() {
            let failed = subset::failed(&worked.ends, &setup.store).await?;
            if !failed.is_empty() {
                before.put_aside(worked.ends, known, &failed, &printer);
                return Ok(Some(failed));
            }
        }
        worked.ends.extend(known);
        worked.ends.append(&mut before.ends);
        if self.rounds > 0 && purpose.is_kept() {
            let Earlier { followed, left_out, .. } = &*before;
            subset::keep(&worked.ends, followed, left_out, &setup.store).await?;
        }
        let results = Results {
            store: &setup.store,
            out: setup.out.as_deref(),
            out_secret: flags.out_secret,
            on_issued: setup.on_issued.as_ref(),
            zone_file: flags.manual.dns01_zone_file.as_deref(),
            purpose,
            times,
            timeline: flags.timeline,
            records,
            places: &self.input.places(),
            followed: &before.followed,
            events,
        };
        finish::settle(&results, &flags.output, context, worked).await.map(|()| None)
    }

    /// Reports that nothing was done, and why.
    async fn settle_unbegun(&self, context: &Context, failure: Failure) -> Result<(), Failure> {
        let Self { work: flags, purpose, times, events, .. } = *self;
        let (records, places) = (self.input.records(), &self.input.places());
        let told = RefusedCommand { records, places, purpose, times, events };
        unbegun::settle_unbegun(&told, &flags.output, context, failure).await
    }
}

/// Objects to work on when all checks have passed.
struct Begun {
    given: BTreeSet<Key>,
    open: BTreeMap<Key, Tracked>,
    ends: BTreeMap<Key, End>,
}

/// Checks everything, applies the manifests, and finds the objects to follow, except those that ended in an earlier round.
async fn begin<'a>(
    issuance: &Issuance<'a>,
    ended: &BTreeMap<Key, End>,
    context: &Context,
) -> Result<(WorkSetup<'a>, Begun), Failure> {
    let Issuance { work, input, purpose, times: (started, deadline), .. } = *issuance;
    let manual = &work.manual;
    let mut setup = match purpose.rehearsed() {
        Some(how) => start_rehearsal(issuance, how, context).await?,
        None => open_store(work, input, context, deadline).await?,
    };
    if let Some(base) = input.made_issuer().filter(|_| setup.rehearsal.is_none()) {
        // Another command may have ordered something else since the store was first read.
        let (records, store) = (setup.records.to_mut(), &setup.store);
        overwritten::settle_and_tell(records, base, store, &context.printer(&work.output)).await?;
    }
    let records = &*setup.records;
    manual.check_turn(&setup.claim)?;
    let venue = match purpose.rehearsed() {
        Some(_) => Venue::of_rehearsal(context),
        None => Venue::of(context, &setup.claim).by_hand(manual.dns01_manual),
    };
    let (folder, namespace) = (setup.out.as_deref(), &context.global.cluster_resource_namespace);
    preflight::check(records, &setup.store, venue, folder, namespace).await?;
    if let Some(folder) = folder {
        files::expect_writable(folder, context.interrupted()).await?;
        let of_kind = |record: &&Record| record.key.kind == Kind::CertificateRequest;
        for record in records.iter().filter(of_kind) {
            let certificate = own_request::certificate_of(record)?;
            let name = own_request::folder(&certificate);
            files::expect_no_key(folder, name, context.interrupted()).await?;
        }
    }
    if input.made_issuer().is_some() {
        overwritten::check(records, &setup.store, &context.printer(&work.output)).await?;
    }
    let mut given: BTreeSet<Key> = records.iter().map(|record| record.key.clone()).collect();
    given.extend(preflight::certificates::issuers(records));
    if let Some(rehearsal) = &setup.rehearsal {
        announce::rehearsal(context, rehearsal.is_in_cluster(), records)?;
    } else {
        let (WorkSetup { store, claim, .. }, drive) = (&setup, Some(&work.drive));
        announce::work(context, store, &given, records, claim, drive).await?;
    }
    let printer = context.printer(&work.output);
    // In a rehearsal no controller makes the Certificates for which Ingresses and Gateways ask.
    let is_made = setup.rehearsal.is_none();
    if is_made && records.iter().any(|record| input.is_asked(&record.key)) {
        setup.records.to_mut().retain(|record| !input.is_asked(&record.key));
    }
    applying::apply(input, &setup.records, &setup.store, context, &printer).await?;
    if is_made {
        let place = AskedPlace { store: &setup.store, claim: &setup.claim, deadline };
        let asked = asking::bring_up_to_date(input, place, work, context).await?;
        given.extend(asked.iter().map(|record| record.key.clone()));
        given.extend(preflight::certificates::issuers(&asked));
        if !asked.is_empty() {
            setup.records.to_mut().extend(asked);
        }
    }
    let records = &*setup.records;
    let inquiry = match &setup.rehearsal {
        Some(_) => None,
        None => Some(RenewalInquiry::new(Arc::new(clients(&work.drive.fetcher().await?.resolver)))),
    };
    let how = (work.drive.certificates.options(), inquiry);
    let still: Cow<'_, [Record]> = if ended.is_empty() {
        records.into()
    } else {
        records.iter().filter(|record| !ended.contains_key(&record.key)).cloned().collect()
    };
    let Opening { open, ends } = opening(&still, &setup.store, &setup.claim, how, started).await?;
    let rehearsal = setup.rehearsal.as_ref();
    if venue.has_providers() && purpose.rehearsed() != Some(Rehearse::Loopback) {
        let due = open.iter().filter(|(_, tracked)| tracked.is_due()).map(|(key, _)| key);
        let (drive, fetcher) = (&work.drive, rehearsal.map(|r| &r.fetcher));
        let told = (context, &work.output);
        provider_check::check(due, &setup.store, drive, fetcher, told).await?;
    }
    Ok((setup, Begun { given, open, ends }))
}

/// Starts a rehearsal, which works in a temporary store.
async fn start_rehearsal(
    issuance: &Issuance<'_>,
    how: Rehearse,
    context: &Context,
) -> Result<WorkSetup<'static>, Failure> {
    let Issuance { work, input, purpose, times: (_, deadline), .. } = *issuance;
    let drive = &work.drive;
    let (rehearsal, records) = Rehearsal::start(how, drive, input, deadline, context).await?;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    // Before the real run, nothing is written to the folder of the real certificates.
    let out = work.out.clone().filter(|_| !purpose.is_first());
    let (rehearsal, claim, permit) = (Some(rehearsal), Claim::Alone, Permissions::default());
    let records = records.into();
    Ok(WorkSetup { store, records, rehearsal, out, on_issued: None, claim, permit })
}

async fn open_store<'a>(
    work: &WorkArgs,
    input: &'a Input,
    context: &Context,
    deadline: Timestamp,
) -> Result<WorkSetup<'a>, Failure> {
    let records = input.records();
    let out = context.out(work.out.as_deref())?;
    let on_issued = work.on_issued.chosen(out.as_deref())?;
    let places = work.drive.places(context);
    let (store, permit) = workplace(context, records, true, places).await?;
    let claim = claim(context, deadline, &permit).await?;
    let records = records.into();
    Ok(WorkSetup { store, records, rehearsal: None, out, on_issued, claim, permit })
}
