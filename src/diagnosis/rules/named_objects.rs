//! The objects that lines to copy are about, where a finding concerns one Certificate or issuer alone and its rule has named none.

use std::collections::BTreeSet;

use crate::diagnosis::case::{Case, CertificateCase, IssuerCase};
use crate::diagnosis::chain::issuer_key;
use crate::diagnosis::finding::Finding;
use crate::model::{Key, Kind, ObjectName};

/// Gives the words of lines their values; a finding concerns these Certificates.
pub(super) fn name_objects(case: &Case, concerned: &BTreeSet<ObjectName>, finding: &mut Finding) {
    let subject = finding.subject.clone();
    let issuer = case.issuers.iter().find(|of| of.key.to_string() == subject);
    let certificate = only_one(case, concerned);
    let namespace = certificate
        .map(|of| of.certificate.metadata.namespace.clone())
        .or_else(|| issuer.map(|of| of.key.name.namespace.clone()));
    let Some(namespace) = namespace else { return };
    // Where a rule speaks of another namespace, these are not meant.
    let is_elsewhere = finding.facts.get("NAMESPACE").is_some_and(|named| *named != namespace);
    if is_elsewhere {
        return;
    }
    let mut name = |word, value: Option<String>| {
        let value = value.filter(|value| !value.is_empty());
        finding.in_lines.extend(value.map(|value| (word, value)));
    };
    if let Some(of) = certificate {
        let mut current = of.current_challenges();
        let own = of.current_challenges().find(|one| one.spec.shown_domain() == subject);
        let challenge = own.or_else(|| current.next().filter(|_| current.next().is_none()));
        name("NAME", Some(of.certificate.metadata.name.clone()));
        name("ORDER", of.order().map(|order| order.name().name));
        name("CHALLENGE", challenge.map(|challenge| challenge.name().name));
    }
    let of_certificate = || case.issuer(&issuer_key(&certificate?.certificate)?);
    let issuer = issuer.or_else(of_certificate);
    name("ISSUER", issuer.map(|of| typed(&of.key)));
    name("ACCOUNT-URL", issuer.and_then(account));
    name("NAMESPACE", Some(namespace));
}

/// The Certificate that is concerned, where it is one alone.
fn only_one<'a>(case: &'a Case, all: &BTreeSet<ObjectName>) -> Option<&'a CertificateCase> {
    let [name] = all.iter().collect::<Vec<_>>()[..] else { return None };
    case.certificates.iter().find(|of| of.certificate.name() == *name)
}

/// An issuer as commands take it.
fn typed(key: &Key) -> String {
    let kind = if key.kind == Kind::ClusterIssuer { "clusterissuer" } else { "issuer" };
    format!("{kind}/{}", key.name.name)
}

fn account(of: &IssuerCase) -> Option<String> {
    Some(of.issuer.as_ref()?.status.acme.as_ref()?.uri.clone())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::cases::ordered;
    use super::super::judge;
    use super::super::tests::with;
    use crate::diagnosis::finding::Finding;
    use crate::model::ObjectName;

    fn word(finding: &Finding, word: &str) -> Option<String> {
        finding.in_lines.get(word).cloned()
    }

    #[test]
    fn lines_name_the_objects_of_the_only_certificate() {
        let mut case = ordered(|_, _, challenge| challenge["status"]["state"] = "errored".into());
        case.issuers[0].issuer = None;
        let found = judge(&case);
        let of = |text: &str| word(&found[0], text).unwrap_or_default();
        assert_eq!((of("NAME"), of("NAMESPACE")), ("www".into(), "web".into()), "{found:#?}");
        assert_eq!((of("ORDER"), of("ISSUER")), ("www-1-1".into(), "issuer/acme".into()));
        let other = case.certificates[0].clone();
        case.certificates.push(other);
        case.certificates[1].certificate.metadata.name = "other".into();
        let found = judge(&case);
        let issuer = found.iter().find(|finding| finding.subject == "Issuer web/acme");
        assert_eq!(issuer.and_then(|finding| word(finding, "NAME")), None, "{found:#?}");
    }

    #[test]
    fn objects_of_another_namespace_are_not_named() {
        let case = with(|case| case.issuers[0].issuer = None);
        let concerned = BTreeSet::from([ObjectName::new("web", "www")]);
        let named = |namespace: &str| {
            let mut finding = judge(&case).remove(0).with("NAMESPACE", namespace);
            finding.in_lines.clear();
            super::name_objects(&case, &concerned, &mut finding);
            word(&finding, "NAME")
        };
        assert_eq!((named("web"), named("elsewhere")), (Some("www".to_owned()), None));
    }
}
