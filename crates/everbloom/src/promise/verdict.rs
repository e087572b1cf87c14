//! What a filter says: of an arrival, and of itself.

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

/// What a filter knows about itself right now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Status {
    /// Arrivals observed or keys inserted so far.
    pub arrivals: u64,
    /// Share of cells that are not zero.
    pub fill: f64,
    /// The rate of false positives to expect of the next query, from the present contents.
    pub estimated_fpr: f64,
    /// How many distinct keys are inside, as far as the fill tells; a full filter tells nothing.
    pub estimated_items: Option<f64>,
    /// Keys that could not be kept, or were kept at a higher rate than promised, because memory to grow was refused.
    pub refused: u64,
    /// Counters at their largest value: what they count came so often, or more.
    pub full_counters: u64,
}
