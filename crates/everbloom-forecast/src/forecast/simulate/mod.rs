//! A smaller filter on a shorter stream, where there is no formula.

mod counts;

use crate::stream::scaled::ScaledStream;
use crate::{Forecast, Stream};
use counts::{Counts, Tally};
use everbloom::{Hashing, Plan, Result};
use everbloom_cells::key::Generator;

/// The seed of every simulation: a forecast is the same today and tomorrow.
const SEED: u64 = 0x0e5e_b100;

/// A filter smaller than this no longer behaves like a large one.
const LEAST_BITS: f64 = 8_192.0;

/// A simulation is at most so many times as long as wanted.
const MOST_TIMES: f64 = 2.0;

/// A simulated filter is at most this large, 512 KiB, however much memory there is: a stream that leaves more of it empty
/// is played shorter still,
const MOST_BITS: f64 = 4_194_304.0;

/// but not so short that nothing can be told.
const FEWEST_ARRIVALS: f64 = 500.0;

/// A simulation changes at most about so many cells besides those of its keys,
const MOST_CHANGES: f64 = 8e6;

/// How often a run looks at the share of cells in use, and how many bits that may read in all.
#[derive(Debug, Clone, Copy)]
struct Looks {
    most: usize,
    least: usize,
    most_bits: u64,
    at_random: bool,
}

impl Looks {
    const AT_A_GLANCE: Self = Looks { most: 64, least: 4, most_bits: 1 << 24, at_random: false };

    /// Often enough to integrate the rate of false positives over all of so many rounds. Looking costs as much as it has to
    /// read, so a large filter, whose rate changes slowly, is looked at less often.
    fn close(rounds: f64) -> Self {
        let most = (MOST_LOOKS / rounds) as usize;
        Looks { most, least: 8, most_bits: (MOST_BITS_LOOKED_AT / rounds) as u64, at_random: true }
    }

    /// The ends of the parts of so many arrivals between which a filter of so many bits is looked at. Where the rate is
    /// integrated, each lies at random in its share of the run, so that no period of the filter's agrees with them.
    fn ends(self, arrivals: usize, memory_bits: u64, seed: u64) -> Vec<usize> {
        let looks = self.most.min((self.most_bits / memory_bits.max(1)) as usize).max(self.least);
        let mut generator = Generator::seeded(seed);
        let part = arrivals.div_ceil(looks).max(1);
        let mut ends: Vec<usize> = match self.at_random {
            true => (0..looks).map(|look| (part as f64 * (look as f64 + generator.unit())) as usize).collect(),
            false => (1..=looks).map(|look| look * part).collect(),
        };
        ends.retain(|end| *end < arrivals);
        ends.push(arrivals);
        ends.dedup();
        ends
    }
}

/// How large a simulation is that many filters share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Arrivals that are wanted.
    arrivals: f64,
    /// The largest filter.
    most_bits: f64,
    /// The most cells that are changed besides those of keys.
    most_changes: f64,
    looks: Looks,
}

impl Extent {
    /// Of about so many arrivals.
    pub(super) const fn of(arrivals: f64) -> Self {
        Extent { arrivals, most_bits: MOST_BITS, most_changes: 5e5, looks: Looks::AT_A_GLANCE }
    }

    /// So short that a hundred filters take a tenth of a second.
    pub(super) const QUICK: Self = Extent {
        arrivals: 2_500.0,
        most_bits: 131_072.0,
        most_changes: 4e4,
        looks: Looks { most: 16, least: 8, most_bits: 1 << 20, at_random: false },
    };
}

/// A simulated stream that filters are tried on side by side.
pub(super) struct Shared {
    pub(super) scaled: ScaledStream,
    extent: Extent,
}

impl Shared {
    /// For filters of about `memory_bits`.
    pub(super) fn new(stream: &Stream, memory_bits: u64, extent: Extent) -> Self {
        let Extent { arrivals, most_bits, .. } = extent;
        let size = Size { arrivals, most_bits, shortens: true, sections: true };
        Shared { scaled: numbered(stream, memory_bits, size, 0), extent }
    }
}

/// How large a simulation is.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Arrivals that are wanted.
    arrivals: f64,
    /// The largest filter.
    most_bits: f64,
    /// Whether a stream that leaves most of a larger one empty is played shorter.
    shortens: bool,
    /// Whether a stream that is too long for the filter is played in part: what never forgets must see all of it.
    sections: bool,
}

fn numbered(stream: &Stream, memory_bits: u64, size: Size, round: u64) -> ScaledStream {
    let wanted = stream.arrivals() as f64 / size.arrivals;
    let most = (memory_bits as f64 / LEAST_BITS).max(1.0);
    let roomy = match size.shortens {
        true => (memory_bits as f64 / size.most_bits).min(stream.arrivals() as f64 / FEWEST_ARRIVALS),
        false => 1.0,
    };
    let divisor = wanted.min(most).max(roomy).max(1.0);
    match size.sections {
        // Where the stream is very long for the memory, the filter sees a part of it: a smaller one is another filter.
        true => ScaledStream::section(stream, divisor, MOST_TIMES * size.arrivals, SEED, round),
        false => ScaledStream::new(stream, divisor.max(wanted / MOST_TIMES), SEED, round),
    }
}

/// The filter that sees a stream played scaled down; `None` if its kind does not scale.
fn small(plan: &Plan, scaled: &ScaledStream, most_bits: f64) -> Result<Option<Plan>> {
    // Where even the shortest stream leaves nearly all of it empty, a smaller one is as good.
    plan.scaled(scaled.divisor.max(plan.memory_bits as f64 / most_bits))
}

/// The arrivals that a simulation of this plan can afford.
fn affordable(plan: &Plan, changes: f64) -> Result<f64> {
    Ok((changes / plan.changed()?.max(1.0)).max(FEWEST_ARRIVALS))
}

/// Rounds that a stream shorter than wanted is simulated for, at most.
const MOST_ROUNDS: f64 = 6.0;

/// What the plan's filter does on several simulations, together of about so many arrivals.
pub(super) fn simulated_long(plan: &Plan, stream: &Stream, arrivals: f64) -> Result<Option<Forecast>> {
    let arrivals = arrivals.min(affordable(plan, MOST_CHANGES)?);
    let sections = plan.promise.predicted_fnr != Some(0.0);
    let size = Size { arrivals, most_bits: MOST_BITS, shortens: true, sections };
    let first = numbered(stream, plan.memory_bits, size, 0);
    let rounds = (arrivals / first.hashes.len().max(1) as f64).clamp(1.0, MOST_ROUNDS).round() as u64;
    let found = Rounds::run(plan, stream, size, first, (rounds, Looks::AT_A_GLANCE))?;
    Ok(found.map(|rounds| rounds.counts.forecast(plan.promise, stream, rounds.zeros, rounds.divisor)))
}

/// A simulation of all that a sample has is at most this large, 64 MiB,
const MOST_BITS_IN_FULL: f64 = 536_870_912.0;

/// has at most so many bits for each arrival, since a larger filter would be as empty,
const BITS_PER_ARRIVAL: f64 = 256.0;

/// changes at most about so many cells,
const MOST_CHANGES_IN_FULL: f64 = 1.2e8;

/// and is repeated with other hashes until there are so many arrivals,
const ARRIVALS_IN_FULL: f64 = 4e6;

/// at least so often, since the rounds tell how much chance decides,
const FEWEST_ROUNDS: f64 = 3.0;

/// as long as the filters of all rounds have no more bits than this, and those that are looked at,
const BITS_OF_ALL_ROUNDS: f64 = 134_217_728.0;
const MOST_BITS_LOOKED_AT: f64 = 536_870_912.0;
const MOST_LOOKS: f64 = 4096.0;

/// and at most so often: an error of a round is then an eighth of it in their mean.
const MOST_ROUNDS_IN_FULL: f64 = 64.0;

/// What the plan's filter does on all that is known of a learned stream, at its own size where every arrival is known.
///
/// The standard errors are those of a forecast: how far one run of the filter on the stream is from it, typically. They
/// have three parts: what one run differs from the next, what is left of that in the mean of the rounds, and what the
/// choice of keys adds where only some are known.
///
/// False positives are not counted, since there may be few of them: the rate at which new keys would meet one is read off the
/// cells again and again, and taken for every new key in between. So what is left to chance is how many of them one run
/// of the filter has, and that is known from their number.
pub(super) fn simulated_in_full(plan: &Plan, stream: &Stream) -> Result<Option<Forecast>> {
    let one_in = stream.sampled_one_in();
    let arrivals = (stream.arrivals() as f64 / one_in).min(affordable(plan, MOST_CHANGES_IN_FULL)?);
    let most_bits = (BITS_PER_ARRIVAL * arrivals).clamp(MOST_BITS, MOST_BITS_IN_FULL);
    let size = Size { arrivals, most_bits, shortens: false, sections: false };
    let first = numbered(stream, plan.memory_bits, size, 0);
    let rounds = (ARRIVALS_IN_FULL / first.hashes.len().max(1) as f64)
        .min(BITS_OF_ALL_ROUNDS / most_bits.min(plan.memory_bits as f64));
    let rounds = rounds.clamp(FEWEST_ROUNDS, MOST_ROUNDS_IN_FULL).round();
    let looks = Looks::close(rounds);
    let Some(found) = Rounds::run(plan, stream, size, first, (rounds as u64, looks))? else { return Ok(None) };
    let counts = &found.counts;
    let forecast = counts.forecast(plan.promise, stream, found.zeros, found.divisor);
    let chosen = (1.0 - 1.0 / one_in) * counts.variance_by_keys();
    // A filter that is `divisor` times as small, on as much less of the stream, varies so much more.
    let of_runs = |of_small: f64| of_small / found.divisor + of_small / rounds;
    let (positives, negatives): (Vec<f64>, Vec<f64>) = found.rates.iter().copied().unzip();
    let by_count = counts.negatives.standard_error();
    let of_negatives = variance(&negatives).max(by_count * by_count * rounds);
    let predicted_fpr = counts.expected.rate();
    let of_positives = few_rounds(rounds as usize) * variance(&positives);
    let thrown = predicted_fpr * (1.0 - predicted_fpr) / (stream.distinct() as f64).max(1.0);
    let per_importance = 1.0 / counts.importance.max(1e-300);
    Ok(Some(Forecast {
        predicted_fpr,
        standard_error: (of_runs(of_positives) + thrown).sqrt(),
        late_fpr: counts.late_expected.rate(),
        weighted_fpr: counts.expected_importance * per_importance,
        // What never forgets does not do so by chance.
        fnr_standard_error: if counts.negatives.wrong == 0.0 && plan.promise.predicted_fnr == Some(0.0) {
            0.0
        } else {
            (of_runs(of_negatives) + chosen).sqrt()
        },
        ..forecast
    }))
}

/// What a variance between so few rounds is multiplied by, so that twice its root covers 95 % as Student's t does.
fn few_rounds(rounds: usize) -> f64 {
    const T: [f64; 5] = [12.706, 4.303, 3.182, 2.776, 2.571];
    let freedom = rounds.max(2) - 1;
    let of_many = |freedom: f64| 1.96 + 2.372 / freedom + 2.823 / (freedom * freedom);
    let half = T.get(freedom - 1).copied().unwrap_or_else(|| of_many(freedom as f64)) / 2.0;
    half * half
}

fn variance(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0).max(1.0)
}

/// Several simulations.
struct Rounds {
    counts: Counts,
    /// The rates of each of them, of false positives to be expected and of false negatives.
    rates: Vec<(f64, f64)>,
    zeros: f64,
    divisor: f64,
}

impl Rounds {
    fn run(
        plan: &Plan,
        stream: &Stream,
        size: Size,
        first: ScaledStream,
        (rounds, looks): (u64, Looks),
    ) -> Result<Option<Self>> {
        let mut found =
            Rounds { counts: Counts::watching_keys(), rates: Vec::new(), zeros: 1.0, divisor: first.divisor };
        for round in 0..rounds {
            let next = if round == 0 { None } else { Some(numbered(stream, plan.memory_bits, size, round)) };
            let scaled = next.as_ref().unwrap_or(&first);
            let Some(mut small) = small(plan, scaled, size.most_bits)? else { return Ok(None) };
            // A simulation brings its own hashes; the filter's random choices come from its own seed.
            small.hashing = Hashing::seeded(SEED + round);
            let mut filter = small.filter()?;
            let before = (found.counts.expected, found.counts.negatives);
            found.counts.run(filter.as_mut(), scaled, Patience::ENDLESS, (looks, SEED + round));
            // Later rounds have the same keys.
            found.counts.watches_keys = false;
            if round == 0 {
                found.counts.repeats_of_a_round = found.counts.negatives.of;
            }
            let rates = |now: Tally, before: Tally| now.since(before).rate();
            found.rates.push((rates(found.counts.expected, before.0), rates(found.counts.negatives, before.1)));
            found.zeros = 1.0 - filter.status().fill;
        }
        Ok(Some(found))
    }
}

/// How much a filter may miss before its simulation ends early.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// The rate of misses.
    pub(super) missed: f64,
    /// Whether misses are weighed by importance.
    pub(super) by_importance: bool,
}

impl Patience {
    /// Every simulation runs to its end.
    pub(super) const ENDLESS: Self = Patience { missed: f64::INFINITY, by_importance: false };

    /// The most that may be missed in all of a simulation: repeats, or importance.
    fn most_missed(self, scaled: &ScaledStream) -> f64 {
        let of = if !self.by_importance {
            scaled.judged_lags().iter().filter(|lag| **lag > 0).count() as f64
        } else if scaled.importances.is_empty() {
            scaled.judged_lags().len() as f64
        } else {
            scaled.importances.iter().skip(scaled.warm_up).map(|importance| importance.share()).sum()
        };
        self.missed * of
    }
}

/// What the plan's filter, scaled down, does on a simulated stream. `None` if its kind does not scale. One that
/// misses more than `patience` allows is stopped early: its rates cover a part of the stream, and are above the limit.
pub(super) fn simulated(plan: &Plan, stream: &Stream, shared: &Shared, patience: Patience) -> Result<Option<Forecast>> {
    let extent = shared.extent;
    let arrivals = affordable(plan, extent.most_changes)?;
    let is_shorter = arrivals < shared.scaled.hashes.len() as f64;
    let shorter = is_shorter.then(|| Shared::new(stream, plan.memory_bits, Extent { arrivals, ..extent }));
    let scaled = &shorter.as_ref().unwrap_or(shared).scaled;
    let Some(small) = small(plan, scaled, extent.most_bits)? else { return Ok(None) };
    let mut filter = small.filter()?;
    let mut counts = Counts::default();
    counts.run(filter.as_mut(), scaled, patience, (extent.looks, SEED));
    Ok(Some(counts.forecast(plan.promise, stream, 1.0 - filter.status().fill, scaled.divisor)))
}
