//! `dedup` keeps to the memory that `--help` says, whatever the threads and modes: `--memory`, 32 MiB, three times the
//! longest record, and what the decoder of a packed input needs to look back.
//!
//! The kernel tells a parent only the maximum over all of its children, so each run has a parent of its own: this test,
//! started again.

#![cfg(target_os = "linux")]

mod common;

use common::Folder;
use nix::sys::resource::{UsageWho, getrusage};
use std::process::{Command, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const MEMORY: u64 = 16 * MIB;
const FIXED: u64 = 32 * MIB;
/// What the packed input is packed with.
const WINDOW_LOG: u32 = 23;
const HELPER: &str = "the_parent_of_one_run";
const COMMAND: &str = "EVERBLOOM_TEST_MEASURED";

/// Runs the command of the environment, and prints the most memory it had.
#[test]
fn the_parent_of_one_run() {
    let Ok(command) = std::env::var(COMMAND) else { return };
    let mut words = command.split('\n');
    let mut child = Command::new(words.next().expect("a program"));
    let mut child = child.args(words).stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("everbloom runs");
    let is_followed = command.contains("--follow");
    if is_followed {
        let length = || std::fs::metadata("out").map_or(0, |data| data.len());
        let mut before = 0;
        // All is read once the output stays as it is.
        while length() == 0 || std::mem::replace(&mut before, length()) != length() {
            std::thread::sleep(Duration::from_millis(500));
        }
        assert!(Command::new("kill").arg(child.id().to_string()).status().expect("kill runs").success());
    }
    let status = child.wait().expect("an end");
    assert!(if is_followed { status.code() == Some(143) } else { status.success() }, "{command}: {status}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("what the child used");
    println!("peak {}", usage.max_rss() * 1024);
}

fn peak(folder: &Folder, arguments: &str) -> u64 {
    let words = arguments.split_whitespace().map(str::to_string);
    let command = [env!("CARGO_BIN_EXE_everbloom").to_string()].into_iter().chain(words).collect::<Vec<_>>();
    let mut parent = Command::new(std::env::current_exe().expect("this test"));
    parent.args(["--exact", HELPER, "--nocapture"]).env(COMMAND, command.join("\n")).current_dir(folder.path(""));
    let output = parent.output().expect("this test runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let peak = text.split_once("peak ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    peak.unwrap_or_else(|| panic!("{arguments}: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

/// Short lines, each twice, so that every mode has something to write.
fn lines(count: u64) -> Vec<u8> {
    (0..count).flat_map(|line| format!("{},\"a name of {line}\"\n", line / 2).into_bytes()).collect()
}

fn with_dictionary() -> lzma_rust2::LzmaOptions {
    lzma_rust2::LzmaOptions { dict_size: 1 << WINDOW_LOG, ..lzma_rust2::LzmaOptions::with_preset(0) }
}

/// Keys by pointer need no tree of the documents.
#[test]
fn long_documents_are_not_built_up_in_memory() {
    let folder = Folder::new();
    let (numbers, mut documents) = ("[1,2,3],".repeat(1 << 20), String::new());
    for id in 0..6 {
        documents += &format!("{{\"many\":[{numbers}0],\"id\":{id}}}\n{{\"id\":{id}}}\n");
    }
    folder.write("documents", &documents);
    for mode in ["-o out", "--flag", "--state s -o out --duplicates dup"] {
        for threads in [1, 8] {
            let _ = std::fs::remove_file(folder.path("s"));
            let call = format!("dedup --quiet --memory 16MiB --json --key /id {mode} --threads {threads} documents");
            let (peak, limit) = (peak(&folder, &call), MEMORY + FIXED + 3 * (numbers.len() as u64 + 30));
            println!("{:6.1} of {:6.1} MiB: {call}", peak as f64 / MIB as f64, limit as f64 / MIB as f64);
            assert!(peak <= limit, "{call}: {peak} bytes, more than {limit}");
        }
    }
}

#[test]
fn memory_stays_within_what_help_says() {
    let folder = Folder::new();
    let short = lines(1_500_000);
    // Long ones next to each other, so that all threads have one.
    let long_bytes = 12 * MIB;
    let mut long = lines(100_000);
    for number in 0..6 {
        long.extend(format!("{number},\"").into_bytes());
        long.resize(long.len() + long_bytes as usize - 10, b'x');
        long.extend(b"\"\n");
    }
    folder.write("short", &short);
    folder.write("long", &long);
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("zstd");
    encoder.window_log(WINDOW_LOG).and_then(|()| std::io::Write::write_all(&mut encoder, &short)).expect("zstd");
    folder.write("packed.zst", encoder.finish().expect("zstd"));
    let options = lzma_rust2::XzOptions { lzma_options: with_dictionary(), ..lzma_rust2::XzOptions::with_preset(0) };
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).expect("xz");
    std::io::Write::write_all(&mut encoder, &short).expect("xz");
    folder.write("packed.xz", encoder.finish().expect("xz"));
    let window = 1 << WINDOW_LOG;
    let inputs = [("short", 100, 0), ("long", long_bytes, 0), ("packed.zst", 100, window), ("packed.xz", 100, window)];
    let modes = [
        "-o out --duplicates dup",
        "--flag --duplicates dup",
        "--only-duplicates",
        "--count --stats stats",
        "--csv --key 1 -o out --state s --checkpoint 0s --duplicates dup",
        "--window 10000 -o out",
        "--state s --flag --duplicates dup --header --csv --key 1",
        "--json --key /none --on-error keep -o out",
        "--state s --follow -o out",
    ];
    let mut wrong = Vec::new();
    for (place, (input, longest, window)) in inputs.into_iter().enumerate() {
        for (index, mode) in modes.iter().enumerate() {
            // Every input and every mode meets both numbers of threads.
            let threads = if (place + index) % 2 == 0 { 8 } else { 1 };
            for name in ["s", "out"] {
                let _ = std::fs::remove_file(folder.path(name));
            }
            let call = format!("dedup --quiet --memory 16MiB {mode} --threads {threads} {input}");
            let (peak, limit) = (peak(&folder, &call), MEMORY + FIXED + 3 * longest + window);
            println!("{:6.1} of {:6.1} MiB: {call}", peak as f64 / MIB as f64, limit as f64 / MIB as f64);
            if peak > limit {
                wrong.push(format!("{call}: {peak} bytes, more than {limit}"));
            }
            // The filter of a window is as small as it may be; all others show that something was measured.
            assert!(peak > 4 * MIB || index == 5, "{call}: {peak} bytes are no dedup");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
