//! `cargo xtask bench`: every bench of the repository, and their tables written into the page that shows them.
//!
//! Each bench runs on the newest instructions that the machine has, and what it prints takes the place of what stands
//! between its two marks on the page, without the bars that it kept; prose outside stays. Then it runs shorter on older
//! instructions (`EVERBLOOM_ISA`), and only prints. A bench that fails leaves its tables as they were, and the others still run.

use crate::{Outcome, root};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const PAGE: &str = "crates/everbloom-all/benches/README.md";

const USAGE: &str = "cargo xtask bench [--quick] [membership|streams|importance|windows|popularity|wire|dedup|redis …]";

/// The benches of the library, and the rounds that fit into half an hour: on the newest instructions, and on older ones.
const BENCHES: &[(&str, &str, &str)] = &[
    ("membership", "9", "5"),
    ("streams", "7", "5"),
    ("importance", "7", "5"),
    ("windows", "5", "5"),
    ("popularity", "5", "5"),
    ("wire", "3", "3"),
];

/// What `bench-dedup` is given.
const DEDUP: &[&str] = &["bench-dedup", "--rounds", "3"];

/// What `bench-redis` is given.
const REDIS: &[&str] = &["bench-redis", "--rounds", "9"];

/// Needs a quiet machine; what follows the task's name says which benches, all without.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let wanted: Vec<&str> = arguments.iter().map(String::as_str).filter(|argument| *argument != "--quick").collect();
    let known = |name: &&str| ["dedup", "redis"].contains(name) || BENCHES.iter().any(|bench| bench.0 == *name);
    if !wanted.iter().all(known) {
        return Err(USAGE.into());
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.contains(&name);
    let started = Instant::now();
    let mut problems = Vec::new();
    let mut write = |section: &str, text: Result<String, String>| {
        let written = text.and_then(|text| replace_section(&root().join(PAGE), section, &text));
        problems.extend(written.err().map(|problem| format!("{section}: {problem}")));
    };
    output(cargo().args(["bench", "--package", "everbloom-all", "--no-run"]))?;
    write("machine", Ok(machine()));
    for (name, rounds, fewer_rounds) in BENCHES.iter().filter(|bench| is_wanted(bench.0)) {
        write(name, tables(name, rounds, fewer_rounds, quick));
    }
    if is_wanted("dedup") {
        let scale: &[&str] = if quick { &["--scale", "0.01"] } else { &[] };
        write("dedup", output(cargo().args(["run", "--release", "--package", "xtask", "--"]).args(DEDUP).args(scale)));
    }
    if is_wanted("redis") {
        let scale: &[&str] = if quick { &["--items", "20000"] } else { &[] };
        write("redis", output(cargo().args(["run", "--release", "--package", "xtask", "--"]).args(REDIS).args(scale)));
    }
    eprintln!("xtask: benches took {} s; see {PAGE}", started.elapsed().as_secs());
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

/// What a bench prints on the newest instructions, after its short form has run on each older set, too.
fn tables(name: &str, rounds: &str, fewer_rounds: &str, quick: bool) -> Result<String, String> {
    let bench = |set: &str, more: &[&str]| {
        let fixed = ["bench", "--package", "everbloom-all", "--bench", name, "--"];
        output(cargo().args(fixed).args(more).env("EVERBLOOM_ISA", set))
    };
    let sets = instruction_sets();
    let newest = sets.first().copied().unwrap_or("portable");
    let all: &[&str] = if quick { &["--quick"] } else { &["--rounds", rounds] };
    let text = bench(newest, all)?;
    for older in &sets[1..] {
        bench(older, &["--quick", "--rounds", fewer_rounds])?;
    }
    Ok(text)
}

/// The text with only those rows of a table of bars that say MISSED, below how many were kept.
fn without_kept_bars(text: &str) -> String {
    let mut lines = text.lines().peekable();
    let mut short = String::new();
    while let Some(line) = lines.next() {
        let mut rows = vec![line];
        if line.starts_with("| ratio") {
            rows.extend(std::iter::from_fn(|| lines.next_if(|row| row.starts_with('|'))));
            let all = rows.len() - 2;
            rows.retain(|row| !row.trim_end_matches([' ', '|']).ends_with("kept"));
            short += &format!("{} of {all} kept\n\n", all + 2 - rows.len());
            rows.truncate(if rows.len() == 2 { 0 } else { rows.len() });
        }
        rows.iter().for_each(|row| short += &format!("{row}\n"));
    }
    short
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.current_dir(root());
    command
}

/// What a command writes to its standard output, which is shown as well once it has ended.
fn output(command: &mut Command) -> Result<String, String> {
    eprintln!("xtask: {command:?}");
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("did not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}");
    if output.status.success() { Ok(text) } else { Err(format!("it ended with {}", output.status)) }
}

/// The instruction sets that this machine has, the newest first.
fn instruction_sets() -> Vec<&'static str> {
    let flags = cpu_info("flags").unwrap_or_default();
    let has = |names: &[&str]| names.iter().all(|name| flags.split(' ').any(|flag| flag == *name));
    let avx2 = has(&["avx2", "bmi1", "bmi2", "popcnt"]);
    let sets = [("avx512", avx2 && has(&["avx512f", "avx512dq", "avx512bw"])), ("avx2", avx2), ("portable", true)];
    sets.into_iter().filter(|(_, present)| *present).map(|(name, _)| name).collect()
}

/// The first value of this name in what the kernel says about the processors.
fn cpu_info(name: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_string())
}

/// The machine, in a sentence or two; nothing that names it among others.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = cpu_info("model name").unwrap_or_else(|| "unknown processor".into());
    let megahertz = cpu_info("cpu MHz").map_or(String::new(), |speed| format!(" at {speed} MHz"));
    let caches: Vec<String> = (0..8).filter_map(cache).collect();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown");
    format!(
        "{cores} × {model}{megahertz}; {}; instruction sets: {}. Load average before the first bench: {load}.\n",
        if caches.is_empty() { "caches unknown".into() } else { caches.join(", ") },
        instruction_sets().join(", "),
    )
}

/// One of the caches of the first processor, as `L2 512K`.
fn cache(index: usize) -> Option<String> {
    let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
    let read = |file: &str| Some(fs::read_to_string(Path::new(&folder).join(file)).ok()?.trim().to_string());
    let kind = match read("type")?.as_str() {
        "Data" => "d",
        "Instruction" => "i",
        _ => "",
    };
    Some(format!("L{}{kind} {}", read("level")?, read("size")?))
}

/// Puts text between the two marks of a section.
fn replace_section(page: &Path, section: &str, text: &str) -> Outcome {
    let name = page.display();
    let old = fs::read_to_string(page).map_err(|error| format!("{name}: {error}"))?;
    let new = with_section(&old, section, text).ok_or_else(|| format!("{name} has no marks for '{section}'"))?;
    // In one step: whoever stops the run keeps a whole page.
    let draft = page.with_extension("md.new");
    fs::write(&draft, new).and_then(|()| fs::rename(&draft, page)).map_err(|error| format!("{name}: {error}"))
}

fn with_section(page: &str, section: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- bench {section}: begin -->\n"), format!("<!-- bench {section}: end -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    // A bench's own title is not a heading of the page.
    let lines = text.trim().lines().map(|line| line.strip_prefix("# ").unwrap_or(line));
    let body = without_kept_bars(&lines.collect::<Vec<_>>().join("\n"));
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", body.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_the_prose_around_it_stays() {
        let page = "Prose.\n<!-- bench wire: begin -->\nold\n<!-- bench wire: end -->\nMore.\n";
        let new = with_section(page, "wire", "# Title\n\n### Table\n| a |\n").expect("marks");
        assert!(new.starts_with("Prose.\n<!-- bench wire: begin -->\n\nTitle\n") && new.ends_with("end -->\nMore.\n"));
        assert!(!new.contains("old"));
        assert_eq!(with_section(&new, "wire", "# Title\n\n### Table\n| a |\n").as_ref(), Some(&new), "done twice");
        assert_eq!(with_section(page, "streams", "text"), None);
    }

    #[test]
    fn bars_that_were_kept_are_counted_and_not_shown() {
        let head = "| ratio | bar |  |\n|---|---|---|\n";
        let text = format!("| a |\n\n{head}| b | ≤ 1 | kept   |\n| c | ≤ 1 | MISSED |\n\n{head}| d | ≤ 2 | kept |");
        let short = format!("| a |\n\n1 of 2 kept\n\n{head}| c | ≤ 1 | MISSED |\n\n1 of 1 kept\n\n");
        assert_eq!(without_kept_bars(&text), short);
    }

    #[test]
    fn the_page_has_marks_for_every_bench() {
        let page = fs::read_to_string(root().join(PAGE)).expect("the page");
        for section in BENCHES.iter().map(|bench| bench.0).chain(["machine", "dedup", "redis"]) {
            assert!(with_section(&page, section, "").is_some(), "no marks for {section}");
        }
    }
}
