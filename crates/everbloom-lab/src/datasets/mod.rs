//! Streams to try filters on, and the registry that everything else iterates.
//!
//! Every data set is seeded and value-stable: the same request gives the same arrivals on every
//! machine. Keys are numbers; importances, where a set has them, are fixed per key.
//!
//! | name | arrivals |
//! |---|---|
//! | `uniform` | uniform draws over a universe sized for the wanted share of distinct arrivals |
//! | `zipf` | draws with probability ∝ rank^−exponent |
//! | `log_lag` | new keys, or the key of an arrival at a log-uniform distance back |
//! | `linear`, `linear_70` | the thesis's sets T and D: uniform draws, importance uniform in 1..50 |
//! | `exponential`, `exponential_70` | the same, importance log-uniform in 1..50 |
//! | `crawl` | a breadth-first web crawl, importance falling with depth |
//! | `all_distinct` | no key twice |
//!
//! [`real`] reads streams that people have recorded.

pub mod crawl;
mod importance;
pub mod lag;
pub mod real;
pub mod uniform;
pub mod zipf;

use crate::bad;
use crate::evaluate::{Batch, Source};
use crate::oracle::IdOracle;
use everbloom::kind::suggestion;
use everbloom::{Error, Hashing, Importance, Key as _, Result};

pub use uniform::universe_for;

/// One arrival of a synthetic stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The key.
    pub key: u64,
    /// How much it matters, at most the set's `importance_max`.
    pub importance: u32,
}

/// What is wanted of a data set; what is left out takes the set's default.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Request {
    /// Number of arrivals.
    pub items: Option<u64>,
    /// Share of arrivals that are distinct, in expectation.
    pub distinct: Option<f64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Exponent of a Zipf distribution.
    pub exponent: Option<f64>,
}

/// How many arrivals a set has unless asked otherwise: as many as the papers' smaller sets.
pub const DEFAULT_ITEMS: u64 = 100_000;

/// Sets that refer back to earlier arrivals keep four bytes for each: 4 GiB.
const MOST_REMEMBERED: u64 = 1 << 30;

impl Request {
    fn items(&self) -> u64 {
        self.items.unwrap_or(DEFAULT_ITEMS)
    }

    /// The wanted share of distinct arrivals, checked.
    fn share(&self) -> Result<Option<f64>> {
        match self.distinct {
            Some(share) if !(share > 0.0 && share <= 1.0) => {
                Err(bad("distinct", share, "above 0 and at most 1", "give the share of arrivals that are new, as 49%"))
            }
            share => Ok(share),
        }
    }

    /// Refuses more arrivals than a set that remembers them all can hold.
    fn remembered(&self) -> Result<()> {
        if self.items() <= MOST_REMEMBERED {
            return Ok(());
        }
        let remedy = "this set remembers every arrival; take uniform or zipf for longer streams";
        Err(bad("items", self.items(), &format!("at most {MOST_REMEMBERED}"), remedy))
    }

    fn without_exponent(&self) -> Result<()> {
        match self.exponent {
            None => Ok(()),
            Some(exponent) => Err(bad("exponent", exponent, "left out for this set", "only zipf has an exponent")),
        }
    }
}

/// What the registry knows about a data set.
pub struct Kind {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for listings.
    pub summary: &'static str,
    /// The largest importance.
    pub importance_max: u32,
    open: fn(&Request) -> Result<Arrivals>,
}

/// The arrivals of a set, one by one.
type Arrivals = Box<dyn Iterator<Item = Arrival> + Send>;

/// Every synthetic data set.
pub static KINDS: &[Kind] = &[
    Kind {
        name: "uniform",
        summary: "uniform draws; --distinct sizes the universe (default 49%)",
        importance_max: 1,
        open: uniform::open,
    },
    Kind {
        name: "zipf",
        summary: "draws with probability falling as rank^-exponent (default 1); --distinct sizes the universe (default: as many keys as items)",
        importance_max: 1,
        open: zipf::open,
    },
    Kind {
        name: "log_lag",
        summary: "new keys (--distinct, default 49%) and repeats at a log-uniform distance back",
        importance_max: 1,
        open: lag::open,
    },
    Kind {
        name: "linear",
        summary: "the thesis's set T: 44.5% repeats, importance uniform in 1..50",
        importance_max: importance::MAX,
        open: importance::open_linear,
    },
    Kind {
        name: "linear_70",
        summary: "the thesis's set D: 70% repeats, importance uniform in 1..50",
        importance_max: importance::MAX,
        open: importance::open_linear_70,
    },
    Kind {
        name: "exponential",
        summary: "set T with importance log-uniform in 1..50: many low, few high",
        importance_max: importance::MAX,
        open: importance::open_exponential,
    },
    Kind {
        name: "exponential_70",
        summary: "set D with importance log-uniform in 1..50",
        importance_max: importance::MAX,
        open: importance::open_exponential_70,
    },
    Kind {
        name: "crawl",
        summary: "a breadth-first crawl, 6 links a page, 73% repeats, importance falling with depth",
        importance_max: crawl::IMPORTANCE_MAX,
        open: crawl::open,
    },
    Kind { name: "all_distinct", summary: "no key twice", importance_max: 1, open: uniform::open_all_distinct },
];

/// The data set of this name, or an error that lists them.
pub fn kind(name: &str) -> Result<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let remedy = suggestion(name, KINDS.iter().map(|kind| kind.name), "take one of");
        bad("data set", name, "one of the registered ones", &remedy)
    })
}

/// Opens a data set by name.
pub fn open(name: &str, request: &Request) -> Result<Set> {
    let kind = kind(name)?;
    request.share()?;
    Ok(Set { importance_max: kind.importance_max, arrivals: (kind.open)(request)?, oracle: IdOracle::default() })
}

/// An open data set: an iterator over its arrivals, or a [`Source`] that knows the truth about them.
pub struct Set {
    /// The largest importance.
    pub importance_max: u32,
    arrivals: Arrivals,
    oracle: IdOracle,
}

impl Iterator for Set {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        self.arrivals.next()
    }
}

impl Source for Set {
    fn fill(&mut self, hashing: &Hashing, batch: &mut Batch) -> Result<()> {
        for arrival in self.arrivals.by_ref().take(Batch::SIZE) {
            batch.hashes.push(arrival.key.hash_with(hashing));
            batch.importances.push(Importance::new(arrival.importance, self.importance_max)?);
            batch.truths.push(self.oracle.judge(arrival.key));
        }
        Ok(())
    }
}

/// A share of distinct arrivals that a set cannot have.
fn unreachable_share(share: f64, reason: &str, remedy: &str) -> Error {
    Error::Infeasible {
        wanted: format!("a share of {share} distinct arrivals"),
        reason: reason.to_string(),
        remedy: remedy.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn all(name: &str, request: &Request) -> Vec<Arrival> {
        open(name, request).expect(name).collect()
    }

    fn distinct_share(arrivals: &[Arrival]) -> f64 {
        let keys: std::collections::BTreeSet<_> = arrivals.iter().map(|arrival| arrival.key).collect();
        keys.len() as f64 / arrivals.len() as f64
    }

    #[test]
    fn every_set_gives_as_many_arrivals_as_asked_and_the_same_ones_again() {
        for kind in KINDS {
            for items in [0, 1, 2, 1000] {
                let request = Request { items: Some(items), seed: 5, ..Default::default() };
                let arrivals = all(kind.name, &request);
                assert_eq!(arrivals.len() as u64, items, "{}", kind.name);
                assert_eq!(arrivals, all(kind.name, &request), "{}", kind.name);
            }
        }
    }

    #[test]
    fn importance_is_fixed_per_key_and_within_its_maximum() {
        for kind in KINDS {
            let mut known = BTreeMap::new();
            for arrival in all(kind.name, &Request::default()) {
                assert!((1..=kind.importance_max).contains(&arrival.importance), "{}", kind.name);
                assert_eq!(*known.entry(arrival.key).or_insert(arrival.importance), arrival.importance);
            }
        }
    }

    #[test]
    fn shares_of_distinct_arrivals_are_as_asked() {
        for (name, share) in [("uniform", 0.76), ("uniform", 0.1), ("zipf", 0.3), ("log_lag", 0.49), ("linear", 0.3)] {
            let request = Request { distinct: Some(share), ..Default::default() };
            let measured = distinct_share(&all(name, &request));
            // The number of distinct arrivals varies less than if each were new by a throw of its own.
            let sigma = (share * (1.0 - share) / DEFAULT_ITEMS as f64).sqrt();
            assert!((measured - share).abs() < 4.0 * sigma, "{name}: {measured}, not {share}");
        }
    }

    #[test]
    fn the_papers_sets_have_the_papers_shares() {
        for (name, repeats) in [("linear", 0.445), ("linear_70", 0.70), ("exponential", 0.445), ("crawl", 0.73)] {
            let measured = 1.0 - distinct_share(&all(name, &Request::default()));
            let rounding = 0.0005;
            let sigma = (repeats * (1.0 - repeats) / DEFAULT_ITEMS as f64).sqrt();
            assert!((measured - repeats).abs() < 4.0 * sigma + rounding, "{name}: {measured}, not {repeats}");
        }
    }

    #[test]
    fn arrivals_are_frozen() {
        // Value-stable across versions and machines: experiments quote seeds.
        let frozen: [(&str, [(u64, u32); 3]); 9] = [
            ("uniform", [(329, 1), (435, 1), (206, 1)]),
            ("zipf", [(16, 1), (4, 1), (76, 1)]),
            ("log_lag", [(252, 1), (235, 1), (190, 1)]),
            ("linear", [(411, 11), (543, 14), (257, 42)]),
            ("linear_70", [(170, 16), (224, 42), (106, 37)]),
            ("exponential", [(411, 2), (543, 2), (257, 26)]),
            ("exponential_70", [(170, 3), (224, 26), (106, 17)]),
            ("crawl", [(14, 5), (144, 4), (28, 5)]),
            ("all_distinct", [(500, 1), (501, 1), (502, 1)]),
        ];
        assert_eq!(frozen.map(|(name, _)| name).as_slice(), KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>());
        for (name, expected) in frozen {
            let arrivals = all(name, &Request { items: Some(1000), seed: 1, ..Default::default() });
            let seen = [500, 501, 502].map(|index| (arrivals[index].key, arrivals[index].importance));
            assert_eq!(seen, expected, "{name}");
        }
    }

    #[test]
    fn requests_that_make_no_sense_are_refused() {
        let request = |distinct| Request { distinct: Some(distinct), ..Default::default() };
        for share in [0.0, -1.0, 1.5, f64::NAN] {
            assert!(open("uniform", &request(share)).is_err(), "{share}");
        }
        assert!(open("unifrom", &Request::default()).is_err());
        assert!(open("zipf", &Request { exponent: Some(f64::NAN), ..Default::default() }).is_err());
        assert!(open("zipf", &Request { exponent: Some(3.0), ..request(0.9) }).is_err());
        assert!(open("uniform", &Request { exponent: Some(1.0), ..Default::default() }).is_err());
    }
}
