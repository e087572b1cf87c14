//! Blocks of whole records.

use super::framing::{Cutter, Framing};
use super::room::{Room, Share};
use super::source::{Arrival, Source};
use crate::failure::{Failure, Result};
use crate::platform::Interrupt;
use memchr::memchr_iter;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How much is read at a time: large enough that system calls do not count, small enough that a
/// block is still in the second-level cache when it is written.
pub(crate) const BLOCK_BYTES: usize = 128 << 10;
/// A longer block has a long record, and shares its room with the other ones that have.
const LONG_BYTES: usize = 4 * BLOCK_BYTES;

/// Byte order marks: of UTF-8, which means nothing, and of UTF-16 in both orders.
const MARKS: [&[u8]; 3] = [&[0xef, 0xbb, 0xbf], &[0xff, 0xfe], &[0xfe, 0xff]];

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
    /// The room that a long record takes.
    share: Option<Share>,
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

    /// Whether it has a long record.
    pub(crate) fn is_long(&self) -> bool {
        self.share.is_some()
    }

    /// Lets go of the room that a long record took; the records are gone with it.
    pub(crate) fn release(&mut self) {
        if let Some(share) = self.share.take() {
            share.leave(std::mem::take(&mut self.bytes));
            self.filled = 0;
        }
    }

    fn start_with(&mut self, tail: &mut Vec<u8>, room: &Arc<Room>) {
        if tail.len() < BLOCK_BYTES {
            self.release();
        }
        if tail.len() > LONG_BYTES.max(self.bytes.len()) {
            room.take(&mut self.share, tail.len());
            self.bytes = room.spare(tail.len()).unwrap_or_default();
        }
        self.bytes.resize(self.bytes.len().max(BLOCK_BYTES).max(tail.len()), 0);
        self.bytes[..tail.len()].copy_from_slice(tail);
        self.filled = tail.len();
        tail.clear();
        tail.shrink_to(BLOCK_BYTES);
    }

    /// Makes room for a record longer than the block, without doubling a gigabyte.
    fn grow(&mut self, room: &Arc<Room>) -> Result<()> {
        let more = (self.bytes.len() / 8).max(BLOCK_BYTES);
        let bytes = self.bytes.len() + more;
        if bytes > LONG_BYTES {
            room.take(&mut self.share, bytes);
            if let Some(mut longer) = room.spare(bytes) {
                longer[..self.filled].copy_from_slice(self.bytes());
                self.bytes = longer;
                return Ok(());
            }
        }
        self.bytes.try_reserve_exact(more).map_err(|_| {
            Failure::new(format!("a record of more than {} bytes does not fit into memory", self.filled))
        })?;
        self.bytes.resize(bytes, 0);
        Ok(())
    }

    fn drop_first(&mut self, count: usize) {
        self.bytes.copy_within(count..self.filled, 0);
        self.filled -= count;
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
    framing: Framing,
    tail: Vec<u8>,
    position: Position,
    /// Whether nothing of the input has been looked at, so that it may begin with a byte order mark.
    at_start: bool,
    /// The length of that mark, until the block behind it is given.
    mark_bytes: u64,
    /// The lines of the blocks so far, if records may have more than one and the input was read from its start.
    lines: Option<u64>,
    room: Arc<Room>,
    /// Whether the input at `position` has been read to its end.
    ended: bool,
    started: bool,
    failure: Option<Failure>,
    interrupt: Option<Arc<Interrupt>>,
    consumed: Arc<AtomicU64>,
}

impl BlockReader {
    /// Reads `paths`, or stdin if there are none.
    pub(crate) fn new(mut paths: Vec<PathBuf>, framing: impl Into<Framing>) -> Self {
        if paths.is_empty() {
            paths.push(PathBuf::from("-"));
        }
        BlockReader {
            paths,
            current: None,
            framing: framing.into(),
            tail: Vec::new(),
            position: Position::default(),
            at_start: true,
            mark_bytes: 0,
            lines: None,
            room: Arc::default(),
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

    /// How records are told apart.
    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether the next block may keep its reader waiting.
    pub(crate) fn may_wait(&self) -> bool {
        self.current.as_ref().is_none_or(Source::may_wait)
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
        self.at_start = !self.started;
        self.mark_bytes = 0;
        self.lines = (self.framing.quoted_fields.is_some() && !self.started).then_some(0);
        self.current = Some(Source::open_at(path, self.position.offset, &self.consumed)?);
        Ok(true)
    }

    fn fill(&mut self, block: &mut Block) -> Result<Reading> {
        let Some(source) = self.current.as_mut() else { return Ok(Reading::End) };
        block.start_with(&mut self.tail, &self.room);
        let mut cutter = Cutter::new(self.framing);
        loop {
            if block.filled == block.bytes.len() {
                block.grow(&self.room)?;
            }
            match source.read(&mut block.bytes[block.filled..], self.interrupt.as_deref()) {
                Ok(Arrival::Bytes(count)) => block.filled += count,
                Ok(Arrival::End) => return self.end_input(block, cutter, None),
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
                    self.advance(block);
                    return Ok(if block.filled > 0 { Reading::Block } else { Reading::Interrupted });
                }
                Err(error) => {
                    let failure = Failure::io(source.name(), &error);
                    return self.end_input(block, cutter, Some(failure));
                }
            }
            if self.at_start {
                if MARKS.iter().any(|mark| mark.len() > block.filled && mark.starts_with(block.bytes())) {
                    continue;
                }
                self.mark_bytes = skip_mark(block, source.name())?;
                self.at_start = false;
            }
            match cutter.last_end(block.bytes()) {
                Some(end) if block.filled == block.bytes.len() || source.would_wait() => {
                    self.tail.extend_from_slice(&block.bytes[end..block.filled]);
                    block.filled = end;
                    self.advance(block);
                    return Ok(Reading::Block);
                }
                _ => {}
            }
        }
    }

    /// The block is given, so the position is behind it.
    fn advance(&mut self, block: &Block) {
        if !block.is_long() {
            // Long records come one after another, or hardly ever.
            self.room.forget_spare();
        }
        if block.filled > 0 {
            self.position.offset += block.filled as u64 + std::mem::take(&mut self.mark_bytes);
            self.lines = self.lines.map(|lines| lines + memchr_iter(b'\n', block.bytes()).count() as u64);
        }
    }

    /// The input is read: the block takes all that is left of it.
    fn end_input(&mut self, block: &mut Block, mut cutter: Cutter, failure: Option<Failure>) -> Result<Reading> {
        let name = self.current.take().map_or(String::new(), |source| source.name().to_string());
        self.ended = true;
        self.failure = failure;
        if std::mem::take(&mut self.at_start) {
            self.mark_bytes = skip_mark(block, &name)?;
        }
        let end = cutter.last_end(block.bytes());
        if let Some(opened) = cutter.open_quote() {
            let lines = memchr_iter(b'\n', &block.bytes()[..opened]).count() as u64;
            let place = match self.lines {
                Some(before) => format!("in line {}", before + lines + 1),
                None => format!("at byte {}", self.position.offset + opened as u64 + 1),
            };
            self.failure.get_or_insert_with(|| {
                Failure::new(format!("{name}: the quote opened {place} is not closed; close it, or leave --csv out"))
            });
            block.filled = end.unwrap_or(0);
        }
        self.advance(block);
        let more_follows = self.position.input + 1 < self.paths.len() && self.failure.is_none();
        if more_follows && block.bytes().last().is_some_and(|last| *last != self.framing.ending) {
            // Without it the last record would run into the next input's first.
            block.push(self.framing.ending);
        }
        Ok(Reading::Block)
    }
}

/// Takes a byte order mark off the start of an input, and says how long it was. UTF-16 is refused: its lines are no
/// lines, and every second byte of them is NUL.
fn skip_mark(block: &mut Block, name: &str) -> Result<u64> {
    match MARKS.iter().position(|mark| block.bytes().starts_with(mark)) {
        None => Ok(0),
        Some(0) => {
            block.drop_first(MARKS[0].len());
            Ok(MARKS[0].len() as u64)
        }
        Some(_) => {
            let remedy = "convert it first, as with iconv -f UTF-16 -t UTF-8";
            Err(Failure::new(format!("{name}: is text in UTF-16, which is not read; {remedy}")))
        }
    }
}
