//! Blocks with their header line taken care of, and the plain loop over batches.

use super::{Batch, Extractor, Layout};
use crate::failure::{Failure, Result};
use crate::input::{Arrival, Block, BlockReader, Position, Reading, Source};
use everbloom::Hashing;
use memchr::memchr;
use std::path::Path;
use std::sync::Arc;

/// Reads blocks, and knows how to find the keys in them.
pub(crate) struct RecordReader {
    blocks: BlockReader,
    layout: Layout,
    header: Option<Vec<u8>>,
    extractor: Option<Arc<Extractor>>,
}

impl RecordReader {
    /// Reads records as `layout` describes them.
    pub(crate) fn new(blocks: BlockReader, layout: Layout) -> Result<Self> {
        let mut reader = RecordReader { blocks, layout, header: None, extractor: None };
        if !reader.layout.has_header {
            reader.extractor = Some(Arc::new(reader.layout.resolve(&[])?));
        } else if reader.blocks.position() != Position::default() {
            let first = first_line(&reader.blocks.paths()[0], reader.blocks.delimiter())?;
            reader.take_header(&first)?;
        }
        Ok(reader)
    }

    /// Where the blocks come from.
    pub(crate) fn blocks(&self) -> &BlockReader {
        &self.blocks
    }

    /// What finds keys in the blocks read so far.
    pub(crate) fn extractor(&self) -> Result<Arc<Extractor>> {
        self.extractor.clone().ok_or_else(|| Failure::new("the input has no header"))
    }

    /// Fills a block, and says how many of its bytes are a header: the input's first line.
    pub(crate) fn next(&mut self, block: &mut Block) -> Result<(Reading, Header)> {
        let reading = self.blocks.next(block)?;
        if !(reading == Reading::Block && self.layout.has_header && block.is_first) {
            return Ok((reading, Header::default()));
        }
        let line = line_of(block.bytes(), self.blocks.delimiter());
        let header = Header { bytes: line.len(), is_new: self.header.is_none() };
        self.take_header(line)?;
        Ok((reading, header))
    }

    fn take_header(&mut self, line: &[u8]) -> Result<()> {
        let names = line.trim_ascii_end();
        match &self.header {
            Some(header) if header == names => {}
            Some(_) => {
                return Err(Failure::new("the inputs have different headers; process them one by one"));
            }
            None => {
                self.extractor = Some(Arc::new(self.layout.resolve(names)?));
                self.header = Some(names.to_vec());
            }
        }
        Ok(())
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

fn line_of(bytes: &[u8], delimiter: u8) -> &[u8] {
    &bytes[..memchr(delimiter, bytes).map_or(bytes.len(), |at| at + 1)]
}

fn first_line(path: &Path, delimiter: u8) -> Result<Vec<u8>> {
    let mut source = Source::open(path, &Arc::default())?;
    let mut start = Vec::new();
    let mut part = vec![0; 1 << 16];
    while memchr(delimiter, &start).is_none() {
        match source.read(&mut part, None).map_err(|error| Failure::io(path.display(), &error))? {
            Arrival::Bytes(count) => start.extend_from_slice(&part[..count]),
            _ => break,
        }
    }
    Ok(line_of(&start, delimiter).to_vec())
}

/// Calls `act` with the header lines first seen, and with every batch of records and their bytes.
pub(crate) fn for_each_batch(
    reader: &mut RecordReader,
    hashing: &Hashing,
    mut act: impl FnMut(Part<'_>) -> Result<()>,
) -> Result<()> {
    let delimiter = reader.blocks.delimiter();
    let (mut block, mut batch) = (Block::default(), Batch::default());
    loop {
        let (reading, header) = reader.next(&mut block)?;
        if reading != Reading::Block {
            return Ok(());
        }
        let bytes = block.bytes();
        if header.is_new && header.bytes > 0 {
            act(Part::Header(&bytes[..header.bytes]))?;
        }
        let extractor = reader.extractor()?;
        let mut start = header.bytes;
        while start < bytes.len() {
            batch.take(bytes, start, delimiter, &extractor, hashing);
            act(Part::Records(bytes, &batch))?;
            start = batch.end();
        }
    }
}

/// A piece of the input.
pub(crate) enum Part<'b> {
    /// The line of names.
    Header(&'b [u8]),
    /// Records, and the bytes they are in.
    Records(&'b [u8], &'b Batch),
}
