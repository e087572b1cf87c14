//! Whether a promise still holds, as far as a filter's contents tell.

use super::{Holds, Promise, Status};
use libm::{expm1, log, log1p, sqrt};

/// Whether a promise still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Kept,
    /// It does not: more came than it was made for.
    Broken,
    /// There is none.
    None,
}

impl Standing {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Kept => "kept",
            Standing::Broken => "broken",
            Standing::None => "none",
        }
    }
}

impl Promise {
    /// Whether it still holds for a filter that looks like this.
    ///
    /// With no more arrivals than promised it does for certain. With more, of which some may have been repeats, the
    /// fill tells how many keys there are, give or take four standard deviations: so a promise that was kept is never
    /// called broken, and one that was broken by a few keys may be called kept.
    pub(crate) fn standing(&self, status: &Status) -> Standing {
        let is_over = match self.holds {
            Holds::Never => return Standing::None,
            Holds::Always => false,
            Holds::UntilItems(items) => {
                let is_more = |found| found > items as f64 + 4.0 * noise(status, found, items as f64);
                status.arrivals > items && status.estimated_items.is_none_or(is_more)
            }
        };
        match is_over || status.full_counters > 0 || status.refused > 0 {
            true => Standing::Broken,
            false => Standing::Kept,
        }
    }
}

/// The standard deviation of the number of keys that a fill stands for where there are `items`, for a filter that
/// seems to have `found`.
///
/// With load c = items · hashes / cells, a share 1 − e^−c of the cells is set, with variance
/// e^−c (1 − (1 + c) e^−c) / cells (Swamidass and Baldi, 2007); by the slope, that of the keys is
/// items (e^c − 1 − c) / (c · hashes).
fn noise(status: &Status, found: f64, items: f64) -> f64 {
    let load = -log1p(-status.fill) * items / found;
    if !(load > 0.0 && load.is_finite()) {
        return 0.0;
    }
    // The rate is the probability that all cells of a key are set.
    let hashes = (log(status.estimated_fpr.max(f64::MIN_POSITIVE)) / log(status.fill)).max(1.0);
    sqrt(items * (expm1(load) - load) / (load * hashes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Hashing;
    use crate::promise::Goal;

    /// The standing of filters with so many keys for each that was promised, each inserted twice.
    fn standings(spec: &str, items: u64, times: f64) -> Vec<Standing> {
        let seeds = 0..20;
        let standing = |seed| {
            let hashing = Hashing::seeded(seed);
            let goal = Goal::new().expected_items(items).fpr(0.01).hashing(hashing);
            let mut filter = goal.plan(spec).and_then(|plan| plan.build()).expect("fits");
            let Holds::UntilItems(promised) = filter.promise().holds else { panic!("{spec} fills up") };
            let keys: Vec<_> = (0..(promised as f64 * times) as u64).map(|key| hashing.hash_u64(key)).collect();
            filter.insert_hashes(&keys);
            filter.insert_hashes(&keys);
            filter.promise().standing(&filter.status())
        };
        seeds.map(standing).collect()
    }

    #[test]
    fn as_many_keys_as_promised_are_never_called_too_many_and_twice_as_many_are() {
        for spec in ["bloom", "bloom:num_hashes=1", "blocked", "counting", "spectral", "bloom:shards=4"] {
            for items in [20, 300, 10_000] {
                assert_eq!(standings(spec, items, 1.0), [Standing::Kept; 20], "{spec} for {items}");
                assert_eq!(standings(spec, items, 2.0), [Standing::Broken; 20], "{spec} for {items}");
            }
            assert_eq!(standings(spec, 100, 100.0), [Standing::Broken; 20], "{spec}, full");
        }
    }

    #[test]
    fn full_counters_break_a_promise() {
        let mut filter = Goal::new()
            .expected_items(100)
            .fpr(0.01)
            .plan("spectral:cell_bits=4")
            .and_then(|plan| plan.build())
            .expect("fits");
        let often = vec![filter.hashing().hash_u64(1); 14];
        filter.insert_hashes(&often);
        assert_eq!(filter.promise().standing(&filter.status()), Standing::Kept);
        filter.insert_hashes(&often);
        assert_eq!(filter.promise().standing(&filter.status()), Standing::Broken);
    }
}
