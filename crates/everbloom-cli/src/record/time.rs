//! Times as logs have them, in microseconds since 1970.
//!
//! | written as | read as |
//! |---|---|
//! | `1700000000`, `1700000000.25` | seconds since 1970; milliseconds from 1e11 on, microseconds from 1e14, nanoseconds from 1e17 |
//! | `2023-11-14T22:13:20Z`, `2023-11-14 22:13:20.5+01:00` | RFC 3339; without an offset, UTC |
//! | `14/Nov/2023:22:13:20 +0000`, in brackets or not | the web servers' log format; without an offset, UTC |

use super::Problem;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::Offset;
use std::time::{Duration, SystemTime};

static PARSER: DateTimeParser = DateTimeParser::new();

/// Clocks differ; what lies further ahead than this is a mistake.
const TOLERANCE: Duration = Duration::from_secs(24 * 3600);

/// Now.
pub(crate) fn now() -> i64 {
    micros_of(SystemTime::now())
}

/// The latest time that a record can have: a day from now.
///
/// One later one, and the window would be turned past everything that really comes.
pub(crate) fn latest_plausible() -> i64 {
    micros_of(SystemTime::now() + TOLERANCE)
}

fn micros_of(time: SystemTime) -> i64 {
    Timestamp::try_from(time).unwrap_or(Timestamp::MAX).as_microsecond()
}

/// The time in a field, unless it lies behind `latest`.
pub(super) fn parse(text: &[u8], latest: i64) -> Result<i64, Problem> {
    let shown = || String::from_utf8_lossy(text).into_owned();
    let time =
        read(text.trim_ascii()).ok_or_else(|| Problem::Time(format!("its time '{}' cannot be read", shown())))?;
    if time > latest {
        return Err(Problem::Time(format!("its time '{}' is more than a day ahead of this machine's clock", shown())));
    }
    Ok(time)
}

fn read(text: &[u8]) -> Option<i64> {
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let text = text.strip_suffix(b"]").unwrap_or(text);
    match text {
        [_, _, b'/', ..] | [_, b'/', ..] => web_server(text),
        [_, _, _, _, b'-', _, _, b'-', ..] => calendar(text),
        _ => number(std::str::from_utf8(text).ok()?),
    }
}

fn calendar(text: &[u8]) -> Option<i64> {
    if let Ok(time) = PARSER.parse_timestamp(text) {
        return Some(time.as_microsecond());
    }
    // A date-time that ends in something else would have been a timestamp, or is none.
    in_utc(PARSER.parse_datetime(text).ok()?)
}

fn web_server(text: &[u8]) -> Option<i64> {
    if let Ok(time) = BrokenDownTime::parse("%d/%b/%Y:%H:%M:%S %z", text) {
        return Some(time.to_timestamp().ok()?.as_microsecond());
    }
    in_utc(BrokenDownTime::parse("%d/%b/%Y:%H:%M:%S", text).ok()?.to_datetime().ok()?)
}

fn in_utc(time: DateTime) -> Option<i64> {
    Some(Offset::UTC.to_timestamp(time).ok()?.as_microsecond())
}

/// Seconds since 1970, or a thousandth, millionth, billionth of it, as the size tells.
fn number(text: &str) -> Option<i64> {
    // Digits before digits, so that "inf", "1e9" and "0x10" are none.
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit())
        || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    let (whole, fraction): (i128, f64) = match text.split_once('.') {
        None => (text.parse().ok()?, 0.0),
        Some((whole, fraction)) => (whole.parse().ok()?, format!("0.{fraction}").parse().ok()?),
    };
    let per_unit = match whole.unsigned_abs() {
        0..100_000_000_000 => 1e6,
        100_000_000_000..100_000_000_000_000 => 1e3,
        100_000_000_000_000..100_000_000_000_000_000 => 1.0,
        _ => return i64::try_from(whole / 1000).ok(),
    };
    let fraction = if text.starts_with('-') { -fraction } else { fraction };
    i64::try_from(whole * per_unit as i128 + (fraction * per_unit) as i128).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_700_000_000_000_000;

    #[test]
    fn one_time_in_every_form() {
        for text in [
            "1700000000",
            "1700000000.000",
            "1700000000000",
            "1700000000000000",
            "1700000000000000000",
            "2023-11-14T22:13:20Z",
            "2023-11-14 22:13:20",
            "2023-11-14T23:13:20+01:00",
            "2023-11-14T22:13:20.000000Z",
            "14/Nov/2023:22:13:20 +0000",
            "[14/Nov/2023:14:13:20 -0800]",
            "[14/Nov/2023:22:13:20",
            " 1700000000 ",
        ] {
            assert_eq!(parse(text.as_bytes(), i64::MAX), Ok(NOON), "{text}");
        }
        assert_eq!(parse(b"1700000000.5", i64::MAX), Ok(NOON + 500_000));
        assert_eq!(parse(b"2023-11-14T22:13:20.25Z", i64::MAX), Ok(NOON + 250_000));
        assert_eq!(parse(b"-1.5", i64::MAX), Ok(-1_500_000));
        assert_eq!(parse(b"0", i64::MAX), Ok(0));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "-",
            ".",
            "-.5",
            "soon",
            "NaN",
            "inf",
            "1e9",
            "0x10",
            "12:30",
            "2023-13-01T00:00:00Z",
            "2023-11-14T25:00:00Z",
            "32/Nov/2023:22:13:20 +0000",
            "14/Nov/2023",
            "[]",
            "1.2.3",
            "99999999999999999999999999999999999999999999",
            "2023-11-14T22:13:20Zjunk",
            "\u{ff11}",
        ] {
            assert!(parse(text.as_bytes(), i64::MAX).is_err(), "{text}");
        }
        assert!(parse(b"\xff\xfe", i64::MAX).is_err());
        assert!(parse(b"4102444800", latest_plausible()).is_err(), "the year 2100");
    }
}
