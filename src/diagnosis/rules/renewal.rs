//! HYG and ORD: certificates that exist, and are not the served ones, not as asked for, or not lasting.

use jiff::{SignedDuration, Timestamp};

use crate::diagnosis::case::authority::{
    CertificateIdentity, IngressSecretCase, ServedCase, StoredCertificateCase,
};
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::{Case, CertificateCase, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, evidence_of_answer, stored};
use crate::model::common::is_true;
use crate::model::issuer::first_offered;

pub(super) const RULES: &[FaultRule] = &[
    another_certificate_is_served,
    ingress_names_another_secret,
    preferred_chain_is_absent,
    authority_wants_it_renewed,
    issuer_annotations_differ,
    revoked_certificate_is_kept,
    margin_is_too_small,
    renewal_begins_at_once,
    renewal_is_overdue,
];

/// Divisor of a lifetime: a pause of less than this part of the lifetime is no pause between two renewals.
const MIN_PAUSE_DIVISOR: i32 = 50;
/// Divisor of a lifetime: this part has to be left for a renewal that fails and is tried again.
const MIN_MARGIN_DIVISOR: i32 = 10;
/// Maximum delay of a renewal: a controller checks again at once, and may be restarted meanwhile.
const OVERDUE_AFTER: SignedDuration = SignedDuration::from_hours(1);

fn stored_certificates(
    case: &Case,
) -> impl Iterator<Item = (&CertificateCase, &StoredCertificateCase)> {
    case.certificates.iter().filter_map(|of| Some((of, of.kept.as_ref()?)))
}

fn about(of: &CertificateCase, cause: CauseId, grade: Grade, shown: Evidence) -> Finding {
    let name = of.certificate.name();
    Finding::new(cause, grade, format!("Certificate {name}"), shown)
        .with("NAME", &name.name)
        .with("NAMESPACE", &name.namespace)
        .with("SECRET", &of.certificate.spec.secret_name)
}

fn describe(certificate: &CertificateIdentity) -> String {
    let CertificateIdentity { serial, issuer, common_name, not_after, .. } = certificate;
    let of = match common_name.as_str() {
        "" => String::new(),
        name => format!(" of {name}"),
    };
    format!("serial {serial}{of}, signed by {issuer:?}, until {not_after}")
}

/// ORD-12.
fn another_certificate_is_served(case: &Case, found: &mut Vec<Finding>) {
    for (of, kept) in stored_certificates(case).filter(|(of, _)| of.due.is_none()) {
        for served in &kept.served {
            let Some(grade) = difference(case, kept, served) else { continue };
            let asked = format!("TLS handshake with {} at {}", served.name, served.address);
            let shown = evidence_of_answer(asked, served.at, describe(&served.certificate));
            let secret = format!("Secret {}: tls.crt", of.certificate.spec.secret_name);
            found.push(
                about(of, CauseId::Ord12, grade, shown)
                    .shown_by([stored(secret, case.at, describe(&kept.certificate))])
                    .with("DOMAIN", &served.name)
                    .with(
                        "DETAIL",
                        format!(
                            "{} presents another one: {}, not {}",
                            served.address.ip(),
                            served.certificate.serial,
                            kept.certificate.serial
                        ),
                    ),
            );
        }
    }
}

/// ORD-12: an Ingress names a Secret for the name that cannot serve the name, and no Certificate writes the Secret.
fn ingress_names_another_secret(case: &Case, found: &mut Vec<Finding>) {
    for (of, kept) in stored_certificates(case).filter(|(of, _)| of.due.is_none()) {
        for other in &kept.other_secrets {
            let lacks = match &other.certificate {
                None if !other.is_there => "which does not exist".to_owned(),
                None => "which holds no certificate".to_owned(),
                Some(it) if it.not_after <= case.at => {
                    format!("whose certificate has expired at {}", it.not_after)
                }
                Some(it) if !it.names.iter().any(|name| covers(name, &other.host)) => {
                    format!("whose certificate is for {}", it.names.join(", "))
                }
                Some(_) => continue,
            };
            let IngressSecretCase { ingress, host, secret, .. } = other;
            let namespace = &ingress.namespace;
            let asked = format!("Ingress {ingress}: spec.tls for {host}");
            let shown = stored(asked, case.at, format!("secretName: {secret}, {lacks}"));
            let detail = format!("Ingress {ingress} names Secret {namespace}/{secret}, {lacks}");
            found.push(
                about(of, CauseId::Ord12, Grade::Certain, shown)
                    .with("DOMAIN", host)
                    .with("DETAIL", detail),
            );
        }
    }
}

/// Returns how surely a served certificate that differs from the stored one is a fault; `None` if it is no fault.
fn difference(case: &Case, kept: &StoredCertificateCase, served: &ServedCase) -> Option<Grade> {
    let (own, other) = (&kept.certificate, &served.certificate);
    if own.serial == other.serial && own.issuer == other.issuer {
        return None;
    }
    let is_for_it = other.names.iter().any(|name| covers(name, &served.name));
    let is_over = other.not_after <= case.at;
    let is_default = other.issuer == other.common_name;
    // A certificate that is good for the name may be a CDN's, or that of another Certificate for the name.
    let is_older = other.issuer == own.issuer && other.not_before < own.not_before;
    if served.is_elsewhere && is_for_it && !is_over && !is_older {
        return None;
    }
    // A certificate that was proven by a record may be for another port, or another program.
    let is_its_own = is_older || other.has_kept_key || (is_for_it && is_over);
    if served.is_meant == Some(false) && !is_its_own {
        return None;
    }
    Some(if !is_for_it || is_over || is_default || is_older {
        Grade::Certain
    } else {
        Grade::Possible
    })
}

/// Reports whether a name in a certificate covers a name (RFC 9525 §6.3).
fn covers(name: &str, asked: &str) -> bool {
    let below = |rest: &str| {
        asked.split_once('.').is_some_and(|(_, above)| above.eq_ignore_ascii_case(rest))
    };
    name.eq_ignore_ascii_case(asked) || name.strip_prefix("*.").is_some_and(below)
}

/// ORD-13.
fn preferred_chain_is_absent(case: &Case, found: &mut Vec<Finding>) {
    for (of, kept) in stored_certificates(case).filter(|(of, _)| of.due.is_none()) {
        let Some(issuer) = issuer_key(&of.certificate).and_then(|key| case.issuer(&key)) else {
            continue;
        };
        let Some(acme) = issuer.issuer.as_ref().and_then(|issuer| issuer.spec.acme.as_ref()) else {
            continue;
        };
        let preferred = &acme.preferred_chain;
        let is_chosen = first_offered(preferred, |name| name == kept.top_issuer).is_some();
        if preferred.is_empty() || kept.top_issuer.is_empty() || is_chosen {
            continue;
        }
        let shown = stored(
            format!("Secret {}: last issuer of tls.crt", of.certificate.spec.secret_name),
            case.at,
            &kept.top_issuer,
        );
        let wanted =
            stored(format!("{}: spec.acme.preferredChain", issuer.key), case.at, preferred);
        found.push(
            about(of, CauseId::Ord13, Grade::Certain, shown)
                .shown_by([wanted])
                .with("CHAIN", preferred)
                .with("OTHER", &kept.top_issuer),
        );
    }
}

/// HYG-05.
fn authority_wants_it_renewed(case: &Case, found: &mut Vec<Finding>) {
    for (of, kept) in stored_certificates(case) {
        let Some(renewal) = kept.renewal.as_ref().filter(|renewal| renewal.end <= case.at) else {
            continue;
        };
        let page = match renewal.explanation.as_str() {
            "" => String::new(),
            page => format!(", see {page}"),
        };
        let came = format!("to be renewed between {} and {}{page}", renewal.start, renewal.end);
        let shown = evidence_of_answer(format!("GET {}", renewal.url), renewal.at, came);
        found.push(
            about(of, CauseId::Hyg05, Grade::Certain, shown)
                .with("UNTIL", renewal.end.to_string())
                .with("PAGE", &renewal.explanation),
        );
    }
}

/// HYG-07.
fn issuer_annotations_differ(case: &Case, found: &mut Vec<Finding>) {
    for (of, kept) in stored_certificates(case).filter(|_| case.in_cluster) {
        let Some(named) = &kept.other_issuer else { continue };
        let spec = &of.certificate.spec;
        let wanted = &spec.issuer_ref;
        let wanted = format!("{} {}", wanted.effective_kind(), wanted.name);
        let shown = stored(format!("Secret {}", spec.secret_name), case.at, named);
        let asked = format!("Certificate {}: spec.issuerRef", of.certificate.name());
        found.push(
            about(of, CauseId::Hyg07, Grade::Certain, shown)
                .shown_by([stored(asked, case.at, &wanted)])
                .with("ISSUER", wanted),
        );
    }
}

/// HYG-08.
fn revoked_certificate_is_kept(case: &Case, found: &mut Vec<Finding>) {
    for (of, kept) in stored_certificates(case) {
        let Some(at) = kept.revoked_at else { continue };
        let secret = format!("Secret {}: tls.crt", of.certificate.spec.secret_name);
        let shown = stored(secret, case.at, describe(&kept.certificate));
        found.push(
            about(of, CauseId::Hyg08, Grade::Certain, shown)
                .with("SINCE", at.to_string())
                .with("SERIAL", &kept.certificate.serial),
        );
    }
}

/// HYG-06.
fn margin_is_too_small(case: &Case, found: &mut Vec<Finding>) {
    for (of, kept) in stored_certificates(case).filter(|(of, _)| of.due.is_none()) {
        let CertificateIdentity { not_before, not_after, .. } = kept.certificate;
        let life = not_after.duration_since(not_before);
        let Some(at) = of.certificate.status.renewal_time else { continue };
        let margin = not_after.duration_since(at.timestamp());
        let given = of.certificate.spec.renew_before.map(|before| before.0);
        let is_ignored = given.is_some_and(|before| before >= life);
        let is_late = margin < life / MIN_MARGIN_DIVISOR;
        if !(is_ignored || is_late) {
            continue;
        }
        let why = if is_late {
            format!("{margin:#} are left of a life of {life:#}")
        } else {
            let before = given.unwrap_or_default();
            format!("its renewBefore of {before:#} is not used, because its life is {life:#}")
        };
        let written = given.map_or_else(String::new, |before| format!(", renewBefore {before:#}"));
        let came = format!("a life of {life:#}, renewed {margin:#} before its end{written}");
        let shown = stored(format!("Certificate {}", of.certificate.name()), case.at, came);
        let grade = if is_late { Grade::Likely } else { Grade::Possible };
        found.push(about(of, CauseId::Hyg06, grade, shown).with("WHY", why));
    }
}

/// HYG-09.
fn renewal_begins_at_once(case: &Case, found: &mut Vec<Finding>) {
    for (of, kept) in stored_certificates(case) {
        let CertificateIdentity { not_before, not_after, .. } = kept.certificate;
        let life = not_after.duration_since(not_before);
        let spec = &of.certificate.spec;
        let share = spec.renew_before_percentage.map(|percent| life * percent / 100);
        let Some(before) = spec.renew_before.map(|before| before.0).or(share) else { continue };
        let pause = life - before;
        // cert-manager does not use a longer renewBefore.
        if before >= life || pause > life / MIN_PAUSE_DIVISOR {
            continue;
        }
        let came = format!("a life of {life:#}, renewed {before:#} before its end");
        let shown = stored(format!("Certificate {}", of.certificate.name()), case.at, came);
        let why = format!("each lives {life:#}, and is due {pause:#} after it begins");
        found.push(about(of, CauseId::Hyg09, Grade::Certain, shown).with("WHY", why));
    }
}

/// HYG-06: a Certificate is Ready, and its renewal should have begun: the controller does not check the Certificate.
fn renewal_is_overdue(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        let status = &of.certificate.status;
        if is_true(&status.conditions, "Issuing") || !is_true(&status.conditions, "Ready") {
            continue;
        }
        let Some(since) = overdue_since(of, case.at) else { continue };
        // CTL-01 reports a controller that is known not to work.
        if case.driver == DriverCase::Nobody && case.in_cluster {
            continue;
        }
        let end = status.not_after.map(|at| format!(", notAfter {at}")).unwrap_or_default();
        let came = format!("Ready, renewalTime {since}{end}");
        let shown = stored(format!("Certificate {}: status", of.certificate.name()), case.at, came);
        found.push(
            about(of, CauseId::Hyg06, Grade::Likely, shown)
                .with("WHY", format!("it was due at {since}, and no controller has begun it")),
        );
    }
}

/// Returns since when a renewal is overdue.
fn overdue_since(of: &CertificateCase, now: Timestamp) -> Option<Timestamp> {
    let status = &of.certificate.status;
    let from = status.renewal_time.or(status.not_after)?.timestamp();
    (now.duration_since(from) > OVERDUE_AFTER).then_some(from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::judge;
    use super::super::tests::{check, with};
    use super::*;
    use crate::diagnosis::case::authority::RenewalCase;
    use crate::model::ObjectName;

    /// A Certificate that is Ready, issued ten days ago for 90 days, and renewed after 60.
    fn case(change: impl FnOnce(&mut CertificateCase, &mut StoredCertificateCase)) -> Case {
        with(|case| {
            let at = |text: &str| text.parse::<Timestamp>().unwrap();
            let of = &mut case.certificates[0];
            of.due = None;
            of.certificate.status = serde_json::from_value(json!({
                "conditions": [{"type": "Ready", "status": "True"}],
                "renewalTime": "2027-01-13T22:00:00Z",
            }))
            .unwrap();
            let mut kept = StoredCertificateCase {
                certificate: CertificateIdentity {
                    serial: "01".into(),
                    issuer: "CA 1".into(),
                    names: vec!["www.example.com".into()],
                    not_before: at("2026-11-14T22:00:00Z"),
                    not_after: at("2027-02-12T22:00:00Z"),
                    has_kept_key: true,
                    ..CertificateIdentity::default()
                },
                top_issuer: "Root 1".into(),
                ..StoredCertificateCase::default()
            };
            change(of, &mut kept);
            of.kept = Some(kept);
            case.names.clear();
        })
    }

    fn served(change: impl FnOnce(&mut CertificateIdentity)) -> Case {
        case(|_, kept| {
            let mut certificate = kept.certificate.clone();
            change(&mut certificate);
            kept.served.push(ServedCase {
                name: "www.example.com".into(),
                address: "192.0.2.1:443".parse().unwrap(),
                is_elsewhere: false,
                is_meant: None,
                at: "2026-11-24T22:00:00Z".parse().unwrap(),
                certificate,
            });
        })
    }

    #[test]
    fn what_is_served_is_compared_with_what_is_kept() {
        check(&served(|_| ()), &[]);
        let fake = served(|it| {
            it.serial = "02".into();
            it.issuer = "Kubernetes Ingress Controller Fake Certificate".into();
            it.common_name.clone_from(&it.issuer);
            it.names = vec!["ingress.local".into()];
        });
        check(&fake, &[CauseId::Ord12]);
        let older = served(|it| {
            it.serial = "00".into();
            it.not_before = "2026-09-14T22:00:00Z".parse().unwrap();
        });
        assert_eq!(judge(&older)[0].grade, Grade::Certain);
        // In front of another machine may stand somebody who has a certificate of its own, such as a CDN.
        let in_front = |not_after: &str| {
            let mut case = served(|it| {
                (it.serial, it.issuer) = ("0f".into(), "Edge CA".into());
                it.not_after = not_after.parse().unwrap();
            });
            case.certificates[0].kept.as_mut().unwrap().served[0].is_elsewhere = true;
            case
        };
        check(&in_front("2027-01-24T22:00:00Z"), &[]);
        check(&in_front("2026-11-01T22:00:00Z"), &[CauseId::Ord12]);
        // What was proven by a record may be for mail, and the site has a certificate of its own.
        let of_mail = |serial: &str, issuer: &str| {
            let mut case = served(|it| {
                (it.serial, it.issuer) = (serial.into(), issuer.into());
                it.has_kept_key = false;
                it.not_before = "2026-09-14T22:00:00Z".parse().unwrap();
            });
            case.certificates[0].kept.as_mut().unwrap().served[0].is_meant = Some(false);
            case
        };
        check(&of_mail("0f", "Another CA"), &[]);
        check(&of_mail("00", "CA 1"), &[CauseId::Ord12]);
        let of_a_cdn = served(|it| {
            it.serial = "03".into();
            it.issuer = "CA of a CDN".into();
            it.names = vec!["*.example.com".into()];
        });
        assert_eq!(judge(&of_a_cdn)[0].grade, Grade::Possible);
    }

    #[test]
    fn an_ingress_that_names_another_secret_is_told_of() {
        let named = |is_there: bool, certificate: Option<(&str, &str)>| {
            case(|_, kept| {
                let certificate = certificate.map(|(name, not_after)| CertificateIdentity {
                    names: vec![name.into()],
                    not_after: not_after.parse().unwrap(),
                    ..kept.certificate.clone()
                });
                kept.other_secrets.push(IngressSecretCase {
                    ingress: ObjectName::new("web", "shop"),
                    host: "www.example.com".into(),
                    secret: "old".into(),
                    is_there,
                    certificate,
                });
            })
        };
        let detail = |case: &Case| judge(case)[0].facts["DETAIL"].clone();
        let missing = named(false, None);
        check(&missing, &[CauseId::Ord12]);
        assert_eq!(detail(&missing), "Ingress web/shop names Secret web/old, which does not exist");
        assert!(detail(&named(true, None)).ends_with("which holds no certificate"));
        let later = "2027-01-01T00:00:00Z";
        let other = named(true, Some(("a.example.com", later)));
        assert!(detail(&other).ends_with("whose certificate is for a.example.com"));
        let over = named(true, Some(("www.example.com", "2026-11-01T00:00:00Z")));
        assert!(detail(&over).contains("has expired at 2026-11-01"));
        // Somebody may well have put a certificate there that nothing here writes.
        check(&named(true, Some(("*.example.com", later))), &[]);
    }

    #[test]
    fn a_wildcard_is_for_one_label() {
        assert!(covers("*.example.com", "www.example.com") && covers("A.example", "a.example"));
        assert!(
            !covers("*.example.com", "a.b.example.com") && !covers("*.example.com", "example.com")
        );
    }

    #[test]
    fn a_chain_that_was_preferred_and_is_not_there_is_told() {
        let of = |chain: &str| {
            let mut case = case(|_, _| ());
            let issuer = case.issuers[0].issuer.as_mut().unwrap();
            issuer.spec.acme.as_mut().unwrap().preferred_chain = chain.into();
            case
        };
        check(&of("Root 2"), &[CauseId::Ord13]);
        check(&of("Root 1"), &[]);
        check(&of(""), &[]);
    }

    #[test]
    fn a_window_that_is_over_is_not_missed() {
        let until = |end: &str| {
            case(|_, kept| {
                kept.renewal = Some(RenewalCase {
                    url: "https://ca.example/ari/1".into(),
                    at: "2026-11-24T22:00:00Z".parse().unwrap(),
                    start: "2026-11-20T22:00:00Z".parse().unwrap(),
                    end: end.parse().unwrap(),
                    explanation: "https://ca.example/why".into(),
                });
            })
        };
        check(&until("2026-11-22T22:00:00Z"), &[CauseId::Hyg05]);
        check(&until("2026-11-26T22:00:00Z"), &[]);
    }

    #[test]
    fn what_this_program_had_revoked_is_not_good() {
        let revoked = case(|_, kept| kept.revoked_at = "2026-11-24T22:00:00Z".parse().ok());
        check(&revoked, &[CauseId::Hyg08]);
    }

    #[test]
    fn a_secret_whose_annotations_name_another_issuer_is_told_in_a_cluster() {
        let at = |in_cluster| {
            let mut case = case(|_, kept| kept.other_issuer = Some("no annotations".into()));
            case.in_cluster = in_cluster;
            judge(&case).iter().any(|finding| finding.cause == CauseId::Hyg07)
        };
        assert_eq!((at(true), at(false)), (true, false));
    }

    #[test]
    fn a_renewal_that_is_due_at_once_is_told() {
        let before = |hours: &str| {
            case(|of, _| {
                of.certificate.spec.renew_before =
                    Some(serde_json::from_value(json!(hours)).unwrap());
            })
        };
        let has = |case: &Case| judge(case).iter().any(|finding| finding.cause == CauseId::Hyg09);
        let life = {
            let case = case(|_, _| ());
            let kept = case.certificates[0].kept.as_ref().unwrap();
            kept.certificate.not_after.duration_since(kept.certificate.not_before).as_hours()
        };
        assert!(has(&before(&format!("{}h", life - 1))));
        assert!(
            !has(&before(&format!("{}h", life / 3))) && !has(&before(&format!("{}h", life + 1)))
        );
    }

    #[test]
    fn a_renewal_that_comes_late_or_never_begins_is_told() {
        let at = |renewal: &str| {
            case(|of, _| {
                of.certificate.status.renewal_time =
                    Some(serde_json::from_value(json!(renewal)).unwrap());
            })
        };
        check(&at("2027-01-13T22:00:00Z"), &[]);
        check(&at("2027-02-12T20:00:00Z"), &[CauseId::Hyg06]);
        check(&at("2026-11-24T12:00:00Z"), &[CauseId::Hyg06]);
        check(&at("2026-11-24T21:30:00Z"), &[]);
        let longer = case(|of, _| {
            of.certificate.spec.renew_before =
                Some(serde_json::from_value(json!("3000h")).unwrap());
        });
        let found = judge(&longer);
        assert_eq!((found[0].cause, found[0].grade), (CauseId::Hyg06, Grade::Possible));
    }
}
