//! A summary cache: three caches, each a process, that know roughly what the others hold.
//!
//! `cargo run -p everbloom-all --example summary_cache`
//!
//! See README.md in this folder for what happens and how to read the output.

mod cache;
#[path = "../shared/processes.rs"]
mod processes;
mod proxy;

use everbloom::Hashing;
use processes::{Process, Result};

/// Caches that work together.
const PROXIES: usize = 3;
/// Pages that each can hold.
const CAPACITY: usize = 600;
/// Requests of all users together.
const REQUESTS: u64 = 9000;
/// Pages that there are.
const PAGES: f64 = 20_000.0;

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("proxy") => proxy::run(CAPACITY),
        Some(other) => Err(format!("there is nothing to do for '{other}'; call it without arguments").into()),
        None => play(),
    }
}

/// The page that a request is for: the hundredth page is asked for a hundred times as seldom as the first.
fn wanted(request: u64) -> String {
    let uniform = Hashing::seeded(7).hash_u64(request).low as f64 / u64::MAX as f64;
    format!("http://example.org/page/{}", PAGES.powf(uniform) as u64)
}

fn play() -> Result<()> {
    let mut proxies = (0..PROXIES).map(|_| Process::start(&["proxy"])).collect::<Result<Vec<_>>>()?;
    let ports: Vec<u16> = proxies.iter().map(|proxy| proxy.port).collect();
    for (number, proxy) in proxies.iter_mut().enumerate() {
        let mut known: Vec<String> = ports.iter().map(u16::to_string).collect();
        // A proxy's own port comes first.
        known.swap(0, number);
        proxy.connection.ask(&proxy::message(proxy::PEERS, known.join(" ").as_bytes()))?;
    }

    // Users come to their own proxy, and each gets the page that was asked for, wherever it came from.
    let mut from = [0u64; 3];
    for request in 0..REQUESTS {
        let url = wanted(request);
        let proxy = &mut proxies[request as usize % PROXIES];
        let answer = proxy.connection.ask(&proxy::message(proxy::GET, url.as_bytes()))?;
        assert_eq!(answer[1..], cache::page(&url), "the page that was asked for");
        from[usize::from(answer[0])] += 1;
    }

    let mut all = proxy::Counts::default();
    for proxy in &mut proxies {
        all.add(&proxy::Counts::from_bytes(&proxy.connection.ask(&[proxy::REPORT])?)?);
    }
    report(from, &all)
}

fn report([own, peers, origin]: [u64; 3], all: &proxy::Counts) -> Result<()> {
    let misses = REQUESTS - own;
    let everybody = misses * (PROXIES as u64 - 1);
    let sizes = all.sizes();
    println!("{REQUESTS} requests to {PROXIES} caches of {CAPACITY} pages, each a process of its own");
    println!("  {own} pages were in the cache that was asked, {peers} in another one, {origin} came from the origin");
    println!("  {misses} times a cache had to look elsewhere. Its summaries named {} caches to ask;", all.asked);
    println!("    to ask everybody would have been {everybody} questions");
    println!(
        "  {} of the {} caches did not have the page: it had just gone, or looked as if it were there",
        all.wasted, all.asked
    );
    println!(
        "{} summaries were sent, {} bytes each on average, {} in all",
        all.summaries, sizes.sent, all.summary_bytes
    );
    println!(
        "  an ordinary filter of the same rate takes {} bytes, a list of the addresses {}",
        sizes.ordinary, sizes.addresses
    );
    println!("  kept at home, with counters, so that pages can leave again: {} bytes", sizes.counters);

    assert!(own > 0 && peers > 0 && own + peers + origin == REQUESTS);
    assert_eq!(peers, all.asked - all.wasted, "whoever was asked and had the page gave it");
    assert!(all.asked * 2 < everybody, "summaries save most of the questions");
    assert!(all.wasted * 4 < all.asked, "and seldom name a cache in vain");
    assert!(sizes.sent < sizes.ordinary && sizes.sent * 10 < sizes.addresses, "a summary is small");
    Ok(())
}
