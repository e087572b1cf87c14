//! What is claimed, and what came out.
//!
//! **The rule**, one for all. A printed number is one run, with the spread from run to run that ours have. It **holds** if it
//! lies within four deviations of the difference between one run and our mean, 4·s·√(1 + 1/n) for n runs with deviation s (at
//! least what counting alone gives), and half a unit of its last printed digit. It **holds loosely** if it does not, but lies
//! within a tenth, or one unit of its last digit: what prose rounds, or reads off a chart. It **holds in direction** if the size
//! is another, but the tendency that it stands for is there. A claim without a number of its own (a is below b) holds if the
//! difference has the claimed sign and exceeds four of its standard errors. A **misprint** is a number that does not hold
//! beside a mended one, found by reading the paper, that does, at least loosely; the papers were read as converted text, so it may be a fault
//! of the conversion.
//!
//! Claims that no paper makes, tests of our own readings and filters, are marked as **ours** and counted apart.

use super::table::Sample;
use serde::{Deserialize, Serialize};

/// How a claim fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As claimed.
    Holds,
    /// Not quite, but near.
    HoldsLoosely,
    /// The tendency is as claimed, the size is not.
    HoldsInDirection,
    /// Not as claimed.
    DoesNotHold,
    /// Printed or converted wrongly; a mended form holds.
    Misprint,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 5] =
        [Outcome::Holds, Outcome::HoldsLoosely, Outcome::HoldsInDirection, Outcome::DoesNotHold, Outcome::Misprint];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::HoldsLoosely => "holds loosely",
            Outcome::HoldsInDirection => "holds in direction",
            Outcome::DoesNotHold => "does not hold",
            Outcome::Misprint => "misprint or conversion",
        }
    }

    /// So many of them, in words.
    pub fn counted(self, count: usize) -> String {
        let words = match self {
            _ if count == 1 => self.words(),
            Outcome::Holds => "hold",
            Outcome::HoldsLoosely => "hold loosely",
            Outcome::HoldsInDirection => "hold in direction",
            Outcome::DoesNotHold => "do not hold",
            Outcome::Misprint => "misprints or conversions",
        };
        format!("{count} {words}")
    }

    /// A sign that tells it from the others without colour.
    pub fn sign(self) -> &'static str {
        match self {
            Outcome::Holds => "✓",
            Outcome::HoldsLoosely => "≈",
            Outcome::HoldsInDirection => "↗",
            Outcome::DoesNotHold => "✗",
            Outcome::Misprint => "✎",
        }
    }

    /// Holds or does not.
    pub fn of(holds: bool) -> Self {
        if holds { Outcome::Holds } else { Outcome::DoesNotHold }
    }

    /// Holds, holds loosely, holds in direction only, or not at all.
    pub fn loosely(holds: bool, loosely: bool, direction: bool) -> Self {
        if !holds && loosely { Outcome::HoldsLoosely } else { Outcome::graded(holds, direction) }
    }

    /// Holds, holds in direction only, or not at all.
    pub fn graded(holds: bool, direction: bool) -> Self {
        match (holds, direction) {
            (true, _) => Outcome::Holds,
            (false, true) => Outcome::HoldsInDirection,
            (false, false) => Outcome::DoesNotHold,
        }
    }

    /// The verdict on a claim, without numbers yet; it needs one at least.
    pub fn on(self, id: impl Into<String>, place: &str, claim: impl Into<String>) -> Verdict {
        Verdict {
            id: id.into(),
            place: place.into(),
            claim: claim.into(),
            outcome: self,
            ours: false,
            numbers: Vec::new(),
            remark: String::new(),
        }
    }
}

/// A number behind a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Number {
    /// What it is.
    pub what: String,
    /// How much.
    pub value: f64,
    /// Its standard error, where it is a mean over seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
}

/// A claim and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The experiment's own name for the claim, unique within it.
    pub id: String,
    /// Where it is made: a table, figure, equation or section.
    pub place: String,
    /// What is claimed, in a sentence.
    pub claim: String,
    /// How it fared.
    pub outcome: Outcome,
    /// Whether the claim is ours, not the paper's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
    /// The numbers, printed and measured.
    pub numbers: Vec<Number>,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

impl Verdict {
    /// Marks the claim as ours.
    #[must_use]
    pub fn ours(mut self) -> Self {
        self.ours = true;
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn number(mut self, what: &str, value: f64) -> Self {
        self.numbers.push(Number { what: what.into(), value, error: None });
        self
    }

    /// Adds a mean over seeds.
    #[must_use]
    pub fn mean(mut self, what: &str, sample: &Sample) -> Self {
        // What is left of equal numbers is rounding.
        let spread = |error: &f64| *error > 1e-12 * sample.mean().abs();
        let error = (sample.count() > 1).then(|| sample.error()).filter(spread);
        self.numbers.push(Number { what: what.into(), value: sample.mean(), error });
        self
    }

    /// Adds several numbers.
    #[must_use]
    pub fn numbers<const N: usize>(self, numbers: [(&str, f64); N]) -> Self {
        numbers.into_iter().fold(self, |verdict, (what, value)| verdict.number(what, value))
    }

    /// Adds several means.
    #[must_use]
    pub fn means<const N: usize>(self, means: [(&str, &Sample); N]) -> Self {
        means.into_iter().fold(self, |verdict, (what, sample)| verdict.mean(what, sample))
    }

    /// Adds a remark.
    #[must_use]
    pub fn remark(mut self, text: impl Into<String>) -> Self {
        self.remark = text.into();
        self
    }

    /// The numbers in a line.
    pub fn figures(&self) -> String {
        let one = |number: &Number| match number.error {
            Some(error) if error > 0.0 => format!("{} {} ± {}", number.what, short(number.value), short(error)),
            _ => format!("{} {}", number.what, short(number.value)),
        };
        self.numbers.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// A number with four significant digits.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e7).contains(&size) {
        return format!("{value:.2e}");
    }
    let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A number that a paper prints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Printed {
    /// The number.
    pub value: f64,
    /// How many digits after the point are printed.
    pub digits: i32,
}

impl Printed {
    /// A number and its digits.
    pub const fn new(value: f64, digits: i32) -> Self {
        Printed { value, digits }
    }

    /// Whether a measurement, in the same unit, agrees with it.
    pub fn agrees(&self, sample: &Sample) -> bool {
        self.agrees_given(sample, 0.0)
    }

    /// [`Printed::agrees`] where the deviation from seed to seed is known to be at least so much.
    pub fn agrees_given(&self, sample: &Sample, least_deviation: f64) -> bool {
        // The paper's figure is one run with the same spread as ours.
        let error = sample.deviation().max(least_deviation) * (1.0 + 1.0 / sample.count() as f64).sqrt();
        (sample.mean() - self.value).abs() <= 4.0 * error + 0.5 * 10f64.powi(-self.digits)
    }

    /// Whether a measurement is at least near it: within a tenth, or one unit of its last printed digit.
    pub fn is_near(&self, sample: &Sample) -> bool {
        let off = (sample.mean() - self.value).abs();
        off <= 10f64.powi(-self.digits) || off <= 0.1 * self.value.abs()
    }

    /// How the claim of this number fared, where a tendency that it stands for is there or not.
    pub fn outcome_about(&self, sample: &Sample, tendency: bool) -> Outcome {
        Outcome::loosely(self.agrees(sample), self.is_near(sample), tendency)
    }

    /// How the claim of this number fared.
    pub fn outcome(&self, sample: &Sample) -> Outcome {
        self.outcome_about(sample, false)
    }

    /// How it fared, given what it should read.
    pub fn outcome_if_mended(&self, mended: Printed, sample: &Sample) -> Outcome {
        match (self.agrees(sample), mended.agrees(sample) || mended.is_near(sample)) {
            (false, true) => Outcome::Misprint,
            _ => self.outcome(sample),
        }
    }
}

/// Whether the mean of `low` is below that of `high` by more than four standard errors.
pub fn clearly_below(low: &Sample, high: &Sample) -> bool {
    high.mean() - low.mean() > 4.0 * low.error().hypot(high.error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_number_holds_within_its_spread_and_rounding() {
        let sample = Sample(vec![10.0, 10.2, 9.8, 10.0]);
        assert_eq!(Printed::new(10.1, 1).outcome(&sample), Outcome::Holds);
        assert_eq!(Printed::new(10.9, 1).outcome(&sample), Outcome::HoldsLoosely);
        assert_eq!(Printed::new(15.0, 1).outcome_about(&sample, true), Outcome::HoldsInDirection);
        assert_eq!(Printed::new(15.0, 1).outcome(&sample), Outcome::DoesNotHold);
        assert_eq!(Printed::new(15.0, 1).outcome_if_mended(Printed::new(10.0, 1), &sample), Outcome::Misprint);
        assert_eq!(Printed::new(10.0, 1).outcome_if_mended(Printed::new(15.0, 1), &sample), Outcome::Holds);
        assert_eq!(Printed::new(2.34, 2).outcome(&Sample(vec![2.3449])), Outcome::Holds);
    }

    #[test]
    fn a_small_printed_number_is_not_near_just_because_it_is_small() {
        assert_eq!(Printed::new(0.8, 1).outcome(&Sample(vec![1.6])), Outcome::DoesNotHold);
        assert_eq!(Printed::new(0.8, 1).outcome(&Sample(vec![0.87])), Outcome::HoldsLoosely);
        assert_eq!(Printed::new(0.0, 0).outcome(&Sample(vec![0.9])), Outcome::HoldsLoosely);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(0.0, "0"), (0.12345, "0.1235"), (74.371, "74.37"), (1e-7, "1.00e-7"), (123456.0, "123456")]
        {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn verdicts_survive_json() {
        let verdict = Outcome::HoldsInDirection.on("a", "Table 1", "claims").number("x", 1.5);
        let text = serde_json::to_string(&verdict).expect("JSON");
        assert!(text.contains("holds_in_direction"), "{text}");
        assert_eq!(serde_json::from_str::<Verdict>(&text).expect("a verdict"), verdict);
    }
}
