//! Bytes in: files, pipes and compressed files become blocks of whole records.
//!
//! ```text
//! path ─ Source (Unpacker) ─ BlockReader (whole records) ─ Batch (where each record ends)
//! ```
//!
//! A block is one large buffer that ends where a record ends; nothing is copied to take it apart.

mod blocks;
mod framing;
mod room;
mod source;
mod unpack;

pub(crate) use blocks::{Block, BlockReader, Position, Reading};
pub(crate) use framing::Framing;
pub(crate) use source::{Arrival, Source, is_stdin};
