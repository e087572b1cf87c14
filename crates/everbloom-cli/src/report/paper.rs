//! What text is printed on: how wide it is, how a value is made to stand out, and tables and sentences that fit.

use std::io::IsTerminal as _;

/// Columns where stdout is not a terminal.
const USUAL_COLUMNS: usize = 100;
/// Columns of a terminal that does not say.
const PLAIN_TERMINAL: usize = 80;
/// Narrower than this nothing can be shown.
const FEWEST_COLUMNS: usize = 40;

/// Where text is printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paper {
    columns: usize,
    /// Whether it can show bold letters, and may.
    is_bold: bool,
}

impl Paper {
    /// Stdout, as wide as it is if that is a terminal.
    pub(crate) fn of_stdout() -> Self {
        let stdout = std::io::stdout();
        if !stdout.is_terminal() {
            // As --help does.
            let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
            let columns = given.filter(|columns| *columns > 0).unwrap_or(USUAL_COLUMNS).max(FEWEST_COLUMNS);
            return Paper { columns, is_bold: false };
        }
        let size = rustix::termios::tcgetwinsize(&stdout).ok().filter(|size| size.ws_col > 0);
        // https://no-color.org: set, and not empty.
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_none_or(|name| name == "dumb");
        let columns = size.map_or(PLAIN_TERMINAL, |size| usize::from(size.ws_col));
        Paper { columns: columns.max(FEWEST_COLUMNS), is_bold: !is_plain }
    }

    /// Stderr, if that is a terminal: what is said there need not be read by programs, and is not broken for them.
    pub(crate) fn of_stderr() -> Self {
        let stderr = std::io::stderr();
        let size = rustix::termios::tcgetwinsize(&stderr).ok().filter(|_| stderr.is_terminal());
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        Paper { columns: columns.map_or(usize::MAX, |columns| columns.max(FEWEST_COLUMNS)), is_bold: false }
    }

    /// Stdout for lists, which programs read by the line where it is not a terminal.
    pub(crate) fn for_lists() -> Self {
        let paper = Self::of_stdout();
        if std::io::stdout().is_terminal() { paper } else { Paper { columns: usize::MAX, ..paper } }
    }

    #[cfg(test)]
    pub(crate) fn bold(columns: usize) -> Self {
        Paper { columns, is_bold: true }
    }

    /// Plain paper of this width.
    pub(crate) fn of_columns(columns: usize) -> Self {
        Paper { columns, is_bold: false }
    }

    /// How wide it is.
    pub(crate) fn width(&self) -> usize {
        self.columns
    }

    /// This paper with so much less room.
    pub(crate) fn narrower(&self, indent: usize) -> Self {
        Paper { columns: self.columns.saturating_sub(indent).max(FEWEST_COLUMNS / 2), ..*self }
    }

    /// Names and what is said of each, in two columns.
    pub(crate) fn columns(&self, rows: &[(&str, String)]) -> String {
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        if self.columns < width + GAP + FEWEST_COLUMNS / 2 {
            return self.stacked(rows);
        }
        let line = |(name, value): &(&str, String)| {
            let value = self.narrower(width + GAP).wrap(value, 0).trim_end().to_string();
            let value = value.replace('\n', &format!("\n{}", " ".repeat(width + GAP)));
            format!("{name:width$}{}{value}\n", " ".repeat(GAP))
        };
        rows.iter().map(line).collect()
    }

    /// The rows where there is no room for two columns: what is said of each below its name.
    fn stacked(&self, rows: &[(&str, String)]) -> String {
        let lines = |(name, value): &(&str, String)| {
            let name = if name.is_empty() { String::new() } else { format!("{name}\n") };
            let value = self.narrower(2 * GAP).wrap(value, 0);
            let value: String = value.lines().map(|line| format!("{}{line}\n", " ".repeat(2 * GAP))).collect();
            name + &value
        };
        rows.iter().map(lines).collect()
    }

    /// How the best value of a column stands out, in words.
    pub(crate) fn mark(&self) -> &'static str {
        if self.is_bold { "bold" } else { "*" }
    }

    /// A text as it is if it fits, or in lines that do.
    pub(crate) fn fit(&self, text: &str, indent: usize) -> String {
        let fits = |line: &str| line.chars().count() <= self.columns;
        let lines =
            text.lines().map(|line| if fits(line) { line.into() } else { self.wrap(line, indent).trim_end().into() });
        lines.collect::<Vec<String>>().join("\n")
    }

    /// A sentence in lines that fit, those after the first indented.
    pub(crate) fn wrap(&self, text: &str, indent: usize) -> String {
        let (mut lines, mut column) = (String::new(), 0);
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if column > 0 && column + 1 + length > self.columns {
                lines.push('\n');
                lines.push_str(&" ".repeat(indent));
                column = indent;
            } else if column > 0 {
                lines.push(' ');
                column += 1;
            }
            lines.push_str(word);
            column += length;
        }
        lines.push('\n');
        lines
    }

    /// How wide each column of a table is.
    fn widths(&self, rows: &[Vec<Cell>]) -> Vec<usize> {
        let width = |column: usize| {
            let cells = || rows.iter().filter_map(|row| row.get(column));
            let width = cells().map(|cell| cell.text.chars().count()).max().unwrap_or(0);
            // A mark stands behind its number, so that digits stay in line.
            width + usize::from(cells().any(|cell| cell.is_best) && !self.is_bold)
        };
        (0..rows.first().map_or(0, Vec::len)).map(width).collect()
    }

    /// A table, the first `fixed` columns repeated where the others do not fit beside each other.
    pub(crate) fn table(&self, fixed: usize, rows: &[Vec<Cell>]) -> String {
        let columns = rows.first().map_or(0, Vec::len);
        let is_marked = |column: usize| rows.iter().filter_map(|row| row.get(column)).any(|cell| cell.is_best);
        let widths = self.widths(rows);
        let head: usize = widths.iter().take(fixed).map(|width| width + GAP).sum();
        let mut text = String::new();
        let mut start = fixed.min(columns);
        loop {
            let (mut end, mut width) = (start, head);
            while end < columns && (end == start || width + widths[end] <= self.columns) {
                width += widths[end] + GAP;
                end += 1;
            }
            for row in rows {
                let shown = (0..fixed)
                    .chain(start..end)
                    .map(|column| self.cell(row, column, widths[column], is_marked(column)));
                let line = shown.collect::<Vec<_>>().join(&" ".repeat(GAP));
                text.push_str(line.trim_end());
                text.push('\n');
            }
            if end >= columns {
                return text;
            }
            text.push('\n');
            start = end;
        }
    }

    fn cell(&self, row: &[Cell], column: usize, width: usize, is_marked: bool) -> String {
        let Some(cell) = row.get(column) else { return " ".repeat(width) };
        let mark = match (is_marked && !self.is_bold, cell.is_best) {
            (true, true) => "*",
            (true, false) => " ",
            _ => "",
        };
        let text = format!("{}{mark}", cell.text);
        let space = " ".repeat(width.saturating_sub(text.chars().count()));
        let text = if cell.is_best && self.is_bold { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text };
        if cell.is_left { format!("{text}{space}") } else { format!("{space}{text}") }
    }
}

/// Between two columns.
const GAP: usize = 2;

/// A cell of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    is_best: bool,
    is_left: bool,
}

impl Cell {
    /// A name, which begins at the left; numbers end at the right.
    pub(crate) fn name(text: &str) -> Self {
        Cell { is_left: true, ..text.into() }
    }

    /// One that stands out.
    pub(crate) fn best(self, is_best: bool) -> Self {
        Cell { is_best, ..self }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell { text, ..Cell::default() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<Cell>> {
        let row = |number: &str, rates: [&str; 3]| -> Vec<Cell> {
            [Cell::from(number), Cell::name("kind")].into_iter().chain(rates.map(Cell::from)).collect()
        };
        let mut rows = vec![row("#", ["first rate", "second rate", "third rate"]), row("1", ["1 %", "12 %", "0.1 %"])];
        rows[1][3].is_best = true;
        rows
    }

    #[test]
    fn columns_that_do_not_fit_come_below_with_the_first_ones_again() {
        let wide = Paper::of_columns(100).table(2, &rows());
        assert_eq!(
            wide,
            "#  kind  first rate  second rate   third rate\n1  kind         1 %         12 %*       0.1 %\n"
        );
        let narrow = Paper::of_columns(24).table(2, &rows());
        assert!(narrow.lines().all(|line| line.chars().count() <= 24), "{narrow}");
        for name in ["first rate", "second rate", "third rate"] {
            assert_eq!(narrow.matches(name).count(), 1, "{narrow}");
        }
        assert_eq!(narrow.matches("kind").count(), 6, "{narrow}");
    }

    #[test]
    fn what_is_best_is_bold_or_has_a_star() {
        assert!(Paper::of_columns(100).table(2, &rows()).contains("12 %*"));
        let bold = Paper::bold(100).table(2, &rows());
        assert!(bold.contains("\u{1b}[1m12 %\u{1b}[0m") && !bold.contains('*'), "{bold}");
    }

    #[test]
    fn names_stand_above_what_is_said_where_there_is_no_room_beside() {
        let rows = [("a name of some length", "one two three four five six seven".to_string()), ("", "more".into())];
        let text = Paper::of_columns(40).columns(&rows);
        assert_eq!(text, "a name of some length\n    one two three four five six seven\n    more\n");
        assert_eq!(Paper::of_columns(60).columns(&rows).lines().count(), 2);
    }

    #[test]
    fn sentences_break_between_words() {
        let text = Paper::of_columns(20).wrap("one two three four five sixsixsixsixsixsixsixsix", 2);
        assert_eq!(text, "one two three four\n  five\n  sixsixsixsixsixsixsixsix\n");
    }
}
