//! One stage: its sizes by RedisBloom's rules, its bits, and where a key's are.

use everbloom::kind::MAX_MEMORY_BITS;
use everbloom::{Error, KeyHash, Result};
use everbloom_cells::bits::Bits;
use everbloom_cells::simd::{CACHED_BYTES, prefetch};

/// ln² 2 and ln 2 as RedisBloom has them: their last digits decide sizes.
const LN_2_SQUARED: f64 = 0.480_453_013_918_201;
#[allow(clippy::approx_constant, reason = "it is not quite ln 2, and sizes depend on it")]
const LN_2: f64 = 0.693_147_180_559_945;

/// More hashes than the lowest rate that a double can be asks for.
const MAX_HASHES: u32 = 1100;

/// What RedisBloom writes down about a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageHeader {
    /// Keys that it takes.
    pub entries: u64,
    /// The rate that it was sized for.
    pub error_rate: f64,
    /// Bits that a key sets.
    pub hashes: u32,
    /// Bits for each key, before they were rounded.
    pub bits_per_entry: f64,
    /// Bits in all.
    pub bits: u64,
    /// If it is not 0, positions are taken modulo two to this power, as before RedisBloom 2.0.
    pub power: u8,
    /// Keys inside.
    pub size: u64,
}

impl StageHeader {
    /// An empty stage for so many keys at this rate.
    pub(super) fn new(entries: u64, error_rate: f64) -> Result<Self> {
        if !(error_rate > 0.0 && error_rate < 1.0) {
            return Err(Error::Infeasible {
                wanted: format!("a stage with a rate of {error_rate:e}"),
                reason: "every stage halves the rate of the one before, and none is left".into(),
                remedy: "begin with more keys, or let stages grow".into(),
            });
        }
        let bits_per_entry = -logarithm(error_rate) / LN_2_SQUARED;
        let wanted = entries as f64 * bits_per_entry;
        if wanted >= MAX_MEMORY_BITS as f64 {
            return Err(Error::Infeasible {
                wanted: format!("a stage of {entries} keys"),
                reason: "it would take more than 128PiB".into(),
                remedy: "begin with fewer keys, or let stages grow more slowly".into(),
            });
        }
        // RedisBloom rounds the bits down to a whole number and that up to whole words, the hashes up.
        let bits = (wanted as u64).max(1).next_multiple_of(64);
        let hashes = hashes_for(bits_per_entry);
        Ok(StageHeader { entries, error_rate, hashes, bits_per_entry, bits, power: 0, size: 0 })
    }

    /// The stage that RedisBloom adds behind this one.
    pub(super) fn next(&self, expansion: u32) -> Result<Self> {
        Self::new(self.entries.saturating_mul(u64::from(expansion)), self.error_rate * 0.5)
    }

    /// The bytes of its bits.
    pub fn bytes(&self) -> u64 {
        self.bits / 8
    }

    /// Refuses what a filter could not work with, or RedisBloom would not have written.
    pub(super) fn checked(&self) -> Result<()> {
        let sound = [
            (self.error_rate > 0.0 && self.error_rate < 1.0, "its rate is not between 0 and 1"),
            (self.bits_per_entry > 0.0 && self.bits_per_entry.is_finite(), "its bits a key are no number"),
            (self.hashes == hashes_for(self.bits_per_entry), "its hashes do not belong to its bits a key"),
            (self.hashes <= MAX_HASHES, "it has more hashes than any rate needs"),
            (self.bits > 0 && self.bits.is_multiple_of(8), "its bits are not whole bytes"),
            (self.bits <= MAX_MEMORY_BITS, "it has more bits than there can be"),
            (self.power == 0 || self.power < 64 && 1 << self.power <= self.bits, "its positions lie outside its bits"),
            (self.entries > 0, "it takes no keys"),
        ];
        match sound.iter().find(|(holds, _)| !holds) {
            None => Ok(()),
            Some((_, problem)) => Err(Error::corrupt(format!("a stage of the filter is damaged: {problem}"))),
        }
    }
}

/// The natural logarithm of a number between 0 and 1, to the nearest double.
///
/// RedisBloom writes b = −ln ε / ln² 2 into its headers, with the logarithm of the C library, which is the nearest double for all
/// but a few in a thousand numbers; `libm`'s errs in the last digit for one in ten. With x = m·2^e and s = (m − 1)/(m + 1), it is
/// ln x = e·ln 2 + 2·(s + s³/3 + s⁵/5 + …), in numbers of twice the length.
fn logarithm(number: f64) -> f64 {
    let (mut significand, mut exponent) = libm::frexp(number);
    if significand < std::f64::consts::FRAC_1_SQRT_2 {
        (significand, exponent) = (significand * 2.0, exponent - 1);
    }
    let (over, under) = (significand - 1.0, sum(significand, 1.0));
    let first = over / under.0;
    let rest = first.mul_add(-under.0, over) - first * under.1;
    let ratio = sum(first, rest / under.0);
    let square = product(ratio, ratio);
    // |s| is below 0.172, so that the last term is below 2^-110.
    let mut series = (0.0, 0.0);
    for odd in (1..=43).rev().step_by(2) {
        series = total(product(series, square), reciprocal(f64::from(odd)));
    }
    let series = product(series, (2.0 * ratio.0, 2.0 * ratio.1));
    const LN_2_LOW: f64 = 2.319_046_813_846_299_6e-17;
    let whole = product((std::f64::consts::LN_2, LN_2_LOW), (f64::from(exponent), 0.0));
    let (high, low) = total(whole, series);
    high + low
}

/// A sum, and what its rounding lost.
fn sum(one: f64, other: f64) -> (f64, f64) {
    let sum = one + other;
    let part = sum - one;
    (sum, (one - (sum - part)) + (other - part))
}

fn total(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    let (high, low) = sum(one.0, other.0);
    sum(high, low + one.1 + other.1)
}

fn product(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    let high = one.0 * other.0;
    sum(high, one.0.mul_add(other.0, -high) + (one.0 * other.1 + one.1 * other.0))
}

fn reciprocal(number: f64) -> (f64, f64) {
    let high = 1.0 / number;
    sum(high, high.mul_add(-number, 1.0) / number)
}

fn hashes_for(bits_per_entry: f64) -> u32 {
    (LN_2 * bits_per_entry).ceil() as u32
}

/// A number to divide by, with its reciprocal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modulus {
    number: u64,
    /// ⌊2^64 / number⌋.
    reciprocal: u64,
}

impl Modulus {
    /// For numbers from 2 to 2^63.
    pub(super) fn new(number: u64) -> Self {
        Modulus { number, reciprocal: ((1u128 << 64) / u128::from(number.max(2))) as u64 }
    }

    /// The remainder, exactly.
    ///
    /// With 2^64 = number · reciprocal + r, the product's high half falls short of the quotient by less than
    /// bits · r / (2^64 · number) + 1 < 2, so by 0 or 1.
    #[inline(always)]
    pub(super) fn remainder(self, bits: u64) -> u64 {
        let quotient = ((u128::from(bits) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = bits - quotient * self.number;
        if rest >= self.number { rest - self.number } else { rest }
    }
}

/// A stage and its bits.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    header: StageHeader,
    modulus: Modulus,
    bits: Bits,
}

/// Bits that are looked at together.
const TOGETHER: u32 = 4;

impl Stage {
    /// A stage with these sizes, which were checked, and no bit set; an error if there is no memory for it.
    pub(super) fn new(header: StageHeader) -> Result<Self> {
        let modulus = Modulus::new(if header.power == 0 { header.bits } else { 1 << header.power });
        Ok(Stage { header, modulus, bits: Bits::new(header.bits)? })
    }

    /// A copy, or an error if there is no memory for it.
    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(Stage { bits: self.bits.try_clone()?, ..*self })
    }

    pub(super) fn header(&self) -> StageHeader {
        self.header
    }

    /// How many bits are set.
    pub(super) fn count_ones(&self) -> u64 {
        self.bits.count_ones()
    }

    /// The bytes that are allocated: whole cache lines.
    pub(super) fn allocated(&self) -> &[u8] {
        self.bits.bytes()
    }

    /// The bytes that are allocated, to be filled by a decoder, which then calls [`Stage::check`].
    pub(super) fn allocated_mut(&mut self) -> &mut [u8] {
        self.bits.bytes_mut()
    }

    pub(super) fn check(&self) -> Result<()> {
        self.bits.check()
    }

    /// The bytes as RedisBloom has them.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bits.bytes()[..self.header.bytes() as usize]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bits.bytes_mut()[..self.header.bytes() as usize]
    }

    pub(super) fn is_full(&self) -> bool {
        self.header.size >= self.header.entries
    }

    /// Keys that it still takes.
    pub(super) fn room(&self) -> u64 {
        self.header.entries.saturating_sub(self.header.size)
    }

    /// Whether a batch should ask for its lines ahead.
    #[inline(always)]
    pub(super) fn is_large(&self) -> bool {
        self.header.bits > CACHED_BYTES as u64 * 8
    }

    /// Asks for the lines of a key's first so many bits.
    #[inline(always)]
    pub(super) fn ask(&self, hash: KeyHash, count: u32) {
        let mut at = hash.high;
        for _ in 0..count.min(self.header.hashes) {
            prefetch(self.bits.words(), (self.modulus.remainder(at) / 64) as usize);
            at = at.wrapping_add(hash.low);
        }
    }

    #[inline(always)]
    pub(super) fn contains(&self, hash: KeyHash) -> bool {
        let (words, step) = (self.bits.words(), hash.low);
        let mut at = hash.high;
        let mut count = self.header.hashes;
        let mut bit = || {
            let position = self.modulus.remainder(at);
            at = at.wrapping_add(step);
            words[(position / 64) as usize] >> (position % 64)
        };
        while count >= TOGETHER {
            // All four are read: a branch for each would cost more than it saves.
            if bit() & bit() & bit() & bit() & 1 == 0 {
                return false;
            }
            count -= TOGETHER;
        }
        (0..count).fold(1, |all, _| all & bit()) & 1 == 1
    }

    /// Sets a key's bits and counts it.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: KeyHash) {
        let words = self.bits.words_mut();
        let mut at = hash.high;
        for _ in 0..self.header.hashes {
            let position = self.modulus.remainder(at);
            words[(position / 64) as usize] |= 1 << (position % 64);
            at = at.wrapping_add(hash.low);
        }
        self.header.size = self.header.size.saturating_add(1);
    }

    /// Takes every key out.
    pub(super) fn clear(&mut self) {
        self.bits.clear();
        self.header.size = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom_cells::key::Generator;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn remainders_are_exact(bits in any::<u64>(), number in any::<u64>(), shift in 1u32..63) {
            let number = (number >> shift).max(2);
            let modulus = Modulus::new(number);
            for bits in [bits, 0, 1, number - 1, number, number + 1, u64::MAX, u64::MAX - number, bits / number * number] {
                prop_assert_eq!(modulus.remainder(bits), bits % number);
            }
        }
    }

    #[test]
    fn logarithms_are_the_nearest_doubles() {
        // Computed with 50 digits, then rounded.
        let known: [(f64, u64); 8] = [
            (0.005, 0xc015317a1b949c53),
            (0.0025, 0xc017f7427b73e391),
            (0.001, 0xc01ba18a998fffa0),
            (3.90625e-05, 0xc0244cfa5d57c782),
            (6.103515625e-07, 0xc02c9e537cf59d3c),
            (0.25, 0xbff62e42fefa39ef),
            (5e-324, 0xc0874385446d71c3),
            (0.999999, 0xbeb0c6f82d74d230),
        ];
        for (number, bits) in known {
            assert_eq!(logarithm(number).to_bits(), bits, "ln {number:e}");
        }
        let mut generator = Generator::seeded(3);
        for _ in 0..10_000 {
            let number =
                (generator.bits() >> 11) as f64 / (1u64 << 53) as f64 * 0.5f64.powi(generator.below(900) as i32);
            if number > 0.0 {
                let (ours, theirs) = (logarithm(number), libm::log(number));
                assert!((ours - theirs).abs() <= 2.0 * f64::EPSILON * theirs.abs(), "ln {number:e}: {ours} {theirs}");
            }
        }
    }

    #[test]
    fn a_key_has_the_bits_that_plain_division_gives_it() {
        let mut generator = Generator::seeded(4);
        for (entries, error_rate, power) in [(1, 0.4, 0), (20, 0.005, 0), (77, 1e-9, 0), (1000, 0.1, 0), (64, 0.01, 9)]
        {
            let header = StageHeader { power, ..StageHeader::new(entries, error_rate).expect("small") };
            let mut stage = Stage::new(header).expect("small");
            let mut plain = vec![false; header.bits as usize];
            let modulus = if power == 0 { header.bits } else { 1 << power };
            let positions = |hash: KeyHash| {
                (0..u64::from(header.hashes))
                    .map(move |index| hash.high.wrapping_add(index.wrapping_mul(hash.low)) % modulus)
            };
            for _ in 0..entries {
                let hash = KeyHash { high: generator.bits(), low: generator.bits() };
                let before = positions(hash).all(|position| plain[position as usize]);
                assert_eq!(stage.contains(hash), before);
                stage.insert(hash);
                positions(hash).for_each(|position| plain[position as usize] = true);
                assert!(stage.contains(hash));
            }
            let bits: Vec<bool> =
                (0..header.bits as usize).map(|at| stage.bytes()[at / 8] >> (at % 8) & 1 == 1).collect();
            assert_eq!(bits, plain);
        }
    }
}
