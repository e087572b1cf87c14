//! `cargo xtask python`: the Python package, built as users get it and tested as they use it.
//!
//! A virtual environment under `target/python` gets what `crates/everbloom-py/requirements*.txt` pin, then the wheel, then
//! the tests run. Nothing is installed anywhere else. A wheel is built and installed rather than linked in place, because
//! a library that an older build left in the sources would be loaded instead, silently.

use crate::{Outcome, cargo, root};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const USAGE: &str = "cargo xtask python [--full] [--build] [arguments of pytest]   (--full: pandas, polars, DuckDB and the \
                     peers, too; --build: only the wheel, installed in target/python)";

/// What the tests need, and what they need with `--full`.
const NEEDED: &str = "requirements.txt";
const NEEDED_IN_FULL: &str = "requirements-full.txt";
const NEEDED_TO_PACK: &str = "requirements-pack.txt";

pub(crate) fn run(arguments: &[String]) -> Outcome {
    if arguments.iter().any(|argument| argument == "--help") {
        println!("usage: {USAGE}");
        return Ok(());
    }
    let is = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let environment = Environment::ready(is("--full"))?;
    environment.install_wheel()?;
    if is("--build") {
        eprintln!("xtask: the wheel is installed in {}", environment.folder.display());
        return Ok(());
    }
    let own = ["--full", "--build"];
    let rest: Vec<&String> = arguments.iter().filter(|argument| !own.contains(&argument.as_str())).collect();
    environment.test(is("--full"), &rest, &[])
}

/// Runs the package's tests as a part of all tests: without a Python it is skipped, and says so; `needed` makes that a failure.
pub(crate) fn run_if_there(needed: bool, variables: &[(&str, &str)]) -> Outcome {
    match Environment::ready(false) {
        Ok(environment) => {
            environment.install_wheel()?;
            environment.test(false, &[], variables)
        }
        Err(problem) if needed => Err(problem),
        Err(problem) => {
            eprintln!("SKIPPED: the Python package: {problem}");
            Ok(())
        }
    }
}

/// Measures beside the peers; needs a quiet machine. What follows goes to the script.
pub(crate) fn bench(arguments: &[String]) -> Outcome {
    let environment = Environment::ready(true)?;
    environment.install_wheel()?;
    let mut python = Command::new(environment.program("python"));
    python.arg("tests/speed.py").args(arguments).current_dir(package()).env("EVERBLOOM_ROOT", root());
    succeed(&mut python, "the measurement failed")
}

/// Checks that the package compiles for a Python without its lock, for which no interpreter is needed.
pub(crate) fn check_free_threaded() -> Outcome {
    let config = package().join("free-threaded.txt");
    let config = config.to_string_lossy();
    // In a folder of its own, since everything that depends on PyO3 is compiled again for it.
    let folder = root().join("target/free-threaded");
    let variables = [("PYO3_CONFIG_FILE", &*config), ("CARGO_TARGET_DIR", &*folder.to_string_lossy())];
    cargo("check", &["--package", "everbloom-py"], &[], &variables)
}

/// The wheel for most Linux systems, and the sources, as they are given to users.
pub(crate) fn pack(folder: &Path) -> Outcome {
    let environment = Environment::ready(false)?;
    environment.install_pinned(NEEDED_TO_PACK)?;
    environment.build_wheel(folder, &["--zig", "--compatibility", "manylinux2014"])?;
    succeed(environment.maturin().args(["sdist", "--out"]).arg(folder), "the sources do not pack")
}

/// The crate of the package.
pub(crate) fn package() -> PathBuf {
    root().join("crates/everbloom-py")
}

/// A virtual environment with what is pinned.
pub(crate) struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes it, or finds it as it should be.
    pub(crate) fn ready(full: bool) -> Result<Self, String> {
        let folder = root().join("target/python");
        let environment = Environment { folder };
        if !environment.program("python").exists() {
            environment.make()?;
        }
        let pins = if full { vec![NEEDED, NEEDED_IN_FULL] } else { vec![NEEDED] };
        for file in pins {
            environment.install_pinned(file)?;
        }
        Ok(environment)
    }

    /// A program of the environment.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    fn make(&self) -> Outcome {
        let python = env::var_os("PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
        let version = Command::new(&python).args(["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).output();
        match version {
            Err(_) => return Err(format!("'{}' does not run: install Python 3.11 or later", python.display())),
            Ok(output) if !output.status.success() => {
                return Err(format!("'{}' is older than 3.11: name another one, PYTHON=python3.12", python.display()));
            }
            Ok(_) => {}
        }
        let made = Command::new(&python).args(["-m", "venv", "--clear"]).arg(&self.folder).output();
        if made.is_ok_and(|output| output.status.success()) && self.program("pip").exists() {
            return Ok(());
        }
        // Half an environment would be taken for a whole one the next time.
        let _ = fs::remove_dir_all(&self.folder);
        Err("Python has no venv or pip: install them (Debian: apt install python3-venv python3-pip)".into())
    }

    /// Installs what a file pins, unless the environment has been given the same file before.
    fn install_pinned(&self, file: &str) -> Outcome {
        let pinned = package().join(file);
        let text = fs::read_to_string(&pinned).map_err(|error| format!("{}: {error}", pinned.display()))?;
        let mark = self.folder.join(format!("installed-{file}"));
        if fs::read_to_string(&mark).is_ok_and(|installed| installed == text) {
            return Ok(());
        }
        let mut pip = Command::new(self.program("pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&pinned);
        succeed(&mut pip, "pip could not install what the tests need")?;
        fs::write(&mark, text).map_err(|error| format!("{}: {error}", mark.display()))
    }

    /// Builds the wheel and puts it into the environment.
    pub(crate) fn install_wheel(&self) -> Outcome {
        let wheels = root().join("target/wheels/test");
        let _ = fs::remove_dir_all(&wheels);
        self.build_wheel(&wheels, &[])?;
        let wheel = only_file(&wheels, ".whl")?;
        let mut pip = Command::new(self.program("pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"]).arg(wheel);
        succeed(&mut pip, "pip could not install the wheel")
    }

    /// Builds a wheel into a folder.
    pub(crate) fn build_wheel(&self, folder: &Path, more: &[&str]) -> Outcome {
        let mut maturin = self.maturin();
        maturin.args(["build", "--release", "--quiet", "--out"]).arg(folder).args(more);
        succeed(&mut maturin, "the wheel does not build")
    }

    /// maturin, in the folder of the package, with the environment's programs before others.
    pub(crate) fn maturin(&self) -> Command {
        let mut maturin = Command::new(self.program("maturin"));
        let others = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([self.folder.join("bin")].into_iter().chain(env::split_paths(&others)));
        maturin.current_dir(package()).env("VIRTUAL_ENV", &self.folder);
        if let Ok(path) = path {
            maturin.env("PATH", path);
        }
        maturin
    }

    /// Runs the tests, the examples in docstrings and the check of the stubs.
    fn test(&self, full: bool, arguments: &[&String], variables: &[(&str, &str)]) -> Outcome {
        let mut pytest = Command::new(self.program("python"));
        pytest.args(["-m", "pytest"]).args(arguments).current_dir(package()).env("PYTHONDONTWRITEBYTECODE", "1");
        pytest.envs(variables.iter().copied());
        // One file goes through the command line, the library and the package.
        pytest.env("EVERBLOOM_ROOT", root()).env("EVERBLOOM_FULL", if full { "1" } else { "" });
        succeed(&mut pytest, "tests of the Python package failed")?;
        if !arguments.is_empty() {
            return Ok(());
        }
        let mut stubs = Command::new(self.program("python"));
        stubs.args(["-m", "mypy.stubtest", "everbloom._everbloom"]).current_dir(root().join("target"));
        succeed(&mut stubs, "the type stubs do not say what the package has")
    }
}

/// The one file of a folder that ends so.
pub(crate) fn only_file(folder: &Path, end: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut found: Vec<PathBuf> = paths.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    match (found.pop(), found.is_empty()) {
        (Some(path), true) => Ok(path),
        _ => Err(format!("{} does not have one file *{end}", folder.display())),
    }
}

pub(crate) fn succeed(command: &mut Command, problem: &str) -> Outcome {
    eprintln!("xtask: {command:?}");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(problem.into()),
        Err(error) => Err(format!("{problem}: {error}")),
    }
}
