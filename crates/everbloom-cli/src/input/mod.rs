//! Bytes in: files, pipes and compressed files become blocks of whole records.
//!
//! ```text
//! path ─ Source (Unpacker) ─ BlockReader (whole records) ─ Batch (where each record ends)
//! ```
//!
//! A block is one large buffer that ends where a record ends; nothing is copied to take it apart. A [`Place`] says how
//! far an input has been read, and a [`Mark`] by what its file is known again.

mod blocks;
mod follow;
mod framing;
mod place;
mod room;
mod source;
mod unpack;

pub(crate) use blocks::{Block, BlockReader, Lost, Reading};
pub(crate) use framing::Framing;
pub(crate) use place::{Mark, Place};
#[cfg(feature = "lab")]
pub(crate) use source::Arrival;
pub(crate) use source::{Source, is_stdin, rereadable};
