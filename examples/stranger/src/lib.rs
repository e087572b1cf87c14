//! A kind of filter in a crate of its own: a table with one tag a slot.
//!
//! A key has a slot and a tag of 16 bits; what lay in its slot gives way. So it forgets, works for ever in fixed memory, and takes
//! at most one new key in 65,535 for a repeat. It is here to show what a kind takes; `ranked` forgets less.
//!
//! ```text
//! a: slot 2, tag 7f3a     0000 51c0 7f3a 0000        b: slot 2, tag 0b44     0000 51c0 0b44 0000     a is forgotten
//! ```
//!
//! ```
//! use everbloom::Goal;
//! use everbloom::kind::{Kind, Kinds};
//!
//! const OWN: &[&[&Kind]] = &[&[&stranger::KIND]];
//! let kinds = Kinds::new(OWN);
//! let mut seen = Goal::new().filter("tags").memory("64KiB").build_among(kinds)?;
//! assert!(seen.insert("alice") && !seen.insert("alice"));
//! assert!(kinds.from_bytes(&seen.to_bytes())?.contains("alice"));
//! # Ok::<(), everbloom::Error>(())
//! ```

use everbloom::kind::{Abilities, Base, Body, Kind, Model, Parameter, Restore, Takes, shows_base};
use everbloom::{Error, Filter, Goal, Importance, KeyHash, Plan, Promise, Result, Spec, Status, Verdict, typed_filter};

/// What a set of kinds has to know of it.
pub static KIND: Kind = Kind {
    id: 16_000,
    retired: &[],
    name: "tags",
    summary: "a table with one tag a slot: fixed memory for ever, forgets what the next key displaces",
    parameters: &[Parameter::planned("num_slots", "slots in all, of 16 bits", Takes::Whole(1, MOST_SLOTS))],
    can: Abilities::STREAM,
    model: Model::sized(&["num_slots"]),
    extension: None,
    plan,
    build: |plan| Ok(Box::new(Tags::with_base(slots_of(&plan.spec)?, Base::planned(plan)?)?)),
    restore: |from| Ok(Box::new(Tags::restore(from)?)),
    map: None,
};

const MOST_SLOTS: u64 = 1 << 40;

/// Tags are 1 to 65535; 0 is an empty slot.
const RATE: f64 = 1.0 / 65_535.0;

fn slots_of(spec: &Spec) -> Result<u64> {
    match spec.required("num_slots")? {
        slots @ 1..=MOST_SLOTS => Ok(slots),
        slots => {
            Err(Error::parameter("num_slots", slots, format!("1 to {MOST_SLOTS}"), "one for each key to remember"))
        }
    }
}

fn plan(spec: &Spec, goal: &Goal) -> Result<Plan> {
    if goal.checked_fpr()?.is_some_and(|rate| rate < RATE) {
        let remedy = "accept a rate of 0.002%, or take ranked".to_string();
        return Err(Error::Infeasible { wanted: "the rate".into(), reason: "tags have 16 bits".into(), remedy });
    }
    let slots = match spec.get("num_slots") {
        Some(_) => slots_of(spec)?,
        None => goal.required_memory()? / 16,
    };
    let spec = Spec::new(KIND.name).with("num_slots", slots);
    slots_of(&spec)?;
    Ok(Plan::new(&KIND, spec, slots * 16, Promise::always(RATE), goal.key_hashing()))
}

/// The table of tags. See the [crate](self).
#[derive(Debug, Clone)]
pub struct Tags {
    base: Base,
    slots: Vec<u16>,
}

typed_filter!(Tags: KIND);

impl Tags {
    fn with_base(slots: u64, base: Base) -> Result<Self> {
        let mut table = Vec::new();
        table.try_reserve_exact(slots as usize).map_err(|_| Error::OutOfMemory { bytes: slots * 2 })?;
        table.resize(slots as usize, 0);
        Ok(Tags { base, slots: table })
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let slots = slots_of(from.spec)?;
        from.body.expect_bytes(slots * 2)?;
        let base = Base::restored(from.spec.clone(), &mut from)?;
        from.state.finish()?;
        let mut filter = Self::with_base(slots, base)?;
        from.body.fill(bytemuck::cast_slice_mut(&mut filter.slots))?;
        Ok(filter)
    }

    fn place(&self, hash: KeyHash) -> (usize, u16) {
        let slot = (u128::from(hash.high) * self.slots.len() as u128) >> 64;
        (slot as usize, 1 + (hash.low % 65_535) as u16)
    }
}

impl Filter for Tags {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.slots.len() as u64 * 16
    }

    fn status(&self) -> Status {
        let used = self.slots.iter().filter(|slot| **slot != 0).count() as f64;
        let fill = used / self.slots.len() as f64;
        Status { arrivals: self.base.arrivals, fill, estimated_fpr: fill * RATE, ..Status::default() }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        let (slot, tag) = self.place(hash);
        self.slots[slot] == tag
    }

    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        self.base.count(1);
        let (slot, tag) = self.place(hash);
        Verdict::from_seen(std::mem::replace(&mut self.slots[slot], tag) == tag)
    }

    fn clear(&mut self) {
        self.slots.fill(0);
        self.base.arrivals = 0;
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(vec![bytemuck::cast_slice(&self.slots)])
    }
}
