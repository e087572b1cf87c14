//! Intersections with real filters, and the bytes they cost.

use super::DOCUMENT_BYTES;
use super::library::Library;
use crate::simulators::summary::may_hold;
use crate::simulators::{Scheme, programme};
use everbloom::{Hashing, Result};
use everbloom_cells::bits::Bits;
use everbloom_tune::querylog::popularity::{Allocation, MAX_HASHES, Share, hashes_within};

/// What came of a scheme over the second half of the queries.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Outcome {
    /// Queries, of one word too.
    pub queries: u64,
    /// Intersections of lists on different nodes.
    pub intersections: u64,
    /// Documents looked up that are not in the filter's list.
    pub missing_queries: u64,
    /// Those sent back all the same.
    pub false_positives: u64,
    /// Bytes of filters.
    pub filter_bytes: u64,
    /// Bytes of documents in both lists.
    pub answer_bytes: u64,
    /// Members that the filter denied: never.
    pub false_negatives: u64,
}

impl Outcome {
    /// The share of missing queries that were sent back.
    pub fn measured_fpr(&self) -> f64 {
        self.false_positives as f64 / self.missing_queries.max(1) as f64
    }

    /// All bytes (eq. 27).
    pub fn bytes(&self) -> u64 {
        self.filter_bytes + self.answer_bytes + DOCUMENT_BYTES * self.false_positives
    }
}

/// Numbers of hashes at some bits per key, and the rate that the training promises.
struct Hashes {
    bits_per_key: f64,
    per_document: Vec<u8>,
    predicted_fpr: f64,
}

/// What the first half of the queries teaches.
pub struct Study<'a> {
    library: &'a Library,
    /// How often a document was in the list of a filter, and how often it was looked up in vain.
    counts: Vec<Share>,
    /// Members of a filter, on average over the members.
    typical_members: f64,
}

/// Bits per key among which a scheme chooses its best: steps of a quarter up to 4, then larger ones.
const CHOICES: [f64; 24] = [
    0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 14.0, 16.0, 18.0,
    20.0, 22.0, 24.0,
];

impl<'a> Study<'a> {
    /// Counts what the first half of the queries does.
    pub fn new(library: &'a Library) -> Self {
        let mut counts = vec![Share::new(0.0, 0.0); library.lengths.len()];
        let (mut members, mut squares) = (0.0, 0.0);
        for query in &library.queries[..library.queries.len() / 2] {
            for_each_step(library, query, |step| {
                step.members.iter().for_each(|&document| counts[document as usize].members += 1.0);
                step.missing().for_each(|document| counts[document as usize].misses += 1.0);
                let size = step.members.len() as f64;
                (members, squares) = (members + size, squares + size * size);
                Ok(())
            })
            .unwrap_or_default();
        }
        Study { library, counts, typical_members: squares / f64::max(members, 1.0) }
    }

    /// The second half of the queries with filters of so many bits per key.
    pub fn at(&self, scheme: Scheme, bits_per_key: f64, seed: u64) -> Result<Outcome> {
        let hashes = self.hashes(scheme, bits_per_key)?;
        self.search(seed, |_, _| &hashes)
    }

    /// The second half of the queries where every filter has as many bits as promise the fewest bytes.
    pub fn at_own_best(&self, scheme: Scheme, seed: u64) -> Result<Outcome> {
        let choices = CHOICES.iter().map(|&bits| self.hashes(scheme, bits)).collect::<Result<Vec<_>>>()?;
        self.search(seed, |members, others| {
            let bytes = |hashes: &Hashes| {
                hashes.bits_per_key * members as f64 / 8.0 + (DOCUMENT_BYTES * others) as f64 * hashes.predicted_fpr
            };
            choices.iter().min_by(|one, other| bytes(one).total_cmp(&bytes(other))).unwrap_or(&choices[0])
        })
    }

    /// How far the members' documents are from those asked for in vain: the divergence, in bits.
    pub fn divergence(&self) -> Result<f64> {
        Ok(Allocation::new(self.counts.clone(), 8.0, 1..=MAX_HASHES)?.real_optimum().divergence)
    }

    /// The rate of the real-number optimum for what the first half shows.
    pub fn optimal_fpr(&self, bits_per_key: f64) -> Result<f64> {
        Ok(Allocation::new(self.counts.clone(), bits_per_key, 1..=MAX_HASHES)?.real_optimum().fpr)
    }

    fn hashes(&self, scheme: Scheme, bits_per_key: f64) -> Result<Hashes> {
        let standard = Allocation::new(vec![Share::new(1.0, 1.0)], bits_per_key, 1..=1)?.standard();
        let usual = standard.hashes[0].min(MAX_HASHES);
        let (per_document, predicted_fpr) = match scheme {
            Scheme::Standard => (vec![usual; self.counts.len()], standard.fpr),
            Scheme::Rounding => self.per_document(bits_per_key, usual, |problem| Ok(problem.rounding().hashes))?,
            Scheme::Programme => self.per_document(bits_per_key, usual, programme)?,
            Scheme::HalfFill => self.per_document(bits_per_key, usual, |problem| Ok(problem.fixed_fill().hashes))?,
            Scheme::Ours => self.by_length(bits_per_key)?,
        };
        Ok(Hashes { bits_per_key, per_document, predicted_fpr })
    }

    /// A number for each document that the first half shows, the usual one for the others.
    fn per_document(
        &self,
        bits_per_key: f64,
        usual: u8,
        solve: impl Fn(&Allocation) -> Result<Vec<u8>>,
    ) -> Result<(Vec<u8>, f64)> {
        let problem = Allocation::new(self.counts.clone(), bits_per_key, 1..=usual.saturating_mul(2).min(MAX_HASHES))?;
        let mut hashes = solve(&problem)?;
        let predicted_fpr = problem.scored(hashes.clone()).fpr;
        for (count, class) in hashes.iter_mut().zip(&self.counts) {
            if class.members == 0.0 && class.misses == 0.0 {
                *count = usual;
            }
        }
        Ok((hashes, predicted_fpr))
    }

    /// A number for each third of an octave of document lengths: no table is needed.
    fn by_length(&self, bits_per_key: f64) -> Result<(Vec<u8>, f64)> {
        let class = |length: f64| (libm::floor(3.0 * libm::log2(length)) + 90.0).clamp(0.0, 180.0) as usize;
        // A class of which nothing is seen could be of any kind: each starts with a trace of both.
        let mut classes = vec![Share::new(1.0, 1.0); 181];
        for (length, count) in self.library.lengths.iter().zip(&self.counts) {
            let class = &mut classes[class(*length)];
            class.members += count.members;
            class.misses += count.misses;
        }
        let most = hashes_within((bits_per_key * self.typical_members) as u64);
        let solution = Allocation::new(classes, bits_per_key, 0..=most)?.solve_uncertified();
        let hashes = self.library.lengths.iter().map(|length| solution.hashes[class(*length)]).collect();
        Ok((hashes, solution.fpr))
    }

    fn search<'h>(&self, seed: u64, choose: impl Fn(u64, u64) -> &'h Hashes) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let hashing = Hashing::seeded(seed);
        for query in &self.library.queries[self.library.queries.len() / 2..] {
            outcome.queries += 1;
            for_each_step(self.library, query, |step| {
                let hashes = choose(step.members.len() as u64, step.list.len() as u64);
                step.run(hashes, &hashing, &mut outcome)
            })?;
        }
        Ok(outcome)
    }
}

/// One intersection: a filter of the members is sent to the node of the list.
struct Step<'a> {
    members: &'a [u32],
    list: &'a [u32],
    both: &'a [u32],
}

/// All intersections of a query between different nodes, shortest lists first, until nothing is left.
fn for_each_step(library: &Library, query: &[u32], mut act: impl FnMut(Step<'_>) -> Result<()>) -> Result<()> {
    let list = |word: u32| library.lists[word as usize].as_slice();
    let mut words = query.to_vec();
    words.sort_by_key(|&word| (list(word).len(), word));
    let Some((&first, rest)) = words.split_first() else { return Ok(()) };
    let mut members = list(first).to_vec();
    for &word in rest {
        let both = intersection(&members, list(word));
        if !members.is_empty() && Library::node(word) != Library::node(first) {
            act(Step { members: &members, list: list(word), both: &both })?;
        }
        members = both;
    }
    Ok(())
}

impl Step<'_> {
    /// Documents of the list that are no members.
    fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        let mut both = self.both.iter().peekable();
        self.list.iter().copied().filter(move |document| both.next_if(|known| **known == *document).is_none())
    }

    fn run(&self, hashes: &Hashes, hashing: &Hashing, outcome: &mut Outcome) -> Result<()> {
        let num_bits = (hashes.bits_per_key * self.members.len() as f64).ceil().max(1.0) as u64;
        let mut bits = Bits::new(num_bits)?;
        let key =
            |document: u32| (hashing.hash_u64(document.into()), u32::from(hashes.per_document[document as usize]));
        for &document in self.members {
            let (hash, count) = key(document);
            hash.probes(num_bits).take(count as usize).for_each(|position| {
                bits.set(position);
            });
        }
        let says = |document: u32| may_hold(&bits, key(document).0, key(document).1);
        outcome.intersections += 1;
        outcome.filter_bytes += num_bits.div_ceil(8);
        outcome.answer_bytes += DOCUMENT_BYTES * self.both.len() as u64;
        outcome.missing_queries += (self.list.len() - self.both.len()) as u64;
        outcome.false_positives += self.missing().filter(|&document| says(document)).count() as u64;
        outcome.false_negatives += self.both.iter().filter(|&&document| !says(document)).count() as u64;
        Ok(())
    }
}

/// What two sorted lists have in common.
fn intersection(one: &[u32], other: &[u32]) -> Vec<u32> {
    let mut others = other.iter().copied().peekable();
    let mut both = Vec::new();
    for &document in one {
        while others.next_if(|other| *other < document).is_some() {}
        if others.peek() == Some(&document) {
            both.push(document);
        }
    }
    both
}
