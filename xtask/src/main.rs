//! Project tasks: `cargo xtask TASK`. One line of [`TASKS`] each.

mod bench;
mod bench_cluster;
mod bench_dedup;
mod bench_redis;
mod browser;
mod dist;
mod lines;
mod python;
mod redis;
mod servers;
mod testing;
#[path = "../../crates/everbloom-redis/tests/common/wire.rs"]
#[allow(dead_code, unreachable_pub, reason = "the module's tests use all of it")]
mod wire;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// What a task answers: done, or the one line that says why not.
type Outcome = Result<(), String>;

/// A task's name, what it does, and how; the arguments after the name are passed on.
type Task = (&'static str, &'static str, fn(&[String]) -> Outcome);

const TASKS: &[Task] = &[
    (
        "test",
        "every test of the workspace, examples in the documentation included; --quick: the short ones",
        testing::run,
    ),
    (
        "python",
        "the Python package: its wheel, installed under target/, and its tests; --full: beside pandas and peers",
        python::run,
    ),
    ("lint", "format, clippy and documentation, warnings denied", |_| lint()),
    (
        "accuracy",
        "filters against references, promises and each other, the long runs included; every plan for every goal",
        accuracy,
    ),
    (
        "soak",
        "dedup through so many days of signals, rotation and full disks [1000], from a seed on [0], and every call failing \
         in turn; redis: the module's \
         tests at so many times their length [100], from a seed on [0], of all kinds or some [bloom,stable,…]; cluster: \
         clients of many servers, at so many hundredths of the full counts [100]",
        soak,
    ),
    ("redis", "Redis on loopback with the module, fetched without root; --valkey: Valkey", redis::run),
    ("browser", "the pages in Debian's Chromium, fetched without root: every control, keys alone, axe", browser::run),
    ("ci", "lint, then test: what must hold before a change lands", ci),
    (
        "dist",
        "what is given to users, in target/dist: static binary, Debian package, archive, wheel, checksums",
        dist::run,
    ),
    (
        "lines",
        "lines of code by crate; --rooms: by folder of a crate; --at REVISION, or a FOLDER, counts another tree",
        lines::run,
    ),
    ("book", "the book as HTML in book/book, with mdBook", book),
    ("bench", "every bench, half an hour; writes the tables into crates/everbloom-all/benches/README.md", bench::run),
    (
        "bench-python",
        "the Python package beside rbloom, abloom and sets: CPU a key, ratios [--keys N … --rounds N]",
        python::bench,
    ),
    ("bench-dedup", "dedup beside huniq, runiq, awk, sort and jq: CPU, memory, wrong answers", bench_dedup::run),
    (
        "bench-redis",
        "what the module costs a server, beside SET and a command that does nothing: CPU",
        bench_redis::run,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let task = arguments.first().and_then(|name| TASKS.iter().find(|task| task.0 == name));
    let Some((_, _, run)) = task else { return usage() };
    match run(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: cargo xtask TASK");
    for (name, summary, _) in TASKS {
        eprintln!("  {name:<12} {summary}");
    }
    ExitCode::from(2)
}

/// Minutes, and a gigabyte; EVERBLOOM_DATA names the folder of recorded streams.
fn accuracy(arguments: &[String]) -> Outcome {
    let measured = ["--", "--include-ignored", "--nocapture", "--test-threads=1"].map(String::from);
    cargo("test", &["--package", "everbloom-lab", "--test", "accuracy"], &[arguments, &measured].concat(), &[])?;
    let planning = ["--package", "everbloom-all", "--test", "laws", "planning"];
    cargo("test", &planning, &[], &[("EVERBLOOM_SOAK", "1")])
}

/// What follows is a count, and a seed to begin with; behind `redis` it is for the module.
fn soak(arguments: &[String]) -> Outcome {
    match arguments.split_first() {
        Some((first, rest)) if first == "redis" => return soak_redis(rest),
        Some((first, rest)) if first == "cluster" => return soak_cluster(rest),
        _ => {}
    }
    let days = if arguments.is_empty() { "1000".to_string() } else { arguments.join(" ") };
    let fixed = ["--package", "everbloom-cli", "--test", "schedules", "--test", "faults", "--", "--nocapture"];
    cargo("test", &fixed, &[], &[("EVERBLOOM_SOAK", days.as_str())])
}

/// Clients of many servers that are killed, cut off and moved about, at so many hundredths of the full counts.
fn soak_cluster(arguments: &[String]) -> Outcome {
    let missing = servers::ensure_all();
    if !missing.is_empty() {
        return Err(missing.join("; "));
    }
    let times = if arguments.is_empty() { "100".to_string() } else { arguments.join(" ") };
    let servers = servers::folder().display().to_string();
    let variables = [("EVERBLOOM_SOAK", times.as_str()), (servers::FOLDER, &servers), (testing::NOTHING_SKIPPED, "1")];
    let shown = ["--nocapture", "--test-threads=1"].map(String::from);
    cargo("test", &["--package", "everbloom-redis-client", "--test", "equal", "--"], &shown, &variables)?;
    cargo("test", &["--package", "everbloom-cli", "--test", "servers", "--"], &shown, &variables)
}

/// Every test of the module, at so many times its length, which takes hours; of the kinds that the third word names.
fn soak_redis(arguments: &[String]) -> Outcome {
    let missing = servers::ensure_all();
    if !missing.is_empty() {
        return Err(missing.join("; "));
    }
    let (numbers, kinds) = arguments.split_at(arguments.len().min(2));
    let (times, kinds) = (if numbers.is_empty() { "100".to_string() } else { numbers.join(" ") }, kinds.join(","));
    let servers = servers::folder().display().to_string();
    let variables = [
        ("EVERBLOOM_SOAK", times.as_str()),
        ("EVERBLOOM_KINDS", &kinds),
        (servers::FOLDER, &servers),
        (testing::NOTHING_SKIPPED, "1"),
    ];
    // One of the tests hands files to the command line.
    cargo("build", &["--package", "everbloom-cli"], &[], &[])?;
    let shown = ["--nocapture", "--test-threads=1", "--include-ignored"].map(String::from);
    cargo("test", &["--package", "everbloom-redis", "--"], &shown, &variables)
}

fn lint() -> Outcome {
    cargo("fmt", &["--all", "--check"], &[], &[])?;
    cargo("clippy", &["--workspace", "--all-targets"], &["--".into(), "-Dwarnings".into()], &[])?;
    let small = ["--package", "everbloom-cli", "--no-default-features"];
    cargo("clippy", &small, &["--".into(), "-Dwarnings".into()], &[])?;
    python::check_free_threaded()?;
    cargo("doc", &["--workspace", "--no-deps"], &[], &[("RUSTDOCFLAGS", "-Dwarnings")])
}

fn ci(arguments: &[String]) -> Outcome {
    lint()?;
    testing::run_with(arguments, &[(testing::NOTHING_SKIPPED, "1")])
}

/// Needs mdBook, which the rest of the project does without; what follows the task's name goes to `mdbook build`.
fn book(arguments: &[String]) -> Outcome {
    match Command::new("mdbook").args(["build", "book"]).args(arguments).current_dir(root()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("mdbook build failed".into()),
        Err(_) => Err("mdBook is not installed: `cargo install mdbook`, or read the chapters in book/src".into()),
    }
}

/// Runs `cargo COMMAND …` at the root of the repository, with its output as it is.
fn cargo(command: &str, fixed: &[&str], more: &[String], variables: &[(&str, &str)]) -> Outcome {
    let started = Instant::now();
    let program = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut child = Command::new(program);
    child.arg(command).args(fixed).args(more).envs(variables.iter().copied()).current_dir(root());
    eprintln!("xtask: cargo {command} {}", [fixed.join(" "), more.join(" ")].join(" ").trim());
    let status = child.status().map_err(|error| format!("cargo {command} did not start: {error}"))?;
    eprintln!("xtask: cargo {command} took {} s", started.elapsed().as_secs());
    if status.success() { Ok(()) } else { Err(format!("cargo {command} failed")) }
}

/// The folder of the checkout that xtask was called in, which need not be the one it was built in.
fn root() -> PathBuf {
    let own = env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).parent().unwrap_or(Path::new(".")).to_path_buf()
}
