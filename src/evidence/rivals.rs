//! Certificates that write into the same Secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};

use super::investigator::MAX_CONCURRENT;
use crate::diagnosis::case::{Case, CertificateCase};
use crate::model::{Certificate, Kind, ObjectName};
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Finds other Certificates with the Secrets of the case; each namespace is listed once.
pub(super) async fn read_rivals(store: &Arc<dyn Store>, case: &mut Case) -> Result<(), StoreError> {
    let of = |of: &CertificateCase| of.certificate.metadata.namespace.clone();
    let namespaces: BTreeSet<String> = case.certificates.iter().map(of).collect();
    let mut owners: BTreeMap<ObjectName, Vec<ObjectName>> = BTreeMap::new();
    let listed = namespaces.into_iter().map(|namespace| async move {
        let all = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
        let scope = Scope::namespace(&namespace).brief();
        // A user who may read one Certificate may lack the right to list the others.
        let others = unless_forbidden(all.list(&scope).await)?.unwrap_or_default();
        Ok::<_, StoreError>((namespace, others))
    });
    let listed: Vec<_> = stream::iter(listed).buffered(MAX_CONCURRENT).collect().await;
    for listed in listed {
        let (namespace, others) = listed?;
        for other in others {
            let secret = ObjectName::new(&namespace, &other.spec.secret_name);
            owners.entry(secret).or_default().push(other.name());
        }
    }
    for of in &mut case.certificates {
        let own = of.certificate.name();
        let secret = ObjectName::new(&own.namespace, &of.certificate.spec.secret_name);
        let others = owners.get(&secret).into_iter().flatten().filter(|other| **other != own);
        of.rivals = others.cloned().collect();
    }
    Ok(())
}
