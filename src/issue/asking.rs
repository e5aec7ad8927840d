//! Certificates for which Ingresses, Gateways and ListenerSets ask: read from the input, and made in the store.

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
use crate::input::{Input, NO_OBJECTS_MESSAGE};
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

/// API version of Gateways and ListenerSets that is read.
const GATEWAY_API_VERSION: &str = "v1";
/// Interval of the checks whether another driver has made a Certificate.
const CERTIFICATE_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Kinds whose annotations ask for Certificates and that the store has: a cluster may lack the Gateway API.
///
/// # Errors
/// Fails when the server does not answer.
pub async fn asking_kinds(
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<Vec<Kind>, StoreError> {
    let Some(cluster) = behind(store, context) else { return Ok(Kind::ASKING.to_vec()) };
    let served = cluster.served(Kind::Gateway.group(), GATEWAY_API_VERSION).await?;
    let is_served = |kind: &Kind| *kind == Kind::Ingress || served.contains(&kind.plural());
    Ok(Kind::ASKING.into_iter().filter(is_served).collect())
}

/// Keys of the Certificates for which an object of a manifest asks.
pub fn names_asked_by(record: &Record) -> Vec<Key> {
    let Ok(object) = read(record) else { return Vec::new() };
    let Ok(Ok(wanted)) = wanted(&object, None, &Defaults::default()) else { return Vec::new() };
    let keys = wanted.certificates.iter().map(|one| Key::new(Kind::Certificate, one.name()));
    keys.collect()
}

/// Returns the input with the Certificates for which its Ingresses, Gateways and ListenerSets ask. Objects that ask for
/// none are left out; with a local store, an object that asked before stays, so that its Certificates are deleted.
///
/// # Errors
/// Fails when annotations contradict each other or cannot be read, and when no object is left.
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
            reading.note_missing_issuer(index, key);
        } else if is_stored_locally(key, context).await? {
            continue;
        } else {
            let place = place(input.location(index));
            printer.note(&format!("left alone: {} {} ({place})", key.kind, key.name.name));
        }
        idle.insert(key.clone());
    }
    let made = reading.made;
    if idle.len() == input.records().len() {
        return Err(Failure::usage(format!("nothing to issue: {NO_OBJECTS_MESSAGE}"))
            .hint("an Ingress asks by an annotation: cert-manager.io/issuer, cert-manager.io/cluster-issuer"));
    }
    Ok(input.asking(made, &idle))
}

/// Returns the Certificates for which the input's objects ask and that the input lacks; warns of unusable requests.
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

/// Returns the changes to Certificates if `applied` were applied: to Certificates that the object asks for, and to
/// Certificates that the object owns and no longer asks for. Nothing is written.
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
        // A Certificate that exists keeps its status.
        let status = serde_json::to_value(&certificate.status).ok()?;
        if what != Foreseen::Created {
            record.object["status"] = status;
        }
        Some((record, what))
    });
    Ok(told.collect())
}

/// Returns whether only the Gateway of an object decides if the object asks for a Certificate.
fn inherits(object: &IngressLike) -> bool {
    object.kind() == Kind::ListenerSet
}

fn lacks_issuer(object: &IngressLike, defaults: &Defaults) -> bool {
    object.kind() == Kind::Ingress && lacks_default_issuer(object, defaults)
}

async fn is_stored_locally(key: &Key, context: &Context) -> Result<bool, Failure> {
    if context.global.local.is_none() {
        return Ok(false);
    }
    let store = context.store(Access::ReadOnly).await?;
    Ok(store.get(key).await?.is_some())
}

fn place(location: Option<&Location>) -> String {
    location.map(ToString::to_string).unwrap_or_default()
}

/// Reader of the Certificates for which objects of manifests ask.
struct AskedReader<'a> {
    input: &'a Input,
    defaults: &'a Defaults,
    printer: &'a Printer,
    made: Vec<(Record, Location)>,
}

impl AskedReader<'_> {
    /// Reads the requests of all objects; returns each object without a request, and whether it only lacks an issuer.
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
            // A Certificate that is in the input, or for which an earlier object asks, is not made again.
            let is_there = self.input.records().iter().any(|given| given.key == record.key)
                || self.made.iter().any(|(made, _)| made.key == record.key);
            if let Some(location) = location.filter(|_| !is_there) {
                self.made.push((record, location.clone()));
            }
        }
        Ok(())
    }

    /// Returns the Gateway of a ListenerSet if the input holds the Gateway, too.
    fn parent(&self, object: &IngressLike) -> Result<Option<Gateway>, Failure> {
        let Some(name) = object.parent() else { return Ok(None) };
        let key = Key::new(Kind::Gateway, name);
        let given = self.input.records().iter().find(|record| record.key == key);
        Ok(given.cloned().map(typed).transpose()?)
    }

    fn note_missing_issuer(&self, index: usize, key: &Key) {
        let place = place(self.input.location(index));
        let Key { kind, name } = key;
        self.printer.note(&format!(
            "left alone: {kind} {} ({place}): its annotation {TLS_ACME} names no issuer, and --default-issuer-name does not \
             either",
            name.name
        ));
    }
}

/// Returns the faults of Certificates made from annotations and hosts, and a hint; `None` if there are no faults.
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
    // The owner has no UID yet, and in a rehearsal never gets a UID.
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("ownerReferences");
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    Record::new(object)
}

/// Store in which requested Certificates are made, who makes them, and until when.
#[derive(Clone, Copy, Debug)]
pub struct AskedPlace<'a> {
    /// The store.
    pub store: &'a Arc<dyn Store>,
    /// Claim that says whether this process makes the Certificates.
    pub claim: &'a Claim,
    /// Moment by which the Certificates have to exist.
    pub deadline: Timestamp,
}

/// Makes the Certificates for which applied objects ask, or waits for the driver to do so; returns all that the objects own.
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
            // cert-manager makes the Certificates, and this process waits for them.
            defaults.lists = Lists::AsCertManager;
        }
        let shim = IngressShimController::new(key.kind, recorder, defaults);
        match place.claim {
            Claim::Alone | Claim::Drives(_) => {
                let changes = shim.bring_up_to_date(key, Timestamp::now()).await;
                note_deleted(key, &changes.map_err(|error| failed(key, error))?, &printer);
            }
            Claim::Watches(_) => wait_for_certificates(&shim, key, place, context).await?,
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

fn note_deleted(key: &Key, changes: &[CertificateChange], printer: &Printer) {
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

/// Waits until the driver has made and updated the Certificates for which an object asks.
async fn wait_for_certificates(
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
            let hint = "see the object's events; the driver's ingress- or gateway-shim may be off";
            return Err(Failure::new(FailureKind::Timeout, message).hint(hint).about(key));
        }
        tokio::select! {
            () = tokio::time::sleep(CERTIFICATE_POLL_INTERVAL) => {}
            kind = context.interrupted().wait() => return Err(Failure::interrupted(kind)),
        }
    }
}
