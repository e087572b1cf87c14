//! What an audit has found.

use super::divisions::start_of;
use super::estimate::{Covered, Measured, Moments, Sum, USUAL};
use super::tallies::Class;
use super::{Audit, IMPORTANCE_CLASSES};
use crate::Stream;
use crate::stream::FEWEST_REPEATS;
use everbloom::kind::rate_text;
use everbloom::{Error, Holds, Promise, Result};
use libm::exp2;

/// What an audit has found: rates with the intervals in which they are with a probability of 95 %.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AuditReport {
    /// Arrivals that it has seen.
    pub arrivals: u64,
    /// Keys that it follows by their hash.
    pub followed_keys: u64,
    /// One key in so many is followed so; with 1 the rates are exact.
    pub one_in: u64,
    /// Arrivals of the hottest keys, about, which are looked at one by one; one in 128 of them.
    pub covered_arrivals: u64,
    /// How many keys there are, about.
    pub estimated_keys: f64,
    /// Of new keys, those that were called repeats. Nothing if there were none.
    pub measured_fpr: Option<Measured>,
    /// Of repeats, those that were called new. Nothing if there were none.
    pub measured_fnr: Option<Measured>,
    /// Both rates in the stream's last part.
    pub last: LastPart,
    /// Missed repeats by how long ago their keys were last seen.
    pub by_lag: Vec<ByLag>,
    /// Both rates by importance, where importances were given.
    pub by_importance: Vec<ByImportance>,
}

/// Rates of the last 29 to 50 % of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LastPart {
    /// The arrival that it begins with, counted from one.
    pub from: u64,
    /// Of new keys, those that were called repeats.
    pub measured_fpr: Option<Measured>,
    /// Of repeats, those that were called new.
    pub measured_fnr: Option<Measured>,
}

/// Repeats whose keys were last seen so many arrivals ago.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ByLag {
    /// At least so many.
    pub from: u64,
    /// And less than so many.
    pub below: u64,
    /// Of these, those that were called new.
    pub measured_fnr: Measured,
}

/// Arrivals of some importances.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ByImportance {
    /// At least this share of the largest importance.
    pub from: f64,
    /// And less than this one, or the largest.
    pub below: f64,
    /// Of new keys, those that were called repeats.
    pub measured_fpr: Option<Measured>,
    /// Of repeats, those that were called new.
    pub measured_fnr: Option<Measured>,
}

/// A promise that an audit shows to be broken, beyond chance.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Breach {
    /// Whether it is the rate of false positives; of false negatives otherwise.
    pub is_fpr: bool,
    /// Whether it is that of the last part, and not of the whole.
    pub is_last: bool,
    /// What was measured.
    pub measured: Measured,
    /// What was promised.
    pub promised: f64,
}

impl std::fmt::Display for Breach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (of, taken) = if self.is_fpr { ("new keys", "repeats") } else { ("repeats", "new") };
        let (rate, promised) = (rate_text(self.measured.rate), rate_text(self.promised));
        let part = if self.is_last { " in the last part of the stream" } else { "" };
        write!(f, "{rate} of {of} were taken for {taken}{part}, instead of at most {promised}")
    }
}

/// Repeats that a filter called new.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Missed {
    /// How many there were, about; nothing if too few are followed to tell: the interval would be wider than the number.
    pub repeats: Option<f64>,
    /// Whether one was seen.
    pub is_any: bool,
    /// One key in so many is followed.
    pub one_in: u64,
    /// Three quarters of them, or more, came more than so many arrivals after their key was last seen: a power of two, less one.
    pub mostly_after: u64,
}

/// What rates are taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    New,
    NewLast,
    NewOf(u8),
    Repeats,
    RepeatsLast,
    RepeatsOf(u8),
    Lag(u8),
}

impl Group {
    fn index(self) -> usize {
        match self {
            Group::New => 0,
            Group::NewLast => 1,
            Group::Repeats => 2,
            Group::RepeatsLast => 3,
            Group::NewOf(importance) => 4 + usize::from(importance),
            Group::RepeatsOf(importance) => 12 + usize::from(importance),
            Group::Lag(lag) => 20 + usize::from(lag),
        }
    }
}

/// Groups in all: four, two for each importance, and the lags.
const GROUPS: usize = 4 + 2 * IMPORTANCE_CLASSES as usize + 64;

/// Sums by group, over sampled keys and over covered arrivals.
#[derive(Debug)]
struct Sums {
    sampled: [Sum; GROUPS],
    /// All and wrong.
    covered: [(u64, u64); GROUPS],
    /// The share of the covered arrivals that was counted.
    covered_share: f64,
}

impl Sums {
    fn of(&self, group: Group) -> (Moments, Covered) {
        let (all, wrong) = self.covered[group.index()];
        let covered = Covered { all: all as f64, wrong: wrong as f64, share: self.covered_share };
        (self.sampled[group.index()].moments(), covered)
    }
}

impl Audit {
    /// What it has found so far.
    pub fn report(&self) -> AuditReport {
        let sums = self.sums();
        let rate = |group| self.rate(&sums, group, USUAL);
        let lags = (0..64u8).filter_map(|lag| {
            let below = 1u64.checked_shl(u32::from(lag) + 1).unwrap_or(u64::MAX);
            Some(ByLag { from: 1 << lag, below, measured_fnr: rate(Group::Lag(lag))? })
        });
        let part = |class: u8| f64::from(class) / f64::from(IMPORTANCE_CLASSES);
        let classes = (0..IMPORTANCE_CLASSES as u8).filter(|_| self.weighted).map(|class| ByImportance {
            from: part(class),
            below: part(class + 1),
            measured_fpr: rate(Group::NewOf(class)),
            measured_fnr: rate(Group::RepeatsOf(class)),
        });
        AuditReport {
            arrivals: self.arrivals,
            followed_keys: self.keys.len() as u64,
            one_in: 1 << self.halvings,
            covered_arrivals: self.covered_arrivals() as u64,
            estimated_keys: self.keys.len() as f64 / self.share(),
            measured_fpr: rate(Group::New),
            measured_fnr: rate(Group::Repeats),
            last: LastPart {
                from: start_of(self.last_from()),
                measured_fpr: rate(Group::NewLast),
                measured_fnr: rate(Group::RepeatsLast),
            },
            by_lag: lags.collect(),
            by_importance: classes
                .filter(|class| class.measured_fpr.is_some() || class.measured_fnr.is_some())
                .collect(),
        }
    }

    /// Repeats that were called new, and how long after their keys were last seen.
    pub fn missed(&self) -> Missed {
        let report = self.report();
        let missed: Vec<(u64, f64)> =
            report.by_lag.iter().map(|lag| (lag.from, lag.measured_fnr.rate * lag.measured_fnr.of)).collect();
        let all: f64 = missed.iter().map(|(_, missed)| missed).sum();
        let mut below = 0.0;
        let mostly_after = missed.iter().find(|(_, missed)| {
            below += missed;
            below * 4.0 > all
        });
        let is_known = report.measured_fnr.is_none_or(|fnr| fnr.high - fnr.low <= fnr.rate);
        let repeats = report.measured_fnr.map_or(0.0, |fnr| fnr.rate * fnr.of);
        Missed {
            repeats: is_known.then_some(repeats),
            is_any: repeats > 0.0,
            one_in: report.one_in,
            mostly_after: mostly_after.map_or(0, |(from, _)| from - 1),
        }
    }

    /// Whether a promise is broken beyond chance: a rate is above what was promised by more than four standard deviations.
    pub fn breach(&self, promise: &Promise) -> Option<Breach> {
        if promise.holds == Holds::Never {
            return None;
        }
        let sums = self.sums();
        // Of a window, repeats within it are never missed.
        let fnr = self.horizon.map_or(promise.predicted_fnr, |_| Some(0.0));
        let promised = [
            (Group::New, Some(promise.fpr_bound)),
            (Group::NewLast, Some(promise.fpr_bound)),
            (Group::Repeats, fnr),
            (Group::RepeatsLast, fnr),
        ];
        promised.into_iter().find_map(|(group, promised)| {
            let (sampled, covered) = sums.of(group);
            let is_beyond = sampled.is_beyond(covered, self.share(), promised?);
            let measured = self.rate(&sums, group, USUAL).filter(|_| is_beyond)?;
            let is_last = matches!(group, Group::NewLast | Group::RepeatsLast);
            Some(Breach {
                is_fpr: matches!(group, Group::New | Group::NewLast),
                is_last,
                measured,
                promised: promised?,
            })
        })
    }

    /// What the stream was like: how many keys came, and how they came back. An error for windows, which count no key twice
    /// that was forgotten, and where there were too few repeats.
    pub fn stream(&self) -> Result<Stream> {
        let refused = |reason: &str, remedy: &str| Error::Infeasible {
            wanted: "a plan from this audit".into(),
            reason: reason.into(),
            remedy: remedy.into(),
        };
        if self.horizon.is_some() {
            return Err(refused("it is that of a window", "give a sample of the stream instead"));
        }
        let (report, arrivals) = (self.report(), self.arrivals as f64);
        let (sampled, covered) = self.sums().of(Group::Repeats);
        let repeats = sampled.x + covered.all;
        if repeats < FEWEST_REPEATS as f64 {
            let reason = format!("it has seen only {repeats} repeats of the keys that it follows");
            let remedy = format!("let it see {FEWEST_REPEATS}, or describe the stream");
            return Err(refused(&reason, &remedy));
        }
        let lags: Vec<(f64, f64)> = (report.by_lag.iter())
            .map(|lag| {
                // There is room for a lag only at arrivals − lag places. Within a class shorter lags are the more frequent.
                let places = (arrivals - lag.from as f64).max(1.0);
                ((lag.below as f64).min(arrivals.max(1.0)), lag.measured_fnr.of * arrivals / places)
            })
            .collect();
        let mut keys = report.estimated_keys.round().clamp(1.0, arrivals.max(1.0));
        // Lags in classes that double, and keys from a sample, need not fit together: the nearest that do.
        let mut stream = Stream::by_lag(self.arrivals, keys as u64, &lags);
        for _ in 0..20 {
            if stream.is_ok() {
                break;
            }
            keys = (keys * 1.02 + 1.0).min(arrivals);
            stream = Stream::by_lag(self.arrivals, keys as u64, &lags);
        }
        stream
    }

    /// The share of the keys that is followed.
    fn share(&self) -> f64 {
        exp2(-f64::from(self.halvings))
    }

    /// The share of the covered arrivals that is counted.
    fn covered_share(&self) -> f64 {
        if self.counts_each() { 1.0 } else { 1.0 / self.lots.one_in as f64 }
    }

    /// How many arrivals were covered, about.
    fn covered_arrivals(&self) -> f64 {
        (self.covered.arrivals as f64 / self.covered_share()).min(self.arrivals as f64)
    }

    fn rate(&self, sums: &Sums, group: Group, deviations: f64) -> Option<Measured> {
        let (sampled, covered) = sums.of(group);
        let uncovered = (self.arrivals as f64 - self.covered_arrivals()).max(0.0);
        sampled.rate_with(covered, self.share(), uncovered, deviations)
    }

    fn sums(&self) -> Sums {
        let covered_share = self.covered_share();
        let mut sums = Sums { sampled: [Sum::default(); GROUPS], covered: [(0, 0); GROUPS], covered_share };
        let last = self.last_from();
        // A key has few of the groups: only these are looked at.
        let (mut of_key, mut counted) = ([(0, 0); GROUPS], Vec::new());
        for followed in self.keys.values() {
            let first = (1, u64::from(followed.wrong));
            let firsts = [Class::NewAgain, Class::New(followed.division), Class::NewOf(followed.importance)];
            let firsts = firsts.into_iter().map(|class| (class, first));
            for (class, counts) in firsts.chain(self.tallies.of(followed.head)) {
                for group in groups_of(class, last).into_iter().flatten() {
                    counted.push(group.index());
                    add(&mut of_key[group.index()], counts);
                }
            }
            for group in counted.drain(..) {
                // Once, though it may have come several times.
                let counts = std::mem::take(&mut of_key[group]);
                sums.sampled[group].add(counts);
            }
        }
        for (class, counts) in self.covered.iter() {
            groups_of(class, last)
                .into_iter()
                .flatten()
                .for_each(|group| add(&mut sums.covered[group.index()], counts));
        }
        sums
    }
}

fn add(sum: &mut (u64, u64), counts: (u64, u64)) {
    *sum = (sum.0.saturating_add(counts.0), sum.1.saturating_add(counts.1));
}

/// The groups that a class belongs to.
fn groups_of(class: Class, last: u8) -> [Option<Group>; 2] {
    match class {
        Class::Lag(lag) => [Some(Group::Repeats), Some(Group::Lag(lag))],
        Class::Repeats(division) => [(division >= last).then_some(Group::RepeatsLast), None],
        Class::RepeatsOf(importance) => [Some(Group::RepeatsOf(importance)), None],
        Class::NewAgain => [Some(Group::New), None],
        Class::New(division) => [(division >= last).then_some(Group::NewLast), None],
        Class::NewOf(importance) => [Some(Group::NewOf(importance)), None],
    }
}
