//! PRV: refusals of DNS providers to make a record or to take it down: in a Challenge, in answers to this program, or from
//! before there was an order; and CFG-05, solvers that are two in one.

use super::public_name::is_of_registry;
use crate::diagnosis::case::Case;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, evidence_of_answer, stored};
use crate::diagnosis::words::facts;
use crate::diagnosis::words::foreign::host_and_port;
use crate::model::provider_refusal::{EarlyRefusal, ProviderFault, ProviderRefusal};
use crate::model::solver::Dns01Solver;

pub(super) const RULES: &[FaultRule] =
    &[provider_refuses, provider_refuses_now, provider_refused_before, solver_is_two_in_one];

/// Refusal, with its solver and its subject.
struct Refused<'a> {
    dns01: &'a Dns01Solver,
    refusal: &'a ProviderRefusal,
    /// Name that is to be proven, a wildcard with its `*.`.
    domain: &'a str,
    namespace: &'a str,
    is_taken_down: bool,
    /// Highest certainty that the refusal allows.
    grade: Grade,
    /// Whether the name itself has a zone below a registry's.
    has_zone: bool,
}

/// Reports whether the zone of a name, a wildcard with its `*.`, was found and is no registry's.
fn has_zone(case: &Case, domain: &str) -> bool {
    let bare = domain.trim_start_matches("*.");
    let zones = case.names.iter().filter(|name| name.name == bare).filter_map(|name| {
        let zone = &name.dns.as_ref()?.zone.as_ref()?.name;
        Some(zone.trim_end_matches('.'))
    });
    zones.into_iter().any(|zone| !is_of_registry(zone))
}

/// Finds refusals in Challenges: by this program's data beside the reason, else by the messages of others.
fn provider_refuses(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        for challenge in &of.challenges {
            let Some(dns01) = &challenge.spec.solver.dns01 else { continue };
            let status = &challenge.status;
            // Faults that keep the record from being put up, or from being taken down once the Challenge has ended.
            let is_taken_down =
                challenge.has_ended() || challenge.metadata.deletion_timestamp.is_some();
            let is_stuck = if is_taken_down { status.presented } else { !status.presented };
            if !is_stuck {
                continue;
            }
            let Some((refusal, is_data)) = facts::refusal(challenge) else { continue };
            let refused = Refused {
                dns01,
                refusal: &refusal,
                domain: &challenge.spec.shown_domain(),
                namespace: &challenge.metadata.namespace,
                is_taken_down,
                grade: if is_data { Grade::Certain } else { Grade::Likely },
                has_zone: has_zone(case, &challenge.spec.shown_domain()),
            };
            let reason = stored(
                format!("Challenge {}: status.reason", challenge.name()),
                case.at,
                &status.reason,
            );
            let shown = if is_data {
                vec![stored(describe_request(&refusal), case.at, refusal.answer()), reason]
            } else {
                vec![reason]
            };
            found.extend(refused.finding(shown));
        }
    }
}

/// Finds refusals in the providers' answers to this program. In a cluster, the network path and the address may be others.
fn provider_refuses_now(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.providers {
        let Some(refusal) = &of.refusal else { continue };
        let is_about_place =
            matches!(refusal.fault, ProviderFault::Unreachable | ProviderFault::AddressRefused);
        if case.in_cluster && is_about_place {
            continue;
        }
        let refused = Refused {
            dns01: &of.solver,
            refusal,
            domain: &of.domain,
            namespace: &of.issuer.name.namespace,
            is_taken_down: false,
            grade: Grade::Certain,
            has_zone: has_zone(case, &of.domain),
        };
        found.extend(refused.finding(vec![evidence_of_answer(
            describe_request(refusal),
            of.at,
            refusal.answer(),
        )]));
    }
}

/// Finds refusals from before an order, for which no order was made; the fault may have been mended since.
fn provider_refused_before(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let metadata = &of.certificate.metadata;
        let Some(before) = EarlyRefusal::read(&metadata.annotations) else { continue };
        let issuer = case.issuer(&before.issuer).and_then(|issuer| issuer.issuer.as_ref());
        let Some(issuer) = issuer.filter(|it| it.metadata.generation == before.generation) else {
            continue;
        };
        let acme = issuer.spec.acme.as_ref();
        let solver = acme.and_then(|acme| acme.solvers.get(before.solver)?.dns01.as_deref());
        let Some(dns01) = solver else { continue };
        // A read of a zone does not show who may change the zone.
        let is_seen_by_look = !matches!(
            before.refusal.fault,
            ProviderFault::Update
                | ProviderFault::NoUpdates
                | ProviderFault::Permission
                | ProviderFault::Other
        );
        let is_well = case.providers.iter().any(|one| {
            one.issuer == before.issuer && one.solver == *dns01 && one.refusal.is_none()
        });
        let is_taken = of.current_challenges().any(|challenge| challenge.status.presented);
        if is_taken || (is_well && is_seen_by_look) {
            continue;
        }
        let refused = Refused {
            dns01,
            refusal: &before.refusal,
            domain: &before.domain,
            namespace: &metadata.namespace,
            is_taken_down: false,
            grade: Grade::Likely,
            has_zone: has_zone(case, &before.domain),
        };
        let asked = format!("{}, before an order", describe_request(&before.refusal));
        found.extend(refused.finding(vec![stored(asked, before.at, before.refusal.answer())]));
    }
}

/// Describes the request that was refused, and its provider.
fn describe_request(refusal: &ProviderRefusal) -> String {
    format!("{}: {}", refusal.provider, refusal.call)
}

impl Refused<'_> {
    fn finding(&self, mut shown: Vec<Evidence>) -> Option<Finding> {
        if let Some(zone) = self.registry() {
            // Another rule reports a name that has no zone itself.
            let first = (self.has_zone && !shown.is_empty()).then(|| shown.remove(0))?;
            let answer = format!(
                "it leads to a name in the registry's zone {zone}: the domain of that name does not exist"
            );
            return Some(
                Finding::new(CauseId::D0109, self.grade, self.domain, first)
                    .shown_by(shown)
                    .with("DOMAIN", self.domain.trim_start_matches("*."))
                    .with("NAMESPACE", self.namespace)
                    .with("ANSWER", answer),
            );
        }
        let (cause, grade) = self.cause()?;
        let first = (!shown.is_empty()).then(|| shown.remove(0))?;
        let ProviderRefusal { provider, known, .. } = self.refusal;
        let at = first.at;
        let mut more = shown;
        if !known.is_empty() {
            more.push(stored(format!("{provider}: known names"), at, known.join(", ")));
        }
        if let Some(rfc2136) = &self.dns01.rfc2136 {
            let came = match rfc2136.tsig_key_name.as_str() {
                "" => "no key".to_owned(),
                key => format!("key {key}, {}", algorithm(&rfc2136.tsig_algorithm)),
            };
            let asked = format!("the solver for {} at {}", self.domain, rfc2136.nameserver);
            more.push(stored(asked, at, came));
        }
        let mut finding = Finding::new(cause, grade.max(self.grade), self.domain, first)
            .shown_by(more)
            .with("DOMAIN", self.domain.trim_start_matches("*."))
            .with("PROVIDER", provider)
            .with("ANSWER", self.refusal.answer())
            .with("MEANS", self.means())
            .with("NAMESPACE", self.namespace);
        if let Some(rfc2136) = &self.dns01.rfc2136 {
            let (host, port) = host_and_port(&rfc2136.nameserver);
            finding = finding
                .with("NAMESERVER", format!("{host}:{port}"))
                .with("HOST", host.trim_matches(['[', ']']))
                .with("PORT", port);
            if !rfc2136.tsig_key_name.is_empty() {
                finding = finding.with("KEYNAME", &rfc2136.tsig_key_name);
            }
        }
        Some(finding)
    }

    /// Returns the zone that the provider was to change, if the zone is a registry's and no key is to blame.
    fn registry(&self) -> Option<&str> {
        let zone = self.refusal.zone.trim_end_matches('.');
        let is_of_zone = matches!(
            self.refusal.fault,
            ProviderFault::Update
                | ProviderFault::Permission
                | ProviderFault::Credentials
                | ProviderFault::NoUpdates
                | ProviderFault::NoZone
        );
        (is_of_zone && is_of_registry(zone)).then_some(zone)
    }

    /// Returns the cause that a refusal shows.
    fn cause(&self) -> Option<(CauseId, Grade)> {
        use ProviderFault as F;
        let dns01 = self.dns01;
        let is_update = dns01.rfc2136.is_some();
        let own = [
            (CauseId::Prv02, dns01.cloudflare.is_some()),
            (CauseId::Prv03, dns01.route53.is_some()),
            (CauseId::Prv05, dns01.azure_dns.is_some()),
            (CauseId::Prv06, dns01.cloud_dns.is_some()),
            (CauseId::Prv07, is_update),
            (CauseId::Prv13, dns01.acme_dns.is_some()),
        ];
        let own = own.iter().find(|(_, is)| *is).map(|(cause, _)| *cause);
        Some(match self.refusal.fault {
            // The credentials were enough to make the record.
            F::Credentials | F::Permission | F::Update if self.is_taken_down => {
                (CauseId::Prv15, Grade::Likely)
            }
            F::NotRegistered => (CauseId::Prv13, Grade::Certain),
            F::Update if is_update => (CauseId::Prv07, Grade::Certain),
            F::NoUpdates => (CauseId::Prv17, Grade::Certain),
            F::Busy => (CauseId::Prv12, Grade::Certain),
            F::AddressRefused => (CauseId::Prv14, Grade::Certain),
            // A name server is no API.
            F::Unreachable if is_update => (CauseId::Dns04, Grade::Likely),
            F::Unreachable => (CauseId::Prv14, Grade::Likely),
            F::Credentials | F::Permission | F::NoZone => {
                (own.unwrap_or(CauseId::Prv16), Grade::Certain)
            }
            F::Update | F::Other => return None,
        })
    }

    /// Explains the code of a refused update.
    fn means(&self) -> String {
        let Some(rfc2136) = self.dns01.rfc2136.as_ref() else { return String::new() };
        let key = &rfc2136.tsig_key_name;
        let (said, zone) = (self.refusal.answer(), self.refusal.zone.trim_end_matches('.'));
        let of_zone = if zone.is_empty() { String::new() } else { format!(" of {zone}") };
        let has = |word: &str| said.contains(word);
        if has("BADKEY") {
            format!(": it knows no key {key} of that algorithm")
        } else if has("BADSIG") {
            format!(": the key {key} has another secret there, or another algorithm")
        } else if has("BADTIME") {
            ": its clock and the clock here are more than five minutes apart".to_owned()
        } else if has("NOTZONE") {
            format!(": the record is not in the zone that was named{of_zone}")
        } else if has("REFUSED") && self.refusal.is_unsigned {
            format!(
                ": it knows no such key, or the key {key} has another secret or algorithm there, or it takes no updates from here"
            )
        } else if has("REFUSED") && key.is_empty() {
            ": it takes no update that is not signed".to_owned()
        } else if has("REFUSED") {
            format!(": the key {key} may not change that record{of_zone}, or the zone is not there")
        } else if has("NOTAUTH") {
            format!(": it is not the primary server{of_zone}, or does not accept the key {key}")
        } else {
            String::new()
        }
    }
}

/// Returns the algorithm of a solver; cert-manager's default if the solver names none.
fn algorithm(named: &str) -> &str {
    if named.is_empty() { "HMACMD5" } else { named }
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
    use crate::diagnosis::case::dns::DnsCase;
    use crate::diagnosis::case::issuer::ProviderCase;
    use crate::model::cause::{About, Cause};
    use crate::model::memory::{Holder, Memory};
    use crate::model::zone_look::ZoneState;

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
            // Whoever is asked for the zone comes before whoever takes the update.
            (
                rfc2136.clone(),
                "dial tcp 198.51.100.77:53: connect: no route to host",
                CauseId::D0115,
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

    /// A Challenge whose reason this program wrote, with what it knows of it.
    fn kept(dns01: &Value, status: &Value, refusal: ProviderRefusal) -> Case {
        let mut case = case(dns01, status);
        let challenge = &mut case.certificates[0].challenges[0];
        let cause = Some(About::new(&challenge.status.reason, Cause::Provider(Box::new(refusal))));
        let memory = Memory { cause, ..Memory::default() };
        memory.write(Holder::Challenge, &mut challenge.metadata.annotations);
        case
    }

    fn refusal(fault: ProviderFault) -> ProviderRefusal {
        ProviderRefusal::new(fault, "POST /records", "no words that anybody knows")
    }

    #[test]
    fn what_a_provider_refused_is_known_without_its_words() {
        use ProviderFault as Fault;
        let status = json!({"processing": true, "reason": "no words that anybody knows"});
        for (fault, expected) in [
            (Fault::Credentials, CauseId::Prv02),
            (Fault::Permission, CauseId::Prv02),
            (Fault::NoZone, CauseId::Prv02),
            (Fault::Busy, CauseId::Prv12),
            (Fault::AddressRefused, CauseId::Prv14),
            (Fault::Unreachable, CauseId::Prv14),
        ] {
            check(&kept(&cloudflare(), &status, refusal(fault)), &[expected]);
        }
        check(&kept(&cloudflare(), &status, refusal(Fault::Other)), &[]);
        let rfc2136 = json!({"rfc2136": {"nameserver": "192.0.2.53"}});
        check(&kept(&rfc2136, &status, refusal(Fault::Update)), &[CauseId::Prv07]);
        // An alias leads to a domain that is gone: the zone above that is nobody's to change.
        for (zone, found) in
            [("net.", CauseId::D0109), ("co.uk.", CauseId::D0109), ("example.net.", CauseId::Prv07)]
        {
            let refusal = ProviderRefusal { zone: zone.to_owned(), ..refusal(Fault::Update) };
            let mut of_zone = kept(&rfc2136, &status, refusal);
            let mut name = super::super::tests::name("www.example.com", None);
            let own = ZoneState { name: "example.com.".to_owned(), ..ZoneState::default() };
            name.dns = Some(DnsCase { zone: Some(own), ..DnsCase::default() });
            of_zone.names = vec![name];
            let causes: Vec<CauseId> = judge(&of_zone).iter().map(|it| it.cause).collect();
            let of_provider = [CauseId::Prv07, CauseId::D0109];
            let causes: Vec<_> = causes.iter().filter(|it| of_provider.contains(it)).collect();
            assert_eq!(causes, [&found], "{zone}");
        }
        let ocean = json!({"digitalocean": {"tokenSecretRef": selector()}});
        check(&kept(&ocean, &status, refusal(Fault::Credentials)), &[CauseId::Prv16]);
        // Words that would mean something else do not count beside it.
        let words = json!({"processing": true, "reason": "HTTP 503: service unavailable"});
        check(&kept(&cloudflare(), &words, refusal(Fault::Permission)), &[CauseId::Prv02]);
    }

    #[test]
    fn a_record_that_stays_is_known_although_the_reason_tells_of_success() {
        let valid = json!({"state": "valid", "presented": true, "reason": "Successfully authorized domain"});
        let left = kept(&cloudflare(), &valid, refusal(ProviderFault::Permission));
        check(&left, &[CauseId::Prv15]);
    }

    #[test]
    fn what_a_provider_says_when_it_is_asked_counts_where_it_is_asked_from_the_same_place() {
        let asked = |in_cluster: bool, fault: ProviderFault| {
            let mut case = case(&cloudflare(), &json!({}));
            case.certificates[0].challenges.clear();
            case.in_cluster = in_cluster;
            case.providers = vec![ProviderCase {
                issuer: case.issuers[0].key.clone(),
                solver: serde_json::from_value(cloudflare()).unwrap(),
                domain: "www.example.com".to_owned(),
                at: case.at,
                refusal: Some(refusal(fault)),
            }];
            judge(&case).iter().map(|finding| finding.cause).collect::<Vec<_>>()
        };
        let is_named = |in_cluster, fault, cause| asked(in_cluster, fault).contains(&cause);
        assert!(is_named(false, ProviderFault::Credentials, CauseId::Prv02));
        assert!(is_named(true, ProviderFault::Credentials, CauseId::Prv02));
        assert!(is_named(false, ProviderFault::Unreachable, CauseId::Prv14));
        assert!(!is_named(true, ProviderFault::Unreachable, CauseId::Prv14));
    }

    #[test]
    fn what_was_refused_before_an_order_counts_until_the_issuer_changes_or_a_look_shows_better() {
        let before = |fault: ProviderFault, generation: i64, is_well: bool| {
            let mut case = case(&cloudflare(), &json!({}));
            case.certificates[0].challenges.clear();
            let issuer = case.issuers[0].issuer.as_mut().unwrap();
            issuer.metadata.generation = Some(2);
            let solver: Dns01Solver = serde_json::from_value(cloudflare()).unwrap();
            issuer.spec.acme.as_mut().unwrap().solvers =
                serde_json::from_value(json!([{"dns01": cloudflare()}])).unwrap();
            let key = case.issuers[0].key.clone();
            let kept = EarlyRefusal {
                at: case.at,
                issuer: key.clone(),
                generation: Some(generation),
                solver: 0,
                domain: "www.example.com".to_owned(),
                refusal: refusal(fault),
            };
            let annotations = &mut case.certificates[0].certificate.metadata.annotations;
            EarlyRefusal::write(Some(&kept), annotations);
            let domain = "www.example.com".to_owned();
            let well = ProviderCase { issuer: key, solver, domain, at: case.at, refusal: None };
            case.providers = is_well.then_some(well).into_iter().collect();
            judge(&case).iter().any(|finding| finding.cause == CauseId::Prv02)
        };
        assert!(before(ProviderFault::Credentials, 2, false));
        assert!(!before(ProviderFault::Credentials, 1, false));
        assert!(!before(ProviderFault::Credentials, 2, true));
        assert!(before(ProviderFault::Permission, 2, true));
    }

    #[test]
    fn a_name_server_is_written_with_its_port_once() {
        for (nameserver, shown, host, port) in [
            ("127.0.0.1:53", "127.0.0.1:53", "127.0.0.1", "53"),
            ("127.0.0.1:5353", "127.0.0.1:5353", "127.0.0.1", "5353"),
            ("ns.example.com", "ns.example.com:53", "ns.example.com", "53"),
            ("[2001:db8::1]:53", "[2001:db8::1]:53", "2001:db8::1", "53"),
        ] {
            let dns01 = json!({"rfc2136": {"nameserver": nameserver}});
            let reason = "DNS update failed. Server replied: REFUSED";
            let found = judge(&case(&dns01, &json!({"processing": true, "reason": reason})));
            let fact = |name: &str| found[0].facts[name].as_str();
            assert_eq!((fact("NAMESERVER"), fact("HOST"), fact("PORT")), (shown, host, port));
        }
    }

    #[test]
    fn a_server_that_takes_no_updates_is_no_matter_of_keys() {
        let rfc2136 = json!({"rfc2136": {"nameserver": "192.0.2.53"}});
        let status = json!({"processing": true, "reason": "no words that anybody knows"});
        check(&kept(&rfc2136, &status, refusal(ProviderFault::NoUpdates)), &[CauseId::Prv17]);
        let keyed = json!({"rfc2136": {"nameserver": "192.0.2.53", "tsigKeyName": "k"}});
        let mut unsigned = refusal(ProviderFault::Update);
        unsigned.code = "REFUSED".to_owned();
        for (is_unsigned, means) in [(true, "another secret"), (false, "may not change")] {
            let refusal = ProviderRefusal { is_unsigned, ..unsigned.clone() };
            let found = judge(&kept(&keyed, &status, refusal));
            assert!(found[0].facts["MEANS"].contains(means), "{found:#?}");
        }
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
