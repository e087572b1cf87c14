//! What `cargo xtask dist` makes can be unpacked into an empty folder and used from there.
//!
//! It packs the binary that the other tests use, since a release build of its own would take minutes.

use std::env;
use std::path::Path;
use std::process::{Command, Output};

#[test]
fn packages_work_from_an_empty_folder() {
    if !available("dpkg-deb", &["--version"]) {
        assert!(env::var_os("EVERBLOOM_CI").is_none(), "dpkg-deb is missing");
        eprintln!("SKIPPED: the Debian package, since there is no dpkg-deb on this machine");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (made, there) = (folder.path().join("made"), folder.path().join("there"));
    let (binary, module) = built();
    let mut dist = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let packed =
        dist.args(["dist", "--binary", &binary, "--module", &module, "--out"]).arg(&made).output().expect("xtask");
    let said = String::from_utf8_lossy(&packed.stderr);
    if said.contains("cargo install failed") && env::var_os("EVERBLOOM_CI").is_none() {
        eprintln!("SKIPPED: the Debian package, since cargo-deb cannot be installed: {said}");
        return;
    }
    assert!(packed.status.success(), "{said}");

    run(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&made));
    run(Command::new("dpkg-deb").arg("-x").arg(entry(&made, |name| name.ends_with(".deb"))).arg(&there));
    uses(&there.join("usr/bin/everbloom"));
    assert!(there.join("usr/lib/everbloom/libeverbloom_redis.so").is_file(), "no module in the package");
    let page = run(Command::new("gzip").arg("-dc").arg(there.join("usr/share/man/man1/everbloom-dedup.1.gz")));
    assert!(String::from_utf8_lossy(&page.stdout).contains("Drop repeats"));
    for file in [
        "bash-completion/completions/everbloom",
        "zsh/vendor-completions/_everbloom",
        "fish/vendor_completions.d/everbloom.fish",
    ] {
        let text = std::fs::read_to_string(there.join("usr/share").join(file)).expect(file);
        assert!(text.contains("dedup"), "{file} completes nothing");
    }

    run(Command::new("tar").arg("-xf").arg(entry(&made, |name| name.ends_with(".tar.gz"))).current_dir(&there));
    let unpacked = entry(&there, |name| name.starts_with("everbloom-"));
    uses(&unpacked.join("everbloom"));
    assert!(unpacked.join("libeverbloom_redis.so").is_file(), "no module in the archive");
}

/// Drops a repeat, in an environment that has nothing.
fn uses(binary: &Path) {
    let shell = format!("printf 'a\\nb\\na\\n' | '{}' dedup", binary.display());
    let output = run(Command::new("/bin/sh").args(["-c", &shell]).env_clear());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\nb\n");
}

fn available(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Binary and module: those that `cargo xtask test` built, or else built now.
fn built() -> (String, String) {
    if let (Ok(binary), Ok(module)) = (env::var("EVERBLOOM_BINARY"), env::var("EVERBLOOM_MODULE")) {
        return (binary, module);
    }
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let build = ["build", "--profile", "test", "--workspace", "--bin", "everbloom", "--lib", "--message-format=json"];
    let built = run(Command::new(&cargo).args(build).current_dir(env!("CARGO_MANIFEST_DIR")));
    let built = String::from_utf8_lossy(&built.stdout);
    (executable(&built), shared_library(&built))
}

/// The binary that cargo says it built.
fn executable(messages: &str) -> String {
    let found = messages.lines().rev().find_map(|line| line.split_once("\"executable\":\""));
    let path = found.and_then(|(_, rest)| rest.split('"').next());
    path.expect("cargo names the binary").to_string()
}

/// The module that cargo says it built.
fn shared_library(messages: &str) -> String {
    let paths = messages.lines().flat_map(|line| line.split('"'));
    let mut found = paths.filter(|path| path.ends_with("libeverbloom_redis.so"));
    found.next_back().expect("cargo names the module").to_string()
}

/// The one entry of a folder whose name is wanted.
fn entry(folder: &Path, wanted: impl Fn(&str) -> bool) -> std::path::PathBuf {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let found: Vec<_> = entries.filter(|entry| wanted(&entry.file_name().to_string_lossy())).collect();
    assert_eq!(found.len(), 1, "{found:?} in {}", folder.display());
    found[0].path()
}
