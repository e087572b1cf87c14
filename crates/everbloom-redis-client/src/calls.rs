//! Calls of several batches that may be made again after an error.
//!
//! Batches count one by one. If the third of a call is cut off, the first two have counted: asked about once more, their keys would
//! look seen, and who made the call was never told that they were new. So the verdicts of a call are kept until it has
//! ended well, a bit for each key, and the same call again gets them.

use everbloom::{KeyHash, Verdict};

/// A call, from its first batch to its last: see [`Writer::observe_part`](crate::Writer::observe_part).
#[derive(Debug, Default)]
pub struct Call {
    id: Option<u64>,
    /// Batches that it has verdicts for.
    done: usize,
}

/// Calls that failed and may be made again; those before are given up.
const MOST_CUT_OFF: usize = 64;

/// The calls that have not ended well.
#[derive(Default)]
pub(crate) struct Calls {
    all: Vec<Kept>,
    next: u64,
}

struct Kept {
    id: u64,
    is_cut_off: bool,
    batches: Vec<Batch>,
}

/// A batch, and its verdicts when they are known.
struct Batch {
    sum: u64,
    bits: Option<Vec<u8>>,
}

/// The place of a batch: a call and a number.
pub(crate) type Place = (u64, usize);

impl Calls {
    /// The verdicts of the next batch of a call, if it was judged when the same call was made before; else where they belong.
    pub(crate) fn next(&mut self, call: &mut Call, hashes: &[KeyHash], verdicts: &mut [Verdict]) -> Option<Place> {
        let sum = sum_of(hashes);
        let id = *call.id.get_or_insert_with(|| self.begin(sum));
        let kept = self.all.iter_mut().find(|kept| kept.id == id)?;
        let number = call.done;
        call.done += 1;
        if kept.batches.get(number).is_some_and(|batch| batch.sum == sum) {
            let bits = kept.batches[number].bits.as_ref().filter(|bits| bits.len() == hashes.len().div_ceil(8));
            let Some(bits) = bits else { return Some((id, number)) };
            for (at, verdict) in verdicts.iter_mut().enumerate().take(hashes.len()) {
                let is_new = bits[at / 8] >> (at % 8) & 1 == 1;
                *verdict = if is_new { Verdict::Distinct } else { Verdict::Duplicate };
            }
            return None;
        }
        // From here on it is another call.
        kept.batches.truncate(number);
        kept.batches.push(Batch { sum, bits: None });
        Some((id, number))
    }

    /// A call that was cut off and begins the same, or a new one.
    fn begin(&mut self, sum: u64) -> u64 {
        let same = |kept: &&mut Kept| kept.is_cut_off && kept.batches.first().is_some_and(|batch| batch.sum == sum);
        if let Some(kept) = self.all.iter_mut().rev().find(same) {
            kept.is_cut_off = false;
            return kept.id;
        }
        self.next += 1;
        self.all.push(Kept { id: self.next, is_cut_off: false, batches: Vec::new() });
        self.next
    }

    /// Keeps verdicts, if anybody may still ask for them.
    pub(crate) fn keep(&mut self, (id, number): Place, verdicts: &[Verdict]) {
        let kept = self.all.iter_mut().find(|kept| kept.id == id);
        let Some(batch) = kept.and_then(|kept| kept.batches.get_mut(number)) else { return };
        let mut bits = vec![0; verdicts.len().div_ceil(8)];
        verdicts
            .iter()
            .enumerate()
            .for_each(|(at, verdict)| bits[at / 8] |= u8::from(verdict.is_distinct()) << (at % 8));
        batch.bits = Some(bits);
    }

    /// A call has ended.
    pub(crate) fn end(&mut self, call: &Call, is_well: bool) {
        let Some(at) = self.all.iter().position(|kept| Some(kept.id) == call.id) else { return };
        let mut kept = self.all.remove(at);
        if is_well {
            return;
        }
        // The last to fail is the last to be given up.
        kept.is_cut_off = true;
        self.all.push(kept);
        if self.all.iter().filter(|kept| kept.is_cut_off).count() > MOST_CUT_OFF {
            let oldest = self.all.iter().position(|kept| kept.is_cut_off).unwrap_or_default();
            self.all.remove(oldest);
        }
    }
}

/// Tells a batch from any other.
fn sum_of(hashes: &[KeyHash]) -> u64 {
    let step = |sum: u64, hash: &KeyHash| {
        (sum.rotate_left(23) ^ hash.high ^ hash.low.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    hashes.iter().fold(hashes.len() as u64, step)
}
