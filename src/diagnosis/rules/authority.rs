//! ENV, LIM and ORD: the CA's server, the network path to it, and the CA's state of orders.

use jiff::SignedDuration;

use crate::diagnosis::case::authority::{AuthorityCase, ReachOutcome};
use crate::diagnosis::case::issuer::{DirectoryAnswer, DirectoryCase, IssuerCase};
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, evidence_of_answer, stored};
use crate::diagnosis::words::{facts, foreign};
use crate::model::State;
use crate::model::acme_server::AcmeServer;
use crate::model::cause::OrderWait;
use crate::model::common::condition;
use crate::model::observation::PlainAnswer;

pub(super) const RULES: &[FaultRule] = &[
    clocks_are_apart,
    name_leads_to_ourselves,
    authority_calls_itself_otherwise,
    signed_url_is_refused,
    one_family_is_lost,
    page_answers_in_its_place,
    authorization_is_over,
    order_has_no_challenges,
];

/// Differences between clocks: tolerated up to the first; above the second, checks that depend on clocks fail.
const CLOCK_SKEW_MAX: SignedDuration = SignedDuration::from_secs(60);
const CLOCK_SKEW_FATAL: SignedDuration = SignedDuration::from_mins(5);
/// Maximum time that a controller takes to make the first order.
const FIRST_ORDER_MAX: SignedDuration = SignedDuration::from_mins(2);

/// Returns the issuers whose CA was asked for more than its directory.
fn probed_authorities(
    case: &Case,
) -> impl Iterator<Item = (&IssuerCase, &DirectoryCase, &AuthorityCase)> {
    case.issuers.iter().filter_map(|of| Some((of, of.directory.as_ref()?, of.authority.as_ref()?)))
}

fn answering_authorities(
    case: &Case,
) -> impl Iterator<Item = (&IssuerCase, &DirectoryCase, &PlainAnswer)> {
    probed_authorities(case)
        .filter_map(|(of, directory, it)| Some((of, directory, it.answer.as_ref()?)))
}

/// Builds a finding about an issuer.
fn about(of: &IssuerCase, url: &str, cause: CauseId, grade: Grade, shown: Evidence) -> Finding {
    Finding::new(cause, grade, of.key.to_string(), shown)
        .with("ISSUER", of.key.to_string())
        .with("URL", url)
        .with("SERVER", url)
}

/// Returns the host of a URL, without the port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

/// ENV-01.
fn clocks_are_apart(case: &Case, found: &mut Vec<Finding>) {
    for (of, directory, answer) in answering_authorities(case) {
        let Some(date) = answer.date else { continue };
        let (apart, word) = match date.duration_since(answer.came) {
            ahead if ahead.is_positive() => (ahead, "behind"),
            behind => (behind.abs(), "ahead of"),
        };
        if apart <= CLOCK_SKEW_MAX {
            continue;
        }
        let grade = if apart > CLOCK_SKEW_FATAL { Grade::Certain } else { Grade::Possible };
        let shown = evidence_of_answer(
            format!("GET {}: Date", directory.url),
            directory.at,
            date.to_string(),
        );
        let own = stored("clock of this machine", directory.at, answer.came.to_string());
        found.push(
            about(of, &directory.url, CauseId::Env01, grade, shown)
                .shown_by([own])
                .with("OFFSET", round_offset(apart))
                .with("WORD", word),
        );
    }
}

/// Returns the difference between clocks as text, rounded to a useful precision.
fn round_offset(apart: SignedDuration) -> String {
    match apart.as_secs() {
        seconds @ ..=119 => format!("{seconds} s"),
        seconds @ ..=172_799 => format!("{:#}", SignedDuration::from_mins((seconds + 30) / 60)),
        seconds => format!("{} days", (seconds + 43_200) / 86_400),
    }
}

/// ENV-04.
fn name_leads_to_ourselves(case: &Case, found: &mut Vec<Finding>) {
    for (of, directory, authority) in probed_authorities(case) {
        let is_well = matches!(directory.answer, DirectoryAnswer::Directory { .. });
        let is_all = authority.reserved.len() == authority.addresses.len();
        let Some((address, block)) = authority.reserved.first() else { continue };
        // A proxy, or a mirror within a firm, may stand at an address of its own.
        if is_well || !is_all || !AcmeServer::is_public(&directory.url) {
            continue;
        }
        let host = host(&directory.url);
        let came = format!("{address}, which is in {block}");
        let shown = evidence_of_answer(format!("A and AAAA of {host}"), authority.at, came);
        found.push(
            about(of, &directory.url, CauseId::Env04, Grade::Certain, shown)
                .with("HOST", host)
                .with("ADDRESS", address.to_string()),
        );
    }
}

/// ENV-06, before anything was signed.
fn authority_calls_itself_otherwise(case: &Case, found: &mut Vec<Finding>) {
    for (of, directory, answer) in answering_authorities(case) {
        let scheme = |url: &str| url.split_once("://").map(|(scheme, _)| scheme.to_owned());
        let Some((name, url)) = answer.members.iter().find(|(name, _)| name == "newOrder") else {
            continue;
        };
        let is_other_scheme = scheme(url) != scheme(&directory.url);
        if !is_other_scheme && host(url).eq_ignore_ascii_case(host(&directory.url)) {
            continue;
        }
        // A CA may have two names, and know both.
        let grade = if is_other_scheme { Grade::Likely } else { Grade::Possible };
        let shown = evidence_of_answer(format!("GET {}: {name}", directory.url), directory.at, url);
        found.push(about(of, &directory.url, CauseId::Env06, grade, shown).with("OTHER", url));
    }
}

/// ENV-06, by the CA's problem.
fn signed_url_is_refused(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.issuers {
        let Some(issuer) = &of.issuer else { continue };
        let Some(ready) = condition(&issuer.status.conditions, "Ready") else { continue };
        let Some(problem) = facts::problem_of_issuer(issuer, &ready.message) else { continue };
        let Some(other) = foreign::other_signed_url(&problem) else { continue };
        let server = issuer.spec.acme.as_ref().map(|acme| acme.server.clone()).unwrap_or_default();
        let shown = stored(format!("{}: condition Ready", of.key), case.at, problem.to_string());
        found.push(about(of, &server, CauseId::Env06, Grade::Certain, shown).with("OTHER", other));
    }
}

/// ENV-07.
fn one_family_is_lost(case: &Case, found: &mut Vec<Finding>) {
    for (of, directory, authority) in probed_authorities(case) {
        let by =
            |is_six: bool| authority.reaches.iter().find(|reach| reach.address.is_ipv6() == is_six);
        let (Some(six), Some(four)) = (by(true), by(false)) else { continue };
        let ReachOutcome::Connected(took) = four.outcome else { continue };
        // A machine without IPv6 does not try IPv6, and a refused connection causes no delay.
        if six.outcome != ReachOutcome::Silent {
            continue;
        }
        let asked = |address: &std::net::SocketAddr| format!("connection to {address}");
        let shown = evidence_of_answer(asked(&six.address), authority.at, "no answer");
        let other =
            evidence_of_answer(asked(&four.address), authority.at, format!("made in {took} ms"));
        found.push(
            about(of, &directory.url, CauseId::Env07, Grade::Likely, shown)
                .shown_by([other])
                .with("ADDRESS", six.address.ip().to_string()),
        );
    }
}

/// ENV-08: the URL belongs to a directory, and another page answers.
fn page_answers_in_its_place(case: &Case, found: &mut Vec<Finding>) {
    for (of, directory, answer) in answering_authorities(case) {
        if matches!(directory.answer, DirectoryAnswer::Directory { .. }) {
            continue;
        }
        let is_page = answer.content_type.starts_with("text/html")
            || answer.start.trim_start().starts_with('<');
        let path = directory.url.split('?').next().unwrap_or_default();
        let is_directory = AcmeServer::is_public(&directory.url)
            || ["/directory", "/dir"].iter().any(|end| path.ends_with(end));
        let leads_away = !answer.location.is_empty()
            && answer.location.contains("://")
            && !host(&answer.location).eq_ignore_ascii_case(host(&directory.url));
        let grade = match answer.status {
            // Network Authentication Required (RFC 6585 §6).
            511 => Grade::Certain,
            200..=299 if is_page && is_directory => Grade::Likely,
            300..=399 if leads_away => Grade::Likely,
            _ => continue,
        };
        let to = match answer.location.as_str() {
            "" => String::new(),
            to => format!(", redirects to {to}"),
        };
        let came = format!(
            "status {}, {}{to}, beginning with {:?}",
            answer.status, answer.content_type, answer.start
        );
        let shown = evidence_of_answer(format!("GET {}", directory.url), directory.at, &came);
        found.push(about(of, &directory.url, CauseId::Env08, grade, shown).with("ANSWER", came));
    }
}

/// ORD-07: the CA has ended an authorization without a problem, and the Challenge does not know.
fn authorization_is_over(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        for held in &of.held {
            let is_over = matches!(held.status.as_str(), "deactivated" | "revoked" | "invalid");
            if !is_over || held.problem.is_some() {
                continue;
            }
            let asked = format!("authorization of {} at the CA", held.name);
            let shown = evidence_of_answer(asked, held.at, &held.status);
            let mut finding =
                Finding::new(CauseId::Ord07, Grade::Certain, held.name.clone(), shown)
                    .with("DOMAIN", &held.name)
                    .with("STATUS", &held.status);
            if let Some(order) = of.order() {
                let name = order.name();
                finding = finding.with("ORDER", name.name).with("NAMESPACE", name.namespace);
            }
            found.push(finding);
        }
    }
}

/// ORD-05, if no other finding gives the reason.
fn order_has_no_challenges(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let Some(order) = of.order() else { continue };
        // Other findings explain proven names, and names without a solver, better.
        let waits = of.held.is_empty() || of.held.iter().any(|held| held.status == "pending");
        let names = case.names.iter().filter(|name| of.held.iter().any(|h| h.name == name.shown()));
        let has_solver = names.into_iter().all(|name| name.unfit.is_empty());
        let is_begun = !matches!(order.status.state, None | Some(State::Pending));
        // The obstacle is over, and yet no controller goes on.
        let answers_now =
            facts::waits_for(order) == Some(OrderWait::Authority) && !of.held.is_empty();
        let age =
            order.metadata.creation_timestamp.map(|at| case.at.duration_since(at.timestamp()));
        let is_young = age.is_none_or(|age| age < FIRST_ORDER_MAX);
        // ACC-10 reports an Order that cert-manager has not touched.
        let is_untouched = order.status.url.is_empty() && order.status.state.is_none();
        if is_begun
            || is_young
            || !(waits && has_solver)
            || (is_untouched && case.driver == DriverCase::CertManager)
            || !(order.status.reason.is_empty() || answers_now)
            || of.current_challenges().next().is_some()
        {
            continue;
        }
        let name = order.name();
        let came = match order.status.url.as_str() {
            "" => "no url: the order was not created at the CA".to_owned(),
            url => format!("{url}, and no Challenge"),
        };
        let shown = stored(format!("Order {name}: status"), case.at, &came);
        let held = of.held.iter().map(|held| {
            evidence_of_answer(
                format!("authorization of {} at the CA", held.name),
                held.at,
                &held.status,
            )
        });
        found.push(
            Finding::new(CauseId::Ord05, Grade::Likely, format!("Order {name}"), shown)
                .shown_by(held)
                .with("ORDER", &name.name)
                .with("NAMESPACE", &name.namespace)
                .with("ANSWER", came),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::judge;
    use super::super::tests::{check, with};
    use super::*;
    use crate::diagnosis::case::authority::{AddressReach, AuthorityOrder, HeldCase};
    use crate::model::Problem;

    const URL: &str = "https://acme-v02.api.letsencrypt.org/directory";

    fn good() -> DirectoryAnswer {
        DirectoryAnswer::Directory {
            profiles: Vec::new(),
            caa_identities: Vec::new(),
            external_account_required: false,
            new_account: "https://ca.example/new-account".into(),
        }
    }

    /// A case whose CA was asked, with what came.
    fn case(
        url: &str,
        answer: DirectoryAnswer,
        change: impl FnOnce(&mut AuthorityCase, &mut PlainAnswer),
    ) -> Case {
        with(|case| {
            let mut authority = AuthorityCase { at: case.at, ..AuthorityCase::default() };
            let mut plain = PlainAnswer { status: 200, ..PlainAnswer::default() };
            change(&mut authority, &mut plain);
            authority.answer = Some(plain);
            let issuer = &mut case.issuers[0];
            issuer.directory = Some(DirectoryCase { url: url.into(), at: case.at, answer });
            issuer.authority = Some(authority);
        })
    }

    #[test]
    fn hosts_of_public_cas_are_known() {
        for (url, expected) in [
            (URL, true),
            ("https://acme-staging-v02.api.letsencrypt.org/directory", true),
            ("https://acme.zerossl.com/v2/DV90", true),
            ("https://ca.example/acme.zerossl.com", false),
            ("https://evilacme.ssl.com.example/dir", false),
            ("https://127.0.0.1:14000/dir", false),
        ] {
            assert_eq!(AcmeServer::is_public(url), expected, "{url}");
        }
    }

    #[test]
    fn offsets_of_clocks_are_rounded() {
        for (milliseconds, expected) in [
            (90_400, "90 s"),
            (3_600_000, "1h"),
            (3_599_999, "1h"),
            (7_500_000, "2h 5m"),
            (2_591_999_489, "30 days"),
        ] {
            assert_eq!(round_offset(SignedDuration::from_millis(milliseconds)), expected);
        }
    }

    #[test]
    fn clocks_are_compared() {
        let at = |seconds: i64| {
            case(URL, good(), |_, answer| {
                let own: jiff::Timestamp = "2026-11-24T22:00:00Z".parse().unwrap();
                answer.came = own;
                answer.date = Some(own + SignedDuration::from_secs(seconds));
            })
        };
        check(&at(30), &[]);
        check(&at(-59), &[]);
        check(&at(3600), &[CauseId::Env01]);
        check(&at(-3600), &[CauseId::Env01]);
        let some = judge(&at(90));
        assert_eq!((some[0].cause, some[0].is_error()), (CauseId::Env01, false));
        assert_eq!(judge(&at(3600))[0].facts["WORD"], "behind");
    }

    #[test]
    fn a_public_ca_at_a_private_address_is_somebody_else() {
        let of = |url: &str, answer| {
            case(url, answer, |authority, _| {
                let address: std::net::IpAddr = "10.0.0.1".parse().unwrap();
                authority.addresses = vec![address];
                authority.reserved = vec![(address, "[RFC1918]: Private-Use".into())];
            })
        };
        let untrusted = || DirectoryAnswer::Untrusted("for ingress.local".into());
        check(&of(URL, untrusted()), &[CauseId::Env04]);
        check(&of(URL, good()), &[]);
        check(&of("https://ca.example/dir", untrusted()), &[CauseId::Env02]);
    }

    #[test]
    fn a_ca_that_calls_itself_otherwise_shows_in_its_directory_and_in_its_word() {
        let of = |url: &str| {
            case("https://ca.example/dir", good(), |_, answer| {
                answer.members = vec![("newOrder".into(), url.into())];
            })
        };
        check(&of("https://ca.example/new-order"), &[]);
        check(&of("http://ca.example/new-order"), &[CauseId::Env06]);
        let other = judge(&of("https://inner.example/new-order"));
        assert_eq!((other[0].cause, other[0].is_error()), (CauseId::Env06, false));
        let said = with(|case| {
            let conditions = json!([{"type": "Ready", "status": "False", "reason": "ErrRegisterACMEAccount",
                "message": "Failed to register ACME account: 400 urn:ietf:params:acme:error:malformed: Unable to validate JWS :: JWS header parameter 'url' incorrect. Expected \"http://ca/new\" got \"https://ca/new\""}]);
            let issuer = case.issuers[0].issuer.as_mut().unwrap();
            issuer.status.conditions = serde_json::from_value(conditions).unwrap();
        });
        check(&said, &[CauseId::Env06]);
        assert_eq!(judge(&said)[0].facts["OTHER"], "http://ca/new");
    }

    #[test]
    fn a_family_is_lost_where_the_other_one_works() {
        use ReachOutcome as R;
        let of = |six, four| {
            case(URL, good(), |authority, _| {
                let reach = |address: &str, outcome| AddressReach {
                    address: address.parse().unwrap(),
                    outcome,
                };
                authority.reaches =
                    vec![reach("[2001:db8::1]:443", six), reach("192.0.2.1:443", four)];
            })
        };
        check(&of(R::Silent, R::Connected(3)), &[CauseId::Env07]);
        check(&of(R::NoRoute, R::Connected(3)), &[]);
        check(&of(R::Connected(3), R::Connected(3)), &[]);
        check(&of(R::Silent, R::Silent), &[]);
    }

    #[test]
    fn a_page_in_place_of_a_directory_is_told_from_a_wrong_url() {
        let page = |url: &str, status: u16, location: &str| {
            case(url, DirectoryAnswer::NotAcme("it is no JSON".into()), |_, answer| {
                answer.status = status;
                answer.content_type = "text/html".into();
                answer.location = location.into();
            })
        };
        check(&page(URL, 200, ""), &[CauseId::Env08]);
        check(&page("https://ca.example/acme/directory", 200, ""), &[CauseId::Env08]);
        check(&page("https://ca.example/", 302, "https://login.example/"), &[CauseId::Env08]);
        check(&page("https://ca.example/", 200, ""), &[CauseId::Cfg03]);
        check(&page("https://ca.example/", 302, "https://ca.example/dir"), &[CauseId::Cfg03]);
    }

    #[test]
    fn a_ca_that_is_down_is_told_from_one_that_is_busy() {
        let of = |retry_after: &str| {
            let problem = Problem { status: 503, ..Problem::default() };
            case(URL, DirectoryAnswer::Refused(problem), |_, answer| {
                answer.status = 503;
                answer.retry_after = retry_after.into();
            })
        };
        check(&of(""), &[CauseId::Lim08]);
        check(&of("30"), &[CauseId::Lim07]);
    }

    #[test]
    fn an_authorization_that_is_over_without_a_word_is_named() {
        let of = |status: &str, problem: Option<Problem>| {
            with(|case| {
                case.certificates[0].held = vec![HeldCase {
                    name: "www.example.com".into(),
                    status: status.into(),
                    problem,
                    at: case.at,
                    ..HeldCase::default()
                }];
            })
        };
        check(&of("deactivated", None), &[CauseId::Ord07]);
        check(&of("pending", None), &[]);
        check(&of("valid", None), &[]);
        let caa = Problem { kind: "urn:ietf:params:acme:error:caa".into(), ..Problem::default() };
        check(&of("invalid", Some(caa)), &[CauseId::Caa01]);
    }

    /// A case with an Order that was made then.
    fn ordered(made: &str, reason: &str) -> Case {
        let owner = json!({
            "uid": "r", "kind": "CertificateRequest", "name": "www-1", "controller": true,
            "apiVersion": "cert-manager.io/v1",
        });
        let order = json!({
            "metadata": {
                "namespace": "web", "name": "www-1", "uid": "o", "creationTimestamp": made,
                "ownerReferences": [owner],
            },
            "spec": {"issuerRef": {"name": "acme"}, "request": "", "dnsNames": ["www.example.com"]},
            "status": {"reason": reason},
        });
        let request = json!({
            "metadata": {"namespace": "web", "name": "www-1", "uid": "r"},
            "spec": {"issuerRef": {"name": "acme"}, "request": ""},
            "status": {"conditions": [{"type": "Approved", "status": "True"}]},
        });
        with(|case| {
            let of = &mut case.certificates[0];
            of.orders = vec![serde_json::from_value(order).unwrap()];
            of.requests = vec![serde_json::from_value(request).unwrap()];
        })
    }

    #[test]
    fn an_order_without_challenges_is_named_after_a_while() {
        check(&ordered("2026-11-24T21:00:00Z", ""), &[CauseId::Ord05]);
        check(&ordered("2026-11-24T21:59:30Z", ""), &[]);
        let reason = "Failed to determine a valid solver configuration";
        let waits = judge(&ordered("2026-11-24T21:00:00Z", reason));
        assert!(waits.iter().all(|finding| finding.cause != CauseId::Ord05), "{waits:?}");
        // Where the CA cannot be asked, that is said once, however many orders wait for it.
        let mut many = ordered("2026-11-24T21:00:00Z", "");
        for number in 0..9 {
            let mut other = many.certificates[0].clone();
            other.certificate.metadata.name = format!("other-{number}");
            other.orders[0].metadata.name = format!("other-{number}-1");
            many.certificates.push(other);
        }
        assert_eq!(judge(&many).len(), 10);
        let (url, at) = (URL.to_owned(), many.at);
        let answer = DirectoryAnswer::Unreachable("no answer within 5 s".into());
        many.issuers[0].directory = Some(DirectoryCase { url, at, answer });
        check(&many, &[CauseId::Env03]);
    }

    #[test]
    fn what_the_ca_says_of_an_order_counts_though_no_status_has_it() {
        let of = |kind: Option<&str>| {
            let mut case = ordered("2026-11-24T21:59:30Z", "");
            case.certificates[0].held_order = Some(AuthorityOrder {
                url: "https://ca.example/order/1".into(),
                status: "invalid".into(),
                expires: None,
                problem: kind.map(|kind| Problem {
                    kind: format!("urn:ietf:params:acme:error:{kind}"),
                    ..Problem::default()
                }),
                at: case.at,
            });
            case
        };
        check(&of(Some("badCSR")), &[CauseId::Cfg18]);
        check(&of(Some("caa")), &[CauseId::Caa01]);
        check(&of(None), &[]);
    }
}
