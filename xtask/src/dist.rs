//! `cargo xtask dist`: what is given to users, in `target/dist`.
//!
//! A binary that needs no library of the machine's, with its manual pages and completions, and the module for Redis and
//! Valkey, as a Debian package and as an archive; the Python package as a wheel and as sources; and the checksums of all.
//! Pages and completions are printed by the binary itself. The module is loaded by a server that has the C library, so it
//! is built for the machine's own.

use crate::{Outcome, cargo, python, root};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "cargo xtask dist [--binary FILE] [--module FILE] [--out FOLDER]   (--binary, --module: these instead of builds of its own; with --binary no wheel)";

/// The module's file, in target folders and in packages.
pub(crate) const MODULE: &str = "libeverbloom_redis.so";

/// The version of `cargo-deb` that `target/tools` gets.
const CARGO_DEB: &str = "3.8.0";

/// A shell, the folder of its completions in a Debian package, and their name there.
const SHELLS: [(&str, &str); 3] = [("bash", "everbloom"), ("zsh", "_everbloom"), ("fish", "everbloom.fish")];

pub(crate) fn run(arguments: &[String]) -> Outcome {
    let (mut given, mut module, mut dist) = (None, None, root().join("target/dist"));
    for pair in arguments.chunks(2) {
        match pair {
            [option, file] if option == "--binary" => given = Some(PathBuf::from(file)),
            [option, file] if option == "--module" => module = Some(PathBuf::from(file)),
            [option, folder] if option == "--out" => dist = PathBuf::from(folder),
            _ => return Err(format!("usage: {USAGE}")),
        }
    }
    let target = target()?;
    let packs_wheel = given.is_none();
    let binary = given.map_or_else(|| build(&target), Ok)?;
    let module = module.map_or_else(build_module, Ok)?;
    fs::create_dir_all(&dist).map_err(|error| format!("{}: {error}", dist.display()))?;
    let dist = fs::canonicalize(&dist).map_err(|error| format!("{}: {error}", dist.display()))?;
    for file in files(&dist)? {
        if !ours(&file) {
            return Err(format!(
                "{} holds '{file}', which is not of an earlier run; name an empty folder",
                dist.display()
            ));
        }
        fs::remove_file(dist.join(&file)).map_err(|error| format!("{file}: {error}"))?;
    }
    let version = output_of(Command::new(&binary).arg("--version"))?;
    let name = format!("everbloom-{}-{target}", version.trim().trim_start_matches("everbloom "));
    let stage = root().join("target/debian");
    if stage.exists() {
        fs::remove_dir_all(&stage).map_err(|error| format!("{}: {error}", stage.display()))?;
    }
    fill(&stage, &binary, &module)?;
    if !packs_wheel {
        strip(&stage);
    }
    archive(&dist, &stage, &name)?;
    debian(&dist, !packs_wheel)?;
    if packs_wheel {
        python::pack(&dist)?;
    }
    checksums(&dist)?;
    for file in files(&dist)? {
        let bytes = fs::metadata(dist.join(&file)).map_or(0, |data| data.len());
        eprintln!("xtask: {} {} KiB", dist.join(&file).display(), bytes.div_ceil(1024));
    }
    Ok(())
}

/// The target that gives a static binary: musl's, where this tool chain has it, else the machine's own.
fn target() -> Result<String, String> {
    let host = output_of(Command::new("rustc").args(["-vV"]))?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc does not name its host")?;
    let musl = host.replace("-gnu", "-musl");
    let library = output_of(Command::new("rustc").args(["--print", "target-libdir", "--target", &musl]))?;
    let has = Path::new(library.trim()).is_dir();
    Ok(if has { musl } else { host.to_string() })
}

/// A release build, stripped and static: glibc's own library can be linked in, too.
fn build(target: &str) -> Result<PathBuf, String> {
    let variables = [("CARGO_PROFILE_RELEASE_STRIP", "symbols"), ("RUSTFLAGS", "-C target-feature=+crt-static")];
    cargo("build", &["--release", "--package", "everbloom-cli", "--target", target], &[], &variables)?;
    Ok(target_folder().join(target).join("release/everbloom"))
}

/// A release build, stripped: what a server loads cannot bring a C library of its own.
fn build_module() -> Result<PathBuf, String> {
    let variables = [("CARGO_PROFILE_RELEASE_STRIP", "symbols")];
    cargo("build", &["--release", "--package", "everbloom-redis"], &[], &variables)?;
    Ok(target_folder().join("release").join(MODULE))
}

/// Where cargo builds.
pub(crate) fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Whether a file of this name may be of an earlier run.
fn ours(name: &str) -> bool {
    name == "SHA256SUMS"
        || (name.starts_with("everbloom") && [".tar.gz", ".deb", ".whl"].iter().any(|end| name.ends_with(end)))
}

/// Everything that an archive holds, in a folder.
fn fill(stage: &Path, binary: &Path, module: &Path) -> Outcome {
    let say = |error: std::io::Error| format!("{}: {error}", stage.display());
    fs::create_dir_all(stage.join("completions")).map_err(say)?;
    fs::copy(binary, stage.join("everbloom")).map_err(|error| format!("{}: {error}", binary.display()))?;
    fs::copy(module, stage.join(MODULE)).map_err(|error| format!("{}: {error}", module.display()))?;
    for file in ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(root().join(file), stage.join(file)).map_err(say)?;
    }
    let own = stage.join("everbloom");
    output_of(Command::new(&own).args(["man", "--all"]).arg(stage.join("man")))?;
    for (shell, file) in SHELLS {
        let text = output_of(Command::new(&own).args(["completions", shell]))?;
        fs::write(stage.join("completions").join(file), text).map_err(say)?;
    }
    Ok(())
}

/// A binary that was given is packed to be tried, and often has several times its size in debug lines: packing those took
/// longer than all else. Without `strip` they stay.
fn strip(stage: &Path) {
    for file in ["everbloom", MODULE] {
        let _ = Command::new("strip").arg("--strip-debug").arg(stage.join(file)).output();
    }
}

/// The same files give the same archive: names in order, no owner, one time.
fn archive(dist: &Path, stage: &Path, name: &str) -> Outcome {
    let options = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--gzip", "--create"];
    let (file, folder) = (format!("--file={name}.tar.gz"), format!("--transform=s,^[.],{name},"));
    output_of(
        Command::new("tar").args(options).args([file, folder]).arg("--directory").arg(stage).arg(".").current_dir(dist),
    )
    .map(drop)
}

/// The package as `[package.metadata.deb]` of the command line's crate describes it, from the files in `target/debian`;
/// what is packed to be tried need not be small.
fn debian(dist: &Path, fast: bool) -> Outcome {
    let package = root().join("crates/everbloom-cli/Cargo.toml");
    let mut command = Command::new(cargo_deb()?);
    command.args(["--no-build", "--no-strip", "--manifest-path"]).arg(package).arg("--output").arg(dist);
    command.args(fast.then_some("--fast"));
    output_of(command.current_dir(root())).map(drop)
}

/// `cargo-deb` from the machine, or from `target/tools`, where it is put if need be.
fn cargo_deb() -> Result<PathBuf, String> {
    let tools = root().join("target/tools");
    let own = tools.join("bin/cargo-deb");
    let runs = |tool: &Path| Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if let Some(found) = [PathBuf::from("cargo-deb"), own.clone()].into_iter().find(|tool| runs(tool)) {
        return Ok(found);
    }
    let fixed = ["cargo-deb", "--version", CARGO_DEB, "--locked", "--root"];
    // It packs one file now and then: built fast rather than to be fast.
    let variables = [
        ("CARGO_PROFILE_RELEASE_LTO", "off"),
        ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
        ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ];
    cargo("install", &fixed, &[tools.display().to_string()], &variables)?;
    Ok(own)
}

fn checksums(dist: &Path) -> Outcome {
    let sums = output_of(Command::new("sha256sum").args(files(dist)?).current_dir(dist))?;
    fs::write(dist.join("SHA256SUMS"), sums).map_err(|error| format!("{}: {error}", dist.display()))
}

/// The names of what lies in a folder, in order.
fn files(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// What a program prints, if it succeeds.
fn output_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
