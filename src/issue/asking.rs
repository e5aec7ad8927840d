//! Ingresses, Gateways and ListenerSets that ask for Certificates: what a command is given of them, and what becomes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::follow::work::WorkArgs;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::controllers::ReconcileError;
use crate::controllers::ingress_shim::{Foreseen, IngressShimController, read};
use crate::controllers::recorder::Recorder;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::input::applying::behind;
use crate::input::{Input, NOTHING_GIVEN};
use crate::lead::Claim;
use crate::model::field::Remark;
use crate::model::ingress::{Gateway, IngressLike};
use crate::model::manifest::Location;
use crate::model::{Certificate, Key, Kind, Record, validation};
use crate::print::Printer;
use crate::reconcile::ingress_shim::{
    CertificateChange, Defaults, Lists, TLS_ACME, Wanted, asks, lacks_default_issuer,
    old_annotations, untidy_annotations, wanted,
};
use crate::store::error::StoreError;
use crate::store::local::Access;
use crate::store::resources::typed;
use crate::store::{Scope, Store};

/// The version of Gateways and ListenerSets that is read.
const VERSION: &str = "v1";
/// How often it is looked whether somebody else has made a Certificate.
const POLL: Duration = Duration::from_millis(200);

/// The kinds whose annotations ask for Certificates, as far as the store has them: a cluster may have no Gateway API.
///
/// # Errors
/// Fails when the server does not answer.
pub async fn asking_kinds(
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<Vec<Kind>, StoreError> {
    let Some(cluster) = behind(store, context) else { return Ok(Kind::ASKING.to_vec()) };
    let served = cluster.served(Kind::Gateway.group(), VERSION).await?;
    let is_served = |kind: &Kind| *kind == Kind::Ingress || served.contains(&kind.plural());
    Ok(Kind::ASKING.into_iter().filter(is_served).collect())
}

/// The names of the Certificates for which an object of a manifest asks.
pub fn names_asked_by(record: &Record) -> Vec<Key> {
    let Ok(object) = read(record) else { return Vec::new() };
    let Ok(Ok(wanted)) = wanted(&object, None, &Defaults::default()) else { return Vec::new() };
    let keys = wanted.certificates.iter().map(|one| Key::new(Kind::Certificate, one.name()));
    keys.collect()
}

/// What was given, with the Certificates for which Ingresses, Gateways and ListenerSets among it ask. Those that ask for none are left
/// alone; locally one that asked before stays, so that its Certificates go.
///
/// # Errors
/// Fails when annotations contradict each other or cannot be read, and when nothing is left.
pub async fn with_certificates(
    input: Input,
    work: &WorkArgs,
    context: &Context,
) -> Result<Input, Failure> {
    let printer = context.printer(&work.output);
    let defaults = work.drive.ingress_shim.defaults();
    let mut reading =
        AskedReader { input: &input, defaults: &defaults, printer: &printer, made: Vec::new() };
    let mut idle = BTreeSet::new();
    for (index, lacks_issuer) in reading.read_all()? {
        let key = &input.records()[index].key;
        if lacks_issuer {
            reading.say_lacking(index, key);
        } else if asked_before(key, context).await? {
            continue;
        } else {
            let place = place(input.location(index));
            printer.note(&format!("left alone: {} {} ({place})", key.kind, key.name.name));
        }
        idle.insert(key.clone());
    }
    let made = reading.made;
    if idle.len() == input.records().len() {
        return Err(Failure::usage(format!("nothing to issue: {NOTHING_GIVEN}"))
            .hint("an Ingress asks by an annotation: cert-manager.io/issuer, cert-manager.io/cluster-issuer"));
    }
    Ok(input.asking(made, &idle))
}

/// The Certificates for which objects given ask and that are not given themselves; what cannot be used is warned of.
///
/// # Errors
/// Fails when annotations contradict each other or cannot be read.
pub fn asked_for(
    input: &Input,
    work: &WorkArgs,
    context: &Context,
) -> Result<Vec<Record>, Failure> {
    let (printer, defaults) = (context.printer(&work.output), work.drive.ingress_shim.defaults());
    let mut reading =
        AskedReader { input, defaults: &defaults, printer: &printer, made: Vec::new() };
    reading.read_all()?;
    Ok(reading.made.into_iter().map(|(record, _)| record).collect())
}

/// What would become of Certificates, were an object applied as it is here: those that it asks for, and those of its own for which it
/// no longer does. Nothing is written.
///
/// # Errors
/// Fails when the store does, or an annotation cannot be read.
pub async fn would_become(
    applied: &Record,
    store: &Arc<dyn Store>,
    work: &WorkArgs,
) -> Result<Vec<(Record, Foreseen)>, Failure> {
    let mut applied = applied.clone();
    if let Some(there) = store.get(&applied.key).await? {
        applied.object["metadata"]["uid"] = there.uid().into();
    }
    let recorder = Recorder::new(Arc::clone(store));
    let defaults = work.drive.ingress_shim.defaults();
    let shim = IngressShimController::new(applied.key.kind, recorder, defaults);
    let foreseen = shim.foresee(&applied).await.map_err(|error| failed(&applied.key, error))?;
    let told = foreseen.into_iter().filter_map(|(certificate, what)| {
        let mut record = record(&certificate)?;
        // What is there already keeps what only the store says.
        let status = serde_json::to_value(&certificate.status).ok()?;
        if what != Foreseen::Created {
            record.object["status"] = status;
        }
        Some((record, what))
    });
    Ok(told.collect())
}

/// Tells whether only its Gateway may say whether it asks.
fn inherits(object: &IngressLike) -> bool {
    object.kind() == Kind::ListenerSet
}

fn lacks_issuer(object: &IngressLike, defaults: &Defaults) -> bool {
    object.kind() == Kind::Ingress && lacks_default_issuer(object, defaults)
}

async fn asked_before(key: &Key, context: &Context) -> Result<bool, Failure> {
    if context.global.local.is_none() {
        return Ok(false);
    }
    let store = context.store(Access::ReadOnly).await?;
    Ok(store.get(key).await?.is_some())
}

fn place(location: Option<&Location>) -> String {
    location.map(ToString::to_string).unwrap_or_default()
}

/// Reads what objects of manifests ask for.
struct AskedReader<'a> {
    input: &'a Input,
    defaults: &'a Defaults,
    printer: &'a Printer,
    made: Vec<(Record, Location)>,
}

impl AskedReader<'_> {
    /// Reads what all objects ask for; returns which ask for nothing, and of each whether that is for want of an issuer.
    fn read_all(&mut self) -> Result<Vec<(usize, bool)>, Failure> {
        let mut silent = Vec::new();
        for (index, record) in self.input.records().iter().enumerate() {
            let kind = record.key.kind;
            if !Kind::ASKING.contains(&kind) {
                continue;
            }
            let object = read(record)?;
            let asks = asks(kind, &object.metadata().annotations, self.defaults);
            let may_ask = asks || inherits(&object);
            if may_ask && !lacks_issuer(&object, self.defaults) {
                self.read(index, &object)?;
            } else {
                silent.push((index, may_ask));
            }
        }
        Ok(silent)
    }

    fn read(&mut self, index: usize, object: &IngressLike) -> Result<(), Failure> {
        let location = self.input.location(index);
        let key = object.key();
        let about = format!("{}: {} {}", place(location), key.kind, key.name.name);
        let refused = |why: String| Failure::usage(format!("{about}: {why}")).about(&key);
        let parent = self.parent(object)?;
        let wanted = wanted(object, parent.as_ref(), self.defaults)
            .map_err(|error| refused(error.to_string()))?;
        let Wanted { certificates, skipped } = wanted.map_err(|why| refused(why.to_string()))?;
        let old = old_annotations(object);
        if !old.is_empty() {
            self.printer.warning(&format!("{about}: {old}"));
        }
        let untidy = untidy_annotations(object);
        if !untidy.is_empty() {
            self.printer.warning(&format!("{about}: {untidy}"));
        }
        for why in skipped {
            self.printer.warning(&format!("{about}: {why}"));
        }
        if let Some((why, hint)) = faults(&certificates) {
            let failure = refused(why);
            return Err(hint.into_iter().fold(failure, Failure::hint));
        }
        for certificate in certificates {
            let Some(record) = record(&certificate) else { continue };
            // One that is given as such is not made, nor is one for which another object asks.
            let is_there = self.input.records().iter().any(|given| given.key == record.key)
                || self.made.iter().any(|(made, _)| made.key == record.key);
            if let Some(location) = location.filter(|_| !is_there) {
                self.made.push((record, location.clone()));
            }
        }
        Ok(())
    }

    /// The Gateway of a ListenerSet, where that is given, too.
    fn parent(&self, object: &IngressLike) -> Result<Option<Gateway>, Failure> {
        let Some(name) = object.parent() else { return Ok(None) };
        let key = Key::new(Kind::Gateway, name);
        let given = self.input.records().iter().find(|record| record.key == key);
        Ok(given.cloned().map(typed).transpose()?)
    }

    fn say_lacking(&self, index: usize, key: &Key) {
        let place = place(self.input.location(index));
        let Key { kind, name } = key;
        self.printer.note(&format!(
            "left alone: {kind} {} ({place}): its annotation {TLS_ACME} names no issuer, and --default-issuer-name does not \
             either",
            name.name
        ));
    }
}

/// What is wrong with Certificates that annotations and hosts make, and what to write instead; `None` if all can be.
fn faults(certificates: &[Certificate]) -> Option<(String, Option<String>)> {
    let mut faults = Vec::new();
    for certificate in certificates {
        let found = validation::certificate(certificate).errors.into_iter();
        faults.extend(found.map(|remark| (&certificate.metadata.name, remark)));
    }
    let hint = faults.iter().find_map(|(_, Remark { hint, .. })| hint.clone());
    let all: Vec<String> = faults
        .iter()
        .map(|(name, remark)| format!("Certificate {name}, for which it asks: {remark}"))
        .collect();
    (!all.is_empty()).then(|| (all.join("; "), hint))
}

fn record(certificate: &Certificate) -> Option<Record> {
    let mut object = serde_json::to_value(certificate).ok()?;
    // Its owner has no UID yet, and in a rehearsal never gets one.
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("ownerReferences");
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    Record::new(object)
}

/// Where what was asked for is made, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct AskedPlace<'a> {
    /// The store.
    pub store: &'a Arc<dyn Store>,
    /// Whether we make it.
    pub claim: &'a Claim,
    /// When that has to be done.
    pub deadline: Timestamp,
}

/// Makes the Certificates for which applied objects ask, or waits until whoever drives has made them; returns all that they own.
///
/// # Errors
/// Fails when the store does, when time is up, or when interrupted.
pub async fn bring_up_to_date(
    input: &Input,
    place: AskedPlace<'_>,
    work: &WorkArgs,
    context: &Context,
) -> Result<Vec<Record>, Failure> {
    let printer = context.printer(&work.output);
    let mut owned = BTreeMap::new();
    let mut is_any = false;
    for record in input.records() {
        let key = &record.key;
        if !Kind::ASKING.contains(&key.kind) {
            continue;
        }
        is_any = true;
        let recorder = Recorder::new(Arc::clone(place.store));
        let mut defaults = work.drive.ingress_shim.defaults();
        if place.claim.is_cert_manager() {
            // It makes them, and what it has made is awaited.
            defaults.lists = Lists::AsCertManager;
        }
        let shim = IngressShimController::new(key.kind, recorder, defaults);
        match place.claim {
            Claim::Alone | Claim::Drives(_) => {
                let changes = shim.bring_up_to_date(key, Timestamp::now()).await;
                say_deleted(key, &changes.map_err(|error| failed(key, error))?, &printer);
            }
            Claim::Watches(_) => wait(&shim, key, place, context).await?,
        }
        let Some(object) = place.store.get(key).await? else { continue };
        let scope = Scope::owned_by(&key.name.namespace, object.uid());
        for certificate in place.store.list(Kind::Certificate, &scope).await? {
            owned.insert(certificate.key.clone(), certificate);
        }
    }
    if is_any {
        let missing = input.records().iter().map(|record| &record.key);
        for key in missing.filter(|key| input.is_asked(key) && !owned.contains_key(key)) {
            printer.warning(&format!(
                "{key} is left alone: it is there already, and no Ingress or Gateway given here owns it"
            ));
        }
    }
    Ok(owned.into_values().collect())
}

fn say_deleted(key: &Key, changes: &[CertificateChange], printer: &Printer) {
    for change in changes {
        if let CertificateChange::Delete(certificate) = change {
            let name = &certificate.metadata.name;
            let Key { kind, name: of } = key;
            printer.note(&format!(
                "deleted: Certificate {name}, for which {kind} {} no longer asks",
                of.name
            ));
        }
    }
}

fn failed(key: &Key, error: ReconcileError) -> Failure {
    match error {
        ReconcileError::Store(error) => error.into(),
        error => {
            let kind = FailureKind::of_error(&error);
            Failure::new(kind, format!("{key}: {error}")).about(key)
        }
    }
}

/// Waits until whoever drives has made and updated what an object asks for.
async fn wait(
    shim: &IngressShimController,
    key: &Key,
    place: AskedPlace<'_>,
    context: &Context,
) -> Result<(), Failure> {
    loop {
        let plan = shim.plan(key).await.map_err(|error| failed(key, error))?;
        let changes = plan.map(|(_, plan)| plan.changes).unwrap_or_default();
        let mut open = changes.iter().filter_map(|change| match change {
            CertificateChange::Create(one) | CertificateChange::Update(one) => Some(one.name()),
            CertificateChange::Delete(_) => None,
        });
        let Some(name) = open.next() else { return Ok(()) };
        if Timestamp::now() >= place.deadline {
            let who = place.claim.driver();
            let message =
                format!("{who} has not made Certificate {name}, for which {key} asks, in time");
            let hint = "events of the object say why; its ingress-shim or gateway-shim may be off";
            return Err(Failure::new(FailureKind::Timeout, message).hint(hint).about(key));
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            kind = context.interrupted().wait() => return Err(Failure::interrupted(kind)),
        }
    }
}
