//! The stream in divisions, of which the last two are its last part.

/// The division of a stream that an arrival belongs to, counted from one: ⌊2 log2 n⌋ + 1.
pub(super) fn division_of(arrival: u64) -> u8 {
    let n = arrival.max(1);
    let whole = n.ilog2();
    // n² ≥ 2^(2 whole + 1) is exact, and a logarithm is not.
    let half = u32::from(u128::from(n) * u128::from(n) >= 1u128 << (2 * whole + 1));
    (2 * whole + half + 1) as u8
}

/// The first arrival of a division.
pub(super) fn start_of(division: u8) -> u64 {
    if division > 128 {
        return u64::MAX;
    }
    let power = u32::from(division.max(1)) - 1;
    let root = (1u128 << power).isqrt();
    // Rounded up: the first whole number that is not below it.
    (if root * root == 1u128 << power { root } else { root + 1 }) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_division_begins_where_the_one_before_it_ends() {
        for division in 2..=127 {
            let start = start_of(division);
            // The first three divisions begin at 1, 2 and 2.
            assert!(division_of(start) >= division && division_of(start - 1) < division, "{division} from {start}");
        }
    }
}
