//! Other people's filters, by the byte.
//!
//! [`redisbloom`] is the filter behind `BF.ADD` of RedisBloom and Redis 8: its hashes, its stages, its dumps.

pub mod redisbloom;

pub use redisbloom::RedisBloom;

use everbloom::kind::Kind;

/// The kinds of this crate.
pub const KINDS: &[&Kind] = &[&redisbloom::KIND];
