//! Ingresses, Gateways and ListenerSets: keeps the Certificates that their annotations ask for.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::recorder::Recorder;
use super::{Controller, ReconcileError, ReconcileFailure};
use crate::model::ingress::{Gateway, IngressLike};
use crate::model::{Certificate, Key, Kind, ObjectReference, Record};
use crate::reconcile::Wake;
use crate::reconcile::ingress_shim::{
    self, CertificateChange, Defaults, Observed, Plan, owner_key, source_of,
};
use crate::store::error::StoreError;
use crate::store::resources::{Resources, typed};
use crate::store::{Scope, Store};

/// Creates, updates and deletes the Certificates of the objects of one kind.
#[derive(Debug)]
pub struct IngressShimController {
    kind: Kind,
    certificates: Resources<Certificate>,
    defaults: Defaults,
    recorder: Recorder,
}

/// Foreseen change of a Certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// Would be created.
    Created,
    /// Is not asked for any more.
    Deleted,
    /// Is as asked for.
    Unchanged,
    /// Would be written as asked for.
    Updated,
}

impl IngressShimController {
    /// Builds the controller of one of the kinds in [`Kind::ASKING`].
    pub fn new(kind: Kind, recorder: Recorder, defaults: Defaults) -> Self {
        let certificates = Resources::new(Arc::clone(recorder.store()), Kind::Certificate)
            .written_by(source_of(kind));
        Self { kind, certificates, defaults, recorder }
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.recorder.store()
    }

    /// Returns the plan for an object, as it is stored; `None` if the object does not exist.
    ///
    /// # Errors
    /// Fails if the store fails, or an annotation cannot be read.
    pub async fn plan(&self, key: &Key) -> Result<Option<(IngressLike, Plan)>, ReconcileError> {
        let Some(record) = self.store().get_known(key).await? else { return Ok(None) };
        let object = read(&record)?;
        let parent = self.parent(&object).await?;
        let certificates = self.certificates.list(&Scope::namespace(&key.name.namespace)).await?;
        let observed = Observed { certificates: &certificates, parent: parent.as_ref() };
        let plan = ingress_shim::plan(&object, observed, &self.defaults)?;
        Ok(Some((object, plan)))
    }

    /// Foresees the changes of Certificates if the given object were stored; nothing is written.
    ///
    /// # Errors
    /// Fails if the store fails, or an annotation cannot be read.
    pub async fn foresee(
        &self,
        applied: &Record,
    ) -> Result<Vec<(Certificate, Foreseen)>, ReconcileError> {
        let object = read(applied)?;
        let parent = self.parent(&object).await?;
        let namespace = &applied.key.name.namespace;
        let certificates = self.certificates.list(&Scope::namespace(namespace)).await?;
        let observed = Observed { certificates: &certificates, parent: parent.as_ref() };
        let plan = ingress_shim::plan(&object, observed, &self.defaults)?;
        let mut all: Vec<(Certificate, Foreseen)> = plan
            .changes
            .into_iter()
            .map(|change| match change {
                CertificateChange::Create(one) => (*one, Foreseen::Created),
                CertificateChange::Update(one) => (*one, Foreseen::Updated),
                CertificateChange::Delete(one) => (*one, Foreseen::Deleted),
            })
            .collect();
        let uid = &object.metadata().uid;
        for certificate in certificates {
            let is_changed = all.iter().any(|(one, _)| one.name() == certificate.name());
            if certificate.metadata.is_controlled_by(uid) && !is_changed {
                all.push((certificate, Foreseen::Unchanged));
            }
        }
        Ok(all)
    }

    async fn parent(&self, object: &IngressLike) -> Result<Option<Gateway>, StoreError> {
        let Some(name) = object.parent().filter(|name| !name.name.is_empty()) else {
            return Ok(None);
        };
        let record = self.store().get_known(&Key::new(Kind::Gateway, name)).await?;
        record.map(typed).transpose()
    }

    /// Carries out the plan for an object now, and returns its changes.
    ///
    /// # Errors
    /// Fails if the store fails, or an annotation cannot be read.
    pub async fn bring_up_to_date(
        &self,
        key: &Key,
        now: Timestamp,
    ) -> Result<Vec<CertificateChange>, ReconcileError> {
        let Some((object, plan)) = self.plan(key).await? else { return Ok(Vec::new()) };
        let about = reference(&object);
        for warning in &plan.warnings {
            self.recorder.note(&about, warning, now).await?;
        }
        // A Certificate that is deleted with its owner may be reported first, and would be created again.
        let makes =
            plan.changes.iter().any(|change| matches!(change, CertificateChange::Create(_)));
        if makes && !self.is_still_there(key, &object).await? {
            return Ok(Vec::new());
        }
        for change in &plan.changes {
            match change {
                CertificateChange::Create(certificate) => {
                    drop(self.certificates.create(certificate).await?);
                }
                CertificateChange::Update(certificate) => {
                    drop(self.certificates.replace(certificate).await?);
                }
                CertificateChange::Delete(certificate) => {
                    self.certificates.delete_exactly(certificate).await?;
                }
            }
            self.recorder.note(&about, &change.note(self.kind), now).await?;
        }
        Ok(plan.changes)
    }

    async fn is_still_there(&self, key: &Key, object: &IngressLike) -> Result<bool, StoreError> {
        let found = self.store().get_anew(key).await?;
        let is_it =
            |found: Record| found.uid() == object.metadata().uid && !found.metadata().is_deleted();
        Ok(found.is_some_and(is_it))
    }

    /// Returns the ListenerSets whose listeners a Gateway serves.
    async fn sets_of(&self, gateway: &Record) -> Result<Vec<Key>, StoreError> {
        let all = self.store().list(Kind::ListenerSet, &Scope::all()).await?;
        let is_its = |record: &Record| {
            let set = IngressLike::deserialize_as(Kind::ListenerSet, &record.object).ok();
            set.and_then(|set| set.parent()).is_some_and(|parent| parent == gateway.key.name)
        };
        Ok(all.into_iter().filter(is_its).map(|record| record.key).collect())
    }
}

/// Parses an Ingress, Gateway or ListenerSet.
///
/// # Errors
/// Fails if the object does not have the shape of its kind.
pub fn read(record: &Record) -> Result<IngressLike, StoreError> {
    IngressLike::deserialize_as(record.key.kind, &record.object)
        .map_err(|error| StoreError::Unreadable { key: record.key.clone(), why: error.to_string() })
}

fn reference(object: &IngressLike) -> ObjectReference {
    let metadata = object.metadata();
    ObjectReference {
        api_version: object.kind().api_version().to_owned(),
        kind: object.kind().as_str().to_owned(),
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        resource_version: metadata.resource_version.clone(),
        uid: metadata.uid.clone(),
    }
}

#[async_trait]
impl Controller for IngressShimController {
    fn watches(&self) -> &'static [Kind] {
        match self.kind {
            Kind::Gateway => &[Kind::Gateway, Kind::Certificate],
            Kind::ListenerSet => &[Kind::ListenerSet, Kind::Gateway, Kind::Certificate],
            _ => &[Kind::Ingress, Kind::Certificate],
        }
    }

    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
        match changed.key.kind {
            kind if kind == self.kind => Ok(vec![changed.key.clone()]),
            Kind::Certificate => {
                let owner = owner_key(&changed.metadata());
                Ok(owner.filter(|key| key.kind == self.kind).into_iter().collect())
            }
            Kind::Gateway => self.sets_of(changed).await,
            _ => Ok(Vec::new()),
        }
    }

    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileFailure> {
        self.bring_up_to_date(key, now).await?;
        Ok(Wake::OnChange)
    }
}
