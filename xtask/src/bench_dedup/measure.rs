//! CPU time and peak memory of one command.
//!
//! The kernel only tells a parent the sum and the maximum over all of its children, so each command
//! gets a parent of its own: this program, started again, which prints what it learnt.

use super::prepared;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// What marks the call of the helper.
pub(super) const ARGUMENT: &str = "--measure";

/// What a run took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) cpu: f64,
    pub(super) wall: f64,
    pub(super) peak_bytes: u64,
}

/// Runs a command on `input` with its output in `output`.
pub(super) fn measure(command: &[String], reads_stdin: bool, input: &Path, output: &Path) -> Result<Usage, String> {
    let mut helper = Command::new(super::helper(&crate::root()));
    helper.args(["bench-dedup", ARGUMENT]).arg(if reads_stdin { "stdin" } else { "file" });
    helper.args([input, output]).args(command);
    let printed = helper.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&printed.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match (printed.status.success(), numbers.as_slice()) {
        (true, [cpu, wall, peak]) => Ok(Usage { cpu: *cpu, wall: *wall, peak_bytes: *peak as u64 }),
        _ => Err(format!("{}: {}", command.join(" "), String::from_utf8_lossy(&printed.stderr).trim())),
    }
}

/// The helper: runs the command, prints CPU seconds, wall seconds and peak bytes.
pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let [how, input, output, command @ ..] = arguments else { return Err("nothing to measure".into()) };
    let mut command = prepared(command, how == "stdin", Path::new(input), Path::new(output))?;
    let started = Instant::now();
    let status = command.status().map_err(|error| error.to_string())?;
    let wall = started.elapsed().as_secs_f64();
    if !status.success() {
        return Err(status.to_string());
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let cpu = (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6;
    println!("{cpu} {wall} {}", usage.max_rss() * 1024);
    Ok(())
}
