//! `BF.EXISTS`, `BF.MEXISTS`, `BF.CARD`, `BF.INFO`, `BF.DEBUG`.

use super::chain::Chain;
use super::numbers::short;
use super::{not_found, without_code};
use crate::report::COUNTERS;
use crate::server::{Call, Failure, Reading};
use everbloom::{Filter, Hashing, KeyHash};
use everbloom_compat::RedisBloom;
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;

/// The filter, where a key that is missing or holds something else is an empty one.
fn perhaps<'c>(call: &'c Call<'_>) -> Option<Reading<'c, Chain>> {
    call.read::<Chain>(1).ok().flatten()
}

fn found<'c>(call: &'c Call<'_>) -> Result<Reading<'c, Chain>, Failure> {
    call.read::<Chain>(1)?.ok_or_else(not_found)
}

/// `BF.EXISTS key item`
pub(super) fn exists(call: &mut Call<'_>) -> Result<(), Failure> {
    let hash = Hashing::Murmur.hash(call.word(2));
    COUNTERS.checks.fetch_add(1, Relaxed);
    call.reply_bool(perhaps(call).is_some_and(|chain| chain.filter().contains_hash(hash)));
    Ok(())
}

/// Items that are hashed and asked for together.
const TOGETHER: usize = 64;

/// `BF.MEXISTS key item…`
pub(super) fn exist(call: &mut Call<'_>) -> Result<(), Failure> {
    let mut items = call.words_from(2);
    let chain = perhaps(call);
    COUNTERS.checks.fetch_add(items.len() as u64, Relaxed);
    call.reply_array(items.len());
    let (mut hashes, mut found) = ([KeyHash::default(); TOGETHER], [false; TOGETHER]);
    while items.len() > 0 {
        let count = items.len().min(TOGETHER);
        for (hash, item) in hashes.iter_mut().zip(&mut items) {
            *hash = Hashing::Murmur.hash(item);
        }
        if let Some(chain) = &chain {
            chain.filter().contains_hashes(&hashes[..count], &mut found[..count]);
        }
        found[..count].iter().for_each(|found| call.reply_bool(*found));
    }
    Ok(())
}

/// `BF.CARD key`
pub(super) fn count(call: &mut Call<'_>) -> Result<(), Failure> {
    let size = call.read::<Chain>(1)?.map_or(0, |chain| chain.filter().size());
    call.reply_number(size);
    Ok(())
}

/// What `BF.INFO` tells: the word that asks for it, its label, and its value if there is one.
type Detail = (&'static str, &'static CStr, fn(&RedisBloom) -> Option<u64>);

const DETAILS: [Detail; 5] = [
    ("CAPACITY", c"Capacity", |filter| Some(filter.capacity())),
    ("SIZE", c"Size", |filter| Some(filter.reported_bytes())),
    ("FILTERS", c"Number of filters", |filter| Some(filter.stages().len() as u64)),
    ("ITEMS", c"Number of items inserted", |filter| Some(filter.size())),
    ("EXPANSION", c"Expansion rate", |filter| {
        let parameters = filter.parameters();
        parameters.scales().then_some(parameters.expansion.into())
    }),
];

/// `BF.INFO key [CAPACITY|SIZE|FILTERS|ITEMS|EXPANSION]`
pub(super) fn info(call: &mut Call<'_>) -> Result<(), Failure> {
    if call.len() > 3 {
        return Err(Failure::Arity);
    }
    let chain = found(call)?;
    let tell = |(_, label, value): &Detail, with_label: bool| {
        if with_label {
            call.reply_status(label);
        }
        value(chain.filter()).map_or_else(|| call.reply_null(), |value| call.reply_number(value));
    };
    if call.len() == 2 {
        call.reply_map(DETAILS.len());
        DETAILS.iter().for_each(|detail| tell(detail, true));
        return Ok(());
    }
    let is_asked = |(word, _, _): &&Detail| call.word(2).eq_ignore_ascii_case(word.as_bytes());
    let detail = DETAILS.iter().find(is_asked).ok_or_else(|| without_code("Invalid information value"))?;
    match call.is_resp3() {
        true => call.reply_map(1),
        false => call.reply_array(1),
    }
    tell(detail, call.is_resp3());
    Ok(())
}

/// `BF.DEBUG key`
pub(super) fn debug(call: &mut Call<'_>) -> Result<(), Failure> {
    let chain = found(call)?;
    let filter = chain.filter();
    call.reply_array(1 + filter.stages().len());
    call.reply_bulk(format!("size:{}", filter.size()).as_bytes());
    for stage in filter.stages() {
        let line = format!(
            "bytes:{} bits:{} hashes:{} hashwidth:64 capacity:{} size:{} ratio:{}",
            stage.bytes(),
            stage.bits,
            stage.hashes,
            stage.entries,
            stage.size,
            short(stage.error_rate)
        );
        call.reply_bulk(line.as_bytes());
    }
    Ok(())
}
