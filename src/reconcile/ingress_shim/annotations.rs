//! Meaning of the annotations of an Ingress, a Gateway or a ListenerSet for its Certificates.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::model::certificate::{PrivateKey, SecretTemplate, Subject};
use crate::model::ingress::IngressLike;
use crate::model::manifest::USAGES;
use crate::model::manifest::conversion::new_annotation;
use crate::model::{CertificateSpec, Duration};
use crate::reconcile::facts::annotation::TEMPORARY;
use crate::reconcile::solver_choice::{
    OVERRIDE_CLASS, OVERRIDE_CLASS_NAME, OVERRIDE_NAME, PARENT_KIND, PARENT_NAME, PARENT_NAMESPACE,
};

/// Name of an Issuer.
pub(super) const ISSUER: &str = "cert-manager.io/issuer";
/// Name of a ClusterIssuer.
pub(super) const CLUSTER_ISSUER: &str = "cert-manager.io/cluster-issuer";
/// Kind of an issuer that is neither Issuer nor ClusterIssuer.
pub(super) const ISSUER_KIND: &str = "cert-manager.io/issuer-kind";
/// Group of an issuer that is neither Issuer nor ClusterIssuer.
pub(super) const ISSUER_GROUP: &str = "cert-manager.io/issuer-group";
/// Names of listeners without Certificates.
pub(super) const IGNORED_LISTENERS: &str = "cert-manager.io/ignore-tls-listeners";

const EDIT_IN_PLACE: &str = "acme.cert-manager.io/http01-edit-in-place";
const INGRESS_CLASS: &str = "acme.cert-manager.io/http01-ingress-class";
const INGRESS_CLASS_NAME: &str = "acme.cert-manager.io/http01-ingress-ingressclassname";
const PARENT_FALLBACK: &str = "acme.cert-manager.io/http01-parentreffallback";
const COMMON_NAME: &str = "cert-manager.io/common-name";
const ALT_NAMES: &str = "cert-manager.io/alt-names";
const IP_SANS: &str = "cert-manager.io/ip-sans";
const EMAIL_SANS: &str = "cert-manager.io/email-sans";
const SERIAL_NUMBER: &str = "cert-manager.io/subject-serialnumber";
const DURATION: &str = "cert-manager.io/duration";
const RENEW_BEFORE: &str = "cert-manager.io/renew-before";
const RENEW_BEFORE_PERCENTAGE: &str = "cert-manager.io/renew-before-percentage";
const KEY_USAGES: &str = "cert-manager.io/usages";
const HISTORY_LIMIT: &str = "cert-manager.io/revision-history-limit";
const KEY_ALGORITHM: &str = "cert-manager.io/private-key-algorithm";
const KEY_ENCODING: &str = "cert-manager.io/private-key-encoding";
const KEY_SIZE: &str = "cert-manager.io/private-key-size";
const KEY_ROTATION: &str = "cert-manager.io/private-key-rotation-policy";
const SECRET_TEMPLATE: &str = "cert-manager.io/secret-template";

/// Reading of comma-separated lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lists {
    /// Without blanks around values, and without empty values: as meant.
    #[default]
    Trimmed,
    /// As cert-manager reads them: a blank after a comma begins the next name, which no CA can certify.
    AsCertManager,
}

impl Lists {
    /// Returns the values between commas.
    fn values(self, text: &str) -> Vec<String> {
        let all = text.split(',').map(|value| self.value(value));
        all.filter(|value| self == Self::AsCertManager || !value.is_empty()).collect()
    }

    fn value(self, text: &str) -> String {
        match self {
            Self::Trimmed => text.trim().to_owned(),
            Self::AsCertManager => text.to_owned(),
        }
    }
}

/// Annotations that cert-manager reads otherwise than meant: with blanks around values, or empty values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UntidyAnnotations(Vec<(&'static str, String)>);

impl UntidyAnnotations {
    /// Finds the untidy ones among annotations.
    pub(super) fn among(annotations: &BTreeMap<String, String>) -> Self {
        let lists = [ALT_NAMES, COMMON_NAME, EMAIL_SANS, IP_SANS].into_iter().filter_map(|name| {
            let text = annotations.get(name)?;
            let tidy = Lists::Trimmed.values(text);
            (tidy != Lists::AsCertManager.values(text)).then(|| (name, tidy.join(",")))
        });
        Self(lists.collect())
    }

    /// Returns whether there is no such annotation.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for UntidyAnnotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(|(name, tidy)| format!("{name}: {tidy:?}")).collect();
        write!(
            f,
            "cert-manager takes blanks around values, and empty ones, for parts of names, and issues nothing; write {}",
            all.join(", ")
        )
    }
}

/// Annotation whose value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid ingress annotation \"{name}\": {why}")]
pub struct InvalidAnnotation {
    /// Name of the annotation.
    pub name: &'static str,
    /// Fault of the value.
    pub why: String,
}

/// Annotations as named by cert-manager before 0.11, each with its present name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OldAnnotations(Vec<(String, &'static str)>);

impl OldAnnotations {
    /// Returns whether there is no such annotation.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for OldAnnotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<_> = self.0.iter().map(|(old, new)| format!("{old} is now {new}")).collect();
        write!(f, "cert-manager has not read these annotations since 0.11: {}", pairs.join("; "))
    }
}

/// Returns the annotations with old ones under their present names, and the list of the old ones. A present name wins.
pub(super) fn modern(
    annotations: &BTreeMap<String, String>,
) -> (BTreeMap<String, String>, OldAnnotations) {
    let (mut modern, mut old) = (annotations.clone(), OldAnnotations::default());
    for (name, value) in annotations {
        if let Some(new) = new_annotation(name) {
            modern.entry(new.to_owned()).or_insert_with(|| value.clone());
            old.0.push((name.clone(), new));
        }
    }
    (modern, old)
}

/// Gives a ListenerSet the issuer of its Gateway if it names none, and the Gateway's issuer kind and group in any case.
pub(super) fn inherit(own: &mut BTreeMap<String, String>, of_parent: &BTreeMap<String, String>) {
    let names_one = own.contains_key(ISSUER) || own.contains_key(CLUSTER_ISSUER);
    let names = [CLUSTER_ISSUER, ISSUER].into_iter().filter(|_| !names_one);
    for name in names.chain([ISSUER_KIND, ISSUER_GROUP]) {
        if let Some(value) = of_parent.get(name) {
            own.insert(name.to_owned(), value.clone());
        }
    }
}

/// Returns whether a value means yes, as in Go's `strconv.ParseBool`.
pub(super) fn is_true(value: &str) -> bool {
    ["1", "t", "T", "true", "TRUE", "True"].contains(&value)
}

/// Adds the annotations by which Orders of a Certificate override their issuer's solver.
pub(super) fn for_solvers(
    told: &mut BTreeMap<String, String>,
    object: &IngressLike,
    annotations: &BTreeMap<String, String>,
) {
    let mut tell = |name: &str, value: &str| told.insert(name.to_owned(), value.to_owned());
    let own = object.metadata().name.as_str();
    if annotations.get(EDIT_IN_PLACE).is_some_and(|value| value == "true") {
        tell(OVERRIDE_NAME, own);
        tell(TEMPORARY, "true");
    }
    for (given, told) in
        [(INGRESS_CLASS, OVERRIDE_CLASS), (INGRESS_CLASS_NAME, OVERRIDE_CLASS_NAME)]
    {
        if let Some(value) = annotations.get(given).filter(|value| !value.is_empty()) {
            tell(told, value);
        }
    }
    let falls_back = annotations.get(PARENT_FALLBACK).is_some_and(|value| is_true(value));
    match object {
        IngressLike::Ingress(_) => {}
        IngressLike::ListenerSet(_) if falls_back => {
            if let Some(parent) = object.parent() {
                tell(PARENT_KIND, "Gateway");
                tell(PARENT_NAME, &parent.name);
                tell(PARENT_NAMESPACE, &parent.namespace);
            }
        }
        IngressLike::Gateway(_) | IngressLike::ListenerSet(_) => {
            tell(PARENT_KIND, object.kind().as_str());
            tell(PARENT_NAME, own);
        }
    }
}

/// Writes the settings from annotations into a spec.
///
/// # Errors
/// Fails with the first value that cannot be read.
pub(super) fn translate(
    spec: &mut CertificateSpec,
    annotations: &BTreeMap<String, String>,
    lists: Lists,
) -> Result<(), InvalidAnnotation> {
    let given = |name: &str| annotations.get(name).map(String::as_str);
    if let Some(name) = given(COMMON_NAME) {
        spec.common_name = lists.value(name);
    }
    if let Some(names) = given(ALT_NAMES).filter(|names| !names.is_empty()) {
        spec.dns_names.extend(lists.values(names));
    }
    if let Some(addresses) = given(IP_SANS).filter(|addresses| !addresses.is_empty()) {
        spec.ip_addresses.extend(lists.values(addresses));
    }
    if let Some(addresses) = given(EMAIL_SANS) {
        spec.email_addresses = lists.values(addresses);
    }
    let subject = subject(annotations)?;
    if subject != Subject::default() {
        spec.subject = Some(subject);
    }
    if let Some(text) = given(DURATION) {
        spec.duration = Some(duration(DURATION, text)?);
    }
    if let Some(text) = given(RENEW_BEFORE) {
        spec.renew_before = Some(duration(RENEW_BEFORE, text)?);
    }
    if let Some(text) = given(RENEW_BEFORE_PERCENTAGE) {
        spec.renew_before_percentage = Some(number(RENEW_BEFORE_PERCENTAGE, text)?);
    }
    if let Some(text) = given(KEY_USAGES) {
        spec.usages = Some(usages(text)?);
    }
    if let Some(text) = given(HISTORY_LIMIT) {
        let limit: i32 = number(HISTORY_LIMIT, text)?;
        if limit < 1 {
            let why = format!("revision history limit must be a positive number \"{text}\"");
            return Err(InvalidAnnotation { name: HISTORY_LIMIT, why });
        }
        spec.revision_history_limit = Some(limit);
    }
    spec.private_key = private_key(annotations)?;
    if let Some(text) = given(SECRET_TEMPLATE) {
        spec.secret_template = secret_template(text)?;
    }
    Ok(())
}

fn subject(annotations: &BTreeMap<String, String>) -> Result<Subject, InvalidAnnotation> {
    let mut subject = Subject::default();
    for (name, field) in [
        ("cert-manager.io/subject-organizations", &mut subject.organizations),
        ("cert-manager.io/subject-organizationalunits", &mut subject.organizational_units),
        ("cert-manager.io/subject-countries", &mut subject.countries),
        ("cert-manager.io/subject-provinces", &mut subject.provinces),
        ("cert-manager.io/subject-localities", &mut subject.localities),
        ("cert-manager.io/subject-postalcodes", &mut subject.postal_codes),
        ("cert-manager.io/subject-streetaddresses", &mut subject.street_addresses),
    ] {
        if let Some(text) = annotations.get(name) {
            *field = comma_separated(text).map_err(|why| InvalidAnnotation { name, why })?;
        }
    }
    if let Some(number) = annotations.get(SERIAL_NUMBER) {
        subject.serial_number.clone_from(number);
    }
    Ok(subject)
}

/// Parses comma-separated values; a value with a comma is quoted, and a quote inside is doubled (RFC 4180 §2).
fn comma_separated(text: &str) -> Result<Vec<String>, String> {
    let stray = || format!("failed to parse \"{text}\" as CSV: a quote stands where none may be");
    let (mut values, mut rest) = (Vec::new(), text);
    if text.trim_matches('\n').is_empty() {
        return Err(format!("no values found after parsing \"{text}\""));
    }
    if text.trim_end_matches('\n').contains('\n') {
        let why = "as input as it parses as multiple lines of CSV";
        return Err(format!("refusing to use \"{text}\" {why}"));
    }
    loop {
        let (value, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let (mut value, mut left) = (String::new(), quoted);
            loop {
                let end = left.find('"').ok_or_else(stray)?;
                value.push_str(&left[..end]);
                left = &left[end + 1..];
                match left.strip_prefix('"') {
                    Some(more) => {
                        value.push('"');
                        left = more;
                    }
                    None => break (value, left),
                }
            }
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            (rest[..end].trim_end_matches('\n').to_owned(), &rest[end..])
        };
        if !rest.starts_with('"') && value.contains('"') {
            return Err(stray());
        }
        values.push(value);
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None if after.trim_end_matches('\n').is_empty() => return Ok(values),
            None => return Err(stray()),
        }
    }
}

fn duration(name: &'static str, text: &str) -> Result<Duration, InvalidAnnotation> {
    let invalid = || InvalidAnnotation { name, why: format!("time: invalid duration \"{text}\"") };
    Duration::parse(text).ok_or_else(invalid)
}

fn number<N: std::str::FromStr>(name: &'static str, text: &str) -> Result<N, InvalidAnnotation> {
    let invalid = |_| InvalidAnnotation { name, why: format!("\"{text}\" is no number") };
    text.parse().map_err(invalid)
}

fn usages(text: &str) -> Result<Vec<String>, InvalidAnnotation> {
    let usage = |given: &str| {
        let usage = given.trim_matches(' ');
        let invalid = || InvalidAnnotation {
            name: KEY_USAGES,
            why: format!("invalid key usage name \"{given}\""),
        };
        USAGES.contains(&usage).then(|| usage.to_owned()).ok_or_else(invalid)
    };
    text.split(',').map(usage).collect()
}

fn private_key(
    annotations: &BTreeMap<String, String>,
) -> Result<Option<PrivateKey>, InvalidAnnotation> {
    let mut key = PrivateKey::default();
    let one_of = |name: &'static str, what: &str, allowed: &[&str]| match annotations.get(name) {
        Some(text) if !allowed.contains(&text.as_str()) => {
            Err(InvalidAnnotation { name, why: format!("invalid private key {what} \"{text}\"") })
        }
        text => Ok(text.cloned().unwrap_or_default()),
    };
    key.algorithm = one_of(KEY_ALGORITHM, "algorithm", &["RSA", "ECDSA", "Ed25519"])?;
    key.encoding = one_of(KEY_ENCODING, "encoding", &["PKCS1", "PKCS8"])?;
    if let Some(text) = annotations.get(KEY_SIZE) {
        let size = number(KEY_SIZE, text)?;
        let (algorithm, is_right) = match key.algorithm.as_str() {
            "ECDSA" => ("ECDSA", [256, 384, 521].contains(&size)),
            "Ed25519" => ("Ed25519", true),
            _ => ("RSA", (2048..=8192).contains(&size)),
        };
        if !is_right {
            let why = format!("invalid private key size for {algorithm} algorithm \"{text}\"");
            return Err(InvalidAnnotation { name: KEY_SIZE, why });
        }
        key.size = Some(size);
    }
    key.rotation_policy = one_of(KEY_ROTATION, "rotation policy", &["Never", "Always"])?;
    Ok((key != PrivateKey::default()).then_some(key))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct GivenTemplate {
    annotations: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
}

fn secret_template(text: &str) -> Result<Option<SecretTemplate>, InvalidAnnotation> {
    let invalid = |why| InvalidAnnotation { name: SECRET_TEMPLATE, why };
    let GivenTemplate { annotations, labels } = serde_json::from_str(text)
        .map_err(|error| invalid(format!("error parsing secret template JSON: {error}")))?;
    if let Some(name) = annotations.keys().find(|name| name.starts_with("cert-manager.io/")) {
        let why = "secretTemplate must not have cert-manager.io/ annotations";
        return Err(invalid(format!("{why}: \"{name}\"")));
    }
    let is_empty = annotations.is_empty() && labels.is_empty();
    Ok((!is_empty).then_some(SecretTemplate { annotations, labels }))
}
