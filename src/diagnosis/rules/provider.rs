//! PRV: what DNS providers say of a record that is to be made or taken down, by the solver of the Challenge; and solvers that are
//! two in one.

use super::rule::FaultRule;
use crate::diagnosis::case::Case;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Finding, Grade, stored};
use crate::diagnosis::foreign::is_about_deed;
use crate::diagnosis::provider_words::{ProviderFault, provider_fault};
use crate::model::Challenge;
use crate::model::solver::Dns01Solver;

pub(super) const RULES: &[FaultRule] = &[provider_refuses, solver_is_two_in_one];

fn provider_refuses(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        for challenge in &of.challenges {
            let Some(dns01) = &challenge.spec.solver.dns01 else { continue };
            let status = &challenge.status;
            // What keeps it from being put up, or down once it has ended.
            let is_taken_down =
                challenge.has_ended() || challenge.metadata.deletion_timestamp.is_some();
            let is_stuck = if is_taken_down { status.presented } else { !status.presented };
            if !is_stuck || !is_about_deed(&status.reason) {
                continue;
            }
            let Some(fault) = provider_fault(&status.reason) else { continue };
            let Some((cause, grade)) = cause(dns01, fault, is_taken_down) else { continue };
            found.push(about(case, challenge, dns01, cause, grade));
        }
    }
}

fn about(
    case: &Case,
    challenge: &Challenge,
    dns01: &Dns01Solver,
    cause: CauseId,
    grade: Grade,
) -> Finding {
    let name = challenge.name();
    let reason = &challenge.status.reason;
    let shown = stored(format!("Challenge {name}: status.reason"), case.at, reason);
    Finding::new(cause, grade, challenge.spec.shown_domain(), shown)
        .with("DOMAIN", &challenge.spec.dns_name)
        .with("PROVIDER", provider(dns01))
        .with("ANSWER", reason)
        .with("NAMESPACE", &name.namespace)
}

/// How people call the provider of a solver.
fn provider(dns01: &Dns01Solver) -> &'static str {
    [
        ("Akamai", dns01.akamai.is_some()),
        ("Google Cloud DNS", dns01.cloud_dns.is_some()),
        ("Cloudflare", dns01.cloudflare.is_some()),
        ("Route 53", dns01.route53.is_some()),
        ("Azure DNS", dns01.azure_dns.is_some()),
        ("DigitalOcean", dns01.digitalocean.is_some()),
        ("acme-dns", dns01.acme_dns.is_some()),
        ("the name server", dns01.rfc2136.is_some()),
    ]
    .iter()
    .find(|(_, is)| *is)
    .map_or("the DNS provider", |(name, _)| name)
}

/// The cause that a provider's words show.
fn cause(
    dns01: &Dns01Solver,
    fault: ProviderFault,
    is_taken_down: bool,
) -> Option<(CauseId, Grade)> {
    use ProviderFault as F;
    let own = [
        (CauseId::Prv02, dns01.cloudflare.is_some()),
        (CauseId::Prv03, dns01.route53.is_some()),
        (CauseId::Prv05, dns01.azure_dns.is_some()),
        (CauseId::Prv06, dns01.cloud_dns.is_some()),
    ];
    let own = own.iter().find(|(_, is)| *is).map(|(cause, _)| *cause);
    Some(match fault {
        F::Denied | F::Update if is_taken_down => (CauseId::Prv15, Grade::Likely),
        F::NotRegistered => (CauseId::Prv13, Grade::Certain),
        F::Update if dns01.rfc2136.is_some() => (CauseId::Prv07, Grade::Certain),
        F::Busy => (CauseId::Prv12, Grade::Certain),
        F::AddressRefused => (CauseId::Prv14, Grade::Certain),
        // A name server is no API.
        F::Unreachable if dns01.rfc2136.is_some() => (CauseId::Dns04, Grade::Likely),
        F::Unreachable => (CauseId::Prv14, Grade::Likely),
        F::Denied | F::NoZone => (own?, Grade::Likely),
        F::Update => return None,
    })
}

/// CFG-05.
fn solver_is_two_in_one(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.issuers {
        let Some(acme) = of.issuer.as_ref().and_then(|issuer| issuer.spec.acme.as_ref()) else {
            continue;
        };
        for (index, solver) in acme.solvers.iter().enumerate() {
            let (came, grade) = match (&solver.http01, &solver.dns01) {
                (Some(_), Some(_)) => ("both http01 and dns01", Grade::Certain),
                (None, None) => ("neither http01 nor dns01", Grade::Certain),
                _ => continue,
            };
            let asked = format!("{}: spec.acme.solvers[{index}]", of.key);
            found.push(
                Finding::new(
                    CauseId::Cfg05,
                    grade,
                    of.key.to_string(),
                    stored(asked, case.at, came),
                )
                .with("ISSUER", of.key.to_string())
                .with("INDEX", index.to_string())
                .with("WHAT", came),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::judge;
    use super::super::tests::{check, with};
    use super::*;

    /// A Challenge of a DNS-01 solver, with that status.
    fn case(dns01: &Value, status: &Value) -> Case {
        with(|case| {
            let challenge = json!({
                "metadata": {"namespace": "web", "name": "www-1", "uid": "x"},
                "spec": {
                    "dnsName": "www.example.com", "token": "t", "key": "k", "type": "DNS-01",
                    "authorizationURL": "a", "url": "u", "issuerRef": {"name": "acme"},
                    "solver": {"dns01": dns01},
                },
                "status": status,
            });
            case.certificates[0].challenges = vec![serde_json::from_value(challenge).unwrap()];
            case.names.clear();
        })
    }

    fn selector() -> Value {
        json!({"name": "s", "key": "k"})
    }

    fn cloudflare() -> Value {
        json!({"cloudflare": {"apiTokenSecretRef": selector()}})
    }

    #[track_caller]
    fn check_reason(dns01: &Value, reason: &str, expected: &[CauseId]) {
        check(&case(dns01, &json!({"processing": true, "reason": reason})), expected);
    }

    #[test]
    fn providers_are_read_each_in_their_own_words() {
        let acme_dns =
            json!({"acmeDNS": {"host": "https://auth.example", "accountSecretRef": selector()}});
        let rfc2136 = json!({"rfc2136": {"nameserver": "192.0.2.53"}});
        let route53 = json!({"route53": {"region": "r"}});
        let azure = json!({"azureDNS": {"subscriptionID": "s", "resourceGroupName": "g"}});
        let cloud_dns = json!({"cloudDNS": {"project": "p"}});
        let ocean = json!({"digitalocean": {"tokenSecretRef": selector()}});
        for (dns01, reason, expected) in [
            (
                cloudflare(),
                "Found no Zones for domain _acme-challenge.www.example.com.",
                CauseId::Prv02,
            ),
            (
                cloudflare(),
                "while querying the Cloudflare API for GET \"/zones\"\n\t Error: 10000: Authentication error",
                CauseId::Prv02,
            ),
            (
                route53.clone(),
                "User: arn:aws:iam::1:user/x is not authorized to perform: route53:ChangeResourceRecordSets",
                CauseId::Prv03,
            ),
            (
                route53.clone(),
                "failed to change Route 53 record set: Throttling: Rate exceeded",
                CauseId::Prv12,
            ),
            (azure, "AADSTS700016: Application not found", CauseId::Prv05),
            (cloud_dns, "googleapi: Error 403: Forbidden", CauseId::Prv06),
            (
                rfc2136.clone(),
                "DNS update failed. Server replied: NOTAUTH (BADKEY)",
                CauseId::Prv07,
            ),
            (rfc2136, "dial tcp 192.0.2.53:53: i/o timeout", CauseId::Dns04),
            (acme_dns, "account credentials not found for domain www.example.com", CauseId::Prv13),
            (ocean, "dial tcp: lookup api.digitalocean.com: no such host", CauseId::Prv14),
            (
                cloudflare(),
                "9109: Cannot use the access token from location: 192.0.2.1",
                CauseId::Prv14,
            ),
        ] {
            check_reason(&dns01, reason, &[expected]);
        }
        check_reason(&cloudflare(), "", &[]);
        check_reason(&cloudflare(), "words that nobody has seen", &[]);
        check_reason(&cloudflare(), "Waiting for DNS-01 challenge propagation: unauthorized", &[]);
        let presented = json!({"processing": true, "presented": true, "reason": "HTTP 403"});
        check(&case(&cloudflare(), &presented), &[]);
    }

    #[test]
    fn a_record_that_stays_is_a_right_that_is_missing() {
        let left = json!({"state": "valid", "processing": true, "presented": true, "reason": "HTTP 403 Forbidden"});
        check(&case(&cloudflare(), &left), &[CauseId::Prv15]);
        let gone = json!({"state": "valid", "reason": "HTTP 403 Forbidden"});
        check(&case(&cloudflare(), &gone), &[]);
    }

    #[test]
    fn a_solver_has_one_type() {
        let of = |solvers: Value| {
            with(|case| {
                let issuer = case.issuers[0].issuer.as_mut().unwrap();
                let acme = issuer.spec.acme.as_mut().unwrap();
                acme.solvers = serde_json::from_value(solvers).unwrap();
            })
        };
        check(&of(json!([{"http01": {"ingress": {}}, "dns01": cloudflare()}])), &[CauseId::Cfg05]);
        check(
            &of(json!([{"selector": {"dnsNames": ["a.example"]}}, {"http01": {"ingress": {}}}])),
            &[CauseId::Cfg05],
        );
        let found = judge(&of(json!([{"http01": {"ingress": {}}}, {"dns01": cloudflare()}])));
        assert!(found.is_empty(), "{found:?}");
    }
}
