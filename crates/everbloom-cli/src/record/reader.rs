//! Blocks with their header line taken care of, and the plain loop over batches.

use super::{Batch, Extractor, Layout};
use crate::failure::{Failure, Result};
use crate::input::{Block, BlockReader, Framing, Reading};
use crate::progress::{Bar, Screen};
use crate::report::words;
use everbloom::Hashing;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What `--flag` writes before a header.
pub(crate) const MARK_COLUMN: &[u8] = b"mark\t";

/// Reads blocks, and knows how to find the keys in them.
pub(crate) struct RecordReader {
    blocks: BlockReader,
    layout: Layout,
    /// The names, and the input that had them first.
    header: Option<(Vec<u8>, String)>,
    before: Before,
    is_header_written: bool,
    extractor: Option<Arc<Extractor>>,
    bar: Option<Bar>,
    /// Whether the first records are to be looked at for what is probably a mistake.
    doubts: bool,
}

impl RecordReader {
    /// Reads records as `layout` describes them.
    pub(crate) fn new(blocks: BlockReader, layout: Layout) -> Result<Self> {
        let mut reader = RecordReader {
            blocks,
            layout,
            header: None,
            before: Before::default(),
            is_header_written: false,
            extractor: None,
            bar: None,
            doubts: false,
        };
        if !reader.layout.has_header {
            reader.extractor = Some(Arc::new(reader.layout.resolve(&[])?));
        } else if let Some(path) = reader.blocks.first_resumed() {
            // Its header was passed on when it was read from its start.
            let first = first_record(path, reader.blocks.framing())?;
            let name = path.display().to_string();
            reader.take_header(&first, name)?;
        }
        Ok(reader)
    }

    /// With what earlier runs say of headers.
    pub(crate) fn after(mut self, before: Before) -> Result<Self> {
        self.before = before;
        if let (Some((names, input)), Some(extractor)) = (&self.header, &self.extractor) {
            self.before.check(names, extractor, input)?;
            self.before.note(extractor, input);
        }
        Ok(self)
    }

    /// With a header that is in the output already, if it is.
    pub(crate) fn header_is_written(mut self, is_written: bool) -> Self {
        self.is_header_written = is_written;
        self
    }

    /// With a bar for whoever watches, over what is read of these inputs, while nothing else is shown.
    pub(crate) fn watched(mut self, inputs: &[PathBuf], screen: Screen) -> Self {
        self.bar = Bar::for_terminal(self.blocks.consumed(), inputs, screen);
        self
    }

    /// With a word on stderr about options that are probably mistaken, unless nothing is to be said.
    pub(crate) fn warn_on_suspect_input(mut self, quiet: bool) -> Self {
        self.doubts = !quiet;
        self
    }

    /// Where the blocks come from.
    pub(crate) fn blocks(&self) -> &BlockReader {
        &self.blocks
    }

    /// Where the blocks come from, to be asked at the end what became of the inputs.
    pub(crate) fn blocks_mut(&mut self) -> &mut BlockReader {
        &mut self.blocks
    }

    /// What finds keys in the blocks read so far.
    pub(crate) fn extractor(&self) -> Result<Arc<Extractor>> {
        self.extractor.clone().ok_or_else(|| Failure::new("the input has no header line; leave --header out"))
    }

    /// Fills a block, and says how many of its bytes are a header: the input's first record.
    pub(crate) fn next(&mut self, block: &mut Block) -> Result<(Reading, Header)> {
        Ok((self.blocks.next(block)?, self.header(block)?))
    }

    /// How much of a block is a header.
    pub(crate) fn header(&mut self, block: &Block) -> Result<Header> {
        if self.doubts && !block.bytes().is_empty() {
            self.doubts = false;
            if let Some(note) = self.layout.undivided(block.bytes()) {
                words::note(&note);
            }
        }
        if !(self.layout.has_header && block.is_first) {
            return Ok(Header::default());
        }
        let line = &block.bytes()[..self.blocks.framing().first_end(block.bytes())];
        let header = Header { bytes: line.len(), is_new: self.header.is_none() && !self.is_header_written };
        self.take_header(line, self.blocks.name(block.start.input))?;
        Ok(header)
    }

    fn take_header(&mut self, line: &[u8], input: String) -> Result<()> {
        let names = names_of(line, self.blocks.framing());
        match &self.header {
            Some((header, _)) if header == names => {}
            Some((_, first)) => return Err(different_headers(first, &input)),
            None => {
                let extractor = self.layout.resolve(names)?;
                self.before.check(names, &extractor, &input)?;
                self.before.note(&extractor, &input);
                self.extractor = Some(Arc::new(extractor));
                self.header = Some((names.to_vec(), input));
            }
        }
        Ok(())
    }
}

/// What to say where the names of two inputs are not the same.
pub(super) fn different_headers(first: &str, other: &str) -> Failure {
    Failure::new(format!("{first} and {other} have different headers; process them one by one"))
}

/// What earlier runs with the same state say of headers: a later one neither writes rows under another header, nor
/// compares the keys of one column with those of another.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// The first line of the output, if there is one, and what the output is called.
    pub(crate) written: Option<(Vec<u8>, String)>,
    /// What the columns of keys are called.
    pub(crate) columns: Arc<OnceLock<Columns>>,
}

/// What the columns of keys are called, and in which input that was seen first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Columns {
    hash: u64,
    input: String,
}

impl Before {
    /// What there is of an output that is appended to.
    pub(crate) fn with_output(mut self, path: &Path, framing: Framing) -> Result<Self> {
        let line = first_record(path, framing)?;
        self.written = (!line.is_empty()).then(|| (names_of(&line, framing).to_vec(), path.display().to_string()));
        Ok(self)
    }

    /// Refuses an input with other names.
    pub(super) fn check(&self, names: &[u8], extractor: &Extractor, input: &str) -> Result<()> {
        if let Some(Columns { input: first, .. }) = self.columns.get().filter(|known| known.hash != extractor.columns())
        {
            let problem =
                format!("{input} has its keys in columns of other names than {first}, which this state knows");
            return Err(Failure::new(format!("{problem}; give it another --state and -o")));
        }
        // With --flag the column of marks comes first.
        match &self.written {
            Some((written, output)) if written != names && written.strip_prefix(MARK_COLUMN) != Some(names) => {
                let problem = format!("{output}, which is being appended to, begins with another header than {input}");
                Err(Failure::new(format!("{problem}; name another file with -o")))
            }
            _ => Ok(()),
        }
    }

    /// Takes note of an input's columns, if none are known.
    fn note(&self, extractor: &Extractor, input: &str) {
        self.columns.get_or_init(|| Columns { hash: extractor.columns(), input: input.to_string() });
    }
}

/// The line of names at the start of an input.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Header {
    /// Its length in the block.
    pub(crate) bytes: usize,
    /// Whether no input before had it.
    pub(crate) is_new: bool,
}

/// A line of names without its ending.
pub(super) fn names_of(line: &[u8], framing: Framing) -> &[u8] {
    let names = line.strip_suffix(&[framing.ending]).unwrap_or(line);
    names.strip_suffix(b"\r").unwrap_or(names)
}

pub(super) fn first_record(path: &Path, framing: Framing) -> Result<Vec<u8>> {
    let mut block = Block::default();
    BlockReader::new(vec![path.to_path_buf()], framing).next(&mut block)?;
    Ok(block.bytes()[..framing.first_end(block.bytes())].to_vec())
}

/// Calls `act` with the header lines first seen, with every batch of records and their bytes, and before every wait.
pub(crate) fn for_each_batch(
    reader: &mut RecordReader,
    hashing: &Hashing,
    mut act: impl FnMut(Part<'_>) -> Result<()>,
) -> Result<()> {
    for_each_batch_hashed(reader, std::slice::from_ref(hashing), |part| match part {
        Part::Header(line) => act(Part::Header(line)),
        Part::Records(bytes, [batch, ..]) => act(Part::Records(bytes, batch)),
        Part::Records(_, []) => Ok(()),
        Part::Wait => act(Part::Wait),
    })
}

/// Hands on all parts with the records hashed in several ways, a batch for each.
pub(crate) fn for_each_batch_hashed(
    reader: &mut RecordReader,
    hashings: &[Hashing],
    mut act: impl FnMut(Part<'_, [Batch]>) -> Result<()>,
) -> Result<()> {
    let framing = reader.blocks.framing();
    let mut block = Block::default();
    let mut batches: Vec<Batch> = hashings.iter().map(|_| Batch::default()).collect();
    let mut records = 0;
    loop {
        if reader.blocks.may_wait() {
            act(Part::Wait)?;
        }
        let (reading, header) = reader.next(&mut block)?;
        if reading != Reading::Block {
            reader.bar = None;
            return Ok(());
        }
        let bytes = block.bytes();
        if header.is_new && header.bytes > 0 {
            act(Part::Header(&bytes[..header.bytes]))?;
        }
        let extractor = reader.extractor()?;
        let mut start = header.bytes;
        while start < bytes.len() {
            for (batch, hashing) in batches.iter_mut().zip(hashings) {
                batch.take(bytes, start, framing, &extractor, hashing);
            }
            act(Part::Records(bytes, &batches))?;
            let Some(first) = batches.first() else { return Ok(()) };
            start = first.end();
            records += first.len() as u64;
            if let Some(bar) = &mut reader.bar {
                bar.show_records(records);
            }
        }
    }
}

/// A piece of the input.
pub(crate) enum Part<'b, B: ?Sized = Batch> {
    /// The line of names.
    Header(&'b [u8]),
    /// Records, and the bytes they are in.
    Records(&'b [u8], &'b B),
    /// Nothing yet: what follows may be long in coming.
    Wait,
}
