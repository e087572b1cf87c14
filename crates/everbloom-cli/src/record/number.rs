//! JSON numbers by value: `1`, `1.0` and `1e0` are one number.

/// A number as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Number {
    /// A whole number from 0 to 2^64 − 1.
    Whole(u64),
    /// Any other one: sign, digits without zeros at either end, `e`, the power of ten.
    Decimal(String),
}

/// Exponents of more digits than this are added up in two parts.
const PART_DIGITS: usize = 36;

/// The value of a number that JSON allows. It costs as much as its text is long, however large its exponent.
pub(super) fn value(text: &str) -> Number {
    // Digits alone are parsed: JSON has no plus before a number.
    debug_assert!(!text.starts_with('+'));
    if let Ok(whole) = text.parse() {
        return Number::Whole(whole);
    }
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let without_tail = digits.trim_end_matches('0');
    let tail_zeros = digits.len() - without_tail.len();
    let digits = without_tail.trim_start_matches('0');
    if digits.is_empty() {
        return Number::Whole(0);
    }
    let power = moved(exponent, tail_zeros as i128 - fraction.len() as i128);
    match whole_number(digits, &power) {
        Some(whole) if sign.is_empty() => Number::Whole(whole),
        _ => Number::Decimal(format!("{sign}{digits}e{power}")),
    }
}

fn whole_number(digits: &str, power: &str) -> Option<u64> {
    let scale = 10u64.checked_pow(power.parse().ok()?)?;
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

/// An exponent of any length, so much larger.
fn moved(exponent: &str, shift: i128) -> String {
    let (sign, power) = match exponent.strip_prefix('-') {
        Some(power) => ("-", power),
        None => ("", exponent.strip_prefix('+').unwrap_or(exponent)),
    };
    let power = power.trim_start_matches('0');
    let Some((high, low)) = power.len().checked_sub(PART_DIGITS).map(|at| power.split_at(at)) else {
        let power = format!("{sign}0{power}").parse::<i128>().unwrap_or_default();
        return (power + shift).to_string();
    };
    // Whatever is longer than that keeps its sign: no text is long enough for such a shift.
    let carry = 10i128.pow(PART_DIGITS as u32);
    let low = low.parse::<i128>().unwrap_or_default() + if sign.is_empty() { shift } else { -shift };
    let (high, low) = match low {
        low if low >= carry => (next(high, true), low - carry),
        low if low < 0 => (next(high, false), low + carry),
        low => (high.to_string(), low),
    };
    format!("{sign}{}", format!("{high}{low:0PART_DIGITS$}").trim_start_matches('0'))
}

/// The whole number after this one, or before it.
fn next(digits: &str, up: bool) -> String {
    let (turning, turned) = if up { ('9', "0") } else { ('0', "9") };
    let kept = digits.trim_end_matches(turning);
    let tail = turned.repeat(digits.len() - kept.len());
    let (rest, last) = kept.split_at(kept.len().saturating_sub(1));
    let last = last.parse::<u8>().unwrap_or(0);
    format!("{rest}{}{tail}", if up { last + 1 } else { last.saturating_sub(1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Number {
        Number::Decimal(text.into())
    }

    #[test]
    fn one_number_in_every_form() {
        for text in ["100", "100.0", "1e2", "1E+2", "1e0002", "0.1e3", "10000e-2", "100.000e0"] {
            assert_eq!(value(text), Number::Whole(100), "{text}");
        }
        for text in ["0", "-0", "0.0", "-0.00e99", "0e-1", "0E+999999999999999999999999"] {
            assert_eq!(value(text), Number::Whole(0), "{text}");
        }
        for text in ["0.1", "1e-1", "0.10", "100e-3", "0.01E1"] {
            assert_eq!(value(text), decimal("1e-1"), "{text}");
        }
        assert_eq!(value("-1"), value("-1.0"));
        assert_eq!(value("-1"), decimal("-1e0"));
        assert_eq!(value("18446744073709551615"), Number::Whole(u64::MAX));
        assert_eq!(value("1844674407370955161.5e1"), Number::Whole(u64::MAX));
        assert_eq!(value("18446744073709551616"), decimal("18446744073709551616e0"));
        assert_eq!(value("1e19"), Number::Whole(10_000_000_000_000_000_000));
        assert_eq!(value("1e20"), value("100000000000000000000"));
    }

    #[test]
    fn enormous_exponents_cost_nothing_and_differ() {
        assert_eq!(value("1e400"), decimal("1e400"));
        assert_eq!(value("10e399"), value("1e400"));
        assert_eq!(value("1e999999999999999999"), value("10e999999999999999998"));
        assert_eq!(value("1e9223372036854775807"), value("10e9223372036854775806"));
        assert_eq!(value("0.1e-9223372036854775808"), value("1e-9223372036854775809"));
        for digits in [18, 19, 35, 36, 37, 38, 72, 200] {
            let (nines, power) = ("9".repeat(digits), format!("1{}", "0".repeat(digits)));
            assert_eq!(value(&format!("1e{power}")), value(&format!("10e{nines}")), "{digits} digits");
            assert_eq!(value(&format!("1e{nines}")), value(&format!("0.1e+{power}")), "{digits} digits");
            assert_eq!(value(&format!("1e-{power}")), value(&format!("0.1e-{nines}")), "{digits} digits");
            assert_eq!(value(&format!("-10e-00{power}")), value(&format!("-1e-{nines}")), "{digits} digits");
            assert_ne!(value(&format!("1e{power}")), value(&format!("1e{nines}")), "{digits} digits");
        }
        assert_ne!(value("1e99999999999999999999"), value("1e99999999999999999998"));
        assert_ne!(value("1e99999999999999999999"), value("1e-99999999999999999999"));
        assert_ne!(value("1e99999999999999999999"), value("2e99999999999999999999"));
        let digits = "7".repeat(100_000);
        assert_eq!(value(&digits), value(&format!("{digits}.0")));
        assert_ne!(value(&digits), value(&format!("{digits}7")));
    }

    proptest! {
        /// However the point is moved and zeros are added, the value stays; another value is another number.
        #[test]
        fn a_number_is_its_value(digits in 1u64.., shift in 0usize..40, zeros in 0usize..10, negative: bool) {
            let sign = if negative { "-" } else { "" };
            let plain = format!("{sign}{digits}");
            let text = digits.to_string();
            let padded = format!("{}{text}", "0".repeat(shift));
            let (whole, fraction) = padded.split_at(padded.len() - shift);
            let moved = format!("{sign}{whole}.{fraction}{}e{shift}", "0".repeat(zeros + usize::from(shift == 0)));
            prop_assert_eq!(value(&plain), value(&moved));
            prop_assert_ne!(value(&plain), value(&format!("{plain}.5")));
            prop_assert_ne!(value(&plain), value(&format!("{plain}e1")));
        }
    }
}
