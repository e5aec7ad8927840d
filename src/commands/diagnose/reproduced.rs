//! `--show-commands`: command lines of dig, curl, openssl and kubectl that reproduce an observation. The lines are built
//! from the typed observation; every name that comes from somebody else is one quoted word for the shell.

use url::Url;

use crate::diagnosis::case::Case;
use crate::diagnosis::finding::Evidence;
use crate::dns::server::{PORT, Server};
use crate::hints::invocation::{self, quoted};
use crate::hints::reproduce::{ProbeMeans, commands};
use crate::model::observation::{CheckResult, Observation};
use crate::model::{Key, Kind, ObjectName};

/// Observations, and the instruments that made them.
#[derive(Clone, Copy, Debug)]
pub struct ReproducingCommands<'a> {
    case: &'a Case,
    means: &'a ProbeMeans,
}

impl<'a> ReproducingCommands<'a> {
    /// Builds the command lines for a case that these instruments observed.
    pub(crate) fn new(case: &'a Case, means: &'a ProbeMeans) -> Self {
        Self { case, means }
    }

    /// Command lines that reproduce a piece of evidence; empty if no command can reproduce the evidence.
    pub fn lines(&self, evidence: &Evidence) -> Vec<String> {
        let asked = evidence.asked.as_str();
        if let Some(observation) = self.observation(evidence) {
            return if is_plain(observation) {
                commands(observation, self.means)
            } else {
                Vec::new()
            };
        }
        if let Some(lines) = self.question(asked) {
            return lines;
        }
        if let Some(key) = self.object(asked) {
            return vec![self.show_command(&key)];
        }
        let directories = self.case.issuers.iter().filter_map(|of| of.directory.as_ref());
        let url = directories.map(|of| &of.url).find(|url| asked == format!("GET {url}"));
        match url
            .and_then(|url| Url::parse(url).ok())
            .filter(|url| url.scheme().starts_with("http"))
        {
            Some(url) => vec![format!("curl -i --globoff {}", quoted(url.as_str()))],
            None => Vec::new(),
        }
    }

    /// Finds the observation of a piece of evidence.
    fn observation(&self, evidence: &Evidence) -> Option<&'a Observation> {
        let looks =
            self.case.names.iter().flat_map(|name| name.looks.iter().map(|l| &l.observation));
        let answers = self.case.names.iter().filter_map(|name| name.answer.as_ref());
        let mut all = looks.chain(answers.flat_map(|answer| &answer.observations));
        all.find(|look| {
            look.url == evidence.asked
                && look.at == evidence.at
                && evidence.vantage.as_ref() == Some(&look.vantage)
        })
    }

    /// Command lines for a question to name servers, or for an authorization at the CA.
    fn question(&self, asked: &str) -> Option<Vec<String>> {
        // A name that begins with a dash would be an option.
        for name in self.case.names.iter().filter(|name| !name.name.starts_with('-')) {
            if asked == format!("A and AAAA of {}", name.name) {
                return Some(["A", "AAAA"].map(|kind| self.dig(&name.name, kind)).to_vec());
            }
            for level in &name.caa {
                if asked == format!("CAA of {}", level.name) {
                    return Some(vec![self.dig(&level.name, "CAA")]);
                }
            }
        }
        for of in &self.case.certificates {
            for challenge in &of.challenges {
                let domain = challenge.spec.shown_domain();
                if asked == format!("authorization of {domain} at the CA") {
                    let ObjectName { namespace, name } = challenge.name();
                    let words = format!("challenge check {}", quoted(&name));
                    return Some(vec![invocation::current().like_in(&namespace, &words)]);
                }
            }
        }
        None
    }

    /// `dig` line for a question to the resolver that was asked: that of `--dns`, or else the system's.
    fn dig(&self, name: &str, kind: &str) -> String {
        let at = match (self.means.hosts, self.means.zones.first()) {
            (Some(address), _) if address.port() == PORT => format!("@{} ", address.ip()),
            (Some(address), _) => format!("@{} -p {} ", address.ip(), address.port()),
            (None, Some(Server::Plain(_) | Server::Https(_)) | None) => String::new(),
        };
        format!("dig {at}{} {kind}", quoted(name))
    }

    /// Finds the object whose field was read: the question begins with the object's key, up to its end or a colon.
    fn object(&self, asked: &str) -> Option<Key> {
        let mut keys: Vec<Key> = self.case.issuers.iter().map(|of| of.key.clone()).collect();
        for of in &self.case.certificates {
            keys.push(Key::new(Kind::Certificate, of.certificate.name()));
            keys.extend(of.requests.iter().map(|it| Key::new(Kind::CertificateRequest, it.name())));
            keys.extend(of.orders.iter().map(|it| Key::new(Kind::Order, it.name())));
            keys.extend(of.challenges.iter().map(|it| Key::new(Kind::Challenge, it.name())));
        }
        let is_of = |key: &Key| {
            let rest = asked.strip_prefix(&key.to_string());
            let is_option = key.name.name.starts_with('-') || key.name.namespace.starts_with('-');
            !is_option && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        keys.into_iter().find(is_of)
    }

    /// Command line that shows an object: of kubectl in a cluster, or else of this program.
    fn show_command(&self, key: &Key) -> String {
        let ObjectName { namespace, name } = &key.name;
        if !self.case.in_cluster {
            let words = format!("get {}/{} -o yaml", key.kind.singular(), quoted(name));
            return invocation::current().like_in(namespace, &words);
        }
        let mut words: Vec<String> =
            ["get", &key.kind.plural(), name, "-o", "yaml"].map(str::to_owned).to_vec();
        if key.kind.is_namespaced() {
            words.extend(["-n".to_owned(), namespace.clone()]);
        }
        invocation::current().kubectl(&words)
    }
}

/// Returns whether every part of an observation that becomes a word of a command is a URL or a name, and no option: a
/// bundle may come from anybody.
fn is_plain(observation: &Observation) -> bool {
    let is_url = |url: &str| ["http:", "https:", "dns:"].iter().any(|way| url.starts_with(way));
    let is_name = match &observation.seen {
        CheckResult::Records { name, .. } => !name.starts_with('-'),
        CheckResult::Nothing { .. }
        | CheckResult::NoLook { .. }
        | CheckResult::Redirect { .. }
        | CheckResult::Reply { .. }
        | CheckResult::Handshake { .. } => true,
    };
    is_name && is_url(&observation.url) && observation.hops.iter().all(|hop| is_url(&hop.url))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::diagnosis::case::CertificateCase;
    use crate::diagnosis::case::name::{CaaLevel, LookUp, NameCase};
    use crate::diagnosis::finding::{evidence_of_answer, stored};

    fn case(name: &str) -> Case {
        let certificate = json!({"metadata": {"namespace": "web", "name": name}, "spec": {"secretName": "s", "issuerRef": {"name": "acme"}}});
        let of = json!({
            "certificate": certificate, "requests": [], "orders": [], "challenges": [],
            "due": null, "nextTry": null, "rivals": [], "held": [],
        });
        let of: CertificateCase = serde_json::from_value(of).unwrap();
        let mut domain = NameCase::of(name, None);
        let (records, at) = (LookUp::NotAsked, Timestamp::UNIX_EPOCH);
        domain.caa.push(CaaLevel { name: name.to_owned(), records, at });
        Case { certificates: vec![of], names: vec![domain], ..Case::default() }
    }

    #[track_caller]
    fn check(case: &Case, evidence: &Evidence, expected: &[&str]) {
        let means =
            ProbeMeans { hosts: Some("192.0.2.53:5353".parse().unwrap()), ..ProbeMeans::default() };
        assert_eq!(ReproducingCommands::new(case, &means).lines(evidence), expected);
    }

    #[test]
    fn each_piece_of_evidence_has_the_line_that_shows_it() {
        let at = Timestamp::UNIX_EPOCH;
        let mut case = case("www.example");
        let dig = |kind| format!("dig @192.0.2.53 -p 5353 www.example {kind}");
        check(
            &case,
            &evidence_of_answer("A and AAAA of www.example", at, "x"),
            &[&dig("A"), &dig("AAAA")],
        );
        check(&case, &evidence_of_answer("CAA of www.example", at, "x"), &[&dig("CAA")]);
        let read = stored("Certificate web/www.example: status", at, "x");
        let line = "kubectl-acme get certificate/www.example -o yaml -n web";
        check(&case, &read, &[line]);
        case.in_cluster = true;
        let line = "kubectl get certificates www.example -o yaml -n web";
        check(&case, &read, &[line]);
        check(&case, &stored("Lease cert-manager-controller", at, "x"), &[]);
        check(&case, &stored("Certificate web/www.example2: status", at, "x"), &[]);
    }

    #[test]
    fn no_name_of_a_stranger_is_a_command() {
        let at = Timestamp::UNIX_EPOCH;
        let mut case = case("$(reboot);'x");
        case.in_cluster = true;
        let named = "'$(reboot);'\\''x'";
        let line = format!("dig @192.0.2.53 -p 5353 {named} CAA");
        check(&case, &evidence_of_answer("CAA of $(reboot);'x", at, "x"), &[&line]);
        let line = format!("kubectl get certificates {named} -o yaml -n web");
        check(&case, &stored("Certificate web/$(reboot);'x", at, "x"), &[&line]);
        check(&case, &evidence_of_answer("http://a.example/$(reboot)", at, "x"), &[]);
    }
}
