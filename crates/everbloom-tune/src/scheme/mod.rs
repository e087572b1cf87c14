//! Schemes: what a query log teaches, frozen before a filter is built.
//!
//! Some keys are members of many sets, and some are asked for again and again although they are in none: members and
//! negative queries are both skewed. A [`Scheme`] says what to make of that, once, for all filters that share it. It is
//! a file of its own (`.ebs`, see [`Scheme::encode`]) with an id:
//!
//! - [`Recipe::Popularity`]: classes of keys and the number of hashes of each. Keys of frequent negative queries get
//!   more hashes, keys that are often in a set fewer. The number must be the same when a key is inserted and when it
//!   is asked for, so a filter names its scheme, and another one is refused.
//! - [`Recipe::Stacked`]: the keys of the most frequent negative queries, to be stored exactly when a filter is built.
//!   Once it is built, such a filter does not need its scheme.
//! - [`Recipe::Standard`]: the log does not help; build an ordinary filter.
//!
//! # How a key finds its class
//!
//! ```text
//! key ── hash ──┬─ exceptions: a static map, without the keys ── code of a class? ── that class
//!               ├─ otherwise, if lengths tell keys apart: the class of its length
//!               └─ otherwise: class 0, the default
//! ```
//!
//! The map is approximate: a key that is not in it reads a value as good as random, and may be taken for an
//! exception. That costs a little accuracy and nothing else: the same key reads the same value whenever it is
//! looked up, so it is misread alike at insertion and at query, and **never** becomes a false negative.
//!
//! ```
//! use everbloom_tune::scheme::{Classes, KeyClass, Recipe};
//! use everbloom::{Hashing, Key};
//! use everbloom_tune::Scheme;
//! use everbloom::FilterExt;
//! use everbloom_tune::Popularity;
//! use std::sync::Arc;
//!
//! // Two classes: 5 hashes by default, 12 for two keys that are asked for all the time.
//! let hashing = Hashing::seeded(0);
//! let hot = ["/favicon.ico", "/robots.txt"].map(|key| (key.hash_with(&hashing), 1));
//! let classes = Classes::new(vec![KeyClass::of(5), KeyClass::of(12)])?.with_exceptions(&hot, 8)?;
//! assert_eq!(classes.hashes_for(hot[0].0), 12);
//! let scheme = Arc::new(Scheme::new(hashing, 8.0, Recipe::Popularity(classes))?);
//!
//! let mut filter = Popularity::with_scheme(&scheme, 8 * 1000)?;
//! filter.insert("/index.html");
//! assert!(filter.contains("/index.html") && !filter.contains("/favicon.ico"));
//! # Ok::<(), everbloom::Error>(())
//! ```

mod bytes;
mod classes;
mod layers;

pub use classes::{Classes, KeyClass, MAX_CLASSES, MAX_HASHES};
pub(crate) use layers::MAX_PAIRS;
pub use layers::{Design, Pair};

use everbloom::kind::refuse_murmur;
use everbloom::{Decoder, Error, Hashing, KeyHash, Result};
use std::fmt;
use std::sync::Arc;

/// The name of a scheme: a checksum of all it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SchemeId(pub u64);

impl fmt::Display for SchemeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::str::FromStr for SchemeId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(SchemeId)
    }
}

/// What to build, and from what.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Recipe {
    /// An ordinary Bloom filter.
    Standard,
    /// A filter whose keys have as many hashes as their class.
    Popularity(Classes),
    /// A filter with the keys of frequent negative queries stored exactly.
    Stacked(HotNegatives),
}

/// Keys of frequent negative queries, and how a stacked filter stores them.
#[derive(Debug, Clone, PartialEq)]
pub struct HotNegatives {
    keys: Vec<KeyHash>,
    design: Design,
    query_share: f64,
}

impl HotNegatives {
    /// These keys, for which this share of the negative queries ask.
    pub fn new(mut keys: Vec<KeyHash>, design: Design, query_share: f64) -> Result<Self> {
        keys.sort_unstable_by_key(|hash| (hash.high, hash.low));
        keys.dedup();
        if !(0.0..=1.0).contains(&query_share) {
            return Err(Error::parameter("query_share", query_share, "between 0 and 1", "give a share"));
        }
        Ok(HotNegatives { keys, design: design.checked()?, query_share })
    }

    /// The keys, sorted by hash.
    pub fn keys(&self) -> &[KeyHash] {
        &self.keys
    }

    /// The layers.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The share of negative queries that ask for one of them.
    pub fn query_share(&self) -> f64 {
        self.query_share
    }
}

/// What a query log teaches about building filters; shared by many. See the [module](self).
#[derive(Debug, Clone, PartialEq)]
pub struct Scheme {
    hashing: Hashing,
    bits_per_key: f64,
    recipe: Recipe,
    id: SchemeId,
}

/// More bits a key than this is a mistake.
const MAX_BITS_PER_KEY: f64 = 1e6;

impl Scheme {
    /// A scheme for keys hashed this way, tuned for filters of `bits_per_key`.
    pub fn new(hashing: Hashing, bits_per_key: f64, recipe: Recipe) -> Result<Self> {
        if !(bits_per_key > 0.0 && bits_per_key <= MAX_BITS_PER_KEY) {
            let needed = format!("above 0 and at most {MAX_BITS_PER_KEY}");
            return Err(Error::parameter("bits_per_key", bits_per_key, needed, "try 8"));
        }
        refuse_murmur("a scheme", &hashing)?;
        if let Recipe::Popularity(classes) = &recipe {
            classes.check_hashing(&hashing)?;
        }
        let mut scheme = Scheme { hashing, bits_per_key, recipe, id: SchemeId(0) };
        scheme.id = SchemeId(scheme.checksum());
        Ok(scheme)
    }

    /// The name by which filters know it.
    pub fn id(&self) -> SchemeId {
        self.id
    }

    /// How keys are hashed.
    pub fn hashing(&self) -> &Hashing {
        &self.hashing
    }

    /// The bits a key that it was tuned for.
    pub fn bits_per_key(&self) -> f64 {
        self.bits_per_key
    }

    /// What to build.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The classes, if keys have any.
    pub fn classes(&self) -> Option<&Classes> {
        match &self.recipe {
            Recipe::Popularity(classes) => Some(classes),
            _ => None,
        }
    }

    /// Bits that a query needs besides the filter: the whole scheme, where keys have classes.
    pub fn table_bits(&self) -> u64 {
        if self.classes().is_some() { self.encode().len() as u64 * 8 } else { 0 }
    }
}

/// A decoder that has a scheme.
pub trait WithScheme<'d> {
    /// Gives the scheme that the filter was built with, and its secret key if it has one. [`Error::Scheme`] if the filter
    /// was built with another one; one that needs no scheme is read, too.
    fn scheme(self, scheme: &'d Arc<Scheme>) -> Self;
}

impl<'d> WithScheme<'d> for Decoder<'d> {
    fn scheme(self, scheme: &'d Arc<Scheme>) -> Self {
        match scheme.hashing().secret_key() {
            Some(key) => self.attach(scheme).secret_key(key),
            None => self.attach(scheme),
        }
    }
}
