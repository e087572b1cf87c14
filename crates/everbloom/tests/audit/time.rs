//! What an audit takes of an arrival's time: printed, and judged by nobody, since machines differ.
//!
//! `cargo test --release -p everbloom --test audit -- --ignored --nocapture takes`

use super::streams::{filter, keys};
use everbloom::internal::audit::Audit;
use everbloom::{Importances, KeyHash, Verdict};
use std::time::{Duration, Instant};

#[test]
#[ignore = "prints times"]
fn what_an_audit_takes_of_an_arrival() {
    for sort in ["uniform", "zipf 0.8", "zipf 1.0", "zipf 1.2", "one hot key", "bursts", "all distinct"] {
        let keys = keys(sort, 2_000_000, 1);
        let filter = filter("ranked", keys.len() as u64, 1);
        let hashes: Vec<KeyHash> = keys.iter().map(|key| filter.hashing().hash_u64(*key)).collect();
        let mut verdicts = vec![Verdict::Distinct; hashes.len()];
        // The least of several turns, taken alternately: whatever else the machine does only adds to them.
        let (mut judging, mut auditing, mut one_in) = (Duration::MAX, Duration::MAX, 0);
        for _ in 0..5 {
            let (mut filter, mut audit) = (filter.clone(), Audit::new(256 << 10, 7).expect("enough memory"));
            let (mut judged, mut audited) = (Duration::ZERO, Duration::ZERO);
            for (hashes, verdicts) in hashes.chunks(4096).zip(verdicts.chunks_mut(4096)) {
                let start = Instant::now();
                filter.observe_hashes(hashes, Importances::default(), verdicts).expect("no importances");
                let middle = Instant::now();
                audit.observe(hashes, Importances::default(), verdicts);
                (judged, audited) = (judged + (middle - start), audited + middle.elapsed());
            }
            (judging, auditing, one_in) = (judging.min(judged), auditing.min(audited), audit.report().one_in);
        }
        let each = |time: Duration| time.as_nanos() as f64 / hashes.len() as f64;
        println!("{sort:>12}: filter {:5.1} ns, audit {:4.1} ns, 1 key in {one_in}", each(judging), each(auditing));
    }
}
