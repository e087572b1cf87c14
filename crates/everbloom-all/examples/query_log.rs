//! Fewer false hits, from a log of what a set is asked for.
//!
//! `cargo run -p everbloom-all --example query_log`

use everbloom::{Hashing, Key};
use everbloom_tune::querylog::{Options, Sample, build, tune};

fn main() -> Result<(), everbloom::Error> {
    let hashing = Hashing::default();
    let members: Vec<_> = (0..5_000u64).map(|key| key.hash_with(&hashing)).collect();
    // The same 700 absent keys are asked for again and again, some far more often than others.
    let log: Vec<_> =
        (0..60_000u64).map(|time| (10_000 + time * time % 701 % (1 + time % 700)).hash_with(&hashing)).collect();

    // Tuning learns from the first half of the log and judges real filters on the second.
    let sample = Sample::new(hashing, vec![members.clone()], log)?;
    let tuned = tune(&sample, &Options::new(40_000))?;
    println!(
        "{}: {:.3} % of the negative queries are false hits, {:.3} % with an ordinary filter of the same size",
        tuned.winner.kind,
        100.0 * tuned.winner.score.fpr,
        100.0 * tuned.standard.score.fpr,
    );
    assert!(tuned.winner.score.fpr < 0.5 * tuned.standard.score.fpr);

    let filter = build(&tuned.scheme, &members, 40_000)?;
    assert!((0..5_000u64).all(|key| filter.contains(key)), "no member is ever missed");
    Ok(())
}
