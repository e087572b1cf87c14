//! The two lectures: sizing, counting, hashing and compressing Bloom filters.

pub(super) mod compressed;
pub(super) mod counting;
pub(super) mod hashes;
pub(super) mod less_hashing;
pub(super) mod sizing;
