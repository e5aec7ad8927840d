//! Rows of a terminal on which the user waits: a spinner and the rows below.
//!
//! indicatif draws all of its rows at each turn of the spinner. A grid of rows between indicatif and the
//! terminal writes only the changed rows: twenty names cost a terminal a few bytes a second, not 90,000.

use std::io;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use parking_lot::Mutex;

use super::fold::columns;
use super::rows::Rows;
use super::talk::MessageStream;
use super::terminal;

/// Spinner with rows below; a dropped spinner takes the rows off the screen.
#[derive(Debug)]
pub(super) struct Spinner {
    bar: ProgressBar,
    size: fn() -> (u16, u16),
}

impl Spinner {
    /// Creates a spinner on standard error; `None` if the terminal cannot draw over rows.
    pub(super) fn on_stderr(talk: &MessageStream) -> Option<Self> {
        let size = || console::Term::stderr().size();
        terminal::is_capable().then(|| Self::on(talk, size))
    }

    /// Creates a spinner on a terminal of that size: rows, then columns.
    pub(super) fn on(talk: &MessageStream, size: fn() -> (u16, u16)) -> Self {
        let grid = Grid { talk: talk.clone(), size, state: Arc::default() };
        let target = ProgressDrawTarget::term_like(Box::new(grid));
        let style = ProgressStyle::with_template("{spinner} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
        Self { bar, size }
    }

    /// Turns once, and shows these rows; clears all rows if the text is empty.
    pub(super) fn draw(&self, text: &str) {
        if text.is_empty() {
            self.bar.finish_and_clear();
            return;
        }
        if self.bar.is_finished() {
            self.bar.reset();
        }
        self.bar.set_message(text.to_owned());
        self.bar.tick();
    }

    /// Returns the bar that has to be off the screen while other text is written.
    pub(super) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Returns the terminal's rows and columns.
    pub(super) fn size(&self) -> (usize, usize) {
        let (rows, columns) = (self.size)();
        (rows.into(), columns.into())
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Terminal on which indicatif draws.
#[derive(Debug)]
struct Grid {
    talk: MessageStream,
    size: fn() -> (u16, u16),
    state: Arc<Mutex<Cells>>,
}

#[derive(Debug, Default)]
struct Cells {
    rows: Vec<String>,
    row: usize,
    column: usize,
    drawn: Rows,
}

impl Cells {
    /// Writes at the cursor; after a full row the cursor moves to the next row.
    fn write(&mut self, text: &str, width: usize) {
        if text == "\r" {
            self.column = 0;
            return;
        }
        if text.is_empty() {
            return;
        }
        if self.column >= width {
            (self.row, self.column) = (self.row + 1, 0);
        }
        while self.rows.len() <= self.row {
            self.rows.push(String::new());
        }
        let row = &mut self.rows[self.row];
        if self.column == 0 {
            row.clear();
        }
        row.push_str(text);
        self.column += columns(text);
    }
}

impl TermLike for Grid {
    fn width(&self) -> u16 {
        (self.size)().1
    }

    fn height(&self) -> u16 {
        (self.size)().0
    }

    fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
        let mut cells = self.state.lock();
        cells.row = cells.row.saturating_sub(rows);
        Ok(())
    }

    fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
        self.state.lock().row += rows;
        Ok(())
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.state.lock().column += columns;
        Ok(())
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        let mut cells = self.state.lock();
        cells.column = cells.column.saturating_sub(columns);
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        let width = self.width().into();
        let mut cells = self.state.lock();
        cells.write(text, width);
        (cells.row, cells.column) = (cells.row + 1, 0);
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        let width = self.width().into();
        self.state.lock().write(text, width);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        let mut cells = self.state.lock();
        let row = cells.row;
        if let Some(row) = cells.rows.get_mut(row) {
            row.clear();
        }
        cells.column = 0;
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let mut cells = self.state.lock();
        let mut rows: Vec<String> =
            cells.rows.iter().map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        let text = cells.drawn.paint(rows);
        if text.is_empty() { Ok(()) } else { self.talk.draw(&text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::talk::Memory;

    fn written(memory: &Memory, since: &mut usize) -> String {
        let text = memory.text();
        let new = text[*since..].replace('\u{1b}', "^").replace("\r\n", "$").replace('\r', "<");
        *since = text.len();
        new
    }

    #[test]
    fn a_turn_writes_the_first_row_alone_and_lines_stand_above() {
        let (err, mut since) = (Memory::default(), 0);
        let talk = MessageStream::new(Box::new(err.clone()));
        let spinner = Spinner::on(&talk, || (24, 40));
        talk.show(Some(spinner.bar()));
        spinner.draw("one\n  two\n  three");
        assert!(written(&err, &mut since).ends_with(" one$<^[K  two$<^[K  three$^[J"));
        spinner.draw("one\n  two\n  three");
        let turned = written(&err, &mut since);
        assert!(turned.starts_with("<^[3A<^[K") && turned.ends_with(" one$^[2B^[J"), "{turned}");
        talk.line("news");
        let news = written(&err, &mut since);
        assert!(news.starts_with("<^[3A^[Jnews\n<^[K"), "{news}");
        spinner.draw("one");
        assert!(written(&err, &mut since).ends_with(" one$^[J"));
        spinner.draw("");
        assert_eq!(written(&err, &mut since), "<^[1A^[J");
        talk.line("alone");
        assert_eq!(written(&err, &mut since), "alone\n");
        spinner.draw("again");
        assert!(written(&err, &mut since).ends_with(" again$^[J"));
        talk.show(None);
        drop(spinner);
        assert_eq!(written(&err, &mut since), "<^[1A^[J");
    }

    #[test]
    fn a_row_that_fills_the_terminal_stays_one_row() {
        let (err, mut since) = (Memory::default(), 0);
        let talk = MessageStream::new(Box::new(err.clone()));
        let spinner = Spinner::on(&talk, || (24, 10));
        spinner.draw("12345678\nabcdefghij\nlast");
        assert!(written(&err, &mut since).ends_with(" 12345678$<^[Kabcdefghij$<^[Klast$^[J"));
        spinner.draw("12345678\nabcdefghij\nLAST");
        let turned = written(&err, &mut since);
        assert!(turned.contains("<^[KLAST$^[J"), "{turned}");
    }
}
