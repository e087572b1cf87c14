//! How far a measured rate may be off: what the choice of keys adds, and what the seeds do.
//!
//! **A sample of the keys** has all arrivals of a key or none, so errors come in clusters. The keys fall into groups by
//! hash; how much the groups differ tells the variance of the rate, whatever the clusters.
//!
//! **Seeds** change every hash and random choice of a filter. [`mean`] takes several runs over the same stream for one, with
//! the standard error of the mean of each rate.

use crate::evaluate::{ImportanceRow, Outcome, Report};
use crate::metrics::Tally;
use everbloom::KeyHash;
use serde::Serialize;

/// Standard errors in a stated ±, where the standard error is well known: the truth is within it in about 19 of 20 cases.
pub const STATED_ERRORS: f64 = 2.0;

/// Student's t for 19 of 20, by the number of values less one, from 1 on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The standard errors in a stated ± of a mean of so many values: their own spread tells the standard error, and that of few
/// tells it badly.
pub fn stated_errors(values: usize) -> f64 {
    values.checked_sub(2).and_then(|index| STUDENT.get(index)).copied().unwrap_or(STATED_ERRORS)
}

/// The ± of a filter's rates, where seeds or a sample make one: the rate over all keys, and the mean of many more seeds,
/// are within it in 19 of 20 cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Errors {
    /// Of `measured_fpr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_fpr_error: Option<f64>,
    /// Of `measured_fnr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_fnr_error: Option<f64>,
    /// Of `late_fpr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_fpr_error: Option<f64>,
    /// Of `late_fnr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_fnr_error: Option<f64>,
    /// Of `wfp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wfp_error: Option<f64>,
    /// Of `wfn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wfn_error: Option<f64>,
    /// Of `ns_per_item`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns_per_item_error: Option<f64>,
}

/// Groups of keys.
const GROUPS: usize = 32;

/// Tallies by groups of keys, and the share of all keys that they are.
#[derive(Debug, Clone)]
pub struct Groups {
    share: f64,
    tallies: [Tally; GROUPS],
}

impl Groups {
    /// For a sample of this share of the keys.
    pub fn of_sample(share: f64) -> Self {
        Groups { share, tallies: [Tally::default(); GROUPS] }
    }

    /// Counts one arrival.
    pub fn record(&mut self, hash: KeyHash, duplicate: bool, called_duplicate: bool) {
        // Mixed by itself: neither filters nor the choice of the sample look at these bits.
        let mixed = (hash.low ^ hash.high.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.tallies[(mixed >> 59) as usize % GROUPS].record(duplicate, called_duplicate);
    }

    /// The ± of the rates of false positives and false negatives.
    pub fn errors(&self) -> Errors {
        Errors {
            measured_fpr_error: self.error(|tally| (tally.false_positives, tally.distinct)),
            measured_fnr_error: self.error(|tally| (tally.false_negatives, tally.duplicates)),
            ..Errors::default()
        }
    }

    /// The ± of a ratio of two counts.
    fn error(&self, counts: impl Fn(&Tally) -> (u64, u64)) -> Option<f64> {
        let counts: Vec<(f64, f64)> =
            self.tallies.iter().map(&counts).map(|(wrong, of)| (wrong as f64, of as f64)).collect();
        let (wrong, of) = counts.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        if of == 0.0 {
            return None;
        }
        let off: Vec<f64> = counts.iter().map(|(wrong_here, of_here)| wrong_here - wrong / of * of_here).collect();
        // What did not happen among so few may happen: no less than one more wrong and one more right would vary.
        let rate = (wrong + 1.0) / (of + 2.0);
        let least = rate * (1.0 - rate) / (of + 2.0);
        let variance = (GROUPS as f64 * variance(&off) / (of * of)).max(least);
        Some(STATED_ERRORS * ((1.0 - self.share) * variance).sqrt())
    }
}

/// The variance of one value among others like it.
fn variance(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0).max(1.0)
}

/// Several runs over the same stream, each with its own seed, as one: rates are means, with the ± of the mean. A promise
/// is broken if any run broke it. `None` without runs.
///
/// All runs have the same sample of the keys, if there is one, so that the mean is off by as much as each of them. Where
/// it is not known by how much, there is no ±.
pub fn mean(runs: Vec<Outcome>) -> Option<Outcome> {
    let mut runs = runs.into_iter();
    let mut first = runs.next()?;
    let others: Vec<Outcome> = runs.collect();
    if others.is_empty() {
        return Some(first);
    }
    for (index, report) in first.reports.iter_mut().enumerate() {
        let all: Vec<Report> = std::iter::once(report.clone())
            .chain(others.iter().filter_map(|run| run.reports.get(index).cloned()))
            .collect();
        *report = mean_of(report.clone(), &all);
    }
    Some(first)
}

fn mean_of(first: Report, all: &[Report]) -> Report {
    // `by_keys` is the ± by the choice of keys: 0 where it makes no difference, `None` where it is not known.
    let rate = |rate: fn(&Report) -> Option<f64>, by_keys: Option<f64>| {
        let values: Vec<f64> = all.iter().filter_map(rate).collect();
        if values.is_empty() {
            return (None, None);
        }
        let count = values.len() as f64;
        let by_seeds = stated_errors(values.len()) * (variance(&values) / count).sqrt();
        let error = by_keys.filter(|_| values.len() > 1).map(|by_keys| by_seeds.hypot(by_keys));
        (Some(values.iter().sum::<f64>() / count), error)
    };
    let of_sample = first.errors;
    let of_sample = |error: fn(&Errors) -> Option<f64>| of_sample.as_ref().map_or(Some(0.0), error);
    let broken = all.iter().filter(|report| report.broken_at.is_some()).min_by_key(|report| report.broken_at);
    let sum = |tally: fn(&Report) -> &Tally| {
        let mut total = Tally::default();
        all.iter().for_each(|report| total.add(tally(report)));
        total
    };
    let mut errors = Errors::default();
    let mut mean = Report {
        promise: broken.map_or(first.promise, |report| report.promise),
        broken_at: broken.and_then(|report| report.broken_at),
        weighted_precision: rate(|report| report.weighted_precision, None).0,
        weighted_recall: rate(|report| report.weighted_recall, None).0,
        fn_share_slope: rate(|report| report.fn_share_slope, None).0,
        crossover_importance: rate(|report| report.crossover_importance, None).0,
        by_importance: first.by_importance.as_ref().map(|rows| {
            let one = |index: usize, row: &ImportanceRow| {
                let mut tally = Tally::default();
                let others = all.iter().filter_map(|report| report.by_importance.as_ref()?.get(index));
                others.for_each(|row| tally.add(&row.tally));
                // The arrivals are the same in every run.
                ImportanceRow {
                    distinct: row.distinct,
                    duplicates: row.duplicates,
                    from: row.from,
                    to: row.to,
                    ..ImportanceRow::new(row.importance, &tally)
                }
            };
            rows.iter().enumerate().map(|(index, row)| one(index, row)).collect()
        }),
        total: sum(|report| &report.total),
        late: sum(|report| &report.late),
        ..first
    };
    macro_rules! rates {
        ($($rate:ident $error:ident),*) => {$(
            (mean.$rate, errors.$error) = rate(|report| report.$rate, of_sample(|errors| errors.$error));
        )*};
    }
    rates!(measured_fpr measured_fpr_error, measured_fnr measured_fnr_error, late_fpr late_fpr_error);
    rates!(late_fnr late_fnr_error, wfp wfp_error, wfn wfn_error);
    (mean.ns_per_item, errors.ns_per_item_error) = rate(|report| report.ns_per_item, Some(0.0));
    Report { errors: Some(errors), ..mean }
}

/// Neighbouring importances together, in at most so many classes of about as many arrivals each.
pub fn classes(rows: &[ImportanceRow], most: usize) -> Vec<ImportanceClass> {
    let whole: u64 = rows.iter().map(|row| row.tally.arrivals()).sum();
    let mut classes: Vec<ImportanceClass> = Vec::new();
    let (mut came, mut quantile) = (0u64, None);
    for row in rows {
        // By the middle of its arrivals, so that one large class does not swallow its neighbours.
        let middle = came as f64 + row.tally.arrivals() as f64 / 2.0;
        let now = if rows.len() <= most { None } else { Some((middle / whole.max(1) as f64 * most as f64) as usize) };
        match classes.last_mut() {
            Some(class) if now.is_some() && now == quantile => {
                class.to = row.to;
                class.tally.add(&row.tally);
                class.arrivals += row.distinct + row.duplicates;
            }
            _ => classes.push(ImportanceClass {
                from: row.from,
                to: row.to,
                arrivals: row.distinct + row.duplicates,
                tally: row.tally,
            }),
        }
        (came, quantile) = (came + row.tally.arrivals(), now);
    }
    classes
}

/// Importances taken together.
#[derive(Debug, Clone, Copy)]
pub struct ImportanceClass {
    /// The least.
    pub from: f64,
    /// The greatest.
    pub to: f64,
    /// How many arrivals had one of them.
    pub arrivals: u64,
    /// How verdicts and truth met there, in all runs.
    pub tally: Tally,
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom::{Hashing, Key as _};
    use everbloom_cells::key::Generator;

    #[test]
    fn the_stated_error_of_a_sample_of_clustered_keys_holds_what_it_says() {
        // Keys of 50 arrivals that are missed always or never, and keys of one: a binomial ± would be far too small.
        let arrivals = |key: u64| if key.is_multiple_of(10) { 50u32 } else { 1 };
        let missed = |key: u64| key.is_multiple_of(20);
        let keys = 20_000u64;
        let all: (f64, f64) = (0..keys).fold((0.0, 0.0), |sum, key| {
            let of = f64::from(arrivals(key));
            (sum.0 + if missed(key) { of } else { 0.0 }, sum.1 + of)
        });
        let share = 0.1;
        let (mut within, trials) = (0, 200);
        for trial in 0..trials {
            let (mut groups, mut generator) = (Groups::of_sample(share), Generator::seeded(trial));
            let mut sum = (0.0, 0.0);
            for key in 0..keys {
                if generator.unit() < share {
                    let hash = key.hash_with(&Hashing::seeded(trial));
                    for _ in 0..arrivals(key) {
                        groups.record(hash, true, !missed(key));
                        sum = (sum.0 + f64::from(u8::from(missed(key))), sum.1 + 1.0);
                    }
                }
            }
            let error = groups.errors().measured_fnr_error.expect("duplicates");
            within += u32::from((sum.0 / sum.1 - all.0 / all.1).abs() <= error);
        }
        // Two standard errors hold 95 %; the binomial spread of that over the trials is 1.5 %.
        let sigma = (0.95f64 * 0.05 / trials as f64).sqrt();
        assert!(f64::from(within) / trials as f64 > 0.95 - 4.0 * sigma, "{within} of {trials}");
        assert!(within < trials as u32, "a ± that always holds says nothing");
    }

    /// A report with this rate of false positives throughout, and this ± of it by a sample.
    fn report(rate: f64, by_keys: Option<f64>) -> Report {
        Report {
            promise: "kept",
            measured_fpr: Some(rate),
            late_fpr: Some(rate),
            wfp: Some(rate),
            ns_per_item: Some(1.0),
            errors: by_keys.map(|error| Errors { measured_fpr_error: Some(error), ..Errors::default() }),
            ..Report::default()
        }
    }

    #[test]
    fn few_seeds_have_a_mean_within_its_stated_error_as_often_as_many() {
        for seeds in [2usize, 3, 5, 20] {
            let (mut generator, trials, mut within) = (Generator::seeded(seeds as u64), 4000, 0);
            for _ in 0..trials {
                // A sum of twelve is normal enough: mean 6, variance 1.
                let mut normal = || (0..12).map(|_| generator.unit()).sum::<f64>();
                let runs: Vec<Report> = (0..seeds).map(|_| report(normal(), None)).collect();
                let mean = mean_of(runs[0].clone(), &runs);
                let (rate, errors) = (mean.measured_fpr.expect("a rate"), mean.errors.expect("a ±"));
                within += u32::from((rate - 6.0).abs() <= errors.measured_fpr_error.expect("a ±"));
            }
            // 95 % of them, and the binomial spread of that.
            let (share, sigma) = (f64::from(within) / f64::from(trials), (0.95f64 * 0.05 / f64::from(trials)).sqrt());
            assert!((share - 0.95).abs() < 4.0 * sigma + 0.005, "{share} with {seeds} seeds");
        }
    }

    #[test]
    fn what_a_sample_adds_is_in_the_stated_error_of_a_mean_or_there_is_none() {
        let runs = [report(0.1, Some(0.03)), report(0.1, Some(0.03))];
        let errors = mean_of(runs[0].clone(), &runs).errors.expect("a ±");
        // Seeds alike, one sample: all that is left is its own.
        assert!((errors.measured_fpr_error.expect("a ±") - 0.03).abs() < 1e-12, "{errors:?}");
        assert_eq!((errors.late_fpr_error, errors.wfp_error), (None, None), "nobody knows what the sample adds");
        assert_eq!(errors.ns_per_item_error, Some(0.0));
    }

    #[test]
    fn importances_fall_into_at_most_so_many_classes_of_about_as_many_arrivals() {
        let row = |importance: u32, count: u64| {
            let tally = Tally { distinct: count, ..Tally::default() };
            ImportanceRow::new(f64::from(importance), &tally)
        };
        let even: Vec<_> = (1..=50).map(|importance| row(importance, 100)).collect();
        let found = classes(&even, 10);
        assert_eq!(found.iter().map(|class| class.arrivals).collect::<Vec<_>>(), [500; 10]);
        assert_eq!((found[0].from, found[0].to, found[9].to), (1.0, 5.0, 50.0));
        let skewed: Vec<_> =
            (1..=50).map(|importance| row(importance, if importance == 7 { 100_000 } else { 100 })).collect();
        let found = classes(&skewed, 10);
        assert!((2..=10).contains(&found.len()), "{found:?}");
        assert_eq!(found.iter().map(|class| class.arrivals).sum::<u64>(), 104_900);
        let few: Vec<_> = (1..=10).map(|importance| row(importance, u64::from(importance))).collect();
        assert_eq!(classes(&few, 10).len(), 10, "what fits is left as it is");
        assert!(classes(&[], 10).is_empty());
    }
}
