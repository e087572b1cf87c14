//! Frames of lz4, handed to the decoder block by block.
//!
//! The decoder reads by itself, takes an end between two blocks for the end of the frame, and would wait within
//! one. So it is only given whole blocks, and the end is where the frame says it is.

use super::decoder::{Done, damaged};
use lz4_flex::frame::FrameDecoder;
use std::io::{self, Cursor, Read as _};

/// No block is longer than the 4 MiB that the format allows.
const MOST_BLOCK_BYTES: usize = 4 << 20;
const STORED_AS_IT_IS: u32 = 1 << 31;

pub(super) struct Lz4 {
    decoder: FrameDecoder<Cursor<Vec<u8>>>,
    /// The header, block or end mark that is being collected.
    unit: Vec<u8>,
    stage: Stage,
    /// Whether the decoder has a unit that it has not given all of.
    is_giving: bool,
    has_block_checksums: bool,
    has_content_checksum: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Blocks,
    Over,
}

impl Lz4 {
    pub(super) fn new() -> Self {
        Lz4 {
            decoder: FrameDecoder::new(Cursor::default()),
            unit: Vec::new(),
            stage: Stage::Header,
            is_giving: false,
            has_block_checksums: false,
            has_content_checksum: false,
        }
    }

    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<Done> {
        if self.is_giving {
            let produced = self.decoder.read(output).map_err(|error| damaged("lz4", &error))?;
            self.is_giving = produced > 0;
            if self.is_giving || self.stage == Stage::Over {
                return Ok(Done { consumed: 0, produced, is_over: !self.is_giving });
            }
        }
        let mut consumed = 0;
        // How long a unit is, is only known when some of it is there.
        while let Some(missing) = self.unit_bytes()?.checked_sub(self.unit.len()).filter(|missing| *missing > 0) {
            let more = &input[consumed..][..missing.min(input.len() - consumed)];
            if more.is_empty() {
                return Ok(Done { consumed, ..Done::default() });
            }
            self.unit.extend_from_slice(more);
            consumed += more.len();
        }
        self.hand_over();
        Ok(Done { consumed, ..Done::default() })
    }

    /// How long the unit is, as far as that can be told.
    fn unit_bytes(&self) -> io::Result<usize> {
        match (self.stage, self.unit.as_slice()) {
            (Stage::Header, [_, _, _, _, flags, ..]) => {
                Ok(7 + if flags & 8 != 0 { 8 } else { 0 } + if flags & 1 != 0 { 4 } else { 0 })
            }
            (Stage::Header, _) => Ok(5),
            (_, [a, b, c, d, ..]) => {
                let size = u32::from_le_bytes([*a, *b, *c, *d]);
                let length = (size & !STORED_AS_IT_IS) as usize;
                if length > MOST_BLOCK_BYTES {
                    return Err(damaged("lz4", &"a block is too long"));
                }
                let has_checksum = if size == 0 { self.has_content_checksum } else { self.has_block_checksums };
                Ok(4 + length + if has_checksum { 4 } else { 0 })
            }
            _ => Ok(4),
        }
    }

    fn hand_over(&mut self) {
        match (self.stage, self.unit.as_slice()) {
            (Stage::Header, [_, _, _, _, flags, ..]) => {
                (self.has_block_checksums, self.has_content_checksum) = (flags & 16 != 0, flags & 4 != 0);
                self.stage = Stage::Blocks;
            }
            (Stage::Blocks, [0, 0, 0, 0, ..]) => self.stage = Stage::Over,
            _ => {}
        }
        let mut used =
            std::mem::replace(self.decoder.get_mut(), Cursor::new(std::mem::take(&mut self.unit))).into_inner();
        used.clear();
        self.unit = used;
        self.is_giving = true;
    }
}
