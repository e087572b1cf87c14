//! Filters that never forget, beside other libraries and the floor that memory sets.
//!
//! `cargo bench -p everbloom-all --bench membership [-- --quick | --kib N | --rounds N]`
//!
//! All contenders get the same memory and the same keys, ten bits to a key. Answers are checked while
//! they are timed: every inserted key must be found, and the share of others that are found must be
//! what theory says, within five standard deviations.

mod harness;

use everbloom::FilterExt;
use everbloom::{Filter, Hashing};
use harness::floor::{Floor, hash_all};
use harness::keys::{BenchKey, Long, keys};
use harness::peers::{
    self, BLOCKED, BLOCKED_SINGLE, BLOOM, BLOOM_SINGLE, COUNTING, Contender, FASTBLOOM, SBBF_FOLD, SBBF_OURS, Timed,
};
use harness::table::{self, Bar, Bound, size_name};
use harness::{Options, Samples, Spread, per_item, turn};

const BITS_PER_KEY: u64 = 10;

/// Numbers of keys that are never inserted.
const ABSENT: u64 = 1 << 40;

/// Keys that go before the timed ones, to bring a filter to where it lives when it is in use: three
/// for every line if it can live in a cache, some otherwise.
fn warm_up(bytes: u64) -> u64 {
    if bytes <= 32 << 20 { 3 * bytes / 64 } else { 1 << 15 }
}

fn main() {
    let options = Options::from_arguments(&[256 << 10, 8 << 20, 256 << 20], &[256 << 10, 8 << 20]);
    println!("# Membership filters: {BITS_PER_KEY} bits a key, {} rounds, ns per key of CPU time", options.rounds);
    let mut bars = Vec::new();
    for bytes in &options.sizes {
        run_size(*bytes, &options, &mut bars);
    }
    price_of_blocking(&options, &mut bars);
    table::print_bars(&bars);
}

/// One size: the filters are filled, then asked, with both kinds of keys.
fn run_size(bytes: u64, options: &Options, bars: &mut Vec<Bar>) {
    let items = bytes * 8 / BITS_PER_KEY;
    let chunk = (1usize << 15).min(bytes as usize / 16).min(items as usize / (4 * options.rounds));
    let mut field = Field {
        contenders: peers::contenders(bytes, items),
        floor: Floor::new(bytes),
        rounds: options.rounds,
        chunk,
        warm_up: warm_up(bytes),
        bulk: items - 2 * (options.rounds * chunk) as u64,
    };
    field.fill_bulk();
    let adds = (field.time_inserts::<u64>(), field.time_inserts::<Long>());
    let sealing = field.seal(items);
    let finds = (field.time_finds::<u64>(), field.time_finds::<Long>());
    field.report::<u64>(bytes, items, &adds.0, &finds.0, &sealing, bars);
    field.report::<Long>(bytes, items, &adds.1, &finds.1, &sealing, bars);
}

/// All contenders at one size.
struct Field {
    contenders: Vec<Box<dyn Contender>>,
    floor: Floor,
    rounds: usize,
    chunk: usize,
    warm_up: u64,
    /// How many keys are inserted before the timed ones.
    bulk: u64,
}

/// What a pass over all rounds measured.
#[derive(Default)]
struct Pass {
    hashing: Samples,
    line: Samples,
    first: Vec<Samples>,
    second: Vec<Samples>,
    false_positives: Vec<usize>,
}

impl Pass {
    fn new(contenders: usize) -> Self {
        let samples = vec![Samples::default(); contenders];
        Pass { first: samples.clone(), second: samples, false_positives: vec![0; contenders], ..Pass::default() }
    }
}

impl Field {
    fn fill_bulk(&mut self) {
        const STEP: u64 = 1 << 16;
        for start in (0..self.bulk).step_by(STEP as usize) {
            let keys: Vec<u64> = keys(start, STEP.min(self.bulk - start) as usize);
            self.contenders.iter_mut().for_each(|contender| contender.insert(&keys));
        }
    }

    /// The keys that are inserted in a round, and asked for in the same round later.
    fn inserted<K: BenchKey>(&self, round: usize) -> Vec<K> {
        keys(self.bulk + (round * self.chunk) as u64, self.chunk)
    }

    /// Some of the keys that are inside from the start.
    fn warm_up_keys(&self, round: usize) -> Vec<u64> {
        let count = self.warm_up.min(self.bulk);
        keys(round as u64 * count % (self.bulk - count + 1), count as usize)
    }

    fn time_inserts<K: BenchKey>(&mut self) -> Pass
    where
        dyn Contender: Timed<K>,
    {
        let count = self.contenders.len();
        let mut pass = Pass::new(count);
        for round in 0..self.rounds {
            let keys: Vec<K> = self.inserted(round);
            let warm_up: Vec<u64> = self.warm_up_keys(round);
            self.floor.aim(&warm_up);
            self.floor.change();
            self.floor.aim(&keys);
            pass.hashing.0.push(per_item(self.chunk, || hash_all(&keys, &Hashing::default())));
            pass.line.0.push(per_item(self.chunk, || self.floor.change()));
            for index in turn(round, count) {
                let contender = &mut self.contenders[index];
                Timed::<u64>::warm_up(contender.as_mut(), &warm_up);
                pass.first[index].0.push(per_item(keys.len(), || contender.insert(&keys)));
            }
        }
        pass
    }

    /// Nanoseconds per key that finishing the contenders took.
    fn seal(&mut self, items: u64) -> Vec<f64> {
        self.contenders.iter_mut().map(|contender| per_item(items as usize, || contender.seal())).collect()
    }

    fn time_finds<K: BenchKey>(&mut self) -> Pass
    where
        dyn Contender: Timed<K>,
    {
        let count = self.contenders.len();
        let mut pass = Pass::new(count);
        for round in 0..self.rounds {
            let (present, absent): (Vec<K>, Vec<K>) =
                (self.inserted(round), keys(ABSENT + (round * self.chunk) as u64, self.chunk));
            let warm_up: Vec<u64> = keys(2 * ABSENT + round as u64 * self.warm_up, self.warm_up as usize);
            self.floor.aim(&warm_up);
            self.floor.read();
            self.floor.aim(&absent);
            pass.line.0.push(per_item(self.chunk, || self.floor.read()));
            pass.hashing.0.push(per_item(self.chunk, || hash_all(&absent, &Hashing::default())));
            for index in turn(round, count) {
                let contender = &self.contenders[index];
                Timed::<u64>::find(contender.as_ref(), &warm_up);
                let mut found = (0, 0);
                pass.first[index].0.push(per_item(self.chunk, || found.0 = contender.find(&absent)));
                pass.second[index].0.push(per_item(self.chunk, || found.1 = contender.find(&present)));
                assert_eq!(found.1, present.len(), "{} lost keys", contender.name());
                pass.false_positives[index] += found.0;
            }
        }
        pass
    }

    fn report<K: BenchKey>(
        &self,
        bytes: u64,
        items: u64,
        adds: &Pass,
        finds: &Pass,
        sealing: &[f64],
        bars: &mut Vec<Bar>,
    ) {
        let nanoseconds = |samples: &Samples| format!("{:.1}", samples.median());
        let dash = String::from("–");
        let mut rows = vec![
            vec!["hashing alone".into(), nanoseconds(&adds.hashing), nanoseconds(&finds.hashing), dash.clone()],
            vec!["line floor (RMW / read)".into(), nanoseconds(&adds.line), nanoseconds(&finds.line), dash.clone()],
        ];
        rows.iter_mut().for_each(|row| row.extend([dash.clone(), dash.clone()]));
        let asked = self.rounds * self.chunk;
        for (index, contender) in self.contenders.iter().enumerate() {
            let rate = finds.false_positives[index] as f64 / asked as f64;
            check_rate(contender.as_ref(), rate, items, asked);
            rows.push(vec![
                contender.name(),
                format!("{:.1}", adds.first[index].median() + sealing[index]),
                nanoseconds(&finds.first[index]),
                nanoseconds(&finds.second[index]),
                format!("{:.3}", 100.0 * rate),
                format!("{:.2}", contender.memory_bits() as f64 / items as f64),
            ]);
        }
        let columns = ["filter", "ns/add", "ns/find 0 %", "ns/find 100 %", "error %", "bits/item"];
        table::print(&format!("{}, {} keys", size_name(bytes), K::NAME), &columns, &rows);
        self.add_bars::<K>(bytes, adds, finds, bars);
    }

    fn add_bars<K: BenchKey>(&self, bytes: u64, adds: &Pass, finds: &Pass, bars: &mut Vec<Bar>) {
        let of = |samples: &[Samples], name: &str| {
            let index = self.contenders.iter().position(|contender| contender.name() == name);
            samples[index.expect("a contender")].clone()
        };
        let mut bar = |what: &str, measured: Spread, bound: Bound| {
            bars.push(Bar { name: format!("{}, {}: {what}", size_name(bytes), K::NAME), measured, bound });
        };
        let all = [("add", &adds.first), ("find 0 %", &finds.first), ("find 100 %", &finds.second)];
        for (what, samples) in all {
            let mut beside = |one: &str, other: &str, most: f64| {
                let measured = of(samples, one).over(&of(samples, other));
                bar(&format!("{what}, {one} / {other}"), measured, Bound::AtMost(most));
            };
            beside(BLOOM, FASTBLOOM, 1.0);
            beside(BLOOM_SINGLE, FASTBLOOM, 1.0);
            beside(COUNTING, BLOOM, 1.3);
            if bytes < 8 << 20 {
                beside(BLOCKED_SINGLE, SBBF_OURS, 1.0);
                beside(BLOCKED_SINGLE, SBBF_FOLD, 1.15);
            } else {
                beside(BLOCKED, SBBF_FOLD, 1.0);
            }
        }
        if bytes >= 8 << 20 {
            let (query, floor) = (of(&finds.first, BLOCKED), finds.line.plus(&finds.hashing));
            bar("blocked, batched query / (line read + hashing)", query.over(&floor), Bound::AtMost(1.15));
            let (insert, floor) = (of(&adds.first, BLOCKED), adds.line.plus(&adds.hashing));
            bar("blocked, batched insert / (line RMW + hashing)", insert.over(&floor), Bound::AtMost(1.15));
        }
        if bytes >= 256 << 20 {
            let faster = of(&adds.first, FASTBLOOM).over(&of(&adds.first, BLOOM));
            bar("add, fastbloom + foldhash / bloom, batched", faster, Bound::AtLeast(1.3));
        }
    }
}

/// Refuses a rate that theory does not explain.
fn check_rate(contender: &dyn Contender, rate: f64, items: u64, asked: usize) {
    let Some(predicted) = contender.predicted_fpr(items) else { return };
    let sigma = (predicted * (1.0 - predicted) / asked as f64).sqrt();
    assert!((rate - predicted).abs() <= 5.0 * sigma, "{}: {rate} where {predicted} was due", contender.name());
}

/// How many more false positives a blocked filter has than a classic one of the same size.
fn price_of_blocking(options: &Options, bars: &mut Vec<Bar>) {
    let bytes = 1u64 << 20;
    let asked = if options.quick { 200_000 } else { 1_000_000 };
    for (bits_per_key, bound) in [(10, 1.3), (16, 2.0)] {
        let items = bytes * 8 / bits_per_key;
        let (mut blocked, mut bloom) = (peers::blocked_of(bytes), peers::bloom_of(bytes, items));
        let inside: Vec<u64> = keys(0, items as usize);
        blocked.insert_batch(&inside);
        bloom.insert_batch(&inside);
        let count = |filter: &dyn Filter| {
            let absent = (0..options.rounds as u64).map(|round| keys::<u64>(ABSENT + round * asked, asked as usize));
            absent.map(|keys| peers::count_found(filter, &keys)).sum::<usize>() as f64
        };
        let (blocked, bloom) = (count(&blocked), count(&bloom));
        let (ratio, sigma) = (blocked / bloom, blocked / bloom * (1.0 / blocked + 1.0 / bloom).sqrt());
        let measured = Spread { low: ratio - sigma, median: ratio, high: ratio + sigma };
        let name = format!("false positives, blocked / classic at {bits_per_key} bits a key");
        bars.push(Bar { name, measured, bound: Bound::AtMost(bound) });
    }
}
