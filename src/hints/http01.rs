//! Hints for an HTTP-01 answer that is not seen: one table, by symptom and by answerer.

use super::invocation::{self, quoted};
use crate::model::Challenge;
use crate::model::cause::{CheckFinding, Symptom};
use crate::model::memory::{Holder, Memory};

/// Answerer of a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnsweredBy {
    /// This machine, at port 80.
    Here,
    /// This machine, at another port.
    Forwarded,
    /// A web server, with files that this machine writes.
    Webroot,
    /// Pods behind an Ingress.
    Ingress,
    /// Pods behind a Gateway.
    Gateway,
}

/// All answerers.
const ANY: &[AnsweredBy] = &[
    AnsweredBy::Here,
    AnsweredBy::Forwarded,
    AnsweredBy::Webroot,
    AnsweredBy::Ingress,
    AnsweredBy::Gateway,
];
/// Answerers in a cluster.
const IN_CLUSTER: &[AnsweredBy] = &[AnsweredBy::Ingress, AnsweredBy::Gateway];
/// Answerers that are a listener of this program.
const OWN_LISTENER: &[AnsweredBy] = &[AnsweredBy::Here, AnsweredBy::Forwarded];

/// Hints by answerer; the first line that lists the answerer counts. In braces: the domain, the answerer, the address or folder
/// of the answers, and the kubectl line that shows the objects before the Pods.
type Steps = &'static [(&'static [AnsweredBy], &'static str)];

#[expect(clippy::too_many_lines, reason = "one table, from what was seen to what helps")]
fn steps(symptom: Option<Symptom>) -> Steps {
    match symptom {
        Some(Symptom::RedirectNotFollowed) => &[(
            ANY,
            "change where the server of {domain} redirects requests for /.well-known/acme-challenge/: a CA follows ten \
             redirects at most, and only to names with http on port 80 or https on port 443",
        )],
        Some(Symptom::OtherAccount) => &[(
            ANY,
            "end the other ACME client that answers for {domain} (certbot, Caddy and Traefik have one), or have its server \
             pass /.well-known/acme-challenge/ on to {who}",
        )],
        Some(Symptom::NoTls) => &[
            (
                IN_CLUSTER,
                "keep /.well-known/acme-challenge/ out of the redirect to https, or give port 443 any certificate (a CA \
                 does not verify it); if cert-manager itself drives, it makes one for a Certificate with the annotation \
                 cert-manager.io/issue-temporary-certificate: \"true\"",
            ),
            (
                ANY,
                "keep /.well-known/acme-challenge/ out of the redirect to https, or serve TLS at port 443 of {domain} \
                 with any certificate: a CA does not verify it",
            ),
        ],
        Some(Symptom::TlsPortSilent) => &[(
            ANY,
            "open port 443 of {domain} to the internet, or keep /.well-known/acme-challenge/ out of the redirect to \
             https: check that ports 80 and 443 lead to {who}",
        )],
        Some(Symptom::RedirectedAway) => &[(
            ANY,
            "have the server of {domain} answer requests for /.well-known/acme-challenge/ itself, or check that the \
             redirect leads to {who}",
        )],
        Some(Symptom::NotFound) => &[
            (
                &[AnsweredBy::Here],
                "check that {domain} points to this machine in public DNS: another server answers at its port 80. If \
                 that server runs here, have it serve the answers: --http01-webroot DIR, its document root",
            ),
            (
                &[AnsweredBy::Forwarded],
                "have the server at port 80 of {domain} forward /.well-known/acme-challenge/ to {at}, where this \
                 program listens: now that server answers by itself",
            ),
            (
                &[AnsweredBy::Webroot],
                "name the document root from which the server of {domain} serves files, by --http01-webroot: the server \
                 does not serve {at}; or have it serve that folder, including names that begin with a dot",
            ),
            (
                &[AnsweredBy::Ingress],
                "check that {who} handles the solver's Ingress, and that {domain} points to its ADDRESS: {show} shows \
                 class and address; the solver's ingressClassName chooses another class",
            ),
            (
                &[AnsweredBy::Gateway],
                "check that {who} accepts the solver's HTTPRoute at a listener for HTTP on port 80 that allows its \
                 namespace, and that {domain} points to that Gateway: {show} shows the result (status.parents)",
            ),
        ],
        Some(Symptom::Declined) => &[
            (
                &[AnsweredBy::Here],
                "end the other run of this program that answers at port 80 of {domain} and does not have this answer, \
                 or check that {domain} points to this machine in public DNS",
            ),
            (
                &[AnsweredBy::Forwarded],
                "have the server at port 80 of {domain} forward /.well-known/acme-challenge/ to {at}: now another run \
                 of this program gets the request, which does not have this answer",
            ),
            (
                ANY,
                "check that {domain} points to {who}, and that Host and path arrive unchanged: another solver of this \
                 program answers, which does not have this answer",
            ),
        ],
        Some(Symptom::PathChanged) => &[(
            ANY,
            "have the server at port 80 of {domain} pass the path on as it is: it forwards the request to this program under \
             another path than /.well-known/acme-challenge/TOKEN (nginx: no \"/\" behind the address in proxy_pass; Apache: \
             the same path on both sides of ProxyPass)",
        )],
        Some(Symptom::AnswerAltered) => &[(
            ANY,
            "find out what stands between port 80 of {domain} and this program: the program gave the answer, but \
             something else came back (an error page, a filter, a cache)",
        )],
        Some(Symptom::TlsForwarded) => &[(
            ANY,
            "have the server of {domain} speak plain HTTP to this program: it forwards TLS (nginx: proxy_pass http://…; \
             HAProxy: no \"ssl\" in the server line), and check that port 443 does not lead here",
        )],
        Some(Symptom::Forbidden) => &[(
            ANY,
            "exempt /.well-known/acme-challenge/ from the rules that ask visitors of {domain} for a password or turn \
             them away (allow lists, web application firewalls, CDNs), and check that the path leads to {who}",
        )],
        Some(Symptom::ServerError) => &[
            (
                IN_CLUSTER,
                "check that the solver's Pod is ready, and that the health check of the load balancer accepts its \
                 answers: {show} shows the Pod; new objects may take minutes",
            ),
            (
                ANY,
                "read the log of the server at port 80 of {domain}: it takes the request and cannot get an answer from {who}",
            ),
        ],
        Some(Symptom::BadRequest) => &[(
            ANY,
            "have the server of {domain} speak plain HTTP at port 80, where a CA begins: the server may expect TLS \
             there; and check that port 80 leads to {who}",
        )],
        Some(Symptom::RequestRefused) => &[(
            ANY,
            "find out why the server at port 80 of {domain} refuses the request (429: too many requests), and have it \
             pass /.well-known/acme-challenge/ on to {who}",
        )],
        Some(Symptom::WrongAnswer) => &[
            (
                &[AnsweredBy::Forwarded],
                "have the server at port 80 of {domain} forward /.well-known/acme-challenge/ to {at}, where this \
                 program listens, in place of a page of its own",
            ),
            (
                ANY,
                "check that {domain} points to {who} in public DNS, and that no server on the way (a router, a CDN, a \
                 site that has a page for every path) answers /.well-known/acme-challenge/ by itself",
            ),
        ],
        Some(Symptom::ConnectionRefused) => &[
            (
                &[AnsweredBy::Here],
                "check that {domain} points to this machine in public DNS, and that a router before it forwards port \
                 80: nothing accepts connections there",
            ),
            (
                &[AnsweredBy::Forwarded],
                "forward port 80 of {domain} to {at}, where this program listens (by the router, a web server or the \
                 firewall), or leave --http01-listen out: nothing accepts connections at port 80",
            ),
            (
                &[AnsweredBy::Webroot],
                "start the web server of {domain} that serves {at} at port 80, and check that the name points to it in \
                 public DNS",
            ),
            (
                IN_CLUSTER,
                "check that {domain} points to {who} in public DNS ({show} shows the address), and that its Service has \
                 port 80: nothing accepts connections there",
            ),
        ],
        Some(Symptom::NoReply) => &[(
            ANY,
            "find out what listens at port 80 of {domain}: it accepts connections and sends nothing, like a proxy whose \
             server is down; port 80 has to lead to {who}",
        )],
        Some(Symptom::Unreachable) => &[
            (
                OWN_LISTENER,
                "open port 80 to the whole internet in every firewall on the way (of this machine, the network, the \
                 provider), and check that {domain} points to {who} in public DNS; if it answers only from outside \
                 (NAT), --http01-resolve {domain}=ADDRESS has this machine check that address",
            ),
            (
                ANY,
                "open port 80 to the whole internet in every firewall on the way, and check that {domain} points to \
                 {who} in public DNS; if it answers from outside only (NAT), use --http01-resolve {domain}=ADDRESS",
            ),
        ],
        Some(Symptom::NotHttp) => &[(
            ANY,
            "have the server of {domain} speak plain HTTP/1.1 at port 80, where a CA begins: the server there speaks \
             something else, such as TLS; and check that port 80 leads to {who}",
        )],
        Some(Symptom::HungUp) => &[(
            ANY,
            "find out what closes connections at port 80 of {domain}: a firewall that knows ACME, a proxy that expects \
             the PROXY protocol, or a server that expects TLS; port 80 has to lead to {who}",
        )],
        Some(Symptom::NoAddress) => &[
            (
                IN_CLUSTER,
                "create an A or AAAA record that points {domain} to {who} in public DNS ({show} shows the address), or \
                 prove the name by DNS-01; resolvers may cache for minutes that there was none",
            ),
            (
                ANY,
                "create an A or AAAA record that points {domain} to {who} in public DNS, or prove the name by DNS-01; \
                 resolvers may cache for minutes that there was none",
            ),
        ],
        Some(
            Symptom::AliasLoop
            | Symptom::DanglingAlias
            | Symptom::ResolverSilent
            | Symptom::NameServersFail
            | Symptom::AliasNotFollowed
            | Symptom::NotDelegated
            | Symptom::LameServer
            | Symptom::ServersSilent
            | Symptom::ServerUnreadable
            | Symptom::NoRoute,
        )
        | None => &[(
            ANY,
            "check that {domain} points to {who} in public DNS, and that port 80 is open to the internet",
        )],
    }
}

/// Addition to a hint if the server was asked over IPv6.
const IPV6_ADDITION: &str =
    ": the request went to its AAAA record, which has to point there, too, or to be deleted";

/// Returns the hint against what was seen in place of the answer.
pub(super) fn line(
    challenge: &Challenge,
    sighting: Option<CheckFinding>,
    in_cluster: bool,
) -> String {
    let place = Answerer::of(challenge, in_cluster);
    let steps = steps(sighting.map(|sighting| sighting.symptom));
    let step = steps.iter().find(|(ways, _)| ways.contains(&place.way));
    let step = step.map_or("", |(_, step)| step);
    let text = [("{domain}", &challenge.spec.dns_name), ("{who}", &place.who)]
        .into_iter()
        .chain([("{at}", &place.at), ("{show}", &place.show)])
        .fold(step.to_owned(), |text, (hole, value)| text.replace(hole, value));
    // The identifier may itself be an address.
    let is_name = !challenge.spec.dns_name.contains(':');
    let is_six = sighting.is_some_and(|sighting| sighting.over_ipv6);
    if is_name && is_six { text + IPV6_ADDITION } else { text }
}

/// Answerer of a challenge, in words.
struct Answerer {
    way: AnsweredBy,
    who: String,
    /// Address where this program listens, or folder where it writes.
    at: String,
    /// kubectl line that shows the objects that lead to a solver's Pod.
    show: String,
}

impl Answerer {
    fn of(challenge: &Challenge, in_cluster: bool) -> Self {
        let called = invocation::current();
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        let written = memory.webroot.as_deref().filter(|_| !in_cluster);
        if let Some(folder) = called.webroot().or(written) {
            let who = "the web server that serves the answers".to_owned();
            return Self {
                way: AnsweredBy::Webroot,
                who,
                at: folder.to_owned(),
                show: String::new(),
            };
        }
        let listeners = called.listeners();
        if listeners.is_empty() && in_cluster {
            return Self::in_cluster(challenge);
        }
        let is_at_80 = |address: &String| address.ends_with(":80");
        let is_here = listeners.is_empty() || listeners.iter().any(is_at_80);
        let way = if is_here { AnsweredBy::Here } else { AnsweredBy::Forwarded };
        let (who, at) = ("this machine".to_owned(), listeners.join(" or "));
        Self { way, who, at, show: String::new() }
    }

    /// Describes the controller or Gateway that leads to the Pods that answer in a cluster.
    fn in_cluster(challenge: &Challenge) -> Self {
        let http01 = challenge.spec.solver.http01.as_ref();
        let ingress = http01.and_then(|solver| solver.ingress.as_ref());
        let shown = |kinds: &str| {
            let namespace = &challenge.metadata.namespace;
            let label = "acme.cert-manager.io/http01-solver=true";
            let words = ["get", kinds, "--namespace", namespace, "-l", label];
            invocation::current().kubectl(&words.map(str::to_owned))
        };
        if http01.is_some_and(|solver| solver.gateway_http_route.is_some()) {
            let who = "the Gateway that the solver names".to_owned();
            let show = shown("pods,services,httproutes") + " -o yaml";
            return Self { way: AnsweredBy::Gateway, who, at: String::new(), show };
        }
        let name = ingress.map(|ingress| ingress.name.as_str()).filter(|name| !name.is_empty());
        let class =
            ingress.and_then(|it| it.ingress_class_name.clone().or_else(|| it.class.clone()));
        let who = match (name, class.filter(|class| !class.is_empty())) {
            (Some(name), _) => format!("the controller of Ingress {}", quoted(name)),
            (None, Some(class)) => format!("the controller of Ingress class {class}"),
            (None, None) => "the cluster's Ingress controller".to_owned(),
        };
        Self {
            way: AnsweredBy::Ingress,
            who,
            at: String::new(),
            show: shown("pods,services,ingresses"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::solver::{GatewaySolver, IngressSolver};
    use crate::reconcile::testing::challenge;

    /// Checks the hint for a symptom, with a solver of each kind.
    #[track_caller]
    fn check(sighting: impl Into<CheckFinding>, here: &str, ingress: &str, gateway: &str) {
        let sighting = Some(sighting.into());
        let mut challenge = challenge("www.example.com").build();
        let advised = |challenge: &Challenge, in_cluster, expected: &str| {
            let advice = line(challenge, sighting, in_cluster);
            assert!(advice.contains(expected), "{sighting:?}: {advice}");
            assert!(!advice.contains(['{', '}']), "{advice}");
        };
        advised(&challenge, false, here);
        let mut http01 = challenge.spec.solver.http01.take().unwrap_or_default();
        let class = Some("nginx".to_owned());
        http01.ingress =
            Some(IngressSolver { ingress_class_name: class, ..IngressSolver::default() });
        challenge.spec.solver.http01 = Some(http01.clone());
        advised(&challenge, true, ingress);
        http01.ingress = None;
        http01.gateway_http_route = Some(GatewaySolver::default());
        challenge.spec.solver.http01 = Some(http01);
        advised(&challenge, true, gateway);
    }

    #[test]
    fn every_symptom_has_its_own_step_for_whoever_answers() {
        check(
            Symptom::NotFound,
            "another server answers at its port 80",
            "the controller of Ingress class nginx handles the solver's Ingress",
            "accepts the solver's HTTPRoute at a listener for HTTP on port 80",
        );
        let other = "another solver of this program answers";
        check(Symptom::Declined, "end the other run of this program", other, other);
        let port = "its Service has port 80";
        check(Symptom::ConnectionRefused, "points to this machine in public DNS", port, port);
        let ready = "the solver's Pod is ready";
        check(Symptom::ServerError, "cannot get an answer from this machine", ready, ready);
        let temporary = "issue-temporary-certificate";
        check(Symptom::NoTls, "out of the redirect to https", temporary, temporary);
        for (symptom, expected) in [
            (Symptom::Unreachable, "open port 80 to the whole internet"),
            (Symptom::NoAddress, "create an A or AAAA record that points www.example.com to "),
            (Symptom::PathChanged, "pass the path on as it is"),
            (Symptom::AnswerAltered, "something else came back"),
            (Symptom::TlsForwarded, "it forwards TLS"),
            (Symptom::Forbidden, "for a password or turn them away"),
            (Symptom::WrongAnswer, "no server on the way"),
            (Symptom::BadRequest, "speak plain HTTP at port 80"),
            (Symptom::RequestRefused, "refuses the request (429"),
            (Symptom::NotHttp, "speak plain HTTP/1.1 at port 80"),
            (Symptom::HungUp, "find out what closes connections"),
            (Symptom::NoReply, "sends nothing"),
            (Symptom::OtherAccount, "end the other ACME client"),
            (Symptom::RedirectNotFollowed, "change where the server"),
            (Symptom::RedirectedAway, "itself, or check that the redirect"),
            (Symptom::TlsPortSilent, "open port 443 of www.example.com to the internet"),
            (Symptom::NoRoute, "and that port 80 is open to the internet"),
        ] {
            check(symptom, expected, expected, expected);
        }
        let unknown = line(&challenge("www.example.com").build(), None, false);
        assert!(unknown.contains("and that port 80 is open to the internet"), "{unknown}");
    }

    #[test]
    fn an_address_of_ipv6_that_fails_is_told() {
        let told = "or to be deleted";
        let sighting = CheckFinding { symptom: Symptom::ConnectionRefused, over_ipv6: true };
        check(sighting, told, told, told);
        let mut challenge = challenge("2001:db8::1").build();
        challenge.spec.dns_name = "2001:db8::1".to_owned();
        assert!(!line(&challenge, Some(sighting), false).contains(told));
    }

    #[test]
    fn files_in_a_document_root_are_served_by_somebody_else() {
        let mut challenge = challenge("www.example.com").build();
        let memory = Memory { webroot: Some("/srv/www".to_owned()), ..Memory::default() };
        memory.write(Holder::Challenge, &mut challenge.metadata.annotations);
        for (symptom, expected) in [
            (Symptom::NotFound, "the server does not serve /srv/www"),
            (
                Symptom::ConnectionRefused,
                "start the web server of www.example.com that serves /srv/www",
            ),
        ] {
            let advice = line(&challenge, Some(symptom.into()), false);
            assert!(advice.contains(expected), "{advice}");
        }
    }
}
