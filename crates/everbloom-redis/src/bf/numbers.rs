//! Numbers as a server reads them, so that the same words are refused.

/// A whole number: no sign but a minus, no zeros in front, no spaces.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if is_plain { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// A fraction, or infinity; what a double can tell from neither 0 nor infinity is none.
pub(super) fn fraction(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: f64 = text.parse().ok()?;
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    let vanished = number == 0.0 && digits.bytes().any(|digit| matches!(digit, b'1'..=b'9'));
    let overflown = number.is_infinite() && digits.bytes().any(|digit| digit.is_ascii_digit());
    (!number.is_nan() && !vanished && !overflown).then_some(number)
}

/// A number as C's `%g` prints it: six digits, no zeros behind them.
pub(super) fn short(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        let plain = format!("{number:.*}", (5 - exponent) as usize);
        return without_zeros(&plain).to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs())
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_as_a_server_reads_them() {
        for (text, number) in
            [("0", 0), ("7", 7), ("-1", -1), ("9223372036854775807", i64::MAX), ("-9223372036854775808", i64::MIN)]
        {
            assert_eq!(integer(text.as_bytes()), Some(number), "{text}");
        }
        for text in ["", "-", "+1", "01", "-0", "00", " 1", "1 ", "1.0", "1e3", "9223372036854775808", "x", "٣"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn fractions_are_read_as_a_server_reads_them() {
        for (text, number) in [
            ("0.01", 0.01),
            ("1e-6", 1e-6),
            ("0", 0.0),
            ("inf", f64::INFINITY),
            ("-1", -1.0),
            (".5", 0.5),
            ("5e-324", 5e-324),
        ] {
            assert_eq!(fraction(text.as_bytes()), Some(number), "{text}");
        }
        for text in ["", "abc", "nan", " 0.1", "0.1 ", "1e400", "1e-400", "0.1x", "-"] {
            assert_eq!(fraction(text.as_bytes()), None, "{text}");
        }
        assert_eq!(fraction(&[0xff]), None);
    }

    #[test]
    fn numbers_are_printed_as_c_does() {
        // Each by printf("%g") of a double; a shell's printf has more digits, and rounds another way.
        let known = [
            (0.005, "0.005"),
            (0.0025, "0.0025"),
            (5e-5, "5e-05"),
            (1.953125e-5, "1.95313e-05"),
            (0.000_3, "0.0003"),
            (0.00015625, "0.00015625"),
            (0.125, "0.125"),
            (0.25, "0.25"),
            (1.220_703_125e-7, "1.2207e-07"),
            (9.999_999e-5, "0.0001"),
            (0.123_456_789, "0.123457"),
            (5e-324, "4.94066e-324"),
        ];
        for (number, text) in known {
            assert_eq!(short(number), text);
        }
    }
}
