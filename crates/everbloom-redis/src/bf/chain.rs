//! The value of a key: RedisBloom's filter, its file format, and what it counts.

use crate::eb::limits::most_bytes;
use crate::report::Counted;
use crate::server::{Digest, Loader, Rewriter, Saver, TypeSlot, Value};
use everbloom::Filter;
use everbloom_compat::RedisBloom;
use everbloom_compat::redisbloom::{Assembly, Header, MAX_CHUNK_BYTES, StageHeader};
use std::ffi::CStr;

/// A chain of stages, as RedisBloom calls it.
pub(super) struct Chain {
    filter: RedisBloom,
    counted: Counted,
}

impl Chain {
    pub(super) fn new(filter: RedisBloom) -> Self {
        let counted = Counted::new(filter.spec().kind(), filter.memory_bits() / 8);
        Chain { filter, counted }
    }

    pub(super) fn filter(&self) -> &RedisBloom {
        &self.filter
    }

    /// Changes the filter, and looks how large it is then.
    pub(super) fn change<T>(&mut self, change: impl FnOnce(&mut RedisBloom) -> T) -> T {
        let outcome = change(&mut self.filter);
        self.counted.resize(self.filter.memory_bits() / 8);
        outcome
    }
}

/// All chunks of a filter, each with the iterator that loads it: one more than where it ends.
pub(super) fn chunks(filter: &RedisBloom) -> impl Iterator<Item = (u64, &[u8])> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let chunk = filter.chunk(offset);
        offset += chunk.len() as u64;
        (!chunk.is_empty()).then_some((offset + 1, chunk))
    })
}

/// The words that make a filter: `BF.LOADCHUNK` and these, one after another.
pub(super) fn for_each_load(filter: &RedisBloom, mut load: impl FnMut([&[u8]; 2])) {
    load([b"1", &filter.header().encode()]);
    for (iterator, chunk) in chunks(filter) {
        load([iterator.to_string().as_bytes(), chunk]);
    }
}

/// The command that loads a part of a filter.
pub(super) const LOAD: &CStr = c"BF.LOADCHUNK";

impl Value for Chain {
    const NAME: &'static CStr = c"MBbloom--";
    const VERSION: i32 = 4;

    fn slot() -> &'static TypeSlot {
        static SLOT: TypeSlot = TypeSlot::new();
        &SLOT
    }

    fn save(&self, out: &mut Saver) {
        let header = self.filter.header();
        for number in [header.size(), header.stages.len() as u64, header.options.into(), header.expansion.into()] {
            out.number(number);
        }
        for (index, stage) in header.stages.iter().enumerate() {
            out.number(stage.entries);
            out.double(stage.error_rate);
            out.number(stage.hashes.into());
            out.double(stage.bits_per_entry);
            out.number(stage.bits);
            out.number(stage.power.into());
            out.bytes(self.filter.stage_bytes(index).unwrap_or_default());
            out.number(stage.size);
        }
    }

    fn load(from: &mut Loader, version: i32) -> Result<Self, String> {
        if version != Self::VERSION {
            return Err(format!("it was written with version {version} of the type, which is not known"));
        }
        let (size, count) = (from.number()?, from.number()?);
        let (options, expansion) = (small(from.number()?)?, small(from.number()?)?);
        let mut assembly = Assembly::new(options, expansion);
        let most = match from.is_limited() {
            true => most_bytes().min(from.memory_left().unwrap_or(u64::MAX)),
            false => u64::MAX,
        };
        for _ in 0..count {
            load_stage(from, &mut assembly, most)?;
        }
        assembly.finish(size).map(Chain::new).map_err(|error| error.to_string())
    }

    fn rewrite(&self, out: &mut Rewriter) {
        for_each_load(&self.filter, |words| out.command(LOAD, words));
    }

    fn digest(&self, out: &mut Digest) {
        out.bytes(&self.filter.header().encode());
        for (_, chunk) in chunks(&self.filter) {
            out.bytes(chunk);
        }
    }

    fn memory_usage(&self) -> usize {
        self.filter.reported_bytes() as usize
    }

    fn copy(&self) -> Option<Self> {
        self.filter.try_clone().ok().map(Chain::new)
    }
}

/// Reads a stage. Its sizes are checked before its memory is asked for, and its bits must have just that length.
fn load_stage(from: &mut Loader, assembly: &mut Assembly, most: u64) -> Result<(), String> {
    let (entries, error_rate) = (from.number()?, from.double()?);
    let (hashes, bits_per_entry) = (small(from.number()?)?, from.double()?);
    let (bits, power) = (from.number()?, from.number()?);
    let power = u8::try_from(power).map_err(|_| "a stage of it is damaged")?;
    // Its keys come behind its bits, which are read first, so that no memory is asked for that the data does not have.
    let bytes = from.bytes()?;
    let stage = StageHeader { entries, error_rate, hashes, bits_per_entry, bits, power, size: from.number()? };
    if stage.bytes() != bytes.len() as u64 {
        return Err("a stage of it has other bits than it says".into());
    }
    if assembly.bytes_with(&stage) > most {
        return Err(format!("it takes more than {most} bytes, which is max-filter-bytes or what maxmemory leaves"));
    }
    assembly.push(stage).map_err(|error| error.to_string())?.copy_from_slice(&bytes);
    Ok(())
}

fn small(number: u64) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| "a number of it is too large".into())
}

/// A header that a client sent, for a filter of at most so many bytes.
pub(super) fn sound_header(bytes: &[u8], most: u64) -> Result<Header, Unsound> {
    let header = Header::decode(bytes).map_err(|_| Unsound::Bad)?;
    if header.bytes() <= most { Ok(header) } else { Err(Unsound::TooLarge) }
}

/// Why a header is refused.
#[derive(Debug, PartialEq)]
pub(super) enum Unsound {
    /// It is none.
    Bad,
    /// It asks for too much.
    TooLarge,
}

const _: () = assert!(MAX_CHUNK_BYTES <= 16 << 20, "a chunk is one string of the protocol");

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom::{Hashing, Key};
    use everbloom_compat::redisbloom::Parameters;

    #[test]
    fn the_loads_of_a_filter_make_it_again() {
        let mut filter = RedisBloom::new(Parameters::new(10, 0.01)).expect("small");
        for key in 0..200u64 {
            filter.add_hash(key.hash_with(&Hashing::Murmur)).expect("memory");
        }
        let mut copy: Option<RedisBloom> = None;
        for_each_load(&filter, |[iterator, bytes]| match &mut copy {
            None => copy = Some(RedisBloom::from_header(&sound_header(bytes, 1 << 20).expect("sound")).expect("small")),
            Some(copy) => {
                let iterator = std::str::from_utf8(iterator).ok().and_then(|text| text.parse().ok()).expect("a number");
                copy.load_chunk(iterator, bytes).expect("its place");
            }
        });
        let copy = copy.expect("a header came");
        assert_eq!(copy.header(), filter.header());
        assert!(chunks(&copy).eq(chunks(&filter)));
        assert_eq!(sound_header(&filter.header().encode(), 100), Err(Unsound::TooLarge));
    }
}
