//! A shell in a folder of its own, with the built binary first in its path.

use crate::blocks::Command as Shown;
use std::io::{Read, Seek};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use tempfile::TempDir;

/// How long a block may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Printed after each command of a console block.
const END: &str = "\u{1}end of command\u{1}";

/// What the documents read besides what they make.
const LINKED: &[&str] = &["data", "examples"];

pub(crate) struct Shell {
    folder: TempDir,
    path: String,
    patience: Duration,
}

impl Shell {
    pub(crate) fn new(root: &Path) -> Self {
        Self::with_patience(root, PATIENCE)
    }

    pub(crate) fn with_patience(root: &Path, patience: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        for name in LINKED.iter().filter(|name| root.join(name).is_dir()) {
            symlink(root.join(name), folder.path().join(name)).expect("a link");
        }
        let path = format!("{}:{}", built().display(), env::var("PATH").unwrap_or_default());
        Shell { folder, path, patience }
    }

    /// Runs a script; what it printed, or what went wrong.
    pub(crate) fn run(&self, script: &str) -> Result<String, String> {
        let (printed, ending) = self.start(script);
        match ending {
            Some(status) if status.success() => Ok(printed),
            ending => Err(problem(ending, self.patience, &printed)),
        }
    }

    /// Runs commands one after the other in one shell; what each printed, or which one failed and how.
    pub(crate) fn run_each(&self, commands: &[Shown]) -> Result<Vec<String>, (usize, String)> {
        let script: String =
            commands.iter().map(|command| format!("{}\nprintf '%s\\n' '{END}'\n", command.code)).collect();
        let (printed, ending) = self.start(&script);
        let mut outputs: Vec<String> = printed.split(&format!("{END}\n")).map(String::from).collect();
        let unfinished = outputs.pop().unwrap_or_default();
        match ending {
            Some(status) if status.success() && outputs.len() == commands.len() => Ok(outputs),
            ending => Err((outputs.len().min(commands.len() - 1), problem(ending, self.patience, &unfinished))),
        }
    }

    /// What a script printed, and how it ended; `None` if it took too long.
    fn start(&self, script: &str) -> (String, Option<ExitStatus>) {
        let mut output = tempfile::tempfile().expect("a temporary file");
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", script]).current_dir(self.folder.path());
        command.env("PATH", &self.path).env("LC_ALL", "C.UTF-8").env("TERM", "dumb").env("NO_COLOR", "1");
        let stream = || Stdio::from(output.try_clone().expect("another handle"));
        command.stdin(Stdio::null()).stdout(stream()).stderr(stream()).process_group(0);
        let status = wait(command.spawn().expect("bash"), self.patience);
        output.rewind().expect("a file from its start");
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).expect("what was printed");
        (String::from_utf8_lossy(&bytes).into_owned(), status)
    }
}

fn problem(ending: Option<ExitStatus>, patience: Duration, printed: &str) -> String {
    let what = match ending.map(|status| status.code()) {
        None => format!("not done after {} s", patience.as_secs()),
        Some(Some(code)) => format!("exit status {code}"),
        Some(None) => "ended by a signal".to_string(),
    };
    format!("{what}, after printing:\n{printed}")
}

/// Waits for a child that leads a process group, and ends the group when patience does.
fn wait(mut child: Child, patience: Duration) -> Option<ExitStatus> {
    let started = Instant::now();
    while started.elapsed() < patience {
        if let Some(status) = child.try_wait().expect("a child to wait for") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    let _ = child.wait();
    None
}

/// The folder of the binary: the one that `cargo xtask test` built with the tests, or else built now.
fn built() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(folder) = env::var_os("EVERBLOOM_BINARY").and_then(|file| Some(Path::new(&file).parent()?.into())) {
            return folder;
        }
        let test = env::current_exe().expect("the path of this test");
        let target = test.ancestors().nth(3).expect("target/debug/deps/documents");
        let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
        cargo
            .args(["build", "--quiet", "--profile", "test", "--workspace", "--bin", "everbloom", "--target-dir"])
            .arg(target);
        let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo");
        assert!(status.success(), "everbloom does not build");
        let folder = target.join("debug");
        assert!(fs::exists(folder.join("everbloom")).unwrap_or(false), "no everbloom in {}", folder.display());
        folder
    })
}
