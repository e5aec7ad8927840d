//! The certificate that is there: in its Secret, at its names, and in the CA's own word.

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
use crate::diagnosis::case::authority::{KeptCase, RenewalCase, SeenCertificate, ServedCase};
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::{Case, CertificateCase};
use crate::fetch::served::server_name;
use crate::model::reserved;
use crate::model::secret::TLS_CRT;
use crate::model::{Certificate, Kind, ObjectName, Secret};
use crate::reconcile::facts::annotation;
use crate::reconcile::policy::{self, Input};
use crate::store::Store;
use crate::store::resources::Resources;

/// Most certificates that are asked about elsewhere.
const MOST_CERTIFICATES: usize = 10;
/// Most names of one certificate at which it is looked.
const MOST_NAMES: usize = 3;
/// How long a handshake may take, and the CA's word on a renewal.
const LONGEST: Duration = Duration::from_secs(2);

impl Investigator {
    /// The certificates that are there, one for each of the first Certificates.
    pub(super) async fn kept_certificates(&self, case: &Case) -> Vec<Option<KeptCase>> {
        let Some(store) = &self.store else { return Vec::new() };
        let looked = case.certificates.iter().take(MOST_CERTIFICATES);
        join_all(looked.map(|of| self.kept(store, case, of))).await
    }

    async fn kept(
        &self,
        store: &Arc<dyn Store>,
        case: &Case,
        of: &CertificateCase,
    ) -> Option<KeptCase> {
        let certificate = &of.certificate;
        let name = ObjectName::new(&certificate.metadata.namespace, &certificate.spec.secret_name);
        let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
        // Whoever may not read it is told so with the Certificate.
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
        Some(KeptCase {
            certificate: seen(&own, &own),
            top_issuer: top_issuer(text).unwrap_or_default(),
            renewal,
            served,
            other_secrets,
            revoked_at: policy::revoked(certificate, &own.serial).map(|revoked| revoked.at),
            other_issuer: other_issuer(certificate, &secret),
        })
    }

    /// What the CA says of the renewal of a certificate, where it says something.
    async fn renewal(&self, case: &Case, of: &CertificateCase, der: &[u8]) -> Option<RenewalCase> {
        let issuer = case.issuer(&issuer_key(&of.certificate)?)?;
        let acme = issuer.issuer.as_ref()?.spec.acme.as_ref()?;
        let answer = issuer.authority.as_ref()?.answer.as_ref()?;
        // A CA that says nothing of the kind, or nothing at all, is not asked again.
        answer.members.iter().find(|(name, _)| name == "renewalInfo")?;
        let (tls, id) = (tls_of(acme), renewal_info::identifier(der)?);
        let asked = self.clients.renewal_info(&acme.server, &tls, &id);
        let RenewalReply { url, answer, .. } =
            timeout(LONGEST, self.outside(asked)).await.ok()?.ok()?.ok()?;
        let RenewalAnswer::Window(told) = answer else { return None };
        Some(RenewalCase {
            url,
            at: self.now,
            start: told.start,
            end: told.end,
            explanation: told.explanation.chars().take(300).collect(),
        })
    }

    /// What the names of a certificate show on port 443; a name that shows nothing is left out.
    async fn served(&self, own: &Leaf) -> Vec<ServedCase> {
        let names =
            own.names.dns_names.iter().filter(|name| !name.starts_with("*.")).take(MOST_NAMES);
        let looked = names.map(|name| async move {
            let asked = server_name(name).ok()?;
            let (host, port) = match self.fetcher.overrides.handshake(name) {
                Some(at) => (at.ip().to_string(), at.port()),
                None => (name.clone(), 443),
            };
            let shown = self.fetcher.shown_by((&host, port), &asked, LONGEST);
            let shown = self.outside(shown).await.ok()?.ok()?;
            let other = leaf_of_der(shown.certificates.first()?).ok()?;
            Some(ServedCase {
                name: name.clone(),
                address: shown.address,
                is_elsewhere: is_elsewhere(shown.address),
                is_meant: None,
                at: self.now,
                certificate: seen(&other, own),
            })
        });
        join_all(looked).await.into_iter().flatten().collect()
    }
}

/// Tells whether an address is surely another machine's: this one goes out by a public address of its own, which nobody translates, and
/// the address is not that. Nothing is sent.
fn is_elsewhere(address: SocketAddr) -> bool {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    socket.is_ok_and(|own| own.ip() != address.ip() && reserved::block(own.ip()).is_none())
}

/// The annotations of a Secret that name its issuer, where they do not fit the Certificate.
fn other_issuer(certificate: &Certificate, secret: &Secret) -> Option<String> {
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

pub(super) fn seen(leaf: &Leaf, own: &Leaf) -> SeenCertificate {
    SeenCertificate {
        serial: leaf.serial.clone(),
        issuer: leaf.issuer.clone(),
        common_name: leaf.names.common_name.clone(),
        names: leaf.names.dns_names.clone(),
        not_before: leaf.not_before,
        not_after: leaf.not_after,
        has_kept_key: leaf.public_key == own.public_key,
    }
}
