//! Stream filters beside naive twins and the line floor, at equal memory.
//!
//! `cargo bench -p everbloom-all --bench streams [-- --quick | --kib N | --rounds N]`
//!
//! The stream has one repeat of a recent key in every two arrivals, so that both verdicts occur.
//! Answers are checked while they are timed: a filter must recognise most of those repeats, and the
//! share of new keys that it calls duplicates must be small.

mod harness;

use everbloom::kind::Sharded;
use everbloom::{AnyFilter, Goal, Hashing, Importance, Importances, Key, KeyHash, Verdict};
use everbloom_all::KINDS;
use harness::floor::{Floor, hash_all};
use harness::keys::BenchKey;
use harness::naive::{NaiveReservoir, NaiveStable};
use harness::table::{self, Bar, Bound, size_name};
use harness::{Options, Samples, Spread, per_item, process_nanoseconds, turn};

/// The stable filters: so many hashes, decrements and the largest cell value.
const STABLE: (usize, usize, u8) = (4, 10, 3);
/// The reservoir filters: as many arrays as a target of 1 % needs.
const RESERVOIR_FILTERS: u64 = 7;

fn main() {
    let options = Options::from_arguments(&[1 << 20, 64 << 20, 512 << 20], &[1 << 20, 8 << 20]);
    println!("# Stream filters: {} rounds, u64 keys, ns per arrival of CPU time", options.rounds);
    let mut bars = Vec::new();
    for bytes in &options.sizes {
        run_size(*bytes, &options, &mut bars);
    }
    for bytes in &options.sizes {
        two_threads(*bytes, &options, &mut bars);
    }
    table::print_bars(&bars);
}

/// A stream in which every other arrival repeats a key from a short while ago.
struct Stream {
    next: u64,
}

impl Stream {
    /// How long ago repeated keys were last here, in arrivals.
    const LAG: usize = 4096;

    fn take(&mut self, count: usize) -> Vec<u64> {
        let mut keys = Vec::with_capacity(count);
        while keys.len() < count {
            let fresh = keys.len() < Self::LAG || keys.len() % 2 == 0;
            let key = if fresh { u64::numbered(self.next) } else { keys[keys.len() - Self::LAG + 1] };
            self.next += u64::from(fresh);
            keys.push(key);
        }
        keys
    }
}

/// A filter in the race: gives its verdicts on a part of the stream.
struct Contender {
    name: &'static str,
    observe: Box<Observe>,
}

/// Gives a verdict on each key.
type Observe = dyn FnMut(&[u64], &mut [Verdict]);

impl Contender {
    fn naive(name: &'static str, mut observe: impl FnMut(&u64) -> bool + 'static) -> Self {
        let observe = move |keys: &[u64], verdicts: &mut [Verdict]| {
            for (key, verdict) in keys.iter().zip(verdicts) {
                *verdict = Verdict::from_seen(observe(key));
            }
        };
        Contender { name, observe: Box::new(observe) }
    }

    fn batched(name: &'static str, mut filter: AnyFilter) -> Self {
        let observe = move |keys: &[u64], verdicts: &mut [Verdict]| {
            filter.observe_batch(keys, Importances::default(), verdicts).expect("one importance for each");
        };
        Contender { name, observe: Box::new(observe) }
    }

    fn single(name: &'static str, mut filter: AnyFilter) -> Self {
        Self::naive(name, move |key| !filter.observe(key, Importance::FULL).is_distinct())
    }
}

fn build(bytes: u64, spec: &str) -> AnyFilter {
    planned(Goal::new().memory_bits(bytes * 8).fpr(0.01), spec)
}

/// A filter whose pages are all there: the first to write on one would wait for the system to give it.
fn planned(goal: Goal, spec: &str) -> AnyFilter {
    let mut filter = goal.plan_among(KINDS, spec).and_then(|plan| plan.build()).expect("a filter that fits");
    filter.clear();
    filter
}

/// The stable filter of these benches, in one of its layouts; two bits to a cell.
fn stable(bytes: u64, layout: &str) -> AnyFilter {
    let (hashes, decrements, cell_max) = STABLE;
    let size = format!("num_cells={},cell_max={cell_max},num_hashes={hashes},decrements={decrements}", bytes * 4);
    let spec = format!("stable:{size},decrement=run,layout={layout},update=always");
    // All is given, and it errs more often than in one of a hundred: no rate is asked for.
    planned(Goal::new(), &spec)
}

fn reservoir(bytes: u64) -> AnyFilter {
    build(bytes, &format!("reservoir:num_filters={RESERVOIR_FILTERS},layout=blocked"))
}

const STABLE_NAIVE: &str = "stable, naive";
const STABLE_BLOCKED: &str = "stable, blocked, batched";
const RESERVOIR_NAIVE: &str = "reservoir, naive";
const RESERVOIR: &str = "reservoir, batched";
const RANKED: &str = "ranked, batched";

fn contenders(bytes: u64) -> Vec<Contender> {
    let hashing = Hashing::default();
    let (hashes, decrements, cell_max) = STABLE;
    let mut naive_stable = NaiveStable::new(bytes, hashes, decrements, cell_max);
    let mut naive_reservoir = NaiveReservoir::new(bytes, RESERVOIR_FILTERS);
    vec![
        Contender::naive(STABLE_NAIVE, move |key| naive_stable.observe(key, &hashing)),
        Contender::batched("stable, spread, batched", stable(bytes, "spread")),
        Contender::single("stable, blocked, one by one", stable(bytes, "blocked")),
        Contender::batched(STABLE_BLOCKED, stable(bytes, "blocked")),
        Contender::naive(RESERVOIR_NAIVE, move |key| naive_reservoir.observe(key, &hashing)),
        Contender::single("reservoir, one by one", reservoir(bytes)),
        Contender::batched(RESERVOIR, reservoir(bytes)),
        Contender::single("ranked, one by one", build(bytes, "ranked")),
        Contender::batched(RANKED, build(bytes, "ranked")),
    ]
}

/// How many verdicts of each kind were counted.
struct Asked {
    repeats: f64,
    fresh: f64,
}

/// What one contender did.
#[derive(Clone, Default)]
struct Record {
    time: Samples,
    found: u64,
    wrong: u64,
}

fn run_size(bytes: u64, options: &Options, bars: &mut Vec<Bar>) {
    let mut contenders = contenders(bytes);
    let mut records = vec![Record::default(); contenders.len()];
    let (mut hashing, mut line) = (Samples::default(), Samples::default());
    let mut floor = Floor::new(bytes);
    let mut stream = Stream { next: 0 };
    let (warm_up, chunk) = (if bytes <= 32 << 20 { bytes as usize / 16 } else { 1 << 15 }, 1 << 16);
    let mut verdicts = vec![Verdict::Distinct; warm_up.max(chunk)];
    for round in 0..options.rounds {
        let (before, keys) = (stream.take(warm_up), stream.take(chunk));
        floor.aim(&before);
        floor.change();
        floor.aim(&keys);
        hashing.0.push(per_item(chunk, || hash_all(&keys, &Hashing::default())));
        line.0.push(per_item(chunk, || floor.change()));
        for index in turn(round, contenders.len()) {
            let (contender, record) = (&mut contenders[index], &mut records[index]);
            (contender.observe)(&before, &mut verdicts);
            record.time.0.push(per_item(chunk, || (contender.observe)(&keys, &mut verdicts[..chunk])));
            let duplicates = |first: usize| {
                let every_other = verdicts[..chunk].iter().skip(first).step_by(2);
                every_other.filter(|verdict| !verdict.is_distinct()).count() as u64
            };
            record.found += duplicates(Stream::LAG + 1);
            record.wrong += duplicates(0);
        }
    }
    let asked = Asked {
        repeats: (options.rounds * (chunk - Stream::LAG)) as f64 / 2.0,
        fresh: (options.rounds * chunk) as f64 / 2.0,
    };
    check(&contenders, &records, &asked);
    report(bytes, &contenders, &records, &asked, &hashing, &line);
    add_bars(bytes, &contenders, &records, &line.plus(&hashing), bars);
}

/// Repeats a few thousand arrivals old must be found, and few new keys called duplicates.
fn check(contenders: &[Contender], records: &[Record], asked: &Asked) {
    for (contender, record) in contenders.iter().zip(records) {
        let (found, wrong) = (record.found as f64 / asked.repeats, record.wrong as f64 / asked.fresh);
        assert!(found > 0.95, "{} recognised only {found} of recent repeats", contender.name);
        assert!(wrong < 0.1, "{} called {wrong} of new keys duplicates", contender.name);
    }
}

fn report(bytes: u64, contenders: &[Contender], records: &[Record], asked: &Asked, hashing: &Samples, line: &Samples) {
    let row = |name: &str, samples: &Samples, found: String, wrong: String| {
        vec![name.into(), samples.spread().to_string(), found, wrong]
    };
    let dash = || String::from("–");
    let mut rows = vec![
        row("hashing alone", hashing, dash(), dash()),
        row("line floor (read-modify-write)", line, dash(), dash()),
    ];
    let percent = |count: u64, of: f64| format!("{:.2}", 100.0 * count as f64 / of);
    for (contender, record) in contenders.iter().zip(records) {
        rows.push(row(
            contender.name,
            &record.time,
            percent(record.found, asked.repeats),
            percent(record.wrong, asked.fresh),
        ));
    }
    table::print(&size_name(bytes), &["filter", "ns/arrival (quartiles)", "repeats found %", "error %"], &rows);
}

fn add_bars(bytes: u64, contenders: &[Contender], records: &[Record], floor: &Samples, bars: &mut Vec<Bar>) {
    let of = |name: &str| {
        let index = contenders.iter().position(|contender| contender.name == name);
        &records[index.expect("a contender")].time
    };
    let mut bar = |what: &str, measured: Spread, bound: Bound| {
        bars.push(Bar { name: format!("{}: {what}", size_name(bytes)), measured, bound });
    };
    let least = if bytes < 64 << 20 { 3.0 } else { 7.0 };
    bar("stable: naive / blocked, batched", of(STABLE_NAIVE).over(of(STABLE_BLOCKED)), Bound::AtLeast(least));
    bar("reservoir: naive / batched", of(RESERVOIR_NAIVE).over(of(RESERVOIR)), Bound::AtLeast(5.0));
    bar("ranked, batched / (line RMW + hashing)", of(RANKED).over(floor), Bound::AtMost(1.5));
}

/// The CPU time of two threads over that of one, for filters split by hash.
fn two_threads(bytes: u64, options: &Options, bars: &mut Vec<Bar>) {
    for kind in ["stable", "ranked"] {
        let plan = Goal::new().memory_bits(bytes * 8).fpr(0.01).plan_among(KINDS, &format!("{kind}:shards=8"));
        let plan = plan.expect("a plan");
        let mut filters = [1, 2].map(|_| Sharded::from_plan(&plan).expect("a filter that fits"));
        let mut times = [Samples::default(), Samples::default()];
        let mut stream = Stream { next: 0 };
        for round in 0..options.rounds {
            let hashes: Vec<KeyHash> = stream.take(1 << 19).iter().map(|key| key.hash_with(&plan.hashing)).collect();
            let mut verdicts = [vec![Verdict::Distinct; hashes.len()], vec![Verdict::Distinct; hashes.len()]];
            for index in turn(round, 2) {
                let start = process_nanoseconds();
                filters[index]
                    .observe_on(index + 1, &hashes, Importances::default(), &mut verdicts[index])
                    .expect("one importance for all");
                times[index].0.push(process_nanoseconds() - start);
            }
            assert!(verdicts[0] == verdicts[1], "{kind}: verdicts depend on the number of threads");
        }
        let name = format!("{}: {kind} in 8 shards, CPU time of two threads / one", size_name(bytes));
        bars.push(Bar { name, measured: times[1].over(&times[0]), bound: Bound::AtMost(1.25) });
    }
}
