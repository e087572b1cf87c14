//! Every example runs, and its own assertions hold.

use std::path::PathBuf;
use std::process::Command;

#[test]
fn every_example_runs() {
    let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    // Cargo builds examples with the tests, into a folder beside the tests' own.
    let tests = std::env::current_exe().expect("this test");
    let built = tests.parent().and_then(|deps| deps.parent()).expect("a target folder").join("examples");
    let mut count = 0;
    for entry in std::fs::read_dir(sources).expect("the examples") {
        let path = entry.expect("a readable entry").path();
        // A folder without a program is what several of them share.
        if path.is_dir() && !path.join("main.rs").exists() {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let run = Command::new(built.join(&name)).output().unwrap_or_else(|error| panic!("{name}: {error}"));
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success() && !run.stdout.is_empty(), "{name}: {errors}");
        count += 1;
    }
    assert!(count >= 12, "{count} examples");
}
