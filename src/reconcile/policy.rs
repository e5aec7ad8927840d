//! When a Certificate must be issued, as a list of rules asked in cert-manager's order.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::model::{Certificate, IssuerRef};

use super::differences;
use super::facts::{RequestFacts, SecretFacts, annotation};

/// What a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A word for machines, cert-manager's.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

impl Violation {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// What the rules look at.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The Certificate.
    pub certificate: &'a Certificate,
    /// The Secret it names, if there is one.
    pub secret: Option<&'a SecretFacts>,
    /// The CertificateRequest of `status.revision`, if it is still there.
    pub current: Option<&'a RequestFacts>,
}

type Rule = fn(&Input<'_>) -> Option<Violation>;

const CHAIN: [Rule; 10] = [
    secret_is_missing,
    data_is_missing,
    key_cannot_be_used,
    certificate_cannot_be_used,
    issuer_is_another,
    certificate_is_another,
    key_is_outdated,
    key_is_not_the_requested_one,
    request_is_outdated,
    certificate_is_outdated,
];

/// The first rule that is violated, whatever the time.
pub fn violation(input: &Input<'_>) -> Option<Violation> {
    CHAIN.iter().find_map(|rule| rule(input))
}

/// The renewal that is due at `renewal_time`.
pub fn renewing(renewal_time: Timestamp, now: Timestamp) -> Option<Violation> {
    let shown = renewal_time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC");
    let message = format!("Renewing certificate as renewal was scheduled at {shown}");
    (now >= renewal_time).then(|| Violation::new("Renewing", message))
}

/// The end of the certificate in the Secret.
pub fn expired(input: &Input<'_>, now: Timestamp) -> Option<Violation> {
    let not_after = input.secret?.usable_leaf()?.not_after;
    let shown = not_after.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
    let message = format!("Certificate expired on {shown}");
    (now > not_after).then(|| Violation::new("Expired", message))
}

fn secret_is_missing(input: &Input<'_>) -> Option<Violation> {
    let message = "Issuing certificate as Secret does not exist";
    input.secret.is_none().then(|| Violation::new("DoesNotExist", message))
}

fn data_is_missing(input: &Input<'_>) -> Option<Violation> {
    let secret = input.secret?;
    let what = if !secret.has_data {
        "any data"
    } else if secret.key.is_none() {
        "a private key"
    } else if secret.leaf.is_none() {
        "a certificate"
    } else {
        return None;
    };
    let message = format!("Issuing certificate as Secret does not contain {what}");
    Some(Violation::new("MissingData", message))
}

fn key_cannot_be_used(input: &Input<'_>) -> Option<Violation> {
    let secret = input.secret?;
    let message = match (secret.key.as_ref()?, secret.leaf.as_ref()?) {
        (Err(why), _) => {
            format!("Issuing certificate as Secret contains invalid private key data: {why}")
        }
        (Ok(key), Ok(leaf)) if key.public_key != leaf.public_key => {
            "Issuing certificate as Secret contains a private key that does not match the certificate"
                .to_owned()
        }
        (Ok(_), Ok(_) | Err(_)) => return None,
    };
    Some(Violation::new("InvalidKeyPair", message))
}

fn certificate_cannot_be_used(input: &Input<'_>) -> Option<Violation> {
    let why = input.secret?.leaf.as_ref()?.as_ref().err()?;
    let message = format!("Issuing certificate as Secret contains an invalid certificate: {why}");
    Some(Violation::new("InvalidCertificate", message))
}

/// A Secret without any of the three annotations counts as issued by an Issuer of any name.
fn issuer_is_another(input: &Input<'_>) -> Option<Violation> {
    let given = |key: &str| input.secret?.annotations.get(key).cloned();
    let name = given(annotation::ISSUER_NAME);
    let kind = given(annotation::ISSUER_KIND);
    let group = given(annotation::ISSUER_GROUP);
    let wanted = &input.certificate.spec.issuer_ref;
    let annotated = name.is_some() || kind.is_some() || group.is_some();
    let issued_by = IssuerRef {
        name: if annotated { name.unwrap_or_default() } else { wanted.name.clone() },
        kind: kind.unwrap_or_default(),
        group: group.unwrap_or_default(),
    };
    if input.secret.is_none() || differences::same_issuer(wanted, &issued_by) {
        return None;
    }
    let (kind, group) = (issued_by.effective_kind(), issued_by.effective_group());
    let message = format!(
        "Issuing certificate as Secret was previously issued by \"{kind}.{group}/{}\"",
        issued_by.name
    );
    Some(Violation::new("IncorrectIssuer", message))
}

fn certificate_is_another(input: &Input<'_>) -> Option<Violation> {
    let other = input.secret?.annotations.get(annotation::CERTIFICATE_NAME)?;
    if *other == input.certificate.metadata.name {
        return None;
    }
    let message = format!(
        "Secret was issued for \"{other}\". If this message is not transient, \
         you might have two conflicting Certificates pointing to the same secret."
    );
    Some(Violation::new("IncorrectCertificate", message))
}

fn key_is_outdated(input: &Input<'_>) -> Option<Violation> {
    let fields = differences::of_key(&input.certificate.spec, input.secret?.usable_key()?);
    let message =
        format!("Existing private key is not up to date for spec: [{}]", fields.join(" "));
    (!fields.is_empty()).then(|| Violation::new("SecretMismatch", message))
}

fn key_is_not_the_requested_one(input: &Input<'_>) -> Option<Violation> {
    let key = input.secret?.usable_key()?;
    match &input.current?.csr {
        Err(why) => {
            let message = format!("Failed to decode current CertificateRequest: {why}");
            Some(Violation::new("InvalidCertificateRequest", message))
        }
        Ok(csr) if csr.public_key != key.public_key => {
            let message =
                "Secret contains a private key that does not match the current CertificateRequest";
            Some(Violation::new("SecretMismatch", message))
        }
        Ok(_) => None,
    }
}

fn request_is_outdated(input: &Input<'_>) -> Option<Violation> {
    let fields = differences::of_request(&input.certificate.spec, input.current?);
    let message = format!(
        "Fields on existing CertificateRequest resource not up to date: [{}]",
        fields.join(" ")
    );
    (!fields.is_empty()).then(|| Violation::new("RequestChanged", message))
}

fn certificate_is_outdated(input: &Input<'_>) -> Option<Violation> {
    if input.current.is_some() {
        return None;
    }
    let fields = differences::of_leaf(&input.certificate.spec, input.secret?.usable_leaf()?);
    let message = format!(
        "Issuing certificate as Existing issued Secret is not up to date for spec: [{}]",
        fields.join(" ")
    );
    (!fields.is_empty()).then(|| Violation::new("SecretMismatch", message))
}
