//! A filter as RedisBloom sends it: a header that describes every stage, and chunks of their bits.
//!
//! ```text
//! header, packed, little-endian              chunks: the stages' bits one after another,
//!  u64 keys inside                           cut where a stage ends and after 16 MiB
//!  u32 stages, u32 options, u32 expansion
//!  then for each stage, 53 bytes:            iterator   0      1 … bytes       1 + all bytes
//!  u64 bytes, u64 bits, u64 keys inside                 header  from offset      nothing more
//!  f64 rate, f64 bits a key                                     iterator − 1
//!  u32 hashes, u64 keys it takes, u8 power
//! ```

use super::stage::{Stage, StageHeader};
use super::{MAX_STAGES, Parameters, RedisBloom, options};
use everbloom::kind::Base;
use everbloom::{Error, Hashing, Result, Spec};

/// The most bytes of a chunk.
pub const MAX_CHUNK_BYTES: usize = 16 << 20;

const START_BYTES: usize = 20;
const STAGE_BYTES: usize = 53;

/// All that RedisBloom writes down about a filter but its bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// How it works: see [`options`].
    pub options: u32,
    /// How many times as many keys the next stage takes.
    pub expansion: u32,
    /// The stages, oldest first.
    pub stages: Vec<StageHeader>,
}

impl Header {
    /// The keys inside.
    pub fn size(&self) -> u64 {
        self.stages.iter().fold(0, |size, stage| size.saturating_add(stage.size))
    }

    /// The bytes of all stages' bits.
    pub fn bytes(&self) -> u64 {
        self.stages.iter().fold(0, |bytes, stage| bytes.saturating_add(stage.bytes()))
    }

    /// The packed bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(START_BYTES + self.stages.len() * STAGE_BYTES);
        bytes.extend_from_slice(&self.size().to_le_bytes());
        for word in [self.stages.len() as u32, self.options, self.expansion] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for stage in &self.stages {
            let (rate, bits_per_entry) = (stage.error_rate.to_bits(), stage.bits_per_entry.to_bits());
            for word in [stage.bytes(), stage.bits, stage.size, rate, bits_per_entry] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            bytes.extend_from_slice(&stage.hashes.to_le_bytes());
            bytes.extend_from_slice(&stage.entries.to_le_bytes());
            bytes.push(stage.power);
        }
        bytes
    }

    /// Reads packed bytes, which must be sound: nothing that a filter relies on is left to trust.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::corrupt("the header of the filter is damaged");
        let (start, stages) = bytes.split_first_chunk::<START_BYTES>().ok_or_else(damaged)?;
        let mut start = Fields(start);
        let (size, count, options, expansion) = (start.u64(), start.u32(), start.u32(), start.u32());
        let (stages, rest) = stages.as_chunks::<STAGE_BYTES>();
        if stages.len() as u64 != u64::from(count) || !rest.is_empty() || stages.len() > MAX_STAGES {
            return Err(damaged());
        }
        let read = |stage: &[u8; STAGE_BYTES]| {
            let mut fields = Fields(stage);
            let (bytes, bits, size) = (fields.u64(), fields.u64(), fields.u64());
            let (error_rate, bits_per_entry) = (f64::from_bits(fields.u64()), f64::from_bits(fields.u64()));
            let (hashes, entries, power) = (fields.u32(), fields.u64(), stage[STAGE_BYTES - 1]);
            let stage = StageHeader { entries, error_rate, hashes, bits_per_entry, bits, power, size };
            if stage.bytes() == bytes { Ok(stage) } else { Err(damaged()) }
        };
        let header = Header { options, expansion, stages: stages.iter().map(read).collect::<Result<_>>()? };
        header.checked(size)?;
        Ok(header)
    }

    /// Refuses what a filter could not work with, or RedisBloom would not have written; `size` is what it says of all keys.
    pub fn checked(&self, size: u64) -> Result<()> {
        let sum = self.stages.iter().try_fold(0u64, |sum, stage| sum.checked_add(stage.size));
        let scales = self.options & options::NO_SCALING == 0;
        let first_rate = self.stages.first().map_or(1.0, |stage| stage.error_rate);
        let sound = [
            (!self.stages.is_empty() && self.stages.len() <= MAX_STAGES, "it has none or too many stages"),
            (self.options & !options::ALL == 0, "it has options that do not exist"),
            (self.options & options::HASH_64 != 0, "its keys were hashed to 32 bits, as before RedisBloom 2.0"),
            (!scales || self.expansion > 0, "its stages grow to nothing"),
            (!scales || first_rate < 0.5, "its first stage has no rate that can be halved for others"),
            (sum == Some(size), "its stages have other keys than it says"),
        ];
        if let Some((_, problem)) = sound.iter().find(|(holds, _)| !holds) {
            return Err(Error::corrupt(format!("the header of the filter is damaged: {problem}")));
        }
        self.stages.iter().try_for_each(StageHeader::checked)?;
        self.parameters().checked().map(|_| ())
    }

    /// The parameters by which RedisBloom would have begun.
    pub(super) fn parameters(&self) -> Parameters {
        let (capacity, rate) = self.stages.first().map_or((1, 0.01), |stage| (stage.entries, stage.error_rate));
        let scales = self.options & options::NO_SCALING == 0;
        let error_rate = if scales { rate * 2.0 } else { rate };
        Parameters { capacity, error_rate, expansion: self.expansion, options: self.options }
    }

    /// The spec of a filter with this header.
    pub(super) fn spec(&self) -> Spec {
        self.parameters().spec()
    }
}

/// Numbers one after another, in bytes of which there are enough.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((taken, rest)) => {
                self.0 = rest;
                *taken
            }
            None => [0; N],
        }
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
}

/// Why a chunk could not be put into a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkError {
    /// It is longer than what comes before its iterator.
    Bad,
    /// It begins where no stage is.
    NoStage,
    /// It ends beyond the stage that it begins in.
    TooLong,
}

/// A filter that is put together stage by stage, so that no more than one stage's bits are there twice.
#[derive(Debug)]
pub struct Assembly {
    header: Header,
    stages: Vec<Stage>,
}

impl Assembly {
    /// A filter with these options and expansion, and no stage yet.
    pub fn new(options: u32, expansion: u32) -> Self {
        Assembly { header: Header { options, expansion, stages: Vec::new() }, stages: Vec::new() }
    }

    /// The bytes of the bits that it has, and would have with this stage.
    pub fn bytes_with(&self, stage: &StageHeader) -> u64 {
        self.header.bytes().saturating_add(stage.bytes())
    }

    /// Adds a stage behind the others, without a bit set, and shows its bits; an error if it is unsound or there is no memory.
    pub fn push(&mut self, stage: StageHeader) -> Result<&mut [u8]> {
        stage.checked()?;
        if self.stages.len() >= MAX_STAGES {
            return Err(Error::corrupt("the filter has too many stages"));
        }
        self.header.stages.push(stage);
        self.stages.push(Stage::new(stage)?);
        Ok(self.stages.last_mut().map_or(&mut [], Stage::bytes_mut))
    }

    /// The filter; `size` is what it says of the keys inside.
    pub fn finish(self, size: u64) -> Result<RedisBloom> {
        let Assembly { header, stages } = self;
        header.checked(size)?;
        let parameters = header.parameters().checked()?;
        let promise = if parameters.gives(&header.stages) { parameters.promise() } else { parameters.no_promise() };
        let mut base = Base::of_any_hash(&super::KIND, header.spec(), Hashing::Murmur, promise);
        base.arrivals = size;
        let beyond = |sum: u64, stage: &StageHeader| sum.saturating_add(stage.size.saturating_sub(stage.entries));
        let refused = header.stages.iter().fold(0, beyond);
        Ok(RedisBloom { parameters, base, stages, spare: Vec::new(), refused })
    }
}

impl RedisBloom {
    /// The filter that a header describes, without a bit set: its chunks are to follow. An error if the header is unsound or
    /// there is no memory; [`Header::bytes`] tells beforehand how much it takes.
    pub fn from_header(header: &Header) -> Result<Self> {
        header.checked(header.size())?;
        let mut assembly = Assembly::new(header.options, header.expansion);
        header.stages.iter().try_for_each(|stage| assembly.push(*stage).map(|_| ()))?;
        assembly.finish(header.size())
    }

    /// What RedisBloom writes down about the filter.
    pub fn header(&self) -> Header {
        let stages = self.stages.iter().map(Stage::header).collect();
        Header { options: self.parameters.options, expansion: self.parameters.expansion, stages }
    }

    /// The chunk that begins after so many bytes of all stages' bits: the rest of a stage, or [`MAX_CHUNK_BYTES`] of it. Empty
    /// at the end and beyond.
    pub fn chunk(&self, offset: u64) -> &[u8] {
        let Some((stage, start)) = self.stage_at(offset) else { return &[] };
        let bytes = &self.stages[stage].bytes()[start..];
        &bytes[..bytes.len().min(MAX_CHUNK_BYTES)]
    }

    /// Writes a chunk that ends before `iterator`, which counts from 1, over the bits there.
    pub fn load_chunk(&mut self, iterator: i64, chunk: &[u8]) -> Result<(), ChunkError> {
        let start = i64::try_from(chunk.len()).ok().and_then(|length| iterator.checked_sub(length));
        let start = start.filter(|start| *start >= 0).ok_or(ChunkError::Bad)?;
        let offset = u64::try_from(start - 1).map_err(|_| ChunkError::NoStage)?;
        let (stage, start) = self.stage_at(offset).ok_or(ChunkError::NoStage)?;
        let bytes = &mut self.stages[stage].bytes_mut()[start..];
        bytes.get_mut(..chunk.len()).ok_or(ChunkError::TooLong)?.copy_from_slice(chunk);
        Ok(())
    }

    /// The bits of a stage, oldest first, to be filled.
    pub fn stage_bytes_mut(&mut self, stage: usize) -> Option<&mut [u8]> {
        self.stages.get_mut(stage).map(Stage::bytes_mut)
    }

    /// The bits of a stage, oldest first.
    pub fn stage_bytes(&self, stage: usize) -> Option<&[u8]> {
        self.stages.get(stage).map(Stage::bytes)
    }

    /// The stage after so many bytes of all stages' bits, and the byte within it.
    fn stage_at(&self, mut offset: u64) -> Option<(usize, usize)> {
        for (index, stage) in self.stages.iter().enumerate() {
            let bytes = stage.bytes().len() as u64;
            if offset < bytes {
                return Some((index, offset as usize));
            }
            offset -= bytes;
        }
        None
    }
}
