//! Filters as bytes: fill two on different machines, send one over, merge.
//!
//! `cargo run -p everbloom-all --example save_load_merge`

use everbloom::{AnyFilter, Goal};
use everbloom_all::KINDS;

fn main() -> Result<(), everbloom::Error> {
    // Both sides plan the same filter: what can be merged must have the same shape and seed.
    let goal = Goal::new().filter("bloom").expected_items("20k").fpr("1%");
    let (mut here, mut there) = (goal.build_among(KINDS)?, goal.build_among(KINDS)?);
    here.extend(0..10_000u32);
    there.extend(10_000..20_000u32);

    // Any writer will do: a file, a socket, a vector.
    let mut sent = Vec::new();
    there.write_to(&mut sent)?;
    let received = AnyFilter::read_from(&mut &sent[..])?;
    here.merge(&received)?;
    assert!((0..20_000u32).all(|key| here.contains(key)));

    // Damage is noticed, wherever it is.
    sent[100] ^= 1;
    let error = KINDS.from_bytes(&sent).expect_err("a flipped bit");
    println!("{} bytes sent, {} keys after merging; damaged: {error}", sent.len(), here.info().arrivals);
    Ok(())
}
