//! Whether an odd number of bits are set, in eight words at once.

/// The plain code of [`SimdOps::odd_columns`](super::SimdOps::odd_columns).
#[inline(always)]
pub(super) fn odd_columns(blocks: [&[u64; 8]; 3], selections: [u64; 3]) -> u32 {
    let mut sums = [0; 8];
    for column in 0..8 {
        sums[column] =
            blocks[0][column] & selections[0] ^ blocks[1][column] & selections[1] ^ blocks[2][column] & selections[2];
    }
    parities(sums)
}

/// A bit for each word: whether an odd number of its bits are set.
///
/// Half of a word is folded onto the other, and two folded words are put into one, until eight are bytes of one.
#[inline(always)]
fn parities(words: [u64; 8]) -> u32 {
    let [one, two, three, four, five, six, seven, eight] = words;
    let halves = [fold::<32>(one, five), fold::<32>(two, six), fold::<32>(three, seven), fold::<32>(four, eight)];
    let bytes = fold::<8>(fold::<16>(halves[0], halves[2]), fold::<16>(halves[1], halves[3]));
    let bytes = bytes ^ bytes >> 4;
    let bytes = bytes ^ bytes >> 2;
    let odd = (bytes ^ bytes >> 1) & 0x0101_0101_0101_0101;
    // The product gathers the lowest bits of all bytes in its highest byte.
    (odd.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// Two words in one: parts of so many bits are summed two by two, and of the sums the first word's go to the even
/// places, the second's to the odd ones.
#[inline(always)]
fn fold<const BITS: u32>(one: u64, other: u64) -> u64 {
    let even = u64::MAX / ((1 << BITS) + 1);
    (one ^ one >> BITS) & even | (other ^ other << BITS) & !even
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parities_are_those_of_the_words(words in any::<[u64; 8]>()) {
            let expected = words.iter().enumerate().map(|(column, word)| (word.count_ones() & 1) << column).sum();
            prop_assert_eq!(parities(words), expected);
        }
    }
}
