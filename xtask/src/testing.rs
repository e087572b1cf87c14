//! `cargo xtask test`: builds every test, runs the programs side by side, and says at the end what took long.
//!
//! `cargo test` runs one test program after another, so that a core waits wherever the last test of one is
//! alone. Here as many programs run as there are cores, the long ones first, with one thread each.

use crate::{Outcome, browser, cargo, dist, python, root, servers};
use serde_json::Value;
use std::collections::VecDeque;
use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Test programs that take long, the longest first: they start first, and `--quick` goes without them.
const LONG: &str = "laws plan faults compatible accuracy browser hostile codec servers equal forecast dist memory terminal \
                    documents explore refused_memory replicas experiments moving clients";

/// The longest of those that `--quick` runs: started last, it would be the only one at work in the end.
const FIRST_OF_QUICK: &str = "everbloom (units)";

/// A program made of tests.
struct Program {
    name: String,
    executable: PathBuf,
    folder: PathBuf,
}

/// What is built for the tests: the programs, and what some of them use, so that they need not build it once more.
#[derive(Default)]
struct Built {
    programs: Vec<Program>,
    binary: Option<String>,
    module: Option<String>,
    verdicts: Option<String>,
}

/// Names the command line that was built with the tests,
const BINARY: &str = "EVERBLOOM_BINARY";

/// the module for servers,
const MODULE: &str = "EVERBLOOM_MODULE";

/// and the example that Python's tests ask for the library's verdicts.
const VERDICTS: &str = "EVERBLOOM_VERDICTS";

/// How a program ended.
struct Ran {
    name: String,
    seconds: u64,
    tests: u64,
    failed: bool,
}

/// Tells tests that what a user may go without must be there.
pub(crate) const NOTHING_SKIPPED: &str = "EVERBLOOM_CI";

/// Without arguments: everything. With `--quick`: not the long programs and not the examples in the documentation.
/// Anything else goes to `cargo test`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    run_with(arguments, &[])
}

/// Runs tests with these variables.
pub(crate) fn run_with(arguments: &[String], variables: &[(&str, &str)]) -> Outcome {
    let servers = servers(variables)?;
    let browser = browser(variables)?;
    let variables = &[variables, &[(servers::FOLDER, servers.as_str()), (browser::FOLDER, browser.as_str())]].concat();
    let quick = arguments == ["--quick"];
    if !quick && !arguments.is_empty() {
        return cargo("test", &["--workspace"], arguments, variables);
    }
    let started = Instant::now();
    let Built { mut programs, binary, module, verdicts } = build()?;
    let named = [(BINARY, binary), (MODULE, module), (VERDICTS, verdicts)];
    let named = named.iter().filter_map(|(name, path)| Some((*name, path.as_deref()?)));
    let variables: Vec<(&str, &str)> = variables.iter().copied().chain(named).collect();
    let variables = variables.as_slice();
    eprintln!("xtask: built {} test programs in {} s", programs.len(), started.elapsed().as_secs());
    let started = Instant::now();
    let before = programs.len();
    programs.sort_by_key(|program| (rank(&program.name), program.name != FIRST_OF_QUICK));
    programs.retain(|program| !quick || rank(&program.name) == usize::MAX);
    let left_out = before - programs.len();
    let ran = run_all(programs, variables);
    let others = if quick { Ok(()) } else { run_others(variables) };
    summarise(&ran, left_out, started.elapsed().as_secs())?;
    others
}

/// The Python package, and the examples in the documentation.
fn run_others(variables: &[(&str, &str)]) -> Outcome {
    let needed = variables.iter().any(|(name, _)| *name == NOTHING_SKIPPED) || env::var_os(NOTHING_SKIPPED).is_some();
    let started = Instant::now();
    let in_python = python::run_if_there(needed, variables);
    eprintln!("xtask: the Python package took {} s", started.elapsed().as_secs());
    // Both say what failed, if both did.
    let documented = cargo("test", &["--workspace", "--doc"], &[], &[]);
    match (in_python, documented) {
        (Err(one), Err(other)) => Err(format!("{one}; {other}")),
        (one, other) => one.and(other),
    }
}

/// The folder of the servers that the module's tests start. Where one cannot be had, they go without it and say so.
fn servers(variables: &[(&str, &str)]) -> Result<String, String> {
    let nothing_skipped = variables.iter().any(|(name, _)| *name == NOTHING_SKIPPED);
    let missing = servers::ensure_all();
    if nothing_skipped && !missing.is_empty() {
        return Err(missing.join("; "));
    }
    missing.iter().for_each(|problem| eprintln!("SKIPPED: tests of the Redis module: {problem}"));
    Ok(servers::folder().display().to_string())
}

/// The folder of the browser that pages are tried in. Where none can be had, the tests go without it and say so.
fn browser(variables: &[(&str, &str)]) -> Result<String, String> {
    match browser::ensure() {
        Err(missing) if variables.iter().any(|(name, _)| *name == NOTHING_SKIPPED) => return Err(missing),
        Err(missing) => eprintln!("SKIPPED: the pages in a browser: {missing}"),
        Ok(()) => {}
    }
    Ok(browser::folder().display().to_string())
}

/// The place of a program in [`LONG`], or none.
fn rank(name: &str) -> usize {
    LONG.split(' ').position(|long| long == name).unwrap_or(usize::MAX)
}

/// Builds all tests, and lists the programs that they are in.
fn build() -> Result<Built, String> {
    eprintln!("xtask: building the tests");
    let program = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let built = Command::new(program)
        .args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo test did not start: {error}"))?;
    if !built.status.success() {
        return Err("the tests do not build".into());
    }
    let text = String::from_utf8_lossy(&built.stdout);
    Ok(Built {
        programs: text.lines().filter_map(artifact).collect(),
        binary: text.lines().find_map(|line| file_of(line, "everbloom", "/everbloom")),
        module: text.lines().find_map(|line| file_of(line, "everbloom_redis", dist::MODULE)),
        verdicts: text.lines().find_map(|line| file_of(line, "verdicts", "/verdicts")),
    })
}

/// The file of a target with this name and this end that a line of cargo's is about, if it is no test.
fn file_of(line: &str, target: &str, end: &str) -> Option<String> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_it = message["target"]["name"] == target && message["profile"]["test"] == false;
    let files = message["filenames"].as_array().filter(|_| is_it)?;
    files.iter().filter_map(Value::as_str).find(|file| file.ends_with(end)).map(String::from)
}

/// The test program that a line of cargo's is about.
fn artifact(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_test = message["profile"]["test"].as_bool()?;
    let executable = PathBuf::from(message["executable"].as_str().filter(|_| is_test)?);
    let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let target = message["target"]["name"].as_str()?;
    let of_crate = message["target"]["kind"][0] != "test";
    let name = if of_crate { format!("{target} (units)") } else { target.to_string() };
    Some(Program { name, executable, folder })
}

fn run_all(programs: Vec<Program>, variables: &[(&str, &str)]) -> Vec<Ran> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    side_by_side(programs, cores, |program| run_one(&program, variables))
}

/// Works on the items in their order, so many at a time.
fn side_by_side<T: Send, R: Send>(items: Vec<T>, workers: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let (queue, done) = (Mutex::new(VecDeque::from(items)), Mutex::new(Vec::new()));
    // A function, so that the lock is given back before the work begins: `while let` would hold it meanwhile.
    let next = || lock(&queue).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(item) = next() {
                    let result = work(item);
                    lock(&done).push(result);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a program and prints one line about it, or all that it printed if a test failed.
fn run_one(program: &Program, variables: &[(&str, &str)]) -> Ran {
    let started = Instant::now();
    let output = Command::new(&program.executable)
        .arg("--test-threads=1")
        .current_dir(&program.folder)
        .arg("--show-output")
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output();
    let seconds = started.elapsed().as_secs();
    let (failed, text) = match output {
        Ok(output) => {
            let both = [output.stdout, output.stderr].concat();
            (!output.status.success(), String::from_utf8_lossy(&both).into_owned())
        }
        Err(error) => (true, format!("{} did not start: {error}", program.executable.display())),
    };
    let tests = passed(&text);
    let verdict = if failed { "FAILED" } else { "passed" };
    // One call, so that the lines of programs that end at the same time do not mix.
    let skipped: String =
        text.lines().filter(|line| line.contains("SKIPPED:")).map(|line| format!("{line}\n")).collect();
    let details = if failed { text + "\n" } else { skipped };
    eprintln!("{details}xtask: {:<24} {tests:>4} tests {verdict} in {seconds} s", program.name);
    Ran { name: program.name.clone(), seconds, tests, failed }
}

/// How many tests a program says it passed.
fn passed(text: &str) -> u64 {
    let results = text.lines().filter_map(|line| line.strip_prefix("test result: "));
    let counts = results.filter_map(|line| line.split("; ").next()?.split(' ').nth(1)?.parse::<u64>().ok());
    counts.sum()
}

/// The last line: how many tests, how long, which took the most of it, what was left out.
fn summarise(ran: &[Ran], left_out: usize, seconds: u64) -> Outcome {
    let mut long: Vec<&Ran> = ran.iter().filter(|ran| ran.seconds >= 10).collect();
    long.sort_by_key(|ran| std::cmp::Reverse(ran.seconds));
    let named: Vec<String> = long.iter().map(|ran| format!("{} {} s", ran.name, ran.seconds)).collect();
    let failed: Vec<&str> = ran.iter().filter(|ran| ran.failed).map(|ran| ran.name.as_str()).collect();
    let tests: u64 = ran.iter().map(|ran| ran.tests).sum();
    let quick = if left_out == 0 {
        String::new()
    } else {
        format!(
            "; --quick left out {}, the examples in the documentation and the Python package",
            LONG.replace(' ', ", ")
        )
    };
    let all = format!("{tests} tests of {} programs passed in {seconds} s", ran.len() - failed.len());
    eprintln!("xtask: {all}; {} took 10 s or more: {}{quick}", long.len(), named.join(", "));
    if failed.is_empty() { Ok(()) } else { Err(format!("tests failed in {}", failed.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cargos_names_the_program() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/a/b/Cargo.toml","profile":{"test":true},
            "target":{"kind":["test"],"name":"laws"},"executable":"/t/laws-1"}"#;
        let program = artifact(line).expect("a program");
        assert_eq!((program.name.as_str(), program.folder.to_str()), ("laws", Some("/a/b")));
        assert!(artifact(&line.replace("true", "false")).is_none());
        assert!(artifact("not json").is_none());
        let line = r#"{"profile":{"test":false},"target":{"name":"everbloom"},"filenames":["/t/debug/everbloom"]}"#;
        assert_eq!(file_of(line, "everbloom", "/everbloom").as_deref(), Some("/t/debug/everbloom"));
        assert_eq!(file_of(&line.replace("/everbloom\"]", "/libeverbloom.rlib\"]"), "everbloom", "/everbloom"), None);
    }

    #[test]
    fn passed_tests_are_counted() {
        assert_eq!(passed("x\ntest result: ok. 64 passed; 0 failed; 1 ignored\n"), 64);
        assert_eq!(passed("test result: FAILED. 7 passed; 1 failed\n"), 7);
    }
    #[test]
    fn as_many_run_at_a_time_as_there_are_workers() {
        use std::sync::mpsc::channel;
        use std::time::Duration;
        // Each of two tells the other that it has begun, and waits for the other to tell.
        let ((tell_first, told_first), (tell_second, told_second)) = (channel(), channel());
        let met = side_by_side(vec![(tell_second, told_first), (tell_first, told_second)], 2, |(tell, told)| {
            tell.send(()).is_ok() && told.recv_timeout(Duration::from_secs(10)).is_ok()
        });
        assert_eq!(met, [true, true]);
    }
}
