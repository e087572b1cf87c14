//! Golomb codes for the gaps between set bits: the divisor, and how long a code comes out.
//!
//! With a share p of the bits set at random, gaps are geometric. Gap g is coded as ⌊g/d⌋ in unary and
//! g mod d in binary; the best d is the smallest with θ^d + θ^(d+1) ≤ 1, θ = 1 − p
//! (\[Gallager & van Voorhis 1975\]). It stays within 0.03 to 0.04 bits of a gap's entropy, and a gap of
//! a sparse filter has 7 or 8 bits.

use libm::{ceil, log, log1p, pow};

/// The divisor for bits of which this share, above 0 and below 1, is set.
pub(crate) fn divisor(fill: f64) -> u32 {
    ceil(log(2.0 - fill) / -log1p(-fill)).clamp(1.0, f64::from(1u32 << 31)) as u32
}

/// The most bits of a remainder, and how many remainders need one less.
pub(crate) fn remainder_code(divisor: u32) -> (u32, u32) {
    let bits = u32::BITS - (divisor - 1).leading_zeros();
    (bits, ((1u64 << bits) - u64::from(divisor)) as u32)
}

/// The expected length of the code of one bit, set or not, where this share is set at random.
///
/// Never above 1: what does not get shorter is stored as it is.
pub(crate) fn code_bits(fill: f64) -> f64 {
    if fill <= 0.0 {
        return 0.0;
    }
    let divisor = divisor(fill.min(0.5));
    if divisor < 2 {
        return 1.0;
    }
    let (bits, short) = remainder_code(divisor);
    let theta = 1.0 - fill;
    let beyond = pow(theta, f64::from(divisor));
    let unary = 1.0 / (1.0 - beyond);
    let long = (pow(theta, f64::from(short)) - beyond) / (1.0 - beyond);
    (fill * (unary + f64::from(bits) - 1.0 + long)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entropy(fill: f64) -> f64 {
        -(fill * libm::log2(fill) + (1.0 - fill) * libm::log2(1.0 - fill))
    }

    #[test]
    fn codes_stay_close_to_the_entropy() {
        for (fill, excess) in [(0.0001, 1.004), (0.001, 1.005), (0.01, 1.006), (0.0216, 1.008), (0.1, 1.02)] {
            let ratio = code_bits(fill) / entropy(fill);
            assert!((1.0..excess).contains(&ratio), "{ratio} at {fill}");
        }
    }

    #[test]
    fn remainders_fill_their_code() {
        for divisor in (2..2000).chain([1 << 20, (1 << 31) - 1, 1 << 31]) {
            let (bits, short) = remainder_code(divisor);
            // Kraft: short codes take half as much room as two long ones.
            let room = u64::from(short) * 2 + u64::from(divisor - short);
            assert_eq!(room, 1 << bits, "{divisor}");
        }
    }
}
