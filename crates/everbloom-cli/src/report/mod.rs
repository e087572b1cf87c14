//! What commands print about filters, for people and for programs.

pub(crate) mod audit;
#[cfg(feature = "lab")]
pub(crate) mod figures;
pub(crate) mod paper;
pub(crate) mod words;

use crate::args::Format;
use crate::failure::{Failure, Result};
use crate::output;
use everbloom::kind::LEAST_RATE;
use paper::Paper;
use serde::Serialize;

/// Prints `document` as JSON or `table` as text.
pub(crate) fn print(format: Format, document: &impl Serialize, table: impl FnOnce() -> String) -> Result<()> {
    match format {
        Format::Json => output::print(&json(document)?),
        Format::Table => output::print(&table()),
    }
}

/// One JSON document, ended by a newline.
pub(crate) fn json(document: &impl Serialize) -> Result<String> {
    let mut text = serde_json::to_string_pretty(document).map_err(Failure::new)?;
    text.push('\n');
    Ok(text)
}

/// Names and values in two columns: a line each, but on a terminal that is too narrow for it.
pub(crate) fn columns(rows: &[(&str, String)]) -> String {
    Paper::for_lists().columns(rows)
}

/// A number of bits as people read it, and as it is.
pub(crate) fn size(bits: u64) -> String {
    let short = short_size(bits);
    if bits < 8 << 10 { short } else { format!("{short} ({bits} bits)") }
}

/// A number of bits as people read it.
pub(crate) fn short_size(bits: u64) -> String {
    let bytes = bits as f64 / 8.0;
    let (unit, divisor) = match bytes {
        bytes if bytes >= 1073741824.0 => ("GiB", 1073741824.0),
        bytes if bytes >= 1048576.0 => ("MiB", 1048576.0),
        bytes if bytes >= 1024.0 => ("KiB", 1024.0),
        _ if bits.is_multiple_of(8) => return counted(bits / 8, "byte"),
        _ => return counted(bits, "bit"),
    };
    format!("{:.1} {unit}", bytes / divisor)
}

/// A predicted rate: hashes justify none below the least that is promised, be it 0 by the formula.
pub(crate) fn predicted(rate: f64) -> String {
    match rate {
        rate if rate < LEAST_RATE => practically_none(),
        rate if rate == LEAST_RATE => format!("{LEAST_RATE:e}"),
        rate => percent(rate),
    }
}

/// What is said of anything below the least rate that hashes justify.
pub(crate) fn practically_none() -> String {
    format!("< {LEAST_RATE:e}")
}

/// A rate with its ±, where it has one: `1.15 ± 0.06 %`.
pub(crate) fn with_error(rate: f64, error: Option<f64>) -> String {
    match (rate * 100.0, error.map(|error| error * 100.0)) {
        (_, None) | (0.0, Some(0.0)) => percent(rate),
        (rate, Some(error)) if rate.max(error) < 100.0 * LEAST_RATE => practically_none(),
        // So far below the rate, its digits would be all that one sees.
        (rate, Some(0.0)) => format!("{} ± 0 %", significant(rate)),
        (rate, Some(error)) if error < 1e-4 * rate => format!("{} ± {error:.1e} %", significant(rate)),
        (rate, Some(error)) if rate.max(error) >= 0.001 => {
            // As many digits as the ± has two of.
            let digits = (1.0 - error.max(1e-9).log10().floor()).clamp(0.0, 8.0) as usize;
            format!("{rate:.digits$} ± {error:.digits$} %")
        }
        (0.0, Some(error)) => format!("0 ± {error:.1e} %"),
        (rate, Some(error)) => format!("{rate:.2e} ± {error:.1e} %"),
    }
}

/// A rate as a percentage with three digits.
pub(crate) fn percent(rate: f64) -> String {
    match rate * 100.0 {
        0.0 => "0 %".into(),
        percent if percent > 0.0 && percent < 100.0 * LEAST_RATE => practically_none(),
        percent if percent.abs() >= 0.001 => format!("{} %", significant(percent)),
        // As it would be typed: 1e-12.
        _ => scientific(rate),
    }
}

/// A small number with three digits, and no zeros that say nothing.
fn scientific(value: f64) -> String {
    let text = format!("{value:.2e}");
    match text.split_once('e') {
        Some((digits, exponent)) => format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.')),
        None => text,
    }
}

fn significant(value: f64) -> String {
    let mut digits = (2.0 - value.abs().log10().floor()).clamp(0.0, 8.0) as usize;
    let mut text = format!("{value:.digits$}");
    // What is not all is not said to be all.
    while value < 100.0 && text.starts_with("100") && digits < 8 {
        digits += 1;
        text = format!("{value:.digits$}");
    }
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A count and what is counted: `1 line`, `2,000 lines`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    let ending = match one {
        _ if count == 1 => "",
        one if one.ends_with("sh") => "es",
        _ => "s",
    };
    format!("{} {one}{ending}", thousands(count))
}

/// A count with its thousands apart.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(999), "999");
        assert_eq!(percent(0.001), "0.1 %");
        assert_eq!(percent(0.12345), "12.3 %");
        assert_eq!(
            (predicted(0.0), predicted(3e-22), predicted(0.001)),
            ("< 1e-15".into(), "< 1e-15".into(), "0.1 %".into())
        );
        assert_eq!(with_error(0.0115, Some(0.000589)), "1.150 ± 0.059 %");
        assert_eq!(with_error(0.475, Some(0.0312)), "47.5 ± 3.1 %");
        assert_eq!(with_error(0.0, Some(0.0)), "0 %");
        assert_eq!(with_error(0.000_746_268_7, Some(0.0)), "0.0746 ± 0 %");
        assert_eq!(with_error(0.25, Some(1e-9)), "25 ± 1.0e-7 %");
        assert_eq!((percent(1e-12), percent(2.34e-7)), ("1e-12".into(), "2.34e-7".into()));
        assert_eq!(with_error(2e-6, Some(1e-6)), "2.00e-4 ± 1.0e-4 %");
        assert_eq!([512, 8, 1, 12].map(short_size), ["64 bytes", "1 byte", "1 bit", "12 bits"]);
        assert_eq!(
            [(1, "hash"), (2, "hash"), (1, "line"), (2000, "line"), (0, "repeat")]
                .map(|(count, one)| counted(count, one)),
            ["1 hash", "2 hashes", "1 line", "2,000 lines", "0 repeats"]
        );
        assert_eq!((percent(3e-61), with_error(6e-49, Some(1e-26))), ("< 1e-15".into(), "< 1e-15".into()));
        assert_eq!(with_error(6e-49, Some(1e-3)), "0.00 ± 0.10 %");
        assert_eq!(size(64 << 23), "64.0 MiB (536870912 bits)");
    }
}
