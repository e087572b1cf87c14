//! `cargo xtask lines [--rooms] [--at REVISION | FOLDER]`: lines of code by crate, without comments (documentation is one)
//! and blanks. Unit tests are what `#[cfg(test)]` is written above, files of modules included. Python counts where a crate
//! has some.

use crate::{Outcome, root};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KINDS: [&str; 5] = ["src", "unit tests", "tests", "benches", "examples"];
const LISTING: &str = "xtask/tests/golden/public-surface.txt";

/// Lines of each of [`KINDS`], for each crate, or each room of one.
type Counts = BTreeMap<String, [usize; 5]>;

pub(crate) fn run(arguments: &[String]) -> Outcome {
    let by_room = arguments.iter().any(|word| word == "--rooms");
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| *word != "--rooms").collect();
    let folder = match words[..] {
        [] => root(),
        ["--at", revision] => checked_out(revision)?,
        [folder] => PathBuf::from(folder),
        _ => return Err("usage: cargo xtask lines [--rooms] [--at REVISION | FOLDER]".into()),
    };
    let mut files = Vec::new();
    for top in ["crates", "fuzz", "xtask", "examples"] {
        find(&folder.join(top), &mut files);
    }
    print(&count(&folder, &files, by_room));
    let listing = fs::read_to_string(folder.join(LISTING)).unwrap_or_default();
    println!("{} public functions in {LISTING}", listing.matches("fn ").count());
    Ok(())
}

/// A revision's files in a folder of their own.
fn checked_out(revision: &str) -> Result<PathBuf, String> {
    let folder = root().join("target/lines").join(revision);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let unpack = "git archive \"$0\" crates fuzz xtask examples | tar -x -C \"$1\"";
    let status = Command::new("sh").args(["-c", unpack, revision]).arg(&folder).current_dir(root()).status();
    if status.is_ok_and(|status| status.success()) { Ok(folder) } else { Err(format!("git has no {revision}")) }
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "py") {
            files.push(path);
        }
    }
}

fn count(folder: &Path, files: &[PathBuf], by_room: bool) -> Counts {
    let sources: Vec<(&PathBuf, Shown)> = files.iter().map(|file| (file, Shown::of(file))).collect();
    let only_tests: BTreeSet<PathBuf> = sources.iter().flat_map(|(file, source)| source.files_of_tests(file)).collect();
    let mut counts = Counts::new();
    for (file, source) in &sources {
        let name = file.strip_prefix(folder).unwrap_or(file);
        let (krate, within) = place(name);
        let kind = KINDS.iter().position(|kind| within.starts_with(kind)).unwrap_or(0);
        let is_test = file.ancestors().any(|part| only_tests.contains(&part.with_extension("")));
        let room = within.strip_prefix("src/").and_then(|rest| rest.split(['/', '.']).next()).unwrap_or_default();
        let row = if by_room { format!("{krate} {room}") } else { krate.to_string() };
        let row = counts.entry(row).or_default();
        row[if is_test { 1 } else { kind }] += source.ships.len();
        row[1] += source.tests.len();
    }
    counts
}

/// The crate, and the path within it.
fn place(name: &Path) -> (&str, &str) {
    let name = name.to_str().unwrap_or_default();
    let below = name.strip_prefix("crates/").unwrap_or(name);
    below.split_once('/').unwrap_or((below, ""))
}

fn print(counts: &Counts) {
    println!(
        "{:<28}{:>10}{:>12}{:>10}{:>10}{:>10}{:>10}",
        "", "src", "unit tests", "tests", "benches", "examples", "all"
    );
    let mut total = [0; 5];
    for (name, row) in counts {
        print_row(name, row);
        total.iter_mut().zip(row).for_each(|(sum, lines)| *sum += lines);
    }
    print_row("total", &total);
}

fn print_row(name: &str, row: &[usize; 5]) {
    let [src, unit_tests, tests, benches, examples] = row;
    let all: usize = row.iter().sum();
    println!("{name:<28}{src:>10}{unit_tests:>12}{tests:>10}{benches:>10}{examples:>10}{all:>10}");
}

/// The numbers of a file's lines with code: what ships, and what only tests see; and the modules of tests in other files.
#[derive(Default)]
struct Shown {
    ships: BTreeSet<usize>,
    tests: BTreeSet<usize>,
    modules: Vec<String>,
}

impl Shown {
    fn of(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_default();
        let mut shown = Shown::default();
        if file.extension().is_some_and(|extension| extension == "py") {
            shown.ships = python(&text);
        } else {
            shown.add(text.parse().unwrap_or_default(), false);
        }
        shown
    }

    /// The modules of tests that lie in files of their own, without `.rs`.
    fn files_of_tests(&self, file: &Path) -> Vec<PathBuf> {
        let stem = file.with_extension("");
        let is_root = ["mod", "lib", "main"].iter().any(|name| stem.ends_with(name));
        let folder = if is_root { file.parent().unwrap_or(file) } else { &stem };
        self.modules.iter().map(|name| folder.join(name)).collect()
    }

    /// Documentation comes as an attribute; an item for tests ends with its first `;` or `}`.
    fn add(&mut self, tokens: TokenStream, is_test: bool) {
        let (mut for_tests, mut before) = (is_test, [String::new(), String::new()]);
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let text = token.to_string();
            if text == "#" {
                let inner = tokens.next_if(|next| next.to_string() == "!");
                let attribute = tokens.peek().map(ToString::to_string).unwrap_or_default();
                if attribute.starts_with("[doc =") {
                    tokens.next();
                    continue;
                }
                for_tests |= inner.is_none() && attribute == "[cfg (test)]";
            }
            let lines = if for_tests { &mut self.tests } else { &mut self.ships };
            let is_braced = match token {
                TokenTree::Group(group) => {
                    lines.extend([group.span_open().start().line, group.span_close().start().line]);
                    self.add(group.stream(), for_tests);
                    group.delimiter() == Delimiter::Brace
                }
                _ => {
                    lines.extend(token.span().start().line..=token.span().end().line);
                    false
                }
            };
            if for_tests && text == ";" && before[0] == "mod" {
                self.modules.push(before[1].clone());
            }
            for_tests &= is_test || !is_braced && text != ";";
            before = [std::mem::take(&mut before[1]), text];
        }
    }
}

/// Lines of Python that are no comments, nor in its strings of documentation.
fn python(text: &str) -> BTreeSet<usize> {
    let mut in_text = false;
    let mut kept = BTreeSet::new();
    for (number, line) in text.lines().map(str::trim_start).enumerate() {
        let marks = line.matches("\"\"\"").count();
        let opens = line.trim_start_matches('r').starts_with("\"\"\"");
        let is_code = !in_text && !opens && !line.starts_with('#') && !line.is_empty();
        in_text = if in_text { marks == 0 } else { opens && marks == 1 };
        kept.extend(is_code.then_some(number));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blanks_do_not_count_and_tests_count_apart() {
        let code = "//! a\nuse b; // c\n\nfn d<'e>() {\n    /* f /* g */\n    h */\n    i(\"{ // j\n    k\", '{', '\\'', r#\"l\"}\"#);\n}\n\n\
                    /// m\n#[cfg(test)]\nmod n {\n    fn o() {}\n}\n#[cfg(test)]\nmod p;\nfn q() {}\n";
        let mut shown = Shown::default();
        shown.add(code.parse().expect("tokens"), false);
        assert_eq!((shown.ships.len(), shown.tests.len()), (6, 6));
        assert_eq!(shown.files_of_tests(Path::new("r/s.rs")), [Path::new("r/s/p")]);
    }

    #[test]
    fn what_documents_python_does_not_count() {
        assert_eq!(python("\"\"\"A.\n\nB.\n\"\"\"\nc = \"\"\"d\ne\"\"\"\n# f\n"), BTreeSet::from([4, 5]));
    }
}
