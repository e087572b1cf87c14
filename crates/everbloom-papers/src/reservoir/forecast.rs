//! The reservoir filter's chain over time.
//!
//! A key that was just seen has all of its bits set: it was found, or inserted. From then on each bit is a
//! two-state chain, whose rates change as the stream goes on. With s bits in an array of which a share q is
//! set, P the probability of a reservoir insertion and X the share of zero bits that arrivals find:
//!
//! > set → zero: (P + φ/q)/s,  zero → set: (P·X + φ)/((1 − q)·s),  s·dq/dt = P·(X − q)
//!
//! where φ = (1 − max(P, floor))·X counts the forced insertions, which clear a set bit for every one they set.
//! X in turn is what the chain says of the arrivals' bits: 1 − q for new keys, the share of zeros at their lag
//! for the others. Followed step by step from the first arrival.

use super::{Floor, Layout, Parameters};
use everbloom::{Plan, Result};
use everbloom_forecast::stream::integrate::{ALL_ALIKE, Integral, miss_over_time};
use everbloom_forecast::stream::{Footprint, Method};
use everbloom_forecast::{Forecast, Stream};
use libm::{exp, pow};

/// Steps of the chain, as a share of an array's bits at first and of the arrivals so far later on.
const FIRST_STEP: f64 = 0.02;
const LATER_STEP: f64 = 0.006;

pub(super) fn forecast(plan: &Plan, stream: &Stream) -> Result<Option<Forecast>> {
    let parameters = Parameters::from_spec(&plan.spec)?;
    // In the blocked layout the bits of a line are not independent, and by the text's floor whether a key is there
    // depends on when it came first: a smaller filter is simulated.
    if parameters.layout != Layout::Spread || parameters.floor != Floor::Algorithm {
        return Ok(None);
    }
    let arrivals = stream.arrivals() as f64;
    let chain = Chain::followed(&parameters, &stream.footprint(), arrivals);
    let filters = f64::from(parameters.num_filters);
    let integral = Integral {
        state: &|time| {
            let ones = chain.at(time, |step| step.ones);
            (pow(ones, filters), 1.0 - ones)
        },
        fnr: &|lag, _| chain.missed_after(lag, filters),
        levels: ALL_ALIKE,
    };
    let mut forecast = integral.forecast(stream, plan.promise, Method::Chain);
    let (all, late) = (chain.missed(0.0), chain.missed(0.9 * arrivals));
    forecast.weighted_fnr *= if forecast.predicted_fnr > 0.0 { all / forecast.predicted_fnr } else { 0.0 };
    forecast.by_importance.iter_mut().for_each(|row| row.predicted_fnr = all);
    (forecast.predicted_fnr, forecast.late_fnr, forecast.promise.predicted_fnr) = (all, late, Some(all));
    let steps = chain.steps.iter().map(|step| (step.time, step.repeats, step.missed));
    miss_over_time(&mut forecast.over_time, arrivals, steps);
    Ok(Some(forecast))
}

/// The filter at one moment.
#[derive(Debug, Clone, Copy)]
struct Step {
    time: f64,
    /// The share of set bits.
    ones: f64,
    /// Repeats and missed ones since the step before.
    repeats: f64,
    missed: f64,
}

struct Chain {
    steps: Vec<Step>,
    /// At the end, by the step at which a key was last seen: the share of its bits that are zero.
    zeros: Vec<f64>,
}

impl Chain {
    fn followed(parameters: &Parameters, footprint: &Footprint, arrivals: f64) -> Self {
        let (bits, filters) = (parameters.filter_bits() as f64, f64::from(parameters.num_filters));
        let mut chain =
            Chain { steps: vec![Step { time: 0.0, ones: 0.0, repeats: 0.0, missed: 0.0 }], zeros: vec![0.0] };
        let (mut time, mut ones) = (0.0, 0.0f64);
        while time < arrivals {
            let width = (FIRST_STEP * bits).max(LATER_STEP * time).max(1.0).min(arrivals - time);
            let sampled = parameters.bias.insert_prob(parameters.filter_bits(), (time + 0.5 * width) as u64 + 1);
            let not_inserted = (parameters.insert_floor - sampled).max(0.0);
            let found = chain.arrivals_find(footprint, time, ones, filters, not_inserted);
            let forced = (1.0 - sampled.max(parameters.insert_floor)) * found.zero_bits;
            let clear = (sampled + forced / ones.max(0.5 / bits)) / bits;
            let set = (sampled * found.zero_bits + forced) / ((1.0 - ones).max(1e-9) * bits);
            let settled = clear / (clear + set).max(1e-300);
            let kept = exp(-(clear + set) * width);
            for zero in &mut chain.zeros {
                *zero = *zero * kept + settled * (1.0 - kept);
            }
            // Filled towards its balance, however wide the step.
            ones = found.zero_bits + (ones - found.zero_bits) * exp(-sampled * width / bits);
            time += width;
            let (repeats, missed) = (width * found.repeats, width * found.missed);
            chain.steps.push(Step { time, ones, repeats, missed });
            chain.zeros.push(0.0);
        }
        chain
    }

    /// What the next arrival finds, on average over its lag.
    fn arrivals_find(&self, footprint: &Footprint, time: f64, ones: f64, filters: f64, not_inserted: f64) -> Found {
        let fpr = pow(ones, filters);
        let new = footprint.new_share(time);
        let mut found = Found { zero_bits: new * (1.0 - ones), repeats: 0.0, missed: 0.0 };
        let (mut beyond, mut younger) = (1.0, 0.0);
        for (step, zeros) in self.steps.iter().zip(&self.zeros).rev() {
            // Repeats whose key was last seen between this step and the one after it.
            let further = footprint.new_share(time - step.time);
            let share = (beyond - further).max(0.0);
            beyond = further;
            let zero = 0.5 * (younger + zeros);
            younger = *zeros;
            let faded = 1.0 - pow(1.0 - zero, filters);
            // A key that was missed the last time, which is as likely as now, may not have been inserted then.
            let missed = faded + not_inserted * faded * (1.0 - fpr - faded);
            found.zero_bits += share * zero;
            found.repeats += share;
            found.missed += share * missed;
        }
        found
    }

    /// The share of repeats after some moment that are missed.
    fn missed(&self, after: f64) -> f64 {
        let late = self.steps.iter().filter(|step| step.time > after);
        let (repeats, missed) = late.fold((0.0, 0.0), |sum, step| (sum.0 + step.repeats, sum.1 + step.missed));
        if repeats > 0.0 { missed / repeats } else { 0.0 }
    }

    /// The rate of false negatives at a lag, at the end.
    fn missed_after(&self, lag: f64, filters: f64) -> f64 {
        let end = self.steps.last().map_or(0.0, |step| step.time);
        let place = self.steps.partition_point(|step| step.time <= end - lag).max(1) - 1;
        1.0 - pow(1.0 - self.zeros[place], filters)
    }

    fn at(&self, time: f64, value: impl Fn(&Step) -> f64) -> f64 {
        let after = self.steps.partition_point(|step| step.time <= time).clamp(1, self.steps.len() - 1);
        let (one, other) = (&self.steps[after - 1], &self.steps[after]);
        let share = ((time - one.time) / (other.time - one.time)).clamp(0.0, 1.0);
        value(one) * (1.0 - share) + value(other) * share
    }
}

struct Found {
    /// The share of the arrivals' bits that are zero.
    zero_bits: f64,
    repeats: f64,
    missed: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom::{Goal, Hashing, Importance};
    use everbloom_cells::key::Generator;
    use std::collections::HashSet;

    /// Misses, repeats and false positives, distinct arrivals, of uniform draws from so many keys.
    fn measured(plan: &Plan, arrivals: u64, keys: u64, seed: u64) -> [f64; 4] {
        let mut filter = Goal::new()
            .hashing(Hashing::seeded(seed))
            .plan_among(crate::TESTED, &plan.spec.to_string())
            .and_then(|plan| plan.build());
        let filter = filter.as_mut().expect("small");
        let (mut seen, mut generator, mut counts) = (HashSet::new(), Generator::seeded(seed), [0.0; 4]);
        for _ in 0..arrivals {
            let key = generator.below(keys);
            let is_new = seen.insert(key);
            let called_new = filter.observe_hash(Hashing::seeded(seed).hash_u64(key), Importance::FULL).is_distinct();
            let place = if is_new { 2 } else { 0 };
            counts[place] += f64::from(u8::from(is_new != called_new));
            counts[place + 1] += 1.0;
        }
        counts
    }

    /// Within four standard errors of what four filters do.
    #[test]
    fn every_bias_is_forecast() {
        let (arrivals, keys) = (60_000u64, 40_000u64);
        let distinct = keys as f64 * (1.0 - exp(-(arrivals as f64) / keys as f64));
        let stream = Stream::uniform(arrivals, distinct as u64).expect("a stream");
        for bias in [
            "reservoir",
            "constant",
            "constant,insert_prob=0.5",
            "constant,insert_prob=1",
            "exponential",
            "exponential,half_life=40000",
        ] {
            let spec = format!("reservoir:memory_bits=24576,num_filters=3,bias={bias}");
            let plan = Goal::new().plan_among(crate::TESTED, spec.as_str()).expect("a full spec");
            let forecast = forecast(&plan, &stream).expect("a chain").expect("the spread layout has one");
            let runs: Vec<[f64; 4]> = (0..4).map(|seed| measured(&plan, arrivals, keys, seed)).collect();
            let sum = |place: usize| runs.iter().map(|run| run[place]).sum::<f64>();
            for (name, said, wrong, all) in
                [("fnr", forecast.predicted_fnr, sum(0), sum(1)), ("fpr", forecast.predicted_fpr, sum(2), sum(3))]
            {
                let rate = wrong / all;
                let error = (rate * (1.0 - rate) / all).sqrt();
                let off = (said - rate).abs();
                assert!(off <= 4.0 * error, "{bias}: {name} {said}, measured {rate} ± {error}");
            }
        }
    }
}
