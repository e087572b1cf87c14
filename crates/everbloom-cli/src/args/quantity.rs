//! Sizes, rates and counts as people write them.

/// Bits from `64MiB`, `512KiB`, `1GB`, `65536b` (bits) or a plain number of bytes.
pub(crate) fn size_in_bits(text: &str) -> Result<u64, String> {
    let needed = || "must be a size such as 64MiB, 512KiB or 65536b (bits)".to_string();
    let (number, unit) = split_unit(text);
    let bits_each: f64 = match unit {
        "b" | "bit" | "bits" => 1.0,
        "" | "B" => 8.0,
        "K" | "KiB" => 8.0 * 1024.0,
        "M" | "MiB" => 8.0 * 1048576.0,
        "G" | "GiB" => 8.0 * 1073741824.0,
        "T" | "TiB" => 8.0 * 1099511627776.0,
        "kB" | "KB" => 8e3,
        "MB" => 8e6,
        "GB" => 8e9,
        "TB" => 8e12,
        _ => return Err(needed()),
    };
    let number: f64 = number.parse().map_err(|_| needed())?;
    let bits = number * bits_each;
    match bits {
        // A double counts bits exactly up to a petabyte; more is refused by the planner.
        1.0..1e19 => Ok(bits.floor() as u64),
        bits if bits < 1.0 => Err("must be at least one bit; try 64MiB".into()),
        _ => Err(needed()),
    }
}

/// A rate from `0.01` or `1%`. Whether it makes sense is the planner's to say.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text, 1.0),
    };
    let number: f64 = number.trim().parse().map_err(|_| "must be a rate such as 0.01 or 1%".to_string())?;
    let rate = number * unit;
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err("must be above 0 and below 1; try 0.1%".into()) }
}

/// A count from `1000000`, `1e6` or `1_000_000`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let needed = || "must be a whole number such as 1000000 or 1e6".to_string();
    let text = text.replace('_', "");
    if let Ok(count) = text.parse() {
        return at_least_one(count);
    }
    let count: f64 = text.parse().map_err(|_| needed())?;
    if !(count.fract() == 0.0 && (0.0..1e18).contains(&count)) {
        return Err(needed());
    }
    at_least_one(count as u64)
}

fn at_least_one(count: u64) -> Result<u64, String> {
    if count == 0 { Err("must be at least 1".into()) } else { Ok(count) }
}

/// Seconds from `30`, `30s`, `500ms`, `5m` or `1h`.
pub(crate) fn duration(text: &str) -> Result<std::time::Duration, String> {
    let needed = || "must be a time such as 30s, 500ms or 5m".to_string();
    let (number, unit) = split_unit(text);
    let seconds_each = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err(needed()),
    };
    let number: f64 = number.parse().map_err(|_| needed())?;
    std::time::Duration::try_from_secs_f64(number * seconds_each).map_err(|_| needed())
}

/// How far back a window reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Window {
    /// The last so many records.
    Arrivals(u64),
    /// Those of the last while.
    Time(std::time::Duration),
}

/// A window from a count, `1000000` or `1e6`, or a time with its unit, `24h` or `90s`.
pub(crate) fn window(text: &str) -> Result<Window, String> {
    let (_, unit) = split_unit(text);
    if unit.is_empty() {
        return count(text).map(Window::Arrivals).map_err(|problem| format!("{problem}, or a time such as 24h"));
    }
    let needed = "must be a number of lines such as 1e6, or a time such as 24h, 90s or 7d";
    match duration(text) {
        // A thousand years; microseconds since 1970 stay within 64 bits.
        Ok(time) if (1e-3..=3.2e10).contains(&time.as_secs_f64()) => Ok(Window::Time(time)),
        Ok(_) => Err("must be at least 1ms and at most a thousand years".into()),
        Err(_) => Err(needed.into()),
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

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.rfind(|letter: char| letter.is_ascii_digit() || letter == '.').map_or(0, |last| last + 1);
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_every_unit() {
        for (text, bits) in
            [("64MiB", 64 << 23), ("512KiB", 512 << 13), ("65536b", 65536), ("100", 800), ("1.5 GB", 12_000_000_000)]
        {
            assert_eq!(size_in_bits(text), Ok(bits), "{text}");
        }
        for text in ["", "MiB", "64XB", "-1MiB", "0", "NaN", "0b", "1e400"] {
            assert!(size_in_bits(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_read_as_shares_and_percentages() {
        assert_eq!(rate("0.01"), Ok(0.01));
        assert_eq!(rate("1%"), Ok(0.01));
        assert_eq!(rate("1e-9"), Ok(1e-9));
        for text in ["0", "1", "100%", "-1%", "NaN", "inf", "", "%"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_are_whole_and_positive() {
        assert_eq!(count("1e6"), Ok(1_000_000));
        assert_eq!(count("10_000"), Ok(10_000));
        for text in ["0", "0.5", "-3", "1e30", "many", "NaN"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn windows_are_counts_or_times() {
        assert_eq!(window("1e6"), Ok(Window::Arrivals(1_000_000)));
        assert_eq!(window("500"), Ok(Window::Arrivals(500)));
        assert_eq!(window("24h"), Ok(Window::Time(std::time::Duration::from_secs(86_400))));
        assert_eq!(window("7d"), Ok(Window::Time(std::time::Duration::from_secs(604_800))));
        for text in ["", "0", "0s", "-1", "-5m", "0.5", "soon", "h", "1e30", "9e99d", "24 hours", "NaNs"] {
            assert!(window(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("500ms"), Ok(std::time::Duration::from_millis(500)));
        assert_eq!(duration("5m"), Ok(std::time::Duration::from_secs(300)));
        for text in ["", "soon", "-1s", "3 weeks", "NaN"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
