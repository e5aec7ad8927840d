//! `run`: the controllers in the foreground until interrupted.

mod obstacles;
mod provider_talk;
mod reasons;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use self::provider_talk::talk;
use super::announce;
use super::claim::claim_everything;
use super::context::{Context, OutputArgs};
use super::drive::{DriveArgs, Engine, Equipment, types};
use super::failure::{Failure, Kind as FailureKind};
use super::invocation;
use super::out::{self, Patience};
use super::permissions::Permit;
use super::permissions::needs::Task;
use super::stopping::{self, say_interrupted, say_stopped};
use super::sweep::sweep_before_work;
use crate::controllers::selection::Selection;
use crate::model::common::is_true;
use crate::model::{Certificate, Key, Kind, ObjectName, Record, Secret};
use crate::print::progress::Progress;
use crate::store::local::Access;
use crate::store::resources::typed;
use crate::store::{Change, Scope, Store, StoreError};

/// How soon a store that was away is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often files that could not be written are tried again.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// Flags of `run`.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// Write DIR/SECRETNAME/tls.crt and tls.key [default: out in the state folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How challenges are answered
    #[command(flatten)]
    pub drive: DriveArgs,
}

/// Works until interrupted: issues, renews, and keeps the files up to date.
///
/// # Errors
/// Fails when another process drives, when port 80 cannot be had, and when interrupted.
pub async fn run(args: RunArgs, context: &mut Context) -> Result<(), Failure> {
    match work(args, context).await {
        // While it waited for its turn, or for a server.
        Err(failure) if failure.kind == FailureKind::Terminated && !failure.message.is_empty() => {
            Err(say_stopped(context))
        }
        ended => ended,
    }
}

async fn work(args: RunArgs, context: &mut Context) -> Result<(), Failure> {
    // In the environment it may stand for other commands.
    if let Some(namespace) =
        context.global.namespace.as_ref().filter(|_| invocation::current().is_given_namespace())
    {
        let why = format!("run works in every namespace: -n {namespace} would limit nothing");
        return Err(Failure::usage(why)
            .hint("leave it out; order -f works on the objects of a manifest alone"));
    }
    let store = context.store(Access::ReadWrite).await?;
    let permit = permit(&args, &store, context).await?;
    let claim = claim_everything(context, &permit).await?;
    announce::everything(context, &store, &claim, &args.drive).await?;
    context.talk().line("Ctrl-C ends it");
    if let Some(cluster) = context.cluster() {
        sweep_before_work(cluster, [""].into(), context).await;
    }
    let fetcher = args.drive.fetcher().await?;
    let stop = CancellationToken::new();
    let probe = args.drive.probe_pod.probe(fetcher.clone(), true, &stop, context)?;
    let store = context.at_hand(store);
    let equipment = Equipment {
        store: Arc::clone(&store),
        http01: args.drive.http01(context.cluster()).await?,
        dns01: args.drive.dns01.reach(context.cluster()),
        tls_alpn01: args.drive.tls_alpn01(),
        types: types(context.cluster()),
        zones: args.drive.zones(&fetcher).await?,
        fetcher,
        selection: Selection::all(),
        unwritten: Arc::default(),
        approval: args.drive.approval(),
        account_keys: context.account_keys(),
        cluster_resource_namespace: context.global.cluster_resource_namespace.clone(),
        limits: args.drive.slots.limits(),
        check_period: args.drive.dns01_check_retry_period.0,
    };
    let namespace = &equipment.cluster_resource_namespace;
    let (zones, resolver) = (equipment.zones.clone(), &equipment.fetcher.resolver);
    let dns01 = equipment.dns01.clone().providers(&store, zones, resolver, namespace);
    let talk = talk(Arc::clone(&store), dns01, context.printer(&OutputArgs::default()));
    let (out, patience) = (context.out(args.out.as_deref())?, Patience::new(context.interrupted()));
    let engine = Engine::start_looking(equipment, probe, stop);
    let out = out.as_deref().map(|out| (out, &patience));
    let mut progress = Progress::new(context.talk(), false);
    let told = obstacles::tell(engine.obstacles(), Progress::new(context.talk(), false));
    let beside = Progress::new(context.talk(), false);
    let reasons = reasons::tell(&store, engine.obstacles(), beside);
    let lost = claim.lost();
    let ended = tokio::select! {
        ended = follow(&store, out, &mut progress) => {
            ended.map(|()| (FailureKind::Unexpected, "ended"))
        }
        () = talk => Ok((FailureKind::Unexpected, "ended")),
        () = reasons => Ok((FailureKind::Unexpected, "ended")),
        () = told => Ok((FailureKind::Unexpected, "the controllers ended")),
        kind = context.interrupted().wait() => Ok((kind, "ended")),
        () = lost.cancelled() => Ok((FailureKind::OwnedByAnother, "the Lease was lost")),
        () = engine.ended() => Ok((FailureKind::Unexpected, "the controllers ended")),
    };
    let ended = ended.map(|(kind, why)| {
        let failure = Failure::new(kind, format!("{why}; everything so far is kept"));
        let failure = failure.hint(invocation::current().go_on());
        match kind {
            FailureKind::Interrupted => say_interrupted(&failure, context),
            FailureKind::Terminated => say_stopped(context),
            _ => failure,
        }
    });
    let is_interrupted = ended.as_ref().is_ok_and(|failure| failure.message.is_empty());
    let stopped = stopping::stop(engine, &lost, is_interrupted, context).await;
    let failure = ended?;
    stopped?;
    Err(failure)
}

/// What has to be permitted for work on everything.
async fn permit(
    args: &RunArgs,
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<Permit, Failure> {
    if context.cluster().is_none() {
        return Ok(Permit::default());
    }
    let task = Task::on_everything(store, args.drive.places(context)).await?;
    Ok(Permit::new(context, task).of_run())
}

/// Tells what becomes of Certificates, and writes what was issued.
async fn follow(
    store: &Arc<dyn Store>,
    out: Option<(&Path, &Patience)>,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut changes = store.watch(Kind::Certificate, Scope::all());
    let mut told = Told::default();
    let mut files = Files { store, out, missed: BTreeMap::new() };
    let mut again = interval(TRY_AGAIN);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let change = tokio::select! {
            change = changes.next() => change,
            _ = again.tick() => {
                files.try_again(progress).await?;
                continue;
            }
        };
        let Some(change) = change else { return Ok(()) };
        let change = match change {
            Err(error) if error.may_pass() => continue,
            change => change?,
        };
        let records = match change {
            Change::Applied(record) => vec![record],
            Change::Resynced(records) => records,
            Change::Deleted(record) => {
                told.forget(&record.key.name);
                Vec::new()
            }
        };
        for record in records {
            // What cannot be read is told with the obstacles.
            let Ok(certificate) = typed::<Certificate>(record) else { continue };
            let conditions = &certificate.status.conditions;
            let is_good = is_true(conditions, "Ready") && !is_true(conditions, "Issuing");
            if is_good {
                let revision = certificate.status.revision.unwrap_or(0);
                let is_news = told.is_news(&certificate.name(), &format!("good: {revision}"));
                files.write(&certificate, is_news, progress).await?;
            } else if let Some(condition) = conditions.iter().find(|c| c.kind == "Issuing") {
                let name = certificate.name();
                if told.is_news(&name, &condition.message) {
                    let line = format!("Certificate {name}: {}", condition.message);
                    progress.line(&line, Timestamp::now());
                }
            }
        }
    }
}

/// What was said last of Certificates: a record changes more often than what it says.
#[derive(Debug, Default)]
struct Told(BTreeMap<ObjectName, String>);

impl Told {
    /// Remembers a message; tells whether it is another one than before.
    fn is_news(&mut self, name: &ObjectName, message: &str) -> bool {
        let before = self.0.insert(name.clone(), message.to_owned());
        before.as_deref() != Some(message)
    }

    /// Forgets a Certificate that is gone.
    fn forget(&mut self, name: &ObjectName) {
        self.0.remove(name);
    }
}

/// Keeps the files up to date.
struct Files<'a> {
    store: &'a Arc<dyn Store>,
    /// Absent where nothing is written.
    out: Option<(&'a Path, &'a Patience)>,
    /// Certificates whose files could not be written, and what was said of each.
    missed: BTreeMap<ObjectName, String>,
}

impl Files<'_> {
    /// Writes what was issued, unless there is nothing any more; says so if it is news, or could not be done before.
    async fn write(
        &mut self,
        certificate: &Certificate,
        is_news: bool,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let name = certificate.name();
        let Some((out, patience)) = self.out else {
            if is_news {
                progress.line(&format!("Certificate {name}: up to date"), Timestamp::now());
            }
            return Ok(());
        };
        let secret = ObjectName::new(&name.namespace, &certificate.spec.secret_name);
        let Some(record) = self.ask(Key::new(Kind::Secret, secret)).await? else {
            self.missed.remove(&name);
            return Ok(());
        };
        let secret = typed::<Secret>(record)?;
        let now = Timestamp::now();
        // A full disk must not end the controllers: the Secret is safe in the store.
        match out::write(out, &secret, patience).await {
            Ok(written) => {
                if self.missed.remove(&name).is_some() || is_news {
                    let path = written.certificate.display();
                    progress.line(&format!("Certificate {name}: up to date in {path}"), now);
                }
            }
            // Interrupted while it waited: this is the end.
            Err(failure) if failure.kind != FailureKind::Unexpected => {
                progress.line(&format!("Certificate {name}: {failure}"), now);
            }
            Err(failure) => {
                let why = failure.to_string();
                if self.missed.get(&name) != Some(&why) {
                    let seconds = TRY_AGAIN.as_secs();
                    let line = format!("Certificate {name}: {why}; tried again every {seconds} s");
                    progress.line(&line, now);
                }
                self.missed.insert(name, why);
            }
        }
        Ok(())
    }

    /// Writes what could not be written before; the Certificate may be in its next issuance by now.
    async fn try_again(&mut self, progress: &mut Progress) -> Result<(), Failure> {
        let missed: Vec<_> = self.missed.keys().cloned().collect();
        for name in missed {
            let record = self.ask(Key::new(Kind::Certificate, name.clone())).await?;
            match record.map(typed::<Certificate>) {
                Some(Ok(certificate)) => self.write(&certificate, false, progress).await?,
                // What is gone needs no files; what cannot be read is told with the obstacles.
                None | Some(Err(_)) => drop(self.missed.remove(&name)),
            }
        }
        Ok(())
    }

    async fn ask(&self, key: Key) -> Result<Option<Record>, StoreError> {
        answered(async || self.store.get(&key).await).await
    }
}

/// Asks a store until it answers: what passes by itself must not end the controllers.
async fn answered<T>(ask: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    loop {
        match ask().await {
            Err(error) if error.may_pass() => {
                tracing::debug!(%error, "the store is away; it is asked again");
                sleep(AGAIN).await;
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;

    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::commands::context::Interrupted;
    use crate::model::Blob;
    use crate::print::talk::{Memory, Talk};
    use crate::store::Part;
    use crate::store::cluster::ClusterFault;
    use crate::store::memory::MemoryStore;

    fn away() -> Result<(), StoreError> {
        let (server, why) = ("https://server".into(), "connection refused".into());
        Err(ClusterFault::Unreachable { server, why }.into())
    }

    fn missing() -> Result<(), StoreError> {
        Err(StoreError::NotFound { key: Key::new(Kind::Secret, ObjectName::new("web", "a")) })
    }

    /// Asks a store that answers so, one after the other; time passes at once. Tells what came of it.
    async fn check(mut answers: Vec<Result<(), StoreError>>, expected: Result<(), &str>) {
        answers.reverse();
        let answers = RefCell::new(answers);
        let answer = answered(async || answers.borrow_mut().pop().unwrap()).await;
        assert_eq!(answer.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
        assert!(answers.borrow().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_away_for_a_while_is_asked_until_it_answers() {
        check(vec![away(), away(), Ok(())], Ok(())).await;
        check(vec![away(), missing()], Err("Secret web/a not found")).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_fault_that_does_not_pass_ends_it() {
        check(vec![missing()], Err("Secret web/a not found")).await;
    }

    #[test]
    fn a_message_is_told_once_in_every_issuance() {
        let (web, mail) = (ObjectName::new("default", "web"), ObjectName::new("default", "mail"));
        let mut told = Told::default();
        assert!(told.is_news(&web, "issuing"));
        assert!(!told.is_news(&web, "issuing"));
        assert!(told.is_news(&mail, "issuing"));
        assert!(told.is_news(&web, "failed"));
        assert!(told.is_news(&web, "good: 1"));
        assert!(told.is_news(&web, "issuing"));
        assert!(!told.is_news(&mail, "issuing"));
    }

    /// A Certificate that is good, with its Secret.
    async fn issued() -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let blob = |text: &str| json!(Blob(text.as_bytes().to_vec()));
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": "web-tls", "namespace": "default"},
            "data": {"tls.crt": blob("NEW"), "tls.key": blob("KEY OF NEW")},
        });
        store.create(Record::new(secret).unwrap()).await.unwrap();
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"secretName": "web-tls", "issuerRef": {"name": "acme"}},
        });
        store.create(Record::new(certificate).unwrap()).await.unwrap();
        state(&store, json!([{"type": "Ready", "status": "True"}])).await;
        store
    }

    /// Sets the conditions of the Certificate.
    async fn state(store: &Arc<dyn Store>, conditions: Value) {
        let key = Key::new(Kind::Certificate, ObjectName::new("default", "web"));
        let mut record = store.get(&key).await.unwrap().unwrap();
        record.object["status"] = json!({"conditions": conditions});
        store.replace(record, Part::Status).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_could_not_be_written_are_tried_again_and_each_turn_is_told_once() {
        let (out, err, store) = (TempDir::new().unwrap(), Memory::default(), issued().await);
        let folder = out.path().join("web-tls");
        let obstacle = folder.join("tls.crt.new");
        fs::create_dir_all(&obstacle).unwrap();
        let patience = Patience::new(&Interrupted::default());
        let mut progress = Progress::new(Talk::new(Box::new(err.clone())), false);
        // Without the time, which comes first.
        let told = || -> Vec<String> {
            let lines = err.text().replace(&out.path().display().to_string(), "OUT");
            lines.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
        };
        let failed = "Certificate default/web: cannot write OUT/web-tls/tls.crt.new: it is a folder, not a file; tried again every 30 s";
        let issuing = "Certificate default/web: renewing";
        let written = "Certificate default/web: up to date in OUT/web-tls/tls.crt";
        let script = async {
            sleep(TRY_AGAIN * 5).await;
            assert_eq!(told(), [failed]);
            // The next issuance may take weeks; the Secret holds what is good until then.
            state(
                &store,
                json!([
                    {"type": "Ready", "status": "True"},
                    {"type": "Issuing", "status": "True", "message": "renewing"},
                ]),
            )
            .await;
            sleep(TRY_AGAIN * 5).await;
            assert_eq!(told(), [failed, issuing]);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
            fs::remove_dir(&obstacle).unwrap();
            sleep(TRY_AGAIN * 2).await;
            assert_eq!(fs::read_to_string(folder.join("tls.crt")).unwrap(), "NEW");
            assert_eq!(fs::read_to_string(folder.join("tls.key")).unwrap(), "KEY OF NEW");
            sleep(TRY_AGAIN * 5).await;
            assert_eq!(told(), [failed, issuing, written]);
            // However often it changes without another certificate, it is told once.
            for time in ["2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"] {
                state(
                    &store,
                    json!([{"type": "Ready", "status": "True", "lastTransitionTime": time}]),
                )
                .await;
                sleep(TRY_AGAIN).await;
            }
            assert_eq!(told(), [failed, issuing, written, written]);
        };
        tokio::select! {
            ended = follow(&store, Some((out.path(), &patience)), &mut progress) => {
                panic!("it ended: {ended:?}");
            }
            () = script => {}
        }
    }
}
