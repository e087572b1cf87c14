//! What 10 G keys a day at 1 % need of a cluster: on paper, and by one shard of it at its own size.
//!
//! Shards are alike, because hashes deal the keys out, and none knows of the others. So one of 2,048 shards, given its part of
//! the keys for two days, shows what all of them do: the rate, the work a key takes, the bytes that move with it. The numbers of
//! the book are from `cargo run --release -p everbloom-redis-client --example scale`.

use everbloom::codec;
use everbloom::kind::build_shard;
use everbloom::kind::{Timeline, Times};
use everbloom::{Filter, Goal, Hashing, Importances, KeyHash, Plan, Verdict, Window, planning};
use everbloom_all::KINDS;
use everbloom_redis_client::{SLOTS, shard_key, slot};
use std::error::Error;
use std::time::Duration;

const KEYS_A_DAY: u64 = 10_000_000_000;
const RATE: f64 = 0.01;
const DAY: Duration = Duration::from_secs(86_400);
/// What the busiest second has, beside the average one.
const PEAK: f64 = 3.0;
/// Lines of 32 bytes in a block of dedup, which is a batch.
const BATCH: f64 = 16_384.0;
/// What a command and its answer have beside hashes and bits: the words, a key, a token.
const COMMAND_BYTES: f64 = 115.0;
/// Memory of a node that filters use.
const NODE_BYTES: u64 = 8 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    println!("| shards | memory | a shard | nodes | shards a node | bytes a key | MB/s at the peak |");
    println!("|---|---|---|---|---|---|---|");
    for shards in [256, 1024, 2048, 4096] {
        row(shards)?;
    }
    for (name, swing) in [("evenly", 0.0), ("with a day and a night", 0.5)] {
        simulate(name, &plan(2048)?, swing)?;
    }
    Ok(())
}

fn plan(shards: u32) -> everbloom::Result<Plan> {
    let spec = planning::windowed_in_shards(&Window::Time(DAY), Some(KEYS_A_DAY), true, shards)?;
    Goal::new().fpr(RATE).plan_among(KINDS, &spec.to_string())
}

fn row(shards: u32) -> everbloom::Result<()> {
    let plan = plan(shards)?;
    let (bytes, one) = (plan.memory_bits / 8, plan.memory_bits / 8 / u64::from(shards));
    let nodes = bytes.div_ceil(NODE_BYTES) as usize;
    let mut on = vec![0u32; nodes];
    for shard in 0..shards {
        let slot = usize::from(slot(shard_key("clicks", shard, shards).as_bytes()));
        on[slot * nodes / usize::from(SLOTS)] += 1;
    }
    // A batch goes to as many shards as it has keys for.
    let reached = f64::from(shards) * (1.0 - (1.0 - 1.0 / f64::from(shards)).powf(BATCH));
    let a_key = 16.0 + COMMAND_BYTES * reached / BATCH;
    let per_second = KEYS_A_DAY as f64 / DAY.as_secs_f64() * PEAK;
    println!(
        "| {shards} | {:.1} GiB | {:.1} MiB | {nodes} | {} to {} | {a_key:.0} | {:.1} |",
        bytes as f64 / f64::from(1 << 30),
        one as f64 / f64::from(1 << 20),
        on.iter().min().unwrap_or(&0),
        on.iter().max().unwrap_or(&0),
        a_key * per_second / 1e6
    );
    Ok(())
}

/// Two days of one shard's part of the keys, all different, with more by day than by night.
fn simulate(name: &str, plan: &Plan, swing: f64) -> Result<(), Box<dyn Error>> {
    let mut shard = build_shard(plan)?;
    let (generations, planned) =
        shard.as_windowed().map_or((1, 1), |windowed| (windowed.generations(), windowed.window()));
    let mut timeline = Timeline::new(DAY, generations, planned)?;
    let shards: u64 = plan.spec.required("shards")?;
    let (mut key, mut worst, mut busy) = (0u64, 0.0f64, 0u64);
    let hashing = Hashing::default();
    let minutes = 2 * 24 * 60u64;
    let mut kept: Vec<KeyHash> = Vec::new();
    for minute in 0..minutes {
        let phase = minute as f64 / (24.0 * 60.0) * std::f64::consts::TAU;
        let count = (KEYS_A_DAY / shards) as f64 / (24.0 * 60.0) * (1.0 + swing * phase.sin());
        let hashes: Vec<KeyHash> = (0..count as u64).map(|number| hashing.hash_u64(key + number)).collect();
        key += hashes.len() as u64;
        let mut verdicts = vec![Verdict::Distinct; hashes.len()];
        let started = cpu();
        let time = Times::Now(minute as i64 * 60_000_000);
        timeline.observe_hashes(shard.as_mut(), &hashes, Importances::default(), time, &mut verdicts)?;
        busy += cpu() - started;
        if minute >= minutes / 2 {
            kept.extend(hashes.first());
        }
        if minute >= minutes / 2 && minute % 30 == 0 {
            worst = worst.max(asked(shard.as_ref(), &hashing, 200_000, 1 << 60)?);
        }
    }
    let missed = kept.iter().filter(|hash| !shard.contains_hash(**hash)).count();
    let rate = asked(shard.as_ref(), &hashing, 1_000_000, 1 << 61)?;
    let started = cpu();
    let bytes = codec::encode_compressed(shard.as_ref());
    let packed = cpu() - started;
    KINDS.decoder().limit(1 << 30).decode(&bytes)?;
    let read = cpu() - started - packed;
    println!();
    println!("One of {shards} shards, two days, {name}: {} keys, {:.0} ns a key;", key, busy as f64 / key as f64);
    println!(
        "false positives {:.2} % in the end and {:.2} % at worst, {missed} of {} within a day missed;",
        rate * 100.0,
        worst * 100.0,
        kept.len()
    );
    println!(
        "{:.1} MiB when it moves, {} ms to write it and {} ms to read it",
        bytes.len() as f64 / f64::from(1 << 20),
        packed / 1_000_000,
        read / 1_000_000
    );
    Ok(())
}

/// Nanoseconds that this thread has run, as Linux counts them.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// How many of so many keys that never came are found.
fn asked(shard: &dyn Filter, hashing: &Hashing, count: u64, start: u64) -> Result<f64, Box<dyn Error>> {
    let found = (start..start + count).filter(|key| shard.contains_hash(hashing.hash_u64(*key))).count();
    Ok(found as f64 / count as f64)
}
