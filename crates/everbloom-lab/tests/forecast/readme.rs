//! The README's table of recommendations, made by the planner and held to it.
//!
//! `EVERBLOOM_BLESS=1 cargo test -p everbloom-lab --test forecast readme` writes it anew.

use everbloom::{Goal, Spec};
use everbloom_all::KINDS;
use everbloom_forecast::{Question, Stream};
use std::path::PathBuf;

const BEGIN: &str = "<!-- made by the planner: begin -->\n";
const END: &str = "<!-- made by the planner: end -->\n";

const KEYS: u64 = 1_000_000;
const TARGET_FPR: f64 = 0.01;
const BITS_PER_KEY: [f64; 5] = [0.5, 1.0, 3.0, 7.0, 11.0];

fn streams() -> Vec<(&'static str, Stream)> {
    vec![
        ("all keys alike (`uniform`)", Stream::uniform(2 * KEYS, KEYS).expect("a stream")),
        ("few keys often (`zipf:1`)", Stream::zipf_of(KEYS, 1.0).expect("a stream")),
        ("soon or much later (`lag:`)", Stream::assumed(KEYS).expect("a stream")),
    ]
}

/// What matters of a spec in a table.
fn short(spec: &Spec) -> String {
    let kind = spec.kind();
    match (spec.get("lanes"), spec.get("lane_bits"), spec.get("insert")) {
        (Some("1"), Some(bits), _) => format!("`{kind}`, 1 × {bits}"),
        (Some(lanes), Some(bits), Some(insert)) => format!("`{kind}`, {lanes} × {bits}, {insert}"),
        _ => format!("`{kind}`"),
    }
}

fn cell(stream: &Stream, bits_per_key: f64) -> String {
    let goal = Goal::new().memory_bits((KEYS as f64 * bits_per_key) as u64).fpr(TARGET_FPR);
    let mut question = Question::among(KINDS, goal.expected_items(KEYS));
    question.stream = Some(stream.clone());
    let best = question.answer().expect("an answer").best;
    let missed = 100.0 * best.forecast.predicted_fnr;
    let missed = if missed >= 10.0 { format!("{missed:.0}") } else { format!("{missed:.1}") };
    match best.forecast.predicted_fnr == 0.0 {
        true => format!("{}: nothing", short(&best.plan.spec)),
        false => format!("{}: {missed} %", short(&best.plan.spec)),
    }
}

fn table() -> String {
    let streams = streams();
    let names: Vec<_> = streams.iter().map(|(name, _)| format!(" {name} |")).collect();
    let mut text = format!("| bits per distinct key |{}\n|---|{}\n", names.concat(), "---|".repeat(streams.len()));
    for bits in BITS_PER_KEY {
        let cells: Vec<_> = streams.iter().map(|(_, stream)| format!(" {} |", cell(stream, bits))).collect();
        text.push_str(&format!("| {bits} |{}\n", cells.concat()));
    }
    text
}

#[test]
fn the_readme_s_table_is_what_the_planner_says() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../book/src/choosing.md");
    let readme = std::fs::read_to_string(&path).expect("a README");
    let (before, rest) = readme.split_once(BEGIN).expect("the table's beginning");
    let (found, after) = rest.split_once(END).expect("the table's end");
    let table = table();
    if std::env::var_os("EVERBLOOM_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).expect("a README written");
    } else {
        assert_eq!(found, table, "made anew with EVERBLOOM_BLESS=1");
    }
}
