//! `lab simulate`: traces of one's own, generated ones, and what is refused.

mod common;

use common::{Folder, assert_refused, json_of};
use std::fmt::Write as _;

/// Three proxies that ask for objects 0 to 39, low ones most.
fn recorded() -> String {
    (0..6000u32).fold(String::new(), |mut text, time| {
        let mixed = time.wrapping_mul(2_654_435_761) >> 16;
        let object = (mixed % 40) * (mixed / 40 % 40) / 40;
        writeln!(text, "{time}\tproxy-{}\tobject-{object}\t100", time % 3).expect("a string takes every write");
        text
    })
}

#[test]
fn a_recorded_trace_is_run() {
    let folder = Folder::new();
    folder.write("trace.tsv", recorded());
    let ask = ["lab", "simulate", "caching", "--trace", "trace.tsv", "--slots", "10", "--format", "json"];
    let document = json_of(&folder.output_of(&ask));
    assert_eq!((document["requests"].as_u64(), document["proxies"].as_u64()), (Some(6000), Some(3)));
    let names: Vec<_> = document["schemes"].as_array().expect("rows").iter().map(|row| row["scheme"].clone()).collect();
    assert_eq!(names, ["standard", "rounding", "paper", "greedy at half fill", "ours"]);
    assert_eq!(document, json_of(&folder.output_of(&ask)), "the same trace gives the same result");
}

#[test]
fn generated_systems_are_run() {
    let folder = Folder::new();
    let caching = ["lab", "simulate", "caching", "--generate", "settled", "--slots", "30", "--policy", "lru"];
    assert!(String::from_utf8_lossy(&folder.output_of(&caching)).contains("bytes broadcast"));
    let keyword = ["lab", "simulate", "keyword", "--documents", "2000", "--words", "200", "--queries", "50"];
    let document = json_of(&folder.output_of(&[&keyword[..], &["--format", "json"]].concat()));
    assert!(document["schemes"][0]["bytes_per_query"].as_f64().expect("bytes") > 0.0);
    let lognormal = ["--document-lengths", "lognormal:1", "--direct"];
    assert!(String::from_utf8_lossy(&folder.output_of(&[&keyword[..], &lognormal].concat())).contains("own best"));
}

#[test]
fn bad_traces_and_calls_are_refused() {
    let folder = Folder::new();
    folder.write("bad.tsv", "1\ta\tx\n2\tb\ty\nsoon\ta\tx\n");
    folder.write("empty.tsv", "");
    folder.write("alone.tsv", "1\ta\tx\n");
    let caching = |more: &[&str]| folder.run(&[&["lab", "simulate", "caching"], more].concat());
    assert_refused(&caching(&["--trace", "bad.tsv"]), "line 3");
    assert_refused(&caching(&["--trace", "empty.tsv"]), "empty");
    assert_refused(&caching(&["--trace", "alone.tsv"]), "proxies");
    assert_refused(&caching(&["--trace", "none.tsv"]), "none.tsv");
    assert_refused(&caching(&["--generate", "no-such"]), "no-such");
    assert_refused(&caching(&["--slots", "20", "--bits-per-slot", "NaN"]), "bits_per_key");
    assert_refused(&caching(&["--slots", "1e12"]), "slots");
    let keyword = |more: &[&str]| folder.run(&[&["lab", "simulate", "keyword"], more].concat());
    assert_refused(&keyword(&["--words", "1"]), "words");
    assert_refused(&keyword(&["--document-lengths", "flat"]), "zipf:1");
    assert_refused(&keyword(&["--document-lengths", "zipf:NaN"]), "between 0 and 10");
}
