//! Quantities as they are typed. The core reads them; here its errors become what follows the option's name.

use everbloom::kind::{did_you_mean, span_text};
use everbloom::{Count, Error, Rate, Size, Span, Spec, Window};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bits from a size such as `64MiB`.
pub(crate) fn size_in_bits(text: &str) -> Result<u64, String> {
    Size::from(text).get().map_err(needed)
}

/// A rate such as `0.01` or `1%`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    Rate::from(text).get().map_err(|error| match text.trim().parse::<f64>() {
        Ok(number) if (1.0..100.0).contains(&number) => {
            format!("must be above 0 and below 1; did you mean {}%?", text.trim())
        }
        _ => needed(error),
    })
}

/// A filter spec; what was given is said already.
pub(crate) fn spec(text: &str) -> Result<Spec, String> {
    Spec::parse(text).map_err(|error| match error {
        Error::Spec { problem, remedy, .. } => format!("{problem}; {remedy}"),
        error => error.to_string(),
    })
}

/// A rate that may be 0.
pub(crate) fn rate_or_none(text: &str) -> Result<f64, String> {
    if is_number(text, 0.0) { Ok(0.0) } else { rate(text).map_err(|error| error.replace("above 0", "0 or more")) }
}

/// A share such as `0.1` or `10%`, which may be all.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    if is_number(text, 1.0) {
        return Ok(1.0);
    }
    rate(text).map_err(|_| "must be above 0 and at most 100%; try 10%".into())
}

fn is_number(text: &str, wanted: f64) -> bool {
    let (number, all) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    number.trim().parse::<f64>().is_ok_and(|number| number == wanted * all)
}

/// A count such as `1000000`, `1e6` or `10k`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    Count::from(text).get().map_err(needed)
}

/// How many threads work.
pub(crate) fn threads(text: &str) -> Result<u64, String> {
    count(text).map_err(|_| "must be a whole number, 1 or more; try 4".into())
}

/// A port of this machine; 0 is any that is free.
#[cfg(feature = "web")]
pub(crate) fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "must be a port, a number from 1 to 65535; try 8080".into())
}

/// A file, where some words mean something else: one that is not there is perhaps a word, mistyped.
pub(crate) fn file_beside(words: &[&'static str], text: &str) -> Result<PathBuf, String> {
    let word = text.split(':').next().unwrap_or_default();
    match did_you_mean(word, words.iter().copied()) {
        Some(meant) if !Path::new(text).exists() => {
            Err(format!("there is no such file; did you mean '{meant}{}'?", &text[word.len()..]))
        }
        _ => Ok(text.into()),
    }
}

/// A time such as `30s`, `500ms` or `5m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    Span::from(text).get().map_err(needed)
}

/// A window of lines such as `1e6`, or of time such as `24h`.
pub(crate) fn window(text: &str) -> Result<Window, String> {
    text.parse().map_err(|error| needed(error).replace("arrivals", "lines"))
}

/// A seed: any number of 64 bits.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number from 0 to 2^64 - 1; try 0".into())
}

/// Any number; what it may be depends on where it is used.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "must be a number such as 8 or 0.5".into())
}

/// What something costs: a number, in a unit that nobody asks for.
pub(crate) fn cost(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(cost) if (0.0..=1e15).contains(&cost) => Ok(cost),
        _ => Err("must be a number of 0 or more, without a unit, such as 5 or 0.01; all costs are in one unit".into()),
    }
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

/// A rate as it can be typed, to the last digit.
pub(crate) fn exact_rate(given: f64) -> String {
    // Without the last digits that only the multiplication brings in.
    let percent = format!("{}%", (1e14 * given).round() / 1e12);
    let is_same = rate(&percent) == Ok(given);
    if is_same && percent.len() < 8 { percent } else { format!("{given:e}") }
}

/// A delimiter as it can be typed.
pub(crate) fn delimiter_typed(byte: u8) -> String {
    match byte {
        b'\t' => "\\t".to_string(),
        0 => "\\0".to_string(),
        byte => char::from(byte).to_string(),
    }
}

/// A window as it can be typed.
pub(crate) fn window_typed(window: Window) -> String {
    match window {
        Window::Arrivals(lines) => lines.to_string(),
        Window::Time(time) => span_text(time),
    }
}

/// What is kept as its text.
pub(crate) mod as_text {
    use serde::de::{Deserialize as _, Deserializer, Error};
    use serde::ser::Serializer;
    use std::fmt::Display;
    use std::str::FromStr;

    pub(crate) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'d, T: FromStr, D: Deserializer<'d>>(deserializer: D) -> Result<T, D::Error>
    where
        T::Err: Display,
    {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A window, if there is one, kept as its text.
pub(crate) mod window_as_text {
    use super::{Window, window, window_typed};
    use serde::de::{Deserialize as _, Deserializer, Error};
    use serde::ser::{Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &Option<Window>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(window_typed).serialize(serializer)
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Option<Window>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| window(&text)).transpose().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom::kind::size_typed;

    #[test]
    fn rates_may_be_0_and_shares_all_where_that_makes_sense() {
        assert_eq!((rate_or_none("0"), rate_or_none("0.0%"), rate_or_none("1%")), (Ok(0.0), Ok(0.0), Ok(0.01)));
        assert_eq!((share("1"), share("100%"), share("10%")), (Ok(1.0), Ok(1.0), Ok(0.1)));
        for text in ["1", "-1", "NaN", "", "%"] {
            assert!(rate_or_none(text).is_err(), "{text}");
        }
        for text in ["0", "2", "101%", "NaN", "", "%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quantities_are_read_back_as_they_were() {
        for bits in [1, 8, 65_536, 65_537, 8 << 30, (8 << 30) + 8] {
            assert_eq!(size_in_bits(&size_typed(bits)), Ok(bits), "{}", size_typed(bits));
        }
        for given in [0.01, 0.001, 0.3, 1.0 / 3.0, 1e-12, 0.07] {
            assert_eq!(rate(&exact_rate(given)), Ok(given), "{}", exact_rate(given));
        }
        for millis in [1, 1500, 60_000, 5_400_000, 86_400_000, 604_800_000, 694_861_001] {
            let time = Duration::from_millis(millis);
            assert_eq!(
                window(&window_typed(Window::Time(time))),
                Ok(Window::Time(time)),
                "{}",
                window_typed(Window::Time(time))
            );
        }
    }

    #[test]
    fn what_is_needed_follows_the_option() {
        assert_eq!(rate("5"), Err("must be above 0 and below 1; did you mean 5%?".into()));
        assert_eq!(rate("0"), Err("must be above 0 and below 1; try 0.1%".into()));
        assert!(
            window("5M").is_err_and(|problem| problem.starts_with("must be a number of lines such as 1e6, or a time"))
        );
    }
}
