//! Elastic tab stops: the layout of `kubectl describe`.

/// Blanks between the widest cell of a column and the next column.
const GAP: usize = 2;

/// Lines tab-separated cells up in columns.
///
/// A column reaches over neighbouring lines only: a line without a cell there ends the column, and
/// the next column starts with its own width. The last cell of a line belongs to no column.
pub(super) fn align(text: &str) -> String {
    let lines: Vec<Vec<&str>> = text.split('\n').map(|line| line.split('\t').collect()).collect();
    let mut widths: Vec<Vec<usize>> = lines.iter().map(|cells| vec![0; cells.len() - 1]).collect();
    let columns = widths.iter().map(Vec::len).max().unwrap_or(0);
    for column in 0..columns {
        let mut first = 0;
        while first < lines.len() {
            let reaches = |widths: &Vec<usize>| widths.len() > column;
            let end = first + widths[first..].iter().take_while(|w| reaches(w)).count();
            let width =
                lines[first..end].iter().map(|cells| cells[column].chars().count() + GAP).max();
            for line in &mut widths[first..end] {
                line[column] = width.unwrap_or(0);
            }
            first = end + 1;
        }
    }
    let mut out = String::with_capacity(text.len() * 2);
    for (number, (cells, widths)) in lines.iter().zip(&widths).enumerate() {
        if number > 0 {
            out.push('\n');
        }
        for (cell, width) in cells.iter().zip(widths) {
            out.push_str(cell);
            out.extend(std::iter::repeat_n(' ', width - cell.chars().count()));
        }
        out.push_str(cells.last().unwrap_or(&""));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(align(text), expected);
    }

    #[test]
    fn neighbouring_lines_share_a_column() {
        check("a\tb\nlong:\tc\n", "a      b\nlong:  c\n");
    }

    #[test]
    fn a_line_without_the_cell_ends_the_column() {
        check("a\tb\nbreak\nlong:\tc\n", "a  b\nbreak\nlong:  c\n");
    }

    #[test]
    fn inner_columns_end_earlier_than_outer_ones() {
        check("a\tbbbb\tc\nd\te\nf\tg\th", "a  bbbb  c\nd  e\nf  g  h");
    }

    #[test]
    fn width_counts_characters_not_bytes() {
        check("ü\tx\nab\ty", "ü   x\nab  y");
    }
}
