//! Asks a filter in a file for the keys on standard input, one a line: `verdicts FILE [COPY] < keys`.
//!
//! It writes a 1 for each key that has been there and a 0 for each other one, all in one line. The file may come from the
//! command line, the Python package or a server: what it answers is the same, and that is what the tests of the package
//! use it for. COPY takes what the library writes of the filter that it read. Without a file it asks a filter of its own.

use everbloom::{AnyFilter, Goal};
use everbloom_all::KINDS;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead};

fn main() -> Result<(), Box<dyn Error>> {
    let mut names = std::env::args_os().skip(1);
    let Some(from) = names.next() else {
        let mut own = Goal::new().memory("1KiB").fpr("1%").build_among(KINDS)?;
        own.insert("alice");
        assert_eq!(verdicts(&own, &["alice", "bob"]), "10");
        println!("usage: verdicts FILE [COPY] < keys");
        return Ok(());
    };
    let filter = KINDS.read_from(&mut File::open(from)?)?;
    if let Some(to) = names.next() {
        filter.write_to(&mut File::create(to)?)?;
    }
    let keys: Vec<Vec<u8>> = io::stdin().lock().split(b'\n').collect::<Result<_, _>>()?;
    println!("{}", verdicts(&filter, &keys));
    Ok(())
}

fn verdicts(filter: &AnyFilter, keys: &[impl everbloom::Key]) -> String {
    let mut found = vec![false; keys.len()];
    filter.contains_batch(keys, &mut found);
    found.iter().map(|found| if *found { '1' } else { '0' }).collect()
}
