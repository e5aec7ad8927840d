//! Follows Certificates: reports their progress, and writes issued certificates to files.
//!
//! A failed write is tried again every 30 s; a failed command is run again after growing pauses.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::files_to_write::{FilesToWrite, NotWritten, WriteResult};
use super::next_renewal::{NEWS_INTERVAL, Renewals};
use super::reported::ReportedMessages;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::issue::results::files::{self, Written};
use crate::issue::results::folder_turn::WriteWait;
use crate::issue::results::on_issued::OnIssued;
use crate::issue::results::temporary::{self, is_in_place};
use crate::model::common::is_true;
use crate::model::{Certificate, ConditionStatus, Key, Kind, ObjectName, Secret};
use crate::print::progress::Progress;
use crate::reconcile::certificate::options::Backoff;
use crate::store::error::StoreError;
use crate::store::resources::typed;
use crate::store::{Change, Scope, Store};

/// Pause before an unreachable store is asked again.
const STORE_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Interval between the tries of a failed write.
const WRITE_RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum time that unfinished writes may delay the end of the process.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// Reports the progress of Certificates, and writes issued certificates, until the watch ends.
pub async fn follow(files: &mut Files<'_>, progress: &mut Progress) -> Result<(), Failure> {
    let mut changes = files.store.watch(Kind::Certificate, Scope::all());
    let (mut told, mut temporary) = (ReportedMessages::default(), ReportedMessages::default());
    let mut renewals = Renewals::default();
    let mut look = interval(NEWS_INTERVAL);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut again = interval(WRITE_RETRY_INTERVAL);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let change = tokio::select! {
            change = changes.next() => change,
            _ = again.tick() => {
                files.try_again(progress).await?;
                continue;
            }
            ended = files.next_ended() => {
                files.conclude(ended, progress)?;
                continue;
            }
            _ = look.tick() => {
                let now = Timestamp::now();
                if let Some(news) = renewals.news(now) {
                    progress.line(&news, now);
                }
                continue;
            }
        };
        let Some(change) = change else { return Ok(()) };
        let change = match change {
            Err(error) if error.may_pass() => continue,
            change => change?,
        };
        renewals.saw(&change);
        let records = match change {
            Change::Applied(record) => vec![record],
            Change::Resynced(records) => records,
            Change::Deleted(record) => {
                told.forget(&record.key.name);
                temporary.forget(&record.key.name);
                Vec::new()
            }
        };
        for record in records {
            // A Certificate that cannot be parsed is reported with the obstacles.
            let Ok(certificate) = typed::<Certificate>(record) else { continue };
            let conditions = &certificate.status.conditions;
            let is_good = is_true(conditions, "Ready") && !is_true(conditions, "Issuing");
            if is_good {
                let revision = certificate.status.revision.unwrap_or(0);
                let is_news = told.is_news(&certificate.name(), &format!("good: {revision}"));
                files.write(&certificate, is_news, progress);
            } else if let Some(condition) = conditions.iter().find(|c| c.kind == "Issuing") {
                let name = certificate.name();
                if told.is_news(&name, &condition.message) {
                    let next = files.backoff.next_try(&certificate.status);
                    let next = next.filter(|_| condition.status == ConditionStatus::False);
                    let next = next.map(|at| format!("; next try at {at:.0}")).unwrap_or_default();
                    let line = format!("Certificate {name}: {}{next}", condition.message);
                    progress.line(&line, Timestamp::now());
                }
                if let Some(end) =
                    certificate.status.not_after.filter(|_| is_in_place(&certificate))
                {
                    let is_news = temporary.is_news(&name, &end.to_string());
                    files.write(&certificate, is_news, progress);
                }
            }
        }
    }
}

/// Options for writing files.
#[derive(Clone, Copy)]
pub struct FileWriting<'a> {
    /// Maximum time that a write waits for other processes.
    pub patience: &'a WriteWait,
    /// Command to run after each written certificate.
    pub command: Option<&'a OnIssued>,
}

/// Keeps the files up to date. The files of several Certificates are written at the same time: a blocked folder of one
/// Certificate does not delay the others.
pub struct Files<'a> {
    store: &'a Arc<dyn Store>,
    /// Output folder and options; `None` if no files are written.
    out: Option<(&'a Path, FileWriting<'a>)>,
    /// Certificates whose files could not be written, with the last reported reason of each.
    missed: BTreeMap<ObjectName, String>,
    /// Certificates whose files are being written, each with the next request to write.
    busy: BTreeMap<ObjectName, Option<FilesToWrite>>,
    under_way: FuturesUnordered<LocalBoxFuture<'a, WriteResult>>,
    /// Pauses after failed issuances.
    backoff: Backoff,
}

impl<'a> Files<'a> {
    /// Builds a writer for a folder, or one that writes nothing if no folder is given.
    pub fn new(store: &'a Arc<dyn Store>, out: Option<(&'a Path, FileWriting<'a>)>) -> Self {
        let (missed, busy) = (BTreeMap::new(), BTreeMap::new());
        let backoff = Backoff::default();
        Self { store, out, missed, busy, under_way: FuturesUnordered::new(), backoff }
    }

    /// Replaces the pauses after failed issuances.
    #[must_use]
    pub fn with_backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Begins to write an issued certificate; the result is reported if the certificate is new or an earlier write failed.
    fn write(&mut self, certificate: &Certificate, is_news: bool, progress: &mut Progress) {
        let (name, is_temporary) = (certificate.name(), is_in_place(certificate));
        if self.out.is_none() {
            if is_news && !is_temporary {
                progress.line(&format!("Certificate {name}: up to date"), Timestamp::now());
            }
            return;
        }
        let secret = ObjectName::new(&name.namespace, &certificate.spec.secret_name);
        let wish = FilesToWrite { certificate: name, secret, is_news, is_temporary };
        match self.busy.get_mut(&wish.certificate) {
            Some(next) => {
                let was_news = next.as_ref().is_some_and(|next| next.is_news);
                *next = Some(FilesToWrite { is_news: is_news || was_news, ..wish });
            }
            None => self.begin(wish),
        }
    }

    fn begin(&mut self, wish: FilesToWrite) {
        let (store, Some((out, place))) = (self.store, self.out) else { return };
        self.busy.insert(wish.certificate.clone(), None);
        self.under_way.push(Box::pin(async move {
            let written = write(store, &wish, out, place).await;
            WriteResult { wish, written }
        }));
    }

    /// Waits for the next result of a write.
    async fn next_ended(&mut self) -> WriteResult {
        match self.under_way.next().await {
            Some(ended) => ended,
            None => pending().await,
        }
    }

    fn conclude(&mut self, ended: WriteResult, progress: &mut Progress) -> Result<(), Failure> {
        let WriteResult {
            wish: FilesToWrite { certificate: name, is_news, is_temporary, .. },
            written,
        } = ended;
        let now = Timestamp::now();
        // A full disk must not end the controllers: the Secret is safe in the store.
        match written {
            Ok(None) => drop(self.missed.remove(&name)),
            Ok(Some((written, ran))) => {
                if self.missed.remove(&name).is_some() || is_news {
                    let path = written.certificate.display();
                    let what = if is_temporary { "temporary certificate" } else { "up to date" };
                    progress.line(&format!("Certificate {name}: {what} in {path}"), now);
                    for line in written.outdated_lines() {
                        progress.line(&line, now);
                    }
                }
                if let Some(ran) = ran {
                    progress.line(&ran, now);
                }
            }
            Err(NotWritten::Store(failure)) => return Err(failure),
            // An interrupt ended the wait: the process ends.
            Err(NotWritten::Disk(failure) | NotWritten::Command(failure))
                if failure.kind != FailureKind::Unexpected =>
            {
                progress.line(&format!("Certificate {name}: {failure}"), now);
            }
            Err(NotWritten::Disk(failure)) => {
                let again = format!("tried again every {} s", WRITE_RETRY_INTERVAL.as_secs());
                self.miss(&name, &failure, &again, progress);
            }
            Err(NotWritten::Command(failure)) => {
                self.miss(&name, &failure, "run again soon, then after growing pauses", progress);
            }
        }
        if let Some(next) = self.busy.remove(&name).flatten() {
            self.begin(next);
        }
        Ok(())
    }

    /// Records a failed write, and reports the failure unless the same failure was reported last.
    fn miss(&mut self, name: &ObjectName, failure: &Failure, again: &str, progress: &mut Progress) {
        let why = failure.to_string();
        if self.missed.get(name) != Some(&why) {
            progress.line(&format!("Certificate {name}: {why}; {again}"), Timestamp::now());
        }
        self.missed.insert(name.clone(), why);
    }

    /// Repeats failed writes; the Certificate may be in its next issuance by now.
    async fn try_again(&mut self, progress: &mut Progress) -> Result<(), Failure> {
        let missed: Vec<_> = self.missed.keys().cloned().collect();
        for name in missed {
            let key = Key::new(Kind::Certificate, name.clone());
            let record = ask_store(async || self.store.get(&key).await).await?;
            match record.map(typed::<Certificate>) {
                Some(Ok(certificate)) => self.write(&certificate, false, progress),
                // A deleted Certificate needs no files; a Certificate that cannot be parsed is reported with the obstacles.
                None | Some(Err(_)) => drop(self.missed.remove(&name)),
            }
        }
        Ok(())
    }

    /// Waits a short time for unfinished writes.
    pub async fn finish(&mut self, progress: &mut Progress) {
        let finish = async {
            while let Some(ended) = self.under_way.next().await {
                self.busy.remove(&ended.wish.certificate);
                // The process ends even if the store fails.
                let _told = self.conclude(ended, progress);
            }
        };
        let _all_of_them = timeout(FINISH_TIMEOUT, finish).await;
    }
}

/// Writes the certificate of a Secret, and runs the command unless it has succeeded for this certificate; reports the run.
async fn write(
    store: &Arc<dyn Store>,
    wish: &FilesToWrite,
    out: &Path,
    FileWriting { patience, command }: FileWriting<'_>,
) -> Result<Option<(Written, Option<String>)>, NotWritten> {
    let key = Key::new(Kind::Secret, wish.secret.clone());
    let of_store = |error: StoreError| NotWritten::Store(error.into());
    let found = ask_store(async || store.get(&key).await).await.map_err(of_store)?;
    let Some(record) = found else { return Ok(None) };
    let secret = typed::<Secret>(record).map_err(of_store)?;
    if wish.is_temporary {
        let written = temporary::write(out, &secret, patience).await.map_err(NotWritten::Disk)?;
        return Ok(written.map(|written| (written, None)));
    }
    let written = files::write(out, &secret, None, patience).await.map_err(NotWritten::Disk)?;
    let certificate = Key::new(Kind::Certificate, wish.certificate.clone());
    let ran = match command {
        Some(command) => command.run(&certificate, &written, patience.interrupted()).await,
        None => Ok(None),
    };
    Ok(Some((written, ran.map_err(NotWritten::Command)?)))
}

/// Asks a store until the store answers: a temporary fault must not end the controllers.
async fn ask_store<T>(ask: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    loop {
        match ask().await {
            Err(error) if error.may_pass() => {
                tracing::debug!(%error, "the store is unreachable and is asked again");
                sleep(STORE_RETRY_PAUSE).await;
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs::{self, File};

    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::context::blocking::Interrupted;
    use crate::model::{Blob, Record};
    use crate::print::talk::{Memory, MessageStream};
    use crate::store::Part;
    use crate::store::cluster_fault::ClusterFault;
    use crate::store::memory::MemoryStore;

    fn place(patience: &WriteWait) -> FileWriting<'_> {
        FileWriting { patience, command: None }
    }

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
        let answer = ask_store(async || answers.borrow_mut().pop().unwrap()).await;
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
        let mut told = ReportedMessages::default();
        assert!(told.is_news(&web, "issuing"));
        assert!(!told.is_news(&web, "issuing"));
        assert!(told.is_news(&mail, "issuing"));
        assert!(told.is_news(&web, "failed"));
        assert!(told.is_news(&web, "good: 1"));
        assert!(told.is_news(&web, "issuing"));
        assert!(!told.is_news(&mail, "issuing"));
    }

    /// Certificates that are good, with their Secrets.
    async fn issued(names: &[&str]) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        for name in names {
            issue(&store, name).await;
        }
        store
    }

    async fn issue(store: &Arc<dyn Store>, name: &str) {
        let blob = |text: &str| json!(Blob(text.as_bytes().to_vec()));
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": format!("{name}-tls"), "namespace": "default"},
            "data": {"tls.crt": blob("NEW"), "tls.key": blob("KEY OF NEW")},
        });
        store.create(Record::new(secret).unwrap()).await.unwrap();
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"secretName": format!("{name}-tls"), "issuerRef": {"name": "acme"}},
        });
        store.create(Record::new(certificate).unwrap()).await.unwrap();
        state_of(store, name, json!([{"type": "Ready", "status": "True"}])).await;
    }

    /// Sets the conditions of the first Certificate.
    async fn state(store: &Arc<dyn Store>, conditions: Value) {
        state_of(store, "web", conditions).await;
    }

    async fn state_of(store: &Arc<dyn Store>, name: &str, conditions: Value) {
        let key = Key::new(Kind::Certificate, ObjectName::new("default", name));
        let mut record = store.get(&key).await.unwrap().unwrap();
        record.object["status"] = json!({"conditions": conditions});
        store.replace(record, Part::Status).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn folders_that_somebody_holds_hold_up_no_other() {
        let (out, err) = (TempDir::new().unwrap(), Memory::default());
        let held: Vec<_> = (10..30).map(|number| format!("api-{number}")).collect();
        let names: Vec<_> = held.iter().map(String::as_str).chain(["web"]).collect();
        let store = issued(&names).await;
        let lock = |name: &String| {
            let folder = out.path().join(format!("{name}-tls"));
            fs::create_dir(&folder).unwrap();
            let theirs = File::open(&folder).unwrap();
            theirs.lock().unwrap();
            theirs
        };
        let theirs: Vec<_> = held.iter().map(lock).collect();
        let patience = WriteWait::new(&Interrupted::default());
        let mut progress = Progress::lines(MessageStream::new(Box::new(err.clone())));
        let mut files = Files::new(&store, Some((out.path(), place(&patience))));
        let told = |name: &str, what: &str| {
            err.text().contains(&format!("Certificate default/{name}: {what}"))
        };
        let script = async {
            while !held.iter().all(|name| told(name, "cannot write")) {
                sleep(STORE_RETRY_PAUSE).await;
            }
            let told_all = err.text();
            let (first, _) = told_all.split_once('\n').unwrap();
            assert!(first.contains("Certificate default/web: up to date"), "{told_all}");
            drop(theirs);
            while !held.iter().all(|name| told(name, "up to date")) {
                sleep(STORE_RETRY_PAUSE).await;
            }
        };
        tokio::select! {
            ended = follow(&mut files, &mut progress) => panic!("it ended: {ended:?}"),
            () = script => {}
        }
        assert!(out.path().join("api-10-tls/tls.crt").exists());
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_could_not_be_written_are_tried_again_and_each_turn_is_told_once() {
        let (out, err, store) =
            (TempDir::new().unwrap(), Memory::default(), issued(&["web"]).await);
        let folder = out.path().join("web-tls");
        let obstacle = folder.join("tls.crt.new");
        fs::create_dir_all(&obstacle).unwrap();
        let patience = WriteWait::new(&Interrupted::default());
        let mut progress = Progress::lines(MessageStream::new(Box::new(err.clone())));
        let mut files = Files::new(&store, Some((out.path(), place(&patience))));
        let failed = "Certificate default/web: cannot write OUT/web-tls/tls.crt.new: it is a folder, not a file; tried again every 30 s";
        let locked = "Certificate default/web: cannot write OUT/web-tls: another process holds a lock on that folder; tried again every 30 s";
        // Without the time, which comes first. Whatever other tests start has our lock until it is another program, which time that
        // does not pass does not wait for; what failed is told once more then.
        let told = || -> Vec<String> {
            let text = err.text().replace(&out.path().display().to_string(), "OUT");
            let mut lines: Vec<_> = text.lines().map(|l| l.split_once(' ').unwrap().1).collect();
            while let Some(at) = lines.iter().position(|line| *line == locked) {
                let again = lines[at..].iter().position(|line| *line == failed);
                again.map(|again| lines.remove(at + again));
                lines.remove(at);
            }
            lines.into_iter().map(str::to_owned).collect()
        };
        let issuing = "Certificate default/web: renewing";
        let written = "Certificate default/web: up to date in OUT/web-tls/tls.crt";
        let script = async {
            sleep(WRITE_RETRY_INTERVAL * 5).await;
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
            sleep(WRITE_RETRY_INTERVAL * 5).await;
            assert_eq!(told(), [failed, issuing]);
            // The try of this very moment may be under way on its own thread, with drafts there.
            let count = || fs::read_dir(&folder).unwrap().count();
            for _ in 0..5000 {
                if count() == 1 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(count(), 1);
            fs::remove_dir(&obstacle).unwrap();
            sleep(WRITE_RETRY_INTERVAL * 2).await;
            assert_eq!(fs::read_to_string(folder.join("tls.crt")).unwrap(), "NEW");
            assert_eq!(fs::read_to_string(folder.join("tls.key")).unwrap(), "KEY OF NEW");
            sleep(WRITE_RETRY_INTERVAL * 5).await;
            assert_eq!(told(), [failed, issuing, written]);
            // However often it changes without another certificate, it is told once.
            for time in ["2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"] {
                state(
                    &store,
                    json!([{"type": "Ready", "status": "True", "lastTransitionTime": time}]),
                )
                .await;
                sleep(WRITE_RETRY_INTERVAL).await;
            }
            assert_eq!(told(), [failed, issuing, written, written]);
        };
        tokio::select! {
            ended = follow(&mut files, &mut progress) => {
                panic!("it ended: {ended:?}");
            }
            () = script => {}
        }
    }
}
