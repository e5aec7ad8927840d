//! What helps when the answer to a challenge is not where the CA looks, by what is there in its place.
//!
//! It is the same for `order` and for `challenge check`: one fault has one next step.

use super::http01;
use super::invocation;
use crate::diagnosis::verdict::next_step::AnswerStep;
use crate::diagnosis::words::facts::KeptAnswer;
use crate::model::ChallengeType;
use crate::model::cause::Symptom;
use crate::solvers::dns01::manual::is_a_persons;

/// The resolver that was asked, and what stands in for it.
pub(super) fn resolver() -> String {
    let invocation = invocation::current();
    match invocation.dns() {
        Some(server) => format!("the resolver that {} names: {server}", invocation.named("dns")),
        None => "this machine's own resolver (/etc/resolv.conf); --dns ADDRESS asks another one"
            .to_owned(),
    }
}

/// What helps; in a cluster something leads to the answer's Pod, elsewhere this machine answers.
pub fn line(step: &AnswerStep) -> String {
    let AnswerStep { challenge, sighting, in_cluster } = step;
    let symptom = sighting.map(|sighting| sighting.symptom);
    let name = &challenge.spec.dns_name;
    let record = challenge.spec.record_name();
    let kind = challenge.spec.kind;
    if kind.is_by_record()
        && let Some(advice) = symptom.and_then(zone)
    {
        return advice.to_owned();
    }
    match kind {
        ChallengeType::Http01 => symptom
            .and_then(|symptom| host(name, symptom))
            .unwrap_or_else(|| http01::line(challenge, *sighting, *in_cluster)),
        // cert-manager knows no such type: this machine answers.
        ChallengeType::TlsAlpn01 => {
            symptom.and_then(|symptom| host(name, symptom)).unwrap_or_else(|| {
                format!(
                    "see that {name} leads to this machine in public DNS, that port 443 is open to the internet, and \
                     that nothing ends TLS on the way"
                )
            })
        }
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

/// What helps where the CA's resolver keeps something else of a record than every name server had when the CA was told.
pub(super) fn kept(kept: KeptAnswer, record: &str) -> String {
    let record = record.trim_end_matches('.');
    match kept {
        KeptAnswer::Absence => format!(
            "every name server had {record} when the CA was told, and the CA's resolver keeps that there is none: for as long as \
             the zone's SOA record says, and where that zone is signed with NSEC although nobody asked for that very name \
             (D01-03); then run the same command again"
        ),
        KeptAnswer::Values => format!(
            "every name server had the right value of {record} when the CA was told, and the CA's resolver still has an earlier \
             one (D01-22): run the same command again in a minute"
        ),
    }
}

/// What helps where the way to a record's zone, or one of its servers, is at fault; nothing where they are not.
pub(super) fn zone(symptom: Symptom) -> Option<&'static str> {
    Some(match symptom {
        Symptom::AliasLoop => {
            "take one of these CNAME records away, or lead it elsewhere: they lead in a circle, and no CA finds a record there"
        }
        Symptom::AliasNotFollowed => {
            "set cnameStrategy: Follow in the dns01 solver, so that the record is written where the CNAME leads; or take the \
             CNAME away"
        }
        Symptom::NotDelegated => {
            "see that the domain is delegated to name servers that serve its zone (dig +trace NAME SOA shows where it ends), \
             and that the resolvers named there answer, SOA and NS included (D01-04: dnsmasq with filterwin2k and some \
             routers filter them); --dns01-recursive-nameservers names others"
        }
        Symptom::NameServersFail => {
            "have the name servers of that zone, and of the zones of its aliases, answer: resolvers get an error from them \
             (dig NAME SOA shows it)"
        }
        Symptom::LameServer => {
            "have that name server serve the zone, or take it out of the zone's NS records"
        }
        Symptom::ServersSilent => {
            "start the name servers that do not answer and open port 53 to them (UDP and TCP), or take them out of the \
             zone's NS records"
        }
        Symptom::ServerUnreadable => {
            "see what that name server sends (dig @ADDRESS NAME TXT), and that nothing on the way answers in its place or \
             changes its answers; or take it out of the zone's NS records"
        }
        Symptom::NoRoute => {
            "look from a machine that has a way to these name servers (ip route get ADDRESS tells), such as one with IPv6; or \
             give them addresses that this one reaches, too"
        }
        _ => return None,
    })
}

/// What helps where a host has no address because nobody could say which; nothing where something else is at fault.
fn host(name: &str, symptom: Symptom) -> Option<String> {
    Some(match symptom {
        Symptom::AliasLoop => format!(
            "take one of these CNAME records away, or lead it elsewhere: by them {name} has no address"
        ),
        Symptom::DanglingAlias => {
            "give that name an address, or lead the CNAME elsewhere".to_owned()
        }
        Symptom::ResolverSilent => format!("check {}", resolver()),
        Symptom::NameServersFail => {
            format!(
                "have the name servers of {name} put right: dig +trace {name} shows where it ends"
            )
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::dns::{LookupError, Silence, Why};
    use crate::fetch::outcome::FetchError;
    use crate::model::Answer;
    use crate::model::cause::Sighting;
    use crate::model::observation::{Hop, NameServer, Observation, Said, Seen, Shown, Vantage};
    use crate::reconcile::challenge::Readiness;
    use crate::reconcile::testing::challenge;
    use crate::reconcile::{dns01_visible, http01_visible};

    #[track_caller]
    fn check(kind: ChallengeType, symptom: Option<Symptom>, in_cluster: bool, expected: &str) {
        let mut challenge = challenge("www.example.com").build();
        challenge.spec.kind = kind;
        let sighting = symptom.map(Sighting::from);
        let advice = line(&AnswerStep { challenge, sighting, in_cluster });
        assert!(advice.contains(expected), "{advice}");
    }

    #[test]
    fn a_name_is_led_to_whoever_answers() {
        let http = ChallengeType::Http01;
        let refused = Some(Symptom::ConnectionRefused);
        check(http, refused, false, "nothing takes connections there");
        check(http, refused, true, "leads to the cluster's Ingress controller in public DNS");
        check(ChallengeType::TlsAlpn01, None, false, "leads to this machine in public DNS");
    }

    const LED: &str = "leads to this machine in public DNS";
    const RECORD: &str = "see that every name server of its zone answers";
    const START: &str = "start the name servers that do not answer";
    const DELEGATED: &str = "see that the domain is delegated";
    const FAILING: &str = "have the name servers of that zone";
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
            ChallengeType::Http01 => http01_visible::judge(&answer, &[look]),
            _ => dns01_visible::judge(&challenge, &answer, &[look]),
        };
        let Readiness::NotYet { reason, cause: sighting } = verdict else { panic!("it is seen") };
        let advice = line(&AnswerStep { challenge, sighting, in_cluster: false });
        assert!(advice.contains(expected), "{reason}: {advice}");
    }

    /// What helps where a record's zone or a host could not be looked up.
    fn for_failed(why: &Why) -> (&'static str, &'static str) {
        match why {
            Why::AliasLoop(_) => (ALIASES, ALIASES),
            Why::Answered { .. } => (FAILING, "have the name servers of www.example.com"),
            Why::Silent | Why::Unreadable => (RECORD, "check this machine's own resolver"),
            Why::Slow { .. } => (START, LED),
            Why::Server { silence, .. } => (for_silence(silence), LED),
            Why::Other(_) => (RECORD, LED),
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
            LookupError::AliasLoop { .. } => (ALIASES, ALIASES),
            LookupError::UnexpectedCode { .. } => {
                (FAILING, "have the name servers of www.example.com")
            }
            LookupError::NoZone { .. }
            | LookupError::UnknownZone { .. }
            | LookupError::NoServers { .. } => (DELEGATED, LED),
        }
    }

    #[test]
    fn every_look_up_that_fails_has_its_advice() {
        let failed = |why| LookupError::Failed { name: text("a."), why };
        let no_zone = LookupError::NoZone { name: text("a."), servers: text("192.0.2.1:53") };
        for error in [
            LookupError::NoSuchName { name: text("a") },
            LookupError::NoSuchTarget { name: text("a"), target: text("b") },
            LookupError::NoAddress { name: text("a") },
            LookupError::NoText { name: text("a") },
            failed(Why::AliasLoop(["a", "b", "a"].map(text).to_vec())),
            failed(Why::Answered { code: text("SERVFAIL"), target: None }),
            failed(Why::Silent),
            failed(Why::Unreadable),
            failed(Why::Slow { seconds: 20 }),
            failed(Why::Server { server: text("192.0.2.1:53"), silence: Silence::TimedOut }),
            failed(Why::Other(text("it is not a DNS name"))),
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
            let nothing = |why, symptom| observed(Seen::Nothing { why, symptom }, Vec::new());
            let looked_up = nothing(error.to_string(), error.symptom());
            check_seen(ChallengeType::Dns01, looked_up, record);
            let of_host = FetchError::Lookup(error);
            let fetched = nothing(of_host.to_string(), of_host.symptom());
            check_seen(ChallengeType::Http01, fetched, host);
        }
    }

    fn text(text: &str) -> String {
        text.to_owned()
    }

    fn refused(why: &str) -> Seen {
        Seen::Nothing { why: text(why), symptom: Some(Symptom::ConnectionRefused) }
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
                why if why.symptom() == Some(Symptom::ServerUnreadable) => {
                    Said::Unreadable(why.to_string())
                }
                why => Said::Nothing(why.to_string()),
            };
            if !matches!(silence, Silence::Https(_)) {
                check_said(said, for_silence(&silence));
            }
            let why = Why::Server { server: text("192.0.2.1:53"), silence: silence.clone() };
            let unread = LookupError::Failed { name: text("a."), why };
            let (why, symptom) = (unread.to_string(), unread.symptom());
            let nothing = observed(Seen::Nothing { why, symptom }, Vec::new());
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
            Said::Nothing(text("has no address")),
            Said::Unreadable(text("gives an answer that cannot be read")),
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
                Said::Unreadable(_) => for_silence(&Silence::Unreadable),
                Said::NoRoute => for_silence(&Silence::NoRoute),
            };
            check_said(said, expected);
        }
    }

    #[test]
    fn everything_that_a_look_sees_has_its_advice() {
        let reply = || Seen::Reply {
            status: 404,
            body: String::new(),
            truncated: false,
            is_declined: false,
        };
        for seen in [
            refused("connection refused by 192.0.2.1:80"),
            Seen::NoLook { why: text("there is no Pod"), symptom: None },
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
        let tls = vec![
            hop("http://www.example.com/", "192.0.2.1:80"),
            hop("https://www.example.com/", "192.0.2.1:443"),
        ];
        check_seen(
            ChallengeType::Http01,
            observed(refused("connection refused by 192.0.2.1:443"), tls),
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
        let dead = Some(Symptom::NameServersFail);
        check(ChallengeType::TlsAlpn01, dead, false, "have the name servers of www.example.com");
    }
}
