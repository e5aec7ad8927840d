//! Judgment of TLS-ALPN-01 observations: whether the CA would accept the certificate shown in a handshake.

use aws_lc_rs::digest;

use super::challenge::Readiness;
use crate::model::cause::CheckFinding;
use crate::model::names::ACME_TLS;
use crate::model::observation::{CheckResult, Observation, PresentedCertificate, Vantage};
use crate::model::text::hex;
use crate::model::{Answer, Identifier};

/// Judges TLS-ALPN-01 observations by the CA's rules (RFC 8737 §3): the protocol is agreed on, and the certificate is
/// self-signed, has the identifier as its only name, and the digest of the key authorization in one critical extension.
pub fn judge(answer: &Answer, observations: &[Observation]) -> Readiness {
    let mut looks =
        observations.iter().filter(|look| look.vantage == Vantage::ThisMachine).peekable();
    if looks.peek().is_none() {
        return Readiness::NotYet { reason: "nobody has looked yet".to_owned(), cause: None };
    }
    match looks.find_map(|look| fault(answer, look).map(|why| (why, sighting(look)))) {
        Some((why, cause)) => {
            let name = &answer.identifier;
            let reason = format!("failed to perform self check TLS handshake for '{name}': {why}");
            Readiness::NotYet { reason, cause }
        }
        None => Readiness::Ready,
    }
}

/// Returns the digest that the extension `acmeIdentifier` must hold, in hexadecimal digits.
pub fn digest_of(answer: &Answer) -> String {
    let digest = digest::digest(&digest::SHA256, answer.key_authorization.as_bytes());
    hex(digest.as_ref())
}

fn fault(answer: &Answer, look: &Observation) -> Option<String> {
    let (protocol, certificate) = match &look.seen {
        CheckResult::Handshake { protocol, certificate } => (protocol, certificate),
        CheckResult::Nothing { why, .. } | CheckResult::NoLook { why, .. } => {
            return Some(why.clone());
        }
        CheckResult::Records { .. } | CheckResult::Redirect { .. } | CheckResult::Reply { .. } => {
            return Some("nobody has looked yet".to_owned());
        }
    };
    if protocol.as_bytes() != ACME_TLS {
        let who = &certificate.subject;
        return Some(format!(
            "the server does not negotiate \"acme-tls/1\" (ALPN) and shows the certificate of {who}: another program \
             answers on port 443, or ends TLS on the way here"
        ));
    }
    wrong(answer, certificate)
        .map(|why| format!("the server speaks acme-tls/1, but its certificate {why}"))
}

fn sighting(look: &Observation) -> Option<CheckFinding> {
    match &look.seen {
        CheckResult::Nothing { symptom, .. } => symptom.map(CheckFinding::from),
        CheckResult::Handshake { .. }
        | CheckResult::NoLook { .. }
        | CheckResult::Records { .. }
        | CheckResult::Redirect { .. }
        | CheckResult::Reply { .. } => None,
    }
}

/// Returns the fault for which the CA would reject a certificate.
pub fn wrong(answer: &Answer, shown: &PresentedCertificate) -> Option<String> {
    if !shown.self_signed {
        return Some(format!("is not self-signed ({})", shown.subject));
    }
    let is_name = |name: &str| match &answer.identifier {
        Identifier::Dns(wanted) => name.eq_ignore_ascii_case(wanted.base()),
        Identifier::Ip(wanted) => name.parse() == Ok(*wanted),
    };
    match &shown.names[..] {
        [name] if is_name(name) => {}
        [] => return Some("has no subjectAltName".to_owned()),
        [name] => return Some(format!("is for {name}")),
        names => return Some(format!("has {} names, and must have one", names.len())),
    }
    let identifier = match &shown.acme_identifiers[..] {
        [identifier] => identifier,
        [] => return Some("lacks the extension acmeIdentifier (1.3.6.1.5.5.7.1.31)".to_owned()),
        _ => return Some("has the extension acmeIdentifier more than once".to_owned()),
    };
    if !identifier.critical {
        return Some("has an extension acmeIdentifier that is not critical".to_owned());
    }
    (identifier.digest != digest_of(answer))
        .then(|| "answers another challenge: the digest in its acmeIdentifier differs".to_owned())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::observation::AcmeIdentifier;

    /// Judges a handshake for a name whose certificate differs from the right one in one way.
    fn check(
        name: &str,
        change: impl FnOnce(&mut String, &mut PresentedCertificate),
        expected: Option<&str>,
    ) {
        let answer = Answer {
            identifier: Identifier::parse(name).unwrap(),
            token: "token".to_owned(),
            key_authorization: "token.thumbprint".to_owned(),
        };
        let mut protocol = "acme-tls/1".to_owned();
        let mut certificate = PresentedCertificate {
            subject: "CN=somebody".to_owned(),
            self_signed: true,
            names: vec![name.to_owned()],
            acme_identifiers: vec![AcmeIdentifier { critical: true, digest: digest_of(&answer) }],
        };
        change(&mut protocol, &mut certificate);
        let look = Observation {
            vantage: Vantage::ThisMachine,
            at: Timestamp::UNIX_EPOCH,
            url: format!("https://{name}/"),
            hops: Vec::new(),
            seen: CheckResult::Handshake { protocol, certificate },
        };
        match (judge(&answer, &[look]), expected) {
            (Readiness::Ready, None) => {}
            (Readiness::NotYet { reason, .. }, Some(part)) => {
                assert!(reason.contains(part), "{reason}");
            }
            (judged, expected) => panic!("{judged:?}, not {expected:?}"),
        }
    }

    #[test]
    fn what_the_ca_takes_is_ready() {
        check("www.example.com", |_, _| {}, None);
        check("www.example.com", |_, c| c.names = vec!["WWW.example.com".to_owned()], None);
        check("2001:db8::1", |_, c| c.names = vec!["2001:db8:0::1".to_owned()], None);
    }

    #[test]
    fn every_rule_is_told_when_it_is_broken() {
        let www = "www.example.com";
        check(www, |p, _| p.clear(), Some("does not negotiate \"acme-tls/1\""));
        check(www, |_, c| c.self_signed = false, Some("is not self-signed (CN=somebody)"));
        check(www, |_, c| c.names.clear(), Some("has no subjectAltName"));
        check(www, |_, c| c.names = vec!["a.example".to_owned()], Some("is for a.example"));
        check(
            www,
            |_, c| c.names.push("a.example".to_owned()),
            Some("has 2 names, and must have one"),
        );
        check(www, |_, c| c.acme_identifiers.clear(), Some("lacks the extension acmeIdentifier"));
        let twice = |_: &mut String, c: &mut PresentedCertificate| {
            c.acme_identifiers.extend(c.acme_identifiers.clone());
        };
        check(www, twice, Some("more than once"));
        check(www, |_, c| c.acme_identifiers[0].critical = false, Some("not critical"));
        let other =
            |_: &mut String, c: &mut PresentedCertificate| c.acme_identifiers[0].digest.clear();
        check(www, other, Some("answers another challenge"));
    }

    #[test]
    fn without_a_look_it_is_not_ready() {
        let answer = Answer {
            identifier: Identifier::parse("a.example").unwrap(),
            token: String::new(),
            key_authorization: String::new(),
        };
        assert!(matches!(judge(&answer, &[]), Readiness::NotYet { .. }));
    }
}
