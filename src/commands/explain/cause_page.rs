//! The page of a cause that `explain` prints.

use crate::diagnosis::catalogue::{self, CauseEntry, LabNote};
use crate::print::fold::fold;

/// Maximum number of other causes that a page lists with titles; of more causes, only ids.
const MAX_TITLED: usize = 12;

/// Page with the whole entry of a cause, folded to a width; lines to copy are not folded.
pub fn page(entry: &CauseEntry, width: usize) -> String {
    let mut page = Page { text: String::new(), width };
    page.lines("", &format!("{} ({})", entry.id, entry.severity.word()));
    page.lines("", &entry.title);
    page.head("Symptoms");
    entry.looks.iter().for_each(|looks| page.lines("  - ", looks));
    page.head("Why");
    page.lines("  ", &entry.why);
    page.head("What helps");
    for (step, number) in entry.fix.iter().zip(1..) {
        page.lines(&format!("  {number}. "), &step.does);
        let copied = [&step.run, &step.write].into_iter().flatten();
        for line in copied.flat_map(|text| text.lines()) {
            page.text.extend(["       ", line, "\n"]);
        }
    }
    page.lines("  Risk: ", &entry.risk);
    page.head("Evidence");
    page.lines("  ", &entry.shows);
    page.causes("Explains", entry.explains.iter().map(|id| catalogue::entry(*id)));
    page.causes("May come from", catalogue::explained_by(entry.id));
    page.head("In tests");
    let (LabNote::Reproduce(lab) | LabNote::Unseen(lab)) = &entry.lab;
    page.lines("  ", lab);
    page.head("Sources");
    page.lines("  ", &entry.source.join(", "));
    page.text
}

/// A page that is being written.
struct Page {
    text: String,
    width: usize,
}

impl Page {
    fn head(&mut self, title: &str) {
        self.text.extend(["\n", title, ":\n"]);
    }

    /// Appends a text after a mark; further lines are indented to the text.
    fn lines(&mut self, mark: &str, text: &str) {
        let mut mark = mark.to_owned();
        for line in fold(text, self.width.saturating_sub(mark.len())) {
            self.text.extend([mark.as_str(), line.as_str(), "\n"]);
            mark = " ".repeat(mark.len());
        }
    }

    /// Appends a list of other causes, if there are any.
    fn causes<'a>(&mut self, title: &str, entries: impl Iterator<Item = &'a CauseEntry>) {
        let entries: Vec<&CauseEntry> = entries.collect();
        if !entries.is_empty() {
            self.head(title);
        }
        if entries.len() > MAX_TITLED {
            let ids: Vec<String> = entries.iter().map(|entry| entry.id.to_string()).collect();
            return self.lines("  ", &ids.join(" "));
        }
        for entry in entries {
            self.lines(&format!("  {:<8}", entry.id), &entry.title);
        }
    }
}
