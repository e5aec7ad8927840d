//! The pages below `docs/causes/`: the catalogue as people read it in the repository.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kubectl_acme::diagnosis::catalogue::id::{CauseFamily, CauseId};
use kubectl_acme::diagnosis::catalogue::{self, CauseEntry, FixStep, LabNote};

/// Most other causes that a page names with their titles; of more, ids alone.
const TITLED: usize = 12;

/// Projects by the names under which sources have them, and their repositories.
const PROJECTS: [(&str, &str); 8] = [
    ("cm", "cert-manager/cert-manager"),
    ("cmweb", "cert-manager/website"),
    ("boulder", "letsencrypt/boulder"),
    ("lego", "go-acme/lego"),
    ("certbot", "certbot/certbot"),
    ("acme.sh", "acmesh-official/acme.sh"),
    ("win-acme", "win-acme/win-acme"),
    ("argo-cd", "argoproj/argo-cd"),
];

/// One page for each cause, and the list of all.
pub(super) fn pages() -> BTreeMap<String, String> {
    let pages = catalogue::all().iter().map(|entry| (file(entry.id), page(entry)));
    let mut pages: BTreeMap<String, String> = pages.collect();
    pages.insert("README.md".to_owned(), index());
    pages
}

fn file(id: CauseId) -> String {
    format!("{id}.md")
}

fn page(entry: &CauseEntry) -> String {
    let family = entry.id.family().title();
    let severity = entry.severity.word();
    let mut text = format!("# {}: {}\n\n", entry.id, entry.title);
    writeln!(text, "{severity} · {family} · [all causes](README.md)\n").unwrap();
    let items = entry.looks.iter().fold(String::new(), |text, looks| text + "- " + looks + "\n");
    section(&mut text, "Symptoms", &items);
    section(&mut text, "Why", &format!("{}\n", entry.why));
    let steps = entry.fix.iter().zip(1..).map(|(fix, number)| step(fix, number));
    let steps = steps.collect::<String>();
    let helps = format!("{}\n\nRisk: {}\n", steps.trim_end(), entry.risk);
    section(&mut text, "What helps", &helps);
    section(&mut text, "Evidence", &format!("{}\n", entry.shows));
    let explained = entry.explains.iter().map(|id| catalogue::entry(*id));
    section(&mut text, "Explains", &links(explained));
    section(&mut text, "May come from", &links(catalogue::explained_by(entry.id)));
    let (LabNote::Reproduce(lab) | LabNote::Unseen(lab)) = &entry.lab;
    section(&mut text, "In tests", &format!("{lab}\n"));
    let sources: Vec<String> = entry.source.iter().map(|source| source_link(source)).collect();
    section(&mut text, "Sources", &format!("{}\n", sources.join(", ")));
    text.trim_end().to_owned() + "\n"
}

fn section(page: &mut String, title: &str, text: &str) {
    if !text.is_empty() {
        writeln!(page, "## {title}\n\n{text}").unwrap();
    }
}

fn step(fix: &FixStep, number: usize) -> String {
    let mut text = format!("{number}. {}\n", fix.does);
    let mut copied = |language: &str, lines: &Option<String>| {
        let Some(lines) = lines else { return };
        writeln!(text, "\n   ```{language}").unwrap();
        lines.lines().for_each(|line| writeln!(text, "   {line}").unwrap());
        writeln!(text, "   ```\n").unwrap();
    };
    copied("sh", &fix.run);
    copied("", &fix.write);
    text
}

/// A source, as a link where it is an issue of a project that many entries name.
fn source_link(source: &str) -> String {
    let named = source.strip_prefix("PR ").unwrap_or(source).split_once('#');
    let numbered = named.filter(|(_, number)| number.chars().all(|c| c.is_ascii_digit()));
    let found = numbered.and_then(|(project, number)| {
        let (_, repository) = PROJECTS.iter().find(|(name, _)| *name == project)?;
        Some(format!("[{source}](https://github.com/{repository}/issues/{number})"))
    });
    found.unwrap_or_else(|| source.to_owned())
}

fn links<'a>(entries: impl Iterator<Item = &'a CauseEntry>) -> String {
    let entries: Vec<&CauseEntry> = entries.collect();
    if entries.len() > TITLED {
        let link = |entry: &&CauseEntry| format!("[{0}]({0}.md)", entry.id);
        return entries.iter().map(link).collect::<Vec<_>>().join(", ") + "\n";
    }
    let link = |entry: &CauseEntry| format!("- [{0}]({0}.md): {1}\n", entry.id, entry.title);
    entries.into_iter().map(link).collect()
}

fn index() -> String {
    let mut text = String::from(
        "# Why is it stuck?\n\n\
         Each cause has an id that never changes its meaning. `kubectl acme explain ID` prints the same pages, and\n\
         `kubectl acme explain TEXT` finds those that look like a text that you see.\n\n\
         Severity says what it means for the certificate. fatal: nothing is issued by this issuer, account or controller until\n\
         it is mended. error: this certificate is not issued until it is mended. warning: it may pass by itself, or turn into an\n\
         error later. info: nothing is broken.\n\n\
         Sources: `cm` is cert-manager, `cm-guide` its page on troubleshooting, `cmweb` its website; `le` is the documentation of\n\
         Let's Encrypt, `boulder` its server, `ld` a check of Let's Debug. Behind a colon stands a file or page, behind # an issue.\n\n\
         These pages are written by `just generate` from `src/diagnosis/catalogue/`.\n",
    );
    for family in CauseFamily::ALL {
        write!(text, "\n## {family}: {}\n\n", family.title()).unwrap();
        text += "| id | severity | what is wrong |\n| --- | --- | --- |\n";
        for entry in catalogue::family(*family) {
            let (id, severity) = (entry.id, entry.severity.word());
            writeln!(text, "| [{id}]({id}.md) | {severity} | {} |", entry.title).unwrap();
        }
    }
    text
}
