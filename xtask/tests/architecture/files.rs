//! Files that a test compares, or rewrites when `EVERBLOOM_BLESS` is set.

use crate::sources::root;
use std::{env, fs};

/// Fails with the right text unless the file has it; with `EVERBLOOM_BLESS=1`, writes it.
pub(crate) fn same_or_bless(file: &str, right: &str) {
    let path = root().join(file);
    let present = fs::read_to_string(&path).unwrap_or_default();
    if present == right {
        return;
    }
    if env::var_os("EVERBLOOM_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder that can be made");
        fs::write(&path, right).expect("a file that can be written");
        return;
    }
    let gone =
        present.lines().filter(|line| !right.lines().any(|other| other == *line)).map(|line| format!("- {line}"));
    let new = right.lines().filter(|line| !present.lines().any(|other| other == *line)).map(|line| format!("+ {line}"));
    let changes: Vec<String> = gone.chain(new).collect();
    panic!("{file} differs; if that is meant, run again with EVERBLOOM_BLESS=1\n{}", changes.join("\n"));
}
