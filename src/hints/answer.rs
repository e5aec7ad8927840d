//! Hints for a challenge whose answer is not where the CA looks, by what is there in place of the answer.
//!
//! `order` and `challenge check` print the same hints: one fault has one next step.

use super::{http01, invocation};
use crate::diagnosis::verdict::next_step::AnswerStep;
use crate::diagnosis::words::facts::StaleAnswer;
use crate::model::ChallengeType;
use crate::model::cause::Symptom;
use crate::solvers::dns01::manual::is_a_persons;

/// Describes the resolver that was asked, and names the flag that chooses another one.
pub(super) fn resolver() -> String {
    let invocation = invocation::current();
    match invocation.dns() {
        Some(server) => format!("the resolver that {} names: {server}", invocation.named("dns")),
        None => "this machine's own resolver (/etc/resolv.conf); --dns ADDRESS asks another one"
            .to_owned(),
    }
}

/// Returns the hint for a step; in a cluster a Pod answers behind an Ingress or Gateway, elsewhere this machine answers.
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
        // cert-manager has no such challenge type, so this machine answers.
        ChallengeType::TlsAlpn01 => {
            symptom.and_then(|symptom| host(name, symptom)).unwrap_or_else(|| {
                format!(
                    "check that {name} points to this machine in public DNS, that port 443 is open to the internet, and \
                     that nothing on the way ends TLS"
                )
            })
        }
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 if is_a_persons(challenge) => {
            format!(
                "check that every name server of the zone has the record that a person makes: {record} TXT \"{}\"",
                challenge.spec.key
            )
        }
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 => {
            format!("check that every name server of the zone answers with the TXT record {record}")
        }
        ChallengeType::DnsPersist01 => {
            format!("check that this record exists: {record} TXT \"{}\"", challenge.spec.key)
        }
    }
}

/// Hint for a stale cache of the CA's resolver: every name server had the record when validation was requested.
pub(super) fn kept(kept: StaleAnswer, record: &str) -> String {
    let record = record.trim_end_matches('.');
    match kept {
        StaleAnswer::Absence => format!(
            "every name server had {record} when validation began, but the CA's resolver has cached that there is none: \
             for as long as the zone's SOA record says, in a zone with NSEC even without a query for that name \
             (D01-03); then run the same command again"
        ),
        StaleAnswer::Values => format!(
            "every name server had the right value of {record} when validation began, but the CA's resolver still has \
             an earlier value (D01-22): run the same command again in a minute"
        ),
    }
}

/// Returns the hint for a fault on the way to a record's zone, or of a server of the zone; `None` for other symptoms.
pub(super) fn zone(symptom: Symptom) -> Option<&'static str> {
    Some(match symptom {
        Symptom::AliasLoop => {
            "delete or change one of these CNAME records: they form a loop, and no CA finds a record there"
        }
        Symptom::AliasNotFollowed => {
            "set cnameStrategy: Follow in the dns01 solver, so that the record is written at the CNAME's target; or \
             delete the CNAME"
        }
        Symptom::NotDelegated => {
            "check that the domain is delegated to name servers that serve its zone (dig +trace NAME SOA shows where \
             the trace ends), and that the resolvers in the message answer, also for SOA and NS (D01-04: dnsmasq with \
             filterwin2k and some routers filter these); --dns01-recursive-nameservers names others"
        }
        Symptom::NameServersFail => {
            "repair the name servers of that zone, or of the zones of its aliases: resolvers get an error from them \
             (dig NAME SOA shows it)"
        }
        Symptom::LameServer => {
            "have that name server serve the zone, or remove it from the zone's NS records"
        }
        Symptom::ServersSilent => {
            "start the name servers that do not answer and open port 53 to them (UDP and TCP), or remove them from the \
             zone's NS records"
        }
        Symptom::ServerUnreadable => {
            "see what that name server sends (dig @ADDRESS NAME TXT), and check that nothing on the way answers in its \
             place or changes its answers; or remove it from the zone's NS records"
        }
        Symptom::NoRoute => {
            "run this on a machine with a route to these name servers (ip route get ADDRESS shows it), such as one with \
             IPv6; or give the servers addresses that this machine reaches, too"
        }
        _ => return None,
    })
}

/// Returns the hint for a host whose address could not be looked up; `None` for other symptoms.
fn host(name: &str, symptom: Symptom) -> Option<String> {
    Some(match symptom {
        Symptom::AliasLoop => {
            format!("delete or change one of these CNAME records: with them {name} has no address")
        }
        Symptom::DanglingAlias => "give that name an address, or change the CNAME".to_owned(),
        Symptom::ResolverSilent => format!("check {}", resolver()),
        Symptom::NameServersFail => {
            format!(
                "repair the name servers of {name}: dig +trace {name} shows where the trace ends"
            )
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::dns::{LookupError, LookupFailure, Silence};
    use crate::fetch::outcome::FetchError;
    use crate::model::Answer;
    use crate::model::cause::CheckFinding;
    use crate::model::observation::{
        CheckResult, Hop, NameServer, NameServerAnswer, Observation, PresentedCertificate, Vantage,
    };
    use crate::reconcile::challenge::Readiness;
    use crate::reconcile::testing::challenge;
    use crate::reconcile::{dns01_visible, http01_visible};

    #[track_caller]
    fn check(kind: ChallengeType, symptom: Option<Symptom>, in_cluster: bool, expected: &str) {
        let mut challenge = challenge("www.example.com").build();
        challenge.spec.kind = kind;
        let sighting = symptom.map(CheckFinding::from);
        let advice = line(&AnswerStep { challenge, sighting, in_cluster });
        assert!(advice.contains(expected), "{advice}");
    }

    #[test]
    fn a_name_is_led_to_whoever_answers() {
        let http = ChallengeType::Http01;
        let refused = Some(Symptom::ConnectionRefused);
        check(http, refused, false, "nothing accepts connections there");
        check(http, refused, true, "points to the cluster's Ingress controller in public DNS");
        check(ChallengeType::TlsAlpn01, None, false, "points to this machine in public DNS");
    }

    const LED: &str = "to this machine in public DNS";
    const RECORD: &str = "check that every name server of the zone answers";
    const START: &str = "start the name servers that do not answer";
    const DELEGATED: &str = "check that the domain is delegated";
    const FAILING: &str = "repair the name servers of that zone";
    const ALIASES: &str = "delete or change one of these CNAME records";

    fn observed(seen: CheckResult, hops: Vec<Hop>) -> Observation {
        let vantage = Vantage::ThisMachine;
        let url = "http://www.example.com/.well-known/acme-challenge/token".to_owned();
        Observation { vantage, at: Timestamp::UNIX_EPOCH, url, hops, seen }
    }

    /// Checks the hint for the reason that is really given for an observation.
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

    /// Expected hints for a record and for a host after a failed lookup.
    fn for_failed(why: &LookupFailure) -> (&'static str, &'static str) {
        match why {
            LookupFailure::AliasLoop(_) => (ALIASES, ALIASES),
            LookupFailure::Answered { .. } => {
                (FAILING, "repair the name servers of www.example.com")
            }
            LookupFailure::Silent | LookupFailure::Unreadable => {
                (RECORD, "check this machine's own resolver")
            }
            LookupFailure::Slow { .. } => (START, LED),
            LookupFailure::Server { silence, .. } => (for_silence(silence), LED),
            LookupFailure::Other(_) => (RECORD, LED),
        }
    }

    /// Expected hints for each error; a new error has to be decided here.
    fn for_lookup_error(error: &LookupError) -> (&'static str, &'static str) {
        match error {
            LookupError::NoSuchName { .. }
            | LookupError::NoAddress { .. }
            | LookupError::NoText { .. } => (RECORD, LED),
            LookupError::NoSuchTarget { .. } => (RECORD, "give that name an address"),
            LookupError::Failed { why, .. } => for_failed(why),
            LookupError::AliasLoop { .. } => (ALIASES, ALIASES),
            LookupError::UnexpectedCode { .. } => {
                (FAILING, "repair the name servers of www.example.com")
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
            failed(LookupFailure::AliasLoop(["a", "b", "a"].map(text).to_vec())),
            failed(LookupFailure::Answered { code: text("SERVFAIL"), target: None }),
            failed(LookupFailure::Silent),
            failed(LookupFailure::Unreadable),
            failed(LookupFailure::Slow { seconds: 20 }),
            failed(LookupFailure::Server {
                server: text("192.0.2.1:53"),
                silence: Silence::TimedOut,
            }),
            failed(LookupFailure::Other(text("it is not a DNS name"))),
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
            let nothing =
                |why, symptom| observed(CheckResult::Nothing { why, symptom }, Vec::new());
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

    fn refused(why: &str) -> CheckResult {
        CheckResult::Nothing { why: text(why), symptom: Some(Symptom::ConnectionRefused) }
    }

    fn for_silence(silence: &Silence) -> &'static str {
        match silence {
            Silence::TimedOut | Silence::Refused => START,
            Silence::Truncated(why) => for_silence(why),
            Silence::NoRoute => "run this on a machine with a route to these name servers",
            Silence::Unreadable => "see what that name server sends",
            // Only resolvers are asked over HTTPS.
            Silence::Https(_) => RECORD,
        }
    }

    /// Checks the hint for the answer of a name server.
    fn check_said(said: NameServerAnswer, expected: &str) {
        let (name, address) = (text("ns1.example.net."), "192.0.2.1:53".parse().ok());
        let server = NameServer { name, address, said, ttl: None };
        let name = text("_acme-challenge.www.example.com.");
        let seen = CheckResult::Records { name, zone: text("example.com."), servers: vec![server] };
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
                Silence::NoRoute => NameServerAnswer::NoRoute,
                why if why.symptom() == Some(Symptom::ServerUnreadable) => {
                    NameServerAnswer::Unreadable(why.to_string())
                }
                why => NameServerAnswer::Nothing(why.to_string()),
            };
            if !matches!(silence, Silence::Https(_)) {
                check_said(said, for_silence(&silence));
            }
            let why =
                LookupFailure::Server { server: text("192.0.2.1:53"), silence: silence.clone() };
            let unread = LookupError::Failed { name: text("a."), why };
            let (why, symptom) = (unread.to_string(), unread.symptom());
            let nothing = observed(CheckResult::Nothing { why, symptom }, Vec::new());
            check_seen(ChallengeType::Dns01, nothing, for_silence(&silence));
        }
    }

    #[test]
    fn everything_that_a_name_server_says_has_its_advice() {
        for said in [
            NameServerAnswer::Texts(vec![text("old")]),
            NameServerAnswer::NoText,
            NameServerAnswer::NoName,
            NameServerAnswer::Alias(text("b.")),
            NameServerAnswer::Referral(text("example.net.")),
            NameServerAnswer::Code(text("REFUSED")),
            NameServerAnswer::Nothing(text("has no address")),
            NameServerAnswer::Unreadable(text("gives an answer that cannot be read")),
            NameServerAnswer::NoRoute,
        ] {
            let expected = match &said {
                NameServerAnswer::Texts(_)
                | NameServerAnswer::NoText
                | NameServerAnswer::NoName
                | NameServerAnswer::Alias(_)
                | NameServerAnswer::Referral(_) => RECORD,
                NameServerAnswer::Code(_) => "have that name server serve the zone",
                NameServerAnswer::Nothing(_) => START,
                NameServerAnswer::Unreadable(_) => for_silence(&Silence::Unreadable),
                NameServerAnswer::NoRoute => for_silence(&Silence::NoRoute),
            };
            check_said(said, expected);
        }
    }

    #[test]
    fn everything_that_a_look_sees_has_its_advice() {
        let reply = || CheckResult::Reply {
            status: 404,
            body: String::new(),
            truncated: false,
            is_declined: false,
        };
        for seen in [
            refused("connection refused by 192.0.2.1:80"),
            CheckResult::NoLook { why: text("there is no Pod"), symptom: None },
            CheckResult::Redirect {
                to: text("http://www.example.com:8080/"),
                why: text("Invalid port"),
            },
            reply(),
            CheckResult::Handshake {
                protocol: text("acme-tls/1"),
                certificate: PresentedCertificate::default(),
            },
            CheckResult::Records { name: text("a."), zone: String::new(), servers: Vec::new() },
        ] {
            let expected = match &seen {
                CheckResult::Redirect { .. } => {
                    "change where the server of www.example.com redirects requests"
                }
                CheckResult::Nothing { .. }
                | CheckResult::NoLook { .. }
                | CheckResult::Reply { .. }
                | CheckResult::Handshake { .. }
                | CheckResult::Records { .. } => LED,
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
        check_seen(
            ChallengeType::Http01,
            observed(reply(), six),
            "the request went to its AAAA record",
        );
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
        let server = NameServer {
            name: text("ns1."),
            address: None,
            said: NameServerAnswer::NoName,
            ttl: None,
        };
        let seen = CheckResult::Records { name, zone, servers: vec![server] };
        let look = observed(seen, Vec::new());
        check_seen(ChallengeType::Dns01, look, "set cnameStrategy: Follow");
    }

    #[test]
    fn a_name_that_cannot_be_looked_up_is_told_where_a_handshake_shows_the_answer() {
        let dead = Some(Symptom::NameServersFail);
        check(ChallengeType::TlsAlpn01, dead, false, "repair the name servers of www.example.com");
    }
}
