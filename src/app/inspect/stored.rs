//! Certificates in Secrets of a store.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::reported;
use crate::acme::PrivateKey;
use crate::acme::inspection::Material;
use crate::app::failure::Failure;
use crate::app::input::lookup;
use crate::app::invocation;
use crate::controllers::facts;
use crate::controllers::neighbours::Neighbours;
use crate::diagnosis::failure_kind::FailureKind;
use crate::model::certificate_report::{
    CertificateSource, ReportedCertificate, ReportedResource, SourceKind,
};
use crate::model::secret::{TLS_CRT, TLS_KEY};
use crate::model::{Certificate, Key, Kind, ObjectName, Secret};
use crate::reconcile::certificate::options::Options;
use crate::reconcile::certificate::types::Observed;
use crate::reconcile::policy::Input;
use crate::reconcile::{certificate, differences, policy, renewal};
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::resources::{Resources, typed};

/// Looks at the certificate in the Secret of a Certificate, and whether it is what that asks for.
///
/// # Errors
/// Fails when there is no such Certificate or nothing in its Secret yet, or the store does.
pub async fn of_certificate(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    given: Option<&PrivateKey>,
    now: Timestamp,
) -> Result<ReportedCertificate, Failure> {
    let key = Key::new(Kind::Certificate, name.clone());
    let key = lookup::one(store, &key).await.map_err(|failure| {
        let is_host = failure.kind == FailureKind::Unexpected && name.name.contains('.');
        let program = invocation::program();
        let hint = format!("what a server shows: {program} certificate show {}:443", name.name);
        if is_host { failure.hint(hint) } else { failure }
    })?;
    let certificate: Certificate = typed(lookup::read(store, &key).await?)?;
    let name = &key.name;
    let secret_name = ObjectName::new(&name.namespace, &certificate.spec.secret_name);
    let secret =
        Resources::<Secret>::new(Arc::clone(store), Kind::Secret).get(&secret_name).await?;
    let nothing = |why: String| {
        let describe = format!("timeline certificate/{}", name.name);
        let describe = invocation::current().like_in(&name.namespace, &describe);
        Failure::new(FailureKind::Unexpected, format!("cannot show Certificate {name}: {why}"))
            .hint(format!("how far it is: {describe}"))
    };
    let Some(secret) = secret else {
        return Err(nothing(format!("there is no Secret {secret_name} yet")));
    };
    let source = source(SourceKind::Certificate, name);
    let mut reported = of_data(source, &secret, given, now).map_err(nothing)?;
    let observed = observe(store, &certificate, &secret).await?;
    reported.resource = Some(compare(&certificate, &observed, now));
    Ok(reported)
}

/// Looks at the certificate in a Secret.
///
/// # Errors
/// Fails when there is no such Secret or no certificate in it, or the store does.
pub async fn of_secret(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    given: Option<&PrivateKey>,
    now: Timestamp,
) -> Result<ReportedCertificate, Failure> {
    let failed = |what: String| Failure::new(FailureKind::Unexpected, what);
    let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
    let Some(secret) = secrets.get(name).await? else {
        let ObjectName { namespace, name } = name;
        return Err(failed(format!("secrets \"{name}\" not found in namespace {namespace}")));
    };
    let source = source(SourceKind::Secret, name);
    let reported = of_data(source, &secret, given, now);
    reported.map_err(|why| failed(format!("cannot show Secret {name}: {why}")))
}

fn source(kind: SourceKind, name: &ObjectName) -> CertificateSource {
    CertificateSource { kind, namespace: Some(name.namespace.clone()), name: name.name.clone() }
}

/// Looks at `tls.crt` and `tls.key`.
fn of_data(
    source: CertificateSource,
    secret: &Secret,
    given: Option<&PrivateKey>,
    now: Timestamp,
) -> Result<ReportedCertificate, String> {
    let filled = |key: &str| secret.value(key).filter(|value| !value.is_empty());
    let name = secret.metadata.object_name();
    let chain = filled(TLS_CRT).ok_or_else(|| format!("Secret {name} has no {TLS_CRT}"))?;
    let found = Material::find(chain).map_err(|fault| fault.to_string())?;
    let found = Material { key: filled(TLS_KEY).map(PrivateKey::from_pem), ..found };
    reported(source, &found, given, now).map_err(|fault| fault.to_string())
}

/// What the rules look at; without requests where those may not be read.
async fn observe(
    store: &Arc<dyn Store>,
    certificate: &Certificate,
    secret: &Secret,
) -> Result<Observed, StoreError> {
    match Neighbours::new(store).observe_from_outside(certificate, Some(secret)).await {
        Err(error) if error.lacks_permission() => Ok(Observed {
            secret: Some(facts::of_secret(secret)),
            next_keys: Vec::new(),
            requests: Vec::new(),
            rivals: Vec::new(),
            windows: renewal::windows(&certificate.spec, |name| TimeZone::get(name).ok()),
            options: Options::default(),
        }),
        observed => observed,
    }
}

/// Compares what is in the Secret with what is asked for.
fn compare(wanted: &Certificate, observed: &Observed, now: Timestamp) -> ReportedResource {
    let spec = &wanted.spec;
    let secret = observed.secret.as_ref();
    let leaf = secret.and_then(|secret| secret.usable_leaf());
    let key = secret.and_then(|secret| secret.usable_key());
    let input = Input { certificate: wanted, secret, current: None };
    let renewal_time = leaf.and_then(|leaf| {
        let (start, end) = (leaf.not_before, leaf.not_after);
        renewal::renewal_time(spec, start, end, &observed.windows).ok().flatten()
    });
    ReportedResource {
        secret_name: spec.secret_name.clone(),
        revision: wanted.status.revision,
        renewal_time: renewal_time.map(Into::into),
        due: certificate::due(wanted, observed, now).map(|violation| violation.message),
        names_as_asked: leaf.is_some_and(|leaf| differences::of_leaf(spec, leaf).is_empty()),
        key_as_asked: key.map(|key| differences::of_key(spec, key).is_empty()),
        issuer_as_asked: !policy::is_of_another_issuer(&input),
    }
}
