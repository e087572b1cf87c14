//! What choices are tried on: a stream as it comes, as often as wanted, and what is told of it; and whether a choice was good.

use crate::settings::{Kind, Setting};
use everbloom::{Goal, Hashing, Importance, Importances, Result};
use everbloom_cells::key::Generator;
use everbloom_forecast::Stream;
use everbloom_forecast::stream::Sample;
use everbloom_lab::datasets::real;
use everbloom_lab::evaluate::{Batch, Source};
use everbloom_lab::oracle::Oracle;

/// A stream, and what is told of it.
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) stream: Stream,
    open: Box<dyn Fn() -> Box<dyn Source>>,
}

impl Stage {
    /// The stream from its beginning.
    pub(crate) fn source(&self) -> Box<dyn Source> {
        (self.open)()
    }

    /// A generated stream that is described, or learned from another draw of it.
    pub(crate) fn of_setting(kind: Kind, arrivals: u64, seed: u64) -> Self {
        let (spec, bits_per_arrival, target_fpr) = ("auto".into(), 1.0, 0.01);
        let setting = Setting { spec, kind, arrivals, bits_per_arrival, target_fpr, seed };
        let stream = setting.stream();
        Stage { name: format!("{kind:?}"), stream, open: Box::new(move || Box::new(setting.source())) }
    }

    /// Keys that are learned from themselves.
    pub(crate) fn of_keys(name: &str, keys: Vec<u64>) -> Self {
        let open = move || Box::new(Keys { keys: keys.clone(), at: 0, oracle: Oracle::default() }) as Box<dyn Source>;
        Stage { name: name.into(), stream: learned(&mut *open()), open: Box::new(open) }
    }

    /// A recorded stream, learned from itself; nothing where the data folder is absent.
    pub(crate) fn recorded(name: &'static str) -> Option<Self> {
        let folder = real::folder()?;
        real::open(&folder, name).expect("a readable recording")?;
        let open = move || -> Box<dyn Source> {
            let recording = real::open(&folder, name).expect("a readable recording");
            Box::new(recording.expect("it was there"))
        };
        Some(Stage { name: name.into(), stream: learned(&mut *open()), open: Box::new(open) })
    }

    /// So many bits for each key, and the hash functions of a seed.
    pub(crate) fn goal(&self, bits_per_key: f64, seed: u64) -> Goal {
        let memory_bits = (self.stream.distinct() as f64 * bits_per_key) as u64;
        Goal::new().memory_bits(memory_bits).hashing(Hashing::seeded(seed)).expected_items(self.stream.distinct())
    }
}

fn learned(source: &mut dyn Source) -> Stream {
    let (mut sample, mut batch) = (Sample::default(), Batch::default());
    loop {
        batch.clear();
        source.fill(&Hashing::default(), &mut batch).expect("arrivals");
        if batch.hashes.is_empty() {
            return sample.finish().expect("enough repeats");
        }
        sample.observe(&batch.hashes, Importances::default());
    }
}

struct Keys {
    keys: Vec<u64>,
    at: usize,
    oracle: Oracle,
}

impl Source for Keys {
    fn fill(&mut self, hashing: &Hashing, batch: &mut Batch) -> Result<()> {
        let end = self.keys.len().min(self.at + Batch::SIZE);
        batch.hashes.extend(self.keys[self.at..end].iter().map(|key| hashing.hash_u64(*key)));
        batch.importances.resize(batch.hashes.len(), Importance::FULL);
        self.at = end;
        self.oracle.judge_all(&batch.hashes, &mut batch.truths)
    }
}

/// Streams of shapes that no description has.
pub(crate) const SHAPES: [&str; 4] = ["bursts", "phases", "recent pages", "one hot key"];

/// The keys of a stream of one of the [`SHAPES`].
pub(crate) fn shaped(shape: &str, arrivals: u64, seed: u64) -> Vec<u64> {
    let mut generator = Generator::seeded(seed);
    let universe = arrivals / 4;
    let mut recent = vec![0; 2000];
    let mut key = |at: u64| match shape {
        // A key comes ten times within fifty arrivals, and once more much later.
        "bursts" => (at + generator.below(50)) / 10 % (arrivals / 15),
        // Each quarter of the stream has keys of its own, and a few of the one before.
        "phases" => {
            let phase = at * 4 / arrivals - u64::from(generator.below(10) == 0 && at * 4 >= arrivals);
            phase * universe + generator.below(universe / 2)
        }
        // Pages that are looked at again and again, until another one takes their place.
        "recent pages" => {
            let place = generator.below(2000) as usize;
            if generator.below(3) == 0 {
                recent[place] = at;
            }
            recent[place]
        }
        _ => generator.below(2) * (1 + generator.below(universe)),
    };
    (0..arrivals).map(&mut key).collect()
}

/// Whether what was chosen is within 5 % of the best, but for luck: two standard deviations of what was measured.
pub(crate) fn is_near(chosen: f64, best: f64, sigma: f64) -> bool {
    chosen <= 1.05 * best + 2.0 * sigma
}

/// No more than so many of all are bad.
pub(crate) fn hold(what: &str, bad: &[&str], most_bad: usize) {
    assert!(bad.len() <= most_bad, "{what}:\n{}", bad.join("\n"));
}
