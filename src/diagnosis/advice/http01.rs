//! What helps when the answer to an HTTP-01 challenge is not seen: one table, by what the reason tells and by who answers.
//!
//! A status holds the reason as text, and whoever drives has written it: this program, cert-manager (in Go's words) or the CA.

use crate::app::invocation::{self, quoted};
use crate::model::Challenge;
use crate::model::memory::{Holder, Memory};
use crate::reconcile::visible::INSIDE;

/// Who answers a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
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

/// All of them.
const ANY: &[Way] = &[Way::Here, Way::Forwarded, Way::Webroot, Way::Ingress, Way::Gateway];
/// Those in a cluster.
const CLUSTER: &[Way] = &[Way::Ingress, Way::Gateway];
/// Those with a listener of this program.
const LISTENER: &[Way] = &[Way::Here, Way::Forwarded];

/// One thing that may be wrong.
struct Row {
    /// The reason has one of these texts; whatever it says, where there are none.
    marks: &'static [&'static str],
    /// What helps each, in the first line that is theirs. In braces: the domain, who answers, where it listens or writes, and
    /// what shows what leads there.
    steps: &'static [(&'static [Way], &'static str)],
}

/// What the reason tells first decides, so that what a server's own words may hold comes last.
const TABLE: &[Row] = &[
    Row {
        marks: &[": redirect to ", "in redirect target", "Redirect loop", "Too many redirects"],
        steps: &[(
            ANY,
            "change where the server of {domain} sends requests for /.well-known/acme-challenge/: a CA follows no redirect \
             but to names with http on port 80 or https on port 443, ten at most",
        )],
    },
    Row {
        marks: &["the answer of another account"],
        steps: &[(
            ANY,
            "end the other ACME client that answers for {domain} (certbot, Caddy and Traefik have one), or have its server \
             pass /.well-known/acme-challenge/ on to {who}",
        )],
    },
    Row {
        marks: &["TLS handshake with ", "tls: ", "Server only speaks HTTP, not TLS"],
        steps: &[
            (
                CLUSTER,
                "keep /.well-known/acme-challenge/ out of the redirect to https, or give port 443 a certificate, whichever \
                 (a CA does not verify it); where cert-manager itself drives, it makes one for a Certificate with the annotation \
                 cert-manager.io/issue-temporary-certificate: \"true\"",
            ),
            (
                ANY,
                "keep /.well-known/acme-challenge/ out of the redirect to https, or have port 443 of {domain} speak TLS with \
                 a certificate, whichever: a CA does not verify it",
            ),
        ],
    },
    Row {
        marks: &[":443"],
        steps: &[(
            ANY,
            "open port 443 of {domain} to the internet, or keep /.well-known/acme-challenge/ out of the redirect to https: \
             see that ports 80 and 443 lead to {who}",
        )],
    },
    Row {
        marks: &["redirected to "],
        steps: &[(
            ANY,
            "have the server of {domain} answer requests for /.well-known/acme-challenge/ itself, or see that the redirect \
             leads to {who}",
        )],
    },
    Row {
        marks: &["wrong status code '404'", ": 404"],
        steps: &[
            (
                &[Way::Here],
                "see that {domain} leads to this machine in public DNS: another server answers at its port 80. If it is one \
                 of this machine, have it serve the answers: --http01-webroot DIR, its document root",
            ),
            (
                &[Way::Forwarded],
                "have the server at port 80 of {domain} forward /.well-known/acme-challenge/ to {at}, where this program \
                 listens: it answers by itself now",
            ),
            (
                &[Way::Webroot],
                "name the document root from which the server of {domain} serves files, by --http01-webroot: it does not \
                 serve {at}; or have it serve that folder, names that begin with a dot included",
            ),
            (
                &[Way::Ingress],
                "see that {who} takes the solver's Ingress, and that {domain} leads to its ADDRESS: {show} shows class and \
                 address; the solver's ingressClassName names another class",
            ),
            (
                &[Way::Gateway],
                "see that {who} takes the solver's HTTPRoute by a listener for HTTP on port 80 that allows its namespace, \
                 and that {domain} leads to that Gateway: {show} shows what it says (status.parents)",
            ),
        ],
    },
    Row {
        marks: &["wrong status code '401'", "wrong status code '403'", ": 401", ": 403"],
        steps: &[(
            ANY,
            "keep /.well-known/acme-challenge/ out of what asks visitors of {domain} for a password or turns them away \
             (allow-lists, firewalls for the web, CDNs), and see that it leads to {who}",
        )],
    },
    Row {
        marks: &["wrong status code '5", ": 500", ": 502", ": 503", ": 504"],
        steps: &[
            (
                CLUSTER,
                "see that the solver's Pod is ready, and that the health check of the load balancer takes its answers: {show} \
                 shows it; what was made just now may take minutes",
            ),
            (
                ANY,
                "see what the server at port 80 of {domain} logs: it takes the request and cannot get an answer from {who}",
            ),
        ],
    },
    Row {
        marks: &["wrong status code '400'", ": 400 "],
        steps: &[(
            ANY,
            "have the server of {domain} speak plain HTTP at port 80, where a CA begins: this one may expect TLS; and see \
             that it leads to {who}",
        )],
    },
    Row {
        marks: &[
            "wrong status code '",
            "did not get expected response",
            "did not match this challenge",
            "Invalid response from ",
        ],
        steps: &[
            (
                &[Way::Forwarded],
                "have the server at port 80 of {domain} forward /.well-known/acme-challenge/ to {at}, where this program \
                 listens, before it answers with a page of its own",
            ),
            (
                ANY,
                "see that {domain} leads to {who} in public DNS, and that no server on the way (a router, a CDN, a site that \
                 has a page for every path) answers /.well-known/acme-challenge/ by itself",
            ),
        ],
    },
    Row {
        marks: &["connection refused", "Connection refused"],
        steps: &[
            (
                &[Way::Here],
                "see that {domain} leads to this machine in public DNS, and that what stands before it forwards port 80: \
                 nothing takes connections there",
            ),
            (
                &[Way::Forwarded],
                "forward port 80 of {domain} to {at}, where this program listens (by the router, a web server or the \
                 firewall), or leave --http01-listen out: nothing takes connections at port 80",
            ),
            (
                &[Way::Webroot],
                "start the web server of {domain} that serves {at} at port 80, and see that the name leads to it in public \
                 DNS",
            ),
            (
                CLUSTER,
                "see that {domain} leads to {who} in public DNS ({show} shows the address), and that its Service has port \
                 80: nothing takes connections there",
            ),
        ],
    },
    Row {
        marks: &["took the connection but did not answer"],
        steps: &[(
            ANY,
            "see what listens at port 80 of {domain}: it takes connections and says nothing, as a proxy does whose server is \
             away; it has to lead to {who}",
        )],
    },
    Row {
        marks: &[
            "no answer from ",
            "no route to ",
            "i/o timeout",
            "deadline exceeded",
            "Timeout during connect",
            "no route to host",
        ],
        steps: &[
            (
                LISTENER,
                "open port 80 to the whole internet in every firewall on the way (of this machine, the network, the \
                 provider), and see that {domain} leads to {who} in public DNS; if it answers from outside alone (NAT), \
                 --http01-resolve {domain}=ADDRESS has this machine look at that address",
            ),
            (
                ANY,
                "open port 80 to the whole internet in every firewall on the way, and see that {domain} leads to {who} in \
                 public DNS; if it answers from outside alone (NAT), --http01-resolve {domain}=ADDRESS looks at that address",
            ),
        ],
    },
    Row {
        marks: &["is not HTTP/1.1", "malformed HTTP"],
        steps: &[(
            ANY,
            "have the server of {domain} speak plain HTTP/1.1 at port 80, where a CA begins: what is there speaks something \
             else, such as TLS; and see that it leads to {who}",
        )],
    },
    Row {
        marks: &[
            "closed the connection",
            "connection reset",
            "Connection reset",
            ": EOF",
            "broke off in the middle",
        ],
        steps: &[(
            ANY,
            "see what hangs up at port 80 of {domain}: a firewall that knows ACME, a proxy that expects the PROXY protocol, \
             or a server that expects TLS; it has to lead to {who}",
        )],
    },
    Row {
        marks: &[
            "no such host ",
            "has neither an A nor an AAAA record",
            ": no such host",
            "NXDOMAIN looking up",
            "no valid A records",
            "No valid IP addresses",
        ],
        steps: &[
            (
                CLUSTER,
                "make an A or AAAA record by which {domain} leads to {who} in public DNS ({show} shows the address), or prove \
                 the name by DNS-01; resolvers may remember for minutes that there was none",
            ),
            (
                ANY,
                "make an A or AAAA record by which {domain} leads to {who} in public DNS, or prove the name by DNS-01; \
                 resolvers may remember for minutes that there was none",
            ),
        ],
    },
    Row {
        marks: &[],
        steps: &[(
            ANY,
            "see that {domain} leads to {who} in public DNS, and that port 80 is open to the internet",
        )],
    },
];

/// How the type of a CA's problem begins.
const PROBLEM: &str = " urn:ietf:params:acme:error:";
/// The server was asked, or tried, over IPv6.
const SIX: &[&str] = &["over IPv6", " by [", " from [", " to [", "dial tcp ["];
/// What helps then, too.
const SIX_STEP: &str =
    ": it is asked at its AAAA record, which has to lead there, too, or to be taken away";

/// What helps against that reason.
pub(super) fn advice(challenge: &Challenge, reason: &str, in_cluster: bool) -> String {
    let place = Place::of(challenge, in_cluster);
    let reason = reason.split_once(INSIDE).map_or(reason, |(outside, _)| outside);
    // The status of the CA's own answer stands before the type of its problem.
    let reason = reason.rsplit_once(PROBLEM).map_or(reason, |(_, told)| told);
    let has_one = |texts: &[&str]| texts.iter().any(|text| reason.contains(text));
    let row = TABLE.iter().find(|row| row.marks.is_empty() || has_one(row.marks));
    let steps = row.map_or(&[][..], |row| row.steps);
    let step = steps.iter().find(|(ways, _)| ways.contains(&place.way));
    let step = step.map_or("", |(_, step)| step);
    let text = [("{domain}", &challenge.spec.dns_name), ("{who}", &place.who)]
        .into_iter()
        .chain([("{at}", &place.at), ("{show}", &place.show)])
        .fold(step.to_owned(), |text, (hole, value)| text.replace(hole, value));
    // An address may be ordered itself.
    let is_name = !challenge.spec.dns_name.contains(':');
    if is_name && has_one(SIX) { text + SIX_STEP } else { text }
}

/// Who answers a challenge, in words.
struct Place {
    way: Way,
    who: String,
    /// Where this program listens, or writes.
    at: String,
    /// What shows what leads to a solver's Pod.
    show: String,
}

impl Place {
    fn of(challenge: &Challenge, in_cluster: bool) -> Self {
        let called = invocation::current();
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        let written = memory.webroot.as_deref().filter(|_| !in_cluster);
        if let Some(folder) = called.webroot().or(written) {
            let who = "the web server that serves the answers".to_owned();
            return Self { way: Way::Webroot, who, at: folder.to_owned(), show: String::new() };
        }
        let listeners = called.listeners();
        if listeners.is_empty() && in_cluster {
            return Self::in_cluster(challenge);
        }
        let is_at_80 = |address: &String| address.ends_with(":80");
        let is_here = listeners.is_empty() || listeners.iter().any(is_at_80);
        let way = if is_here { Way::Here } else { Way::Forwarded };
        let (who, at) = ("this machine".to_owned(), listeners.join(" or "));
        Self { way, who, at, show: String::new() }
    }

    /// What leads to the Pods that answer in a cluster.
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
            return Self { way: Way::Gateway, who, at: String::new(), show };
        }
        let name = ingress.map(|ingress| ingress.name.as_str()).filter(|name| !name.is_empty());
        let class =
            ingress.and_then(|it| it.ingress_class_name.clone().or_else(|| it.class.clone()));
        let who = match (name, class.filter(|class| !class.is_empty())) {
            (Some(name), _) => format!("the controller of Ingress {}", quoted(name)),
            (None, Some(class)) => format!("the controller of Ingress class {class}"),
            (None, None) => "the cluster's Ingress controller".to_owned(),
        };
        Self { way: Way::Ingress, who, at: String::new(), show: shown("pods,services,ingresses") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::solver::{GatewaySolver, IngressSolver};
    use crate::reconcile::testing::challenge;

    /// What helps against a reason, with a solver of each sort.
    #[track_caller]
    fn check(reason: &str, here: &str, ingress: &str, gateway: &str) {
        let mut challenge = challenge("www.example.com").build();
        let advised = |challenge: &Challenge, in_cluster, expected: &str| {
            let advice = advice(challenge, reason, in_cluster);
            assert!(advice.contains(expected), "{reason}: {advice}");
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
    fn every_sort_of_reason_has_its_own_step_whoever_wrote_it() {
        let everywhere = |reason: &str, expected: &str| check(reason, expected, expected, expected);
        for reason in
            ["wrong status code '404', expected '200'", "Invalid response from http://x/: 404"]
        {
            check(
                reason,
                "another server answers at its port 80",
                "the controller of Ingress class nginx takes the solver's Ingress",
                "takes the solver's HTTPRoute by a listener for HTTP on port 80",
            );
        }
        for reason in [
            "connection refused by 192.0.2.1:80",
            "connect: connection refused",
            "Connection refused",
        ] {
            check(
                reason,
                "leads to this machine in public DNS",
                "its Service has port 80",
                "its Service has port 80",
            );
        }
        for reason in [
            "no answer from 192.0.2.1:80 within 10s",
            "dial tcp 192.0.2.1:80: i/o timeout",
            "Timeout during connect (likely firewall problem)",
        ] {
            everywhere(reason, "open port 80 to the whole internet");
        }
        for reason in [
            "no such host www.example.com",
            "lookup www.example.com on 10.96.0.10:53: no such host",
            "DNS problem: NXDOMAIN looking up A for www.example.com",
        ] {
            everywhere(reason, "make an A or AAAA record by which www.example.com leads to ");
        }
        for (reason, expected) in [
            ("wrong status code '403', expected '200'", "for a password or turns them away"),
            ("wrong status code '418', expected '200'", "no server on the way"),
            ("wrong status code '400', expected '200'", "speak plain HTTP at port 80"),
            (
                "did not get expected response when querying endpoint: got \"<html>\"",
                "no server on the way",
            ),
            ("the answer of 192.0.2.1:80 is not HTTP/1.1", "speak plain HTTP/1.1 at port 80"),
            ("192.0.2.1:80 closed the connection without an answer", "see what hangs up"),
            ("192.0.2.1:80 took the connection but did not answer within 10s", "says nothing"),
            (
                "got \"t.k\", the answer of another account for the same token",
                "end the other ACME client",
            ),
            (
                "redirect to http://a.example:8080/: Invalid port in redirect target",
                "change where the server",
            ),
            (
                "wrong status code '404', expected '200' (redirected to https://a/)",
                "itself, or see that the redirect",
            ),
            ("", "and that port 80 is open to the internet"),
        ] {
            everywhere(reason, expected);
        }
        check(
            "wrong status code '503', expected '200'",
            "cannot get an answer from this machine",
            "the solver's Pod is ready",
            "the solver's Pod is ready",
        );
        for reason in
            ["TLS handshake with 192.0.2.1:443 failed: x", "remote error: tls: handshake failure"]
        {
            let temporary = "issue-temporary-certificate";
            check(reason, "out of the redirect to https", temporary, temporary);
        }
    }

    #[test]
    fn a_ca_is_read_as_it_says_it() {
        for (problem, expected) in [
            (
                "400 urn:ietf:params:acme:error:connection: 192.0.2.1: Fetching http://www.example.com/x: Connection refused",
                "nothing takes connections",
            ),
            (
                "403 urn:ietf:params:acme:error:unauthorized: 192.0.2.1: Invalid response from http://www.example.com/x: 404",
                "another server answers",
            ),
            (
                "403 urn:ietf:params:acme:error:unauthorized: 192.0.2.1: Invalid response from http://www.example.com/x: 403",
                "for a password",
            ),
            (
                "403 urn:ietf:params:acme:error:unauthorized: The key authorization file from the server did not match this challenge. Expected \"a\" (got \"b\")",
                "no server on the way",
            ),
            (
                "400 urn:ietf:params:acme:error:dns: DNS problem: NXDOMAIN looking up A for www.example.com",
                "make an A or AAAA record",
            ),
        ] {
            let reason = format!("acme: authorization error for www.example.com: {problem}");
            let advice = advice(&challenge("www.example.com").build(), &reason, false);
            assert!(advice.contains(expected), "{reason}: {advice}");
        }
    }

    #[test]
    fn what_is_seen_from_a_pod_decides_nothing() {
        let seen = "connection refused by 192.0.2.1:80; from inside the cluster: wrong status code '404', expected '200'";
        let refused = "nothing takes connections there";
        check(seen, refused, refused, refused);
    }

    #[test]
    fn an_address_of_ipv6_that_fails_is_told() {
        let told = "taken away";
        for reason in [
            "connection refused by [2001:db8::1]:80",
            "wrong status code '404', expected '200' (over IPv6)",
        ] {
            check(reason, told, told, told);
        }
        let mut challenge = challenge("2001:db8::1").build();
        challenge.spec.dns_name = "2001:db8::1".to_owned();
        let reason = "connection refused by [2001:db8::1]:80";
        assert!(!advice(&challenge, reason, false).contains(told));
    }

    #[test]
    fn files_in_a_document_root_are_served_by_somebody_else() {
        let mut challenge = challenge("www.example.com").build();
        let memory = Memory { webroot: Some("/srv/www".to_owned()), ..Memory::default() };
        memory.write(Holder::Challenge, &mut challenge.metadata.annotations);
        for (reason, expected) in [
            ("wrong status code '404', expected '200'", "it does not serve /srv/www"),
            (
                "connection refused by 192.0.2.1:80",
                "start the web server of www.example.com that serves /srv/www",
            ),
        ] {
            let advice = advice(&challenge, reason, false);
            assert!(advice.contains(expected), "{advice}");
        }
    }
}
