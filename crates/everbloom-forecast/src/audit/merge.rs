//! The audits of two parts of a stream as one.

use super::divisions::{division_of, start_of};
use super::lots::SamplingSchedule;
use super::tallies::{self, Class, NONE, Tallies};
use super::{Audit, Followed};
use everbloom::{Error, Result};

impl Audit {
    /// Takes in the audit of other arrivals, with the same seed, such as another shard's. Rates are then those of all
    /// verdicts, each as it was given; lags are those within a shard.
    pub fn merge(&mut self, other: &Audit) -> Result<()> {
        let followed = |audit: &Audit| (audit.seed, audit.horizon, audit.lots.one_in);
        if followed(self) != followed(other) {
            let told = |audit: &Audit| {
                format!("seed {:x}, window {:?}, one in {} drawn", audit.seed, audit.horizon, audit.lots.one_in)
            };
            return Err(Error::Mismatch {
                what: "the keys that their audits follow",
                left: told(self),
                right: told(other),
                remedy: "start the audits of all shards with one seed, one window and one version",
            });
        }
        while self.halvings < other.halvings {
            self.halve();
        }
        let total = self.arrivals + other.arrivals;
        // The last parts of both are the last part of the whole.
        let division = division_of(total);
        if division != self.division {
            self.shift_divisions(division);
        }
        let shift = i16::from(self.division) - i16::from(other.division);
        self.next_division = start_of(division + 1);
        self.covered.merge(&other.covered, shift);
        let mut theirs: Vec<_> = other.keys.iter().collect();
        theirs.sort_unstable_by_key(|(id, _)| **id);
        for (id, their) in theirs {
            if self.is_sampled(*id) {
                self.take_in(*id, their, &other.tallies, shift);
            }
        }
        (self.arrivals, self.turned) = (total, self.turned.max(other.turned));
        self.weighted |= other.weighted;
        self.hot.forget();
        self.lots = SamplingSchedule::after(self.arrivals, self.lots.one_in, self.seed);
        Ok(())
    }

    /// Takes in a key of another audit.
    fn take_in(&mut self, id: u64, their: &Followed, tallies: &Tallies, shift: i16) {
        let first = tallies::shifted(their.division, shift);
        if self.keys.contains_key(&id) {
            // New to both: what is new once more is counted apart.
            let classes = [Class::NewAgain, Class::New(first), Class::NewOf(their.importance)];
            let count = if self.weighted { 3 } else { 2 };
            classes[..count].iter().for_each(|class| self.count(id, *class, (1, u64::from(their.wrong))));
        } else {
            while self.keys.len() >= self.most_keys {
                self.halve();
            }
            if !self.is_sampled(id) {
                return;
            }
            self.keys.insert(id, Followed { head: NONE, division: first, ..*their });
        }
        for (class, counts) in tallies.of(their.head) {
            self.count(id, class.shifted(shift), counts);
        }
        if let Some(mine) = self.keys.get_mut(&id) {
            mine.seen.arrival = mine.seen.arrival.max(their.seen.arrival);
            mine.seen.anchor = mine.seen.anchor.max(their.seen.anchor);
        }
    }

    /// Moves the divisions of the last part.
    fn shift_divisions(&mut self, division: u8) {
        let shift = i16::from(division) - i16::from(self.division);
        self.division = division;
        self.covered.shift(shift);
        let tallies = &mut self.tallies;
        for followed in self.keys.values_mut() {
            followed.division = tallies::shifted(followed.division, shift);
            tallies.shift(followed.head, shift);
        }
    }
}
