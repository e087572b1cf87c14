//! One filter, many threads.
//!
//! `cargo run -p everbloom-all --example threads`

use everbloom::{AtomicBlocked, Goal, Hashing, Shared, filters::blocked::Parameters};

fn main() -> Result<(), everbloom::Error> {
    // Any kind, in shards with a lock each.
    let seen = Shared::new(&Goal::new().memory("256KiB").fpr("1%"), 16)?;
    // A cache-line-blocked Bloom filter, without any lock.
    let set = AtomicBlocked::new(Parameters::for_rate(40_000, 0.01)?, Hashing::default())?;

    std::thread::scope(|scope| {
        for part in 0..4u64 {
            let (seen, set) = (&seen, &set);
            scope.spawn(move || {
                for key in (0..40_000).filter(|key| key % 4 == part) {
                    seen.insert(key);
                    set.insert(&key);
                }
            });
        }
    });

    assert!((0..40_000u64).all(|key| set.contains(&key)), "no key is lost");
    println!("{} arrivals from four threads; {}", seen.info().arrivals, seen.into_filter().spec());
    Ok(())
}
