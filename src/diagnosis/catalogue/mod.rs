//! The catalogue of causes: why issuance does not go on, how that looks, what helps and what it may cost. Its entries are
//! data, a YAML file for each family; tests hold them to their form, so that none is found wrong by a user.

pub mod id;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use self::id::{CauseFamily, CauseId};

/// The text of each family, in the order of the ids.
const TEXTS: [&str; 16] = [
    include_str!("cfg.yaml"),
    include_str!("acc.yaml"),
    include_str!("lim.yaml"),
    include_str!("ord.yaml"),
    include_str!("ctl.yaml"),
    include_str!("http.yaml"),
    include_str!("gw.yaml"),
    include_str!("tls.yaml"),
    include_str!("dns.yaml"),
    include_str!("d01.yaml"),
    include_str!("prv.yaml"),
    include_str!("caa.yaml"),
    include_str!("per.yaml"),
    include_str!("env.yaml"),
    include_str!("hyg.yaml"),
    include_str!("int.yaml"),
];

/// Words that stand for the reader's own names in quotes.
const STANDING_FOR_NAMES: [&str; 7] =
    ["DOMAIN", "NAMESERVER", "NAMESPACE", "NAME", "SECRET", "KEY", "example.com"];
/// Fewest letters of a quote that tells one cause from others.
const TELLING: usize = 12;
/// Most entries that are only near to what was asked for.
const MAX_NEAREST: usize = 3;

static ENTRIES: LazyLock<Vec<CauseEntry>> = LazyLock::new(|| {
    let read = |text: &&str| serde_yaml::from_str::<Vec<CauseEntry>>(text);
    let read: Result<Vec<_>, _> = TEXTS.iter().map(read).collect();
    read.expect("the catalogue is read by tests").concat()
});

/// What is known of one cause.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CauseEntry {
    /// Its id.
    pub id: CauseId,
    /// What is wrong, in one line.
    pub title: String,
    /// The same of one case, in a sentence: its words in braces stand for what was found. Where it is absent, the title is told of
    /// whom it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// What it means for the certificate.
    pub severity: CauseSeverity,
    /// What a person sees; texts of programs stand between backticks, as they are.
    pub looks: Vec<String>,
    /// Why that happens.
    pub why: String,
    /// What helps, in this order.
    pub fix: Vec<FixStep>,
    /// What the fix may cost or break; `none` where it is nothing.
    pub risk: String,
    /// Which observation proves it.
    pub shows: String,
    /// Causes and symptoms that it explains.
    #[serde(default)]
    pub explains: Vec<CauseId>,
    /// How it is made to happen in tests.
    pub lab: LabNote,
    /// Where it was read or reported.
    pub source: Vec<String>,
}

/// What a cause means for the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CauseSeverity {
    /// Nothing is issued by this issuer, account or controller until it is mended.
    Fatal,
    /// This certificate is not issued until it is mended.
    Error,
    /// It may pass by itself, or turn into an error later.
    Warning,
    /// Nothing is broken.
    Info,
}

impl CauseSeverity {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fatal => "fatal",
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// One step of what helps. Words in capitals stand for names of the reader's own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixStep {
    /// What to do.
    #[serde(rename = "do")]
    pub does: String,
    /// Where that helps, if not everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<FixPlace>,
    /// Command lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// A part of a manifest, a record, or a line of configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<String>,
}

/// Where a step helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FixPlace {
    /// Where this program answers on one machine.
    Local,
    /// In a cluster.
    Cluster,
}

impl FixStep {
    /// Tells whether it helps there; a step for kubectl or Helm is one for a cluster.
    pub fn helps(&self, in_cluster: bool) -> bool {
        let is_of_cluster = |line: &str| {
            let line = line.trim_start();
            (line.starts_with("kubectl ") && !line.starts_with("kubectl acme "))
                || line.starts_with("helm ")
        };
        match self.only {
            Some(FixPlace::Local) => !in_cluster,
            Some(FixPlace::Cluster) => in_cluster,
            None => in_cluster || !self.run.iter().any(|run| run.lines().any(is_of_cluster)),
        }
    }
}

/// How a cause is made to happen in tests.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabNote {
    /// How, and with which real part.
    Reproduce(String),
    /// Why that cannot be done or seen on one machine, and what would be needed.
    Unseen(String),
}

/// Every entry, in the order of the ids.
pub fn all() -> &'static [CauseEntry] {
    &ENTRIES
}

/// What is known of a cause.
pub fn entry(id: CauseId) -> &'static CauseEntry {
    &ENTRIES[id as usize]
}

/// The entries of a family.
pub fn family(family: CauseFamily) -> impl Iterator<Item = &'static CauseEntry> {
    family.ids().map(entry)
}

/// The entries whose title or looks have this text in them, in any case, and those that quote a part of it: people paste whole
/// lines. Behind them those that have it in why they happen, in what helps or in what shows them.
pub fn mentioning(text: &str) -> Vec<&'static CauseEntry> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = |text: &str| words(text).replace('`', "").to_lowercase();
    let text = plain(text);
    let has = |known: &String| plain(known).contains(&text);
    let fits = |looks: &String| has(looks) || quoted(looks).any(|quote| is_quoted_in(quote, &text));
    let shows = |entry: &&CauseEntry| has(&entry.title) || entry.looks.iter().any(fits);
    let tells = |entry: &&CauseEntry| {
        let steps = entry.fix.iter().flat_map(|step| {
            [Some(&step.does), step.run.as_ref(), step.write.as_ref()].into_iter().flatten()
        });
        [&entry.why, &entry.shows].into_iter().chain(steps).any(has)
    };
    let (by_look, others): (Vec<_>, Vec<_>) = all().iter().partition(shows);
    by_look.into_iter().chain(others.into_iter().filter(tells)).collect()
}

/// The entries that share most words with a text, the best first; rare words count more, and so does where they stand.
pub fn nearest(text: &str) -> Vec<&'static CauseEntry> {
    let asked = words(text);
    let held: Vec<[Vec<String>; 3]> = all().iter().map(words_of).collect();
    let begins = |known: &[String], word: &str| known.iter().any(|it| it.starts_with(word));
    let mut scores = vec![0; held.len()];
    for word in &asked {
        let count = held.iter().filter(|all| all.iter().any(|part| begins(part, word))).count();
        // In more than a quarter of all it tells nothing.
        if count == 0 || count * 4 > held.len() {
            continue;
        }
        for (score, parts) in scores.iter_mut().zip(&held) {
            let weights = parts.iter().zip([4, 3, 1]).filter(|(part, _)| begins(part, word));
            *score += weights.map(|(_, weight)| weight).sum::<usize>() * 1000 / count.max(3);
        }
    }
    let mut found: Vec<_> = all().iter().zip(scores).filter(|(_, score)| *score > 0).collect();
    found.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    found.into_iter().map(|(entry, _)| entry).take(MAX_NEAREST).collect()
}

/// The words of an entry: of its title and section, of how it looks, and of all else.
fn words_of(entry: &CauseEntry) -> [Vec<String>; 3] {
    let title = format!("{} {}", entry.title, entry.id.family().title());
    let steps = entry.fix.iter().flat_map(|step| {
        [Some(&step.does), step.run.as_ref(), step.write.as_ref()].into_iter().flatten()
    });
    let rest: Vec<&str> =
        [&entry.why, &entry.shows].into_iter().chain(steps).map(String::as_str).collect();
    [words(&title), words(&entry.looks.join(" ")), words(&rest.join(" "))]
}

/// The words of a text in lower case; a plural counts as its singular, and what is shorter than three letters does not count.
fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
    words.map(|word| word.strip_suffix('s').unwrap_or(word).to_owned()).collect()
}

/// What programs say, between backticks in one line of how it looks.
fn quoted(looks: &str) -> impl Iterator<Item = &str> {
    looks.split('`').skip(1).step_by(2)
}

/// Tells whether a text has all parts of a quote in their order; between them stands what differs from case to case.
fn is_quoted_in(quote: &str, text: &str) -> bool {
    let mut quote = quote.to_owned();
    for name in STANDING_FOR_NAMES {
        quote = quote.replace(name, "…");
    }
    let parts: Vec<String> = quote.split('…').map(|part| part.trim().to_lowercase()).collect();
    let mut rest = text;
    let is_there = |part: &String| match rest.find(part.as_str()) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    };
    parts.iter().map(String::len).sum::<usize>() >= TELLING && parts.iter().all(is_there)
}

/// The causes that explain this one.
pub fn explained_by(id: CauseId) -> impl Iterator<Item = &'static CauseEntry> {
    all().iter().filter(move |entry| entry.explains.contains(&id))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Most letters of a title: a row of the table fits 80 columns.
    const TITLE: usize = 59;
    /// Most letters of a line to copy, which is never folded.
    const LINE: usize = 73;
    /// Programs that a person may be asked to run.
    const PROGRAMS: [&str; 12] = [
        "kubectl",
        "kubectl-acme",
        "dig",
        "curl",
        "openssl",
        "helm",
        "nsupdate",
        "sudo",
        "aws",
        "az",
        "gcloud",
        "date",
    ];

    #[test]
    fn every_family_can_be_read_alone() {
        for (text, family) in TEXTS.iter().zip(CauseFamily::ALL) {
            let entries: Vec<CauseEntry> =
                serde_yaml::from_str(text).unwrap_or_else(|why| panic!("{family}: {why}"));
            let ids: Vec<CauseId> = entries.iter().map(|entry| entry.id).collect();
            assert_eq!(ids, family.ids().collect::<Vec<_>>(), "{family}");
        }
    }

    #[test]
    fn every_id_has_one_entry_at_its_place() {
        let ids: Vec<CauseId> = all().iter().map(|entry| entry.id).collect();
        assert_eq!(ids, CauseId::ALL);
        assert!(CauseId::ALL.iter().all(|id| entry(*id).id == *id));
        let titles: BTreeSet<&str> = all().iter().map(|entry| entry.title.as_str()).collect();
        assert_eq!(titles.len(), ids.len(), "two causes have one title");
    }

    #[test]
    fn every_entry_says_all_that_it_has_to() {
        for entry in all() {
            let id = entry.id;
            assert!(entry.title.chars().count() <= TITLE, "{id}: the title is too long");
            assert!(!entry.title.ends_with('.'), "{id}: a title has no full stop");
            assert!(!entry.looks.is_empty() && !entry.source.is_empty(), "{id}");
            let sentences = [&entry.why, &entry.risk, &entry.shows];
            let (LabNote::Reproduce(lab) | LabNote::Unseen(lab)) = &entry.lab;
            for text in sentences.into_iter().chain(&entry.looks).chain(&entry.source).chain([lab])
            {
                assert!(!text.trim().is_empty() && text.trim() == text, "{id}: `{text}`");
                assert_eq!(text.matches('`').count() % 2, 0, "{id}: {text}");
            }
            assert!(entry.why.len() >= 60, "{id}: why is too short");
            assert!(entry.risk == "none" || entry.risk.ends_with('.'), "{id}: {}", entry.risk);
            assert!(!entry.fix.is_empty(), "{id} has no fix");
            for step in &entry.fix {
                assert!(step.does.ends_with(['.', ':', '?']), "{id}: {}", step.does);
                let copied = [&step.run, &step.write];
                for line in copied.into_iter().flatten().flat_map(|text| text.lines()) {
                    assert!(line.chars().count() <= LINE, "{id}: too long: {line}");
                }
            }
        }
    }

    #[test]
    fn every_command_is_one_of_a_program_that_people_have() {
        for entry in all() {
            for run in entry.fix.iter().filter_map(|step| step.run.as_ref()) {
                let first = run.lines().filter(|line| !line.starts_with(' '));
                for line in first {
                    let program = line.split(' ').next().unwrap_or_default();
                    assert!(PROGRAMS.contains(&program), "{}: {line}", entry.id);
                }
            }
        }
    }

    #[test]
    fn no_cause_explains_itself_by_any_way() {
        fn walk(id: CauseId, way: &mut Vec<CauseId>, done: &mut BTreeSet<CauseId>) {
            assert!(!way.contains(&id), "a circle: {way:?}, {id:?}");
            if done.contains(&id) {
                return;
            }
            way.push(id);
            for below in &entry(id).explains {
                walk(*below, way, done);
            }
            way.pop();
            done.insert(id);
        }
        let mut done = BTreeSet::new();
        for id in CauseId::ALL {
            walk(*id, &mut Vec::new(), &mut done);
            let explained: BTreeSet<_> = entry(*id).explains.iter().collect();
            assert_eq!(explained.len(), entry(*id).explains.len(), "{id} explains one twice");
        }
    }

    #[test]
    fn what_people_paste_is_found() {
        for (pasted, expected) in [
            ("wrong status code '404'", CauseId::Http10),
            ("Could not find the SOA record in the DNS tree", CauseId::D0104),
            ("remote error: tls: handshake failure", CauseId::Http14),
            ("TIMEOUT DURING CONNECT (likely firewall problem)", CauseId::Http04),
            ("prevents issuance", CauseId::Caa01),
            ("too many failed authorizations", CauseId::Lim03),
            ("authorization must be pending", CauseId::Ord07),
            ("gateway api is not enabled", CauseId::Gw01),
            ("no configured challenge solvers can be used for this challenge", CauseId::Cfg04),
            (
                "Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'",
                CauseId::Http10,
            ),
            (
                "403 urn:ietf:params:acme:error:caa: While processing CAA for a.example.org: CAA record for \
                 example.org prevents issuance",
                CauseId::Caa01,
            ),
            (
                "Waiting for DNS-01 challenge propagation: NS ns1.example.org.:53 returned REFUSED for \
                 _acme-challenge.a.example.org.",
                CauseId::Dns03,
            ),
            (
                "Waiting for http-01 challenge propagation: failed to perform self check GET request \
                 'http://example.org/.well-known/acme-challenge/x': Get \"http://example.org/x\": remote error: tls: \
                 handshake failure",
                CauseId::Http14,
            ),
            (
                "Failed to update ACME account:400 urn:ietf:params:acme:error:invalidEmail: Unable to update account",
                CauseId::Acc01,
            ),
            (
                "Error initializing issuer: Failed to register ACME account: secrets \"acme-key\" already exists",
                CauseId::Acc02,
            ),
            (
                "400 urn:ietf:params:acme:error:connection: 203.0.113.5: Fetching http://a.example.org/x: Timeout\n  \
                 during connect (likely firewall problem)",
                CauseId::Http04,
            ),
            (
                "403 urn:ietf:params:acme:error:unauthorized: No TXT record found at _acme-challenge.a.example.org",
                CauseId::D0101,
            ),
            ("failed calling webhook \"webhook.cert-manager.io\"", CauseId::Ctl03),
        ] {
            let found = mentioning(pasted);
            assert!(found.iter().any(|entry| entry.id == expected), "{pasted}: {expected}");
        }
        assert!(mentioning("a text that nobody has ever seen").is_empty());
    }
}
