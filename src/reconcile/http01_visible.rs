//! Judgment of HTTP-01 observations: whether the CA would accept what the probes saw.
//!
//! If cert-manager has words for a fault, the reason uses them: people search for them.

use super::challenge::Readiness;
use crate::model::Answer;
use crate::model::arrival::{Arrival, Came};
use crate::model::cause::{CheckFinding, Symptom};
use crate::model::challenge::answer_limit;
use crate::model::observation::{CheckResult, Observation, Vantage};
use crate::model::text::is_steering;

/// Number of characters of a wrong body that a reason shows: as many as cert-manager's, since everyone who may create a
/// Certificate can read the target of a redirect this way.
pub const EXCERPT_CHARS_MAX: usize = 24;

/// Words for an observation from inside the cluster, beside the fault outside.
const INSIDE_PHRASE: &str = "from inside the cluster";

/// Judges HTTP-01 observations by the CA's rules (RFC 8555 §8.3): status 200, white space at the end forgiven.
///
/// Every vantage outside the cluster must have seen the answer, for the CA validates from there; observations from
/// inside only help to locate the fault. Without any observation the answer is not ready.
pub fn judge(answer: &Answer, observations: &[Observation]) -> Readiness {
    let (inside, outside): (Vec<_>, Vec<_>) =
        observations.iter().partition(|o| matches!(o.vantage, Vantage::Pod { .. }));
    let found = match &outside[..] {
        [] => Some(("nobody has looked yet".to_owned(), None)),
        looks => looks
            .iter()
            .find_map(|look| fault(answer, look).map(|reason| (reason, sighting(answer, look)))),
    };
    let Some((reason, cause)) = found else { return Readiness::Ready };
    let comparison = inside.iter().map(|look| compare_inside(answer, look, &reason));
    let reason = comparison.fold(reason.clone(), |all, more| all + "; " + &more);
    Readiness::NotYet { reason, cause }
}

/// Adds what this program's own listener received during the probe: stronger evidence than another server's reply.
pub fn with_arrivals(readiness: Readiness, arrivals: &[Arrival]) -> Readiness {
    let Readiness::NotYet { reason, cause } = readiness else { return readiness };
    let came = |is: fn(&Came) -> bool| arrivals.iter().any(|arrival| is(&arrival.came));
    let symptom = cause.map(|cause| cause.symptom);
    let (symptom, words) = if came(|came| matches!(came, Came::OtherPath { .. })) {
        (Symptom::PathChanged, "the request comes to this program's listener under another path")
    } else if symptom != Some(Symptom::OtherAccount)
        && came(|came| matches!(came, Came::Answered { .. }))
    {
        (Symptom::AnswerAltered, "this program's listener has given the answer")
    } else if symptom.is_some_and(may_come_of_tls) && came(|came| *came == Came::Tls) {
        (Symptom::TlsForwarded, "what comes to this program's listener is TLS")
    } else {
        return Readiness::NotYet { reason, cause };
    };
    let over_ipv6 = cause.is_some_and(|cause| cause.over_ipv6);
    let cause = Some(CheckFinding { symptom, over_ipv6 });
    Readiness::NotYet { reason: format!("{reason}; {words}"), cause }
}

/// Returns whether a symptom may come from a TLS handshake with an HTTP listener. Scanners make handshakes with any
/// port, so that a handshake alone means nothing.
fn may_come_of_tls(symptom: Symptom) -> bool {
    use Symptom::{BadRequest, HungUp, NoReply, NoTls, NotHttp, ServerError, TlsPortSilent};
    matches!(symptom, BadRequest | HungUp | NoReply | NoTls | NotHttp | ServerError | TlsPortSilent)
}

/// Describes the observation from inside the cluster, beside the fault outside.
fn compare_inside(answer: &Answer, inside: &Observation, outside: &str) -> String {
    match (&inside.seen, fault(answer, inside)) {
        (CheckResult::NoLook { why, .. }, _) => format!("no look {INSIDE_PHRASE}: {why}"),
        (_, None) => format!("{INSIDE_PHRASE} the answer is seen"),
        (_, Some(why)) if why == outside => format!("the same {INSIDE_PHRASE}"),
        (_, Some(why)) => format!("{INSIDE_PHRASE}: {why}"),
    }
}

/// Returns how cert-manager's own self-check would differ from a CA: it compares exactly and follows any redirect.
pub fn disagreement(answer: &Answer, observation: &Observation) -> Option<&'static str> {
    match &observation.seen {
        CheckResult::Handshake { .. }
        | CheckResult::Nothing { .. }
        | CheckResult::NoLook { .. }
        | CheckResult::Records { .. } => None,
        CheckResult::Redirect { .. } => {
            Some("cert-manager's self-check follows this redirect, a CA does not")
        }
        CheckResult::Reply { body, .. } => {
            (fault(answer, observation).is_none() && *body != answer.key_authorization).then_some(
                "cert-manager's self-check refuses the white space at the end, a CA does not mind",
            )
        }
    }
}

fn fault(answer: &Answer, observation: &Observation) -> Option<String> {
    let url = &observation.url;
    let failed = |why: &str| format!("failed to perform self check GET request '{url}': {why}");
    let place = place(observation);
    match &observation.seen {
        CheckResult::Nothing { why, .. } => Some(failed(&format!("{why}{place}"))),
        CheckResult::NoLook { why, .. } => Some(failed(why)),
        CheckResult::Redirect { to, why } => Some(failed(&format!("redirect to {to}: {why}"))),
        CheckResult::Reply { status: 200, body, truncated, .. } => {
            let got = wrong_body(answer, body, *truncated)?;
            let missed = "did not get expected response when querying endpoint: got";
            Some(format!("{missed} {got}{place}"))
        }
        CheckResult::Handshake { .. } | CheckResult::Records { .. } => {
            Some("nobody has looked yet".to_owned())
        }
        CheckResult::Reply { status, .. } => {
            Some(format!("wrong status code '{status}', expected '200'{place}"))
        }
    }
}

/// Returns a fault as data, if of a known kind. Checks nearer to the cause come first: after a redirect to another
/// place the reply there does not matter.
fn sighting(answer: &Answer, look: &Observation) -> Option<CheckFinding> {
    let is_led = look.hops.last().is_some_and(|last| last.url != look.url);
    let is_secure = look.hops.last().is_some_and(|last| match last.address {
        Some(address) => address.port() == 443,
        None => last.url.starts_with("https:"),
    });
    let symptom = match &look.seen {
        CheckResult::Redirect { .. } => Symptom::RedirectNotFollowed,
        CheckResult::Nothing { symptom, .. } => match symptom {
            // A host without an address was not asked.
            Some(
                symptom @ (Symptom::NoTls
                | Symptom::AliasLoop
                | Symptom::DanglingAlias
                | Symptom::ResolverSilent
                | Symptom::NameServersFail),
            ) => *symptom,
            Some(Symptom::NoAddress) if !is_led => Symptom::NoAddress,
            Some(Symptom::NoAddress) => Symptom::RedirectedAway,
            _ if is_secure => Symptom::TlsPortSilent,
            _ if is_led => Symptom::RedirectedAway,
            symptom => (*symptom)?,
        },
        CheckResult::Reply { body, .. } if is_of_other_account(answer, body) => {
            Symptom::OtherAccount
        }
        CheckResult::Reply { status: 404, is_declined: true, .. } => Symptom::Declined,
        CheckResult::Reply { .. } if is_led => Symptom::RedirectedAway,
        CheckResult::Reply { status, .. } => match status {
            404 => Symptom::NotFound,
            401 | 403 => Symptom::Forbidden,
            400 => Symptom::BadRequest,
            402 | 405..=499 => Symptom::RequestRefused,
            500.. => Symptom::ServerError,
            _ => Symptom::WrongAnswer,
        },
        CheckResult::Handshake { .. }
        | CheckResult::NoLook { .. }
        | CheckResult::Records { .. } => return None,
    };
    Some(CheckFinding { symptom, over_ipv6: is_over_ipv6(look) })
}

/// Returns whether a server was asked, or tried, over IPv6 although its URL does not say so.
fn is_over_ipv6(look: &Observation) -> bool {
    look.hops.last().is_some_and(|last| {
        let is_literal = last.url.contains("://[");
        !is_literal && last.address.is_some_and(|address| address.is_ipv6())
    })
}

fn is_of_other_account(answer: &Answer, body: &str) -> bool {
    let text = body.trim_end();
    let token = text.split_once('.').map(|(token, _)| token);
    // The beginning of the right answer is not another account's.
    !answer.key_authorization.starts_with(text) && token == Some(answer.token.as_str())
}

/// Returns where a reply came from, if the probed URL does not show it: the end of redirects, and the use of IPv6,
/// which is preferred and may lead to another server. Addresses are left out: they differ from probe to probe.
fn place(observation: &Observation) -> String {
    let Some(last) = observation.hops.last() else { return String::new() };
    let end = (last.url != observation.url).then(|| format!("redirected to {}", last.url));
    let is_reply = matches!(observation.seen, CheckResult::Reply { .. });
    let family = (is_reply && is_over_ipv6(observation)).then(|| "over IPv6".to_owned());
    match [end, family].into_iter().flatten().collect::<Vec<_>>().join(", ") {
        nothing if nothing.is_empty() => nothing,
        place => format!(" ({place})"),
    }
}

/// Describes a body that the CA would not accept.
fn wrong_body(answer: &Answer, body: &str, truncated: bool) -> Option<String> {
    let text = body.trim_end();
    if text == answer.key_authorization {
        let limit = answer_limit(&answer.token);
        return truncated.then(|| format!("the right answer and more than {limit} bytes in all"));
    }
    if text.is_empty() {
        return Some("an empty body".to_owned());
    }
    let excerpt = excerpt(text);
    Some(if is_of_other_account(answer, body) {
        format!("\"{excerpt}\", the answer of another account for the same token")
    } else {
        format!("\"{excerpt}\"")
    })
}

/// Returns the beginning of a text on one line.
fn excerpt(text: &str) -> String {
    let mut printable = text.chars().map(|c| if is_steering(c) { ' ' } else { c });
    let start: String = printable.by_ref().take(EXCERPT_CHARS_MAX).collect();
    match printable.next() {
        Some(_) => format!("{start}…"),
        None => start,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::Identifier;
    use crate::model::observation::Hop;

    const URL: &str = "http://www.example.com/.well-known/acme-challenge/token";

    fn answer() -> Answer {
        Answer {
            identifier: Identifier::parse("www.example.com").unwrap(),
            token: "token".to_owned(),
            key_authorization: "token.thumbprint".to_owned(),
        }
    }

    fn observation(seen: CheckResult) -> Observation {
        let hop = Hop { url: URL.to_owned(), address: None, status: None };
        Observation {
            vantage: Vantage::ThisMachine,
            at: Timestamp::UNIX_EPOCH,
            url: URL.to_owned(),
            hops: vec![hop],
            seen,
        }
    }

    fn reply(status: u16, body: &str) -> CheckResult {
        CheckResult::Reply { status, body: body.to_owned(), truncated: false, is_declined: false }
    }

    /// The symptom that a look shows beside what came to the listener.
    #[track_caller]
    fn check_arrivals(seen: CheckResult, came: &[Came], expected: Symptom, words: &str) {
        let arrival = |came: &Came| Arrival {
            at: Timestamp::UNIX_EPOCH,
            from: "127.0.0.1".parse().unwrap(),
            is_proxied: false,
            came: came.clone(),
        };
        let arrivals: Vec<Arrival> = came.iter().map(arrival).collect();
        let judged = with_arrivals(judge(&answer(), &[observation(seen)]), &arrivals);
        let Readiness::NotYet { reason, cause } = judged else { panic!("it is ready") };
        assert_eq!(cause.map(|cause| cause.symptom), Some(expected), "{came:?}");
        assert!(reason.ends_with(words), "{reason}");
    }

    #[test]
    fn what_came_to_the_listener_says_more_than_what_was_seen() {
        let host = || "127.0.0.1:8080".to_owned();
        let (tls, other) = (Came::Tls, Came::OtherPath { host: host() });
        let unknown = Came::UnknownToken { host: host() };
        let not_found = "wrong status code '404', expected '200'";
        check_arrivals(reply(404, ""), &[], Symptom::NotFound, not_found);
        check_arrivals(reply(404, ""), &[unknown], Symptom::NotFound, not_found);
        // A handshake of a stranger has nothing to do with it.
        check_arrivals(reply(404, ""), std::slice::from_ref(&tls), Symptom::NotFound, not_found);
        let gateway = || reply(502, "");
        check_arrivals(
            gateway(),
            std::slice::from_ref(&tls),
            Symptom::TlsForwarded,
            "listener is TLS",
        );
        check_arrivals(gateway(), &[tls, other], Symptom::PathChanged, "under another path");
        let answered = || Came::Answered { host: host() };
        check_arrivals(reply(200, "<html>"), &[answered()], Symptom::AnswerAltered, "the answer");
        let foreign = reply(200, "token.other");
        check_arrivals(foreign, &[answered()], Symptom::OtherAccount, "the same token");
        let ready = judge(&answer(), &[observation(reply(200, "token.thumbprint"))]);
        let arrival = Arrival {
            at: Timestamp::UNIX_EPOCH,
            from: "127.0.0.1".parse().unwrap(),
            is_proxied: false,
            came: answered(),
        };
        assert_eq!(with_arrivals(ready, &[arrival]), Readiness::Ready);
    }

    #[test]
    fn a_solver_that_declines_is_told_from_another_server() {
        let declined = CheckResult::Reply {
            status: 404,
            body: String::new(),
            truncated: false,
            is_declined: true,
        };
        let not_found = "wrong status code '404', expected '200'";
        check_arrivals(declined, &[], Symptom::Declined, not_found);
    }

    fn refused(why: &str) -> CheckResult {
        CheckResult::Nothing { why: why.to_owned(), symptom: Some(Symptom::ConnectionRefused) }
    }

    /// An empty reason stands for ready.
    #[track_caller]
    fn check(observations: &[Observation], expected: &str) {
        let reason = match judge(&answer(), observations) {
            Readiness::Ready => String::new(),
            Readiness::NotYet { reason, .. } => reason,
        };
        assert_eq!(reason, expected);
    }

    #[track_caller]
    fn check_one(seen: CheckResult, expected: &str) {
        check(&[observation(seen)], expected);
    }

    #[test]
    fn the_answer_is_ready_also_with_white_space_at_its_end() {
        check_one(reply(200, "token.thumbprint"), "");
        check_one(reply(200, "token.thumbprint \t\r\n\n"), "");
    }

    #[test]
    fn white_space_before_the_answer_is_not_forgiven() {
        check_one(
            reply(200, " token.thumbprint"),
            "did not get expected response when querying endpoint: got \" token.thumbprint\"",
        );
    }

    #[test]
    fn another_status_is_not_ready_whatever_the_body() {
        check_one(reply(404, "token.thumbprint"), "wrong status code '404', expected '200'");
        check_one(reply(206, "token.thumbprint"), "wrong status code '206', expected '200'");
    }

    #[test]
    fn a_status_after_a_redirect_names_its_place() {
        let mut seen = observation(reply(403, ""));
        let url = "https://www.example.com/login".to_owned();
        seen.hops.push(Hop { url, address: None, status: Some(403) });
        check(
            &[seen],
            "wrong status code '403', expected '200' (redirected to https://www.example.com/login)",
        );
    }

    #[test]
    fn every_fault_after_a_redirect_names_its_place() {
        let url = "https://www.example.com/login".to_owned();
        for (seen, expected) in [
            (
                reply(200, "hello"),
                "did not get expected response when querying endpoint: got \"hello\" (redirected to \
                 https://www.example.com/login)",
            ),
            (
                refused("connection refused by 192.0.2.1:443"),
                "failed to perform self check GET request \
                 'http://www.example.com/.well-known/acme-challenge/token': connection refused by \
                 192.0.2.1:443 (redirected to https://www.example.com/login)",
            ),
        ] {
            let mut seen = observation(seen);
            seen.hops.push(Hop { url: url.clone(), address: None, status: None });
            check(&[seen], expected);
        }
    }

    #[test]
    fn an_answer_over_ipv6_is_told_from_one_over_ipv4() {
        let at = |url: &str, address: &str, seen| {
            let address = Some(address.parse().unwrap());
            let hops = vec![Hop { url: url.to_owned(), address, status: None }];
            Observation { url: url.to_owned(), hops, ..observation(seen) }
        };
        let wrong = "wrong status code '404', expected '200'";
        check(&[at(URL, "192.0.2.1:80", reply(404, ""))], wrong);
        for address in ["[2001:db8::1]:80", "[2001:db8::2]:80"] {
            check(&[at(URL, address, reply(404, ""))], &format!("{wrong} (over IPv6)"));
        }
        // Its URL says so.
        check(&[at("http://[2001:db8::1]/x", "[2001:db8::1]:80", reply(404, ""))], wrong);
        let refused = refused("connection refused by [2001:db8::1]:80");
        check(
            &[at(URL, "[2001:db8::1]:80", refused)],
            "failed to perform self check GET request \
             'http://www.example.com/.well-known/acme-challenge/token': \
             connection refused by [2001:db8::1]:80",
        );
    }

    #[test]
    fn nobody_answering_is_said_in_cert_managers_words() {
        check_one(
            refused("connection refused by 192.0.2.1:80"),
            "failed to perform self check GET request \
             'http://www.example.com/.well-known/acme-challenge/token': \
             connection refused by 192.0.2.1:80",
        );
    }

    #[test]
    fn a_redirect_that_no_ca_follows_is_not_ready() {
        check_one(
            CheckResult::Redirect { to: "http://a.example:8080/".to_owned(), why: "no".to_owned() },
            "failed to perform self check GET request \
             'http://www.example.com/.well-known/acme-challenge/token': \
             redirect to http://a.example:8080/: no",
        );
    }

    #[test]
    fn a_wrong_body_is_shown_on_one_short_line() {
        let page = format!("<html>\r\n<body>\u{7}{}", "ä".repeat(60));
        check_one(
            reply(200, &page),
            &format!(
                "did not get expected response when querying endpoint: got \"<html>  <body> {}…\"",
                "ä".repeat(9)
            ),
        );
        check_one(
            reply(200, " \n"),
            "did not get expected response when querying endpoint: got an empty body",
        );
    }

    #[test]
    fn what_a_pod_sees_decides_nothing_and_is_told_beside_a_fault() {
        let here = observation;
        let inside = |seen| Observation {
            vantage: Vantage::Pod { name: "pod".to_owned() },
            ..observation(seen)
        };
        let seen = || reply(200, "token.thumbprint");
        let status = |code| reply(code, "");
        check(&[here(seen()), inside(status(404))], "");
        check(
            &[inside(seen())],
            "nobody has looked yet; from inside the cluster the answer is seen",
        );
        let missing = "wrong status code '404', expected '200'";
        let no_look = CheckResult::NoLook { why: "it does not start".to_owned(), symptom: None };
        for (inside, more) in [
            (inside(seen()), "from inside the cluster the answer is seen"),
            (inside(status(404)), "the same from inside the cluster"),
            (
                inside(status(503)),
                "from inside the cluster: wrong status code '503', expected '200'",
            ),
            (inside(no_look), "no look from inside the cluster: it does not start"),
        ] {
            check(&[here(status(404)), inside], &format!("{missing}; {more}"));
        }
    }

    #[test]
    fn an_answer_of_another_account_is_recognised() {
        check_one(
            reply(200, "token.other"),
            "did not get expected response when querying endpoint: got \"token.other\", \
             the answer of another account for the same token",
        );
    }

    #[test]
    fn the_beginning_of_the_right_answer_is_nobody_elses() {
        check_one(
            CheckResult::Reply {
                status: 200,
                body: "token.thumb".to_owned(),
                truncated: true,
                is_declined: false,
            },
            "did not get expected response when querying endpoint: got \"token.thumb\"",
        );
    }

    #[test]
    fn white_space_beyond_128_bytes_is_too_much() {
        let body = format!("token.thumbprint{}", " ".repeat(112));
        check_one(
            CheckResult::Reply { status: 200, body, truncated: true, is_declined: false },
            "did not get expected response when querying endpoint: \
             got the right answer and more than 128 bytes in all",
        );
    }

    #[test]
    fn every_vantage_must_have_seen_it() {
        check(&[], "nobody has looked yet");
        let good = || observation(reply(200, "token.thumbprint"));
        check(&[good(), good()], "");
        let bad = observation(reply(500, ""));
        check(&[good(), bad], "wrong status code '500', expected '200'");
    }

    #[test]
    fn a_disagreement_with_cert_manager_is_noted() {
        let note = |seen| disagreement(&answer(), &observation(seen));
        assert_eq!(note(reply(200, "token.thumbprint")), None);
        assert_eq!(note(reply(200, "other\n")), None);
        assert_eq!(
            note(reply(200, "token.thumbprint\n")),
            Some(
                "cert-manager's self-check refuses the white space at the end, a CA does not mind"
            )
        );
        assert_eq!(
            note(CheckResult::Redirect { to: String::new(), why: String::new() }),
            Some("cert-manager's self-check follows this redirect, a CA does not")
        );
    }
}
