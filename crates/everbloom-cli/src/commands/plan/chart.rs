//! The rate of false negatives by lag, as bars.

use super::LagRow;
use crate::report::paper::Paper;
use crate::report::percent;

/// The widest bar, and the narrowest beside which all is said.
const WIDTHS: [usize; 2] = [40, 10];
/// What stands before and behind it.
const BESIDE: usize = 11 + 44;
/// The chart where there is no room for more than the rate.
const BESIDE_SHORT: usize = 11 + 11;
const MOST_ROWS: usize = 12;
/// Lags that hold a smaller share of the repeats are not worth a bar.
const LEAST_SHARE: f64 = 0.001;

/// A bar for every doubling of the lag, or for every second, as many as fit.
pub(super) fn by_lag(rows: &[LagRow], columns: usize) -> String {
    let is_narrow = columns < BESIDE + WIDTHS[1];
    let width = columns.saturating_sub(if is_narrow { BESIDE_SHORT } else { BESIDE }).clamp(WIDTHS[1], WIDTHS[0]);
    let rows: Vec<&LagRow> = rows.iter().filter(|row| row.share >= LEAST_SHARE).collect();
    let step = rows.len().div_ceil(MOST_ROWS).max(1);
    let title = "repeats missed, by lines since the key was last seen";
    let mut text = format!("\n{}", Paper::of_columns(columns).wrap(title, 2));
    for together in rows.chunks(step) {
        let share: f64 = together.iter().map(|row| row.share).sum();
        let missed: f64 = together.iter().map(|row| row.share * row.predicted_fnr).sum::<f64>() / share;
        let lag = together[together.len() / 2].lag;
        let bar = bar(missed, width);
        let then = if is_narrow { String::new() } else { format!(" of the {} that come then", percent(share)) };
        text.push_str(&format!("{:>9}  {bar:width$}  {:>9}{then}\n", short(lag), percent(missed)));
    }
    text
}

/// A bar with eighths of a cell.
pub(super) fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if let Some(part) = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)) {
        bar.push(*part);
    }
    bar
}

/// 1.4, 23, 1.4k, 1.5M.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e9 => (value / 1e9, "G"),
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "k"),
        value => (value, ""),
    };
    if value >= 10.0 { format!("{value:.0}{unit}") } else { format!("{value:.1}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(0.0, 40), "");
        assert_eq!(bar(1.0, 40).chars().count(), 40);
        assert_eq!(bar(0.5, 10).chars().count(), 5);
        assert_eq!(bar(0.001, 40), "");
        assert_eq!(short(1_400.0), "1.4k");
        assert_eq!(short(23_000_000.0), "23M");
    }
}
