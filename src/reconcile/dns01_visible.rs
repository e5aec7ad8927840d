//! Judgment of DNS-01 observations: whether every name server has the text that the CA wants.
//!
//! A reason begins with cert-manager's words, since people search for them; the servers concerned follow.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::challenge::Readiness;
use crate::model::cause::{CheckFinding, Symptom};
use crate::model::observation::{CheckResult, NameServer, NameServerAnswer, Observation, Vantage};
use crate::model::persist::RecordRequirements;
use crate::model::text::is_steering;
use crate::model::{Answer, Challenge};

/// Largest number of servers that a reason names.
const MAX_NAMED: usize = 4;

/// Judges DNS-01 observations (RFC 8555 §8.4): every server that can be reached from here must have the text, for the
/// CA may ask any of them. Silent addresses of a server with several do not count, unless all of them are silent.
pub fn judge(challenge: &Challenge, answer: &Answer, observations: &[Observation]) -> Readiness {
    let looks = observations.iter().filter(|look| look.vantage == Vantage::ThisMachine);
    let mut reasons = looks.map(|look| fault(challenge, answer, look));
    match reasons.next() {
        None => {
            let reason = not_yet(challenge, "nobody has looked yet");
            Readiness::NotYet { reason, cause: None }
        }
        Some(first) => match std::iter::once(first).chain(reasons).flatten().next() {
            Some((reason, symptom)) => {
                Readiness::NotYet { reason, cause: symptom.map(CheckFinding::from) }
            }
            None => Readiness::Ready,
        },
    }
}

/// Returns the verdict if every server that was asked has the text and the provider is not done: a provider that serves
/// a name from many places is seen in one of them only.
pub fn under_way(challenge: &Challenge) -> Readiness {
    let fact = "every nameserver answers here, and the provider is not done elsewhere";
    Readiness::NotYet { reason: not_yet(challenge, fact), cause: None }
}

/// Describes a server's reply; the text follows the server's name.
pub fn words(said: &NameServerAnswer) -> String {
    match said {
        NameServerAnswer::Texts(texts) => match &texts[..] {
            [text] => format!("has \"{}\"", excerpt(text)),
            texts => format!("has {} texts", texts.len()),
        },
        NameServerAnswer::NoText => "has no TXT record".to_owned(),
        NameServerAnswer::NoName => "says NXDOMAIN".to_owned(),
        NameServerAnswer::Alias(target) => format!("says it is an alias of {target}"),
        NameServerAnswer::Referral(zone) => format!("knows only who serves {zone}"),
        NameServerAnswer::Code(code) => format!("says {code}"),
        NameServerAnswer::Nothing(why) | NameServerAnswer::Unreadable(why) => why.clone(),
        NameServerAnswer::NoRoute => "cannot be reached from here".to_owned(),
    }
}

/// Returns the fault of an observation, in words, and as data if of a known kind.
fn fault(
    challenge: &Challenge,
    answer: &Answer,
    look: &Observation,
) -> Option<(String, Option<Symptom>)> {
    let (name, servers) = match &look.seen {
        CheckResult::Records { name, servers, .. } => (name, servers),
        CheckResult::Nothing { why, symptom } | CheckResult::NoLook { why, symptom } => {
            return Some((why.clone(), *symptom));
        }
        CheckResult::Handshake { .. }
        | CheckResult::Redirect { .. }
        | CheckResult::Reply { .. } => {
            return Some((not_yet(challenge, "nobody has looked yet"), None));
        }
    };
    let asked = by_name(servers);
    let wanted = &ExpectedText::of(challenge, answer, look.at);
    let wanting: Vec<_> = asked.iter().filter(|server| !server.has(wanted)).collect();
    if !asked.is_empty() && wanting.is_empty() {
        return None;
    }
    let mut faults: Vec<_> = wanting.iter().take(MAX_NAMED).map(|s| s.fault(wanted)).collect();
    if wanting.len() > MAX_NAMED {
        faults.push(format!("and {} more", wanting.len() - MAX_NAMED));
    }
    let (have, all) = (asked.len() - wanting.len(), asked.len());
    let record = challenge.spec.record_name();
    let is_elsewhere = !name.eq_ignore_ascii_case(&record);
    let place = if is_elsewhere { format!(" for {name}") } else { String::new() };
    let alias = if is_elsewhere && !follows(challenge) {
        format!("; {record} is an alias, and the solver's cnameStrategy is not Follow")
    } else {
        String::new()
    };
    let faults = faults.join("; ");
    let fact = format!("{have} of {all} nameservers answer{place}: {faults}{alias}");
    let odd = wanting.iter().find_map(|server| server.code());
    let reason = match odd {
        Some((server, code)) => format!("NS {server} returned {code} for {name}: {fact}"),
        None => not_yet(challenge, &fact),
    };
    let symptom = if is_elsewhere && !follows(challenge) {
        Some(Symptom::AliasNotFollowed)
    } else if odd.is_some() {
        Some(Symptom::LameServer)
    } else {
        wanting.iter().find_map(|server| server.silence())
    };
    Some((reason, symptom))
}

/// Returns what a persistent record has to show at a moment; `None` for challenge types without such a record.
pub fn demand(challenge: &Challenge, now: Timestamp) -> Option<RecordRequirements<'_>> {
    let persist = challenge.spec.persist.as_ref()?;
    Some(RecordRequirements { persist, wildcard: challenge.spec.wildcard, now })
}

/// Text that the CA looks for among the texts of a name.
enum ExpectedText<'a> {
    /// Exactly this text.
    Text(&'a str),
    /// Any text that meets the demand.
    Persistent(RecordRequirements<'a>),
}

impl<'a> ExpectedText<'a> {
    fn of(challenge: &'a Challenge, answer: &'a Answer, at: Timestamp) -> Self {
        demand(challenge, at).map_or(Self::Text(&answer.key_authorization), Self::Persistent)
    }

    fn is_among(&self, texts: &[String]) -> bool {
        texts.iter().any(|found| match self {
            Self::Text(text) => found == text,
            Self::Persistent(demand) => demand.is_met_by(found),
        })
    }

    /// Describes the reply of a server that lacks the text.
    fn words(&self, said: &NameServerAnswer) -> String {
        let (Self::Persistent(demand), NameServerAnswer::Texts(texts)) = (self, said) else {
            return words(said);
        };
        let nearest = texts.iter().map(|text| demand.faults(text)).min_by_key(Vec::len);
        let faults = nearest.unwrap_or_default().join(", and it ");
        match texts.len() {
            1 => format!("has a record that {faults}"),
            count => format!("has {count} records, and the best of them {faults}"),
        }
    }
}

fn not_yet(challenge: &Challenge, fact: &str) -> String {
    let domain = &challenge.spec.dns_name;
    format!("DNS record for \"{domain}\" not yet propagated: {fact}")
}

/// Returns whether the record is written where aliases lead.
fn follows(challenge: &Challenge) -> bool {
    challenge.spec.solver.dns01.as_ref().is_some_and(|dns01| dns01.cname_strategy == "Follow")
}

/// Server with the replies of its addresses; silent addresses are left out if others reply.
struct NamedServer<'a> {
    name: &'a str,
    said: Vec<&'a NameServer>,
}

fn by_name(servers: &[NameServer]) -> Vec<NamedServer<'_>> {
    let mut named: BTreeMap<&str, Vec<&NameServer>> = BTreeMap::new();
    for server in servers {
        named.entry(&server.name).or_default().push(server);
    }
    let is_heard = |said: &NameServerAnswer| {
        !matches!(
            said,
            NameServerAnswer::Nothing(_)
                | NameServerAnswer::Unreadable(_)
                | NameServerAnswer::NoRoute
        )
    };
    let somebody_is_heard = servers.iter().any(|server| is_heard(&server.said));
    let asked = named.into_iter().map(|(name, mut said)| {
        if said.iter().any(|server| is_heard(&server.said)) {
            said.retain(|server| is_heard(&server.said));
        } else if somebody_is_heard {
            said.retain(|server| server.said != NameServerAnswer::NoRoute);
        }
        NamedServer { name, said }
    });
    asked.filter(|server| !server.said.is_empty()).collect()
}

/// Returns the replies that count, by server: silent addresses do not count, unless all are silent.
pub fn counted_replies(servers: &[NameServer]) -> Vec<Vec<&NameServer>> {
    by_name(servers).into_iter().map(|server| server.said).collect()
}

impl NamedServer<'_> {
    fn has(&self, wanted: &ExpectedText<'_>) -> bool {
        self.said.iter().all(|server| has(server, wanted))
    }

    /// Returns a response code other than those that say whether the name exists.
    fn code(&self) -> Option<(&str, &str)> {
        let codes = self.said.iter().filter_map(|server| match &server.said {
            NameServerAnswer::Code(code) => Some((self.name, code.as_str())),
            NameServerAnswer::Alias(_)
            | NameServerAnswer::NoName
            | NameServerAnswer::NoRoute
            | NameServerAnswer::NoText
            | NameServerAnswer::Nothing(_)
            | NameServerAnswer::Unreadable(_)
            | NameServerAnswer::Referral(_)
            | NameServerAnswer::Texts(_) => None,
        });
        codes.min()
    }

    /// Returns why a server is silent, if it is. A fault of a resolver behind a URL is no matter of name servers.
    fn silence(&self) -> Option<Symptom> {
        let is_resolver =
            |server: &NameServer| server.address.is_none() && server.name.contains("://");
        let mut counted_replies = self.said.iter().filter(|server| !is_resolver(server));
        counted_replies.find_map(|server| match &server.said {
            NameServerAnswer::Nothing(_) => Some(Symptom::ServersSilent),
            NameServerAnswer::Unreadable(_) => Some(Symptom::ServerUnreadable),
            NameServerAnswer::NoRoute => Some(Symptom::NoRoute),
            NameServerAnswer::Alias(_)
            | NameServerAnswer::Code(_)
            | NameServerAnswer::NoName
            | NameServerAnswer::NoText
            | NameServerAnswer::Referral(_)
            | NameServerAnswer::Texts(_) => None,
        })
    }

    /// Describes the faults with the addresses concerned; equal faults are named once.
    fn fault(&self, wanted: &ExpectedText<'_>) -> String {
        let mut faults: Vec<(String, Vec<String>)> = Vec::new();
        for server in self.said.iter().filter(|server| !has(server, wanted)) {
            let words = wanted.words(&server.said);
            let address = server.address.map(|address| address.ip().to_string());
            let address = address.filter(|_| !self.is_an_address());
            match faults.iter_mut().find(|(known, _)| *known == words) {
                Some((_, addresses)) => addresses.extend(address),
                None => faults.push((words, address.into_iter().collect())),
            }
        }
        let more = faults.len().saturating_sub(MAX_NAMED);
        faults.truncate(MAX_NAMED);
        let faults = faults.into_iter().map(|(words, addresses)| match &addresses[..] {
            [] => format!("{} {words}", self.name),
            addresses => format!("{} ({}) {words}", self.name, list_first(addresses)),
        });
        let mut faults: Vec<_> = faults.collect();
        if more > 0 {
            faults.push(format!("{} says more at {more} more addresses", self.name));
        }
        faults.join("; ")
    }

    /// Returns whether the server is named by its address, as resolvers are, so that the address need not be repeated.
    fn is_an_address(&self) -> bool {
        self.said.iter().any(|server| server.address.is_some_and(|a| a.to_string() == self.name))
    }
}

fn has(server: &NameServer, wanted: &ExpectedText<'_>) -> bool {
    matches!(&server.said, NameServerAnswer::Texts(texts) if wanted.is_among(texts))
}

/// Returns the first addresses, and the number of the others.
fn list_first(addresses: &[String]) -> String {
    let named = addresses.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match addresses.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Returns the beginning of a text on one line.
fn excerpt(text: &str) -> String {
    let printable = text.chars().map(|c| if is_steering(c) { ' ' } else { c });
    let mut start: String = printable.take(MAX_NAMED * 15).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::solver::Dns01Solver;
    use crate::reconcile::testing::challenge;

    const RECORD: &str = "_acme-challenge.www.example.com.";

    fn server(name: &str, address: &str, said: NameServerAnswer) -> NameServer {
        NameServer { name: name.to_owned(), address: address.parse().ok(), said, ttl: None }
    }

    fn texts(texts: &[&str]) -> NameServerAnswer {
        NameServerAnswer::Texts(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    fn look(name: &str, servers: Vec<NameServer>) -> Observation {
        let (name, zone) = (name.to_owned(), "example.com.".to_owned());
        seen(CheckResult::Records { name, zone, servers })
    }

    fn seen(seen: CheckResult) -> Observation {
        Observation {
            vantage: Vantage::ThisMachine,
            at: Timestamp::UNIX_EPOCH,
            url: "dns:_acme-challenge.www.example.com?type=TXT".to_owned(),
            hops: Vec::new(),
            seen,
        }
    }

    fn judged(strategy: &str, observations: &[Observation]) -> String {
        let challenge = challenge("www.example.com").change(|c| {
            let cname_strategy = strategy.to_owned();
            let solver = Dns01Solver { cname_strategy, ..Dns01Solver::default() };
            c.spec.solver.dns01 = Some(Box::new(solver));
            c.spec.key = "text".to_owned();
        });
        let challenge = challenge.build();
        let answer = Answer::of(&challenge).unwrap();
        match judge(&challenge, &answer, observations) {
            Readiness::Ready => String::new(),
            Readiness::NotYet { reason, .. } => reason,
        }
    }

    /// An empty reason stands for ready; else it follows cert-manager's words.
    #[track_caller]
    fn check(servers: Vec<NameServer>, expected: &str) {
        let reason = judged("", &[look(RECORD, servers)]);
        let fact = reason.strip_prefix("DNS record for \"www.example.com\" not yet propagated: ");
        assert_eq!(fact.unwrap_or(&reason), expected);
    }

    fn good(number: u8) -> NameServer {
        let (name, address) = (format!("ns{number}.example.net."), format!("192.0.2.{number}:53"));
        server(&name, &address, texts(&["another", "text"]))
    }

    fn bad(number: u8, said: NameServerAnswer) -> NameServer {
        NameServer { said, ..good(number) }
    }

    #[test]
    fn the_record_is_published_when_every_server_has_the_text_among_others() {
        check(vec![good(1), good(2)], "");
    }

    #[test]
    fn a_server_that_lacks_it_is_named_with_its_answer() {
        for (said, expected) in [
            (NameServerAnswer::NoName, "says NXDOMAIN"),
            (NameServerAnswer::NoText, "has no TXT record"),
            (texts(&["old"]), "has \"old\""),
            (texts(&["old", "older"]), "has 2 texts"),
            (
                NameServerAnswer::Alias("a.example.net.".to_owned()),
                "says it is an alias of a.example.net.",
            ),
            (NameServerAnswer::Referral("b.test.".to_owned()), "knows only who serves b.test."),
            (NameServerAnswer::Nothing("does not answer".to_owned()), "does not answer"),
        ] {
            let expected =
                format!("2 of 3 nameservers answer: ns3.example.net. (192.0.2.3) {expected}");
            check(vec![good(1), good(2), bad(3, said)], &expected);
        }
    }

    #[test]
    fn of_many_addresses_a_few_are_named() {
        let at =
            |number, said| NameServer { name: "ns.example.net.".to_owned(), ..bad(number, said) };
        check(
            (1..=6).map(|number| at(number, NameServerAnswer::NoName)).collect(),
            "0 of 1 nameservers answer: ns.example.net. (192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4 and 2 more) says NXDOMAIN",
        );
        let differing = (1..=6).map(|number| at(number, texts(&[&number.to_string()])));
        let reason = judged("", &[look(RECORD, differing.collect())]);
        assert!(
            reason
                .ends_with("(192.0.2.4) has \"4\"; ns.example.net. says more at 2 more addresses"),
            "{reason}"
        );
    }

    #[test]
    fn another_code_is_told_in_cert_managers_words_first() {
        let code = NameServerAnswer::Code("SERVFAIL".to_owned());
        check(
            vec![good(1), bad(2, NameServerAnswer::NoName), bad(3, code)],
            "NS ns3.example.net. returned SERVFAIL for _acme-challenge.www.example.com.: \
             1 of 3 nameservers answer: ns2.example.net. (192.0.2.2) says NXDOMAIN; \
             ns3.example.net. (192.0.2.3) says SERVFAIL",
        );
    }

    #[test]
    fn of_many_servers_the_first_few_are_named() {
        check(
            (1..8).map(|number| bad(number, NameServerAnswer::NoName)).collect(),
            "0 of 7 nameservers answer: ns1.example.net. (192.0.2.1) says NXDOMAIN; \
             ns2.example.net. (192.0.2.2) says NXDOMAIN; ns3.example.net. (192.0.2.3) says NXDOMAIN; \
             ns4.example.net. (192.0.2.4) says NXDOMAIN; and 3 more",
        );
    }

    #[test]
    fn an_address_without_an_answer_does_not_count_beside_one_that_has_it() {
        let six = |said| server("ns1.example.net.", "[2001:db8::1]:53", said);
        let silent = || NameServerAnswer::Nothing("does not answer".to_owned());
        check(vec![good(1), six(silent())], "");
        check(vec![good(1), six(NameServerAnswer::NoRoute)], "");
        check(
            vec![bad(1, silent()), six(silent())],
            "0 of 1 nameservers answer: ns1.example.net. (192.0.2.1, 2001:db8::1) does not answer",
        );
        check(
            vec![good(1), six(NameServerAnswer::NoName)],
            "0 of 1 nameservers answer: ns1.example.net. (2001:db8::1) says NXDOMAIN",
        );
    }

    #[test]
    fn a_server_that_cannot_be_reached_from_here_counts_only_when_all_are_like_it() {
        check(vec![good(1), bad(2, NameServerAnswer::NoRoute)], "");
        check(
            vec![bad(1, NameServerAnswer::NoRoute)],
            "0 of 1 nameservers answer: ns1.example.net. (192.0.2.1) cannot be reached from here",
        );
    }

    #[test]
    fn resolvers_are_named_by_their_addresses_or_urls() {
        let url = "https://dns.example/dns-query";
        check(
            vec![
                server("192.0.2.53:53", "192.0.2.53:53", NameServerAnswer::NoName),
                server(url, "", NameServerAnswer::NoText),
            ],
            "0 of 2 nameservers answer: 192.0.2.53:53 says NXDOMAIN; \
             https://dns.example/dns-query has no TXT record",
        );
    }

    #[test]
    fn where_aliases_lead_is_told_and_that_nobody_writes_there() {
        let place = "www.example.org.";
        let looks = [look(place, vec![bad(1, NameServerAnswer::NoName)])];
        let reason = "DNS record for \"www.example.com\" not yet propagated: 0 of 1 nameservers answer \
                      for www.example.org.: ns1.example.net. (192.0.2.1) says NXDOMAIN";
        assert_eq!(judged("Follow", &looks), reason);
        let more = "; _acme-challenge.www.example.com. is an alias, and the solver's cnameStrategy is not Follow";
        assert_eq!(judged("", &looks), format!("{reason}{more}"));
        assert_eq!(judged("", &[look(place, vec![good(1)])]), "");
    }

    #[test]
    fn a_look_that_came_to_nothing_says_why_and_no_look_is_not_enough() {
        let why = "Could not determine the zone for \"a\": b".to_owned();
        assert_eq!(
            judged("", &[seen(CheckResult::Nothing { why: why.clone(), symptom: None })]),
            why
        );
        let nobody = "DNS record for \"www.example.com\" not yet propagated: nobody has looked yet";
        assert_eq!(judged("", &[]), nobody);
    }
}
