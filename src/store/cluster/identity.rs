//! Check of a kubeconfig's client certificate before TLS uses it: the errors of TLS say little.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::config::AuthInfo;
use x509_parser::prelude::{FromDer as _, X509Certificate, X509Version};

use crate::store::cluster_fault::ClusterFault;

/// Fails if the client certificate cannot serve. A certificate that cannot be read is left to the client to report.
pub(super) fn check(login: &AuthInfo, user: &str, server: &str) -> Result<(), ClusterFault> {
    match pem(login) {
        Some(pem) => judge(&pem, user, server, Timestamp::now()),
        None => Ok(()),
    }
}

fn pem(login: &AuthInfo) -> Option<Vec<u8>> {
    match (&login.client_certificate_data, &login.client_certificate) {
        (Some(data), _) if !data.is_empty() => STANDARD.decode(data).ok(),
        (_, Some(file)) => fs::read(file).ok(),
        _ => None,
    }
}

fn judge(pem: &[u8], user: &str, server: &str, now: Timestamp) -> Result<(), ClusterFault> {
    let Ok(blocks) = pem::parse_many(pem) else { return Ok(()) };
    let Some(leaf) = blocks.iter().find(|block| block.tag() == "CERTIFICATE") else {
        return Ok(());
    };
    let Ok((_, certificate)) = X509Certificate::from_der(leaf.contents()) else { return Ok(()) };
    if certificate.version() != X509Version::V3 {
        return Err(ClusterFault::OldCertificate { user: user.to_owned() });
    }
    let end = certificate.validity().not_after.timestamp();
    if end < now.as_second() {
        let end = Timestamp::from_second(end).map(|end| end.to_string()).unwrap_or_default();
        return Err(ClusterFault::Credentials {
            server: server.to_owned(),
            why: format!("the client certificate of {user} has expired on {end}"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `openssl x509 -req` makes it without `-extfile`.
    const VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----
MIHYMIGLAhRSjHpk33AUNwQjUkNO3Ls7mM5KtDAFBgMrZXAwDjEMMAoGA1UEAwwD
YW5uMCAXDTI2MTEyMTE1MTg1OFoYDzIxMjYxMDI4MTUxODU4WjAOMQwwCgYDVQQD
DANhbm4wKjAFBgMrZXADIQBBzM5Zvwui3rkMyH6voGe4ZyE/HifFVA3qyydpJLb9
cTAFBgMrZXADQQDYlNOgoZGiZnEq520sHvRB6ss8qrUEu5P86wgcMTHNkLEt/PVK
1jm7fyEGZZJPS/68dABvywY91KcI1ux77GwJ
-----END CERTIFICATE-----
";
    /// With `-extfile`, valid on 21 November 2026.
    const VERSION_3: &str = "\
-----BEGIN CERTIFICATE-----
MIIBEzCBxqADAgECAhQR1Mq2SWSqC+aFN8uoruGAsZK2EDAFBgMrZXAwDjEMMAoG
A1UEAwwDYW5uMB4XDTI2MTEyMTE1MTg1OFoXDTI2MTEyMjE1MTg1OFowDjEMMAoG
A1UEAwwDYW5uMCowBQYDK2VwAyEAQczOWb8Lot65DMh+r6BnuGchPx4nxVQN6ssn
aSS2/XGjNjA0MBMGA1UdJQQMMAoGCCsGAQUFBwMCMB0GA1UdDgQWBBRtziPIA560
U1LAs9CPG+Tz2zXvZTAFBgMrZXADQQBRhSTZiUfzvzM1M/rXyV17qAWzHS3kTwKj
QoWdj/Y5ujm8yZjSO7VCxyLqCAOrJV3zA5aCxVvEb/IcXiGbLIQE
-----END CERTIFICATE-----
";

    fn check(pem: &str, now: &str, expected: &str) {
        let now = now.parse().unwrap();
        let judged = judge(pem.as_bytes(), "ann", "https://server", now);
        let said = judged.map_or_else(|fault| fault.to_string(), |()| "good".into());
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn a_certificate_of_version_1_is_named() {
        let expected = "cannot log in as ann: its client certificate is an X.509 version 1";
        check(VERSION_1, "2026-11-21T16:00:00Z", expected);
    }

    #[test]
    fn an_expired_certificate_is_named() {
        check(VERSION_3, "2026-11-21T16:00:00Z", "good");
        let expected = "cannot log in to https://server: the client certificate of ann has expired on 2026-11-22T";
        check(VERSION_3, "2026-12-01T00:00:00Z", expected);
    }

    #[test]
    fn what_is_no_certificate_is_left_to_the_client() {
        check("rubbish", "2026-11-21T16:00:00Z", "good");
    }
}
