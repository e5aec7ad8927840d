//! Secrets other than the Certificate's own that Ingresses name for names of a Certificate.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::investigator::Investigator;
use super::kept::certificate_identity;
use super::listed::list;
use super::path::INGRESSES;
use crate::acme::chain::{Leaf, leaf};
use crate::diagnosis::case::authority::IngressSecretCase;
use crate::diagnosis::case::path_objects::IngressCase;
use crate::model::secret::TLS_CRT;
use crate::model::{Certificate, Kind, ObjectName, Secret};
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Largest number of Secrets read for one Certificate.
const MAX_SECRETS: usize = 3;

impl Investigator {
    /// Returns the hosts for which Ingresses in a Certificate's namespace name its Secret, and the Secrets without a
    /// Certificate that Ingresses name for its other names. Objects that may not be read are left out.
    pub(super) async fn shown_secrets(
        &self,
        store: &Arc<dyn Store>,
        certificate: &Certificate,
        own: &Leaf,
    ) -> (BTreeSet<String>, Vec<IngressSecretCase>) {
        let Some(cluster) = &self.cluster else { return Default::default() };
        let namespace = &certificate.metadata.namespace;
        let ingresses = list::<IngressCase>(cluster, INGRESSES, namespace, "", "").await;
        let named: Vec<_> = ingresses.unwrap_or_default().iter().flat_map(entries).collect();
        let own_secret = &certificate.spec.secret_name;
        let own_hosts = named.iter().filter(|it| it.secret == *own_secret);
        let own_hosts: BTreeSet<String> = own_hosts.map(|it| it.host.clone()).collect();
        let is_meant = |it: &IngressSecretCase| {
            certificate.spec.dns_names.contains(&it.host) && !own_hosts.contains(&it.host)
        };
        let mut others: Vec<_> = named.into_iter().filter(is_meant).collect();
        if others.is_empty() {
            return (own_hosts, others);
        }
        let scope = Scope::namespace(namespace).brief();
        let all = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
        let Ok(all) = all.list(&scope).await else { return (own_hosts, Vec::new()) };
        let written: BTreeSet<String> = all.into_iter().map(|it| it.spec.secret_name).collect();
        others.retain(|it| !written.contains(&it.secret));
        others.truncate(MAX_SECRETS);
        let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
        let mut read = Vec::new();
        for other in others {
            let name = ObjectName::new(namespace, &other.secret);
            let Ok(secret) = secrets.get(&name).await else { continue };
            let text = secret.as_ref().and_then(|it| std::str::from_utf8(it.value(TLS_CRT)?).ok());
            let certificate =
                text.and_then(|text| leaf(text).ok()).map(|it| certificate_identity(&it, own));
            read.push(IngressSecretCase { is_there: secret.is_some(), certificate, ..other });
        }
        (own_hosts, read)
    }
}

/// Lists the hosts of an Ingress, each with the Secret that it names for the host.
fn entries(ingress: &IngressCase) -> Vec<IngressSecretCase> {
    let of = ObjectName::new(&ingress.metadata.namespace, &ingress.metadata.name);
    let named = ingress.spec.tls.iter().filter(|tls| !tls.secret_name.is_empty());
    let each = named.flat_map(|tls| tls.hosts.iter().map(move |host| (host, &tls.secret_name)));
    let entry = |(host, secret): (&String, &String)| IngressSecretCase {
        ingress: of.clone(),
        host: host.clone(),
        secret: secret.clone(),
        is_there: false,
        certificate: None,
    };
    each.map(entry).collect()
}
