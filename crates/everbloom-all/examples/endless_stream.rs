//! An endless stream in fixed memory: drop events that came before.
//!
//! `cargo run -p everbloom-all --example endless_stream`

use everbloom::Goal;
use everbloom_all::KINDS;

fn main() -> Result<(), everbloom::Error> {
    // 64 KiB for ever. The planner takes the filter that misses the fewest repeats and keeps the rate whatever comes.
    let goal = Goal::new().memory("64KiB").fpr("1%");
    let plan = goal.plan_among(KINDS, "auto")?;
    println!("{}\nat most {:.2} % of new events are dropped by mistake", plan.spec, 100.0 * plan.promise.fpr_bound);

    let mut seen = plan.build()?;
    let (mut kept, mut repeats_kept) = (0, 0);
    for time in 0..500_000u64 {
        // Every third event is a retry of one that came shortly before.
        let is_retry = time % 3 == 2;
        let event = if is_retry { time - 2 } else { time };
        if seen.insert(("event", event)) {
            kept += 1;
            repeats_kept += u64::from(is_retry);
        }
    }

    println!("{kept} of 500,000 events kept, {repeats_kept} of 166,666 retries among them");
    assert!(repeats_kept < 2_000, "retries come back soon, while they are remembered");
    assert!(kept >= 333_334 * 98 / 100, "no more new events lost than promised");
    Ok(())
}
