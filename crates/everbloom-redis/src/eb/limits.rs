//! What ordinary clients may not exceed: `max-filter-bytes`, and the server's `maxmemory`.

use crate::report::COUNTERS;
use crate::server::{Call, Failure, Level};
use crate::settings::MAX_FILTER_BYTES;
use everbloom::internal::promise::size_text;
use std::sync::atomic::Ordering::Relaxed;

/// The most bytes of a filter.
pub(crate) fn most_bytes() -> u64 {
    MAX_FILTER_BYTES.get().max(0) as u64
}

/// Refuses a filter that would have so many bytes, of which so many are new. What must be obeyed is not refused.
pub(crate) fn check(call: &Call<'_>, bytes: u64, new: u64) -> Result<(), Failure> {
    let problem = match refusal(bytes) {
        Some(problem) => problem,
        None => match call.memory_left() {
            Some(left) if new > left => {
                let (new, left) = (size_text(new.saturating_mul(8)), size_text(left.saturating_mul(8)));
                format!(
                    "the filter would take {new} more, and maxmemory leaves {left}; ask for less or raise maxmemory"
                )
            }
            _ => return Ok(()),
        },
    };
    if call.must_obey() {
        return Ok(());
    }
    COUNTERS.refused_by_limit.fetch_add(1, Relaxed);
    Err(Failure::new(problem))
}

/// What the library made, or its error as a reply. A copy of a primary's filter for which there is no memory would be
/// missing, or go on with other answers; so it ends the server loudly, as the server does when it has no memory itself.
pub(crate) fn made<T>(call: &Call<'_>, outcome: everbloom::Result<T>) -> Result<T, Failure> {
    match outcome {
        Ok(made) => Ok(made),
        Err(error @ everbloom::Error::OutOfMemory { .. }) if call.must_obey() => {
            let name = String::from_utf8_lossy(call.word(0)).into_owned();
            call.log(Level::Warning, &format!("a replicated {name} cannot be carried out as its primary did: {error}"));
            std::process::abort();
        }
        Err(error) => Err(error.into()),
    }
}

/// Why a filter may not have so many bytes, if it may not.
pub(crate) fn refusal(bytes: u64) -> Option<String> {
    let most = most_bytes();
    (bytes > most).then(|| {
        let (bytes, most) = (size_text(bytes.saturating_mul(8)), size_text(most.saturating_mul(8)));
        format!("the filter would take {bytes}, which is beyond max-filter-bytes, {most}; ask for less or raise everbloom.max-filter-bytes")
    })
}
