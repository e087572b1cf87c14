//! The rules of ARCHITECTURE.md, read off the sources: who may import whom, and where unsafe lives.
//!
//! A plain scan of lines: comments are skipped, everything from a file's `#[cfg(test)]` on, and files
//! named `tests.rs`.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_path_buf()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
    found
}

/// The lines of a file that are code and ship.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(path).expect("a source file");
    let shipped = text.lines().take_while(|line| !line.contains("#[cfg(test)]"));
    let numbered = shipped.enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    numbered.map(|(index, line)| (index + 1, line.to_string())).collect()
}

/// Every line of the files for which `wrong` holds, as `file:line: code`.
fn offences(files: &[PathBuf], wrong: impl Fn(&Path, &str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for path in files {
        for (number, line) in code(path) {
            if wrong(path, &line) {
                found.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    found
}

fn core_sources(below: &str) -> Vec<PathBuf> {
    let files = sources(&root().join("crates/everbloom/src").join(below));
    assert!(!files.is_empty(), "nothing to check under {below}");
    files
}

/// Whether a line of code names something under `crate::module`.
fn imports(line: &str, module: &str) -> bool {
    line.contains(&format!("crate::{module}::")) || line.contains(&format!("crate::{module};"))
}

#[test]
fn the_core_does_no_io_reads_no_clock_and_prints_nothing() {
    let words = ["std::fs", "std::net", "std::time", "std::env", "println!", "eprintln!", "print!(", "thread_rng"];
    let found = offences(&core_sources(""), |_, line| words.iter().any(|word| line.contains(word)));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn logarithms_and_powers_of_the_core_are_portable() {
    let methods = [".ln()", ".log2()", ".log10()", ".ln_1p()", ".exp()", ".exp_m1()", ".powf(", ".powi("];
    let found = offences(&core_sources(""), |_, line| methods.iter().any(|method| line.contains(method)));
    assert!(found.is_empty(), "take them from libm:\n{}", found.join("\n"));
}

#[test]
fn filters_do_not_import_each_other() {
    // A kind is a file `filters/kind.rs` or a folder `filters/kind/`; only the registry, `mod.rs`, names them all.
    // `model.rs` is a part of the registry: what it knows about a kind's errors.
    let filters = root().join("crates/everbloom/src/filters");
    let kind_of = |path: &Path| {
        let first = path.strip_prefix(&filters).expect("below filters").iter().next().expect("a name");
        Path::new(first).file_stem().expect("a name").to_string_lossy().into_owned()
    };
    let files = core_sources("filters");
    let kinds: Vec<String> =
        files.iter().map(|path| kind_of(path)).filter(|kind| !["mod", "model"].contains(&kind.as_str())).collect();
    let found = offences(&files, |path, line| {
        let own = kind_of(path);
        let others = kinds.iter().filter(|kind| **kind != own);
        own != "mod"
            && others
                .into_iter()
                .any(|other| line.contains(&format!("super::{other}::")) || line.contains(&format!("filters::{other}")))
    });
    assert!(found.is_empty(), "what two filters share belongs in cells, hash, rng or solve:\n{}", found.join("\n"));
}

#[test]
fn dependencies_point_one_way() {
    // Each layer and what lies above it.
    let above = [
        ("cells", &["filters", "planner", "codec"][..]),
        ("solve", &["filters", "planner", "codec"]),
        ("stream", &["solve", "filters", "planner", "codec"]),
        ("outlook.rs", &["stream", "filters", "planner", "codec"]),
        ("hash.rs", &["traits", "goal", "cells", "wire", "filters", "planner", "codec"]),
        ("error.rs", &["hash", "traits", "goal", "cells", "wire", "filters", "planner", "codec"]),
        ("rng.rs", &["traits", "goal", "filters", "planner", "codec"]),
        ("wire.rs", &["filters", "planner", "codec"]),
        ("scheme", &["filters", "planner", "codec", "tune"]),
        ("wire", &["filters", "planner", "codec"]),
        ("traits.rs", &["filters", "planner", "codec"]),
        ("filters", &["planner", "tune"]),
    ];
    let all = core_sources("");
    let core = root().join("crates/everbloom/src");
    for (layer, forbidden) in above {
        let files: Vec<PathBuf> = all.iter().filter(|path| path.starts_with(core.join(layer))).cloned().collect();
        assert!(!files.is_empty(), "{layer} is gone: mend this test and ARCHITECTURE.md");
        let found = offences(&files, |_, line| forbidden.iter().any(|module| imports(line, module)));
        assert!(found.is_empty(), "{layer} imports upwards:\n{}", found.join("\n"));
    }
}

#[test]
fn unsafe_has_two_addresses() {
    let mut files = core_sources("");
    for krate in ["everbloom-cli", "everbloom-lab"] {
        files.extend(sources(&root().join("crates").join(krate).join("src")));
    }
    let allowed =
        ["crates/everbloom/src/simd", "crates/everbloom-cli/src/mapped.rs"].map(|path| root().join(path));
    let found = offences(&files, |path, line| {
        !allowed.iter().any(|allowed| path.starts_with(allowed))
            && line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
    });
    assert!(found.is_empty(), "unsafe code lives in simd and mapped.rs alone:\n{}", found.join("\n"));
}

#[test]
fn every_paper_that_the_code_cites_is_listed() {
    // A citation is an escaped bracket with a year: \\[Deng & Rafiei 2006\\].
    let papers = fs::read_to_string(root().join("PAPERS.md")).expect("PAPERS.md");
    let mut found = 0;
    for path in core_sources("") {
        let text = fs::read_to_string(&path).expect("a source file");
        for part in text.split("\\[").skip(1) {
            let key = part.split("\\]").next().unwrap_or_default();
            let year = key.rsplit(' ').next().unwrap_or_default();
            if key.len() < 60 && year.len() == 4 && year.parse::<u16>().is_ok() {
                found += 1;
                assert!(papers.contains(&format!("[{key}]")), "{} cites [{key}]: add it to PAPERS.md", path.display());
            }
        }
    }
    assert!(found > 5, "only {found} citations found: the scan is broken");
}
