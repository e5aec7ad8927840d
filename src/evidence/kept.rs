//! Stored certificate of a Certificate: in its Secret, as its names serve it, and its renewal window at the CA.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::investigator::Investigator;
use super::wanted_names::chosen;
use crate::acme::chain::{Leaf, leaf, leaf_of_der, top_issuer};
use crate::acme::inspection::Material;
use crate::acme::renewal_info::{self, RenewalAnswer, RenewalReply};
use crate::controllers::accounts::tls_of;
use crate::controllers::facts;
use crate::diagnosis::case::authority::{
    CertificateIdentity, RenewalCase, ServedCase, StoredCertificateCase,
};
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::{Case, CertificateCase};
use crate::fetch::served::server_name;
use crate::model::secret::TLS_CRT;
use crate::model::{Certificate, Kind, ObjectName, Secret, reserved};
use crate::reconcile::facts::annotation;
use crate::reconcile::policy::{self, Input};
use crate::store::Store;
use crate::store::resources::Resources;

/// Largest number of certificates that are compared with servers and the CA.
const MAX_CERTIFICATES: usize = 10;
/// Largest number of names of one certificate that are probed.
const MAX_SERVED_NAMES: usize = 3;
/// Longest wait for a handshake, and for the CA's renewal information.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(2);

impl Investigator {
    /// Reads the stored certificates of the first Certificates; `None` for a Certificate that has none.
    pub(super) async fn kept_certificates(
        &self,
        case: &Case,
    ) -> Vec<Option<StoredCertificateCase>> {
        let Some(store) = &self.store else { return Vec::new() };
        let looked = case.certificates.iter().take(MAX_CERTIFICATES);
        join_all(looked.map(|of| self.kept(store, case, of))).await
    }

    async fn kept(
        &self,
        store: &Arc<dyn Store>,
        case: &Case,
        of: &CertificateCase,
    ) -> Option<StoredCertificateCase> {
        let certificate = &of.certificate;
        let name = ObjectName::new(&certificate.metadata.namespace, &certificate.spec.secret_name);
        let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
        // A Secret that may not be read is reported with the Certificate.
        let secret = secrets.get(&name).await.ok().flatten()?;
        let pem = secret.value(TLS_CRT).filter(|pem| !pem.is_empty())?;
        let text = std::str::from_utf8(pem).ok()?;
        let own = leaf(text).ok()?;
        let material = Material::find(pem).ok()?;
        let der = material.certificates.first()?;
        let is_served = of.due.is_none() && !case.is_of_many;
        let (renewal, (mut served, (shown_for, other_secrets))) =
            tokio::join!(self.renewal(case, of, der), async {
                if !is_served {
                    return Default::default();
                }
                tokio::join!(self.served(&own), self.shown_secrets(store, certificate, &own))
            });
        for one in &mut served {
            let solver = chosen(case, certificate, &one.name).and_then(Result::ok);
            let is_by_record = solver.is_some_and(|solver| solver.kind.is_by_record());
            one.is_meant = if shown_for.contains(&one.name) {
                Some(true)
            } else {
                is_by_record.then_some(false)
            };
        }
        Some(StoredCertificateCase {
            certificate: certificate_identity(&own, &own),
            top_issuer: top_issuer(text).unwrap_or_default(),
            renewal,
            served,
            other_secrets,
            revoked_at: policy::revoked(certificate, &own.serial).map(|revoked| revoked.at),
            other_issuer: describe_other_issuer(certificate, &secret),
        })
    }

    /// Reads the renewal window of a certificate at the CA (RFC 9773); `None` if the CA gives none.
    async fn renewal(&self, case: &Case, of: &CertificateCase, der: &[u8]) -> Option<RenewalCase> {
        let issuer = case.issuer(&issuer_key(&of.certificate)?)?;
        let acme = issuer.issuer.as_ref()?.spec.acme.as_ref()?;
        let answer = issuer.authority.as_ref()?.answer.as_ref()?;
        // A CA without renewal information, or without an answer, is not asked.
        answer.members.iter().find(|(name, _)| name == "renewalInfo")?;
        let (tls, id) = (tls_of(acme), renewal_info::identifier(der)?);
        let asked = self.clients.renewal_info(&acme.server, &tls, &id);
        let RenewalReply { url, answer, .. } =
            timeout(EXCHANGE_TIMEOUT, self.outside(asked)).await.ok()?.ok()?.ok()?;
        let RenewalAnswer::Window(told) = answer else { return None };
        Some(RenewalCase {
            url,
            at: self.now,
            start: told.start,
            end: told.end,
            explanation: told.explanation.chars().take(300).collect(),
        })
    }

    /// Reads the certificates that the names of a certificate serve on port 443; names without an answer are left out.
    async fn served(&self, own: &Leaf) -> Vec<ServedCase> {
        let names = own
            .names
            .dns_names
            .iter()
            .filter(|name| !name.starts_with("*."))
            .take(MAX_SERVED_NAMES);
        let looked = names.map(|name| async move {
            let asked = server_name(name).ok()?;
            let (host, port) = match self.fetcher.overrides.handshake(name) {
                Some(at) => (at.ip().to_string(), at.port()),
                None => (name.clone(), 443),
            };
            let shown = self.fetcher.shown_by((&host, port), &asked, EXCHANGE_TIMEOUT);
            let shown = self.outside(shown).await.ok()?.ok()?;
            let other = leaf_of_der(shown.certificates.first()?).ok()?;
            Some(ServedCase {
                name: name.clone(),
                address: shown.address,
                is_elsewhere: is_elsewhere(shown.address),
                is_meant: None,
                at: self.now,
                certificate: certificate_identity(&other, own),
            })
        });
        join_all(looked).await.into_iter().flatten().collect()
    }
}

/// Returns whether an address surely belongs to another machine: this one would connect to it from a public address of
/// its own, which is not translated and differs from it. Sends nothing.
fn is_elsewhere(address: SocketAddr) -> bool {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    socket.is_ok_and(|own| own.ip() != address.ip() && reserved::block(own.ip()).is_none())
}

/// Describes the issuer annotations of a Secret; `None` if they fit the Certificate.
fn describe_other_issuer(certificate: &Certificate, secret: &Secret) -> Option<String> {
    let facts = facts::of_secret(secret);
    let input = Input { certificate, secret: Some(&facts), current: None };
    policy::is_of_another_issuer(&input).then(|| {
        let named = [annotation::ISSUER_NAME, annotation::ISSUER_KIND, annotation::ISSUER_GROUP];
        let shown = named.into_iter().filter_map(|key| {
            let value = facts.annotations.get(key)?;
            Some(format!("{key}: {value:?}"))
        });
        let shown: Vec<String> = shown.collect();
        if shown.is_empty() { format!("no {}", named.join(", ")) } else { shown.join(", ") }
    })
}

pub(super) fn certificate_identity(leaf: &Leaf, own: &Leaf) -> CertificateIdentity {
    CertificateIdentity {
        serial: leaf.serial.clone(),
        issuer: leaf.issuer.clone(),
        common_name: leaf.names.common_name.clone(),
        names: leaf.names.dns_names.clone(),
        not_before: leaf.not_before,
        not_after: leaf.not_after,
        has_kept_key: leaf.public_key == own.public_key,
    }
}
