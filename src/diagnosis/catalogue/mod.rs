//! Catalogue of causes: why issuance does not go on, the symptoms, the fix, and the cost of the fix. The entries are
//! data, one YAML file per family; tests hold the entries to their form, so that no user finds a wrong entry.

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

/// Placeholders in quotes for the reader's own names.
const STANDING_FOR_NAMES: [&str; 7] =
    ["DOMAIN", "NAMESERVER", "NAMESPACE", "NAME", "SECRET", "KEY", "example.com"];
/// Minimum number of letters in a quote that distinguishes one cause from others.
const MIN_QUOTE_LETTERS: usize = 12;
/// Maximum number of entries that are only near to the text asked for.
const MAX_NEAREST: usize = 3;

static ENTRIES: LazyLock<Vec<CauseEntry>> = LazyLock::new(|| {
    let read = |text: &&str| serde_yaml::from_str::<Vec<CauseEntry>>(text);
    let read: Result<Vec<_>, _> = TEXTS.iter().map(read).collect();
    read.expect("the catalogue is read by tests").concat()
});

/// Entry of one cause.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CauseEntry {
    /// Id of the cause.
    pub id: CauseId,
    /// Title: the fault in one line.
    pub title: String,
    /// Sentence for one finding; words in braces stand for the finding's facts. If absent, the title is shown with the
    /// subject of the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// Effect on the certificate.
    pub severity: CauseSeverity,
    /// Symptoms that a person sees; texts of programs stand between backticks, unchanged.
    pub looks: Vec<String>,
    /// Explanation of the cause.
    pub why: String,
    /// Steps that help, in this order.
    pub fix: Vec<FixStep>,
    /// Cost or damage that the fix may bring; `none` if there is none.
    pub risk: String,
    /// Observation that proves the cause.
    pub shows: String,
    /// Causes and symptoms that this cause explains.
    #[serde(default)]
    pub explains: Vec<CauseId>,
    /// Way to make the cause happen in tests.
    pub lab: LabNote,
    /// Sources that describe or report the cause.
    pub source: Vec<String>,
}

/// Effect of a cause on the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CauseSeverity {
    /// This issuer, account or controller issues nothing until the cause is mended.
    Fatal,
    /// This certificate is not issued until the cause is mended.
    Error,
    /// The fault may pass by itself, or turn into an error later.
    Warning,
    /// Nothing is broken.
    Info,
}

impl CauseSeverity {
    /// Returns the word for the severity.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fatal => "fatal",
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// One step of a fix. Words in capitals stand for the reader's own names.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixStep {
    /// Instruction.
    #[serde(rename = "do")]
    pub does: String,
    /// Place where the step helps; everywhere if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<FixPlace>,
    /// Command lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// A part of a manifest, a record, or a line of configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<String>,
}

/// Place where a step helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FixPlace {
    /// A machine on which this program answers.
    Local,
    /// A cluster.
    Cluster,
}

impl FixStep {
    /// Reports whether the step helps in a cluster, or on one machine; steps for kubectl or Helm need a cluster.
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

/// Way to make a cause happen in tests.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabNote {
    /// Reproduction, and the real part that it uses.
    Reproduce(String),
    /// Reason why the cause cannot be made or seen on one machine, and what would be needed.
    Unseen(String),
}

/// Returns every entry, in the order of the ids.
pub fn all() -> &'static [CauseEntry] {
    &ENTRIES
}

/// Returns the entry of a cause.
pub fn entry(id: CauseId) -> &'static CauseEntry {
    &ENTRIES[id as usize]
}

/// Returns the entries of a family.
pub fn family(family: CauseFamily) -> impl Iterator<Item = &'static CauseEntry> {
    family.ids().map(entry)
}

/// Returns the entries whose title or looks contain a text, in any case, or quote a part of the text: people paste whole
/// lines. Entries with the text in their explanation, their fix or their proof follow.
pub fn mentioning(text: &str) -> Vec<&'static CauseEntry> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = |text: &str| words(text).replace('`', "").to_lowercase();
    let text = plain(text);
    let has = |known: &String| plain(known).contains(&text);
    let fits =
        |looks: &String| has(looks) || quoted_texts(looks).any(|quote| is_quoted_in(quote, &text));
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

/// Returns the entries that share most words with a text, best first; rare words, and words of the title, count more.
pub fn nearest(text: &str) -> Vec<&'static CauseEntry> {
    let asked = words(text);
    let held: Vec<[Vec<String>; 3]> = all().iter().map(words_of).collect();
    let begins = |known: &[String], word: &str| known.iter().any(|it| it.starts_with(word));
    let mut scores = vec![0; held.len()];
    for word in &asked {
        let count = held.iter().filter(|all| all.iter().any(|part| begins(part, word))).count();
        // A word in more than a quarter of all entries distinguishes nothing.
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

/// Returns the words of an entry: of its title and section, of its looks, and of everything else.
fn words_of(entry: &CauseEntry) -> [Vec<String>; 3] {
    let title = format!("{} {}", entry.title, entry.id.family().title());
    let steps = entry.fix.iter().flat_map(|step| {
        [Some(&step.does), step.run.as_ref(), step.write.as_ref()].into_iter().flatten()
    });
    let rest: Vec<&str> =
        [&entry.why, &entry.shows].into_iter().chain(steps).map(String::as_str).collect();
    [words(&title), words(&entry.looks.join(" ")), words(&rest.join(" "))]
}

/// Returns the words of a text in lower case, of three letters or more; a plural counts as its singular.
fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
    words.map(|word| word.strip_suffix('s').unwrap_or(word).to_owned()).collect()
}

/// Returns the texts of programs, between backticks, in one line of an entry's looks.
fn quoted_texts(looks: &str) -> impl Iterator<Item = &str> {
    looks.split('`').skip(1).step_by(2)
}

/// Reports whether a text has all parts of a quote in their order; the text between the parts differs from case to case.
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
    parts.iter().map(String::len).sum::<usize>() >= MIN_QUOTE_LETTERS && parts.iter().all(is_there)
}

/// Returns the causes that explain a cause.
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
