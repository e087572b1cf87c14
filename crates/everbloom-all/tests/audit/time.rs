//! What an audit takes of an arrival's time: printed, and judged by nobody, since machines differ.
//!
//! `cargo test --release -p everbloom --test audit -- --ignored --nocapture takes`

use super::streams::{filter, keys};
use everbloom::{Importances, KeyHash, Verdict};
use everbloom_forecast::audit::Audit;

/// Nanoseconds that this thread has worked, whatever else the machine does.
fn worked() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0.0)
}

#[test]
#[ignore = "prints times"]
fn cost_of_an_audited_arrival() {
    for (sort, arrivals) in [("uniform", 1), ("zipf 0.8", 1), ("zipf 1.0", 1), ("zipf 1.0", 8), ("one hot key", 1)] {
        let keys = keys(sort, arrivals * 1_000_000, 1);
        let filter = filter("ranked", keys.len() as u64, 1);
        let hashes: Vec<KeyHash> = keys.iter().map(|key| filter.hashing().hash_u64(*key)).collect();
        let mut verdicts = vec![Verdict::Distinct; hashes.len()];
        // The least of several turns, taken alternately.
        let (mut judging, mut auditing, mut one_in) = (f64::INFINITY, f64::INFINITY, 0);
        for _ in 0..3 {
            let (mut filter, mut audit) = (filter.clone(), Audit::new(256 << 10, 7).expect("enough memory"));
            let (mut judged, mut audited) = (0.0, 0.0);
            for (hashes, verdicts) in hashes.chunks(1 << 16).zip(verdicts.chunks_mut(1 << 16)) {
                let start = worked();
                filter.observe_hashes(hashes, Importances::default(), verdicts).expect("no importances");
                let middle = worked();
                audit.observe(hashes, Importances::default(), verdicts);
                (judged, audited) = (judged + (middle - start), audited + (worked() - middle));
            }
            (judging, auditing, one_in) = (judging.min(judged), auditing.min(audited), audit.report().one_in);
        }
        let each = |time: f64| time / hashes.len() as f64;
        let (filter, audit) = (each(judging), each(auditing));
        println!("{sort:>12}, {arrivals} M: filter {filter:5.1} ns, audit {audit:4.1} ns, 1 key in {one_in}");
    }
}
