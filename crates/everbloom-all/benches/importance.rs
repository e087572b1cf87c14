//! The importance-aware filters beside the stable filter and naive deletions.
//!
//! `cargo bench -p everbloom-all --bench importance [-- --quick | --rounds N]`
//!
//! The thesis's parameters: 4 hashes, 7 decrements, cells up to 4, importances 1 to 50 fixed per key,
//! keys drawn uniformly from a little more of them than there are cells. The naive twins pass over all
//! cells for every arrival, a full sort or a linear roulette, and are given few arrivals. Answers are
//! checked: the most recent key must be known after it was observed with full importance.

mod harness;

use everbloom::{AnyFilter, Goal, Hashing, Importance, Importances, Key, KeyHash, Verdict};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;
use harness::keys::BenchKey;
use harness::table::{self, Bar, Bound};
use harness::{Options, Samples, per_item, turn};

const HASHES: usize = 4;
const DECREMENTS: usize = 7;
const CELL_MAX: u8 = 4;
const MOST_IMPORTANT: u32 = 50;

fn main() {
    // Sizes are cells here.
    let options = Options::from_arguments(&[1 << 16, 1 << 22], &[1 << 16]);
    println!("# Importance-aware filters: {} rounds, u64 keys, ns per arrival of CPU time", options.rounds);
    let mut bars = Vec::new();
    for cells in &options.sizes {
        run_size(*cells, &options, &mut bars);
    }
    table::print_bars(&bars);
}

/// Keys drawn uniformly, each with an importance of its own.
struct Stream {
    generator: Generator,
    universe: u64,
}

impl Stream {
    fn take(&mut self, count: usize) -> (Vec<u64>, Vec<Importance>) {
        let numbers: Vec<u64> = (0..count).map(|_| self.generator.below(self.universe)).collect();
        let importance = |number: &u64| {
            let value = 1 + (u64::numbered(*number) >> 32) as u32 % MOST_IMPORTANT;
            Importance::new(value, MOST_IMPORTANT).expect("within its range")
        };
        (numbers.iter().map(|number| u64::numbered(*number)).collect(), numbers.iter().map(importance).collect())
    }
}

/// Which cells a naive filter lowers.
#[derive(Clone, Copy)]
enum NaiveDeletion {
    /// The least important ones that are not zero, by sorting all of them.
    FullSort,
    /// By a roulette over all of them, with odds of one over the importance.
    LinearRoulette,
}

/// An importance-aware filter that passes over all cells for every arrival.
struct Naive {
    cells: Vec<u8>,
    total: Vec<u64>,
    generator: Generator,
    deletion: NaiveDeletion,
}

impl Naive {
    fn new(cells: u64, deletion: NaiveDeletion) -> Self {
        let cells = cells as usize;
        Naive { cells: vec![0; cells], total: vec![0; cells], generator: Generator::seeded(1), deletion }
    }

    fn picks(&mut self) -> Vec<usize> {
        match self.deletion {
            NaiveDeletion::FullSort => {
                let mut order: Vec<usize> = (0..self.cells.len()).filter(|cell| self.cells[*cell] > 0).collect();
                order.sort_by_key(|cell| (self.total[*cell], *cell));
                order.truncate(DECREMENTS);
                order
            }
            NaiveDeletion::LinearRoulette => {
                let odds = |total: &u64| if *total == 0 { 0.0 } else { 1.0 / *total as f64 };
                let all: f64 = self.total.iter().map(odds).sum();
                let points: Vec<f64> = (0..DECREMENTS).map(|_| self.generator.unit() * all).collect();
                let find = |point: f64| {
                    let mut below = 0.0;
                    self.total.iter().position(|total| {
                        below += odds(total);
                        below > point
                    })
                };
                points.into_iter().filter_map(find).collect()
            }
        }
    }

    fn observe(&mut self, hash: KeyHash, importance: Importance) -> bool {
        let probes = hash.probes(self.cells.len() as u64).take(HASHES);
        let seen = probes.clone().all(|cell| self.cells[cell as usize] > 0);
        for cell in self.picks() {
            self.cells[cell] = self.cells[cell].saturating_sub(1);
        }
        for cell in probes {
            self.cells[cell as usize] = CELL_MAX;
            self.total[cell as usize] += u64::from(importance.value());
        }
        seen
    }
}

/// Kinds and decrements. With the thesis's, ibf6 has a dozen cells in use, so it is also tried as it fills.
const CONTENDERS: [(&str, usize); 10] = [
    ("stable", DECREMENTS),
    ("ibf1", DECREMENTS),
    ("ibf2", DECREMENTS),
    ("ibf3", DECREMENTS),
    ("ibf4", DECREMENTS),
    ("ibf5", DECREMENTS),
    ("ibf6", DECREMENTS),
    ("ibf6", 6),
    ("ibf6", 5),
    ("ibf6", 3),
];

fn label((kind, decrements): (&str, usize)) -> String {
    if decrements == DECREMENTS { kind.into() } else { format!("{kind}, {decrements} decrements") }
}

fn build((kind, decrements): (&str, usize), cells: u64) -> AnyFilter {
    let size = format!("num_cells={cells},cell_max={CELL_MAX},num_hashes={HASHES},decrements={decrements}");
    let plan = Goal::new().plan_among(KINDS, &format!("{kind}:{size}"));
    plan.and_then(|plan| plan.build()).expect("a filter that fits")
}

fn run_size(cells: u64, options: &Options, bars: &mut Vec<Bar>) {
    let mut filters: Vec<AnyFilter> = CONTENDERS.map(|contender| build(contender, cells)).into();
    let mut stream = Stream { generator: Generator::seeded(7), universe: cells * 75_600 / 65_536 };
    let mut times = vec![Samples::default(); filters.len()];
    let chunk = 1 << 14;
    let mut verdicts = vec![Verdict::Distinct; chunk];
    // Until cells are as full as they get.
    for _ in 0..(cells as usize / chunk).max(4) {
        let (keys, importances) = stream.take(chunk);
        for filter in &mut filters {
            filter
                .observe_batch(&keys, Importances::Each(&importances), &mut verdicts)
                .expect("one importance for each");
        }
    }
    for round in 0..options.rounds {
        let (keys, importances) = stream.take(chunk);
        for index in turn(round, filters.len()) {
            let filter = &mut filters[index];
            times[index].0.push(per_item(chunk, || {
                filter
                    .observe_batch(&keys, Importances::Each(&importances), &mut verdicts)
                    .expect("one importance for each");
            }));
            filter.observe(keys[0], Importance::FULL);
            assert!(filter.contains(keys[0]), "{} forgot at once", label(CONTENDERS[index]));
        }
    }
    report(cells, &filters, &times, &naive_times(cells, options, &mut stream));
    add_bars(cells, &times, bars);
}

/// Naive twins, on few arrivals: each passes over all cells.
fn naive_times(cells: u64, options: &Options, stream: &mut Stream) -> Vec<(&'static str, Samples)> {
    let twins = [("full sort", NaiveDeletion::FullSort), ("linear roulette", NaiveDeletion::LinearRoulette)];
    let arrivals = ((1 << 20) / cells as usize).clamp(1, 16);
    let time = |(name, deletion)| {
        let mut twin = Naive::new(cells, deletion);
        // As full as the others: sorting or summing up an empty filter would be too easy.
        twin.total.fill(50);
        twin.cells.iter_mut().step_by(2).for_each(|cell| *cell = CELL_MAX);
        let sample = |_| {
            let (keys, importances) = stream.take(arrivals);
            per_item(arrivals, || {
                for (key, importance) in keys.iter().zip(&importances) {
                    std::hint::black_box(twin.observe(key.hash_with(&Hashing::default()), *importance));
                }
            })
        };
        (name, Samples((0..options.rounds.min(5)).map(sample).collect()))
    };
    twins.map(time).into_iter().collect()
}

fn report(cells: u64, filters: &[AnyFilter], times: &[Samples], naive: &[(&'static str, Samples)]) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for ((contender, filter), time) in CONTENDERS.into_iter().zip(filters).zip(times) {
        let ratio = time.over(&times[0]).to_string();
        let bits = format!("{:.1}", filter.memory_bits() as f64 / cells as f64);
        rows.push(vec![label(contender), time.spread().to_string(), ratio, bits]);
    }
    for (name, time) in naive {
        let ratio = format!("{:.0}", time.median() / times[0].median());
        rows.push(vec![format!("naive: {name}"), format!("{:.0}", time.median()), ratio, "–".into()]);
    }
    let columns = ["filter", "ns/arrival (quartiles)", "over stable (quartiles)", "bits/cell"];
    table::print(&format!("{cells} cells"), &columns, &rows);
}

fn add_bars(cells: u64, times: &[Samples], bars: &mut Vec<Bar>) {
    let barred = |&((_, decrements), _): &((_, usize), _)| decrements == DECREMENTS;
    for ((kind, _), time) in CONTENDERS.into_iter().zip(times).skip(1).filter(barred) {
        let bound = Bound::AtMost(match kind {
            "ibf1" => 1.5,
            // Deletion in proportion to importance: simple code was worth more than the last factor of two.
            "ibf3" | "ibf5" => 10.0,
            _ => 4.0,
        });
        bars.push(Bar { name: format!("{cells} cells: {kind} / stable"), measured: time.over(&times[0]), bound });
    }
}
