//! The thesis's sets T and D, and the measures it reads off them.

use crate::harness::{assert_near, filter};
use everbloom::{Hashing, Importance, Importances, Key as _, Verdict};
use everbloom_cells::key::Generator;
use everbloom_lab::curve::{crossover, fn_share_line};
use everbloom_lab::datasets::{self, Arrival, Request};
use everbloom_lab::metrics::{ByImportance, Judged};
use everbloom_lab::oracle::IdOracle;
use everbloom_lab::suite::Sample;

const NUM_CELLS: usize = 65_536;
const NUM_HASHES: usize = 4;
const DECREMENTS: usize = 7;
const CELL_MAX: u8 = 4;
const SEEDS: u64 = 8;

/// IBF3, plainly: cells set to the maximum; cells lowered with probability ∝ 1/(importance mapped to
/// them so far), by rejection from all that were ever touched.
struct NaiveImportanceAware {
    cells: Vec<u8>,
    totals: Vec<f64>,
    touched: Vec<usize>,
    seed: u64,
    generator: Generator,
}

impl NaiveImportanceAware {
    fn new(seed: u64) -> Self {
        let generator = Generator::seeded(!seed);
        NaiveImportanceAware {
            cells: vec![0; NUM_CELLS],
            totals: vec![0.0; NUM_CELLS],
            touched: Vec::new(),
            seed,
            generator,
        }
    }

    fn pick(&mut self) -> usize {
        loop {
            let cell = self.touched[self.generator.below(self.touched.len() as u64) as usize];
            // No touched cell has less than the smallest importance, 1.
            if self.generator.unit() < 1.0 / self.totals[cell] {
                return cell;
            }
        }
    }

    fn observe(&mut self, arrival: Arrival) -> Verdict {
        let hashing = |index| Hashing::seeded(self.seed * 100 + index as u64);
        let cells: Vec<_> = (0..NUM_HASHES)
            .map(|index| (arrival.key.hash_with(&hashing(index)).low % NUM_CELLS as u64) as usize)
            .collect();
        let seen = cells.iter().all(|&cell| self.cells[cell] > 0);
        for _ in 0..if self.touched.is_empty() { 0 } else { DECREMENTS } {
            let cell = self.pick();
            self.cells[cell] = self.cells[cell].saturating_sub(1);
        }
        for cell in cells {
            if self.totals[cell] == 0.0 {
                self.touched.push(cell);
            }
            self.cells[cell] = CELL_MAX;
            self.totals[cell] += f64::from(arrival.importance);
        }
        Verdict::from_seen(seen)
    }
}

/// Bloom, stable and importance-aware on a set, told apart by importance.
fn judge(set: &str, seed: u64) -> [Judged; 3] {
    let request = Request { seed: 500 + seed, ..Default::default() };
    let stable =
        format!("stable:num_cells={NUM_CELLS},cell_max={CELL_MAX},num_hashes={NUM_HASHES},decrements={DECREMENTS}");
    let mut bloom = filter(&format!("bloom:num_bits={NUM_CELLS},num_hashes={NUM_HASHES}"), 1 << 20, seed);
    let mut stable = filter(&stable, 1 << 20, seed);
    let mut aware = NaiveImportanceAware::new(seed);
    let mut oracle = IdOracle::default();
    let mut judged = [(); 3].map(|()| Judged { by_importance: Some(ByImportance::default()), ..Judged::default() });
    for arrival in datasets::open(set, &request).expect(set) {
        let truth = oracle.judge(arrival.key);
        let importance = Importance::new(arrival.importance, 50).expect("in range");
        let hashes = [arrival.key.hash_with(&Hashing::seeded(seed))];
        let mut verdicts = [Verdict::Distinct; 2];
        bloom.observe_hashes(&hashes, Importances::All(importance), &mut verdicts[..1]).expect("one for all");
        stable.observe_hashes(&hashes, Importances::All(importance), &mut verdicts[1..]).expect("one for all");
        judged[0].record(importance, truth, verdicts[0]);
        judged[1].record(importance, truth, verdicts[1]);
        judged[2].record(importance, truth, aware.observe(arrival));
    }
    judged
}

/// One figure of each seed.
fn sample(judged: &[[Judged; 3]], filter: usize, figure: impl Fn(&Judged) -> Option<f64>) -> Sample {
    Sample(judged.iter().map(|seed| figure(&seed[filter]).expect("a figure")).collect())
}

#[test]
fn set_t_gives_the_reference_weighted_rates() {
    let judged: Vec<_> = (0..SEEDS).map(|seed| judge("linear", seed)).collect();
    let figures = [
        (0, "BF", (23.59, 0.10), (0.0, 0.0)),
        (1, "SBF", (13.50, 0.11), (13.49, 0.09)),
        (2, "IBF3", (13.70, 0.13), (6.42, 0.08)),
    ];
    for (filter, name, wfp, wfn) in figures {
        let arrivals = datasets::DEFAULT_ITEMS as f64;
        let near = |what: &str, sample: Sample, stated: (f64, f64)| {
            assert_near(&format!("{name} {what}"), &sample, stated, arrivals, 2);
        };
        near("wfp", sample(&judged, filter, |judged| judged.weights.wfp()), wfp);
        near("wfn", sample(&judged, filter, |judged| judged.weights.wfn()), wfn);
    }
}

#[test]
fn set_d_gives_the_reference_slopes_and_crossover() {
    let judged: Vec<_> = (0..SEEDS).map(|seed| judge("linear_70", seed)).collect();
    let curve = |judged: &Judged| judged.by_importance.clone().expect("a curve");
    let slope = |judged: &Judged| fn_share_line(&curve(judged)).map(|line| line.slope);
    // Points per unit of importance are percentages per unit, as the figures are.
    assert_near("SBF slope", &sample(&judged, 1, slope), (-0.004, 0.006), f64::INFINITY, 3);
    let falling = sample(&judged, 2, slope);
    assert_near("IBF3 slope", &falling, (-0.70, falling.deviation() * 100.0), f64::INFINITY, 2);
    let at: Vec<_> = judged.iter().filter_map(|[_, stable, aware]| crossover(&curve(aware), &curve(stable))).collect();
    let at = Sample(at).times(0.01);
    assert_near("crossover", &at, (17.5, 0.6), f64::INFINITY, 1);
}
