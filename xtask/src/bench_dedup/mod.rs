//! `cargo xtask bench-dedup`: `everbloom dedup` beside huniq, runiq, awk, sort and jq, interleaved, answers checked.
//!
//! Every contender reads a file and writes to /dev/null (or, with `--to file`, to a file), in rounds, in a process of its own whose CPU
//! time and peak memory the kernel reports. One more run of each writes to a file, which is compared
//! with the exact answer. The floor splits, hashes and writes everything, and judges nothing. Those that take many times as
//! long run once, and what is not installed is left out.

mod answer;
mod floor;
mod inputs;
mod measure;

use crate::Outcome;
use crate::bench_redis::quartiles;
use crate::browser::installed;
pub(crate) use inputs::mixed;
use measure::Usage;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str =
    "cargo xtask bench-dedup [--rounds N] [--scale SHARE] [--input urls|distinct|zipf|json|csv] [--to null|file]";

/// Runs the comparison, or one of the helpers that it starts as processes of their own.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    match arguments {
        [first, rest @ ..] if first == measure::ARGUMENT => measure::run(rest),
        [first, file] if first == floor::ARGUMENT => floor::run(Path::new(file)).map_err(|error| error.to_string()),
        _ => compare(&Options::parse(arguments)?),
    }
}

struct Options {
    rounds: usize,
    scale: f64,
    input: Option<String>,
    to_file: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Options { rounds: 3, scale: 1.0, input: None, to_file: false };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else { return Err(USAGE.into()) };
            match name.as_str() {
                "--rounds" => options.rounds = value.parse().map_err(|_| USAGE)?,
                "--scale" => options.scale = value.parse().map_err(|_| USAGE)?,
                "--to" if ["file", "null"].contains(&value.as_str()) => options.to_file = value == "file",
                "--input" => options.input = Some(value.clone()),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }
}

/// A command line to be measured; the input's path is appended.
struct Contender {
    name: &'static str,
    command: Vec<String>,
    reads_stdin: bool,
    /// Whether it is measured in the first round alone.
    is_slow: bool,
    /// Whether it writes a part of the input in its order, which can be compared with the exact answer.
    is_checked: bool,
}

/// This program as the release profile builds it: the floor must not be slow for want of optimisation.
fn helper(root: &Path) -> PathBuf {
    root.join("target/release/xtask")
}

impl Contender {
    fn new(name: &'static str, command: &[&str]) -> Self {
        let command = command.iter().map(ToString::to_string).collect();
        Contender { name, command, reads_stdin: false, is_slow: false, is_checked: true }
    }

    fn slow(self) -> Self {
        Contender { is_slow: true, ..self }
    }

    fn unchecked(self) -> Self {
        Contender { is_checked: false, ..self }
    }
}

fn contenders(root: &Path, input: &inputs::Input) -> Vec<Contender> {
    let text = |path: PathBuf| path.display().to_string();
    let ours = text(root.join("target/release/everbloom"));
    let peer = |name: &str| text(root.join("target/peers/bin").join(name));
    let (huniq, runiq) = (peer("huniq"), peer("runiq"));
    let everbloom = |name, more: &[&str]| Contender::new(name, &[&[ours.as_str(), "dedup", "--quiet"], more].concat());
    let mut all = vec![Contender::new("floor", &[&text(helper(root)), "bench-dedup", floor::ARGUMENT]).unchecked()];
    if let Some(options) = input.options {
        let one = [options, &["--threads", "1"]].concat();
        all.push(everbloom("line, 1 thread", &["--threads", "1"]).unchecked());
        all.push(everbloom("key, 1 thread", &one));
        all.push(everbloom("key", options));
        if input.name == "json" && installed("jq").is_some() {
            let script = format!("jq -r .user.id \"$0\" | {huniq}");
            all.push(Contender::new("jq | huniq", &["sh", "-c", &script]).slow().unchecked());
        }
        return all;
    }
    for (name, one, options) in [
        ("exact", "exact, 1 thread", &["--exact"][..]),
        ("16 MiB", "16 MiB, 1 thread", &["--memory", "16MiB"]),
        ("default", "default, 1 thread", &[]),
    ] {
        all.push(everbloom(name, options));
        all.push(everbloom(one, &[options, &["--threads", "1"]].concat()));
    }
    all.push(Contender { reads_stdin: true, ..Contender::new("huniq", &[&huniq]) });
    all.push(Contender::new("runiq quick", &[&runiq, "-f", "quick"]).slow());
    if installed("awk").is_some() {
        all.push(Contender::new("awk", &["awk", "!seen[$0]++"]).slow().unchecked());
    }
    if installed("sort").is_some() {
        all.push(Contender::new("sort -u", &["env", "LC_ALL=C", "sort", "-u", "--parallel=1"]).slow().unchecked());
    }
    all
}

fn compare(options: &Options) -> Outcome {
    let root = &crate::root();
    crate::cargo("build", &["--release", "--package", "everbloom-cli", "--package", "xtask"], &[], &[])?;
    install_peers(root)?;
    let folder = root.join("target/bench-dedup");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for input in inputs::INPUTS.iter().filter(|input| options.input.as_deref().is_none_or(|name| name == input.name)) {
        let path = input.make(&folder, options.scale).map_err(|error| format!("{}: {error}", input.name))?;
        compare_on(input, &path, &contenders(root, input), options)?;
    }
    Ok(())
}

fn install_peers(root: &Path) -> Outcome {
    let peers = root.join("target/peers");
    if ["huniq", "runiq"].iter().all(|name| peers.join("bin").join(name).exists()) {
        return Ok(());
    }
    let peers = peers.display().to_string();
    crate::cargo("install", &["--root", &peers, "huniq@2.7.0", "runiq@2.1.0"], &[], &[])
}

fn compare_on(input: &inputs::Input, path: &Path, contenders: &[Contender], options: &Options) -> Outcome {
    let bytes = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    let mut usages: Vec<Vec<Usage>> = contenders.iter().map(|_| Vec::new()).collect();
    let rounds = options.rounds;
    let output = if options.to_file { path.with_extension("out") } else { PathBuf::from("/dev/null") };
    for round in 0..rounds {
        for (contender, usages) in contenders.iter().zip(&mut usages).filter(|(who, _)| round == 0 || !who.is_slow) {
            usages.push(measure::measure(&contender.command, contender.reads_stdin, path, &output)?);
        }
    }
    println!(
        "\n### {}: {}, {:.0} MB, to {}, median of {rounds} rounds\n",
        input.name,
        input.summary,
        bytes as f64 / 1e6,
        if options.to_file { "a file" } else { "/dev/null" },
    );
    // What the last column of ratios compares: the peer nearest to us, or for keys in records our own whole lines.
    let (peer, versus) = match input.options {
        Some(_) => ("line, 1 thread", "CPU / line's"),
        None => ("huniq", "huniq's CPU / CPU"),
    };
    let names = ["", "CPU s", "wall s", "MB/s", "peak MB", "CPU / floor's", versus, "wrongly dropped", "wrongly kept"];
    println!("{}\n{}", row(&names.map(String::from)), row(&names.map(|_| "---".to_string())));
    let truth = answer::Truth::of(path, input.key).map_err(|error| error.to_string())?;
    let of = |name: &str| contenders.iter().position(|contender| contender.name == name).map(|at| &usages[at]);
    for (contender, own) in contenders.iter().zip(&usages) {
        let cpu = quartiles(own.iter().map(|usage| usage.cpu).collect())[1];
        let wall = quartiles(own.iter().map(|usage| usage.wall).collect())[1];
        let peak = own.iter().map(|usage| usage.peak_bytes).max().unwrap_or(0) as f64 / 1e6;
        let (dropped, kept) = match contender.is_checked {
            true => check(contender, path, &truth)?,
            false => ("–".into(), "–".into()),
        };
        let against_peer = of(peer).map_or_else(String::new, |peer| match input.options {
            Some(_) => ratio(own, peer),
            None => ratio(peer, own),
        });
        println!(
            "{}",
            row(&[
                contender.name.to_string(),
                format!("{cpu:.2}"),
                format!("{wall:.2}"),
                format!("{:.0}", bytes as f64 / 1e6 / wall),
                format!("{peak:.1}"),
                of("floor").map_or_else(String::new, |floor| ratio(own, floor)),
                against_peer,
                dropped,
                kept,
            ])
        );
    }
    println!("\n{} records, {} distinct.", truth.records(), truth.distinct());
    Ok(())
}

/// A row of a table as pages have it.
fn row(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// One more run, into a file, held against the exact answer.
fn check(contender: &Contender, path: &Path, truth: &answer::Truth) -> Result<(String, String), String> {
    let output = path.with_extension("out");
    measure::measure(&contender.command, contender.reads_stdin, path, &output)?;
    let errors = truth.compare(path, &output).map_err(|error| error.to_string())?;
    std::fs::remove_file(&output).map_err(|error| error.to_string())?;
    let share = |count: u64, of: u64| format!("{count} ({:.3} %)", 100.0 * count as f64 / of.max(1) as f64);
    let repeats = truth.records() - truth.distinct();
    Ok((share(errors.wrongly_dropped, truth.distinct()), share(errors.wrongly_kept, repeats)))
}

/// The median ratio of CPU times of the same round, and how far it ranges.
fn ratio(above: &[Usage], below: &[Usage]) -> String {
    let ratios: Vec<f64> = above.iter().zip(below).map(|(above, below)| above.cpu / below.cpu.max(1e-9)).collect();
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0.0, f64::max);
    format!("{:.2} ({low:.2}–{high:.2})", quartiles(ratios)[1])
}

/// The command with its input in place.
fn prepared(command: &[String], reads_stdin: bool, input: &Path, output: &Path) -> Result<Command, String> {
    let (program, arguments) = command.split_first().ok_or("nothing to run")?;
    let say = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let mut prepared = Command::new(program);
    prepared.args(arguments).stdout(File::create(output).map_err(|error| say(output, error))?);
    if reads_stdin {
        prepared.stdin(File::open(input).map_err(|error| say(input, error))?);
    } else {
        prepared.arg(input);
    }
    Ok(prepared)
}
