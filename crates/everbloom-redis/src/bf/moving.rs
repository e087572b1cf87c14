//! `BF.SCANDUMP` and `BF.LOADCHUNK`: a filter in pieces, from one server to another.

use super::chain::{Chain, Unsound, sound_header};
use super::numbers::integer;
use super::{not_found, without_code};
use crate::eb::limits::{most_bytes, obeyed};
use crate::fault;
use crate::report::COUNTERS;
use crate::server::{Call, Failure};
use everbloom_compat::RedisBloom;
use everbloom_compat::redisbloom::ChunkError;
use std::sync::atomic::Ordering::Relaxed;

/// `BF.SCANDUMP key iterator`: any integer is answered; beyond the end, and below 0, there is nothing.
pub(super) fn dump(call: &mut Call<'_>) -> Result<(), Failure> {
    let chain = call.read::<Chain>(1)?.ok_or_else(not_found)?;
    let iterator = integer(call.word(2)).ok_or_else(|| without_code("Second argument must be numeric"))?;
    call.reply_array(2);
    if iterator == 0 {
        call.reply_integer(1);
        call.reply_bulk(&chain.filter().header().encode());
        return Ok(());
    }
    let chunk = u64::try_from(iterator).map_or(&[][..], |iterator| chain.filter().chunk(iterator - 1));
    call.reply_integer(if chunk.is_empty() { 0 } else { iterator.saturating_add(chunk.len() as i64) });
    call.reply_bulk(chunk);
    Ok(())
}

/// `BF.LOADCHUNK key iterator data`: the header makes the filter, what follows fills it.
pub(super) fn load(call: &mut Call<'_>) -> Result<(), Failure> {
    let iterator = integer(call.word(2)).ok_or_else(|| Failure::new("Second argument must be numeric"))?;
    let data = call.word(3);
    let mut key = call.write::<Chain>(1)?;
    match key.value() {
        Some(chain) => {
            chain.change(|filter| filter.load_chunk(iterator, data)).map_err(|error| match error {
                ChunkError::Bad => Failure::new("received bad data"),
                ChunkError::NoStage => Failure::new("invalid offset - no link found"),
                ChunkError::TooLong => Failure::new("invalid chunk - Too big for current filter"),
            })?;
        }
        None if iterator == 1 => key.set(begun(call, data)?),
        None => return Err(not_found()),
    }
    drop(key);
    call.reply_ok();
    call.replicate_verbatim();
    Ok(())
}

/// The filter that a header describes.
fn begun(call: &Call<'_>, header: &[u8]) -> Result<Chain, Failure> {
    let most = if call.must_obey() { u64::MAX } else { most_bytes() };
    let beyond = |limit: &str| {
        COUNTERS.refused_by_limit.fetch_add(1, Relaxed);
        Failure::new(format!("Insufficient memory to create filter: beyond {limit}"))
    };
    let header = sound_header(header, most).map_err(|unsound| match unsound {
        Unsound::Bad => Failure::new("received bad data"),
        Unsound::TooLarge => beyond("max-filter-bytes"),
    })?;
    if !call.must_obey() && call.memory_left().is_some_and(|left| header.bytes() > left) {
        return Err(beyond("maxmemory"));
    }
    let filter = match fault::refuses_growth() {
        true => Err(everbloom::Error::OutOfMemory { bytes: header.bytes() }),
        false => RedisBloom::from_header(&header),
    };
    obeyed(call, filter).map(Chain::new).map_err(|_| Failure::new("Insufficient memory to create filter"))
}
