//! D(τ), the distinct keys among τ successive arrivals, and its slope.

use everbloom::kind::MAX_ITEMS;
use everbloom::{Error, Result};
use libm::{exp, expm1, log, log1p};

/// Keys that come equally often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateBand {
    /// The probability that an arrival is a given one of them.
    pub rate: f64,
    /// How many there are.
    pub keys: f64,
}

impl RateBand {
    /// The probability that one of the keys does not come among so many arrivals.
    pub fn absent(&self, arrivals: f64) -> f64 {
        exp(arrivals * log1p(-self.rate.min(1.0 - 1e-16)))
    }
}

/// How many distinct keys a window of the stream has.
#[derive(Debug, Clone)]
pub enum Footprint {
    /// Independent draws from classes of keys.
    Drawn(Vec<RateBand>),
    /// By lags.
    Lags(LagCurve),
}

impl Footprint {
    /// Draws ∝ rank^−exponent: the first ranks one by one, then classes that grow by an eighth.
    pub(super) fn drawn(universe: f64, exponent: f64) -> Self {
        if exponent == 0.0 {
            return Footprint::Drawn(vec![RateBand { rate: 1.0 / universe, keys: universe }]);
        }
        let weights = RankWeights::new(exponent);
        let total = weights.up_to(universe);
        let (mut classes, mut first, mut below) = (Vec::new(), 1.0, 0.0);
        while first <= universe {
            let keys = (first / 8.0).floor().max(1.0).min(universe - first + 1.0);
            // Beyond 2^53 one more key may be lost in rounding.
            if first + keys <= first {
                break;
            }
            let upto = weights.up_to(first + keys - 1.0);
            classes.push(RateBand { rate: (upto - below) / total / keys, keys });
            (first, below) = (first + keys, upto);
        }
        Footprint::Drawn(classes)
    }

    /// D(τ).
    pub fn distinct(&self, arrivals: f64) -> f64 {
        match self {
            Footprint::Drawn(classes) => {
                let one = |class: &RateBand| class.keys * -expm1(arrivals * log1p(-class.rate.min(1.0 - 1e-16)));
                classes.iter().map(one).sum()
            }
            Footprint::Lags(curve) => curve.distinct(arrivals),
        }
    }

    /// D′(τ): the share of arrivals whose key did not come within the last τ.
    pub fn new_share(&self, arrivals: f64) -> f64 {
        match self {
            Footprint::Drawn(classes) => {
                classes.iter().map(|class| class.keys * class.rate * class.absent(arrivals)).sum()
            }
            Footprint::Lags(curve) => curve.beyond(arrivals),
        }
    }

    /// The classes of keys, where arrivals are independent draws.
    pub fn classes(&self) -> Option<&[RateBand]> {
        match self {
            Footprint::Drawn(classes) => Some(classes),
            Footprint::Lags(_) => None,
        }
    }
}

/// Σ rank^−exponent, the first terms one by one, the rest as an integral.
#[derive(Debug, Clone)]
pub(super) struct RankWeights {
    exponent: f64,
    /// The sums up to the first ranks.
    head: [f64; EXACT_RANKS],
}

/// Ranks that are summed one by one.
const EXACT_RANKS: usize = 64;

impl RankWeights {
    pub(super) fn new(exponent: f64) -> Self {
        let mut sum = 0.0;
        let head = std::array::from_fn(|index| {
            sum += exp(-exponent * log(index as f64 + 1.0));
            sum
        });
        RankWeights { exponent, head }
    }

    /// ∫ x^−exponent from 1, in a form that is smooth at exponent 1.
    fn integral(&self, x: f64) -> f64 {
        let (log_x, slope) = (log(x), 1.0 - self.exponent);
        if (log_x * slope).abs() > 1e-8 { expm1(log_x * slope) / slope } else { log_x }
    }

    /// The weights of the ranks up to `rank`.
    pub(super) fn up_to(&self, rank: f64) -> f64 {
        match self.head.get((rank as usize).wrapping_sub(1)) {
            Some(sum) => *sum,
            None => self.head[EXACT_RANKS - 1] + self.integral(rank + 0.5) - self.integral(EXACT_RANKS as f64 + 0.5),
        }
    }

    /// The rank at which the weights reach `sum`, from 1 on.
    pub(super) fn rank_at(&self, sum: f64) -> f64 {
        let last = self.head[EXACT_RANKS - 1];
        if sum <= last {
            return self.head.partition_point(|below| *below < sum) as f64 + 1.0;
        }
        let value = sum - last + self.integral(EXACT_RANKS as f64 + 0.5);
        let slope = 1.0 - self.exponent;
        let log_x = if slope.abs() > 1e-8 { log1p(value * slope) / slope } else { value };
        (exp(log_x) + 0.5).floor()
    }
}

/// The share of arrivals whose lag exceeds a number: 1 at 0, falling; the share at its end is new.
#[derive(Debug, Clone, PartialEq)]
pub struct LagCurve {
    /// (lag, share beyond it, distinct keys among as many arrivals), by lag.
    points: Vec<(f64, f64, f64)>,
}

impl LagCurve {
    /// Whether lags are known by classes that double, or by coarser ones.
    pub(super) fn is_coarse(&self) -> bool {
        let (first, last) = match &self.points[..] {
            [_, first, .., last] => (first.0, last.0),
            _ => return true,
        };
        let doublings = libm::log2(last / first.max(1.0));
        ((self.points.len() - 2) as f64) < 2.0 * doublings
    }

    /// The curve through (lag, share beyond it), straight in between.
    pub(super) fn through(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut curve = vec![(0.0, 1.0, 0.0)];
        for (lag, beyond) in points {
            let (last, above, distinct) = curve[curve.len() - 1];
            if lag > last {
                let beyond = beyond.clamp(0.0, above);
                curve.push((lag, beyond, distinct + (lag - last) * 0.5 * (above + beyond)));
            }
        }
        LagCurve { points: curve }
    }

    /// The curve of weighted lags for which `distinct` of the arrivals are new.
    pub(super) fn with_distinct(lags: &[(f64, f64)], arrivals: f64, distinct: f64) -> Result<Self> {
        let wrong =
            |lag: &(f64, f64)| !(lag.0 >= 1.0 && lag.0 <= MAX_ITEMS as f64 && lag.1 >= 0.0 && lag.1.is_finite());
        if let Some(lag) = lags.iter().find(|lag| wrong(lag)) {
            let given = format!("{} with weight {}", lag.0, lag.1);
            let needed = "at least 1, with a weight that is not negative";
            return Err(Error::parameter("lag", given, needed, "write one lag and its weight on each line"));
        }
        let mut sorted = lags.to_vec();
        sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
        let total: f64 = sorted.iter().map(|lag| lag.1).sum();
        if !(total > 0.0 && total.is_finite()) {
            let remedy = "write lines such as '100 0.25': a lag and its weight";
            return Err(Error::parameter("lags", "without weight", "a distribution", remedy));
        }
        let with_repeats = |repeats: f64| {
            let mut below = 0.0;
            Self::through(sorted.iter().map(|(lag, weight)| {
                below += weight / total * repeats;
                (*lag, 1.0 - below)
            }))
        };
        let (mut low, mut high) = (0.0, 1.0);
        if with_repeats(1.0).distinct(arrivals) > distinct * 1.001 + 1.0 {
            let least = with_repeats(1.0).distinct(arrivals);
            return Err(Error::Infeasible {
                wanted: format!("{distinct} distinct keys among {arrivals} arrivals"),
                reason: "with such long lags more arrivals are the first of their key".into(),
                remedy: format!("expect at least {} distinct keys, or more arrivals", libm::ceil(least)),
            });
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if with_repeats(middle).distinct(arrivals) > distinct { low = middle } else { high = middle }
        }
        Ok(with_repeats(low))
    }

    /// The curve of a stream that is so many times as short.
    pub(super) fn shortened(&self, times: f64) -> Self {
        let point = |(lag, beyond, distinct): &(f64, f64, f64)| (lag / times, *beyond, distinct / times);
        LagCurve { points: self.points.iter().map(point).collect() }
    }

    fn segment(&self, lag: f64) -> usize {
        self.points.partition_point(|point| point.0 <= lag).max(1) - 1
    }

    /// The share of arrivals whose lag exceeds `lag`.
    pub fn beyond(&self, lag: f64) -> f64 {
        let at = self.segment(lag);
        let (start, above, _) = self.points[at];
        match self.points.get(at + 1) {
            Some((end, below, _)) => above + (below - above) * (lag - start) / (end - start),
            None => above,
        }
    }

    /// Its integral up to `arrivals`.
    pub(super) fn distinct(&self, arrivals: f64) -> f64 {
        let (start, above, distinct) = self.points[self.segment(arrivals)];
        distinct + (arrivals - start) * 0.5 * (above + self.beyond(arrivals))
    }

    /// The lag that a share of arrivals exceeds; `None` if they are new.
    pub(super) fn lag_at(&self, beyond: f64) -> Option<f64> {
        let after = self.points.partition_point(|point| point.1 > beyond);
        let (end, below, _) = *self.points.get(after)?;
        let (start, above, _) = self.points[after.max(1) - 1];
        let share = if above > below { (above - beyond) / (above - below) } else { 1.0 };
        Some(start + share * (end - start))
    }
}
