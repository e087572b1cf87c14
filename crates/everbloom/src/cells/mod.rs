//! Packed storage that filters are made of.
//!
//! | module | holds |
//! |---|---|
//! | [`buffer`] | 64-byte lines from the allocator: aligned, zeroed, fallible, on huge pages when large |
//! | [`bits`] | single bits |
//! | [`counters`] | saturating counters of 1 to 16 bits |
//! | [`exact_counts`] | how often keys came, by 64 bits of their hashes |
//! | `probed` | bits of keys anywhere among such bits, single and in batches |
//! | `chosen` | some keys of a batch, for filters that ask further about a part of it |
//! | [`blocks`] | 512-bit blocks with one bit in each of eight lanes |
//! | [`lanes`] | words of short lanes in priority order |
//! | [`ribbon`] | a static map from keys to a few bits each, without the keys |
//! | [`table`] | 64-bit hashes, exactly, in memory that grows |
//! | [`in_place`] | 64-bit hashes, exactly, in memory that becomes something else when it is full, or goes on growing |
//! | [`summary`] | counters at home, plain bits on the wire, hashes as the caller says |

pub mod bits;
pub mod blocks;
pub mod buffer;
pub(crate) mod chosen;
pub mod counters;
pub mod exact_counts;
pub mod in_place;
pub mod lanes;
pub(crate) mod probed;
pub mod ribbon;
pub mod summary;
pub mod table;
