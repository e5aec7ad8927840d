//! Tables as kubectl draws them: upper-case headings, three blanks between columns, no lines.

use comfy_table::{ContentArrangement, presets};

use super::colour::Colour;
use super::escape::escape;
use super::fold::{columns, cut_middle, fold};
use super::palette::Ink;

/// Text of a cell without a value.
pub const NONE: &str = "<none>";
/// Blanks between columns.
const GAP: u16 = 3;
/// Columns whose words may be coloured.
const COLOURED_TITLES: [&str; 3] = ["READY", "STATE", "TYPE"];

/// Whether the line of headings is shown (`--no-headers`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Headers {
    /// Rows only.
    Hidden,
    /// Headings above the rows.
    #[default]
    Shown,
}

/// Fit of a table to a terminal that is too narrow: the cells of one column give way.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// Heading of the column that gives way.
    pub title: &'static str,
    /// Columns of the terminal.
    pub width: usize,
    /// Treatment of the column's cells.
    pub cells: Narrow,
}

/// Treatment of the cells of a column for which too little room is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Narrow {
    /// Cells are cut in the middle.
    Cut,
    /// Cells are cut, or stand below their rows if little room is left.
    CutOrBelow,
    /// Cells stand below their rows in full, because a reader copies the text.
    Below,
}

/// Fewest columns to which a cell is cut.
const MIN_CELL_COLUMNS: usize = 20;
/// Fewest columns of a cell beside its row, if cells may stand below their rows.
const MIN_COLUMNS_BESIDE: usize = 34;
/// Most lines of a cell below its row, unless a reader copies the text.
const MAX_LINES_BELOW: usize = 3;

/// A table under construction: headings, then rows of as many cells.
#[derive(Clone, Debug, Default)]
pub struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Starts a table with its headings.
    pub fn new<T: Into<String>>(titles: impl IntoIterator<Item = T>) -> Self {
        Self { titles: titles.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders the table for a terminal.
    pub fn render_within(mut self, fit: Fit, headers: Headers, colour: Colour) -> String {
        let Some(flexible) = self.titles.iter().position(|title| title == fit.title) else {
            return self.render(headers, colour);
        };
        let gaps = usize::from(GAP) * self.titles.len().saturating_sub(1);
        let others = self.widths(headers).enumerate().filter(|(number, _)| *number != flexible);
        let left = fit.width.saturating_sub(others.map(|(_, width)| width).sum::<usize>() + gaps);
        let is_wide = |row: &Vec<String>| row.get(flexible).is_some_and(|it| columns(it) > left);
        if !self.rows.iter().any(is_wide) {
            return self.render(headers, colour);
        }
        if fit.cells == Narrow::Cut || fit.cells == Narrow::CutOrBelow && left >= MIN_COLUMNS_BESIDE
        {
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(flexible)) {
                *cell = cut_middle(&one_line(cell), left.max(MIN_CELL_COLUMNS));
            }
            return self.render(headers, colour);
        }
        self.titles.remove(flexible);
        let cells: Vec<String> = self.rows.iter_mut().map(|row| row.remove(flexible)).collect();
        let rendered = self.render(headers, colour);
        let mut rows = rendered.lines();
        let mut text = String::new();
        if headers == Headers::Shown {
            text.extend([rows.next().unwrap_or_default(), "\n"]);
        }
        for (row, cell) in rows.zip(cells) {
            text.extend([row, "\n"]);
            let lines = fold(&escape(&cell), fit.width.saturating_sub(3));
            let is_said = |line: &&String| !line.is_empty() && *line != NONE;
            let most = if fit.cells == Narrow::Below { usize::MAX } else { MAX_LINES_BELOW };
            for line in lines.iter().filter(is_said).take(most) {
                text.extend(["  ", line, "\n"]);
            }
        }
        text
    }

    /// Returns the width of each column.
    fn widths(&self, headers: Headers) -> impl Iterator<Item = usize> {
        let widest = move |number: usize, title: &String| {
            let title = if headers == Headers::Shown { columns(title) } else { 0 };
            let cells = self.rows.iter().filter_map(|row| row.get(number));
            cells.map(|cell| columns(&one_line(cell))).max().unwrap_or(0).max(title)
        };
        self.titles.iter().enumerate().map(move |(number, title)| widest(number, title))
    }

    /// Renders the table, each line with its newline and without trailing blanks.
    pub fn render(&self, headers: Headers, colour: Colour) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if headers == Headers::Shown {
            table.set_header(&self.titles);
        }
        for cells in &self.rows {
            let titles = self.titles.iter().map(String::as_str).chain(std::iter::repeat(""));
            table.add_row(cells.iter().zip(titles).map(|(cell, title)| {
                let cell = one_line(cell);
                if colour == Colour::On && COLOURED_TITLES.contains(&title) {
                    paint(&cell)
                } else {
                    cell
                }
            }));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, GAP));
        }
        table.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
    }
}

/// Cuts a text at its first line break, as kubectl does, and makes control characters visible.
fn one_line(text: &str) -> String {
    match text.find(['\n', '\r', '\u{c}']) {
        Some(end) => format!("{}...", escape(&text[..end])),
        None => escape(text),
    }
}

/// Colours a word by its meaning; other words stay.
pub fn paint(word: &str) -> String {
    let ink = match word {
        "True" | "ready" | "valid" => Ink::Green,
        "False" | "errored" | "expired" | "invalid" => Ink::Red,
        "Unknown" | "Warning" | "pending" | "processing" => Ink::Yellow,
        _ => return word.to_owned(),
    };
    ink.word(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[[&str; 3]], headers: Headers, colour: Colour) -> String {
        let mut table = Table::new(["NAME", "STATE", "AGE"]);
        for row in rows {
            table.row(*row);
        }
        table.render(headers, colour)
    }

    #[test]
    fn columns_stand_three_blanks_apart_and_lines_end_in_text() {
        let text = check(
            &[["web", "pending", "5s"], ["a-longer-name", "", "22s"]],
            Headers::Shown,
            Colour::Off,
        );
        insta::assert_snapshot!(text, @r"
        NAME            STATE     AGE
        web             pending   5s
        a-longer-name             22s
        ");
    }

    #[test]
    fn headings_can_be_left_out() {
        let text = check(&[["web", "valid", "5s"]], Headers::Hidden, Colour::Off);
        assert_eq!(text, "web   valid   5s\n");
    }

    #[test]
    fn colour_changes_no_width() {
        let rows = [["a", "valid", "5s"], ["b", "invalid", "6s"], ["valid", "other", "7s"]];
        let coloured = check(&rows, Headers::Shown, Colour::On);
        assert!(coloured.contains("\u{1b}[32mvalid\u{1b}[0m     5s"), "{coloured:?}");
        assert!(coloured.contains("\u{1b}[31minvalid\u{1b}[0m   6s"), "{coloured:?}");
        assert!(coloured.contains("\nvalid   other     7s"), "{coloured:?}");
    }

    #[test]
    fn a_cell_is_one_line_and_cannot_steer_the_terminal() {
        let text = check(&[["a\nb", "\u{1b}[2J", "5s"]], Headers::Hidden, Colour::Off);
        assert_eq!(text, "a...   ^[[2J   5s\n");
    }
}
