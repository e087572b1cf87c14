//! Axes with round numbers on them.

use super::Axis;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// No axis has more numbers than this.
const MOST_TICKS: usize = 7;

/// From where to where an axis goes, and how.
#[derive(Debug, Clone)]
pub(super) struct Span {
    low: f64,
    high: f64,
    log_base: Option<f64>,
}

impl Span {
    /// An axis that shows the values from `low` to `high`, and more where that makes it rounder.
    pub(super) fn covering(axis: &Axis, low: f64, high: f64) -> Self {
        let (low, high) = axis.range.unwrap_or((low, high));
        let (low, high) = if low.is_finite() && high.is_finite() && low <= high { (low, high) } else { (1.0, 1.0) };
        let (low, high) = (low.clamp(-1e100, 1e100), high.clamp(-1e100, 1e100));
        match axis.log_base {
            Some(base) => Self::factors(axis, base, low.max(1e-100), high.max(1e-100)),
            None => Self::steps(axis, low, high),
        }
    }

    fn factors(axis: &Axis, base: f64, low: f64, high: f64) -> Self {
        // A little room, so that no mark lies on the frame.
        let room = if axis.range.is_some() { 1.0 } else { (high / low).powf(0.03).max(1.1) };
        let (low, high) = (low / room, high * room);
        Span { low, high: if high > low { high } else { low * base }, log_base: Some(base) }
    }

    fn steps(axis: &Axis, low: f64, high: f64) -> Self {
        if axis.range.is_some() && high > low {
            return Span { low, high, log_base: None };
        }
        // Rates and counts are compared with nothing at all, unless they hardly differ.
        let low = if low > 0.0 && low < 0.8 * high { 0.0 } else { low };
        let width = if high > low { high - low } else { high.abs().max(1.0) };
        let below = if low == 0.0 { 0.0 } else { low - 0.04 * width };
        Span { low: below, high: low + 1.04 * width, log_base: None }
    }

    /// The axis with a little room below 0, if it begins there.
    pub(super) fn with_room_below(self) -> Self {
        let room = if self.low == 0.0 { 0.03 * self.high } else { 0.0 };
        Span { low: self.low - room, ..self }
    }

    /// Whether a value lies on the axis.
    pub(super) fn holds(&self, value: f64) -> bool {
        let room = 1e-9 * (self.high - self.low);
        (self.low - room..=self.high + room).contains(&value)
    }

    /// The nearest value on the axis.
    pub(super) fn clamp(&self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }

    /// Where a value lies, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let value = self.clamp(value);
        match self.log_base {
            Some(_) => (value / self.low).ln() / (self.high / self.low).ln(),
            None => (value - self.low) / (self.high - self.low),
        }
    }

    fn ticks(&self) -> Vec<f64> {
        match self.log_base {
            Some(base) if self.shows_powers(base) => self.powers(base),
            Some(_) if self.high / self.low >= 2.0 => self.one_two_five(),
            _ => self.round_steps(),
        }
    }

    /// Whether the axis is long enough for powers of the base alone.
    fn shows_powers(&self, base: f64) -> bool {
        (self.high / self.low).log(base) >= 2.0
    }

    /// Powers of the base, every one or every so many.
    fn powers(&self, base: f64) -> Vec<f64> {
        let (first, last) = (self.low.log(base).ceil() as i64, self.high.log(base).floor() as i64);
        let step = ((last - first) as usize / MOST_TICKS + 1) as i64;
        let all = (first..=last).filter(|power| power.rem_euclid(step) == 0);
        all.map(|power| base.powi(power as i32)).collect()
    }

    /// 1, 2 and 5 times powers of ten.
    fn one_two_five(&self) -> Vec<f64> {
        let powers = self.low.log10().floor() as i32..=self.high.log10().floor() as i32;
        let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power)));
        all.filter(|value| self.holds(*value)).collect()
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn round_steps(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / MOST_TICKS as f64;
        let ten = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * ten).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * ten);
        let first = (self.low / step - 1e-9).ceil();
        let all = (0..=MOST_TICKS).map(|index| (first + index as f64) * step);
        all.filter(|value| self.holds(*value)).collect()
    }
}

impl Ranged for Span {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let width = f64::from(limit.1) - f64::from(limit.0);
        (f64::from(limit.0) + self.share(*value) * width).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Span {
    fn format_ext(&self, value: &f64) -> String {
        match self.log_base {
            Some(2.0) if value.log2().fract() == 0.0 && !(1e-2..1e2).contains(value) => {
                format!("2{}", raised(value.log2() as i32))
            }
            Some(base) if base != 2.0 && !(1e-3..1e5).contains(value) && self.shows_powers(base) => {
                format!("10{}", raised(value.log10().round() as i32))
            }
            _ => plain(*value),
        }
    }
}

/// A number as one would write it by hand.
fn plain(value: f64) -> String {
    let size = value.abs();
    let (value, unit) = match size {
        1e9.. => (value / 1e9, " G"),
        1e6.. => (value / 1e6, " M"),
        1e4.. => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let text = format!("{value:.6}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn raised(power: i32) -> String {
    let letter = |digit: char| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32('⁰' as u32 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
    };
    power.to_string().chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: Axis, low: f64, high: f64) -> Vec<String> {
        let span = Span::covering(&axis, low, high);
        span.ticks().iter().map(|tick| span.format_ext(tick)).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(Axis::linear("x"), 0.0, 9.7), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(Axis::linear("x"), 1e6, 3.1e6), ["0", "500 k", "1 M", "1.5 M", "2 M", "2.5 M", "3 M"]);
        assert_eq!(labels(Axis::log("x"), 0.0015, 40.0), ["0.01", "0.1", "1", "10"]);
        assert_eq!(labels(Axis::log("x"), 1e5, 2e7), ["10⁵", "10⁶", "10⁷"]);
        assert_eq!(labels(Axis::log2("x"), 65536.0, 262144.0), ["2¹⁶", "2¹⁷", "2¹⁸"]);
        assert_eq!(labels(Axis::log("x"), 3.0, 40.0), ["5", "10", "20"]);
        assert_eq!(labels(Axis::log("x"), 4e4, 3e5), ["50 k", "100 k", "200 k"]);
        assert_eq!(labels(Axis::log2("x"), 0.125, 0.5), ["0.125", "0.25", "0.5"]);
    }

    #[test]
    fn an_axis_shows_what_it_must() {
        let span = Span::covering(&Axis::linear("x"), 90.0, 91.0);
        assert!(span.holds(90.0) && span.holds(91.0) && !span.holds(0.0));
        let span = Span::covering(&Axis::log("x").from(0.01, 1.0), 5.0, 6.0);
        assert!(span.holds(0.01) && span.holds(1.0) && !span.holds(5.0));
    }
}
