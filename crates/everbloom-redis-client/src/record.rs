//! What a filter is, as one field of a hash: written once, by whoever is first.
//!
//! ```text
//! {clicks}   record   format=1 shards=64 routing_seed=0 every_ms=0 from=plan memory_bits=… generations=0 arrivals=0 spec=…␊
//!                     and one empty shard as an .ebf file
//!            state    ready, once all shards are there
//!            spec, shards, seed, format    the same for people
//!            note     what a file noted beside its filter, if anything
//! ```
//!
//! Of the shard only the header is read, so that opening a filter takes no memory, however large its shards are.

use crate::error::{Error, Result};
use everbloom::kind::MAX_SHARDS;
use everbloom::kind::{Kind, shard_spec, shards_of};
use everbloom::{Filter as Shard, Hashing, Promise, Spec, codec};
use everbloom_all::KINDS;
use std::time::Duration;

const FORMAT: u32 = 1;
/// `KeyHash::shard` takes no seed; another way to deal keys out would have another number.
const ROUTING_SEED: u64 = 0;
const FROM_PLAN: &str = "plan";
const FROM_FILE: &str = "file-";

/// A filter's facts.
pub(crate) struct Record {
    pub(crate) kind: &'static Kind,
    pub(crate) spec: Spec,
    pub(crate) shards: u32,
    /// The time between generations, turned by the servers' clocks.
    pub(crate) every: Option<Duration>,
    /// Whether the shards began empty, so that anybody may finish what another began.
    pub(crate) begins_empty: bool,
    /// Bits of a shard as it began.
    pub(crate) shard_bits: u64,
    /// Generations and arrivals of a shard's window, if it has one.
    pub(crate) window: (u32, u64),
    pub(crate) hashing: Hashing,
    pub(crate) promise: Promise,
    /// All of it, as servers have it, and where the empty shard begins.
    bytes: Vec<u8>,
    shard_at: usize,
}

impl Record {
    /// A new one, with an empty shard; with the name of the load that it comes from, if its shards do not begin empty.
    pub(crate) fn new(spec: &Spec, every: Option<Duration>, load: Option<&str>, shard: &mut dyn Shard) -> Result<Self> {
        let from = load.map_or(FROM_PLAN.to_string(), |load| format!("{FROM_FILE}{load}"));
        let (shards, bits) = (shards_of(spec)?, shard.memory_bits());
        let every = every.map_or(0, |every| every.as_millis());
        let (generations, arrivals) = shard.as_windowed().map_or((0, 0), |shard| (shard.generations(), shard.window()));
        let head = format!(
            "format={FORMAT} shards={shards} routing_seed={ROUTING_SEED} every_ms={every} from={from} memory_bits={bits} \
             generations={generations} arrivals={arrivals} spec={spec}\n"
        );
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&codec::encode_compressed(shard));
        Self::from_bytes("", bytes)
    }

    /// The record from what a server has.
    pub(crate) fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self> {
        let head = Head::of(name, &bytes)?;
        let (shards, shard_at) = (head.shards()?, head.length + 1);
        let every: u64 = head.parsed("every_ms")?;
        let shard = bytes.get(shard_at..).unwrap_or_default();
        let stored = KINDS.decoder().summarise(&mut &*shard, shard.len() as u64).map_err(|_| head.damaged())?;
        let spec = Spec::parse(head.field("spec")?).map_err(|_| head.damaged())?;
        if shards_of(&spec)? != shards || stored.spec != shard_spec(&spec) {
            return Err(head.damaged());
        }
        Ok(Record {
            kind: KINDS.of(&spec)?,
            shards,
            every: (every > 0).then(|| Duration::from_millis(every)),
            begins_empty: head.field("from")? == FROM_PLAN,
            shard_bits: head.parsed("memory_bits")?,
            window: (head.parsed("generations")?, head.parsed("arrivals")?),
            hashing: stored.hashing.ok_or_else(|| head.damaged())?,
            promise: stored.promise,
            spec,
            shard_at,
            bytes,
        })
    }

    /// What deleting it takes, whatever else is wrong with it: its number of shards, and the load that it comes from.
    pub(crate) fn shards_and_load<'r>(name: &'r str, bytes: &'r [u8]) -> Result<(u32, Option<&'r str>)> {
        let head = Head::of(name, bytes)?;
        let shards = head.shards().map_err(|_| {
            let problem = format!("the record of '{name}' is damaged, and does not say how many shards there are");
            Error::Server(format!("{problem}; delete the keys {{{name}}} and {{{name}.*}} with redis-cli"))
        })?;
        Ok((shards, head.field("from").ok().and_then(|from| from.strip_prefix(FROM_FILE))))
    }

    /// All of it in one value.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A shard as it began.
    pub(crate) fn empty_shard(&self) -> &[u8] {
        &self.bytes[self.shard_at..]
    }

    /// What it is, for people who asked for something else.
    pub(crate) fn described(&self) -> String {
        match self.every {
            Some(every) => format!("'{}' with a generation every {every:?}", self.spec),
            None => format!("'{}'", self.spec),
        }
    }

    /// Fields for whoever looks at the hash.
    pub(crate) fn for_people(&self) -> [(&'static str, String); 4] {
        let seed = self.hashing.seed().map_or(String::new(), |seed| seed.to_string());
        [
            ("format", FORMAT.to_string()),
            ("shards", self.shards.to_string()),
            ("spec", self.spec.to_string()),
            ("seed", seed),
        ]
    }
}

/// The first line of a record.
struct Head<'r> {
    name: &'r str,
    line: &'r str,
    length: usize,
}

impl<'r> Head<'r> {
    fn of(name: &'r str, bytes: &'r [u8]) -> Result<Self> {
        let length = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let line = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
        let head = Head { name, line, length };
        let is_other = |field: &str, ours: String| head.field(field).is_ok_and(|theirs| theirs != ours);
        if is_other("format", FORMAT.to_string()) || is_other("routing_seed", ROUTING_SEED.to_string()) {
            return Err(Error::Server(format!("'{name}' was made by a later version; upgrade everbloom")));
        }
        Ok(head)
    }

    fn damaged(&self) -> Error {
        let name = self.name;
        Error::Server(format!(
            "the record of '{name}' is damaged; `everbloom redis delete {name}` takes the filter away"
        ))
    }

    fn field(&self, wanted: &str) -> Result<&'r str> {
        let value = self.line.split(' ').find_map(|word| word.strip_prefix(wanted)?.strip_prefix('='));
        value.ok_or_else(|| self.damaged())
    }

    fn parsed<T: std::str::FromStr>(&self, wanted: &str) -> Result<T> {
        self.field(wanted)?.parse().map_err(|_| self.damaged())
    }

    fn shards(&self) -> Result<u32> {
        self.parsed("shards").ok().filter(|shards| (1..=MAX_SHARDS).contains(shards)).ok_or_else(|| self.damaged())
    }
}
