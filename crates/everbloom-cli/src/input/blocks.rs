//! Blocks of whole records.

use super::source::{Arrival, Source};
use crate::failure::{Failure, Result};
use crate::platform::Interrupt;
use memchr::memrchr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How much is read at a time: large enough that system calls do not count, small enough that a
/// block is still in the second-level cache when it is written.
pub(crate) const BLOCK_BYTES: usize = 128 << 10;

/// How far the inputs have been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    /// The input, counted from 0.
    pub(crate) input: usize,
    /// Bytes of it, unpacked.
    pub(crate) offset: u64,
}

/// A buffer that ends where a record ends.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    filled: usize,
    /// Where the inputs stand after this block.
    pub(crate) position: Position,
    /// Where it begins.
    pub(crate) start: Position,
    /// Whether the block is the first of its input.
    pub(crate) is_first: bool,
}

impl Block {
    /// The records.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// The records, to be rearranged.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.filled]
    }

    fn start_with(&mut self, tail: &mut Vec<u8>) {
        // A line of a gigabyte leaves a buffer that no later block should carry along.
        if self.bytes.len() > 4 * BLOCK_BYTES && tail.len() < BLOCK_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.resize(self.bytes.len().max(BLOCK_BYTES).max(tail.len()), 0);
        self.bytes[..tail.len()].copy_from_slice(tail);
        self.filled = tail.len();
        tail.clear();
        tail.shrink_to(BLOCK_BYTES);
    }

    /// Makes room for a record longer than the block, without doubling a gigabyte.
    fn grow(&mut self) -> Result<()> {
        let more = (self.bytes.len() / 8).max(BLOCK_BYTES);
        self.bytes.try_reserve_exact(more).map_err(|_| {
            Failure::new(format!("a record of more than {} bytes does not fit into memory", self.filled))
        })?;
        self.bytes.resize(self.bytes.len() + more, 0);
        Ok(())
    }

    fn push(&mut self, byte: u8) {
        self.bytes.truncate(self.filled);
        self.bytes.push(byte);
        self.filled += 1;
    }
}

/// What became of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The block is filled.
    Block,
    /// Nothing has come for a while; the block is empty.
    Idle,
    /// There is no more.
    End,
    /// A signal asked us to stop; the position says where.
    Interrupted,
}

/// Reads inputs one after another; a block never spans two of them.
pub(crate) struct BlockReader {
    paths: Vec<PathBuf>,
    current: Option<Source>,
    delimiter: u8,
    tail: Vec<u8>,
    position: Position,
    /// Whether the input at `position` has been read to its end.
    ended: bool,
    started: bool,
    failure: Option<Failure>,
    interrupt: Option<Arc<Interrupt>>,
    consumed: Arc<AtomicU64>,
}

impl BlockReader {
    /// Reads `paths`, or stdin if there are none.
    pub(crate) fn new(mut paths: Vec<PathBuf>, delimiter: u8) -> Self {
        if paths.is_empty() {
            paths.push(PathBuf::from("-"));
        }
        BlockReader {
            paths,
            current: None,
            delimiter,
            tail: Vec::new(),
            position: Position::default(),
            ended: false,
            started: false,
            failure: None,
            interrupt: None,
            consumed: Arc::default(),
        }
    }

    /// Stops when a signal comes.
    pub(crate) fn stop_on(mut self, interrupt: Option<Arc<Interrupt>>) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// Starts somewhere else than at the beginning.
    pub(crate) fn start_at(mut self, position: Position) -> Self {
        self.position = position;
        self
    }

    /// The byte that ends a record.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// The inputs.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// How far the inputs have been read.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// A count of the bytes read as they are stored.
    pub(crate) fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// Fills `block` with whole records. What was read before a failure comes first, then the failure.
    pub(crate) fn next(&mut self, block: &mut Block) -> Result<Reading> {
        loop {
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if self.current.is_none() && !self.open_next()? {
                return Ok(Reading::End);
            }
            block.is_first = !self.started;
            block.start = self.position;
            let reading = self.fill(block)?;
            if reading != Reading::Block || block.filled > 0 {
                self.started |= block.filled > 0;
                block.position = self.position;
                return Ok(reading);
            }
        }
    }

    /// Opens the next input; false if there is none.
    fn open_next(&mut self) -> Result<bool> {
        let next = if self.ended { Position { input: self.position.input + 1, offset: 0 } } else { self.position };
        // At the end of the last input the position stays there, in case it grows.
        let Some(path) = self.paths.get(next.input) else { return Ok(false) };
        self.position = next;
        self.ended = false;
        self.started = self.position.offset > 0;
        self.current = Some(Source::open_at(path, self.position.offset, &self.consumed)?);
        Ok(true)
    }

    fn fill(&mut self, block: &mut Block) -> Result<Reading> {
        let Some(source) = self.current.as_mut() else { return Ok(Reading::End) };
        block.start_with(&mut self.tail);
        let mut end_of_records = None;
        loop {
            if block.filled == block.bytes.len() {
                block.grow()?;
            }
            let searched = block.filled;
            match source.read(&mut block.bytes[searched..], self.interrupt.as_deref()) {
                Ok(Arrival::Bytes(count)) => block.filled += count,
                Ok(Arrival::End) => return Ok(self.end_input(block)),
                Ok(Arrival::Nothing) => {
                    self.tail.extend_from_slice(block.bytes());
                    block.filled = 0;
                    return Ok(Reading::Idle);
                }
                Ok(Arrival::Interrupted) => {
                    if source.can_be_reread() {
                        block.filled = 0;
                    }
                    // What a pipe gave cannot be had again, so half a record is a record.
                    self.position.offset += block.filled as u64;
                    return Ok(if block.filled > 0 { Reading::Block } else { Reading::Interrupted });
                }
                Err(error) => {
                    self.failure = Some(Failure::io(source.name(), &error));
                    return Ok(self.end_input(block));
                }
            }
            let newest = memrchr(self.delimiter, &block.bytes[searched..block.filled]);
            end_of_records = newest.map(|at| searched + at + 1).or(end_of_records);
            match end_of_records {
                Some(end) if block.filled == block.bytes.len() || source.would_wait() => {
                    self.tail.extend_from_slice(&block.bytes[end..block.filled]);
                    block.filled = end;
                    self.position.offset += end as u64;
                    return Ok(Reading::Block);
                }
                _ => {}
            }
        }
    }

    /// The input is read: the block takes all that is left of it.
    fn end_input(&mut self, block: &mut Block) -> Reading {
        self.current = None;
        self.ended = true;
        self.position.offset += block.filled as u64;
        let more_follows = self.position.input + 1 < self.paths.len() && self.failure.is_none();
        if more_follows && block.bytes().last().is_some_and(|last| *last != self.delimiter) {
            // Without it the last record would run into the next input's first.
            block.push(self.delimiter);
        }
        Reading::Block
    }
}
