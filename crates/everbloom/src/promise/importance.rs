//! How much an arrival matters, and how that is spread over a stream.

use super::{Error, Result};

/// How much an arrival matters: `value` out of `max`.
///
/// An exact fraction rather than a float, so that "the largest cell value times importance over its
/// maximum, rounded down" is the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Importance {
    value: u32,
    max: u32,
}

impl Importance {
    /// The importance of an arrival when nothing is said about it: all there is.
    pub const FULL: Importance = Importance { value: 1, max: 1 };

    /// No importance at all.
    pub const NONE: Importance = Importance { value: 0, max: 1 };

    /// `value` out of `max`.
    pub fn new(value: u32, max: u32) -> Result<Self> {
        if max == 0 {
            return Err(Error::parameter(
                "importance_max",
                max,
                "at least 1",
                "give the largest importance of the stream",
            ));
        }
        if value > max {
            return Err(Error::parameter(
                "importance",
                value,
                format!("at most the maximum, {max}"),
                "raise the maximum",
            ));
        }
        Ok(Importance { value, max })
    }

    /// The importance itself.
    #[inline]
    pub fn value(self) -> u32 {
        self.value
    }

    /// The largest it could be.
    #[inline]
    pub fn max(self) -> u32 {
        self.max
    }

    /// value / max, as a number from 0 to 1.
    #[inline]
    pub fn share(self) -> f64 {
        f64::from(self.value) / f64::from(self.max)
    }

    /// ⌊`steps` · value / max⌋: where the importance falls among `steps` equal parts.
    #[inline]
    pub fn share_of(self, steps: u32) -> u32 {
        (u64::from(steps) * u64::from(self.value) / u64::from(self.max)) as u32
    }

    /// ⌊`steps` · (max − value) / max⌋: how far from the top it falls.
    #[inline]
    pub fn distance_from_top(self, steps: u32) -> u32 {
        (u64::from(steps) * u64::from(self.max - self.value) / u64::from(self.max)) as u32
    }
}

impl Default for Importance {
    fn default() -> Self {
        Importance::FULL
    }
}

/// How the numbers a user has become [`Importance`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImportanceScale {
    max: f64,
    logarithmic: bool,
}

impl ImportanceScale {
    /// The grid on which importances that are not small whole numbers are placed.
    const GRID: u32 = 1 << 20;

    /// Importance as given, from 0 to `max`.
    pub fn linear(max: f64) -> Result<Self> {
        Self::checked(max, false)
    }

    /// Importance as ln(1 + value), from 0 to `max`: for sizes and counts over several magnitudes.
    pub fn logarithmic(max: f64) -> Result<Self> {
        Self::checked(max, true)
    }

    fn checked(max: f64, logarithmic: bool) -> Result<Self> {
        if !(max > 0.0 && max.is_finite()) {
            return Err(Error::parameter(
                "importance_max",
                max,
                "a positive number",
                "give the largest importance of the stream",
            ));
        }
        Ok(ImportanceScale { max, logarithmic })
    }

    /// The importance of a value, or why it has none.
    pub fn of(&self, value: f64) -> Result<Importance> {
        if !(0.0..=self.max).contains(&value) {
            return Err(Error::parameter(
                "importance",
                value,
                format!("between 0 and the maximum, {}", self.max),
                "raise the maximum or mend the record",
            ));
        }
        let whole = |number: f64| number.fract() == 0.0 && number <= f64::from(Self::GRID);
        if !self.logarithmic && whole(self.max) && whole(value) {
            return Importance::new(value as u32, self.max as u32);
        }
        let share = if self.logarithmic { libm::log1p(value) / libm::log1p(self.max) } else { value / self.max };
        Importance::new((share * f64::from(Self::GRID)).round() as u32, Self::GRID)
    }

    /// The value whose importance is this share of the largest: the way back, for reports.
    pub fn value_at(&self, share: f64) -> f64 {
        if self.logarithmic { libm::expm1(share * libm::log1p(self.max)) } else { share * self.max }
    }
}

/// The importances of a batch: one for all, or one each.
#[derive(Debug, Clone, Copy)]
pub enum Importances<'a> {
    /// Every arrival matters alike.
    All(Importance),
    /// One per arrival, as many as there are hashes; fewer are an error of whatever takes the batch.
    Each(&'a [Importance]),
}

impl<'a> Importances<'a> {
    /// Refuses fewer importances than arrivals.
    pub fn check(&self, arrivals: usize) -> Result<()> {
        match self {
            Importances::Each(each) if each.len() < arrivals => Err(Error::parameter(
                "importances",
                each.len(),
                format!("one for each of {arrivals} arrivals"),
                "give as many as there are keys, or one for all",
            )),
            _ => Ok(()),
        }
    }

    /// The importance of arrival `index`.
    #[inline]
    pub fn at(&self, index: usize) -> Importance {
        match self {
            Importances::All(importance) => *importance,
            Importances::Each(each) => each.get(index).copied().unwrap_or_default(),
        }
    }

    /// The importances from `start` on.
    #[inline]
    pub fn skip(self, start: usize) -> Self {
        match self {
            Importances::All(_) => self,
            Importances::Each(each) => Importances::Each(each.get(start..).unwrap_or_default()),
        }
    }
}

impl Default for Importances<'_> {
    fn default() -> Self {
        Importances::All(Importance::FULL)
    }
}

/// How the importances of arrivals are spread: the share of arrivals in each of 64 equal steps from
/// nothing to the greatest, and at the greatest itself.
///
/// ```
/// use everbloom::{Importance, ImportanceMix};
///
/// let sample = (1..=50).map(|value| Importance::new(value, 50)).collect::<Result<Vec<_>, _>>()?;
/// let mix = ImportanceMix::of(sample);
/// assert!((mix.share_from(0.5) - 0.52).abs() < 0.02);
/// assert_eq!(mix.share_from(0.0), 1.0);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImportanceMix {
    shares: [f64; Self::STEPS + 1],
    /// The least and the greatest importance.
    range: (Importance, Importance),
}

impl ImportanceMix {
    const STEPS: usize = 64;

    /// Every importance as often as every other.
    pub fn uniform() -> Self {
        let mut shares = [1.0 / Self::STEPS as f64; Self::STEPS + 1];
        shares[Self::STEPS] = 0.0;
        ImportanceMix { shares, range: (Importance::NONE, Importance::FULL) }
    }

    /// As in a sample; an empty one counts as uniform.
    pub fn of(sample: impl IntoIterator<Item = Importance>) -> Self {
        let (mut counts, mut total) = ([0.0; Self::STEPS + 1], 0.0);
        let (mut least, mut greatest) = (Importance::FULL, Importance::NONE);
        for importance in sample {
            counts[importance.share_of(Self::STEPS as u32) as usize] += 1.0;
            total += 1.0;
            if importance.share() < least.share() {
                least = importance;
            }
            if importance.share() > greatest.share() {
                greatest = importance;
            }
        }
        if total == 0.0 {
            return Self::uniform();
        }
        ImportanceMix { shares: counts.map(|count| count / total), range: (least, greatest) }
    }

    /// The share of arrivals whose importance is at least this share of the maximum.
    pub fn share_from(&self, least: f64) -> f64 {
        if least <= self.range.0.share() {
            return 1.0;
        }
        if least > self.range.1.share() {
            return 0.0;
        }
        let place = least * Self::STEPS as f64;
        let above: f64 = self.shares.iter().skip(place as usize + 1).sum();
        let here = self.shares.get(place as usize).map_or(0.0, |share| share * (1.0 - place.fract()));
        (above + here).min(1.0)
    }

    /// The importance that a share of `below` of the arrivals stays under.
    pub fn quantile(&self, below: f64) -> Importance {
        let (mut step, mut rest) = (0, below);
        while step < Self::STEPS && rest >= self.shares[step] {
            rest -= self.shares[step];
            step += 1;
        }
        let within = if self.shares[step] > 0.0 && step < Self::STEPS { rest / self.shares[step] } else { 0.0 };
        let share = ((step as f64 + within.clamp(0.0, 1.0)) / Self::STEPS as f64)
            .clamp(self.range.0.share(), self.range.1.share());
        // A grid fine enough for every number of steps that filters tell apart.
        let grid = 1 << 20;
        Importance::new((share * f64::from(grid)).round() as u32, grid).unwrap_or_default()
    }

    /// The mean importance of the arrivals from one share of the maximum up to another.
    pub fn mean_between(&self, low: f64, high: f64) -> f64 {
        let mut points: Vec<f64> = (0..=32).map(|index| low + (high - low) * f64::from(index) / 32.0).collect();
        points.retain(|point| *point <= 1.0);
        let (mut sum, mut mass) = (0.0, 0.0);
        for pair in points.windows(2) {
            let share = self.share_from(pair[0]) - self.share_from(pair[1]);
            (sum, mass) = (sum + share * 0.5 * (pair[0] + pair[1]), mass + share);
        }
        if mass > 0.0 { sum / mass } else { low.min(1.0) }
    }

    /// So many equal parts of the range of importances: the mean importance of each, and its share of the arrivals.
    pub fn parts(&self, count: u32) -> impl Iterator<Item = (f64, f64)> + '_ {
        let at = move |part: u32| f64::from(part) / f64::from(count);
        let of = move |part: u32| match part < count {
            true => {
                (self.mean_between(at(part), at(part + 1)), self.share_from(at(part)) - self.share_from(at(part + 1)))
            }
            // The greatest itself.
            false => (1.0, self.share_from(1.0)),
        };
        (0..=count).map(of).filter(|(_, share)| *share > 0.0)
    }

    /// ⌊`steps` · importance⌋, if it is the same for all arrivals.
    pub fn only_share_of(&self, steps: u32) -> Option<u32> {
        let (least, greatest) = (self.range.0.share_of(steps), self.range.1.share_of(steps));
        (least == greatest).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importance_outside_its_range_is_refused() {
        let scale = ImportanceScale::linear(50.0).expect("a scale");
        for wrong in [-1.0, 50.5, f64::NAN, f64::INFINITY] {
            assert!(scale.of(wrong).is_err(), "{wrong}");
        }
        assert!(ImportanceScale::linear(0.0).is_err());
        assert!(ImportanceScale::logarithmic(f64::NAN).is_err());
        assert!(Importance::new(3, 2).is_err());
    }

    #[test]
    fn whole_importances_stay_exact() {
        let scale = ImportanceScale::linear(50.0).expect("a scale");
        for value in 0..=50u32 {
            let importance = scale.of(f64::from(value)).expect("in range");
            assert_eq!((importance.value(), importance.max()), (value, 50));
            assert_eq!(importance.share_of(4), 4 * value / 50);
        }
    }

    #[test]
    fn logarithmic_importance_spans_its_range() {
        let scale = ImportanceScale::logarithmic(1e9).expect("a scale");
        assert_eq!(scale.of(0.0).expect("zero").value(), 0);
        let top = scale.of(1e9).expect("the maximum");
        assert_eq!(top.value(), top.max());
        let middle = scale.of(31_622.0).expect("the middle");
        assert_eq!(middle.share_of(100), 50);
        let share = f64::from(middle.value()) / f64::from(middle.max());
        assert!((scale.value_at(share) / 31_622.0 - 1.0).abs() < 1e-4, "{}", scale.value_at(share));
    }
}
