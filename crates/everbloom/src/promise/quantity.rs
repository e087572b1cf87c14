//! Sizes, rates, counts and times as people write them: `64MiB`, `1%`, `1e6`, `24h`.
//!
//! Whatever takes a quantity takes a number or a text. A text that cannot be read is not an error until the
//! quantity is asked for, so that builders can be chained:
//!
//! ```
//! use everbloom::{Count, Rate, Size, Span};
//!
//! assert_eq!(Size::from("64MiB").get()?, 64 << 23, "bits");
//! assert_eq!(Size::from(64 << 20).get()?, 64 << 23, "a number is bytes");
//! assert_eq!(Rate::from("1%").get()?, 0.01);
//! assert_eq!(Count::from("10k").get()?, 10_000);
//! assert_eq!(Span::from("1h30m").get()?.as_secs(), 5400);
//!
//! let error = Size::from("64XB").named("memory").get().unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "memory is '64XB', but must be a size in k, M, G or KiB, MiB, GiB (times 1024), KB, MB, GB (times 1000), B (bytes) or \
//!      b (bits); try 64MiB"
//! );
//! # Ok::<(), everbloom::Error>(())
//! ```

use super::goal::too_low;
use super::{Error, LEAST_RATE, MAX_MEMORY_BITS, Result};
use core::time::Duration;
use std::str::FromStr;

/// An amount of memory. Numbers are bytes; texts have units.
///
/// | written | is |
/// |---|---|
/// | `65536b` | bits |
/// | `8192`, `8192B` | bytes |
/// | `64KiB`, `64K`, `64k`; `MiB`, `M`; `GiB`, `G`; `TiB`, `T`; `PiB`, `P` | powers of 1024 bytes |
/// | `64KB`, `MB`, `GB`, `TB`, `PB` | powers of 1000 bytes |
///
/// Anything else is an error: of `64mb` and `64Mb` nobody knows whether bits or bytes are meant, and of `64kB` hardly anybody
/// that it is not `64k`.
///
/// ```
/// use everbloom::Size;
///
/// assert_eq!(Size::from("64M"), Size::from("64MiB"));
/// assert_eq!(Size::from("1.5MB").get()?, 12_000_000);
/// assert_eq!(Size::from(8192u64), Size::from("65536b"));
/// assert!(Size::from(-1).get().is_err() && Size::from("0").get().is_err());
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Size(Result<u64>);

/// A rate of errors, above 0 and below 1. Texts are shares or percentages: `0.01`, `1%`.
///
/// ```
/// use everbloom::Rate;
///
/// assert_eq!(Rate::from("0.1%").get()?, 0.001);
/// assert_eq!(Rate::from(0.001).get()?, 0.001);
/// assert!(Rate::from(f64::NAN).get().is_err() && Rate::from("100%").get().is_err());
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rate(Result<f64>);

/// A number of keys, arrivals or the like, at least 1. Texts may have exponents, thousands apart and units
/// of 1000: `1e6`, `1_000_000`, `1.5M`, `10k`, `2G`.
///
/// ```
/// use everbloom::Count;
///
/// assert_eq!(Count::from("5M").get()?, 5_000_000);
/// assert_eq!(Count::from(5_000_000), Count::from("5e6"));
/// assert!(Count::from(-5).get().is_err() && Count::from("0.5").get().is_err());
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Count(Result<u64>);

/// A length of time. Texts have units, `500ms`, `90s`, `5m` or `5min`, `24h`, `7d`, `2w`, also together, `1h30m`;
/// without one they are seconds.
///
/// ```
/// use core::time::Duration;
/// use everbloom::Span;
///
/// assert_eq!(Span::from("1.5h").get()?, Duration::from_secs(5400));
/// assert_eq!(Span::from(Duration::from_secs(90)), Span::from("1m30s"));
/// assert!(Span::from("-5m").get().is_err());
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Span(Result<Duration>);

/// How far back a window reaches: a number of arrivals (`1000000`, `1e6`) or a time with its unit (`24h`, `90s`).
///
/// A bare number is always arrivals. Of the units of counts none is taken: `5M` and `5m` would be told apart by
/// case alone, and the error says how to write either.
///
/// ```
/// use core::time::Duration;
/// use everbloom::Window;
///
/// assert_eq!("1e6".parse(), Ok(Window::Arrivals(1_000_000)));
/// assert_eq!("24h".parse(), Ok(Window::Time(Duration::from_secs(86_400))));
/// assert!("5M".parse::<Window>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The last so many arrivals.
    Arrivals(u64),
    /// Those of the last while.
    Time(Duration),
}

const SIZES: &str = "a size in k, M, G or KiB, MiB, GiB (times 1024), KB, MB, GB (times 1000), B (bytes) or b (bits)";
const RATES: &str = "a rate such as 0.01 or 1%";
const COUNTS: &str = "a whole number such as 1000000, 1e6 or 10k";
const SPANS: &str = "a time such as 30s, 500ms, 5m, 1h30m, 7d or 1w";
const WINDOWS: &str = "a number of arrivals such as 1e6, or a time such as 24h, 90s or 1w";

impl Size {
    /// So many bits.
    pub fn from_bits(bits: u64) -> Self {
        Size(checked_bits(bits.into(), &format!("{bits} bits")))
    }

    /// Calls the quantity by another name in its error.
    pub fn named(self, name: &'static str) -> Self {
        Size(self.0.map_err(|error| renamed(error, name)))
    }

    /// The size in bits: at least 1, at most 128 PiB.
    pub fn get(self) -> Result<u64> {
        self.0
    }

    fn of_bytes(bytes: i128) -> Self {
        Size(checked_bits(bytes.saturating_mul(8), &format!("{bytes} bytes")))
    }

    fn parse(text: &str) -> Result<u64> {
        let (number, unit) = split_unit(text);
        let likely = likely_size(number, unit);
        let fail = || unreadable("size", text, SIZES, &format!("try {likely}"));
        let bits_each: u64 = match unit {
            "b" => 1,
            "" | "B" => 8,
            "k" | "K" | "KiB" => 8 << 10,
            "M" | "MiB" => 8 << 20,
            "G" | "GiB" => 8 << 30,
            "T" | "TiB" => 8 << 40,
            "P" | "PiB" => 8 << 50,
            "KB" => 8_000,
            "MB" => 8_000_000,
            "GB" => 8_000_000_000,
            "TB" => 8_000_000_000_000,
            "PB" => 8_000_000_000_000_000,
            _ => return Err(fail()),
        };
        let number = number.replace('_', "");
        let bits = match number.parse::<i128>() {
            Ok(number) => number.saturating_mul(bits_each.into()),
            Err(_) => {
                let number: f64 = number.parse().map_err(|_| fail())?;
                // Rounded down: a part of a bit is no bit. The conversion saturates.
                (number * bits_each as f64) as i128
            }
        };
        checked_bits(bits, &shown(text))
    }
}

/// What was probably meant by a size that cannot be read: the same number, with a unit that begins alike.
fn likely_size(number: &str, unit: &str) -> String {
    let is_size = number.parse().is_ok_and(|number: f64| (1.0..1e15).contains(&number));
    let letter = unit.chars().next().unwrap_or_default().to_ascii_uppercase();
    match is_size.then(|| "KMGTP".find(letter)).flatten() {
        Some(_) => format!("{number}{letter}iB"),
        None if is_size && unit.starts_with("bit") => format!("{number}b"),
        None if is_size && letter == 'B' => format!("{number}B"),
        None => "64MiB".into(),
    }
}

fn checked_bits(bits: i128, given: &str) -> Result<u64> {
    match u64::try_from(bits) {
        Ok(bits @ 1..=MAX_MEMORY_BITS) => Ok(bits),
        _ => Err(Error::parameter("size", given, "at least one bit and at most 128 PiB", "try 64MiB")),
    }
}

impl Rate {
    /// Calls the quantity by another name in its error.
    pub fn named(self, name: &'static str) -> Self {
        Rate(self.0.map_err(|error| renamed(error, name)))
    }

    /// The rate: above 0, below 1.
    pub fn get(self) -> Result<f64> {
        self.0
    }

    fn parse(text: &str) -> Result<f64> {
        let (number, unit) = match text.trim().strip_suffix('%') {
            Some(number) => (number, 0.01),
            None => (text, 1.0),
        };
        let number: f64 = number.trim().parse().map_err(|_| unreadable("rate", text, RATES, "try 0.1%"))?;
        checked_rate(number * unit, &shown(text))
    }
}

fn checked_rate(rate: f64, given: &str) -> Result<f64> {
    if rate > 0.0 && rate < LEAST_RATE {
        return Err(too_low("rate", given));
    }
    if rate > 0.0 && rate < 1.0 {
        Ok(rate)
    } else {
        Err(Error::parameter("rate", given, "above 0 and below 1", "try 0.1%"))
    }
}

impl Count {
    /// Calls the quantity by another name in its error.
    pub fn named(self, name: &'static str) -> Self {
        Count(self.0.map_err(|error| renamed(error, name)))
    }

    /// The number: at least 1.
    pub fn get(self) -> Result<u64> {
        self.0
    }

    fn of(count: i128) -> Self {
        Count(checked_count(count, &count.to_string()))
    }

    fn parse(text: &str) -> Result<u64> {
        let (number, unit) = split_unit(text);
        let each = match unit {
            "" => 1,
            "k" | "K" => 1_000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            _ => return Err(unreadable("count", text, COUNTS, "try 1e6")),
        };
        let number = number.replace('_', "");
        let count = match number.parse::<i128>() {
            Ok(number) => Some(number.saturating_mul(each)),
            // A double is exact up to 2^53; what is larger and round is meant as it is written.
            Err(_) => {
                let count = number.parse::<f64>().unwrap_or(f64::NAN) * each as f64;
                // What is far too large is refused for that.
                (count.fract() == 0.0).then_some(count.clamp(-1e30, 1e30) as i128)
            }
        };
        count
            .ok_or_else(|| unreadable("count", text, COUNTS, "try 1e6"))
            .and_then(|count| checked_count(count, &shown(text)))
    }
}

fn checked_count(count: i128, given: &str) -> Result<u64> {
    match u64::try_from(count) {
        Ok(count @ 1..) => Ok(count),
        _ => Err(Error::parameter("count", given, "at least 1 and below 2^64", "try 1e6")),
    }
}

impl Span {
    /// Calls the quantity by another name in its error.
    pub fn named(self, name: &'static str) -> Self {
        Span(self.0.map_err(|error| renamed(error, name)))
    }

    /// The length of time, which may be 0.
    pub fn get(self) -> Result<Duration> {
        self.0
    }

    fn parse(text: &str) -> Result<Duration> {
        let seconds = match split_unit(text) {
            (number, "") => number.parse().ok(),
            (number, unit) => part(number, unit).or_else(|| several_parts(text.trim())),
        };
        seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or_else(|| unreadable("time", text, SPANS, "try 30s"))
    }
}

/// Seconds of one number and its unit.
fn part(number: &str, unit: &str) -> Option<f64> {
    let seconds_each = match unit {
        "ms" => 0.001,
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * seconds_each)
}

/// Seconds of `1h30m`: digits and a unit, and again.
fn several_parts(mut text: &str) -> Option<f64> {
    let is_digit = |letter: char| letter.is_ascii_digit() || letter == '.';
    let mut seconds = 0.0;
    while !text.is_empty() {
        let unit = text.find(|letter| !is_digit(letter))?;
        let end = text[unit..].find(is_digit).map_or(text.len(), |digits| unit + digits);
        seconds += part(&text[..unit], text[unit..end].trim())?;
        text = &text[end..];
    }
    Some(seconds)
}

impl FromStr for Window {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let fail = || unreadable("window", text, WINDOWS, "try 24h");
        if split_unit(text).1.is_empty() {
            return Count::parse(text).map(Window::Arrivals).map_err(|_| fail());
        }
        let time = Span::parse(text).map_err(|_| match Count::parse(text) {
            Ok(count) => {
                let remedy = format!("write {count} if arrivals are meant, since 5M and 5m differ in case alone");
                unreadable("window", text, WINDOWS, &remedy)
            }
            Err(_) => fail(),
        })?;
        // A thousand years; microseconds since 1970 stay within 64 bits.
        if (Duration::from_millis(1)..=Duration::from_secs(32_000_000_000)).contains(&time) {
            Ok(Window::Time(time))
        } else {
            Err(Error::parameter("window", shown(text), "at least 1ms and at most a thousand years", "try 24h"))
        }
    }
}

/// A time as [`Span`] reads it, exactly: in the largest unit, or in two of them, where that takes no more: `1w`, `1h30m`.
///
/// ```
/// use everbloom::kind::span_text;
/// use std::time::Duration;
///
/// let texts = [604_800, 86_400, 5400, 90, 100_000].map(|seconds| span_text(Duration::from_secs(seconds)));
/// assert_eq!(texts, ["1w", "1d", "1h30m", "1m30s", "100000s"]);
/// assert_eq!(span_text(Duration::from_micros(1500)), "1.5ms");
/// ```
pub fn span_text(time: Duration) -> String {
    let units = [(604_800_000, "w"), (86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let millis = time.as_millis();
    if millis == 0 || !time.subsec_nanos().is_multiple_of(1_000_000) {
        return format!("{time:?}");
    }
    let (mut parts, mut left) = (Vec::new(), millis);
    for (each, unit) in units.into_iter().filter(|(each, _)| *each <= millis) {
        parts.extend((left >= each).then(|| format!("{}{unit}", left / each)));
        left %= each;
    }
    let whole = units.into_iter().find(|(each, _)| millis.is_multiple_of(*each));
    match (parts.len(), whole) {
        (3.., Some((each, unit))) => format!("{}{unit}", millis / each),
        _ => parts.concat(),
    }
}

/// A rate as a percentage that [`Rate`] reads, rounded up to three digits: `1%`, `0.0321%`, `1e-7%`.
///
/// ```
/// use everbloom::Rate;
/// use everbloom::kind::rate_text;
///
/// assert_eq!((rate_text(0.01), rate_text(0.123_45), rate_text(1e-9)), ("1%".into(), "12.4%".into(), "1e-7%".into()));
/// assert!(Rate::from(rate_text(0.032_117).as_str()).get()? >= 0.032_117);
/// # Ok::<(), everbloom::Error>(())
/// ```
pub fn rate_text(rate: f64) -> String {
    let percent = 100.0 * rate;
    if percent.is_nan() || percent <= 0.0 {
        return "0%".into();
    }
    let step = libm::exp10(libm::floor(libm::log10(percent)) - 2.0);
    // A hair below is the number itself, as a percentage of a double.
    let digits = libm::ceil(percent / step - 1e-6);
    let text: f64 = format!("{digits}e{}", libm::round(libm::log10(step))).parse().unwrap_or(percent);
    if text < 1e-4 { format!("{text:e}%") } else { format!("{text}%") }
}

macro_rules! from_numbers {
    ($quantity:ident, $make:expr, $($number:ty),+) => {
        $(impl From<$number> for $quantity {
            fn from(number: $number) -> Self {
                // Lossless: even 64 bits without a sign fit into 128 with one.
                $make(number as i128)
            }
        })+
    };
}

macro_rules! from_texts {
    ($($quantity:ident),+) => {
        $(impl From<&str> for $quantity {
            fn from(text: &str) -> Self {
                $quantity($quantity::parse(text))
            }
        }

        impl From<String> for $quantity {
            fn from(text: String) -> Self {
                $quantity::from(text.as_str())
            }
        })+
    };
}

from_numbers!(Size, Size::of_bytes, u64, usize, u32, i64, i32);
from_numbers!(Count, Count::of, u64, usize, u32, i64, i32);
from_texts!(Size, Rate, Count, Span);

impl From<f64> for Rate {
    fn from(rate: f64) -> Self {
        Rate(checked_rate(rate, &rate.to_string()))
    }
}

impl From<Duration> for Span {
    fn from(time: Duration) -> Self {
        Span(Ok(time))
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.rfind(|letter: char| letter.is_ascii_digit() || letter == '.').map_or(0, |last| last + 1);
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

/// A text as a message quotes it.
fn shown(text: &str) -> String {
    format!("'{}'", text.chars().take(80).collect::<String>())
}

fn unreadable(name: &'static str, text: &str, needed: &str, remedy: &str) -> Error {
    Error::parameter(name, shown(text), needed, remedy)
}

fn renamed(error: Error, name: &'static str) -> Error {
    match error {
        Error::Parameter { given, needed, remedy, .. } => Error::Parameter { name, given, needed, remedy },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_every_unit() {
        for (text, bits) in [
            ("64MiB", 64 << 23),
            ("64M", 64 << 23),
            ("64k", 64 << 13),
            ("64K", 64 << 13),
            ("512KiB", 512 << 13),
            ("65536b", 65536),
            ("100", 800),
            ("1_000", 8000),
            ("1_024KiB", 1 << 23),
            ("1.5 GB", 12_000_000_000),
            ("64MB", 512_000_000),
            ("1e3B", 8000),
            ("131072TiB", 1 << 60),
        ] {
            assert_eq!(Size::from(text).get(), Ok(bits), "{text}");
        }
        for text in
            ["", "MiB", "64XB", "-1MiB", "0", "NaN", "0b", "0.1b", "1e400", "131073TiB", "99999999999999999999T"]
        {
            assert!(Size::from(text).get().is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_in_any_other_spelling_is_an_error_with_the_rule_and_the_likely_one() {
        for (text, likely) in [
            ("64mb", "64MiB"),
            ("64Mb", "64MiB"),
            ("64kB", "64KiB"),
            ("64kb", "64KiB"),
            ("64m", "64MiB"),
            ("64g", "64GiB"),
            ("64mib", "64MiB"),
            ("64 megabytes", "64MiB"),
            ("1.5gb", "1.5GiB"),
            ("64 bits", "64b"),
            ("64 bytes", "64B"),
            ("64EiB", "64MiB"),
            ("-1mb", "64MiB"),
            ("mb", "64MiB"),
        ] {
            let message = Size::from(text).get().map_err(|error| error.to_string());
            let ending = format!("(times 1024), KB, MB, GB (times 1000), B (bytes) or b (bits); try {likely}");
            assert!(message.as_ref().is_err_and(|message| message.ends_with(&ending)), "{text}: {message:?}");
        }
    }

    #[test]
    fn sizes_as_numbers_are_bytes_and_never_overflow() {
        assert_eq!(Size::from(64 << 20).get(), Ok(64 << 23));
        assert_eq!(Size::from(1usize).get(), Ok(8));
        assert_eq!(Size::from_bits(3).get(), Ok(3));
        for size in [Size::from(0), Size::from(-1), Size::from(i64::MIN), Size::from(u64::MAX), Size::from_bits(0)] {
            assert!(matches!(size.get(), Err(Error::Parameter { .. })));
        }
    }

    #[test]
    fn rates_are_read_as_shares_and_percentages() {
        for (text, rate) in [("0.01", 0.01), ("1%", 0.01), ("1e-9", 1e-9), (" 5 % ", 0.05)] {
            assert_eq!(Rate::from(text).get(), Ok(rate), "{text}");
        }
        for text in ["0", "1", "100%", "-1%", "NaN", "inf", "", "%"] {
            assert!(Rate::from(text).get().is_err(), "{text}");
        }
        for rate in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
            assert!(Rate::from(rate).get().is_err(), "{rate}");
        }
    }

    #[test]
    fn counts_are_whole_and_positive() {
        for (text, count) in [
            ("1000000", 1_000_000),
            ("1e6", 1_000_000),
            ("10_000", 10_000),
            ("10k", 10_000),
            ("1.5M", 1_500_000),
            ("2G", 2_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(Count::from(text).get(), Ok(count), "{text}");
        }
        for text in [
            "0",
            "0k",
            "0.5",
            "1.0001k",
            "-3",
            "-3k",
            "1e30",
            "many",
            "NaN",
            "18446744073709551616",
            "18446744073709551615k",
            "1X",
            "",
        ] {
            assert!(Count::from(text).get().is_err(), "{text}");
        }
        assert_eq!(Count::from(7).get(), Ok(7));
        assert_eq!(Count::from(u64::MAX).get(), Ok(u64::MAX));
        assert!(Count::from(-7).get().is_err() && Count::from(0usize).get().is_err());
    }

    #[test]
    fn times_have_units_alone_or_together() {
        for (text, millis) in [
            ("500ms", 500),
            ("30", 30_000),
            ("5m", 300_000),
            ("5min", 300_000),
            ("1h30m", 5_400_000),
            ("1d 12h", 129_600_000),
            ("1w", 604_800_000),
            ("1w2d", 777_600_000),
            ("1e3s", 1_000_000),
            ("0", 0),
        ] {
            assert_eq!(Span::from(text).get(), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "soon", "-1s", "3 months", "NaN", "1h30", "h", "1h-30m", "1e400d", "24 moons"] {
            assert!(Span::from(text).get().is_err(), "{text}");
        }
    }

    #[test]
    fn windows_are_counts_or_times() {
        assert_eq!("1e6".parse(), Ok(Window::Arrivals(1_000_000)));
        assert_eq!("500".parse(), Ok(Window::Arrivals(500)));
        assert_eq!("24h".parse(), Ok(Window::Time(Duration::from_secs(86_400))));
        assert_eq!("7d".parse(), Ok(Window::Time(Duration::from_secs(604_800))));
        assert_eq!("1w".parse::<Window>(), "7d".parse());
        for (long, short) in [
            ("1day", "1d"),
            ("7 days", "7d"),
            ("1hour", "1h"),
            ("2hours", "2h"),
            ("5 minutes", "5m"),
            ("90 seconds", "90s"),
            ("1week", "7d"),
            ("1hour30min", "90m"),
        ] {
            assert_eq!(long.parse::<Window>(), short.parse(), "{long}");
        }
        let meant = "5M".parse::<Window>().map_err(|error| error.to_string());
        assert!(meant.is_err_and(|message| message.contains("write 5000000 if arrivals are meant")));
        for text in ["", "0", "0s", "-1", "-5m", "0.5", "soon", "h", "1e30", "9e99d", "24 moons", "NaNs", "5M", "1001y"]
        {
            assert!(text.parse::<Window>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_error_says_what_was_given_what_is_needed_and_what_would_work() {
        let error = |problem: Error| problem.to_string();
        assert_eq!(
            Rate::from("0").named("target rate").get().map_err(error),
            Err("target rate is '0', but must be above 0 and below 1; try 0.1%".into())
        );
        let long = "x".repeat(10_000);
        assert!(Count::from(long).get().map_err(error).is_err_and(|message| message.len() < 300));
    }
}
