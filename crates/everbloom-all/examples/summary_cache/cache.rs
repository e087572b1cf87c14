//! What a proxy holds: pages, and the counting filter of their addresses.

use crate::processes::Result;
use everbloom::FilterExt;
use everbloom::{AnyFilter, Bloom, Counting, Goal};
use everbloom_all::KINDS;
use std::collections::{BTreeMap, HashMap};

/// What the origin would send: every address has its own page.
pub(crate) fn page(url: &str) -> Vec<u8> {
    format!("the page at {url}").into_bytes()
}

/// Pages, of which the one that was not asked for longest goes first.
pub(crate) struct Cache {
    capacity: usize,
    pages: HashMap<String, (Vec<u8>, u64)>,
    by_age: BTreeMap<u64, String>,
    clock: u64,
    /// The addresses of the pages. Counters, because pages leave again.
    addresses: Counting,
    changes: usize,
}

impl Cache {
    pub(crate) fn new(capacity: usize) -> Result<Self> {
        // The summary is made for sending: sparser than usual, and smaller once it is compressed. Its counters at home have
        // the same cells.
        let goal = Goal::new().expected_items(capacity as u64).fpr("1%");
        let sent = goal.clone().compressed().plan_among(KINDS, "bloom")?;
        let (cells, hashes) = (sent.spec.get("num_bits"), sent.spec.get("num_hashes"));
        let (cells, hashes) = (cells.ok_or("a plan has a size")?, hashes.ok_or("a plan has hashes")?);
        let counting = format!("counting:num_cells={cells},num_hashes={hashes}");
        let addresses = Counting::with_goal(&goal.filter(counting.as_str()))?;
        let (pages, by_age) = (HashMap::new(), BTreeMap::new());
        Ok(Cache { capacity, pages, by_age, clock: 0, addresses, changes: 0 })
    }

    pub(crate) fn get(&mut self, url: &str) -> Option<Vec<u8>> {
        self.clock += 1;
        let (page, age) = self.pages.get_mut(url)?;
        self.by_age.remove(age);
        self.by_age.insert(self.clock, url.to_string());
        *age = self.clock;
        Some(page.clone())
    }

    /// Keeps a page; the oldest goes if there are too many.
    pub(crate) fn keep(&mut self, url: &str, page: Vec<u8>) -> Result<()> {
        self.clock += 1;
        if let Some((_, age)) = self.pages.insert(url.to_string(), (page, self.clock)) {
            // Somebody else's request brought it meanwhile.
            self.by_age.remove(&age);
        } else {
            self.addresses.insert(url);
            self.changes += 1;
        }
        self.by_age.insert(self.clock, url.to_string());
        if self.pages.len() > self.capacity
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.pages.remove(&oldest);
            // Only what was inserted is ever removed, so that no page which is here is ever missed.
            self.addresses.remove(oldest.as_str());
        }
        Ok(())
    }

    /// The summary to send, if a twentieth of the pages changed since the last: bits, compressed.
    pub(crate) fn summary_if_due(&mut self) -> Result<Option<Vec<u8>>> {
        if self.changes * 20 < self.capacity {
            return Ok(None);
        }
        self.changes = 0;
        Ok(Some(AnyFilter::from(self.bits()?).to_compressed_bytes()))
    }

    fn bits(&self) -> Result<Bloom> {
        Ok(Bloom::try_from(&self.addresses)?)
    }

    /// Bytes of an ordinary filter of the same rate, of the counters, and of a list of the addresses.
    pub(crate) fn sizes(&self) -> Result<[u64; 3]> {
        let ordinary = Bloom::with_rate(self.capacity as u64, 0.01)?.to_bytes().len() as u64;
        let addresses = self.pages.keys().map(|url| url.len() as u64 + 1).sum();
        Ok([ordinary, self.addresses.info().memory_bits / 8, addresses])
    }
}
