//! Objects for lines to copy, if a finding concerns one Certificate or issuer alone and its rule has named no object.

use std::collections::BTreeSet;

use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::issuer::IssuerCase;
use crate::diagnosis::case::name::NameCase;
use crate::diagnosis::case::{Case, CertificateCase};
use crate::diagnosis::catalogue::id::CauseFamily;
use crate::diagnosis::finding::Finding;
use crate::model::{Key, Kind, ObjectName};

/// Sets the values of words in lines to copy; `concerned` has the Certificates of the finding.
pub(super) fn name_objects(case: &Case, concerned: &BTreeSet<ObjectName>, finding: &mut Finding) {
    let subject = finding.subject.clone();
    let issuer = case.issuers.iter().find(|of| of.key.to_string() == subject);
    let certificate = only_one(case, concerned);
    let namespace = certificate
        .map(|of| of.certificate.metadata.namespace.clone())
        .or_else(|| issuer.map(|of| of.key.name.namespace.clone()));
    let Some(namespace) = namespace else { return };
    // A rule that names another namespace means other objects.
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
    name("ISSUER", issuer.map(|of| command_argument(&of.key)));
    name("ACCOUNT-URL", issuer.and_then(account));
    if finding.cause.family() == CauseFamily::Acc {
        let acme = issuer.and_then(|of| of.issuer.as_ref()?.spec.acme.as_ref());
        name("SECRET", acme.map(|acme| acme.private_key_secret_ref.name.clone()));
    }
    let looked = case.names.iter().find(|name| name.shown() == subject);
    name_zone(looked, &mut name);
    name("NAMESPACE", Some(namespace));
}

/// Sets the zone of a name, one of the zone's servers, and the place where the name's solver writes.
fn name_zone(looked: Option<&NameCase>, name: &mut impl FnMut(&'static str, Option<String>)) {
    let Some(looked) = looked else { return };
    let zone = looked.dns.as_ref().and_then(|dns| dns.zone.as_ref());
    let bare = |text: &str| text.trim_end_matches('.').to_owned();
    name("ZONE", zone.map(|zone| bare(&zone.name)));
    name("PARENT", zone.and_then(|zone| zone.parent.as_deref()).map(bare));
    let servers = zone.iter().flat_map(|zone| &zone.servers);
    let place = servers.into_iter().find_map(|server| server.address);
    name("NAMESERVER", place.map(|at| at.ip().to_string()));
    let solver = looked.pending.as_ref().and_then(|it| it.spec.solver.dns01.as_deref());
    if let Some(rfc2136) = solver.and_then(|dns01| dns01.rfc2136.as_ref()) {
        let secret = &rfc2136.tsig_secret_secret_ref;
        name("TSIG-SECRET", Some(secret.name.clone()));
        name("TSIG-ENTRY", Some(secret.key.clone()));
    }
    let host = solver.and_then(|dns01| dns01.acme_dns.as_ref()).map(|it| it.host.as_str());
    let host = host.map(|host| host.trim_start_matches("https://").trim_end_matches('/'));
    name("ACME-DNS", host.map(str::to_owned));
}

/// Returns the Certificate that is concerned, if it is the only one.
fn only_one<'a>(case: &'a Case, all: &BTreeSet<ObjectName>) -> Option<&'a CertificateCase> {
    let [name] = all.iter().collect::<Vec<_>>()[..] else { return None };
    case.certificates.iter().find(|of| of.certificate.name() == *name)
}

/// Returns an issuer as commands take it.
fn command_argument(key: &Key) -> String {
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
    use super::super::zone::tests::with_zone;
    use crate::diagnosis::catalogue::id::CauseId;
    use crate::diagnosis::finding::{Finding, Grade, stored};
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
    fn lines_name_the_zone_and_where_its_solver_writes() {
        let case = with_zone(|_, _| ());
        let concerned = BTreeSet::from([ObjectName::new("web", "www")]);
        let shown = stored("a", case.at, "b");
        let mut finding = Finding::new(CauseId::D0101, Grade::Likely, "www.example.com", shown);
        super::name_objects(&case, &concerned, &mut finding);
        let of = |text: &str| word(&finding, text).unwrap_or_default();
        assert_eq!((of("ZONE"), of("PARENT")), ("example.com".into(), "com".into()));
        assert_eq!(of("NAMESERVER"), "192.0.2.1");
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
