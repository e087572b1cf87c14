//! From what was counted of some keys to a rate and how far it may be off.
//!
//! The rate of the uncovered arrivals is p = Σy/Σx over the sampled keys. Its variance is (1 − θ) Σ(y − p x)² / (Σx)², by the
//! linearised ratio estimator (Cochran, *Sampling Techniques*, 6.4): between keys, because the arrivals of a key err
//! together. Against a sample of as many independent arrivals that is larger by the *design effect*, so that p is as good as
//! found among Σx / effect of them, and the interval is Wilson's (1927) for that number, as Korn and Graubard (1998) do for
//! rare events in surveys: it is right for rates near zero, where p ± 2σ is not.
//!
//! Of few errors the effect is not known: with none at all it would be 0. So it is averaged with that of keys which err
//! always or never, Σx²/Σx, the largest that clusters of this size can have, as if one more key that errs had been seen.
//! Without any error Wilson's upper end is then 3.84 over the effective number: the rule of three.
//!
//! Where half of all keys are in the sample, less is unknown than if it was a small part. For many errors that is the factor
//! 1 − θ above. For none it is −ln(1 − θ)/θ, because e keys that err all escape the sample with probability (1 − θ)^e.
//!
//! Whether a promise is broken is another question: it bounds a probability, and even all keys are but one draw from it. There
//! the keys are taken as a small part of those that might have come, and covered arrivals as tries of their own.
//!
//! Of the covered arrivals some were counted, each by a lot of its own: their rate has Wilson's interval for so many, or none if
//! all were counted. The whole has the share of each, which is estimated, too. All of these errors are put together as the
//! limits of sums are (Zou and Donner, 2008).

use libm::{hypot, log, log1p, sqrt};

/// Standard deviations of an interval that holds the truth 19 times in 20.
pub(super) const USUAL: f64 = 1.959_963_985;
/// Those beyond which nothing is called chance: at most once in 3,000 looks, and once in 16,000 where there are many errors.
pub(super) const CERTAIN: f64 = 4.0;

/// A rate as it was measured, and the interval in which it is with a probability of 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Measured {
    /// The rate itself.
    pub rate: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Arrivals of which it is a rate, as far as that is known.
    pub of: f64,
}

/// Covered arrivals that were counted, and with which probability each was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Covered {
    pub(super) all: f64,
    pub(super) wrong: f64,
    pub(super) share: f64,
}

impl Covered {
    fn rate(&self) -> f64 {
        if self.all > 0.0 { self.wrong / self.all } else { 0.0 }
    }

    /// How many there are.
    fn estimated(&self) -> f64 {
        self.all / self.share
    }

    /// The interval of the rate among all of them.
    fn interval(&self, deviations: f64) -> (f64, f64) {
        let p = self.rate();
        match self.all > 0.0 && self.share < 1.0 {
            true => wilson(p, self.all / (1.0 - self.share), deviations),
            false => (p, p),
        }
    }

    /// The variance of how many there are, by its square.
    fn spread(&self) -> f64 {
        if self.all > 0.0 { (1.0 - self.share) / self.all } else { 0.0 }
    }
}

/// Sums over sampled keys, in whole numbers, so that their order does not matter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    x: u128,
    y: u128,
    xx: u128,
    xy: u128,
    yy: u128,
}

impl Sum {
    /// One more key.
    pub(super) fn add(&mut self, (all, wrong): (u64, u64)) {
        let (x, y) = (u128::from(all), u128::from(wrong));
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    pub(super) fn moments(&self) -> Moments {
        let [x, y, xx, xy, yy] = [self.x, self.y, self.xx, self.xy, self.yy].map(|sum| sum as f64);
        Moments { x, y, xx, xy, yy }
    }
}

/// Sums as numbers to reckon with: x is what was counted of a key, y what of that was wrong.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    pub(super) x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Moments {
    /// The interval of the probability to err that these, and what was covered, are draws from.
    pub(super) fn chance(&self, covered: Covered, share: f64, deviations: f64) -> Option<Measured> {
        let tries = |count: f64, p: f64, effective: f64| match count > 0.0 {
            true => wilson(p, effective, deviations),
            false => (p, p),
        };
        let (p, known) = (self.rate(), covered.rate());
        let effective = if self.x > 0.0 { self.effective(p, 0.0).min(self.x) } else { 0.0 };
        let (sampled, counted) = (tries(self.x, p, effective), tries(covered.all, known, covered.all));
        let of = self.x / share + covered.estimated();
        let weight = self.x / share / of;
        let off = |end: f64, other_end: f64| hypot(weight * (p - end), (1.0 - weight) * (known - other_end));
        let rate = weight * p + (1.0 - weight) * known;
        let (low, high) = (rate - off(sampled.0, counted.0), rate + off(sampled.1, counted.1));
        (of > 0.0).then_some(Measured { rate, low: low.max(0.0), high: high.min(1.0), of })
    }

    /// Whether so many errors are beyond chance where each arrival errs with a promised probability at most. The interval alone
    /// would not do: of few errors its lower end is too high, and a single one would break every low promise. So the deviance
    /// of a Poisson number is asked, too, by which Chernoff bounds the chance of so many.
    pub(super) fn is_beyond(&self, covered: Covered, share: f64, promised: f64) -> bool {
        let p = self.rate();
        let effective = if self.x > 0.0 { self.effective(p, 0.0).min(self.x) } else { 0.0 };
        let (errors, expected) = (p * effective + covered.wrong, promised * (effective + covered.all));
        let is_above = self.chance(covered, share, CERTAIN).is_some_and(|certain| certain.low > promised);
        is_above && errors * log(errors / expected) - errors + expected > CERTAIN * CERTAIN / 2.0
    }

    /// The rate of these and of what was covered, all keys being `1/share` times the sampled ones. `uncovered` is how many
    /// arrivals were not covered at most. Nothing if there is nothing to have a rate of.
    pub(super) fn rate_with(&self, covered: Covered, share: f64, uncovered: f64, deviations: f64) -> Option<Measured> {
        let (known, (known_low, known_high)) = (covered.rate(), covered.interval(deviations));
        let all = covered.estimated();
        if self.x == 0.0 {
            // As many keys as may have escaped the sample, with one arrival each.
            let hidden = if share < 1.0 { (deviations * deviations / share).min(uncovered) } else { 0.0 };
            let (low, high) = (known_low * all / (all + hidden), (known_high * all + hidden) / (all + hidden));
            return (all > 0.0).then_some(Measured { rate: known, low, high, of: all });
        }
        let estimated = self.x / share;
        let of = estimated + all;
        let (weight, p) = (estimated / of, self.rate());
        let (low, high) = if share < 1.0 { wilson(p, self.effective(p, share), deviations) } else { (p, p) };
        // How far the weight may be off, times what that matters.
        let spread = (1.0 - share) * self.xx / (self.x * self.x) + covered.spread();
        let by_weight = deviations * (p - known).abs() * weight * (1.0 - weight) * sqrt(spread);
        let rate = weight * p + (1.0 - weight) * known;
        let off = |end: f64, known_end: f64| {
            hypot(hypot(weight * (p - end), (1.0 - weight) * (known - known_end)), by_weight)
        };
        let (low, high) = (rate - off(low, known_low), rate + off(high, known_high));
        Some(Measured { rate, low: low.max(0.0), high: high.min(1.0), of })
    }

    /// The rate of these alone.
    fn rate(&self) -> f64 {
        if self.x > 0.0 { self.y / self.x } else { 0.0 }
    }

    /// How many independent arrivals tell as much.
    fn effective(&self, p: f64, share: f64) -> f64 {
        // Keys that err, or that do not if these are fewer.
        let right = self.xx - 2.0 * self.xy + self.yy;
        let erring = match p {
            p if p == 0.0 || p == 1.0 => 0.0,
            p if p <= 0.5 => self.y * self.y / self.yy,
            _ => (self.x - self.y) * (self.x - self.y) / right,
        };
        let spread = (self.yy - 2.0 * p * self.xy + p * p * self.xx).max(0.0);
        let measured = if erring > 0.0 { spread / (self.x * p * (1.0 - p)) } else { 0.0 };
        let effect = (measured * erring + self.xx / self.x) / (erring + 1.0);
        let none = if share > 0.0 { -log1p(-share) / share } else { 1.0 };
        let many = 1.0 / (1.0 - share);
        self.x / effect * (many * erring + none) / (erring + 1.0)
    }
}

/// Wilson's score interval of a rate p found among n.
fn wilson(p: f64, n: f64, deviations: f64) -> (f64, f64) {
    let z = deviations * deviations / n;
    let (middle, half) = ((p + z / 2.0) / (1.0 + z), sqrt(z * p * (1.0 - p) + z * z / 4.0) / (1.0 + z));
    ((middle - half).max(0.0).min(p), (middle + half).min(1.0).max(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No covered arrivals.
    const NONE: Covered = Covered { all: 0.0, wrong: 0.0, share: 1.0 };

    fn rate(keys: &[(u64, u64)], covered: (u64, u64), share: f64) -> Measured {
        let mut sum = Sum::default();
        keys.iter().for_each(|key| sum.add(*key));
        let covered = Covered { all: covered.0 as f64, wrong: covered.1 as f64, share: 1.0 };
        sum.moments().rate_with(covered, share, 1e9, USUAL).expect("something to have a rate of")
    }

    #[test]
    fn all_keys_tell_the_rate_itself() {
        let found = rate(&[(3, 1), (1, 0)], (4, 1), 1.0);
        assert_eq!((found.rate, found.low, found.high, found.of), (0.25, 0.25, 0.25, 8.0));
    }

    #[test]
    fn no_errors_leave_the_rule_of_three() {
        let found = rate(&vec![(1, 0); 1000], (0, 0), 1e-6);
        assert_eq!((found.rate, found.low), (0.0, 0.0));
        assert!((found.high * 1000.0 - 3.84).abs() < 0.02, "{found:?}");
        // Ten arrivals of each of a hundred keys tell no more than a hundred.
        let clustered = rate(&vec![(10, 0); 100], (0, 0), 1e-6);
        assert!((clustered.high * 100.0 - 3.7).abs() < 0.1, "{clustered:?}");
    }

    #[test]
    fn keys_that_err_together_make_the_interval_wider() {
        let alone = rate(&(0..1000).map(|key| (1, u64::from(key % 10 == 0))).collect::<Vec<_>>(), (0, 0), 1e-6);
        let together =
            rate(&(0..100).map(|key| (10, if key % 10 == 0 { 10 } else { 0 })).collect::<Vec<_>>(), (0, 0), 1e-6);
        assert_eq!(alone.rate, together.rate);
        let ratio = (together.high - together.low) / (alone.high - alone.low);
        assert!((ratio - 10f64.sqrt()).abs() < 0.2, "{ratio}");
    }

    #[test]
    fn a_promise_is_not_broken_by_chance_though_all_keys_are_known() {
        // 11 of 1,000 where 1 % is promised: a third of a standard deviation.
        let mut sum = Sum::default();
        (0..1000).for_each(|key| sum.add((1, u64::from(key < 11))));
        let found = sum.moments().chance(NONE, 1.0, CERTAIN).expect("something to have a rate of");
        assert!(found.rate > 0.01 && found.low < 0.01, "{found:?}");
        (0..100_000).for_each(|key| sum.add((1, u64::from(key % 91 == 0))));
        assert!(sum.moments().chance(NONE, 1.0, CERTAIN).expect("a rate").low < 0.01);
        (0..1_000_000).for_each(|key| sum.add((1, u64::from(key % 91 == 0))));
        assert!(sum.moments().chance(NONE, 1.0, CERTAIN).expect("a rate").low > 0.01, "ten standard deviations");
    }

    #[test]
    fn a_single_error_breaks_no_promise() {
        let with_errors = |count: u64| {
            let mut sum = Sum::default();
            (0..100).for_each(|key| sum.add((2, 2 * u64::from(key < count))));
            sum.moments()
        };
        // One key in 100, where 0.1 key is to be expected: that is no chance of one in 3,000.
        assert!(with_errors(1).chance(NONE, 1.0, CERTAIN).expect("a rate").low > 0.0005);
        assert!(!with_errors(1).is_beyond(NONE, 1.0, 0.0005));
        assert!(with_errors(10).is_beyond(NONE, 1.0, 0.0005) && with_errors(1).is_beyond(NONE, 1.0, 0.0));
        assert!(!with_errors(0).is_beyond(NONE, 1.0, 0.0));
    }

    #[test]
    fn what_is_covered_is_known() {
        let found = rate(&vec![(1, 0); 1000], (999_000_000, 0), 1e-3);
        assert!(found.high < 4e-6, "{found:?}");
    }
}
