//! JSON numbers by value: `1`, `1.0` and `1e0` are one number.

/// A number as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Number {
    /// A whole number from 0 to 2^64 − 1.
    Whole(u64),
    /// Any other one: sign, digits without zeros at either end, `e`, the power of ten.
    Decimal(String),
}

/// Exponents of more digits than this are not added up.
const EXPONENT_DIGITS: usize = 18;

/// The value of a number that JSON allows. It costs as much as its text is long, however large its exponent.
pub(super) fn value(text: &str) -> Number {
    if let (true, Ok(whole)) = (text.bytes().all(|byte| byte.is_ascii_digit()), text.parse()) {
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
    let (exponent_sign, power) = match exponent.strip_prefix('-') {
        Some(power) => ("-", power),
        None => ("", exponent.strip_prefix('+').unwrap_or(exponent)),
    };
    let power = power.trim_start_matches('0');
    let shift = tail_zeros as i64 - fraction.len() as i64;
    if power.len() > EXPONENT_DIGITS {
        // No such number is written in two ways; it is enough that it differs from all others.
        return Number::Decimal(format!("{sign}{digits}e{exponent_sign}{power}{shift:+}"));
    }
    let power = format!("{exponent_sign}0{power}").parse::<i64>().unwrap_or_default() + shift;
    match whole_number(digits, power) {
        Some(whole) if sign.is_empty() => Number::Whole(whole),
        _ => Number::Decimal(format!("{sign}{digits}e{power}")),
    }
}

fn whole_number(digits: &str, power: i64) -> Option<u64> {
    let scale = 10u64.checked_pow(u32::try_from(power).ok()?)?;
    digits.parse::<u64>().ok()?.checked_mul(scale)
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
