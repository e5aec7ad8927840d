//! Certificates in Secrets of a store.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::FoundCertificate;
use crate::acme::PrivateKey;
use crate::acme::chain::ChainFault;
use crate::acme::inspection::Material;
use crate::context::failure::Failure;
use crate::controllers::facts;
use crate::controllers::neighbours::CertificateSurroundings;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::verdict::replacement::SpecComparison;
use crate::hints::invocation;
use crate::input::lookup;
use crate::model::certificate_report::{CertificateSource, ReportedResource, SourceKind};
use crate::model::memory::names_left_out;
use crate::model::order_ledger::Ledger;
use crate::model::secret::{TLS_CRT, TLS_KEY};
use crate::model::{
    Certificate, CertificateRequest, IssuerRef, Key, Kind, ObjectName, Secret, Time,
};
use crate::reconcile::certificate::options::Options;
use crate::reconcile::certificate::types::{Observed, current};
use crate::reconcile::facts::annotation;
use crate::reconcile::policy::Input;
use crate::reconcile::{certificate, differences, policy, renewal};
use crate::store::Store;
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::{Resources, typed};

/// Certificate resource of a store, and the certificate in its Secret.
#[derive(Debug)]
pub struct StoredCertificate {
    /// Certificate resource.
    pub certificate: Certificate,
    /// Certificate in the Secret, or the reason why there is none.
    pub found: Result<FoundCertificate, String>,
    /// Comparison of the found certificate with the spec.
    pub asked: SpecComparison,
    /// Creation time of the request for the found certificate, if known.
    pub issued_at: Option<Timestamp>,
}

/// Reads the certificate in the Secret of a Certificate, and compares it with the spec.
///
/// # Errors
/// Fails when the Certificate does not exist, its Secret holds no certificate yet, or the store fails.
pub async fn of_certificate(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    given: Option<&PrivateKey>,
    now: Timestamp,
) -> Result<FoundCertificate, Failure> {
    let key = Key::new(Kind::Certificate, name.clone());
    let key = lookup::one(store, &key).await.map_err(|failure| {
        let is_host = failure.kind == FailureKind::Unexpected && name.name.contains('.');
        let program = invocation::program();
        let hint =
            format!("show what a server presents: {program} certificate show {}:443", name.name);
        if is_host { failure.hint(hint) } else { failure }
    })?;
    let certificate: Certificate = typed(lookup::read(store, &key).await?)?;
    let name = &key.name;
    look_at(store, certificate, given, now).await?.found.map_err(|why| {
        let describe = format!("timeline certificate/{}", name.name);
        let describe = invocation::current().like_in(&name.namespace, &describe);
        Failure::new(FailureKind::Unexpected, format!("cannot show Certificate {name}: {why}"))
            .hint(format!("show the progress: {describe}"))
    })
}

/// Finds the Certificate with a name, or else the CertificateRequest with that name: a user's own signing request has no
/// Certificate.
///
/// # Errors
/// Fails when neither exists, or the store fails.
pub async fn certificate_or_request(
    store: &Arc<dyn Store>,
    name: &ObjectName,
) -> Result<Key, Failure> {
    let missing = match lookup::one(store, &Key::new(Kind::Certificate, name.clone())).await {
        Err(failure) if failure.kind == FailureKind::Unexpected => failure,
        found => return found,
    };
    let key = Key::new(Kind::CertificateRequest, name.clone());
    let found = unless_forbidden(store.get(&key).await)?.flatten();
    found.map(|_| key).ok_or(missing)
}

/// Reads the certificate that was issued for a CertificateRequest.
///
/// # Errors
/// Fails when the CertificateRequest does not exist, nothing was issued yet, or the store fails.
pub async fn of_request(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    given: Option<&PrivateKey>,
    now: Timestamp,
) -> Result<FoundCertificate, Failure> {
    let key = lookup::one(store, &Key::new(Kind::CertificateRequest, name.clone())).await?;
    let request: CertificateRequest = typed(lookup::read(store, &key).await?)?;
    issued(&request, given, now).map_err(|why| {
        let name = request.name();
        let describe = format!("timeline certificaterequest/{}", name.name);
        let describe = invocation::current().like_in(&name.namespace, &describe);
        let what = format!("cannot show CertificateRequest {name}: {why}");
        Failure::new(FailureKind::Unexpected, what).hint(format!("show the progress: {describe}"))
    })
}

/// Parses the certificate in the status of a CertificateRequest.
///
/// # Errors
/// Fails when there is no certificate, or it cannot be read.
pub fn issued(
    request: &CertificateRequest,
    given: Option<&PrivateKey>,
    now: Timestamp,
) -> Result<FoundCertificate, ChainFault> {
    let source = source(SourceKind::CertificateRequest, &request.name());
    let found = Material::find(&request.status.certificate.0)?;
    let found = FoundCertificate::read(source, found, given, now)?;
    let issued_by = request.spec.issuer_ref.key(&request.metadata.namespace);
    Ok(FoundCertificate { issued_by, ..found })
}

/// Reads the Secret of a Certificate, and compares its certificate with the spec.
///
/// # Errors
/// Fails when the store fails.
pub async fn look_at(
    store: &Arc<dyn Store>,
    certificate: Certificate,
    given: Option<&PrivateKey>,
    now: Timestamp,
) -> Result<StoredCertificate, StoreError> {
    let name = certificate.name();
    let secret_name = ObjectName::new(&name.namespace, &certificate.spec.secret_name);
    let secret =
        Resources::<Secret>::new(Arc::clone(store), Kind::Secret).get(&secret_name).await?;
    let observed = observe(store, &certificate, secret.as_ref()).await?;
    let asked = compare_with_spec(&certificate, &observed, now);
    let current = current(&certificate, &observed).map(|facts| &facts.request.metadata);
    let issued_at = current.and_then(|metadata| metadata.creation_timestamp).map(Time::timestamp);
    let found = match &secret {
        None => Err(format!("there is no Secret {secret_name} yet")),
        Some(secret) => read_secret(source(SourceKind::Certificate, &name), secret, given, now),
    };
    let found = found.map(|mut found| {
        found.reported.resource = Some(report_resource(&certificate, &observed, &asked));
        let wanted = certificate.spec.issuer_ref.key(&name.namespace);
        found.issued_by = found.issued_by.or(wanted);
        let serial = &found.reported.content.serial_number;
        found.revoked_at = policy::revoked(&certificate, serial).map(|revoked| revoked.at);
        found
    });
    Ok(StoredCertificate { certificate, found, asked, issued_at })
}

/// Reads the certificate in a Secret.
///
/// # Errors
/// Fails when the Secret does not exist or holds no certificate, or the store fails.
pub async fn of_secret(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    given: Option<&PrivateKey>,
    now: Timestamp,
) -> Result<FoundCertificate, Failure> {
    let failed = |what: String| Failure::new(FailureKind::Unexpected, what);
    let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
    let Some(secret) = secrets.get(name).await? else {
        let ObjectName { namespace, name } = name;
        let list = invocation::current().like_in(namespace, "get certificates");
        let what = format!("secrets \"{name}\" not found in namespace {namespace}");
        return Err(failed(what).hint(format!("list Certificates and their Secrets: {list}")));
    };
    let source = source(SourceKind::Secret, name);
    let found = read_secret(source, &secret, given, now);
    found.map_err(|why| failed(format!("cannot show Secret {name}: {why}")))
}

fn source(kind: SourceKind, name: &ObjectName) -> CertificateSource {
    CertificateSource { kind, namespace: Some(name.namespace.clone()), name: name.name.clone() }
}

/// Reads `tls.crt` and `tls.key` of a Secret.
fn read_secret(
    source: CertificateSource,
    secret: &Secret,
    given: Option<&PrivateKey>,
    now: Timestamp,
) -> Result<FoundCertificate, String> {
    let filled = |key: &str| secret.value(key).filter(|value| !value.is_empty());
    let name = secret.metadata.object_name();
    let chain = filled(TLS_CRT).ok_or_else(|| format!("Secret {name} has no {TLS_CRT}"))?;
    let found = Material::find(chain).map_err(|fault| fault.to_string())?;
    let found = Material { key: filled(TLS_KEY).map(PrivateKey::from_pem), ..found };
    let found = FoundCertificate::read(source, found, given, now);
    let issued_by = issued_by(secret).and_then(|issuer| issuer.key(&name.namespace));
    found.map(|found| FoundCertificate { issued_by, ..found }).map_err(|fault| fault.to_string())
}

/// Issuer in the annotations of a Secret.
fn issued_by(secret: &Secret) -> Option<IssuerRef> {
    let given = |key: &str| secret.metadata.annotations.get(key).cloned();
    Some(IssuerRef {
        name: given(annotation::ISSUER_NAME)?,
        kind: given(annotation::ISSUER_KIND).unwrap_or_default(),
        group: given(annotation::ISSUER_GROUP).unwrap_or_default(),
    })
}

/// Reads the objects that the rules need; without CertificateRequests if those may not be read.
async fn observe(
    store: &Arc<dyn Store>,
    certificate: &Certificate,
    secret: Option<&Secret>,
) -> Result<Observed, StoreError> {
    match CertificateSurroundings::new(store).observe_from_outside(certificate, secret).await {
        Err(error) if error.lacks_permission() => Ok(Observed {
            secret: secret.map(facts::of_secret),
            next_keys: Vec::new(),
            requests: Vec::new(),
            rivals: Vec::new(),
            windows: renewal::windows(&certificate.spec, |name| TimeZone::get(name).ok()),
            ledger: Ledger::read(&certificate.metadata.annotations),
            suggestion: None,
            options: Options::default(),
        }),
        observed => observed,
    }
}

/// Compares the content of the Secret with the spec.
fn compare_with_spec(wanted: &Certificate, observed: &Observed, now: Timestamp) -> SpecComparison {
    let spec = &wanted.spec;
    let secret = observed.secret.as_ref();
    let leaf = secret.and_then(|secret| secret.usable_leaf());
    let key = secret.and_then(|secret| secret.usable_key());
    let input = Input { certificate: wanted, secret, current: None };
    let issuer = policy::is_of_another_issuer(&input).then(|| {
        let given = |key: &str| secret.and_then(|secret| secret.annotations.get(key).cloned());
        let issuer = IssuerRef {
            name: given(annotation::ISSUER_NAME).unwrap_or_else(|| spec.issuer_ref.name.clone()),
            kind: given(annotation::ISSUER_KIND).unwrap_or_default(),
            group: String::new(),
        };
        format!("{} {}", issuer.effective_kind(), issuer.name)
    });
    // A name that the CA added is no difference; a name that was requested once and is not any more is one.
    let of_leaf = leaf.into_iter().flat_map(|leaf| differences::of_leaf(spec, leaf));
    let request = current(wanted, observed);
    let of_request = request.into_iter().flat_map(|it| differences::of_requested_names(spec, it));
    SpecComparison {
        due: certificate::due(wanted, observed, now),
        names: of_leaf.chain(of_request).collect::<BTreeSet<_>>().into_iter().collect(),
        key: key.map(|key| differences::of_key(spec, key)).unwrap_or_default(),
        issuer,
    }
}

/// Builds the report of the comparison.
fn report_resource(
    wanted: &Certificate,
    observed: &Observed,
    asked: &SpecComparison,
) -> ReportedResource {
    let spec = &wanted.spec;
    let secret = observed.secret.as_ref();
    let leaf = secret.and_then(|secret| secret.usable_leaf());
    let renewal_time = certificate::life(wanted, observed)
        .and_then(|life| renewal::renewal_time(spec, life, &observed.windows).ok().flatten());
    ReportedResource {
        secret_name: spec.secret_name.clone(),
        revision: wanted.status.revision,
        renewal_time: renewal_time.map(Into::into),
        due: asked.due.as_ref().map(|violation| violation.message.clone()),
        names_as_asked: leaf.is_some()
            && asked.names.is_empty()
            && names_left_out(&wanted.metadata.annotations).is_empty(),
        key_as_asked: secret.and_then(|secret| secret.usable_key()).map(|_| asked.key.is_empty()),
        issuer_as_asked: asked.issuer.is_none(),
    }
}
