//! Blocks of whole records.

use super::follow::{self, Followed, News, Renamed};
use super::framing::{Cutter, Framing};
use super::place::Place;
use super::room::{Room, Share};
use super::source::{Arrival, Source, is_stdin};
use crate::failure::{Failure, Result};
use crate::platform::{self, Interrupt, Readiness};
use memchr::memchr_iter;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How much is read at a time: large enough that system calls do not count, small enough that a
/// block is still in the second-level cache when it is written.
pub(crate) const BLOCK_BYTES: usize = 128 << 10;
/// A longer block has a long record, and shares its room with the other ones that have.
const LONG_BYTES: usize = 4 * BLOCK_BYTES;
/// The longest record. What goes on beyond that is hardly text, and would take all the memory there is before it ends.
const MOST_RECORD_BYTES: usize = 1 << 30;
/// So many bytes of last records without an ending wait for the other inputs at most.
const HELD_BYTES: usize = 4 << 20;

/// Byte order marks: of UTF-8, which means nothing, and of UTF-16 in both orders.
const MARKS: [&[u8]; 3] = [&[0xef, 0xbb, 0xbf], &[0xff, 0xfe], &[0xfe, 0xff]];

/// A buffer that ends where a record ends.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    filled: usize,
    /// Where its input stands after this block.
    pub(crate) place: Place,
    /// Where it begins.
    pub(crate) start: Place,
    /// The inputs that ended since the block before.
    pub(crate) ended: Vec<Place>,
    /// Whether the block is the first of its input.
    pub(crate) is_first: bool,
    /// The room that a long record takes.
    share: Option<Share>,
}

impl Block {
    /// One with more room than usual, where every block is worth a journey to servers.
    pub(crate) fn large() -> Self {
        Block { bytes: vec![0; LONG_BYTES], ..Block::default() }
    }

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

    /// The half line of a file that is not read.
    pub(crate) fn of_half_line(text: &[u8], place: &Place) -> Self {
        let (place, start) = (place.clone(), place.clone());
        let (bytes, filled) = (text.to_vec(), text.len());
        Block { bytes, filled, place, start, ..Block::default() }
    }

    fn start_with(&mut self, tail: &mut Vec<u8>, room: &Arc<Room>) -> Result<()> {
        if tail.len() < BLOCK_BYTES {
            self.release();
        }
        if tail.len() > LONG_BYTES.max(self.bytes.len()) {
            room.take(&mut self.share, tail.len());
            self.bytes = room.spare(tail.len()).unwrap_or_default();
        }
        let bytes = self.bytes.len().max(BLOCK_BYTES).max(tail.len());
        let more = bytes - self.bytes.len();
        self.bytes.try_reserve_exact(more).map_err(|_| does_not_fit(tail.len()))?;
        self.bytes.resize(bytes, 0);
        self.bytes[..tail.len()].copy_from_slice(tail);
        self.filled = tail.len();
        tail.clear();
        tail.shrink_to(BLOCK_BYTES);
        Ok(())
    }

    /// Makes room for a record longer than the block, without doubling a gigabyte.
    fn grow(&mut self, room: &Arc<Room>) -> Result<()> {
        let more = (self.bytes.len() / 8).max(BLOCK_BYTES);
        let bytes = self.bytes.len() + more;
        if self.filled > MOST_RECORD_BYTES {
            let limit = MOST_RECORD_BYTES >> 20;
            let problem = format!("a record of more than {limit} MiB is not read");
            return Err(Failure::new(format!(
                "{problem}; records end with a newline, or with a NUL byte if --null is given"
            )));
        }
        if bytes > LONG_BYTES {
            room.take(&mut self.share, bytes);
            if let Some(mut longer) = room.spare(bytes) {
                longer[..self.filled].copy_from_slice(self.bytes());
                self.bytes = longer;
                return Ok(());
            }
        }
        self.bytes.try_reserve_exact(more).map_err(|_| does_not_fit(self.filled))?;
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
    /// A signal asked us to stop; the place says where.
    Interrupted,
}

/// What a file that is followed has to do with its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Standing {
    /// It is called so.
    #[default]
    Named,
    /// Another file is called so now.
    Renamed,
    /// It is read for the last time.
    Closing,
}

/// Reads inputs one after another; a block never spans two of them.
#[derive(Default)]
pub(crate) struct BlockReader {
    paths: Vec<PathBuf>,
    /// How many of them were opened, the first time round.
    opened: usize,
    current: Option<Source>,
    framing: Framing,
    tail: Vec<u8>,
    /// Whether the tail is all that is left of an input: a record without an ending.
    has_last_record: bool,
    /// The last records without an ending of files, if whoever reads asks for them.
    half_lines: Option<Vec<Block>>,
    place: Place,
    /// Where to begin, input by input.
    starts: Vec<Place>,
    ended_places: Vec<Place>,
    /// The inputs that are followed as they grow, if any are.
    followed: Option<Vec<Option<Followed>>>,
    /// Files that lost their names, and may still grow.
    renamed: Vec<Renamed>,
    /// What the file that is read has to do with its name.
    standing: Standing,
    lost: Option<Lost>,
    /// Whether nothing of the input has been looked at, so that it may begin with a byte order mark.
    at_start: bool,
    /// The length of that mark, until the block behind it is given.
    mark_bytes: u64,
    /// The lines of the blocks so far, if records may have more than one and the input was read from its start.
    lines: Option<u64>,
    room: Arc<Room>,
    /// Whether the input at `place` has been read to its end.
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
        BlockReader { paths, framing: framing.into(), at_start: true, ..BlockReader::default() }
    }

    /// Stops when a signal comes.
    pub(crate) fn stop_on(mut self, interrupt: Option<Arc<Interrupt>>) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// Begins each input at a place of its own.
    pub(crate) fn start_at(mut self, starts: Vec<Place>) -> Self {
        self.starts = starts;
        self
    }

    /// Follows files as they grow, if it is so wished: only a signal ends that.
    pub(crate) fn follow(mut self, wished: bool) -> Self {
        self.followed = wished.then(|| self.paths.iter().map(|_| None).collect());
        self
    }

    /// Holds back the last records of files that have no ending, if it is so wished.
    pub(crate) fn hold_half_lines(mut self, wished: bool) -> Self {
        self.half_lines = (wished && self.followed.is_none()).then(Vec::new);
        self
    }

    /// What was held back.
    pub(crate) fn take_half_lines(&mut self) -> Vec<Block> {
        self.half_lines.take().unwrap_or_default()
    }

    /// The first input that is not read from its start.
    pub(crate) fn first_resumed(&self) -> Option<&PathBuf> {
        self.starts.iter().find(|place| place.offset > 0).and_then(|place| self.paths.get(place.input))
    }

    /// What an input is called.
    pub(crate) fn name(&self, input: usize) -> String {
        match self.paths.get(input).filter(|path| !is_stdin(path)) {
            Some(path) => path.display().to_string(),
            None => "stdin".into(),
        }
    }

    /// How records are told apart.
    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether the next block may keep its reader waiting.
    pub(crate) fn may_wait(&self) -> bool {
        self.current.as_ref().is_none_or(Source::may_wait)
    }

    /// The places of the inputs that ended and that no block has told of, and of the one that is being read.
    pub(crate) fn take_places(&mut self) -> (Vec<Place>, Place) {
        (std::mem::take(&mut self.ended_places), self.place.clone())
    }

    /// What a signal left of a pipe.
    pub(crate) fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
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
            if self.has_last_record {
                block.start_with(&mut self.tail, &self.room)?;
                self.give_last_record(block);
                if block.filled == 0 {
                    continue;
                }
                return Ok(self.give(block, Reading::Block));
            }
            if self.current.is_none() {
                let opened = self.open_next()?;
                if opened != Reading::Block {
                    block.filled = 0;
                    return Ok(self.give(block, opened));
                }
            }
            let reading = if self.current.is_some() { self.fill(block)? } else { continue };
            if reading != Reading::Block || block.filled > 0 {
                return Ok(self.give(block, reading));
            }
        }
    }

    /// The block is on its way, with what it has to tell.
    fn give(&mut self, block: &mut Block, reading: Reading) -> Reading {
        block.is_first = !self.started && block.filled > 0;
        self.started |= block.filled > 0;
        block.place = self.place.clone();
        if matches!(reading, Reading::Block | Reading::Idle) {
            block.ended = std::mem::take(&mut self.ended_places);
        }
        reading
    }

    /// Opens the next input.
    fn open_next(&mut self) -> Result<Reading> {
        let next = self.opened;
        if next < self.paths.len() {
            self.opened += 1;
            let path = &self.paths[next];
            if let Some(inputs) = &mut self.followed
                && !is_stdin(path)
                && platform::stat(path).map_err(|error| Failure::io(path.display(), &error))?.is_none()
            {
                inputs[next] = Some(Followed::missing(next));
                return Ok(Reading::Block);
            }
            let start = self.starts.get(next).cloned().unwrap_or_else(|| Place::start_of(next));
            return self.open(start).map(|()| Reading::Block);
        }
        // At the end of the last input its place stays, in case it grows.
        if self.followed.as_ref().is_none_or(|inputs| inputs.iter().all(Option::is_none)) {
            return Ok(Reading::End);
        }
        self.open_followed()
    }

    /// Opens a followed input of which there is news, after a moment if there is none.
    fn open_followed(&mut self) -> Result<Reading> {
        if self.open_renamed()? {
            return Ok(Reading::Block);
        }
        for input in 0..self.paths.len() {
            let Some(inputs) = &mut self.followed else { return Ok(Reading::End) };
            let Some(followed) = &mut inputs[input] else { continue };
            let place = match followed.look(&self.paths[input]) {
                News::Nothing => continue,
                News::Renamed => {
                    let followed = std::mem::replace(followed, Followed::missing(input));
                    self.renamed.push(Renamed::just_now(followed));
                    return Ok(Reading::Block);
                }
                News::Grown(place) | News::Emptied(place) => place,
                News::Created(file) => {
                    if self.take_over(input, &file) {
                        return Ok(Reading::Block);
                    }
                    Place { file: Some(file), ..Place::start_of(input) }
                }
            };
            self.open(place)?;
            return Ok(Reading::Block);
        }
        let Some(interrupt) = &self.interrupt else { return Ok(Reading::End) };
        match interrupt.pause(follow::INTERVAL) {
            Readiness::Interrupted => Ok(Reading::Interrupted),
            Readiness::ReaderGone => Err(Failure::ClosedPipe),
            Readiness::Ready | Readiness::Waiting => Ok(Reading::Idle),
        }
    }

    /// Goes on with a file that was followed by another name, which it has no longer, as with `log` that became `log.1`;
    /// whether it was.
    fn take_over(&mut self, input: usize, file: &File) -> bool {
        let Ok(identity) = platform::data_of(file).map(|data| platform::identity(&data)) else { return false };
        let Some(inputs) = &mut self.followed else { return false };
        let is_it = |followed: &Followed| followed.identity() == Some(identity);
        // Two names of one file are two inputs.
        let has_lost = |other: usize| {
            let named = platform::stat(&self.paths[other]).ok().flatten();
            named.is_none_or(|named| platform::identity(&named) != identity)
        };
        let other = inputs.iter().position(|other| other.as_ref().is_some_and(is_it));
        let known = match other.filter(|other| has_lost(*other)) {
            Some(other) => inputs[other].replace(Followed::missing(other)),
            None => {
                let renamed = self.renamed.iter().position(|renamed| is_it(renamed.followed()));
                renamed.map(|at| self.renamed.remove(at).into_followed())
            }
        };
        let is_known = known.is_some();
        if let Some(known) = known {
            inputs[input] = Some(known.named(input));
        }
        is_known
    }

    /// Opens a file that lost its name, if there is more in it, or to be done with it.
    fn open_renamed(&mut self) -> Result<bool> {
        for index in 0..self.renamed.len() {
            let renamed = &mut self.renamed[index];
            let Some((place, is_last)) = renamed.is_due().then(|| renamed.look()).flatten() else { continue };
            self.renamed.remove(index);
            self.open(place)?;
            self.standing = if is_last { Standing::Closing } else { Standing::Renamed };
            return Ok(true);
        }
        Ok(false)
    }

    fn open(&mut self, mut start: Place) -> Result<()> {
        if let Some(inode) = start.inode.take() {
            // By now another file may have its name.
            let path = &self.paths[start.input];
            let file = Arc::new(platform::open(path).map_err(|error| Failure::io(path.display(), &error))?);
            if platform::inode(&file).map_err(|error| Failure::io(path.display(), &error))? != inode {
                start = Place::start_of(start.input);
            }
            start.file = Some(file);
        }
        if std::mem::take(&mut self.ended) {
            self.ended_places.push(self.place.clone());
        }
        self.started = start.offset > 0;
        self.at_start = !self.started;
        self.mark_bytes = 0;
        self.standing = Standing::Named;
        self.lines = (self.framing.quoted_fields.is_some() && !self.started).then_some(0);
        let source = Source::open_at(&self.paths[start.input], &start, &self.consumed)?;
        let is_read = start.is_read;
        self.place = Place { file: source.file(), ..start };
        self.current = Some(source).filter(|_| !is_read);
        if is_read {
            self.place.is_read = false;
            self.ended = true;
            if let Some(inputs) = &mut self.followed {
                let (place, input) = (self.place.clone(), self.place.input);
                let seen = place.stored;
                let path = &self.paths[input];
                let followed = Followed::new(place, path, seen);
                inputs[input] = Some(followed.map_err(|error| Failure::io(path.display(), &error))?);
            }
        }
        Ok(())
    }

    fn fill(&mut self, block: &mut Block) -> Result<Reading> {
        let Some(source) = self.current.as_mut() else { return Ok(Reading::End) };
        block.start_with(&mut self.tail, &self.room)?;
        let mut cutter = Cutter::new(self.framing);
        loop {
            if block.filled == block.bytes.len() {
                block.grow(&self.room).map_err(|failure| failure.within(Path::new(source.name())))?;
            }
            match source.read(&mut block.bytes[block.filled..], self.interrupt.as_deref()) {
                Ok(Arrival::Bytes(count)) => block.filled += count,
                Ok(Arrival::End) => return self.end_input(block, cutter, None),
                Ok(Arrival::Nothing) => {
                    keep(&mut self.tail, block.bytes())?;
                    block.filled = 0;
                    return Ok(Reading::Idle);
                }
                Ok(Arrival::Interrupted) => {
                    // A file gives it again; of a pipe all that is whole is taken.
                    let end = if source.file().is_some() { 0 } else { cutter.last_end(block.bytes()).unwrap_or(0) };
                    if source.file().is_none() && end < block.filled {
                        self.lost = Some(Lost::new(source.name(), &block.bytes()[end..]));
                    }
                    block.filled = end;
                    self.advance(block);
                    return Ok(if block.filled > 0 { Reading::Block } else { Reading::Interrupted });
                }
                Err(error) => {
                    let failure = Failure::io(source.name(), &error);
                    // Whoever writes a packed file that is followed may be in the middle of a member.
                    let is_cut = error.kind() == io::ErrorKind::UnexpectedEof && source.member().is_some();
                    let goes_on = is_cut && self.is_followed();
                    return self.end_input(block, cutter, Some(failure).filter(|_| !goes_on));
                }
            }
            if self.at_start {
                if MARKS.iter().any(|mark| mark.len() > block.filled && mark.starts_with(block.bytes())) {
                    continue;
                }
                self.mark_bytes = skip_mark(block, self.framing, source.name())?;
                self.at_start = false;
            }
            match cutter.last_end(block.bytes()) {
                Some(end) if block.filled == block.bytes.len() || source.would_wait() => {
                    keep(&mut self.tail, &block.bytes[end..block.filled])?;
                    block.filled = end;
                    self.advance(block);
                    return Ok(Reading::Block);
                }
                _ => {}
            }
        }
    }

    /// The block is given, so the place is behind it.
    fn advance(&mut self, block: &mut Block) {
        if !block.is_long() {
            // Long records come one after another, or hardly ever.
            self.room.forget_spare();
        }
        block.start = self.place.further(self.mark_bytes);
        if block.filled > 0 {
            self.place = block.start.further(block.filled as u64);
            self.mark_bytes = 0;
            self.lines = self.lines.map(|lines| lines + memchr_iter(b'\n', block.bytes()).count() as u64);
        }
        if let Some(source) = &self.current
            && let Some(member) = source.member()
        {
            self.place.stored = source.stored();
            let known = self.place.member.get_or_insert_default();
            if member.offset <= self.place.offset {
                *known = member;
            }
        }
    }

    /// The input is read: the block takes all whole records that are left of it, and the next one a record that has no
    /// ending. Behind a failure there is none: nobody knows how it would have gone on.
    fn end_input(&mut self, block: &mut Block, mut cutter: Cutter, failure: Option<Failure>) -> Result<Reading> {
        let name = self.current.as_ref().map_or(String::new(), |source| source.name().to_string());
        self.failure = failure;
        if std::mem::take(&mut self.at_start) {
            self.mark_bytes = skip_mark(block, self.framing, &name)?;
        }
        let end = cutter.last_end(block.bytes()).unwrap_or(0);
        let is_followed = self.is_followed();
        if let (Some(opened), false) = (cutter.open_quote(), is_followed) {
            let lines = memchr_iter(b'\n', &block.bytes()[..opened]).count() as u64;
            let place = match self.lines {
                Some(before) => format!("in line {}", before + lines + 1),
                None => format!("at byte {}", self.place.offset + opened as u64 + 1),
            };
            self.failure.get_or_insert_with(|| {
                Failure::new(format!("{name}: the quote opened {place} is not closed; close it, or leave --csv out"))
            });
        }
        self.has_last_record = end < block.filled && self.failure.is_none() && !is_followed;
        if self.has_last_record && end > 0 {
            keep(&mut self.tail, &block.bytes()[end..])?;
        }
        if !self.has_last_record || end > 0 {
            block.filled = end;
            self.advance(block);
        } else {
            self.give_last_record(block);
        }
        self.leave_input(is_followed)?;
        Ok(Reading::Block)
    }

    /// Whether the input is a file that may go on while we wait.
    fn is_followed(&self) -> bool {
        self.followed.is_some() && self.place.file.is_some() && self.standing != Standing::Closing
    }

    /// The end of an input ends its last record, too.
    fn give_last_record(&mut self, block: &mut Block) {
        self.has_last_record = false;
        let before = self.place.clone();
        block.start = self.place.further(self.mark_bytes);
        self.place.unfinished = block.filled as u64 + std::mem::take(&mut self.mark_bytes);
        let is_packed =
            self.place.member.is_some() || self.current.as_ref().is_some_and(|source| source.member().is_some());
        if !is_packed {
            self.place.stored = self.place.offset + self.place.unfinished;
        } else if let Some(source) = &self.current {
            self.place.stored = source.stored();
            self.place.member.get_or_insert_default();
        }
        block.push(self.framing.ending);
        let (place, is_last) = (&self.place, self.place.input + 1 == self.paths.len());
        let Some(held) = self.half_lines.as_mut().filter(|_| place.file.is_some()) else { return };
        let bytes = held.iter().map(|block| block.filled).sum::<usize>() + block.filled;
        if is_last || bytes <= HELD_BYTES {
            let mut last = std::mem::take(block);
            last.is_first = !std::mem::replace(&mut self.started, true);
            last.place = std::mem::replace(&mut self.place, before);
            last.bytes.truncate(last.filled);
            last.bytes.shrink_to_fit();
            held.push(last);
        }
    }

    fn leave_input(&mut self, is_followed: bool) -> Result<()> {
        let seen = self.current.take().map_or(0, |source| source.stored());
        self.ended = true;
        let (Some(inputs), input) = (&mut self.followed, self.place.input) else { return Ok(()) };
        let path = &self.paths[input];
        let followed =
            || Followed::new(self.place.clone(), path, seen).map_err(|error| Failure::io(path.display(), &error));
        match (is_followed, self.standing) {
            (true, Standing::Renamed) => self.renamed.push(Renamed::again(followed()?)),
            (true, _) => inputs[input] = Some(followed()?),
            (_, Standing::Closing) => {}
            _ => inputs[input] = None,
        }
        Ok(())
    }
}

fn does_not_fit(bytes: usize) -> Failure {
    let remedy = "give the process more, or break the record up";
    Failure::new(format!("a record of more than {} MiB does not fit into memory; {remedy}", bytes >> 20))
}

/// Keeps the beginning of a record for the next block.
fn keep(tail: &mut Vec<u8>, record: &[u8]) -> Result<()> {
    tail.try_reserve(record.len()).map_err(|_| does_not_fit(record.len()))?;
    tail.extend_from_slice(record);
    Ok(())
}

/// The beginning of a record that came through a pipe, and whose end a signal kept from coming.
#[derive(Debug, Clone)]
pub(crate) struct Lost {
    pub(crate) name: String,
    pub(crate) bytes: usize,
    /// Its first bytes.
    pub(crate) start: Vec<u8>,
}

impl Lost {
    fn new(name: &str, record: &[u8]) -> Self {
        const SHOWN_BYTES: usize = 400;
        Lost { name: name.to_string(), bytes: record.len(), start: record[..record.len().min(SHOWN_BYTES)].to_vec() }
    }
}

/// Takes a byte order mark off the start of an input, and says how long it was. UTF-16 is refused: its lines are no
/// lines, and every second byte of them is NUL.
fn skip_mark(block: &mut Block, framing: Framing, name: &str) -> Result<u64> {
    match MARKS.iter().position(|mark| block.bytes().starts_with(mark)) {
        None => Ok(0),
        Some(0) => {
            block.drop_first(MARKS[0].len());
            Ok(MARKS[0].len() as u64)
        }
        // Where records end with NUL, any bytes may be one.
        Some(_) if framing.ending != b'\n' => Ok(0),
        Some(_) => {
            let remedy = "convert it first, as with iconv -f UTF-16 -t UTF-8";
            Err(Failure::new(format!("{name}: is text in UTF-16, which is not read; {remedy}")))
        }
    }
}
