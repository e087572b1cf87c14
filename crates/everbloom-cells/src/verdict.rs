//! What a filter says of an arrival.

/// What a filter says of an arrival: seen before, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Verdict {
    /// Not seen, as far as the filter remembers.
    #[default]
    Distinct = 0,
    /// Seen before, or so it looks.
    Duplicate = 1,
}

impl Verdict {
    /// Duplicate if `seen`.
    #[inline]
    pub fn from_seen(seen: bool) -> Self {
        if seen { Verdict::Duplicate } else { Verdict::Distinct }
    }

    /// Whether the arrival counts as new.
    #[inline]
    pub fn is_distinct(self) -> bool {
        self == Verdict::Distinct
    }
}
