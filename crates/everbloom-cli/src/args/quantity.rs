//! Quantities as they are typed. The core reads them; here its errors become what follows the option's name.

use everbloom::Error;
use everbloom::internal::promise::{Count, Rate, Size, Span, Window};
use std::time::Duration;

/// Bits from a size such as `64MiB`.
pub(crate) fn size_in_bits(text: &str) -> Result<u64, String> {
    Size::from(text).get().map_err(needed)
}

/// A rate such as `0.01` or `1%`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    Rate::from(text).get().map_err(needed)
}

/// A count such as `1000000`, `1e6` or `10k`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    Count::from(text).get().map_err(needed)
}

/// A time such as `30s`, `500ms` or `5m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    Span::from(text).get().map_err(needed)
}

/// A window of lines such as `1e6`, or of time such as `24h`.
pub(crate) fn window(text: &str) -> Result<Window, String> {
    text.parse().map_err(needed)
}

/// A seed: any number of 64 bits.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number from 0 to 2^64 - 1; try 0".into())
}

/// Any number; what it may be depends on where it is used.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "must be a number such as 8 or 0.5".into())
}

/// The single byte that a delimiter stands for.
pub(crate) fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        b"\\0" => Ok(0),
        _ => Err("must be one byte such as ',' or '\\t'".into()),
    }
}

/// What would be accepted; what was given, and for which option, is said already.
fn needed(error: Error) -> String {
    match error {
        Error::Parameter { needed, remedy, .. } => format!("must be {needed}; {remedy}"),
        error => error.to_string(),
    }
}
