//! A window of a million arrivals: what it promises over a hundred million, and how fast it is.
//!
//! `cargo bench -p everbloom-all --bench windows [-- --quick | --rounds N]`
//!
//! Two streams go through the filter. In one every arrival is new, so that slices are as full as they get:
//! the rate of false positives must keep the target. In the other every second arrival repeats a key of
//! the last million, the oldest of them included: not one may be missed. Then it runs beside a naive twin,
//! the paper's filter and query with an array for each slice, one arrival at a time.

mod harness;

use everbloom::filters::AgePartitioned;
use everbloom::{AnyFilter, Goal, Hashing, Importance, Importances, Verdict};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;
use harness::keys::{BenchKey as _, keys};
use harness::naive::NaiveWindow;
use harness::table::{self, Bar, Bound};
use harness::{Options, Samples, per_item, turn};

const WINDOW: usize = 1_000_000;
const TARGET: f64 = 0.01;
const BATCH: usize = 1 << 14;

fn main() {
    let options = Options::from_arguments(&[100_000_000], &[5_000_000]);
    let arrivals = options.sizes[0] as usize;
    println!("# A window of {WINDOW} arrivals at {TARGET}: {arrivals} arrivals, {} rounds", options.rounds);
    let mut rows = vec![all_new(arrivals), every_other_repeats(arrivals)];
    for row in &mut rows {
        row.insert(1, arrivals.to_string());
    }
    table::print(
        "The promise",
        &["stream", "arrivals", "error %", "bound %", "repeats in the window", "missed"],
        &rows,
    );
    let mut bars = Vec::new();
    speed(&options, &mut bars);
    table::print_bars(&bars);
}

fn filter() -> AnyFilter {
    let plan = Goal::new().fpr(TARGET).plan_among(KINDS, &format!("age_partitioned:window={WINDOW}"));
    plan.and_then(|plan| plan.build()).expect("a filter that fits")
}

/// Four standard deviations above the target, in so many trials.
fn bound(trials: f64) -> f64 {
    TARGET + 4.0 * (TARGET * (1.0 - TARGET) / trials).sqrt()
}

/// Every arrival is new: every duplicate is a false positive.
fn all_new(arrivals: usize) -> Vec<String> {
    let mut filter = filter();
    let mut verdicts = vec![Verdict::Distinct; BATCH];
    let mut wrong = 0u64;
    for start in (0..arrivals).step_by(BATCH) {
        let keys = keys::<u64>(start as u64, BATCH.min(arrivals - start));
        filter
            .observe_batch(&keys, Importances::default(), &mut verdicts[..keys.len()])
            .expect("one importance for each");
        wrong += verdicts[..keys.len()].iter().filter(|verdict| !verdict.is_distinct()).count() as u64;
    }
    let (rate, bound) = (wrong as f64 / arrivals as f64, bound(arrivals as f64));
    assert!(rate <= bound, "{rate} of new keys were called duplicates, {bound} allowed");
    vec!["all new".into(), format!("{:.4}", rate * 100.0), format!("{:.4}", bound * 100.0), "–".into(), "–".into()]
}

/// Every second arrival repeats one of the last `WINDOW`; one in a hundred of them the oldest.
fn every_other_repeats(arrivals: usize) -> Vec<String> {
    let mut filter = filter();
    let mut generator = Generator::seeded(1);
    let mut past = vec![0u64; WINDOW];
    let (mut batch, mut verdicts) = (Vec::with_capacity(BATCH), vec![Verdict::Distinct; BATCH]);
    let (mut repeats, mut missed, mut fresh, mut wrong) = (0u64, 0u64, 0u64, 0u64);
    for start in (0..arrivals).step_by(BATCH) {
        batch.clear();
        for arrival in start..(start + BATCH).min(arrivals) {
            let repeated = arrival >= WINDOW && arrival % 2 == 1;
            let lag = if generator.below(100) == 0 { WINDOW } else { 1 + generator.below(WINDOW as u64) as usize };
            let key = if repeated { past[(arrival - lag) % WINDOW] } else { u64::numbered(arrival as u64) };
            past[arrival % WINDOW] = key;
            batch.push(key);
        }
        filter
            .observe_batch(&batch, Importances::default(), &mut verdicts[..batch.len()])
            .expect("one importance for each");
        for (offset, verdict) in verdicts[..batch.len()].iter().enumerate() {
            let is_repeat = start + offset >= WINDOW && (start + offset) % 2 == 1;
            repeats += u64::from(is_repeat);
            fresh += u64::from(!is_repeat);
            missed += u64::from(is_repeat && verdict.is_distinct());
            wrong += u64::from(!is_repeat && !verdict.is_distinct());
        }
    }
    let (rate, bound) = (wrong as f64 / fresh as f64, bound(fresh as f64));
    assert_eq!(missed, 0, "of {repeats} repeats inside the window");
    assert!(rate <= bound, "{rate} of new keys were called duplicates, {bound} allowed");
    let percent = |rate: f64| format!("{:.4}", rate * 100.0);
    vec!["every other a repeat".into(), percent(rate), percent(bound), repeats.to_string(), missed.to_string()]
}

fn speed(options: &Options, bars: &mut Vec<Bar>) {
    let hashing = Hashing::default();
    let (mut batched, mut single) = (filter(), filter());
    let parameters = (&*batched as &dyn std::any::Any).downcast_ref::<AgePartitioned>().expect("its type").parameters();
    let slices = (parameters.generations() + parameters.num_hashes) as usize;
    let mut naive = NaiveWindow::new(batched.memory_bits(), slices, parameters.num_hashes as usize, WINDOW as u64);
    let names = ["naive twin, one by one", "age_partitioned, one by one", "age_partitioned, batched"];
    let (mut times, mut found) = ([(); 3].map(|()| Samples::default()), [0u64; 3]);
    let mut verdicts = vec![Verdict::Distinct; WINDOW];
    for round in 0..options.rounds + 1 {
        // Half new, half from a while ago; the first round fills the window.
        let part: Vec<u64> =
            (0..WINDOW as u64).map(|i| u64::numbered((round * WINDOW) as u64 / 2 + i - i % 2 * i.min(4000))).collect();
        for index in turn(round, 3) {
            let time = per_item(part.len(), || match index {
                0 => part.iter().zip(&mut verdicts).for_each(|(key, verdict)| {
                    *verdict = Verdict::from_seen(naive.observe(key, &hashing));
                }),
                1 => part.iter().zip(&mut verdicts).for_each(|(key, verdict)| {
                    *verdict = single.observe(key, Importance::FULL);
                }),
                _ => batched
                    .observe_batch(&part, Importances::default(), &mut verdicts)
                    .expect("one importance for each"),
            });
            found[index] += verdicts.iter().filter(|verdict| !verdict.is_distinct()).count() as u64;
            if round > 0 {
                times[index].0.push(time);
            }
        }
    }
    assert_eq!(found[1], found[2], "batches change the verdicts");
    let total = ((options.rounds + 1) * WINDOW) as f64;
    assert!(found[0].abs_diff(found[2]) as f64 <= 0.02 * total, "the twin does something else: {found:?}");
    let row = |index: usize| {
        let share = 100.0 * found[index] as f64 / total;
        vec![names[index].into(), times[index].spread().to_string(), format!("{share:.2}")]
    };
    let rows: Vec<_> = (0..3).map(row).collect();
    table::print(
        &format!("Speed, {} bits each", batched.memory_bits()),
        &["filter", "ns/arrival (quartiles)", "duplicates %"],
        &rows,
    );
    let name = "window of 1 M: naive / batched".to_string();
    bars.push(Bar { name, measured: times[0].over(&times[2]), bound: Bound::AtLeast(3.0) });
}
