//! A set of known size: which of these addresses have we written to before?
//!
//! `cargo run -p everbloom-all --example set`

use everbloom::Bloom;
use everbloom::FilterExt;

fn main() -> Result<(), everbloom::Error> {
    // The smallest filter that errs for at most one address in a hundred while at most 10,000 are inside.
    let mut written_to = Bloom::with_rate(10_000, 0.01)?;
    for number in 0..10_000 {
        written_to.insert(format!("user{number}@example.org"));
    }

    assert!(written_to.contains("user42@example.org"), "a key that was inserted is always found");
    let strangers = (0..10_000).map(|number| format!("stranger{number}@example.net"));
    let mistaken = strangers.filter(|address| written_to.contains(address)).count();

    let info = written_to.info();
    println!("{} bytes for 10,000 addresses, {mistaken} of 10,000 strangers mistaken", info.memory_bits / 8);
    assert!(mistaken < 150, "promised 1 %");
    Ok(())
}
