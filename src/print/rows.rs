//! Rows of a terminal that are redrawn in place: only changed rows are written.

/// Rows on the terminal; the cursor is on the line below the rows, where the echo of Ctrl-C damages nothing.
#[derive(Debug, Default)]
pub(super) struct Rows(Vec<String>);

impl Rows {
    /// Returns the text that replaces the last rows with these rows. Each row must fit the
    /// terminal's width, and all rows together its height.
    pub(super) fn paint(&mut self, rows: Vec<String>) -> String {
        let same = self.0.iter().zip(&rows).take_while(|(before, row)| before == row).count();
        if same == self.0.len() && same == rows.len() {
            return String::new();
        }
        let mut text = match self.0.len() - same {
            0 => String::new(),
            // The echo of a pressed Ctrl-C moves the cursor to the right.
            up => format!("\r\u{1b}[{up}A"),
        };
        let mut down = 0;
        for (number, row) in rows.iter().enumerate().skip(same) {
            if self.0.get(number) == Some(row) {
                down += 1;
                continue;
            }
            text.push_str(&go_down(&mut down));
            text.extend(["\r\u{1b}[K", row, "\r\n"]);
        }
        text.push_str(&go_down(&mut down));
        // Clears old rows below, and anything typed there.
        text.push_str("\u{1b}[J");
        self.0 = rows;
        text
    }
}

/// Returns the text that moves the cursor past unchanged rows.
fn go_down(rows: &mut usize) -> String {
    match std::mem::take(rows) {
        0 => String::new(),
        rows => format!("\u{1b}[{rows}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paint(rows: &mut Rows, lines: &[&str]) -> String {
        let text = rows.paint(lines.iter().map(ToString::to_string).collect());
        text.replace('\u{1b}', "^").replace("\r\n", "$").replace('\r', "<")
    }

    #[test]
    fn only_rows_that_changed_are_written() {
        let mut rows = Rows::default();
        assert_eq!(paint(&mut rows, &["a", "b", "c"]), "<^[Ka$<^[Kb$<^[Kc$^[J");
        assert_eq!(paint(&mut rows, &["a", "b", "c"]), "");
        assert_eq!(paint(&mut rows, &["a", "B", "c"]), "<^[2A<^[KB$^[1B^[J");
        assert_eq!(paint(&mut rows, &["a"]), "<^[2A^[J");
        assert_eq!(paint(&mut rows, &["a", "d"]), "<^[Kd$^[J");
        assert_eq!(paint(&mut rows, &[]), "<^[2A^[J");
    }
}
