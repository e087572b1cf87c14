//! From a scheme and the members of a set to their filter.

use crate::filter::Filter;
use crate::filters::{Bloom, Popularity, Stacked};
use crate::key::KeyHash;
use crate::promise::Result;
use crate::scheme::{Recipe, Scheme};
use crate::stream::sizing::Size;
use std::sync::Arc;

/// The filter of these members that a scheme asks for, within so many bits. The members are hashed by
/// [`Scheme::hashing`].
pub fn build(scheme: &Arc<Scheme>, members: &[KeyHash], bits: u64) -> Result<Box<dyn Filter>> {
    // Memory comes in whole cache lines.
    let num_bits = (bits / 512 * 512).max(1);
    let mut filter: Box<dyn Filter> = match scheme.recipe() {
        Recipe::Standard => {
            Box::new(Bloom::new(Size::for_cells(num_bits, members.len().max(1) as u64)?, *scheme.hashing())?)
        }
        Recipe::Popularity(_) => Box::new(Popularity::with_scheme(scheme, num_bits)?),
        Recipe::Stacked(negatives) => {
            let id = Some(scheme.id());
            return Ok(Box::new(Stacked::build(*scheme.hashing(), bits, members, negatives, id)?));
        }
    };
    filter.insert_hashes(members);
    Ok(filter)
}
