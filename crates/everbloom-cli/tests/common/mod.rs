//! Running the built command on files of a folder of its own.

#![allow(dead_code, reason = "every test file uses a part of it")]

pub(crate) mod http;
pub(crate) mod live;

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

/// Whoever starts the tests in the background may have SIGINT ignored, and so would what they start. A signal that is handled
/// here is not ignored there; here it does what it always does.
fn heed_interrupts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let number = signal_hook::consts::SIGINT;
        let always = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_default(number, always).expect("a handler");
    });
}

/// A folder that is removed at the end of the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A folder on no disk, where there is such a thing: syncing takes no time.
    pub(crate) fn without_disk() -> Self {
        tempfile::tempdir_in("/dev/shm").map_or_else(|_| Self::new(), Folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a file written");
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file read")
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// `everbloom` with these arguments, in this folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        heed_interrupts();
        let mut command = Command::new(env!("CARGO_BIN_EXE_everbloom"));
        command.args(arguments).current_dir(self.0.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().expect("everbloom runs")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Output {
        feed(self.command(arguments), input)
    }

    /// What a successful run prints.
    pub(crate) fn output_of(&self, arguments: &[&str]) -> Vec<u8> {
        stdout_of(self.run(arguments), arguments)
    }

    /// What a successful run prints, given this on stdin.
    pub(crate) fn output_with(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        stdout_of(self.run_with(arguments, input), arguments)
    }

    /// Runs with files limited to `blocks` · 512 bytes, as on a full disk: writes fail, nothing is killed.
    pub(crate) fn run_on_full_disk(&self, blocks: u32, arguments: &[&str]) -> Output {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_everbloom")]).args(arguments).current_dir(self.0.path());
        command.stdin(Stdio::null()).output().expect("sh runs")
    }
}

pub(crate) fn feed(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("everbloom runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    // The command may stop reading early, which is its right.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("everbloom ends");
    feeder.join().expect("the feeder ends");
    output
}

pub(crate) fn stdout_of(output: Output, arguments: &[&str]) -> Vec<u8> {
    assert!(output.status.success(), "{arguments:?} → {}: {}", output.status, error_of(&output));
    // That the keys no longer fit as they are is always said.
    let says = error_of(&output);
    let unasked: Vec<&str> = says.lines().filter(|line| !line.contains("exact up to here")).collect();
    assert_eq!(unasked, Vec::<&str>::new(), "{arguments:?} says something unasked");
    output.stdout
}

pub(crate) fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_string()
}

/// Exit 2 and one line that mentions `mention`.
#[track_caller]
pub(crate) fn assert_refused(output: &Output, mention: &str) {
    let error = error_of(output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(error.lines().count(), 1, "not one line: {error}");
    assert!(error.starts_with("everbloom: ") && !error.contains("panicked"), "{error}");
    assert!(error.contains(mention), "'{error}' does not mention '{mention}'");
}

pub(crate) fn json_of(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).expect("JSON")
}

pub(crate) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// `count` lines over `keys` keys, from a seed.
pub(crate) fn stream(seed: u64, count: u64, keys: u64) -> String {
    let mut state = seed;
    let mut line = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        format!("https://example.com/page/{}\n", (state >> 33) % keys)
    };
    (0..count).map(|_| line()).collect()
}

pub(crate) fn exists(path: impl AsRef<OsStr>) -> bool {
    Path::new(path.as_ref()).exists()
}
