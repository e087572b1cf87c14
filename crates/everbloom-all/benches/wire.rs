//! Filters on the wire: how small they get at an equal rate, and how fast they come back.
//!
//! `cargo bench -p everbloom-all --bench wire [-- --quick | --rounds N]`
//!
//! The usual filter is sent as it is; the others are planned for compression. What is sent is the whole
//! document, header and checksums included. Every filter must answer for all its keys after the journey,
//! and its rate is measured on a million others.

mod harness;

use everbloom::{AnyFilter, FilterExt, Goal, codec};
use everbloom_all::KINDS;
use harness::keys::keys;
use harness::table::{self, Bar, Bound};
use harness::{Options, Samples, per_item, turn};

fn main() {
    let options = Options::from_arguments(&[10_000_000], &[1_000_000]);
    let items = options.sizes[0];
    println!("# On the wire: {items} keys, {} rounds, CPU time", options.rounds);
    let mut bars = Vec::new();
    // 8 bits a key and the rate they come to; 1 %; 0.1 %, where one hash would take 70 times the memory.
    let eight = Goal::new().expected_items(items).memory_bits(items * 8).plan_among(KINDS, "bloom").expect("a plan");
    let eight_rate = eight.promise.fpr_bound;
    for (rate, bound) in [(eight_rate, Some(0.87)), (0.01, Some(0.85)), (0.001, None)] {
        run(items, rate, bound, &options, &mut bars);
    }
    table::print_bars(&bars);
}

/// A filter as it is sent.
struct Parcel {
    name: &'static str,
    filter: AnyFilter,
    sent: Vec<u8>,
    packing: Samples,
    unpacking: Samples,
    wrong: f64,
}

impl Parcel {
    fn new(name: &'static str, goal: &Goal, compressed: bool, inside: &[u64], others: &[u64]) -> Self {
        let goal = if compressed { goal.clone().compressed() } else { goal.clone() };
        let mut filter = goal.plan_among(KINDS, "bloom").and_then(|plan| plan.build()).expect("a filter that fits");
        filter.insert_batch(inside);
        let mut found = vec![false; others.len()];
        filter.contains_batch(others, &mut found);
        let wrong = found.iter().filter(|found| **found).count() as f64 / others.len() as f64;
        let (packing, unpacking) = (Samples::default(), Samples::default());
        Parcel { name, filter, sent: Vec::new(), packing, unpacking, wrong }
    }

    fn plain_bytes(&self) -> usize {
        self.filter.memory_bits() as usize / 8
    }

    /// There and back again; nanoseconds per plain byte.
    fn send(&mut self, inside: &[u64]) {
        let plain = self.plain_bytes();
        let compressed = self.name != USUAL;
        self.packing.0.push(per_item(plain, || {
            self.sent = if compressed { codec::encode_compressed(&*self.filter) } else { codec::encode(&*self.filter) };
        }));
        let mut copy = None;
        self.unpacking.0.push(per_item(plain, || copy = KINDS.decoder().limit(1 << 32).decode(&self.sent).ok()));
        let copy = copy.expect("its own bytes");
        assert!(inside.iter().step_by(97).all(|key| copy.contains(key)), "{}: a key was lost", self.name);
    }

    fn row(&self, items: u64, usual: f64) -> Vec<String> {
        let per_key = |bytes: usize| format!("{:.3}", bytes as f64 * 8.0 / items as f64);
        let speed = |samples: &Samples| format!("{:.0}", 1000.0 / samples.median());
        vec![
            self.name.into(),
            self.filter.spec().get("num_hashes").unwrap_or_default().into(),
            format!("{:.3}", self.wrong * 100.0),
            per_key(self.plain_bytes()),
            per_key(self.sent.len()),
            format!("{:.3}", self.sent.len() as f64 / usual),
            speed(&self.packing),
            speed(&self.unpacking),
        ]
    }
}

const USUAL: &str = "usual";

fn run(items: u64, rate: f64, bound: Option<f64>, options: &Options, bars: &mut Vec<Bar>) {
    let (inside, others) = (keys::<u64>(0, items as usize), keys::<u64>(items, 1_000_000));
    let goal = Goal::new().expected_items(items).fpr(rate);
    let usual_bits = goal.plan_among(KINDS, "bloom").expect("a plan").memory_bits;
    let twice = goal.clone().memory_bits(usual_bits * 2);
    let mut parcels = [
        Parcel::new(USUAL, &goal, false, &inside, &others),
        Parcel::new("compressed, in twice the memory", &twice, true, &inside, &others),
        Parcel::new("compressed", &goal, true, &inside, &others),
    ];
    for round in 0..options.rounds {
        for index in turn(round, parcels.len()) {
            parcels[index].send(&inside);
        }
    }
    let usual = parcels[0].sent.len() as f64;
    let rows: Vec<_> = parcels.iter().map(|parcel| parcel.row(items, usual)).collect();
    let columns = [
        "filter",
        "hashes",
        "error %",
        "bits/key in memory",
        "bits/key sent",
        "ratio",
        "packing MB/s",
        "unpacking MB/s",
    ];
    table::print(&format!("At a rate of {:.2} %", rate * 100.0), &columns, &rows);
    let sigma = (rate * (1.0 - rate) / others.len() as f64).sqrt();
    for parcel in &parcels {
        assert!(parcel.wrong <= rate + 4.0 * sigma, "{} errs in {} at {rate}", parcel.name, parcel.wrong);
        let Some(bound) = bound else { continue };
        if parcel.name == "compressed" {
            let ratio = Samples(vec![parcel.sent.len() as f64 / usual]).spread();
            let name = format!("{:.2} %: bytes sent, compressed / usual", rate * 100.0);
            bars.push(Bar { name, measured: ratio, bound: Bound::AtMost(bound) });
            let speed = Samples(parcel.unpacking.0.iter().map(|nanoseconds| 1000.0 / nanoseconds).collect()).spread();
            let name = format!("{:.2} %: unpacking, MB/s of plain bits", rate * 100.0);
            bars.push(Bar { name, measured: speed, bound: Bound::AtLeast(200.0) });
        }
    }
}
