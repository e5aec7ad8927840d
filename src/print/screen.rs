//! Screen of a terminal that is redrawn in place, for `watch`.

use std::io;

use super::Printer;
use super::colour::Colour;
use super::escape::{escape, escape_but_colours};
use super::rows::Rows;

/// Lines drawn in place of the lines drawn before.
#[derive(Debug, Default)]
pub struct Screen {
    drawn: Rows,
}

/// One picture under construction.
#[derive(Debug)]
pub struct Frame {
    /// Whether words may be coloured.
    pub colour: Colour,
    rows: usize,
    columns: usize,
    blocks: Vec<Vec<String>>,
    tail: Vec<String>,
    footer: Option<String>,
}

impl Screen {
    /// Draws a picture as large as the terminal is now.
    ///
    /// # Errors
    /// Fails when the picture cannot be written.
    pub fn show(
        &mut self,
        printer: &mut Printer,
        picture: impl FnOnce(&mut Frame),
    ) -> io::Result<()> {
        let (rows, columns) = console::Term::stdout().size();
        let mut frame = Frame::new(rows.into(), columns.into(), printer.colours.out);
        picture(&mut frame);
        let text = self.drawn.paint(frame.lines());
        printer.data(&text)
    }
}

impl Frame {
    fn new(rows: usize, columns: usize, colour: Colour) -> Self {
        let (blocks, tail, footer) = (Vec::new(), Vec::new(), None);
        Self { colour, rows, columns, blocks, tail, footer }
    }

    /// Columns of the terminal.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns whether the picture has no blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Adds a block of lines, such as a table; blocks stand a blank line apart.
    pub fn block(&mut self, text: &str) {
        let text = escape_but_colours(text, self.colour);
        self.blocks.push(text.lines().map(str::to_owned).collect());
    }

    /// Fills the space that is left with the last of these lines.
    pub fn tail(&mut self, lines: impl Iterator<Item = String>) {
        self.tail = lines.map(|line| escape(line.trim_end())).collect();
    }

    /// Sets the last line.
    pub fn footer(&mut self, text: String) {
        self.footer = Some(text);
    }

    /// Returns the lines that fit: if all blocks together are too long, the longest blocks are cut at their ends.
    fn lines(&self) -> Vec<String> {
        // The cursor stands on a line of its own, and the footer is one more.
        let room = self.rows.saturating_sub(2).max(1);
        let mut lines = fit(&self.blocks, room);
        let left = room.saturating_sub(lines.len() + 1).min(self.tail.len());
        if left > 0 {
            lines.push(String::new());
            lines.extend_from_slice(&self.tail[self.tail.len() - left..]);
        }
        lines.extend(self.footer.clone());
        lines.iter().map(|l| console::truncate_str(l, self.columns, "…").into_owned()).collect()
    }
}

/// Joins blocks with blank lines; the longest blocks are cut until all fit.
fn fit(blocks: &[Vec<String>], room: usize) -> Vec<String> {
    let longest = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let length = |most: usize| {
        let blanks = blocks.len().saturating_sub(1);
        blocks.iter().map(|block| block.len().min(most)).sum::<usize>() + blanks
    };
    let most = (1..=longest).rev().find(|most| length(*most) <= room).unwrap_or(1);
    let mut lines = Vec::new();
    for block in blocks {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        if block.len() > most && most > 1 {
            lines.extend_from_slice(&block[..most - 1]);
            lines.push(format!("… {} more", block.len() - (most - 1)));
        } else {
            lines.extend(block.iter().take(most).cloned());
        }
    }
    lines.truncate(room);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: usize, columns: usize, expected: &str) {
        let mut frame = Frame::new(rows, columns, Colour::Off);
        frame.block("NAME\na\nb\nc\nd\n");
        frame.block("NAME\nz\n");
        frame.tail(["first", "second", "third"].map(|l| format!("{l}\n")).into_iter());
        frame.footer("Ctrl-C ends".to_owned());
        let lines = frame.lines();
        assert!(lines.len() < rows, "{lines:?}");
        assert_eq!(lines.join("|"), expected);
    }

    #[test]
    fn everything_is_shown_where_there_is_room() {
        check(20, 80, "NAME|a|b|c|d||NAME|z||first|second|third|Ctrl-C ends");
    }

    #[test]
    fn the_oldest_lines_of_the_tail_give_way_first() {
        check(12, 80, "NAME|a|b|c|d||NAME|z||third|Ctrl-C ends");
    }

    #[test]
    fn then_the_longest_block() {
        check(8, 80, "NAME|a|… 3 more||NAME|z|Ctrl-C ends");
        check(4, 80, "NAME||Ctrl-C ends");
    }

    #[test]
    fn nobody_but_us_moves_the_cursor() {
        let mut frame = Frame::new(20, 80, Colour::On);
        frame.block("\u{1b}[32mTrue\u{1b}[0m \u{1b}[2J\n");
        frame.tail(["\u{1b}[2J\u{9b}31m".to_owned()].into_iter());
        let expected = ["\u{1b}[32mTrue\u{1b}[0m ^[[2J", "", "^[[2J\\u{9b}31m"];
        assert_eq!(frame.lines(), expected);
    }

    #[test]
    fn long_lines_are_cut() {
        check(20, 4, "NAME|a|b|c|d||NAME|z||fir…|sec…|thi…|Ctr…");
    }
}
