//! What ordinary clients may not exceed: `max-filter-bytes`, and the server's `maxmemory`.

use crate::report::COUNTERS;
use crate::server::{Call, Failure, Level};
use crate::settings::MAX_FILTER_BYTES;
use everbloom::kind::size_text;
use std::sync::atomic::Ordering::Relaxed;

/// The most bytes of a filter.
pub(crate) fn most_bytes() -> u64 {
    MAX_FILTER_BYTES.get().max(0) as u64
}

/// Refuses a filter that would have so many bytes, of which so many are new. What must be obeyed is not refused.
pub(crate) fn check(call: &Call<'_>, bytes: u64, new: u64) -> Result<(), Failure> {
    if call.must_obey() {
        return Ok(());
    }
    match refusal_within(bytes, new, call.memory_left()) {
        None => Ok(()),
        Some(problem) => {
            COUNTERS.refused_by_limit.fetch_add(1, Relaxed);
            Err(Failure::new(problem))
        }
    }
}

/// Why a filter may not have so many bytes, of which so many are new, where `maxmemory` leaves so many.
pub(crate) fn refusal_within(bytes: u64, new: u64, left: Option<u64>) -> Option<String> {
    refusal(bytes).or_else(|| {
        let left = left.filter(|left| new > *left)?;
        let (new, left) = (size_text(new.saturating_mul(8)), size_text(left.saturating_mul(8)));
        Some(format!("the filter would take {new} more, and maxmemory leaves {left}; ask for less or raise maxmemory"))
    })
}

/// What the library made, or its error as a reply.
pub(crate) fn made<T>(call: &Call<'_>, outcome: everbloom::Result<T>) -> Result<T, Failure> {
    Ok(obeyed(call, outcome)?)
}

/// Passes an outcome on. A copy of a primary's filter for which there is no memory would be missing, or go on with other
/// answers; so it ends the server loudly, as the server does when it has no memory itself.
pub(crate) fn obeyed<T>(call: &Call<'_>, outcome: everbloom::Result<T>) -> everbloom::Result<T> {
    if let Err(error @ everbloom::Error::OutOfMemory { .. }) = &outcome
        && call.must_obey()
    {
        let name = String::from_utf8_lossy(call.word(0)).into_owned();
        call.log(Level::Warning, &format!("a replicated {name} cannot be carried out as its primary did: {error}"));
        std::process::abort();
    }
    outcome
}

/// Why a filter may not have so many bytes, if it may not.
pub(crate) fn refusal(bytes: u64) -> Option<String> {
    let most = most_bytes();
    (bytes > most).then(|| {
        let (bytes, most) = (size_text(bytes.saturating_mul(8)), size_text(most.saturating_mul(8)));
        format!("the filter would take {bytes}, which is beyond max-filter-bytes, {most}; ask for less or raise everbloom.max-filter-bytes")
    })
}
