//! What helps when the answer to a challenge is not seen where it should be, as the reason tells.

use super::http01;
use crate::dns::{ADDRESSLESS, ANSWERED, CIRCLE, SILENT, SLOW, UNREADABLE};
use crate::model::{Challenge, ChallengeType};
use crate::reconcile::published::{NOT_FOLLOWED, UNREACHABLE};
use crate::solvers::dns01::manual::is_a_persons;
use crate::solvers::http01::cluster::no_ingress;
use crate::store::error::denial_advice;

/// What helps against that reason; in a cluster something leads to the answer's Pod, elsewhere this machine answers.
pub fn advice(challenge: &Challenge, reason: &str, in_cluster: bool) -> String {
    let name = &challenge.spec.dns_name;
    let record = challenge.spec.record_name();
    let kind = challenge.spec.kind;
    if kind.is_by_record()
        && let Some(advice) = dns_advice(reason).or_else(|| for_servers(reason))
    {
        return advice;
    }
    match kind {
        ChallengeType::Http01 => for_lookup(name, reason)
            .unwrap_or_else(|| http01::advice(challenge, reason, in_cluster)),
        // cert-manager knows no such type: this machine answers.
        ChallengeType::TlsAlpn01 => for_lookup(name, reason).unwrap_or_else(|| {
            format!(
                "see that {name} leads to this machine in public DNS, that port 443 is open to the internet, and that \
                 nothing ends TLS on the way"
            )
        }),
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 if is_a_persons(challenge) => {
            format!(
                "see that every name server of its zone has the record that a person makes: {record} TXT \"{}\"",
                challenge.spec.key
            )
        }
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
    } else if says(&[NOT_FOLLOWED]) {
        "set cnameStrategy: Follow in the dns01 solver, so that the record is written where the CNAME leads; or take the \
         CNAME away"
    } else if says(&[
        "Could not determine the zone",
        "Could not find the SOA record",
        "Could not determine authoritative nameservers",
        "When querying the SOA record",
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
    } else if says(&[" does not answer", " refuses the connection", ADDRESSLESS, SLOW]) {
        "start the name servers that do not answer and open port 53 to them (UDP and TCP), or take them out of the \
         zone's NS records"
    } else if says(&[" gives an answer that cannot be read"]) {
        "see what that name server sends (dig @ADDRESS NAME TXT), and that nothing on the way answers in its place or \
         changes its answers; or take it out of the zone's NS records"
    } else if says(&[UNREACHABLE]) {
        "look from a machine that has a way to these name servers (ip route get ADDRESS tells), such as one with IPv6; or \
         give them addresses that this one reaches, too"
    } else {
        return None;
    };
    Some(advice.to_owned())
}

/// What helps where a name has no address because nobody could say which.
fn for_lookup(name: &str, reason: &str) -> Option<String> {
    let says = |word: &str| reason.contains(word);
    if says(CIRCLE) {
        return Some(format!(
            "take one of these CNAME records away, or lead it elsewhere: by them {name} has no address"
        ));
    }
    if says("where the CNAME of ") {
        return Some("give that name an address, or lead the CNAME elsewhere".to_owned());
    }
    if says(SILENT) || says(UNREADABLE) {
        return Some(format!("check {RESOLVER}"));
    }
    says(ANSWERED).then(|| {
        format!("have the name servers of {name} put right: dig +trace {name} shows where it ends")
    })
}

/// What helps where a host has no address, or nobody can say which.
pub const RESOLVER: &str =
    "this machine's own resolver (/etc/resolv.conf); --dns ADDRESS asks another one";

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use crate::diagnosis::advice::self_check::*;
    use crate::dns::LookupError;
    use crate::dns::wire::Silence;
    use crate::fetch::outcome::FetchError;
    use crate::model::Answer;
    use crate::model::observation::{Hop, NameServer, Observation, Said, Seen, Shown, Vantage};
    use crate::reconcile::challenge::Readiness;
    use crate::reconcile::testing::challenge;
    use crate::reconcile::{published, visible};

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
        check(http, refused, false, "nothing takes connections there");
        check(http, refused, true, "leads to the cluster's Ingress controller in public DNS");
        check(ChallengeType::TlsAlpn01, "", false, "leads to this machine in public DNS");
    }

    const LED: &str = "leads to this machine in public DNS";
    const RECORD: &str = "see that every name server of its zone answers";
    const START: &str = "start the name servers that do not answer";
    const DELEGATED: &str = "see that the domain is delegated";
    const ALIASES: &str = "take one of these CNAME records away";

    fn observed(seen: Seen, hops: Vec<Hop>) -> Observation {
        let vantage = Vantage::ThisMachine;
        let url = "http://www.example.com/.well-known/acme-challenge/token".to_owned();
        Observation { vantage, at: Timestamp::UNIX_EPOCH, url, hops, seen }
    }

    /// What helps against the reason that is really given for what was seen.
    #[track_caller]
    fn check_seen(kind: ChallengeType, look: Observation, expected: &str) {
        let mut challenge = challenge("www.example.com").build();
        challenge.spec.kind = kind;
        let answer = Answer::of(&challenge).unwrap();
        let verdict = match kind {
            ChallengeType::Http01 => visible::judge(&answer, &[look]),
            _ => published::judge(&challenge, &answer, &[look]),
        };
        let Readiness::NotYet { reason } = verdict else { panic!("it is seen") };
        let advice = advice(&challenge, &reason, false);
        assert!(advice.contains(expected), "{reason}: {advice}");
    }

    /// What helps where a record's zone or a host could not be looked up.
    fn for_failed(why: &str) -> (&'static str, &'static str) {
        match why {
            _ if why.starts_with(CIRCLE) => (RECORD, ALIASES),
            _ if why.starts_with(ANSWERED) => (RECORD, "have the name servers of www.example.com"),
            _ if why == SILENT || why == UNREADABLE => {
                (RECORD, "check this machine's own resolver")
            }
            _ => (START, LED),
        }
    }

    /// The same, for each error; a new one has to be decided here.
    fn for_lookup_error(error: &LookupError) -> (&'static str, &'static str) {
        match error {
            LookupError::NoSuchName { .. }
            | LookupError::NoAddress { .. }
            | LookupError::NoText { .. } => (RECORD, LED),
            LookupError::NoSuchTarget { .. } => (RECORD, "give that name an address"),
            LookupError::Failed { why, .. } => for_failed(why),
            LookupError::AliasLoop { .. } => (ALIASES, LED),
            LookupError::NoZone { .. }
            | LookupError::UnexpectedCode { .. }
            | LookupError::UnknownZone { .. }
            | LookupError::NoServers { .. } => (DELEGATED, LED),
        }
    }

    #[test]
    fn every_look_up_that_fails_has_its_advice() {
        let failed = |why: String| LookupError::Failed { name: text("a."), why };
        let no_zone = LookupError::NoZone { name: text("a."), servers: text("192.0.2.1:53") };
        for error in [
            LookupError::NoSuchName { name: text("a") },
            LookupError::NoSuchTarget { name: text("a"), target: text("b") },
            LookupError::NoAddress { name: text("a") },
            LookupError::NoText { name: text("a") },
            failed(format!("{CIRCLE}a -> b -> a")),
            failed(format!("{ANSWERED}SERVFAIL")),
            failed(text(SILENT)),
            failed(text(UNREADABLE)),
            failed(format!("its {SLOW} 20 s")),
            failed(format!("192.0.2.1:53 {}", Silence::TimedOut)),
            LookupError::AliasLoop { name: text("a."), target: text("b.") },
            LookupError::UnexpectedCode {
                name: text("a."),
                servers: text("192.0.2.1:53"),
                code: text("SERVFAIL"),
                more: String::new(),
            },
            LookupError::UnknownZone { name: text("a."), why: Box::new(no_zone.clone()) },
            no_zone,
            LookupError::NoServers { name: text("a."), why: text("it has no NS record") },
        ] {
            let (record, host) = for_lookup_error(&error);
            let nothing = |why| observed(Seen::Nothing { why }, Vec::new());
            check_seen(ChallengeType::Dns01, nothing(error.to_string()), record);
            let of_host = FetchError::Lookup(error).to_string();
            check_seen(ChallengeType::Http01, nothing(of_host), host);
        }
    }

    fn text(text: &str) -> String {
        text.to_owned()
    }

    fn for_silence(silence: &Silence) -> &'static str {
        match silence {
            Silence::TimedOut | Silence::Refused => START,
            Silence::Truncated(why) => for_silence(why),
            Silence::NoRoute => "look from a machine that has a way to these name servers",
            Silence::Unreadable => "see what that name server sends",
            // Only resolvers are asked so.
            Silence::Https(_) => RECORD,
        }
    }

    /// What helps against what a name server says.
    fn check_said(said: Said, expected: &str) {
        let (name, address) = (text("ns1.example.net."), "192.0.2.1:53".parse().ok());
        let server = NameServer { name, address, said, ttl: None };
        let name = text("_acme-challenge.www.example.com.");
        let seen = Seen::Records { name, zone: text("example.com."), servers: vec![server] };
        check_seen(ChallengeType::Dns01, observed(seen, Vec::new()), expected);
    }

    #[test]
    fn every_silence_of_a_name_server_has_its_advice() {
        for silence in [
            Silence::TimedOut,
            Silence::Refused,
            Silence::NoRoute,
            Silence::Unreadable,
            Silence::Truncated(Box::new(Silence::TimedOut)),
            Silence::Truncated(Box::new(Silence::Unreadable)),
            Silence::Https(text("says HTTP status 500")),
        ] {
            let said = match &silence {
                Silence::NoRoute => Said::NoRoute,
                why => Said::Nothing(why.to_string()),
            };
            check_said(said, for_silence(&silence));
            let unread =
                LookupError::Failed { name: text("a."), why: format!("192.0.2.1:53 {silence}") };
            let nothing = observed(Seen::Nothing { why: unread.to_string() }, Vec::new());
            check_seen(ChallengeType::Dns01, nothing, for_silence(&silence));
        }
    }

    #[test]
    fn everything_that_a_name_server_says_has_its_advice() {
        for said in [
            Said::Texts(vec![text("old")]),
            Said::NoText,
            Said::NoName,
            Said::Alias(text("b.")),
            Said::Referral(text("example.net.")),
            Said::Code(text("REFUSED")),
            Said::Nothing(text(ADDRESSLESS)),
            Said::NoRoute,
        ] {
            let expected = match &said {
                Said::Texts(_)
                | Said::NoText
                | Said::NoName
                | Said::Alias(_)
                | Said::Referral(_) => RECORD,
                Said::Code(_) => "have that name server serve the zone",
                Said::Nothing(_) => START,
                Said::NoRoute => for_silence(&Silence::NoRoute),
            };
            check_said(said, expected);
        }
    }

    #[test]
    fn everything_that_a_look_sees_has_its_advice() {
        let reply = || Seen::Reply { status: 404, body: String::new(), truncated: false };
        for seen in [
            Seen::Nothing { why: text("connection refused by 192.0.2.1:80") },
            Seen::NoLook { why: text("there is no Pod") },
            Seen::Redirect { to: text("http://www.example.com:8080/"), why: text("Invalid port") },
            reply(),
            Seen::Handshake { protocol: text("acme-tls/1"), certificate: Shown::default() },
            Seen::Records { name: text("a."), zone: String::new(), servers: Vec::new() },
        ] {
            let expected = match &seen {
                Seen::Redirect { .. } => {
                    "change where the server of www.example.com sends requests"
                }
                Seen::Nothing { .. }
                | Seen::NoLook { .. }
                | Seen::Reply { .. }
                | Seen::Handshake { .. }
                | Seen::Records { .. } => LED,
            };
            check_seen(ChallengeType::Http01, observed(seen, Vec::new()), expected);
        }
        let hop = |url: &str, address: &str| Hop {
            url: text(url),
            address: address.parse().ok(),
            status: Some(404),
        };
        let led = vec![
            hop("http://www.example.com/", "192.0.2.1:80"),
            hop("https://b.example/", "192.0.2.2:443"),
        ];
        let itself = "answer requests for /.well-known/acme-challenge/ itself";
        check_seen(ChallengeType::Http01, observed(reply(), led), itself);
        let six = vec![hop(
            "http://www.example.com/.well-known/acme-challenge/token",
            "[2001:db8::1]:80",
        )];
        check_seen(ChallengeType::Http01, observed(reply(), six), "it is asked at its AAAA record");
        let tls = Seen::Nothing { why: text("connection refused by 192.0.2.1:443") };
        check_seen(
            ChallengeType::Http01,
            observed(tls, Vec::new()),
            "open port 443 of www.example.com to the internet",
        );
    }

    #[test]
    fn a_record_elsewhere_than_its_solver_writes_is_told() {
        let (name, zone) = (text("elsewhere.example.net."), text("example.net."));
        let server =
            NameServer { name: text("ns1."), address: None, said: Said::NoName, ttl: None };
        let seen = Seen::Records { name, zone, servers: vec![server] };
        let look = observed(seen, Vec::new());
        check_seen(ChallengeType::Dns01, look, "set cnameStrategy: Follow");
    }

    #[test]
    fn a_name_that_cannot_be_looked_up_is_told_where_a_handshake_shows_the_answer() {
        let dead = format!("{ANSWERED}SERVFAIL");
        check(ChallengeType::TlsAlpn01, &dead, false, "have the name servers of www.example.com");
    }
}
