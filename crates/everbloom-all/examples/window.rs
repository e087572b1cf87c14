//! A window of time: each alert at most once an hour, without exception.
//!
//! `cargo run -p everbloom-all --example window`

use everbloom::{Goal, TimeWindow};

const MINUTE: i64 = 60_000_000;

fn main() -> Result<(), everbloom::Error> {
    // Sized for 10,000 alerts an hour; what is older than an hour is forgotten.
    let mut recent = TimeWindow::new("1h", &Goal::new().expected_items("10k").fpr("0.1%"))?;

    let mut sent = Vec::new();
    for minute in 0..600 {
        // The same alert every five minutes, but for a quiet spell in the middle.
        if minute % 5 == 0 && !(200..300).contains(&minute) && recent.insert("disk full", minute * MINUTE) {
            sent.push(minute);
        }
    }
    println!("sent at minutes {sent:?}");
    assert_eq!(sent, [0, 300], "once, and again after more than an hour of silence");
    Ok(())
}
