//! Packed storage that filters are made of, and how keys become positions in it.
//!
//! This is the lower half of [everbloom](https://docs.rs/everbloom), which users depend on. **It is unstable**: any of it may
//! change in any release, and everbloom pins the version that it uses. All unsafe code of the libraries is here, in [`simd`].
//!
//! | module | holds |
//! |---|---|
//! | [`simd`] | wide registers, prefetch, memory and page advice |
//! | [`key`] | a key's bytes → 128 bits → positions, shards; the generator inside filters; keys in columns and records |
//! | [`buffer`] | 64-byte lines from the allocator: aligned, zeroed, fallible, on huge pages when large |
//! | [`bits`] | single bits |
//! | [`counters`] | saturating counters of 1 to 16 bits |
//! | [`exact_counts`] | how often keys came, by 64 bits of their hashes |
//! | [`probed`] | bits of keys anywhere among such bits, single and in batches |
//! | [`blocks`] | 512-bit blocks with one bit in each of eight lanes |
//! | [`lanes`] | words of short lanes in priority order |
//! | [`table`] | 64-bit hashes, exactly, in memory that grows |
//! | [`in_place`] | 64-bit hashes, exactly, in memory that becomes something else when it is full, or goes on growing |

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!("everbloom needs a 64-bit little-endian target: filters are larger than 32 bits can address");

pub mod bits;
pub mod blocks;
pub mod buffer;
pub mod counters;
mod error;
pub mod exact_counts;
pub mod in_place;
pub mod key;
pub mod lanes;
pub mod probed;
#[allow(unsafe_code)]
pub mod simd;
mod size;
pub mod table;
mod verdict;

pub use error::{Error, IoError, Result};
pub use size::{size_text, size_typed};
pub use verdict::Verdict;
