//! What helps when the answer to a challenge is not seen where it should be, as the reason tells.

use super::advice::RESOLVER;
use crate::model::{Challenge, ChallengeType};
use crate::solvers::http01::cluster::no_ingress;
use crate::store::denial_advice;

/// What helps against that reason; in a cluster something leads to the answer's Pod, elsewhere this machine answers.
pub fn advice(challenge: &Challenge, reason: &str, in_cluster: bool) -> String {
    let name = &challenge.spec.dns_name;
    let place = if in_cluster { way_in(challenge) } else { "this machine".to_owned() };
    let record = challenge.spec.record_name();
    let kind = challenge.spec.kind;
    if kind.is_by_record()
        && let Some(advice) = dns_advice(reason).or_else(|| for_servers(reason))
    {
        return advice;
    }
    match kind {
        ChallengeType::Http01 => for_http01(name, &place, reason),
        ChallengeType::TlsAlpn01 => for_lookup(name, reason).unwrap_or_else(|| {
            format!(
                "see that {name} leads to {place} in public DNS, that port 443 is open to the internet, and that nothing \
                 ends TLS on the way"
            )
        }),
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 => {
            format!("see that every name server of its zone answers with the TXT record {record}")
        }
        ChallengeType::DnsPersist01 => {
            format!("see that there is such a record: {record} TXT \"{}\"", challenge.spec.key)
        }
    }
}

/// What helps where an answer could not even be put up; nothing where the reason tells of something else.
pub fn unpresented(challenge: &Challenge, reason: &str) -> Option<String> {
    let namespace = &challenge.metadata.namespace;
    let ingress = challenge.spec.solver.http01.as_ref().and_then(|http01| http01.ingress.as_ref());
    let name = ingress.map(|ingress| ingress.name.as_str()).filter(|name| !name.is_empty());
    match name {
        Some(name) if reason.ends_with(&format!("ingress {name} not found")) => {
            Some(no_ingress(name, namespace))
        }
        _ => denial_advice(reason, namespace),
    }
}

/// What helps where the way to a record's zone is at fault, whoever met that; nothing where it is not.
pub fn dns_advice(reason: &str) -> Option<String> {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    let advice = if says(&["recursive CNAME record"]) {
        "take one of these CNAME records away, or lead it elsewhere: they lead in a circle, and no CA finds a record there"
    } else if says(&["cnameStrategy is not Follow"]) {
        "set cnameStrategy: Follow in the dns01 solver, so that the record is written where the CNAME leads; or take the \
         CNAME away"
    } else if says(&[
        "Could not determine the zone",
        "Could not find the SOA record",
        "Could not determine authoritative nameservers",
    ]) {
        "see that the domain is delegated to name servers that serve its zone (dig +trace NAME SOA shows where it ends), \
         and that the resolvers named there answer; --dns01-recursive-nameservers names others"
    } else {
        return None;
    };
    Some(advice.to_owned())
}

/// What helps where servers of a record's zone do not do their work.
fn for_servers(reason: &str) -> Option<String> {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    let advice = if reason.starts_with("NS ") && says(&[" returned "]) {
        "have that name server serve the zone, or take it out of the zone's NS records"
    } else if says(&[
        " does not answer",
        " refuses the connection",
        " has no address",
        "name servers take longer than",
    ]) {
        "start the name servers that do not answer and open port 53 to them (UDP and TCP), or take them out of the \
         zone's NS records"
    } else {
        return None;
    };
    Some(advice.to_owned())
}

fn for_http01(name: &str, place: &str, reason: &str) -> String {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if says(&[": redirect to "]) {
        return format!(
            "change where the server of {name} sends requests for /.well-known/acme-challenge/: a CA follows no redirect \
             but to names with http on port 80 or https on port 443, ten at most"
        );
    }
    if let Some(advice) = for_lookup(name, reason) {
        return advice;
    }
    if says(&["redirected to "]) {
        return format!(
            "have the server of {name} answer requests for /.well-known/acme-challenge/ itself, or see that the redirect \
             leads to {place}"
        );
    }
    let port = if says(&[":443"]) {
        "ports 80 and 443 are open to the internet, or that nothing redirects to https"
    } else {
        "port 80 is open to the internet"
    };
    let address = if says(&["over IPv6"]) {
        ": it is asked at its AAAA record, which has to lead there, too, or to be taken away"
    } else {
        ""
    };
    format!("see that {name} leads to {place} in public DNS, and that {port}{address}")
}

/// What helps where a name has no address because nobody could say which.
fn for_lookup(name: &str, reason: &str) -> Option<String> {
    let says = |word: &str| reason.contains(word);
    if says("CNAME loop: ") {
        return Some(format!(
            "take one of these CNAME records away, or lead it elsewhere: by them {name} has no address"
        ));
    }
    if says("where the CNAME of ") {
        return Some("give that name an address, or lead the CNAME elsewhere".to_owned());
    }
    if says("no name server answered") {
        return Some(format!("check {RESOLVER}"));
    }
    says("name server answered").then(|| {
        format!("have the name servers of {name} put right: dig +trace {name} shows where it ends")
    })
}

/// What leads to the Pods that answer in a cluster.
fn way_in(challenge: &Challenge) -> String {
    let solver = challenge.spec.solver.http01.as_ref();
    if solver.is_some_and(|solver| solver.gateway_http_route.is_some()) {
        return "the Gateway that the solver names".to_owned();
    }
    let class = solver
        .and_then(|solver| solver.ingress.as_ref())
        .and_then(|ingress| ingress.ingress_class_name.clone().or_else(|| ingress.class.clone()));
    match class.filter(|class| !class.is_empty()) {
        Some(class) => format!("the controller of Ingress class {class}"),
        None => "the cluster's Ingress controller".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::testing::challenge;

    #[track_caller]
    fn check(kind: ChallengeType, reason: &str, in_cluster: bool, expected: &str) {
        let mut challenge = challenge("www.example.com").build();
        challenge.spec.kind = kind;
        let advice = advice(&challenge, reason, in_cluster);
        assert!(advice.contains(expected), "{advice}");
    }

    #[test]
    fn a_name_is_led_to_whoever_answers() {
        let http = ChallengeType::Http01;
        let refused = "connection refused by 192.0.2.1:80";
        check(http, refused, false, "leads to this machine in public DNS, and that port 80 is");
        check(http, refused, true, "leads to the cluster's Ingress controller in public DNS");
        check(ChallengeType::TlsAlpn01, "", false, "leads to this machine in public DNS");
    }

    #[test]
    fn what_stands_in_the_way_decides_what_helps() {
        let http = ChallengeType::Http01;
        let redirect = "failed to perform self check GET request '…': redirect to http://www.example.com:8080/: Invalid \
                        port in redirect target";
        check(http, redirect, false, "change where the server of www.example.com sends requests");
        let dead = "the name server answered SERVFAIL";
        check(http, dead, true, "have the name servers of www.example.com put right");
        check(ChallengeType::TlsAlpn01, dead, false, "have the name servers of www.example.com");
        check(http, "connection refused by 192.0.2.1:443", false, "ports 80 and 443 are open");
        check(http, "no name server answered", false, "check this machine's own resolver");
        check(http, "CNAME loop: a -> b -> a", false, "take one of these CNAME records away");
        let lost = "no such host gone.example.net, where the CNAME of www.example.com leads";
        check(http, lost, false, "give that name an address, or lead the CNAME elsewhere");
        let led =
            "wrong status code '404', expected '200' (redirected to https://www.example.com/x)";
        check(http, led, false, "answer requests for /.well-known/acme-challenge/ itself");
        let six = "wrong status code '404', expected '200' (over IPv6)";
        check(http, six, false, "it is asked at its AAAA record");
    }

    #[test]
    fn what_name_servers_lack_is_told_for_records() {
        let dns = ChallengeType::Dns01;
        let record = "every name server of its zone answers with the TXT record _acme-challenge.www.example.com.";
        check(dns, "", false, record);
        let behind =
            "DNS record for \"www.example.com\" not yet propagated: 1 of 2 nameservers answer: ";
        check(dns, &format!("{behind}ns2.example.com. (192.0.2.2) says NXDOMAIN"), false, record);
        for (reason, expected) in [
            (
                "Found recursive CNAME record to \"a.\" when looking up \"b.\"".to_owned(),
                "take one of these CNAME records away",
            ),
            (
                format!("{behind}ns2.example.com. (192.0.2.2) does not answer"),
                "start the name servers that do not answer",
            ),
            (
                format!("NS ns2.example.com. returned REFUSED for a.: {behind}ns2.example.com. says REFUSED"),
                "have that name server serve the zone",
            ),
            (
                "Could not determine the zone for \"a.\": cannot look up a.: 192.0.2.1:53 does not answer"
                    .to_owned(),
                "--dns01-recursive-nameservers names others",
            ),
            (
                format!("{behind}…; a. is an alias, and the solver's cnameStrategy is not Follow"),
                "set cnameStrategy: Follow",
            ),
        ] {
            check(dns, &reason, false, expected);
        }
    }
}
