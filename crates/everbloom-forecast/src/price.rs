//! What errors cost, in whatever unit a user counts: cents, seconds, pages fetched twice.

use everbloom::{Error, Result};

/// What errors and memory cost, all in one unit of the user's choice.
///
/// ```
/// use everbloom::Goal;
/// use everbloom_forecast::{Cost, Price, Question};
///
/// // A new click that is dropped costs 1 cent, one that is counted twice 5.
/// let question = Question::new(Goal::new().memory("16KiB"));
/// let plan = question.clone().cost(Cost::of(1.0, 5.0)).answer()?.best.plan;
/// // Where a dropped one is what hurts, fewer are.
/// let careful = question.cost(Cost::of(500.0, 5.0)).answer()?.best.plan;
/// assert!(careful.promise.fpr_bound < plan.promise.fpr_bound);
/// // What costs the more, the more it matters.
/// let by_importance = Cost::of(1.0, Price::linear(5.0));
/// assert_eq!(by_importance.false_negative.at(0.5), 2.5);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// What a false positive costs: a new key that is called seen, and so is dropped.
    pub false_positive: Price,
    /// What a false negative costs: a repeat that is called new, and so is let through.
    pub false_negative: Price,
    /// What a MiB costs for as long as the stream takes; 0 if it costs nothing.
    pub memory_per_mib: f64,
}

impl Cost {
    /// The cost of a false positive, then that of a false negative: numbers, or [`Price`]s that depend on the importance.
    /// What cannot be a cost is refused when the goal is planned.
    pub fn of(false_positive: impl Into<Price>, false_negative: impl Into<Price>) -> Self {
        Cost { false_positive: false_positive.into(), false_negative: false_negative.into(), memory_per_mib: 0.0 }
    }

    /// Adds what a MiB of memory costs for as long as the stream takes, in the same unit.
    pub fn memory_per_mib(mut self, cost: f64) -> Self {
        self.memory_per_mib = cost;
        self
    }

    pub(crate) fn checked(&self) -> Result<()> {
        self.false_positive.checked("cost_fp")?;
        self.false_negative.checked("cost_fn")?;
        amount("memory_cost", self.memory_per_mib)?;
        if self.false_positive.most() == 0.0 && self.false_negative.most() == 0.0 {
            let remedy = "if only one of the errors costs anything, give the other a small cost, such as 0.01";
            return Err(Error::parameter("cost_fp", "0, as is cost_fn", "above 0, or cost_fn is", remedy));
        }
        Ok(())
    }

    /// Whether importance changes what an error costs.
    pub fn is_by_importance(&self) -> bool {
        !(self.false_positive.points.is_empty() && self.false_negative.points.is_empty())
    }
}

/// What one error costs, the same for all arrivals or by their importance.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    each: f64,
    /// The part of it at a share of the greatest importance, in order; straight lines between. Empty if it is all alike.
    points: Vec<(f64, f64)>,
}

impl Price {
    /// One cost whatever the importance.
    pub fn constant(each: f64) -> Self {
        Price { each, points: Vec::new() }
    }

    /// In proportion to the importance: so much at the greatest, half of it at half of that.
    pub fn linear(greatest: f64) -> Self {
        Price { each: greatest, points: vec![(0.0, 0.0), (1.0, 1.0)] }
    }

    /// So much times what a table says: pairs of an importance, from 0 to 1 as a share of the greatest, and a factor.
    /// Between two of them it is interpolated, beyond the last ones it stays.
    pub fn table(each: f64, factors: &[(f64, f64)]) -> Result<Self> {
        let problem = |given: f64, needed: &str| {
            Error::parameter("cost_by_importance", given, needed, "give an importance and a factor, such as 0.5 2")
        };
        let mut points = factors.to_vec();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (importance, factor) in &points {
            if !(0.0..=1.0).contains(importance) {
                return Err(problem(*importance, "an importance from 0 to 1, the greatest"));
            }
            if !(0.0..=MOST).contains(factor) {
                return Err(problem(*factor, "a factor of at least 0"));
            }
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(problem(pair[0].0, "an importance that is given once"));
        }
        if points.is_empty() {
            return Err(Error::parameter(
                "cost_by_importance",
                "empty",
                "at least one importance with its factor",
                "try 1 1",
            ));
        }
        Ok(Price { each, points })
    }

    /// What an error costs at a share of the greatest importance.
    pub fn at(&self, importance: f64) -> f64 {
        let after = self.points.partition_point(|(at, _)| *at < importance);
        let factor = match (after.checked_sub(1).and_then(|before| self.points.get(before)), self.points.get(after)) {
            (None, None) => 1.0,
            (Some(one), None) | (None, Some(one)) => one.1,
            (Some(low), Some(high)) => low.1 + (high.1 - low.1) * (importance - low.0) / (high.0 - low.0),
        };
        self.each * factor
    }

    fn most(&self) -> f64 {
        let factors = self.points.iter().map(|(_, factor)| *factor);
        self.each * if self.points.is_empty() { 1.0 } else { factors.fold(0.0, f64::max) }
    }

    fn checked(&self, name: &'static str) -> Result<()> {
        amount(name, self.each)
    }
}

impl From<f64> for Price {
    fn from(each: f64) -> Self {
        Price::constant(each)
    }
}

/// Larger costs than this would overflow in sums.
const MOST: f64 = 1e15;

fn amount(name: &'static str, given: f64) -> Result<()> {
    match given {
        given if (0.0..=MOST).contains(&given) => Ok(()),
        given => {
            Err(Error::parameter(name, given, "a number from 0 to 1e15", "give costs in a unit of your own, such as 5"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_interpolated_and_stays_beyond_its_ends() {
        let price = Price::table(2.0, &[(0.75, 3.0), (0.25, 1.0)]).expect("a table");
        for (importance, cost) in [(0.0, 2.0), (0.25, 2.0), (0.5, 4.0), (0.75, 6.0), (1.0, 6.0)] {
            assert_eq!(price.at(importance), cost, "at {importance}");
        }
        assert_eq!((Price::linear(4.0).at(0.25), Price::constant(4.0).at(0.25)), (1.0, 4.0));
    }

    #[test]
    fn what_is_no_cost_is_refused() {
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Cost::of(wrong, 1.0).checked().is_err(), "{wrong}");
            assert!(Cost::of(1.0, wrong).checked().is_err(), "{wrong}");
            assert!(Cost::of(1.0, 1.0).memory_per_mib(wrong).checked().is_err(), "{wrong}");
            assert!(Price::table(1.0, &[(0.5, wrong)]).is_err(), "{wrong}");
            assert!(Price::table(1.0, &[(wrong, 0.5)]).is_err(), "{wrong}");
        }
        assert!(Cost::of(0.0, 0.0).memory_per_mib(1.0).checked().is_err());
        assert!(Cost::of(0.0, 1.0).checked().is_ok());
        assert!(Price::table(1.0, &[]).is_err());
        assert!(Price::table(1.0, &[(0.5, 1.0), (0.5, 2.0)]).is_err());
    }
}
