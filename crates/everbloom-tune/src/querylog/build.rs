//! From a scheme and the members of a set to their filter.

use crate::scheme::Recipe;
use crate::{Popularity, Scheme, Stacked};
use everbloom::filters::Bloom;
use everbloom::sizing::Size;
use everbloom::{AnyFilter, KeyHash, Result};
use std::sync::Arc;

/// The filter of these members that a scheme asks for, within so many bits. The members are hashed by
/// [`Scheme::hashing`].
pub fn build(scheme: &Arc<Scheme>, members: &[KeyHash], bits: u64) -> Result<AnyFilter> {
    // Memory comes in whole cache lines.
    let num_bits = (bits / 512 * 512).max(1);
    let mut filter: AnyFilter = match scheme.recipe() {
        Recipe::Standard => {
            let items = members.len().max(1) as u64;
            let size = Size::for_cells(num_bits, items)?;
            Bloom::with_promise(size, *scheme.hashing(), size.promise(Some(items), None))?.into()
        }
        Recipe::Popularity(_) => Popularity::with_scheme(scheme, num_bits)?.into(),
        Recipe::Stacked(negatives) => {
            let id = Some(scheme.id());
            return Ok(Stacked::build(*scheme.hashing(), bits, members, negatives, id)?.into());
        }
    };
    filter.insert_hashes(members);
    Ok(filter)
}
