//! A browser's check: most addresses are cleared without asking anybody, and only those that a filter knows are asked about.
//!
//! `cargo run -p everbloom-all --example safe_browsing`
//!
//! The server has the list of harmful pages. It sends browsers a filter of it, a few bytes a page. A browser asks its own
//! filter first: "no" is certain, so the page opens at once and the server never learns of it. Only on a "yes" is the
//! server asked, because that may be a false positive.

use everbloom::{AnyFilter, Goal};
use everbloom_all::KINDS;
use std::collections::HashSet;

/// The server: the list itself, and how often it is asked.
struct Server {
    harmful: HashSet<String>,
    asked: u32,
}

impl Server {
    /// The filter that browsers get: as small on the wire as 1 in 1,000 allows.
    fn filter(&self) -> Result<Vec<u8>, everbloom::Error> {
        let goal = Goal::new().filter("bloom").expected_items(self.harmful.len() as u64).fpr("0.1%");
        let mut filter = goal.compressed().build()?;
        filter.extend(&self.harmful);
        Ok(filter.to_compressed_bytes())
    }

    fn is_harmful(&mut self, address: &str) -> bool {
        self.asked += 1;
        self.harmful.contains(address)
    }
}

/// The browser: a filter, and a server for the cases that it cannot decide.
struct Browser {
    filter: AnyFilter,
}

impl Browser {
    fn warns(&self, address: &str, server: &mut Server) -> bool {
        self.filter.contains(address) && server.is_harmful(address)
    }
}

fn main() -> Result<(), everbloom::Error> {
    let harmful: HashSet<String> = (0..50_000).map(|number| format!("http://bad{number}.example/")).collect();
    let list_bytes: usize = harmful.iter().map(String::len).sum();
    let mut server = Server { harmful, asked: 0 };

    // What comes over the network is trusted with nothing, nor with more memory than we allow.
    let sent = server.filter()?;
    let browser = Browser { filter: KINDS.decoder().limit(16 << 20).decode(&sent)?.into() };

    let (mut warnings, mut visits) = (0, 0);
    for number in 0..100_000 {
        // One address in a thousand is harmful.
        let is_harmful = number % 1000 == 0;
        let address = match is_harmful {
            true => format!("http://bad{}.example/", number / 2),
            false => format!("http://good{number}.example/"),
        };
        visits += 1;
        let warned = browser.warns(&address, &mut server);
        assert_eq!(warned, is_harmful, "{address}: no harmful page opens, and no other is blocked");
        warnings += u32::from(warned);
    }

    println!("{} bytes sent for 50,000 harmful addresses; the list has {list_bytes}", sent.len());
    println!("{visits} pages visited, {warnings} warnings, all of them right");
    println!(
        "the server was asked {} times: for the {warnings}, and for {} false positives",
        server.asked,
        server.asked - warnings
    );
    assert!(server.asked - warnings < 150, "promised 1 in 1,000");
    assert!(sent.len() * 10 < list_bytes);
    Ok(())
}
