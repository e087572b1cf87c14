//! What a command printed, against what a document shows.

/// Stands for any lines where it is alone, for any text within a line.
const ANY: &str = "…";

pub(crate) fn matches(expected: &[String], printed: &[String]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == ANY => (0..=printed.len()).any(|skip| matches(rest, &printed[skip..])),
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(line, lines)| line_matches(first, line) && matches(rest, lines))
        }
    }
}

fn line_matches(expected: &str, line: &str) -> bool {
    match expected.split_once(ANY) {
        None => expected == line,
        Some((start, rest)) => line.strip_prefix(start).is_some_and(|line| {
            let cuts = line.char_indices().map(|(index, _)| index).chain([line.len()]);
            cuts.into_iter().any(|cut| line_matches(rest, &line[cut..]))
        }),
    }
}

/// The lines with `- ` where the document has more, `+ ` where the command has, by their longest common part.
pub(crate) fn difference(expected: &[String], printed: &[String]) -> String {
    let (rows, columns) = (expected.len(), printed.len());
    let mut common = vec![vec![0; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            common[row][column] = match line_matches(&expected[row], &printed[column]) {
                true => common[row + 1][column + 1] + 1,
                false => common[row + 1][column].max(common[row][column + 1]),
            };
        }
    }
    let (mut row, mut column, mut lines) = (0, 0, Vec::new());
    while row < rows || column < columns {
        if row < rows && column < columns && line_matches(&expected[row], &printed[column]) {
            lines.push(format!("  {}", printed[column]));
            (row, column) = (row + 1, column + 1);
        } else if row < rows && (column == columns || common[row + 1][column] >= common[row][column + 1]) {
            lines.push(format!("- {}", expected[row]));
            row += 1;
        } else {
            lines.push(format!("+ {}", printed[column]));
            column += 1;
        }
    }
    lines.join("\n")
}
