//! Runs that go on while a test does other things.

use super::{Folder, error_of};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Waits until something holds; a minute is for ever.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A run that goes on while the test does other things.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(folder: &Folder, arguments: &[&str], input: Stdio, output: Stdio) -> Self {
        let mut command = folder.command(arguments);
        Running(command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn().expect("everbloom runs"))
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.0.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// How it ended, and what it said. What does not end is ended, and has no code.
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        while self.0.try_wait().expect("a child").is_none() {
            if start.elapsed() > Duration::from_secs(60) {
                self.0.kill().expect("a signal");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut said = String::new();
        self.0.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        (self.0.wait().expect("an end").code(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn append(folder: &Folder, name: &str, text: &str) {
    let mut file = File::options().append(true).create(true).open(folder.path(name)).expect("a file");
    file.write_all(text.as_bytes()).expect("a line appended");
}

/// Runs, and says what it said.
#[track_caller]
pub(crate) fn run(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", error_of(&output));
    error_of(&output)
}

pub(crate) fn text(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).expect("text")
}

pub(crate) fn numbered(word: &str, count: usize) -> String {
    (0..count).map(|number| format!("{word}-{number}\n")).collect()
}

pub(crate) const STATE: [&str; 6] = ["dedup", "--exact", "--state", "s", "-o", "out"];

pub(crate) fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&STATE[..], more].concat()
}
