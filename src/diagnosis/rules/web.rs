//! HTTP: servers that do not show the answer: a CDN, a router, a page against robots, a firewall, one with another folder.

use std::collections::BTreeSet;

use super::http_answer::saw;
use super::http01::{by_address, fault, of_name};
use crate::diagnosis::case::Case;
use crate::diagnosis::case::name::{AddressProbe, NameCase};
use crate::diagnosis::case::web::{PageMark, PathReply, WebProbe, WebReply};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{
    Evidence, FaultRule, Finding, Grade, evidence_of_answer, evidence_of_probe, stored,
};
use crate::diagnosis::words::http::tells_itself;
use crate::model::ChallengeType;
use crate::model::cause::Symptom;
use crate::model::observation::CheckResult;

pub(super) const RULES: &[FaultRule] = &[
    port_speaks_http2_only,
    proxy_header_is_wanted,
    page_is_against_robots,
    firewall_blocks_the_path,
    router_answers,
    edge_is_in_the_way,
    webroot_is_another,
    machines_take_turns,
];

/// Returns the probes that did not show the answer, with the replies of the same address for other paths.
fn wrong_looks(case: &Case) -> impl Iterator<Item = (&NameCase, &AddressProbe, &WebProbe)> {
    by_address(case).flat_map(|name| {
        let looks = name.looks.iter().filter(|look| !look.is_answer);
        looks.filter_map(move |look| Some((name, look, look.web.as_ref()?)))
    })
}

/// Builds a finding about an address of a name, with the probe and the reply for an unknown token.
fn about(
    (name, look, web): (&NameCase, &AddressProbe, &WebProbe),
    cause: CauseId,
    grade: Grade,
    case: &Case,
) -> Finding {
    let came = web.challenge.to_string();
    of_name(cause, grade, name, evidence_of_probe(&look.observation, saw(&look.observation)))
        .shown_by([path(name, "/.well-known/acme-challenge/…", &web.challenge, case)])
        .with("ADDRESS", look.address.ip().to_string())
        .with("PORT", look.address.port().to_string())
        .with("ANSWER", came)
}

fn path(name: &NameCase, path: &str, reply: &WebReply, case: &Case) -> Evidence {
    evidence_of_answer(format!("http://{}{path}", name.name), case.at, reply.to_string())
}

/// Returns `Certain` if the answer had to be there, else `Likely`: other replies identify a server less surely.
fn if_expected(look: &AddressProbe) -> Grade {
    if look.is_expected { Grade::Certain } else { Grade::Likely }
}

/// HTTP-28.
fn port_speaks_http2_only(case: &Case, found: &mut Vec<Finding>) {
    for of in wrong_looks(case) {
        if let WebReply::Http2(bytes) = &of.2.challenge {
            found.push(about(of, CauseId::Http28, Grade::Certain, case).with("BYTES", bytes));
        }
    }
}

/// HTTP-30: the server answers clients with a header of the PROXY protocol, and no others.
fn proxy_header_is_wanted(case: &Case, found: &mut Vec<Finding>) {
    for of in wrong_looks(case) {
        let WebProbe { challenge, proxied, .. } = of.2;
        let Some(WebReply::Reply(reply)) = proxied else { continue };
        let is_bad_request = challenge.reply().is_some_and(|plain| plain.status == 400);
        if reply.status == 400 || !(is_bad_request || matches!(challenge, WebReply::Ended)) {
            continue;
        }
        let with = WebReply::Reply(reply.clone());
        let shown = path(of.0, "/.well-known/acme-challenge/… behind a PROXY header", &with, case);
        found.push(about(of, CauseId::Http30, Grade::Certain, case).shown_by([shown]));
    }
}

/// HTTP-17.
fn page_is_against_robots(case: &Case, found: &mut Vec<Finding>) {
    for of in wrong_looks(case) {
        let Some(reply) = of.2.challenge.reply() else { continue };
        // A page for status 404 may have such a script as well.
        if reply.status == 404 {
            continue;
        }
        let by_header = [("cf-mitigated", "challenge"), ("x-amzn-waf-action", "challenge")]
            .iter()
            .find(|(name, value)| reply.header(name) == Some(value));
        let by_page = reply.marks.iter().find(|(_, mark)| *mark == PageMark::Robots);
        let mark = match (by_header, by_page) {
            (Some((name, value)), _) => format!("{name}: {value}"),
            (None, Some((mark, _))) => mark.clone(),
            (None, None) => continue,
        };
        let shown = path(of.0, "/.well-known/acme-challenge/…", &of.2.challenge, case);
        let shown = Evidence { came: format!("the page has {mark:?}"), ..shown };
        let finding = about(of, CauseId::Http17, if_expected(of.1), case);
        found.push(
            Finding { evidence: [vec![shown], finding.evidence].concat(), ..finding }
                .with("MARK", mark),
        );
    }
}

/// HTTP-18: other paths of the same server are answered.
fn firewall_blocks_the_path(case: &Case, found: &mut Vec<Finding>) {
    for of in wrong_looks(case) {
        let (name, _, web) = of;
        let (Some(beside), Some(root)) = (web.beside.reply(), web.root.reply()) else { continue };
        let is_cut = matches!(web.challenge, WebReply::Ended | WebReply::Silent);
        let says = |reply: &PathReply| reply.marks.iter().any(|(_, it)| *it == PageMark::Blocked);
        let is_page = web.challenge.reply().is_some_and(says) && !says(root);
        if !(is_cut || is_page) || says(beside) != says(root) {
            continue;
        }
        let grade = if is_page { Grade::Certain } else { Grade::Likely };
        found.push(about(of, CauseId::Http18, grade, case).shown_by([
            path(name, "/.well-known/…", &web.beside, case),
            path(name, "/", &web.root, case),
        ]));
    }
}

/// Servers in routers and modems: starts of their names, in lower case.
const ROUTERS: [&str; 16] = [
    "micro_httpd",
    "mini_httpd",
    "cisco-ios",
    "lancom",
    "mini web server",
    "routeros",
    "mikrotik",
    "fritz!box",
    "zyxel-rompager",
    "rompager",
    "allegro-software-rompager",
    "tp-link",
    "huawei",
    "router webserver",
    "alphapd",
    "speedport",
];

/// HTTP-19.
fn router_answers(case: &Case, found: &mut Vec<Finding>) {
    for of in wrong_looks(case) {
        let replies = [&of.2.challenge, &of.2.root];
        let router = replies.iter().filter_map(|reply| reply.reply()).find_map(|reply| {
            let server = reply.header("server").unwrap_or_default();
            let is_router = ROUTERS.iter().any(|it| server.to_ascii_lowercase().starts_with(it));
            let mark = reply.marks.iter().find(|(_, mark)| *mark == PageMark::Router);
            is_router.then(|| server.to_owned()).or_else(|| mark.map(|(mark, _)| mark.clone()))
        });
        let Some(router) = router else { continue };
        found.push(
            about(of, CauseId::Http19, Grade::Likely, case)
                .shown_by([path(of.0, "/", &of.2.root, case)])
                .with("SERVER", router),
        );
    }
}

/// HTTP-21, and TLS-04 if the CDN ends the handshake itself.
fn edge_is_in_the_way(case: &Case, found: &mut Vec<Finding>) {
    for of in wrong_looks(case) {
        let (name, look, web) = of;
        let Some(reply) = web.challenge.reply() else { continue };
        let Some(edge) = reply.edge() else { continue };
        let kind = name.kind.unwrap_or(ChallengeType::Http01);
        let Some((_, grade)) = fault(look, kind, case.in_cluster) else { continue };
        let symptom =
            look.sighting.map(|sighting| sighting.symptom).or(match &look.observation.seen {
                CheckResult::Nothing { symptom, .. } => *symptom,
                _ => None,
            });
        let (cause, grade) = match (symptom, reply.status) {
            (Some(Symptom::NoTls | Symptom::TlsPortSilent), _) => (CauseId::Tls04, Grade::Likely),
            // Cloudflare's own status: the server behind Cloudflare is not reached, or not well.
            (_, 520..=530) => (CauseId::Http21, Grade::Certain),
            // A 404 may be the CDN's, or that of the server behind the CDN.
            (_, 404) => (CauseId::Http21, Grade::Possible),
            _ => (CauseId::Http21, grade),
        };
        found.push(about(of, cause, grade, case).with("EDGE", edge).failing(look.is_expected));
    }
}

/// HTTP-35: the file is there, and the server does not show it.
fn webroot_is_another(case: &Case, found: &mut Vec<Finding>) {
    for name in by_address(case) {
        let Some(webroot) = name.webroot.as_ref().filter(|webroot| webroot.has_answer) else {
            continue;
        };
        let good_v4 = name.looks.iter().any(|look| look.address.is_ipv4() && look.is_answer);
        for look in name.looks.iter().filter(|look| !look.is_answer) {
            // A fault over one family alone is no fault of the folder (HTTP-06).
            let is_of_family = good_v4 && look.address.is_ipv6();
            let CheckResult::Reply { status: 200..=499, body, .. } = &look.observation.seen else {
                continue;
            };
            if is_of_family || tells_itself(body) {
                continue;
            }
            let file = stored(format!("the file below {}", webroot.folder), case.at, "is there");
            found.push(
                of_name(CauseId::Http35, Grade::Certain, name, file)
                    .shown_by([evidence_of_probe(&look.observation, saw(&look.observation))])
                    .with("FOLDER", &webroot.folder)
                    .with("ADDRESS", look.address.ip().to_string())
                    .with("ANSWER", saw(&look.observation)),
            );
        }
    }
}

/// HTTP-27: one of the machines behind an address has the answer.
fn machines_take_turns(case: &Case, found: &mut Vec<Finding>) {
    for of in wrong_looks(case) {
        let (name, look, web) = of;
        let wanted = look.expected.as_str();
        let has_answer = |reply: &&WebReply| {
            reply.reply().is_some_and(|it| it.status == 200 && it.start.trim_end() == wanted)
        };
        let Some(good) = web.again.iter().find(has_answer).filter(|_| look.is_expected) else {
            continue;
        };
        let good = path(name, "/.well-known/acme-challenge/…, asked again", good, case);
        let detail = format!("{} gives the answer only sometimes", look.address.ip());
        found.push(
            about(of, CauseId::Http27, Grade::Certain, case)
                .shown_by([good])
                .with("DETAIL", detail)
                .with("NODE-ADDRESS", look.address.ip().to_string()),
        );
    }
}

/// Describes the answers of machines that take turns behind an address; `None` if all answers are of one kind.
pub(super) fn turns(web: &WebProbe) -> Option<String> {
    let kind = |reply: &WebReply| match reply {
        WebReply::Reply(reply) => match reply.header("server") {
            Some(server) => format!("status {} of {server}", reply.status),
            None => format!("status {}", reply.status),
        },
        other => other.to_string(),
    };
    // A server with a rate limit answers otherwise after a while.
    let is_limit = |reply: &WebReply| reply.reply().is_some_and(|it| it.status == 429);
    if web.again.iter().any(is_limit) {
        return None;
    }
    let kinds: BTreeSet<String> = web.again.iter().map(kind).collect();
    (kinds.len() > 1).then(|| kinds.into_iter().collect::<Vec<_>>().join(", and "))
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::super::tests::{by, check, look, observation};
    use super::*;
    use crate::diagnosis::case::name::AddressProbe;
    use crate::diagnosis::case::web::WebrootCase;

    fn reply(status: u16, headers: &str, body: &str) -> WebReply {
        WebReply::read(format!("HTTP/1.1 {status} X\r\n{headers}\r\n{body}").as_bytes())
    }

    /// An address whose answer to the CA's question and to other paths is this.
    fn at(seen: CheckResult, challenge: WebReply, others: WebReply) -> AddressProbe {
        AddressProbe {
            observation: observation(seen),
            web: Some(WebProbe {
                challenge,
                beside: others.clone(),
                root: others,
                proxied: None,
                again: Vec::new(),
            }),
            ..look("192.0.2.1:80", false)
        }
    }

    fn case(look: AddressProbe) -> Case {
        by(ChallengeType::Http01, |name| name.looks = vec![look])
    }

    fn status(status: u16) -> CheckResult {
        CheckResult::Reply { status, body: String::new(), truncated: false, is_declined: false }
    }

    fn nothing(symptom: Symptom) -> CheckResult {
        CheckResult::Nothing { why: "nothing".into(), symptom: Some(symptom) }
    }

    #[test]
    fn a_port_that_speaks_http2_only_is_known_by_its_first_frame() {
        let frame = WebReply::read(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        check(&case(at(nothing(Symptom::NotHttp), frame.clone(), frame)), &[CauseId::Http28]);
        check(
            &case(at(nothing(Symptom::NotHttp), WebReply::NotHttp, WebReply::NotHttp)),
            &[CauseId::Http20],
        );
    }

    #[test]
    fn a_page_against_robots_is_known_by_its_marks() {
        let page = "<script>document.cookie=toHex(slowAES.decrypt(c,2,a,b))</script>";
        let wall = || reply(200, "", page);
        check(&case(at(status(200), wall(), wall())), &[CauseId::Http17]);
        let cloudflare = "Server: cloudflare\r\nCF-Ray: 1\r\ncf-mitigated: challenge\r\n";
        let wall = || reply(403, cloudflare, "");
        check(&case(at(status(403), wall(), wall())), &[CauseId::Http17]);
        let plain = || reply(200, "", "<p>shop</p>");
        check(&case(at(status(200), plain(), plain())), &[CauseId::Http22]);
        let not_found = || reply(404, "", page);
        let found = judge(&case(at(status(404), not_found(), not_found())));
        assert!(found.iter().all(|finding| finding.cause != CauseId::Http17), "{found:?}");
    }

    #[test]
    fn a_firewall_shows_by_what_it_lets_through() {
        let good = || reply(404, "", "");
        let cut = |others| at(nothing(Symptom::HungUp), WebReply::Ended, others);
        check(&case(cut(good())), &[CauseId::Http18]);
        check(&case(cut(WebReply::Ended)), &[CauseId::Http30]);
        let silent = at(nothing(Symptom::NoReply), WebReply::Silent, good());
        check(&case(silent), &[CauseId::Http18]);
        let words = reply(403, "", "Application: acme-protocol");
        check(&case(at(status(403), words.clone(), good())), &[CauseId::Http18]);
        check(&case(at(status(403), words.clone(), words)), &[CauseId::Http16]);
    }

    #[test]
    fn a_server_that_wants_a_proxy_header_is_known_by_what_it_says_with_one() {
        let of = |proxied: Option<WebReply>| {
            let mut look = at(nothing(Symptom::HungUp), WebReply::Ended, WebReply::Ended);
            look.web.as_mut().unwrap().proxied = proxied;
            case(look)
        };
        let grade = |case: &Case| (judge(case)[0].cause, judge(case)[0].grade);
        assert_eq!(grade(&of(Some(reply(404, "", "")))), (CauseId::Http30, Grade::Certain));
        // It hangs up on whoever comes, with a header or without.
        assert_eq!(grade(&of(Some(WebReply::Ended))), (CauseId::Http05, Grade::Likely));
        for other in [None, Some(reply(400, "", ""))] {
            // Others hang up, too.
            let case = of(other);
            assert_eq!(grade(&case), (CauseId::Http30, Grade::Possible));
            assert!(judge(&case)[0].is_error());
        }
    }

    #[test]
    fn a_router_is_known_by_its_name() {
        let router = || reply(401, "Server: micro_httpd\r\n", "");
        check(&case(at(status(401), router(), router())), &[CauseId::Http19]);
        let nginx = || reply(401, "Server: nginx\r\n", "");
        check(&case(at(status(401), nginx(), nginx())), &[CauseId::Http16]);
    }

    #[test]
    fn a_cdn_is_named_where_it_is_in_the_way() {
        let edge = |code| reply(code, "Server: cloudflare\r\nCF-Ray: 1-FRA\r\n", "");
        let found = judge(&case(at(status(522), edge(522), edge(522))));
        assert_eq!((found[0].cause, found[0].grade), (CauseId::Http21, Grade::Certain));
        assert_eq!(found.len(), 1, "{found:?}");
        let no_tls = at(nothing(Symptom::NoTls), edge(301), edge(301));
        check(&case(no_tls), &[CauseId::Tls04]);
        let mut unknown = at(status(404), edge(404), edge(200));
        unknown.is_expected = false;
        check(&case(unknown), &[]);
        let good = AddressProbe { web: None, ..look("192.0.2.1:80", true) };
        check(&case(good), &[]);
    }

    #[test]
    fn a_solver_that_declines_is_told_from_another_server() {
        let own = || reply(404, "x-acme-solver: kubectl-acme\r\n", "");
        let seen = CheckResult::Reply {
            status: 404,
            body: String::new(),
            truncated: false,
            is_declined: true,
        };
        let mut declined = at(seen, own(), own());
        declined.sighting = Some(Symptom::Declined.into());
        let found = judge(&case(declined.clone()));
        assert_eq!((found[0].cause, found[0].grade), (CauseId::Http11, Grade::Certain));
        assert_eq!(found.len(), 1, "{found:?}");
        declined.is_expected = false;
        check(&case(declined), &[]);
    }

    #[test]
    fn a_file_that_is_there_and_not_shown_is_of_another_folder() {
        let other = |has_answer| {
            by(ChallengeType::Http01, |name| {
                name.looks = vec![at(status(404), reply(404, "", ""), reply(404, "", ""))];
                name.webroot = Some(WebrootCase { folder: "/var/www".into(), has_answer });
            })
        };
        check(&other(true), &[CauseId::Http35]);
        let found = judge(&other(false));
        assert!(found.iter().all(|finding| finding.cause != CauseId::Http35), "{found:?}");
    }
}
