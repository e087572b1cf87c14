//! A crawler: which of the links on this page have we not seen yet?
//!
//! `cargo run -p everbloom-all --example crawler`, or with another memory for the second crawl: `… --example crawler -- 64KiB`
//!
//! A web has far more links than pages. Every link is asked for in a filter before it is put on the list of pages to fetch. Two
//! ways to err: a page that is taken for seen is never fetched, one that is forgotten is fetched again. `bloom` errs in the first
//! way only, and says how often; `graceful` (what `dedup` takes) is exact until its memory is full, and then forgets.

use everbloom::{AnyFilter, Goal, Hashing};
use everbloom_all::KINDS;
use std::collections::VecDeque;

/// Pages that can be reached from page 0.
const PAGES: u64 = 60_000;

/// The links of a page. Each page has the next two of a tree, so that all can be reached, and ten that many pages have.
fn links(page: u64) -> impl Iterator<Item = u64> {
    let popular = (0..10).map(move |link| {
        let uniform = Hashing::seeded(page).hash_u64(link).low as f64 / u64::MAX as f64;
        (PAGES as f64).powf(uniform) as u64
    });
    [2 * page + 1, 2 * page + 2].into_iter().filter(|page| *page < PAGES).chain(popular)
}

/// Addresses of one page, as authors write them.
fn address(page: u64, style: u64) -> String {
    match style % 3 {
        0 => format!("http://example.org/{page}"),
        1 => format!("HTTP://Example.ORG:80/{page}"),
        _ => format!("http://example.org/{page}#section-{style}"),
    }
}

/// One spelling for one page; otherwise every spelling is a page of its own.
fn normal(address: &str) -> String {
    let address = address.split('#').next().unwrap_or_default();
    let Some((host, path)) = address.get(7..).and_then(|rest| rest.split_once('/')) else { return address.to_string() };
    format!("http://{}/{path}", host.to_ascii_lowercase().trim_end_matches(":80"))
}

/// Pages fetched, and how many of those were fetched before.
fn crawl(seen: &mut AnyFilter) -> (u64, u64) {
    let mut fetched_before = vec![false; PAGES as usize];
    let (mut fetched, mut again) = (0, 0);
    let mut to_fetch = VecDeque::from([0]);
    seen.insert(normal(&address(0, 0)));
    while let Some(page) = to_fetch.pop_front() {
        fetched += 1;
        again += u64::from(std::mem::replace(&mut fetched_before[page as usize], true));
        if fetched == 3 * PAGES {
            break;
        }
        for (style, link) in links(page).enumerate() {
            if seen.insert(normal(&address(link, page + style as u64))) {
                to_fetch.push_back(link);
            }
        }
    }
    (fetched, again)
}

fn main() -> Result<(), everbloom::Error> {
    assert_eq!(normal("HTTP://Example.ORG:80/5#top"), normal("http://example.org/5"));
    println!("{PAGES} pages with {} links", PAGES * 12 - PAGES);

    let mut plenty = Goal::new().filter("bloom").expected_items(PAGES).fpr("0.1%").build_among(KINDS)?;
    let (fetched, again) = crawl(&mut plenty);
    let lost = PAGES - fetched;
    println!(
        "bloom, {} KiB:     {fetched} pages fetched, {again} of them twice, {lost} never",
        plenty.info().memory_bits >> 13
    );
    assert_eq!(again, 0, "what was inserted is found");
    assert!(lost < PAGES / 500, "a page that is lost takes those with it that only it links to");

    let typed = std::env::args().nth(1);
    let memory = typed.clone().unwrap_or_else(|| "160KiB".into());
    let mut little = Goal::new().filter("graceful").memory(memory.as_str()).fpr("0.1%").build_among(KINDS)?;
    let (fetched, again) = crawl(&mut little);
    println!(
        "graceful, {memory}:  {fetched} pages fetched, {again} of them again, {} never",
        PAGES - (fetched - again)
    );
    if fetched == 3 * PAGES {
        println!("…and given up: what is forgotten is fetched again, and so are the pages that it links to");
    }
    if typed.is_none() {
        assert!(again < PAGES / 10, "a page that many link to is not forgotten");
        assert!(fetched - again > PAGES * 99 / 100, "and hardly any is lost");
    }
    Ok(())
}
