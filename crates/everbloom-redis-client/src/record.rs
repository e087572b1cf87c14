//! What a filter is, as one field of a hash: written once, by whoever is first.
//!
//! ```text
//! {clicks}   record   format=1 shards=64 routing_seed=0 every_ms=0 from=plan␊ and one empty shard as an .ebf file
//!            state    ready, once all shards are there
//!            spec, shards, seed, format    the same for people
//! ```

use crate::error::{Error, Result};
use everbloom::Filter as Inner;
use everbloom::internal::codec::{self, Decoder};
use everbloom::internal::filters;
use everbloom::internal::promise::Spec;
use std::time::Duration;

const FORMAT: u32 = 1;
/// `KeyHash::shard` takes no seed; another way to deal keys out would have another number.
const ROUTING_SEED: u64 = 0;

/// A filter's facts.
pub(crate) struct Record {
    pub(crate) spec: Spec,
    pub(crate) shards: u32,
    /// The time between generations, turned by the servers' clocks.
    pub(crate) every: Option<Duration>,
    /// Whether the shards began empty, so that anybody may finish what another began.
    pub(crate) begins_empty: bool,
    /// A shard as it began.
    pub(crate) shard: Box<dyn Inner>,
}

impl Record {
    /// All of it in one value.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let every = self.every.map_or(0, |every| every.as_millis());
        let from = if self.begins_empty { "plan" } else { "file" };
        let spec = &self.spec;
        let head = format!(
            "format={FORMAT} shards={} routing_seed={ROUTING_SEED} every_ms={every} from={from} spec={spec}\n",
            self.shards
        );
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&codec::encode_compressed(self.shard.as_ref()));
        bytes
    }

    /// The same from what a server has.
    pub(crate) fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::Server(format!("the record of '{name}' makes no sense; delete the filter, or its key"));
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(damaged)?;
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged())?;
        let field = |wanted: &str| {
            head.split(' ').find_map(|word| word.strip_prefix(wanted)?.strip_prefix('=')).ok_or_else(damaged)
        };
        if field("format")? != FORMAT.to_string() || field("routing_seed")? != ROUTING_SEED.to_string() {
            return Err(Error::Server(format!("'{name}' was made by a later version; upgrade everbloom")));
        }
        let shards = field("shards")?.parse().map_err(|_| damaged())?;
        let every: u64 = field("every_ms")?.parse().map_err(|_| damaged())?;
        let begins_empty = field("from")? == "plan";
        let spec = Spec::parse(field("spec")?)?;
        // A record that lies could ask for any memory; a shard fits into a server's value.
        let shard = Decoder::new().limit(1 << 30).decode(&bytes[end + 1..])?;
        if filters::shards_of(&spec)? != shards {
            return Err(damaged());
        }
        Ok(Record { spec, shards, every: (every > 0).then(|| Duration::from_millis(every)), begins_empty, shard })
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
        let seed = self.shard.hashing().seed().map_or(String::new(), |seed| seed.to_string());
        [
            ("format", FORMAT.to_string()),
            ("shards", self.shards.to_string()),
            ("spec", self.spec.to_string()),
            ("seed", seed),
        ]
    }
}
