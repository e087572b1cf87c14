//! Sizes as people write them.

/// A number of bits as a size that people read, rounded up to at most three digits and a half: `352KiB`, `1.2MiB`.
/// What fits into the one fits into the other.
///
/// ```
/// use everbloom_cells::size_text;
///
/// assert_eq!(size_text(64 << 13), "64KiB");
/// assert_eq!(size_text((64 << 13) + 1), "65KiB");
/// assert_eq!(size_text(1000), "125B");
/// ```
pub fn size_text(bits: u64) -> String {
    let bytes = bits.div_ceil(8);
    let units = [("PiB", 50), ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let Some((unit, shift)) = units.into_iter().find(|(_, shift)| bytes >= 1 << shift) else {
        return format!("{bytes}B");
    };
    // In tenths, of which the small units need none.
    let tenths = (u128::from(bytes) * 10).div_ceil(1 << shift);
    match tenths {
        tenths if tenths % 10 == 0 => format!("{}{unit}", tenths / 10),
        tenths if shift == 10 || tenths >= 1000 => format!("{}{unit}", tenths.div_ceil(10)),
        tenths => format!("{}.{}{unit}", tenths / 10, tenths % 10),
    }
}

/// A number of bits exactly, as somebody may have typed it: `64MiB`, `1000B`, `12b`.
///
/// ```
/// use everbloom_cells::size_typed;
///
/// assert_eq!([64 << 23, 8000, 12].map(size_typed), ["64MiB", "1000B", "12b"]);
/// ```
pub fn size_typed(bits: u64) -> String {
    let units = [("PiB", 53), ("TiB", 43), ("GiB", 33), ("MiB", 23), ("KiB", 13), ("B", 3)];
    let whole = units.into_iter().find(|(_, shift)| bits > 0 && bits.trailing_zeros() >= *shift);
    whole.map_or_else(|| format!("{bits}b"), |(unit, shift)| format!("{}{unit}", bits >> shift))
}
