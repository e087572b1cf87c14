//! Plain tables, and bars with what was reached.

use super::Spread;
use std::fmt;

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.low, self.high)
    }
}

/// 256 KiB, 8 MiB, …
pub fn size_name(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

/// Prints rows under a heading, columns aligned, as Markdown reads them.
pub fn print(heading: &str, columns: &[&str], rows: &[Vec<String>]) {
    println!("\n### {heading}\n");
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).chain([columns[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        println!("| {} |", padded.join(" | "));
    };
    line(&mut columns.iter().copied());
    println!("|{}|", widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("|"));
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}

/// A promise about a ratio, and what was measured.
pub struct Bar {
    pub name: String,
    pub measured: Spread,
    pub bound: Bound,
}

/// Which way a ratio must lie.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bar {
    /// Whether the median keeps the bound.
    pub fn is_kept(&self) -> bool {
        match self.bound {
            Bound::AtMost(bound) => self.measured.median <= bound,
            Bound::AtLeast(bound) => self.measured.median >= bound,
        }
    }

    fn row(&self) -> Vec<String> {
        let bound = match self.bound {
            Bound::AtMost(bound) => format!("≤ {bound}"),
            Bound::AtLeast(bound) => format!("≥ {bound}"),
        };
        let kept = if self.is_kept() { "kept" } else { "MISSED" };
        vec![self.name.clone(), bound, self.measured.to_string(), kept.into()]
    }
}

/// Prints all bars: the ratio's median over rounds, quartiles in parentheses.
pub fn print_bars(bars: &[Bar]) {
    let rows: Vec<_> = bars.iter().map(Bar::row).collect();
    print("Bars", &["ratio", "bar", "measured (quartiles)", ""], &rows);
}
