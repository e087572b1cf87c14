//! What is known about a kind of filter, and what one is restored from.

use super::{Filter, Mapped, Model, Parameter, Plan};
use crate::format::{BodyReader, StateReader};
use crate::key::Hashing;
use crate::promise::{Goal, Promise, Result, Spec};
use std::any::Any;
use std::fmt;

/// A kind of filter, as sets of kinds know it. Planner, command line, laws and bindings ask it what a kind can do,
/// and name none.
pub struct Kind {
    /// The id in the format, 1 to 32767, never reused. Everbloom takes those below 16,000.
    pub id: u16,
    /// Ids that it had when it chose other bits for a key: such a filter would miss its keys.
    pub retired: &'static [u16],
    /// The name in specs.
    pub name: &'static str,
    /// One line for help and listings.
    pub summary: &'static str,
    /// The parameters a spec may give, in the order a full spec prints them.
    pub parameters: &'static [Parameter],
    /// What it can do.
    pub can: Abilities,
    /// Which parameters give it its size, what a search for the best tries, and how full it is with so many keys: enough for its
    /// errors to be simulated.
    pub model: Model,
    /// What crates beside this one know of the kind, found by its type: the formula for its errors on a stream, an
    /// `everbloom_forecast::forecast::StreamModel`. Without one, they are simulated.
    pub extension: Option<&'static (dyn Any + Send + Sync)>,
    /// Fills in what a spec leaves out.
    pub plan: fn(&Spec, &Goal) -> Result<Plan>,
    /// Allocates what a plan describes.
    pub build: fn(&Plan) -> Result<Box<dyn Filter>>,
    /// Reads one back.
    pub restore: fn(Restore<'_, '_>) -> Result<Box<dyn Filter>>,
    /// The filter in a body that somebody else holds, if it can be asked there.
    pub map: Option<OpenMapped>,
}

/// Opens a filter in a body that somebody else holds.
pub type OpenMapped = for<'b> fn(&Spec, &'b [u8]) -> Result<Box<dyn Mapped + 'b>>;

/// What a kind can do, and what it needs.
#[derive(Debug, Clone, Copy)]
pub struct Abilities {
    /// Whether a key that was inserted may be missed later.
    pub forget: bool,
    /// The parameter that makes a kind which does not forget do so, if it is given and not 0.
    pub fade: Option<&'static str>,
    /// Whether it makes no error but for chance collisions of hashes.
    pub exact: bool,
    /// Whether it makes none until its memory is full, and forgets only then.
    pub exact_first: bool,
    /// Whether it works for ever in fixed memory, so that stream comparisons include it.
    pub run_forever: bool,
    /// Whether its memory grows with the keys.
    pub grow: bool,
    /// Whether keys can be removed again.
    pub remove: bool,
    /// Whether it knows how often a key came.
    pub count: bool,
    /// Whether two of them can become one.
    pub merge: bool,
    /// The window that it keeps, if it keeps one.
    pub window: Option<WindowParameters>,
    /// Whether the caller can begin a new generation, at which what is old is forgotten or fades.
    pub advance: bool,
    /// Whether the importance of an arrival changes what is remembered.
    pub weigh_importance: bool,
    /// The parameter that names the scheme it is built with, if it can have one.
    pub follow_scheme: Option<&'static str>,
    /// Whether it can be planned by the bytes that it takes when it is sent.
    pub fit_bytes: bool,
    /// The hash function that it has whatever its goal says, if it must equal what others make: it takes neither seed nor
    /// secret key then.
    pub own_hash: Option<Hashing>,
    /// Whether it can be split into shards.
    pub shard: bool,
    /// Whether it can be asked where its bytes lie.
    pub map: bool,
}

/// How a kind with a window takes it.
#[derive(Debug, Clone, Copy)]
pub struct WindowParameters {
    /// The parameter for the number of arrivals or keys that must not be missed.
    pub parameter: &'static str,
    /// The parameter and value that leave the turning of the window to the caller, for windows of time.
    pub by_caller: Option<(&'static str, &'static str)>,
    /// The parameter that says whether a repeat renews a key's age: `yes` or `no`.
    pub refresh: Option<&'static str>,
}

impl Abilities {
    /// A filter that never forgets and fills up.
    pub const SET: Abilities = Abilities {
        forget: false,
        fade: None,
        exact: false,
        exact_first: false,
        run_forever: false,
        grow: false,
        remove: false,
        count: false,
        merge: false,
        window: None,
        advance: false,
        weigh_importance: false,
        follow_scheme: None,
        fit_bytes: false,
        own_hash: None,
        shard: true,
        map: false,
    };

    /// A filter for endless streams, which forgets.
    pub const STREAM: Abilities = Abilities { forget: true, run_forever: true, ..Abilities::SET };
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.name)
    }
}

/// Ids are given once.
impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.id == other.id
    }
}

impl Kind {
    /// How keys are hashed for a filter of this kind whose goal says `hashing`.
    pub fn hashing(&self, hashing: Hashing) -> Hashing {
        self.can.own_hash.unwrap_or(hashing)
    }

    /// Whether a filter of this kind and spec may miss a key that was inserted.
    pub fn forgets(&self, spec: &Spec) -> bool {
        let fades = |parameter| spec.number::<u64>(parameter).is_ok_and(|value| value.is_some_and(|value| value > 0));
        self.can.forget || self.can.fade.is_some_and(fades)
    }
}

impl Kind {
    /// What a filter of this kind never does, in a few words each.
    pub fn never(&self) -> Vec<&'static str> {
        let can = &self.can;
        let rules = [
            (can.exact, "errs, but for chance collisions of 64-bit hashes"),
            (can.exact_first, "errs while the keys fit into its memory"),
            (!can.forget && can.fade.is_none() && !can.exact, "misses a key that was inserted"),
            (!can.forget && can.fade.is_some(), "misses a key that was inserted, unless counts fade"),
            (can.window.is_some(), "misses a repeat within its window"),
            (can.count && can.fade.is_some(), "counts less than came, unless counts fade or are full"),
            (can.run_forever, "fills up, however long the stream"),
            (can.run_forever && can.window.is_none(), "exceeds the planned rate"),
            (can.grow && !can.exact, "exceeds the planned rate, however many keys come"),
        ];
        rules.iter().filter(|(holds, _)| *holds).map(|(_, never)| *never).collect()
    }

    /// What a filter of this kind can do, in a word or two each.
    pub fn abilities(&self) -> Vec<&'static str> {
        let can = &self.can;
        let rules = [
            (can.remove, "remove keys"),
            (can.count, "count keys"),
            (can.merge, "merge"),
            (can.grow, "grow"),
            (can.weigh_importance, "weigh importance"),
            (can.window.is_some(), "keep a window"),
            (can.map, "be asked in a mapped file"),
            (can.fit_bytes, "fit a size when sent"),
            (can.follow_scheme.is_some(), "follow a scheme of tune"),
            (can.shard, "be split into shards"),
        ];
        rules.iter().filter(|(holds, _)| *holds).map(|(_, ability)| *ability).collect()
    }
}

/// Reads what was saved beside a filter, and puts it there again.
pub type ReadAnnex = fn(Box<dyn Filter>, &[u8]) -> Result<Box<dyn Filter>>;

/// What a filter is restored from.
pub struct Restore<'r, 's> {
    /// The kind that its spec names.
    pub kind: &'static Kind,
    /// Kind and every parameter, as it was saved.
    pub spec: &'r Spec,
    /// How it hashes keys.
    pub hashing: Hashing,
    /// What it promised.
    pub promise: Promise,
    /// The arrivals, and what the filter saved beside its cells.
    pub state: StateReader<'r>,
    /// Its cells.
    pub body: &'r mut BodyReader<'s>,
    /// What the caller has for filters that cannot be read without it, found by its type.
    pub attachment: Option<&'r (dyn Any + Send + Sync)>,
    /// Reads the next whole filter from a body that is made of such.
    pub read_part: &'r dyn Fn(&mut BodyReader<'_>) -> Result<Box<dyn Filter>>,
}
